"""Post-stabilization: displacements correct overlaps and gaps after the velocities of a step are solved, and leave no
velocity.
"""

from __future__ import annotations

from math import inf

from poise.constraints.emit_rows import is_joint
from poise.constraints.kinds.ball_joint_limit import strays
from poise.constraints.kinds.joint_limit import share_within
from poise.dynamics.impulse_response import spread_acceleration
from poise.formulations.stages.assemble_problem import begin, bending, only_pushes
from poise.formulations.stages.solve_islands import allow, count_work, lay_island, weight_of
from poise.kernel.calls import ask_bound, call_entry
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, zero
from poise.kernel.vec import norm
from poise.solve.pgs_kernels import BOUNDED, CONE
from poise.solve.pgs_kernels import refresh as find_residuals

STRAYING = 0.2
"""Share of the displacements that is kept if they would take a ball joint beyond its limits."""
SHIFT_TOLERANCE = 50.0
"""Tolerance of displacements, relative to that of impulses: natural residual over the largest error."""


@kernel
def overlaps(rows, islands, k, slop):
    """Worlds in which a row of an island has an error that a displacement corrects."""
    wrong = slop != slop
    for n in range(load(islands.block_start, k), load(islands.block_start, k + 1)):
        slot = load(islands.block_slot, n)
        phi = load(rows.phi, slot)
        wrong = wrong | (only_pushes(rows, slot) & (phi < -slop)) | (is_joint(rows, slot) & (phi != 0.0))
    return wrong


@kernel
def speeds_after(data):
    """Row velocities at the end of the step, from those without multipliers."""
    none = zero(load(data.answer.tolerance, 0))
    find_residuals(data.problem, data.answer, none == none)
    for k in range(load(data.problem.n_rows, 0)):
        given = (
            load(data.answer.w, k)
            - load(data.problem.b, k)
            - load(data.rows.cfm, load(data.system.slot, k)) * load(data.answer.lam, k)
        )
        store(data.scalar_view.speed, k, load(data.scalar_view.speed, k) + given)


@kernel
def may_shift(problem, k):
    """Whether a block gets displacements. Friction, motors and laws do not."""
    return load(problem.block_kind, k) in (BOUNDED, CONE)


@kernel
def shrink(system, islands, problem, lanes):
    """Reduce the problem to the first row of each block that may shift; returns their number. The matrix is compacted
    in place, in an order that overwrites no entry before it is moved.
    """
    n = 0
    for k in range(load(problem.n_blocks, 0)):
        if may_shift(problem, k):
            store(islands.shifted, n, load(problem.block_start, k))
            n += 1
    stride, across = load(problem.stride, 0), n
    if system.n_lanes > lanes:  # lanes of rows, of one world
        across = (n + system.n_lanes - 1) // system.n_lanes * system.n_lanes
    for row in range(n):
        column = load(islands.shifted, row) * stride
        for other in range(n):
            store(problem.a, row * across + other, load(problem.a, column + load(islands.shifted, other)))
        store(problem.scale, row, load(problem.scale, load(islands.shifted, row)))
    store(problem.stride, 0, across)
    store(problem.n_rows, 0, n)
    store(problem.n_blocks, 0, n)
    return n


@kernel
def lay_shift(data, options, dt):
    """Fill the problem of the displacements, over dt: predicted errors at the end of the step, less the slop. Rows that
    only push, push here too, and the speed is bounded. Multipliers start from those that each row alone would need.
    """
    slop, share, tolerance, lanes = load(options.slop, 0), load(options.erp, 0), load(options.tolerance, 0), data.lanes
    none = zero(slop)
    worst = none
    for k in range(shrink(data.system, data.islands, data.problem, lanes)):
        row = load(data.islands.shifted, k)
        slot = load(data.system.slot, row)
        # a row that nothing can move has no multiplier
        moves = load(data.problem.a, k * load(data.problem.stride, 0) + k) > 0.0
        joint = is_joint(data.rows, slot) & (load(data.problem.lo, row) < load(data.problem.hi, row)) & moves
        pushes = only_pushes(data.rows, slot) & moves
        fastest = select(load(data.rows.dof, slot) >= 0, load(options.fastest_turn, 0), load(options.fastest, 0))
        ahead = (
            load(data.rows.phi, slot) * (1.0 / dt) + load(data.scalar_view.speed, row) + bending(data.rows, slot, dt)
        )
        over = select(joint, ahead, minimum(ahead + slop * (1.0 / dt), none))
        own = select(joint, load(data.rows.erp, slot), none + share)
        mend = maximum(minimum(over * own, fastest), -fastest)
        b = select(moves, select(joint | (over < 0.0), mend, maximum(ahead, none)), none)
        worst = maximum(worst, fabs(select(joint | (over < 0.0), b, none)))
        store(data.problem.block_kind, k, BOUNDED)
        store(data.problem.block_start, k, k)
        store(data.problem.law_start, k, 0)
        store(data.problem.b, k, b)
        store(data.problem.lo, k, select(joint, none - inf, none))
        store(data.problem.hi, k, select(joint | pushes, none + inf, none))
        store(data.answer.lam, k, select(pushes, maximum(-b, none) / load(data.problem.scale, k), none))
    n = load(data.problem.n_blocks, 0)
    store(data.problem.block_start, n, n)
    store(data.problem.law_start, n, 0)
    begin(data.answer, worst * (tolerance * SHIFT_TOLERANCE))


