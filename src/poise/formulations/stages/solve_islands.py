"""Impulses of a step at velocity level, island by island."""

from __future__ import annotations

from math import inf

from poise.constraints.response.delassus_kernels import take_links
from poise.dynamics.impulse_response import spread_acceleration
from poise.formulations.stages.assemble_problem import begin, keep_answer, lay_problem, list_island
from poise.formulations.stages.immovable_rows import blank_immovable
from poise.formulations.stages.redundant_rows import hold_redundant, share_load
from poise.formulations.stages.restitution import bounce_island, find_falling
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.solve.pgs_kernels import CONE
from poise.solve.pgs_kernels import refresh as find_residuals

VELOCITY = 0


@kernel
def lay_island(model, data, options, dt, k):
    """Fill the problem of an island, with the multipliers of its rows."""
    take_links(model, data.system, data.islands, load(data.islands.link_start, k), load(data.islands.link_start, k + 1))
    list_island(data, data.lanes, k)
    call_entry(data.calls.see, model, data.state, data.work, data.rows, data.system, data.flow, dt, VELOCITY)
    call_entry(data.calls.multiply, model, data.system, data.scalar_view)
    blank_immovable(model, data, data.lanes)
    lay_problem(data, dt, load(options.creep, 0), load(options.tolerance, 0))
    hold_redundant(model, data, options, dt)
    store(data.islands.laid, 0, k)


# ---- soft contacts that bounce ---------------------------------------------------------------------------------------


@kernel
def raise_bounces(data):
    """Set the restitution velocities of soft contacts that push after a fast approach; returns the worlds with any.
    Rigid contacts bounce at their times of impact: see `restitution`.
    """
    changed = load(data.answer.residual, 0) != load(data.answer.residual, 0)
    for k in range(load(data.problem.n_blocks, 0)):
        if load(data.problem.block_kind, k) == CONE:
            row = load(data.problem.block_start, k)
            slot = load(data.system.slot, row)
            bounce = load(data.rows.bounce, slot)
            hit = (bounce > 0.0) & (load(data.answer.lam, row) > 0.0) & (load(data.rows.cfm, slot) > 0.0)
            if any_lane(hit):
                changed = changed | hit
                b = load(data.problem.b, row)
                store(data.problem.b, row, select(hit, minimum(b, load(data.scalar_view.speed, row) - bounce), b))
    return changed


@kernel
def solve_again(data, options, changed):
    """Solve again from the current multipliers, in the worlds of a mask, with the sweeps and work that are left."""
    tolerance, swept, stepped = load(data.answer.tolerance, 0), load(data.answer.sweeps, 0), load(data.newton.steps, 0)
    status, residual = load(data.answer.status, 0), load(data.answer.residual, 0)
    begin(data.answer, select(changed, tolerance, zero(tolerance) + inf))
    store(data.answer.sweeps, 0, swept)
    ask_bound(data.calls.solve, data.calls.solve_table, options.sweeps, options.every, options.steps)
    store(data.answer.tolerance, 0, tolerance)
    store(data.newton.steps, 0, stepped + load(data.newton.steps, 0))
    store(data.answer.status, 0, select(changed, load(data.answer.status, 0), status))
    store(data.answer.residual, 0, select(changed, load(data.answer.residual, 0), residual))


# ---- budget of sweeps and work ---------------------------------------------------------------------------------------


@kernel
def weight_of(islands, k):
    """Weight of an island's share in the work of a step: the square of its number of blocks."""
    n = float(load(islands.block_start, k + 1) - load(islands.block_start, k))
    return n * n


@kernel
def allow(answer, stats, most_sweeps, most_work, share):
    """Limit the next solve to the remaining sweeps, and to a share of the remaining work."""
    none = zero(load(answer.work, 0))
    store(answer.most_sweeps, 0, maximum(most_sweeps - load(stats.swept, 0), none))
    store(answer.most_work, 0, maximum(most_work - load(stats.work, 0), none) * share)
    store(answer.work, 0, none)
    store(answer.newton_work, 0, none)


