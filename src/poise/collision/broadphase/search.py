"""Broadphase search: memory and entries for few shapes (all pairs) and for many (a tree)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from poise.collision.broadphase.aabb_tree import TREE, find_near, prepare
from poise.collision.broadphase.all_pairs import RANKS
from poise.collision.broadphase.morton_order import sorted_slots
from poise.collision.broadphase.pair_filter import Indices, excluded_pairs, may_touch, ranked_contact_pairs, ranks
from poise.collision.broadphase.terrain_filter import TERRAINS
from poise.collision.collision_layout import (
    AHEAD,
    BOXES,
    CONTACTS,
    MANIFOLD,
    NEAR,
    PLACES,
    SHAPES,
    boxes_block,
    near_block,
)
from poise.collision.narrowphase.dispatch import PLACE, SIFT, find_chosen, find_each, find_one, find_worlds
from poise.dynamics.dynamics_layout import WORK
from poise.kernel.bound import Bound
from poise.kernel.jit import Entry, entry
from poise.kernel.memory import At, Block, Shared, Width, single
from poise.model.model import Model
from poise.model.shape_arrays import Solid

Handle = NDArray[np.int64]
FEW = 256
"""Number of shapes up to which all pairs of boxes are compared; the tree is faster for more."""
MOST_PAIRS = 1 << 24
"""Limit of near pairs; more are an error of the scene."""
SORT = 2
"""Cost of sorting the slots, relative to a search of a freshly sorted tree."""


def shape_lanes(width: Width) -> Width:
    """Lanes of shapes of one world."""
    return Width(width.elem, 8 if width.elem == "f64" else 16)


_VIEWS = (WORK, SHAPES, PLACES, RANKS, BOXES)
_FOUND = (NEAR, CONTACTS, MANIFOLD)
_FOUND_IN_LANES = (NEAR, CONTACTS, At(MANIFOLD, single))
_NUMBERS = ("float64", "int64")
_SHAPE_BOXES = At(BOXES, shape_lanes)
_find_one = entry(find_one, *_VIEWS, _SHAPE_BOXES, *_FOUND, extra=_NUMBERS, lanes=False)
_find_worlds = entry(find_worlds, *_VIEWS, *_FOUND_IN_LANES, extra=_NUMBERS)
_find_each = entry(find_each, *_VIEWS, *_FOUND_IN_LANES, AHEAD, extra=_NUMBERS)
_find_chosen = entry(find_chosen, *_VIEWS, *_FOUND_IN_LANES, AHEAD, TERRAINS, extra=_NUMBERS)
_prepare = entry(prepare, *_VIEWS, extra=_NUMBERS)
_find_near = entry(
    find_near, SHAPES, PLACES, RANKS, TREE, BOXES, At(BOXES, single), _SHAPE_BOXES, NEAR, extra=("float64",)
)


class Search(Protocol):
    """Finds the contacts of shapes; returns the largest number of contacts in a world."""

    def run(self, w: Handle, c: Handle, t: Handle, slack: float, moved: bool) -> int:
        """Update the poses of moved shapes from their links; write contacts up to the capacity."""


def in_lanes(boxes: Block, width: Width) -> Block:
    """A view in lanes of the boxes of one world."""
    return BOXES.block(width, **{k: Shared(a.reshape(-1, width.lanes)) for k, a in boxes.arrays.items()})


def _padded(n: int, lanes: int) -> int:
    return -(-n // lanes) * lanes


def _ranks_block(model: Model, width: Width, order: Indices, **rules: Any) -> Block:
    empty = np.zeros(0, np.int32)
    rules = {"lanes": 1, "n_blocks": 0, "allowed": empty, "row_start": empty, "row": empty} | rules
    planes = int(np.count_nonzero(model.solids.kind == Solid.PLANE))
    return RANKS.block(width, n_shapes=len(order), n_planes=planes, shape=order, **rules)


def _finder(width: Width) -> Entry:
    return _find_one if width.lanes == 1 else _find_worlds


class Few:
    """Broadphase over all pairs of boxes."""

    def __init__(self, model: Model, width: Width, g: Block, x: Block) -> None:
        order = ranks(model)
        n, wide = len(order), shape_lanes(width)
        allowed = may_touch(model, order[:, None], order[None, :]) & np.triu(np.ones((n, n), np.bool_), 1)
        near = near_block(width, int(np.count_nonzero(allowed)), sorts=False)
        if width.lanes == 1:
            s = _ranks_block(model, width, order, **_bits(allowed, wide.lanes))
            b = boxes_block(width, _padded(n, wide.lanes))
            blocks: tuple[Block, ...] = (g, x, s, b, in_lanes(b, wide), near)
        else:
            s = _ranks_block(model, width, order, **_lists(allowed))
            blocks = (g, x, s, boxes_block(width, n), near)
        self._width, self._handles = width, tuple(block.handle for block in blocks)
        self._given: tuple[Handle, ...] = ()

    def run(self, w: Handle, c: Handle, t: Handle, slack: float, moved: bool) -> int:
        """See `Search`."""
        return self.bound(w, c, t)(slack, PLACE | SIFT if moved else SIFT)

    def bound(self, w: Handle, c: Handle, t: Handle) -> Bound:
        """The bound entry that `run` calls, with the slack and the stages."""
        given = self._given
        if not given or w is not given[0] or c is not given[1] or t is not given[2]:
            self._call = Bound(_finder(self._width), self._width, w, *self._handles, c, t)
            self._given = (w, c, t)  # last: after an interrupt in between, the next call binds again
        return self._call

    def bound_each(self, w: Handle, c: Handle, t: Handle, ahead: Handle, terrains: Handle | None = None) -> Bound:
        """The same in lanes of worlds, each with its own slack (`AHEAD`) and optionally its own terrain (`TERRAINS`):
        the entry takes an additional slack, and the stages.
        """
        if terrains is None:
            return Bound(_find_each, self._width, w, *self._handles, c, t, ahead)
        return Bound(_find_chosen, self._width, w, *self._handles, c, t, ahead, terrains)


def _bits(allowed: NDArray[np.bool_], lanes: int) -> dict[str, Any]:
    """The collision filter as bits of blocks of ranks."""
    n = len(allowed)
    blocks = -(-n // lanes)
    padded = np.zeros((n, blocks * lanes), np.int32)
    padded[:, :n] = allowed
    bits = (padded.reshape(n, blocks, lanes) << np.arange(lanes, dtype=np.int32)).sum(axis=2, dtype=np.int32)
    return {"lanes": lanes, "n_blocks": blocks, "allowed": bits.reshape(-1)}


def _lists(allowed: NDArray[np.bool_]) -> dict[str, Any]:
    """The collision filter as lists."""
    first, second = np.nonzero(allowed)
    starts = np.searchsorted(first, np.arange(len(allowed) + 1))
    return {"row_start": starts.astype(np.int32), "row": second.astype(np.int32)}


class Many:
    """Broadphase with an AABB tree."""

    def __init__(self, model: Model, width: Width, g: Block, x: Block) -> None:
        self.width, self._wide = width, shape_lanes(width)
        self._order = ranks(model)
        n = len(self._order)
        self._g, self._x = g, x
        self._s = _ranks_block(model, width, self._order)
        self._b = boxes_block(width, n)
        self._r = _tree_block(model, width, self._order)
        planes = self._s.counts()["n_planes"]
        moving = model.solids.link[self._order[planes:]] >= 0
        self._moving, self._still = planes + np.flatnonzero(moving), planes + np.flatnonzero(~moving)
        total = int(self._r.level_start[-1] + _padded(int(self._r.level_size[-1]), self._wide.lanes))
        self._nodes = boxes_block(Width(width.elem), total)
        for name, array in self._nodes.arrays.items():
            array[...] = np.inf if name.startswith("low") else -np.inf
        self._near = near_block(width, 4 * n, sorts=True)
        self._stale, self._least_work, self._wasted = True, 0, 0
        self._prepare, self._find_near, self._call = _prepare[width], _find_near[width], _finder(width)[width]
        self._bind()

    def _bind(self) -> None:
        wide = in_lanes(self._nodes, self._wide)
        shapes = (self._g, self._x, self._s)
        last = (self._b, wide, self._near) if self.width.lanes == 1 else (self._b, self._near)
        tree = (*shapes, self._r, self._b, self._nodes, wide, self._near)
        ways = ((*shapes, self._b), tree, (*shapes, *last))
        self._before, self._tree, self._after = (tuple(block.handle for block in way) for way in ways)

    def run(self, w: Handle, c: Handle, t: Handle, slack: float, moved: bool) -> int:
        """See `Search`."""
        self._prepare(w, *self._before, slack, moved)
        if self._stale:
            self._sort()
        while (found := self._find_near(*self._tree, slack)) > self._near.counts()["room"]:
            self._grow(found)
        self._judge(int(self._r.work[0]))
        return self._call(w, *self._after, c, t, slack, 0)

    def _judge(self, work: int) -> None:
        """Sort the slots once the accumulated cost of a degraded order exceeds the cost of sorting."""
        if self._stale:
            self._least_work, self._wasted = work, 0
        self._wasted += max(work - self._least_work, 0)
        self._stale = self._wasted > SORT * self._least_work

    def _sort(self) -> None:
        """Sort the slots of each world in Morton order."""
        lanes, worlds = self._wide.lanes, self.width.lanes
        b = {name: np.asarray(a, np.float64).reshape(-1, worlds) for name, a in self._b.arrays.items()}
        order = self._r.order.reshape(worlds, -1)
        order[...] = -1
        start = _padded(len(self._moving), lanes)
        for world in range(worlds):
            low, high = (np.stack([b[f"{end}_{axis}"][:, world] for axis in "xyz"], axis=1) for end in ("low", "high"))
            for ranks_here, first in ((self._moving, 0), (self._still, start)):
                slots = sorted_slots(low[ranks_here], high[ranks_here])
                order[world, first : first + len(slots)] = ranks_here[slots]

    def _grow(self, found: int) -> None:
        if found > MOST_PAIRS:
            raise MemoryError(f"the boxes of {found} pairs of shapes meet; {MOST_PAIRS} is the most")
        self._near = near_block(self.width, found + found // 2, sorts=True)
        self._bind()


def _tree_block(model: Model, width: Width, order: Indices) -> Block:
    solids, lanes = model.solids, shape_lanes(width).lanes
    ended = solids.kind[order] != Solid.PLANE
    moving = _padded(int(np.count_nonzero(ended & (solids.link[order] >= 0))), lanes)
    n_slots = moving + _padded(int(np.count_nonzero(ended & (solids.link[order] < 0))), lanes)
    sizes = [n_slots]
    while len(sizes) < 2 or sizes[-1] > lanes:
        sizes.append(-(-sizes[-1] // lanes))
    starts = np.cumsum([0] + [_padded(size, lanes) for size in sizes[:-1]])
    link = solids.link[order]
    parent = np.append(model.link_parent, -1)[link]
    pairs, ranked = excluded_pairs(model), ranked_contact_pairs(model, order)
    return TREE.block(
        width,
        n_slots=n_slots,
        n_levels=len(sizes),
        n_moving=moving // lanes,
        lanes=lanes,
        shift=lanes.bit_length() - 1,
        worlds=width.lanes,
        n_excluded=len(pairs),
        n_pairs=len(ranked),
        level_start=starts.astype(np.int32),
        level_size=np.array(sizes, np.int32),
        order=np.full(width.lanes * n_slots, -1, np.int32),
        stack=2 * lanes * len(sizes),
        work=1,
        tally=len(order) + 2,
        link=link,
        parent=np.where(parent < 0, -2, parent),
        group=solids.group[order].astype(np.int32),
        mask=solids.mask[order].astype(np.int32),
        body=solids.body[order],
        picky=np.isin(solids.body[order], pairs).astype(np.int32),
        excluded=pairs.reshape(-1),
        paired=np.isin(np.arange(len(order)), ranked).astype(np.int32),
        pairs=ranked.reshape(-1),
    )
