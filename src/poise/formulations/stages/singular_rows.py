"""Rows of loop joints that vanish within a few steps: a mechanism of separate bodies that passes a singular position.

If all bars of a parallelogram are in line, the row along them moves nothing: J = a θ, with θ the angle from that
position. Its multiplier is Q/(a θ) for a generalized force Q across the loop that is zero there, and any error of a
velocity, or of J̇v, becomes an impulse of that error over a θ. A step changes θ by ω h. For θ that small, J and the
multiplier are valid at the beginning of the step only.

Such a row keeps its previous multiplier, which is continuous, and later steps correct the remaining error. A
combination of rows c = Jᵀu vanishes if c + t ċ, except for what other rows can do, is nearly zero for some |t| of two
steps at most. A combination that is merely small, because what it moves is heavy, keeps its direction, and stays.

ċ follows from the relative motion of bodies: rows of a loop joint move with its first body, axes of joints with links.
"""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import about_origin, link_of
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, scatter_where, store, store_where
from poise.kernel.scalars import any_lane, fabs, select, sqrt, zero
from poise.kernel.spatial import Force, cross_force, less, motion_at, no_force, pair
from poise.kernel.vec import cross, zero3
from poise.solve.rank import ROUNDS, across_of, came_before, find_remainder

SMALL = 0.05
"""Pivot, relative to the row's diagonal entry or its weight, up to which a row is checked."""
LEFT = 0.03
"""Least square of a combination of rows, relative to that of its change in a step, below which it vanishes."""
REACH = 2.0
"""Number of steps within which it vanishes: errors of velocities are of second order in h, their divisor of first."""


# ---- a combination of rows, and how it changes -----------------------------------------------------------------------


@kernel
def clear_links(model, work, system):
    """Zero the forces on links of the island, in `work.gyro`, and their rates, in `work.lag`."""
    none = no_force(load(work.a, 0))
    for n in range(load(system.n_links, 0)):
        store(work.gyro, load(system.link, n), none)
        store(work.lag, load(system.link, n), none)
        store(work.p, load(system.link, n), none)


@kernel
def lay_force(model, work, body, J, first, there):
    """Add a covector at a body's centre of mass, which moves with body `first`, to its link, and its rate."""
    link, lead, none = link_of(model, body), link_of(model, first), load(work.a, 0)
    on, led = there & (link >= 0), lead >= 0
    velocity, root = gather_where(work.velocity, lead, led), gather_where(model.link_root, lead, led)
    own = gather_where(work.origin, gather_where(model.link_root, link, on), on)
    way = own + gather_where(work.centre, body, on) - gather_where(work.origin, root, led)
    speed = select(led, motion_at(velocity, way), zero3(none))
    spin = select(led, velocity.w, zero3(none))
    rate = Force(cross(spin, J.t) + cross(speed, J.f), cross(spin, J.f))
    scatter_where(work.gyro, link, gather_where(work.gyro, link, on) + about_origin(work, body, link, J), on)
    scatter_where(work.lag, link, gather_where(work.lag, link, on) + about_origin(work, body, link, rate), on)


@kernel
def lay_row(model, work, rows, slot, share, there):
    """Add a share of a row. Its part on coordinates has no rate."""
    first = load(rows.a, slot)
    lay_force(model, work, first, load(rows.Ja, slot) * share, first, there)
    lay_force(model, work, load(rows.b, slot), load(rows.Jb, slot) * share, first, there)
    term = load(rows.term, slot)
    while any_lane(there & (term >= 0)):
        on = there & (term >= 0)
        body = select(on, gather_where(rows.term_body, term, on), zero(term) - 1)
        lay_force(model, work, body, gather_where(rows.term_J, term, on) * share, body, on)
        term = select(on, gather_where(rows.term_next, term, on), zero(term) - 1)


@kernel
def find_rates(model, work, system):
    """ċ of the forces on links, in `work.u`, in the scaling of Y: ċ · ċ is its square in the metric of M⁻¹."""
    for n in range(load(system.n_links, 0)):
        i = load(system.link, n)
        first, last = load(model.link_dof_start, i), load(model.link_dof_start, i + 1)
        p, parent = load(work.p, i), load(model.link_parent, i)
        change = load(work.lag, i) - cross_force(load(work.velocity, i), load(work.gyro, i))
        for k in range(last - first):
            d = last - 1 - k
            axis = load(work.axis, d)
            taken = less(pair(axis, change), axis, p)
            p = p + load(work.gain, d) * taken
            store(work.u, d, taken * sqrt(load(work.inverse, d)))
        if parent >= 0:
            store(work.p, parent, load(work.p, parent) + p)
            store(work.gyro, parent, load(work.gyro, parent) + load(work.gyro, i))
            store(work.lag, parent, load(work.lag, parent) + load(work.lag, i))


