"""Projected Gauss-Seidel: kernels. The same source compiles for one problem in float64, and for 8 or 16 in lanes.

Blocks are visited in order. Each is put on its own law while the others are fixed, and its change is propagated at
once: to the residuals w (a column of A), or to v = M⁻¹Jᵀλ if A = J M⁻¹ Jᵀ is not formed. In lanes the problems share
the structure (kinds, rows, zero columns); all numbers are their own. A problem with fewer rows leaves slots empty: zero
in A, b, lo and hi. A lane that is done is frozen: its bits never depend on its neighbours'.
"""

from __future__ import annotations

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import (
    Count,
    Index,
    Int,
    Real,
    View,
    gather_where,
    group_size,
    load,
    load_group,
    store,
    store_group,
    store_where,
)
from poise.kernel.scalars import all_lanes, any_lane, fabs, maximum, select, zero
from poise.kernel.vec import Sym3, Vec3, dot
from poise.solve.block_kernels import clip, dilation, in_ball, in_cone, length, solve_ball, solve_cone, solve_law
from poise.solve.matrix_free_kernels import push_bodies, speed_of_bodies

DENSE, SPARSE, FACTORS, BODIES = range(4)
"""Storage of A: dense, sparse, or as J and M⁻¹Jᵀ, these dense or by the bodies of rows. From FACTORS on A is not
formed."""
BOUNDED, LAW, BALL, WIDE_BALL, PYRAMID, CONE = range(6)
"""Kinds of blocks. Balls of more than three rows are wide: they take gradient steps, others are solved exactly."""
REFRESH = 16
"""Checks after which w (or v), which is otherwise updated by differences, is recomputed."""

ROWS = View(
    "Rows",
    n_rows=Index,  # (1)
    stride=Index,  # (1) from one column of A to the next, if dense
    n_coordinates=Count,  # length of v
    n_blocks=Index,  # (1)
    storage=Count,
    n_relaxed=Count,  # 0 if ω is 1
    omega=Real,  # (1) relaxation
    block_kind=Index,
    block_start=Index,  # (n_blocks + 1) into block_row
    block_row=Index,
    column_start=Index,  # (n_rows + 1) into column_row, if sparse; into the parts of rows, if they act on bodies
    column_row=Index,  # or bodies
    a=Real,  # columns of A one after another, softness included
    J=Real,  # rows of J one after another; six numbers for each part of a row
    response=Real,  # columns of M⁻¹Jᵀ in the same order
    b=Real,
    cfm=Real,  # beside J only
    lo=Real,
    hi=Real,
    scale=Real,  # diagonal of A; 1 where it is zero
    local=Sym3,  # a block's own part of A; of a wide ball a bound on its eigenvalues
    bound=Real,  # of a block: μ, or radius
    normal=Int,  # of a ball: 1 + row whose multiplier times the bound is the radius, 0 if the bound is the radius
    law_start=Index,  # (n_blocks + 1) vertices of a block's law
    law_lam=Real,
    law_w=Real,
    law_left=Real,  # compliances of the end rays, of each block
    law_right=Real,
)

ANSWER = View(
    "Answer",
    lam=Real,
    w=Real,
    v=Real,
    goal=Real,  # new multipliers of a block
    slip=Real,  # of each cone: −w_t / λ_t at its last visit
    best=Real,  # multipliers with the least natural residual so far
    best_residual=Real,
    residual=Real,
    merit=Real,  # sum of squares of natural residuals, each over its row's scale
    tolerance=Real,  # in units of w
    sweeps=Real,
    most_sweeps=Real,  # limit at which a search ends, solved or not
    work=Real,  # multiply-adds; those of an elimination count NEWTON_COST each
    most_work=Real,
    newton_work=Real,  # the part of Newton's method
    status=Real,  # SOLVED, STALLED or CAPPED
)

SOLVED, STALLED, CAPPED = 0.0, 1.0, 2.0
"""Ends of a search: within its tolerance; without progress; at a limit of sweeps or work."""


# ---- the rest of the system ------------------------------------------------------------------------------------------


