"""Near pairs among many shapes: an AABB tree with as many branches as there are lanes.

Shapes are in slots, with neighbours in space in adjacent slots. A leaf has as many slots as there are lanes, a node as
many leaves, and so on up to a single block of nodes. One instruction compares a box with all children of a node. The
order of the slots is reused from frame to frame and sorted again when it has degraded; results do not depend on it.
Static shapes have their own leaves, which are not compared with each other. This is the broadphase of scenes with many
shapes; `all_pairs` is that of the others.
"""

from __future__ import annotations

from math import inf
from typing import Any

from poise.collision.broadphase.aabb import bound_shapes, box_high, box_low, overlap, place_shapes, put_box, reaches
from poise.collision.broadphase.all_pairs import note
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, View, load, load_lane, store
from poise.kernel.scalars import mask_bits, maximum, minimum, trailing_zeros
from poise.kernel.trace import formula
from poise.kernel.vec import Vec3, column2

TREE = View(
    "Tree",
    n_slots=Count,
    n_levels=Count,  # slots, leaves, …
    n_moving=Count,  # leaves of moving shapes; they come first
    lanes=Count,  # branches
    shift=Count,  # log2 of `lanes`
    worlds=Count,
    n_excluded=Count,
    n_pairs=Count,
    level_start=Index,  # into the nodes; slots are the first of them
    level_size=Index,
    order=Index,  # of each slot, for each world: its rank, −1 where it is empty
    stack=Index,  # level, block
    work=Index,  # (1) pairs of leaves that were compared
    tally=Index,  # of each rank, and one more: work space for sorting
    # of each rank: collision filter
    link=Index,
    parent=Index,  # link that carries it; −2 where there is none
    group=Index,
    mask=Index,
    body=Index,
    picky=Index,  # whether pairs with its body are excluded
    excluded=Index,  # pairs of bodies, sorted; two numbers each
    paired=Index,  # whether it is in a contact pair
    pairs=Index,  # contact pairs, sorted; two ranks each
)


@kernel
def is_listed(pairs, n, a, b):
    """Whether a sorted list of n pairs contains a pair, a ≤ b: binary search."""
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        one, other = load(pairs, 2 * middle), load(pairs, 2 * middle + 1)
        if one < a or (one == a and other < b):
            low = middle + 1
        else:
            high = middle
    return low < n and load(pairs, 2 * low) == a and load(pairs, 2 * low + 1) == b


@kernel
def allowed(r, a, b):
    """Whether two ranks may touch: the rules of `pair_filter.may_touch`."""
    link_a, link_b = load(r.link, a), load(r.link, b)
    if link_a == link_b:
        return False
    if load(r.paired, a) and load(r.paired, b) and is_listed(r.pairs, r.n_pairs, min(a, b), max(a, b)):
        return True
    if load(r.parent, a) == link_b or load(r.parent, b) == link_a:
        return False
    if (load(r.group, a) & load(r.mask, b)) | (load(r.group, b) & load(r.mask, a)) == 0:
        return False
    if load(r.picky, a) and load(r.picky, b):
        body_a, body_b = load(r.body, a), load(r.body, b)
        return not is_listed(r.excluded, r.n_excluded, min(body_a, body_b), max(body_a, body_b))
    return True


@kernel
def fill_slots(r, b, nodes, world):
    """Copy the boxes of one world's shapes to their slots."""
    for slot in range(r.n_slots):
        i = load(r.order, world * r.n_slots + slot)
        if i >= 0:
            low = Vec3(load_lane(b.low_x, i, world), load_lane(b.low_y, i, world), load_lane(b.low_z, i, world))
            high = Vec3(load_lane(b.high_x, i, world), load_lane(b.high_y, i, world), load_lane(b.high_z, i, world))
            put_box(nodes, slot, low, high)


@formula
def lower(a: Any, b: Any) -> Any:
    """Componentwise minimum; b where either is NaN."""
    return a.map(minimum, b)


@formula
def higher(a: Any, b: Any) -> Any:
    """Componentwise maximum; b where either is NaN."""
    return a.map(maximum, b)


@formula
def alike(x: Any) -> Any:
    """A vector of three equal components."""
    return Vec3(x, x, x)


@kernel
def fit_nodes(r, nodes):
    """Refit every node to its children; boxes with NaN are ignored."""
    for level in range(1, r.n_levels):
        below, here = load(r.level_start, level - 1), load(r.level_start, level)
        for k in range(load(r.level_size, level)):
            first = below + k * r.lanes
            low, high = lower(box_low(nodes, first), alike(inf)), higher(box_high(nodes, first), alike(-inf))
            for child in range(first + 1, first + r.lanes):
                low, high = lower(box_low(nodes, child), low), higher(box_high(nodes, child), high)
            put_box(nodes, here + k, low, high)


@kernel
def note_allowed(r, near, n, i, block, found, world):
    """Add the pairs of rank i and the slots of a block whose bits are set, the lesser rank first."""
    while found != 0:
        j = load(r.order, world * r.n_slots + block * r.lanes + trailing_zeros(found))
        found &= found - 1
        if j >= 0 and allowed(r, i, j):
            n = note(near, n, min(i, j), max(i, j), 1 << world)
    return n


