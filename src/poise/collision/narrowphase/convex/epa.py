"""EPA: penetration depth of two convex cores by the expanding polytope algorithm of van den Bergen.

G. van den Bergen, "Proximity queries and penetration depth computation on 3D game objects", GDC 2001. W is the
Minkowski difference: all points of B less points of A. A polytope with corners on the surface of W is expanded at the
face nearest to the origin. The distance of that face is a lower bound of the depth; the extent of W along any direction
is an upper bound.

The origin may be outside: for cores that only touch, the polytope is expanded at the face that the origin is in front
of, and the first face that does not move further separates them. Normals point inward here, from A to B, and the level
n · w of a face is positive if the origin is in front of it.
"""

from __future__ import annotations

from poise.collision.narrowphase.convex.gjk import triangle_normal
from poise.collision.narrowphase.convex.support import nearest_points, rounding, unit
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, sqrt, zero
from poise.kernel.vec import Vec3, cross, dot

MOST_CORNERS, MOST_SIDES = 512, 1100
NONE = -1e30
"""Level of a face that is removed or degenerate: it is never the nearest."""

CORNER = 16
NORMAL = CORNER + MOST_CORNERS
TRIED = NORMAL + MOST_SIDES
"""Offsets in `points`: corners, normals of faces, evaluated directions."""
LEVEL = 16
GAP = LEVEL + MOST_SIDES
"""Offsets in `numbers`: levels of faces, gaps along evaluated directions."""
SIDE = 16
MARK = SIDE + 6 * MOST_SIDES
STACK = MARK + MOST_SIDES
RIM = STACK + MOST_SIDES
AT = RIM + 3 * MOST_SIDES
"""Offsets in `whole`: three corners and three neighbours of each face; the round in which it was last visited; the
stack of faces; edges of the hole (first corner, second corner, neighbour); the new face that starts at a corner."""


@kernel
def corner_at(g, t, a, b, A, B, n, place):
    """The support point of W that is least along n, stored at index `place`."""
    pa, pb = nearest_points(g, t, a, b, A, B, n)
    store(t.points, CORNER + place, pb - pa)
    return pb - pa


@kernel
def first_corners(g, t, a, b, A, B):
    """Four corners of W that span a volume: two ends, the farthest off their line, the farthest off that plane.

    W has a volume, since one of the two shapes has.
    """
    none = zero(A.p.x)
    x = Vec3(none + 1.0, none, none)
    p = corner_at(g, t, a, b, A, B, x, 0)
    line = corner_at(g, t, a, b, A, B, -x, 1) - p
    sideways = unit(cross(line, Vec3(none, line.z, -line.y)), x)
    if line.y * line.y + line.z * line.z <= 0.25 * dot(line, line):
        sideways = unit(cross(line, Vec3(none, none + 1.0, none)), x)
    upward = unit(cross(line, sideways), x)
    best = none
    for k in range(4):
        direction = sideways if k < 2 else upward
        q = corner_at(g, t, a, b, A, B, direction if k % 2 == 0 else -direction, 3)
        off = cross(line, q - p)
        d2 = dot(off, off)
        if d2 > best:
            best = d2
            store(t.points, CORNER + 2, q)
    plane = unit(cross(line, load(t.points, CORNER + 2) - p), x)
    q = corner_at(g, t, a, b, A, B, plane, 4)
    r = corner_at(g, t, a, b, A, B, -plane, 3)
    if fabs(dot(plane, q - p)) > fabs(dot(plane, r - p)):
        store(t.points, CORNER + 3, q)


@kernel
def set_side(t, side, i, j, k, noise):
    """A face with three corners, counter-clockwise from outside: its normal and level."""
    store(t.whole, SIDE + 6 * side, i)
    store(t.whole, SIDE + 6 * side + 1, j)
    store(t.whole, SIDE + 6 * side + 2, k)
    p, q, r = load(t.points, CORNER + i), load(t.points, CORNER + j), load(t.points, CORNER + k)
    u, v, w = q - p, r - p, r - q
    across, _ = triangle_normal(u, v, w)
    across = -across
    area = sqrt(dot(across, across))
    longest = sqrt(maximum(maximum(dot(u, u), dot(v, v)), dot(w, w)))
    store(t.numbers, LEVEL + side, zero(noise) + NONE)
    if area > 2.0 * noise * longest:
        normal = across * (1.0 / area)
        store(t.points, NORMAL + side, normal)
        store(t.numbers, LEVEL + side, dot(normal, p + (u + v) * (1.0 / 3.0)))


@kernel
def set_beyond(t, side, i, j, k):
    """The neighbours across the three edges of a face."""
    store(t.whole, SIDE + 6 * side + 3, i)
    store(t.whole, SIDE + 6 * side + 4, j)
    store(t.whole, SIDE + 6 * side + 5, k)


@kernel
def first_sides(t, noise):
    """A tetrahedron of the first four corners, oriented outward."""
    p = load(t.points, CORNER)
    u, v = load(t.points, CORNER + 1) - p, load(t.points, CORNER + 2) - p
    if dot(cross(u, v), load(t.points, CORNER + 3) - p) > 0.0:
        second = load(t.points, CORNER + 1)
        store(t.points, CORNER + 1, load(t.points, CORNER + 2))
        store(t.points, CORNER + 2, second)
    set_side(t, 0, 0, 1, 2, noise)
    set_side(t, 1, 0, 3, 1, noise)
    set_side(t, 2, 1, 3, 2, noise)
    set_side(t, 3, 2, 3, 0, noise)
    set_beyond(t, 0, 1, 2, 3)
    set_beyond(t, 1, 3, 2, 0)
    set_beyond(t, 2, 1, 3, 0)
    set_beyond(t, 3, 2, 1, 0)
    for side in range(4):
        store(t.whole, MARK + side, -1)


