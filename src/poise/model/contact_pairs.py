"""Contact pairs: two shapes that collide regardless of groups, parents and excluded pairs, with their own friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.checks import Checker, as_sequence, shown
from poise.model.errors import did_you_mean

if TYPE_CHECKING:
    from poise.model.scene import Body

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
FRICTIONS = ("friction", "torsional_friction", "rolling_friction")


@dataclass
class ContactPair:
    """Two shapes that collide regardless of groups, parents and excluded pairs, with their own friction.

    A shape is identified by its body and its number on that body, from 0. The coefficients replace the combined ones of
    the two materials. Shapes on one link, and two static shapes, do not collide.

    >>> ContactPair(("floor", 0), ("foot", 1), friction=0.6).second
    ('foot', 1)
    """

    first: tuple[str, int]
    """Name of a body, and number of its shape."""
    second: tuple[str, int]
    friction: float = 0.8
    """Coulomb coefficient, sliding; inf: never slips."""
    torsional_friction: float = 0.0
    """Torque about the normal, over the normal force; m."""
    rolling_friction: float = 0.0
    """Torque along the surface, over the normal force; m."""


def check_contact_pair(check: Checker, pair: ContactPair, bodies: Sequence[Body]) -> None:
    """Collect the problems of a contact pair."""
    ends = [_checked_end(check, field, getattr(pair, field), bodies) for field in ("first", "second")]
    if None not in ends and ends[0] == ends[1]:
        check.fail("second", f"must be another shape than the first, found {shown(pair.second)} twice")
    for field in FRICTIONS:
        check.number(field, getattr(pair, field), negative=False, infinite=True)


def _checked_end(check: Checker, field: str, end: object, bodies: Sequence[Body]) -> tuple[str, int] | None:
    """A shape that can collide, None after a problem."""
    items = as_sequence(end)
    if items is None or len(items) != 2 or not isinstance(items[0], str) or not _is_whole(items[1]):
        check.fail(field, f"must be the name of a body and the number of a shape on it, found {shown(end)}")
        return None
    name, number = items[0], int(items[1])
    body = next((body for body in bodies if body.name == name), None)
    if body is None:
        check.fail(field, f'there is no body "{name}"{did_you_mean(name, [one.name for one in bodies])}')
        return None
    count = len(as_sequence(body.shapes) or ())
    if not 0 <= number < count:
        check.fail(field, f'body "{name}" has {count} shapes, counted from 0, found {number}')
        return None
    shape: Any = body.shapes[number]
    if getattr(shape, "group", 1) == 0 and getattr(shape, "mask", 1) == 0:
        what = f'shape {number} of body "{name}" is visual only (group and mask 0); give it a group'
        check.fail(field, what)
        return None
    return name, number


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def gather_contact_pairs(pairs: Sequence[ContactPair], bodies: Sequence[Body]) -> tuple[Indices, Floats]:
    """(n, 2) shapes and (n, 3) sliding, torsional and rolling friction. The last one of equal pairs counts."""
    starts = np.concatenate(([0], np.cumsum([len(body.shapes) for body in bodies]))).astype(np.int64)
    first_of = {body.name: int(start) for body, start in zip(bodies, starts, strict=False)}
    found: dict[tuple[int, int], list[float]] = {}
    for pair in pairs:
        one, other = (first_of[name] + int(number) for name, number in (pair.first, pair.second))
        found[min(one, other), max(one, other)] = [float(getattr(pair, field)) for field in FRICTIONS]
    shapes = np.array(sorted(found), np.int32).reshape(-1, 2)
    return shapes, np.array([found[key] for key in sorted(found)], np.float64).reshape(-1, 3)
