"""From the rows of an island to a problem that projected Gauss-Seidel solves in place, and back, without extra copies.

The matrix A stays where `delassus_kernels.gram` wrote it. Blocks come kind by kind, in the order of the store; in lanes
of worlds all worlds have the same blocks, some of them blank.
"""

from __future__ import annotations

from math import inf

from poise.constraints.emit_rows import stride_of
from poise.constraints.row_store import BALL, CONTACT, LAW, VERTICES
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Sym3
from poise.solve import pgs_kernels
from poise.solve.pgs_kernels import BOUNDED, CONE

NEARNESS = 512.0
"""See `solve.pgs_pack.NEARNESS`."""


@formula
def nearness(like):
    """Share of its largest diagonal entry that is added to a block's own part of A."""
    return constant(NEARNESS * 2.0 ** (1 - precision(like)), like)


# ---- list of rows ----------------------------------------------------------------------------------------------------


@kernel
def list_block(problem, system, scalar_view, kind, block, row, slot, size):
    """Write one block: its kind, its rows, their slots."""
    solver_kind = BOUNDED
    if kind == LAW:
        solver_kind = pgs_kernels.LAW
    elif kind == CONTACT:
        solver_kind = CONE
    elif kind == BALL:
        solver_kind = pgs_kernels.BALL
    store(problem.block_kind, block, solver_kind)
    store(problem.block_start, block, row)
    for k in range(size):
        store(problem.block_row, row + k, row + k)
        store(system.slot, row + k, slot + k)
        store(scalar_view.lane_slot, row + k, zero(load(scalar_view.lane_slot, 0)) + (slot + k))


@kernel
def list_island(data, lanes, island):
    """List the rows of an island, in the order of the store; the padding of the last group of lanes repeats the last
    row.
    """
    row, block, vertices = 0, 0, 0
    for n in range(load(data.islands.block_start, island), load(data.islands.block_start, island + 1)):
        kind, slot = load(data.islands.block_kind, n), load(data.islands.block_slot, n)
        size = stride_of(kind)
        list_block(data.problem, data.system, data.scalar_view, kind, block, row, slot, size)
        store(data.problem.law_start, block, vertices)
        if kind == LAW:
            vertices += VERTICES
        row, block = row + size, block + 1
    store(data.problem.block_start, block, row)
    store(data.problem.law_start, block, vertices)
    groups = (row + data.system.n_lanes - 1) // data.system.n_lanes
    width = 1
    if data.system.n_lanes > lanes:  # lanes of rows, of one world
        width = data.system.n_lanes
        for k in range(row, groups * width):
            store(data.scalar_view.lane_slot, k, load(data.scalar_view.lane_slot, row - 1))
    else:
        groups = row
    store(data.system.n_rows, 0, row)
    store(data.system.n_groups, 0, groups)
    store(data.problem.n_rows, 0, row)
    store(data.problem.n_blocks, 0, block)
    store(data.problem.stride, 0, groups * width)


# ---- kinds of rows ---------------------------------------------------------------------------------------------------


@kernel
def only_pushes(rows, slot):
    """Whether a row pushes without bound and never pulls."""
    return (load(rows.lo, slot) >= 0.0) & (load(rows.hi, slot) == inf)


# ---- target velocities -----------------------------------------------------------------------------------------------


@kernel
def bending(rows, slot, dt):
    """Change of a row's error in a step besides its velocity at the end, as a speed."""
    return load(rows.gamma, slot) * (0.5 * dt)


@kernel
def wanted_speed(rows, slot, dt, creep):
    """Target velocity of a row; while the gap is open, the velocity that closes it in a step. Both exclude what the
    error gains otherwise (`bending`).

    Errors are corrected at the speed `creep` at most. Soft rows correct theirs at any speed: that is their spring.
    """
    phi = load(rows.phi, slot)
    apart = (load(rows.lo, slot) >= 0.0) & (phi > 0.0)
    mend = load(rows.erp, slot) * phi * (1.0 / dt)
    mend = select(load(rows.cfm, slot) > 0.0, mend, maximum(minimum(mend, creep), -creep))
    return select(apart, phi * (-1.0 / dt), load(rows.target, slot) - mend) - bending(rows, slot, dt)


@kernel
def soften(rows, problem, slot, k):
    """Add the softness to the diagonal of A, and set the scale of the row; returns where the diagonal is positive."""
    at = k * load(problem.stride, 0) + k
    diagonal = load(problem.a, at) + load(rows.cfm, slot)
    store(problem.a, at, diagonal)
    store(problem.scale, k, select(diagonal > 0.0, diagonal, zero(diagonal) + 1.0))
    return diagonal > 0.0


@kernel
def own_part(problem, k, row):
    """The block's own part of A, regularized so that it is invertible."""
    n = load(problem.stride, 0)
    x, y, z = row * n + row, (row + 1) * n + row, (row + 2) * n + row
    xx, yy, zz = load(problem.a, x), load(problem.a, y + 1), load(problem.a, z + 2)
    largest = maximum(maximum(xx, yy), zz)
    largest = select(largest > 0.0, largest, zero(largest) + 1.0)
    more = largest * nearness(largest)
    xx = xx + select(xx > 0.0, more, largest)
    yy = yy + select(yy > 0.0, more, largest)
    zz = zz + select(zz > 0.0, more, largest)
    store(problem.local, k, Sym3(xx, yy, zz, load(problem.a, y), load(problem.a, z), load(problem.a, z + 1)))


