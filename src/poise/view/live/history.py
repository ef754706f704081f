"""History of a session: moments of a world in order, with a cursor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.state import State
from poise.sim.step_report import NO_CONTACTS, Pushing

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Moment:
    """A state, with results of the step before it."""

    state: State
    contacts: Pushing = NO_CONTACTS
    torque: Array = field(default_factory=lambda: np.zeros(0))
    """(nv,) forces of motors, drives, springs and dampers; N or N·m."""
    pull: tuple[Array, Array] | None = None
    """The dragged point and its target; (3,) m each."""

    @property
    def time(self) -> float:
        """s."""
        return self.state.time


class History:
    """The last `room` moments. Adding a moment while the cursor is in the past replaces the moments after it.

    >>> states = [State(np.zeros(1), np.zeros(1), float(time)) for time in range(3)]
    >>> history = History(10, map(Moment, states))
    >>> history.move(-2)
    >>> history.now.time, history.at_end
    (0.0, False)
    """

    def __init__(self, room: int, moments: Iterable[Moment] = ()) -> None:
        if room < 2:
            raise ValueError(f"room is {room}; a history holds 2 moments or more")
        self.room, self._moments, self.cursor = room, list(moments)[-room:], 0
        self.cursor = max(len(self._moments) - 1, 0)
        self.dropped = 0
        """Number of dropped moments."""

    def __len__(self) -> int:
        return len(self._moments)

    @property
    def now(self) -> Moment:
        """Position of the cursor."""
        return self._moments[self.cursor]

    @property
    def at_end(self) -> bool:
        """Whether the cursor is at the end."""
        return self.cursor == len(self._moments) - 1

    def add(self, moment: Moment) -> None:
        """Add a moment after the cursor."""
        self.cut()
        self._moments.append(moment)
        if len(self._moments) > self.room:
            # drop a tenth at a time: dropping one by one would move all others each time
            fewer = max(1, self.room // 10)
            del self._moments[:fewer]
            self.dropped += fewer
        self.cursor = len(self._moments) - 1

    def cut(self) -> None:
        """Remove the moments after the cursor."""
        del self._moments[self.cursor + 1 :]

    def move(self, by: int) -> None:
        """Move the cursor forward or back, within the history."""
        self.go(self.cursor + by)

    def go(self, index: int) -> None:
        """Move the cursor to a moment, or to the nearest existing one."""
        self.cursor = min(max(int(index), 0), len(self._moments) - 1)

    def find(self, time: float) -> int:
        """Number of the last moment that is not after a time (s)."""
        low, high = 0, len(self._moments) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._moments[middle].time <= time + 1e-9:
                low = middle
            else:
                high = middle - 1
        return low

    def span(self, seconds: float, most: int) -> list[Moment]:
        """At most `most` moments of some time up to the cursor, evenly spaced."""
        first = self.find(self.now.time - seconds)
        chosen = np.unique(np.linspace(first, self.cursor, min(most, self.cursor - first + 1)).round().astype(int))
        return [self._moments[k] for k in chosen]

    def all(self) -> list[Moment]:
        """All moments in the history."""
        return [*self._moments]
