"""Dispatch: from pairs of shapes to contacts, by a table of pair functions, for one world and for lanes of worlds.

This is the narrowphase: it computes the contacts of the pairs that the broadphase finds.
"""

from __future__ import annotations

from poise.collision.broadphase.aabb import bound_shapes, place_shapes
from poise.collision.broadphase.all_pairs import sift_shapes, sift_worlds
from poise.collision.broadphase.terrain_filter import keep_chosen, place_terrains
from poise.collision.collision_layout import Placed
from poise.collision.contact_ids import settle_ids
from poise.collision.contact_list import emit, emit_manifold
from poise.collision.narrowphase.pair_entries import heavy_touch
from poise.collision.narrowphase.sphere_capsule import (
    capsule_capsule,
    capsules_near,
    plane_capsule,
    plane_sphere,
    sphere_capsule,
    sphere_sphere,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, bits_mask, get_lane, zero
from poise.kernel.vec import column2, dot
from poise.model.shape_arrays import Solid

PLANE, SPHERE, CAPSULE = int(Solid.PLANE), int(Solid.SPHERE), int(Solid.CAPSULE)
PLACE, SIFT = 1, 2
"""Stages of collision detection, as bits: move shapes with their links; broadphase over all pairs."""


@kernel
def meet(g, x, a, b, limit):
    """Whether the bounding spheres of two shapes, enlarged by the limit, overlap."""
    d = load(x.position, b) - load(x.position, a)
    if load(g.kind, a) == PLANE:
        near = dot(column2(load(x.rotation, a)), d) <= load(g.reach, b) + limit
    else:
        reach = load(g.reach, a) + load(g.reach, b) + limit
        near = dot(d, d) <= reach * reach
    return near


@kernel
def placed(g, x, i):
    """A shape in the world."""
    return Placed(load(x.position, i), load(x.rotation, i), load(g.size, i))


@kernel
def look_closely(g, x, c, t, a, b, near, limit):
    """Contact points of a pair that is near in the lanes of a mask; each lane can have its own limit."""
    A, B = placed(g, x, a), placed(g, x, b)
    kind_a, kind_b = load(g.kind, a), load(g.kind, b)
    if kind_b == SPHERE:
        one = plane_sphere(A, B) if kind_a == PLANE else sphere_sphere(A, B)
        emit(c, a, b, 0, one, near & (one.gap <= limit))
    elif kind_b == CAPSULE:
        if kind_a == SPHERE:
            one = sphere_capsule(A, B)
            emit(c, a, b, 0, one, near & (one.gap <= limit))
        elif kind_a == PLANE:
            one, two = plane_capsule(A, B)
            emit(c, a, b, 0, one, near & (one.gap <= limit))
            emit(c, a, b, 1, two, near & (two.gap <= limit))
        else:
            near = near & capsules_near(A, B, limit)
            if any_lane(near):
                one, two, beside = capsule_capsule(A, B)
                emit(c, a, b, 0, one, near & (one.gap <= limit))
                emit(c, a, b, 1, two, near & beside & (two.gap <= limit))
    else:
        for lane in range(c.lanes):
            if get_lane(near, lane):
                within = get_lane(limit, lane)
                heavy_touch(g, t, a, b, get_lane(A, lane), get_lane(B, lane), within)
                emit_manifold(c, a, b, t, lane, within)


@kernel
def collide(g, x, p, c, t, slack):
    """Contacts of given pairs, up to a gap of `slack` plus the margins of both shapes."""
    store(c.count, 0, zero(load(c.count, 0)))
    for k in range(p.n_pairs):
        a, b = load(p.a, k), load(p.b, k)
        limit = load(g.margin, a) + load(g.margin, b) + slack
        near = meet(g, x, a, b, limit)
        if any_lane(near):
            look_closely(g, x, c, t, a, b, near, limit)
    return settle_ids(c)


@kernel
def touch_near(g, x, near, c, t, slack):
    """Contacts of the pairs whose boxes overlap; returns the largest number of contacts in a world."""
    store(c.count, 0, zero(load(c.count, 0)))
    for k in range(load(near.found, 0)):
        a, b = load(near.a, k), load(near.b, k)
        limit = load(g.margin, a) + load(g.margin, b) + slack
        look_closely(g, x, c, t, a, b, bits_mask(load(near.lanes, k), load(c.gap, 0)), limit)
    return settle_ids(c)


@kernel
def find_one(w, g, x, s, b, wide, near, c, t, slack, steps):
    """Contacts of one world, with the broadphase over all pairs if `steps` includes it."""
    if steps & PLACE:
        place_shapes(w, g, x)
    if steps & SIFT:
        bound_shapes(g, x, s, b, slack)
        sift_shapes(g, x, s, b, wide, near, slack)
    return touch_near(g, x, near, c, t, slack)


@kernel
def find_worlds(w, g, x, s, b, near, c, t, slack, steps):
    """Contacts of lanes of worlds."""
    if steps & PLACE:
        place_shapes(w, g, x)
    if steps & SIFT:
        bound_shapes(g, x, s, b, slack)
        sift_worlds(g, x, s, b, near, slack)
    return touch_near(g, x, near, c, t, slack)


@kernel
def find_each(w, g, x, s, b, near, c, t, y, slack, steps):
    """Contacts of lanes of worlds, each with its own prediction distance plus a common slack: the contacts of a world
    do not depend on the speeds of others.
    """
    return 0 + find_worlds(w, g, x, s, b, near, c, t, load(y.ahead, 0) + slack, steps)


@kernel
def find_chosen(w, g, x, s, b, near, c, t, y, z, slack, steps):
    """The same, for worlds that each have only the shapes of their own terrain."""
    slack = load(y.ahead, 0) + slack
    if steps & PLACE:
        place_shapes(w, g, x)
    if steps & SIFT:
        bound_shapes(g, x, s, b, slack)
        sift_worlds(g, x, s, b, near, slack)
        place_terrains(z)
        keep_chosen(near, z)
    return 0 + touch_near(g, x, near, c, t, slack)
