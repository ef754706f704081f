"""Parts: the formulas of rows. This module defines a part, and has those of points; rotations are in
`orientation_parts`, curves in `curve_parts`, rolling in `nonholonomic_parts`.

A part takes the states of two bodies A and B and its attachments to them, and gives rows: an error φ, the covectors
that pair with the bodies' twists, and γ = J̇v:

    φ̇ = pair(twist of A, a) + pair(twist of B, b)
    φ̈ = pair(acceleration of A, a) + pair(acceleration of B, b) + γ

Twists are (ω, v) in world axes at the centre of mass, accelerations (ω̇, v̇). A positive multiplier pushes B away from A.
Vectors are attached in body axes, relative to the centre of mass; the world is a body at rest (`world`).

A function of the relative pose alone exerts no net force and no net couple on the two bodies. Points of B are therefore
expressed in A: y = R_Aᵀ(p_B − p_A). For any function f of y with gradient g and Hessian H,

    φ = f(y),   φ̇ = g · ẏ,   φ̈ = g · ÿ + ẏᵀHẏ                                              (1)

and with n = R_A g, s = p_B − x_A the arm from A's centre of mass to B's point, r its arm on B, u = R_A ẏ,

    u = v_B + ω_B×r − v_A − ω_A×s,   a = −(s×n, n),   b = (r×n, n)                         (2)
    R_A ÿ = … + ω_B×(ω_B×r) − ω_A×(ω_A×s) − 2 ω_A×u                                        (3)

where … are the accelerations that a and b pair with. Planes, lines, rails, spheres and linear motors differ in f only.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.scalars import fabs, maximum, select, sqrt, zero
from poise.kernel.spatial import Force, Motion, pair
from poise.kernel.trace import formula
from poise.kernel.values import Value
from poise.kernel.vec import Mat3, Vec3, column, cross, dot, identity3, skew, transpose_times, zero3

TINY = 1e-30
"""Vectors whose square is less count as zero. float32 squares them without underflow."""
CLOSE = 1e-8
"""Lower bound of lengths that divide curvatures: γ grows, but stays finite."""


class Body(Value):
    """State of a body: centre of mass x (m), rotation R, angular velocity w (rad/s), velocity v of x (m/s), in world
    axes.
    """

    fields = (("x", Vec3), ("R", Mat3), ("w", Vec3), ("v", Vec3))
    __slots__ = ("R", "v", "w", "x")
    x: Any
    R: Any
    w: Any
    v: Any


class Part(Value):
    """One row: error phi (m or rad), gamma = J̇v (m/s² or rad/s²), covectors a and b on the twists of both bodies.

    Parts on the same two bodies add up, and may be multiplied by numbers.
    """

    fields = (("phi", None), ("gamma", None), ("a", Force), ("b", Force))
    __slots__ = ("a", "b", "gamma", "phi")
    phi: Any
    gamma: Any
    a: Any
    b: Any


class Combined(Value):
    """One row on the two bodies a, b of a first part and the two bodies c, d of a second one, which may be the same."""

    fields = (("phi", None), ("gamma", None), ("a", Force), ("b", Force), ("c", Force), ("d", Force))
    __slots__ = ("a", "b", "c", "d", "gamma", "phi")
    phi: Any
    gamma: Any
    a: Any
    b: Any
    c: Any
    d: Any


@formula
def world(like: Any) -> Any:
    """The world as a body: at rest at its origin."""
    none = zero3(like)
    return Body(none, identity3(like), none, none)


@formula
def row_velocity(part: Any, a: Any, b: Any) -> Any:
    """φ̇; m/s or rad/s."""
    return pair(Motion(a.w, a.v), part.a) + pair(Motion(b.w, b.v), part.b)


@formula
def at_least(part: Any, low: Any) -> Any:
    """φ − low: 0 or more where the part's error is at least `low`. Also the error of a motor whose goal is `low`."""
    return Part(part.phi - low, part.gamma, part.a, part.b)


