"""Constraint islands: trees that rows connect. Rows affect no tree outside their island, so each island is a separate
problem.

Trees are joined by union-find, in the order of the rows. A tree whose motion is fully prescribed joins nothing, as the
world does not: boxes on a lift are as many islands as there are boxes.

In lanes of worlds there is one island, of all trees and rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.constraints.emit_rows import busiest, stride_of
from poise.constraints.row_store import CONTACT, KINDS
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, Shared, View, Width, load, store
from poise.kernel.scalars import get_lane, maximum, minimum
from poise.model.model import Model

N_KINDS = len(KINDS)

ISLANDS = View(
    "Islands",
    room=Count,  # rows of an island for which there is memory
    count=Index,  # (1)
    largest=Index,  # (1) rows of the largest island
    laid=Index,  # (1) the island whose problem is assembled
    moves=Index,  # (n_links) of the first link of a tree: 1 if any link of it can move
    asleep=Index,  # (n_links + 1) of the first link of a tree: not 0 if the tree sleeps
    up=Index,  # (n_links + 1) parent in union-find: first link of another tree of the same island; last for no tree
    number=Index,  # (n_links + 1) of the island that a first link represents; −1 if it has no row
    size=Index,  # (n_links + 2) counts of the items to sort, then the next free place of each island
    n_blocks=Index,  # (1)
    first=Index,  # (n_blocks) a tree of each block, in the order of the store
    block_start=Index,  # (count + 1)
    block_kind=Index,  # (n_blocks) island by island
    block_slot=Index,
    link_start=Index,  # (count + 1)
    link=Index,  # (n_links) island by island, children before parents
    shifted=Index,  # (n_blocks) rows of an island that post-stabilization may use
    residual=Real,  # (count) natural residual of an island's impulses, over its tolerance
    # impacts within a step, by row of an island: see `formulations.stages.restitution`
    lively=Index,  # (1) 1 if the assembled island has any
    lag=Real,  # time by which the velocity is behind in free flight; s
    before=Real,  # velocity at the beginning of the step
    jump=Real,  # velocity change by the last impact, and by all
    jumped=Real,
    moved=Real,  # Σ τ A Λ: displacement that jumps at τ do not cause; m
    struck=Real,  # Λ of all impacts, and Σ τ Λ
    late=Real,
    wanted=Real,  # target velocity after the last impact, for rows that push
    touches=Real,  # 1 if a contact takes part in it; and if it took part in any
    hit=Real,
    first_lam=Real,  # impulses with the full restitution, and their velocity change
    first_jump=Real,
    kept_b=Real,  # the problem of the step
    kept_lo=Real,
    kept_hi=Real,
    kept_bound=Real,  # by block
    kept_kind=Index,
)
_IMPACT = (
    "lag",
    "before",
    "jump",
    "jumped",
    "moved",
    "struck",
    "late",
    "wanted",
    "touches",
    "hit",
    "first_lam",
    "first_jump",
)
_IMPACT += ("kept_b", "kept_lo", "kept_hi", "kept_bound", "kept_kind")


def islands_block(model: Model, width: Width, blocks: int, room: int, asleep: np.ndarray) -> Block:
    """Memory for the islands of `blocks` blocks of rows, with `room` rows in an island. `asleep` is shared: other code
    writes it.
    """
    n = model.n_links
    moves = np.zeros(n, np.int32)
    np.maximum.at(moves, model.link_root[model.dof_link], 1 - np.asarray(model.dof_prescribed, np.int32))
    sizes: dict[str, Any] = dict.fromkeys(("count", "largest", "laid", "n_blocks", "lively"), 1)
    sizes |= dict.fromkeys(("up", "number"), n + 1) | dict.fromkeys(("size", "block_start", "link_start"), n + 3)
    sizes |= dict.fromkeys(("first", "block_kind", "block_slot", "shifted"), blocks) | {"link": n, "residual": n + 2}
    sizes |= dict.fromkeys(_IMPACT, room)
    return ISLANDS.block(width, **sizes, room=room, moves=Shared(moves), asleep=Shared(asleep))


# ---- union and find --------------------------------------------------------------------------------------------------


@kernel
def first_of(i, tree):
    """The link that represents a tree's island; compresses the path to it."""
    while load(i.up, tree) != tree:
        above = load(i.up, load(i.up, tree))
        store(i.up, tree, above)
        tree = above
    return tree


@kernel
def join(m, i, link, tree):
    """Join the tree of a link and a tree; returns one of them. `m.n_links` stands for no tree."""
    if link < 0:
        return tree
    other = load(m.link_root, link)
    if load(i.moves, other) == 0:
        return tree
    if tree == m.n_links:
        return other
    a, b = first_of(i, tree), first_of(i, other)
    if a < b:
        store(i.up, b, a)
    elif b < a:
        store(i.up, a, b)
    return tree


@kernel
def join_body(m, i, body, tree):
    """The same for a body."""
    if body < 0:
        return tree
    return join(m, i, load(m.body_link, body), tree)


@kernel
def join_dof(m, i, dof, tree):
    """The same for a coordinate."""
    if dof < 0:
        return tree
    return join(m, i, load(m.dof_link, dof), tree)


