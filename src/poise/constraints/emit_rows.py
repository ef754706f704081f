"""Adding rows from kernels, and the warm start: multipliers of the last step.

    slot, there = open_block(r, CONTACT, mask, id)     a place in the lanes of a mask, where there is room
    put_row(r, slot, there, a, b, Ja, Jb)              writes the row: an equality, all other fields zero
    put_bounds(r, slot, there, lo, hi)                 bounds of an inequality
    put_bound(r, slot, there, mu)                      of a contact or a ball

Lanes add blocks independently: each world has its own list. To write to a different slot in each lane takes as long as
to write to each lane by itself. So frequent kinds are only listed at first, and their rows are made slot by slot:

    pick(r, CONTACT, mask, k)                          a place for the rows of item k, in the lanes of a mask
    there = picked(r, CONTACT, start, n)               lanes that listed block n after they had `start` blocks
"""

from __future__ import annotations

from math import inf

from poise.constraints.row_store import CONTACT, KINDS, LAW, NO_END, STORE, STRIDES, VERTICES
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, get_lane, maximum, minimum, select, spread, zero
from poise.kernel.spatial import no_force
from poise.kernel.vec import dot

N_KINDS = len(KINDS)


@kernel
def stride_of(kind):
    """Rows of a block."""
    return STRIDES[kind]


# ---- adding ----------------------------------------------------------------------------------------------------------


@kernel
def take_slot(r, kind, mask):
    """Count a block in the lanes of a mask; returns its first slot, and the lanes that have room for it."""
    n = load(r.count, kind)
    store_where(r.count, kind, n + 1, mask)
    return n * stride_of(kind) + load(r.first, kind), mask & (n < load(r.room, kind))


@kernel
def pick(r, kind, mask, number):
    """Count a block in the lanes of a mask, and store the number of its item."""
    slot, there = take_slot(r, kind, mask)
    scatter_where(r.pick, slot, zero(slot) + number, there)


@kernel
def picked(r, kind, start, n):
    """Lanes that have a block n, and listed it after they had `start` blocks."""
    return (start <= n) & (load(r.count, kind) > n)


@kernel
def fewest(count, lanes):
    """The smallest count of the lanes."""
    least = get_lane(count, 0)
    for lane in range(1, lanes):
        least = minimum(least, get_lane(count, lane))
    return least


@kernel
def name_block(r, slot, there, id):
    """Write the id of a block; resets its other fields."""
    scatter_where(r.id, slot, id, there)
    scatter_where(r.bound, slot, zero(load(r.bound, 0)), there)
    scatter_where(r.slide, slot, zero(load(r.bound, 0)), there)
    scatter_where(r.strike, slot, zero(load(r.bound, 0)), there)
    scatter_where(r.slides, slot, zero(id), there)
    scatter_where(r.scaler, slot, zero(id), there)


@kernel
def open_block(r, kind, mask, id):
    """Count a block in the lanes of a mask; returns its first slot, and the lanes that have room for it."""
    slot, there = take_slot(r, kind, mask)
    name_block(r, slot, there, id)
    return slot, there


@kernel
def put_row(r, slot, there, a, b, Ja, Jb):
    """Write bodies and Jacobians of a row; resets its other fields and its bounds."""
    none = zero(Ja.t.x)
    minus = zero(a) - 1
    scatter_where(r.a, slot, a, there)
    scatter_where(r.b, slot, b, there)
    scatter_where(r.Ja, slot, Ja, there)
    scatter_where(r.Jb, slot, Jb, there)
    scatter_where(r.dof, slot, minus, there)
    scatter_where(r.Jdof, slot, none, there)
    scatter_where(r.term, slot, minus, there)
    scatter_where(r.phi, slot, none, there)
    scatter_where(r.gamma, slot, none, there)
    scatter_where(r.target, slot, none, there)
    scatter_where(r.restitution, slot, none, there)
    scatter_where(r.bounce, slot, none, there)
    scatter_where(r.a_ref, slot, none, there)
    scatter_where(r.alpha, slot, none, there)
    scatter_where(r.beta, slot, none, there)
    put_bounds(r, slot, there, spread(-inf, none), spread(inf, none))
    scatter_where(r.erp, slot, none, there)
    scatter_where(r.cfm, slot, none, there)
    scatter_where(r.lam, slot, none, there)


