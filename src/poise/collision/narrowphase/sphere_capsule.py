"""Touches of planes, spheres and capsules: closed forms without branches.

A sphere is a point and a radius, a capsule a segment and a radius: what is between their surfaces is what is between
their cores, less the radii. Where two cores meet, no direction is better than another: a fixed one is taken.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import Touch
from poise.collision.narrowphase.pair_order import comes_later
from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import formula, precision
from poise.kernel.vec import Vec3, column2, cross, dot

PARALLEL = 1e-12
"""Square of the sine between two capsules that touch along a line."""
TINY = 1e-24
"""Square of a length, m², below which a vector has no direction."""


@formula
def clamp(x: Any, low: Any, high: Any) -> Any:
    """X within bounds."""
    return minimum(maximum(x, low), high)


@formula
def between(pa: Any, pb: Any, ra: Any, rb: Any, fallback: Any, least2: Any = TINY) -> Any:
    """Touch of two balls; where the square of what is between their centres is not above the least, along a fallback.

    That is turned round where the centres are the other way along it.
    """
    d = pb - pa
    d2 = dot(d, d)
    apart = d2 > least2
    along = dot(fallback, d)
    length = sqrt(select(apart, d2, zero(d2) + 1.0))
    normal = select(apart, d * (1.0 / length), select(along < 0.0, -fallback, fallback))
    gap = select(apart, length, fabs(along)) - (ra + rb)
    return Touch(gap, normal, pa + normal * (ra + 0.5 * gap))


@formula
def upward(like: Any) -> Any:
    """The direction that is taken where none is better."""
    none = zero(like)
    return Vec3(none, none, none + 1.0)


@formula
def plane_ball(plane: Any, p: Any, r: Any) -> Any:
    """Touch of a plane and a ball."""
    normal = column2(plane.R)
    gap = dot(normal, p - plane.p) - r
    return Touch(gap, normal, p - normal * (r + 0.5 * gap))


@formula
def ends(capsule: Any) -> Any:
    """Both ends of a capsule's core."""
    half = column2(capsule.R) * capsule.half.y
    return capsule.p - half, capsule.p + half


@formula
def plane_sphere(a: Any, b: Any) -> Any:
    """Touch of a plane and a sphere."""
    return plane_ball(a, b.p, b.half.x)


@formula
def plane_capsule(a: Any, b: Any) -> Any:
    """Touches of a plane and both ends of a capsule."""
    low, high = ends(b)
    return plane_ball(a, low, b.half.x), plane_ball(a, high, b.half.x)


@formula
def sphere_sphere(a: Any, b: Any) -> Any:
    """Touch of two spheres. The lesser of two with one centre is pushed up."""
    up = upward(a.p.x)
    return between(a.p, b.p, a.half.x, b.half.x, select(comes_later(a, b), -up, up))


@formula
def flipped(touch: Any, swapped: Any) -> Any:
    """A touch with its normal turned round where two shapes have changed places."""
    return Touch(touch.gap, select(swapped, -touch.normal, touch.normal), touch.point)


@formula
def sphere_capsule(a: Any, b: Any) -> Any:
    """Touch of a sphere and a capsule. A centre on the core is pushed out sideways."""
    axis = column2(b.R)
    t = clamp(dot(axis, a.p - b.p), -b.half.y, b.half.y)
    return between(a.p, b.p + axis * t, a.half.x, b.half.x, Vec3(b.R.xx, b.R.yx, b.R.zx))


@formula
def capsules_near(a: Any, b: Any, limit: Any) -> Any:
    """Whether two capsules may be within a distance: most whose boxes meet are not, and this is soon known.

    Of cores at a small angle the nearest points are lost in rounding, and with them the square root of it of a distance
    at most: nobody is overlooked.
    """
    u, v, d = column2(a.R), column2(b.R), b.p - a.p
    ha, hb = a.half.y, b.half.y
    uv, ud, vd = dot(u, v), dot(u, d), dot(v, d)
    side = cross(u, v)
    n2 = dot(side, side)
    s = clamp((ud - uv * vd) / select(n2 > 0.0, n2, zero(n2) + 1.0), -ha, ha)
    t = clamp(uv * s - vd, -hb, hb)
    s = clamp(uv * t + ud, -ha, ha)
    apart = d + v * t - u * s
    reach, doubt = a.half.x + b.half.x + limit, 8.0 * 2.0 ** (0.5 * (1 - precision(uv)))
    reach = reach + (reach + ha + hb) * doubt
    return dot(apart, apart) <= reach * reach


@formula
def capsule_capsule(a: Any, b: Any) -> Any:
    """Touches of two capsules: nearest points of two segments, and where these are parallel a second pair.

    The first touch is the nearest one. The second is only meant where the last value, a mask, says so.
    """
    swapped = comes_later(a, b)
    a, b = select(swapped, b, a), select(swapped, a, b)
    u, v = column2(a.R), column2(b.R)
    ha, hb = a.half.y, b.half.y
    d = b.p - a.p
    uv, ud, vd = dot(u, v), dot(u, d), dot(v, d)
    side = cross(u, v)
    n2 = dot(side, side)
    rounding = 2.0 ** (1 - precision(uv))
    clear = n2 > rounding  # of less than that the nearest points are noise, but all points are as near
    inverse = 1.0 / select(clear, n2, zero(n2) + 1.0)
    s = clamp((ud - uv * vd) * inverse, -ha, ha)
    t = clamp(uv * s - vd, -hb, hb)
    s = clamp(uv * t + ud, -ha, ha)
    sideways = side * sqrt(inverse)
    fallback = select(clear, sideways, Vec3(a.R.xx, a.R.yx, a.R.zx))
    # where cores nearly meet, what is between them is noise, and across both of them is exact
    least2 = TINY + rounding * (ha + hb) * (ha + hb)
    # parallel cores overlap along the axis of A between these two
    reach = hb * fabs(uv)
    low, high = maximum(ud - reach, -ha), minimum(ud + reach, ha)
    beside = (n2 < maximum(zero(n2) + PARALLEL, zero(n2) + 4.0 * rounding)) & (high > low)
    level = beside & ~clear
    first, t_first = select(level, low, s), select(level, clamp(uv * (low - ud), -hb, hb), t)
    second = select(level | (s + s < low + high), high, low)
    t_second = clamp(uv * (second - ud), -hb, hb)
    one = between(a.p + u * first, b.p + v * t_first, a.half.x, b.half.x, fallback, least2)
    two = between(a.p + u * second, b.p + v * t_second, a.half.x, b.half.x, fallback, least2)
    return flipped(one, swapped), flipped(two, swapped), beside
