"""Many pairs of shapes at once, each pair alone: no scene, no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.collision_layout import (
    CONTACTS,
    MANIFOLD,
    MOST_TOUCHES,
    PAIRS,
    PLACES,
    SHAPES,
    contacts_block,
    pairs_block,
)
from poise.collision.narrowphase.dispatch import collide
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block, Count, Width

Array = NDArray[Any]
_collide = entry(collide, SHAPES, PLACES, PAIRS, CONTACTS, MANIFOLD, extra=("float64",))


@dataclass(frozen=True)
class Shapes:
    """N shapes: kind, half size (N, 3), position (N, 3), rotation (N, 3, 3)."""

    kind: int
    half: Array
    position: Array
    rotation: Array

    def __len__(self) -> int:
        return len(self.half)

    def __getitem__(self, k: Any) -> Shapes:
        return Shapes(self.kind, self.half[k], self.position[k], self.rotation[k])

    def moved(self, turn: Array, shift: Array) -> Shapes:
        """All of them turned about the origin, then shifted."""
        return Shapes(self.kind, self.half, self.position @ turn.T + shift, turn @ self.rotation)


@dataclass(frozen=True)
class Touches:
    """All touches, in the order of pairs."""

    pair: Array
    gap: Array
    normal: Array
    point: Array
    feature: Array

    def count(self, n: int) -> Array:
        """Touches of each of n pairs."""
        return np.bincount(self.pair, minlength=n)

    def deepest(self, n: int) -> tuple[Array, Array]:
        """Least gap of each of n pairs (∞ where there is none), and which touch has it (−1)."""
        order = np.lexsort((self.gap, self.pair))
        pairs, first = np.unique(self.pair[order], return_index=True)
        gap, index = np.full(n, np.inf), np.full(n, -1)
        gap[pairs], index[pairs] = self.gap[order[first]], order[first]
        return gap, index

    def of(self, k: int) -> Touches:
        """Those of one pair."""
        mine = self.pair == k
        return Touches(self.pair[mine], self.gap[mine], self.normal[mine], self.point[mine], self.feature[mine])


def shapes_of(a: Shapes, b: Shapes, width: Width) -> tuple[Block, Block]:
    n = len(a)
    room = {name: 0 if kind is Count else 4 * n + 1 for name, kind in SHAPES.fields.items()}
    given = {
        "n_shapes": 2 * n,
        "kind": np.repeat(np.array([a.kind, b.kind], np.int32), n),
        "size": np.concatenate((a.half, b.half)),
        "reach": np.full(2 * n, 1e6),
    }
    shapes = SHAPES.block(width, **(room | given))
    rotation = np.concatenate((a.rotation, b.rotation)).reshape(-1, 9)
    return shapes, PLACES.block(width, position=np.concatenate((a.position, b.position)), rotation=rotation)


def touches(a: Shapes, b: Shapes, limit: float, width: Width = F64) -> Touches:
    """What Poise finds between shape k of a and shape k of b, gaps up to a limit."""
    n = len(a)
    shapes, places = shapes_of(a, b, width)
    pairs = pairs_block(np.arange(2 * n, dtype=np.int32).reshape(2, n).T, width)
    contacts = contacts_block(width, MOST_TOUCHES * n)
    blocks = (shapes, places, pairs, contacts, manifold_block(width))
    _collide[width](*(block.handle for block in blocks), limit)
    found = int(contacts.count[0])
    arrays = contacts.arrays | {"pair": contacts.a}  # shape k of a is in pair k
    get = {name: arrays[name][:found] for name in ("pair", "gap", "normal", "point", "feature")}
    return Touches(**{name: np.array(x, np.float64 if x.dtype.kind == "f" else np.int64) for name, x in get.items()})
