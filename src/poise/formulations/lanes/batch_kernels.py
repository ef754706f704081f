"""Steps of many worlds, group by group: a group of worlds is loaded from the world buffer into lanes, stepped, and
stored back.

The numbers of a world are contiguous in the world buffer: any worlds can form a group, and no two threads write to one
cache line. Besides coordinates and velocities, the next step depends on the multipliers of the rows, by their ids; of a
contact, on its force in world axes, which needs no tangent directions. Multipliers have that form between any two steps
(`remember`), whether a world stays in its lane or is stored in between, so that its results are bitwise the same.

Unused lanes, and lanes of diverged worlds, repeat another world of the group: that adds no rows, and keeps all numbers
finite.
"""

from __future__ import annotations

from poise.constraints.emit_rows import N_KINDS, busiest, stride_of
from poise.constraints.row_store import CONTACT
from poise.formulations.observers.contact_events import contact_of
from poise.formulations.observers.recorded_frames import record_place
from poise.formulations.stages.reuse_factors import forget_places
from poise.formulations.step import STEP, begin_part, finish_part, give_commands
from poise.formulations.step_status import ALL, DIVERGED, DONE, WHOLE
from poise.kernel.jit import kernel
from poise.kernel.memory import (
    F64,
    At,
    Count,
    Index,
    Int,
    Real,
    View,
    gather,
    gather_where,
    load,
    load_lane,
    single,
    store,
    store_lane,
)
from poise.kernel.scalars import maximum, select
from poise.kernel.vec import Vec3

NO_MEMORY = 10
"""Status of a group, besides those of `step_status`: the world buffer has no room for all multipliers."""
TOLD = ("residual", "sweeps", "newton_steps", "contacts", "rows", "haste", "work", "status", "shift_status")
"""Statistics of each world's last step."""
N_TOLD = len(TOLD)

SEATS = View(
    "Seats",
    lanes=Count,
    arena=Real,  # the numbers of a world, shared with the blocks of the step's kernels
    world=Int,  # (1) the world in each lane
    taken=Int,  # (1) 0 if a lane only repeats another
)

RECORDS = View(
    "Records",
    size=Count,  # numbers per world
    n_state=Count,  # of them, those that a step changes; they come first
    n_spans=Count,
    span=Index,  # (2 n_spans) ranges of numbers that a step reads
    numbers=Real,  # (worlds · size)
    order=Index,  # (groups · lanes) worlds; −1 for unused lanes
    lost=Index,  # (worlds) 1 if a world has diverged
    done=Index,  # (worlds) steps completed in this call
    told=Real,  # (worlds · N_TOLD)
    # warm start
    room=Index,  # (4) blocks of each kind
    lam_first=Index,  # (4) first multiplier of each kind
    id_first=Index,
    lam_size=Count,
    id_size=Count,
    count=Index,  # (worlds · 4)
    lam=Real,  # (worlds · lam_size)
    id=Index,  # (worlds · id_size)
    # contacts of each world's last step, as in `recorded_frames.FRAMES`; their forces are among the multipliers
    noted=Index,  # (worlds) number of contacts, −1 if there is no last step
    shape=Index,  # (worlds · room of contacts) two each
    point=Vec3,
    normal=Vec3,
    depth=Real,
)

GROUP = View(
    "Group",
    erp=Real,  # (1) share of an error of loop joints that is corrected in a step
    end=Index,  # (1) status of the group at which the loop stopped
    # in float64 at every width
    parts=Count,  # number of parts of a whole step; controllers run once per whole step
    whole=Real,  # (1) length of a whole step; s
    time=Real,  # (worlds) s
    now=Real,  # (lanes) time of each lane's world at the beginning of a whole step; s
)
"""Numbers that the steps of a group share, besides `step.STEP`."""

BATCH = View(
    "Batch",
    records=At(RECORDS, single),
    seats=SEATS,
    step=At(STEP, F64),
    shared=At(GROUP, F64),
)
"""Memory of the steps of a group, besides the data of its lanes."""


# ---- loading and storing lanes ---------------------------------------------------------------------------------------


@kernel
def sit_down(batch, group):
    """Assign the worlds of a group to lanes; returns whether there are any."""
    first = -1
    for lane in range(batch.seats.lanes):
        world = load(batch.records.order, group * batch.seats.lanes + lane)
        if first < 0 and world >= 0 and load(batch.records.lost, world) == 0:
            first = world
    if first < 0:
        return False
    for lane in range(batch.seats.lanes):
        world = load(batch.records.order, group * batch.seats.lanes + lane)
        taken = world >= 0 and load(batch.records.lost, world) == 0
        store_lane(batch.seats.world, 0, lane, world if taken else first)
        store_lane(batch.seats.taken, 0, lane, 1 if taken else 0)
        store(batch.shared.now, lane, load(batch.shared.time, world if taken else first))
    return True


