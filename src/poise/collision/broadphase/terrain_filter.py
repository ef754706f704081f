"""Filter of shapes that exist only in some worlds: each world has one of several terrains.

Before the narrowphase, the terrains of lanes determine which lanes have a shape. Shapes of other terrains are removed
from the near pairs of a world, so that it has no contacts with them, also not in the order of the list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.collision.broadphase.all_pairs import note
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, Shared, View, Width, load, store
from poise.kernel.scalars import mask_bits, to_real

TERRAINS = View(
    "Terrains",
    n_parts=Count,  # shapes that some terrains have and others do not
    chosen=Real,  # (1) index of each world's terrain
    part=Index,  # shapes
    terrain_start=Index,  # of each part, into `terrain`
    terrain=Index,  # numbers of the terrains that have it
    lanes=Index,  # of each shape: bit k is set where lane k has it
)


def terrains_block(there: NDArray[np.bool_], width: Width, chosen: NDArray[np.generic]) -> Block:
    """Block from (terrains, shapes), which terrain has which shapes; `chosen` are the terrains of lanes."""
    parts = np.flatnonzero(~there.all(axis=0))
    having, terrain = np.nonzero(there[:, parts].T)
    starts = np.searchsorted(having, np.arange(len(parts) + 1))
    return TERRAINS.block(
        width,
        n_parts=len(parts),
        chosen=Shared(chosen),
        part=parts.astype(np.int32),
        terrain_start=starts.astype(np.int32),
        terrain=terrain.astype(np.int32),
        lanes=np.full(there.shape[1], -1, np.int32),
    )


@kernel
def place_terrains(z):
    """Compute the lanes that have each shape."""
    chosen = load(z.chosen, 0)
    for i in range(z.n_parts):
        lanes = 0
        for k in range(load(z.terrain_start, i), load(z.terrain_start, i + 1)):
            lanes |= mask_bits(chosen == to_real(load(z.terrain, k), chosen))
        store(z.lanes, load(z.part, i), lanes)


@kernel
def keep_chosen(near, z):
    """Restrict near pairs to the lanes that have both shapes, and remove those that no lane has; keeps the order."""
    kept = 0
    for k in range(load(near.found, 0)):
        a, b = load(near.a, k), load(near.b, k)
        lanes = load(near.lanes, k) & load(z.lanes, a) & load(z.lanes, b)
        if lanes != 0:
            kept = note(near, kept, a, b, lanes)
    store(near.found, 0, kept)
