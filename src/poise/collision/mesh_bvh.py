"""Bounding volume hierarchies (BVHs) over the triangles of meshes, for rays and collision.

A node has either two children, adjacent in the arrays, or a few items. Items are split at the median along the longest
side of the box of their centres, so the tree is balanced, with logarithmic depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BoxTree:
    """Nodes in order of their depth, the root first."""

    low: Floats
    """(n, 3) lower corner of each node's box."""
    high: Floats
    """(n, 3) upper corner."""
    child: Indices
    """(n,) first of two children, the other one follows it; −1 of a leaf."""
    first: Indices
    """(n,) start in `order` of the items below a node."""
    count: Indices
    """(n,) number of these items."""
    order: Indices
    """(m,) items, sorted so that those below any node are contiguous."""

    def __len__(self) -> int:
        return len(self.child)

    @property
    def depth(self) -> int:
        """Levels of the tree, which is also the size of a stack of nodes."""
        levels, nodes = 0, np.zeros(min(len(self), 1), np.int32)
        while len(nodes):
            levels += 1
            inner = self.child[nodes]
            inner = inner[inner >= 0]
            nodes = np.concatenate((inner, inner + 1))
        return levels


def box_tree(low: ArrayLike, high: ArrayLike, leaf: int = 4) -> BoxTree:
    """The tree over items with boxes from `low` to `high`, (m, 3) each; at most `leaf` items in a leaf.

    >>> corners = np.arange(10.0)[:, None] * np.ones(3)
    >>> tree = box_tree(corners, corners + 0.5)
    >>> tree.high[0].tolist(), len(tree), tree.depth, int(tree.count[tree.child < 0].max())
    ([9.5, 9.5, 9.5], 7, 3, 3)
    """
    least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
    _check(least, most, leaf)
    centres = 0.5 * least + 0.5 * most
    order = np.arange(len(centres))
    first, count = np.zeros(min(len(order), 1), np.int64), np.full(min(len(order), 1), len(order))
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    made = 0
    while len(first):
        made += len(first)
        split = count > leaf
        child = np.where(split, made + 2 * (np.cumsum(split) - 1), -1)
        levels.append((first, count, child))
        order = _sorted_within(order, centres, first[split], count[split])
        near = count[split] // 2
        begins = np.stack((first[split], first[split] + near), axis=1)
        count = np.stack((near, count[split] - near), axis=1).reshape(-1)
        first = begins.reshape(-1)
    starts, counts, children = (_joined([level[k] for level in levels]) for k in range(3))
    sizes = [len(level[0]) for level in levels]
    lows, highs = _boxes(least[order], most[order], (starts, counts, children), sizes)
    return BoxTree(lows, highs, children, starts, counts, order.astype(np.int32))


def triangle_tree(vertices: ArrayLike, faces: ArrayLike, leaf: int = 4) -> BoxTree:
    """The tree over triangles: `faces` (m, 3) are indices of `vertices` (n, 3).

    >>> triangle_tree([(0, 0, 0), (1, 0, 0), (0, 2, 0)], [(0, 1, 2)]).high.tolist()
    [[1.0, 2.0, 0.0]]
    """
    corners = np.asarray(vertices, np.float64)[np.asarray(faces, np.int64)]
    return box_tree(corners.min(axis=1), corners.max(axis=1), leaf)


def node_arrays(tree: BoxTree, reach: float) -> dict[str, NDArray[Any]]:
    """A tree in the layout of kernels. Boxes are enlarged by a millionth of the reach, for the rounding of float32."""
    room = 1e-6 * reach
    return {
        "node_low": tree.low - room,
        "node_high": tree.high + room,
        "node_child": tree.child,
        "node_first": tree.first,
        "node_count": tree.count,
    }


def _check(low: Floats, high: Floats, leaf: int) -> None:
    if low.ndim != 2 or low.shape[1] != 3 or low.shape != high.shape:
        raise ValueError(f"boxes are two arrays (m, 3) of corners, found {low.shape} and {high.shape}")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError("boxes must be finite, and no corner of `low` above that of `high`")
    if leaf < 1:
        raise ValueError(f"a leaf holds at least 1 item, found {leaf}")


def _sorted_within(
    order: NDArray[np.int64], centres: Floats, first: NDArray[np.int64], count: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The items of each of some nodes sorted along the longest side of the box of their centres."""
    if not len(first):
        return order
    owner = np.repeat(np.arange(len(first)), count)
    places = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    items = order[places]
    runs = np.cumsum(count) - count
    spread = np.maximum.reduceat(centres[items], runs) - np.minimum.reduceat(centres[items], runs)
    along = centres[items, spread.argmax(axis=1)[owner]]
    out = order.copy()
    out[places] = items[np.lexsort((along, owner))]
    return out


def _boxes(low: Floats, high: Floats, tree: tuple[Indices, Indices, Indices], sizes: list[int]) -> list[Floats]:
    """Boxes of all nodes: of leaves from their items, of others from their children, deepest first."""
    starts, _, children = tree
    lows, highs = np.empty((len(starts), 3)), np.empty((len(starts), 3))
    leaves = np.flatnonzero(children < 0)
    leaves = leaves[np.argsort(starts[leaves])]
    if len(leaves):
        lows[leaves] = np.minimum.reduceat(low, starts[leaves])
        highs[leaves] = np.maximum.reduceat(high, starts[leaves])
    end = len(starts)
    for size in reversed(sizes):
        nodes = np.arange(end - size, end)
        nodes, end = nodes[children[nodes] >= 0], end - size
        lows[nodes] = np.minimum(lows[children[nodes]], lows[children[nodes] + 1])
        highs[nodes] = np.maximum(highs[children[nodes]], highs[children[nodes] + 1])
    return [lows, highs]


def _joined(parts: list[NDArray[np.int64]]) -> Indices:
    return np.concatenate([*parts, np.zeros(0, np.int64)]).astype(np.int32)
