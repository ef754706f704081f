"""Points on curves: beads on wires, rails.

A curve c(s) is fixed in A. The parameter s is no unknown: it is that of the foot of the perpendicular from B's point y,

    (y − c) · c' = 0,   ṡ = c' · ẏ / (c' · c' − (y − c) · c'')                              (1)

and the remaining two components of y − c are along normals g and h. The normals follow the curve without rotation about
it: g' is along c'. Then ġ · (y − c) = 0, and

    φ = g · (y − c),   φ̇ = g · ẏ,   φ̈ = g · ÿ − (g · c'') (c' · ẏ) ṡ / (c' · c')           (2)

hold for all poses of the bodies, not only on the curve. The caller evaluates c, c' and c'' at its last s; `foot`
computes the next one.
"""

from __future__ import annotations

from typing import Any

from poise.constraints.row_parts.point_parts import TINY, reach, reach_row, seen_from, unit
from poise.kernel.scalars import maximum, select, zero
from poise.kernel.trace import formula
from poise.kernel.vec import cross, dot, transpose_times, zero3


def _slope(e: Any, c1: Any, c2: Any) -> Any:
    """c'·c' − (y−c)·c'', kept positive: at the centre of curvature every point of the curve is equally near."""
    speed2 = maximum(dot(c1, c1), zero(c1.x) + TINY)
    slope, least = speed2 - dot(e, c2), speed2 * 1e-6
    return speed2, select(slope > least, slope, least)


@formula
def foot(a: Any, b: Any, pb: Any, c: Any, c1: Any, c2: Any) -> Any:
    """Newton's step from s towards the foot of the perpendicular from B's point, and ṡ (eq. 1)."""
    r = reach(a, b, zero3(b.x.x), pb)
    e = transpose_times(a.R, r.d) - c
    _, slope = _slope(e, c1, c2)
    return dot(c1, e) / slope, dot(c1, transpose_times(a.R, r.u)) / slope


@formula
def carry_normal(g: Any, c1: Any) -> Any:
    """The normal g moved to a nearby point with tangent c1 without rotation about the curve, to first order."""
    t = unit(c1, zero3(c1.x))
    return unit(g - t * dot(g, t), g)


@formula
def on_curve(a: Any, b: Any, pb: Any, c: Any, c1: Any, c2: Any, g: Any) -> Any:
    """Two rows: B's point is on the curve; m. Given c, c' and c'' at the foot, and a unit normal g there (eq. 2)."""
    r = reach(a, b, zero3(b.x.x), pb)
    e, y_rate = transpose_times(a.R, r.d) - c, transpose_times(a.R, r.u)
    speed2, slope = _slope(e, c1, c2)
    along = dot(c1, y_rate)
    bend = (along / slope) * (along / speed2)
    h = cross(unit(c1, zero3(c1.x)), g)
    return tuple(reach_row(r, dot(n, e), a.R @ n, -dot(n, c2) * bend) for n in (g, h))


@formula
def travel(a: Any, b: Any, pb: Any, s: Any, c: Any, c1: Any, c2: Any, c3: Any) -> Any:
    """φ = s at the foot, for motors and limits along a rail; in units of s. c3 is c'''.

    Differentiating (1): s̈ slope = c'·ÿ + 2 ṡ c''·ẏ − ṡ² (3 c'·c'' − (y−c)·c''').
    """
    r = reach(a, b, zero3(b.x.x), pb)
    e, y_rate = seen_from(a, b, pb) - c, transpose_times(a.R, r.u)
    _, slope = _slope(e, c1, c2)
    k = 1.0 / slope
    rate = dot(c1, y_rate) * k
    bend = rate * (2.0 * dot(c2, y_rate) - rate * (3.0 * dot(c1, c2) - dot(e, c3))) * k
    return reach_row(r, s + dot(c1, e) * k, a.R @ (c1 * k), bend)