@formula
def at_most(part: Any, high: Any) -> Any:
    """high − φ: 0 or more where the part's error is at most `high`."""
    return Part(high - part.phi, -part.gamma, -part.a, -part.b)


@formula
def gear(first: Any, second: Any, ratio: Any, offset: Any) -> Any:
    """φ₁ + ratio · φ₂ − offset, from any two parts: gears, belts, rack and pinion (KOK §4's linear h)."""
    phi = first.phi + ratio * second.phi - offset
    return Combined(phi, first.gamma + ratio * second.gamma, first.a, first.b, second.a * ratio, second.b * ratio)


# ---- directions ------------------------------------------------------------------------------------------------------


@formula
def unit(v: Any, fallback: Any) -> Any:
    """v with length 1; the fallback where v is too short to have a direction."""
    n2 = dot(v, v)
    none = n2 < TINY
    return select(none, fallback, v * (1.0 / sqrt(select(none, zero(n2) + 1.0, n2))))


@formula
def perpendiculars(u: Any) -> Any:
    """Unit vectors g, h such that (u/|u|, g, h) is right-handed; they depend on u alone."""
    one, none = zero(u.x) + 1.0, zero(u.x)
    axis = unit(u, Vec3(none, none, one))
    # of the axes x and y, the one that is further from u
    aside = fabs(axis.x) < 0.6
    g = cross(Vec3(select(aside, one, none), select(aside, none, one), none), axis)
    g = g * (1.0 / sqrt(dot(g, g)))
    return g, cross(axis, g)


# ---- a point of B relative to A --------------------------------------------------------------------------------------


class Reach(Value):
    """A point of B relative to A, in world axes: d from A's own point to it (m), velocity u relative to A (m/s),
    acceleration c relative to A without the bodies' own accelerations (m/s²), arms ra and rb of the point on both
    bodies (m).
    """

    fields = (("d", Vec3), ("u", Vec3), ("c", Vec3), ("ra", Vec3), ("rb", Vec3))
    __slots__ = ("c", "d", "ra", "rb", "u")
    d: Any
    u: Any
    c: Any
    ra: Any
    rb: Any


@formula
def reach(a: Any, b: Any, pa: Any, pb: Any) -> Any:
    """The point pb of B relative to the point pa of A: eqs. 2 and 3."""
    ra, rb = a.R @ pa, b.R @ pb
    d = (b.x - a.x) + (rb - ra)
    arm = ra + d
    u = b.v + cross(b.w, rb) - a.v - cross(a.w, arm)
    c = cross(b.w, cross(b.w, rb)) - cross(a.w, cross(a.w, arm) + u * 2.0)
    return Reach(d, u, c, arm, rb)


@formula
def reach_row(r: Any, phi: Any, n: Any, bend: Any) -> Any:
    """Row of a function of a point of B in A: value, gradient n in world axes, ẏᵀHẏ (eq. 1)."""
    return Part(phi, dot(n, r.c) + bend, Force(-cross(r.ra, n), -n), Force(cross(r.rb, n), n))


@formula
def seen_from(a: Any, b: Any, pb: Any) -> Any:
    """The point pb of B in A's axes, from A's centre of mass: the argument of a curve or a surface; m."""
    return transpose_times(a.R, (b.x - a.x) + b.R @ pb)


@formula
def point(a: Any, b: Any, pa: Any, pb: Any) -> Any:
    """Three rows in world axes, φ = p_B − p_A: ball and socket (VON §3.1, §4.1), linear motor (§5.1); m.

    World axes are fixed in neither body: while φ is not 0, a force along them leaves the couple φ × f. See `offset`.
    """
    ra, rb = a.R @ pa, b.R @ pb
    phi = (b.x - a.x) + (rb - ra)
    gamma = cross(b.w, cross(b.w, rb)) - cross(a.w, cross(a.w, ra))
    axes, turn_a, turn_b = identity3(phi.x), skew(ra), skew(rb)
    e = [column(axes, k) for k in range(3)]
    # r × e is a column of [r]×
    on_a = [Force(-column(turn_a, k), -e[k]) for k in range(3)]
    on_b = [Force(column(turn_b, k), e[k]) for k in range(3)]
    rows = zip(phi.leaves(), gamma.leaves(), on_a, on_b, strict=True)
    return tuple(Part(*row) for row in rows)


