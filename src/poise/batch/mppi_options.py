"""Checks of the options of MPPI."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def number_in(name: str, value: Any, low: float, high: float) -> float:
    """A finite number from `low` to `high`."""
    fits = not isinstance(value, bool) and isinstance(value, Real) and np.isfinite(float(value))
    if not fits or not low <= float(value) <= high:
        most = "" if high == np.inf else f", {high:g} at most"
        raise ValueError(f"{name} is {value!r}; it must be a number, {low:g} at least{most}")
    return float(value)


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number, `least` or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return int(value)


def steps_within(horizon: float, every: Any, dt: float) -> int:
    """Steps from one evaluated moment to the next; the first must be within the horizon."""
    steps = whole_number("every", every, 1)
    if steps * dt > horizon * (1.0 + 1e-9):
        what = f"every is {every}: {steps * dt:g} s of steps"
        raise ValueError(f"{what}; it must not be longer than the horizon, {horizon:g} s")
    return steps


def seed_of(value: Any) -> int:
    """A seed for NumPy's generator."""
    return whole_number("seed", value, 0)


def checked_channels(channels: ArrayLike, nv: int) -> Floats:
    """(k, nv) effect of each control on degrees of freedom."""
    given = np.array(channels, np.float64)
    if given.ndim != 2 or given.shape[1] != nv or not len(given) or not np.isfinite(given).all():
        raise ValueError(f"channels must be (k, {nv}) finite numbers, a row for each control; found {given.shape}")
    return given


def checked_row(name: str, value: ArrayLike, k: int, *, unbounded: bool = False) -> Floats:
    """(k,) positive numbers, from one number or k of them."""
    given = np.asarray(value, np.float64)
    if given.shape not in ((), (k,)):
        raise ValueError(f"{name} has the shape {given.shape}; it must be one number, or {k} of them")
    if not (given > 0.0).all() or not (unbounded or np.isfinite(given).all()):
        raise ValueError(f"{name} is {value!r}; it must be positive")
    return np.broadcast_to(given, (k,)).copy()
