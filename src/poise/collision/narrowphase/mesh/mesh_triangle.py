"""One triangle of a height field or a mesh: where it is, how the surface goes on beyond its edges, which way it pushes.

Triangles push outward. A direction m, from the surface to the other shape, is one of the surface's own if it is the
normal of the triangle, or lies between those of the two triangles at a convex edge, or in the cone of those about a
corner: no point of the surface nearby is then farther along m than the place that pushes. Other directions belong to no
place of the surface, only to where one triangle ends and the next goes on, and would be ghosts.

All points are in world axes, corners from the middle of the triangle.
"""

from __future__ import annotations

from typing import Any

from poise.collision.collision_layout import Placed
from poise.collision.narrowphase.convex.support import FACET, FACET_REACH, top_of_facet, unit
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import maximum, minimum, sqrt, to_real, zero
from poise.kernel.trace import constant, formula, precision
from poise.kernel.vec import Vec3, cross, dot
from poise.model.shape_arrays import Solid

FIELD, MESH = int(Solid.FIELD), int(Solid.MESH)
NORMAL, OUT = FACET + 3, FACET + 4
"""Places in `points`: the outward normal, and for each edge the direction in the plane that leads out across it."""
BEND = FACET_REACH + 1
"""Places in `numbers`: tangents of half the angle by which the surface turns at each edge, positive where it turns away
(convex). At the border of the surface it turns by a quarter."""
VERTEX, APEX, FACE = 13000, 13003, 13006
"""Places in `whole`: numbers of the corners; for each edge that of the third corner beyond, −1 at the border of the
surface; number of the triangle."""
STEEPEST = 1e3
"""Tangent of half an angle, for knives."""


@formula
def turning(like: Any) -> Any:
    """Angle by which a direction may be off, and by which an edge is no edge; rad."""
    return constant(1e-5 if precision(like) > 24 else 1e-3, like)


@kernel
def vertex_in(g, b, v):
    """A vertex of a mesh, or of a field the place of a height, in the surface's frame."""
    if load(g.kind, b) == MESH:
        return load(g.vertex, v)
    size = load(g.size, b)
    rows, columns = load(g.grid, 2 * b), load(g.grid, 2 * b + 1)
    row = v // columns
    x = 2.0 * to_real(v - row * columns, size.x) / to_real(columns - 1, size.x) - 1.0
    y = 2.0 * to_real(row, size.x) / to_real(rows - 1, size.x) - 1.0
    return Vec3(size.x * x, size.y * y, load(g.height, load(g.height_start, b) + v))


@kernel
def vertex_at(g, b, B, v):
    """A vertex in world axes."""
    return B.p + B.R @ vertex_in(g, b, v)


@kernel
def grid_vertex(g, b, row, column):
    """Number of a place on the grid of a field; −1 beside it."""
    rows, columns = load(g.grid, 2 * b), load(g.grid, 2 * b + 1)
    if row < 0 or row >= rows or column < 0 or column >= columns:
        return -1
    return row * columns + column


@kernel
def name_mesh_facet(g, t, b, face):
    """Look at a triangle of a mesh."""
    first, start = load(g.vertex_start, b), 3 * (load(g.face_start, b) + face)
    store(t.whole, FACE, face)
    for k in range(3):
        apex = load(g.beyond, start + k)
        store(t.whole, VERTEX + k, first + load(g.face, start + k))
        store(t.whole, APEX + k, first + apex if apex >= 0 else -1)


@kernel
def name_field_facet(g, t, b, row, column, left):
    """Look at a triangle of a cell of a field, that right (0) or left (1) of its diagonal."""
    columns = load(g.grid, 2 * b + 1)
    store(t.whole, FACE, 2 * (row * columns + column) + left)
    store(t.whole, VERTEX, row * columns + column)
    if left == 0:
        store(t.whole, VERTEX + 1, row * columns + column + 1)
        store(t.whole, APEX, grid_vertex(g, b, row - 1, column))
        store(t.whole, APEX + 1, grid_vertex(g, b, row + 1, column + 2))
        store(t.whole, APEX + 2, grid_vertex(g, b, row + 1, column))
        store(t.whole, VERTEX + 2, (row + 1) * columns + column + 1)
    else:
        store(t.whole, VERTEX + 1, (row + 1) * columns + column + 1)
        store(t.whole, VERTEX + 2, (row + 1) * columns + column)
        store(t.whole, APEX, grid_vertex(g, b, row, column + 1))
        store(t.whole, APEX + 1, grid_vertex(g, b, row + 2, column + 1))
        store(t.whole, APEX + 2, grid_vertex(g, b, row, column - 1))


@kernel
def place_facet(g, t, b, B):
    """Corners, normal and edges of the triangle looked at: (its middle, whether it has an area)."""
    p, q, r = (
        vertex_at(g, b, B, load(t.whole, VERTEX)),
        vertex_at(g, b, B, load(t.whole, VERTEX + 1)),
        vertex_at(g, b, B, load(t.whole, VERTEX + 2)),
    )
    middle = (p + q + r) * (1.0 / 3.0)
    store(t.points, FACET, p - middle)
    store(t.points, FACET + 1, q - middle)
    store(t.points, FACET + 2, r - middle)
    across = cross(q - p, r - p)
    normal = unit(across, across)
    store(t.points, NORMAL, normal)
    reach2 = zero(p.x)
    for k in range(3):
        corner = load(t.points, FACET + k)
        reach2 = maximum(reach2, dot(corner, corner))
    store(t.numbers, FACET_REACH, sqrt(reach2))
    return middle, dot(normal, normal) > 0.5


