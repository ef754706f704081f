"""The warm start of the next step as a part of the state: ids of row blocks, and their multipliers.

A contact's multipliers are kept as its force in world axes: its directions may rotate from step to step, and batches
keep them in the same form (see `formulations.lanes.batch_kernels`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.emit_rows import N_KINDS, stride_of, sum_forces
from poise.constraints.row_store import CONTACT, HARD_CAP, KINDS, STORE, STRIDES
from poise.constraints.rows import Rows
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Index, Real, View, load, store
from poise.kernel.scalars import minimum
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3
from poise.model.state_fields import SlotCheck

Array = NDArray[Any]
COUNT, ID, IMPULSE = "warm_start/count", "warm_start/id", "warm_start/impulse"

WARM_START = View(
    "WarmStart",
    count=Index,  # (4) blocks by kind
    id=Index,  # of blocks, kind by kind
    impulse=Real,  # multipliers of their rows; of a contact its force in world axes
)


@kernel
def read_rows(r, w):
    """Copy the ids and multipliers of all blocks."""
    sum_forces(r, 1)
    block, row = 0, 0
    for kind in range(N_KINDS):
        stride, first = stride_of(kind), load(r.first, kind)
        count = minimum(load(r.count, kind), load(r.room, kind))
        store(w.count, kind, count)
        for n in range(count):
            slot = first + n * stride
            store(w.id, block, load(r.id, slot))
            if kind == CONTACT:
                force = load(r.force, slot)
                store(w.impulse, row, force.x)
                store(w.impulse, row + 1, force.y)
                store(w.impulse, row + 2, force.z)
            else:
                for k in range(stride):
                    store(w.impulse, row + k, load(r.lam, slot + k))
            block += 1
            row += stride


@kernel
def write_rows(r, w):
    """Write ids and multipliers to a store that has room. The directions of contacts become the world's axes."""
    zero = Vec3(0.0, 0.0, 0.0)
    block, row = 0, 0
    store(r.term_count, 0, 0)
    for kind in range(N_KINDS):
        stride, first, count = stride_of(kind), load(r.first, kind), load(w.count, kind)
        store(r.count, kind, count)
        for n in range(count):
            slot = first + n * stride
            store(r.id, slot, load(w.id, block))
            for k in range(stride):
                store(r.lam, slot + k, load(w.impulse, row + k))
                store(r.term, slot + k, -1)
            if kind == CONTACT:
                for k in range(stride):
                    store(r.b, slot + k, 0)
                store(r.Jb, slot, Force(zero, Vec3(1.0, 0.0, 0.0)))
                store(r.Jb, slot + 1, Force(zero, Vec3(0.0, 1.0, 0.0)))
                store(r.Jb, slot + 2, Force(zero, Vec3(0.0, 0.0, 1.0)))
            block += 1
            row += stride


_READ = entry(read_rows, STORE, WARM_START, lanes=False)
_WRITE = entry(write_rows, STORE, WARM_START, lanes=False)


class WarmStart:
    """Reads and writes the warm start of one world in float64."""

    def __init__(self) -> None:
        self._block: Block | None = None
        self._room: list[int] = []

    def _with_room(self, room: list[int]) -> Block:
        """A block for as many row blocks of each kind."""
        if self._block is None or room != self._room:
            rows = sum(n * stride for n, stride in zip(room, STRIDES, strict=True))
            self._block, self._room = WARM_START.block(F64, count=len(KINDS), id=sum(room), impulse=rows), room
        return self._block

    def slots(self, rows: Rows) -> dict[str, Array]:
        """The warm start, by the names of slots."""
        block = self._with_room(rows.now.room.tolist())
        _READ[F64](rows.now.handle, block.handle)
        count = block.count.copy()
        blocks, size = sizes(count.tolist())
        return {COUNT: count, ID: block.id[:blocks].copy(), IMPULSE: block.impulse[:size].copy()}

    def write(self, slots: Mapping[str, Array], rows: Rows) -> None:
        """Load a warm start for which the store has room."""
        block = self._with_room(rows.now.room.tolist())
        block.count[...] = slots[COUNT]
        block.id[: len(slots[ID])] = slots[ID]
        block.impulse[: len(slots[IMPULSE])] = slots[IMPULSE]
        _WRITE[F64](rows.now.handle, block.handle)


def sizes(count: list[int]) -> tuple[int, int]:
    """Total numbers of blocks and rows, from those of blocks of each kind."""
    single, law, contact, ball = count
    return single + law + contact + ball, single + law + 3 * (contact + ball)


def check_warm_start(check: SlotCheck) -> None:
    """Raise if slots are not a warm start."""
    count = check.fits(COUNT, (len(KINDS),), np.int32).tolist()
    check.within(COUNT, 0, HARD_CAP)
    blocks, rows = sizes(count)
    check.fits(ID, (blocks,), np.int32)
    check.fits(IMPULSE, (rows,), np.float64)
