"""Acceleration of the gap of two shapes: γ of a contact row, with a contact point that moves over both surfaces.

The row of a contact is φ̇ = n · (v_B − v_A) at its point. Its rate is J·(accelerations) + γ, and γ has more terms than
the rotation of the normal (VON §3.5 has ṅ · Δv): the nearest points change. On a smooth surface the point whose outward
normal is n is the gradient of the support function h(n), so that it moves by

    P = ∇²h(n)    radii of curvature: r I of a sphere, 0 at a corner, infinite along an edge or on a face

times the rotation of the normal in the body. With p_B − p_A = gap n, the normal changes by ṅ, perpendicular to n:

    (P_A + P_B + gap) ṅ = Δv + P_A (ω_A × n) + P_B (ω_B × n)                                                    (1)

with Δv the relative velocity of the two nearest points, fixed in their bodies. The nearest points themselves move by

    ṗ_A = v_A + ω_A × r_A + P_A (ṅ − ω_A × n)          ṗ_B = v_B + ω_B × r_B − P_B (ṅ − ω_B × n)               (2)

r their arms from the centres of mass, v the velocities of these. Rows are at the point half way, p = (p_A + p_B) / 2,
with the relative velocity u of the bodies there, along directions that rotate with the normal by Ω = n × ṅ. The rate of
such a row, along d, without accelerations of the bodies is γ = d · G with

    G = ω_B × (ṗ − v_B) − ω_A × (ṗ − v_A) + u × Ω                                                              (3)

along the normal and along tangents.
"""

from __future__ import annotations

from typing import Any

from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import fabs, maximum, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.values import Value
from poise.kernel.vec import Sym3, Vec3, cross, dot, rotate_sym, transpose_times
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)
BOX, CYLINDER, ELLIPSOID, HULL = int(Solid.BOX), int(Solid.CYLINDER), int(Solid.ELLIPSOID), int(Solid.HULL)


@formula
def flat(like: Any) -> Any:
    """Radius of curvature that stands for an infinite one: its error is as small as that of rounding."""
    return constant(1e8 if precision(like) > 24 else 1e3, like)


@formula
def slight(like: Any) -> Any:
    """Sine of an angle below which it counts as zero."""
    return constant(1e-7 if precision(like) > 24 else 1e-3, like)


# ---- radii of curvature, in the axes of the shape --------------------------------------------------------------------


@formula
def diagonal(x: Any, y: Any, z: Any) -> Any:
    """A diagonal matrix."""
    none = zero(x)
    return Sym3(x, y, z, none, none, none)


@formula
def endless_where(none: Any) -> Any:
    """The radius that stands for infinity where a component of the normal is zero, else 0."""
    return select(fabs(none) < slight(none), flat(none), zero(none))


@formula
def ball_radii(n: Any, r: Any) -> Any:
    """r (1 − n nᵀ)."""
    x, y, z = n.x * r, n.y * r, n.z * r
    return Sym3(r - x * n.x, r - y * n.y, r - z * n.z, -x * n.y, -x * n.z, -y * n.z)


@formula
def capsule_radii(n: Any, r: Any) -> Any:
    """Radii of a sphere, infinite along the axis on the side."""
    return ball_radii(n, r) + diagonal(zero(r), zero(r), endless_where(n.z))


@formula
def box_radii(n: Any) -> Any:
    """Infinite along the axes perpendicular to the normal: none at a corner, one on an edge, two on a face."""
    return diagonal(endless_where(n.x), endless_where(n.y), endless_where(n.z))


@formula
def cylinder_radii(n: Any, r: Any) -> Any:
    """r / |n_xy| around the axis, flat along it on the side; flat on the caps. h = r |n_xy| + half |n_z|."""
    across2 = n.x * n.x + n.y * n.y
    cap = across2 < slight(r) * slight(r)
    across = sqrt(select(cap, zero(r) + 1.0, across2))
    around = r / (across * across * across)
    side = Sym3(around * n.y * n.y, around * n.x * n.x, endless_where(n.z), -around * n.x * n.y, zero(r), zero(r))
    return select(cap, diagonal(flat(r), flat(r), zero(r)), side)


@formula
def ellipsoid_radii(n: Any, half: Any) -> Any:
    """∇² of h = |D n|, D the half axes."""
    v = Vec3(half.x * half.x * n.x, half.y * half.y * n.y, half.z * half.z * n.z)
    h = sqrt(dot(n, v))
    k, k3 = 1.0 / h, 1.0 / (h * h * h)
    xx, yy, zz = half.x * half.x * k, half.y * half.y * k, half.z * half.z * k
    return Sym3(
        xx - v.x * v.x * k3,
        yy - v.y * v.y * k3,
        zz - v.z * v.z * k3,
        -v.x * v.y * k3,
        -v.x * v.z * k3,
        -v.y * v.z * k3,
    )


