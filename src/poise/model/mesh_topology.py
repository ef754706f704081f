"""Topology of triangle meshes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Faces = NDArray[np.int64]
Edges = NDArray[np.int64]


def half_edges(faces: Faces) -> Edges:
    """(3 m, 2) edges of triangles (m, 3), each in the sense of its triangle: corner 0 to 1, 1 to 2, 2 to 0.

    >>> half_edges(np.array([(4, 5, 6)])).tolist()
    [[4, 5], [5, 6], [6, 4]]
    """
    return np.stack((faces, np.roll(faces, -1, axis=1)), axis=2).reshape(-1, 2)


def third_corners(faces: Faces) -> NDArray[np.int32]:
    """(m, 3) for each edge of each triangle the third corner of its neighbour; −1 if it has none.

    >>> third_corners(np.array([(0, 1, 2), (2, 1, 3)])).tolist()
    [[-1, 3, -1], [0, -1, -1]]
    """
    edges = half_edges(faces)
    n = int(faces.max(initial=0)) + 1
    there, back = edges[:, 0] * n + edges[:, 1], edges[:, 1] * n + edges[:, 0]
    order = np.argsort(there, kind="stable")
    place = np.minimum(np.searchsorted(there[order], back), max(len(order) - 1, 0))
    found = order[place] if len(order) else order
    third = np.roll(faces, -2, axis=1).reshape(-1)[found]
    return np.where(there[found] == back, third, -1).reshape(-1, 3).astype(np.int32)


def open_edges(faces: Faces) -> Edges:
    """(k, 2) edges that have a triangle on one side only.

    >>> open_edges(np.array([(0, 1, 2), (2, 1, 3)])).tolist()
    [[0, 1], [2, 0], [1, 3], [3, 2]]
    """
    return half_edges(faces)[third_corners(faces).reshape(-1) < 0]


def torn_edges(faces: Faces) -> Edges:
    """(k, 2) edges that two triangles traverse in the same direction: more than two meet there, or one is flipped.

    >>> torn_edges(np.array([(0, 1, 2), (0, 1, 3)])).tolist()
    [[0, 1]]
    """
    edges, count = np.unique(half_edges(faces), axis=0, return_counts=True)
    return edges[count > 1]


def neighbors(faces: Faces, n_vertices: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Other ends of the edges at each vertex: starts (n + 1,), and the list.

    >>> [x.tolist() for x in neighbors(np.array([(0, 1, 2)]), 3)]
    [[0, 2, 4, 6], [1, 2, 0, 2, 0, 1]]
    """
    edges = half_edges(faces)
    both = np.unique(np.concatenate((edges, edges[:, ::-1])), axis=0).reshape(-1, 2)
    counts = np.bincount(both[:, 0], minlength=n_vertices)
    return np.concatenate(([0], np.cumsum(counts))), both[:, 1]
