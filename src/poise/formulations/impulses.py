"""Impulses of a step at velocity level, island by island."""

from __future__ import annotations

from math import inf

from poise.constraints.tree import take_links
from poise.dynamics.responses import spread_acceleration
from poise.formulations.immovable_rows import blank_immovable
from poise.formulations.problem_kernels import begin, keep_answer, lay_problem, list_island
from poise.formulations.redundant_rows import hold_redundant, share_load
from poise.formulations.restitution import bounce_island, find_falling
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.solve.pgs_kernels import CONE
from poise.solve.pgs_kernels import refresh as find_residuals

VELOCITY = 0


@kernel
def lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k):
    """The problem of an island, with the multipliers that its rows hold."""
    take_links(m, t, i, load(i.link_start, k), load(i.link_start, k + 1))
    list_island(r, i, t, plain, p, o.lanes, k)
    call_entry(o.see, m, s, w, r, t, flow, dt, VELOCITY)
    call_entry(o.multiply, m, t, plain)
    blank_immovable(m, w, r, t, plain, p, o.lanes)
    lay_problem(r, t, plain, p, a, dt, load(o.creep, 0), load(o.tolerance, 0))
    hold_redundant(m, w, r, t, plain, p, a, newton, o, dt)
    store(i.laid, 0, k)


# ---- what bounces ----------------------------------------------------------------------------------------------------


@kernel
def raise_bounces(r, t, plain, p, a):
    """Ask of soft contacts that push, and met fast, the speed that they bounce back with; worlds that have any. Others
    bounce at their times of impact: see `restitution`.
    """
    changed = load(a.residual, 0) != load(a.residual, 0)
    for k in range(load(p.n_blocks, 0)):
        if load(p.block_kind, k) == CONE:
            row = load(p.block_start, k)
            slot = load(t.slot, row)
            bounce = load(r.bounce, slot)
            hit = (bounce > 0.0) & (load(a.lam, row) > 0.0) & (load(r.cfm, slot) > 0.0)
            if any_lane(hit):
                changed = changed | hit
                b = load(p.b, row)
                store(p.b, row, select(hit, minimum(b, load(plain.speed, row) - bounce), b))
    return changed


@kernel
def solve_again(p, a, newton, o, changed):
    """Go on from the multipliers as they are, in the worlds of a mask, with what sweeps and work are left."""
    tolerance, swept, stepped = load(a.tolerance, 0), load(a.sweeps, 0), load(newton.steps, 0)
    status, residual = load(a.status, 0), load(a.residual, 0)
    begin(a, select(changed, tolerance, zero(tolerance) + inf))
    store(a.sweeps, 0, swept)
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    store(a.tolerance, 0, tolerance)
    store(newton.steps, 0, stepped + load(newton.steps, 0))
    store(a.status, 0, select(changed, load(a.status, 0), status))
    store(a.residual, 0, select(changed, load(a.residual, 0), residual))


# ---- what there is to spend ------------------------------------------------------------------------------------------


@kernel
def weight_of(i, k):
    """Share of an island in the work of a step, to scale: the square of its blocks."""
    n = float(load(i.block_start, k + 1) - load(i.block_start, k))
    return n * n


@kernel
def allow(a, o, most_sweeps, most_work, share):
    """Let a search take the sweeps that are left, and a share of the work."""
    none = zero(load(a.work, 0))
    store(a.most_sweeps, 0, maximum(most_sweeps - load(o.swept, 0), none))
    store(a.most_work, 0, maximum(most_work - load(o.work, 0), none) * share)
    store(a.work, 0, none)
    store(a.newton_work, 0, none)


@kernel
def count_work(a, o):
    """Add the work of a search to that of the step."""
    store(o.work, 0, load(o.work, 0) + load(a.work, 0))
    store(o.newton_work, 0, load(o.newton_work, 0) + load(a.newton_work, 0))


@kernel
def give_no_energy(p, a):
    """Shorten multipliers that were left unsolved and would add energy to the motion without them, beside what rows
    want: all by one share, at which they take away most. Those that solve a problem never do.
    """
    unsolved = load(a.residual, 0) > load(a.tolerance, 0)
    if any_lane(unsolved):
        find_residuals(p, a, unsolved)
        after, before = zero(load(a.tolerance, 0)), zero(load(a.tolerance, 0))
        for k in range(load(p.n_rows, 0)):
            after = after + load(a.lam, k) * load(a.w, k)
            before = before + load(a.lam, k) * load(p.b, k)
        gains = unsolved & (after + before > 0.0) & (after > before)
        if any_lane(gains):
            share = minimum(before, zero(before)) / (before - after)
            for k in range(load(p.n_rows, 0)):
                lam = load(a.lam, k)
                store(a.lam, k, select(gains, lam * share, lam))


# ---- all that there is -----------------------------------------------------------------------------------------------


@kernel
def solve_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k, share):
    """Impulses of the island at hand, for a share of the work that is left."""
    allow(a, o, load(o.most_sweeps, 0), load(o.most_work, 0), share)
    bounce_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, 1)
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    if load(i.lively, 0) != 0 and o.centred != 0:
        find_falling(m, r, i, t, p, a, o)
    changed = raise_bounces(r, t, plain, p, a)
    if any_lane(changed):
        solve_again(p, a, newton, o, changed)
    give_no_energy(p, a)
    store(i.residual, k, load(a.residual, 0) / load(a.tolerance, 0))
    store(o.residual, 0, maximum(load(o.residual, 0), load(i.residual, k) * load(o.tolerance, 0)))
    store(o.status, 0, maximum(load(o.status, 0), load(a.status, 0)))
    count_work(a, o)


@kernel
def solve_islands(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt):
    """Impulses of all islands, and what they do: whether all are solved."""
    solved = True
    sweeps, steps, left = zero(load(o.swept, 0)), zero(load(o.swept, 0)), 0.0
    for k in range(load(i.count, 0)):
        left += weight_of(i, k)
    for k in range(load(i.count, 0)):
        lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
        solve_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k, weight_of(i, k) / left)
        left -= weight_of(i, k)
        share_load(m, r, t, p, a, newton, o)
        keep_answer(r, t, plain, p, a)
        call_entry(o.share, m, w, t, flow)
        solved = solved and not any_lane(load(i.residual, k) > 1.0)
        sweeps, steps = maximum(sweeps, load(a.sweeps, 0)), maximum(steps, load(newton.steps, 0))
    store(o.swept, 0, load(o.swept, 0) + sweeps)
    store(o.stepped, 0, load(o.stepped, 0) + steps)
    spread_acceleration(m, w, flow)
    store(o.answered, 0, 1)
    return solved


@kernel
def answer_islands(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt):
    """What the impulses do that the rows hold."""
    for k in range(load(i.count, 0)):
        if load(i.count, 0) > 1 or load(i.laid, 0) != k:
            lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
        share_load(m, r, t, p, a, newton, o)
        keep_answer(r, t, plain, p, a)
        call_entry(o.share, m, w, t, flow)
    spread_acceleration(m, w, flow)
    store(o.answered, 0, 1)