@kernel
def entry_of(system, scalar_view, row, e, lanes):
    """Entry of Y for a row and a degree of freedom of the island."""
    nv = load(system.n_dofs, 0)
    if system.n_lanes > lanes:  # lanes of rows, of one world
        return load(
            scalar_view.y, row // system.n_lanes * nv * system.n_lanes + row % system.n_lanes + e * system.n_lanes
        )
    return load(scalar_view.y, row * nv + e)


@kernel
def compare(data, lanes):
    """c · c, c · ċ and ċ · ċ, of the combination of rows in `known` and the rates in `work.u`."""
    size, inner, rate = zero(load(data.work.a, 0)), zero(load(data.work.a, 0)), zero(load(data.work.a, 0))
    for e in range(load(data.system.n_dofs, 0)):
        c, change = zero(size), load(data.work.u, load(data.system.dof, e))
        for i in range(load(data.newton.n_joint, 0)):
            c = c + load(data.newton.known, i) * entry_of(
                data.system, data.scalar_view, load(data.newton.joint, i), e, lanes
            )
        size, inner, rate = size + c * c, inner + c * change, rate + change * change
    return size, inner, rate


@kernel
def done_by_others(data, k, lanes):
    """Square of the part of ċ that the rows taken before row k span: L z = Y ċ, forwards; `step` has z."""
    count, across = load(data.newton.n_joint, 0), across_of(data.newton)
    total = zero(load(data.work.a, 0))
    for i in range(count):
        store(data.newton.step, i, zero(total))
    for round in range(ROUNDS):
        for j in range(count):
            before = came_before(data.newton, j, k, 1.0 + round)
            if any_lane(before):
                along = zero(total)
                for e in range(load(data.system.n_dofs, 0)):
                    along = along + entry_of(
                        data.system, data.scalar_view, load(data.newton.joint, j), e, lanes
                    ) * load(data.work.u, load(data.system.dof, e))
                for i in range(count):
                    if i != j:
                        along = along - load(data.newton.matrix, j * across + i) * load(data.newton.step, i)
                along = along / select(before, load(data.newton.matrix, j * across + j), zero(total) + 1.0)
                along = select(before, along, zero(total))
                store(data.newton.step, j, along)
                total = total + along * along
    return total


# ---- which rows vanish -----------------------------------------------------------------------------------------------


@kernel
def is_small(newton, k):
    """Lanes in which row k was taken with a small pivot."""
    pivot = load(newton.matrix, k * across_of(newton) + k)
    pivot = pivot * pivot
    small = (pivot < SMALL * load(newton.own, k)) | (pivot < SMALL * load(newton.weight, k))
    return (load(newton.turn, k) > 0.5) & small


@kernel
def vanishes(model, data, k, dt, lanes):
    """Lanes in which the part of row k that is independent of the rows before it vanishes within REACH steps."""
    find_remainder(data.newton, k)
    clear_links(model, data.work, data.system)
    for i in range(load(data.newton.n_joint, 0)):
        share = load(data.newton.known, i)
        if any_lane(share != 0.0):
            lay_row(
                model, data.work, data.rows, load(data.system.slot, load(data.newton.joint, i)), share, share != 0.0
            )
    find_rates(model, data.work, data.system)
    size, inner, rate = compare(data, lanes)
    rate = rate - done_by_others(data, k, lanes)
    least, way = size * rate - inner * inner, rate * dt
    return (fabs(inner) < way * REACH) & (least < way * way * LEFT)


@kernel
def hold_singular(model, data, dt, lanes):
    """Let rows that vanish within the step keep their warm-start multipliers; `find_redundant` must have run."""
    for k in range(load(data.newton.n_joint, 0)):
        small = is_small(data.newton, k)
        if any_lane(small):
            goes, row = small & vanishes(model, data, k, dt, lanes), load(data.newton.joint, k)
            store_where(data.problem.lo, row, load(data.answer.lam, row), goes)
            store_where(data.problem.hi, row, load(data.answer.lam, row), goes)