@kernel
def count_work(answer, stats):
    """Add the work of a solve to that of the step."""
    store(stats.work, 0, load(stats.work, 0) + load(answer.work, 0))
    store(stats.newton_work, 0, load(stats.newton_work, 0) + load(answer.newton_work, 0))


@kernel
def give_no_energy(problem, answer):
    """Scale unconverged multipliers that would add energy to the motion without them, not counting the target
    velocities of rows: by the one factor that removes the most energy. Converged multipliers never add energy.
    """
    unsolved = load(answer.residual, 0) > load(answer.tolerance, 0)
    if any_lane(unsolved):
        find_residuals(problem, answer, unsolved)
        after, before = zero(load(answer.tolerance, 0)), zero(load(answer.tolerance, 0))
        for k in range(load(problem.n_rows, 0)):
            after = after + load(answer.lam, k) * load(answer.w, k)
            before = before + load(answer.lam, k) * load(problem.b, k)
        gains = unsolved & (after + before > 0.0) & (after > before)
        if any_lane(gains):
            share = minimum(before, zero(before)) / (before - after)
            for k in range(load(problem.n_rows, 0)):
                lam = load(answer.lam, k)
                store(answer.lam, k, select(gains, lam * share, lam))


# ---- all islands -----------------------------------------------------------------------------------------------------


@kernel
def solve_island(model, data, options, dt, k, share):
    """Impulses of the current island, within a share of the work that is left."""
    allow(data.answer, data.stats, load(data.scratch.most_sweeps, 0), load(data.scratch.most_work, 0), share)
    bounce_island(model, data, options, dt, 1)
    ask_bound(data.calls.solve, data.calls.solve_table, options.sweeps, options.every, options.steps)
    if load(data.islands.lively, 0) != 0 and options.centred != 0:
        find_falling(model, data)
    changed = raise_bounces(data)
    if any_lane(changed):
        solve_again(data, options, changed)
    give_no_energy(data.problem, data.answer)
    store(data.islands.residual, k, load(data.answer.residual, 0) / load(data.answer.tolerance, 0))
    store(
        data.stats.residual,
        0,
        maximum(load(data.stats.residual, 0), load(data.islands.residual, k) * load(options.tolerance, 0)),
    )
    store(data.stats.status, 0, maximum(load(data.stats.status, 0), load(data.answer.status, 0)))
    count_work(data.answer, data.stats)


@kernel
def solve_islands(model, data, options, dt):
    """Impulses of all islands, and their effect; returns whether all are solved."""
    solved = True
    sweeps, steps, left = zero(load(data.stats.swept, 0)), zero(load(data.stats.swept, 0)), 0.0
    for k in range(load(data.islands.count, 0)):
        left += weight_of(data.islands, k)
    for k in range(load(data.islands.count, 0)):
        lay_island(model, data, options, dt, k)
        solve_island(model, data, options, dt, k, weight_of(data.islands, k) / left)
        left -= weight_of(data.islands, k)
        share_load(model, data, options)
        keep_answer(data)
        call_entry(data.calls.share, model, data.work, data.system, data.flow)
        solved = solved and not any_lane(load(data.islands.residual, k) > 1.0)
        sweeps, steps = maximum(sweeps, load(data.answer.sweeps, 0)), maximum(steps, load(data.newton.steps, 0))
    store(data.stats.swept, 0, load(data.stats.swept, 0) + sweeps)
    store(data.stats.stepped, 0, load(data.stats.stepped, 0) + steps)
    spread_acceleration(model, data.work, data.flow)
    store(data.scratch.answered, 0, 1)
    return solved


@kernel
def answer_islands(model, data, options, dt):
    """Effect of the impulses that the rows hold."""
    for k in range(load(data.islands.count, 0)):
        if load(data.islands.count, 0) > 1 or load(data.islands.laid, 0) != k:
            lay_island(model, data, options, dt, k)
        share_load(model, data, options)
        keep_answer(data)
        call_entry(data.calls.share, model, data.work, data.system, data.flow)
    spread_acceleration(model, data.work, data.flow)
    store(data.scratch.answered, 0, 1)
