"""The compiled loop of whole steps of one world. In Python, a step costs as much as half of its kernels.

The loop returns to Python if memory must grow, or if something is so fast that its time of impact must be computed; the
stepper then takes that step. The loop also ends after a step in which a loop joint breaks. It takes a step in a few
equal parts (see `ccd_substeps`) itself, or does not begin it: there are three stores of rows, and the rows of the step
before are kept.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from poise.constraints.emit_rows import N_KINDS, stride_of
from poise.constraints.kinds.loop_joint import any_broke, break_loops, clear_loop_forces, forget_breaks
from poise.constraints.kinds.loop_layout import LOOPS
from poise.constraints.row_store import STORE
from poise.dynamics.dynamics_layout import MODEL
from poise.formulations.ccd_stepping.ccd_substeps import EVEN, TOO_FAST
from poise.formulations.ccd_stepping.motion_bounds import HASTE
from poise.formulations.data import DATA, OPTIONS
from poise.formulations.rollback import ROLLBACK, keep_start, rollback_block, undo_step
from poise.formulations.step import (
    N_STORES,
    STEP,
    TIMED,
    WHOLE_STEP,
    add_time,
    begin_part,
    finish_part,
    give_commands,
    observe_step,
    tick,
    watch_part,
)
from poise.formulations.step_status import (
    ALL,
    ASLEEP,
    DIVERGED,
    DONE,
    HASTY,
    THE_REST,
    TOO_LONG,
    UNLESS_HASTY,
    UNLESS_LONG,
    WHOLE,
)
from poise.formulations.step_table import Stages
from poise.kernel.bound import Bound
from poise.kernel.calls import ask_bound
from poise.kernel.clock import clock_address
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Count, Index, Int, Real, Shared, View, load, store
from poise.kernel.spatial import Force

if TYPE_CHECKING:
    from poise.formulations.driver import Stepper

Array = NDArray[Any]
BINDINGS = 8
"""Maximum number of cached bindings."""
AGAIN = -1
"""Status of a step that has not begun."""

MARCH = View(
    "March",
    step=STEP,
    loops=LOOPS,
    rollback=ROLLBACK,
    grow=Count,
    grow_table=Int,  # (N_STORES) by store
    place=Index,  # (N_STORES) stores of the last rows, of those before, and the spare one
    time=Real,  # (1) of the world, at the end of the last step; s
    erp=Real,  # (1) ratio of the options' ERP to that of loop joints
    far=Real,  # (1) gap up to which contacts count if speeds are too large to matter; m
    splits=Count,  # 1 if steps in which something moves far are split
    foresees=Count,  # 1 if impulses can make a step too long
    q=Real,  # (nq) at the beginning of the last step
    v=Real,  # (nv)
    v_end=Real,  # (nv) at its end, by the equations of motion at its beginning
    tau=Real,  # (nv) applied generalized forces
    force=Force,  # (n_bodies)
    led=Count,  # 1 if bodies follow paths: then Python writes the parts of a step
    end=Index,  # (1) how the last step ended
    parts=Index,  # (1) number of parts of the last step
)


@kernel
def grow_multipliers(rows, share):
    """Scale the multipliers of all rows."""
    for kind in range(N_KINDS):
        first = load(rows.first, kind)
        for slot in range(first, first + load(rows.count, kind) * stride_of(kind)):
            store(rows.lam, slot, load(rows.lam, slot) * share)
    return rows.term_room  # bound entries return whole numbers


@kernel
def count_parts(stats, dt):
    """Number of parts of a step by its motion bound; 0 if Python has to choose them."""
    if not load(stats.haste, 0) * dt > HASTE:
        return 1
    parts = ceil(dt * load(stats.haste, 0) / HASTE)
    return 0 if parts > EVEN else int(parts)


@kernel
def take_whole(options, loop, found, slack, dt, wanted):
    """A step in one part, after its free motion; returns its status."""
    last, before = load(loop.place, 0), load(loop.place, 1)
    end = finish_part(loop.step, found, slack, joint_erp(options, loop), before, last, dt, dt, wanted)
    if end == DONE:
        store(loop.place, 0, before)
        store(loop.place, 1, last)
    return end


@kernel
def joint_erp(options, loop):
    """Share of a loop joint's error that is corrected."""
    return load(options.erp, 0) / load(loop.erp, 0)