@kernel
def keep_shift(data, lanes):
    """Copy the multipliers of the displacements to the system."""
    rows = load(data.system.n_rows, 0)
    if data.system.n_lanes > lanes:
        rows = load(data.system.n_groups, 0) * data.system.n_lanes
    for k in range(rows):
        store(data.scalar_view.lam, k, zero(load(data.scalar_view.lam, 0)))
    for k in range(load(data.problem.n_rows, 0)):
        store(data.scalar_view.lam, load(data.islands.shifted, k), load(data.answer.lam, k))


@kernel
def shift_island(model, data, options, dt, k, share):
    """Displacements of an island, within a share of the work that is left, and their effect on its degrees
    of freedom.
    """
    if load(data.islands.laid, 0) != k:
        lay_island(model, data, options, dt, k)
    speeds_after(data)
    lay_shift(data, options, dt)
    allow(data.answer, data.stats, load(data.scratch.last_sweeps, 0), load(data.scratch.last_work, 0), share)
    ask_bound(data.calls.solve, data.calls.solve_table, options.sweeps, options.every, options.steps)
    store(data.stats.shift_status, 0, maximum(load(data.stats.shift_status, 0), load(data.answer.status, 0)))
    count_work(data.answer, data.stats)
    keep_shift(data, data.lanes)
    store(data.islands.laid, 0, -1)
    call_entry(data.calls.share, model, data.work, data.system, data.flow)


@kernel
def hold_back(model, work, islands, flow, options, k):
    """Scale the displacements of an island, so that no degree of freedom exceeds its speed limit."""
    most = zero(load(options.fastest, 0)) + 1.0
    for n in range(load(islands.link_start, k), load(islands.link_start, k + 1)):
        link = load(islands.link, n)
        for d in range(load(model.link_dof_start, link), load(model.link_dof_start, link + 1)):
            axis, speed = load(work.axis, d), fabs(load(flow.a, d))
            turn = norm(axis.w)
            slides = select(turn > 0.0, zero(turn), norm(axis.v))
            most = maximum(
                most, maximum(speed * turn / load(options.fastest_turn, 0), speed * slides / load(options.fastest, 0))
            )
    if any_lane(most > 1.0):
        share = 1.0 / most
        for n in range(load(islands.link_start, k), load(islands.link_start, k + 1)):
            link = load(islands.link, n)
            store(flow.acceleration, link, load(flow.acceleration, link) * share)
            for d in range(load(model.link_dof_start, link), load(model.link_dof_start, link + 1)):
                store(flow.a, d, load(flow.a, d) * share)


@kernel
def shift_out(model, data, options, dt):
    """Displacements, as velocities over the step, that correct the errors of rows in the worlds that have any.

    They are scaled so that they do not exceed limits without rows.
    """
    slop = load(options.slop, 0)
    wrong = slop != slop
    sweeps, steps, left = zero(slop), zero(slop), 0.0
    for k in range(load(data.islands.count, 0)):
        left += weight_of(data.islands, k)
    for k in range(load(data.islands.count, 0)):
        here = overlaps(data.rows, data.islands, k, slop)
        if any_lane(here):
            wrong = wrong | here
            shift_island(model, data, options, dt, k, weight_of(data.islands, k) / left)
            sweeps, steps = maximum(sweeps, load(data.answer.sweeps, 0)), maximum(steps, load(data.newton.steps, 0))
        left -= weight_of(data.islands, k)
    store(data.stats.swept, 0, load(data.stats.swept, 0) + sweeps)
    store(data.stats.stepped, 0, load(data.stats.stepped, 0) + steps)
    if any_lane(wrong):
        spread_acceleration(model, data.work, data.flow)
        for k in range(load(data.islands.count, 0)):
            hold_back(model, data.work, data.islands, data.flow, options, k)
        share = share_within(data.state, data.work, data.flow, data.limits, data.scratch.held, dt)
        share = select(
            strays(data.state, data.work, data.flow, data.limits, data.scratch.held, dt), share * STRAYING, share
        )
        share = select(wrong, share, zero(share))
        for d in range(model.nv):
            store(data.scratch.shift, d, load(data.flow.a, d) * share)
