"""The slots of a state: their readers and writers, and the checks before a world changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import SceneError

Array = NDArray[Any]


class StateFields(NamedTuple):
    """State of one part of a world from step to step, registered by that part.

    These and coordinates, velocities and time are all that the next steps depend on: states, copies, pickles and the
    rollback of failed steps use them.

    >>> counter = np.zeros(1)
    >>> StateFields("counter", lambda: {"counter": counter.copy()}, lambda check: None, lambda slots: None).read()
    {'counter': array([0.])}
    """

    owner: str
    read: Callable[[], dict[str, Array]]
    """Copies of the arrays, by the names of their slots."""
    check: Callable[[SlotCheck], None]
    """Raise for invalid slots, before any part writes its own."""
    write: Callable[[Mapping[str, Array]], None]
    """Write the slots to the part; without slots, reset it to its initial state."""


class SlotCheck:
    """Slots of a state during their check. Numbers are checked for NaN at the end, all at once.

    >>> check = SlotCheck({"held/keys": np.zeros(2)})
    >>> check.fits("held/keys", (3,), np.float64)
    Traceback (most recent call last):
        ...
    poise.model.errors.SceneError: slot "held/keys": must be float64 of shape (3,), found float64 of shape (2,)
    """

    def __init__(self, slots: Mapping[str, Array]) -> None:
        self.slots = slots
        self._floats: list[tuple[str, Array]] = []
        self._finite: list[tuple[str, Array]] = []

    def fail(self, name: str, why: str) -> NoReturn:
        """Raise SceneError for a slot."""
        raise SceneError(why, field=f'slot "{name}"')

    def array(self, name: str) -> Array:
        """A required slot."""
        if name not in self.slots:
            self.fail(name, "is missing; a state has all slots of its sort, or none")
        array: Any = self.slots[name]
        if not isinstance(array, np.ndarray):
            self.fail(name, f"must be an array, found a {type(array).__name__}")
        return array

    def fits(self, name: str, shape: tuple[int, ...], dtype: Any, *, infinite: bool = False) -> Array:
        """A slot of a shape and a type, without NaN, and finite unless it may be infinite."""
        array = self.array(name)
        if array.shape != shape or array.dtype != dtype:
            found = f"found {array.dtype} of shape {array.shape}"
            self.fail(name, f"must be {np.dtype(dtype)} of shape {shape}, {found}")
        if array.dtype.kind == "f":
            (self._floats if infinite else self._finite).append((name, array))
        return array

    def like(self, name: str, held: Array, *, infinite: bool = False) -> Array:
        """A slot with the shape and type of an array."""
        return self.fits(name, held.shape, held.dtype, infinite=infinite)

    def within(self, name: str, low: int, high: int) -> None:
        """Integers from `low` to `high`, both included."""
        array = self.array(name)
        if array.size and (array.min() < low or array.max() > high):
            self.fail(name, f"must be from {low} to {high}, found {array.min()} to {array.max()}")

    def finish(self) -> None:
        """Check that no number is NaN, and that numbers are finite where required."""
        for parts, is_good, what in ((self._floats, _is_number, "no NaN"), (self._finite, np.isfinite, "finite")):
            if parts and not is_good(np.concatenate([array.reshape(-1) for _, array in parts])).all():
                name, array = next((name, array) for name, array in parts if not is_good(array).all())
                self.fail(name, f"must be {what}, found {array[~is_good(array)].reshape(-1)[0]}")


def _is_number(array: Array) -> Array:
    return np.asarray(~np.isnan(array))
