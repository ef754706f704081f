"""Rays against every kind of shape, in lanes of rays: shapes are plain numbers that all rays share.

A ray that starts outside a solid hits its surface from outside, one that starts inside hits it from inside. Normals
always point outward. The surfaces of height fields and meshes have two sides and no thickness.
"""

from __future__ import annotations

from typing import Any

from poise.collision.ray_casting.height_field_rays import field_normal, meet_field
from poise.collision.ray_casting.mesh_rays import meet_mesh
from poise.collision.ray_casting.ray_spans import (
    NEVER,
    box_normal,
    box_span,
    capsule_normal,
    capsule_span,
    cylinder_normal,
    cylinder_span,
    ellipsoid_normal,
    ellipsoid_span,
    first_crossing,
    sphere_span,
    unit,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import gather, load, store
from poise.kernel.scalars import any_lane, fabs, maximum, select, spread, to_int, zero
from poise.kernel.trace import formula
from poise.kernel.vec import column2, dot, transpose_times, zero3
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE, BOX = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE), int(Solid.BOX)
CYLINDER, ELLIPSOID, HULL = int(Solid.CYLINDER), int(Solid.ELLIPSOID), int(Solid.HULL)
FIELD, MESH = int(Solid.FIELD), int(Solid.MESH)


@formula
def plane_crossing(normal: Any, away: Any, d: Any) -> Any:
    """Distance along a ray to a plane, from a point at the height `away` above it."""
    height, sinking = dot(normal, away), -dot(normal, d)
    crosses = fabs(sinking) > 0.0
    return select(crosses, height / select(crosses, sinking, zero(sinking) + 1.0), zero(height) - NEVER)


@formula
def clip(enter: Any, leave: Any, depth: Any, rate: Any) -> Any:
    """Intersection of a span with a half space; depth + t · rate ≤ 0 is inside."""
    flat = rate == 0.0
    t = -depth / select(flat, zero(rate) + 1.0, rate)
    outside = flat & (depth > 0.0)
    enter = select((rate < 0.0) & (t > enter), t, select(outside, zero(enter) + NEVER, enter))
    return enter, select((rate > 0.0) & (t < leave), t, leave)


@kernel
def hull_span(u, i, o, d):
    """Span inside a hull."""
    enter, leave = spread(-NEVER, o.x), spread(NEVER, o.x)
    for k in range(load(u.plane_start, i), load(u.plane_start, i + 1)):
        normal = load(u.plane_normal, k)
        enter, leave = clip(enter, leave, dot(normal, o) - load(u.plane_offset, k), dot(normal, d))
    return enter, leave


@kernel
def convex_span(g, u, i, kind, o, d):
    """Span inside a convex shape."""
    size = load(g.size, i)
    if kind == SPHERE:
        return sphere_span(o, d, size.x)
    if kind == CAPSULE:
        return capsule_span(o, d, size)
    if kind == BOX:
        return box_span(o, d, size)
    if kind == CYLINDER:
        return cylinder_span(o, d, size)
    if kind == ELLIPSOID:
        return ellipsoid_span(o, d, size)
    return hull_span(u, i, o, d)


@kernel
def meet_shape(g, u, x, i, o, d, low, high, stack):
    """First hit of rays with shape i between `low` and `high`, NEVER if there is none; and the triangle of a mesh."""
    kind = load(g.kind, i)
    face = to_int(zero(d.x))
    R = load(x.rotation, i)
    away = o - load(x.position, i)
    if kind == PLANE:
        t = plane_crossing(column2(R), away, d)
        return select((t >= low) & (t <= high), t, zero(t) + NEVER), face
    shift = -dot(away, d)  # to the point that is nearest to the centre
    p, v = transpose_times(R, away + d * shift), transpose_times(R, d)
    if kind == FIELD:
        t = meet_field(g, u, i, p, v, low - shift, high - shift)
    elif kind == MESH:
        t, face = meet_mesh(u, i, p, v, low - shift, high - shift, stack)
    else:
        enter, leave = convex_span(g, u, i, kind, p, v)
        t = first_crossing(enter, leave, low - shift)
    met = t < NEVER
    t = maximum(t + shift, low)
    return select(met & (t <= high), t, zero(t) + NEVER), face


@kernel
def hull_normal(u, i, p):
    """Normal of the plane that a point is farthest outside of."""
    start = load(u.plane_start, i)
    best = dot(load(u.plane_normal, start), p) - load(u.plane_offset, start)
    normal = zero3(p.x) + load(u.plane_normal, start)
    for k in range(start + 1, load(u.plane_start, i + 1)):
        out = dot(load(u.plane_normal, k), p) - load(u.plane_offset, k)
        normal = select(out > best, zero3(p.x) + load(u.plane_normal, k), normal)
        best = maximum(out, best)
    return normal


@kernel
def own_normal(g, u, i, kind, p, face):
    """Unit normal of shape i in its own frame, at points of its surface in that frame."""
    size = load(g.size, i)
    if kind == SPHERE:
        return unit(p)
    if kind == CAPSULE:
        return capsule_normal(p, size)
    if kind == BOX:
        return box_normal(p, size)
    if kind == CYLINDER:
        return cylinder_normal(p, size)
    if kind == ELLIPSOID:
        return ellipsoid_normal(p, size)
    if kind == HULL:
        return hull_normal(u, i, p)
    if kind == FIELD:
        return field_normal(g, i, p)
    return gather(u.face_normal, face)


@kernel
def surface_normal(g, u, x, i, p, face):
    """Unit outward normal of shape i at points of its surface, in the world."""
    R = load(x.rotation, i)
    kind = load(g.kind, i)
    if kind == PLANE:
        return zero3(p.x) + column2(R)
    return R @ own_normal(g, u, i, kind, transpose_times(R, p - load(x.position, i)), face)


@kernel
def near_shape(g, x, i, o, d, low, high):
    """Whether rays hit the bounding sphere of shape i."""
    reach = load(g.reach, i) * 1.0001
    away = o - load(x.position, i)
    middle = -dot(away, d)
    apart = away + d * middle
    return (dot(apart, apart) <= reach * reach) & (middle + reach >= low) & (middle - reach <= high)


@kernel
def cast_rays(g, u, x, r, near):
    """The first shape that each ray hits beyond a distance `near`."""
    for k in range(r.n_groups):
        o, d = load(r.origin, k), load(r.direction, k)
        low = spread(near, d.x)
        best = load(r.distance, k)
        shape, face = to_int(zero(d.x)) - 1, to_int(zero(d.x))
        for i in range(g.n_shapes):
            if load(r.seen, i) != 0 and any_lane(near_shape(g, x, i, o, d, low, best)):
                t, triangle = meet_shape(g, u, x, i, o, d, low, best, r.stack)
                met = t < NEVER
                best = select(met, t, best)
                shape = select(met, zero(shape) + i, shape)
                face = select(met, triangle, face)
        store(r.distance, k, best)
        store(r.shape, k, shape)
        normal = zero3(d.x)
        for i in range(g.n_shapes):
            mine = shape == i
            if any_lane(mine):
                normal = select(mine, surface_normal(g, u, x, i, o + d * best, face), normal)
        store(r.normal, k, normal)
