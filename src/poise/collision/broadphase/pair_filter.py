"""Collision filter: which pairs of shapes may touch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.model.model import Model

Indices = NDArray[np.int32]
ROOM = 1 << 22
"""Pairs that are processed at once."""


def ranks(model: Model) -> Indices:
    """(n,) shapes sorted by kind: in a pair the one that comes first here is A.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.box(1, 1, 1)), scene.add_ground(), scene.add(poise.sphere(0.1))
    >>> ranks(scene.compile()).tolist()
    [1, 2, 0]
    """
    return np.argsort(model.solids.kind, kind="stable").astype(np.int32)


def may_touch(model: Model, a: Indices, b: Indices) -> NDArray[np.bool_]:
    """Whether shapes a may touch shapes b (see `candidate_pairs`); arrays that broadcast."""
    solids = model.solids
    link_a, link_b = solids.link[a], solids.link[b]
    parent = np.append(model.link_parent, -1)
    carried = (link_a >= 0) & (link_b >= 0) & ((parent[link_a] == link_b) | (parent[link_b] == link_a))
    seen = (solids.group[a] & solids.mask[b]) | (solids.group[b] & solids.mask[a])
    found: NDArray[np.bool_] = (link_a != link_b) & ~carried & (seen != 0)
    if len(model.excluded):
        count = model.n_bodies
        found &= ~np.isin(_keys(count, solids.body[a], solids.body[b]), _keys(count, *model.excluded.T))
    if len(model.contact_pairs):
        count = len(solids)
        found |= (link_a != link_b) & np.isin(_keys(count, a, b), _keys(count, *model.contact_pairs.T))
    return found


def ranked_contact_pairs(model: Model, order: Indices) -> Indices:
    """(n, 2) contact pairs of the scene as ranks of their shapes, the lesser first, sorted."""
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return np.unique(np.sort(rank[model.contact_pairs], axis=1), axis=0).reshape(-1, 2)


def excluded_pairs(model: Model) -> Indices:
    """(n, 2) pairs of bodies that the scene excludes, the lesser first, sorted, each once."""
    return np.unique(np.sort(model.excluded, axis=1), axis=0).reshape(-1, 2)


def _keys(count: int, a: Indices, b: Indices) -> NDArray[np.int64]:
    """An integer key for each unordered pair of integers below `count`."""
    return np.minimum(a, b).astype(np.int64) * count + np.maximum(a, b)


def candidate_pairs(model: Model) -> Indices:
    """(n, 2) shapes that may touch, the kind of the first not above the second's, sorted by their ranks.

    Excluded are pairs on one link, on a link and its parent, of two static shapes (planes are static), pairs whose
    groups and masks do not match, and pairs of bodies that the scene excludes. Contact pairs of the scene are included,
    unless both shapes are on one link or static. Bodies welded to the world do not count as parents: a pendulum
    collides with the floor that its joint is on.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1)), scene.add(poise.box(1, 1, 1))
    >>> candidate_pairs(scene.compile()).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    order = ranks(model)
    n = len(order)
    step = max(1, ROOM // max(n, 1))
    found = [np.zeros((0, 2), np.int32)]
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        allowed = may_touch(model, order[rows, None], order[None, :]) & (rows[:, None] < np.arange(n))
        first, second = np.nonzero(allowed)
        found.append(np.stack((order[rows[first]], order[second]), axis=1))
    return np.concatenate(found)
