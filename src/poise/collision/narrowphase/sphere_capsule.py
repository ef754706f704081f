"""Contact points of planes, spheres and capsules: closed forms without branches.

A sphere is a point and a radius, a capsule a segment and a radius: the distance of their surfaces is that of their
cores less the radii. Where two cores intersect the normal is undefined: a fixed one is used.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import Touch
from poise.collision.narrowphase.pair_order import comes_later
from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import formula, precision
from poise.kernel.vec import Vec3, column2, cross, dot

PARALLEL = 1e-12
"""Square of the sine of the angle below which two capsules count as parallel."""
TINY = 1e-24
"""Square of a length, m², below which a vector has no direction."""


@formula
def clamp(x: Any, low: Any, high: Any) -> Any:
    """X clamped to bounds."""
    return minimum(maximum(x, low), high)


@formula
def between(pa: Any, pb: Any, ra: Any, rb: Any, fallback: Any, least2: Any = TINY) -> Any:
    """Contact point of two spheres; along a fallback direction if their squared distance is not above the least.

    The fallback is negated if the centres are in the opposite order along it.
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
    """The fallback direction."""
    none = zero(like)
    return Vec3(none, none, none + 1.0)


@formula
def plane_ball(plane: Any, p: Any, r: Any) -> Any:
    """Contact point of a plane and a sphere at a point."""
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
    """Contact point of a plane and a sphere."""
    return plane_ball(a, b.p, b.half.x)


@formula
def plane_capsule(a: Any, b: Any) -> Any:
    """Contact points of a plane and both ends of a capsule."""
    low, high = ends(b)
    return plane_ball(a, low, b.half.x), plane_ball(a, high, b.half.x)


@formula
def sphere_sphere(a: Any, b: Any) -> Any:
    """Contact point of two spheres. The lesser of two with one centre is pushed up."""
    up = upward(a.p.x)
    return between(a.p, b.p, a.half.x, b.half.x, select(comes_later(a, b), -up, up))


@formula
def flipped(touch: Any, swapped: Any) -> Any:
    """A contact point with its normal negated where two shapes were swapped."""
    return Touch(touch.gap, select(swapped, -touch.normal, touch.normal), touch.point)


@formula
def sphere_capsule(a: Any, b: Any) -> Any:
    """Contact point of a sphere and a capsule. A centre on the core is pushed out sideways."""
    axis = column2(b.R)
    t = clamp(dot(axis, a.p - b.p), -b.half.y, b.half.y)
    return between(a.p, b.p + axis * t, a.half.x, b.half.x, Vec3(b.R.xx, b.R.yx, b.R.zx))


@formula
def capsules_near(a: Any, b: Any, limit: Any) -> Any:
    """Whether two capsules may be within a distance: an early rejection for most pairs whose boxes overlap.

    Nearest points of cores at a small angle are inaccurate, with a distance error of at most the square root of the
    rounding error; the test includes that error, so that it rejects no contact.
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
    """Contact points of two capsules: nearest points of two segments, and a second pair for parallel ones.

    The first contact point is the nearest one. The second is valid where the last value, a mask, is set.
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
    clear = n2 > rounding  # below that the nearest points are noise, but all points are equally near
    inverse = 1.0 / select(clear, n2, zero(n2) + 1.0)
    s = clamp((ud - uv * vd) * inverse, -ha, ha)
    t = clamp(uv * s - vd, -hb, hb)
    s = clamp(uv * t + ud, -ha, ha)
    sideways = side * sqrt(inverse)
    fallback = select(clear, sideways, Vec3(a.R.xx, a.R.yx, a.R.zx))
    # where cores nearly intersect, the vector between them is noise; the vector across both is exact
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
