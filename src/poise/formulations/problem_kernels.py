"""From rows on a tree to a problem that projected Gauss-Seidel solves in place, and back: no number is copied twice.

A is where `tree.gram` leaves it. A problem is that of an island. Its blocks come kind by kind, as the store has them;
in lanes of worlds all have the same blocks, some of them blank.
"""

from __future__ import annotations

from math import inf

from poise.constraints.row_kernels import stride_of
from poise.constraints.store import BALL, CONTACT, LAW, VERTICES
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
    """Share of its largest diagonal entry that comes on top of a block's own part of A."""
    return constant(NEARNESS * 2.0 ** (1 - precision(like)), like)


# ---- which rows there are --------------------------------------------------------------------------------------------


@kernel
def list_block(p, t, plain, kind, block, row, slot, size):
    """One block: its kind, its rows, their slots."""
    solver_kind = BOUNDED
    if kind == LAW:
        solver_kind = pgs_kernels.LAW
    elif kind == CONTACT:
        solver_kind = CONE
    elif kind == BALL:
        solver_kind = pgs_kernels.BALL
    store(p.block_kind, block, solver_kind)
    store(p.block_start, block, row)
    for k in range(size):
        store(p.block_row, row + k, row + k)
        store(t.slot, row + k, slot + k)
        store(plain.lane_slot, row + k, zero(load(plain.lane_slot, 0)) + (slot + k))


@kernel
def list_island(r, i, t, plain, p, lanes, island):
    """Rows of an island, in the order of the store; what is left of the last group of lanes repeats the last row."""
    row, block, vertices = 0, 0, 0
    for n in range(load(i.block_start, island), load(i.block_start, island + 1)):
        kind, slot = load(i.block_kind, n), load(i.block_slot, n)
        size = stride_of(kind)
        list_block(p, t, plain, kind, block, row, slot, size)
        store(p.law_start, block, vertices)
        if kind == LAW:
            vertices += VERTICES
        row, block = row + size, block + 1
    store(p.block_start, block, row)
    store(p.law_start, block, vertices)
    groups = (row + t.n_lanes - 1) // t.n_lanes
    width = 1
    if t.n_lanes > lanes:  # lanes of rows, of one world
        width = t.n_lanes
        for k in range(row, groups * width):
            store(plain.lane_slot, k, load(plain.lane_slot, row - 1))
    else:
        groups = row
    store(t.n_rows, 0, row)
    store(t.n_groups, 0, groups)
    store(p.n_rows, 0, row)
    store(p.n_blocks, 0, block)
    store(p.stride, 0, groups * width)


# ---- what sort of rows they are --------------------------------------------------------------------------------------


@kernel
def only_pushes(r, slot):
    """Whether a row pushes without end and never pulls."""
    return (load(r.lo, slot) >= 0.0) & (load(r.hi, slot) == inf)


# ---- what they want --------------------------------------------------------------------------------------------------


@kernel
def bending(r, slot, dt):
    """What the error of a row gains in a step beside its velocity at the end, as a speed."""
    return load(r.gamma, slot) * (0.5 * dt)


@kernel
def wanted_speed(r, slot, dt, creep):
    """Row velocity that a row is to have; of what is still apart, the one that closes its gap in a step; both but for
    what the error gains beside it.

    Errors are mended at the speed `creep` at most. Soft rows mend theirs at any speed: it is their spring.
    """
    phi = load(r.phi, slot)
    apart = (load(r.lo, slot) >= 0.0) & (phi > 0.0)
    mend = load(r.erp, slot) * phi * (1.0 / dt)
    mend = select(load(r.cfm, slot) > 0.0, mend, maximum(minimum(mend, creep), -creep))
    return select(apart, phi * (-1.0 / dt), load(r.target, slot) - mend) - bending(r, slot, dt)


@kernel
def soften(r, p, slot, k):
    """Softness on the diagonal of A, and the scale of the row; where there is a diagonal."""
    at = k * load(p.stride, 0) + k
    diagonal = load(p.a, at) + load(r.cfm, slot)
    store(p.a, at, diagonal)
    store(p.scale, k, select(diagonal > 0.0, diagonal, zero(diagonal) + 1.0))
    return diagonal > 0.0


@kernel
def own_part(p, k, row):
    """The block's own part of A, with what makes it invertible."""
    n = load(p.stride, 0)
    x, y, z = row * n + row, (row + 1) * n + row, (row + 2) * n + row
    xx, yy, zz = load(p.a, x), load(p.a, y + 1), load(p.a, z + 2)
    largest = maximum(maximum(xx, yy), zz)
    largest = select(largest > 0.0, largest, zero(largest) + 1.0)
    more = largest * nearness(largest)
    xx = xx + select(xx > 0.0, more, largest)
    yy = yy + select(yy > 0.0, more, largest)
    zz = zz + select(zz > 0.0, more, largest)
    store(p.local, k, Sym3(xx, yy, zz, load(p.a, y), load(p.a, z), load(p.a, z + 1)))


