"""Sweeps, and Newton's method on the natural map between them: kernels, for one problem and for lanes of problems.

The method is that of `newton`: the natural map is made of smooth pieces, and a step solves the linear system of the
pieces that the rows are on. Sweeps find the pieces, a few steps the multipliers on them. As pieces may make a singular
system, rows are held softly where they are (a proximal point step, Rockafellar 1976), more softly after each step that
leads down. A step that does not is shortened, then taken back, and sweeps go on.

Blocks of other kinds than bounds and cones stay where they are in a step. A is stored whole.
"""

from __future__ import annotations

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, load, store, store_where
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, zero
from poise.kernel.vec import Sym3, Vec3
from poise.solve.local_kernels import clip, in_cone, least, length
from poise.solve.pgs_kernels import ANSWER, BOUNDED, CONE, ROWS, largest_scale, load_three, measure, natural, relax
from poise.solve.pgs_kernels import refresh as find_residuals

SOFTNESS = (1e-2, 1e-5, 1e-1, 1e-4)
"""How softly rows are held where they are, of their diagonal: one after another, when steps do not lead down."""
LOOSER, LOOSEST = 0.1, 1e-10
"""What is left of the softness after a step down, and its least."""
ROWS_A_SWEEP = 32
"""For each so many rows there is a sweep more before a step, which takes as long as many sweeps then."""
GROUP = 8
"""Numbers that a register holds."""
TRIES, SHORTER = 3, 0.3
"""Tries of a step, each shorter than the one before."""
DOWN = 0.9
"""What a step must leave of the natural residual at most."""
STEPS = 6
"""Between two rounds of sweeps, at most."""

NEWTON = View(
    "Newton",
    lanes=Count,  # problems
    n_active=Index,  # (1) rows of the linear system
    across=Index,  # (1) from one row of the matrix to the next
    row=Index,  # which they are
    matrix=Real,
    right=Real,
    step=Real,  # of all multipliers
    shift=Real,  # what the steps of rows at bounds do to w
    kept=Real,  # multipliers before a step
    softness=Real,  # (1)
    fails=Real,  # (1) steps that have not led down, from 0 to 3 and again
    steps=Real,  # (1) that have led down
)


def newton_block(width: Width, rows: int) -> Block:
    """Room for so many rows."""
    sizes = dict.fromkeys(("row", "right", "step", "shift", "kept"), rows)
    one = dict.fromkeys(("n_active", "across", "softness", "fails", "steps"), 1)
    return NEWTON.block(width, lanes=width.lanes, matrix=rows * (rows + GROUP), **sizes, **one)


# ---- pieces ----------------------------------------------------------------------------------------------------------


@kernel
def row_piece(p, s, r):
    """Of a bounded row: the natural map, and where it is free."""
    lam, scale, lo, hi = load(s.lam, r), load(p.scale, r), load(p.lo, r), load(p.hi, r)
    aim = lam - load(s.w, r) / scale
    return (lam - clip(aim, lo, hi)) * scale, (aim > lo) & (aim < hi)


@kernel
def cone_aim(p, s, k, at):
    """Of a cone: its multipliers, where w with De Saxcé's correction would take them, and the direction of slip."""
    lam, w = load_three(p, s.lam, at, 3), load_three(p, s.w, at, 3)
    mu, scale = load(p.bound, k), largest_scale(p, at, 3)
    speed = length(w.y, w.z)
    inverse = select(speed > 0.0, 1.0 / maximum(speed, least(speed)), zero(speed))
    corrected = Vec3(w.x + mu * speed, w.y, w.z)
    return lam, lam - corrected * (1.0 / scale), w.y * inverse, w.z * inverse


