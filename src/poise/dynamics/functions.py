"""The dynamics of a tree as functions of arrays: for one world, or for a batch of rows that runs in lanes.

Every function takes a compiled model and coordinates `q`, (nq,) or (n, nq); a batch answers with one row a world.
`dtype=np.float32` runs sixteen worlds an instruction in single precision.

Conventions: twists are (ω, v) and wrenches (τ, f) in world axes at the body's origin. Springs, dampers and armatures of
the model take part in forward and inverse dynamics; `bias_forces` is Coriolis, centrifugal and gravity alone.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics import abm, crba, integrate, kinematics, passive, rnea
from poise.dynamics import energy as energies
from poise.dynamics import response as responses
from poise.dynamics.integrate import STAGES
from poise.dynamics.kinematics import BODIES, JACOBIAN
from poise.dynamics.layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.workspace import (
    Workspace,
    Worlds,
    checked,
    checked_step,
    checked_vector,
    lane_width,
    workspace,
)
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64
from poise.model.joints import Primitive
from poise.model.model import Model

Array = NDArray[Any]

_forward = entry(abm.articulated_body, MODEL, STATE, INPUT, WORK, extra=("float64",))
_inverse = entry(rnea.inverse_dynamics, MODEL, STATE, INPUT, WORK, extra=("float64",))
_mass = entry(crba.mass_matrix, MODEL, STATE, WORK, crba.MASS)
_totals = entry(energies.add_up, MODEL, STATE, WORK, energies.TOTALS)
_prepare = entry(abm.prepare, MODEL, STATE, INPUT, WORK, extra=("float64",))
_force_delta = entry(responses.force_delta, MODEL, WORK, responses.RESPONSE, extra=("int64",))
_torque_delta = entry(responses.torque_delta, MODEL, WORK, responses.RESPONSE, extra=("int64",))
_respond = entry(responses.respond, MODEL, WORK, responses.RESPONSE)


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
def passive_pull(m, s, x, w):
    """Explicit forces of springs, dampers and drives."""
    passive.gather_forces(m, s, x, w, 0.0)


@kernel
def move(m, s, y, dt):
    """q ⊕ v dt."""
    integrate.displace(m, s.q, s.v, dt, y.q0)


_place = entry(place, MODEL, STATE, WORK, BODIES)
_jacobians = entry(jacobians, MODEL, STATE, WORK, JACOBIAN)
_passive = entry(passive_pull, MODEL, STATE, INPUT, WORK)
_move = entry(move, MODEL, STATE, STAGES, extra=("float64",))


class Drive(NamedTuple):
    """Springs and dampers towards a goal, on every degree of freedom: τ = gain_p (goal_q − q) + gain_d (goal_v − v).

    A ball's error is a rotation vector in the child's axes; its spring has a potential energy, ½ gain_p |error|², only
    where its three gains are alike.
    """

    gain_p: ArrayLike
    gain_d: ArrayLike
    goal_q: ArrayLike
    goal_v: ArrayLike | None = None

    def fields(self) -> dict[str, Any]:
        """As inputs of a world."""
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

    With `dt` > 0, springs, dampers and the drive are met at the end of that step (implicit, stable at any gain).
    `prescribed` gives the accelerations of kinematic bodies, in their places among the nv.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.forward_dynamics(model, model.q_rest, [0] * 6).round(2).tolist()[:3]
    [0.0, 0.0, -9.81]
    """
    fields = {"q": q, "v": v, "tau": tau, "force": forces, "prescribed": prescribed}
    worlds, step = Worlds(model, dtype, fields | (drive.fields() if drive else {})), checked_step(dt)

    def call(t: Workspace) -> list[Array]:
        _forward[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, step)
        return [t.w.a]

    return worlds.run(call)[0]


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
    >>> poise.dynamics.inverse_dynamics(model, model.q_rest, [0] * 6, [0] * 6).round(2).tolist()[:3]
    [0.0, 0.0, 19.62]
    """
    fields = {"q": q, "v": v, "a": a, "force": forces}
    worlds, step = Worlds(model, dtype, fields | (drive.fields() if drive else {})), checked_step(dt)

    def call(t: Workspace) -> list[Array]:
        _inverse[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, step)
        return [t.w.u]

    return worlds.run(call)[0]


def bias_forces(model: Model, q: ArrayLike, v: ArrayLike, *, dtype: Any = np.float64) -> Array:
    """Coriolis, centrifugal and gravity forces (nv,): what M a + bias = τ calls bias (KOK eq. 23: V + G).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.bias_forces(model, model.q_rest, [0] * 6).round(2).tolist()[:3]
    [0.0, 0.0, 19.62]
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
    >>> poise.dynamics.gravity_forces(model, model.q_rest).round(2).tolist()[:3]
    [0.0, 0.0, 19.62]
    """
    return bias_forces(model, q, np.zeros(model.nv), dtype=dtype)


def passive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, *, drive: Drive | None = None, dtype: Any = np.float64
) -> Array:
    """Generalized forces (nv,) of the model's springs and dampers, and of a drive.

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