@kernel
def bend_edges(g, t, b, B, middle):
    """How the surface goes on beyond the edges of the triangle looked at."""
    n = load(t.points, NORMAL)
    for k in range(3):
        start = load(t.points, FACET + k)
        along = load(t.points, FACET + (k + 1) % 3) - start
        store(t.points, OUT + k, unit(cross(along, n), n))
        store(t.numbers, BEND + k, bend_at(g, t, b, B, k, n, along, middle + start))


@kernel
def bend_at(g, t, b, B, k, n, along, start):
    """Tangent of half the angle by which the surface turns at an edge."""
    apex = load(t.whole, APEX + k)
    none = zero(n.x)
    if apex < 0:
        return none + 1.0
    way = vertex_at(g, b, B, apex) - start
    other = cross(way, along)  # the edge runs the other way round the neighbour
    area = sqrt(dot(other, other))
    if area <= none:
        return none
    other = other * (1.0 / area)
    turn = cross(n, other)
    tangent = sqrt(dot(turn, turn)) / maximum(1.0 + dot(n, other), none + 1e-6)
    tangent = minimum(tangent, none + STEEPEST)
    return tangent if dot(n, way) < 0.0 else -tangent


@kernel
def sharpest(t):
    """The greatest tangent of half an angle by which the surface turns away at an edge."""
    return maximum(maximum(load(t.numbers, BEND), load(t.numbers, BEND + 1)), load(t.numbers, BEND + 2))


@kernel
def inset(t, p):
    """How far a point, from the middle, is within all three edges, seen along the normal; negative outside."""
    least = -dot(load(t.points, OUT), p - load(t.points, FACET))
    for k in range(1, 3):
        least = minimum(least, -dot(load(t.points, OUT + k), p - load(t.points, FACET + k)))
    return least


@kernel
def is_over(t, p, height, slack):
    """Whether a point, from the middle and at a height over the plane, is over the triangle.

    Behind a concave edge it may be outside, as far as to the plane that halves the angle: neither triangle is there.
    """
    for k in range(3):
        beyond = dot(load(t.points, OUT + k), p - load(t.points, FACET + k))
        more = minimum(load(t.numbers, BEND + k), zero(slack)) * minimum(height, zero(slack))
        if beyond > slack + more:
            return False
    return True


# ---- directions ------------------------------------------------------------------------------------------------------


@kernel
def touching_corners(t, m, p):
    """Bits of the corners that push along m: the highest ones, and those between which the point p is.

    None where p is not among the highest points.
    """
    level = dot(m, top_of_facet(t, m))
    if level - dot(m, p) > turning(level) * load(t.numbers, FACET_REACH):
        return 0
    slack = 1e-4 * turning(level) * load(t.numbers, FACET_REACH)
    bits = 0
    for k in range(3):
        edge = (k + 1) % 3  # the one across from it
        out, start = load(t.points, OUT + edge), load(t.points, FACET + edge)
        corner = load(t.points, FACET + k)
        share, whole = dot(out, start - p), dot(out, start - corner)
        lower = level - dot(m, corner)
        if lower <= slack or (lower <= 4e4 * slack and share > 1e-2 * turning(level) * whole):
            bits |= 1 << k
    return bits


@kernel
def is_lower(g, b, B, v, m, start):
    """Whether a vertex is not farther along m than a point."""
    way = vertex_at(g, b, B, v) - start
    return dot(m, way) <= turning(m.x) * sqrt(dot(way, way))


@kernel
def is_peak(g, b, B, v, m):
    """Whether no neighbour of a vertex is farther along m."""
    here = vertex_at(g, b, B, v)
    if load(g.kind, b) == MESH:
        for e in range(load(g.neighbor_start, v), load(g.neighbor_start, v + 1)):
            if not is_lower(g, b, B, load(g.neighbor, e), m, here):
                return False
        return True
    columns = load(g.grid, 2 * b + 1)
    row = v // columns
    column = v - row * columns
    for k in range(6):
        step = 1 if k < 3 else -1
        other = grid_vertex(g, b, row + (0 if k % 3 == 0 else step), column + (0 if k % 3 == 1 else step))
        if other >= 0 and not is_lower(g, b, B, other, m, here):
            return False
    return True


@kernel
def is_own(g, t, b, B, m, p):
    """Whether m, with the nearest point p of the triangle, from its middle, is a direction of the surface."""
    if not dot(m, load(t.points, NORMAL)) > 0.0:
        return False
    bits = touching_corners(t, m, p)
    if bits == 7:
        return True
    for k in range(3):
        if bits == 1 << k:
            return is_peak(g, b, B, load(t.whole, VERTEX + k), m)
        if bits == (1 << k) | (1 << (k + 1) % 3):
            apex = load(t.whole, APEX + k)
            if apex < 0:
                return True
            start = vertex_at(g, b, B, load(t.whole, VERTEX + k))
            return load(t.numbers, BEND + k) > -turning(m.x) and is_lower(g, b, B, apex, m, start)
    return False


@kernel
def facet_placed(B, middle):
    """The triangle as a shape."""
    return Placed(middle, B.R, B.half)
