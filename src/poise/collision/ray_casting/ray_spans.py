"""Spans of rays inside convex shapes: from `enter` to `leave`, in the shape's own frame.

A ray is o + t d with d of unit length and o the point of its line that is nearest to the centre of the shape: so
rounding errors depend on the size of the shape, not on the distance of the ray's origin. If the ray misses the shape,
enter > leave. Boundaries belong to shapes. Sizes are those of `model.shape_arrays`.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, dot

NEVER = 1e30
"""Larger than any distance; finite, so that sums with it are finite."""
STILL = 1e-18
"""Component of a direction below which a ray does not move along an axis: a nanometre in a million kilometres."""
STEEP = 1e-30
"""Square of the component of a direction perpendicular to an axis below which a ray is parallel to it."""


@formula
def within(enter: Any, leave: Any, hit: Any) -> Any:
    """The span if a mask is set, else an empty one."""
    return select(hit, enter, zero(enter) + NEVER), select(hit, leave, zero(leave) - NEVER)


@formula
def sphere_span(o: Any, d: Any, radius: Any) -> Any:
    """|o + t d| ≤ radius."""
    b = dot(o, d)
    apart = o - d * b
    square = radius * radius - dot(apart, apart)
    s = sqrt(maximum(square, zero(square)))
    return within(-b - s, -b + s, square >= 0.0)


@formula
def round_span(o: Any, d: Any, radius: Any) -> Any:
    """Inside an infinite cylinder about z; and whether the ray intersects it."""
    a = d.x * d.x + d.y * d.y
    slanted = a > STEEP
    inverse = 1.0 / select(slanted, a, zero(a) + 1.0)
    middle = select(slanted, -(o.x * d.x + o.y * d.y) * inverse, zero(a))
    x, y = o.x + d.x * middle, o.y + d.y * middle
    square = radius * radius - (x * x + y * y)
    half = select(slanted, sqrt(maximum(square, zero(square)) * inverse), zero(a) + NEVER)
    return middle - half, middle + half, square >= 0.0


@formula
def slab_span(o: Any, d: Any, half: Any) -> Any:
    """|o + t d| ≤ half, along one axis."""
    moves = fabs(d) > STILL
    inverse = 1.0 / select(moves, d, zero(d) + 1.0)
    one, two = (-half - o) * inverse, (half - o) * inverse
    far = select(fabs(o) <= half, zero(d) + NEVER, zero(d) - NEVER)
    return select(moves, minimum(one, two), -far), select(moves, maximum(one, two), far)


@formula
def box_span(o: Any, d: Any, half: Any) -> Any:
    """Inside a box."""
    spans = [slab_span(a, b, c) for a, b, c in zip(o.leaves(), d.leaves(), half.leaves(), strict=True)]
    (ax, bx), (ay, by), (az, bz) = spans
    return maximum(maximum(ax, ay), az), minimum(minimum(bx, by), bz)


@formula
def cylinder_span(o: Any, d: Any, size: Any) -> Any:
    """Inside a cylinder along z."""
    enter, leave, hit = round_span(o, d, size.x)
    low, high = slab_span(o.z, d.z, size.y)
    return within(maximum(enter, low), minimum(leave, high), hit)


@formula
def capsule_end(o: Any, d: Any, size: Any, t: Any, entering: bool) -> Any:
    """Where a line that crosses a capsule's infinite cylinder at t crosses the capsule: there, or at one of its caps.

    Above or below the capsule's cylinder the line can only cross the sphere on that side: a line that passes the disc
    between the two is inside the sphere.
    """
    z = o.z + d.z * t
    end = select(z > 0.0, zero(z) + size.y, zero(z) - size.y)
    ball = sphere_span(Vec3(o.x, o.y, o.z - end), d, size.x)
    return select(fabs(z) <= size.y, t, ball[0] if entering else ball[1])


@formula
def capsule_span(o: Any, d: Any, size: Any) -> Any:
    """Inside a capsule along z."""
    enter, leave, hit = round_span(o, d, size.x)
    return within(capsule_end(o, d, size, enter, True), capsule_end(o, d, size, leave, False), hit)


@formula
def scaled(v: Any, half: Any) -> Any:
    """A vector in the frame in which an ellipsoid is the unit sphere."""
    return Vec3(v.x / half.x, v.y / half.y, v.z / half.z)


@formula
def ellipsoid_span(o: Any, d: Any, half: Any) -> Any:
    """Inside an ellipsoid."""
    p, u = scaled(o, half), scaled(d, half)
    inverse = 1.0 / dot(u, u)
    middle = -dot(p, u) * inverse
    apart = p + u * middle
    square = 1.0 - dot(apart, apart)
    s = sqrt(maximum(square, zero(square)) * inverse)
    return within(middle - s, middle + s, square >= 0.0)


@formula
def first_crossing(enter: Any, leave: Any, low: Any) -> Any:
    """The first end of a span that is not before `low`; NEVER if there is none."""
    t = select(enter >= low, enter, leave)
    return select((enter <= leave) & (t >= low), t, zero(t) + NEVER)


# ---- normals, at points that are on the surface up to rounding -------------------------------------------------------


@formula
def unit(v: Any) -> Any:
    """The normalized vector."""
    return v * (1.0 / sqrt(dot(v, v)))


@formula
def capsule_normal(p: Any, size: Any) -> Any:
    """Away from the nearest point of the core."""
    return unit(Vec3(p.x, p.y, p.z - minimum(maximum(p.z, -size.y), zero(p.z) + size.y)))


@formula
def side(x: Any, chosen: Any) -> Any:
    """The sign of x if the axis is chosen, else 0."""
    one = zero(x) + 1.0
    return select(chosen, select(x < 0.0, -one, one), zero(x))


@formula
def box_normal(p: Any, half: Any) -> Any:
    """Normal of the nearest face."""
    x, y, z = fabs(p.x) - half.x, fabs(p.y) - half.y, fabs(p.z) - half.z
    on_x = (x >= y) & (x >= z)
    on_y = ~on_x & (y >= z)
    return Vec3(side(p.x, on_x), side(p.y, on_y), side(p.z, ~on_x & ~on_y))


@formula
def cylinder_normal(p: Any, size: Any) -> Any:
    """Normal of the nearest of the side and both caps."""
    across = sqrt(p.x * p.x + p.y * p.y)
    beside = across - size.x > fabs(p.z) - size.y
    inverse = 1.0 / select(beside, across, zero(across) + 1.0)
    none = zero(across)
    return Vec3(select(beside, p.x * inverse, none), select(beside, p.y * inverse, none), side(p.z, ~beside))


@formula
def ellipsoid_normal(p: Any, half: Any) -> Any:
    """Gradient of Σ (x/half)²."""
    return unit(scaled(scaled(p, half), half))
