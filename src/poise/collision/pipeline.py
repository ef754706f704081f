"""Contacts of a model at a pose: memory, and the way through the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.layout import (
    CONTACTS,
    MANIFOLD,
    PAIRS,
    PLACES,
    SHAPES,
    contacts_block,
    manifold_block,
    pairs_block,
    shapes_block,
)
from poise.collision.narrow import collide, place_shapes
from poise.collision.pairs import candidate_pairs
from poise.dynamics import kinematics
from poise.dynamics.layout import MODEL, STATE, WORK, matrices
from poise.dynamics.workspace import Workspace, Worlds, workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Width
from poise.model.model import Model

Array = NDArray[Any]

_place_links = entry(kinematics.place_links, MODEL, STATE, WORK)
_place_shapes = entry(place_shapes, MODEL, WORK, SHAPES, PLACES)
_collide = entry(collide, SHAPES, PLACES, PAIRS, CONTACTS, MANIFOLD, extra=("float64",))
HARD_CAP = 1 << 20
"""Contacts of a world: more are a mistake."""


@dataclass(frozen=True)
class Contact:
    """Two shapes that touch or nearly do."""

    a: int
    """Shape."""
    b: int
    """Shape."""
    gap: float
    """Negative where they overlap; m."""
    normal: Array
    """(3,) from A to B."""
    point: Array
    """(3,) half way between the surfaces; m."""
    pair: int
    feature: int
    """Stays the same from frame to frame."""

    @property
    def depth(self) -> float:
        """Positive where they overlap; m."""
        return -self.gap


class Collider:
    """Finds the contacts of a model, in one world or in lanes."""

    def __init__(self, model: Model, width: Width = F64, room: int = 64) -> None:
        self.model, self.width = model, width
        self.pairs = candidate_pairs(model)
        self.g = shapes_block(model.solids, width, model.link_root)
        self.x = PLACES.block(width, position=len(model.solids), rotation=len(model.solids))
        self.p = pairs_block(self.pairs, width)
        self.c = contacts_block(width, room)
        self.t = manifold_block(width)
        self._place_still_shapes()

    def _place_still_shapes(self) -> None:
        solids = self.model.solids
        if not len(solids):
            return
        turns = matrices(solids.quat_wxyz)
        self.x.position[...] = solids.position if self.width.lanes == 1 else solids.position[..., None]
        self.x.rotation[...] = turns if self.width.lanes == 1 else turns[..., None]

    def place(self, q: ArrayLike) -> None:
        """Put the shapes where a pose has them."""

        def call(space: Workspace) -> list[Array]:
            _place_links[space.width](space.m.handle, space.s.handle, space.w.handle)
            return []

        worlds = Worlds(self.model, self.width.dtype, {"q": q})
        if (worlds.count or 1) != self.width.lanes:
            raise ValueError(f"{worlds.count or 1} poses for {self.width.lanes} worlds: give one each")
        worlds.run(call)
        space = workspace(self.model, self.width)
        _place_shapes[self.width](space.m.handle, space.w.handle, self.g.handle, self.x.handle)

    def find(self, space: Workspace, slack: float = 0.0) -> None:
        """Contacts of the workspace's state, whose links have been placed; the list grows as it must."""
        _place_shapes[self.width](space.m.handle, space.w.handle, self.g.handle, self.x.handle)
        self.touch(slack)

    def touch(self, slack: float = 0.0) -> None:
        """Contacts of the shapes where they are."""
        widths = (self.width,) * 4 + (Width(self.width.elem),)
        while True:
            blocks = (self.g, self.x, self.p, self.c, self.t)
            _collide[widths](*(block.handle for block in blocks), slack)
            most = int(self.c.count.max())
            if most <= self.c.counts()["room"]:
                return
            if most > HARD_CAP:
                raise MemoryError(f"{most} contacts in one world; {HARD_CAP} is the most")
            self.c = contacts_block(self.width, most + most // 2)

    def contacts(self, world: int = 0) -> list[Contact]:
        """What was found in a world, in the order of the pairs."""
        one = {name: a if self.width.lanes == 1 else a[..., world] for name, a in self.c.arrays.items()}
        return [
            Contact(
                int(one["a"][k]),
                int(one["b"][k]),
                float(one["gap"][k]),
                np.array(one["normal"][k], np.float64),
                np.array(one["point"][k], np.float64),
                int(one["pair"][k]),
                int(one["feature"][k]),
            )
            for k in range(int(one["count"][0]))
        ]


def contacts(model: Model, q: ArrayLike, slack: float = 0.0) -> list[Contact]:
    """Contacts of a model at a pose; gaps up to `slack` (m) and the shapes' margins count.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.09))
    >>> model = scene.compile()
    >>> [round(contact.depth, 6) for contact in contacts(model, model.q_rest)]
    [0.01]
    """
    collider = Collider(model)
    collider.place(q)
    collider.touch(slack)
    return collider.contacts()