@kernel
def load_numbers(batch):
    """Load the numbers of worlds from the world buffer into lanes."""
    at = load(batch.seats.world, 0) * batch.records.size
    for k in range(batch.records.n_spans):
        for j in range(load(batch.records.span, 2 * k), load(batch.records.span, 2 * k + 1)):
            store(batch.seats.arena, j, gather(batch.records.numbers, at + j))


@kernel
def load_memory(batch, old_rows):
    """Load the multipliers of worlds as the rows of the step before."""
    world = load(batch.seats.world, 0)
    for kind in range(N_KINDS):
        count, stride = gather(batch.records.count, world * N_KINDS + kind), stride_of(kind)
        store(old_rows.count, kind, count)
        for n in range(busiest(old_rows, kind, batch.seats.lanes)):
            there, slot = load(old_rows.count, kind) > n, load(old_rows.first, kind) + n * stride
            id = world * batch.records.id_size + (load(batch.records.id_first, kind) + n)
            store(old_rows.id, slot, gather_where(batch.records.id, id, there))
            lam = world * batch.records.lam_size + (load(batch.records.lam_first, kind) + n * stride)
            for k in range(stride):
                store(old_rows.lam, slot + k, gather_where(batch.records.lam, lam + k, there))


@kernel
def has_memory(batch, old_rows):
    """Whether the world buffer has room for all multipliers."""
    there = True
    for kind in range(N_KINDS):
        there = there and busiest(old_rows, kind, batch.seats.lanes) <= load(batch.records.room, kind)
    return there


@kernel
def keep_numbers(batch, lane, world):
    """Store what a step changes, from a lane into the world buffer."""
    for j in range(batch.records.n_state):
        store(batch.records.numbers, world * batch.records.size + j, load_lane(batch.seats.arena, j, lane))


@kernel
def keep_memory(records, old_rows, lane, world):
    """Store the multipliers, from a lane into the world buffer."""
    for kind in range(N_KINDS):
        count, stride = load_lane(old_rows.count, kind, lane), stride_of(kind)
        store(records.count, world * N_KINDS + kind, count)
        id, lam = (
            world * records.id_size + load(records.id_first, kind),
            world * records.lam_size + load(records.lam_first, kind),
        )
        first = load(old_rows.first, kind)
        for n in range(count):
            store(records.id, id + n, load_lane(old_rows.id, first + n * stride, lane))
            for k in range(n * stride, (n + 1) * stride):
                store(records.lam, lam + k, load_lane(old_rows.lam, first + k, lane))


@kernel
def keep_contacts(records, contacts, rows, lane, world):
    """Store the geometry of the contacts of the last step."""
    at, found, n = (
        world * load(records.room, CONTACT),
        load_lane(contacts.count, 0, lane),
        load_lane(rows.count, CONTACT, lane),
    )
    store(records.noted, world, n)
    for block in range(n):
        k = contact_of(contacts, rows, load(rows.first, CONTACT) + 3 * block, found, lane)
        if k >= 0:
            record_place(contacts, records, at + block, k, lane)
        else:
            store(records.shape, 2 * (at + block), -1)


@kernel
def keep_told(records, stats, contacts, rows, lane, world):
    """Store the statistics of the last step, in the order of TOLD."""
    at, n_rows = world * N_TOLD, 0
    for kind in range(N_KINDS):
        n_rows += load_lane(rows.count, kind, lane) * stride_of(kind)
    store(records.told, at, load_lane(stats.residual, 0, lane))
    store(records.told, at + 1, load_lane(stats.swept, 0, lane))
    store(records.told, at + 2, load_lane(stats.stepped, 0, lane))
    store(records.told, at + 3, float(load_lane(contacts.count, 0, lane)))
    store(records.told, at + 4, float(n_rows))
    store(records.told, at + 5, maximum(load_lane(stats.haste, 0, lane), load_lane(stats.whirl, 0, lane)))
    store(records.told, at + 6, load_lane(stats.work, 0, lane))
    store(records.told, at + 7, load_lane(stats.status, 0, lane))
    store(records.told, at + 8, load_lane(stats.shift_status, 0, lane))


# ---- a step ----------------------------------------------------------------------------------------------------------


@kernel
def remember(rows, old_rows, lanes):
    """Copy the rows of a step to those of the step before: ids and multipliers, and for contacts forces in
    world axes.
    """
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        store(old_rows.count, kind, load(rows.count, kind))
        for n in range(busiest(rows, kind, lanes)):
            slot = load(rows.first, kind) + n * stride
            store(old_rows.id, slot, load(rows.id, slot))
            if kind == CONTACT:
                f = pushed(rows, slot) + pushed(rows, slot + 1) + pushed(rows, slot + 2)
                store(old_rows.lam, slot, f.x)
                store(old_rows.lam, slot + 1, f.y)
                store(old_rows.lam, slot + 2, f.z)
            else:
                for k in range(slot, slot + stride):
                    store(old_rows.lam, k, load(rows.lam, k))