@kernel
def take_parts(options, loop, stats, scratch, dt, parts):
    """A step in parts, whose links are placed; returns its status. The rows of the step before stay where they are."""
    erp, carry, length = load(options.erp, 0), load(scratch.carry, 0), dt / parts
    kept, now, other = load(loop.place, 0), load(loop.place, 1), load(loop.place, 2)
    old, end = kept, DONE
    is_part = load(loop.step.part_of, 0) > 0.0
    store(options.erp, 0, erp / parts)
    store(scratch.carry, 0, 1.0 / parts)
    if not is_part:
        clear_loop_forces(loop.loops)
    for part in range(parts):
        found = begin_part(loop.step, length, ALL if part > 0 else THE_REST)
        # a non-finite step will end as DIVERGED
        slack = load(stats.ahead, 0) if load(stats.top, 0) < TOO_FAST else load(options.near, 0)
        end = finish_part(loop.step, found, slack, joint_erp(options, loop), now, old, length, dt, WHOLE)
        if end != DONE:
            break
        store(scratch.parted, 0, 1)
        store(scratch.carry, 0, 1.0)
        old, now, other = now, other, now
    store(options.erp, 0, erp)
    store(scratch.carry, 0, carry)
    store(scratch.parted, 0, 0)
    if end != DONE:
        return end
    if not is_part:
        break_loops(loop.loops)
    ask_bound(loop.grow, load(loop.grow_table, old), float(parts))
    store(loop.place, 0, old)
    store(loop.place, 1, kept)
    store(loop.place, 2, now)
    return DONE


@kernel
def take_awake(data, options, loop, found, dt):
    """A step after its free motion, of which a HASTY one has only the poses; returns its status."""
    stats = data.stats
    if not load(stats.top, 0) < TOO_FAST:  # it will end as DIVERGED
        if found == HASTY:
            found = begin_part(loop.step, dt, THE_REST)
        return take_whole(options, loop, found, load(loop.far, 0), dt, WHOLE)
    if loop.splits == 0:
        return take_whole(options, loop, found, load(stats.ahead, 0), dt, WHOLE)
    parts, end = count_parts(stats, dt), TOO_LONG
    if parts == 1:
        wanted = UNLESS_LONG if loop.foresees != 0 else WHOLE
        end = take_whole(options, loop, found, load(stats.ahead, 0), dt, wanted)
        if end == TOO_LONG:
            parts = count_parts(stats, dt)
    store(loop.parts, 0, parts)
    if end == TOO_LONG and parts > 1 and loop.led == 0:
        end = take_parts(options, loop, stats, data.scratch, dt, parts)
    return end


@kernel
def take_step(model, data, options, loop, dt, forgets):
    """A step; returns whether it is done. Otherwise all is restored, and `loop.end` has the reason: DIVERGED, missing
    memory, or TOO_LONG if Python has to choose the parts. `forgets` is 0 for the rest of a step in which loop joints
    broke.
    """
    for i in range(model.nq):
        store(loop.q, i, load(data.state.q, i))
    for d in range(model.nv):
        store(loop.v, d, load(data.state.v, d))
    keep_start(model, loop.loops, data.sleep, loop.rollback)
    store(loop.end, 0, TOO_LONG)
    store(loop.parts, 0, 1)
    if forgets != 0:
        forget_breaks(loop.loops)
    found = begin_part(loop.step, dt, UNLESS_HASTY if loop.splits != 0 else ALL)
    if found == ASLEEP:
        watch_part(loop.step, load(loop.place, 0))
        store(loop.end, 0, DONE)
        return True
    end = take_awake(data, options, loop, found, dt)
    if end != DONE:
        for i in range(model.nq):
            store(data.state.q, i, load(loop.q, i))
        for d in range(model.nv):
            store(data.state.v, d, load(loop.v, d))
        undo_step(model, loop.loops, data.sleep, loop.rollback)
    store(loop.end, 0, end)
    return end == DONE


@kernel
def take_timed_step(model, data, options, loop, dt):
    """`take_step`; timed stages are those of this step."""
    if loop.step.clock == 0:
        return take_step(model, data, options, loop, dt, 1)
    for stage in range(len(TIMED)):
        store(loop.step.spent, stage, 0.0)
    start = tick(loop.step)
    done = take_step(model, data, options, loop, dt, 1)
    add_time(loop.step, WHOLE_STEP, start)
    return done


@kernel
def note_end(model, state, inputs, stats, loop):
    """Record how the last step ended, and the forces that were applied in it."""
    for d in range(model.nv):
        store(loop.v_end, d, load(loop.v, d) + load(stats.change, d) if load(loop.parts, 0) == 1 else load(state.v, d))
        store(loop.tau, d, load(inputs.tau, d))
    for i in range(model.n_bodies):
        store(loop.force, i, load(inputs.force, i))


