"""Linear pieces of the natural map, and the linear system of a Newton step: kernels.

Rows at a bound have steps of their own; the others make a system of contiguous lines, whose last column is the right
side. Lines that are rows of A come first, as A is symmetric: bounded rows, sticking cones, and balls within their
radius, whose multipliers make w zero. Of these lines only the part right of the diagonal is filled. Slipping cones and
balls at their radius follow; a radius changes with the normal multiplier that it depends on.

In lanes of problems the system has the rows that are free in any moving lane, in their own order. In lanes where such a
row is not free, it has no effect: a lane has the same bits for any rows of its neighbours.
"""

from __future__ import annotations

from poise.kernel.buffers import GROUP
from poise.kernel.jit import kernel
from poise.kernel.memory import (
    Block,
    Count,
    Index,
    Real,
    View,
    Width,
    gather_where,
    group_size,
    load,
    load_group,
    store,
    store_group,
)
from poise.kernel.scalars import any_lane, maximum, select, zero
from poise.kernel.vec import Mat3, Vec3, dot, zero3
from poise.solve.block_kernels import clip, cone_region, dilation, in_ball, in_cone, least, length, length3
from poise.solve.cones import STEEP
from poise.solve.pgs_kernels import BALL, BOUNDED, CONE, block_natural, radius_of, worse

NEWTON = View(
    "Newton",
    lanes=Count,  # problems
    n_active=Index,  # (1) rows of the linear system
    n_even=Index,  # (1) of these, the first ones, in which the matrix is symmetric
    across=Index,  # (1) stride of the matrix, from one line to the next
    row=Index,  # (n_active) these rows
    matrix=Real,
    right=Real,  # right sides of the system's lines
    known=Real,  # steps of the system's lines
    change=Real,  # change of each row by the natural map
    free=Real,  # 1 for rows that are not at a bound, else 0; 2 for rows that slip, of one problem
    aim=Vec3,  # of each block that is a cone or a ball: the point that is projected onto it
    way=Real,  # of the first two rows of a cone: the direction of slip
    step=Real,  # of all multipliers
    shift=Real,  # change of w by the steps of rows at bounds
    kept=Real,  # multipliers before a step
    swept=Real,  # multipliers before all steps since the last sweep; in accelerated PGS, those of resting lanes
    # of accelerated PGS
    above=Real,  # contribution to w of a block's rows by rows before the block
    below=Real,  # and by rows after it
    start=Real,  # multipliers at the start of a pair of sweeps
    last=Real,  # and at the end of the pair before
    below_start=Real,  # contribution of these to w of the rows before them
    below_last=Real,
    # of rows of joints, to find redundant ones (`rank`)
    n_joint=Index,  # (1)
    depends=Index,  # (1) 1 if any depends on others, in any lane
    joint=Index,  # these rows
    part=Real,  # 1 if a lane has such a row, else 0
    weight=Real,  # inverse masses of the rows if bodies were free
    own=Real,  # diagonal entries
    open=Real,  # 1 for rows that are not factored yet
    redundant=Real,  # 1 for redundant rows
    turn=Real,  # round in which a row was factored, from 1; 0 if it was not
    blur=Real,  # (1) least pivot, relative to the diagonal, that is not zero
    softness=Real,  # (1)
    allowed=Real,  # (1) merit below which a step is accepted
    steps=Real,  # (1) accepted steps
)


def newton_block(width: Width, rows: int) -> Block:
    """Work arrays for `rows` rows."""
    names = ("row", "change", "free", "aim", "way", "step", "shift", "kept", "swept", "right")
    names = (*names, "joint", "part", "weight", "own", "open", "redundant", "turn")
    sizes = dict.fromkeys((*names, "above", "below", "start", "last", "below_start", "below_last"), rows)
    sizes |= {"known": rows + GROUP}
    one = dict.fromkeys(
        ("n_active", "n_even", "across", "n_joint", "depends", "blur", "softness", "allowed", "steps"), 1
    )
    return NEWTON.block(width, lanes=width.lanes, matrix=rows * (rows + 2 * GROUP), **sizes, **one)


