"""Penetration of a shape into a convex edge or corner of a surface, along the surface's normals there.

The least penetration of a triangle may be across an edge at which the surface continues. Valid directions are then the
normals of its convex edges and corners. Those of an edge are an arc: the best of a few directions on the arc is refined
with the edge extended beyond the shape, so that its ends have no effect. Those of a corner are a cone.
"""

from __future__ import annotations

from poise.collision.narrowphase.convex.gjk import Near
from poise.collision.narrowphase.convex.penetration import PUSHES, refine
from poise.collision.narrowphase.convex.support import (
    CYLINDER,
    ELLIPSOID,
    FACET,
    FACET_REACH,
    nearest_points,
    rounding,
    unit,
)
from poise.collision.narrowphase.mesh.mesh_triangle import BEND, NORMAL, OUT, is_own, turning
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, maximum, minimum, sqrt, to_real, zero
from poise.kernel.vec import column2, dot, norm, zero3

TRIANGLE_NUMBER = -1
"""Shape number that stands for the triangle."""
ASIDE = FACET + 8
"""Offset where its corners are saved while a segment replaces it."""
ARC = 8
"""Directions that are evaluated on the arc of an edge, less one."""
FEW_PUSHES = 10
"""Maximum rounds of refinement of a direction, for curved shapes: near an edge the first direction is good."""
TRIED = FACET_REACH + 10
"""Offset in `numbers` of their gaps."""


@kernel
def put_aside(t):
    """Save the corners."""
    for k in range(3):
        store(t.points, ASIDE + k, load(t.points, FACET + k))


@kernel
def take_back(t):
    """Restore the corners."""
    for k in range(3):
        store(t.points, FACET + k, load(t.points, ASIDE + k))


@kernel
def stand_for(t, p, q):
    """Replace the triangle by a segment, relative to its middle."""
    store(t.points, FACET, p)
    store(t.points, FACET + 1, q)
    store(t.points, FACET + 2, p)


@kernel
def turned(t, n, k, share):
    """The normal rotated about edge k by a fraction of the tangent of its half angle."""
    tangent = maximum(load(t.numbers, BEND + k), zero(n.x)) * share
    return unit(n * (1.0 - tangent * tangent) + load(t.points, OUT + k) * (2.0 * tangent), n)


@kernel
def trial(t, n, k, i, corner):
    """Direction i of a few about edge k, or about both edges at the corner at its end."""
    share = to_real(i, n.x) * (1.0 / ARC)
    way = turned(t, n, k, share)
    return unit(way + turned(t, n, (k + 1) % 3, 1.0 - share), n) if corner else way


@kernel
def try_directions(g, t, a, A, F, n, k, corner):
    """Gaps along a few directions: whether the shape overlaps the edge along all of them."""
    inside = True
    for i in range(ARC + 1):
        out = trial(t, n, k, i, corner)
        pa, pb = nearest_points(g, t, a, TRIANGLE_NUMBER, A, F, -out)
        gap = dot(out, pa - pb)
        store(t.numbers, TRIED + i, gap)
        inside = inside and gap <= 0.0
    return inside


@kernel
def is_top(t, i):
    """Whether no neighbour of an evaluated direction is better."""
    gap = load(t.numbers, TRIED + i)
    lower = i == 0 or load(t.numbers, TRIED + i - 1) <= gap
    return lower and (i == ARC or load(t.numbers, TRIED + i + 1) < gap)


@kernel
def may_be_on(g, t, a, A, F, out, start, end, corner, bend):
    """Whether a curved shape may touch the edge itself, or its end, along a direction near this one.

    Its lowest point is then near there, up to its movement between the evaluated directions.
    """
    pa, pb = nearest_points(g, t, a, TRIANGLE_NUMBER, A, F, -out)
    turn = minimum(bend, zero(bend) + 1.0)
    slack = turn * load(g.reach, a)
    upright = fabs(dot(column2(A.R), out))
    if load(g.kind, a) == CYLINDER and (upright <= turn or upright * upright >= 1.0 - turn * turn):
        return True  # it touches with a whole line or cap
    if corner:
        off = pa - pb
        off = off - out * dot(out, off)
        return dot(off, off) <= slack * slack
    along = end - start
    length = norm(along)
    s = dot(along, pa - F.p - start) / length
    return s >= -0.5 * slack and s <= length + 0.5 * slack


@kernel
def search_edges(g, t, a, b, A, B, F, height, size):
    """The signed distance along normals of convex edges and corners, if above a height: whether found, and where."""
    n = load(t.points, NORMAL)
    found, near = False, Near(-n, height, zero3(size), zero3(size))
    close = 4.0 * sqrt(rounding(size)) * size
    apart = maximum(0.1 * minimum(load(g.reach, a), load(t.numbers, FACET_REACH)), close)
    longer = 2.0 * load(g.reach, a) + norm(F.p)
    curved = load(g.kind, a) in (CYLINDER, ELLIPSOID)
    pushes = FEW_PUSHES if curved else PUSHES
    put_aside(t)
    for k in range(6):
        edge, following, corner = k % 3, (k + 1) % 3, k >= 3
        bend = load(t.numbers, BEND + edge)
        if corner:
            bend = maximum(bend, load(t.numbers, BEND + following))
        if bend <= turning(size):
            continue
        start, end = load(t.points, ASIDE + edge), load(t.points, ASIDE + following)
        more = unit(end - start, n) * longer
        first, last = end if corner else start - more, end if corner else end + more
        stand_for(t, first, last)
        inside = try_directions(g, t, a, A, F, n, edge, corner)
        for i in range(ARC + 1):
            if inside and is_top(t, i):
                stand_for(t, first, last)
                way = trial(t, n, edge, i, corner)
                if curved and not may_be_on(g, t, a, A, F, way, start, end, corner, bend):
                    continue
                here = refine(g, t, a, TRIANGLE_NUMBER, A, F, -way, apart, close, size, pushes)
                take_back(t)
                if here.gap > 0.0:
                    continue  # separated: the nearest triangle has this contact
                there = is_on(here.b - F.p, start, end, size)
                if here.gap > near.gap and not there:
                    # along parallel lines it may be anywhere; elsewhere the triangle itself rejects the direction
                    other = refine(g, t, a, TRIANGLE_NUMBER, A, F, here.normal, apart, close, size, 1)
                    there = fabs(other.gap - here.gap) <= 1e-4 * turning(size) * size
                    here = Near(here.normal, here.gap, other.a, other.b)
                if there and here.gap > near.gap and is_own(g, t, b, B, -here.normal, here.b - F.p):
                    found, near = True, here
    take_back(t)
    return found, near


@kernel
def is_on(p, start, end, size):
    """Whether a point on the line of an edge is on the edge."""
    along, slack = end - start, 64.0 * rounding(size) * size
    s, length = dot(along, p - start), norm(along)
    return s >= -slack * length and s <= (length + slack) * length
