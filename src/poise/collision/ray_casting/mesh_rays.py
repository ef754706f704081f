"""Rays against meshes: a group of rays traverses the tree of boxes together, while any of them hits a box.

A triangle is projected along the ray: the ray hits it if it is on the same side of all three edges. The side is found
by comparing two rounded products. Rounding may make them equal, which counts as both sides, but never changes their
order: so no ray slips through between triangles that share an edge or a corner (Woop, Benthin and Wald 2013, Watertight
Ray/Triangle Intersection, §3).
"""

from __future__ import annotations

from typing import Any

from poise.collision.ray_casting.ray_spans import NEVER, STILL
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, get_lane, maximum, minimum, select, spread, to_int, zero
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, cross, dot, norm


@formula
def across(d: Any) -> Any:
    """Two unit vectors that complete the unit vector d to a right-handed frame."""
    steep = fabs(d.z) > 0.7
    none = zero(d.x)
    least = Vec3(select(steep, none + 1.0, none), none, select(steep, none, none + 1.0))
    x = cross(least, d)
    x = x * (1.0 / norm(x))
    return x, cross(d, x)


@formula
def inverted(d: Any) -> Any:
    """1/d of each component, large where it is zero."""
    tiny = zero(d.x) + STILL
    return d.map(lambda a: 1.0 / select(fabs(a) > STILL, a, tiny))


@formula
def meets_box(low: Any, high: Any, o: Any, inverse: Any, near: Any, far: Any) -> Any:
    """Whether rays intersect a box between `near` and `far`."""
    ax, bx = (low.x - o.x) * inverse.x, (high.x - o.x) * inverse.x
    ay, by = (low.y - o.y) * inverse.y, (high.y - o.y) * inverse.y
    az, bz = (low.z - o.z) * inverse.z, (high.z - o.z) * inverse.z
    enter = maximum(maximum(minimum(ax, bx), minimum(ay, by)), maximum(minimum(az, bz), near))
    leave = minimum(minimum(maximum(ax, bx), maximum(ay, by)), minimum(maximum(az, bz), far))
    return enter <= leave


@formula
def seen_along(p: Any, x: Any, y: Any, d: Any) -> Any:
    """A point in the frame of a ray, which is along z."""
    return Vec3(dot(p, x), dot(p, y), dot(p, d))


@formula
def crossing(a: Any, b: Any, c: Any) -> Any:
    """Distance along the ray to a triangle; NEVER if there is no hit."""
    # not differences of products: these may be contracted, which could change their sign
    pairs = [(p.x * q.y, p.y * q.x) for p, q in ((b, c), (c, a), (a, b))]
    (u0, u1), (v0, v1), (w0, w1) = pairs
    one_side = ((u0 >= u1) & (v0 >= v1) & (w0 >= w1)) | ((u0 <= u1) & (v0 <= v1) & (w0 <= w1))
    u, v, w = u0 - u1, v0 - v1, w0 - w1
    total = u + v + w
    met = one_side & (fabs(total) > 0.0)
    t = (u * a.z + v * b.z + w * c.z) / select(met, total, zero(total) + 1.0)
    return select(met, t, zero(total) + NEVER)


@kernel
def meet_triangle(u, k, o, x, y, d):
    """Distance along rays to triangle k."""
    a = seen_along(load(u.corner, 3 * k) - o, x, y, d)
    b = seen_along(load(u.corner, 3 * k + 1) - o, x, y, d)
    c = seen_along(load(u.corner, 3 * k + 2) - o, x, y, d)
    return crossing(a, b, c)


@kernel
def first_child_is_nearer(u, k, d):
    """Whether the first of two children comes before the second along a direction, as plain numbers."""
    apart = load(u.node_low, k + 1) + load(u.node_high, k + 1) - load(u.node_low, k) - load(u.node_high, k)
    return dot(apart, get_lane(d, 0)) >= 0.0


@kernel
def meet_mesh(u, i, o, d, low, high, stack):
    """First hit of rays with a mesh between `low` and `high`, in its own frame, and its triangle."""
    base = load(u.node_start, i)
    found, face = spread(NEVER, d.x), to_int(zero(d.x))
    x, y = across(d)
    inverse = inverted(d)
    far = high
    depth = 0
    if base < load(u.node_start, i + 1):
        store(stack, 0, base)
        depth = 1
    while depth > 0:
        depth -= 1
        node = load(stack, depth)
        if not any_lane(meets_box(load(u.node_low, node), load(u.node_high, node), o, inverse, low, far)):
            continue
        child = load(u.node_child, node)
        if child >= 0:
            first = base + child
            nearer = first_child_is_nearer(u, first, d)
            store(stack, depth, first + 1 if nearer else first)
            store(stack, depth + 1, first if nearer else first + 1)
            depth += 2
            continue
        begin = load(u.node_first, node)
        for k in range(begin, begin + load(u.node_count, node)):
            t = meet_triangle(u, k, o, x, y, d)
            met = (t >= low) & (t <= far)
            found = select(met, t, found)
            face = select(met, zero(face) + k, face)
            far = minimum(far, found)
    return found, face
