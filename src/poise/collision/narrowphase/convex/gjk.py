"""GJK: distance of two convex cores by the method of Gilbert, Johnson and Keerthi.

E. G. Gilbert, D. W. Johnson, S. S. Keerthi, "A fast procedure for computing the distance between complex objects in
three-dimensional space", IEEE J. Robotics and Automation 1988. v is the point nearest to the origin of the Minkowski
difference W (points of B less points of A): a simplex of up to four corners of W moves towards the origin, and adds the
support point w that is least along v in each iteration. For n = v / |v|

    n · w ≤ distance ≤ |v|

bounds the error in each iteration. The reported distance is the lower bound.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.convex.support import nearest_points, rounding
from poise.kernel.jit import kernel, stand_alone
from poise.kernel.memory import load, store
from poise.kernel.scalars import maximum, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.values import Value
from poise.kernel.vec import Vec3, cross, dot, zero3

APART, MEETING, FAR = 0, 1, 2
"""Results of a search: cores that are separated, that intersect or nearly do, that are farther apart than the limit."""
CORNERS, POINTS_A, POINTS_B, WEIGHTS = 0, 4, 8, 0
"""Offsets of the simplex: its corners and their points of A and B in `points`, the weights of v in `numbers`."""
ROUNDS = 100


class Near(Value):
    """The nearest points of two cores, and the direction and distance from one to the other (m)."""

    fields = (("normal", Vec3), ("gap", None), ("a", Vec3), ("b", Vec3))
    __slots__ = ("a", "b", "gap", "normal")
    normal: Any
    gap: Any
    a: Any
    b: Any


@formula
def good_enough(like: Any) -> Any:
    """Relative error of a distance at which the search ends."""
    return constant(1e-11 if precision(like) > 24 else 1e-6, like)


@formula
def triangle_normal(u: Any, v: Any, w: Any) -> Any:
    """u × v of a triangle with edges u, v from a corner and w = v − u, and the product of the squares of two edges.

    It uses the two shortest edges: the cross product of a long edge and another loses accuracy.
    """
    uu, vv, ww = dot(u, u), dot(v, v), dot(w, w)
    u_longest, v_longest = (uu > vv) & (uu > ww), (vv >= uu) & (vv > ww)
    first, second = select(u_longest, v, u), select(u_longest | v_longest, w, v)
    sizes = select(u_longest, vv * ww, select(v_longest, uu * ww, uu * vv))
    return cross(first, second), sizes


@kernel
def on_edge(t, last, best):
    """The point nearest to the origin inside edges at the last corner, if nearer than `best`."""
    p = load(t.points, CORNERS + last)
    chosen, weight = -1, zero(best)
    for i in range(last):
        along = load(t.points, CORNERS + i) - p
        length2 = dot(along, along)
        s = -dot(p, along)
        if zero(s) < s < length2:
            s = s / length2
            foot = p + along * s
            d2 = dot(foot, foot)
            if d2 < best:
                best, chosen, weight = d2, i, s
    return best, chosen, weight


@kernel
def on_triangle(t, last, best):
    """The point nearest to the origin inside triangles at the last corner, if nearer than `best`."""
    p = load(t.points, CORNERS + last)
    chosen_i, chosen_j, weight_i, weight_j = -1, -1, zero(best), zero(best)
    foot = zero3(best)
    thin = rounding(best) * rounding(best) * 64.0
    for i in range(last):
        for j in range(i + 1, last):
            q, r = load(t.points, CORNERS + i), load(t.points, CORNERS + j)
            u, v = q - p, r - p
            across, sizes = triangle_normal(u, v, r - q)
            area2 = dot(across, across)
            if area2 > thin * sizes:
                si, sj = dot(cross(v, p), across), dot(cross(p, u), across)
                if si > 0.0 and sj > 0.0 and si + sj < area2:
                    height = dot(p, across)
                    d2 = height * height / area2
                    if d2 < best:
                        best, foot = d2, across * (height / area2)
                        chosen_i, chosen_j, weight_i, weight_j = i, j, si / area2, sj / area2
    return best, chosen_i, chosen_j, weight_i, weight_j, foot


@kernel
def holds_origin(t):
    """Whether the origin is inside a tetrahedron."""
    p = load(t.points, CORNERS)
    u, v, w = load(t.points, CORNERS + 1) - p, load(t.points, CORNERS + 2) - p, load(t.points, CORNERS + 3) - p
    vw = cross(v, w)
    volume = dot(u, vw)
    size = dot(u, u) * dot(vw, vw)
    flat = rounding(volume) * 8.0
    if volume * volume <= flat * flat * size:
        return False
    s1, s2, s3 = -dot(p, vw) / volume, -dot(p, cross(w, u)) / volume, -dot(p, cross(u, v)) / volume
    return s1 >= 0.0 and s2 >= 0.0 and s3 >= 0.0 and s1 + s2 + s3 <= 1.0


@kernel
def copy_corner(t, source, target):
    """Copy a corner of the simplex, with its points of A and B, to another index."""
    store(t.points, CORNERS + target, load(t.points, CORNERS + source))
    store(t.points, POINTS_A + target, load(t.points, POINTS_A + source))
    store(t.points, POINTS_B + target, load(t.points, POINTS_B + source))


@kernel
def shrink(t, last, before):
    """The smallest simplex at the last corner that contains v, its point nearest to the origin: (corners, v, |v|²).

    If v would not be nearer than before the simplex is unchanged and the number of corners is 0.
    """
    p = load(t.points, CORNERS + last)
    best = dot(p, p)
    count, v, first, second = 1, p, -1, -1
    one, two = zero(best), zero(best)
    d2, i, s = on_edge(t, last, best)
    if i >= 0:
        count, best, first, one = 2, d2, i, s
        v = p + (load(t.points, CORNERS + i) - p) * s
    d2, i, j, si, sj, foot = on_triangle(t, last, best)
    if i >= 0:
        count, best, first, second, one, two, v = 3, d2, i, j, si, sj, foot
    if not best < before:
        return 0, v, best
    if count > 1:
        copy_corner(t, first, 0)  # the first is never behind the second
    if count > 2:
        copy_corner(t, second, 1)
    copy_corner(t, last, count - 1)
    store(t.numbers, WEIGHTS, one)
    store(t.numbers, WEIGHTS + 1, two)
    store(t.numbers, WEIGHTS + count - 1, 1.0 - one - two)
    return count, v, best


@kernel
def add_corner(t, count, pa, pb):
    """Add a corner."""
    store(t.points, CORNERS + count, pb - pa)
    store(t.points, POINTS_A + count, pa)
    store(t.points, POINTS_B + count, pb)


@kernel
def witness(t, count, normal, gap):
    """The nearest points of both cores, from the weights of the simplex."""
    pa, pb = zero3(gap), zero3(gap)
    for k in range(count):
        weight = load(t.numbers, WEIGHTS + k)
        pa = pa + load(t.points, POINTS_A + k) * weight
        pb = pb + load(t.points, POINTS_B + k) * weight
    return Near(normal, gap, pa, pb)


@kernel
def search_gap(g, t, a, b, A, B, normal, limit, size):
    """Distance of two cores, starting from a direction: the result of the search, and the nearest points.

    `size` is the extent of both shapes: differences below its rounding error count as zero.
    """
    stand_alone()
    noise = 4.0 * rounding(size) * size
    pa, pb = nearest_points(g, t, a, b, A, B, normal)
    add_corner(t, 0, pa, pb)
    store(t.numbers, WEIGHTS, zero(size) + 1.0)
    count, v = 1, pb - pa
    d2 = dot(v, v)
    best, gap, found = normal, dot(normal, v), APART
    for _ in range(ROUNDS):
        if d2 <= noise * noise:
            found = MEETING
            break
        d = sqrt(d2)
        normal = v * (1.0 / d)
        pa, pb = nearest_points(g, t, a, b, A, B, normal)
        here = dot(normal, pb - pa)
        if here > gap:
            best, gap = normal, here
        if gap > limit:
            found = FAR
            break
        if d - here <= maximum(d * good_enough(d), noise):
            break
        add_corner(t, count, pa, pb)
        if count == 3 and gap <= noise and holds_origin(t):
            found = MEETING
            break
        more, v_next, d2_next = shrink(t, count, d2)
        if more == 0:
            break
        count, v, d2 = more, v_next, d2_next
    if found == APART and gap < -noise:
        found = MEETING  # rounding has stopped the search on a long thin simplex: separation is not proved
    return found, witness(t, count, best, gap)