@kernel
def put_dof_row(r, slot, there, dof, J):
    """A row on one coordinate."""
    minus, none = zero(dof) - 1, no_force(J)
    put_row(r, slot, there, minus, minus, none, none)
    scatter_where(r.dof, slot, dof, there)
    scatter_where(r.Jdof, slot, J, there)


@kernel
def put_bounds(r, slot, there, lo, hi):
    """Least and greatest force of a row."""
    scatter_where(r.lo, slot, lo, there)
    scatter_where(r.hi, slot, hi, there)


@kernel
def put_friction(r, slot, there, rest, slide, strike, slides):
    """Write a contact's coefficients at rest, sliding and in impacts, at its first slot; and whether it slides now."""
    scatter_where(r.bound, slot, rest, there)
    scatter_where(r.slide, slot, slide, there)
    scatter_where(r.strike, slot, strike, there)
    scatter_where(r.slides, slot, slides, there)


@kernel
def put_bound(r, slot, there, bound):
    """The one coefficient of a contact, or the radius of a ball, at the slot of its first row."""
    put_friction(r, slot, there, bound, bound, bound, zero(load(r.slides, 0)))


@kernel
def put_term(r, slot, there, body, J, dof, Jdof):
    """A further term of a row: on a body (dof −1) or on a coordinate (body −1)."""
    n = load(r.term_count, 0)
    store_where(r.term_count, 0, n + 1, there)
    there = there & (n < r.term_room)
    scatter_where(r.term_body, n, body, there)
    scatter_where(r.term_J, n, J, there)
    scatter_where(r.term_dof, n, dof, there)
    scatter_where(r.term_Jdof, n, Jdof, there)
    scatter_where(r.term_next, n, gather_where(r.term, slot, there), there)
    scatter_where(r.term, slot, n, there)


@kernel
def is_joint(r, slot):
    """Whether a row is an equality without bounds whose error is corrected."""
    return (load(r.lo, slot) == -inf) & (load(r.hi, slot) == inf) & (load(r.erp, slot) > 0.0)


# ---- closing ---------------------------------------------------------------------------------------------------------


@kernel
def busiest(r, kind, lanes):
    """The largest number of blocks of a kind in any world."""
    n = load(r.count, kind)
    most = get_lane(n, 0)
    for lane in range(1, lanes):
        most = maximum(most, get_lane(n, lane))
    return most


@kernel
def has_room(r, lanes):
    """Whether there was room for all rows that were counted, and their terms."""
    terms = load(r.term_count, 0)
    there = get_lane(terms, 0) <= r.term_room
    for lane in range(1, lanes):
        there = there and get_lane(terms, lane) <= r.term_room
    for kind in range(N_KINDS):
        there = there and busiest(r, kind, lanes) <= load(r.room, kind)
    return there


@kernel
def blank(r, lanes):
    """Clear slots that one world does not use and another one does."""
    for kind in range(N_KINDS):
        first, stride = load(r.first, kind), stride_of(kind)
        for n in range(minimum(busiest(r, kind, lanes), load(r.room, kind))):
            unused = load(r.count, kind) <= n
            if any_lane(unused):
                for k in range(stride):
                    slot, minus = first + n * stride + k, zero(load(r.count, kind)) - 1
                    none = zero(load(r.phi, 0))
                    put_row(r, slot, unused, minus, minus, no_force(none), no_force(none))
                    put_bounds(r, slot, unused, none, none)
                    store_where(r.id, slot, minus, unused)
                    store_where(r.bound, slot, none, unused)
                    store_where(r.scaler, slot, zero(minus), unused)
                if kind == LAW:
                    blank_law(r, n, unused)


@kernel
def blank_law(r, n, unused):
    """The law of a row without force."""
    none = zero(load(r.phi, 0))
    for k in range(n * VERTICES, (n + 1) * VERTICES):
        store_where(r.law_lam, k, none, unused)
        store_where(r.law_w, k, none, unused)
    store_where(r.law_left, n, none + NO_END, unused)
    store_where(r.law_right, n, none + NO_END, unused)


