"""Sweeps, with Newton's method on the natural map between them: kernels for one problem and for lanes of problems.

The method is that of `newton`: the natural map is piecewise smooth, and a step solves the linear system of the present
pieces. A warm start is on most of the right pieces: steps come first, and sweeps find the other pieces. As the system
may be singular, springs hold rows near their present values (a proximal point step, Rockafellar 1976): the softness
decreases with the residual, and grows after a step that had to be shortened (as Levenberg 1944 and Marquardt 1963 do).
A step that does not decrease the merit is taken back, and sweeps continue.

A step does not change blocks other than bounds, cones and balls (laws, that is). A is stored as a full matrix.
"""

from __future__ import annotations

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import load, store, store_where
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, minimum, select, zero
from poise.solve.active_set_kernels import NEWTON, lay_system, look, newton_block, take_steps
from poise.solve.block_kernels import clip, in_ball, in_cone
from poise.solve.gauss_kernels import eliminate
from poise.solve.pgs_kernels import (
    ANSWER,
    BALL,
    BOUNDED,
    CAPPED,
    CONE,
    ROWS,
    SOLVED,
    STALLED,
    load_three,
    radius_of,
    relax,
)
from poise.solve.pgs_kernels import refresh as find_residuals

__all__ = ["NEWTON", "SOLVE", "STEPS", "newton_block"]

FIRST, AFTER = 1e-2, 3e-2
"""Softness of the springs, relative to the diagonal: at first, and after sweeps."""
LOOSER, LOOSE = 0.1, 0.5
"""Range of the factor of the softness after a full step; within it, the ratio of the residuals."""
LOOSEST = 1e-10
"""Least softness."""
FIRMER, FIRMEST = 3.0, 1.0
"""Factor of the softness after a step that had to be shortened, and the greatest softness."""
TRIES, SHORTER = 6, 0.5
"""Tries of a step, and the factor of its length from one to the next."""
DOWN = 0.02
"""Least share by which a full step must stay below the allowed merit."""
SLACK, FORGET = 2.0, 0.7
"""Allowed merit relative to the present one, and least factor of the allowed merit after a step."""
STEPS = 12
"""Most steps between two rounds of sweeps."""
FEW_ROWS = 9
"""Number of rows up to which sweeps come first."""
ROUNDS, AT_ONCE = 6, 64
"""Rounds of sweeps and steps from one start, before a restart; and most sweeps at once."""
STUCK = 1e-4
"""Natural residual, relative to the largest |b|, above which a search that has not converged restarts."""
IN_VAIN, BETTER = 60, 0.98
"""Rounds after which a search has stalled if its best residual has not decreased by this factor."""
ASTRAY = 12
"""Rounds without a better residual after which sweeps continue from the multipliers before the steps."""
NEWTON_COST = 1.0 / 8.0
"""Cost of a product in an elimination, which runs in the cache, relative to one in a sweep, which waits for memory."""
NEWTON_SHARE = 0.75
"""Share of the allowed work for Newton's method, so that sweeps remain possible when it is too expensive."""


# ---- work ------------------------------------------------------------------------------------------------------------


@kernel
def square_of_rows(p, s):
    """Products of a sweep, or of a measurement with a fresh w."""
    n = zero(load(s.work, 0)) + float(load(p.n_rows, 0))
    return n * n


@kernel
def step_cost(p, s, n):
    """Work of a step: the elimination of rows that are not at a bound, and a measurement."""
    count = zero(load(s.work, 0))
    for r in range(load(p.n_rows, 0)):
        count = count + select(load(n.free, r) != 0.0, zero(count) + 1.0, zero(count))
    return count * count * count * (NEWTON_COST / 3.0) + square_of_rows(p, s)


@kernel
def add_work(s, work, mask):
    """Count work in the lanes of a mask."""
    store_where(s.work, 0, load(s.work, 0) + work, mask)


@kernel
def is_capped(s):
    """Lanes whose sweeps or work are used up."""
    return (load(s.sweeps, 0) >= load(s.most_sweeps, 0)) | (load(s.work, 0) >= load(s.most_work, 0))


# ---- steps -----------------------------------------------------------------------------------------------------------


@kernel
def go(p, s, n, moving):
    """Apply the steps to all multipliers, projected onto their bounds, in the lanes of a mask; updates w."""
    for k in range(load(p.n_blocks, 0)):
        kind, at = load(p.block_kind, k), load(p.block_start, k)
        if kind == BOUNDED:
            lam = clip(load(n.kept, at) + load(n.step, at), load(p.lo, at), load(p.hi, at))
            store_where(s.lam, at, lam, moving)
        elif kind == CONE:
            lam = in_cone(load_three(p, n.kept, at, 3) + load_three(p, n.step, at, 3), load(p.bound, k))
            store_where(s.lam, at, lam.x, moving)
            store_where(s.lam, at + 1, lam.y, moving)
            store_where(s.lam, at + 2, lam.z, moving)
        elif kind == BALL:
            lam = in_ball(load_three(p, n.kept, at, 3) + load_three(p, n.step, at, 3), radius_of(p, s, k))
            store_where(s.lam, at, lam.x, moving)
            store_where(s.lam, at + 1, lam.y, moving)
            store_where(s.lam, at + 2, lam.z, moving)
    find_residuals(p, s, moving)