FOUR = 4
"""Lines that are filled at once."""
HOLDS, SLIPS = 1.0, 2.0
"""Values of `free`."""


# ---- pieces ----------------------------------------------------------------------------------------------------------


@kernel
def row_piece(p, s, r):
    """Of a bounded row: its change by the natural map, and where it is free."""
    lam, lo, hi = load(s.lam, r), load(p.lo, r), load(p.hi, r)
    aim = lam - load(s.w, r) / load(p.scale, r)
    return clip(aim, lo, hi) - lam, (aim > lo) & (aim < hi)


@kernel
def cone_scale(p, at):
    """The largest diagonal entry of a cone's rows."""
    return maximum(load(p.scale, at), maximum(load(p.scale, at + 1), load(p.scale, at + 2)))


@kernel
def cone_piece(p, s, n, k, at, scale):
    """Of a cone: its change by the natural map, and masks of lanes where the projection is not 0 and not the identity;
    writes the inputs of `lay_cone`.

    The aim is the point of the natural map, with De Saxcé's correction of w; `way` is the direction of slip.
    """
    lam, mu = load_plain(s.lam, at), load(p.bound, k)
    w = load_plain(s.w, at)
    speed = length(w.y, w.z)
    inverse = select(speed > 0.0, 1.0 / maximum(speed, least(speed)), zero(speed))
    aim = lam - Vec3(w.x + dilation(mu) * speed, w.y, w.z) * (1.0 / scale)
    store(n.aim, k, aim)
    store(n.way, at, w.y * inverse)
    store(n.way, at + 1, w.z * inverse)
    inside, below = cone_region(aim, length(aim.y, aim.z), mu)
    return in_cone(aim, mu) - lam, ~below, ~inside


@kernel
def load_plain(buffer, at):
    """A number of each row of a cone: its rows are contiguous."""
    return Vec3(load(buffer, at), load(buffer, at + 1), load(buffer, at + 2))


@kernel
def cone_slope(aim, mu):
    """Derivative of the projection onto a cone."""
    none = zero(mu)
    one = none + 1.0
    slide = length(aim.y, aim.z)
    inside, below = cone_region(aim, slide, mu)
    inverse = 1.0 / maximum(slide, least(slide))
    y, z = aim.y * inverse, aim.z * inverse
    share = 1.0 / (1.0 + mu * mu)
    turn = mu * (aim.x + mu * slide) * inverse
    xx, xy, xz = share, mu * y * share, mu * z * share
    yy = (turn * (1.0 - y * y) + mu * mu * y * y) * share
    zz = (turn * (1.0 - z * z) + mu * mu * z * z) * share
    yz = (mu * mu - turn) * y * z * share
    left = mu * aim.x * inverse  # factor of the tangents, if the cone is steep
    normal_first = Mat3(
        one,
        none,
        none,
        mu * y,
        left * (1.0 - y * y),
        -(left * y * z),
        mu * z,
        -(left * y * z),
        left * (1.0 - z * z),
    )
    on = select(mu > STEEP, normal_first, Mat3(xx, xy, xz, xy, yy, yz, xz, yz, zz))
    whole = Mat3(one, none, none, none, one, none, none, none, one)
    nothing = Mat3(none, none, none, none, none, none, none, none, none)
    return select(below, nothing, select(inside, whole, on))


