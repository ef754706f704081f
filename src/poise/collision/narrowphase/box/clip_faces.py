"""The intersection polygon of two faces of boxes, projected along a normal, and the selection of its corners.

Everything is in the axes of the face of A: x and y in it, and instead of z the gap along the normal. A corner of the
polygon is a corner of B's face (feature: number of the corner, 0 to 7), one of A's (8 to 15) or a crossing of two edges
(16 to 159). A point within a thousandth of the smallest edge of a corner has the feature of that corner, so that boxes
whose corners meet keep their features when they jitter.

`t.points` holds the corners, `t.whole` their features, the ids of the faces' corners and edges, and the selection.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.box_geometry import absolute, axis, grain, largest, part, seen, span, turned
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum, zero
from poise.kernel.trace import formula
from poise.kernel.values import Value
from poise.kernel.vec import Vec3, transpose_times

LYING = 0.5
"""Slope of the gap above which two faces, or a segment and a face, do not count as parallel."""
NEAR = 1e-3
"""Fraction of an edge that counts as the corner at its end."""
CLEARLY = 1.01
"""Factor by which a later candidate must be better, so that ties do not flicker."""
STEADY = 1.03
"""Weight of a corner of a box over a crossing, which wanders when nearly parallel edges cross."""
CROSSINGS = 16
"""First feature that is a crossing."""
CHOSEN, COUNT, FEATURES, CORNERS, EDGES = 0, 15, 16, 32, 40
"""Offsets in t.whole; there are four corners and edges of A and four of B."""


class Faces(Value):
    """A normal n and two faces projected along it, A's ±h.x by ±h.y at h.z and B's c ± u ± v.

    `near` is the size of a corner's neighbourhood: as fractions of u and v, and in m. `nothing` is the rounding error
    of lengths; m.
    """

    fields = (("n", Vec3), ("c", Vec3), ("u", Vec3), ("v", Vec3), ("h", Vec3), ("near", Vec3), ("nothing", None))
    __slots__ = ("c", "h", "n", "near", "nothing", "u", "v")
    n: Any
    c: Any
    u: Any
    v: Any
    h: Any
    near: Any
    nothing: Any


@kernel
def name_features(t, k_a, face_a, k_b, face_b):
    """Ids of the corners and edges of a face of each box, at the side (0 or 1) of its axis k."""
    for of_b in range(2):
        k, face = (k_b, face_b) if of_b else (k_a, face_a)
        i, j = (k + 1) % 3, (k + 2) % 3
        for side in range(2):
            for other in range(2):
                corner = (face << k) | (side << i) | (other << j)
                store(t.whole, CORNERS + 4 * of_b + side + 2 * other, corner + 8 * (1 - of_b))
            # an edge along an axis has the sides of the next two axes
            store(t.whole, EDGES + 4 * of_b + side, 4 * j + face + 2 * side)
            store(t.whole, EDGES + 4 * of_b + 2 + side, 4 * i + side + 2 * face)


@kernel
def facing(t, C, d, ha, hb, n, k, way, nothing):
    """The face of A at the end `way` of axis k and the facing face of B, projected along n."""
    one = zero(nothing) + 1.0
    n_b = transpose_times(C, n)
    kb = largest(absolute(n_b), grain(nothing))
    side = 1 if part(n_b, kb) < 0.0 else 0
    name_features(t, k, 1 if way > 0.0 else 0, kb, side)
    i, j = (kb + 1) % 3, (kb + 2) % 3
    h, normal = turned(ha, k, one), turned(n, k, way)
    hu, hv, hw = part(hb, i), part(hb, j), part(hb, kb)
    centre = d + C @ axis(kb, hw if side else -hw)
    near = NEAR * minimum(minimum(h.x, h.y), minimum(hu, hv))
    return Faces(
        normal,
        seen(turned(centre, k, way), normal, h.z),
        seen(turned(C @ axis(i, hu), k, way), normal, zero(nothing)),
        seen(turned(C @ axis(j, hv), k, way), normal, zero(nothing)),
        h,
        Vec3(near / hu, near / hv, near),
        nothing,
    )


@kernel
def keep(t, p, feature, near):
    """Add a corner; of two with the same id or place the deeper one is kept, with the better id."""
    n = load(t.whole, COUNT)
    found = n
    for i in range(n):
        other = load(t.points, i)
        if found == n and fabs(p.x - other.x) < near and fabs(p.y - other.y) < near:
            found = i
    for i in range(n):
        if load(t.whole, FEATURES + i) == feature:
            found = i
    if found == n:
        store(t.whole, COUNT, n + 1)
    if found == n or feature < load(t.whole, FEATURES + found):
        store(t.whole, FEATURES + found, feature)
    if found == n or p.z < load(t.points, found).z:
        store(t.points, found, p)


@kernel
def clip_edge(t, f, e):
    """Add the ends of the part of edge e of B's face (two along u, two along v) inside A's face."""
    side = e & 1
    along, across = (f.u, f.v) if e < 2 else (f.v, f.u)
    near = f.near.x if e < 2 else f.near.y
    middle = f.c + across if side else f.c - across
    x_low, x_high = span(middle.x, along.x, f.h.x + f.nothing)
    y_low, y_high = span(middle.y, along.y, f.h.y + f.nothing)
    low, high = maximum(maximum(x_low, y_low), -1.0), minimum(minimum(x_high, y_high), 1.0)
    if low > high:
        return
    for end in range(2):
        s = high if end else low
        p = middle + along * s
        if fabs(s) >= 1.0 and e >= 2:
            continue  # a corner is an end of two edges
        if fabs(s) >= 1.0 - near and (s > 0.0) == (end == 1):
            feature = load(t.whole, CORNERS + 4 + (end + 2 * side if e < 2 else side + 2 * end)) + 0
        else:
            by_x = x_high <= y_high if end else x_low >= y_low
            x_side, y_side = 1 if p.x > 0.0 else 0, 1 if p.y > 0.0 else 0
            rest = f.h.y - fabs(p.y) if by_x else f.h.x - fabs(p.x)
            if rest < f.near.z:
                feature = load(t.whole, CORNERS + x_side + 2 * y_side) + 0
            else:
                edge_a = load(t.whole, EDGES + (x_side if by_x else 2 + y_side))
                feature = CROSSINGS + 12 * edge_a + load(t.whole, EDGES + 4 + (2 + side if e < 2 else side))
        keep(t, p, feature, f.near.z)


@kernel
def clip_corners(t, f):
    """Add the corners of A's face that are inside B's."""
    inverse = 1.0 / (f.u.x * f.v.y - f.u.y * f.v.x)
    for corner in range(4):
        x = f.h.x if corner & 1 else -f.h.x
        y = f.h.y if corner & 2 else -f.h.y
        dx, dy = x - f.c.x, y - f.c.y
        a, b = (dx * f.v.y - dy * f.v.x) * inverse, (f.u.x * dy - f.u.y * dx) * inverse
        if fabs(a) <= 1.0 and fabs(b) <= 1.0:
            place = CORNERS + corner
            if fabs(a) >= 1.0 - f.near.x and fabs(b) >= 1.0 - f.near.y:
                place = CORNERS + 4 + (1 if a > 0.0 else 0) + (2 if b > 0.0 else 0)
            keep(t, Vec3(x, y, f.c.z + f.u.z * a + f.v.z * b), load(t.whole, place) + 0, f.near.z)


@kernel
def share(t, f):
    """Corners of the intersection polygon of two faces; their number."""
    store(t.whole, COUNT, 0)
    for e in range(4):
        clip_edge(t, f, e)
    clip_corners(t, f)
    return load(t.whole, COUNT) + 0


# ---- selection of corners --------------------------------------------------------------------------------------------


@kernel
def deepest(t, n, nothing):
    """The corner of least gap; the first one of ties."""
    best = 0
    for i in range(1, n):
        if load(t.points, i).z < load(t.points, best).z - nothing:
            best = i
    return best


@kernel
def cut(t, count, f, limit, lying_only):
    """Remove corners whose gap is above a limit and, if a flag is set, those where the faces are not parallel."""
    p = load(t.points, deepest(t, count, f.nothing))
    m = 0
    for i in range(count):
        c = load(t.points, i)
        x, y, rise = c.x - p.x, c.y - p.y, c.z - p.z
        along = f.n.x * x + f.n.y * y
        lies = rise <= f.nothing or rise * rise <= LYING * LYING * (x * x + y * y - along * along)
        if c.z <= limit and (lies or not lying_only):
            store(t.points, m, c)
            store(t.whole, FEATURES + m, load(t.whole, FEATURES + i))
            m += 1
    return m


@formula
def turn(p: Any, q: Any, r: Any) -> Any:
    """Twice the area of a triangle, positive where it is counter-clockwise."""
    return (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x)


@kernel
def farthest(t, n, known):
    """The corner that is farthest from `known` chosen ones: from a point, a line of two, or outside a triangle.

    −1 if there is none.
    """
    first, last = load(t.whole, CHOSEN), load(t.whole, CHOSEN + known - 1)
    second = load(t.whole, CHOSEN + minimum(known - 1, 1))
    p, q, r = load(t.points, first), load(t.points, second), load(t.points, last)
    best, found = zero(p.x), -1
    for i in range(n):
        c = load(t.points, i)
        if known == 1:
            far = (c.x - p.x) * (c.x - p.x) + (c.y - p.y) * (c.y - p.y)
        elif known == 2:
            far = fabs(turn(p, q, c))
        else:
            way = 1.0 if turn(p, q, r) > 0.0 else -1.0
            far = maximum(maximum(-way * turn(p, q, c), -way * turn(q, r, c)), -way * turn(r, p, c))
        if load(t.whole, FEATURES + i) < CROSSINGS:
            far = far * STEADY
        if far > CLEARLY * best and i != first and i != second and i != last:
            best, found = far, i
    return found


@kernel
def choose(t, n, nothing):
    """Select up to four well spread corners, the deepest first; their number."""
    if n <= 4:
        for i in range(n):
            store(t.whole, CHOSEN + i, i)
        return n
    store(t.whole, CHOSEN, deepest(t, n, nothing))
    for known in range(1, 4):
        found = farthest(t, n, known)
        if found < 0:
            return known
        store(t.whole, CHOSEN + known, found)
    return 4