@kernel
def cone_slope(aim, mu):
    """Derivative of the nearest point of the cone."""
    none = zero(mu)
    one = none + 1.0
    slide = length(aim.y, aim.z)
    inside, below = (slide <= mu * aim.x) & (aim.x >= 0.0), mu * slide <= -aim.x
    inverse = 1.0 / maximum(slide, least(slide))
    y, z = aim.y * inverse, aim.z * inverse
    share = 1.0 / (1.0 + mu * mu)
    turn = mu * (aim.x + mu * slide) * inverse
    xx, xy, xz = share, mu * y * share, mu * z * share
    yy = (turn * (1.0 - y * y) + mu * mu * y * y) * share
    zz = (turn * (1.0 - z * z) + mu * mu * z * z) * share
    yz = (mu * mu - turn) * y * z * share
    on = Sym3(xx, yy, zz, xy, xz, yz)
    whole, nothing = Sym3(one, one, one, none, none, none), Sym3(none, none, none, none, none, none)
    return select(below, nothing, select(inside, whole, on))


@kernel
def put_piece(p, n, r, g, scale):
    """The natural map of a row, and the step that it takes if it is at a bound."""
    store(n.right, r, -g)
    store(n.step, r, -g / scale)


@kernel
def list_row(n, r):
    """Take a row into the linear system."""
    count = load(n.n_active, 0)
    store(n.row, count, r)
    store(n.n_active, 0, count + 1)


@kernel
def find_pieces(p, s, n):
    """The natural map, and the rows that are not at a bound; of lanes of problems all rows, so that none depends on
    its neighbours.
    """
    store(n.n_active, 0, 0)
    for k in range(load(p.n_blocks, 0)):
        kind, at, end = load(p.block_kind, k), load(p.block_start, k), load(p.block_start, k + 1)
        if kind == BOUNDED:
            g, free = row_piece(p, s, at)
            put_piece(p, n, at, g, load(p.scale, at))
            if n.lanes > 1 or any_lane(free):
                list_row(n, at)
        elif kind == CONE:
            lam, aim, _, _ = cone_aim(p, s, k, at)
            mu, scale = load(p.bound, k), largest_scale(p, at, 3)
            g = (lam - in_cone(aim, mu)) * scale
            put_piece(p, n, at, g.x, scale)
            put_piece(p, n, at + 1, g.y, scale)
            put_piece(p, n, at + 2, g.z, scale)
            below = mu * length(aim.y, aim.z) <= -aim.x
            if n.lanes > 1 or any_lane(~below):
                list_row(n, at)
                list_row(n, at + 1)
                list_row(n, at + 2)
        else:
            for r in range(at, end):
                put_piece(p, n, r, zero(load(s.w, r)), load(p.scale, r))
                if n.lanes > 1:
                    list_row(n, r)


# ---- the linear system -----------------------------------------------------------------------------------------------


@kernel
def shift_residuals(p, n):
    """What the steps of rows at bounds do to w."""
    rows, stride = load(p.n_rows, 0), load(p.stride, 0)
    for r in range(rows):
        store(n.shift, r, zero(load(n.step, r)))
    next = 0
    for r in range(rows):
        if next < load(n.n_active, 0) and load(n.row, next) == r:
            next += 1
        else:
            change = load(n.step, r)
            if any_lane(change != 0.0):
                for i in range(rows):
                    store(n.shift, i, load(n.shift, i) + load(p.a, r * stride + i) * change)


@kernel
def lay_row(p, n, i, r, free, scale, softness):
    """Line i of the system, row r: free A + (1 − free) scale; `free` is 0 or 1."""
    active, across, at = load(n.n_active, 0), load(n.across, 0), r * load(p.stride, 0)
    for j in range(active):
        store(n.matrix, i * across + j, load(p.a, at + load(n.row, j)) * free)
    end_row(n, i)
    add_entry(n, i * across + i, scale * (1.0 - free + softness))
    store(n.right, r, load(n.right, r) - load(n.shift, r) * free)


