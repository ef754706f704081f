"""What happened in the last step of one world of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.pipeline import Collider
from poise.constraints.guest_rows import USERS
from poise.constraints.limit_rows import CODES, UPPER
from poise.constraints.store import CONTACT, SINGLE, STRIDES
from poise.formulations.crowd import Records
from poise.model.model import Model
from poise.sim.report import ContactReport, LimitReport, limit_of

Array = NDArray[Any]
AHEAD = 0.05
"""Gap up to which contacts are looked for; m."""


@dataclass(frozen=True)
class WorldReport:
    """The last step of one world of a batch."""

    time: float
    """s."""
    diverged: bool
    contacts: list[ContactReport]
    """Those that had a force in the last step, where they are now."""
    limits: list[LimitReport]
    rows: int
    sweeps: int
    newton_steps: int
    residual: float
    """Natural residual over the largest speed that the rows had to take away."""
    work: float
    """Of all solves of the step, as `Reduced.budget` counts it."""
    status: str
    """Of the rows' multipliers: see `poise.Report`."""
    shift_status: str
    """Of the displacements that mend overlaps, likewise."""
    overlap: float
    """Of all contacts as they are now, the deepest; 0 where there is none; m."""
    beyond: float
    """Farthest that a coordinate is past its limit now; 0 where none is; rad or m."""


def remembered(records: Records, world: int, kind: int) -> tuple[Array, Array]:
    """(n,) ids and (n, rows) multipliers of the blocks of a kind that a world had in its last step."""
    n, stride = int(records.count.reshape(records.n, -1)[world, kind]), STRIDES[kind]
    first_id, first = int(records.id_first[kind]), int(records.lam_first[kind])
    ids = records.id.reshape(records.n, -1)[world, first_id : first_id + n]
    lam = records.lam.reshape(records.n, -1)[world, first : first + n * stride]
    return ids.copy(), np.asarray(lam, np.float64).reshape(n, stride)


def contacts_of(
    model: Model, records: Records, world: int, q: Array, h: float, there: Array | None = None
) -> tuple[list[ContactReport], float]:
    """Contacts that had a force in the last step, of length h (s), where they are now; and the deepest overlap (m).

    `there`: (shapes,) which of them the world has, where not all.
    """
    collider = Collider(model)
    collider.place(q)
    collider.touch(AHEAD)
    ids, impulses = remembered(records, world, CONTACT)
    impulse_of = dict(zip(ids.tolist(), impulses, strict=True))
    names, body, told, deepest = model.solids.names, model.solids.body, [], 0.0
    for contact in collider.contacts():
        if there is not None and not (there[contact.a] and there[contact.b]):
            continue
        deepest = max(deepest, contact.depth)
        if contact.id in impulse_of:
            impulse = impulse_of[contact.id]
            told.append(
                ContactReport(
                    model.body_names[int(body[contact.a])],
                    model.body_names[int(body[contact.b])],
                    contact.point,
                    contact.normal,
                    contact.depth,
                    impulse / h,
                    names[contact.a],
                    names[contact.b],
                    impulse,
                )
            )
    return told, deepest


def limits_of(model: Model, records: Records, world: int, h: float) -> list[LimitReport]:
    """Limits and frictions of joints that had rows in the last step."""
    ids, impulses = remembered(records, world, SINGLE)
    return [
        limit_of(model, id, float(impulse[0]) / h, -1.0 if id % CODES == UPPER and id < CODES * model.nv else 1.0)
        for id, impulse in zip(ids.tolist(), impulses, strict=True)
        if 0 <= id < USERS
    ]
