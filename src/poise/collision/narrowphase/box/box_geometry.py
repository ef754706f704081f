"""Formulas of one box: nearest points, and projections along a direction.

A box is centred on the origin of its own axes and has half edges h; everything here is in these axes. A length below
`grain` times the sizes of the shapes counts as zero: rounding makes such differences.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.sphere_capsule import clamp
from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, to_int, zero
from poise.kernel.trace import formula, precision
from poise.kernel.vec import Vec3, dot

_GRAIN = {24: 2e-6, 53: 1e-10}
STILL = 1e-30
"""Component of a unit vector that counts as zero in divisions."""
FAR = 1e32
"""More than any length, also in float32; m."""


@formula
def grain(x: Any) -> Any:
    """Relative tolerance of lengths in the precision of x."""
    return zero(x) + _GRAIN[precision(x)]


@formula
def part(v: Any, k: Any) -> Any:
    """Component k, an index at run time."""
    return select(k == 0, v.x, select(k == 1, v.y, v.z))


@formula
def axis(k: Any, size: Any) -> Any:
    """Vector of a length along axis k, an index at run time."""
    o = zero(size)
    return Vec3(select(k == 0, size, o), select(k == 1, size, o), select(k == 2, size, o))


@formula
def across_axis(k: Any, u: Any) -> Any:
    """Unit vector along the cross product of axis k, an index at run time, and u; zero where they are parallel.

    It is perpendicular to both, to the last place.
    """
    o = zero(u.x)
    x = select(k == 0, o, select(k == 1, u.z, -u.y))
    y = select(k == 0, -u.z, select(k == 1, o, u.x))
    z = select(k == 0, u.y, select(k == 1, -u.x, o))
    size2 = x * x + y * y + z * z
    some = size2 > STILL
    return Vec3(x, y, z) * select(some, 1.0 / sqrt(select(some, size2, o + 1.0)), o)


@formula
def absolute(v: Any) -> Any:
    """Absolute values of the components."""
    return Vec3(fabs(v.x), fabs(v.y), fabs(v.z))


@formula
def total(v: Any) -> Any:
    """Sum of the components."""
    return v.x + v.y + v.z


@formula
def signed(size: Any, x: Any) -> Any:
    """A size with the sign of x; that of 0 is positive."""
    return select(x < 0.0, -size, size)


@formula
def within(v: Any, h: Any) -> Any:
    """The point of the box that is nearest to v."""
    return Vec3(clamp(v.x, -h.x, h.x), clamp(v.y, -h.y, h.y), clamp(v.z, -h.z, h.z))


@formula
def largest(v: Any, slack: Any) -> Any:
    """Index of the largest component; a later one must be larger by a slack, so that ties do not flicker."""
    y = v.y > v.x + slack
    z = v.z > select(y, v.y, v.x) + slack
    none = zero(v.x)
    return to_int(select(z, none + 2.0, select(y, none + 1.0, none)))


# ---- nearest to a segment --------------------------------------------------------------------------------------------


@formula
def slope(q: Any, u: Any, h: Any, s: Any) -> Any:
    """Half the derivative by s of the squared distance of q + s u from the box."""
    x = q + u * s
    return dot(u, x - within(x, h))


@formula
def nearest_along(q: Any, u: Any, half: Any, h: Any) -> Any:
    """The s from −half to half whose point q + s u is nearest to the box.

    The squared distance is convex in s. Its derivative is piecewise linear and increasing, with kinks at the six planes
    of faces: evaluating it at every kink finds the piece with its root.
    """
    first, last = slope(q, u, h, -half), slope(q, u, h, half)
    low, high, g_low, g_high = -half, half, first, last
    for x, d, edge in zip(q.leaves(), u.leaves(), h.leaves(), strict=True):
        inverse = 1.0 / select(fabs(d) > STILL, d, zero(d) + STILL)
        for side in (-edge, edge):
            s = clamp((side - x) * inverse, -half, half)
            g = slope(q, u, h, s)
            before, after = (g <= 0.0) & (s >= low), (g > 0.0) & (s <= high)
            low, g_low = select(before, s, low), select(before, g, g_low)
            high, g_high = select(after, s, high), select(after, g, g_high)
    rise = g_high - g_low
    root = low - g_low * (high - low) / select(rise > 0.0, rise, zero(rise) + 1.0)
    inside = clamp(select(rise > 0.0, root, low), -half, half)
    return select(first >= 0.0, -half, select(last <= 0.0, half, inside))


# ---- projections along a direction -----------------------------------------------------------------------------------


@formula
def turned(v: Any, k: Any, way: Any) -> Any:
    """A vector in axes whose third is axis k of the box, or opposite to it where `way` is −1."""
    x = select(k == 0, v.y, select(k == 1, v.z, v.x))
    y = select(k == 0, v.z, select(k == 1, v.x, v.y))
    return Vec3(x, y, part(v, k) * way)


@formula
def turned_back(v: Any, k: Any, way: Any) -> Any:
    """The inverse of `turned`."""
    z = v.z * way
    x = select(k == 0, z, select(k == 1, v.y, v.x))
    y = select(k == 0, v.x, select(k == 1, z, v.y))
    return Vec3(x, y, select(k == 0, v.y, select(k == 1, v.x, z)))


@formula
def seen(v: Any, n: Any, level: Any) -> Any:
    """Intersection (x, y) of the line through v along n with the plane z = level, and v's distance from it along n."""
    gap = (v.z - level) / n.z
    return Vec3(v.x - n.x * gap, v.y - n.y * gap, gap)


@formula
def span(x: Any, d: Any, half: Any) -> Any:
    """Interval of s in which x + s d is between −half and half; its start is above its end where it is empty."""
    moves = fabs(d) > STILL
    inverse = 1.0 / select(moves, d, zero(d) + 1.0)
    a, b = (-half - x) * inverse, (half - x) * inverse
    big = zero(d) + FAR
    still = select(fabs(x) <= half, big, -big)
    return select(moves, minimum(a, b), -still), select(moves, maximum(a, b), still)


# ---- a sphere --------------------------------------------------------------------------------------------------------


@formula
def direction(v: Any, length2: Any) -> Any:
    """A vector of a given squared length, normalized."""
    return v * (1.0 / sqrt(select(length2 > 0.0, length2, zero(length2) + 1.0)))


@formula
def ball_gap(x: Any, h: Any, nothing: Any) -> Any:
    """Signed distance of a point x from the surface, negative inside; outward normal; nearest point of the surface.

    Inside, the normal is that of the nearest face.
    """
    foot = within(x, h)
    off = x - foot
    d2 = dot(off, off)
    apart = d2 > nothing * nothing
    over = absolute(x) - h
    k = largest(over, nothing)
    gap = select(apart, sqrt(d2), part(over, k))
    out = select(apart, direction(off, d2), axis(k, signed(zero(gap) + 1.0, part(x, k))))
    return gap, out, select(apart, foot, x - out * gap)