@formula
def along(a: Any, b: Any, pa: Any, pb: Any, n: Any) -> Any:
    """φ = n · (p_B − p_A) for a direction n fixed in A: height over a plane, travel of a slider, linear motor; m.

    With pa and pb at the centres of mass, VON §5.3.2 with the full Jacobian: (n × (x_B − x_A)) · ω_A included, so that
    there is no net couple.
    """
    r, n = reach(a, b, pa, pb), a.R @ n
    return reach_row(r, dot(n, r.d), n, zero(r.d.x))


@formula
def offset(a: Any, b: Any, pa: Any, pb: Any) -> Any:
    """Three rows, p_B − p_A in A's axes: linear motor in three directions without a net couple (VON §5.1); m."""
    r = reach(a, b, pa, pb)
    axes = [column(a.R, k) for k in range(3)]
    return tuple(reach_row(r, dot(n, r.d), n, zero(r.d.x)) for n in axes)


@formula
def on_line(a: Any, b: Any, pa: Any, pb: Any, u: Any) -> Any:
    """Two rows: B's point is on the line through A's point along u, fixed in A; m."""
    g, h = perpendiculars(u)
    r = reach(a, b, pa, pb)
    return tuple(reach_row(r, dot(n, r.d), n, zero(r.d.x)) for n in (a.R @ g, a.R @ h))


@formula
def on_segment(a: Any, b: Any, pa: Any, pb: Any, u: Any, low: Any, high: Any) -> Any:
    """Three rows: two of a line through A's point along the unit vector u, and the distance to the nearer end; m.

    The third is an inequality: 0 or more between the ends at `low` and `high`, negative beyond.
    """
    r = reach(a, b, pa, pb)
    g, h, t = (a.R @ n for n in (*perpendiculars(u), u))
    travel = dot(t, r.d)
    first = travel - low < high - travel
    end = reach_row(r, select(first, travel - low, high - travel), select(first, t, -t), zero(travel))
    return (*(reach_row(r, dot(n, r.d), n, zero(travel)) for n in (g, h)), end)


@formula
def distance(a: Any, b: Any, pa: Any, pb: Any) -> Any:
    """φ = |p_B − p_A|: rods, and with `at_least` and `at_most` struts and ropes; m.

    Where the points coincide, the direction is A's x axis, an arbitrary choice. γ is exact down to 1e-8 m.
    """
    r = reach(a, b, pa, pb)
    d2 = dot(r.d, r.d)
    length = sqrt(d2)
    n = unit(r.d, column(a.R, 0))
    around = cross(n, r.u)  # n × u has the length of the part of u across n
    return reach_row(r, length, n, dot(around, around) / maximum(length, zero(length) + CLOSE))


@formula
def inside_sphere(a: Any, b: Any, pa: Any, pb: Any, radius: Any) -> Any:
    """φ = (radius² − |p_B − p_A|²) / (2 radius): the distance to the wall, to first order at the wall; m.

    Smooth everywhere, unlike radius − distance; J is 0 in the centre.
    """
    r = reach(a, b, pa, pb)
    k = 1.0 / radius
    return reach_row(r, 0.5 * (radius - dot(r.d, r.d) * k), r.d * -k, -dot(r.u, r.u) * k)


@formula
def on_surface(a: Any, b: Any, pb: Any, f: Any, gradient: Any, hessian: Any) -> Any:
    """φ = f: B's point is on a surface f = 0 fixed in A, outside where f > 0.

    f, its gradient (Vec3) and Hessian (Sym3) are those at `seen_from(a, b, pb)`. Multipliers are forces if f is in m
    and its gradient of unit length on the surface.
    """
    r = reach(a, b, zero3(b.x.x), pb)
    y_rate = transpose_times(a.R, r.u)
    return reach_row(r, f, a.R @ gradient, dot(y_rate, hessian @ y_rate))
