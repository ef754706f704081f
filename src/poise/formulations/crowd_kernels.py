"""Steps of many worlds, group by group: a group is taken from its records into lanes, stepped, and put back.

A world is a record, a row of numbers side by side: any worlds can make a group, and no two threads write to one cache
line. What a step remembers for the next one beside coordinates and velocities is the multipliers of its rows by their
ids: of a contact its force in world axes, which needs no directions. It is kept in that form from step to step
(`remember`) whether a world goes on in its lane or is put back in between, so that its bits are the same.


Seats that nobody takes, and those of worlds that are lost on the way, repeat another world of the group: that costs no
rows, and no numbers that are not finite go round.
"""

from __future__ import annotations

from poise.constraints.row_kernels import N_KINDS, busiest, stride_of
from poise.constraints.store import CONTACT
from poise.formulations.contact_events import contact_of
from poise.formulations.frames import record_place
from poise.formulations.reuse import forget_places
from poise.formulations.rules import ALL, DIVERGED, DONE, WHOLE
from poise.formulations.step import begin_part, finish_part, give_commands
from poise.kernel.jit import kernel
from poise.kernel.memory import (
    Count,
    Index,
    Int,
    Real,
    View,
    gather,
    gather_where,
    load,
    load_lane,
    store,
    store_lane,
)
from poise.kernel.scalars import maximum, select
from poise.kernel.vec import Vec3

NO_MEMORY = 10
"""How a group ends, beside `rules`: the records have no room for all multipliers."""
TOLD = ("residual", "sweeps", "newton_steps", "contacts", "rows", "haste", "work", "status", "shift_status")
"""Of each world's last step."""
N_TOLD = len(TOLD)

SEATS = View(
    "Seats",
    lanes=Count,
    arena=Real,  # all numbers of a record, where the kernels of a step have them too
    world=Int,  # (1) who sits in each lane
    taken=Int,  # (1) 0 where a lane only repeats another
)

RECORDS = View(
    "Records",
    size=Count,  # numbers of a record
    n_state=Count,  # that a step changes; they come first
    n_spans=Count,
    span=Index,  # (2 n_spans) ranges of numbers that a step reads
    numbers=Real,  # (worlds · size)
    order=Index,  # (groups · lanes) worlds; −1 where there is none
    lost=Index,  # (worlds) 1 where a world has left the finite numbers
    done=Index,  # (worlds) steps that were done in this call
    told=Real,  # (worlds · N_TOLD)
    # what rows remember
    room=Index,  # (4) blocks of each kind
    lam_first=Index,  # (4) where those of a kind begin
    id_first=Index,
    lam_size=Count,
    id_size=Count,
    count=Index,  # (worlds · 4)
    lam=Real,  # (worlds · lam_size)
    id=Index,  # (worlds · id_size)
    # contacts of each world's last step, as `frames.FRAMES` has them; their forces are among what rows remember
    noted=Index,  # (worlds) how many, −1 where there is no last step
    shape=Index,  # (worlds · room of contacts) two each
    point=Vec3,
    normal=Vec3,
    depth=Real,
)

GROUP = View(
    "Group",
    erp=Real,  # (1) share of an error of loop joints that is corrected in a step
    end=Index,  # (1) how the group ended at which it stopped
    # in float64 at every width
    parts=Count,  # of a whole step, which controllers are asked for
    whole=Real,  # (1) length of a whole step; s
    time=Real,  # (worlds) s
    now=Real,  # (lanes) time of each lane's world at the beginning of a whole step; s
)
"""Numbers that steps of a group share, beside `step.STEP`."""


# ---- from records to lanes and back ----------------------------------------------------------------------------------


@kernel
def sit_down(d, e, b, group):
    """Seats for the worlds of a group: whether there are any."""
    first = -1
    for lane in range(e.lanes):
        world = load(d.order, group * e.lanes + lane)
        if first < 0 and world >= 0 and load(d.lost, world) == 0:
            first = world
    if first < 0:
        return False
    for lane in range(e.lanes):
        world = load(d.order, group * e.lanes + lane)
        taken = world >= 0 and load(d.lost, world) == 0
        store_lane(e.world, 0, lane, world if taken else first)
        store_lane(e.taken, 0, lane, 1 if taken else 0)
        store(b.now, lane, load(b.time, world if taken else first))
    return True


