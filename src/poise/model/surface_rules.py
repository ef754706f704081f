"""Combine rules: how the coefficients of two surfaces combine in a contact, precomputed for each pair.

A contact has one coefficient of each kind, from two surfaces. The rule that combines them is chosen as follows:

1. If `Material.priority` differs, the surface with the higher priority alone gives the coefficients.
2. Otherwise each surface has its own rule, or that of its scene. Of two different rules the later one in `RULES`
   applies, which is the precedence of combine modes in PhysX.
3. `condim` sets the kinds of friction of the contact (MuJoCo): that of the surface with the higher priority, otherwise
   the larger one.

Shapes with the same priority, rules and condim are one kind of surface. The model stores the kind of each shape and a
table of rules by pairs of kinds; kernels read only these.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.model.shapes import CombineRule, Material

Indices = NDArray[np.int32]


class Combine(IntEnum):
    """How a coefficient of a pair of surfaces is computed."""

    NONE = 0
    """The contact has no such friction."""
    AVERAGE = 1
    GEOMETRIC = 2
    MINIMUM = 3
    MULTIPLY = 4
    MAXIMUM = 5
    FIRST = 6
    """The coefficient of the first surface, whose priority is higher."""
    SECOND = 7


RULES: tuple[CombineRule, ...] = ("average", "geometric", "minimum", "multiply", "maximum")
"""In the order of their precedence."""
ROLLING_RULES = tuple(rule for rule in RULES if rule != "multiply")
"""Rules for rolling and torsional friction: these coefficients are lengths, whose product is not a length."""
CONDIMS = (1, 3, 4, 6)
"""No friction; sliding; and torsional; and rolling."""
COEFFICIENTS = ("friction", "torsional_friction", "rolling_friction", "restitution")
"""Columns of the table of rules."""
_FIRST_CONDIM = (3, 4, 6, 0)
"""Least condim of a contact that has each of these coefficients."""


class SceneRules(NamedTuple):
    """The rules of surfaces that set none."""

    friction: CombineRule = "geometric"
    rolling: CombineRule = "maximum"
    restitution: CombineRule = "maximum"


class _Kind(NamedTuple):
    """Properties that determine how a surface combines with others."""

    rules: SceneRules
    priority: int
    condim: int


def condim_of(material: Material) -> int:
    """The condim of a material: its own, or the least that has the friction with a coefficient above 0.

    >>> condim_of(Material()), condim_of(Material(rolling_friction=0.001)), condim_of(Material(condim=1))
    (3, 6, 1)
    """
    if material.condim is not None:
        return int(material.condim)
    return 6 if material.rolling_friction > 0.0 else 4 if material.torsional_friction > 0.0 else 3


def surface_kinds(materials: Sequence[Material], rules: SceneRules) -> tuple[Indices, Indices]:
    """(n,) the kind of each surface, and (kinds, kinds, 4) a `Combine` for each pair of kinds and coefficient.

    >>> rough, slick = Material(friction_combine="maximum"), Material(priority=1)
    >>> kinds, table = surface_kinds([rough, rough, slick, Material()], SceneRules())
    >>> kinds.tolist(), [Combine(rule).name for rule in table[kinds[0], kinds[1:], 0]]
    ([0, 0, 1, 2], ['MAXIMUM', 'SECOND', 'MAXIMUM'])
    """
    found: dict[_Kind, int] = {}
    kinds = [found.setdefault(_kind(material, rules), len(found)) for material in materials]
    listed = list(found)
    table = [[_pair(one, other) for other in listed] for one in listed]
    return np.array(kinds, np.int32).reshape(-1), np.array(table, np.int32).reshape(len(listed), len(listed), 4)


def _kind(material: Material, rules: SceneRules) -> _Kind:
    own = (material.friction_combine, material.rolling_combine, material.restitution_combine)
    return _Kind(
        SceneRules(*(one or shared for one, shared in zip(own, rules, strict=True))),
        int(material.priority),
        condim_of(material),
    )


def _pair(one: _Kind, other: _Kind) -> list[int]:
    """Rules of the four coefficients."""
    if one.priority != other.priority:
        side, condim = (Combine.FIRST, one.condim) if one.priority > other.priority else (Combine.SECOND, other.condim)
        rules = [side] * 4
    else:
        condim = max(one.condim, other.condim)
        friction, rolling, restitution = (_stronger(*pair) for pair in zip(one.rules, other.rules, strict=True))
        rules = [friction, rolling, rolling, restitution]
    return [int(rule if condim >= least else Combine.NONE) for rule, least in zip(rules, _FIRST_CONDIM, strict=True)]


def _stronger(one: CombineRule, other: CombineRule) -> Combine:
    return Combine[max(one, other, key=RULES.index).upper()]


def differing(rules: SceneRules, others: SceneRules) -> list[tuple[str, str, str]]:
    """Scene options in which two scenes differ, with the rule of each.

    >>> differing(SceneRules(), SceneRules(friction="maximum"))
    [('friction_combine', 'geometric', 'maximum')]
    """
    pairs = zip(SceneRules._fields, rules, others, strict=True)
    return [(f"{name}_combine", one, other) for name, one, other in pairs if one != other]
