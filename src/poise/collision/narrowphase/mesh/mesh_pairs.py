"""Contact points of a height field or a triangle mesh with any convex shape."""

from __future__ import annotations

from poise.collision.broadphase.aabb import extent
from poise.collision.collision_layout import Placed
from poise.collision.narrowphase.convex.manifold import DEEPEST
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.support import FACET, PLANE, SEAT_A, SPHERE, core_point, core_radius, rounding
from poise.collision.narrowphase.mesh.contact_reduction import collect, no_touches, put_list, start_list
from poise.collision.narrowphase.mesh.mesh_traversal import Region, cell_of, walk_field, walk_mesh
from poise.collision.narrowphase.mesh.mesh_triangle import FACE, FIELD, NORMAL, name_field_facet, place_facet, vertex_at
from poise.collision.narrowphase.mesh.triangle_convex import Facet
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import fabs, zero
from poise.kernel.vec import Vec3, column2, dot, norm, transpose, transpose_times, zero3


@kernel
def region(g, a, A, B, size):
    """Bounding box of A in the frame of B."""
    half = extent(g, a, load(g.kind, a), transpose(B.R) @ A.R)
    more = 16.0 * rounding(size) * size
    return Region(transpose_times(B.R, A.p - B.p), half + Vec3(more, more, more))


@kernel
def touch_surface(g, t, a, b, A, B, limit):
    """Contact points of a height field or a triangle mesh with any convex shape."""
    store(t.whole, SEAT_A, 0)
    start_list(t, A.half.x if load(g.kind, a) == SPHERE else zero(A.half.x))
    if load(g.kind, a) == PLANE:
        touch_plane(g, t, b, A, B, limit)
        return
    size = load(g.reach, a) + load(g.reach, b) + norm(B.p - A.p)
    box = region(g, a, A, B, size)
    from_a, from_b = Placed(zero3(size), A.R, A.half), Placed(B.p - A.p, B.R, B.half)
    if load(g.kind, b) == FIELD:
        walk_field(g, t, a, b, from_a, from_b, box, limit, size)
        if no_touches(t):
            touch_under(g, t, a, b, from_a, from_b, box.middle, limit, size)
    else:
        walk_mesh(g, t, a, b, from_a, from_b, box, limit, size)
    put_list(t, A.p, limit, size)


@kernel
def touch_under(g, t, a, b, A, B, centre, limit, size):
    """Contact point of a shape deep inside a field, when none of its lowest points is under the triangle it belongs to.

    The normal is that of the triangle above its centre, a point in the field's frame.
    """
    half = load(g.size, b)
    if fabs(centre.x) > half.x or fabs(centre.y) > half.y:
        return
    rows, columns = load(g.grid, 2 * b) - 1, load(g.grid, 2 * b + 1) - 1
    j, i = cell_of(centre.y, half.y, rows), cell_of(centre.x, half.x, columns)
    for left in range(2):
        name_field_facet(g, t, b, j, i, left)
        middle, _ = place_facet(g, t, b, B)
        n, ra = load(t.points, NORMAL), core_radius(g, a, A)
        lowest = core_point(g, t, SEAT_A, a, A, -n)
        height = dot(n, lowest - middle)
        if dot(n, middle) > 0.0:
            gap = height - ra
            put(t, limit, gap, -n, lowest - n * (height - 0.5 * gap), DEEPEST)
            collect(t, Facet(middle, n, gap), size)
            return


@kernel
def touch_plane(g, t, b, A, B, limit):
    """Contact points of a plane with the vertices of a surface."""
    n, size = column2(A.R), load(g.reach, b)
    from_b = Placed(zero3(size), B.R, B.half)
    level = dot(n, A.p - B.p)
    first, last = load(g.vertex_start, b), load(g.vertex_start, b + 1)
    if load(g.kind, b) == FIELD:
        first, last = 0, load(g.grid, 2 * b) * load(g.grid, 2 * b + 1)
    for v in range(first, last):
        p = vertex_at(g, b, from_b, v)
        gap = dot(n, p) - level
        if gap <= limit:
            store(t.whole, FACE, v - first)
            for c in range(3):
                store(t.points, FACET + c, zero3(size))
            put(t, limit, gap, n, p - n * (0.5 * gap), 0)
            collect(t, Facet(p, -n, gap), size)
    put_list(t, B.p, limit, size)