@kernel
def nearest_side(t, n_sides):
    """The face of greatest level; −1 if there is none."""
    best, top = -1, zero(load(t.numbers, LEVEL)) + NONE
    for side in range(n_sides):
        level = load(t.numbers, LEVEL + side)
        if level > top:
            best, top = side, level
    return best


@kernel
def open_hole(t, start, corner, noise):
    """Remove the faces that a corner is in front of: (faces removed, edges of the hole).

    They form one patch around the first face. Degenerate faces are removed with any neighbour. The removed faces are in
    the stack.
    """
    w = load(t.points, CORNER + corner)
    store(t.whole, MARK + start, corner)
    store(t.whole, STACK, start)
    taken, looked, n_rim = 1, 0, 0
    while looked < taken:
        side = load(t.whole, STACK + looked)
        looked += 1
        for k in range(3):
            other = load(t.whole, SIDE + 6 * side + 3 + k)
            if load(t.whole, MARK + other) == corner:
                continue
            level = load(t.numbers, LEVEL + other)
            if level == NONE or dot(load(t.points, NORMAL + other), w) < level - noise:
                store(t.whole, MARK + other, corner)
                store(t.whole, STACK + taken, other)
                taken += 1
            else:
                store(t.whole, RIM + 3 * n_rim, load(t.whole, SIDE + 6 * side + k))
                store(t.whole, RIM + 3 * n_rim + 1, load(t.whole, SIDE + 6 * side + (k + 1) % 3))
                store(t.whole, RIM + 3 * n_rim + 2, other)
                n_rim += 1
    return taken, n_rim


@kernel
def is_loop(t, n_rim, n_corners):
    """Whether the edges of a hole form one loop: no corner starts two of them, and each is followed by another."""
    for corner in range(n_corners):
        store(t.whole, AT + corner, -1)
    for k in range(n_rim):
        start = load(t.whole, RIM + 3 * k)
        if load(t.whole, AT + start) >= 0:
            return False
        store(t.whole, AT + start, k)
    steps, k = 0, 0
    while steps < n_rim:
        k = load(t.whole, AT + load(t.whole, RIM + 3 * k + 1))
        if k < 0:
            return False
        steps += 1
        if k == 0:
            break
    return steps == n_rim


@kernel
def close_hole(t, corner, taken, n_rim, n_sides, noise):
    """Add faces from the edges of a hole to a corner; returns the number of face slots in use."""
    for k in range(taken):
        store(t.numbers, LEVEL + load(t.whole, STACK + k), zero(noise) + NONE)
    for k in range(n_rim):
        if k < taken:
            side = load(t.whole, STACK + k)
        else:
            side = n_sides
            n_sides += 1
        first, second = load(t.whole, RIM + 3 * k), load(t.whole, RIM + 3 * k + 1)
        other = load(t.whole, RIM + 3 * k + 2)
        set_side(t, side, first, second, corner, noise)
        store(t.whole, MARK + side, -1)
        store(t.whole, AT + first, side)
        store(t.whole, SIDE + 6 * side + 3, other)
        for e in range(3):
            if load(t.whole, SIDE + 6 * other + e) == second:
                store(t.whole, SIDE + 6 * other + 3 + e, side)
    for k in range(n_rim):
        side = load(t.whole, AT + load(t.whole, RIM + 3 * k))
        following = load(t.whole, AT + load(t.whole, RIM + 3 * k + 1))
        store(t.whole, SIDE + 6 * side + 4, following)
        store(t.whole, SIDE + 6 * following + 5, side)
    return n_sides


@kernel
def note_direction(g, t, a, b, A, B, normal, tried, place):
    """The gap along a direction, stored as number `tried`; its support point of W is stored at an index."""
    gap = dot(normal, corner_at(g, t, a, b, A, B, normal, place))
    store(t.points, TRIED + tried, normal)
    store(t.numbers, GAP + tried, gap)
    return gap


@kernel
def search_depth(g, t, a, b, A, B, size, close_enough, most):
    """Directions of small penetration of two overlapping cores: (their number, whether the best is proved).

    It is proved when no direction can be better by more than a fraction `close_enough` of the depth. The search ends
    without proof at `most` corners.
    """
    noise = 4.0 * rounding(size) * size
    first_corners(g, t, a, b, A, B)
    first_sides(t, noise)
    n_corners, n_sides, tried = 4, 4, 0
    gap, proved = zero(size) + NONE, False
    while n_corners < most:
        side = nearest_side(t, n_sides)
        if side < 0:
            break
        level = load(t.numbers, LEVEL + side)
        gap = maximum(gap, note_direction(g, t, a, b, A, B, load(t.points, NORMAL + side), tried, n_corners))
        tried += 1
        if level - gap <= maximum(noise, -gap * close_enough):
            proved = True
            break
        taken, n_rim = open_hole(t, side, n_corners, noise)
        if n_sides + n_rim - taken > MOST_SIDES or not is_loop(t, n_rim, n_corners):
            break
        n_sides = close_hole(t, n_corners, taken, n_rim, n_sides, noise)
        n_corners += 1
    return tried, proved
