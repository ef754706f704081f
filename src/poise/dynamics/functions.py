"""The dynamics of a tree as functions of arrays: for one world, or for a batch of worlds in SIMD lanes.

Every function takes a compiled model and coordinates `q`, (nq,) or (n, nq); for a batch it returns one row a world.
`dtype=np.float32` runs sixteen worlds an instruction in single precision.

Conventions: twists are (ω, v) and wrenches (τ, f) in world axes at the body's origin. Springs, dampers and armatures of
the model take part in forward and inverse dynamics; `bias_forces` is Coriolis, centrifugal and gravity alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics import aba, crba, passive, rnea
from poise.dynamics.argument_checks import check_result, checked_step
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.kinematics import place_links
from poise.dynamics.workspace import Workspace, Worlds
from poise.kernel.jit import entry, kernel
from poise.model.model import Model

Array = NDArray[Any]


@kernel
def passive_pull(m, s, x, w):
    """Explicit forces of springs, dampers, drives and gravity compensation."""
    if m.n_compensated > 0:
        place_links(m, s, w)
    passive.gather_forces(m, s, x, w, 0.0)


_forward = entry(aba.articulated_body, MODEL, STATE, INPUT, WORK, extra=("float64",))
_inverse = entry(rnea.inverse_dynamics, MODEL, STATE, INPUT, WORK, extra=("float64",))
_mass = entry(crba.mass_matrix, MODEL, STATE, WORK, crba.MASS)
_passive = entry(passive_pull, MODEL, STATE, INPUT, WORK)


class Drive(NamedTuple):
    """Springs and dampers towards a goal, on every degree of freedom: τ = gain_p (goal_q − q) + gain_d (goal_v − v).

    A ball's error is a rotation vector in the child's axes; its spring has a potential energy, ½ gain_p |error|², only
    where its three gains are equal. A single number as a gain holds for every degree of freedom, a free root's six
    included: to drive only joints, give arrays that are 0 at the root.

    >>> import numpy as np
    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> gain = np.full(model.nv, 300.0)
    >>> gain[model.v_slice("root")] = 0.0
    >>> simulation = poise.dynamics.Simulation(model)
    >>> simulation.drive = poise.dynamics.Drive(gain, 0.1 * gain, model.q_rest)
    """

    gain_p: ArrayLike
    """(nv,) or one number; N/m or N·m/rad."""
    gain_d: ArrayLike
    """(nv,) or one number; N·s/m or N·m·s/rad."""
    goal_q: ArrayLike
    """(nq,) coordinates to reach."""
    goal_v: ArrayLike | None = None
    """(nv,) or one number; at rest when missing."""

    def fields(self) -> dict[str, Any]:
        """The drive as inputs of a world."""
        return dict(zip(self._fields, self, strict=True))


def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    forces: ArrayLike | None = None,
    drive: Drive | None = None,
    prescribed: ArrayLike | None = None,
    dt: float = 0.0,
    dtype: Any = np.float64,
) -> Array:
    """Accelerations (nv,) of a tree under generalized forces `tau` and wrenches `forces` (n_bodies, 6) on its bodies.

    With `dt` > 0, springs, dampers and the drive are evaluated at the end of that step (implicit, stable at any gain).
    `prescribed` gives the accelerations of kinematic bodies, in their places among the nv.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.forward_dynamics(model, model.q_rest, [0] * 6)[2].round(2))
    -9.81
    """
    fields = {"q": q, "v": v, "tau": tau, "force": forces, "prescribed": prescribed}
    worlds, step = Worlds(model, dtype, fields | (drive.fields() if drive else {})), checked_step(dt)

    def call(t: Workspace) -> list[Array]:
        _forward[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, step)
        return [t.w.a]

    return check_result(model, worlds.run(call)[0])


def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    forces: ArrayLike | None = None,
    drive: Drive | None = None,
    dt: float = 0.0,
    dtype: Any = np.float64,
) -> Array:
    """Generalized forces (nv,) that give the accelerations `a`: the inverse of `forward_dynamics`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.inverse_dynamics(model, model.q_rest, [0] * 6, [0] * 6)[2].round(2))
    19.62
    """
    fields = {"q": q, "v": v, "a": a, "force": forces}
    worlds, step = Worlds(model, dtype, fields | (drive.fields() if drive else {})), checked_step(dt)

    def call(t: Workspace) -> list[Array]:
        _inverse[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, step)
        return [t.w.u]

    return worlds.run(call)[0]


def bias_forces(model: Model, q: ArrayLike, v: ArrayLike, *, dtype: Any = np.float64) -> Array:
    """Coriolis, centrifugal and gravity forces (nv,): the bias of M a + bias = τ (KOK eq. 23: V + G).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.bias_forces(model, model.q_rest, [0] * 6)[2].round(2))
    19.62
    """
    worlds = Worlds(model, dtype, {"q": q, "v": v})

    def call(t: Workspace) -> list[Array]:
        t.w.a[...] = 0.0
        _inverse[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, 0.0)
        return [t.w.u + t.w.total]

    return worlds.run(call)[0]


def gravity_forces(model: Model, q: ArrayLike, *, dtype: Any = np.float64) -> Array:
    """Generalized forces (nv,) that hold the tree against gravity: gravity compensation.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.gravity_forces(model, model.q_rest)[2].round(2))
    19.62
    """
    return bias_forces(model, q, np.zeros(model.nv), dtype=dtype)


def passive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, drive: Drive | None = None, dtype: Any = np.float64
) -> Array:
    """Generalized forces (nv,) of the model's springs and dampers, its gravity compensation, and of a drive.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.sphere(0.1), damping=0.5, position=(0, 0, 1))
    >>> poise.dynamics.passive_forces(scene.compile(), [0.0], [2.0]).tolist()
    [-1.0]
    """
    worlds = Worlds(model, dtype, {"q": q, "v": v} | (drive.fields() if drive else {}))

    def call(t: Workspace) -> list[Array]:
        _passive[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle)
        return [t.w.total]

    return worlds.run(call)[0]


def mass_matrix(model: Model, q: ArrayLike, *, dtype: Any = np.float64) -> Array:
    """Mass matrix (nv, nv), armatures included, from composite inertias.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.mass_matrix(model, model.q_rest)[0, 0])
    2.0
    """
    worlds = Worlds(model, dtype, {"q": q})

    def call(t: Workspace) -> list[Array]:
        _mass[t.width](t.m.handle, t.s.handle, t.w.handle, t.mass.handle)
        return [t.mass.M]

    M = worlds.run(call)[0]
    return M.reshape(*M.shape[:-1], model.nv, model.nv)
