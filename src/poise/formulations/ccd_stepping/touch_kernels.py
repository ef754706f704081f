"""When two shapes that touch next come to touch again; and where pairs of shapes are now."""

from __future__ import annotations

from poise.collision.ccd.conservative_advancement import fly, note_touch
from poise.collision.narrowphase.convex.signed_distance import nearest
from poise.collision.narrowphase.dispatch import placed
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store


@kernel
def look_now(g, x, f, t):
    """Gaps, normals and points of all pairs as they are."""
    for k in range(f.n_pairs):
        a, b = load(f.a, k), load(f.b, k)
        touch, found = nearest(g, t, a, b, placed(g, x, a), placed(g, x, b), load(f.gap, k) * 0.0 + 1e30)
        note_touch(f, k, touch)
        if not found:
            store(f.gap, k, load(f.gap, k) * 0.0 + 1e30)


@kernel
def next_touches(g, x, f, t, dt, near, part):
    """Of all pairs; how far each may go into itself is a part of what `f.time` tells, its least extent."""
    for k in range(f.n_pairs):
        time, _ = fly(g, x, f, t, k, dt, near, load(f.time, k) * part)
        store(f.time, k, time)
