"""Controls of the motors of many worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.formulations.crowd import Records
from poise.model.model import Model
from poise.sim.motors import Controls, motor_rows

Array = NDArray[Any]


class WorldControls:
    """Controls of all worlds, and the numbers of motors that they set."""

    def __init__(self, model: Model, records: Records) -> None:
        self.motors = model.motors
        first = Controls(model).values
        self.values = np.tile(first, (records.n, 1)).astype(records.width.dtype)
        self._applied, self._records = self.values.copy(), records
        table = [(m.control_low, m.control_high, m.gain, m.offset) for m in model.motors]
        numbers = np.array(table, records.width.dtype).reshape(-1, 4).T
        self._low, self._high, self._gain, self._offset = np.ascontiguousarray(numbers)
        self._plain = np.array([not motor.ball for motor in model.motors], np.bool_)
        places, rows = records.layout.places, motor_rows(model)
        starts = [places[f"motors/{m.control}"].start + row.start for m, row in zip(model.motors, rows, strict=True)]
        self._columns: Array | slice = np.array(starts, np.intp)
        if len(starts) and starts == [*range(starts[0], starts[0] + len(starts))]:
            self._columns = slice(starts[0], starts[0] + len(starts))  # the usual case, of which there is a view

    def checked(self, ctrl: ArrayLike) -> Array:
        """Controls as they may be assigned."""
        given = np.asarray(ctrl, np.float64)
        if given.shape not in (self.values.shape, self.values.shape[1:]) or not np.isfinite(given).all():
            n, motors = self.values.shape
            raise ValueError(f"ctrl must be ({motors},) or ({n}, {motors}) finite numbers, one for each motor")
        return given

    def apply(self) -> Array:
        """Set what has changed; (n,) whether a world has controls that are not finite."""
        if not len(self.motors):
            return np.zeros(len(self.values), np.bool_)
        changed = self.values != self._applied
        if not changed.any():
            return np.zeros(len(self.values), np.bool_)
        if (balls := changed.any(axis=0) & ~self._plain).any():
            name = self.motors[int(np.flatnonzero(balls)[0])].name
            raise ValueError(f'motor "{name}" turns a ball joint: it has no control')
        bad = ~np.isfinite(self.values)
        numbers = np.minimum(np.maximum(self.values, self._low), self._high) * self._gain + self._offset
        table, wanted = self._records.numbers.reshape(len(self.values), -1), changed & ~bad
        table[:, self._columns] = numbers if wanted.all() else np.where(wanted, numbers, table[:, self._columns])
        self._applied[...] = self.values
        lost: Array = bad.any(axis=1)
        return lost