class Bodies(NamedTuple):
    """Poses and twists of all bodies."""

    position: Array
    """(n_bodies, 3) of the bodies' origins in the world; m."""
    rotation: Array
    """(n_bodies, 3, 3) from the bodies' axes to the world's."""
    twist: Array
    """(n_bodies, 6) (ω, velocity of the body's origin) in world axes; rad/s, m/s."""


def bodies(model: Model, q: ArrayLike, v: ArrayLike | None = None, *, dtype: Any = np.float64) -> Bodies:
    """Where every body is and how it moves.

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

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.jacobian(model, model.q_rest, "ball").J[3:, :3].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    worlds = Worlds(model, dtype, {"q": q, "v": v})
    index = _body(model, body)
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


def _body(model: Model, body: str | int) -> int:
    if isinstance(body, str):
        return model.body_index(body)
    return _number("body", body, model.n_bodies, "bodies")


def _number(what: str, number: Any, count: int, many: str) -> int:
    """An index that is an integer within its range."""
    try:
        index = operator.index(number)
    except TypeError:
        raise ValueError(f"{what} must be a name or a number, not {number!r}") from None
    if not 0 <= index < count:
        has = f"{many} 0 to {count - 1}" if count else f"no {many}"
        raise ValueError(f"{what} {index}: the model has {has}")
    return index


def _in_link(model: Model, body: int, point: Array) -> Array:
    """A point of a body in its link's frame."""
    from poise.dynamics.layout import matrices

    return matrices(model.body_quat_wxyz[body][None]).reshape(3, 3) @ point + model.body_position[body]


