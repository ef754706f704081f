"""Controls of the motors of many worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.ready_kernels import CONTROLS, FINE, control
from poise.dynamics.inputs import check_range, real_numbers
from poise.formulations.crowd import Records
from poise.kernel.memory import Width
from poise.model.model import Model
from poise.model.motors import controlled_numbers
from poise.sim.motors import Controls, motor_rows

Array = NDArray[Any]


class WorldControls:
    """Controls of all worlds, and the numbers of motors that they set."""

    def __init__(self, model: Model, records: Records) -> None:
        self.motors, self._records, self._plain = model.motors, records, Width(records.width.elem)
        self.first = first = Controls(model).values
        """(motors,) at first."""
        n = records.n
        rows, places = motor_rows(model), records.layout.places
        table = [(m.control_low, m.control_high, m.gain, m.offset) for m in model.motors]
        low, high, gain, offset = np.array(table).reshape(-1, 4).T
        columns, further = [], []
        for k, (motor, row) in enumerate(zip(model.motors, rows, strict=True)):
            at = [places[f"motors/{name}"].start + row.start for name in controlled_numbers(motor.control)]
            columns.append(-1 if motor.ball else at[0])
            firsts = (motor.stiffness, motor.damping)
            further += [(k, *numbers) for numbers in zip(at[1:], motor.slopes, firsts, strict=False)]
        motor_of, column_of, slopes, firsts = zip(*further, strict=True) if further else ((), (), (), ())
        self._block = CONTROLS.block(
            self._plain,
            n=n,
            motors=len(first),
            **{name: np.tile(first, n) for name in ("values", "applied")},
            low=low,
            high=high,
            gain=gain,
            offset=offset,
            column=np.array(columns, np.int32),
            n_further=len(further),
            further_motor=np.array(motor_of, np.int32),
            further_column=np.array(column_of, np.int32),
            further_gain=np.array(slopes, np.float64),
            further_offset=np.array(firsts, np.float64),
        )
        self.values: Array = self._block.values.reshape(n, len(first))

    def checked(self, ctrl: ArrayLike, *, one_row: bool = False) -> Array:
        """Controls as they may be assigned: one row for all worlds or, unless one is wanted, a row for each."""
        given, (n, motors) = real_numbers("ctrl", ctrl), self.values.shape
        shapes = ((motors,),) if one_row else ((motors,), (n, motors))
        if given.shape not in shapes or not np.isfinite(given).all():
            told = " or ".join(map(str, shapes))
            raise ValueError(f"ctrl must be {told} finite numbers, one for each motor")
        if self._plain.elem == "f32":
            check_range({"ctrl": given})
        return given

    def apply(self) -> None:
        """Set what has changed. Worlds that have controls that are not finite are lost."""
        if len(self.motors):
            fault = control[self._plain](self._records.block.handle, self._block.handle)
            if fault != FINE:
                raise ValueError(f'motor "{self.motors[fault].name}" turns a ball joint: it has no control')
