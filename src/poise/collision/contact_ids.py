"""Contact point ids that are constant from frame to frame: 31-bit hashes of both shapes and the feature.

Some two of n contacts of a world have the same hash with a probability of about n²/2³²: 4e-8 for a dozen, 0.02 for ten
thousand. Ids are still unique: of two that collide the later one in the list takes the next free number. The order of
contacts is the same in every frame, so that only a contact that appears or disappears in such a collision can change
the id of another one.
"""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, load_lane, store, store_lane
from poise.kernel.scalars import any_lane

BITS = 0x7FFFFFFF
FEW = 48
"""Number of contacts up to which all pairs are compared; more go into a hash table."""


@kernel
def contact_id(a, b, feature):
    """The hash of a contact: multiply, fold, multiply (after D. Knuth, TAOCP 3, §6.4), modulo 2⁶⁴, then 31 bits."""
    h = a * 0x1E3779B97F4A7C15 + b * 0x3F51AFD7ED558CCD + feature * 0x44CEB9FE1A85EC53
    h = (h ^ (h >> 32)) * 0x2545F4914F6CDD1D
    return (h ^ (h >> 29)) & BITS


@kernel
def most_contacts(c):
    """Largest number of contacts in a world."""
    most = load_lane(c.count, 0, 0)
    for lane in range(1, c.lanes):
        most = max(most, load_lane(c.count, 0, lane))
    return most


@kernel
def any_clash(c, most):
    """Whether two contacts of a world have the same id."""
    count, some = load(c.count, 0), load(c.count, 0) < 0
    for j in range(1, most):
        one, there = load(c.id, j), count > j
        same = count < 0
        for i in range(j):
            same = same | (load(c.id, i) == one)
        some = some | (same & there)
    return any_lane(some)


@kernel
def part(c, lane):
    """Make the ids of one world unique, through a hash table with open addressing."""
    last = c.table_size - 1
    for slot in range(c.table_size):
        store(c.table, slot, -1)
    for k in range(load_lane(c.count, 0, lane)):
        own = load_lane(c.id, k, lane)
        slot = own & last
        while load(c.table, slot) >= 0:
            if load(c.table, slot) == own:
                own = (own + 1) & BITS
                slot = own & last
            else:
                slot = (slot + 1) & last
        store(c.table, slot, own)
        store_lane(c.id, k, lane, own)


@kernel
def settle_ids(c):
    """Make the ids of every world unique; returns the largest number of contacts, possibly above the capacity."""
    most = most_contacts(c)
    if most <= c.room and (most > FEW or any_clash(c, most)):
        for lane in range(c.lanes):
            part(c, lane)
    return most
