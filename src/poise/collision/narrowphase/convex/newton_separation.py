"""From a direction to the one of greatest gap near it, by Newton's method.

With w = p_B − p_A between the points that limit the gap along n, the gap is n · w; as n turns by x, across n, w changes
by −(P_A + P_B) x, with P the radii of curvature (see `contact_acceleration`). The gap is greatest where w is along n,
so that

    (P_A + P_B + gap) x = w − (n · w) n

On balls one step leads there. It is deep in what is nearly a ball that pushing apart hardly gets on: P + gap, all that
tells one direction from another, is small.

At an edge, or the side of a cylinder, the gap has a crease: n must stay across the edge, and turns about it only.
"""

from __future__ import annotations

from poise.collision.contact_acceleration import cylinder_radii, diagonal, ellipsoid_radii, slight, turn_by
from poise.collision.narrowphase.convex.support import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HULL,
    SEAT_A,
    SEAT_B,
    core_kind,
    nearest_points,
    top_corner,
    unit,
)
from poise.kernel.jit import kernel, stand_alone
from poise.kernel.memory import load
from poise.kernel.scalars import fabs, zero
from poise.kernel.vec import column0, column1, column2, cross, dot, rotate_sym, transpose_times, zero3

STEPS = 8
FARTHEST = 4.0
"""Square of the greatest turn: more comes of a gap that is not greatest anywhere near."""


@kernel
def core_radii(g, i, S, n):
    """P of the core of a shape where its outward normal is n, but for what is straight."""
    kind, none = core_kind(g, i), zero(n.x)
    P = diagonal(none, none, none)
    if kind == CYLINDER:
        P = rotate_sym(S.R, cylinder_radii(transpose_times(S.R, n), S.half.x))
    elif kind == ELLIPSOID:
        P = rotate_sym(S.R, ellipsoid_radii(transpose_times(S.R, n), S.half))
    return P


@kernel
def hull_crease(g, t, seat, i, S, n):
    """The edge of a hull that n is across, at the corner that is farthest along n, or 0."""
    local = transpose_times(S.R, n)
    top = top_corner(g, t, seat, i, local)
    p, crease = load(g.vertex, top), zero3(n.x)
    for e in range(load(g.neighbor_start, top), load(g.neighbor_start, top + 1)):
        along = load(g.vertex, load(g.neighbor, e)) - p
        lean = dot(along, local)
        if lean * lean < slight(lean) * slight(lean) * dot(along, along):
            crease = S.R @ unit(along, along)
    return crease


@kernel
def crease_of(g, t, seat, i, S, n):
    """The direction in which a shape is straight where its outward normal is n, or 0; an edge where there are two."""
    kind, crease = core_kind(g, i), zero3(n.x)
    if kind == HULL:
        crease = hull_crease(g, t, seat, i, S, n)
    elif kind in (BOX, CAPSULE, CYLINDER):
        for k in range(0 if kind == BOX else 2, 3):
            axis = column0(S.R) if k == 0 else (column1(S.R) if k == 1 else column2(S.R))
            if fabs(dot(axis, n)) < slight(n.x):
                crease = axis
    return crease


@kernel
def climb(g, t, a, b, A, B, normal, steps):
    """A direction of greater gap near another one, so many steps on at most, and the gap along it."""
    stand_alone()
    pa, pb = nearest_points(g, t, a, b, A, B, normal)
    gap = dot(normal, pb - pa)
    for _ in range(steps):
        P = core_radii(g, a, A, normal) + core_radii(g, b, B, normal)
        crease, other = crease_of(g, t, SEAT_A, a, A, normal), crease_of(g, t, SEAT_B, b, B, normal)
        if dot(crease, crease) < 0.5:
            crease = other
        if dot(crease, crease) > 0.5:
            across = unit(cross(normal, crease), normal)
            stiff = dot(across, P @ across) + gap
            turn = across * (dot(across, pb - pa) / stiff if stiff > 0.0 else zero(gap))
        else:
            turn = turn_by(normal, gap, P, pb - pa)
        if not dot(turn, turn) < FARTHEST:
            break
        onward = unit(normal + turn, normal)
        pa, pb = nearest_points(g, t, a, b, A, B, onward)
        if not dot(onward, pb - pa) > gap:
            break
        normal, gap = onward, dot(onward, pb - pa)
    return normal, gap
