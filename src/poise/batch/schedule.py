"""Grouping of worlds into lanes. Results do not depend on it."""

from __future__ import annotations

from poise.batch.schedule_kernels import MOST_ALIKE, ORDERING, finite, ordered
from poise.formulations.lanes.batch_engine import Records
from poise.kernel.memory import Width


class Order:
    """Groups similar worlds: a group takes as long as its slowest lane."""

    def __init__(self, records: Records) -> None:
        self._records, self._plain = records, Width(records.width.elem)
        sizes = {"n": records.n, "lanes": records.width.lanes, "room": len(records.order)}
        self._block = ORDERING.block(self._plain, **sizes, worlds=records.n, place=MOST_ALIKE + 2)

    def arrange(self) -> int:
        """Group the worlds, the slowest groups first; returns the number of groups."""
        return int(ordered[self._plain](self._records.block.handle, self._block.handle))

    @property
    def finite(self) -> bool:
        """Whether the states of all worlds are finite."""
        return bool(finite[self._plain](self._records.block.handle, self._block.handle))
