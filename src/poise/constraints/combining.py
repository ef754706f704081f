"""Combined coefficients of a contact, from those of its two surfaces: the same formulas for worlds, batches and Python.

The model defines the rule (`poise.model.surface_rules`). 0 times infinity is 0. Infinity and very large coefficients
are clamped to the largest that solvers take.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.kernel.scalars import maximum, minimum, select, sqrt, zero
from poise.kernel.trace import formula
from poise.model.shape_arrays import Solids
from poise.model.surface_rules import Combine
from poise.solve.cones import NEVER_SLIPS

AVERAGE, GEOMETRIC, MINIMUM, MULTIPLY = Combine.AVERAGE, Combine.GEOMETRIC, Combine.MINIMUM, Combine.MULTIPLY
MAXIMUM, FIRST, SECOND = Combine.MAXIMUM, Combine.FIRST, Combine.SECOND


class Combined(NamedTuple):
    """Coefficients of a contact between two shapes."""

    friction: float
    """Sliding; 1."""
    torsional_friction: float
    """m."""
    rolling_friction: float
    """m."""
    restitution: float
    """1."""


@formula
def combine(rule: Any, a: Any, b: Any) -> Any:
    """The coefficient of two surfaces by a rule; 0 where the rule is `Combine.NONE`."""
    none = zero(a)
    product = a * b
    product = select(product == product, product, none)
    mixed = select(rule == AVERAGE, 0.5 * a + 0.5 * b, none)
    mixed = select(rule == GEOMETRIC, sqrt(product), mixed)
    mixed = select(rule == MINIMUM, minimum(a, b), mixed)
    mixed = select(rule == MULTIPLY, product, mixed)
    mixed = select(rule == MAXIMUM, maximum(a, b), mixed)
    mixed = select(rule == FIRST, a, mixed)
    mixed = select(rule == SECOND, b, mixed)
    return minimum(mixed, none + NEVER_SLIPS)


def combined(solids: Solids, a: int, b: int) -> Combined:
    """The coefficients of a contact between two shapes of a model.

    >>> import poise
    >>> scene = poise.Scene(friction_combine="maximum")
    >>> _ = scene.add_ground(friction=1.0)
    >>> _ = scene.add(poise.box(1, 1, 1, material=poise.Material(friction=0.1)), position=(0, 0, 0.5))
    >>> combined(scene.compile().solids, 0, 1).friction
    1.0
    """
    rules = solids.surface_rules[solids.surface_kind[a], solids.surface_kind[b]].tolist()
    columns = [getattr(solids, name) for name in Combined._fields]
    pairs = [(float(of[a]), float(of[b])) for of in columns]
    return Combined(*(float(combine(rule, *pair)) for rule, pair in zip(rules, pairs, strict=True)))


def rolling_shapes(solids: Solids) -> NDArray[Any]:
    """Shapes with torsional or rolling friction in a contact with some other shape."""
    touches = (solids.group != 0) | (solids.mask != 0)
    found = np.zeros(len(solids), np.bool_)
    for column, name in enumerate(Combined._fields[1:3], 1):
        of = np.where(touches, getattr(solids, name), 0.0)
        most = np.zeros(len(solids.surface_rules))
        np.maximum.at(most, solids.surface_kind, of)
        for one, other in np.argwhere(solids.surface_rules[:, :, column] != Combine.NONE).tolist():
            rule = int(solids.surface_rules[one, other, column])
            if combine(rule, float(most[one]), float(most[other])) > 0.0:
                found |= touches & (solids.surface_kind == one) & ((of > 0.0) | (rule == Combine.SECOND))
    return np.flatnonzero(found)
