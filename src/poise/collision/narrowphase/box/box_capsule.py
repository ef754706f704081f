"""Contact points of a box and a segment with a radius, in the axes of the box.

The segment is q + s u, u of unit length, s from −half to half. Projected along the normal, part of it is over a face of
the box. The contact points are at the ends of this part (features 0 and 1): both if the segment is parallel to the face
or to one of its edges, else the nearer one.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.box_geometry import (
    STILL,
    absolute,
    across_axis,
    axis,
    grain,
    largest,
    part,
    seen,
    signed,
    span,
    turned,
)
from poise.collision.narrowphase.box.clip_faces import LYING
from poise.collision.narrowphase.convex.manifold_list import put
from poise.kernel.jit import kernel
from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import formula
from poise.kernel.vec import dot


@formula
def skin(s: Any, half: Any, radius: Any, c: Any) -> Any:
    """Distance from the point s of a capsule's core to its surface, against a normal whose cosine with the core is c.

    Through the cylinder, or through the cap of an end: |(s − end) u − τ n| = radius.
    """
    across = maximum(1.0 - c * c, zero(c) + STILL)
    side = radius / sqrt(across)
    foot = s - side * c
    rest = s - signed(half, foot)
    cap = c * rest + sqrt(maximum(radius * radius - rest * rest * across, zero(c)))
    return select(fabs(foot) <= half, side, cap)


@kernel
def through_axis(q, u, half, h, nothing):
    """Direction of least penetration of a segment that intersects the box.

    It is an axis of the box, or perpendicular to such an axis and the segment. Face normals are preferred.
    """
    one = zero(q.x) + 1.0
    gaps = absolute(q) - h - absolute(u) * half
    k = largest(gaps, nothing)
    best, out = part(gaps, k) + nothing, axis(k, one)
    for i in range(3):
        n = across_axis(i, u)  # perpendicular to u, to the last place
        gap = fabs(dot(n, q)) - dot(absolute(n), h)
        if dot(n, n) > 0.5 and gap > best:
            best, out = gap, n
    return select(dot(out, q) < 0.0, -out, out)


@kernel
def touch_segment(t, box, q, u, half, radius, s, out, nothing, limit):
    """Contact points along a normal out of the box; reported normals point into it. The segment is nearest at s."""
    one = zero(s) + 1.0
    k = largest(absolute(out), grain(s))
    side = signed(one, part(out, k))
    n, h = turned(out, k, side), turned(box.half, k, one)
    start, along = seen(turned(q, k, side), n, h.z), seen(turned(u, k, side), n, zero(s))
    x_low, x_high = span(start.x, along.x, h.x + nothing)
    y_low, y_high = span(start.y, along.y, h.y + nothing)
    low, high = maximum(maximum(x_low, y_low), -half), minimum(minimum(x_high, y_high), half)
    if high < low:  # by rounding: its projection is just beside the face
        low, high = s, s
    nearer = 0 if along.z >= 0.0 else 1
    lies = high > low + 8.0 * nothing and fabs(along.z) <= LYING
    c = dot(out, u)
    for end in range(2):
        if lies or end == nearer:
            s_end = high if end else low
            apart = start.z + s_end * along.z
            depth = skin(s_end, half, radius, c)
            point = q + u * s_end - out * (0.5 * (apart + depth))
            put(t, limit, apart - depth, -(box.R @ out), box.p + box.R @ point, end)
