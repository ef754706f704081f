"""Contact points of a cylinder, an ellipsoid or a hull with any convex shape."""

from __future__ import annotations

from poise.collision.collision_layout import Placed
from poise.collision.narrowphase.convex.clip_polygons import FIRST, side_towards
from poise.collision.narrowphase.convex.manifold import touch_near, touch_side
from poise.collision.narrowphase.convex.manifold_list import put
from poise.collision.narrowphase.convex.penetration import least_gap
from poise.collision.narrowphase.convex.support import HULL, PLANE, SEAT_A, SEAT_B, SPHERE, core_point, core_radius
from poise.collision.narrowphase.sphere_curved import touch_ball
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.vec import column2, dot, norm, zero3


@kernel
def touch_convex(g, t, a, b, A, B, limit):
    """Contact points of a cylinder, an ellipsoid or a hull with any convex shape."""
    store(t.whole, SEAT_A, 0)
    store(t.whole, SEAT_B, 0)
    if load(g.kind, a) == PLANE:
        touch_plane(g, t, b, A, B, limit)
    elif load(g.kind, a) == SPHERE and load(g.kind, b) < HULL:
        touch_ball(g, t, b, A, B, limit)
    else:
        touch_cores(g, t, a, b, A, B, limit)


@kernel
def touch_cores(g, t, a, b, A, B, limit):
    """Contact points of any two shapes with cores: their signed distance, then the contact manifold there."""
    ra, rb = core_radius(g, a, A), core_radius(g, b, B)
    from_a, from_b = Placed(zero3(ra), A.R, A.half), Placed(B.p - A.p, B.R, B.half)
    size = load(g.reach, a) + load(g.reach, b) + norm(from_b.p)
    room = limit + ra + rb
    within, near = least_gap(g, t, a, b, from_a, from_b, room, size)
    if within and near.gap <= room:
        touch_near(g, t, a, b, from_a, from_b, near, ra, rb, A.p, room, size)


@kernel
def touch_plane(g, t, b, A, B, limit):
    """Contact points with a plane: the deepest point, and the corners of the face that faces the plane."""
    normal = column2(A.R)
    lowest = core_point(g, t, SEAT_B, b, B, -normal)
    gap = dot(normal, lowest - A.p)
    if gap > limit:
        return
    # relative to B, since the origin of the plane may be far away
    from_b = Placed(zero3(gap), B.R, B.half)
    o = lowest - B.p - normal * gap
    n_corners, _ = side_towards(g, t, SEAT_B, b, from_b, -normal, FIRST)
    if n_corners > 1:
        touch_side(t, 0, n_corners, o, normal, lowest - B.p, gap, gap * 0.0, False, B.p, limit, load(g.reach, b))
    else:
        put(t, limit, gap, normal, lowest - normal * (0.5 * gap), 0)
