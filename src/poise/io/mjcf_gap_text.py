"""Sentences about elements of a MuJoCo model, with counts and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: names that a sentence lists before it only counts
_MOST_NAMES = 12
#: MuJoCo's own softness of constraints
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)


def named(count: int, what: str, names: Sequence[str] = (), whats: str | None = None) -> str:
    """A count with its noun and names.

    >>> named(2, "site", ["tip", "toe"])
    '2 sites (tip, toe)'
    """
    listed = [name for name in names if name]
    shown = ", ".join(listed[:_MOST_NAMES])
    if len(listed) > _MOST_NAMES:
        shown += f" and {len(listed) - _MOST_NAMES} more"
    noun = what if count == 1 else whats or what + "s"
    return f"{count} {noun} ({shown})" if shown else f"{count} {noun}"


def sentence(chosen: Any, names: Sequence[str], what: str, fate: str, whats: str | None = None) -> list[str]:
    """One sentence about the elements that `chosen` (a mask) selects, none if it selects nothing."""
    found = [int(i) for i in np.flatnonzero(chosen)]
    if not found:
        return []
    return [f"{named(len(found), what, [names[i] for i in found], whats)} {fate}."]


def rows_differ(array: Any, usual: Any) -> Any:
    """Mask of the rows that are not the usual one."""
    rows = np.asarray(array)
    return np.any(~np.isclose(rows, usual).reshape(len(rows), -1), axis=1) if len(rows) else np.zeros(0, dtype=bool)


def soft(solref: Any, solimp: Any) -> Any:
    """Mask of the constraints whose softness is not MuJoCo's own."""
    return rows_differ(solref, SOLREF) | rows_differ(solimp, SOLIMP)


def nonzero(model: Any, field: str) -> Any:
    """Mask of the rows of a field with anything but zero; nothing where this version of MuJoCo has no such field."""
    rows = np.asarray(getattr(model, field, np.zeros((0, 1))))
    return np.any(rows.reshape(len(rows), -1), axis=1) if len(rows) else np.zeros(0, dtype=bool)
