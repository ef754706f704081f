"""Contact points of a box with a plane, a sphere, a capsule or a box.

All are exact: the distance of separated shapes, and the least penetration of overlapping ones. Corner k of a box is at
the positive end of axis i if bit i of k is set.
"""

from __future__ import annotations

from poise.collision.narrowphase.box.box_box import box_box
from poise.collision.narrowphase.box.box_capsule import through_axis, touch_segment
from poise.collision.narrowphase.box.box_geometry import absolute, ball_gap, grain, largest, nearest_along, part, total
from poise.collision.narrowphase.convex.manifold_list import put
from poise.kernel.jit import kernel
from poise.kernel.vec import Vec3, column2, dot, transpose_times
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)


@kernel
def touch_box(t, kind_a, A, B, limit):
    """Contact points of a box with a plane, a sphere, a capsule or a box."""
    if kind_a == PLANE:
        plane_box(t, A, B, limit)
    elif kind_a == SPHERE:
        sphere_box(t, A, B, limit)
    elif kind_a == CAPSULE:
        capsule_box(t, A, B, limit)
    else:
        box_box(t, A, B, limit)


@kernel
def plane_box(t, A, B, limit):
    """The corners of the face that faces the plane; the deepest corner of all is one of them."""
    normal = column2(A.R)
    n = transpose_times(B.R, normal)
    k = largest(absolute(n), grain(n.x))
    for corner in range(8):
        if (corner >> k & 1 == 1) == (part(n, k) < 0.0):
            p = B.p + B.R @ corner_of(B.half, corner)
            gap = dot(normal, p - A.p)
            put(t, limit, gap, normal, p - normal * (0.5 * gap), corner)


@kernel
def corner_of(h, corner):
    """A corner of a box."""
    x = h.x if corner & 1 else -h.x
    y = h.y if corner & 2 else -h.y
    z = h.z if corner & 4 else -h.z
    return Vec3(x, y, z)


@kernel
def sphere_box(t, A, B, limit):
    """One contact point: nearest to the centre, or out through the nearest face."""
    x = transpose_times(B.R, A.p - B.p)
    distance, out, foot = ball_gap(x, B.half, grain(x.x) * (total(B.half) + total(absolute(x))))
    gap = distance - A.half.x
    put(t, limit, gap, -(B.R @ out), B.p + B.R @ (foot + out * (0.5 * gap)), 0)


@kernel
def capsule_box(t, A, B, limit):
    """At both ends of the part that is parallel to a face or an edge, else where the core is nearest."""
    q = transpose_times(B.R, A.p - B.p)
    u = transpose_times(B.R, column2(A.R))
    radius, half = A.half.x, A.half.y
    nothing = grain(q.x) * (total(B.half) + half + total(absolute(q)))
    s = nearest_along(q, u, half, B.half)
    distance, out, _ = ball_gap(q + u * s, B.half, nothing)
    if distance - radius > limit:
        return
    if distance <= nothing:
        out = through_axis(q, u, half, B.half, nothing)
    touch_segment(t, B, q, u, half, radius, s, out, nothing, limit)
