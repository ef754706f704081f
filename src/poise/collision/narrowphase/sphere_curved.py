"""Exact nearest points of a cylinder and of an ellipsoid to a point, and the contact points of spheres with them."""

from __future__ import annotations

from poise.collision.narrowphase.box.box_geometry import signed
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.support import CYLINDER, rounding, unit
from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import fabs, maximum, minimum, select, sqrt, zero
from poise.kernel.vec import Vec3, dot, transpose_times

NEWTON = 60
"""Maximum number of Newton steps; ten are many."""


@kernel
def cylinder_out(half, p):
    """Signed distance of p, in the cylinder's axes, from its surface, and the outward normal at the nearest point."""
    none = zero(p.x)
    across = Vec3(p.x, p.y, none)
    side = unit(across, Vec3(none + 1.0, none, none))
    up = Vec3(none, none, signed(none + 1.0, p.z))
    beyond_side, beyond_cap = sqrt(dot(across, across)) - half.x, fabs(p.z) - half.y
    if beyond_side > 0.0 and beyond_cap > 0.0:
        d = sqrt(beyond_side * beyond_side + beyond_cap * beyond_cap)
        return d, (side * beyond_side + up * beyond_cap) * (1.0 / d)
    if beyond_cap >= beyond_side:
        return beyond_cap, up
    return beyond_side, side


@kernel
def ellipsoid_out(half, p):
    """Signed distance of p, in the ellipsoid's axes, from its surface, and the outward normal at the nearest point.

    The nearest point is x = e² p / (t + e²), component by component, with t the greatest root of |e p / (t + e²)| = 1
    (D. Eberly, "Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid", 2013); p − x = t x / e². With
    s = t + min e² there is no cancellation where p is near the middle plane. 1 / |·| is concave, nearly linear and
    increasing in s: Newton's steps from the left never overshoot (J. J. Moré, D. C. Sorensen 1983).
    """
    none = zero(p.x)
    e = half
    least = minimum(minimum(e.x, e.y), e.z)
    # e² − min e², without cancellation
    more = Vec3((e.x - least) * (e.x + least), (e.y - least) * (e.y + least), (e.z - least) * (e.z + least))
    nothing = least * least * rounding(least) * rounding(least)
    w = Vec3(above(e.x * fabs(p.x), nothing), above(e.y * fabs(p.y), nothing), above(e.z * fabs(p.z), nothing))
    s = maximum(maximum(w.x - more.x, w.y - more.y), maximum(w.z - more.z, none))
    q = ratio(w, more, s)
    if s == 0.0 and dot(q, q) < 1.0:
        # inside, and no nearer to one end of the least axis than to the other
        rest = sqrt(1.0 - dot(q, q))
        k = 0 if e.x == least else (1 if e.y == least else 2)
        x = Vec3(
            rest if k == 0 else q.x,
            rest if k == 1 else q.y,
            rest if k == 2 else q.z,
        )
    else:
        for _ in range(NEWTON):
            length = sqrt(dot(q, q))
            slope = dot(ratio(q, more, s), q)
            step = (length - 1.0) * length * length / slope
            if not step > rounding(s) * s:
                break
            s = s + step
            q = ratio(w, more, s)
        x = q
    gradient = Vec3(x.x / e.x, x.y / e.y, x.z / e.z)
    length = sqrt(dot(gradient, gradient))
    out = gradient * (1.0 / length)
    out = Vec3(signed(out.x, p.x), signed(out.y, p.y), signed(out.z, p.z))
    return (s - least * least) * length, out


@kernel
def above(x, nothing):
    """A number, or zero where it is not above the threshold `nothing`."""
    return select(x > nothing, x, zero(x))


@kernel
def positive(x):
    """A divisor; 1 in place of zero, where the dividend is zero too."""
    return select(x > 0.0, x, zero(x) + 1.0)


@kernel
def ratio(w, more, s):
    """w / (s + more), and zero where w is zero."""
    return Vec3(w.x / positive(s + more.x), w.y / positive(s + more.y), w.z / positive(s + more.z))


@kernel
def touch_ball(g, t, b, A, B, limit):
    """Contact point of a sphere A with a cylinder or an ellipsoid."""
    p = transpose_times(B.R, A.p - B.p)
    if load(g.kind, b) == CYLINDER:
        distance, out = cylinder_out(B.half, p)
    else:
        distance, out = ellipsoid_out(B.half, p)
    gap, outward = distance - A.half.x, B.R @ out
    put(t, limit, gap, -outward, A.p - outward * (distance - 0.5 * gap), 0)
