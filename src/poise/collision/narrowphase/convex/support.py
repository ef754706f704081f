"""Support mappings: the farthest point of a shape in a direction, the only access of GJK and EPA to convex shapes.

Spheres and capsules are a core, a point or a segment, with a radius: distances are computed exactly for cores, and the
radius is added. All points here are in world axes, relative to the centre of A, which avoids cancellation far from the
origin.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.box_geometry import signed
from poise.kernel.jit import kernel, stand_alone
from poise.kernel.memory import load, store
from poise.kernel.scalars import select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, dot, transpose_times
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)
BOX, CYLINDER, ELLIPSOID, HULL = int(Solid.BOX), int(Solid.CYLINDER), int(Solid.ELLIPSOID), int(Solid.HULL)

TRIANGLE = 100
"""Kind of the current triangle of a surface: shape number −1, its corners in `points`."""
FACET = 3000
"""Offset of its corners, relative to its middle; further data of the triangle follow."""
FACET_REACH = 2000
"""Offset in `numbers` of the largest distance of a corner from the middle; m."""

SEAT_A, SEAT_B = 0, 1
"""Offsets in `whole` of the corner of a hull at which the last search ended."""
SMALL_HULL = 64
"""Number of corners up to which comparing all of them is faster than hill climbing."""


@formula
def rounding(like: Any) -> Any:
    """Distance from 1 to the next floating-point number."""
    return constant(2.0 ** (1 - precision(like)), like)


@formula
def unit(v: Any, fallback: Any) -> Any:
    """The direction of a vector, or a fallback for the zero vector."""
    d2 = dot(v, v)
    there = d2 > 0.0
    return select(there, v * (1.0 / sqrt(select(there, d2, zero(d2) + 1.0))), fallback)


@formula
def times(a: Any, b: Any) -> Any:
    """Componentwise product."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


@formula
def of_cylinder(half: Any, n: Any) -> Any:
    """Support point of a cylinder on its rim."""
    r2 = n.x * n.x + n.y * n.y
    there = r2 > 0.0
    k = half.x / sqrt(select(there, r2, zero(r2) + 1.0))
    return Vec3(select(there, n.x * k, half.x), n.y * k, signed(half.y, n.z))


@formula
def of_ellipsoid(half: Any, n: Any) -> Any:
    """Support point of an ellipsoid: the gradient of h(n) = |half ∘ n|."""
    q = times(half, n)
    return times(half, unit(q, q))


@kernel
def core_kind(g, i):
    """Kind of a shape, or that of the current triangle."""
    return TRIANGLE if i < 0 else load(g.kind, i)


@kernel
def core_reach(g, t, i):
    """Radius of the bounding sphere about the middle of a shape; m."""
    return load(t.numbers, FACET_REACH) if i < 0 else load(g.reach, i)


@kernel
def top_of_facet(t, n):
    """Corner of the triangle that is farthest along n, relative to its middle."""
    best = load(t.points, FACET)
    for k in range(1, 3):
        corner = load(t.points, FACET + k)
        if dot(corner, n) > dot(best, n):
            best = corner
    return best


@kernel
def core_radius(g, i, S):
    """Radius of a shape about its core; m."""
    kind = load(g.kind, i)
    return S.half.x if kind in (SPHERE, CAPSULE) else zero(S.half.x)


@kernel
def top_corner(g, t, seat, i, n):
    """Corner of a hull that is farthest along n, in its axes.

    Hill climbing from a corner to its best neighbour, starting where the last search ended: a linear function on a
    convex polytope has no local maximum other than the global one.
    """
    first, last = load(g.vertex_start, i), load(g.vertex_start, i + 1)
    best = first
    top = dot(load(g.vertex, best), n)
    if last - first <= SMALL_HULL:
        for k in range(first + 1, last):
            height = dot(load(g.vertex, k), n)
            if height > top:
                best, top = k, height
        return best
    best = first + load(t.whole, seat)
    top = dot(load(g.vertex, best), n)
    better = True
    while better:
        better = False
        for e in range(load(g.neighbor_start, best), load(g.neighbor_start, best + 1)):
            k = load(g.neighbor, e)
            height = dot(load(g.vertex, k), n)
            if height > top:
                best, top, better = k, height, True
                break
    store(t.whole, seat, best - first)
    return best


@kernel
def core_point(g, t, seat, i, S, n):
    """Support point of a shape's core along n."""
    kind = core_kind(g, i)
    if kind == SPHERE:
        return S.p
    if kind == TRIANGLE:
        return S.p + top_of_facet(t, n)
    local, half = transpose_times(S.R, n), S.half
    none = zero(half.x)
    point = Vec3(none, none, none)
    if kind == CAPSULE:
        point = Vec3(none, none, signed(half.y, local.z))
    elif kind == BOX:
        point = Vec3(signed(half.x, local.x), signed(half.y, local.y), signed(half.z, local.z))
    elif kind == CYLINDER:
        point = of_cylinder(half, local)
    elif kind == ELLIPSOID:
        point = of_ellipsoid(half, local)
    else:
        point = load(g.vertex, top_corner(g, t, seat, i, local))
    return S.p + S.R @ point


@kernel
def nearest_points(g, t, a, b, A, B, n):
    """The support points of two cores for the gap along n: farthest of A, least of B."""
    stand_alone()
    return core_point(g, t, SEAT_A, a, A, n), core_point(g, t, SEAT_B, b, B, -n)