@kernel
def ball_piece(p, s, n, k, at, scale):
    """Of a ball: its change by the natural map, and masks of lanes where it moves and where the aim is outside. A ball
    moves if its radius is or may become positive. The normal row that determines the radius comes before it.
    """
    lam, radius, normal = load_plain(s.lam, at), radius_of(p, s, k), load(p.normal, k)
    aim = lam - load_plain(s.w, at) * (1.0 / scale)
    store(n.aim, k, aim)
    pushes = gather_where(n.free, normal - 1, normal > 0) > 0.5
    change = in_ball(aim, radius) - lam
    lacks = (length3(change) * scale > load(s.tolerance, 0)) | (length3(lam) > 0.0)
    return change, ((radius > 0.0) | pushes) & lacks, length3(aim) > radius


@kernel
def ball_slope(aim, radius):
    """Derivatives of the projection onto a ball: with the point, and with the radius."""
    none = zero(radius)
    one = none + 1.0
    size = length3(aim)
    outside = size > radius
    inverse = 1.0 / maximum(size, least(size))
    u, share = aim * inverse, radius * inverse
    xy, xz, yz = -(share * u.x * u.y), -(share * u.x * u.z), -(share * u.y * u.z)
    xx, yy, zz = share * (1.0 - u.x * u.x), share * (1.0 - u.y * u.y), share * (1.0 - u.z * u.z)
    on = Mat3(xx, xy, xz, xy, yy, yz, xz, yz, zz)
    whole = Mat3(one, none, none, none, one, none, none, none, one)
    return select(outside, on, whole), select(outside, u, zero3(none))


@kernel
def leave_blank(p, n, at, end):
    """Mark rows at the end of a ball that nothing can move as not free: they are no lines of the system."""
    blank = load(p.scale, at) == load(p.scale, at)
    for back in range(end - at):
        r = end - 1 - back
        blank = blank & ~(load(p.a, r * load(p.stride, 0) + r) > 0.0)
        store(n.free, r, select(blank, zero(load(n.free, r)), load(n.free, r)))


@kernel
def look(p, s, n):
    """The largest natural residual, as of `pgs_kernels.natural`, and the merit; writes for each row its change by the
    natural map and whether it is free, for a Newton step.
    """
    worst = zero(load(s.tolerance, 0))
    merit = worst
    store(s.merit, 0, worst)
    for k in range(load(p.n_blocks, 0)):
        kind, at, end = load(p.block_kind, k), load(p.block_start, k), load(p.block_start, k + 1)
        free = slips = load(s.tolerance, 0) < 0.0
        if kind == BOUNDED:
            change, free = row_piece(p, s, at)
            scale = load(p.scale, at)
            store(n.change, at, change)
            merit, worst = merit + scale * change * change, worse(worst, change, scale)
        elif kind == CONE:
            scale = cone_scale(p, at)
            three, free, slips = cone_piece(p, s, n, k, at, scale)
            store(n.change, at, three.x)
            store(n.change, at + 1, three.y)
            store(n.change, at + 2, three.z)
            merit = merit + scale * dot(three, three)
            worst = worse(worse(worse(worst, three.x, scale), three.y, scale), three.z, scale)
        elif kind == BALL:
            scale = cone_scale(p, at)
            three, free, slips = ball_piece(p, s, n, k, at, scale)
            store(n.change, at, three.x)
            store(n.change, at + 1, three.y)
            store(n.change, at + 2, three.z)
            merit = merit + scale * dot(three, three)
            worst = worse(worse(worse(worst, three.x, scale), three.y, scale), three.z, scale)
        else:
            worst = block_natural(p, s, k, worst)
            for r in range(at, end):
                store(n.change, r, zero(merit))
        state = select(free, zero(merit) + 1.0, zero(merit))
        if n.lanes == 1:
            state = select(free & slips, zero(merit) + SLIPS, state)
        for r in range(at, end):
            store(n.free, r, state)
        if kind == BALL:
            leave_blank(p, n, at, end)
    store(s.merit, 0, load(s.merit, 0) + merit)
    return worst


# ---- the linear system -----------------------------------------------------------------------------------------------


