"""Time of many worlds."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.lanes.batch_engine import Records

Array = NDArray[Any]


class WorldClock:
    """How far each world is, and how long its last step was."""

    def __init__(self, records: Records) -> None:
        n = records.n
        self.time = records.time
        """(n,) since it was reset; s."""
        self.length = np.zeros(n)
        """(n,) of the last step, or of the last part of one that has several; s."""
        self._alike = 0.0
        """What all of them are, or NaN where they differ."""

    def begin(self, worlds: Array) -> None:
        """Some worlds begin anew."""
        self.time[worlds] = 0.0

    def go_on(self, records: Records, dt: float, parts: int) -> None:
        """Note how long the last steps were of worlds that have taken some, of `dt` in so many parts."""
        part = dt / parts
        if part != self._alike:
            self.length[(records.done > 0) & (records.lost == 0)] = part
            self._alike = part if (self.length == part).all() else nan