# ---- warm start ------------------------------------------------------------------------------------------------------


@kernel
def find_near(r, old, kind, n, guess, lanes):
    """Number of the old block that has the id of block n, −1 if there is none; searches from `guess` on.

    Lists hardly change from step to step: the guess is the place after the last match.
    """
    stride = stride_of(kind)
    count = load(old.count, kind)
    count = select(count < load(old.room, kind), count, zero(count) + load(old.room, kind))
    wanted = load(r.id, load(r.first, kind) + n * stride)
    missing = load(r.count, kind) > n
    found = zero(count) - 1
    tried, place = 0, guess
    most = busiest(old, kind, lanes)
    while tried < most and any_lane(missing):
        place = select(place < count, place, zero(place))
        there = missing & (place < count)
        id = gather_where(old.id, place * stride + load(old.first, kind), there)
        hit = there & (id == wanted)
        found = select(hit, place, found)
        missing = missing & ~hit
        place = select(missing, place + 1, place)
        tried += 1
    return found


@kernel
def find_anywhere(r, old, kind, n, lanes):
    """The same in lanes of worlds, where block places differ: each old block is compared in all lanes."""
    stride = stride_of(kind)
    wanted = load(r.id, load(r.first, kind) + n * stride)
    missing = load(r.count, kind) > n
    found = zero(wanted) - 1
    for place in range(minimum(busiest(old, kind, lanes), load(old.room, kind))):
        there = missing & (load(old.count, kind) > place)
        hit = there & (load(old.id, load(old.first, kind) + place * stride) == wanted)
        found = select(hit, zero(found) + place, found)
        missing = missing & ~hit
        if not any_lane(missing):
            break
    return found


@kernel
def direction(r, at, there):
    """Direction of a row's force on b; or on a, where b is the world, on which a row may have no Jacobian."""
    on_b = gather_where(r.b, at, there) >= 0
    return select(on_b, gather_where(r.Jb, at, there).f, gather_where(r.Ja, at, there).f)


@kernel
def sum_forces(old, lanes):
    """The force of every contact."""
    for n in range(minimum(busiest(old, CONTACT, lanes), load(old.room, CONTACT))):
        first, there = load(old.first, CONTACT) + n * 3, load(old.count, CONTACT) > n
        force = direction(old, first, there) * load(old.lam, first)
        force = force + direction(old, first + 1, there) * load(old.lam, first + 1)
        store(old.force, first, force + direction(old, first + 2, there) * load(old.lam, first + 2))


@kernel
def carry_force(r, old, n, found):
    """Project a contact's force onto its new directions, which may have rotated."""
    first = load(r.first, CONTACT) + n * 3
    there = found >= 0
    force = gather_where(old.force, found * 3 + load(old.first, CONTACT), there)
    for k in range(3):
        store_where(r.lam, first + k, dot(force, direction(r, first + k, there)), there)


@kernel
def warm_start(r, old, lanes, scale):
    """Multipliers of the last step, scaled, for the blocks that it had too; zero for new ones."""
    sum_forces(old, lanes)
    for kind in range(N_KINDS):
        stride = stride_of(kind)
        guess = zero(load(r.count, kind))
        for n in range(minimum(busiest(r, kind, lanes), load(r.room, kind))):
            if lanes > 1:
                found = find_anywhere(r, old, kind, n, lanes)
            else:
                found = find_near(r, old, kind, n, guess, lanes)
            there = found >= 0
            guess = select(there, found + 1, guess)
            first = load(r.first, kind) + n * stride
            if kind == CONTACT:
                carry_force(r, old, n, found)
            else:
                for k in range(stride):
                    lam = gather_where(old.lam, found * stride + (load(old.first, kind) + k), there)
                    store_where(r.lam, first + k, lam, there)
            for k in range(stride):
                lam = load(r.lam, first + k)
                store(r.lam, first + k, select(there, lam * scale, spread(0.0, lam)))


BLANK = entry(blank, STORE, extra=("int64",))
WARM_START = entry(warm_start, STORE, STORE, extra=("int64", "float64"))
