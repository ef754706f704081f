"""Rows of loops that vanish within a few steps: a mechanism of separate bodies that passes a singular position.

Where all bars of a parallelogram are in line, the row along them moves nothing: J = a θ, with θ the angle from that
position. Its multiplier is Q/(a θ) for a generalized force Q across the loop that is itself none there, and any error
of a velocity, or of J̇v, becomes an impulse of that error over a θ. A step takes θ by ω h. As near as that, J belongs
to the beginning of the step and to no other part of it, and so does what it asks for.

Such a row says nothing about the step: the multiplier that it had before, which is continuous, stays, and later steps
mend what is left. A combination of rows c = Jᵀu is one of them if c + t ċ, but for what other rows can do, is as good
as none for some |t| of two steps at most. One that is merely small, because what it moves is heavy, keeps its
direction, and stays.

ċ follows from how bodies move against each other: rows of a loop go with its first body, axes of joints with links.
"""

from __future__ import annotations

from poise.constraints.tree import about_origin, link_of
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, fabs, select, sqrt, zero
from poise.kernel.spatial import Force, cross_force, less, motion_at, no_force, pair
from poise.kernel.vec import cross, zero3
from poise.solve.rank import ROUNDS, across_of, came_before, find_remainder

SMALL = 0.05
"""Pivot, of the row's diagonal entry or of its weight, up to which it is looked at."""
LEFT = 0.03
"""Square of a combination of rows where it is least, over that of its change in a step, up to which it vanishes."""
REACH = 2.0
"""Steps within which it does: errors of velocities are of second order in h, and what they are divided by is not."""


# ---- a combination of rows, and how it changes -----------------------------------------------------------------------


@kernel
def clear_links(m, w, t):
    """No forces on links of the island, in `w.gyro`, nor rates of them, in `w.lag`."""
    none = no_force(load(w.a, 0))
    for n in range(load(t.n_links, 0)):
        store(w.gyro, load(t.link, n), none)
        store(w.lag, load(t.link, n), none)
        store(w.p, load(t.link, n), none)


@kernel
def lay_force(m, w, body, J, first, there):
    """Add a covector at a body's centre of mass, which goes with a `first` body, to its link, and its rate."""
    link, lead, none = link_of(m, body), link_of(m, first), load(w.a, 0)
    on, led = there & (link >= 0), lead >= 0
    velocity, root = gather_where(w.velocity, lead, led), gather_where(m.link_root, lead, led)
    own = gather_where(w.origin, gather_where(m.link_root, link, on), on)
    way = own + gather_where(w.centre, body, on) - gather_where(w.origin, root, led)
    speed = select(led, motion_at(velocity, way), zero3(none))
    spin = select(led, velocity.w, zero3(none))
    rate = Force(cross(spin, J.t) + cross(speed, J.f), cross(spin, J.f))
    scatter_where(w.gyro, link, gather_where(w.gyro, link, on) + about_origin(w, body, link, J), on)
    scatter_where(w.lag, link, gather_where(w.lag, link, on) + about_origin(w, body, link, rate), on)


@kernel
def lay_row(m, w, r, slot, share, there):
    """Add a share of a row. What it has on coordinates does not change."""
    first = load(r.a, slot)
    lay_force(m, w, first, load(r.Ja, slot) * share, first, there)
    lay_force(m, w, load(r.b, slot), load(r.Jb, slot) * share, first, there)
    term = load(r.term, slot)
    while any_lane(there & (term >= 0)):
        on = there & (term >= 0)
        body = select(on, gather_where(r.term_body, term, on), zero(term) - 1)
        lay_force(m, w, body, gather_where(r.term_J, term, on) * share, body, on)
        term = select(on, gather_where(r.term_next, term, on), zero(term) - 1)