@kernel
def even_scales(p, row):
    """Rows of a ball that nothing moves do not count for its scale: they have the largest of the others."""
    n = load(p.stride, 0)
    largest = zero(load(p.scale, row))
    for k in range(row, row + 3):
        largest = maximum(largest, load(p.a, k * n + k))
    for k in range(row, row + 3):
        blank = (load(p.a, k * n + k) <= 0.0) & (largest > 0.0)
        store(p.scale, k, select(blank, largest, load(p.scale, k)))


@kernel
def lay_law(r, p, k, number, dt):
    """The law of a number in the store, in impulses."""
    at, home = load(p.law_start, k), number * VERTICES
    for i in range(VERTICES):
        store(p.law_lam, at + i, load(r.law_lam, home + i) * dt)
        store(p.law_w, at + i, load(r.law_w, home + i))
    left, right = load(r.law_left, number), load(r.law_right, number)
    store(p.law_left, k, select(left < 0.0, left, left / dt))
    store(p.law_right, k, select(right < 0.0, right, right / dt))


@kernel
def normal_row(t, p, scaler):
    """1 + row of the contact whose first slot is scaler − 1; 0 where there is none."""
    normal = zero(scaler)
    if any_lane(scaler > 0):
        for k in range(load(p.n_blocks, 0)):
            if load(p.block_kind, k) == CONE:
                row = load(p.block_start, k)
                normal = select(scaler == load(t.slot, row) + 1, zero(scaler) + (row + 1), normal)
    return normal


@kernel
def lay_bounds(r, t, p, k, row, kind, dt):
    """Bounds of a block's rows, as impulses. What nothing can move has no multiplier."""
    slot = load(t.slot, row)
    none = zero(load(p.b, 0))
    moves = load(p.a, row * load(p.stride, 0) + row) > 0.0
    if kind == BOUNDED:
        store(p.lo, row, select(moves, load(r.lo, slot) * dt, none))
        store(p.hi, row, select(moves, load(r.hi, slot) * dt, none))
    else:
        for i in range(row, load(p.block_start, k + 1)):
            store(p.lo, i, spread(-inf, none))
            store(p.hi, i, spread(inf, none))
    if kind == CONE:
        store(p.lo, row, none)
        store(p.bound, k, select(moves, load(r.bound, slot), none))
    elif kind == pgs_kernels.BALL:
        scaler, bound = load(r.scaler, slot), load(r.bound, slot)
        store(p.bound, k, select(scaler > 0, bound, bound * dt))
        store(p.normal, k, normal_row(t, p, scaler))
    elif kind == pgs_kernels.LAW:
        lay_law(r, p, k, slot - load(r.first, LAW), dt)


@kernel
def speed_to_take(r, p, slot, k, b, own, dt):
    """Of the speed that a row has to take away, as much as it can by itself: weak springs far from home want any speed
    at all, motors with a limit any that they are told, and their tolerance would be that of no row.
    """
    speed = select(load(r.cfm, slot) > 0.0, fabs(b) * own / load(p.scale, k), fabs(b))
    most = maximum(load(r.hi, slot), -load(r.lo, slot)) * dt
    return select((most > 0.0) & (most < inf), minimum(speed, most * own), speed)


@kernel
def lay_problem(r, t, plain, p, a, dt, creep, tolerance):
    """All numbers of the problem, and the multipliers that the rows hold to start from."""
    size = zero(load(p.b, 0))
    for k in range(load(p.n_rows, 0)):
        slot = load(t.slot, k)
        own = load(p.a, k * load(p.stride, 0) + k)
        moves = soften(r, p, slot, k)
        b = select(moves, load(plain.speed, k) - wanted_speed(r, slot, dt, creep), zero(own))
        store(p.b, k, b)
        size = maximum(size, speed_to_take(r, p, slot, k, b, own, dt))
        store(a.lam, k, select(moves, load(r.lam, slot), zero(own)))
    for k in range(load(p.n_blocks, 0)):
        kind, row = load(p.block_kind, k), load(p.block_start, k)
        lay_bounds(r, t, p, k, row, kind, dt)
        if kind in (CONE, pgs_kernels.BALL):
            own_part(p, k, row)
            if kind == pgs_kernels.BALL:
                even_scales(p, row)
            store(a.slip, k, zero(size))
    begin(a, select(size > 0.0, size, zero(size) + 1.0) * tolerance)


@kernel
def begin(a, tolerance):
    """Start to count anew."""
    none = zero(tolerance)
    store(a.best_residual, 0, spread(inf, none))
    store(a.residual, 0, spread(inf, none))
    store(a.tolerance, 0, tolerance)
    store(a.sweeps, 0, none)


@kernel
def keep_lam(p, plain, a):
    """The multipliers to the system; lanes of rows beyond the last have none, whoever was there before."""
    for k in range(load(p.n_rows, 0)):
        store(plain.lam, k, load(a.lam, k))
    for k in range(load(p.n_rows, 0), load(p.stride, 0)):
        store(plain.lam, k, zero(load(plain.lam, 0)))


@kernel
def keep_answer(r, t, plain, p, a):
    """The multipliers to the rows and to the system."""
    for k in range(load(t.n_rows, 0)):
        store(r.lam, load(t.slot, k), load(a.lam, k))
    keep_lam(p, plain, a)
