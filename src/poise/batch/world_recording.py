"""Recordings of chosen worlds of a batch, frame by frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.batch.world_report import contact_frame
from poise.dynamics.state_queries import energy
from poise.formulations.formulation_registry import Formulation
from poise.formulations.lanes.batch_engine import Records
from poise.formulations.lanes.batch_kernels import N_TOLD, TOLD
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.sim.recorder import versions
from poise.sim.recording import Contacts, Recording

Array = NDArray[Any]
PARTS = ("contacts", "energy", "solver")
"""Parts that can be recorded besides time and state."""
_COUNTED = ("rows", "sweeps", "newton_steps")


def checked_parts(record: Any) -> tuple[str, ...]:
    """Checked names of parts to record."""
    names = tuple(dict.fromkeys([record] if isinstance(record, str) else record))
    for name in names:
        if name not in PARTS:
            raise ValueError(
                f"{name!r} cannot be recorded in a batch{did_you_mean(name, PARTS)}; there are {', '.join(PARTS)}"
            )
    return names


class WorldsRecorder:
    """Frames of chosen worlds, in memory that is allocated once; except contacts, which differ in number."""

    def __init__(self, model: Model, records: Records, worlds: Array, frames: int, record: tuple[str, ...]) -> None:
        self._model, self._records, self._worlds, self._record = model, records, worlds, record
        n = len(worlds)
        self._time = np.zeros((frames, n))
        self._q, self._v = np.zeros((frames, n, model.nq)), np.zeros((frames, n, model.nv))
        self._told = np.zeros((frames, n, N_TOLD))
        self._contacts: list[list[Mapping[str, Array]]] = [[] for _ in range(n)]
        self._count = 0

    def take(self, lengths: Array) -> None:
        """Record a frame of each world now; (n,) lengths of their last steps (s), 0 before the first step."""
        records, k = self._records, self._count
        self._time[k] = records.time[self._worlds]
        self._q[k], self._v[k] = records.of("q")[self._worlds], records.of("v")[self._worlds]
        self._told[k] = records.told.reshape(-1, N_TOLD)[self._worlds]
        if "contacts" in self._record:
            for kept, world in zip(self._contacts, self._worlds.tolist(), strict=True):
                kept.append(contact_frame(records, world, lengths[world] or 1.0))
        self._count += 1

    def finished(self, options: dict[str, Any]) -> list[Recording]:
        """A recording of each world; of a diverged one, up to its last valid step."""
        return [self._recording(k, options) for k in range(len(self._worlds))]

    def _recording(self, k: int, options: dict[str, Any]) -> Recording:
        time = self._time[: self._count, k]
        n = 1 + int(np.count_nonzero(np.diff(time) > 0.0))  # the time of a diverged world does not advance
        q, v, told = (array[:n, k].copy() for array in (self._q, self._v, self._told))
        columns = {name: told[:, TOLD.index(name)] for name in (*_COUNTED, "residual")}
        solver = {name: column.astype(np.int64) if name in _COUNTED else column for name, column in columns.items()}
        return Recording(
            time[:n].copy(),
            q,
            v,
            self._model,
            _joined(self._contacts[k][:n]) if "contacts" in self._record else None,
            energy(self._model, q, v) if "energy" in self._record else None,
            solver if "solver" in self._record else {},
            options=options,
        )


def _joined(frames: list[Mapping[str, Array]]) -> Contacts:
    start = np.cumsum([0, *(len(frame["depth"]) for frame in frames)]).astype(np.int64)
    parts = (np.concatenate([frame[name] for frame in frames]) for name in _CONTACT_PARTS)
    return Contacts(start, *parts)


_CONTACT_PARTS = ("shapes", "point", "normal", "depth", "force")


def options_of(formulation: Formulation, dt: float, precision: str, record: tuple[str, ...]) -> dict[str, Any]:
    """Formulation, solver options and versions, as plain text and numbers."""
    chosen = {"name": type(formulation).__name__} | asdict(formulation)
    found = {"dt": dt, "formulation": chosen, "precision": precision, "versions": dict(versions())}
    return found | {"record": list(record)}
