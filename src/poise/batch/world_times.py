"""Time of many worlds."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.lanes.batch_engine import Records

Array = NDArray[Any]


class WorldClock:
    """Time of each world, and length of its last step."""

    def __init__(self, records: Records) -> None:
        n = records.n
        self.time = records.time
        """(n,) since the last reset; s."""
        self.length = np.zeros(n)
        """(n,) length of the last step, or of its last substep; s."""
        self._alike = 0.0
        """The common value of all worlds, or NaN if they differ."""

    def begin(self, worlds: Array) -> None:
        """Reset some worlds."""
        self.time[worlds] = 0.0

    def go_on(self, records: Records, dt: float, parts: int) -> None:
        """Store the length of the last steps of worlds that were stepped, of `dt` in this many substeps."""
        part = dt / parts
        if part != self._alike:
            self.length[(records.done > 0) & (records.lost == 0)] = part
            self._alike = part if (self.length == part).all() else nan
