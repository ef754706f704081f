"""Contact points of one triangle of a surface with a convex shape.

If the direction of the signed distance between them is a valid normal of the surface, contact points are along it.
Otherwise it belongs to the next triangle, and this one has contact points along its own normal with the part of the
shape's facing side over it. The same holds for a shape that has entered from outside and whose least penetration is
through the back or into the next triangle.

Coordinates are in world axes, relative to the centre of A.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.convex.clip_polygons import (
    FIRST,
    FRAME,
    NAMES,
    clip_by_frame,
    put_corner,
    side_towards,
)
from poise.collision.narrowphase.convex.gjk import APART, FAR, Near, search_gap
from poise.collision.narrowphase.convex.manifold import DEEPEST, choose, deepest, in_plane, touch_near
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.penetration import least_gap
from poise.collision.narrowphase.convex.support import (
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FACET,
    SEAT_A,
    SPHERE,
    core_point,
    core_radius,
    rounding,
    unit,
)
from poise.collision.narrowphase.mesh.edge_normals import TRIANGLE_NUMBER, search_edges
from poise.collision.narrowphase.mesh.mesh_triangle import (
    BEND,
    FIELD,
    NORMAL,
    bend_edges,
    facet_placed,
    inset,
    is_over,
    is_own,
    place_facet,
    sharpest,
    turning,
)
from poise.collision.narrowphase.sphere_capsule import clamp
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.values import Value
from poise.kernel.vec import Vec3, column2, cross, dot, zero3


class Facet(Value):
    """Result for a triangle: its middle (m), and the direction along which contact points were found.

    `gap` is that of the whole shape and the half space below the triangle's highest point along `out`; m.
    """

    fields = (("middle", Vec3), ("out", Vec3), ("gap", None))
    __slots__ = ("gap", "middle", "out")
    middle: Any
    out: Any
    gap: Any


@formula
def slight(like: Any) -> Any:
    """Rounding error of a point, relative to the size of shapes."""
    return constant(1e-10 if precision(like) > 24 else 1e-5, like)


@formula
def snap(like: Any) -> Any:
    """Relative tolerance with which the gap along the normal of a triangle counts as the largest."""
    return constant(1e-9 if precision(like) > 24 else 1e-5, like)


# ---- points and segments ---------------------------------------------------------------------------------------------


@kernel
def nearest_on_edge(u, half, start, along):
    """The nearest points of the segment s u, |s| ≤ half, and an edge from `start`."""
    none = zero(half)
    length = sqrt(dot(along, along))
    v = along * (1.0 / length)
    uv, us, vs = dot(u, v), dot(u, start), dot(v, start)
    across = 1.0 - uv * uv
    if across > 64.0 * rounding(half):
        s = clamp((us - uv * vs) / across, -half, half)
    else:
        s = clamp(us + 0.5 * length * uv, -half, half)
    r = clamp(uv * s - vs, none, length)
    s = clamp(us + uv * r, -half, half)
    r = clamp(uv * s - vs, none, length)
    return u * s, start + v * r


@kernel
def nearest_segment(t, u, half, middle, normal, noise):
    """The distance of the segment s u, |s| ≤ half, to the triangle: whether they are separated, and where."""
    best = zero(half) + 1e30
    pa, pb = zero3(half), zero3(half)
    for end in range(2):
        p = u * (half if end else -half)
        height = dot(normal, p - middle)
        if inset(t, p - middle) >= 0.0 and fabs(height) < best:
            best, pa, pb = fabs(height), p, p - normal * height
    for k in range(3):
        start = load(t.points, FACET + k)
        along = load(t.points, FACET + (k + 1) % 3) - start
        p, q = nearest_on_edge(u, half, middle + start, along)
        d = sqrt(dot(q - p, q - p))
        if d < best - noise:
            best, pa, pb = d, p, q
    low, high = dot(normal, u * -half - middle), dot(normal, u * half - middle)
    if low * high < 0.0 and inset(t, u * (half * (low + high) / (low - high)) - middle) > 0.0:
        best = zero(half)
    apart = best > noise
    return apart, Near((pb - pa) * (1.0 / select(apart, best, best + 1.0)), best, pa, pb)


# ---- along the normal ------------------------------------------------------------------------------------------------


@kernel
def is_mark(t, name):
    """Whether a clipped corner is a corner of A, or is on an edge that is not flat."""
    if name < 2 * NAMES:
        return True
    one, other = name % (2 * NAMES) - NAMES, name // (2 * NAMES) - 1 - NAMES
    flat = turning(load(t.numbers, BEND))
    return fabs(load(t.numbers, BEND + one)) > flat or (other >= 0 and fabs(load(t.numbers, BEND + other)) > flat)


@kernel
def keep_marks(t, place, n_corners, x, y, axis, normal, upright, slack):
    """Remove corners that belong to the next triangle: those on flat edges, and in front of a field those beside it."""
    kept = 0
    for i in range(place, place + n_corners):
        c, name = load(t.points, i), load(t.whole, i)
        if is_mark(t, name) and (
            not upright or c.z < 0.0 or inset(t, point_in(c, load(t.points, FACET), x, y, axis, normal)) > -slack
        ):
            store(t.points, place + kept, c)
            store(t.whole, place + kept, name)
            kept += 1
    return kept


@kernel
def point_in(c, o, x, y, axis, normal):
    """The point with these coordinates along x and y, across `axis`, and this height over the plane through o."""
    flat = x * c.x + y * c.y
    return o + flat + axis * ((c.z - dot(normal, flat)) / dot(normal, axis))


@kernel
def touch_face(g, t, a, A, middle, lowest, height, ra, up, upright, sure, limit, size):
    """Contact points along the normal with the part of A's facing side that is over the triangle.

    A point is over it along the normal, or for fields vertically: behind a field no point is lost between its columns.
    With `sure` the lowest point counts at any place.
    """
    n = load(t.points, NORMAL)
    slack = slight(size) * size
    there = sure or is_over(t, lowest - middle, height, slack)
    if upright:
        there = sure or is_over(t, lowest - up * (height / dot(n, up)) - middle, zero(size), slack)
    n_corners, _ = side_towards(g, t, SEAT_A, a, A, -n, FIRST)
    place = FIRST
    axis = up if upright else n
    none = zero(size)
    across = Vec3(none + 1.0, none, none) if fabs(axis.x) < 0.6 else Vec3(none, none + 1.0, none)
    x = unit(cross(across, axis), across)
    y = cross(axis, x)
    o = middle + load(t.points, FACET)
    if n_corners > 1:
        for k in range(3):
            put_corner(t, FRAME + k, middle + load(t.points, FACET + k), k)
        in_plane(t, FRAME, 3, o, x, y, n)
        in_plane(t, FIRST, n_corners, o, x, y, n)
        place, n_corners = clip_by_frame(t, 3, n_corners)
        n_corners = keep_marks(t, place, n_corners, x, y, axis, n, upright, slack)
    else:
        n_corners = 0
    noise = 64.0 * rounding(size) * size
    if there and (n_corners == 0 or load(t.points, deepest(t, place, n_corners, none)).z > height + noise):
        p = lowest - o
        store(t.points, place + n_corners, Vec3(dot(x, p), dot(y, p), height))
        store(t.whole, place + n_corners, DEEPEST)
        n_corners += 1
    if n_corners == 0:
        return
    for i in range(place, place + choose(t, place, n_corners, limit + ra, noise)):
        c = load(t.points, i)
        point = point_in(c, o, x, y, axis, n) - n * (0.5 * (c.z + ra))
        put(t, limit, c.z - ra, -n, point, load(t.whole, i))


# ---- along any direction ---------------------------------------------------------------------------------------------


@kernel
def search_facet(g, t, a, A, F, room, size):
    """Signed distance of the core of A and the triangle: whether it may be within a limit, has a direction; where."""
    kind = load(g.kind, a)
    if kind in (SPHERE, CAPSULE):
        half = A.half.y if kind == CAPSULE else zero(size)
        noise = 4.0 * rounding(size) * size
        apart, near = nearest_segment(t, column2(A.R), half, F.p, load(t.points, NORMAL), noise)
        return near.gap <= room, apart, near
    if kind in (CYLINDER, ELLIPSOID):
        # for curved shapes that overlap, it is faster to search the valid normals one by one: see `search_edges`
        start = unit(F.p, load(t.points, NORMAL))
        found, near = search_gap(g, t, a, TRIANGLE_NUMBER, A, F, start, room, size)
        close = 4.0 * sqrt(rounding(size)) * size
        return found != FAR and near.gap <= room, found == APART and near.gap > close, near
    within, near = least_gap(g, t, a, TRIANGLE_NUMBER, A, F, room, size)
    return within and near.gap <= room, True, near


@kernel
def search_own(g, t, a, b, A, B, F, height, room, size):
    """The signed distance along a valid normal: whether there may be contact points, whether it was found; where.

    A shape may have entered beside the triangle and still have the least penetration about its edges.
    """
    near_enough, apart, near = search_facet(g, t, a, A, F, maximum(room, -height), size)
    within, own = near_enough and near.gap <= room, False
    if within and apart and is_own(g, t, b, B, -near.normal, near.b - F.p):
        return True, True, near
    # a penetration G about an edge implies a distance of at most G from it, and G is at most its height
    if near_enough and near.gap < -height:
        own, near = search_edges(g, t, a, b, A, B, F, height, size)
    return within or own, own, near


@kernel
def touch_facet(g, t, a, b, A, B, limit, size):
    """Contact points of A with the selected triangle, as a list in the manifold; their effect on other triangles."""
    middle, sound = place_facet(g, t, b, B)
    n, ra = load(t.points, NORMAL), core_radius(g, a, A)
    lowest = core_point(g, t, SEAT_A, a, A, -n)
    height = dot(n, lowest - middle)
    along_normal = Facet(middle, n, height - ra)
    if not sound or height - ra > limit:
        return along_normal
    solid = load(g.kind, b) == FIELD
    behind = dot(n, core_point(g, t, SEAT_A, a, A, n) - middle) + ra < 0.0
    if behind and not solid:
        return along_normal
    bend_edges(g, t, b, B, middle)
    up, upright = column2(B.R), solid and height < 0.0
    clear = inset(t, lowest - middle) >= 2.0 * maximum(sharpest(t), zero(size)) * maximum(-height, zero(size))
    sure = False
    if not (behind or clear or sharpest(t) <= turning(size)):
        F = facet_placed(B, middle)
        within, own, near = search_own(g, t, a, b, A, B, F, height, limit + ra, size)
        if not within and not solid:
            return along_normal
        if own:
            sure = height >= near.gap - maximum(16.0 * rounding(size) * size, snap(size) * fabs(near.gap))
            if not sure:
                touch_near(g, t, a, TRIANGLE_NUMBER, A, F, near, ra, zero(size), zero3(size), limit + ra, size)
                return Facet(middle, -near.normal, near.gap - ra)
    touch_face(g, t, a, A, middle, lowest, height, ra, up, upright, sure, limit, size)
    return along_normal