@kernel
def even_scales(problem, row):
    """Scales of a ball's rows: rows that nothing moves take the largest of the others."""
    n = load(problem.stride, 0)
    largest = zero(load(problem.scale, row))
    for k in range(row, row + 3):
        largest = maximum(largest, load(problem.a, k * n + k))
    for k in range(row, row + 3):
        blank = (load(problem.a, k * n + k) <= 0.0) & (largest > 0.0)
        store(problem.scale, k, select(blank, largest, load(problem.scale, k)))


@kernel
def lay_law(rows, problem, k, number, dt):
    """Copy a force law from the store, in impulses."""
    at, home = load(problem.law_start, k), number * VERTICES
    for i in range(VERTICES):
        store(problem.law_lam, at + i, load(rows.law_lam, home + i) * dt)
        store(problem.law_w, at + i, load(rows.law_w, home + i))
    left, right = load(rows.law_left, number), load(rows.law_right, number)
    store(problem.law_left, k, select(left < 0.0, left, left / dt))
    store(problem.law_right, k, select(right < 0.0, right, right / dt))


@kernel
def normal_row(system, problem, scaler):
    """1 + row of the contact whose first slot is scaler − 1; 0 if there is none."""
    normal = zero(scaler)
    if any_lane(scaler > 0):
        for k in range(load(problem.n_blocks, 0)):
            if load(problem.block_kind, k) == CONE:
                row = load(problem.block_start, k)
                normal = select(scaler == load(system.slot, row) + 1, zero(scaler) + (row + 1), normal)
    return normal


@kernel
def lay_bounds(rows, system, problem, k, row, kind, dt):
    """Bounds of a block's rows, as impulses. A row that nothing can move has no multiplier."""
    slot = load(system.slot, row)
    none = zero(load(problem.b, 0))
    moves = load(problem.a, row * load(problem.stride, 0) + row) > 0.0
    if kind == BOUNDED:
        store(problem.lo, row, select(moves, load(rows.lo, slot) * dt, none))
        store(problem.hi, row, select(moves, load(rows.hi, slot) * dt, none))
    else:
        for i in range(row, load(problem.block_start, k + 1)):
            store(problem.lo, i, spread(-inf, none))
            store(problem.hi, i, spread(inf, none))
    if kind == CONE:
        store(problem.lo, row, none)
        store(problem.bound, k, select(moves, load(rows.bound, slot), none))
    elif kind == pgs_kernels.BALL:
        scaler, bound = load(rows.scaler, slot), load(rows.bound, slot)
        store(problem.bound, k, select(scaler > 0, bound, bound * dt))
        store(problem.normal, k, normal_row(system, problem, scaler))
    elif kind == pgs_kernels.LAW:
        lay_law(rows, problem, k, slot - load(rows.first, LAW), dt)


@kernel
def speed_to_take(rows, problem, slot, k, b, own, dt):
    """The speed that a row has to remove, limited to what it can remove by itself. Weak springs with large errors, and
    motors with limits, may demand any speed; without the limit they would loosen the tolerance of all rows.
    """
    speed = select(load(rows.cfm, slot) > 0.0, fabs(b) * own / load(problem.scale, k), fabs(b))
    most = maximum(load(rows.hi, slot), -load(rows.lo, slot)) * dt
    return select((most > 0.0) & (most < inf), minimum(speed, most * own), speed)


@kernel
def lay_problem(data, dt, creep, tolerance):
    """Fill the problem, and warm-start the multipliers from the rows."""
    size = zero(load(data.problem.b, 0))
    for k in range(load(data.problem.n_rows, 0)):
        slot = load(data.system.slot, k)
        own = load(data.problem.a, k * load(data.problem.stride, 0) + k)
        moves = soften(data.rows, data.problem, slot, k)
        b = select(moves, load(data.scalar_view.speed, k) - wanted_speed(data.rows, slot, dt, creep), zero(own))
        store(data.problem.b, k, b)
        size = maximum(size, speed_to_take(data.rows, data.problem, slot, k, b, own, dt))
        store(data.answer.lam, k, select(moves, load(data.rows.lam, slot), zero(own)))
    for k in range(load(data.problem.n_blocks, 0)):
        kind, row = load(data.problem.block_kind, k), load(data.problem.block_start, k)
        lay_bounds(data.rows, data.system, data.problem, k, row, kind, dt)
        if kind in (CONE, pgs_kernels.BALL):
            own_part(data.problem, k, row)
            if kind == pgs_kernels.BALL:
                even_scales(data.problem, row)
            store(data.answer.slip, k, zero(size))
    begin(data.answer, select(size > 0.0, size, zero(size) + 1.0) * tolerance)


@kernel
def begin(answer, tolerance):
    """Reset the counters and residuals."""
    none = zero(tolerance)
    store(answer.best_residual, 0, spread(inf, none))
    store(answer.residual, 0, spread(inf, none))
    store(answer.tolerance, 0, tolerance)
    store(answer.sweeps, 0, none)


@kernel
def keep_lam(problem, scalar_view, answer):
    """Copy the multipliers to the system; padding rows get zero."""
    for k in range(load(problem.n_rows, 0)):
        store(scalar_view.lam, k, load(answer.lam, k))
    for k in range(load(problem.n_rows, 0), load(problem.stride, 0)):
        store(scalar_view.lam, k, zero(load(scalar_view.lam, 0)))


@kernel
def keep_answer(data):
    """Copy the multipliers to the rows and to the system."""
    for k in range(load(data.system.n_rows, 0)):
        store(data.rows.lam, load(data.system.slot, k), load(data.answer.lam, k))
    keep_lam(data.problem, data.scalar_view, data.answer)
