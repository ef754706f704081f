"""What a row may be given, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isnan

import numpy as np
from numpy.typing import ArrayLike, NDArray

NUMBERS = ("phi", "gamma", "target", "a_ref", "alpha", "beta", "lo", "hi", "erp", "cfm")
"""Fields of a row that may be given as numbers."""
_DEFAULTS = dict.fromkeys(NUMBERS, 0.0) | {"lo": -inf, "hi": inf, "erp": 1.0}


@dataclass(frozen=True)
class Term:
    """A part of a row's Jacobian: six numbers on a body's twist, or one on a coordinate."""

    body: str | int | None = None
    J: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """(6,) on (ω, v) at the centre of mass, world axes."""
    dof: str | int | None = None
    coefficient: float = 1.0


def six(name: str, J: ArrayLike | None) -> NDArray[np.float64]:
    """A covector on (ω, v)."""
    array = np.zeros(6) if J is None else np.asarray(J, np.float64)
    if array.shape != (6,) or not np.isfinite(array).all():
        raise ValueError(f"{name} is {J!r}; it must be six finite numbers, on (ω, v)")
    return array


def finite(name: str, value: float) -> float:
    """A number that is neither infinite nor NaN."""
    if not np.isfinite(value):
        raise ValueError(f"{name} is {value}; it must be finite")
    return float(value)


def checked_numbers(numbers: Mapping[str, float]) -> dict[str, float]:
    """All numbers of a row, those that are missing by default."""
    if unknown := sorted(numbers.keys() - set(NUMBERS)):
        raise ValueError(f"a row has no {', '.join(unknown)}; its numbers are {', '.join(NUMBERS)}")
    whole = _DEFAULTS | {name: float(value) for name, value in numbers.items()}
    for name, value in whole.items():
        if isnan(value) or (name not in ("lo", "hi") and not np.isfinite(value)):
            raise ValueError(f"{name} is {value}; it must be a finite number")
    if whole["lo"] > whole["hi"] or whole["lo"] == inf or whole["hi"] == -inf:
        raise ValueError(f"lo is {whole['lo']} and hi {whole['hi']}; lo must not be above hi")
    if whole["cfm"] < 0.0 or not 0.0 <= whole["erp"] <= 1.0:
        raise ValueError(f"erp is {whole['erp']} and cfm {whole['cfm']}; erp is from 0 to 1, cfm 0 or more")
    return whole
