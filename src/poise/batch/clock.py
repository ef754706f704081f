"""Time of many worlds."""

from __future__ import annotations

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

    def begin(self, worlds: Array) -> None:
        """Some worlds begin anew."""
        self.time[worlds] = self.length[worlds] = 0.0

    def go_on(self, records: Records, dt: float, parts: int) -> None:
        """Count what worlds have done, steps of `dt` of so many parts; who was lost may have done a part of one."""
        steps, rest = np.divmod(records.done, parts)
        self.time += steps * dt + rest * (dt / parts)
        self.length[(records.done > 0) & (records.lost == 0)] = dt / parts
