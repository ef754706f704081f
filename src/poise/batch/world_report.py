"""Report of the last step of one world of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES, UPPER
from poise.constraints.row_store import CONTACT, SINGLE, STRIDES
from poise.formulations.driver import STATUSES
from poise.formulations.lanes.batch_engine import Records
from poise.formulations.lanes.batch_kernels import N_TOLD, TOLD
from poise.model.model import Model
from poise.sim.step_report import StepReport

Array = NDArray[Any]


class WorldReport(StepReport):
    """The last step of one world of a batch."""

    def __init__(self, model: Model, records: Records, world: int, time: float, h: float) -> None:
        """`h`: length of the step (s)."""
        done = int(records.noted[world]) >= 0
        super().__init__(model, contact_frame(records, world, h), limits_of(model, records, world, h, done), h)
        told = dict(zip(TOLD, records.told.reshape(-1, N_TOLD)[world].tolist(), strict=True))
        self.time = time
        """s."""
        self.diverged = bool(records.lost[world])
        self.rows = int(told["rows"])
        self.sweeps = int(told["sweeps"])
        self.newton_steps = int(told["newton_steps"])
        self.residual = told["residual"]
        """Natural residual over the largest speed that the rows had to remove."""
        self.work = told["work"]
        """Work of all solves of the step, as `Reduced.budget` counts it."""
        self.status = STATUSES[int(told["status"])]
        """Status of the solve for multipliers: see `poise.Report`."""
        self.shift_status = STATUSES[int(told["shift_status"])]
        """Status of the post-stabilization, which corrects overlaps."""

    def __repr__(self) -> str:
        n = len(self._frame["depth"])
        return f"<WorldReport: {self.time:g} s, {n} contacts, {self.rows} rows, residual {self.residual:.2g}>"


def remembered(records: Records, world: int, kind: int) -> tuple[Array, Array]:
    """(n,) ids and (n, rows) multipliers of a world's blocks of a kind in its last step."""
    n, stride = int(records.count.reshape(records.n, -1)[world, kind]), STRIDES[kind]
    first_id, first = int(records.id_first[kind]), int(records.lam_first[kind])
    ids = records.id.reshape(records.n, -1)[world, first_id : first_id + n]
    lam = records.lam.reshape(records.n, -1)[world, first : first + n * stride]
    return ids.copy(), np.asarray(lam, np.float64).reshape(n, stride)


def contact_frame(records: Records, world: int, h: float) -> Mapping[str, Array]:
    """A frame with the coordinates of a world and the contacts of its last step, of length h (s)."""
    n, first = max(int(records.noted[world]), 0), world * records.room[CONTACT]
    shapes = records.shape[2 * first : 2 * (first + n)].reshape(n, 2)
    made = shapes[:, 0] >= 0
    places = {name: np.array(getattr(records, name)[first : first + n][made], np.float64) for name in _PLACES}
    force = remembered(records, world, CONTACT)[1][:n][made] / h
    q = np.array(records.of("q")[world : world + 1], np.float64)
    return {"q": q, "shapes": shapes[made], "force": force} | places


_PLACES = ("point", "normal", "depth")


def limits_of(model: Model, records: Records, world: int, h: float, done: bool) -> tuple[Array, Array, Array]:
    """Ids, forces and directions of a world's rows of one coordinate in its last step; none before the first step
    (`done`).
    """
    ids, impulses = remembered(records, world, SINGLE)
    along = np.where((ids % CODES == UPPER) & (ids < CODES * model.nv), -1.0, 1.0)
    n = len(ids) if done else 0
    return ids[:n], impulses[:n, 0] / h, along[:n]
