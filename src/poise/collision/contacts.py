"""The list of contacts: each world has its own, compact."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, scatter_where, store, store_where
from poise.kernel.scalars import get_lane, set_lane, zero


@kernel
def emit(c, k, a, b, feature, touch, mask):
    """Add a touch of pair k to the lists of the lanes of a mask; those that are full only count it."""
    n = load(c.count, 0)
    store_where(c.count, 0, n + 1, mask)
    there = mask & (n < c.room)
    whole = zero(n)
    scatter_where(c.pair, n, whole + k, there)
    scatter_where(c.feature, n, whole + feature, there)
    scatter_where(c.a, n, whole + a, there)
    scatter_where(c.b, n, whole + b, there)
    scatter_where(c.gap, n, touch.gap, there)
    scatter_where(c.normal, n, touch.normal, there)
    scatter_where(c.point, n, touch.point, there)


@kernel
def put_lane(buffer, slot, lane, value):
    """Write a plain number to one lane."""
    store(buffer, slot, set_lane(load(buffer, slot), lane, value))


@kernel
def emit_manifold(c, k, a, b, t, lane, limit):
    """Add the touches of a manifold whose gap is within a limit to the list of one lane."""
    for i in range(load(t.n, 0)):
        if load(t.gap, i) <= limit:
            n = get_lane(load(c.count, 0), lane)
            put_lane(c.count, 0, lane, n + 1)
            if n < c.room:
                put_lane(c.pair, n, lane, k)
                put_lane(c.feature, n, lane, load(t.feature, i))
                put_lane(c.a, n, lane, a)
                put_lane(c.b, n, lane, b)
                put_lane(c.gap, n, lane, load(t.gap, i))
                put_lane(c.normal, n, lane, load(t.normal, i))
                put_lane(c.point, n, lane, load(t.point, i))
