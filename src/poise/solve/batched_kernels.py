"""Lanes of problems: accelerated PGS in all lanes together, then the unsolved problems one by one.

These sweeps are cheap in lanes, and their momentum (`nesterov_kernels`) solves most problems within the tolerances of
contacts. Newton steps are not taken in lanes: a step would cost as much as the hardest problem needs, with all rows of
all lanes, as a row may be at a bound in one lane only. A problem on its own has lanes of rows, has no rows of other
problems, and leaves out rows at bounds. No result of a lane depends on its neighbours: neither when it leaves the lanes
nor how it is solved after that.
"""

from __future__ import annotations

from math import inf

from poise.kernel.buffers import GROUP
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import At, Index, View, load, load_lane, single, store, store_lane
from poise.kernel.scalars import any_lane, get_lane, select, spread, zero
from poise.solve.active_set_kernels import look
from poise.solve.nesterov_kernels import glide, prepare, weigh
from poise.solve.newton_kernels import NEWTON, solve
from poise.solve.pgs_kernels import ANSWER, BOUNDED, LAW, ROWS, SOLVED

SWEEPS = 36
"""Most sweeps in lanes."""

FIRST_SHARE = 0.6
"""Share of a single problem's remaining sweeps and work that is spent from the present multipliers, before it restarts
from zero."""

ALONE = View("Alone", row=Index, place=Index)
"""Rows of a problem among those of its lane, and places of the lane's rows in it."""


@kernel
def is_blank(p, k, lane):
    """Whether a lane lacks block k, which others have: its diagonal, right sides and bounds are zero."""
    at, stride = load(p.block_start, k), load(p.stride, 0)
    blank = load_lane(p.hi, at, lane) <= load_lane(p.lo, at, lane)
    if load(p.block_kind, k) != BOUNDED:
        blank = load_lane(p.bound, k, lane) == 0.0
    for r in range(at, load(p.block_start, k + 1)):
        blank = blank and load_lane(p.a, r * stride + r, lane) == 0.0 and load_lane(p.b, r, lane) == 0.0
    return blank and load(p.block_kind, k) != LAW


@kernel
def take_block(p, s, one, answer, alone, k, block, row, lane):
    """Copy block k of a lane to the single problem."""
    at = load(p.block_start, k)
    store(one.block_kind, block, load(p.block_kind, k))
    store(one.block_start, block, row)
    store(one.bound, block, load_lane(p.bound, k, lane))
    normal = load_lane(p.normal, k, lane)
    if normal > 0:  # of a contact, whose block comes before
        normal = load(alone.place, normal - 1) + 1
    store(one.normal, block, normal)
    store(one.local, block, load_lane(p.local, k, lane))
    store(one.law_left, block, load_lane(p.law_left, k, lane))
    store(one.law_right, block, load_lane(p.law_right, k, lane))
    store(answer.slip, block, load_lane(s.slip, k, lane))
    for r in range(load(p.block_start, k + 1) - at):
        store(alone.row, row + r, at + r)
        store(alone.place, at + r, row + r)
        store(one.block_row, row + r, row + r)
        store(one.b, row + r, load_lane(p.b, at + r, lane))
        store(one.lo, row + r, load_lane(p.lo, at + r, lane))
        store(one.hi, row + r, load_lane(p.hi, at + r, lane))
        store(one.scale, row + r, load_lane(p.scale, at + r, lane))
        store(answer.lam, row + r, load_lane(s.lam, at + r, lane))


@kernel
def take_law(p, one, k, block, vertices, lane):
    """Copy the vertices of a block's law; returns the next free place."""
    store(one.law_start, block, vertices)
    for i in range(load(p.law_start, k), load(p.law_start, k + 1)):
        store(one.law_lam, vertices, load_lane(p.law_lam, i, lane))
        store(one.law_w, vertices, load_lane(p.law_w, i, lane))
        vertices += 1
    return vertices


@kernel
def take_matrix(half, one, alone, n, lane):
    """Copy A of a lane, without rows of other lanes, from the half that sweeps have packed."""
    across = (n + GROUP - 1) // GROUP * GROUP
    store(one.stride, 0, across)
    for i in range(n):
        row = load(alone.row, i)
        first, at = row * (row + 1) // 2, i * across
        for j in range(i + 1):
            number = load_lane(half, first + load(alone.row, j), lane)
            store(one.a, at + j, number)
            store(one.a, j * across + i, number)
        for j in range(n, across):
            store(one.a, at + j, zero(load(one.a, at)))


