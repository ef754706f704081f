"""The signed distance of each of a list of pairs."""

from __future__ import annotations

from poise.collision.narrowphase.convex.signed_distance import nearest
from poise.collision.narrowphase.dispatch import placed
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Real, View, load, store
from poise.kernel.vec import Vec3

MEASURES = View(
    "Measures",
    n_pairs=Count,
    a=Index,
    b=Index,
    found=Index,  # 1 if the distance is within the limit
    gap=Real,
    normal=Vec3,  # from A to B
    point=Vec3,  # half way between the surfaces
)


@kernel
def measure(g, x, p, t, limit):
    """The signed distance of every pair, where it is within a limit."""
    for k in range(p.n_pairs):
        a, b = load(p.a, k), load(p.b, k)
        touch, found = nearest(g, t, a, b, placed(g, x, a), placed(g, x, b), limit)
        store(p.found, k, 1 if found else 0)
        store(p.gap, k, touch.gap)
        store(p.normal, k, touch.normal)
        store(p.point, k, touch.point)
