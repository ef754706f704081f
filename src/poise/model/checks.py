"""Small checks that collect all problems instead of stopping at the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from poise.model.errors import Problem


class Checker:
    """Collects problems, with the file, the line and the part of the scene that it checks."""

    def __init__(self, file: str | None = None, line: int | None = None, place: str = "") -> None:
        self.file = file
        self.line = line
        self.place = place
        self.problems: list[Problem] = []

    def at(self, place: str, line: int | None = None) -> Checker:
        """A checker for a part, with the same list of problems."""
        part = Checker(self.file, self.line if line is None else line, self._field(place))
        part.problems = self.problems
        return part

    def _field(self, field: str) -> str:
        return f"{self.place}: {field}" if self.place and field else self.place or field

    def fail(self, field: str, message: str) -> None:
        """Add a problem of a field of this part."""
        self.problems.append(Problem(message, self.file, self.line, self._field(field) or None))

    def text(self, field: str, value: object) -> bool:
        """Check for text that is not empty."""
        if isinstance(value, str) and value:
            return True
        self.fail(field, f"must be text that is not empty, found {value!r}")
        return False

    def number(
        self, field: str, value: object, *, positive: bool = False, negative: bool = True, infinite: bool = False
    ) -> float | None:
        """A real number: with `positive` more than 0, without `negative` 0 or more."""
        # plain floats first: large scenes are made of them
        if type(value) is not float:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
                self.fail(field, f"must be a number, found {value!r}")
                return None
            try:
                value = float(value)
            except OverflowError:
                self.fail(field, "must be a finite number, found one with more than 308 digits")
                return None
        if not math.isfinite(value) and not (infinite and not math.isnan(value)):
            self.fail(field, f"must be a finite number, found {value}")
            return None
        if positive and value <= 0.0:
            self.fail(field, f"must be more than 0, found {value:g}")
            return None
        if not negative and value < 0.0:
            self.fail(field, f"must be 0 or more, found {value:g}")
            return None
        return value

    def numbers(self, field: str, value: object, count: int | None, **rules: bool) -> tuple[float, ...] | None:
        """A sequence of `count` numbers (of any length when None)."""
        items = as_sequence(value)
        wanted = "numbers" if count is None else f"{count} numbers"
        if items is None:
            self.fail(field, f"must be {wanted}, found {shown(value)}")
            return None
        if count is not None and len(items) != count:
            self.fail(field, f"must be {wanted}, found {len(items)}: {shown(value)}")
            return None
        checked = [self.number(f"{field}[{k}]", item, **rules) for k, item in enumerate(items)]
        found = tuple(number for number in checked if number is not None)
        return found if len(found) == len(items) else None

    def direction(self, field: str, value: object) -> tuple[float, ...] | None:
        """A nonzero vector of three numbers."""
        vector = self.numbers(field, value, 3)
        if vector is not None and not any(vector):
            self.fail(field, "must point somewhere, found (0, 0, 0)")
            return None
        return vector

    def quaternion(self, field: str, value: object) -> None:
        """Four numbers (w, x, y, z) of nonzero length; they are normalized later."""
        quat = self.numbers(field, value, 4)
        if quat is not None and not any(quat):
            self.fail(field, "must be a rotation (w, x, y, z), found (0, 0, 0, 0); no rotation is (1, 0, 0, 0)")

    def bounds(self, field: str, value: object) -> None:
        """A pair (lower, upper), either of which may be infinite."""
        pair = self.numbers(field, value, 2, infinite=True)
        if pair is None:
            return
        low, high = pair
        if low > high:
            self.fail(
                field, f"lower must not exceed upper, found ({low:g}, {high:g}), did you mean ({high:g}, {low:g})?"
            )
        elif low == math.inf or high == -math.inf:
            self.fail(field, f"must leave room to move, found ({low:g}, {high:g})")


def as_sequence(value: object) -> Sequence[Any] | None:
    """The items of a tuple, list or one-dimensional array; None for anything else."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        items: list[Any] = value.tolist()
        return items
    return None


def shown(value: object) -> str:
    """A value as text that fits on a line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
