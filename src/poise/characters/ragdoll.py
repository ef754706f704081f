"""A ragdoll: a humanoid with passive damping and no control."""

from __future__ import annotations

from math import isfinite, sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.characters.anthropometry import Sex
from poise.characters.humanoid import humanoid
from poise.dynamics import bodies
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.model.scene import Character, Scene
from poise.model.shapes import Vector

G = 9.81


def ragdoll(
    height: float = 1.75, mass: float = 70.0, *, damping_ratio: float = 0.1, hands: bool = True, sex: Sex = "male"
) -> Character:
    """A humanoid with slight damping in its joints, like relaxed muscles.

    Each limb, hanging from its joint, is a pendulum; the joint's damping is the given fraction of critical damping. At
    0.1, each swing is about half of the one before. Without damping, limbs that roll on the ground never come to rest.

    >>> doll = ragdoll()
    >>> knee = next(joint for body in doll.bodies for joint in body.joints if joint.name == "knee_l")
    >>> 0.1 < knee.damping < 1.0
    True
    """
    ratio = _checked(damping_ratio)
    person = humanoid(height, mass, hands=hands, sex=sex)
    scene = Scene()
    scene.add(person, name="doll")
    model = scene.compile()
    for body in person.bodies[1:]:
        for joint in body.joints:
            joint.damping = ratio * critical_damping(model, f"doll/{body.name}", joint.anchor)
    return Character("ragdoll", person.bodies)


def _checked(ratio: Any) -> float:
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not isfinite(float(ratio)):
        raise SceneError(f"must be a number, found {ratio!r}", field="damping_ratio")
    if not 0.0 <= float(ratio) <= 10.0:
        raise SceneError(f"must be between 0 and 10, found {float(ratio):g}", field="damping_ratio")
    return float(ratio)


def critical_damping(model: Model, body: str, anchor: Vector) -> float:
    """Critical damping of a body and its descendants as a pendulum about a point; N·m·s/rad.

    2 √(m g l I), with the inertia I about axes perpendicular to the limb, as if it were slender.
    """
    root = model.body_names.index(body)
    place = bodies(model, model.q_rest)
    limb = beyond(model, root)
    centres = place.position[limb] + np.einsum("nij,nj->ni", place.rotation[limb], model.body_com[limb])
    masses = model.body_mass[limb]
    away = centres - (place.position[root] + place.rotation[root] @ np.asarray(anchor))
    arm = float(np.linalg.norm(masses @ away))  # m l
    inertia = float(masses @ (away**2).sum(axis=1) + model.body_inertia[limb, :3].sum() / 2.0)
    return 2.0 * sqrt(arm * G * inertia)


def beyond(model: Model, root: int) -> NDArray[Any]:
    """A body and all its descendants."""
    inside = np.zeros(model.n_bodies, np.bool_)
    inside[root] = True
    for body in range(root + 1, model.n_bodies):
        parent = int(model.body_parent[body])
        inside[body] = parent >= 0 and inside[parent]
    return np.flatnonzero(inside)