def force_delta(
    model: Model, q: ArrayLike, body: str | int, force: ArrayLike, torque: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """What a force at a body's origin (and a torque), in world axes, adds to the accelerations (nv,) (KOK §4.3).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.force_delta(model, model.q_rest, "ball", (1, 0, 0))[0])
    0.5
    """
    index = _body(model, body)
    wrench = (*checked_vector("torque", torque), *checked_vector("force", force))
    space = _prepared(model, q)
    if model.body_link[index] < 0:
        return np.zeros(model.nv)
    block = space.response(F64)
    block.force[index] = wrench
    _force_delta[F64](space.m.handle, space.w.handle, block.handle, index)
    return block.a.copy()


def torque_delta(model: Model, q: ArrayLike, dof: str | int, torque: float = 1.0) -> Array:
    """What a generalized force on one degree of freedom adds to the accelerations (nv,) (KOK §4.3).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.torque_delta(model, model.q_rest, 1)[1])
    0.5
    """
    index = model.dof_index(dof) if isinstance(dof, str) else _number("dof", dof, model.nv, "degrees of freedom")
    if np.ndim(torque) != 0 or not isinstance(torque, int | float | np.number) or not np.isfinite(torque):
        raise ValueError(f"torque is {torque!r}; it must be one finite number")
    space = _prepared(model, q)
    block = space.response(F64)
    block.tau[index] = torque
    _torque_delta[F64](space.m.handle, space.w.handle, block.handle, index)
    return block.a.copy()


def response(model: Model, q: ArrayLike, tau: ArrayLike | None = None, forces: ArrayLike | None = None) -> Array:
    """M⁻¹ (τ + Σ Jᵀ f) for many forces at once: rows of `tau` (n, nv) and `forces` (n, n_bodies, 6), in lanes.

    >>> import numpy as np, poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> np.diag(poise.dynamics.response(model, model.q_rest, np.eye(6)))[:3].tolist()
    [0.5, 0.5, 0.5]
    """
    fields = {"tau": tau, "force": forces}
    given = {k: np.atleast_2d(checked(model, k, x)) for k, x in fields.items() if x is not None}
    if not given:
        raise ValueError("give tau, forces, or both")
    count = {len(x) for x in given.values()}
    if 0 in count:
        raise ValueError("tau and forces have no rows; give at least one")
    if len(count) > 1:
        raise ValueError(f"tau and forces have {sorted(count)} rows: give as many of both")
    space, width = _prepared(model, q), lane_width(np.float64)
    block = space.response(width)
    block.set_count("n_forces", int("force" in given))
    call, out = _respond[(F64, F64, width)], []
    for start in range(0, count.pop(), width.lanes):
        for name in fields:
            array = block.arrays[name].reshape(-1, width.lanes)
            array[...] = 0.0
            if name in given:
                rows = given[name][start : start + width.lanes]
                array[:, : len(rows)] = rows.T
        call(space.m.handle, space.w.handle, block.handle)
        out.append(block.a.T.copy())
    return np.concatenate(out)[: len(next(iter(given.values())))]


def _prepared(model: Model, q: ArrayLike) -> Workspace:
    """A workspace with the articulated inertias of a pose."""

    def call(t: Workspace) -> list[Array]:
        _prepare[t.width](t.m.handle, t.s.handle, t.x.handle, t.w.handle, 0.0)
        return []

    worlds = Worlds(model, np.float64, {"q": q})
    if worlds.count is not None:
        raise ValueError("responses are of one pose: q must be one row")
    worlds.run(call)
    return workspace(model, F64)


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
    """Momentum of all that moves, with the mass and centre that it is about."""

    linear: Array
    """(3,) kg·m/s."""
    angular: Array
    """(3,) about the centre of mass; kg·m²/s."""
    com: Array
    """(3,) centre of mass; m."""
    mass: Any
    """kg."""


def _add_up(model: Model, q: ArrayLike, v: ArrayLike | None, dtype: Any) -> dict[str, Array]:
    fields = tuple(energies.TOTALS.fields)

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
    if not np.isfinite(dt):
        raise ValueError(f"dt is {dt}; it must be a finite time in seconds")

    def call(t: Workspace) -> list[Array]:
        _move[t.width](t.m.handle, t.s.handle, t.stages.handle, float(dt))
        return [t.stages.q0]

    return Worlds(model, dtype, {"q": q, "v": v}).run(call)[0]


def difference(model: Model, start: ArrayLike, end: ArrayLike) -> Array:
    """Velocity (nv,) that leads from one pose to another in a second: the inverse of `displaced`.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> model = scene.compile()
    >>> poise.dynamics.difference(model, model.q_rest, [0.5, 0, 0, 1, 0, 0, 0]).tolist()[:3]
    [0.5, 0.0, 0.0]
    """
    from poise.kernel.quat import Quat, conjugate, log_rotation

    a, b = checked(model, "q", start), checked(model, "q", end)
    a, b = np.broadcast_arrays(a, b)
    out = np.zeros((*a.shape[:-1], model.nv))
    for kind, j, d in zip(model.primitive_kind, model.primitive_q_start, model.primitive_v_start, strict=True):
        if kind == Primitive.BALL:
            first, last = (Quat(*np.moveaxis(x[..., j : j + 4], -1, 0)) for x in (a, b))
            out[..., d : d + 3] = np.stack(list(log_rotation(conjugate(first) @ last).leaves()), axis=-1)
        else:
            out[..., d] = b[..., j] - a[..., j]
    return out
