"""One triangle of a height field or a mesh: its corners, the dihedral angles at its edges, its valid contact normals.

Triangles push outward. A contact normal m, from the surface to the other shape, is valid (belongs to the surface) if it
is the normal of the triangle, lies between those of the two triangles at a convex edge, or is in the normal cone of a
corner: then no point of the surface nearby is farther along m than the contact point. Other normals are artefacts of
the edges between triangles (ghost collisions).

All points are in world axes, corners relative to the middle of the triangle.
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
"""Offsets in `points`: the outward normal, and for each edge the outward direction perpendicular to it in the plane."""
BEND = FACET_REACH + 1
"""Offsets in `numbers`: tangents of half the dihedral angle at each edge, positive where the surface is convex. At the
border of the surface the angle is a quarter turn."""
VERTEX, APEX, FACE = 13000, 13003, 13006
"""Offsets in `whole`: indices of the corners; for each edge the index of the third corner of the neighbour, −1 at the
border of the surface; index of the triangle."""
STEEPEST = 1e3
"""Upper bound of the tangent of half a dihedral angle, for very sharp edges."""


@formula
def turning(like: Any) -> Any:
    """Tolerance of directions, and dihedral angle below which an edge counts as flat; rad."""
    return constant(1e-5 if precision(like) > 24 else 1e-3, like)


@kernel
def vertex_in(g, b, v):
    """A vertex of a mesh, or of the grid of a field, in the surface's frame."""
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
    """Index of a vertex on the grid of a field; −1 outside it."""
    rows, columns = load(g.grid, 2 * b), load(g.grid, 2 * b + 1)
    if row < 0 or row >= rows or column < 0 or column >= columns:
        return -1
    return row * columns + column


@kernel
def name_mesh_facet(g, t, b, face):
    """Select a triangle of a mesh."""
    first, start = load(g.vertex_start, b), 3 * (load(g.face_start, b) + face)
    store(t.whole, FACE, face)
    for k in range(3):
        apex = load(g.beyond, start + k)
        store(t.whole, VERTEX + k, first + load(g.face, start + k))
        store(t.whole, APEX + k, first + apex if apex >= 0 else -1)


@kernel
def name_field_facet(g, t, b, row, column, left):
    """Select a triangle of a cell of a field, the one right (0) or left (1) of its diagonal."""
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
    """Corners, normal and edges of the selected triangle: (its middle, whether it has an area)."""
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
    """Dihedral angles at the edges of the selected triangle."""
    n = load(t.points, NORMAL)
    for k in range(3):
        start = load(t.points, FACET + k)
        along = load(t.points, FACET + (k + 1) % 3) - start
        store(t.points, OUT + k, unit(cross(along, n), n))
        store(t.numbers, BEND + k, bend_at(g, t, b, B, k, n, along, middle + start))


@kernel
def bend_at(g, t, b, B, k, n, along, start):
    """Tangent of half the dihedral angle at an edge."""
    apex = load(t.whole, APEX + k)
    none = zero(n.x)
    if apex < 0:
        return none + 1.0
    way = vertex_at(g, b, B, apex) - start
    other = cross(way, along)  # the neighbour traverses the edge in the opposite direction
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
    """The largest tangent of half a dihedral angle at an edge."""
    return maximum(maximum(load(t.numbers, BEND), load(t.numbers, BEND + 1)), load(t.numbers, BEND + 2))


@kernel
def inset(t, p):
    """Distance of a point, relative to the middle, inside all three edges, along the plane; negative outside."""
    least = -dot(load(t.points, OUT), p - load(t.points, FACET))
    for k in range(1, 3):
        least = minimum(least, -dot(load(t.points, OUT + k), p - load(t.points, FACET + k)))
    return least


@kernel
def is_over(t, p, height, slack):
    """Whether a point, relative to the middle and at a height over the plane, is over the triangle.

    Behind a concave edge it may be outside, up to the plane that bisects the angle: neither triangle is there.
    """
    for k in range(3):
        beyond = dot(load(t.points, OUT + k), p - load(t.points, FACET + k))
        more = minimum(load(t.numbers, BEND + k), zero(slack)) * minimum(height, zero(slack))
        if beyond > slack + more:
            return False
    return True


# ---- normals ---------------------------------------------------------------------------------------------------------


@kernel
def touching_corners(t, m, p):
    """Bits of the corners of the face, edge or corner that is highest along m and contains the point p.

    Zero if p is not among the highest points.
    """
    level = dot(m, top_of_facet(t, m))
    if level - dot(m, p) > turning(level) * load(t.numbers, FACET_REACH):
        return 0
    slack = 1e-4 * turning(level) * load(t.numbers, FACET_REACH)
    bits = 0
    for k in range(3):
        edge = (k + 1) % 3  # the opposite edge
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
    """Whether m, with the nearest point p of the triangle, relative to its middle, is a valid normal of the surface."""
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
