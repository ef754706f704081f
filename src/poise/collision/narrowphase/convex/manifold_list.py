"""The list of contact points of one pair."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store


@kernel
def put(t, limit, gap, normal, point, feature):
    """Add a contact point, if its gap is within a limit."""
    if gap <= limit:
        n = load(t.n, 0)
        store(t.gap, n, gap)
        store(t.normal, n, normal)
        store(t.point, n, point)
        store(t.feature, n, feature)
        store(t.n, 0, n + 1)
