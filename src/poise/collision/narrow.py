"""From pairs of shapes to contacts: the table of pair functions, for one world and for lanes of worlds."""

from __future__ import annotations

from poise.collision.boxes import touch_box
from poise.collision.contacts import emit, emit_manifold
from poise.collision.convex import touch_convex
from poise.collision.layout import Placed
from poise.collision.round_pairs import capsule_capsule, plane_capsule, plane_sphere, sphere_capsule, sphere_sphere
from poise.collision.surfaces import touch_surface
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, get_lane, zero
from poise.kernel.vec import column2, dot
from poise.model.solids import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)
BOX, HULL = int(Solid.BOX), int(Solid.HULL)


@kernel
def place_shapes(m, w, g, x):
    """Every shape that moves to where its link is."""
    for i in range(g.n_shapes):
        link = load(g.link, i)
        if link >= 0:
            R = load(w.R, link)
            origin = load(w.origin, load(g.root, i))
            store(x.position, i, origin + load(w.r, link) + R @ load(g.position, i))
            store(x.rotation, i, R @ load(g.rotation, i))


@kernel
def meet(g, x, a, b, slack):
    """Whether the surroundings of two shapes meet, and within which gap touches count."""
    limit = load(g.margin, a) + load(g.margin, b) + slack
    d = load(x.position, b) - load(x.position, a)
    if load(g.kind, a) == PLANE:
        near = dot(column2(load(x.rotation, a)), d) <= load(g.reach, b) + limit
    else:
        reach = load(g.reach, a) + load(g.reach, b) + limit
        near = dot(d, d) <= reach * reach
    return near, limit


@kernel
def placed(g, x, i):
    """A shape in the world."""
    return Placed(load(x.position, i), load(x.rotation, i), load(g.size, i))


@kernel
def look_closely(g, x, c, t, k, a, b, near, limit):
    """Touches of a pair whose surroundings meet in the lanes of a mask."""
    A, B = placed(g, x, a), placed(g, x, b)
    kind_a, kind_b = load(g.kind, a), load(g.kind, b)
    if kind_b == SPHERE:
        one = plane_sphere(A, B) if kind_a == PLANE else sphere_sphere(A, B)
        emit(c, k, a, b, 0, one, near & (one.gap <= limit))
    elif kind_b == CAPSULE:
        if kind_a == SPHERE:
            one = sphere_capsule(A, B)
            emit(c, k, a, b, 0, one, near & (one.gap <= limit))
        elif kind_a == PLANE:
            one, two = plane_capsule(A, B)
            emit(c, k, a, b, 0, one, near & (one.gap <= limit))
            emit(c, k, a, b, 1, two, near & (two.gap <= limit))
        else:
            one, two, beside = capsule_capsule(A, B)
            emit(c, k, a, b, 0, one, near & (one.gap <= limit))
            emit(c, k, a, b, 1, two, near & beside & (two.gap <= limit))
    else:
        for lane in range(c.lanes):
            if get_lane(near, lane):
                heavy_touch(g, t, a, b, get_lane(A, lane), get_lane(B, lane), limit)
                emit_manifold(c, k, a, b, t, lane, limit)


@kernel
def heavy_touch(g, t, a, b, A, B, limit):
    """Touches of a pair of shapes of which B is more than round, in plain numbers, to the manifold."""
    store(t.n, 0, 0)
    kind_a, kind_b = load(g.kind, a), load(g.kind, b)
    if kind_b == BOX:
        touch_box(t, kind_a, A, B, limit)
    elif kind_b <= HULL:
        touch_convex(g, t, a, b, A, B, limit)
    else:
        touch_surface(g, t, a, b, A, B, limit)


@kernel
def collide(g, x, p, c, t, slack):
    """Contacts of all pairs; touches within a distance `slack` and the margins of their shapes count."""
    store(c.count, 0, zero(load(c.count, 0)))
    for k in range(p.n_pairs):
        a, b = load(p.a, k), load(p.b, k)
        near, limit = meet(g, x, a, b, slack)
        if any_lane(near):
            look_closely(g, x, c, t, k, a, b, near, limit)