@kernel
def pushed(rows, slot):
    """Force of a contact's row along its direction, as in `emit_rows.direction`."""
    on_b = load(rows.b, slot) >= 0
    along = select(on_b, load(rows.Jb, slot).f, load(rows.Ja, slot).f)
    lam = load(rows.lam, slot)
    return Vec3(along.x * lam, along.y * lam, along.z * lam)


@kernel
def leave(batch, stages, old_rows, steps, dt):
    """Freeze diverged worlds at their last valid step, and repeat another world in their lanes; returns whether any
    world is left.
    """
    source = -1
    for lane in range(batch.seats.lanes):
        if load_lane(stages.lost, 0, lane) == 0.0 and load_lane(batch.seats.taken, 0, lane) != 0:
            source = lane
    for lane in range(batch.seats.lanes):
        if load_lane(stages.lost, 0, lane) != 0.0:
            if load_lane(batch.seats.taken, 0, lane) != 0:
                world = load_lane(batch.seats.world, 0, lane)
                keep_numbers(batch, lane, world)
                store(batch.records.lost, world, 1)
                store(batch.shared.time, world, load(batch.shared.now, lane) + (steps % batch.shared.parts) * dt)
                store(batch.records.done, world, load(batch.records.done, world) + steps)
                store_lane(batch.seats.taken, 0, lane, 0)
            if source >= 0:
                repeat_lane(batch, old_rows, source, lane)
                store(batch.shared.now, lane, load(batch.shared.now, source))
    return source >= 0


@kernel
def repeat_lane(batch, old_rows, source, lane):
    """Copy the world of one lane to another lane."""
    store_lane(batch.seats.world, 0, lane, load_lane(batch.seats.world, 0, source))
    for k in range(batch.records.n_spans):
        for j in range(load(batch.records.span, 2 * k), load(batch.records.span, 2 * k + 1)):
            store_lane(batch.seats.arena, j, lane, load_lane(batch.seats.arena, j, source))
    for kind in range(N_KINDS):
        count, stride, first = load_lane(old_rows.count, kind, source), stride_of(kind), load(old_rows.first, kind)
        store_lane(old_rows.count, kind, lane, count)
        for slot in range(first, first + count * stride):
            store_lane(old_rows.id, slot, lane, load_lane(old_rows.id, slot, source))
            store_lane(old_rows.lam, slot, lane, load_lane(old_rows.lam, slot, source))


@kernel
def go_on(batch):
    """Advance the time at the end of a whole step."""
    for lane in range(batch.seats.lanes):
        store(batch.shared.now, lane, load(batch.shared.now, lane) + load(batch.shared.whole, 0))


@kernel
def step_group(data, batch, dt, n, group):
    """N steps of a group; returns its status. Unless it is DONE, no world is stored except diverged ones."""
    if not sit_down(batch, group):
        return DONE
    load_numbers(batch)
    load_memory(batch, data.old_rows)
    forget_places(data.scratch)
    store(batch.step.prepared, 0, 1)  # set by the previous group
    for step in range(n):
        if step % batch.shared.parts == 0:
            give_commands(batch.step, 0.0, load(batch.shared.whole, 0))
        found = begin_part(batch.step, dt, ALL)
        end = finish_part(batch.step, found, 0.0, load(batch.shared.erp, 0), 0, 1, dt, dt, WHOLE)
        if end != DONE and end != DIVERGED:
            return end
        remember(data.rows, data.old_rows, batch.seats.lanes)
        if end == DIVERGED:
            forget_places(data.scratch)
            if not leave(batch, data.stages, data.old_rows, step, dt):
                return DONE
        if (step + 1) % batch.shared.parts == 0:
            go_on(batch)
    if not has_memory(batch, data.old_rows):
        return NO_MEMORY
    for lane in range(batch.seats.lanes):
        if load_lane(batch.seats.taken, 0, lane) != 0:
            world = load_lane(batch.seats.world, 0, lane)
            keep_numbers(batch, lane, world)
            keep_memory(batch.records, data.old_rows, lane, world)
            keep_contacts(batch.records, data.contacts, data.rows, lane, world)
            keep_told(batch.records, data.stats, data.contacts, data.rows, lane, world)
            store(batch.shared.time, world, load(batch.shared.now, lane))
            store(batch.records.done, world, load(batch.records.done, world) + n)
    return DONE


@kernel
def step_crowd(data, batch, dt, n, first, last):
    """N steps of each of some groups; returns the last index, or the group that needs Python, with the
    reason in `end`.
    """
    for group in range(first, last):
        end = step_group(data, batch, dt, n, group)
        if end != DONE:
            store(batch.shared.end, 0, end)
            return group
    return last
