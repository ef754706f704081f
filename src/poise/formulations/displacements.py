"""Displacements that take rows out of what they have come into, and leave no speed behind."""

from __future__ import annotations

from math import inf

from poise.constraints.ball_limit_rows import strays
from poise.constraints.limit_rows import share_within
from poise.constraints.row_kernels import is_joint
from poise.dynamics.responses import spread_acceleration
from poise.formulations.impulses import allow, count_work, lay_island, weight_of
from poise.formulations.problem_kernels import begin, bending, only_pushes
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, zero
from poise.kernel.vec import norm
from poise.solve.pgs_kernels import BOUNDED, CONE
from poise.solve.pgs_kernels import refresh as find_residuals

STRAYING = 0.2
"""Share of displacements where they would take a ball joint beyond its limits."""
SHIFT_TOLERANCE = 50.0
"""Of displacements, times that of impulses: natural residual over the largest error."""


@kernel
def overlaps(r, i, k, slop):
    """Worlds in which any row of an island has an error that a displacement is to mend."""
    wrong = slop != slop
    for n in range(load(i.block_start, k), load(i.block_start, k + 1)):
        slot = load(i.block_slot, n)
        phi = load(r.phi, slot)
        wrong = wrong | (only_pushes(r, slot) & (phi < -slop)) | (is_joint(r, slot) & (phi != 0.0))
    return wrong


@kernel
def speeds_after(r, t, plain, p, a):
    """Row velocities at the end of the step, from those without multipliers."""
    none = zero(load(a.tolerance, 0))
    find_residuals(p, a, none == none)
    for k in range(load(p.n_rows, 0)):
        given = load(a.w, k) - load(p.b, k) - load(r.cfm, load(t.slot, k)) * load(a.lam, k)
        store(plain.speed, k, load(plain.speed, k) + given)


@kernel
def may_shift(p, k):
    """Whether displacements may come of a block. Friction, motors and laws have none."""
    return load(p.block_kind, k) in (BOUNDED, CONE)


@kernel
def shrink(t, i, p, lanes):
    """Leave of the problem the first row of each block that may shift: how many these are. No entry moves to where one
    is that is still to move.
    """
    n = 0
    for k in range(load(p.n_blocks, 0)):
        if may_shift(p, k):
            store(i.shifted, n, load(p.block_start, k))
            n += 1
    stride, across = load(p.stride, 0), n
    if t.n_lanes > lanes:  # lanes of rows, of one world
        across = (n + t.n_lanes - 1) // t.n_lanes * t.n_lanes
    for row in range(n):
        column = load(i.shifted, row) * stride
        for other in range(n):
            store(p.a, row * across + other, load(p.a, column + load(i.shifted, other)))
        store(p.scale, row, load(p.scale, load(i.shifted, row)))
    store(p.stride, 0, across)
    store(p.n_rows, 0, n)
    store(p.n_blocks, 0, n)
    return n


@kernel
def lay_shift(r, t, i, plain, p, a, o, dt):
    """The problem of the displacements, over dt: errors at the end of the step as they would be, less what is left
    alone. What only pushes, only pushes here too, and all at a bounded speed. Multipliers start from what rows would
    need if they were alone.
    """
    slop, share, tolerance, lanes = load(o.slop, 0), load(o.erp, 0), load(o.tolerance, 0), o.lanes
    none = zero(slop)
    worst = none
    for k in range(shrink(t, i, p, lanes)):
        row = load(i.shifted, k)
        slot = load(t.slot, row)
        moves = load(p.a, k * load(p.stride, 0) + k) > 0.0  # what nothing can move has no multiplier
        joint = is_joint(r, slot) & (load(p.lo, row) < load(p.hi, row)) & moves
        pushes = only_pushes(r, slot) & moves
        fastest = select(load(r.dof, slot) >= 0, load(o.fastest_turn, 0), load(o.fastest, 0))
        ahead = load(r.phi, slot) * (1.0 / dt) + load(plain.speed, row) + bending(r, slot, dt)
        over = select(joint, ahead, minimum(ahead + slop * (1.0 / dt), none))
        own = select(joint, load(r.erp, slot), none + share)
        mend = maximum(minimum(over * own, fastest), -fastest)
        b = select(moves, select(joint | (over < 0.0), mend, maximum(ahead, none)), none)
        worst = maximum(worst, fabs(select(joint | (over < 0.0), b, none)))
        store(p.block_kind, k, BOUNDED)
        store(p.block_start, k, k)
        store(p.law_start, k, 0)
        store(p.b, k, b)
        store(p.lo, k, select(joint, none - inf, none))
        store(p.hi, k, select(joint | pushes, none + inf, none))
        store(a.lam, k, select(pushes, maximum(-b, none) / load(p.scale, k), none))
    n = load(p.n_blocks, 0)
    store(p.block_start, n, n)
    store(p.law_start, n, 0)
    begin(a, worst * (tolerance * SHIFT_TOLERANCE))


