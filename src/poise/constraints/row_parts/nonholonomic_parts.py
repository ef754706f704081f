"""Nonholonomic constraints: C(x, v) = 0 that is not the derivative of a C(x) = 0 (UBC's C(x, v); VON §3.3).

Such a part has φ = 0; its row velocity is C, and γ completes Ċ. At a place p where A and B touch, their material slides
along a direction t at

    C = t · (v_B + ω_B×(p − x_B) − v_A − ω_A×(p − x_A))                                     (1)

The place moves over both bodies. With its own velocity ṗ,

    Ċ = … + ṫ · slip + t · (ω_B×(ṗ − v_B) − ω_A×(ṗ − v_A))                                  (2)

so that a wheel on a plane gets the acceleration of rolling, not that of a point nailed to its rim.
"""

from __future__ import annotations

from typing import Any

from poise.constraints.row_parts.point_parts import CLOSE, Part, perpendiculars, unit
from poise.kernel.scalars import maximum, sqrt, zero
from poise.kernel.spatial import Force
from poise.kernel.trace import formula
from poise.kernel.vec import column, cross, dot, identity3, zero3


@formula
def slip(a: Any, b: Any, rb: Any, p_rate: Any, t: Any, t_rate: Any) -> Any:
    """C = the velocity of B's material over A's along t (eqs. 1 and 2, all in world axes); m/s.

    The place is given by its arm rb = p − x_B, which is exact in float32 at any distance of the bodies from the origin.
    """
    ra = (b.x - a.x) + rb
    slide = b.v + cross(b.w, rb) - a.v - cross(a.w, ra)
    bias = cross(b.w, p_rate - b.v) - cross(a.w, p_rate - a.v)
    gamma = dot(t_rate, slide) + dot(t, bias)
    return Part(zero(gamma), gamma, Force(-cross(ra, t), -t), Force(cross(rb, t), t))


@formula
def unit_rate(v: Any, v_rate: Any, direction: Any) -> Any:
    """Rate of the unit vector along v, finite for short v."""
    length = maximum(sqrt(dot(v, v)), zero(v.x) + CLOSE)
    return (v_rate - direction * dot(direction, v_rate)) * (1.0 / length)


@formula
def wheel(a: Any, b: Any, n: Any, centre: Any, axle: Any, radius: Any) -> Any:
    """Two rows, along and across: a thin wheel of B rolls without slip on a plane of A; m/s.

    n: unit normal of the plane, in A's axes. centre and axle (unit): of the wheel, in B's axes. It touches at the
    lowest point of its rim, however inclined. A flat wheel touches everywhere; the rows are then arbitrary but finite.
    """
    up, hub, e = a.R @ n, b.R @ centre, b.R @ axle
    up_rate, hub_rate, e_rate = cross(a.w, up), cross(b.w, hub), cross(b.w, e)
    # rolling direction of a wheel that rotates about +axle; axle × level then points down in the wheel's own plane
    side = cross(e, up)
    level = unit(side, perpendiculars(up)[0])
    level_rate = unit_rate(side, cross(e_rate, up) + cross(e, up_rate), level)
    spoke = cross(e, level) * radius
    spoke_rate = (cross(e_rate, level) + cross(e, level_rate)) * radius
    arm, p_rate = hub + spoke, b.v + hub_rate + spoke_rate
    across, across_rate = cross(up, level), cross(up_rate, level) + cross(up, level_rate)
    return slip(a, b, arm, p_rate, level, level_rate), slip(a, b, arm, p_rate, across, across_rate)


@formula
def skate(a: Any, b: Any, n: Any, pb: Any, blade: Any) -> Any:
    """The blade of B, at pb and along `blade`, does not slide sideways on a plane of A with unit normal n; m/s.

    An upright blade has no sideways direction; the row is then arbitrary and finite.
    """
    up, r, t = a.R @ n, b.R @ pb, b.R @ blade
    side = cross(up, t)
    across = unit(side, perpendiculars(up)[0])
    across_rate = unit_rate(side, cross(cross(a.w, up), t) + cross(up, cross(b.w, t)), across)
    return slip(a, b, r, b.v + cross(b.w, r), across, across_rate)


@formula
def spin_about(a: Any, b: Any, u: Any) -> Any:
    """C = u · (ω_B − ω_A) for an axis u fixed in A: angular speed motor (VON §5.3.1), a hinge's rows (§4.3); rad/s."""
    n, spin = a.R @ u, b.w - a.w
    none = zero3(n.x)
    return Part(zero(n.x), dot(cross(a.w, n), spin), Force(-n, none), Force(n, none))


@formula
def spin(a: Any, b: Any) -> Any:
    """Three rows, ω_B − ω_A in world axes: angular velocity motor about three axes (VON §5.2); rad/s."""
    none, axes = zero3(a.w.x - b.w.x), identity3(a.w.x - b.w.x)
    e = [column(axes, k) for k in range(3)]
    return tuple(Part(none.x, none.x, Force(-n, none), Force(n, none)) for n in e)
