"""Sweeps, and Newton's method on the natural map between them: kernels, for one problem and for lanes of problems.

The method is that of `newton`: the natural map is made of smooth pieces, and a step solves the linear system of the
pieces that the rows are on. Multipliers of the step before know most of the pieces: steps come first, and sweeps find
the others. As pieces may make a singular system, rows are held softly where they are (a proximal point step,
Rockafellar 1976): the softness falls as the residual does, and grows after a step that had to be shortened (as
Levenberg 1944 and Marquardt 1963 do). A step that does not lead down at all is taken back, and sweeps go on.

Blocks of other kinds than bounds, cones and balls (laws, that is) stay where they are in a step. A is stored whole.
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
"""How softly rows are held where they are, of their diagonal: at first, and after sweeps."""
LOOSER, LOOSE = 0.1, 0.5
"""What is left of the softness after a whole step: as much as of the residual, but no less and no more than this."""
LOOSEST = 1e-10
"""Its least."""
FIRMER, FIRMEST = 3.0, 1.0
"""How much more there is of it after a step that had to be shortened, and its most."""
TRIES, SHORTER = 6, 0.5
"""Tries of a step, each shorter than the one before."""
DOWN = 0.02
"""Share of the merit allowed that a whole step must stay below it at least."""
SLACK, FORGET = 2.0, 0.7
"""How many times the merit is allowed, and what is left of the merit allowed after a step at least."""
STEPS = 12
"""Between two rounds of sweeps, at most."""
FEW_ROWS = 9
"""With so many, sweeps come first."""
ROUNDS, AT_ONCE = 6, 64
"""Of sweeps and steps from one beginning, before another; and sweeps at once at most."""
STUCK = 1e-4
"""Natural residual, of the largest |b|, above which rounds that go on may be in vain."""
IN_VAIN, BETTER = 60, 0.98
"""Rounds after which a search has stalled that has not made its best residual smaller, by so much."""
ASTRAY = 12
"""Rounds without a better residual after which sweeps go on from where sweeps have come."""
NEWTON_COST = 1.0 / 8.0
"""Of a product in an elimination, which works in the cache, beside one in a sweep, which waits for memory."""
NEWTON_SHARE = 0.75
"""Of the work that is allowed: what Newton's method may take, so that sweeps are left for what it cannot afford."""


# ---- work ------------------------------------------------------------------------------------------------------------


@kernel
def square_of_rows(p, s):
    """Products of a sweep, or of a look with a fresh w."""
    n = zero(load(s.work, 0)) + float(load(p.n_rows, 0))
    return n * n


@kernel
def step_cost(p, s, n):
    """Work of a step: the elimination of rows that are not at a bound, and a look."""
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
    """All multipliers by their steps, back in their bounds, in the lanes of a mask; and w there."""
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
    """All multipliers to where they were, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, load(n.kept, r), moving)
    find_residuals(p, s, moving)


@kernel
def accept(s, n, residual, down, tries):
    """Take a step in the lanes of a mask, after so many tries that were too long."""
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
    """A step in the lanes of a mask, from where they were last looked at: those in which it is accepted. In the others
    nothing has moved.

    The merit may rise between steps, below what is allowed: that is a few times the largest of those before, of which
    the older ones count less (Grippo, Lampariello and Lucidi 1986), and never rises. Pieces that change make the
    natural map a winding valley.
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
    """Note the multipliers of lanes in which they are the best so far."""
    residual = load(s.residual, 0)
    better = mask & (residual < load(s.best_residual, 0))
    store_where(s.best_residual, 0, residual, better)
    for r in range(load(p.n_rows, 0)):
        store_where(s.best, r, load(s.lam, r), better)


@kernel
def measure(p, s, n, done):
    """Look at the lanes at work with a fresh w, and keep their best multipliers."""
    find_residuals(p, s, ~done)
    store_where(s.residual, 0, look(p, s, n), ~done)
    keep_best(p, s, ~done)
    add_work(s, square_of_rows(p, s), ~done)


@kernel
def take_best(p, s):
    """The best multipliers, where the last ones are worse."""
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
    """So many sweeps, as far as they are allowed."""
    for _ in range(number):
        capped = is_capped(s)
        if not all_lanes(done | capped):
            sweep(p, s, done | capped)


@kernel
def step_on(p, s, n, done, most, softness):
    """Steps as long as they are accepted, `most` at most, held so softly at first: the lanes that are within their
    tolerance, or were. A step that is more work than Newton's method may still take is not begun.
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
    """Nought for multipliers in the lanes of a mask: what is in the way of those at hand may not be in theirs."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, zero(load(s.lam, r)), mask)
    find_residuals(p, s, mask)


@kernel
def has_few_rows(p):
    """Lanes in which no more than FEW_ROWS can be moved: sweeps solve these well, and single ones exactly."""
    count = zero(load(p.scale, 0))
    for r in range(load(p.n_rows, 0)):
        count = count + select(load(p.a, r * load(p.stride, 0) + r) > 0.0, zero(count) + 1.0, zero(count))
    return count <= FEW_ROWS


@kernel
def solve(p, s, n, sweeps, every, most):
    """Steps as long as they are accepted, `most` at most, then `every` sweeps, and so on, until every lane is within
    its tolerance; `sweeps` at most. Gives the number of lanes.

    Where ROUNDS of that leave it STUCK, it begins anew from nought, and after as many goes on from the best that was
    found. Where a quarter of the sweeps does not help, or ASTRAY rounds of a single problem, steps lead back again and
    again to where sweeps came from: then sweeps are more and more at a time, and steps are tries that count where they
    end.

    Every lane has limits of its own for sweeps and work as well. At one of them, and where IN_VAIN rounds have made
    nothing better, it ends with the best multipliers that were found, and `status` tells which it was.
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
    """A number of each row, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(to, r, load(of, r), mask)


SOLVE = entry(solve, ROWS, ANSWER, NEWTON, extra=("int64", "int64", "int64"))