@kernel
def load_numbers(d, e):
    """What worlds have in their records, to their lanes."""
    at = load(e.world, 0) * d.size
    for k in range(d.n_spans):
        for j in range(load(d.span, 2 * k), load(d.span, 2 * k + 1)):
            store(e.arena, j, gather(d.numbers, at + j))


@kernel
def load_memory(d, e, old):
    """What worlds remember, to the rows of the step before."""
    world = load(e.world, 0)
    for kind in range(N_KINDS):
        count, stride = gather(d.count, world * N_KINDS + kind), stride_of(kind)
        store(old.count, kind, count)
        for n in range(busiest(old, kind, e.lanes)):
            there, slot = load(old.count, kind) > n, load(old.first, kind) + n * stride
            id = world * d.id_size + (load(d.id_first, kind) + n)
            store(old.id, slot, gather_where(d.id, id, there))
            lam = world * d.lam_size + (load(d.lam_first, kind) + n * stride)
            for k in range(stride):
                store(old.lam, slot + k, gather_where(d.lam, lam + k, there))


@kernel
def has_memory(d, e, old):
    """Whether there is room for all that is to be remembered."""
    there = True
    for kind in range(N_KINDS):
        there = there and busiest(old, kind, e.lanes) <= load(d.room, kind)
    return there


@kernel
def keep_numbers(d, e, lane, world):
    """What a step changes, from a lane to the record."""
    for j in range(d.n_state):
        store(d.numbers, world * d.size + j, load_lane(e.arena, j, lane))


@kernel
def keep_memory(d, old, lane, world):
    """What is remembered, from a lane to the record."""
    for kind in range(N_KINDS):
        count, stride = load_lane(old.count, kind, lane), stride_of(kind)
        store(d.count, world * N_KINDS + kind, count)
        id, lam = world * d.id_size + load(d.id_first, kind), world * d.lam_size + load(d.lam_first, kind)
        first = load(old.first, kind)
        for n in range(count):
            store(d.id, id + n, load_lane(old.id, first + n * stride, lane))
            for k in range(n * stride, (n + 1) * stride):
                store(d.lam, lam + k, load_lane(old.lam, first + k, lane))


@kernel
def keep_contacts(d, c, r, lane, world):
    """Where the contacts of the last step were."""
    at, found, n = world * load(d.room, CONTACT), load_lane(c.count, 0, lane), load_lane(r.count, CONTACT, lane)
    store(d.noted, world, n)
    for block in range(n):
        k = contact_of(c, r, load(r.first, CONTACT) + 3 * block, found, lane)
        if k >= 0:
            record_place(c, d, at + block, k, lane)
        else:
            store(d.shape, 2 * (at + block), -1)


@kernel
def keep_told(d, o, c, r, lane, world):
    """How the last step went, in the order of TOLD."""
    at, rows = world * N_TOLD, 0
    for kind in range(N_KINDS):
        rows += load_lane(r.count, kind, lane) * stride_of(kind)
    store(d.told, at, load_lane(o.residual, 0, lane))
    store(d.told, at + 1, load_lane(o.swept, 0, lane))
    store(d.told, at + 2, load_lane(o.stepped, 0, lane))
    store(d.told, at + 3, float(load_lane(c.count, 0, lane)))
    store(d.told, at + 4, float(rows))
    store(d.told, at + 5, maximum(load_lane(o.haste, 0, lane), load_lane(o.whirl, 0, lane)))
    store(d.told, at + 6, load_lane(o.work, 0, lane))
    store(d.told, at + 7, load_lane(o.status, 0, lane))
    store(d.told, at + 8, load_lane(o.shift_status, 0, lane))


# ---- a step ----------------------------------------------------------------------------------------------------------


@kernel
def remember(r, old, lanes):
    """Take the rows of a step for those of the step before: ids and multipliers, of contacts forces in world axes."""
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        store(old.count, kind, load(r.count, kind))
        for n in range(busiest(r, kind, lanes)):
            slot = load(r.first, kind) + n * stride
            store(old.id, slot, load(r.id, slot))
            if kind == CONTACT:
                f = pushed(r, slot) + pushed(r, slot + 1) + pushed(r, slot + 2)
                store(old.lam, slot, f.x)
                store(old.lam, slot + 1, f.y)
                store(old.lam, slot + 2, f.z)
            else:
                for k in range(slot, slot + stride):
                    store(old.lam, k, load(r.lam, k))


