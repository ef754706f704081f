"""Newton's method for the direction of greatest gap near a given one.

With w = p_B − p_A between the support points along n, the gap is n · w. When n rotates by x, perpendicular to n, w
changes by −(P_A + P_B) x, with P the radii of curvature (see `contact_acceleration`). The gap is greatest where w is
parallel to n, so that

    (P_A + P_B + gap) x = w − (n · w) n

For spheres one step suffices. The method matters deep inside nearly spherical shapes, where pushing them apart
converges slowly: P + gap, the curvature of the gap over directions, is small there.

At an edge, or the side of a cylinder, the gap has a crease: n must remain perpendicular to the edge, and rotates only
about it.
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
"""Square of the largest rotation: a larger one results from a gap without a maximum nearby."""


@kernel
def core_radii(g, i, S, n):
    """P of the core of a shape where its outward normal is n, without straight directions."""
    kind, none = core_kind(g, i), zero(n.x)
    P = diagonal(none, none, none)
    if kind == CYLINDER:
        P = rotate_sym(S.R, cylinder_radii(transpose_times(S.R, n), S.half.x))
    elif kind == ELLIPSOID:
        P = rotate_sym(S.R, ellipsoid_radii(transpose_times(S.R, n), S.half))
    return P


@kernel
def hull_crease(g, t, seat, i, S, n):
    """The edge of a hull that is perpendicular to n, at the support point along n, or 0."""
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
    """A direction of greater gap near a given one, after at most `steps` steps, and the gap along it."""
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
