"""Rows on a tree: the solver's inputs at a state, and the response to multipliers.

Rows in lanes take a batch of as many states as there are lanes, and return one entry a world.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.response import delassus_kernels, row_velocity
from poise.constraints.response.delassus_kernels import FLOW, PLAIN, SYSTEM, flow_block
from poise.constraints.response.row_velocity import ACCELERATION, VELOCITY
from poise.constraints.row_store import STORE
from poise.constraints.rows import Rows
from poise.dynamics import aba
from poise.dynamics.argument_checks import Singular, check_result, checked_step
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.impulse_response import spread_acceleration
from poise.dynamics.workspace import Workspace, Worlds, lane_width, workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64, At, Block, Shared, Width
from poise.model.model import Model

Array = NDArray[Any]

_forward = entry(aba.articulated_body, MODEL, STATE, INPUT, WORK, extra=("float64",))


def rows_width(width: Width) -> Width:
    """Width of a row system: for one world, lanes of rows; else lanes of worlds."""
    return lane_width(np.float64) if width == F64 else width


SYSTEM_IN_LANES = At(SYSTEM, rows_width)
"""In lanes of rows for one world."""
_SEEN = (MODEL, STATE, WORK, STORE, SYSTEM, FLOW)
_SEEN_IN_LANES = (MODEL, STATE, WORK, STORE, SYSTEM_IN_LANES, FLOW)
_LEVEL = ("float64", "int64")
_LOOKED = (MODEL, STATE, WORK, SYSTEM, FLOW)
_LOOK_ROWS = entry(row_velocity.look, *_LOOKED, extra=("float64",))
_LOOK_LANES = entry(row_velocity.look, MODEL, STATE, WORK, SYSTEM_IN_LANES, FLOW, extra=("float64",), lanes=False)
SEE_ROWS = entry(row_velocity.see_rows, *_SEEN, extra=_LEVEL)
SEE_LANES = entry(row_velocity.see_lanes, *_SEEN_IN_LANES, extra=_LEVEL, lanes=False)
GRAM = entry(delassus_kernels.gram, MODEL, SYSTEM)
GRAM_LANES = entry(delassus_kernels.gram_lanes, MODEL, SYSTEM_IN_LANES, PLAIN, lanes=False)
SHARE_ROWS = entry(row_velocity.share, MODEL, WORK, SYSTEM, FLOW)
SHARE_LANES = entry(row_velocity.share_lanes, MODEL, WORK, SYSTEM_IN_LANES, FLOW, lanes=False)
_SPREAD = entry(spread_acceleration, MODEL, WORK, FLOW)


def row_by_row(t: Block, width: Width) -> Block:
    """The memory of a system, as views of worlds of a width."""

    def shared(name: str) -> Shared:
        array = t.arrays[name]
        return Shared(array if width.lanes > 1 else array.reshape(-1))

    return PLAIN.block(width, **{name: shared(name) for name in PLAIN.fields})


def all_links(model: Model) -> dict[str, Any]:
    """Fields of a system whose rows may move every link."""
    links, dofs = np.arange(model.n_links)[::-1], np.arange(model.nv)
    counts = {"n_links": np.array([model.n_links]), "n_dofs": np.array([model.nv])}
    return counts | {"link": links, "link_first": model.link_dof_start[:-1], "dof": dofs}


class System:
    """Memory for the response of a tree to the present list of rows; `lanes` puts rows of one world in lanes.

    The methods are steps of a simulation: they take a workspace that holds a state and its free accelerations.
    """

    def __init__(self, rows: Rows, lanes: bool = True) -> None:
        self.rows, self.in_lanes = rows, lanes and rows.width == F64
        listing, model = rows.listing(), rows.model
        width = lane_width(np.float64) if self.in_lanes else rows.width
        m, nv, links = listing.size, model.nv, model.n_links
        groups = -(-m // width.lanes) if self.in_lanes else m
        sizes = dict.fromkeys(SYSTEM.fields, groups) | {"root": nv, "tau": nv, "p": 3 * links, "touched": links}
        sizes |= {"y": groups * nv, "filled": groups * nv}
        sizes |= {"A": groups * groups * width.lanes if self.in_lanes else m * m}
        counts: dict[str, Any] = {"n_rows": np.array([m]), "n_groups": np.array([groups])}
        counts |= {"n_lanes": width.lanes, "slot": listing.slots}
        self.t = SYSTEM.block(width, **(sizes | counts | all_links(model)))
        self.flow = flow_block(nv, links, rows.width)
        if self.in_lanes and m:
            filled = np.concatenate((listing.slots, np.repeat(listing.slots[-1:], groups * width.lanes - m)))
            self.t.lane_slot[...] = filled.reshape(self.t.lane_slot.shape)
        self.plain = row_by_row(self.t, rows.width)

    def see(self, space: Workspace, dt: float, level: int) -> None:
        """Compute Y and row velocities, and at acceleration level row accelerations."""
        width, state = self.rows.width, (space.m.handle, space.s.handle, space.w.handle)
        look, call = (_LOOK_LANES, SEE_LANES) if self.in_lanes else (_LOOK_ROWS, SEE_ROWS)
        look[width](*state, self.t.handle, self.flow.handle, dt)
        call[width](*state, self.rows.now.handle, self.t.handle, self.flow.handle, dt, level)

    def multiply(self, space: Workspace) -> None:
        """Compute A from Y."""
        if self.in_lanes:
            GRAM_LANES[F64](space.m.handle, self.t.handle, self.plain.handle)
        else:
            GRAM[self.t.width](space.m.handle, self.t.handle)

    def answer(self, space: Workspace) -> None:
        """M⁻¹ Jᵀ λ of the multipliers in `t.lam`, into `flow.a`."""
        width, t = self.rows.width, self.t
        call = SHARE_LANES[width] if self.in_lanes else SHARE_ROWS[width]
        call(space.m.handle, space.w.handle, t.handle, self.flow.handle)
        _SPREAD[width](space.m.handle, space.w.handle, self.flow.handle)

    def matrix(self) -> Array:
        """(m, m) A; (worlds, m, m) where lanes are worlds."""
        m, n, lanes = int(self.t.n_rows[0]), self._padded, self.rows.width.lanes
        if lanes > 1:
            return np.moveaxis(self.t.A.reshape(m, m, lanes), -1, 0).copy()
        return np.array(self.t.A.reshape(n, n)[:m, :m])

    def values(self, name: str) -> Array:
        """(m,) numbers of rows; (worlds, m) where lanes are worlds."""
        array = self.t.arrays[name]
        return array.T.copy() if self.rows.width.lanes > 1 else array.reshape(-1)[: int(self.t.n_rows[0])].copy()

    @property
    def _padded(self) -> int:
        return int(self.t.n_groups[0]) * (self.t.width.lanes if self.in_lanes else 1)


@dataclass(frozen=True)
class Seen:
    """Rows evaluated at a state: inputs of solvers. In lanes every array has a first axis of worlds."""

    A: Array
    """(m, m) J M⁻¹ Jᵀ, without softness."""
    speed: Array
    """(m,) J v at acceleration level, J (v + dt a_free) at velocity level; m/s or rad/s."""
    pull: Array | None
    """(m,) J a_free + γ, KOK's h(q̈⁰), at acceleration level; m/s² or rad/s²."""
    a_free: Array
    """(nv,) accelerations without the rows; m/s² or rad/s²."""
    dt: float | None = None
    """The step, at velocity level; s."""


