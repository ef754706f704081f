"""Validation of arguments of curves and clips. Errors state the found and the expected value."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.rotations import quat_normalize

Floats = NDArray[np.float64]


def vectors(field: str, value: ArrayLike, shape: Sequence[int | EllipsisType]) -> Floats:
    """A finite array of the expected shape, or a `ValueError` with the found one; `...` stands for any axes."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{field}: must be numbers, found {value!r:.80}") from None
    wanted = tuple(shape)
    fixed = wanted[:-1] if wanted and wanted[-1] is ... else wanted
    found = array.shape[: len(fixed)] if fixed is not wanted else array.shape
    if found != fixed:
        told = str(wanted).replace("Ellipsis", "…")
        raise ValueError(f"{field}: must have the shape {told}, found {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{field}: must be finite, found {array[~np.isfinite(array)].ravel()[0]}")
    return array


def unit_quats(field: str, value: ArrayLike, shape: Sequence[int | EllipsisType]) -> Floats:
    """Unit quaternions of the expected shape."""
    quats = vectors(field, value, shape)
    if quats.shape[-1:] != (4,):
        raise ValueError(f"{field}: must be rotations (w, x, y, z), found the shape {quats.shape}")
    if not np.any(quats != 0.0, axis=-1).all():
        raise ValueError(f"{field}: must be rotations (w, x, y, z), found (0, 0, 0, 0); no rotation is (1, 0, 0, 0)")
    return quat_normalize(quats)


def key_times(times: ArrayLike) -> Floats:
    """Increasing, finite times (n,), at least one."""
    try:
        array = np.array(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"times: must be numbers, found {times!r:.80}") from None
    if array.ndim != 1 or not len(array):
        raise ValueError(f"times: must be a list of at least one time, found an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("times: must be finite")
    late = np.flatnonzero(np.diff(array) <= 0.0)
    if len(late):
        k = int(late[0])
        raise ValueError(f"times: must increase, found {array[k]:g} s followed by {array[k + 1]:g} s at index {k + 1}")
    return array


def finite_times(times: ArrayLike) -> Floats:
    """Finite times of any shape."""
    try:
        array = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"times: must be numbers of seconds, found {times!r:.80}") from None
    if not np.isfinite(array).all():
        raise ValueError("times: must be finite")
    return array


def choice(field: str, value: Any, choices: Sequence[str]) -> Any:
    """Validate a choice."""
    if value not in choices:
        near = get_close_matches(str(value), choices, n=1)
        hint = f', did you mean "{near[0]}"?' if near else ""
        listed = ", ".join(f'"{word}"' for word in choices)
        raise ValueError(f"{field}: must be one of {listed}, found {value!r}{hint}")
    return value


def positive(field: str, value: Any, unit: str = "s") -> float:
    """A finite number that is more than 0."""
    number = float(vectors(field, value, ()))
    if number <= 0.0:
        raise ValueError(f"{field}: must be more than 0 {unit}, found {number:g}")
    return number


class Frozen:
    """Base class of immutable objects; their arrays are read-only."""

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            self.__dict__[name] = value

    def __setstate__(self, state: dict[str, Any]) -> None:
        # unpickled arrays are writeable
        self._set(**state)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make another with its methods")