@kernel
def march(model, data, options, loop, dt, n):
    """At most n steps; the loop ends after a step in which a loop joint breaks, or when the observer stops it.
    Returns the number of steps done, and records the last one.
    """
    done, goes_on = 0, True
    while goes_on and done < n:
        time = load(loop.time, 0)
        give_commands(loop.step, time, dt)
        if not take_timed_step(model, data, options, loop, dt):
            break
        done += 1
        store(loop.time, 0, time + dt)
        goes_on = not any_broke(loop.loops)
        if loop.step.observe != 0:
            note_end(model, data.state, data.inputs, data.stats, loop)
            goes_on = observe_step(loop.step, load(loop.place, 0), time + dt, dt) and goes_on
    if done > 0 and loop.step.observe == 0:
        note_end(model, data.state, data.inputs, data.stats, loop)
    return done


_march = entry(march, MODEL, DATA, OPTIONS, MARCH, extra=("float64", "int64"), lanes=False)
_take = entry(take_step, MODEL, DATA, OPTIONS, MARCH, extra=("float64", "int64"), lanes=False)
_grow = entry(grow_multipliers, STORE, extra=("float64",), lanes=False)


class Binding(NamedTuple):
    """The loop, bound to its memory."""

    stores: list[Block]
    """Of constraints, in the order of the indices in `place`."""
    orders: dict[bytes, tuple[Block, ...]]
    """The stores in the order of each value of `place`."""
    march: Bound
    take: Bound
    held: tuple[Any, ...]
    """References that keep the addresses in the table valid."""


class Observer(Protocol):
    """Observes a world after each step, in compiled code, and in the same way in Python."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Its memory; none if there is nothing to observe."""

    def begin(self) -> None:
        """Prepare for the next steps."""

    def watching(self, store: Block) -> Bound | None:
        """Records what pushes in a part of a step whose constraints are in a store; () → 0."""

    def observing(self, store: Block) -> Bound:
        """Observes a completed step; (time of its end, length) → GO_ON if the loop may continue."""


