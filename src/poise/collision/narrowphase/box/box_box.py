"""Contact points of two boxes, in the axes of A.

The axis of least penetration of two convex polytopes is the normal of a face of either, or a cross product of two
edges: fifteen axes for boxes (S. Gottschalk, M. C. Lin and D. Manocha, "OBBTree", SIGGRAPH 1996, §5). Projected along
that axis, the facing faces of A and B intersect in a polygon, whose corners are the contact points.

The distance of separated boxes is at least the gap along the best of these axes. It is larger only if two corners, or a
corner and an edge, are nearest: then the distances of B's edges are computed one by one, and the faces are projected
along the line between the nearest points.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.box.box_geometry import (
    FAR,
    STILL,
    absolute,
    across_axis,
    axis,
    grain,
    largest,
    nearest_along,
    part,
    signed,
    total,
    turned,
    turned_back,
    within,
)
from poise.collision.narrowphase.box.clip_faces import CHOSEN, FEATURES, choose, cut, deepest, facing, share
from poise.collision.narrowphase.convex.manifold_list import put
from poise.kernel.jit import kernel
from poise.kernel.memory import load
from poise.kernel.scalars import fabs, select, sqrt, zero
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, dot, transpose, transpose_times

ROUNDED = 160
"""Feature of a contact point when, by rounding, the faces share no corner."""


@formula
def rows_size(C: Any, h: Any) -> Any:
    """Half extents, along the axes of one box, of another box whose axes are the columns of C."""
    return Vec3(
        fabs(C.xx) * h.x + fabs(C.xy) * h.y + fabs(C.xz) * h.z,
        fabs(C.yx) * h.x + fabs(C.yy) * h.y + fabs(C.yz) * h.z,
        fabs(C.zx) * h.x + fabs(C.zy) * h.y + fabs(C.zz) * h.z,
    )


@formula
def edge_gaps(u: Any, v: Any, w: Any, d: Any, ha: Any, hv: Any, hw: Any) -> Any:
    """Gaps along the cross products of each axis of A and the axis u of B, whose other axes are v and w.

    Each vector is exactly perpendicular to both, even for nearly parallel axes: the gap along any unit vector, even a
    noisy one, is a lower bound of the distance.
    """
    d_side, v_side, w_side = _across(u, d), _across(u, v), _across(u, w)
    x, y, z = fabs(u.x), fabs(u.y), fabs(u.z)
    sizes = (ha.y * z + ha.z * y, ha.z * x + ha.x * z, ha.x * y + ha.y * x)
    lengths2 = (u.y * u.y + u.z * u.z, u.z * u.z + u.x * u.x, u.x * u.x + u.y * u.y)
    gaps = []
    for k in range(3):
        some = lengths2[k] > STILL
        over = fabs(d_side[k]) - sizes[k] - hv * fabs(v_side[k]) - hw * fabs(w_side[k])
        gaps.append(select(some, over / sqrt(select(some, lengths2[k], zero(over) + 1.0)), zero(over) - FAR))
    return Vec3(*gaps)


def _across(u: Any, v: Any) -> Any:
    """Products of v with each axis × u."""
    return u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x


@kernel
def best_axis(C, d, ha, hb, nothing, limit):
    """The axis of the largest gap, from A to B; that gap; whether it is a cross product of edges.

    Face normals are preferred to cross products. The search ends when a gap is above the limit.
    """
    one = zero(d.x) + 1.0
    gaps = absolute(d) - ha - rows_size(C, hb)
    k = largest(gaps, nothing)
    gap, n, edges = part(gaps, k), axis(k, one), False
    if gap > limit:
        return n, gap, edges
    T = transpose(C)
    gaps = absolute(T @ d) - hb - rows_size(T, ha)
    k = largest(gaps, nothing)
    if part(gaps, k) > gap + nothing:
        gap, n = part(gaps, k), C @ axis(k, one)
    if gap > limit:
        return n, gap, edges
    best = gap + nothing
    i_best, j_best = -1, 0
    for j in range(3):
        u, v, w = C @ axis(j, one), C @ axis((j + 1) % 3, one), C @ axis((j + 2) % 3, one)
        gaps = edge_gaps(u, v, w, d, ha, part(hb, (j + 1) % 3), part(hb, (j + 2) % 3))
        i = largest(gaps, nothing)
        if part(gaps, i) > best:
            best, i_best, j_best = part(gaps, i) + nothing, i, j
    if i_best >= 0:
        gap, n, edges = best - nothing, across_axis(i_best, C @ axis(j_best, one)), True
    return n, gap, edges


@formula
def edge_of(C: Any, d: Any, h: Any, k: Any, sides: Any) -> Any:
    """Middle, direction and half length of an edge of B along axis k; bits give its sides along the next two axes."""
    one = zero(d.x) + 1.0
    size = turned(h, k, one)
    x, y = select((sides & 1) == 1, size.x, -size.x), select((sides & 2) == 2, size.y, -size.y)
    return d + C @ turned_back(Vec3(x, y, zero(x)), k, one), C @ axis(k, one), size.z


@kernel
def nearest_edge(C, d, ha, hb, n, nothing, limit):
    """Distance of A from the edges of B, or more than the limit; the nearest point on them, and the vector to it.

    Edges whose gap along n is above the limit are skipped.
    """
    reach = dot(absolute(n), ha)
    best, nearest, off = limit + nothing, d, d
    for edge in range(12):
        q, u, half = edge_of(C, d, hb, edge // 4, edge % 4)
        if dot(n, q) - half * fabs(dot(n, u)) - reach < best:
            x = q + u * nearest_along(q, u, half, ha)
            apart = x - within(x, ha)
            distance = sqrt(dot(apart, apart))
            if distance < best:
                best, nearest, off = distance, x, apart
    return best, nearest, off


@kernel
def box_box(t, A, B, limit):
    """Up to four contact points of two boxes, the deepest among them."""
    C, d = transpose(A.R) @ B.R, transpose_times(A.R, B.p - A.p)
    nothing = grain(d.x) * (total(A.half) + total(B.half) + total(absolute(d)))
    n, gap, edges = best_axis(C, d, A.half, B.half, nothing, limit)
    n = select(dot(n, d) < 0.0, -n, n)
    x = d
    for look in range(2):
        if gap > limit:
            return
        k = largest(absolute(n), grain(d.x))
        way = signed(zero(gap) + 1.0, part(n, k))
        faces = facing(t, C, d, A.half, B.half, n, k, way, nothing)
        count = share(t, faces)
        if count > 0 and (gap <= 0.0 or load(t.points, deepest(t, count, nothing)).z <= gap + 4.0 * nothing):
            count = choose(t, cut(t, count, faces, limit, edges), nothing)
            put_chosen(t, count, A, faces.n, k, way, limit)
            return
        if look == 0:  # two corners, or a corner and an edge, are nearest
            distance, x, off = nearest_edge(C, d, A.half, B.half, n, nothing, limit)
            edges = True
            if distance > nothing:  # else the direction is undefined
                gap, n = distance, off * (1.0 / distance)
    put(t, limit, gap, A.R @ n, A.p + A.R @ (x - n * (0.5 * gap)), ROUNDED)


@kernel
def put_chosen(t, count, A, n, k, way, limit):
    """The chosen corners of the shared polygon as contact points."""
    normal = A.R @ turned_back(n, k, way)
    for i in range(count):
        c = load(t.whole, CHOSEN + i)
        p = load(t.points, c)
        middle = Vec3(p.x, p.y, part(A.half, k)) + n * (0.5 * p.z)
        put(t, limit, p.z, normal, A.p + A.R @ turned_back(middle, k, way), load(t.whole, FEATURES + c) + 0)
