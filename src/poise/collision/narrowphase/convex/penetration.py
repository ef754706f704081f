"""The least gap of two convex cores, apart or in each other.

Where cores overlap, the gap along a direction n, n · (p_B − p_A) of the points that limit it, is to be made as great as
can be; it is negative. The expanding polytope finds the right region; what it finds is made exact so: push B out along
n until the cores are apart by m, find the direction n' in which they are apart then, and go on from there. With h the
depth along n, the cores are apart by at least m, so that

    depth along n' ≤ (h + m) n · n' − m ≤ h

it never gets worse, and stays where the two nearest points face each other along n: on polytopes after one or two
rounds, on curved shapes the faster the shallower the overlap is; there, Newton's method goes before (see
`newton_separation`). Cores that hardly are apart are treated the same: the direction between points that nearly
coincide is noise, between cores pushed apart it is exact.

The points face each other along n only as well as the last round has not turned it any more. So whatever direction is
found to be better in the end, along a feature, is pushed along once more.
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
"""Rounds at most to make a direction exact: to find out which of several leads farthest, and in the end."""
ROUND_CORNERS = 96
"""Corners of the polytope that should have found the region on curved shapes."""
STARTS = 8
"""Directions that are made exact where no region is proved: deep inside of what is nearly a ball."""
MOST_TRIED = 64
"""Sides of a hull whose normals are tried."""
SETTLED = 1e-6
"""Fraction of the depth by which a direction that is settled still gets better."""
FEATURES = 4
"""How often at most a direction is made exact anew, from a feature of a shape near it."""
NEARLY_ACROSS = 1e-3
"""Cosine between a direction and an axis below which it may be across."""
SAME_WAY = 0.9
"""Cosine between directions above which only one is followed."""


@formula
def steady(like: Any) -> Any:
    """Square of the angle by which a direction that is settled still turns."""
    return constant(1e-10 if precision(like) > 24 else 1e-7, like)


@formula
def open_part(like: Any) -> Any:
    """Fraction of a distance by which its bounds may differ. They differ more where rounding has stopped the search."""
    return constant(1e-7 if precision(like) > 24 else 1e-4, like)


@kernel
def pushed(S, by):
    """A shape that is moved."""
    return Placed(S.p + by, S.R, S.half)


@kernel
def is_flat(g, a, b):
    """Whether two cores are without curves."""
    return core_kind(g, b) in (HULL, TRIANGLE) and load(g.kind, a) in (SPHERE, CAPSULE, BOX, HULL)


@kernel
def refine(g, t, a, b, A, B, normal, apart, close, size, pushes):
    """A direction made exact: the best gap near it, its normal and points."""
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
            break  # on long shapes little turns count
        if turn2 > 0.05 * before:
            apart = maximum(0.1 * apart, close)  # too far for shapes as curved as these
        before = turn2
        normal, gap = near.normal, near.gap
        if steps > 0:
            onward, higher = climb(g, t, a, b, A, B, normal, steps)
            if higher > gap:
                normal, gap = onward, higher
                continue
        # on curved shapes rounds go the same way, each by a fraction of the last: try to go farther
        onward = unit(normal + turn * stride, normal)
        pa, pb = nearest_points(g, t, a, b, A, B, onward)
        if dot(onward, pb - pa) > gap:
            normal, gap, stride = onward, dot(onward, pb - pa), stride * 2.0
        else:
            stride = maximum(stride * 0.25, zero(size) + 0.5)
    return near


@kernel
def note_axes(g, t, a, b, A, B, tried):
    """Try the axes of both shapes, there and back: how many directions there are now."""
    for k in range(12):
        R = A.R if k < 6 else B.R
        axis = column0(R) if k % 3 == 0 else (column1(R) if k % 3 == 1 else column2(R))
        note_direction(g, t, a, b, A, B, axis if k % 6 < 3 else -axis, tried + k, 0)
    return tried + 12


@kernel
def note_sides(g, t, a, b, A, B, of_b, tried):
    """Try the normals of the sides of A or B if that is a hull, up to a number: how many directions there are now.

    Inside of what is rounder than deep, corners and edges are the worst ways out, and sides the best.
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
    """The direction of greatest gap among those tried and not set aside: (its number or −1)."""
    best = -1
    for k in range(tried):
        gap = load(t.numbers, GAP + k)
        if gap > NONE and (best < 0 or gap > load(t.numbers, GAP + best)):
            best = k
    return best


@kernel
def set_aside(t, tried, normal):
    """Leave out directions that would lead to where this one has led."""
    for k in range(tried):
        if dot(load(t.points, TRIED + k), normal) > SAME_WAY:
            store(t.numbers, GAP + k, zero(normal.x) + NONE)


@kernel
def deepest_gap(g, t, a, b, A, B, near, apart, close, size):
    """The least gap of cores that overlap: the best direction tried made exact, or several where none is proved."""
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
    """A better direction near one and its gap: across an axis, along the normal of a side; or the same.

    Shapes are straight along their axes. Beside long ones the search ends when the direction is still off by so little
    that only their length makes it count. And deep inside of what is round, the best ways out are those of flat sides.
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
    """The least gap of two cores: whether it may be within a limit, and where it is."""
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
