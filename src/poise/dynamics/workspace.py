"""Memory blocks of a model, and batches of worlds in lanes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from poise.dynamics.argument_checks import check_given, check_model, check_range, checked
from poise.dynamics.crba import MASS
from poise.dynamics.dynamics_layout import input_block, model_block, state_block, work_block
from poise.dynamics.energy_momentum import TOTALS
from poise.dynamics.impulse_response import RESPONSE
from poise.dynamics.integrate import STAGES
from poise.dynamics.kinematics import BODIES, JACOBIAN
from poise.kernel.memory import F32X16, F64, F64X8, Block, Width
from poise.model.joints import Prescribed
from poise.model.model import Model

Result = np.ndarray


def lane_width(dtype: Any) -> Width:
    """The lane width of batches of a precision."""
    return F32X16 if np.dtype(dtype) == np.float32 else F64X8


class Workspace:
    """All blocks of one model's kernels at one width: m, s, x, w of their signatures, and the rest.

    It holds no reference to the model itself, which would keep the model alive: workspaces are cached by model.
    """

    def __init__(self, model: Model, width: Width, drifts: bool = False) -> None:
        self.width = width
        self.n_links, self.n_bodies, self.nq, self.nv = model.n_links, model.n_bodies, model.nq, model.nv
        self.m = model_block(model, width)
        self.s = state_block(model, width)
        self.x = input_block(model, width)
        self.w = work_block(model, width, drifts)

    @cached_property
    def bodies(self) -> Block:
        """Poses and twists of bodies."""
        n = self.n_bodies
        return BODIES.block(self.width, rotation=n, position=n, twist=n)

    @cached_property
    def jacobian(self) -> Block:
        """Jacobian of a point."""
        n = self.nv
        return JACOBIAN.block(self.width, link=0, local=1, axis_rate=n, columns=n, rates=n)

    @cached_property
    def mass(self) -> Block:
        """Mass matrix."""
        return MASS.block(self.width, composite=self.n_links, M=self.nv**2)

    @cached_property
    def totals(self) -> Block:
        """Energies and momenta."""
        return TOTALS.block(self.width, **dict.fromkeys(TOTALS.fields, 1))

    @cached_property
    def stages(self) -> Block:
        """Work arrays of an integrator."""
        nq, nv = self.nq, self.nv
        n_prescribed = int(np.count_nonzero(self.m.dof_prescribed == Prescribed.FREELY))
        paths = {"path_q": 3 * nq, "path_v": 3 * nv, "path_a": 3 * nv}
        sizes = dict.fromkeys(("v0", "shift", "rate", "sum_rate", "sum_a"), nv)
        return STAGES.block(self.width, n_q=nq, n_prescribed=n_prescribed, q0=nq, lost=1, **paths, **sizes)

    def response(self, width: Width) -> Block:
        """Forces and their response, at a width of their own."""
        known = self.__dict__.setdefault("_responses", {})
        if width not in known:
            links, dofs, bodies = self.n_links, self.nv, self.n_bodies
            sizes = {"force": bodies, "tau": dofs, "p": links, "share": dofs, "a": dofs, "acceleration": links}
            known[width] = RESPONSE.block(width, n_forces=0, **sizes)
        return known[width]


_local = threading.local()


def workspace(model: Model, width: Width = F64) -> Workspace:
    """This thread's workspace of a model at a width."""
    if not hasattr(_local, "known"):
        _local.known = weakref.WeakKeyDictionary()
    known = _local.known.setdefault(model, {})
    if width not in known:
        known[width] = Workspace(model, width)
    return known[width]


class Worlds:
    """One world, or a batch of worlds in lanes.

    Each field is (k,) for all worlds, or (n, k) with one row a world. If no field has rows, it is one world in float64,
    or one lane of float32.
    """

    def __init__(self, model: Model, dtype: Any, fields: dict[str, Any]) -> None:
        check_model(model)
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype is {np.dtype(dtype)}; kernels run in float64 or float32")
        self.model, self.dtype = model, np.dtype(dtype)
        check_given(fields)
        self.fields = {name: checked(model, name, value) for name, value in fields.items() if value is not None}
        if self.dtype == np.float32:
            check_range(self.fields)
        counts = {name: len(value) for name, value in self.fields.items() if value.ndim == 2}
        if len(set(counts.values())) > 1:
            raise ValueError(f"the batch has {counts} worlds: give every field as many rows, or one row for all")
        self.count = next(iter(counts.values()), None)
        if self.count == 0:
            raise ValueError(f"{', '.join(counts)}: a batch of no worlds; give at least one row")

    def run(self, call: Callable[[Workspace], Sequence[Result]]) -> list[Result]:
        """Fill a workspace, call, collect: once for one world, else for each group of lanes."""
        if self.count is None and self.dtype == np.float64:
            space = self._cleared(F64)
            for name, value in self.fields.items():
                target = _target(space, name)
                target[...] = value.reshape(target.shape)
            return [np.array(result) for result in call(space)]
        whole = self._run_groups(call, lane_width(self.dtype))
        return whole if self.count is not None else [result[0] for result in whole]

    def _run_groups(self, call: Callable[[Workspace], Sequence[Result]], width: Width) -> list[Result]:
        space, count = self._cleared(width), self.count or 1
        groups = -(-count // width.lanes)
        rows = np.minimum(np.arange(groups * width.lanes), count - 1)  # the last world pads the last group
        moving = []
        for name, value in self.fields.items():
            target = _target(space, name)
            if value.ndim == 1:
                target[...] = value.reshape(*target.shape[:-1], 1)
            else:
                lanes = value[rows].reshape(groups, width.lanes, -1).swapaxes(1, 2)
                moving.append((target, np.ascontiguousarray(lanes, self.dtype).reshape(groups, *target.shape)))
        collected: list[Result] = []
        for group in range(groups):
            for target, packed in moving:
                target[...] = packed[group]
            results = call(space)
            collected = collected or [np.empty((groups, *result.shape), self.dtype) for result in results]
            for out, result in zip(collected, results, strict=True):
                out[group] = result
        return [_unpacked(out)[:count] for out in collected]

    def _cleared(self, width: Width) -> Workspace:
        """A workspace without forces and velocities."""
        space = workspace(self.model, width)
        space.s.v[...] = 0.0
        for name in ("tau", "prescribed", "force", "gain_p", "gain_d", "goal_v"):
            space.x.arrays[name][...] = 0.0
        space.x.set_count("n_forces", int("force" in self.fields))
        space.x.set_count("n_gains", int("gain_p" in self.fields or "gain_d" in self.fields))
        return space


def _target(space: Workspace, field: str) -> np.ndarray:
    """The array that a field goes to."""
    return {"q": space.s, "v": space.s, "a": space.w}.get(field, space.x).arrays[field]


def _unpacked(groups: Result) -> Result:
    """(groups, …, lanes) as (worlds, …)."""
    lanes_first = np.moveaxis(groups, -1, 1)
    worlds = lanes_first.shape[0] * lanes_first.shape[1]
    return np.ascontiguousarray(lanes_first).reshape(worlds, *lanes_first.shape[2:])
