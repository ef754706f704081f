"""Quantities of a state, as functions of arrays: poses, twists, Jacobians, energies, momenta, displacements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics import integrate, kinematics
from poise.dynamics.argument_checks import body_number, checked, checked_step, checked_vector
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK, matrices
from poise.dynamics.energy_momentum import TOTALS, add_up
from poise.dynamics.integrate import STAGES
from poise.dynamics.kinematics import BODIES, JACOBIAN
from poise.dynamics.workspace import Workspace, Worlds
from poise.kernel.jit import entry, kernel
from poise.kernel.quat import Quat, conjugate, log_rotation
from poise.model.joints import Primitive
from poise.model.model import Model

Array = NDArray[Any]


@kernel
def place(m, s, w, b):
    """Links, then bodies."""
    kinematics.place_links(m, s, w)
    kinematics.place_bodies(m, w, b)


@kernel
def jacobians(m, s, w, t):
    """Links, then the Jacobian of a point and its rate."""
    kinematics.place_links(m, s, w)
    kinematics.turn_axes(m, s, w, t)
    kinematics.point_jacobian(m, w, t)


@kernel
def move(m, s, y, dt):
    """q ⊕ v dt."""
    integrate.displace(m, s.q, s.v, dt, y.q0)


_place = entry(place, MODEL, STATE, WORK, BODIES)
_jacobians = entry(jacobians, MODEL, STATE, WORK, JACOBIAN)
_totals = entry(add_up, MODEL, STATE, WORK, TOTALS)
_move = entry(move, MODEL, STATE, STAGES, extra=("float64",))


class Bodies(NamedTuple):
    """Poses and twists of all bodies."""

    position: Array
    """(n_bodies, 3) of the bodies' origins in the world; m."""
    rotation: Array
    """(n_bodies, 3, 3) from the bodies' axes to the world's."""
    twist: Array
    """(n_bodies, 6) (ω, velocity of the body's origin) in world axes; rad/s, m/s."""


def bodies(model: Model, q: ArrayLike, v: ArrayLike | None = None, *, dtype: Any = np.float64) -> Bodies:
    """Pose and twist of every body.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(1, 2, 3))
    >>> model = scene.compile()
    >>> poise.dynamics.bodies(model, model.q_rest).position.tolist()
    [[1.0, 2.0, 3.0]]
    """
    worlds = Worlds(model, dtype, {"q": q, "v": v})

    def call(t: Workspace) -> list[Array]:
        _place[t.width](t.m.handle, t.s.handle, t.w.handle, t.bodies.handle)
        return [t.bodies.position, t.bodies.rotation, t.bodies.twist]

    position, rotation, twist = worlds.run(call)
    return Bodies(position, rotation.reshape(*rotation.shape[:-1], 3, 3), twist)


class Jacobian(NamedTuple):
    """J and J̇ of a point fixed to a body."""

    J: Array
    """(6, nv): (ω, velocity of the point) = J v, world axes."""
    rate: Array
    """(6, nv): (α, acceleration of the point) = J a + J̇ v."""


def jacobian(
    model: Model,
    q: ArrayLike,
    body: str | int,
    point: ArrayLike = (0.0, 0.0, 0.0),
    v: ArrayLike | None = None,
    *,
    dtype: Any = np.float64,
) -> Jacobian:
    """Jacobian of a point given in a body's frame, and its time derivative at velocity `v` (KOK eqs. 30, 31).

    Rows 0 to 2 of `J` and `rate` (6, nv) are angular, rows 3 to 5 linear; both in world axes, the linear ones at the
    point, which is the body's origin by default. Without `v` the rate is 0.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.jacobian(model, model.q_rest, "ball").J[3:, :3].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    worlds = Worlds(model, dtype, {"q": q, "v": v})
    index = body_number(model, body)
    link = int(model.body_link[index])
    local = _in_link(model, index, checked_vector("point", point))
    if link < 0:
        shape = (6, model.nv) if worlds.count is None else (worlds.count, 6, model.nv)
        return Jacobian(np.zeros(shape, dtype), np.zeros(shape, dtype))

    def call(t: Workspace) -> list[Array]:
        block = t.jacobian
        block.set_count("link", link)
        block.local[...] = local if t.width.lanes == 1 else local[:, None]
        _jacobians[t.width](t.m.handle, t.s.handle, t.w.handle, block.handle)
        return [block.columns, block.rates]

    columns, rates = worlds.run(call)
    return Jacobian(np.swapaxes(columns, -1, -2), np.swapaxes(rates, -1, -2))


def _in_link(model: Model, body: int, point: Array) -> Array:
    """A point of a body in its link's frame."""
    return matrices(model.body_quat_wxyz[body][None]).reshape(3, 3) @ point + model.body_position[body]