def see(
    rows: Rows,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    forces: ArrayLike | None = None,
    prescribed: ArrayLike | None = None,
    dt: float | None = None,
    lanes: bool = True,
) -> Seen:
    """The Delassus matrix, and row velocities or accelerations of the free motion: at velocity level if `dt` is given.

    Springs and dampers are then evaluated at the end of the step, in A as well. `lanes=False` processes the rows of one
    world one at a time.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> rows = Rows(model)
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1), lo=0.0)
    >>> seen = see(rows, model.q_rest)
    >>> seen.A.round(9).tolist(), seen.pull.round(2).tolist()
    ([[0.5]], [-9.81])
    """
    level = ACCELERATION if dt is None else VELOCITY
    step = 0.0 if dt is None else checked_step(dt)
    system = System(rows, lanes)
    space = moving(rows, {"q": q, "v": v, "tau": tau, "force": forces, "prescribed": prescribed}, step)
    system.see(space, step, level)
    system.multiply(space)
    pull = system.values("pull") if level == ACCELERATION else None
    a_free = space.w.a.T.copy() if rows.width.lanes > 1 else space.w.a.copy()
    return Seen(system.matrix(), system.values("speed"), pull, a_free, None if dt is None else step)


def answer(rows: Rows, q: ArrayLike, lam: ArrayLike, *, dt: float = 0.0, lanes: bool = True) -> Array:
    """(nv,) change of accelerations (by forces) or velocities (by impulses) for multipliers: M⁻¹ Jᵀ λ.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> rows = Rows(model)
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1))
    >>> round(float(answer(rows, model.q_rest, [3.0])[2]), 9)
    1.5
    """
    system, step = System(rows, lanes), checked_step(dt)
    space = moving(rows, {"q": q}, step)
    system.see(space, step, VELOCITY)
    m = int(system.t.n_rows[0])
    given = np.asarray(lam, np.float64)
    wanted = (m,) if rows.width.lanes == 1 else (rows.width.lanes, m)
    if given.shape != wanted or not np.isfinite(given).all():
        raise ValueError(f"lam must be finite numbers of shape {wanted}, one a row; its shape is {given.shape}")
    if rows.width.lanes > 1:
        system.t.lam[...] = given.T
    else:
        system.t.lam.reshape(-1)[:m] = given
    system.answer(space)
    result = system.flow.a.T.copy() if rows.width.lanes > 1 else system.flow.a.copy()
    return check_result(rows.model, result)


def moving(rows: Rows, fields: dict[str, Any], dt: float) -> Workspace:
    """This thread's workspace of the rows' model, with a state and its free accelerations."""
    worlds = Worlds(rows.model, rows.width.dtype, fields)
    lanes = rows.width.lanes
    if rows.width not in (F64, lane_width(rows.width.dtype)):
        raise ValueError(f"rows of {rows.width}; trees run in {F64}, {lane_width('f8')} and {lane_width('f4')}")
    if (worlds.count or 1) != lanes or (worlds.count is None and rows.width != F64):
        raise ValueError(f"{worlds.count or 1} states for rows of {lanes} worlds ({rows.width}): give one each")

    def call(space: Workspace) -> list[Array]:
        _forward[space.width](space.m.handle, space.s.handle, space.x.handle, space.w.handle, dt)
        check_result(rows.model, space.w.a.T)
        _check_inertias(rows.model, space.w.inverse.T)
        return []

    worlds.run(call)
    return workspace(rows.model, rows.width)


def _check_inertias(model: Model, inverse: Array) -> None:
    """Raise `Singular` if an inertia is negative by rounding, near singular poses: it has no square root."""
    if not (inverse >= 0.0).all():
        where = np.argwhere(~(inverse >= 0.0))[0]
        world = f" of world {where[0]}" if inverse.ndim > 1 else ""
        dof = model.dof_names[where[-1]]
        raise Singular(
            f'the inertia along "{dof}"{world} is lost in rounding: the mass matrix is singular at this pose'
        )
