"""Impulses of a step at velocity level, island by island."""

from __future__ import annotations

from math import inf

from poise.constraints.rolling_rows import renew
from poise.constraints.tree import take_links
from poise.dynamics.responses import spread_acceleration
from poise.formulations.problem_kernels import begin, keep_answer, lay_problem, list_island
from poise.formulations.redundant_rows import hold_redundant, share_load
from poise.formulations.restitution import bounce_island, find_falling
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.solve.pgs_kernels import CONE

VELOCITY = 0
ROLLS = 8
"""How often the bounds of rolling friction follow normal forces at most."""


@kernel
def lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k):
    """The problem of an island, with the multipliers that its rows hold."""
    take_links(m, t, i, load(i.link_start, k), load(i.link_start, k + 1))
    list_island(r, i, t, plain, p, o.lanes, k)
    call_entry(o.see, m, s, w, r, t, flow, dt, VELOCITY)
    call_entry(o.multiply, m, t, plain)
    lay_problem(r, t, plain, p, a, dt, load(o.creep, 0), load(o.tolerance, 0))
    hold_redundant(m, r, t, p, a, newton)
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
    """Go on from the multipliers as they are, in the worlds of a mask."""
    tolerance, swept, stepped = load(a.tolerance, 0), load(a.sweeps, 0), load(newton.steps, 0)
    begin(a, select(changed, tolerance, zero(tolerance) + inf))
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    store(a.tolerance, 0, tolerance)
    store(a.sweeps, 0, swept + load(a.sweeps, 0))
    store(newton.steps, 0, stepped + load(newton.steps, 0))


# ---- all that there is -----------------------------------------------------------------------------------------------


@kernel
def solve_island(m, s, w, r, u, i, t, flow, plain, p, a, newton, o, dt, k):
    """Impulses of the island at hand."""
    spent = bounce_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, 1)
    ask_bound(o.solve, o.solve_table, o.sweeps, o.every, o.steps)
    store(a.sweeps, 0, load(a.sweeps, 0) + spent)
    if load(i.lively, 0) != 0 and o.centred != 0:
        find_falling(m, r, i, t, p, a, o)
    changed = raise_bounces(r, t, plain, p, a)
    if any_lane(changed):
        solve_again(p, a, newton, o, changed)
    if u.rolls != 0:
        for _ in range(ROLLS):
            changed = renew(r, t, p, a)
            if not any_lane(changed):
                break
            solve_again(p, a, newton, o, changed)
    store(i.residual, k, load(a.residual, 0) / load(a.tolerance, 0))
    store(o.residual, 0, maximum(load(o.residual, 0), load(i.residual, k) * load(o.tolerance, 0)))
    store(o.swept, 0, maximum(load(o.swept, 0), load(a.sweeps, 0)))
    store(o.stepped, 0, maximum(load(o.stepped, 0), load(newton.steps, 0)))


@kernel
def solve_islands(m, s, w, u, r, i, t, flow, plain, p, a, newton, o, dt):
    """Impulses of all islands, and what they do: whether all are solved."""
    solved = True
    for k in range(load(i.count, 0)):
        lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
        solve_island(m, s, w, r, u, i, t, flow, plain, p, a, newton, o, dt, k)
        share_load(m, r, t, p, a, newton)
        keep_answer(r, t, plain, p, a)
        call_entry(o.share, m, w, t, flow)
        solved = solved and not any_lane(load(i.residual, k) > 1.0)
    spread_acceleration(m, w, flow)
    store(o.answered, 0, 1)
    return solved


@kernel
def answer_islands(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt):
    """What the impulses do that the rows hold."""
    for k in range(load(i.count, 0)):
        if load(i.count, 0) > 1 or load(i.laid, 0) != k:
            lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
        share_load(m, r, t, p, a, newton)
        keep_answer(r, t, plain, p, a)
        call_entry(o.share, m, w, t, flow)
    spread_acceleration(m, w, flow)
    store(o.answered, 0, 1)


@kernel
def lay_unsolved(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k):
    """The problem of an island as its impulses were looked for, what bounces with its speed."""
    if load(i.laid, 0) != k:
        lay_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, k)
        bounce_island(m, s, w, r, i, t, flow, plain, p, a, newton, o, dt, 0)
        raise_bounces(r, t, plain, p, a)