@kernel
def join_row(m, i, r, slot, tree):
    """Join the trees of all bodies and coordinates of a row."""
    tree = join_body(m, i, get_lane(load(r.a, slot), 0), tree)
    tree = join_body(m, i, get_lane(load(r.b, slot), 0), tree)
    tree = join_dof(m, i, get_lane(load(r.dof, slot), 0), tree)
    term = get_lane(load(r.term, slot), 0)
    while term >= 0:
        tree = join_body(m, i, get_lane(load(r.term_body, term), 0), tree)
        tree = join_dof(m, i, get_lane(load(r.term_dof, term), 0), tree)
        term = get_lane(load(r.term_next, term), 0)
    return tree


@kernel
def join_blocks(m, i, r):
    """Join the trees of every block, and store for each block a tree of its island."""
    for link in range(m.n_links + 1):
        store(i.up, link, link)
        store(i.number, link, -1)
    n = 0
    for kind in range(N_KINDS):
        size = stride_of(kind)
        rows = 1 if kind == CONTACT else size  # the rows of a contact are on the same bodies
        for k in range(get_lane(load(r.count, kind), 0)):
            tree = m.n_links + 0
            for slot in range(load(r.first, kind) + k * size, load(r.first, kind) + k * size + rows):
                tree = join_row(m, i, r, slot, tree)
            store(i.first, n, tree)
            n += 1
    store(i.n_blocks, 0, n)


# ---- in order --------------------------------------------------------------------------------------------------------


@kernel
def number_islands(i):
    """Number the islands that are awake, in the order of the blocks, and count their blocks."""
    count = 0
    for n in range(load(i.n_blocks, 0)):
        first = first_of(i, load(i.first, n))
        if load(i.asleep, first) != 0:
            store(i.first, n, -1)
        else:
            if load(i.number, first) < 0:
                store(i.number, first, count)
                store(i.size, count, 0)
                count += 1
            number = load(i.number, first)
            store(i.first, n, number)
            store(i.size, number, load(i.size, number) + 1)
    store(i.count, 0, count)


@kernel
def make_starts(i, start):
    """Starts of the islands, from their sizes."""
    at = 0
    for k in range(load(i.count, 0)):
        size = load(i.size, k)
        store(start, k, at)
        store(i.size, k, at)
        at += size
    store(start, load(i.count, 0), at)


@kernel
def take_place(i, number):
    """The next place in an island."""
    at = load(i.size, number)
    store(i.size, number, at + 1)
    return at


@kernel
def sort_blocks(i, r):
    """Sort blocks by island; within an island they keep the order of the store."""
    make_starts(i, i.block_start)
    n = 0
    for kind in range(N_KINDS):
        for k in range(get_lane(load(r.count, kind), 0)):
            if load(i.first, n) >= 0:
                at = take_place(i, load(i.first, n))
                store(i.block_kind, at, kind)
                store(i.block_slot, at, load(r.first, kind) + k * stride_of(kind))
            n += 1


@kernel
def number_of(m, i, link):
    """Number of the island of a link; −1 if it has no rows."""
    return load(i.number, first_of(i, load(m.link_root, link)))


@kernel
def sort_links(m, i):
    """Sort links by island, the last ones first."""
    for k in range(load(i.count, 0)):
        store(i.size, k, 0)
    for link in range(m.n_links):
        number = number_of(m, i, link)
        if number >= 0:
            store(i.size, number, load(i.size, number) + 1)
    make_starts(i, i.link_start)
    for n in range(m.n_links):
        link = m.n_links - 1 - n
        number = number_of(m, i, link)
        if number >= 0:
            store(i.link, take_place(i, number), link)


@kernel
def one_island(m, i, r, lanes):
    """One island of all rows up to the largest count of any world, and of all links."""
    n = 0
    for kind in range(N_KINDS):
        size = stride_of(kind)
        for k in range(minimum(busiest(r, kind, lanes), load(r.room, kind))):
            store(i.block_kind, n, kind)
            store(i.block_slot, n, load(r.first, kind) + k * size)
            n += 1
    for link in range(m.n_links):
        store(i.link, link, m.n_links - 1 - link)
    store(i.count, 0, minimum(n, 1))
    store(i.block_start, 0, 0)
    store(i.block_start, 1, n)
    store(i.link_start, 0, 0)
    store(i.link_start, 1, m.n_links)


@kernel
def find_largest(i):
    """Number of rows of the largest island."""
    largest = 0
    for k in range(load(i.count, 0)):
        rows = 0
        for n in range(load(i.block_start, k), load(i.block_start, k + 1)):
            rows += stride_of(load(i.block_kind, n))
        largest = maximum(largest, rows)
    store(i.largest, 0, largest)


@kernel
def find_islands(m, i, r, lanes):
    """Find the islands of the rows in a store; for one world, `join_blocks` must have joined the trees. Returns whether
    there is room for all rows of each.
    """
    store(i.laid, 0, -1)
    if lanes > 1:
        one_island(m, i, r, lanes)
    else:
        number_islands(i)
        sort_blocks(i, r)
        sort_links(m, i)
    find_largest(i)
    return load(i.largest, 0) <= i.room