@kernel
def hull_radii(g, i, n):
    """Infinite along the directions between corners that are equally far along the normal."""
    first, last = load(g.vertex_start, i), load(g.vertex_start, i + 1)
    top = load(g.vertex, first)
    for k in range(first + 1, last):
        vertex = load(g.vertex, k)
        if dot(vertex, n) > dot(top, n):
            top = vertex
    level = dot(top, n) - slight(n.x) * load(g.reach, i)
    none = zero(n.x)
    P = diagonal(none, none, none)
    for k in range(first, last):
        vertex = load(g.vertex, k)
        if dot(vertex, n) >= level:
            along = vertex - top
            length2 = dot(along, along)
            if length2 > 0.0:
                scale = flat(none) / length2
                P = P + Sym3(
                    along.x * along.x * scale,
                    along.y * along.y * scale,
                    along.z * along.z * scale,
                    along.x * along.y * scale,
                    along.x * along.z * scale,
                    along.y * along.z * scale,
                )
    return P


@kernel
def radii(g, i, S, n):
    """P of shape i, placed as S, where its outward normal is n; fields and meshes are flat like their triangles."""
    local, kind = transpose_times(S.R, n), load(g.kind, i)
    none = zero(n.x)
    P = diagonal(none + flat(none), none + flat(none), none)
    if kind == SPHERE:
        return ball_radii(n, S.half.x)
    if kind == CAPSULE:
        P = capsule_radii(local, S.half.x)
    elif kind == BOX:
        P = box_radii(local)
    elif kind == CYLINDER:
        P = cylinder_radii(local, S.half.x)
    elif kind == ELLIPSOID:
        P = ellipsoid_radii(local, S.half)
    elif kind == HULL:
        P = hull_radii(g, i, local)
    elif kind != PLANE:
        return ball_radii(n, flat(none))
    return rotate_sym(S.R, P)


# ---- γ ---------------------------------------------------------------------------------------------------------------


class Moving(Value):
    """Motion of a body: arm r from its centre of mass to its nearest point (m), angular velocity w (rad/s), velocity v
    of the centre of mass (m/s), and the radii of curvature P there (m).
    """

    fields = (("r", Vec3), ("w", Vec3), ("v", Vec3), ("P", Sym3))
    __slots__ = ("P", "r", "v", "w")
    r: Any
    w: Any
    v: Any
    P: Any


@formula
def tangents(n: Any) -> Any:
    """Two unit vectors perpendicular to n."""
    none, one = zero(n.x), zero(n.x) + 1.0
    aside = fabs(n.x) < 0.6
    g = cross(Vec3(select(aside, one, none), select(aside, none, one), none), n)
    g = g * (1.0 / sqrt(dot(g, g)))
    return g, cross(n, g)


@formula
def turn_by(n: Any, gap: Any, P: Any, right: Any) -> Any:
    """x perpendicular to n with (P + gap) x = right, for positive P + gap."""
    g, h = tangents(n)
    Pg, Ph = P @ g, P @ h
    least = constant(1e-12, gap)
    xx, yy, xy = maximum(dot(g, Pg) + gap, least), maximum(dot(h, Ph) + gap, least), dot(g, Ph)
    x, y = dot(g, right), dot(h, right)
    # elimination with the larger radius first: determinants would cancel
    swap = yy > xx
    big, small = select(swap, yy, xx), select(swap, xx, yy)
    first, second = select(swap, y, x), select(swap, x, y)
    share = xy / big
    minor = (second - share * first) / maximum(small - share * xy, least)
    major = (first - xy * minor) / big
    return g * select(swap, minor, major) + h * select(swap, major, minor)


@formula
def normal_rate(n: Any, gap: Any, slide: Any, a: Any, b: Any) -> Any:
    """ṅ of eq. 1, from the relative velocity of the nearest points."""
    return turn_by(n, gap, a.P + b.P, slide + a.P @ cross(a.w, n) + b.P @ cross(b.w, n))


@formula
def gap_bend(n: Any, gap: Any, a: Any, b: Any) -> Any:
    """G of a contact (eq. 3); m/s²."""
    fast_a, fast_b = a.v + cross(a.w, a.r), b.v + cross(b.w, b.r)
    slide = fast_b - fast_a
    turn = normal_rate(n, gap, slide, a, b)
    rate_a, rate_b = fast_a + a.P @ (turn - cross(a.w, n)), fast_b - b.P @ (turn - cross(b.w, n))
    rate = (rate_a + rate_b) * 0.5
    half_way = slide - cross(a.w + b.w, n * (0.5 * gap))
    return cross(b.w, rate - b.v) - cross(a.w, rate - a.v) + cross(half_way, cross(n, turn))