@kernel
def pushed(r, slot):
    """Force of a contact's row along its direction, as `row_kernels.direction` has it."""
    on_b = load(r.b, slot) >= 0
    along = select(on_b, load(r.Jb, slot).f, load(r.Ja, slot).f)
    lam = load(r.lam, slot)
    return Vec3(along.x * lam, along.y * lam, along.z * lam)


@kernel
def leave(d, e, y, old, b, steps, dt):
    """Put worlds that are lost back where their last good step left them, and others in their seats: whether anyone is
    left.
    """
    source = -1
    for lane in range(e.lanes):
        if load_lane(y.lost, 0, lane) == 0.0 and load_lane(e.taken, 0, lane) != 0:
            source = lane
    for lane in range(e.lanes):
        if load_lane(y.lost, 0, lane) != 0.0:
            if load_lane(e.taken, 0, lane) != 0:
                world = load_lane(e.world, 0, lane)
                keep_numbers(d, e, lane, world)
                store(d.lost, world, 1)
                store(b.time, world, load(b.now, lane) + (steps % b.parts) * dt)
                store(d.done, world, load(d.done, world) + steps)
                store_lane(e.taken, 0, lane, 0)
            if source >= 0:
                repeat_lane(d, e, old, source, lane)
                store(b.now, lane, load(b.now, source))
    return source >= 0


@kernel
def repeat_lane(d, e, old, source, lane):
    """Seat the world of one lane in another as well."""
    store_lane(e.world, 0, lane, load_lane(e.world, 0, source))
    for k in range(d.n_spans):
        for j in range(load(d.span, 2 * k), load(d.span, 2 * k + 1)):
            store_lane(e.arena, j, lane, load_lane(e.arena, j, source))
    for kind in range(N_KINDS):
        count, stride, first = load_lane(old.count, kind, source), stride_of(kind), load(old.first, kind)
        store_lane(old.count, kind, lane, count)
        for slot in range(first, first + count * stride):
            store_lane(old.id, slot, lane, load_lane(old.id, slot, source))
            store_lane(old.lam, slot, lane, load_lane(old.lam, slot, source))


@kernel
def go_on(e, b):
    """A whole step is done."""
    for lane in range(e.lanes):
        store(b.now, lane, load(b.now, lane) + load(b.whole, 0))


@kernel
def step_group(y, c, r, old, o, d, e, k, b, dt, n, group):
    """N steps of a group: how they end. If not DONE, none is done, but for worlds that are lost."""
    if not sit_down(d, e, b, group):
        return DONE
    load_numbers(d, e)
    load_memory(d, e, old)
    forget_places(o)
    store(k.prepared, 0, 1)  # what others left
    for step in range(n):
        if step % b.parts == 0:
            give_commands(k, 0.0, load(b.whole, 0))
        found = begin_part(k, dt, ALL)
        end = finish_part(k, found, 0.0, load(b.erp, 0), 0, 1, dt, dt, WHOLE)
        if end != DONE and end != DIVERGED:
            return end
        remember(r, old, e.lanes)
        if end == DIVERGED:
            forget_places(o)
            if not leave(d, e, y, old, b, step, dt):
                return DONE
        if (step + 1) % b.parts == 0:
            go_on(e, b)
    if not has_memory(d, e, old):
        return NO_MEMORY
    for lane in range(e.lanes):
        if load_lane(e.taken, 0, lane) != 0:
            world = load_lane(e.world, 0, lane)
            keep_numbers(d, e, lane, world)
            keep_memory(d, old, lane, world)
            keep_contacts(d, c, r, lane, world)
            keep_told(d, o, c, r, lane, world)
            store(b.time, world, load(b.now, lane))
            store(d.done, world, load(d.done, world) + n)
    return DONE


@kernel
def step_crowd(y, c, r, old, o, d, e, k, b, dt, n, first, last):
    """N steps of each of some groups: the one at which Python is needed, and `end` tells what for; or the last."""
    for group in range(first, last):
        end = step_group(y, c, r, old, o, d, e, k, b, dt, n, group)
        if end != DONE:
            store(b.end, 0, end)
            return group
    return last
