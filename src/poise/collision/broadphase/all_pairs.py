"""Near pairs among few shapes: every box against every other.

In one world an instruction compares a box with as many others as there are lanes; in lanes of worlds, it compares a
pair in all worlds at once. The collision filter is precomputed.
"""

from __future__ import annotations

from poise.collision.broadphase.aabb import box_high, box_low, overlap, reaches
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, View, load, store
from poise.kernel.scalars import mask_bits, trailing_zeros
from poise.kernel.vec import column2

RANKS = View(
    "Ranks",
    n_shapes=Count,
    n_planes=Count,  # their ranks come first
    lanes=Count,  # shapes per instruction
    n_blocks=Count,  # blocks of this many shapes
    shape=Index,  # of each rank
    allowed=Index,  # of each rank i and each block: bit k is set where i is less than the k-th rank and may touch it
    row_start=Index,  # of each rank, into `row`; the same pairs as a list, for lanes of worlds
    row=Index,  # ranks
)
"""Shapes sorted by kind, and the collision filter."""


@kernel
def note(near, n, a, b, lanes):
    """Write pair n, if the list has capacity for it."""
    if n < near.room:
        store(near.a, n, a)
        store(near.b, n, b)
        store(near.lanes, n, lanes)
    return n + 1


@kernel
def note_block(s, near, n, i, k, found):
    """Add the pairs of rank i and those of block k whose bits are set."""
    a = load(s.shape, i)
    while found != 0:
        n = note(near, n, a, load(s.shape, k * s.lanes + trailing_zeros(found)), 1)
        found &= found - 1
    return n


@kernel
def sift_shapes(g, x, s, b, wide, near, slack):
    """Near pairs of one world; `wide` is `b` in lanes."""
    n = 0
    for i in range(s.n_planes):
        plane = load(s.shape, i)
        p, up = load(x.position, plane), column2(load(x.rotation, plane))
        margin = load(g.margin, plane) + 0.5 * slack
        for k in range((i + 1) // s.lanes, s.n_blocks):
            found = mask_bits(reaches(up, p, margin, box_low(wide, k), box_high(wide, k)))
            n = note_block(s, near, n, i, k, found & load(s.allowed, i * s.n_blocks + k))
    for i in range(s.n_planes, s.n_shapes):
        low, high = box_low(b, i), box_high(b, i)
        for k in range((i + 1) // s.lanes, s.n_blocks):
            found = mask_bits(overlap(low, high, box_low(wide, k), box_high(wide, k)))
            n = note_block(s, near, n, i, k, found & load(s.allowed, i * s.n_blocks + k))
    store(near.found, 0, n)


@kernel
def sift_worlds(g, x, s, b, near, slack):
    """Pairs that are near in any world."""
    n = 0
    for i in range(s.n_planes):
        plane = load(s.shape, i)
        p, up = load(x.position, plane), column2(load(x.rotation, plane))
        margin = load(g.margin, plane) + 0.5 * slack
        for k in range(load(s.row_start, i), load(s.row_start, i + 1)):
            j = load(s.row, k)
            found = mask_bits(reaches(up, p, margin, box_low(b, j), box_high(b, j)))
            if found != 0:
                n = note(near, n, plane, load(s.shape, j), found)
    for i in range(s.n_planes, s.n_shapes):
        low, high = box_low(b, i), box_high(b, i)
        for k in range(load(s.row_start, i), load(s.row_start, i + 1)):
            j = load(s.row, k)
            found = mask_bits(overlap(low, high, box_low(b, j), box_high(b, j)))
            if found != 0:
                n = note(near, n, load(s.shape, i), load(s.shape, j), found)
    store(near.found, 0, n)