class Energy(NamedTuple):
    """Energies of all that moves; J."""

    kinetic: Any
    """Of the bodies and of the drives' armatures."""
    gravity: Any
    """0 where the centre of mass is level with the world's origin."""
    spring: Any

    @property
    def total(self) -> Any:
        """Kinetic and potential."""
        return self.kinetic + self.gravity + self.spring


class Momentum(NamedTuple):
    """Momentum of all that moves, with its mass and centre of mass."""

    linear: Array
    """(3,) kg·m/s."""
    angular: Array
    """(3,) about the centre of mass; kg·m²/s."""
    com: Array
    """(3,) centre of mass; m."""
    mass: Any
    """kg."""


def _add_up(model: Model, q: ArrayLike, v: ArrayLike | None, dtype: Any) -> dict[str, Array]:
    fields = tuple(TOTALS.fields)

    def call(t: Workspace) -> list[Array]:
        _totals[t.width](t.m.handle, t.s.handle, t.w.handle, t.totals.handle)
        return [t.totals.arrays[name][0] for name in fields]

    return dict(zip(fields, Worlds(model, dtype, {"q": q, "v": v}).run(call), strict=True))


def energy(model: Model, q: ArrayLike, v: ArrayLike, *, dtype: Any = np.float64) -> Energy:
    """Kinetic, gravity and spring energy.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.energy(model, model.q_rest, [3, 0, 0, 0, 0, 0]).kinetic)
    9.0
    """
    t = _add_up(model, q, v, dtype)
    return Energy(t["kinetic"] + t["drives"], t["gravity"], t["spring"])


def momentum(model: Model, q: ArrayLike, v: ArrayLike, *, dtype: Any = np.float64) -> Momentum:
    """Linear momentum, angular momentum about the centre of mass, and the centre itself.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.momentum(model, model.q_rest, [3, 0, 0, 0, 0, 0]).linear.tolist()
    [6.0, 0.0, 0.0]
    """
    t = _add_up(model, q, v, dtype)
    return Momentum(t["momentum"][..., 3:], t["momentum"][..., :3], t["com"], t["mass"])


def displaced(model: Model, q: ArrayLike, v: ArrayLike, dt: float = 1.0, *, dtype: Any = np.float64) -> Array:
    """q ⊕ v dt: coordinates (nq,) after moving with constant velocity, quaternions along the exponential map.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.displaced(model, model.q_rest, [1, 0, 0, 0, 0, 0], 0.5).tolist()[:3]
    [0.5, 0.0, 0.0]
    """
    step = checked_step(dt, backwards=True)

    def call(t: Workspace) -> list[Array]:
        _move[t.width](t.m.handle, t.s.handle, t.stages.handle, step)
        return [t.stages.q0]

    return Worlds(model, dtype, {"q": q, "v": v}).run(call)[0]


def difference(model: Model, start: ArrayLike, end: ArrayLike) -> Array:
    """Velocity (nv,) that moves one pose to another in a second: the inverse of `displaced`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.difference(model, model.q_rest, [0.5, 0, 0, 1, 0, 0, 0]).tolist()[:3]
    [0.5, 0.0, 0.0]
    """
    a, b = checked(model, "q", start), checked(model, "q", end)
    a, b = np.broadcast_arrays(a, b)
    out = np.zeros((*a.shape[:-1], model.nv))
    turns = model.primitive_kind == Primitive.BALL
    j, d = model.primitive_q_start[~turns], model.primitive_v_start[~turns]
    out[..., d] = b[..., j] - a[..., j]
    if turns.any():
        places = model.quaternion_places
        first, last = (Quat(*np.moveaxis(x[..., places], -1, 0)) for x in (a, b))
        own = model.primitive_v_start[turns][:, None] + np.arange(3)
        out[..., own] = np.stack(list(log_rotation(conjugate(first) @ last).leaves()), axis=-1)
    return out
