"""Contact faces and edges of shapes, and clipping of one by another.

A face (side) is a list of corners, counter-clockwise seen from outside; an edge (straight line) has two corners, a
point of a curved surface is one corner. Each corner has an id that is constant over time; an edge has the id of its
first corner.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.box_geometry import signed
from poise.collision.narrowphase.convex.support import (
    BOX,
    CAPSULE,
    CYLINDER,
    FACET,
    HULL,
    TRIANGLE,
    core_kind,
    core_point,
    rounding,
    top_corner,
    unit,
)
from poise.collision.narrowphase.sphere_capsule import clamp
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, dot, transpose_times

MOST = 64
"""Maximum number of corners of a face; of a face with more, only some are used."""
RIM = 16
"""Points that approximate the rim of a cylinder."""
STANDING = 0.7
"""Cosine between axis and normal above which a cylinder touches with its cap and not with its side."""
NAMES = 4096
"""Number of ids of the corners of one shape."""
FRAME, FIRST, SECOND = 16, 128, 384
"""Offsets of corners in `points`, and of their ids in `whole`: the face that clips, the clipped polygon, and two
buffers for intermediate polygons."""
EDGES = 512
"""Offset from the id of a corner to that of the edge that starts there."""


@formula
def upright(like: Any) -> Any:
    """Tilt of a cylinder below which all points of its rim count as equally low."""
    return constant(1e-7 if precision(like) > 24 else 1e-3, like)


@kernel
def put_corner(t, place, point, name):
    """A corner with its id, which is also that of the edge that starts there."""
    store(t.points, place, point)
    store(t.whole, place, name % NAMES)
    store(t.whole, place + EDGES, name % NAMES)


@kernel
def box_side(t, S, n, place):
    """The four corners of the face of a box whose normal is nearest to n, in its axes."""
    x, y, z = fabs(n.x), fabs(n.y), fabs(n.z)
    tie = 1.0 + 64.0 * rounding(x)
    k = 0 if x * tie >= y and x * tie >= z else (1 if y * tie >= z else 2)
    side = n.x if k == 0 else (n.y if k == 1 else n.z)
    up = 1 if side >= 0.0 else 0
    i, j = (k + 1) % 3, (k + 2) % 3
    for c in range(4):
        turn = c if up == 1 else 3 - c
        corner = up << k | (1 if turn == 0 or turn == 3 else 0) << i | (1 if turn < 2 else 0) << j
        h = S.half
        local = Vec3(
            h.x if corner & 1 else -h.x,
            h.y if corner & 2 else -h.y,
            h.z if corner & 4 else -h.z,
        )
        put_corner(t, place + c, S.p + S.R @ local, corner)
    none, one = zero(x), zero(x) + (1.0 if up == 1 else -1.0)
    outward = Vec3(
        select(k == 0, one, none),
        select(k == 1, one, none),
        select(k == 2, one, none),
    )
    return 4, S.R @ outward


@kernel
def cylinder_side(t, S, n, place):
    """The rim of the cap that faces n, starting with its lowest point; or the line on the side."""
    r, half = S.half.x, S.half.y
    none = zero(r)
    tilt2 = n.x * n.x + n.y * n.y
    leaning = tilt2 > upright(r) * upright(r)
    k = 1.0 / sqrt(select(leaning, tilt2, none + 1.0))
    x, y = select(leaning, n.x * k, none + 1.0), select(leaning, n.y * k, none)
    if fabs(n.z) < STANDING:
        for end in range(2):
            height = -half if end == 0 else half
            put_corner(t, place + end, S.p + S.R @ Vec3(x * r, y * r, height), end)
        return 2, S.R @ Vec3(x, y, none)
    cap = signed(none + 1.0, n.z)
    c, s = none + 0.9238795325112867, (none + 0.3826834323650898) * cap  # an eighth of π
    for corner in range(RIM):
        put_corner(t, place + corner, S.p + S.R @ Vec3(x * r, y * r, half * cap), 2 + corner)
        x, y = x * c - y * s, x * s + y * c
    return RIM, S.R @ Vec3(none, none, cap)


@kernel
def hull_side(g, t, seat, i, S, n, place):
    """The face at the highest corner of a hull whose normal is nearest to n."""
    top = top_corner(g, t, seat, i, n)
    best, most = -1, zero(n.x) - 2.0
    for e in range(load(g.around_start, top), load(g.around_start, top + 1)):
        side = load(g.around, e)
        height = dot(load(g.side_normal, side), n)
        if height > most + 64.0 * rounding(most):
            best, most = side, height
    first, last = load(g.side_start, best), load(g.side_start, best + 1)
    stride = 1 + (last - first - 1) // MOST
    n_corners = 0
    for e in range(first, last, stride):
        vertex = load(g.side_corner, e)
        point = S.p + S.R @ load(g.vertex, vertex)
        put_corner(t, place + n_corners, point, vertex - load(g.vertex_start, i))
        n_corners += 1
    return n_corners, S.R @ load(g.side_normal, best)


@kernel
def facet_side(t, S, n, place):
    """The current triangle of a surface; with reversed order when it is seen from behind."""
    normal = load(t.points, FACET + 3)
    way = 1.0 if dot(normal, n) >= 0.0 else -1.0
    for k in range(3):
        corner = k if way > 0.0 else 2 - k
        put_corner(t, place + k, S.p + load(t.points, FACET + corner), corner)
    return 3, normal * way


@kernel
def side_towards(g, t, seat, i, S, n, place):
    """The contact face, edge or point of a shape in direction n, at a place: number of corners, outward normal."""
    kind = core_kind(g, i)
    local = transpose_times(S.R, n)
    if kind == TRIANGLE:
        return facet_side(t, S, n, place)
    if kind == BOX:
        return box_side(t, S, local, place)
    if kind == CYLINDER:
        return cylinder_side(t, S, local, place)
    if kind == HULL:
        return hull_side(g, t, seat, i, S, local, place)
    if kind == CAPSULE:
        none = zero(local.x)
        for end in range(2):
            height = -S.half.y if end == 0 else S.half.y
            put_corner(t, place + end, S.p + S.R @ Vec3(none, none, height), end)
        return 2, S.R @ unit(Vec3(local.x, local.y, none), local)
    put_corner(t, place, core_point(g, t, seat, i, S, n), 0)
    return 1, n


# ---- clipping --------------------------------------------------------------------------------------------------------


@kernel
def clip(t, source, target, n_corners, p, q, edge):
    """The part of a polygon left of the line from p to q, both in the plane: number of corners."""
    dx, dy = q.x - p.x, q.y - p.y
    length = sqrt(dx * dx + dy * dy)
    slack = 16.0 * rounding(length) * length * (length + fabs(p.x) + fabs(p.y))
    kept = 0
    before = load(t.points, source + n_corners - 1)
    off_before = dx * (before.y - p.y) - dy * (before.x - p.x)
    edge_before = load(t.whole, source + n_corners - 1 + EDGES)
    for i in range(n_corners):
        here = load(t.points, source + i)
        name, edge_here = load(t.whole, source + i), load(t.whole, source + i + EDGES)
        off = dx * (here.y - p.y) - dy * (here.x - p.x)
        closing = i == 0 and n_corners == 2  # a line has no closing edge
        if (off < -slack) != (off_before < -slack) and not closing:
            # within the slack both may be outside, and the crossing be before or behind the edge
            share = clamp(off_before / (off_before - off), zero(off), zero(off) + 1.0)
            store(t.points, target + kept, before + (here - before) * share)
            store(t.whole, target + kept, (1 + edge_before) * 2 * NAMES + edge)
            store(t.whole, target + kept + EDGES, edge if off < -slack else edge_before)
            kept += 1
        if off >= -slack:
            store(t.points, target + kept, here)
            store(t.whole, target + kept, name)
            store(t.whole, target + kept + EDGES, edge_here)
            kept += 1
        before, off_before, edge_before = here, off, edge_here
    return kept


@kernel
def clip_by_frame(t, n_frame, n_corners):
    """The part of the polygon at FIRST inside the one at FRAME: (its offset, number of corners).

    I. E. Sutherland, G. W. Hodgman, "Reentrant polygon clipping", CACM 1974. The frame is counter-clockwise.
    """
    source, target = FIRST, SECOND
    for i in range(n_frame):
        if n_corners == 0:
            break
        p, q = load(t.points, FRAME + i), load(t.points, FRAME + (i + 1) % n_frame)
        n_corners = clip(t, source, target, n_corners, p, q, NAMES + load(t.whole, FRAME + i))
        source, target = target, source
    return source, n_corners
