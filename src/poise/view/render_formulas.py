"""Formulas of pictures: colours, the floor's squares, soft shadows."""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import fabs, floor, maximum, minimum, select, sqrt, to_int, zero
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, dot, norm


@formula
def clamp01(x: Any) -> Any:
    """X clamped to 0 and 1."""
    return minimum(maximum(x, zero(x)), zero(x) + 1.0)


@formula
def smooth(x: Any) -> Any:
    """Smoothstep: from 0 to 1 with zero slope at both ends."""
    s = clamp01(x)
    return s * s * (3.0 - 2.0 * s)


@formula
def mix(a: Any, b: Any, share: Any) -> Any:
    """Colour a with a share of b."""
    return a + (b - a) * share


@formula
def times(a: Any, b: Any) -> Any:
    """Product of each part."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


@formula
def encoded(x: Any) -> Any:
    """Linear light as sRGB, 0 to 1, by roots: at most 0.004 off, which is one step of 255."""
    one = sqrt(clamp01(x))
    two = sqrt(one)
    return clamp01(0.585122381 * one + 0.783140355 * two - 0.368262736 * sqrt(two))


@formula
def packed(c: Any) -> Any:
    """A colour of linear light as bytes of one integer, red lowest."""
    r, g, b = (to_int(encoded(part) * 255.0 + 0.5) for part in c.leaves())
    return r | (g << 8) | (b << 16)


@formula
def stripes(x: Any, width: Any) -> Any:
    """The mean, over a width, of what is 1 on even and −1 on odd unit steps."""
    low, high = (x - 0.5 * width) * 0.5, (x + 0.5 * width) * 0.5
    return 2.0 * (fabs(low - floor(low) - 0.5) - fabs(high - floor(high) - 0.5)) / width


@formula
def squares(x: Any, y: Any, width_x: Any, width_y: Any) -> Any:
    """How much of a patch of the floor lies on light squares, 0 to 1."""
    return 0.5 + 0.5 * stripes(x, width_x) * stripes(y, width_y)


@formula
def ball_gap(p: Any, v: Any, size: Any) -> Any:
    """Gap between a line and a ball, and how far along the line it is."""
    t = -dot(p, v)
    return norm(p + v * t) - size.x, t


@formula
def capsule_gap(p: Any, v: Any, size: Any) -> Any:
    """Gap between a line and a capsule along z, and how far along the line it is."""
    a = v.x * v.x + v.y * v.y
    slanted = a > 1e-9
    t = select(slanted, -(p.x * v.x + p.y * v.y) / select(slanted, a, zero(a) + 1.0), zero(a))
    z = minimum(maximum(p.z + t * v.z, -size.y), zero(a) + size.y)
    to_core = Vec3(p.x, p.y, p.z - z)
    t = -dot(to_core, v)
    return norm(to_core + v * t) - size.x, t


@formula
def ellipsoid_gap(p: Any, v: Any, half: Any) -> Any:
    """Approximate gap between a line and an ellipsoid (exact at zero), and its position along the line."""
    q, u = Vec3(p.x / half.x, p.y / half.y, p.z / half.z), Vec3(v.x / half.x, v.y / half.y, v.z / half.z)
    t = -dot(q, u) / dot(u, u)
    scale = norm(q + u * t)
    return norm(p + v * t) * (1.0 - 1.0 / maximum(scale, zero(scale) + 1e-6)), t


@formula
def lit_beside(gap: Any, t: Any, soft: Any) -> Any:
    """Visible share of the sun past an edge, from the gap (negative behind it) and the distance of the edge."""
    return select(t > 0.0, smooth(0.5 + 0.5 * gap / (t * soft + 1e-5)), zero(t) + 1.0)


@formula
def covered(p: Any, normal: Any, core: Any, radius: Any) -> Any:
    """Ambient occlusion of a surface by a rounded box, 0 to 1; p and normal in its frame.

    A ball of radius r at a distance s over a surface hides (r/s)² of its light from the sky.
    """
    to_core = Vec3(
        minimum(maximum(p.x, -core.x), zero(p.x) + core.x) - p.x,
        minimum(maximum(p.y, -core.y), zero(p.x) + core.y) - p.y,
        minimum(maximum(p.z, -core.z), zero(p.x) + core.z) - p.z,
    )
    s2 = maximum(dot(to_core, to_core), zero(p.x) + radius * radius)
    return maximum(dot(to_core, normal), zero(p.x)) * (radius * radius) / (s2 * sqrt(s2))