@kernel
def lay_cone(p, s, n, i, k, at, softness):
    """Lines i, i + 1 and i + 2 of the system: a cone."""
    mu, scale = load(p.bound, k), largest_scale(p, at, 3)
    _, aim, u, v = cone_aim(p, s, k, at)
    f = cone_slope(aim, mu)
    active, across, stride = load(n.n_active, 0), load(n.across, 0), load(p.stride, 0)
    x, y, z = at * stride, (at + 1) * stride, (at + 2) * stride
    u, v = u * mu, v * mu
    for j in range(active):
        c = load(n.row, j)
        ay, az = load(p.a, y + c), load(p.a, z + c)
        felt = f @ Vec3(load(p.a, x + c) + u * ay + v * az, ay, az)
        store(n.matrix, i * across + j, felt.x)
        store(n.matrix, (i + 1) * across + j, felt.y)
        store(n.matrix, (i + 2) * across + j, felt.z)
    end_row(n, i)
    end_row(n, i + 1)
    end_row(n, i + 2)
    ay, az = load(n.shift, at + 1), load(n.shift, at + 2)
    felt = f @ Vec3(load(n.shift, at) + u * ay + v * az, ay, az)
    store(n.right, at, load(n.right, at) - felt.x)
    store(n.right, at + 1, load(n.right, at + 1) - felt.y)
    store(n.right, at + 2, load(n.right, at + 2) - felt.z)
    held = 1.0 + softness
    add_entry(n, i * across + i, scale * (held - f.xx))
    add_entry(n, i * across + i + 1, -(scale * f.xy))
    add_entry(n, i * across + i + 2, -(scale * f.xz))
    add_entry(n, (i + 1) * across + i, -(scale * f.xy))
    add_entry(n, (i + 1) * across + i + 1, scale * (held - f.yy))
    add_entry(n, (i + 1) * across + i + 2, -(scale * f.yz))
    add_entry(n, (i + 2) * across + i, -(scale * f.xz))
    add_entry(n, (i + 2) * across + i + 1, -(scale * f.yz))
    add_entry(n, (i + 2) * across + i + 2, scale * (held - f.zz))


@kernel
def end_row(n, i):
    """Fill up a row of the matrix."""
    for j in range(load(n.n_active, 0), load(n.across, 0)):
        store(n.matrix, i * load(n.across, 0) + j, zero(load(n.softness, 0)))


@kernel
def add_entry(n, at, x):
    """Add to an entry of the matrix."""
    store(n.matrix, at, load(n.matrix, at) + x)


