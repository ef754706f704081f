"""Memory of a velocity-level step, and the calls of its kernels: free motion, contacts, rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.detector import Collider
from poise.constraints.islands import islands_block
from poise.constraints.kinds.contact import surfaces_block
from poise.constraints.kinds.joint_limit import limits_block
from poise.constraints.kinds.loop_joint import MEASURE_LOOPS
from poise.constraints.response import delassus_kernels
from poise.constraints.response.delassus_kernels import PLAIN, SYSTEM, flow_block
from poise.constraints.response.row_system import (
    GRAM_LANES,
    SEE_LANES,
    SEE_ROWS,
    SHARE_LANES,
    SHARE_ROWS,
    row_by_row,
    rows_width,
)
from poise.constraints.row_store import LAW, STRIDES, make_store, moved
from poise.constraints.rows import Rows
from poise.constraints.warm_start import COUNT, WarmStart, check_warm_start
from poise.dynamics.dynamics_layout import MODEL, work_block
from poise.dynamics.workspace import Workspace
from poise.formulations.ccd_stepping.ccd_substeps import Split
from poise.formulations.constraint_set import Extras
from poise.formulations.data import CALLS, DATA, OPTIONS, no_bodies, options_block, scratch_block, stats_block
from poise.formulations.sleep.sleep_state import Sleep, sleep_block
from poise.formulations.stages import velocity_step
from poise.formulations.step import FINISH_PART
from poise.formulations.step_loop import March
from poise.formulations.step_memory import (
    Entries,
    answer_block,
    bound,
    bound_solver,
    problem_block,
    system_block,
)
from poise.formulations.step_status import (
    ALL,
    BY_DISPLACEMENT,
    DIVERGED,
    DONE,
    DRIVEN,
    NO_CONTACT_ROOM,
    NO_PREPARED_ROOM,
    NO_ROOM,
    TOO_LONG,
    WHOLE,
)
from poise.formulations.step_table import Stage, Stages
from poise.kernel.bound import Bound
from poise.kernel.callbacks import Callback
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Width
from poise.model.model import Model
from poise.model.state_fields import SlotCheck, StateFields
from poise.solve.newton_kernels import STEPS, newton_block

Array = NDArray[Any]
ISLAND_ROWS = 128
"""Initial memory for the rows of an island; it grows with the square of their number."""


@kernel
def multiply_worlds(m, t, plain):
    """The constraint matrix A in lanes of worlds."""
    delassus_kernels.gram(m, t)


_MULTIPLY = entry(multiply_worlds, MODEL, SYSTEM, PLAIN)


_free_motion = entry(velocity_step.free_motion, MODEL, DATA, OPTIONS, extra=("float64", "int64"))
_advance = entry(velocity_step.advance, MODEL, DATA, OPTIONS, extra=("float64", "int64"))
STATUSES = ("solved", "stalled", "capped")
"""By their numbers: see `solve.pgs_kernels`."""


@dataclass(frozen=True)
class Told:
    """Statistics of the solution of a step."""

    sweeps: int = 0
    newton_steps: int = 0
    residual: float = 0.0
    """Natural residual, relative to the largest |b|."""
    parts: int = 1
    """Number of parts that the step was split into."""
    backtracks: int = 0
    """Number of tentative steps that were taken back, at acceleration level."""
    level: str = "velocity"
    """Level at which the step was finished."""
    work: float = 0.0
    """Work of all solves: number of multiply-adds, as `Reduced.budget` counts it."""
    newton_work: float = 0.0
    """Of it, the work of Newton's method."""
    status: str = "solved"
    """Of impulses: "solved"; "stalled" if they stopped improving; "capped" if sweeps or work were used up."""
    shift_status: str = "solved"
    """Of displacements, likewise."""


