"""Signed distance of two convex cores, separated or overlapping.

For overlapping cores the gap along a direction n, n · (p_B − p_A) of the support points, is negative and is maximized
over n. EPA finds the region of the maximum; its direction is then refined: translate B along n until the cores are
separated by m, find the direction n' of their distance, and repeat from n'. With h the depth along n, the separation is
at least m, so that

    depth along n' ≤ (h + m) n · n' − m ≤ h

The depth never increases, and a fixed point has both nearest points aligned along n: on polytopes after one or two
rounds; on curved shapes convergence is faster for shallower overlaps, and Newton's method is used before (see
`newton_separation`). Cores with a tiny separation are treated the same way: the direction between points that nearly
coincide is noise, between translated cores it is exact.

The points are aligned along n up to the rotation of n in the last round. So a better direction along a feature that is
found in the end is refined once more.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import Placed
from poise.collision.narrowphase.convex.clip_polygons import FRAME, side_towards
from poise.collision.narrowphase.convex.epa import GAP, MOST_CORNERS, NONE, TRIED, note_direction, search_depth
from poise.collision.narrowphase.convex.gjk import APART, FAR, Near, search_gap
from poise.collision.narrowphase.convex.newton_separation import STEPS, climb
from poise.collision.narrowphase.convex.support import (
    BOX,
    CAPSULE,
    HULL,
    SEAT_A,
    SEAT_B,
    SPHERE,
    TRIANGLE,
    core_kind,
    core_reach,
    nearest_points,
    rounding,
    unit,
)
from poise.kernel.jit import kernel, stand_alone
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, column0, column1, column2, dot, zero3

ENDLESS = 1e30
PUSHES, MANY_PUSHES = 30, 300
"""Maximum rounds of refinement of a direction: to compare several candidates, and for the final one."""
ROUND_CORNERS = 96
"""Corners of the polytope after which EPA should have found the region on curved shapes."""
STARTS = 8
"""Directions that are refined if no region is proved: deep inside nearly spherical shapes."""
MOST_TRIED = 64
"""Faces of a hull whose normals are evaluated."""
SETTLED = 1e-6
"""Fraction of the depth by which a converged direction may still improve."""
FEATURES = 4
"""Maximum number of repeated refinements of a direction, from a feature of a shape near it."""
NEARLY_ACROSS = 1e-3
"""Cosine between a direction and an axis below which they may be perpendicular."""
SAME_WAY = 0.9
"""Cosine between directions above which only one of them is refined."""


@formula
def steady(like: Any) -> Any:
    """Square of the angle by which a converged direction may still rotate."""
    return constant(1e-10 if precision(like) > 24 else 1e-7, like)


@formula
def open_part(like: Any) -> Any:
    """Relative difference of the bounds of a distance. It is larger where rounding has stopped the search."""
    return constant(1e-7 if precision(like) > 24 else 1e-4, like)


@kernel
def pushed(S, by):
    """A translated shape."""
    return Placed(S.p + by, S.R, S.half)


@kernel
def is_flat(g, a, b):
    """Whether both cores are polytopes."""
    return core_kind(g, b) in (HULL, TRIANGLE) and load(g.kind, a) in (SPHERE, CAPSULE, BOX, HULL)


@kernel
def refine(g, t, a, b, A, B, normal, apart, close, size, pushes):
    """A refined direction: the best gap near it, its normal and points."""
    stand_alone()
    steps = 0 if is_flat(g, a, b) else STEPS
    normal, gap = climb(g, t, a, b, A, B, normal, steps)
    near = Near(normal, gap, zero3(gap), zero3(gap))
    stride, before = zero(size) + 1.0, zero(size) + 4.0
    for _ in range(pushes):
        push = normal * (apart - gap)
        _found, near = search_gap(g, t, a, b, A, pushed(B, push), normal, zero(size) + ENDLESS, size)
        near = Near(near.normal, near.gap - dot(near.normal, push), near.a, near.b - push)
        if not near.gap > gap:
            near = Near(normal, gap, near.a, near.b)
            break
        turn = near.normal - normal
        turn2 = dot(turn, turn)
        if turn2 <= steady(size) and near.gap - gap <= maximum(4.0 * rounding(size) * size, -near.gap * SETTLED):
            break  # on long shapes small rotations count
        if turn2 > 0.05 * before:
            apart = maximum(0.1 * apart, close)  # too far for shapes with this curvature
        before = turn2
        normal, gap = near.normal, near.gap
        if steps > 0:
            onward, higher = climb(g, t, a, b, A, B, normal, steps)
            if higher > gap:
                normal, gap = onward, higher
                continue
        # on curved shapes each round rotates the same way by a fraction of the last: try to extrapolate
        onward = unit(normal + turn * stride, normal)
        pa, pb = nearest_points(g, t, a, b, A, B, onward)
        if dot(onward, pb - pa) > gap:
            normal, gap, stride = onward, dot(onward, pb - pa), stride * 2.0
        else:
            stride = maximum(stride * 0.25, zero(size) + 0.5)
    return near


@kernel
def note_axes(g, t, a, b, A, B, tried):
    """Evaluate the axes of both shapes in both directions: the number of directions afterwards."""
    for k in range(12):
        R = A.R if k < 6 else B.R
        axis = column0(R) if k % 3 == 0 else (column1(R) if k % 3 == 1 else column2(R))
        note_direction(g, t, a, b, A, B, axis if k % 6 < 3 else -axis, tried + k, 0)
    return tried + 12


@kernel
def note_sides(g, t, a, b, A, B, of_b, tried):
    """Evaluate the normals of faces of A or B if that is a hull, up to a number: the number of directions afterwards.

    Deep inside nearly round hulls, corners and edges have the largest penetration, and faces the least.
    """
    i = b if of_b else a
    R, most = B.R if of_b else A.R, tried + MOST_TRIED
    if core_kind(g, i) == HULL:
        for corner in range(load(g.vertex_start, i), load(g.vertex_start, i + 1)):
            for e in range(load(g.around_start, corner), load(g.around_start, corner + 1)):
                side = load(g.around, e)
                if load(g.side_corner, load(g.side_start, side)) == corner and tried < most:
                    outward = R @ load(g.side_normal, side)
                    note_direction(g, t, a, b, A, B, -outward if of_b else outward, tried, 0)
                    tried += 1
    return tried


@kernel
def best_direction(t, tried):
    """The direction of greatest gap among those evaluated and not removed: (its number or −1)."""
    best = -1
    for k in range(tried):
        gap = load(t.numbers, GAP + k)
        if gap > NONE and (best < 0 or gap > load(t.numbers, GAP + best)):
            best = k
    return best


@kernel
def set_aside(t, tried, normal):
    """Remove directions that would converge to the same one as this."""
    for k in range(tried):
        if dot(load(t.points, TRIED + k), normal) > SAME_WAY:
            store(t.numbers, GAP + k, zero(normal.x) + NONE)


@kernel
def deepest_gap(g, t, a, b, A, B, near, apart, close, size):
    """The signed distance of overlapping cores: the best evaluated direction, refined, or several if none is proved."""
    none, flat = zero(size), is_flat(g, a, b)
    tried, proved = search_depth(
        g, t, a, b, A, B, size, none if flat else none + 3e-5, MOST_CORNERS if flat else ROUND_CORNERS
    )
    if not proved:
        tried = note_axes(g, t, a, b, A, B, tried)
        if not flat:
            tried = note_sides(g, t, a, b, A, B, False, tried)
            tried = note_sides(g, t, a, b, A, B, True, tried)
    near = Near(near.normal, none + NONE, near.a, near.b)
    starts = 0 if proved else STARTS
    for start in range(starts + 1):
        k = best_direction(t, tried) if start < starts or proved else -1
        if k < 0 and start < starts:
            continue
        normal = near.normal if k < 0 else load(t.points, TRIED + k)
        set_aside(t, tried, normal)
        other = refine(g, t, a, b, A, B, normal, apart, close, size, PUSHES if start < starts else MANY_PUSHES)
        if other.gap > near.gap or start == starts:
            near = other
            set_aside(t, tried, near.normal)
    return near


@kernel
def along_features(g, t, a, b, A, B, near):
    """A better direction near a given one and its gap: perpendicular to an axis, or the normal of a face; or the same.

    Shapes are straight along their axes. Beside long shapes the search ends with an error of direction that matters
    only due to their length. Deep inside nearly round hulls the least penetration is along normals of faces.
    """
    normal, best, flat = near.normal, near.gap, is_flat(g, a, b)
    for k in range(8):
        R = A.R if k < 3 else B.R
        axis = column0(R) if k % 3 == 0 else (column1(R) if k % 3 == 1 else column2(R))
        lean = dot(normal, axis)
        if (k < 6 and fabs(lean) >= NEARLY_ACROSS) or (k >= 6 and flat):
            continue
        onward = unit(normal - axis * lean, normal)
        if k == 6:
            _n, onward = side_towards(g, t, SEAT_A, a, A, normal, FRAME)
        elif k == 7:
            _n, outward = side_towards(g, t, SEAT_B, b, B, -normal, FRAME)
            onward = -outward
        pa, pb = nearest_points(g, t, a, b, A, B, onward)
        if dot(onward, pb - pa) > best:
            normal, best = onward, dot(onward, pb - pa)
    return normal, best


@kernel
def least_gap(g, t, a, b, A, B, limit, size):
    """The signed distance of two cores: whether it may be within a limit, and where it is."""
    none = zero(size)
    start = unit(B.p - A.p, Vec3(none, none, none + 1.0))
    found, near = search_gap(g, t, a, b, A, B, start, limit, size)
    close = 4.0 * sqrt(rounding(size)) * size
    between = near.b - near.a
    proved = sqrt(dot(between, between)) <= near.gap * (1.0 + open_part(size))
    if found == FAR or (found == APART and near.gap > close and proved):
        return found != FAR, near
    apart = maximum(0.1 * minimum(core_reach(g, t, a), core_reach(g, t, b)), close)
    if found == APART:
        near = refine(g, t, a, b, A, B, near.normal, apart, close, size, MANY_PUSHES)
    else:
        near = deepest_gap(g, t, a, b, A, B, near, apart, close, size)
    for _ in range(FEATURES):
        normal, gap = along_features(g, t, a, b, A, B, near)
        turn = normal - near.normal
        if dot(turn, turn) <= rounding(size):
            return True, Near(normal, gap, near.a, near.b)
        near = refine(g, t, a, b, A, B, normal, apart, close, size, MANY_PUSHES)
    return True, near
