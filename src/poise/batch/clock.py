"""Time of many worlds."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.crowd import Records

Array = NDArray[Any]


class WorldClock:
    """How far each world is, and how long its last step was."""

    def __init__(self, n: int) -> None:
        self.time = np.zeros(n)
        """(n,) since it was reset; s."""
        self.length = np.zeros(n)
        """(n,) of the last step, or of the last part of one that has several; s."""
        self._alike = 0.0
        """What all of them are, or NaN where they differ."""

    def begin(self, worlds: Array) -> None:
        """Some worlds begin anew."""
        self.time[worlds] = 0.0

    def go_on(self, records: Records, dt: float, parts: int) -> None:
        """Count what worlds have done, steps of `dt` of so many parts; who was lost may have done a part of one."""
        part = dt / parts
        self.time += records.done // parts * dt
        if parts > 1:
            self.time += records.done % parts * part
        if part != self._alike:
            self.length[(records.done > 0) & (records.lost == 0)] = part
            self._alike = part if (self.length == part).all() else nan