@kernel
def take_lane(p, s, half, one, answer, alone, lane):
    """Copy the problem of a lane, with its multipliers."""
    row, block, vertices = 0, 0, 0
    for k in range(load(p.n_blocks, 0)):
        if not is_blank(p, k, lane):
            take_block(p, s, one, answer, alone, k, block, row, lane)
            vertices = take_law(p, one, k, block, vertices, lane)
            row, block = row + load(p.block_start, k + 1) - load(p.block_start, k), block + 1
    store(one.block_start, block, row)
    store(one.law_start, block, vertices)
    store(one.n_rows, 0, row)
    store(one.n_blocks, 0, block)
    take_matrix(half, one, alone, row, lane)
    store(answer.tolerance, 0, load_lane(s.tolerance, 0, lane))
    store(answer.best_residual, 0, spread(inf, load(answer.tolerance, 0)))
    store(answer.sweeps, 0, load_lane(s.sweeps, 0, lane))
    store(answer.most_sweeps, 0, load_lane(s.most_sweeps, 0, lane))
    store(answer.work, 0, load_lane(s.work, 0, lane))
    store(answer.most_work, 0, load_lane(s.most_work, 0, lane))
    store(answer.newton_work, 0, load_lane(s.newton_work, 0, lane))


@kernel
def give_back(s, n, one, answer, newton, alone, lane):
    """Copy the results to the lane."""
    for i in range(load(one.n_rows, 0)):
        store_lane(s.lam, load(alone.row, i), lane, load(answer.lam, i))
    store_lane(s.residual, 0, lane, load(answer.residual, 0))
    store_lane(s.sweeps, 0, lane, load(answer.sweeps, 0))
    store_lane(s.work, 0, lane, load(answer.work, 0))
    store_lane(s.newton_work, 0, lane, load(answer.newton_work, 0))
    store_lane(s.status, 0, lane, load(answer.status, 0))
    store_lane(n.steps, 0, lane, load_lane(n.steps, 0, lane) + load(newton.steps, 0))


@kernel
def solve_alone(one, answer, newton, sweeps, every, most):
    """Solve the problem of a lane from its present multipliers; if that fails, from zero."""
    swept, worked = load(answer.sweeps, 0), load(answer.work, 0)
    most_swept, most_worked = load(answer.most_sweeps, 0), load(answer.most_work, 0)
    store(answer.most_sweeps, 0, swept + (most_swept - swept) * FIRST_SHARE)
    store(answer.most_work, 0, worked + (most_worked - worked) * FIRST_SHARE)
    solve(one, answer, newton, sweeps, every, most)
    store(answer.most_sweeps, 0, most_swept)
    store(answer.most_work, 0, most_worked)
    if load(answer.residual, 0) > load(answer.tolerance, 0):
        steps = load(newton.steps, 0)
        for r in range(load(one.n_rows, 0)):  # the best ones so far are kept
            store(answer.lam, r, zero(load(answer.lam, r)))
        solve(one, answer, newton, sweeps, every, most)
        store(newton.steps, 0, load(newton.steps, 0) + steps)


@kernel
def measure(p, s, n):
    """Measure all lanes; returns those within their tolerance."""
    weigh(p, s, n)
    store(s.residual, 0, look(p, s, n))
    return load(s.residual, 0) <= load(s.tolerance, 0)


@kernel
def own_square(p, s):
    """Products of a sweep over the rows of each lane, without blank rows, so that they do not depend on neighbours."""
    count = zero(load(s.work, 0))
    for r in range(load(p.n_rows, 0)):
        count = count + select(load(p.a, r * load(p.stride, 0) + r) > 0.0, zero(count) + 1.0, zero(count))
    return count * count


@kernel
def solve_lanes(p, s, n, one, answer, newton, alone, sweeps, every, most):
    """Multipliers of every lane: accelerated PGS, then `newton_kernels.solve` for the lanes that are unsolved."""
    none = zero(load(s.tolerance, 0))
    store(n.steps, 0, none)
    store(s.status, 0, none + SOLVED)
    prepare(p, n)
    done = measure(p, s, n)
    if most > 0 and any_lane(~done):
        swept = load(s.sweeps, 0)
        glide(p, s, n, done, SWEEPS)
        store(s.work, 0, load(s.work, 0) + own_square(p, s) * (load(s.sweeps, 0) - swept))
        done = measure(p, s, n)
    for lane in range(n.lanes):
        if not get_lane(done, lane):
            take_lane(p, s, n.matrix, one, answer, alone, lane)
            solve_alone(one, answer, newton, sweeps, every, most)
            give_back(s, n, one, answer, newton, alone, lane)
    return n.lanes


SOLVE_LANES = entry(
    solve_lanes,
    *(ROWS, ANSWER, NEWTON),  # lanes of problems, then a single one
    *(At(view, single) for view in (ROWS, ANSWER, NEWTON, ALONE)),
    extra=("int64", "int64", "int64"),
)