class Stepper:
    """Steps one world in float64, or lanes of worlds, at velocity level."""

    _free_motion, _advance = _free_motion, _advance
    _drifts, _separate = False, False
    _centred = True
    """Whether free flight moves coordinates by v + h a/2, instead of the velocity at the end of the step."""
    by_kernels = True
    """Whether kernels can do whole steps: see `step_loop`."""

    def __init__(
        self,
        model: Model,
        width: Width = F64,
        *,
        newton: bool = True,
        split: bool = True,
        sleep_speed: float | None = None,
        sleep_after: float = 0.5,
        **options: Any,
    ) -> None:
        """`newton`: use Newton's method between sweeps; `split`: split steps in which something moves far (one world
        only); `sleep_speed`: speed below which bodies sleep, None to disable sleeping.
        """
        self.model, self.width, self.newton, self.split = model, width, newton, split
        self.parts = 1
        """Number of parts of the last step."""
        self.space = Workspace(model, width, self._drifts)
        self.end = work_block(model, width)
        """Links at the end of a step."""
        self.bodies = self._make_bodies()
        self.collider = Collider(model, width)
        self.rows, self._warm_start = Rows(model, width), WarmStart()
        self.extras = Extras(model, width)
        block = sleep_block(model, width, self.extras.motors, sleep_speed if width == F64 else None, sleep_after)
        self.sleep = Sleep(model, block, self.extras)
        self._of_rows = width == F64
        self._lanes = rows_width(width)
        self.surfaces, self.limits = surfaces_block(model, width), limits_block(model, width)
        self.flow = flow_block(model.nv, model.n_links, width)
        steps = STEPS if newton else 0
        self.options = options_block(width, steps=steps, separate=self._separate, centred=self._centred, **options)
        self.stats, self.scratch = stats_block(model, width), scratch_block(model, width, self.limits)
        self.near, self.far, self._erp = (float(self.options.arrays[name].flat[0]) for name in ("near", "far", "erp"))
        self._stabilize = self.options.counts()["stabilize"]
        if self._of_rows:
            self.options.far[...] = inf  # no limit on the search for contacts: what moves far is handled in `step`
        self._calls = self._make_calls()
        self._top = self.stats.arrays["top"]
        self._split: Split | None = None
        self.march = March(self)
        self._island_room = ISLAND_ROWS
        self.watch: Callable[[Stepper, Block], None] | None = None
        """Called after every part of a step, with the store of its constraints."""
        self.noted = {name: np.zeros(1, np.int32) for name in ("prepared", "found")}
        """What a step writes: see `step.STEP`."""
        self._choice: Callable[[Block], None] | None = None
        self._problems: list[BaseException] = []
        """Exceptions of stages in Python."""
        self._finisher: tuple[tuple[Any, ...], list[Block], Any] = ((), [], None)
        self._make_room()

    def _make_bodies(self) -> Block:
        """State of separate bodies, in formulations of maximal coordinates."""
        return no_bodies(self.width)

    def _make_calls(self) -> Block:
        width, alone = self.width, self._of_rows
        return CALLS.block(
            width,
            see=(SEE_LANES if alone else SEE_ROWS).address(width),
            multiply=(GRAM_LANES if alone else _MULTIPLY).address(width),
            share=(SHARE_LANES if alone else SHARE_ROWS).address(width),
            solve=0,  # see `_make_room`
            solve_table=0,
        )

    def _make_room(self) -> None:
        """Allocate memory for as many rows as the store has room for."""
        room = self.rows.now.room.tolist()
        total = sum(n * stride for n, stride in zip(room, STRIDES, strict=True))
        model, width = self.model, self.width
        terms = self.rows.now.counts()["term_room"]
        self.spare = make_store(width, room, terms) if self._of_rows else self.rows.before
        """The store of a step in parts, so that the rows of the step before are kept."""
        rows = self._island_room = min(self._island_room, total) if self._of_rows else total
        self.system = system_block(width, self._lanes, rows, model.nv, model.n_links)
        self.plain = row_by_row(self.system, width)
        self.problem = problem_block(width, rows, room[LAW], self.plain.A)
        self.answer = answer_block(width, rows)
        self.newton_room = newton_block(width, rows)
        self._solver = bound_solver(self.problem, self.answer, self.newton_room, rows, room[LAW])
        self._calls.set_count("solve", self._solver.front)
        self._calls.set_count("solve_table", self._solver.table)
        self.islands = islands_block(model, width, total, rows, self.sleep.block.asleep)
        self._bind()

    def _bind(self) -> None:
        """Bind the entries to their memory; repeated whenever it grows."""
        rows, self._data = self.rows, {}
        self._contacts, self._guests = self.collider.c, self.extras.rows.now
        pairs = list(permutations(dict.fromkeys((id(one), one) for one in (rows.now, rows.before, self.spare)), 2))
        self._entries = Entries(
            free_motion=bound(self._free_motion, self.width, self.space.m, self.data, self.options),
            advance={(a, b): self._advance_in(now, old) for (a, now), (b, old) in pairs},
        )

    def _advance_in(self, now: Block, old: Block) -> Stage:
        """The solution stage, for constraints in one store and those of the step before in another."""
        return bound(self._advance, self.width, self.space.m, self.data_of(now, old), self.options)

    @property
    def data(self) -> Block:
        """The memory of a step, with the rows of the last step and of the one before."""
        return self.data_of(self.rows.now, self.rows.before)

    def data_of(self, rows: Block, old_rows: Block) -> Block:
        """The memory of a step, with rows in one store and those of the step before in another."""
        if self._has_grown:
            self._bind()
        key = id(rows), id(old_rows)
        if key not in self._data:
            self._data[key] = self._make_data(rows, old_rows)
        return self._data[key]

    def _make_data(self, rows: Block, old_rows: Block) -> Block:
        space, extras = self.space, self.extras
        return DATA.block(
            self.width,
            lanes=self.width.lanes,
            state=space.s,
            inputs=space.x,
            work=space.w,
            end_work=self.end,
            stages=space.stages,
            bodies=self.bodies,
            shapes=self.collider.g,
            surfaces=self.surfaces,
            contacts=self.collider.c,
            motors=extras.motors,
            limits=self.limits,
            sleep=self.sleep.block,
            prebuilt=extras.rows.now,
            rows=rows,
            old_rows=old_rows,
            islands=self.islands,
            system=self.system,
            scalar_view=self.plain,
            flow=self.flow,
            problem=self.problem,
            answer=self.answer,
            newton=self.newton_room,
            stats=self.stats,
            scratch=self.scratch,
            calls=self._calls,
        )

    @property
    def _has_grown(self) -> bool:
        """Whether contacts or prebuilt rows were reallocated since the entries were bound."""
        return self._contacts is not self.collider.c or self._guests is not self.extras.rows.now

    def step(self, dt: float, time: float = 0.0) -> int:
        """One step; returns DONE or DIVERGED. `time` is not used at this level.

        Continuous collision for what moves far: see `ccd_substeps`. Lanes of worlds look at most 5 cm ahead.
        """
        self._whole, self.parts = dt, 1
        self.begin_steps()
        if not self._of_rows:
            top = self.free_motion(dt)
            return self.finish(dt, min(self.near + 2.0 * dt * top, self.far))
        end = self.march.take(dt)
        return self._in_parts(dt) if end == TOO_LONG else end

    def begin_steps(self) -> None:
        """Update what others may have changed between steps."""
        self.extras.motors.set_count("folds", int(not self.extras.hooks))  # callbacks run once a step
        self.sleep.look()

    def _in_parts(self, dt: float) -> int:
        self._split = self._split or Split(self)
        return self._split.step(dt)

    def free_motion(self, dt: float, wanted: int = ALL) -> float:
        """Accelerations without rows; returns the greatest speed of a shape."""
        self._found = self._entries.free_motion(dt, wanted)
        return float(self._top.item() if self._of_rows else self._top.max())

    @property
    def driven(self) -> bool:
        """Whether the last free motion found motors that are rows."""
        return self._found == DRIVEN

    def finish(self, dt: float, slack: float, choose: Callable[[Block], None] | None = None) -> int:
        """A part of a step after its free motion; returns DONE or DIVERGED. `choose` may remove contacts."""
        rows, end, self._choice = self.rows, DIVERGED, choose
        rows.now, rows.before = rows.before, rows.now
        try:
            while True:
                stores, finish = self._bound_finish()
                self.noted["prepared"][0] = self.extras.had
                now, old = (stores.index(store) for store in (rows.now, rows.before))
                end = finish(self._found, slack, self.joint_erp, now, old, dt, self._whole, WHOLE)
                self.extras.had = self.noted["prepared"].item() != 0
                self.raise_problems()
                if not self.make_room(end):
                    return end
        finally:
            if end != DONE:
                # non-finite multipliers must not start the next step
                rows.now, rows.before = rows.before, rows.now

    def _bound_finish(self) -> tuple[list[Block], Bound]:
        """The stages of a part after its free motion, and the stores of constraints in the order of their numbers
        there.
        """
        key = (*self.stage_key, self._choice is not None)
        if key != self._finisher[0]:
            stores = [self.rows.now, self.rows.before, self.spare]
            stages = self.stages(stores)
            if self._choice is not None:
                stages = replace(stages, choose=self._callback(self._choose, (), 0))
            table = self.march.table(stages)
            self._finisher = key, stores, (Bound(FINISH_PART, F64, table.handle), stages)
        _, stores, (finish, _) = self._finisher
        return stores, finish

    @property
    def stage_key(self) -> tuple[Any, ...]:
        """The objects that stages are bound to: others after memory has grown or joints were added."""
        extras = self.extras
        return self.bound_entries(), extras.loops, bool(extras.hooks), self.watch is not None

    def stages(self, stores: list[Block]) -> Stages:
        """The stages of a step, with its constraints in one of some stores."""
        entries, extras, space = self.bound_entries(), self.extras, self.space
        detect: Stage | None = self.collider.finder(space) if self._of_rows else None
        if detect is None:
            detect = self._callback(self._detect, ("float64", "int64"), 1 << 30)
        prepare: Stage = extras.maker(space)
        if extras.hooks:
            prepare = self._callback(self._prepare, ("float64", "float64", "float64", "int64", "int64"), 0)
        handles = space.w.handle, extras.loops.handle
        joints = stores if extras.joints else []
        return Stages(
            entries.free_motion,
            detect,
            prepare,
            [entries.advance.get((id(now), id(old))) for now in stores for old in stores],
            measure=[Bound(MEASURE_LOOPS, self.width, *handles, store.handle) for store in joints],
            watch=[self._callback(partial(self._watch, store), (), 0) for store in stores if self.watch is not None],
        )

    def _callback(self, function: Callable[..., int], numbers: tuple[str, ...], failed: int) -> Callback:
        """A stage in Python."""
        return Callback(function, numbers, failed, self._problems)

    def _detect(self, slack: float, how: int) -> int:
        """Contacts of many shapes; returns how many there are, even if they do not fit."""
        return self.collider.search(self.space, slack)

    def _choose(self) -> int:
        """Remove contacts that get no rows."""
        assert self._choice is not None
        self._choice(self.collider.c)
        return 0

    def _prepare(self, dt: float, whole: float, erp: float, kept: int, lanes: int) -> int:
        """Rows of constraint callbacks, then the other prebuilt rows; 0 if there is no room for all."""
        rows, s = self.extras.rows.now, self.space.s
        self.extras.call_hooks(np.float64(dt).tobytes() + s.q.tobytes() + s.v.tobytes())
        if self.extras.rows.now is not rows:  # it has grown: the step begins again
            return 0
        return int(self.extras.maker(self.space)(dt, whole, erp, 1, lanes))

    def _watch(self, store: Block) -> int:
        """Report a completed part."""
        assert self.watch is not None
        self.watch(self, store)
        return 0

    def raise_problems(self) -> None:
        """Raise the first exception of a stage in Python."""
        if self._problems:
            problem = self._problems[0]
            self._problems.clear()
            raise problem

    def make_room(self, end: int) -> bool:
        """Grow the memory that a step ran out of; returns whether it did."""
        if end == NO_ROOM:
            self._grow()
        elif end == NO_CONTACT_ROOM:
            self.collider.make_room(self.noted["found"].item())
        elif end == NO_PREPARED_ROOM:
            if self.extras.rows.full():
                self.extras.rows.grow()
        else:
            return False
        return True

    def _grow(self) -> None:
        """Grow the memory for the rows of the largest island, or for all rows."""
        needed = int(self.islands.largest[0])
        if needed > self._island_room:
            self._island_room = needed + needed // 2
        else:
            self.rows.grow(self.rows.before, self.spare)
        self._make_room()

    @property
    def unit_erp(self) -> float:
        """Ratio of the options' ERP to that of loop joints. Displacements, which leave no velocity, correct loop joints
        completely.
        """
        if self._stabilize != BY_DISPLACEMENT:
            return 1.0
        return self._erp if self._erp > 0.0 else inf

    @property
    def joint_erp(self) -> float:
        """Share of a loop joint's error that is corrected."""
        return float(self.options.erp.flat[0]) / self.unit_erp

    def bound_entries(self) -> Entries:
        """The entries of a step, bound to their current memory."""
        if self._has_grown:
            self._bind()
        return self._entries

    @property
    def change(self) -> Array | None:
        """(nv,) change of velocities by the equations of motion at the beginning of the last step; None if it had
        parts.
        """
        return self.stats.change if self.parts == 1 else None

    def force_unit(self, dt: float) -> float:
        """Divisor that turns multipliers into forces: they are impulses over a step."""
        return dt

    @property
    def n_rows(self) -> int:
        """Rows of the last step, in the world with the most rows."""
        if self._of_rows:
            return sum(n * stride for n, stride in zip(self.rows.now.count.tolist(), STRIDES, strict=True))
        counts = self.rows.now.count.reshape(len(STRIDES), -1)
        return int((counts * np.array(STRIDES)[:, None]).sum(axis=0).max())

    @property
    def told(self) -> Told:
        """Statistics of the last step, in the world with the worst ones."""
        names = ("swept", "stepped", "residual", "work", "newton_work", "status", "shift_status")
        arrays = (self.stats.arrays[name] for name in names)
        swept, stepped, residual, work, newton_work, status, shift = (
            array.item() if array.size == 1 else array.max().item() for array in arrays
        )
        return Told(
            int(swept),
            int(stepped),
            residual,
            self.parts,
            work=work,
            newton_work=newton_work,
            status=STATUSES[int(status)],
            shift_status=STATUSES[int(shift)],
        )

    @property
    def state_fields(self) -> list[StateFields]:
        """What the next step depends on besides coordinates and velocities. Sleep is written after the loop joints it
        uses.
        """
        extras, sleep = self.extras, self.sleep
        return [
            StateFields("joints", extras.memory, extras.check_memory, extras.remember),
            StateFields("sleep", sleep.memory, sleep.check_memory, sleep.remember),
            *self.own_fields,
            StateFields("warm start", self.read_rows, self._check_rows, self.write_rows),
        ]

    @property
    def own_fields(self) -> list[StateFields]:
        """State fields of this formulation alone."""
        return []

    def _check_rows(self, check: SlotCheck) -> None:
        if any(name.startswith("warm_start/") for name in check.slots):
            check_warm_start(check)

    def read_rows(self) -> dict[str, Array]:
        """The warm start of the next step."""
        return self._warm_start.slots(self.rows)

    def write_rows(self, slots: Mapping[str, Array]) -> None:
        """Write the warm start; without one, the next step starts from zero multipliers."""
        rows = self.rows
        if COUNT not in slots:
            rows.now.count[...] = 0
            return
        room = np.maximum(rows.now.room, slots[COUNT]).tolist()
        if room != rows.now.room.tolist():
            terms = rows.now.counts()["term_room"]
            rows.now, rows.before = (moved(block, room, terms) for block in (rows.now, rows.before))
            self._make_room()
        self._warm_start.write(slots, rows)

    @property
    def own(self) -> Array:
        """State of links besides coordinates and velocities, to be saved and restored."""
        return np.zeros(0)
