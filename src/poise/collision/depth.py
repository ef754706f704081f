"""The least gap of two convex cores, apart or in each other.

Where cores overlap, the gap along a direction n, n · (p_B − p_A) of the points that limit it, is to be made as great as
can be; it is negative. The expanding polytope finds the right region; what it finds is made exact so: push B out along
n until the cores are apart by m, find the direction n' in which they are apart then, and go on from there. With h the
depth along n, the cores are apart by at least m, so that

    depth along n' ≤ (h + m) n · n' − m ≤ h

it never gets worse, and stays where the two nearest points face each other along n: on polytopes after one or two
rounds, on curved shapes the faster the shallower the overlap is. Cores that hardly are apart are treated the same: the
direction between points that nearly coincide is noise, between cores pushed apart it is exact.
"""

from __future__ import annotations

from typing import Any

from poise.collision.epa import GAP, MOST_CORNERS, NONE, TRIED, note_direction, search_depth
from poise.collision.gjk import APART, FAR, Near, search_gap
from poise.collision.layout import Placed
from poise.collision.support import (
    BOX,
    CAPSULE,
    HULL,
    SPHERE,
    TRIANGLE,
    core_kind,
    core_reach,
    nearest_points,
    rounding,
    unit,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, column0, column1, column2, dot

ENDLESS = 1e30
PUSHES, MANY_PUSHES = 30, 300
"""Rounds at most to make a direction exact: to find out which of several leads farthest, and in the end."""
ROUND_CORNERS = 96
"""Corners of the polytope that should have found the region on curved shapes."""
STARTS = 8
"""Directions that are made exact where no region is proved: deep inside of what is nearly a ball."""
SETTLED = 1e-6
"""Fraction of the depth by which a direction that is settled still gets better."""
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
def refine(g, t, a, b, A, B, normal, apart, close, size, pushes):
    """A direction made exact: the best gap near it, its normal and points."""
    pa, pb = nearest_points(g, t, a, b, A, B, normal)
    gap = dot(normal, pb - pa)
    near = Near(normal, gap, pa, pb)
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
    none, kind_a = zero(size), load(g.kind, a)
    flat = core_kind(g, b) in (HULL, TRIANGLE) and kind_a in (SPHERE, CAPSULE, BOX, HULL)  # cores without curves
    tried, proved = search_depth(
        g, t, a, b, A, B, size, none if flat else none + 3e-5, MOST_CORNERS if flat else ROUND_CORNERS
    )
    if not proved:
        tried = note_axes(g, t, a, b, A, B, tried)
    near = Near(near.normal, none + NONE, near.a, near.b)
    starts = 0 if proved else STARTS
    for start in range(starts + 1):
        k = best_direction(t, tried) if start < starts or proved else -1
        if k < 0 and start < starts:
            continue
        normal = near.normal if k < 0 else load(t.points, TRIED + k)
        set_aside(t, tried, normal)
        other = refine(g, t, a, b, A, B, normal, apart, close, size, PUSHES if start < starts else MANY_PUSHES)
        if other.gap > near.gap:
            near = other
            set_aside(t, tried, near.normal)
    return near


@kernel
def across_axes(g, t, a, b, A, B, near):
    """A direction that is nearly across an axis of a shape, made exactly so where the gap along it is greater.

    Shapes are straight along their axes. Beside long ones the search ends when the direction is still off by so little
    that only their length makes it count.
    """
    for k in range(6):
        R = A.R if k < 3 else B.R
        axis = column0(R) if k % 3 == 0 else (column1(R) if k % 3 == 1 else column2(R))
        lean = dot(near.normal, axis)
        if fabs(lean) < NEARLY_ACROSS:
            normal = unit(near.normal - axis * lean, near.normal)
            pa, pb = nearest_points(g, t, a, b, A, B, normal)
            gap = dot(normal, pb - pa)
            if gap > near.gap:
                near = Near(normal, gap, near.a, near.b)
    return near


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
    return True, across_axes(g, t, a, b, A, B, near)