@kernel
def lay_system(p, s, n):
    """The linear system of the pieces."""
    shift_residuals(p, n)
    softness = load(n.softness, 0)
    i, active = 0, load(n.n_active, 0)
    store(n.across, 0, (active + GROUP - 1) // GROUP * GROUP)
    for k in range(load(p.n_blocks, 0)):
        at = load(p.block_start, k)
        if i < active and load(n.row, i) == at:
            kind, size = load(p.block_kind, k), load(p.block_start, k + 1) - at
            if kind == CONE:
                lay_cone(p, s, n, i, k, at, softness)
            elif kind == BOUNDED:
                _, free = row_piece(p, s, at)
                lay_row(p, n, i, at, select(free, zero(softness) + 1.0, zero(softness)), load(p.scale, at), softness)
            else:
                for j in range(size):
                    lay_row(p, n, i + j, at + j, zero(softness), load(p.scale, at + j), softness)
            i += size


@kernel
def eliminate(n):
    """Solve the system, without a choice of pivots: rows are held by their softness. Steps go to `step`.

    Rows of the matrix begin and end at whole groups of eight, and so do their sums: what is to the left of a pivot does
    not count any more.
    """
    active, across = load(n.n_active, 0), load(n.across, 0)
    for k in range(active):
        pivot = load(n.matrix, k * across + k)
        inverse = 1.0 / select(fabs(pivot) > least(pivot), pivot, zero(pivot) + 1.0)
        right = load(n.right, load(n.row, k))
        first = (k + 1) // GROUP * GROUP
        for i in range(k + 1, active):
            share = load(n.matrix, i * across + k) * inverse
            if any_lane(share != 0.0):
                for j in range(first, across):
                    entry = load(n.matrix, i * across + j)
                    store(n.matrix, i * across + j, entry - share * load(n.matrix, k * across + j))
                store(n.right, load(n.row, i), load(n.right, load(n.row, i)) - share * right)
        store(n.matrix, k * across + k, inverse)
    for down in range(active):
        k = active - 1 - down
        sum = load(n.right, load(n.row, k))
        for j in range(k + 1, active):
            sum = sum - load(n.matrix, k * across + j) * load(n.step, load(n.row, j))
        store(n.step, load(n.row, k), sum * load(n.matrix, k * across + k))


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
    find_residuals(p, s, moving)


@kernel
def go_back(p, s, n, moving):
    """All multipliers to where they were, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, load(n.kept, r), moving)
    find_residuals(p, s, moving)


@kernel
def hold_next(n, down, failed):
    """How softly rows are held in the next step, where the last one led down and where it did not."""
    held, fails = load(n.softness, 0), load(n.fails, 0) + 1.0
    none = zero(held)
    fails = select(fails > 3.5, none, fails)
    store_where(n.fails, 0, fails, failed)
    other = select(fails > 1.5, select(fails > 2.5, none + SOFTNESS[3], none + SOFTNESS[2]), none + SOFTNESS[1])
    other = select(fails > 0.5, other, none + SOFTNESS[0])
    store(n.softness, 0, select(down, maximum(held * LOOSER, none + LOOSEST), select(failed, other, held)))


@kernel
def step_down(p, s, n, moving):
    """A step in the lanes of a mask: those in which it led down. In the others nothing has moved."""
    start = load(s.residual, 0)
    for r in range(load(p.n_rows, 0)):
        store(n.kept, r, load(s.lam, r))
    find_pieces(p, s, n)
    lay_system(p, s, n)
    eliminate(n)
    left, tries = moving, 0
    while tries < TRIES and any_lane(left):
        go(p, s, n, left)
        residual = natural(p, s)
        down = left & (residual < DOWN * start)
        store_where(s.residual, 0, residual, down)
        left = left & ~down
        for r in range(load(p.n_rows, 0)):
            store(n.step, r, load(n.step, r) * SHORTER)
        tries += 1
    if any_lane(left):
        go_back(p, s, n, left)
    hold_next(n, moving & ~left, left)
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
def take_best(p, s):
    """The best multipliers, where the last ones are worse."""
    worse = load(s.best_residual, 0) < load(s.residual, 0)
    if any_lane(worse):
        for r in range(load(p.n_rows, 0)):
            store_where(s.lam, r, load(s.best, r), worse)
        store_where(s.residual, 0, load(s.best_residual, 0), worse)


@kernel
def solve(p, s, n, sweeps, every, most):
    """Sweep some times, `every` at least, then take steps as long as they lead down, `most` at most, and again, until
    every lane is within its tolerance; `sweeps` at most.
    """
    if n.lanes == 1:  # lanes must not depend on how many rows their neighbours have
        every = every + load(p.n_rows, 0) // ROWS_A_SWEEP
    tolerance = load(s.tolerance, 0)
    store(n.steps, 0, zero(tolerance))
    store(n.softness, 0, zero(tolerance) + SOFTNESS[0])
    store(n.fails, 0, zero(tolerance))
    done = tolerance < 0.0
    measure(p, s, done, True)
    done = load(s.residual, 0) <= tolerance
    swept = 0
    while swept < sweeps and not all_lanes(done):
        for _ in range(every):
            for k in range(load(p.n_blocks, 0)):
                relax(p, s, k, done)
            count = load(s.sweeps, 0)
            store(s.sweeps, 0, select(done, count, count + 1.0))
        swept += every
        measure(p, s, done, True)
        done = load(s.residual, 0) <= tolerance
        moving, steps = ~done, 0
        while steps < most and any_lane(moving):
            moving = step_down(p, s, n, moving)
            count = load(n.steps, 0)
            store(n.steps, 0, select(moving, count + 1.0, count))
            keep_best(p, s, moving)
            done = done | (moving & (load(s.residual, 0) <= tolerance))
            moving = moving & ~done
            steps += 1
    take_best(p, s)


SOLVE = entry(solve, ROWS, ANSWER, NEWTON, extra=("int64", "int64", "int64"))