@kernel
def find_rates(m, w, t):
    """ċ of what was laid on links, in `w.u`, as rows have it in Y: ċ · ċ, in the metric of M⁻¹, is its square."""
    for n in range(load(t.n_links, 0)):
        i = load(t.link, n)
        first, last = load(m.link_dof_start, i), load(m.link_dof_start, i + 1)
        p, parent = load(w.p, i), load(m.link_parent, i)
        change = load(w.lag, i) - cross_force(load(w.velocity, i), load(w.gyro, i))
        for k in range(last - first):
            d = last - 1 - k
            axis = load(w.axis, d)
            taken = less(pair(axis, change), axis, p)
            p = p + load(w.gain, d) * taken
            store(w.u, d, taken * sqrt(load(w.inverse, d)))
        if parent >= 0:
            store(w.p, parent, load(w.p, parent) + p)
            store(w.gyro, parent, load(w.gyro, parent) + load(w.gyro, i))
            store(w.lag, parent, load(w.lag, parent) + load(w.lag, i))


@kernel
def entry_of(t, plain, row, e, lanes):
    """Y of a row, of a degree of freedom of the island."""
    nv = load(t.n_dofs, 0)
    if t.n_lanes > lanes:  # lanes of rows, of one world
        return load(plain.y, row // t.n_lanes * nv * t.n_lanes + row % t.n_lanes + e * t.n_lanes)
    return load(plain.y, row * nv + e)


@kernel
def compare(w, t, plain, n, lanes):
    """c · c, c · ċ and ċ · ċ, of the combination of rows in `known` and the rates in `w.u`."""
    size, inner, rate = zero(load(w.a, 0)), zero(load(w.a, 0)), zero(load(w.a, 0))
    for e in range(load(t.n_dofs, 0)):
        c, change = zero(size), load(w.u, load(t.dof, e))
        for i in range(load(n.n_joint, 0)):
            c = c + load(n.known, i) * entry_of(t, plain, load(n.joint, i), e, lanes)
        size, inner, rate = size + c * c, inner + c * change, rate + change * change
    return size, inner, rate


@kernel
def done_by_others(w, t, plain, n, k, lanes):
    """Square of the part of ċ that rows taken before row k can do: L z = Y ċ, forwards; `step` has z."""
    count, across = load(n.n_joint, 0), across_of(n)
    total = zero(load(w.a, 0))
    for i in range(count):
        store(n.step, i, zero(total))
    for round in range(ROUNDS):
        for j in range(count):
            before = came_before(n, j, k, 1.0 + round)
            if any_lane(before):
                along = zero(total)
                for e in range(load(t.n_dofs, 0)):
                    along = along + entry_of(t, plain, load(n.joint, j), e, lanes) * load(w.u, load(t.dof, e))
                for i in range(count):
                    if i != j:
                        along = along - load(n.matrix, j * across + i) * load(n.step, i)
                along = along / select(before, load(n.matrix, j * across + j), zero(total) + 1.0)
                along = select(before, along, zero(total))
                store(n.step, j, along)
                total = total + along * along
    return total


# ---- which rows ------------------------------------------------------------------------------------------------------


@kernel
def is_small(n, k):
    """Lanes in which row k was taken with a small pivot."""
    pivot = load(n.matrix, k * across_of(n) + k)
    pivot = pivot * pivot
    small = (pivot < SMALL * load(n.own, k)) | (pivot < SMALL * load(n.weight, k))
    return (load(n.turn, k) > 0.5) & small


@kernel
def vanishes(m, w, r, t, plain, n, k, dt, lanes):
    """Lanes in which what row k adds to those taken before it vanishes within a step from here."""
    find_remainder(n, k)
    clear_links(m, w, t)
    for i in range(load(n.n_joint, 0)):
        share = load(n.known, i)
        if any_lane(share != 0.0):
            lay_row(m, w, r, load(t.slot, load(n.joint, i)), share, share != 0.0)
    find_rates(m, w, t)
    size, inner, rate = compare(w, t, plain, n, lanes)
    rate = rate - done_by_others(w, t, plain, n, k, lanes)
    least, way = size * rate - inner * inner, rate * dt
    return (fabs(inner) < way * REACH) & (least < way * way * LEFT)


@kernel
def hold_singular(m, w, r, t, plain, p, a, n, dt, lanes):
    """Let rows that vanish within the step keep the multipliers that they start from; `find_redundant` was there."""
    for k in range(load(n.n_joint, 0)):
        small = is_small(n, k)
        if any_lane(small):
            goes, row = small & vanishes(m, w, r, t, plain, n, k, dt, lanes), load(n.joint, k)
            store_where(p.lo, row, load(a.lam, row), goes)
            store_where(p.hi, row, load(a.lam, row), goes)
