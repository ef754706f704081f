"""A step: the order of its stages, for every formulation, one world and lanes of worlds alike.

    commands      motor targets that are computed for this step
    free motion   where links are, and how they would move without constraints
    detection     contacts, and which of them count
    preparation   constraints that are made once a step: motors, loop joints, couplings
    solution      constraints of the step and their impulses, velocities and coordinates at its end
    measurement   forces of loop joints
    observation   contact and limit events, frames of a recording

Each stage is an entry on its own that is called by its address (see `kernel.calls`): formulations share stages, and an
edit compiles one of them. A stage may be a Python function (`kernel.callbacks`): rows of users, solvers of
`poise.solve`. Whoever drives steps repeats a part that had no room, or takes it in another way: `step_loop` for one
world, `batch_kernels` for many, `ccd_substeps` for steps in parts that Python chooses.
"""

from __future__ import annotations

from poise.collision.narrowphase.dispatch import PLACE, SIFT
from poise.formulations.step_status import (
    DONE,
    DRIVEN,
    GOES_ON,
    NO_CONTACT_ROOM,
    NO_PREPARED_ROOM,
    SATURATED,
    THE_REST,
    UNSOLVED,
)
from poise.kernel.calls import ask_bound
from poise.kernel.clock import read_clock
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Index, Int, Real, View, load, store

GO_ON = 2
"""What an observer answers where the step loop may go on: see `observe_step`."""
N_STORES = 3
"""Stores of constraints that a step may use: those of the step, those of the step before, and a spare one."""

STEP = View(
    "Step",
    lanes=Count,
    # bound entries: what to call, and with which table
    n_commands=Count,  # each is called with the time and the length of a step, before it
    command=Int,  # (n_commands)
    command_table=Int,  # (n_commands)
    free_motion=Count,
    free_motion_table=Count,
    detect=Count,
    detect_table=Count,
    choose=Count,  # takes contacts away that do not count; 0 where all do
    choose_table=Count,
    prepare=Count,
    prepare_table=Count,
    advance=Count,
    advance_table=Int,  # (N_STORES²) by store of the constraints, and by store of those of the step before
    measure=Count,  # 0 where no loop joints are
    measure_table=Int,  # (N_STORES) by store of the constraints
    watch=Count,  # notes which contacts and limits push in a part of a step; 0 where no events are wanted
    watch_table=Int,  # (N_STORES)
    observe=Count,  # events and frames after a step; 0 where none are wanted
    observe_table=Int,  # (N_STORES)
    contact_room=Count,
    always_prepares=Count,  # 1 where constraints are prepared in every step
    part_of=Real,  # (1) length of the step that steps are parts of, 0 where they are whole; s
    prepared=Index,  # (1) 1 where there were prepared constraints in the last step
    found=Index,  # (1) contacts that there was no room for
    clock=Count,  # address of a clock (see `kernel.clock`), 0 where no stage is timed
    spent=Real,  # (len(TIMED)) ticks that stages took, added up
)
TIMED = ("free motion", "collide", "solve", "step")
"""What is timed: three stages, and steps as a whole."""
FREE_MOTION, DETECTION, SOLUTION, WHOLE_STEP = range(len(TIMED))


@kernel
def tick(step):
    """The time now, where stages are timed."""
    return read_clock(step.clock) if step.clock != 0 else 0.0


@kernel
def add_time(step, stage, start):
    """Add the time since `start` to that of a stage; the time now."""
    if step.clock == 0:
        return start
    now = read_clock(step.clock)
    store(step.spent, stage, load(step.spent, stage) + (now - start))
    return now


@kernel
def give_commands(step, time, dt):
    """Set what is commanded for a step of length `dt` that begins at `time`."""
    for i in range(step.n_commands):
        ask_bound(load(step.command, i), load(step.command_table, i), time, dt)


@kernel
def watch_part(step, now):
    """Note which contacts and limits push in a part of a step, whose constraints are in store `now`."""
    if step.watch != 0:
        ask_bound(step.watch, load(step.watch_table, now))


@kernel
def observe_step(step, now, time, dt):
    """Take the events of a step that ends at `time`, and the frame that is due: whether the loop may go on."""
    if step.observe == 0:
        return True
    return ask_bound(step.observe, load(step.observe_table, now), time, dt) == GO_ON


@kernel
def begin_part(step, dt, wanted):
    """The free motion of a step, or of a part of one: what it has found (see `step_status`)."""
    start = tick(step)
    found = ask_bound(step.free_motion, step.free_motion_table, dt, wanted)
    add_time(step, FREE_MOTION, start)
    return found


@kernel
def finish_part(step, found, slack, erp, now, old, dt, whole, wanted):
    """The other stages of a part of a step that is `whole` long: how it ends. Constraints go to store `now`; those of
    the step before are in store `old`.
    """
    start = tick(step)
    most = ask_bound(step.detect, step.detect_table, slack, PLACE | SIFT)
    add_time(step, DETECTION, start)
    if most > step.contact_room:
        store(step.found, 0, most)
        return NO_CONTACT_ROOM
    if step.choose != 0:
        ask_bound(step.choose, step.choose_table)
    end = solve_part(step, found, erp, now, old, dt, whole, wanted)
    while end == SATURATED:
        end = solve_part(step, begin_part(step, dt, THE_REST), erp, now, old, dt, whole, wanted)
    if end == DONE:
        measure_part(step, now, dt, whole)
        watch_part(step, now)
    return end


@kernel
def measure_part(step, now, dt, whole):
    """Forces of loop joints in a part of a step that is `whole` long, which may be a part of a longer one."""
    if step.measure != 0:
        span = load(step.part_of, 0)
        is_part = span > 0.0 or dt < whole
        ask_bound(step.measure, load(step.measure_table, now), span if span > 0.0 else whole, 1 if is_part else 0)


@kernel
def solve_part(step, found, erp, now, old, dt, whole, wanted):
    """Preparation and solution, see `finish_part`: SATURATED where they have to be repeated from the free motion on."""
    driven = found == DRIVEN
    if driven or load(step.prepared, 0) != 0 or step.always_prepares != 0:
        if ask_bound(step.prepare, step.prepare_table, dt, whole, erp, 0, step.lanes) == 0:
            return NO_PREPARED_ROOM
        store(step.prepared, 0, 1 if driven or step.always_prepares != 0 else 0)
    table, start = load(step.advance_table, N_STORES * now + old), tick(step)
    end = ask_bound(step.advance, table, dt, wanted)
    while end == UNSOLVED:  # the best impulses that were found
        end = ask_bound(step.advance, table, dt, GOES_ON)
    add_time(step, SOLUTION, start)
    return end


FINISH_PART = entry(
    finish_part,
    STEP,
    extra=("int64", "float64", "float64", "int64", "int64", "float64", "float64", "int64"),
    lanes=False,
)