class March:
    """The compiled step loop of a stepper."""

    def __init__(self, stepper: Stepper) -> None:
        model, self._stepper = stepper.model, stepper
        numbers = {"end": 1, "place": N_STORES}
        self._numbers = {name: np.zeros(size, np.int32) for name, size in numbers.items()}
        self._numbers["parts"] = np.ones(1, np.int32)
        self._time = np.zeros(1)
        self.commands: list[Bound] = []
        """Called before each step, with its time and length."""
        self.observer: Observer | None = None
        self.spent = np.zeros(len(TIMED))
        """Ticks (`kernel.clock`) of the stages of the last step, if they are timed."""
        self._clock = 0
        self._bindings: dict[tuple[int, ...], Binding] = {}
        self._order: tuple[Block, ...] = ()
        """The stores in the order of `place` at the end of the last call; others may have used the stores since."""
        self.note_in(np.zeros(model.nq), *np.zeros((3, model.nv)), forces=np.zeros((model.n_bodies, 6)))

    def note_in(self, q: Array, v: Array, v_end: Array, tau: Array, forces: Array) -> None:
        """Set the arrays that receive the beginning and the end of the last step, and the applied forces."""
        shared = {"q": q, "v": v, "v_end": v_end, "tau": tau, "force": forces} | self._numbers
        self._shared = {name: Shared(array) for name, array in shared.items()}
        self._forget()

    def _forget(self) -> None:
        """Bind again before the next step."""
        self._bindings, self._on = {}, ()

    def time_stages(self, on: bool) -> None:
        """Start or stop measuring the time of the stages of each step, in `spent`."""
        self._clock = clock_address() if on else 0
        self._forget()

    @property
    def can(self) -> bool:
        """Whether no Python callback runs between steps."""
        stepper = self._stepper
        return stepper.width == F64 and stepper.by_kernels and stepper.watch is None and not stepper.extras.hooks

    def run(self, dt: float, n: int, time: float = 0.0) -> int:
        """At most n steps from a time on; returns the number of steps done. `end` has the status of the next one."""
        observer = self.observer
        if observer is not None:
            observer.begin()
        self._begin(observer, tuple(self.commands))
        self._time[0] = time
        self._stepper.begin_steps()
        done: int = self._call(dt, n)
        self._end()
        return done

    def take(self, dt: float) -> int:
        """One step without commands and observer, with as much memory as it needs: DONE, DIVERGED, or TOO_LONG with an
        unchanged state.
        """
        stepper = self._stepper
        while True:
            self._begin(None, ())
            self._binding.take(dt, 0)
            self._end()
            stepper.raise_problems()
            end = int(self._numbers["end"].item())
            if not stepper.make_room(end):
                return end

    def _begin(self, observer: Observer | None, commands: tuple[Bound, ...]) -> None:
        """Before steps: bind the loop to the current memory."""
        stepper = self._stepper
        rows, on = stepper.rows, (*stepper.stage_key, *commands)
        if observer is not None:
            on = (*on, *observer.blocks)
        if on != self._on:  # memory has grown, or joints or observers have changed
            self._choose(on, observer, commands)
        order = (rows.now, rows.before, stepper.spare)
        if order != self._order:
            self._numbers["place"][...] = [self._binding.stores.index(store) for store in order]
        stepper.noted["prepared"][0] = stepper.extras.had

    def _end(self) -> None:
        """After steps: read which store is which."""
        stepper = self._stepper
        stepper.extras.had = stepper.noted["prepared"].item() != 0
        self._order = order = self._binding.orders[self._numbers["place"].tobytes()]
        stepper.rows.now, stepper.rows.before, stepper.spare = order
        stepper.parts = self._numbers["parts"].item()

    @property
    def parts(self) -> Array:
        """(1) number of parts of the last step."""
        return self._numbers["parts"]

    @property
    def time(self) -> float:
        """Time at the end of the last step; s."""
        return self._time.item()

    @property
    def end(self) -> int:
        """Status of the last step: DONE or DIVERGED; else AGAIN."""
        end = int(self._numbers["end"].item())
        return end if end in (DONE, DIVERGED) else AGAIN

    def _choose(self, on: tuple[Any, ...], observer: Observer | None, commands: tuple[Bound, ...]) -> None:
        """Select the binding for the current memory, or make one. Steps with and without a recorder alternate."""
        key = tuple(map(id, on))
        if key not in self._bindings:
            if len(self._bindings) == BINDINGS:
                self._bindings.clear()
            self._bindings[key] = self._bind(on, observer, commands)
        self._binding = binding = self._bindings[key]
        self._call = binding.march.caller
        self._order, self._on = (), on  # last: after an interrupt the binding is chosen again

    def table(self, stages: Stages) -> Block:
        """The table of a step, and the memory that its stages share."""
        stepper = self._stepper
        return stages.block(
            lanes=stepper.width.lanes,
            contact_room=stepper.collider.room,
            always_prepares=int(stepper.extras.always_prepares or bool(stepper.extras.hooks)),
            part_of=Shared(stepper.extras.part_of),
            clock=self._clock,
            spent=Shared(self.spent),
            **{name: Shared(array) for name, array in stepper.noted.items()},
        )

    def _bind(self, on: tuple[Any, ...], observer: Observer | None, commands: tuple[Bound, ...]) -> Binding:
        stepper = self._stepper
        space, loops = stepper.space, stepper.extras.loops
        stores = [stepper.rows.now, stepper.rows.before, stepper.spare]
        places = permutations(range(len(stores)))
        orders = {np.array(p, np.int32).tobytes(): tuple(stores[k] for k in p) for p in places}
        stages = replace(stepper.stages(stores), commands=commands)
        if observer is not None:
            watch = [bound for store in stores if (bound := observer.watching(store)) is not None]
            stages = replace(stages, observe=[observer.observing(store) for store in stores], watch=watch)
        grow = [Bound(_grow, F64, store.handle) for store in stores]
        block = MARCH.block(
            F64,
            step=self.table(stages),
            loops=loops,
            rollback=rollback_block(stepper),
            grow=grow[0].front,
            grow_table=np.array([one.table for one in grow]),
            led=int(bool(stepper.model.paths)),
            splits=int(stepper.split),
            # rows of constraint callbacks are those of a whole step, whatever speeds they prescribe
            foresees=int(not stepper.extras.hooks),
            time=Shared(self._time),
            erp=np.array([stepper.unit_erp]),
            far=np.array([stepper.far]),
            **{name: self._shared[name] for name in ("q", "v", "v_end", "tau", "force", "end", "parts", "place")},
        )
        handles = [one.handle for one in (space.m, stepper.data, stepper.options, block)]
        march, take = (Bound(one, F64, *handles) for one in (_march, _take))
        return Binding(stores, orders, march, take, (stages, *grow, *on))
