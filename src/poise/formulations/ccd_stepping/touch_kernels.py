"""Gaps of pairs of shapes now, and the times at which touching shapes penetrate further."""

from __future__ import annotations

from poise.collision.ccd.conservative_advancement import fly, note_touch
from poise.collision.narrowphase.convex.signed_distance import nearest
from poise.collision.narrowphase.dispatch import placed
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store


@kernel
def look_now(g, x, f, t):
    """Current gaps, normals and points of all pairs."""
    for k in range(f.n_pairs):
        a, b = load(f.a, k), load(f.b, k)
        touch, found = nearest(g, t, a, b, placed(g, x, a), placed(g, x, b), load(f.gap, k) * 0.0 + 1e30)
        note_touch(f, k, touch)
        if not found:
            store(f.gap, k, load(f.gap, k) * 0.0 + 1e30)


@kernel
def next_touches(g, x, f, t, dt, near, part):
    """Times of all pairs; each may penetrate by a share `part` of the least extent that `f.time` holds."""
    for k in range(f.n_pairs):
        time, _ = fly(g, x, f, t, k, dt, near, load(f.time, k) * part)
        store(f.time, k, time)
