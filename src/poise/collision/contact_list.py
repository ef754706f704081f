"""Contact lists: each world has its own compact one."""

from __future__ import annotations

from poise.collision.collision_layout import Touch
from poise.collision.contact_ids import contact_id
from poise.kernel.jit import kernel
from poise.kernel.memory import load, load_lane, store, store_lane
from poise.kernel.scalars import mask_bits, trailing_zeros


@kernel
def add(c, a, b, feature, touch, lane):
    """Add a contact point, in plain numbers, to the list of one lane; a full list only counts it."""
    n = load_lane(c.count, 0, lane)
    store_lane(c.count, 0, lane, n + 1)
    if n < c.room:
        store_lane(c.id, n, lane, contact_id(a, b, feature))
        store_lane(c.feature, n, lane, feature)
        store_lane(c.a, n, lane, a)
        store_lane(c.b, n, lane, b)
        store_lane(c.gap, n, lane, touch.gap)
        store_lane(c.normal, n, lane, touch.normal)
        store_lane(c.point, n, lane, touch.point)


@kernel
def emit(c, a, b, feature, touch, mask):
    """Add a contact point to the lists of the lanes of a mask: one by one, since few lanes have contact at once."""
    lanes = mask_bits(mask)
    if lanes != 0:
        store(c.spare, 0, touch)
        while lanes != 0:
            lane = trailing_zeros(lanes)
            lanes &= lanes - 1
            add(c, a, b, feature, load_lane(c.spare, 0, lane), lane)


@kernel
def emit_manifold(c, a, b, t, lane, limit):
    """Add the contact points of a manifold whose gap is within a limit to the list of one lane."""
    for i in range(load(t.n, 0)):
        if load(t.gap, i) <= limit:
            add(c, a, b, load(t.feature, i), Touch(load(t.gap, i), load(t.normal, i), load(t.point, i)), lane)