@kernel
def fetch(p, s, r):
    """Update w of a row if it is not stored."""
    if p.storage >= FACTORS:
        w = load(p.b, r) + load(p.cfm, r) * load(s.lam, r)
        if p.storage == BODIES:
            store(s.w, r, w + speed_of_bodies(p, s, r))
        else:
            n = p.n_coordinates
            at = r * n
            even, odd = zero(w), zero(w)
            for j in range(n // 2):
                even = even + load(p.J, at + 2 * j) * load(s.v, 2 * j)
                odd = odd + load(p.J, at + 2 * j + 1) * load(s.v, 2 * j + 1)
            if n % 2 == 1:
                even = even + load(p.J, at + n - 1) * load(s.v, n - 1)
            store(s.w, r, w + (even + odd))


@kernel
def push(p, s, r, change):
    """Propagate the change of a row's multiplier."""
    if p.storage == DENSE:
        at = r * load(p.stride, 0)
        for i in range(0, load(p.n_rows, 0), group_size(s.w)):
            store_group(s.w, i, load_group(s.w, i) + load_group(p.a, at + i) * change)
    elif p.storage == SPARSE:
        for k in range(load(p.column_start, r), load(p.column_start, r + 1)):
            i = load(p.column_row, k)
            store(s.w, i, load(s.w, i) + load(p.a, k) * change)
    elif p.storage == BODIES:
        push_bodies(p, s, r, change)
    else:
        at = r * p.n_coordinates
        for i in range(p.n_coordinates):
            store(s.v, i, load(s.v, i) + load(p.response, at + i) * change)


@kernel
def push_three(p, s, x, y, z, change):
    """Propagate the changes of three rows at once, for a dense A."""
    stride = load(p.stride, 0)
    x, y, z = x * stride, y * stride, z * stride
    for i in range(0, load(p.n_rows, 0), group_size(s.w)):
        w = load_group(s.w, i) + load_group(p.a, x + i) * change.x
        store_group(s.w, i, w + load_group(p.a, y + i) * change.y + load_group(p.a, z + i) * change.z)


@kernel
def refresh(p, s, mask):
    """Compute w (or v) from the multipliers, in the lanes of a mask."""
    if p.storage == DENSE:
        if any_lane(mask):
            multiply(p, s, mask)
        return
    if p.storage >= FACTORS:
        for i in range(p.n_coordinates):
            store_where(s.v, i, zero(load(s.v, i)), mask)
    else:
        for r in range(load(p.n_rows, 0)):
            store_where(s.w, r, load(p.b, r), mask)
    for r in range(load(p.n_rows, 0)):
        lam = load(s.lam, r)
        push(p, s, r, select(mask, lam, zero(lam)))


@kernel
def multiply(p, s, mask):
    """W = A λ + b for a dense A, in the lanes of a mask; column after column, as `push`. Two groups are computed
    together, to hide the latency of each sum.
    """
    n, stride, step = load(p.n_rows, 0), load(p.stride, 0), group_size(s.w)
    for i in range(0, n, 2 * step):
        also = min(i + step, (n - 1) // step * step)
        one, two = load_group(p.b, i), load_group(p.b, also)
        for r in range(n):
            lam = load(s.lam, r)
            one = one + load_group(p.a, r * stride + i) * lam
            two = two + load_group(p.a, r * stride + also) * lam
        store_group(s.w, also, select(mask, two, load_group(s.w, also)))
        store_group(s.w, i, select(mask, one, load_group(s.w, i)))


# ---- new multipliers of a block --------------------------------------------------------------------------------------


@kernel
def aim_row(p, s, r, lo, hi):
    """KOK §6: λ − ω w / A_rr, clamped to its bounds."""
    step = load(s.w, r) / load(p.scale, r)
    store(s.goal, r, clip(load(s.lam, r) - load(p.omega, 0) * step, lo, hi))


@kernel
def aim_law(p, s, k, r):
    """The point at which the row's own line meets its law."""
    lam, scale = load(s.lam, r), load(p.scale, r)
    goal = solve_law(p, k, scale, load(s.w, r) - scale * lam)
    if p.n_relaxed > 0:
        goal = clip(lam + load(p.omega, 0) * (goal - lam), load(p.lo, r), load(p.hi, r))
    store(s.goal, r, goal)


@kernel
def load_three(p, buffer, at, size):
    """A number of each row of a block; zero for rows that it lacks."""
    x = load(buffer, load(p.block_row, at))
    y, z = zero(x), zero(x)
    if size > 1:
        y = load(buffer, load(p.block_row, at + 1))
    if size > 2:
        z = load(buffer, load(p.block_row, at + 2))
    return Vec3(x, y, z)


@kernel
def radius_of(p, s, k):
    """Radius of a ball: a number, or a multiple of the present multiplier of a normal row."""
    bound, normal = load(p.bound, k), load(p.normal, k)
    lam = gather_where(s.lam, normal - 1, normal > 0)
    return select(normal > 0, bound * maximum(lam, zero(lam)), bound)


@kernel
def aim_three(p, s, k, at, size, done):
    """A cone, or a ball of up to three rows: solved exactly, then projected back if ω overshoots. The slips of lanes
    that are done stay.
    """
    old, w = load_three(p, s.lam, at, size), load_three(p, s.w, at, size)
    a, bound = load(p.local, k), load(p.bound, k)
    cone = load(p.block_kind, k) == CONE
    if not cone:
        bound = radius_of(p, s, k)
    if cone:
        lam, alpha = solve_cone(a, w - a @ old, bound, load(s.slip, k))
        store_where(s.slip, k, alpha, ~done)  # lanes that are done keep the start that they have without neighbours
    else:
        lam = solve_ball(a, w - a @ old, bound)
    if p.n_relaxed > 0:
        lam = old + (lam - old) * load(p.omega, 0)
        if cone:
            lam = in_cone(lam, bound)
        else:
            lam = in_ball(lam, bound)
    store(s.goal, load(p.block_row, at), lam.x)
    if size > 1:
        store(s.goal, load(p.block_row, at + 1), lam.y)
    if size > 2:
        store(s.goal, load(p.block_row, at + 2), lam.z)


@kernel
def aim_wide_ball(p, s, k, at, size, steepness):
    """λ − w / steepness, projected onto the ball: a gradient step."""
    reach = zero(steepness)
    for i in range(at, at + size):
        r = load(p.block_row, i)
        goal = load(s.lam, r) - load(s.w, r) / steepness
        store(s.goal, r, goal)
        reach = length(reach, goal)
    bound = load(p.bound, k)
    share = select(reach > bound, bound / maximum(reach, bound), zero(reach) + 1.0)
    for i in range(at, at + size):
        r = load(p.block_row, i)
        store(s.goal, r, load(s.goal, r) * share)


@kernel
def move_three(p, s, at, done):
    """Set three rows to their new multipliers, except in lanes that are done."""
    x, y, z = load(p.block_row, at), load(p.block_row, at + 1), load(p.block_row, at + 2)
    old = Vec3(load(s.lam, x), load(s.lam, y), load(s.lam, z))
    new = select(done, old, Vec3(load(s.goal, x), load(s.goal, y), load(s.goal, z)))
    change = new - old
    if any_lane((change.x != 0.0) | (change.y != 0.0) | (change.z != 0.0)):
        store(s.lam, x, new.x)
        store(s.lam, y, new.y)
        store(s.lam, z, new.z)
        push_three(p, s, x, y, z, change)


@kernel
def relax(p, s, k, done):
    """Put a block on its law. The rows of a pyramid are solved one by one: the bounds of the tangents are μ times the
    updated λ_normal (VON §3.5). Nothing changes in the lanes that are done.
    """
    kind, at = load(p.block_kind, k), load(p.block_start, k)
    size = load(p.block_start, k + 1) - at
    rows = size
    if kind == PYRAMID:
        rows = 1
    for first in range(at, at + size, rows):
        for i in range(first, first + rows):
            fetch(p, s, load(p.block_row, i))
        r = load(p.block_row, first)
        if first > at:
            normal = load(s.lam, load(p.block_row, at))
            reach = load(p.bound, k) * maximum(normal, zero(normal))
            aim_row(p, s, r, -reach, reach)
        elif kind in (BOUNDED, PYRAMID):
            aim_row(p, s, r, load(p.lo, r), load(p.hi, r))
        elif kind == LAW:
            aim_law(p, s, k, r)
        elif kind == WIDE_BALL:
            aim_wide_ball(p, s, k, at, size, load(p.local, k).xx)
        else:
            aim_three(p, s, k, at, size, done)
        if rows == 3 and p.storage == DENSE:
            move_three(p, s, first, done)
        else:
            for i in range(first, first + rows):
                r = load(p.block_row, i)
                old = load(s.lam, r)
                new = select(done, old, load(s.goal, r))
                if any_lane(new != old):
                    store(s.lam, r, new)
                    push(p, s, r, new - old)


# ---- residuals of an answer ------------------------------------------------------------------------------------------


@kernel
def worse(worst, change, scale):
    """The larger residual; NaN counts as larger than any number."""
    size = scale * fabs(change)
    return select((size <= worst) | (worst != worst), worst, size)


@kernel
def add_merit(s, change, scale):
    """Add one more natural residual to the merit."""
    store(s.merit, 0, load(s.merit, 0) + scale * change * change)


@kernel
def row_natural(p, s, r, lo, hi, worst):
    """Natural map of a bounded row."""
    lam, scale = load(s.lam, r), load(p.scale, r)
    change = lam - clip(lam - load(s.w, r) / scale, lo, hi)
    add_merit(s, change, scale)
    return worse(worst, change, scale)


@kernel
def largest_scale(p, at, size):
    """The largest diagonal entry of a block's rows."""
    scale = load(p.scale, load(p.block_row, at))
    for i in range(1, size):
        scale = maximum(scale, load(p.scale, load(p.block_row, at + i)))
    return scale


@kernel
def three_natural(p, s, k, at, size, worst):
    """Natural map of a cone (with De Saxcé's correction: μ |w_tangent| is added to w_normal, except if it is steep) or
    of a ball.
    """
    lam, w = load_three(p, s.lam, at, size), load_three(p, s.w, at, size)
    scale, bound = largest_scale(p, at, size), load(p.bound, k)
    if load(p.block_kind, k) == CONE:
        corrected = Vec3(w.x + dilation(bound) * length(w.y, w.z), w.y, w.z)
        change = lam - in_cone(lam - corrected * (1.0 / scale), bound)
    else:
        change = lam - in_ball(lam - w * (1.0 / scale), radius_of(p, s, k))
    store(s.merit, 0, load(s.merit, 0) + scale * dot(change, change))
    return worse(worse(worse(worst, change.x, scale), change.y, scale), change.z, scale)


@kernel
def wide_ball_natural(p, s, k, at, size, worst):
    """Natural map of a ball of many rows."""
    scale = largest_scale(p, at, size)
    aim_wide_ball(p, s, k, at, size, scale)
    for i in range(at, at + size):
        r = load(p.block_row, i)
        change = load(s.lam, r) - load(s.goal, r)
        add_merit(s, change, scale)
        worst = worse(worst, change, scale)
    return worst


@kernel
def block_natural(p, s, k, worst):
    """The largest natural residual so far, with that of a block, whose merit is added to that of the others."""
    kind, at = load(p.block_kind, k), load(p.block_start, k)
    size = load(p.block_start, k + 1) - at
    r = load(p.block_row, at)
    if kind in (BOUNDED, PYRAMID):
        worst = row_natural(p, s, r, load(p.lo, r), load(p.hi, r), worst)
        reach = load(p.bound, k) * maximum(load(s.lam, r), zero(worst))
        for i in range(at + 1, at + size):
            worst = row_natural(p, s, load(p.block_row, i), -reach, reach, worst)
    elif kind == LAW:
        lam, scale = load(s.lam, r), load(p.scale, r)
        goal = solve_law(p, k, scale, load(s.w, r) - scale * lam)
        add_merit(s, lam - goal, scale)
        worst = worse(worst, lam - goal, scale)
    elif kind == WIDE_BALL:
        worst = wide_ball_natural(p, s, k, at, size, worst)
    else:
        worst = three_natural(p, s, k, at, size, worst)
    return worst


@kernel
def natural(p, s):
    """Largest natural residual of all rows and blocks, in units of w (see `residuals.natural_map`), and their merit."""
    worst = zero(load(s.tolerance, 0))
    store(s.merit, 0, worst)
    for r in range(load(p.n_rows, 0)):
        fetch(p, s, r)
    for k in range(load(p.n_blocks, 0)):
        worst = block_natural(p, s, k, worst)
    return worst


@kernel
def measure(p, s, done, anew):
    """Measure the natural residual of the active lanes and save their best multipliers; with `anew`, from a fresh w.

    A residual within the tolerance is measured again with a fresh w before it counts.
    """
    fresh = ~done
    if not anew:
        fresh = fresh & (natural(p, s) <= load(s.tolerance, 0))
    if any_lane(fresh):
        refresh(p, s, fresh)
    residual = natural(p, s)
    better = ~done & (residual < load(s.best_residual, 0))
    store_where(s.residual, 0, residual, ~done)
    if any_lane(better):
        store_where(s.best_residual, 0, residual, better)
        for r in range(load(p.n_rows, 0)):
            store_where(s.best, r, load(s.lam, r), better)


@kernel
def run(p, s, sweeps, every, look):
    """Sweep until every lane is within its tolerance, at most `sweeps` times; measures after every `every` sweeps.

    If `look` is 0, the first multipliers, which may be outside their bounds, do not count as an answer.
    """
    tolerance = load(s.tolerance, 0)
    done = tolerance < 0.0
    for n in range(sweeps + 1):
        if n == 0 and look == 0:
            refresh(p, s, ~done)
        elif n % every == 0 or n == sweeps:
            measure(p, s, done, n % (every * REFRESH) == 0)
            done = load(s.residual, 0) <= tolerance
        if n == sweeps or all_lanes(done):
            break
        for k in range(load(p.n_blocks, 0)):
            relax(p, s, k, done)
        count = load(s.sweeps, 0)
        store(s.sweeps, 0, select(done, count, count + 1.0))


RUN = entry(run, ROWS, ANSWER, extra=("int64", "int64", "int64"))
