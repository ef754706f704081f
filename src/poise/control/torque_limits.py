"""Torque limits and motor gains of a character's joints, given by part, name or pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from math import isfinite, isnan
from typing import Any

import numpy as np

from poise.dynamics.state_queries import bodies
from poise.model.errors import did_you_mean, last_part
from poise.model.model import Model

PARTS = {
    "legs": ("hip*", "knee*", "ankle*", "toe*", "thigh*", "shank*", "foot*"),
    "arms": ("shoulder*", "elbow*", "wrist*", "collar*", "upper_arm*", "forearm*", "hand*"),
    "trunk": ("spine*", "neck*", "waist*", "abdomen*", "chest*", "torso*", "head*"),
}
"""Parts of a character, and patterns of their joints' names."""
GIVE = 0.035
"""Error at which a motor reaches its strength; rad or m."""
SETTLE = 0.05
"""Time constant of errors, damping over stiffness; s."""


def by_joint(what: str, given: Any, joints: Sequence[str], default: float) -> dict[str, float]:
    """A number, 0 or more, for each joint by its full name.

    `given` is one number for all, or numbers by parts (`PARTS`), names or patterns (`"wrist_*"`). The last one that
    matches a joint counts; without a match the joint has the default. Parts without joints are ignored.

    >>> by_joint("strength", {"arms": 30.0, "elbow_l": 5.0}, ["hero/elbow_l", "hero/elbow_r", "hero/knee_l"], 100.0)
    {'hero/elbow_l': 5.0, 'hero/elbow_r': 30.0, 'hero/knee_l': 100.0}
    """
    if given is None:
        return dict.fromkeys(joints, default)
    if not isinstance(given, Mapping):
        return dict.fromkeys(joints, _number(what, given))
    numbers = dict.fromkeys(joints, default)
    for key, value in given.items():
        number, found = _number(f"{what} of {key!r}", value), named(key, joints)
        if not found and key not in PARTS:
            known = [*PARTS, *dict.fromkeys(last_part(joint) for joint in joints)]
            raise ValueError(f"{what}: there is no part or joint {key!r}{did_you_mean(key, known)}")
        numbers |= dict.fromkeys(found, number)
    return numbers


def named(key: Any, joints: Sequence[str]) -> list[str]:
    """Joints that match a part, a name or a pattern.

    >>> named("knee_*", ["hero/knee_l", "hero/hip_l"])
    ['hero/knee_l']
    """
    patterns = PARTS.get(key, (key,)) if isinstance(key, str) else ()
    return [joint for joint in joints if any(_fits(joint, pattern) for pattern in patterns)]


def _fits(joint: str, pattern: str) -> bool:
    return pattern == joint or fnmatchcase(joint, pattern) or fnmatchcase(last_part(joint), pattern)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number, 0 or more, or numbers by joints") from None
    if isnan(number) or number < 0.0:
        raise ValueError(f"{name} is {number:g}; it must be 0 or more")
    return number


def motor_gains(strength: float, full: float, give: float, settle: float) -> tuple[float, float]:
    """(stiffness, damping) of a motor that reaches its strength at the error `give`, with the time constant `settle`.

    An unbounded motor has the gains of the strength `full`.

    >>> motor_gains(30.0, 700.0, 0.03, 0.05)
    (1000.0, 50.0)
    """
    stiffness = (strength if isfinite(strength) else full) / give
    return stiffness, stiffness * settle


def full_strength(model: Model, root: int) -> float:
    """Torque that holds a tree's weight at the length of its lever arm: the scale of its joints' strength; N·m.

    The arm reaches from the first joint to the farthest centre of mass, and beyond it by that body's radius of
    gyration, so that a single body has one too.
    """
    links = np.flatnonzero(model.link_root == root)
    seen, body = bodies(model, model.q_rest), model.link_body[links]
    centres = seen.position[body] + np.einsum("kij,kj->ki", seen.rotation[body], model.link_com[links])
    hang = model.primitive_anchor[model.link_primitive_start[links[0]]]
    base = seen.position[body[0]] + seen.rotation[body[0]] @ hang
    gyration = np.sqrt(0.5 * model.link_inertia[links, :3].sum(axis=1) / np.maximum(model.link_mass[links], 1e-300))
    return weight_of(model, root) * float((np.linalg.norm(centres - base, axis=1) + gyration).max())


def weight_of(model: Model, root: int) -> float:
    """Weight of a tree; without gravity in the model, with the earth's; N."""
    mass = float(model.link_mass[model.link_root == root].sum())
    return mass * float(np.linalg.norm(model.gravity) or 9.81)
