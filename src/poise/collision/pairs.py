"""Which pairs of shapes are looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.model.model import Model

Indices = NDArray[np.int32]


def candidate_pairs(model: Model) -> Indices:
    """(n, 2) shapes that may touch, the kind of the first not above the second's, sorted by kinds.

    Left out are shapes on one link, on links of which one carries the other, shapes that never move, pairs whose groups
    and masks do not meet, and pairs of bodies that the scene excludes. Bodies welded to the world do not count as
    carrying: a pendulum collides with the floor that its joint is on.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1)), scene.add(poise.box(1, 1, 1))
    >>> candidate_pairs(scene.compile()).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    solids = model.solids
    first, second = np.triu_indices(len(solids), 1)
    link_a, link_b = solids.link[first], solids.link[second]
    parent = np.append(model.link_parent, -1)
    carried = (link_a >= 0) & (link_b >= 0) & ((parent[link_a] == link_b) | (parent[link_b] == link_a))
    seen = (solids.group[first] & solids.mask[second]) | (solids.group[second] & solids.mask[first])
    keep = (link_a != link_b) & ~carried & (seen != 0)
    for one, other in model.excluded:
        a, b = solids.body[first], solids.body[second]
        keep &= ~((a == one) & (b == other)) & ~((a == other) & (b == one))
    pairs = np.stack((first[keep], second[keep]), axis=1).astype(np.int32)
    turned = solids.kind[pairs[:, 0]] > solids.kind[pairs[:, 1]]
    pairs[turned] = pairs[turned][:, ::-1]
    order = np.lexsort((pairs[:, 1], pairs[:, 0], solids.kind[pairs[:, 0]], solids.kind[pairs[:, 1]]))
    return np.ascontiguousarray(pairs[order])
