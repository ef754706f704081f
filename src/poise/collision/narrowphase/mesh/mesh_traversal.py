"""Traversal of the triangles of a surface near a shape: down the tree of a mesh, over the cells of a height field.

Parts farther from the shape's box than the limit are skipped. With an unbounded limit only the nearest contact point is
searched: parts farther than the nearest one so far are skipped, and the nearest parts are visited first.
"""

from __future__ import annotations

from typing import Any

from poise.collision.narrowphase.mesh.contact_reduction import collect
from poise.collision.narrowphase.mesh.mesh_triangle import name_field_facet, name_mesh_facet, vertex_in
from poise.collision.narrowphase.mesh.triangle_convex import touch_facet
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import floor, maximum, minimum, sqrt, to_int, to_real, zero
from poise.kernel.trace import formula
from poise.kernel.values import Value
from poise.kernel.vec import Vec3, dot

STACK = 14000
"""Offset in `whole` of the stack of nodes: at most two of each level."""
BOUNDLESS = 1e9
"""Limit from which on only the nearest contact point is searched; m."""


class Region(Value):
    """A shape's box in the frame of a surface: middle and half extents, enlarged by rounding errors; m."""

    fields = (("middle", Vec3), ("half", Vec3))
    __slots__ = ("half", "middle")
    middle: Any
    half: Any


@formula
def beyond(x: Any, half: Any, low: Any, high: Any) -> Any:
    """Distance of the interval x ± half from the one between low and high; 0 where they overlap."""
    return maximum(maximum(low - x - half, x - half - high), zero(x))


@formula
def distance(box: Any, low: Any, high: Any) -> Any:
    """Distance of two boxes; m."""
    apart = Vec3(
        beyond(box.middle.x, box.half.x, low.x, high.x),
        beyond(box.middle.y, box.half.y, low.y, high.y),
        beyond(box.middle.z, box.half.z, low.z, high.z),
    )
    return sqrt(dot(apart, apart))


@kernel
def nearer(reach, limit, gap):
    """The limit of gaps after a contact point with this gap."""
    if limit >= BOUNDLESS and gap < reach:
        return maximum(gap, zero(gap))
    return reach


# ---- meshes ----------------------------------------------------------------------------------------------------------


@kernel
def node_distance(g, node, box):
    """Distance of a node from a box; m."""
    return distance(box, load(g.node_low, node), load(g.node_high, node))


@kernel
def walk_mesh(g, t, a, b, A, B, box, limit, size):
    """Contact points of the triangles of a mesh."""
    base, reach = load(g.node_start, b), limit
    store(t.whole, STACK, base)
    depth = 1 if load(g.node_start, b + 1) > base else 0
    while depth > 0:
        depth -= 1
        node = load(t.whole, STACK + depth)
        if node_distance(g, node, box) > reach:
            continue
        child = load(g.node_child, node)
        if child >= 0:
            first = base + child
            swap = node_distance(g, first, box) < node_distance(g, first + 1, box)
            store(t.whole, STACK + depth, first + 1 if swap else first)
            store(t.whole, STACK + depth + 1, first if swap else first + 1)
            depth += 2
            continue
        begin = load(g.node_first, node)
        for k in range(begin, begin + load(g.node_count, node)):
            name_mesh_facet(g, t, b, load(g.node_face, k))
            reach = look_at_facet(g, t, a, b, A, B, reach, limit, size)


@kernel
def look_at_facet(g, t, a, b, A, B, reach, limit, size):
    """Collect the contact points of the current triangle; returns the limit of gaps afterwards."""
    facet = touch_facet(g, t, a, b, A, B, reach, size)
    return nearer(reach, limit, collect(t, facet, size)) if load(t.n, 0) > 0 else reach


# ---- height fields ---------------------------------------------------------------------------------------------------


@kernel
def cell_of(x, half, cells):
    """Index along an axis of the cell that contains a coordinate, or of the nearest cell."""
    last = to_real(cells - 1, x)
    at = floor((x + half) * to_real(cells, x) / (2.0 * half))
    return to_int(minimum(maximum(at, zero(x)), last))


@kernel
def walk_field(g, t, a, b, A, B, box, limit, size):
    """Contact points of the cells of a field: those under the box, then ring by ring around them."""
    half = load(g.size, b)
    rows, columns = load(g.grid, 2 * b) - 1, load(g.grid, 2 * b + 1) - 1
    left, right = (
        cell_of(box.middle.x - box.half.x, half.x, columns),
        cell_of(box.middle.x + box.half.x, half.x, columns),
    )
    front, back = cell_of(box.middle.y - box.half.y, half.y, rows), cell_of(box.middle.y + box.half.y, half.y, rows)
    reach = limit
    for ring in range(rows + columns):
        low_i, high_i, low_j, high_j = left - ring, right + ring, front - ring, back + ring
        near = False
        for j in range(max(low_j, 0), min(high_j, rows - 1) + 1):
            border = ring == 0 or j in (low_j, high_j)
            stride = 1 if border else high_i - low_i
            for i in range(low_i, high_i + 1, stride):
                if 0 <= i < columns:
                    close, reach = look_at_cell(g, t, a, b, A, B, box, i, j, reach, limit, size)
                    near = near or close
        if not near:
            break


@kernel
def look_at_cell(g, t, a, b, A, B, box, i, j, reach, limit, size):
    """Both triangles of a cell: (whether it is near the box, projected vertically; the limit of gaps afterwards)."""
    columns = load(g.grid, 2 * b + 1)
    v = j * columns + i
    p, q = vertex_in(g, b, v), vertex_in(g, b, v + columns + 1)
    h, k = vertex_in(g, b, v + 1).z, vertex_in(g, b, v + columns).z
    top = maximum(maximum(p.z, q.z), maximum(h, k))
    x, y = beyond(box.middle.x, box.half.x, p.x, q.x), beyond(box.middle.y, box.half.y, p.y, q.y)
    z = maximum(box.middle.z - box.half.z - top, zero(top))
    if x * x + y * y > reach * reach:
        return False, reach
    if x * x + y * y + z * z <= reach * reach:
        for half in range(2):
            name_field_facet(g, t, b, j, i, half)
            reach = look_at_facet(g, t, a, b, A, B, reach, limit, size)
    return True, reach