@kernel
def go_back(p, s, n, moving):
    """Restore all multipliers, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, load(n.kept, r), moving)
    find_residuals(p, s, moving)


@kernel
def accept(s, n, residual, down, tries):
    """Accept a step in the lanes of a mask, after `tries` tries that were too long."""
    allowed, held = load(n.allowed, 0), load(n.softness, 0)
    none = zero(held)
    if tries == 0:
        held = maximum(held * clip(residual / load(s.residual, 0), none + LOOSER, none + LOOSE), none + LOOSEST)
    else:
        held = minimum(held * FIRMER, none + FIRMEST)
    store_where(n.softness, 0, held, down)
    store_where(n.allowed, 0, minimum(allowed, maximum(allowed * FORGET, load(s.merit, 0) * SLACK)), down)
    store_where(s.residual, 0, residual, down)


@kernel
def step_down(p, s, n, moving):
    """A step in the lanes of a mask, from the last measurement; returns the lanes in which it is accepted. Nothing
    changes in the others.

    The merit may grow between steps, below an allowed value: that is a few times the largest of earlier ones, of which
    older ones count less (Grippo, Lampariello and Lucidi 1986), and never grows. Changing pieces make the natural map a
    winding valley.
    """
    start, allowed = load(s.merit, 0), load(n.allowed, 0)
    for r in range(load(p.n_rows, 0)):
        store(n.kept, r, load(s.lam, r))
    lay_system(p, s, n, moving)
    eliminate(n)
    take_steps(n)
    left, tries, wanted = moving, 0, DOWN
    while tries < TRIES and any_lane(left):
        if tries > 0:
            add_work(s, square_of_rows(p, s), left)
            store_where(s.newton_work, 0, load(s.newton_work, 0) + square_of_rows(p, s), left)
        go(p, s, n, left)
        residual = look(p, s, n)
        down = left & ((load(s.merit, 0) < (1.0 - wanted) * allowed) | (residual <= load(s.tolerance, 0)))
        accept(s, n, residual, down, tries)
        left = left & ~down
        for r in range(load(p.n_rows, 0)):
            store(n.step, r, load(n.step, r) * SHORTER)
        tries, wanted = tries + 1, wanted * SHORTER
    if any_lane(left):
        go_back(p, s, n, left)
        store_where(s.merit, 0, start, left)
    return moving & ~left


@kernel
def keep_best(p, s, mask):
    """Save the multipliers of lanes in which they are the best so far."""
    residual = load(s.residual, 0)
    better = mask & (residual < load(s.best_residual, 0))
    store_where(s.best_residual, 0, residual, better)
    for r in range(load(p.n_rows, 0)):
        store_where(s.best, r, load(s.lam, r), better)


@kernel
def measure(p, s, n, done):
    """Measure the active lanes with a fresh w, and save their best multipliers."""
    find_residuals(p, s, ~done)
    store_where(s.residual, 0, look(p, s, n), ~done)
    keep_best(p, s, ~done)
    add_work(s, square_of_rows(p, s), ~done)


@kernel
def take_best(p, s):
    """Restore the best multipliers, where the last ones are worse."""
    worse = load(s.best_residual, 0) < load(s.residual, 0)
    if any_lane(worse):
        for r in range(load(p.n_rows, 0)):
            store_where(s.lam, r, load(s.best, r), worse)
        store_where(s.residual, 0, load(s.best_residual, 0), worse)


@kernel
def sweep(p, s, done):
    """Put every block on its law, one after another."""
    for k in range(load(p.n_blocks, 0)):
        relax(p, s, k, done)
    count = load(s.sweeps, 0)
    store(s.sweeps, 0, select(done, count, count + 1.0))
    add_work(s, square_of_rows(p, s), ~done)


@kernel
def sweep_on(p, s, done, number):
    """`number` sweeps, within the limits of each lane."""
    for _ in range(number):
        capped = is_capped(s)
        if not all_lanes(done | capped):
            sweep(p, s, done | capped)


@kernel
def step_on(p, s, n, done, most, softness):
    """Steps while they are accepted, `most` at most, with the given initial softness; returns the lanes that are within
    their tolerance, or were. A step that exceeds the remaining work of Newton's method is not started.
    """
    moving, steps = ~done, 0
    store_where(n.softness, 0, zero(load(n.softness, 0)) + softness, moving)
    store_where(n.allowed, 0, load(s.merit, 0) * SLACK, moving)
    while steps < most and any_lane(moving):
        cost = step_cost(p, s, n)
        moving = moving & (load(s.work, 0) + cost <= load(s.most_work, 0) * NEWTON_SHARE)
        if not any_lane(moving):
            break
        add_work(s, cost, moving)
        store_where(s.newton_work, 0, load(s.newton_work, 0) + cost, moving)
        moving = step_down(p, s, n, moving)
        count = load(n.steps, 0)
        store(n.steps, 0, select(moving, count + 1.0, count))
        keep_best(p, s, moving)
        done = done | (moving & (load(s.residual, 0) <= load(s.tolerance, 0)))
        moving = moving & ~done
        steps += 1
    return done


@kernel
def largest_residual(p):
    """The largest |b|."""
    largest = zero(load(p.b, 0))
    for r in range(load(p.n_rows, 0)):
        largest = maximum(largest, fabs(load(p.b, r)))
    return largest


@kernel
def begin_anew(p, s, mask):
    """Reset multipliers to zero in the lanes of a mask: other multipliers may avoid an obstacle to convergence."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, zero(load(s.lam, r)), mask)
    find_residuals(p, s, mask)


