"""Touches of a height field or a triangle mesh with any convex shape."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import store


@kernel
def touch_surface(g, t, a, b, A, B, limit):
    """Touches of a height field or a triangle mesh with any convex shape."""
    store(t.n, 0, 0)
