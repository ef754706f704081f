"""Displacements that take rows out of what they have come into, and leave no speed behind."""

from __future__ import annotations

from math import inf

from poise.constraints.ball_limit_rows import strays
from poise.constraints.limit_rows import share_within
from poise.dynamics.responses import spread_acceleration
from poise.formulations.impulses import lay_island
from poise.formulations.problem_kernels import begin, is_joint, keep_lam, only_pushes
from poise.kernel.calls import call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, zero
from poise.solve.pgs_kernels import BALL, BOUNDED, LAW
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
def list_rows(p):
    """Every row by itself: there is no friction in displacements."""
    n = load(p.n_rows, 0)
    for row in range(n):
        store(p.block_kind, row, BOUNDED)
        store(p.block_start, row, row)
    store(p.block_start, n, n)
    store(p.n_blocks, 0, n)


@kernel
def lay_shift(r, t, plain, p, a, dt, slop, share, tolerance):
    """The problem of the displacements, over dt: errors at the end of the step as they would be, less what is left
    alone. Friction, motors and laws do not count; what only pushes, only pushes here too. Multipliers start from what
    rows would need if they were alone.
    """
    none = zero(slop)
    worst = none
    for k in range(load(p.n_blocks, 0)):
        row, slot, kind = load(p.block_start, k), load(t.slot, load(p.block_start, k)), load(p.block_kind, k)
        # what nothing can move has no multiplier
        joint, pushes = is_joint(r, slot) & (load(p.lo, row) < load(p.hi, row)), only_pushes(r, slot)
        if kind in (BALL, LAW):
            joint, pushes = slop != slop, slop != slop
        ahead = load(r.phi, slot) * (1.0 / dt) + load(plain.speed, row)
        over = select(joint, ahead, minimum(ahead + slop * (1.0 / dt), none))
        own = select(joint, load(r.erp, slot), none + share)
        b = select(joint | (over < 0.0), over * own, maximum(ahead, none))
        worst = maximum(worst, fabs(select(joint | (over < 0.0), b, none)))
        store(p.b, row, b)
        store(p.lo, row, select(joint, none - inf, none))
        store(p.hi, row, select(joint | pushes, none + inf, none))
        store(a.lam, row, select(pushes, maximum(-b, none) / load(p.scale, row), none))
        for i in range(row + 1, load(p.block_start, k + 1)):
            store(p.b, i, none)
            store(p.lo, i, none)
            store(p.hi, i, none)
            store(a.lam, i, none)
    list_rows(p)
    begin(a, worst * (tolerance * SHIFT_TOLERANCE))


@kernel
def shift_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k):
    """Multipliers of the displacements of an island, and what its degrees of freedom take of them."""
    if load(i.laid, 0) != k:
        lay_island(m, s, w, r, i, t, flow, plain, p, a, o, dt, k)
    speeds_after(r, t, plain, p, a)
    lay_shift(r, t, plain, p, a, dt, load(o.slop, 0), load(o.erp, 0), load(o.tolerance, 0))
    call_entry(o.solve, p, a, newton, o.sweeps, o.every, o.steps)
    keep_lam(p, plain, a)
    call_entry(o.share, m, w, t, flow)


@kernel
def shift_out(m, s, w, l, r, i, t, flow, plain, p, a, newton, o, dt):
    """Displacements, as velocities over the step, that take rows of wrong worlds out of what they have come into.

    A limit that has no row is not exceeded for them: then they are shorter.
    """
    slop = load(o.slop, 0)
    wrong = slop != slop
    for k in range(load(i.count, 0)):
        here = overlaps(r, i, k, slop)
        if any_lane(here):
            wrong = wrong | here
            shift_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
    if any_lane(wrong):
        spread_acceleration(m, w, flow)
        share = share_within(s, w, flow, l, o.held, dt)
        share = select(strays(s, w, flow, l, o.held, dt), share * STRAYING, share)
        share = select(wrong, share, zero(share))
        for d in range(m.nv):
            store(o.shift, d, load(flow.a, d) * share)
