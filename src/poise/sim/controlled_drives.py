"""Drives that controllers return. Unlike drives that are assigned to a world, they are part of its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.functions import Drive
from poise.dynamics.simulation import Simulation
from poise.model.joints import Primitive
from poise.model.state_fields import SlotCheck

Array = NDArray[Any]
_FIELDS = ("gain_p", "gain_d", "goal_q", "goal_v")
_NAMES = ("on", *_FIELDS)
_GIVEN, _OWN = "drive/", "own_drive/"


class Driven(Simulation):
    """A simulation that keeps a controller's drive and the assigned drive separately."""

    _own_drive: dict[str, Array] | None = None
    """The assigned drive while a controller's drive replaces it, otherwise None. Never changed in place."""

    @property
    def drive(self) -> Drive | None:
        """Springs and dampers towards a goal, or None; assignable. A controller's drive is part of the state."""
        return super().drive

    @drive.setter
    def drive(self, drive: Drive | None) -> None:
        self._set_drive(drive)
        self._own_drive = None

    def _set_drive(self, drive: Drive | None) -> None:
        Simulation.drive.__set__(self, drive)  # type: ignore[attr-defined]

    def _take_drive(self, drive: Drive) -> None:
        """Use a controller's drive."""
        own = self._drive_now() if self._own_drive is None else self._own_drive
        self._set_drive(drive)
        self._own_drive = own

    def _take_drives(self, drives: Sequence[Drive]) -> None:
        """Merge drives of several controllers: each applies to the coordinates for which it has gains. The later drive
        wins where two have gains.
        """
        for number, drive in enumerate(drives):
            before = self._drive_now() if number else None
            self._take_drive(drive)
            if before is not None:
                now = self._drive_now()
                idle = (now["gain_p"] == 0.0) & (now["gain_d"] == 0.0)
                for name in ("gain_p", "gain_d", "goal_v"):
                    now[name][idle] = before[name][idle]
                spare = self._coordinates_of(idle)
                now["goal_q"][spare] = before["goal_q"][spare]
                self._lay_drive(now)

    def _coordinates_of(self, dofs: Array) -> Array:
        """(nq,) bool: the coordinates of these degrees of freedom; those of a rotation if all three are chosen."""
        model, chosen = self.model, np.zeros(self.model.nq, bool)
        for kind, q, v in zip(model.primitive_kind, model.primitive_q_start, model.primitive_v_start, strict=True):
            nq, nv = (4, 3) if kind == Primitive.BALL else (1, 1)
            chosen[q : q + nq] = dofs[v : v + nv].all()
        return chosen

    def _drive_now(self) -> dict[str, Array]:
        x = self._space.x
        return {"on": np.array(x.counts()["n_gains"])} | {name: x.arrays[name].copy() for name in _FIELDS}

    def _lay_drive(self, drive: Mapping[str, Array]) -> None:
        x = self._space.x
        x.set_count("n_gains", int(drive["on"]))
        for name in _FIELDS:
            x.arrays[name][...] = drive[name]

    def _drive_memory(self) -> dict[str, Array]:
        """State fields: the controller's drive and the assigned drive that it replaces."""
        if self._own_drive is None:
            return {}
        given = {f"{_GIVEN}{name}": array for name, array in self._drive_now().items()}
        return given | {f"{_OWN}{name}": array.copy() for name, array in self._own_drive.items()}

    def _check_drive_memory(self, check: SlotCheck) -> None:
        """Validate the drives of a state."""
        if f"{_GIVEN}on" in check.slots:
            now = self._drive_now()
            for start in (_GIVEN, _OWN):
                for name in _NAMES:
                    check.like(start + name, now[name])
                check.within(f"{start}on", 0, 1)

    def _remember_drive(self, slots: Mapping[str, Array]) -> None:
        """Restore the drives of a state; a state without them predates the controller's first drive."""
        if f"{_GIVEN}on" in slots:
            self._lay_drive({name: slots[f"{_GIVEN}{name}"] for name in _NAMES})
            self._own_drive = {name: slots[f"{_OWN}{name}"].copy() for name in _NAMES}
        elif self._own_drive is not None:
            self._lay_drive(self._own_drive)
            self._own_drive = None
