"""The pieces of the natural map that rows are on, and the linear system that they make: kernels.

Rows at a bound take steps of their own; the others make a system of lines, one after another without gaps. Its last
column is the right side.
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
    group_size,
    load,
    load_group,
    store,
    store_group,
)
from poise.kernel.scalars import any_lane, maximum, select, zero
from poise.kernel.vec import Sym3, Vec3
from poise.solve.local_kernels import clip, in_cone, least, length
from poise.solve.pgs_kernels import BOUNDED, CONE, largest_scale, load_three

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
    allowed=Real,  # (1) merit below which a step is accepted
    steps=Real,  # (1) that were
)


def newton_block(width: Width, rows: int) -> Block:
    """Room for so many rows."""
    sizes = dict.fromkeys(("row", "step", "shift", "kept", "swept"), rows) | {"right": rows, "known": rows + GROUP}
    one = dict.fromkeys(("n_active", "across", "softness", "allowed", "steps"), 1)
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
