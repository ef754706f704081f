"""Collision detection of a model at a pose: memory, and calls of the broadphase and narrowphase kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.broadphase.aabb import place_shapes
from poise.collision.broadphase.pair_filter import Indices, candidate_pairs
from poise.collision.broadphase.search import FEW, Few, Many, Search
from poise.collision.collision_layout import CONTACTS, PLACES, SHAPES, contacts_block, shapes_block
from poise.collision.contact_acceleration_kernels import bend_contacts
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.dynamics import kinematics
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK, matrices
from poise.dynamics.workspace import Workspace, Worlds, workspace
from poise.kernel.bound import Bound
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block, Width
from poise.model.model import Model

Array = NDArray[Any]

_place_links = entry(kinematics.place_links, MODEL, STATE, WORK)
_place_shapes = entry(place_shapes, WORK, SHAPES, PLACES)
_bend = entry(bend_contacts, MODEL, WORK, SHAPES, PLACES, CONTACTS)
HARD_CAP = 1 << 20
"""Limit of contacts of a world; more are an error of the scene."""


@dataclass(frozen=True)
class Contact:
    """A contact point of two shapes that touch or nearly do."""

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
    id: int
    """31 bits; unique among the contacts of a world, and constant from frame to frame."""
    feature: int
    """Which corners, edges and faces touch; constant from frame to frame."""
    bend: Array | None = None
    """(3,) rate of the relative velocity there without accelerations of bodies, if it was requested: γ of a row along
    the normal or a tangent d is d · bend (see `contact_acceleration`); m/s²."""

    @property
    def depth(self) -> float:
        """Positive where they overlap; m."""
        return -self.gap


class Collider:
    """Finds the contacts of a model, in one world or in lanes.

    They are sorted by A and B, in the order of kinds, for both broadphases: all pairs (`few`) or an AABB tree (`many`).
    """

    def __init__(
        self, model: Model, width: Width = F64, room: int = 64, search: Literal["few", "many"] | None = None
    ) -> None:
        if room < 1:
            raise ValueError(f"room for {room} contacts; it must be 1 at least (it grows)")
        if search not in (None, "few", "many"):
            raise ValueError(f"search is {search!r}; it may be 'few' or 'many', or None to choose by their number")
        self.model, self.width = model, width
        n = len(model.solids)
        self.g = shapes_block(model.solids, width, model.link_root)
        self.x = PLACES.block(width, position=n, rotation=n)
        self.t = manifold_block(width, model.solids.kind.tolist())
        self._place_still_shapes()
        many = n > FEW if search is None else search == "many"
        self._search: Search = (Many if many else Few)(model, width, self.g, self.x)
        self._make_room(room)

    def _make_room(self, room: int) -> None:
        self.c, self.room, self._bent = contacts_block(self.width, room), room, False
        self._handles = self.c.handle, self.t.handle

    @cached_property
    def pairs(self) -> Indices:
        """(n, 2) pairs of shapes that may touch; a large scene has very many."""
        return candidate_pairs(self.model)

    def _place_still_shapes(self) -> None:
        solids = self.model.solids
        if not len(solids):
            return
        turns = matrices(solids.quat_wxyz)
        self.x.position[...] = solids.position if self.width.lanes == 1 else solids.position[..., None]
        self.x.rotation[...] = turns if self.width.lanes == 1 else turns[..., None]

    def place(self, q: ArrayLike, v: ArrayLike | None = None) -> None:
        """Place the shapes at a pose; `v` is for `bend`."""

        def call(space: Workspace) -> list[Array]:
            _place_links[space.width](space.m.handle, space.s.handle, space.w.handle)
            return []

        worlds = Worlds(self.model, self.width.dtype, {"q": q, "v": v})
        if (worlds.count or 1) != self.width.lanes:
            raise ValueError(f"{worlds.count or 1} poses for {self.width.lanes} worlds: give one each")
        worlds.run(call)
        space = workspace(self.model, self.width)
        _place_shapes[self.width](space.w.handle, self.g.handle, self.x.handle)

    def find(self, space: Workspace, slack: float = 0.0) -> None:
        """Contacts of the workspace's state, whose links have been placed; the list grows as needed."""
        _check_slack(slack)
        if (most := self.search(space, slack)) > self.room:
            self._grow(most, slack)

    def search(self, space: Workspace, slack: float) -> int:
        """The same; returns their number, which may be above the capacity."""
        self._bent = False
        return self._search.run(space.w.handle, *self._handles, slack, True)

    def finder(self, space: Workspace) -> Bound | None:
        """The bound entry of `find`, if it is a single one: it takes the slack, and the stages (`dispatch.PLACE`)."""
        return self._search.bound(space.w.handle, *self._handles) if isinstance(self._search, Few) else None

    def finder_each(self, space: Workspace, ahead: Block, terrains: Block | None = None) -> Bound:
        """The bound entry for lanes of worlds with their own prediction distances `ahead`, and optionally their own
        `terrains`; it takes an additional slack, and the stages.
        """
        if not isinstance(self._search, Few):
            raise TypeError("shapes are looked for one world after another: make the collider with search='few'")
        chosen = None if terrains is None else terrains.handle
        return self._search.bound_each(space.w.handle, *self._handles, ahead.handle, chosen)

    def make_room(self, most: int) -> None:
        """Allocate memory for this many contacts, and half as many again; the present contacts are lost."""
        if most > HARD_CAP:
            raise MemoryError(f"{most} contacts in one world; {HARD_CAP} is the most")
        self._make_room(min(most + most // 2, HARD_CAP))

    def touch(self, slack: float = 0.0) -> None:
        """Contacts of the shapes at their present poses."""
        _check_slack(slack)
        self._bent = False
        if (most := self._touch(slack)) > self.room:
            self._grow(most, slack)

    def bend(self, space: Workspace) -> None:
        """γ of the present contacts, from the state of a workspace, whose links have been placed."""
        blocks = (space.m, space.w, self.g, self.x, self.c)
        _bend[self.width](*(block.handle for block in blocks))
        self._bent = True

    def _touch(self, slack: float) -> int:
        return self._search.run(workspace(self.model, self.width).w.handle, *self._handles, slack, False)

    def _grow(self, most: int, slack: float) -> None:
        """Allocate memory for this many contacts, and find them again."""
        self.make_room(most)
        self._touch(slack)

    def contacts(self, world: int = 0) -> list[Contact]:
        """Contacts of a world, in the order of the pairs."""
        if not 0 <= world < self.width.lanes:
            raise IndexError(f"world {world} of {self.width.lanes}")
        one = {name: a if self.width.lanes == 1 else a[..., world] for name, a in self.c.arrays.items()}
        return [
            Contact(
                int(one["a"][k]),
                int(one["b"][k]),
                float(one["gap"][k]),
                np.array(one["normal"][k], np.float64),
                np.array(one["point"][k], np.float64),
                int(one["id"][k]),
                int(one["feature"][k]),
                np.array(one["bend"][k], np.float64) if self._bent else None,
            )
            for k in range(int(one["count"][0]))
        ]


def _check_slack(slack: float) -> None:
    if not 0.0 <= slack < inf:
        raise ValueError(f"slack is {slack}; it must be a distance, 0 or more")


def contacts(model: Model, q: ArrayLike, slack: float = 0.0, *, v: ArrayLike | None = None) -> list[Contact]:
    """Contacts of a model at a pose; gaps up to `slack` (m) and the shapes' margins count.

    With velocities `v` each contact has its `bend`, for rows at acceleration level.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.09))
    >>> model = scene.compile()
    >>> [round(contact.depth, 6) for contact in contacts(model, model.q_rest)]
    [0.01]
    """
    collider = Collider(model)
    collider.place(q, v)
    collider.touch(slack)
    if v is not None:
        collider.bend(workspace(model))
    return collider.contacts()
