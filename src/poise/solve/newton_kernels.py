"""Sweeps, and Newton's method on the natural map between them: kernels, for one problem and for lanes of problems.

The method is that of `newton`: the natural map is made of smooth pieces, and a step solves the linear system of the
pieces that the rows are on. Sweeps find the pieces, a few steps the multipliers on them. As pieces may make a singular
system, rows are held softly where they are (a proximal point step, Rockafellar 1976), more softly after each step that
leads down. A step that does not is shortened, then taken back, and sweeps go on.

Blocks of other kinds than bounds and cones stay where they are in a step. A is stored whole.
"""

from __future__ import annotations

from poise.kernel.buffers import GROUP
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import (
    Block,
    Count,
    Index,
    Real,
    View,
    Width,
    group_size,
    load,
    load_group,
    store,
    store_group,
    store_where,
    sum_group,
)
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, zero
from poise.kernel.vec import Sym3, Vec3
from poise.solve.local_kernels import clip, in_cone, least, length
from poise.solve.pgs_kernels import ANSWER, BOUNDED, CONE, ROWS, largest_scale, load_three, measure, natural, relax
from poise.solve.pgs_kernels import refresh as find_residuals

SOFTNESS = (1e-2, 1e-1, 1e-3, 1e-5)
"""How softly rows are held where they are, of their diagonal: one after another, when steps do not lead down."""
LOOSER, LOOSEST = 0.1, 1e-10
"""What is left of the softness after a step down, and its least."""
FOUR = 4
"""Lines that are taken from others at once."""
TRIES, SHORTER = 5, 0.5
"""Tries of a step, each shorter than the one before."""
DOWN = 0.02
"""Share of the merit that a whole step must take away at least."""
STEPS = 6
"""Between two rounds of sweeps, at most."""
FEW_ROWS = 9
"""With so many, sweeps come first."""
ROUNDS, AT_ONCE = 6, 64
"""Of sweeps and steps from one beginning, before another; and sweeps at once at most."""
STUCK = 1e-4
"""Natural residual, of the largest |b|, above which rounds that go on may be in vain."""

NEWTON = View(
    "Newton",
    lanes=Count,  # problems
    n_active=Index,  # (1) rows of the linear system
    across=Index,  # (1) from one row of the matrix to the next
    row=Index,  # which they are
    matrix=Real,
    right=Real,  # what steps are to do, of all rows; then of the system's lines
    known=Real,  # steps of the system's lines
    step=Real,  # of all multipliers
    shift=Real,  # what the steps of rows at bounds do to w
    kept=Real,  # multipliers before a step
    swept=Real,  # and before all steps since the last sweep
    softness=Real,  # (1)
    fails=Real,  # (1) steps that have not led down, from 0 to 3 and again
    steps=Real,  # (1) that have led down
)


def newton_block(width: Width, rows: int) -> Block:
    """Room for so many rows."""
    sizes = dict.fromkeys(("row", "step", "shift", "kept", "swept"), rows) | {"right": rows, "known": rows + GROUP}
    one = dict.fromkeys(("n_active", "across", "softness", "fails", "steps"), 1)
    return NEWTON.block(width, lanes=width.lanes, matrix=rows * (rows + 2 * GROUP), **sizes, **one)


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
                for i in range(0, rows, group_size(n.shift)):
                    store_group(n.shift, i, load_group(n.shift, i) + load_group(p.a, r * stride + i) * change)


@kernel
def pick_row(p, n, i, r):
    """Line i of the system as far as it is row r of A, with what rows at bounds do to it in the last column."""
    active, across, at = load(n.n_active, 0), load(n.across, 0), r * load(p.stride, 0)
    if active == load(p.n_rows, 0):
        for j in range(0, active, group_size(n.matrix)):
            store_group(n.matrix, i * across + j, load_group(p.a, at + j))
    else:
        for j in range(active):
            store(n.matrix, i * across + j, load(p.a, at + load(n.row, j)))
    store(n.matrix, i * across + active, load(n.shift, r))
    for j in range(active + 1, across):
        store(n.matrix, i * across + j, zero(load(n.softness, 0)))


@kernel
def end_row(n, i, r):
    """The last column of line i, row r: what the step is to do, less what rows at bounds do."""
    at = i * load(n.across, 0) + load(n.n_active, 0)
    store(n.matrix, at, load(n.right, r) - load(n.matrix, at))