@kernel
def has_few_rows(p):
    """Lanes with at most FEW_ROWS movable rows: sweeps solve these well, and single rows exactly."""
    count = zero(load(p.scale, 0))
    for r in range(load(p.n_rows, 0)):
        count = count + select(load(p.a, r * load(p.stride, 0) + r) > 0.0, zero(count) + 1.0, zero(count))
    return count <= FEW_ROWS


@kernel
def solve(p, s, n, sweeps, every, most):
    """Steps while they are accepted, `most` at most, then `every` sweeps, and so on, until every lane is within its
    tolerance; `sweeps` at most. Returns the number of lanes.

    If the residual is above STUCK after ROUNDS of these, the solver restarts from zero multipliers, and after as many
    more continues from the best ones. If a quarter of the sweeps does not suffice, or ASTRAY rounds of a single
    problem, steps repeatedly undo the progress of sweeps: then the number of sweeps grows, and steps are trials, which
    count only if they end within the tolerance.

    Every lane has its own limits of sweeps and work as well. At one of them, or after IN_VAIN rounds without progress,
    it ends with the best multipliers so far, and `status` gives the reason.
    """
    tolerance = load(s.tolerance, 0)
    store(n.steps, 0, zero(tolerance))
    store(s.status, 0, zero(tolerance) + SOLVED)
    done = tolerance < 0.0
    measure(p, s, n, done)
    done = load(s.residual, 0) <= tolerance
    many = done | ~has_few_rows(p)
    if not all_lanes(many):
        sweep_on(p, s, many, every)
        measure(p, s, n, done)
        done = load(s.residual, 0) <= tolerance
    swept, rounds, softness, trying = 0, 0, FIRST, False
    known, vain = load(s.best_residual, 0), zero(tolerance)
    while not all_lanes(done):
        trying = trying or 4 * swept > sweeps
        if n.lanes == 1:
            trying = trying or any_lane(vain >= ASTRAY)
        if trying:
            keep(p, s.lam, n.swept, ~done)
        done = step_on(p, s, n, done, most, softness)
        if swept >= sweeps or all_lanes(done):
            break
        rounds, softness = rounds + 1, AFTER
        if rounds == ROUNDS:
            begin_anew(p, s, ~done & (load(s.best_residual, 0) > STUCK * largest_residual(p)))
        elif rounds == 2 * ROUNDS:
            take_best(p, s)
            find_residuals(p, s, ~done)
        elif trying:
            every = min(2 * every, AT_ONCE)
            keep(p, n.swept, s.lam, ~done)
            find_residuals(p, s, ~done)
        every = min(every, sweeps - swept)
        sweep_on(p, s, done, every)
        swept += every
        measure(p, s, n, done)
        better = load(s.best_residual, 0) < known * BETTER
        known, vain = select(better, load(s.best_residual, 0), known), select(better, zero(vain), vain + 1.0)
        solved, capped = load(s.residual, 0) <= tolerance, is_capped(s)
        stalled = ~solved & ~capped & (vain >= IN_VAIN)
        store_where(s.status, 0, zero(vain) + STALLED, ~done & stalled)
        store_where(s.status, 0, zero(vain) + CAPPED, ~done & ~solved & capped)
        done = done | solved | capped | stalled
    take_best(p, s)
    store_where(s.status, 0, zero(tolerance) + SOLVED, load(s.residual, 0) <= tolerance)
    left = (load(s.residual, 0) > tolerance) & (load(s.status, 0) == SOLVED)
    store_where(s.status, 0, zero(tolerance) + CAPPED, left)
    return n.lanes


@kernel
def keep(p, of, to, mask):
    """Copy a number of each row, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(to, r, load(of, r), mask)


SOLVE = entry(solve, ROWS, ANSWER, NEWTON, extra=("int64", "int64", "int64"))
