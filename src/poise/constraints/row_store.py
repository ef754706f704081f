"""The arrays of the row store: fields of a row, layout of regions, and growth (see `rows`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3

SINGLE, LAW, CONTACT, BALL = range(4)
KINDS = ("single", "law", "contact", "ball")
STRIDES = (1, 1, 3, 3)
"""Rows of a block, by kind."""
VERTICES = 8
"""Most vertices of a law."""
NO_END = -1.0
"""Compliance value that marks a vertical end of a law."""
HARD_CAP = 1 << 20
"""Most rows of a kind in a world; more are taken for a mistake."""
LARGEST_ID = (1 << 31) - 1
"""Ids fit the integers of float32 lanes."""

STORE = View(
    "Store",
    term_room=Count,
    first=Index,  # (4) first slot of a region
    room=Index,  # (4) blocks for which a region has room
    count=Int,  # (4) blocks that each world has in a region, which may exceed the room
    term_count=Int,  # (1) further terms
    # rows, by slot
    a=Int,  # body, −1 is the world
    b=Int,
    Ja=Force,
    Jb=Force,
    dof=Int,  # coordinate, −1 if there is none
    Jdof=Real,
    term=Int,  # first further term, −1 if there is none
    phi=Real,  # m or rad; negative is penetrating or past the limit
    gamma=Real,  # J̇v; m/s² or rad/s²
    target=Real,  # target row velocity; m/s or rad/s
    restitution=Real,  # of a contact's first row
    bounce=Real,  # row velocity after an impact, 0 if it does not bounce; m/s or rad/s
    a_ref=Real,  # target row acceleration; m/s² or rad/s²
    alpha=Real,  # gains of VON eq. 11 on φ, φ̇; 1/s², 1/s
    beta=Real,
    lo=Real,  # bounds of the multiplier as a force; N or N·m
    hi=Real,
    erp=Real,  # part of the error that is removed in a step
    cfm=Real,  # row velocity per unit impulse; 1/kg or 1/(kg·m²)
    lam=Real,  # the solved multiplier, an impulse or a force by level
    # blocks, by the slot of their first row
    id=Int,
    pick=Int,  # item of a block: the number of a contact, or of an end of a limit
    force=Vec3,  # of a contact, from its multipliers in their own units, for the next step's warm start
    bound=Real,  # μ of a contact (at rest), radius of a ball (N or N·m)
    slide=Real,  # μ of a contact that slides
    strike=Real,  # μ of an impact
    slides=Int,  # 1 if a contact slides now
    scaler=Int,  # 1 + slot of the row whose multiplier multiplies the bound, 0 if there is none
    # laws, by block of the region; vertices one after another
    law_lam=Real,
    law_w=Real,
    law_left=Real,  # compliances of the end rays, NO_END if vertical
    law_right=Real,
    # further terms
    term_body=Int,  # −1 if the term is on a coordinate
    term_J=Force,
    term_dof=Int,  # −1 if the term is on a body
    term_Jdof=Real,
    term_next=Int,  # −1 ends the chain
)

_TERM = ("term_body", "term_J", "term_dof", "term_Jdof", "term_next")
_LAW = ("law_lam", "law_w", "law_left", "law_right")
_HEAD = ("first", "room", "count", "term_count", "term_room")


@dataclass(frozen=True)
class Listing:
    """The rows of a problem: slots up to the largest count of any world, kind by kind."""

    slots: NDArray[np.int32]
    """(m,) slot of each row."""
    kinds: NDArray[np.int32]
    """(blocks,)"""
    starts: NDArray[np.int32]
    """(blocks + 1,) first row of each block."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.slots)


def make_store(width: Width, room: Sequence[int], term_room: int) -> Block:
    """An empty store."""
    slots = [n * stride for n, stride in zip(room, STRIDES, strict=True)]
    sizes = dict.fromkeys(STORE.fields, sum(slots)) | dict.fromkeys(_TERM, term_room)
    sizes |= {
        "law_lam": room[LAW] * VERTICES,
        "law_w": room[LAW] * VERTICES,
        "law_left": room[LAW],
        "law_right": room[LAW],
    }
    first = np.concatenate(([0], np.cumsum(slots)[:-1])).astype(np.int32)
    given: dict[str, Any] = {"first": first, "room": np.array(room, np.int32), "term_room": term_room}
    return STORE.block(width, **(sizes | given | {"count": len(KINDS), "term_count": 1}))


def moved(old: Block, room: Sequence[int], term_room: int) -> Block:
    """A larger store with the same rows."""
    new = make_store(old.width, room, term_room)
    new.count[...], new.term_count[...] = old.count, old.term_count
    for field, array in old.arrays.items():
        if field in _HEAD:
            continue
        if field in _TERM or field in _LAW:
            new.arrays[field][: len(array)] = array
            continue
        for k, stride in enumerate(STRIDES):
            n, source, goal = int(old.room[k]) * stride, int(old.first[k]), int(new.first[k])
            new.arrays[field][goal : goal + n] = array[source : source + n]
    return new


def listed(counts: tuple[int, ...], first: NDArray[Any]) -> Listing:
    """Rows up to the largest count of any world."""
    slots = [np.arange(int(first[k]), int(first[k]) + counts[k] * stride) for k, stride in enumerate(STRIDES)]
    kinds = np.repeat(np.arange(len(KINDS)), counts)
    starts = np.concatenate(([0], np.cumsum(np.array(STRIDES)[kinds])))
    return Listing(np.concatenate(slots).astype(np.int32), kinds.astype(np.int32), starts.astype(np.int32))


def of_world(array: NDArray[Any], world: int, width: Width) -> NDArray[Any]:
    """The part of an array that belongs to one world."""
    return array if width.lanes == 1 else array[..., world]
