"""The signed distance of a pair of shapes, in plain numbers."""

from __future__ import annotations

from poise.collision.collision_layout import Touch
from poise.collision.narrowphase.dispatch import CAPSULE, PLANE, SPHERE
from poise.collision.narrowphase.pair_entries import heavy_touch
from poise.collision.narrowphase.sphere_capsule import (
    capsule_capsule,
    plane_capsule,
    plane_sphere,
    sphere_capsule,
    sphere_sphere,
)
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store


@kernel
def put_touch(t, n, touch):
    """Write a contact point as number n of the manifold."""
    store(t.gap, n, touch.gap)
    store(t.normal, n, touch.normal)
    store(t.point, n, touch.point)
    store(t.feature, n, n)
    store(t.n, 0, n + 1)


@kernel
def touches(g, t, a, b, A, B, limit):
    """Write all contact points of a pair to the manifold."""
    kind_a, kind_b = load(g.kind, a), load(g.kind, b)
    if kind_b == SPHERE:
        put_touch(t, 0, plane_sphere(A, B) if kind_a == PLANE else sphere_sphere(A, B))
    elif kind_b == CAPSULE:
        if kind_a == SPHERE:
            put_touch(t, 0, sphere_capsule(A, B))
        elif kind_a == PLANE:
            one, two = plane_capsule(A, B)
            put_touch(t, 0, one)
            put_touch(t, 1, two)
        else:
            one, two, beside = capsule_capsule(A, B)
            put_touch(t, 0, one)
            if beside:
                put_touch(t, 1, two)
    else:
        heavy_touch(g, t, a, b, A, B, limit)


@kernel
def nearest(g, t, a, b, A, B, limit):
    """The contact point of least gap, and whether there is one within a limit."""
    touches(g, t, a, b, A, B, limit)
    best = 0
    for k in range(1, load(t.n, 0)):
        if load(t.gap, k) < load(t.gap, best):
            best = k
    found = load(t.n, 0) > 0 and load(t.gap, best) <= limit
    return Touch(load(t.gap, best), load(t.normal, best), load(t.point, best)), found