@kernel
def meet_leaves(r, nodes, wide, near, n, one, other, world):
    """Near pairs of two leaves, or of one leaf with itself."""
    store(r.work, 0, load(r.work, 0) + 1)
    whole = load(r.level_start, 1) + other
    rows = mask_bits(overlap(box_low(nodes, whole), box_high(nodes, whole), box_low(wide, one), box_high(wide, one)))
    while rows != 0:
        row = trailing_zeros(rows)
        rows &= rows - 1
        slot = one * r.lanes + row
        low, high = box_low(nodes, slot), box_high(nodes, slot)
        found = mask_bits(overlap(low, high, box_low(wide, other), box_high(wide, other)))
        if one == other:
            found &= -2 << row
        n = note_allowed(r, near, n, load(r.order, world * r.n_slots + slot), other, found, world)
    return n


@kernel
def search_leaf(r, nodes, wide, near, n, leaf, world):
    """Near pairs of one leaf and all from it on: descends the tree where boxes overlap."""
    own = load(r.level_start, 1) + leaf
    low, high = box_low(nodes, own), box_high(nodes, own)
    store(r.stack, 0, r.n_levels - 1)
    store(r.stack, 1, 0)
    top = 1
    while top > 0:
        top -= 1
        level, block = load(r.stack, 2 * top), load(r.stack, 2 * top + 1)
        row = (load(r.level_start, level) >> r.shift) + block
        found = mask_bits(overlap(low, high, box_low(wide, row), box_high(wide, row)))
        past = (leaf >> (r.shift * (level - 1))) - block * r.lanes  # nodes with earlier leaves only
        if past > 0:
            found &= -1 << past
        while found != 0:
            child = block * r.lanes + trailing_zeros(found)
            found &= found - 1
            if level == 1:
                n = meet_leaves(r, nodes, wide, near, n, leaf, child, world)
            else:
                store(r.stack, 2 * top, level - 1)
                store(r.stack, 2 * top + 1, child)
                top += 1
    return n


@kernel
def search_planes(g, x, s, r, wide, near, n, world, slack):
    """Near pairs of planes and all other shapes."""
    for i in range(s.n_planes):
        plane = load(s.shape, i)
        p, up = load_lane(x.position, plane, world), column2(load_lane(x.rotation, plane, world))
        margin = load(g.margin, plane) + 0.5 * slack
        for block in range(r.n_slots >> r.shift):
            found = mask_bits(reaches(up, p, margin, box_low(wide, block), box_high(wide, block)))
            n = note_allowed(r, near, n, i, block, found, world)
    return n


@kernel
def prepare(w, g, x, s, b, slack, moved):
    """Boxes of all shapes, at the poses of their links if these have moved."""
    if moved:
        place_shapes(w, g, x)
    bound_shapes(g, x, s, b, slack)


@kernel
def count_up(r, n_ranks, key, n):
    """Start of the pairs of each rank in a sorted list."""
    for i in range(n_ranks + 1):
        store(r.tally, i, 0)
    for k in range(n):
        i = load(key, k) + 1
        store(r.tally, i, load(r.tally, i) + 1)
    for i in range(n_ranks):
        store(r.tally, i + 1, load(r.tally, i + 1) + load(r.tally, i))


@kernel
def next_place(r, i):
    """The next index in the list of a rank."""
    place = load(r.tally, i)
    store(r.tally, i, place + 1)
    return place


@kernel
def sort_pairs(s, r, near):
    """Sort by the ranks of A and B (first by B, then by A, each pass stable), merge worlds, and map ranks to shapes."""
    n = load(near.found, 0)
    count_up(r, s.n_shapes, near.b, n)
    for k in range(n):
        place = next_place(r, load(near.b, k))
        store(near.other_a, place, load(near.a, k))
        store(near.other_b, place, load(near.b, k))
        store(near.other_lanes, place, load(near.lanes, k))
    count_up(r, s.n_shapes, near.other_a, n)
    for k in range(n):
        place = next_place(r, load(near.other_a, k))
        store(near.a, place, load(near.other_a, k))
        store(near.b, place, load(near.other_b, k))
        store(near.lanes, place, load(near.other_lanes, k))
    store(near.found, 0, join_worlds(s, near, n))


@kernel
def join_worlds(s, near, n):
    """One entry for each pair, with the bits of all its worlds; shapes in place of ranks."""
    kept, last_a, last_b = -1, -1, -1
    for k in range(n):
        a, b = load(near.a, k), load(near.b, k)
        if a == last_a and b == last_b:
            store(near.lanes, kept, load(near.lanes, kept) | load(near.lanes, k))
        else:
            kept += 1
            last_a, last_b = a, b
            store(near.a, kept, load(s.shape, a))
            store(near.b, kept, load(s.shape, b))
            store(near.lanes, kept, load(near.lanes, k))
    return kept + 1


@kernel
def find_near(g, x, s, r, b, nodes, wide, near, slack):
    """Near pairs of all worlds, sorted; `wide` is `nodes` in lanes. Returns their number, even beyond the capacity."""
    n = 0
    store(r.work, 0, 0)
    for world in range(r.worlds):
        fill_slots(r, b, nodes, world)
        fit_nodes(r, nodes)
        n = search_planes(g, x, s, r, wide, near, n, world, slack)
        for leaf in range(r.n_moving):
            n = search_leaf(r, nodes, wide, near, n, leaf, world)
    store(near.found, 0, n)
    if n <= near.room:
        sort_pairs(s, r, near)
    return n