@kernel
def keep_shift(t, i, plain, p, a, lanes):
    """The multipliers of the displacements to the system."""
    rows = load(t.n_rows, 0)
    if t.n_lanes > lanes:
        rows = load(t.n_groups, 0) * t.n_lanes
    for k in range(rows):
        store(plain.lam, k, zero(load(plain.lam, 0)))
    for k in range(load(p.n_rows, 0)):
        store(plain.lam, load(i.shifted, k), load(a.lam, k))


@kernel
def shift_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k, share):
    """Multipliers of the displacements of an island, for a share of the work that is left, and what its degrees of
    freedom take of them.
    """
    if load(i.laid, 0) != k:
        lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
    speeds_after(r, t, plain, p, a)
    lay_shift(r, t, i, plain, p, a, o, dt)
    allow(a, o, load(o.last_sweeps, 0), load(o.last_work, 0), share)
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    store(o.shift_status, 0, maximum(load(o.shift_status, 0), load(a.status, 0)))
    count_work(a, o)
    keep_shift(t, i, plain, p, a, o.lanes)
    store(i.laid, 0, -1)
    call_entry(o.share, m, w, t, flow)


@kernel
def hold_back(m, w, i, flow, o, k):
    """Shorten the displacements of an island as a whole, so that no degree of freedom exceeds its speed."""
    most = zero(load(o.fastest, 0)) + 1.0
    for n in range(load(i.link_start, k), load(i.link_start, k + 1)):
        link = load(i.link, n)
        for d in range(load(m.link_dof_start, link), load(m.link_dof_start, link + 1)):
            axis, speed = load(w.axis, d), fabs(load(flow.a, d))
            turn = norm(axis.w)
            slides = select(turn > 0.0, zero(turn), norm(axis.v))
            most = maximum(most, maximum(speed * turn / load(o.fastest_turn, 0), speed * slides / load(o.fastest, 0)))
    if any_lane(most > 1.0):
        share = 1.0 / most
        for n in range(load(i.link_start, k), load(i.link_start, k + 1)):
            link = load(i.link, n)
            store(flow.acceleration, link, load(flow.acceleration, link) * share)
            for d in range(load(m.link_dof_start, link), load(m.link_dof_start, link + 1)):
                store(flow.a, d, load(flow.a, d) * share)


@kernel
def shift_out(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt):
    """Displacements, as velocities over the step, that take rows of wrong worlds out of what they have come into.

    A limit that has no row is not exceeded for them: then they are shorter.
    """
    slop = load(o.slop, 0)
    wrong = slop != slop
    sweeps, steps, left = zero(slop), zero(slop), 0.0
    for k in range(load(i.count, 0)):
        left += weight_of(i, k)
    for k in range(load(i.count, 0)):
        here = overlaps(r, i, k, slop)
        if any_lane(here):
            wrong = wrong | here
            shift_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k, weight_of(i, k) / left)
            sweeps, steps = maximum(sweeps, load(a.sweeps, 0)), maximum(steps, load(newton.steps, 0))
        left -= weight_of(i, k)
    store(o.swept, 0, load(o.swept, 0) + sweeps)
    store(o.stepped, 0, load(o.stepped, 0) + steps)
    if any_lane(wrong):
        spread_acceleration(m, w, flow)
        for k in range(load(i.count, 0)):
            hold_back(m, w, i, flow, o, k)
        share = share_within(s, w, flow, l, o.held, dt)
        share = select(strays(s, w, flow, l, o.held, dt), share * STRAYING, share)
        share = select(wrong, share, zero(share))
        for d in range(m.nv):
            store(o.shift, d, load(flow.a, d) * share)
