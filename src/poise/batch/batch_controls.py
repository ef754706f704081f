"""Controls of the motors of many worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.schedule_kernels import CONTROLS, FINE, control
from poise.dynamics.argument_checks import check_range, real_numbers
from poise.formulations.lanes.batch_engine import Records
from poise.kernel.memory import Width
from poise.model.model import Model
from poise.model.motors import controlled_numbers
from poise.sim.world_motors import Controls, motor_rows

Array = NDArray[Any]


class WorldControls:
    """Controls of all worlds, and the motor parameters that they set."""

    def __init__(self, model: Model, records: Records) -> None:
        self.motors, self._records, self._plain = model.motors, records, Width(records.width.elem)
        self.first = first = Controls(model).values
        """(motors,) initial controls."""
        n = records.n
        rows, places = motor_rows(model), records.layout.places
        table = [(m.control_low, m.control_high, m.gain, m.offset) for m in model.motors]
        low, high, gain, offset = np.array(table).reshape(-1, 4).T
        columns: list[int] = []
        further: list[tuple[int, int, float, float]] = []
        for k, (motor, row) in enumerate(zip(model.motors, rows, strict=True)):
            at = [places[f"motors/{name}"].start + row.start for name in controlled_numbers(motor.control)]
            columns.append(-1 if motor.ball else at[0])
            gains = zip(at[1:], motor.slopes, (motor.stiffness, motor.damping), strict=False)
            further += [(k, column, slope, first_gain) for column, slope, first_gain in gains]
        motor_of, column_of, slopes, offsets = np.array(further, np.float64).reshape(-1, 4).T
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
            further_motor=motor_of.astype(np.int32),
            further_column=column_of.astype(np.int32),
            further_gain=slopes.copy(),
            further_offset=offsets.copy(),
        )
        self.values: Array = self._block.values.reshape(n, len(first))

    def checked(self, ctrl: ArrayLike, *, one_row: bool = False) -> Array:
        """Checked controls: one row for all worlds or, unless `one` is set, a row for each."""
        given, (n, motors) = real_numbers("ctrl", ctrl), self.values.shape
        shapes = ((motors,),) if one_row else ((motors,), (n, motors))
        if given.shape not in shapes or not np.isfinite(given).all():
            told = " or ".join(map(str, shapes))
            raise ValueError(f"ctrl must be {told} finite numbers, one for each motor")
        if self._plain.elem == "f32":
            check_range({"ctrl": given})
        return given

    def apply(self) -> None:
        """Apply changed controls. Worlds with non-finite controls diverge."""
        if len(self.motors):
            fault = control[self._plain](self._records.block.handle, self._block.handle)
            if fault != FINE:
                raise ValueError(f'motor "{self.motors[fault].name}" turns a ball joint: it has no control')
