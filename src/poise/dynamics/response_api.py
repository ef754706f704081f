"""Responses to forces, as functions of arrays: acceleration deltas (KOK §4.3) and M⁻¹ times many forces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics import aba
from poise.dynamics.argument_checks import body_number, check_result, checked, checked_vector, dof_number
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.impulse_response import RESPONSE, respond
from poise.dynamics.impulse_response import force_delta as force_delta_kernel
from poise.dynamics.impulse_response import torque_delta as torque_delta_kernel
from poise.dynamics.workspace import Workspace, Worlds, lane_width, workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.model.model import Model

Array = NDArray[Any]

_prepare = entry(aba.prepare, MODEL, STATE, INPUT, WORK, extra=("float64",))
_force_delta = entry(force_delta_kernel, MODEL, WORK, RESPONSE, extra=("int64",))
_torque_delta = entry(torque_delta_kernel, MODEL, WORK, RESPONSE, extra=("int64",))
_respond = entry(respond, MODEL, WORK, RESPONSE)


def force_delta(
    model: Model, q: ArrayLike, body: str | int, force: ArrayLike, torque: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """Change of the accelerations (nv,) by a force at a body's origin and a torque, in world axes (KOK §4.3).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.force_delta(model, model.q_rest, "ball", (1, 0, 0))[0])
    0.5
    """
    index = body_number(model, body)
    wrench = (*checked_vector("torque", torque), *checked_vector("force", force))
    space = _prepared(model, q)
    if model.body_link[index] < 0:
        return np.zeros(model.nv)
    block = space.response(F64)
    block.force[index] = wrench
    _force_delta[F64](space.m.handle, space.w.handle, block.handle, index)
    return check_result(model, block.a.copy())


def torque_delta(model: Model, q: ArrayLike, dof: str | int, torque: float = 1.0) -> Array:
    """Change of the accelerations (nv,) by a generalized force on one degree of freedom (KOK §4.3).

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> float(poise.dynamics.torque_delta(model, model.q_rest, 1)[1])
    0.5
    """
    index = dof_number(model, dof)
    if np.ndim(torque) != 0 or not isinstance(torque, int | float | np.number) or not np.isfinite(torque):
        raise ValueError(f"torque is {torque!r}; it must be one finite number")
    space = _prepared(model, q)
    block = space.response(F64)
    block.tau[index] = torque
    _torque_delta[F64](space.m.handle, space.w.handle, block.handle, index)
    return check_result(model, block.a.copy())


def response(model: Model, q: ArrayLike, tau: ArrayLike | None = None, forces: ArrayLike | None = None) -> Array:
    """M⁻¹ (τ + Σ Jᵀ f) for many forces at once: rows of `tau` (n, nv) and `forces` (n, n_bodies, 6), in lanes.

    Returns (n, nv); a single force counts as one row.

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
    return check_result(model, np.concatenate(out)[: len(next(iter(given.values())))])


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
