"""A step: the order of its stages. It is the same for every formulation, for one world and for lanes of worlds.

    commands      motor targets that are computed for this step
    free motion   poses of the links, and their accelerations without constraints
    detection     contacts, and the selection of those that get rows
    preparation   constraints that are built once a step: motors, loop joints, couplings
    solution      constraints of the step and their impulses, velocities and coordinates at its end
    measurement   forces of loop joints
    observation   contact and limit events, frames of a recording

Each stage is a separate entry, called by its address (see `kernel.calls`): formulations share stages, and an edit
recompiles only one of them. A stage may be a Python function (`kernel.callbacks`): constraint callbacks, solvers of
`poise.solve`. The caller repeats a part that ran out of memory, or steps in another way: `step_loop` for one world,
`batch_kernels` for many, `ccd_substeps` for parts of a step that Python chooses.
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
"""Returned by an observer if the step loop may continue: see `observe_step`."""
N_STORES = 3
"""Stores of constraints that a step may use: those of the step, those of the step before, and a spare one."""

STEP = View(
    "Step",
    lanes=Count,
    # bound entries: address and table of each
    n_commands=Count,  # each is called before a step, with the time and the length of the step
    command=Int,  # (n_commands)
    command_table=Int,  # (n_commands)
    free_motion=Count,
    free_motion_table=Count,
    detect=Count,
    detect_table=Count,
    choose=Count,  # removes contacts that get no rows; 0 if all contacts get rows
    choose_table=Count,
    prepare=Count,
    prepare_table=Count,
    advance=Count,
    advance_table=Int,  # (N_STORES²) by store of the constraints, and by store of those of the step before
    measure=Count,  # 0 without loop joints
    measure_table=Int,  # (N_STORES) by store of the constraints
    watch=Count,  # records the contacts and limits that push in a part of a step; 0 if no events are requested
    watch_table=Int,  # (N_STORES)
    observe=Count,  # events and frames after a step; 0 if none are requested
    observe_table=Int,  # (N_STORES)
    contact_room=Count,
    always_prepares=Count,  # 1 where constraints are prepared in every step
    part_of=Real,  # (1) length of the step that the current steps are parts of, 0 for whole steps; s
    prepared=Index,  # (1) 1 if the last step had prepared constraints
    found=Index,  # (1) number of contacts found when there was no room for them
    clock=Count,  # address of a clock (see `kernel.clock`), 0 if stages are not timed
    spent=Real,  # (len(TIMED)) sum of the ticks of each stage
)
TIMED = ("free motion", "collide", "solve", "step")
"""The timed quantities: three stages, and whole steps."""
FREE_MOTION, DETECTION, SOLUTION, WHOLE_STEP = range(len(TIMED))


@kernel
def tick(step):
    """The current time, if stages are timed."""
    return read_clock(step.clock) if step.clock != 0 else 0.0


@kernel
def add_time(step, stage, start):
    """Add the time since `start` to that of a stage; return the current time."""
    if step.clock == 0:
        return start
    now = read_clock(step.clock)
    store(step.spent, stage, load(step.spent, stage) + (now - start))
    return now


@kernel
def give_commands(step, time, dt):
    """Set the commands of a step of length `dt` that begins at `time`."""
    for i in range(step.n_commands):
        ask_bound(load(step.command, i), load(step.command_table, i), time, dt)


@kernel
def watch_part(step, now):
    """Record the contacts and limits that push in a part of a step, whose constraints are in store `now`."""
    if step.watch != 0:
        ask_bound(step.watch, load(step.watch_table, now))


@kernel
def observe_step(step, now, time, dt):
    """Log the events of a step that ends at `time`, and record a frame if one is due; return whether the loop
    continues.
    """
    if step.observe == 0:
        return True
    return ask_bound(step.observe, load(step.observe_table, now), time, dt) == GO_ON


@kernel
def begin_part(step, dt, wanted):
    """The free motion of a step, or of a part of one; returns its status (see `step_status`)."""
    start = tick(step)
    found = ask_bound(step.free_motion, step.free_motion_table, dt, wanted)
    add_time(step, FREE_MOTION, start)
    return found


@kernel
def finish_part(step, found, slack, erp, now, old, dt, whole, wanted):
    """The other stages of a part, in a step of length `whole`; returns the status. Constraints are written to store
    `now`; those of the step before are in store `old`.
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
    """Forces of loop joints in a part of a step of length `whole`, which may itself be a part of a longer one."""
    if step.measure != 0:
        span = load(step.part_of, 0)
        is_part = span > 0.0 or dt < whole
        ask_bound(step.measure, load(step.measure_table, now), span if span > 0.0 else whole, 1 if is_part else 0)


@kernel
def solve_part(step, found, erp, now, old, dt, whole, wanted):
    """Preparation and solution, see `finish_part`. SATURATED if the caller must repeat them from the free motion on."""
    driven = found == DRIVEN
    if driven or load(step.prepared, 0) != 0 or step.always_prepares != 0:
        store(step.prepared, 0, 1)  # a step that begins again, for want of room, makes them again
        if ask_bound(step.prepare, step.prepare_table, dt, whole, erp, 0, step.lanes) == 0:
            return NO_PREPARED_ROOM
        store(step.prepared, 0, 1 if driven or step.always_prepares != 0 else 0)
    table, start = load(step.advance_table, N_STORES * now + old), tick(step)
    end = ask_bound(step.advance, table, dt, wanted)
    while end == UNSOLVED:  # accept the best impulses found
        end = ask_bound(step.advance, table, dt, GOES_ON)
    add_time(step, SOLUTION, start)
    return end


FINISH_PART = entry(
    finish_part,
    STEP,
    extra=("int64", "float64", "float64", "int64", "int64", "float64", "float64", "int64"),
    lanes=False,
)