@kernel
def lay_row(p, n, i, r, free, scale, softness):
    """Line i of the system, row r: free A + (1 − free) scale; `free` is 0 or 1."""
    across = load(n.across, 0)
    pick_row(p, n, i, r)
    if n.lanes > 1:  # else all are free
        for j in range(across):
            store(n.matrix, i * across + j, load(n.matrix, i * across + j) * free)
    end_row(n, i, r)
    add_entry(n, i * across + i, scale * (1.0 - free + softness))


@kernel
def lay_cone(p, s, n, i, k, at, softness):
    """Lines i, i + 1 and i + 2 of the system: a cone."""
    mu, scale = load(p.bound, k), largest_scale(p, at, 3)
    _, aim, u, v = cone_aim(p, s, k, at)
    f = cone_slope(aim, mu)
    across = load(n.across, 0)
    pick_row(p, n, i, at)
    pick_row(p, n, i + 1, at + 1)
    pick_row(p, n, i + 2, at + 2)
    x, y, z = i * across, (i + 1) * across, (i + 2) * across
    u, v = u * mu, v * mu
    for j in range(0, across, group_size(n.matrix)):
        ay, az = load_group(n.matrix, y + j), load_group(n.matrix, z + j)
        felt = f @ Vec3(load_group(n.matrix, x + j) + u * ay + v * az, ay, az)
        store_group(n.matrix, x + j, felt.x)
        store_group(n.matrix, y + j, felt.y)
        store_group(n.matrix, z + j, felt.z)
    end_row(n, i, at)
    end_row(n, i + 1, at + 1)
    end_row(n, i + 2, at + 2)
    held = 1.0 + softness
    add_entry(n, x + i, scale * (held - f.xx))
    add_entry(n, x + i + 1, -(scale * f.xy))
    add_entry(n, x + i + 2, -(scale * f.xz))
    add_entry(n, y + i, -(scale * f.xy))
    add_entry(n, y + i + 1, scale * (held - f.yy))
    add_entry(n, y + i + 2, -(scale * f.yz))
    add_entry(n, z + i, -(scale * f.xz))
    add_entry(n, z + i + 1, -(scale * f.yz))
    add_entry(n, z + i + 2, scale * (held - f.zz))


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
    store(n.across, 0, (active + GROUP) // GROUP * GROUP)
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
def inverse_of(pivot):
    """1 / pivot; 1 where there is none."""
    return 1.0 / select(fabs(pivot) > least(pivot), pivot, zero(pivot) + 1.0)


@kernel
def take_away(n, i, k, first, across):
    """A share of line k, whose pivot is inverted, from line i."""
    at, x = i * across, k * across
    share = load(n.matrix, at + k) * load(n.matrix, x + k)
    for j in range(first, across, group_size(n.matrix)):
        store_group(n.matrix, at + j, load_group(n.matrix, at + j) - share * load_group(n.matrix, x + j))


@kernel
def factor_few(n, k, end, first, across):
    """Lines k and on, less than four: each is taken from those after it."""
    for i in range(k, end):
        store(n.matrix, i * across + i, inverse_of(load(n.matrix, i * across + i)))
        for j in range(i + 1, end):
            take_away(n, j, i, first, across)


@kernel
def factor_four(n, k, first, across):
    """Lines k to k + 3: each is taken from those after it. Their own 4 × 4 entries go first, so that no line waits for
    another one to be written.
    """
    m, x, y, z, w = n.matrix, k * across, (k + 1) * across, (k + 2) * across, (k + 3) * across
    a, b, c = load(m, x + k + 1), load(m, x + k + 2), load(m, x + k + 3)
    one = inverse_of(load(m, x + k))
    p = load(m, y + k) * one
    two = inverse_of(load(m, y + k + 1) - p * a)
    d, e = load(m, y + k + 2) - p * b, load(m, y + k + 3) - p * c
    q = load(m, z + k) * one
    r = (load(m, z + k + 1) - q * a) * two
    three = inverse_of(load(m, z + k + 2) - q * b - r * d)
    f = load(m, z + k + 3) - q * c - r * e
    s = load(m, w + k) * one
    t = (load(m, w + k + 1) - s * a) * two
    u = (load(m, w + k + 2) - s * b - t * d) * three
    four = inverse_of(load(m, w + k + 3) - s * c - t * e - u * f)
    for j in range(first, across, group_size(m)):
        i = load_group(m, x + j)
        g = load_group(m, y + j) - p * i
        h = load_group(m, z + j) - q * i - r * g
        store_group(m, y + j, g)
        store_group(m, z + j, h)
        store_group(m, w + j, load_group(m, w + j) - s * i - t * g - u * h)
    store(m, x + k, one)
    store(m, y + k + 1, two)
    store(m, z + k + 2, three)
    store(m, w + k + 3, four)


@kernel
def shares(n, at, k, x, y, z, w):
    """Of lines k to k + 3, that a line is to lose."""
    a = load(n.matrix, at + k) * load(n.matrix, x + k)
    b = (load(n.matrix, at + k + 1) - a * load(n.matrix, x + k + 1)) * load(n.matrix, y + k + 1)
    c = load(n.matrix, at + k + 2) - a * load(n.matrix, x + k + 2) - b * load(n.matrix, y + k + 2)
    c = c * load(n.matrix, z + k + 2)
    d = load(n.matrix, at + k + 3) - a * load(n.matrix, x + k + 3) - b * load(n.matrix, y + k + 3)
    return a, b, c, (d - c * load(n.matrix, z + k + 3)) * load(n.matrix, w + k + 3)


@kernel
def take_four(n, i, also, k, first, across):
    """Shares of lines k to k + 3 from two lines, which may be one and the same. All are read and written once."""
    x, y, z, w, at, to = k * across, (k + 1) * across, (k + 2) * across, (k + 3) * across, i * across, also * across
    a, b, c, d = shares(n, at, k, x, y, z, w)
    e, f, g, h = shares(n, to, k, x, y, z, w)
    for j in range(first, across, group_size(n.matrix)):
        one, two = load_group(n.matrix, x + j), load_group(n.matrix, y + j)
        three, four = load_group(n.matrix, z + j), load_group(n.matrix, w + j)
        left = load_group(n.matrix, at + j) - a * one - b * two
        other = load_group(n.matrix, to + j) - e * one - f * two
        store_group(n.matrix, at + j, left - c * three - d * four)
        store_group(n.matrix, to + j, other - g * three - h * four)


@kernel
def eliminate(n):
    """Solve the system, without a choice of pivots: rows are held by their softness. Steps go to `step`.

    Lines begin and end at whole groups: what is to the left of a pivot does not count any more, and may be anything.
    """
    active, across = load(n.n_active, 0), load(n.across, 0)
    for k in range(0, active, FOUR):
        end, first = k + FOUR, k // GROUP * GROUP
        if end > active:
            factor_few(n, k, active, first, across)
        else:
            factor_four(n, k, first, across)
            for i in range(end, active, 2):
                take_four(n, i, min(i + 1, active - 1), k, first, across)
    for k in range(active):
        store(n.right, k, load(n.matrix, k * across + active))
    few = GROUP
    if n.lanes > 1:  # sums do not depend on where rows are: neighbours have blank ones between
        few = max(active, 1)
    for back in range((active - 1) // few + 1):
        first = (active - 1) // few * few - back * few
        solve_back(n, first, min(first + few, active), across)


@kernel
def solve_back(n, first, end, across):
    """Steps of a few lines, the last one first; those after them are known."""
    active = load(n.n_active, 0)
    for k in range(first, end):
        if end < active:
            sum = load_group(n.matrix, k * across + end) * load_group(n.known, end)
            for j in range(end + group_size(n.known), active, group_size(n.known)):
                sum = sum + load_group(n.matrix, k * across + j) * load_group(n.known, j)
            store(n.right, k, load(n.right, k) - sum_group(n.known, sum))
    for down in range(end - first):
        k = end - 1 - down
        step = load(n.right, k)
        for back in range(down):
            step = step - load(n.matrix, k * across + end - 1 - back) * load(n.known, end - 1 - back)
        step = step * load(n.matrix, k * across + k)
        store(n.known, k, step)
        store(n.step, load(n.row, k), step)
    if end == active:
        for k in range(group_size(n.known) - 1):  # the last group is full
            store(n.known, end + k, zero(load(n.known, 0)))


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
    start = load(s.merit, 0)
    for r in range(load(p.n_rows, 0)):
        store(n.kept, r, load(s.lam, r))
    find_pieces(p, s, n)
    lay_system(p, s, n)
    eliminate(n)
    left, tries, wanted = moving, 0, DOWN
    while tries < TRIES and any_lane(left):
        go(p, s, n, left)
        residual = natural(p, s)
        down = left & (load(s.merit, 0) < (1.0 - wanted) * start)
        store_where(s.residual, 0, residual, down)
        left = left & ~down
        for r in range(load(p.n_rows, 0)):
            store(n.step, r, load(n.step, r) * SHORTER)
        tries, wanted = tries + 1, wanted * SHORTER
    if any_lane(left):
        go_back(p, s, n, left)
        store_where(s.merit, 0, start, left)
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
def sweep(p, s, done):
    """Put every block on its law, one after another."""
    for k in range(load(p.n_blocks, 0)):
        relax(p, s, k, done)
    count = load(s.sweeps, 0)
    store(s.sweeps, 0, select(done, count, count + 1.0))


@kernel
def step_on(p, s, n, done, most):
    """Steps as long as they lead down, `most` at most: the lanes that are within their tolerance, or were."""
    moving, steps = ~done, 0
    while steps < most and any_lane(moving):
        moving = step_down(p, s, n, moving)
        count = load(n.steps, 0)
        store(n.steps, 0, select(moving, count + 1.0, count))
        keep_best(p, s, moving)
        done = done | (moving & (load(s.residual, 0) <= load(s.tolerance, 0)))
        moving = moving & ~done
        steps += 1
    return done


@kernel
def hold_firmly(n, like, mask):
    """Steps as at the beginning, in the lanes of a mask."""
    store_where(n.softness, 0, zero(like) + SOFTNESS[0], mask)
    store_where(n.fails, 0, zero(like), mask)


@kernel
def largest_residual(p):
    """The largest |b|."""
    largest = zero(load(p.b, 0))
    for r in range(load(p.n_rows, 0)):
        largest = maximum(largest, fabs(load(p.b, r)))
    return largest


@kernel
def begin_anew(p, s, n, mask):
    """Nought for multipliers in the lanes of a mask: what is in the way of those at hand may not be in theirs."""
    for r in range(load(p.n_rows, 0)):
        store_where(s.lam, r, zero(load(s.lam, r)), mask)
    hold_firmly(n, load(s.tolerance, 0), mask)
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
    """Steps as long as they lead down, `most` at most, then `every` sweeps, and so on, until every lane is within its
    tolerance; `sweeps` at most.

    Where ROUNDS of that leave it STUCK, it begins anew from nought, and after as many goes on from the best that was
    found. Where a quarter of the sweeps does not help, steps lead back again and again to where sweeps came from: then sweeps
    are more and more at a time, and steps are tries that count where they end.
    """
    tolerance = load(s.tolerance, 0)
    store(n.steps, 0, zero(tolerance))
    hold_firmly(n, tolerance, tolerance == tolerance)
    done = tolerance < 0.0
    measure(p, s, done, True)
    done = load(s.residual, 0) <= tolerance
    many = done | ~has_few_rows(p)
    if not all_lanes(many):
        for _ in range(every):
            sweep(p, s, many)
        measure(p, s, done, True)
        done = load(s.residual, 0) <= tolerance
    swept, rounds = 0, 0
    while not all_lanes(done):
        trying = 4 * swept > sweeps
        if trying:
            keep(p, s.lam, n.swept, ~done)
        done = step_on(p, s, n, done, most)
        if swept >= sweeps or all_lanes(done):
            break
        rounds += 1
        if rounds == ROUNDS:
            begin_anew(p, s, n, ~done & (load(s.best_residual, 0) > STUCK * largest_residual(p)))
        elif rounds == 2 * ROUNDS:
            take_best(p, s)
            find_residuals(p, s, ~done)
        elif trying:
            every = min(2 * every, AT_ONCE)
            keep(p, n.swept, s.lam, ~done)
            find_residuals(p, s, ~done)
        for _ in range(every):
            sweep(p, s, done)
        swept += every
        measure(p, s, done, True)
        done = load(s.residual, 0) <= tolerance
    take_best(p, s)


@kernel
def keep(p, of, to, mask):
    """A number of each row, in the lanes of a mask."""
    for r in range(load(p.n_rows, 0)):
        store_where(to, r, load(of, r), mask)


SOLVE = entry(solve, ROWS, ANSWER, NEWTON, extra=("int64", "int64", "int64"))