@kernel
def add_rows(p, n, active, state):
    """Append the rows of the blocks in a state to `active` rows; returns the new number."""
    for k in range(load(p.n_blocks, 0)):
        at = load(p.block_start, k)
        if any_lane(load(n.free, at) == state):
            for r in range(at, load(p.block_start, k + 1)):
                if any_lane(load(n.free, r) == state):
                    store(n.row, active, r)
                    active += 1
    return active


@kernel
def list_rows(p, n, moving):
    """List the rows of the linear system: those that are free in a lane of a mask."""
    active = even = 0
    if n.lanes == 1:
        even = add_rows(p, n, 0, HOLDS)
        active = add_rows(p, n, even, SLIPS)
    else:
        for r in range(load(p.n_rows, 0)):
            if any_lane(moving & (load(n.free, r) > 0.5)):
                store(n.row, active, r)
                active += 1
    store(n.n_even, 0, even)
    store(n.n_active, 0, active)
    store(n.across, 0, (active + GROUP) // GROUP * GROUP)


@kernel
def shift_residuals(p, n):
    """Write the steps of rows at bounds, and their change of w."""
    rows, stride = load(p.n_rows, 0), load(p.stride, 0)
    for r in range(rows):
        store(n.shift, r, zero(load(n.change, r)))
    for r in range(rows):
        change = load(n.change, r)
        store(n.step, r, change)
        change = select(load(n.free, r) > 0.5, zero(change), change)
        if any_lane(change != 0.0):
            for i in range(0, rows, group_size(n.shift)):
                store_group(n.shift, i, load_group(n.shift, i) + load_group(p.a, r * stride + i) * change)


@kernel
def pick_rows(p, n, i):
    """Copy four lines of the system from line i on from A; lines beyond the last repeat the last one. All four share
    one loop over columns: the lookup of a column takes as long as the copy of an entry.
    """
    active, across, stride = load(n.n_active, 0), load(n.across, 0), load(p.stride, 0)
    last, none = active - 1, zero(load(n.softness, 0))
    j, k, l = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    at, to, by, on = i * across, j * across, k * across, l * across
    x, y, z, w = load(n.row, i) * stride, load(n.row, j) * stride, load(n.row, k) * stride, load(n.row, l) * stride
    first, step = i // GROUP * GROUP if l < load(n.n_even, 0) else 0, group_size(n.matrix)
    for c in range(active // step * step, across, step):  # the padding after the last column
        store_group(n.matrix, at + c, none)
        store_group(n.matrix, to + c, none)
        store_group(n.matrix, by + c, none)
        store_group(n.matrix, on + c, none)
    for c in range(first, active):
        other = load(n.row, c)
        store(n.matrix, at + c, load(p.a, x + other))
        store(n.matrix, to + c, load(p.a, y + other))
        store(n.matrix, by + c, load(p.a, z + other))
        store(n.matrix, on + c, load(p.a, w + other))


@kernel
def blank_entries(n, i):
    """Clear the entries of line i for rows that are not free, in lanes."""
    at = i * load(n.across, 0)
    for j in range(load(n.n_active, 0)):
        store(n.matrix, at + j, load(n.matrix, at + j) * load(n.free, load(n.row, j)))


@kernel
def end_row(n, i, r, wanted):
    """The right side of line i, row r: the target change less the effect of rows at bounds."""
    at = i * load(n.across, 0) + load(n.n_active, 0)
    right = wanted - load(n.matrix, at)
    if n.lanes > 1:
        right = right * load(n.free, r)
    store(n.matrix, at, right)


@kernel
def lay_row(p, n, i, r, scale, softness):
    """Line i of the system, row r of A; a multiple of the identity in lanes where the row is not free."""
    across = load(n.across, 0)
    if n.lanes > 1:
        free = load(n.free, r)
        for j in range(across):
            store(n.matrix, i * across + j, load(n.matrix, i * across + j) * free)
        add_entry(n, i * across + i, scale * (1.0 - free))
    end_row(n, i, r, scale * load(n.change, r))
    add_entry(n, i * across + i, scale * softness)


@kernel
def lay_stuck(p, n, i, k, at, softness):
    """Lines i, i + 1 and i + 2 of the system: a sticking cone. Without De Saxcé's correction its right side is −w."""
    mu, scale, across = dilation(load(p.bound, k)), cone_scale(p, at), load(n.across, 0)
    change, x, y = load_plain(n.change, at), load(n.way, at), load(n.way, at + 1)
    end_row(n, i, at, scale * (change.x - mu * (x * change.y + y * change.z)))
    end_row(n, i + 1, at + 1, scale * change.y)
    end_row(n, i + 2, at + 2, scale * change.z)
    for j in range(i, i + 3):
        add_entry(n, j * across + j, scale * softness)


@kernel
def lay_cone(p, n, i, k, at, softness):
    """Lines i, i + 1 and i + 2 of the system: a cone in any state."""
    mu, scale = load(p.bound, k), cone_scale(p, at)
    f = cone_slope(load(n.aim, k), mu)
    across = load(n.across, 0)
    x, y, z = i * across, (i + 1) * across, (i + 2) * across
    opens = dilation(mu)
    u, v = load(n.way, at) * opens, load(n.way, at + 1) * opens
    for j in range(0, across, group_size(n.matrix)):
        ay, az = load_group(n.matrix, y + j), load_group(n.matrix, z + j)
        felt = f @ Vec3(load_group(n.matrix, x + j) + u * ay + v * az, ay, az)
        store_group(n.matrix, x + j, felt.x)
        store_group(n.matrix, y + j, felt.y)
        store_group(n.matrix, z + j, felt.z)
    for j in range(3):
        end_row(n, i + j, at + j, scale * load(n.change, at + j))
    held = 1.0 + softness
    add_entry(n, x + i, scale * (held - f.xx))
    add_entry(n, x + i + 1, -(scale * f.xy))
    add_entry(n, x + i + 2, -(scale * f.xz))
    add_entry(n, y + i, -(scale * f.yx))
    add_entry(n, y + i + 1, scale * (held - f.yy))
    add_entry(n, y + i + 2, -(scale * f.yz))
    add_entry(n, z + i, -(scale * f.zx))
    add_entry(n, z + i + 1, -(scale * f.zy))
    add_entry(n, z + i + 2, scale * (held - f.zz))


@kernel
def lay_within(p, n, i, at, size, softness):
    """Lines from i on of the system, `size` of them: a ball within its radius."""
    scale, across = cone_scale(p, at), load(n.across, 0)
    for j in range(size):
        end_row(n, i + j, at + j, scale * load(n.change, at + j))
        add_entry(n, (i + j) * across + i + j, scale * softness)


@kernel
def lay_ball(p, s, n, i, k, at, size, softness):
    """Lines from i on of the system, `size` of them: a ball in any state."""
    scale, across, none = cone_scale(p, at), load(n.across, 0), zero(softness)
    there = load(n.free, at) > 0.5
    f, out = ball_slope(load(n.aim, k), radius_of(p, s, k))
    f = select(there, f, Mat3(none, none, none, none, none, none, none, none, none))
    x, y, z = i * across, (i + 1) * across, (i + 2) * across
    for j in range(0, across, group_size(n.matrix)):
        ax = load_group(n.matrix, x + j)
        ay, az = zero(ax), zero(ax)
        if size > 1:
            ay = load_group(n.matrix, y + j)
        if size > 2:
            az = load_group(n.matrix, z + j)
        felt = f @ Vec3(ax, ay, az)
        store_group(n.matrix, x + j, felt.x)
        if size > 1:
            store_group(n.matrix, y + j, felt.y)
        if size > 2:
            store_group(n.matrix, z + j, felt.z)
    # change of the radius by a normal multiplier, which is at a bound or is among the lines
    normal = load(p.normal, k)
    follows = there & (normal > 0)
    grows = out * (scale * select(follows, load(p.bound, k), none))
    moves = gather_where(n.free, normal - 1, follows) > 0.5
    known = select(moves, none, gather_where(n.change, normal - 1, follows))
    held = scale * (1.0 + softness)
    end_row(n, i, at, scale * load(n.change, at) + grows.x * known)
    add_entry(n, x + i, held - scale * f.xx)
    if size > 1:
        end_row(n, i + 1, at + 1, scale * load(n.change, at + 1) + grows.y * known)
        add_entry(n, x + i + 1, -(scale * f.xy))
        add_entry(n, y + i, -(scale * f.yx))
        add_entry(n, y + i + 1, held - scale * f.yy)
    if size > 2:
        end_row(n, i + 2, at + 2, scale * load(n.change, at + 2) + grows.z * known)
        add_entry(n, x + i + 2, -(scale * f.xz))
        add_entry(n, y + i + 2, -(scale * f.yz))
        add_entry(n, z + i, -(scale * f.zx))
        add_entry(n, z + i + 1, -(scale * f.zy))
        add_entry(n, z + i + 2, held - scale * f.zz)
    if any_lane(moves):
        for j in range(load(n.n_active, 0)):
            here = moves & (normal == load(n.row, j) + 1)
            if any_lane(here):
                add_entry(n, x + j, -select(here, grows.x, none))
                if size > 1:
                    add_entry(n, y + j, -select(here, grows.y, none))
                if size > 2:
                    add_entry(n, z + j, -select(here, grows.z, none))


@kernel
def listed_rows(p, n, i, k):
    """Number of rows of block k that are lines of the system, from line i on; blank rows of a ball are not."""
    count, at = 1, load(p.block_start, k)
    for j in range(1, load(p.block_start, k + 1) - at):
        if i + j < load(n.n_active, 0) and load(n.row, i + j) == at + j:
            count += 1
    return count


@kernel
def add_entry(n, at, x):
    """Add to an entry of the matrix."""
    store(n.matrix, at, load(n.matrix, at) + x)


@kernel
def lay_system(p, s, n, moving):
    """The linear system of the pieces, in the lanes of a mask."""
    list_rows(p, n, moving)
    shift_residuals(p, n)
    even, active, softness = load(n.n_even, 0), load(n.n_active, 0), load(n.softness, 0)
    for i in range(0, active, FOUR):  # all lines first: entries written one by one are slow to read in groups
        pick_rows(p, n, i)
    for i in range(active):
        if n.lanes > 1:
            blank_entries(n, i)
        store(n.matrix, i * load(n.across, 0) + active, load(n.shift, load(n.row, i)))
    next, slips = 0, even
    for k in range(load(p.n_blocks, 0)):
        at, kind = load(p.block_start, k), load(p.block_kind, k)
        if next < even and load(n.row, next) == at:
            if kind == CONE:
                lay_stuck(p, n, next, k, at, softness)
            elif kind == BALL:
                lay_within(p, n, next, at, listed_rows(p, n, next, k), softness)
            else:
                lay_row(p, n, next, at, load(p.scale, at), softness)
            next += listed_rows(p, n, next, k)
        elif slips < active and load(n.row, slips) == at:
            if kind == CONE:
                lay_cone(p, n, slips, k, at, softness)
            elif kind == BALL:
                lay_ball(p, s, n, slips, k, at, listed_rows(p, n, slips, k), softness)
            else:
                lay_row(p, n, slips, at, load(p.scale, at), softness)
            slips += listed_rows(p, n, slips, k)


@kernel
def take_steps(n):
    """Copy the steps of the system's lines to their rows, where these are free."""
    for k in range(load(n.n_active, 0)):
        r, step = load(n.row, k), load(n.known, k)
        if n.lanes > 1:
            step = select(load(n.free, r) > 0.5, step, load(n.change, r))
        store(n.step, r, step)
