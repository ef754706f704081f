"""Overlap of a shape with a convex edge or corner of a surface, along the surface's own directions there.

What a triangle overlaps may leave it soonest across an edge at which the surface goes on. The ways out that count are
those round its convex edges and corners. Round an edge they are an arc: of a few directions on it the best is made
exact with the edge made longer than the shape, so that its ends do not matter. Round a corner they are a cone.
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
"""What stands for the triangle where a shape has a number."""
ASIDE = FACET + 8
"""Place where its corners are kept while something else stands for it."""
ARC = 8
"""Directions that are tried on the arc of an edge, less one."""
FEW_PUSHES = 10
"""Rounds at most to make a direction exact, for curved shapes: near an edge it is good from the beginning."""
TRIED = FACET_REACH + 10
"""Place in `numbers` of their gaps."""


@kernel
def put_aside(t):
    """Keep the corners."""
    for k in range(3):
        store(t.points, ASIDE + k, load(t.points, FACET + k))


@kernel
def take_back(t):
    """Put the corners back."""
    for k in range(3):
        store(t.points, FACET + k, load(t.points, ASIDE + k))


@kernel
def stand_for(t, p, q):
    """Let a segment, from the middle of the triangle, stand for it."""
    store(t.points, FACET, p)
    store(t.points, FACET + 1, q)
    store(t.points, FACET + 2, p)


@kernel
def turned(t, n, k, share):
    """The normal turned round edge k by a share of its angle, or rather of the tangent of half of it."""
    tangent = maximum(load(t.numbers, BEND + k), zero(n.x)) * share
    return unit(n * (1.0 - tangent * tangent) + load(t.points, OUT + k) * (2.0 * tangent), n)


@kernel
def trial(t, n, k, i, corner):
    """Direction i of a few round edge k, or where the corner at its end is meant round both edges there."""
    share = to_real(i, n.x) * (1.0 / ARC)
    way = turned(t, n, k, share)
    return unit(way + turned(t, n, (k + 1) % 3, 1.0 - share), n) if corner else way


@kernel
def try_directions(g, t, a, A, F, n, k, corner):
    """Gaps along a few directions: whether the shape is in the edge along all of them."""
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
    """Whether no direction beside one that was tried is better."""
    gap = load(t.numbers, TRIED + i)
    lower = i == 0 or load(t.numbers, TRIED + i - 1) <= gap
    return lower and (i == ARC or load(t.numbers, TRIED + i + 1) < gap)


@kernel
def may_be_on(g, t, a, A, F, out, start, end, corner, bend):
    """Whether a curved shape may touch the edge itself, or its end, along a direction near this one.

    Its lowest point is then over there, but for how far that moves between the directions tried.
    """
    pa, pb = nearest_points(g, t, a, TRIANGLE_NUMBER, A, F, -out)
    turn = minimum(bend, zero(bend) + 1.0)
    slack = turn * load(g.reach, a)
    upright = fabs(dot(column2(A.R), out))
    if load(g.kind, a) == CYLINDER and (upright <= turn or upright * upright >= 1.0 - turn * turn):
        return True  # with a whole line or cap
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
    """The least gap above a height round convex edges and corners: whether there is one, and where."""
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
                    continue  # apart: the nearest triangle has it
                there = is_on(here.b - F.p, start, end, size)
                if here.gap > near.gap and not there:
                    # along parallel lines it may be anywhere; elsewhere the triangle itself turns the direction away
                    other = refine(g, t, a, TRIANGLE_NUMBER, A, F, here.normal, apart, close, size, 1)
                    there = fabs(other.gap - here.gap) <= 1e-4 * turning(size) * size
                    here = Near(here.normal, here.gap, other.a, other.b)
                if there and here.gap > near.gap and is_own(g, t, b, B, -here.normal, here.b - F.p):
                    found, near = True, here
    take_back(t)
    return found, near


@kernel
def is_on(p, start, end, size):
    """Whether a point of the line of an edge is on the edge."""
    along, slack = end - start, 64.0 * rounding(size) * size
    s, length = dot(along, p - start), norm(along)
    return s >= -slack * length and s <= (length + slack) * length
