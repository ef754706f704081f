"""Names of bones: which side a joint is on, and which part of a body it moves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_SIDES = (("Left", "Right"), ("left", "right"), ("LEFT", "RIGHT"))
#: a letter that stands for a side: alone between marks, or before a capital
_LETTER = re.compile(r"(?<![A-Za-z])([LlRr])(?![a-z])|(?<=[a-z])([LR])(?![A-Za-z])")
_OTHER = {"L": "R", "R": "L", "l": "r", "r": "l"}


def other_side(name: str, names: Sequence[str]) -> str | None:
    """The name on the other side of the body, None for what is in the middle.

    >>> other_side("mixamorig:LeftArm", ["mixamorig:RightArm"]), other_side("thigh_l", ["thigh_r"])
    ('mixamorig:RightArm', 'thigh_r')
    """
    return next((candidate for candidate in _others(name) if candidate in names and candidate != name), None)


def _others(name: str) -> Iterator[str]:
    for left, right in _SIDES:
        if left in name:
            yield name.replace(left, right)
        if right in name:
            yield name.replace(right, left)
    for found in _LETTER.finditer(name):
        yield name[: found.start()] + _OTHER[found[0]] + name[found.end() :]


def mirror_order(names: Sequence[str], parents: NDArray[np.int64], pairs: Mapping[str, str]) -> NDArray[np.int64]:
    """For each joint the index of the one that it does as in a mirror."""
    place = {name: index for index, name in enumerate(names)}
    given = {**{b: a for a, b in pairs.items()}, **pairs}
    for name in given:
        if name not in place:
            raise ValueError(f'pairs: there is no joint "{name}"')
    order = np.arange(len(names))
    for name, index in place.items():
        partner = given.get(name, other_side(name, names))
        order[index] = place[partner] if partner is not None else index
    for index, across in enumerate(order.tolist()):
        if order[across] != index:
            raise ValueError(f'pairs: "{names[index]}" and "{names[across]}" are not each other\'s mirror; pair them')
        above, beyond = int(parents[index]), int(parents[across])
        if (above < 0) != (beyond < 0) or (above >= 0 and order[above] != beyond):
            raise ValueError(
                f'pairs: "{names[index]}" and "{names[across]}" hang on joints that are not each other\'s mirror'
            )
    return order
