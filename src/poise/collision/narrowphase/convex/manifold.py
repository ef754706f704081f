"""Contact manifold of two convex shapes from their signed distance: faces and edges on faces, edges on edges.

A face whose normal is the direction of the signed distance is the reference face: it clips the face or edge of the
other shape (the incident one), and each remaining corner has its own gap along the normal. Of many corners four well
spread ones are kept, the deepest among them. Where two crossing edges are nearest, their faces are projected along the
direction of the signed distance, and corners are kept if the faces are parallel: faces that are in contact, rotated by
rounding, have as many contact points as flat ones. A curved surface has one contact point.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.clip_faces import CLEARLY, LYING, turn
from poise.collision.narrowphase.convex.clip_polygons import FIRST, FRAME, NAMES, clip_by_frame, side_towards
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.support import (
    CAPSULE,
    CYLINDER,
    SEAT_A,
    SEAT_B,
    core_kind,
    nearest_points,
    rounding,
    unit,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, column2, cross, dot

OF_B = 8 * NAMES * NAMES
"""Offset of the features of corners of A that a face of B clips."""
DEEPEST = 16 * NAMES * NAMES
"""Feature of the deepest point if it is no corner."""
ABREAST = 1e-3
"""Sine of the angle between two straight lines below which they count as parallel."""
THIN = 1e-6
"""Area over square length below which corners count as collinear."""
TURNED_TO = 0.5
"""Cosine between the direction of the signed distance and the normal of a face above which it is a reference face."""


@formula
def alike(like: Any) -> Any:
    """Difference of gaps over the size of shapes up to which points of curved shapes count as equally deep."""
    return constant(1e-10 if precision(like) > 24 else 1e-5, like)


@formula
def aside(like: Any) -> Any:
    """Tolerance, over the size of shapes, of the tangential offset of nearest points along the normal of a face."""
    return constant(1e-5 if precision(like) > 24 else 1e-3, like)


@kernel
def put_nearest(t, near, origin, ra, rb):
    """One contact point, where two shapes are nearest."""
    middle = (near.a + near.b + near.normal * (ra - rb)) * 0.5
    gap = near.gap - ra - rb
    put(t, gap, gap, near.normal, origin + middle, DEEPEST)


@kernel
def frame_gap(g, t, a, b, A, B, near, normal, size):
    """Whether the signed distance is along the normal of a face, up to rounding; the gap along the normal."""
    pa, pb = nearest_points(g, t, a, b, A, B, normal)
    gap = dot(normal, pb - pa)
    noise = maximum(16.0 * rounding(size) * size, 1e-10 * fabs(near.gap))
    # for a triangle, a larger deviation may be across an edge where the surface continues
    same = gap >= near.gap - noise and (b >= 0 or gap <= near.gap + noise)
    # deep inside curved shapes many directions are equally good, each with other nearest points
    turn, most = near.normal - normal, aside(size) * size
    here = dot(turn, turn) * near.gap * near.gap <= most * most
    return dot(near.normal, normal) > 0.999 and same and here, gap


# ---- which corners are kept ------------------------------------------------------------------------------------------


@kernel
def deepest(t, place, n_corners, noise):
    """The corner of least gap; the first one of ties."""
    best = place
    for i in range(place + 1, place + n_corners):
        if load(t.points, i).z < load(t.points, best).z - noise:
            best = i
    return best


@kernel
def spread_score(p, q, r, c, known):
    """Spread that a corner adds to those already chosen: distance, area, area outside a triangle."""
    if known == 1:
        return (c.x - p.x) * (c.x - p.x) + (c.y - p.y) * (c.y - p.y)
    if known == 2:
        return fabs(turn(p, q, c))
    way = 1.0 if turn(p, q, r) > 0.0 else -1.0
    return maximum(maximum(-way * turn(p, q, c), -way * turn(q, r, c)), -way * turn(r, p, c))


@kernel
def choose(t, place, n_corners, limit, noise):
    """Move up to four well spread corners to the front, the deepest first: their number."""
    known = 0
    p = q = r = load(t.points, deepest(t, place, n_corners, noise))
    reach2 = zero(noise)
    while known < 4:
        best, found = zero(noise), deepest(t, place, n_corners, noise) if known == 0 else -1
        for i in range(place + known, place + n_corners):
            c = load(t.points, i)
            if known > 0 and c.z <= limit:
                score = spread_score(p, q, r, c, known)
                if score > CLEARLY * best and score > THIN * reach2:
                    best, found = score, i
        if found < 0:
            break
        c = load(t.points, found)
        swap(t, place + known, found)
        p, q, r = (c, c, c) if known == 0 else ((p, c, c) if known == 1 else (p, q, c))
        if known == 1:
            reach2 = best
        known += 1
    return known


@kernel
def swap(t, i, j):
    """Exchange two corners."""
    p, name = load(t.points, i), load(t.whole, i)
    store(t.points, i, load(t.points, j))
    store(t.whole, i, load(t.whole, j))
    store(t.points, j, p)
    store(t.whole, j, name)


# ---- contact points --------------------------------------------------------------------------------------------------


@kernel
def in_plane(t, place, n_corners, o, x, y, z):
    """Corners in the coordinates of a plane: along its axes, and the height over it."""
    for i in range(place, place + n_corners):
        p = load(t.points, i) - o
        store(t.points, i, Vec3(dot(x, p), dot(y, p), dot(z, p)))


@kernel
def touch_side(t, n_frame, n_corners, o, outward, nearest, gap, radius, of_b, origin, limit, size):
    """Contact points of the polygon at FIRST with the face at FRAME (0 corners: a plane) through o.

    `nearest` is the point of the former that is nearest to the face, with a gap, before its radius.
    """
    none = zero(size)
    across = Vec3(none + 1.0, none, none) if fabs(outward.x) < 0.6 else Vec3(none, none + 1.0, none)
    x = unit(cross(across, outward), across)
    y = cross(outward, x)
    in_plane(t, FRAME, n_frame, o, x, y, outward)
    in_plane(t, FIRST, n_corners, o, x, y, outward)
    place, n_corners = clip_by_frame(t, n_frame, n_corners)
    noise = 64.0 * rounding(size) * size
    if n_corners == 0 or load(t.points, deepest(t, place, n_corners, none)).z > gap + noise:
        p = nearest - o
        store(t.points, place + n_corners, Vec3(dot(x, p), dot(y, p), gap))
        store(t.whole, place + n_corners, DEEPEST)
        n_corners += 1
    for i in range(place, place + choose(t, place, n_corners, limit, noise)):
        c = load(t.points, i)
        rest = c.z - radius
        point = origin + o + x * c.x + y * c.y + outward * (0.5 * rest)
        name = load(t.whole, i)
        put(t, rest, rest, -outward if of_b else outward, point, name + OF_B if of_b and name < DEEPEST else name)


@kernel
def keep_lying(t, place, n_corners, noise):
    """Remove corners at which faces are not parallel, relative to the deepest corner: the number of the others."""
    p, kept = load(t.points, deepest(t, place, n_corners, noise)), 0
    for i in range(place, place + n_corners):
        c = load(t.points, i)
        x, y, rise = c.x - p.x, c.y - p.y, c.z - p.z
        if rise <= noise or rise * rise <= LYING * LYING * (x * x + y * y):
            swap(t, place + kept, i)
            kept += 1
    return kept


@kernel
def touch_across(t, n_frame, n_corners, normal, outward, near, radius, of_b, origin, limit, size):
    """Contact points of the polygon at FIRST with the face at FRAME, projected along the direction of the signed
    distance, which is not the normal of the face; `normal` is that direction away from the face, and gaps are along it.
    """
    none, o = zero(size), load(t.points, FRAME)
    lean = outward * (1.0 / dot(outward, normal))
    across = Vec3(none + 1.0, none, none) if fabs(normal.x) < 0.6 else Vec3(none, none + 1.0, none)
    x = unit(cross(across, normal), across)
    y = cross(normal, x)
    in_plane(t, FRAME, n_frame, o, x, y, lean)
    in_plane(t, FIRST, n_corners, o, x, y, lean)
    place, n_corners = clip_by_frame(t, n_frame, n_corners)
    noise = 64.0 * rounding(size) * size
    if n_corners == 0 or load(t.points, deepest(t, place, n_corners, none)).z > near.gap + noise:
        return
    n_corners = keep_lying(t, place, n_corners, noise)
    for i in range(place, place + choose(t, place, n_corners, limit, noise)):
        c = load(t.points, i)
        flat = x * c.x + y * c.y
        rest = c.z - radius
        point = origin + o + flat + normal * (0.5 * rest - dot(lean, flat))
        name = load(t.whole, i)
        put(t, rest, rest, -normal if of_b else normal, point, name + OF_B if of_b and name < DEEPEST else name)


@kernel
def touch_lines(t, A, B, near, origin, limit):
    """Contact points of two cylinders, or a capsule and a cylinder, side by side: at both ends of their overlap."""
    u, v = column2(A.R), column2(B.R)
    d, uv = B.p - A.p, dot(u, v)
    across = cross(u, v)
    tilt = maximum(fabs(dot(u, near.normal)), fabs(dot(v, near.normal)))
    if dot(across, across) > ABREAST * ABREAST or tilt > ABREAST:
        return
    # so far from the ends that the round parts do not reach beyond them
    inset = maximum(sqrt(dot(across, across)), tilt) * maximum(A.half.x, B.half.x)
    middle, reach = dot(u, d), B.half.y * fabs(uv) - inset
    low, high = maximum(middle - reach, inset - A.half.y), minimum(middle + reach, A.half.y - inset)
    if high - low <= 1e-3 * minimum(A.half.y, B.half.y):
        return
    for end in range(2):
        s = high if end else low
        p = A.p + u * s
        q = B.p + v * ((s - middle) / uv)
        length = sqrt(dot(q - p, q - p))
        if dot(near.normal, q - p) <= maximum(0.99 * length, 0.01 * (A.half.x + B.half.x)):
            store(t.n, 0, 0)
            return
        normal = (q - p) * (1.0 / length)
        lean = dot(normal, v)
        gap = length - A.half.x - B.half.x * sqrt(1.0 - lean * lean)
        put(t, limit, gap, normal, origin + p + normal * (A.half.x + 0.5 * gap), end)


@kernel
def touch_near(g, t, a, b, A, B, near, ra, rb, origin, limit, size):
    """Contact points of two shapes whose cores are nearest along a direction; `limit` bounds the gap of the cores."""
    n_a, outward = side_towards(g, t, SEAT_A, a, A, near.normal, FRAME)
    framed, gap = frame_gap(g, t, a, b, A, B, near, outward, size)
    if n_a > 2 and framed:
        n_b, _ = side_towards(g, t, SEAT_B, b, B, -outward, FIRST)
        if n_b > 1:
            o = load(t.points, FRAME)
            touch_side(t, n_a, n_b, o, outward, near.b, gap, rb, False, origin, limit, size)
            return
    n_b, outward = side_towards(g, t, SEAT_B, b, B, -near.normal, FRAME)
    framed, gap = frame_gap(g, t, a, b, A, B, near, -outward, size)
    if n_b > 2 and framed:
        n_a, _ = side_towards(g, t, SEAT_A, a, A, -outward, FIRST)
        if n_a > 1:
            o = load(t.points, FRAME)
            touch_side(t, n_b, n_a, o, outward, near.a, gap, ra, True, origin, limit, size)
            return
    if b >= 0:
        n_a, outward = side_towards(g, t, SEAT_A, a, A, near.normal, FRAME)
        n_b, other = side_towards(g, t, SEAT_B, b, B, -near.normal, FIRST)
        if n_a > 2 and n_b > 1 and dot(outward, near.normal) > TURNED_TO:
            touch_across(t, n_a, n_b, near.normal, outward, near, rb, False, origin, limit, size)
        elif n_b > 2 and n_a > 1 and dot(other, near.normal) < -TURNED_TO:
            n_b, other = side_towards(g, t, SEAT_B, b, B, -near.normal, FRAME)
            n_a, outward = side_towards(g, t, SEAT_A, a, A, near.normal, FIRST)
            touch_across(t, n_b, n_a, -near.normal, other, near, ra, True, origin, limit, size)
        if load(t.n, 0) > 0:
            return
    kind_a = load(g.kind, a)
    if core_kind(g, b) == CYLINDER and kind_a in (CAPSULE, CYLINDER):
        touch_lines(t, A, B, near, origin, limit - ra - rb)
    best = near.gap - ra - rb + alike(size) * size
    for k in range(load(t.n, 0)):
        if load(t.gap, k) <= best:
            return
    put_nearest(t, near, origin, ra, rb)
