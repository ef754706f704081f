"""Which worlds are stepped side by side. Results do not depend on it."""

from __future__ import annotations

from poise.batch.schedule_kernels import MOST_ALIKE, ORDERING, finite, ordered
from poise.formulations.lanes.batch_engine import Records
from poise.kernel.memory import Width


class Order:
    """Puts alike worlds together: lanes take as long as the busiest of them."""

    def __init__(self, records: Records) -> None:
        self._records, self._plain = records, Width(records.width.elem)
        sizes = {"n": records.n, "lanes": records.width.lanes, "room": len(records.order)}
        self._block = ORDERING.block(self._plain, **sizes, worlds=records.n, place=MOST_ALIKE + 2)

    def arrange(self) -> int:
        """Into groups, those that take longest first: how many groups there are."""
        return int(ordered[self._plain](self._records.block.handle, self._block.handle))

    @property
    def finite(self) -> bool:
        """Whether the state of all worlds is."""
        return bool(finite[self._plain](self._records.block.handle, self._block.handle))
