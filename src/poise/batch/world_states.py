"""States of single worlds of a batch, for saving and restoring: those of a `World`, with its slots."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.batch.batch_controls import WorldControls
from poise.constraints.row_store import KINDS, STRIDES
from poise.constraints.warm_start import COUNT, ID, IMPULSE, check_warm_start
from poise.dynamics.argument_checks import check_range, checked_row
from poise.formulations.lanes.batch_engine import Records
from poise.formulations.lanes.batch_kernels import N_TOLD
from poise.model.model import Model
from poise.model.state import State
from poise.model.state_fields import SlotCheck

Array = NDArray[Any]
CONTROL, LOOPS, UNSATURATED = "control", "loops/value", "motors/unsaturated"
_NUMBERS = {LOOPS: "loops", UNSATURATED: UNSATURATED}
"""Slots, and their fields in records."""


class WorldStates:
    """Reads and writes the states of worlds: coordinates, velocities, time, warm start, loops, motors, controls."""

    def __init__(self, model: Model, records: Records, controls: WorldControls) -> None:
        self._model, self._records, self._controls = model, records, controls

    def read(self, world: int) -> State:
        """The state of a world."""
        records = self._records
        q, v = (records.of(name)[world].astype(np.float64) for name in ("q", "v"))
        slots = {slot: records.of(name)[world].astype(np.float64) for slot, name in _NUMBERS.items()}
        slots = {slot: array for slot, array in slots.items() if array.size}
        if self._controls.values.shape[1]:
            slots[CONTROL] = self._controls.values[world].astype(np.float64)
        return State(q, v, float(records.time[world]), slots | self._warm_start(world))

    def _warm_start(self, world: int) -> dict[str, Array]:
        records = self._records
        count = records.count.reshape(records.n, -1)[world].copy()
        ids, impulses = (array.reshape(records.n, -1)[world] for array in (records.id, records.lam))
        id_parts, impulse_parts = [], []
        for kind, stride in enumerate(STRIDES):
            id_first, first, n = int(records.id_first[kind]), int(records.lam_first[kind]), int(count[kind])
            id_parts.append(ids[id_first : id_first + n])
            impulse_parts.append(impulses[first : first + n * stride])
        return {COUNT: count, ID: np.concatenate(id_parts), IMPULSE: np.concatenate(impulse_parts).astype(np.float64)}

    def check(self, state: Any) -> None:
        """Raise SceneError for an invalid state, with the name of the slot."""
        if not isinstance(state, State):
            raise TypeError(f"state must be a poise.State, not {type(state).__name__}")
        for name in ("q", "v"):
            checked_row(self._model, name, getattr(state, name))
        if not np.isfinite(state.time):
            raise ValueError(f"time is {state.time!r}; it must be a finite number of seconds")
        check = SlotCheck(state.slots)
        if COUNT in state.slots:
            check_warm_start(check)
        for slot, name in _NUMBERS.items():
            if slot in state.slots:
                check.fits(slot, self._records.of(name)[0].shape, np.float64)
        if CONTROL in state.slots:
            self._controls.checked(state.slots[CONTROL], one_row=True)
        check.finish()
        if self._records.width.elem == "f32":
            impulses = {IMPULSE: state.slots[IMPULSE]} if COUNT in state.slots else {}
            check_range({"q": np.asarray(state.q), "v": np.asarray(state.v), **impulses})

    def write(self, worlds: Array, state: State) -> None:
        """Set worlds to a checked state. Without a warm start, their next step starts from zero impulses."""
        records = self._records
        if COUNT in state.slots and (state.slots[COUNT] > records.room).any():
            records.remember_more(tuple(np.maximum(records.room, state.slots[COUNT]).tolist()))
        records.of("q")[worlds] = checked_row(self._model, "q", state.q)
        records.of("v")[worlds] = state.v
        records.of(UNSATURATED)[worlds] = 1.0
        for slot, name in _NUMBERS.items():
            if slot in state.slots:
                records.of(name)[worlds] = state.slots[slot]
        if CONTROL in state.slots:
            self._controls.values[worlds] = state.slots[CONTROL]
        records.forget(worlds)
        records.lost[worlds] = 0
        records.told.reshape(records.n, N_TOLD)[worlds] = 0.0
        records.time[worlds] = state.time
        if COUNT in state.slots:
            self._write_warm_start(worlds, state)

    def _write_warm_start(self, worlds: Array, state: State) -> None:
        records, count = self._records, state.slots[COUNT]
        records.count.reshape(records.n, -1)[worlds] = count
        ids, impulses = (array.reshape(records.n, -1) for array in (records.id, records.lam))
        block = row = 0
        for kind in range(len(KINDS)):
            n, stride = int(count[kind]), STRIDES[kind]
            id_first, first = int(records.id_first[kind]), int(records.lam_first[kind])
            ids[worlds, id_first : id_first + n] = state.slots[ID][block : block + n]
            impulses[worlds, first : first + n * stride] = state.slots[IMPULSE][row : row + n * stride]
            block, row = block + n, row + n * stride
