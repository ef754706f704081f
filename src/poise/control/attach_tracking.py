"""Attaches motion tracking to a character of a scene: motors for its joints, root assist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from poise.collision.detector import Collider
from poise.control.reference import Placed, Reference, RootPath
from poise.control.torque_limits import by_joint, full_strength, motor_gains, weight_of
from poise.control.tracking import Tracking, driven_joints, make_reference
from poise.model.errors import last_part
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Body, Scene
from poise.motion.rotations import quat_conjugate, quat_multiply, quat_normalize, rotate

#: speed error at which the root assist reaches its limit; m/s or rad/s
_ROOT_GIVE = 0.1
#: limits of the assist of a guided root: force in weights of the character, torque in weights times a metre
_HELP = (0.5, 0.5)
#: sampling of a reference for overlapping bodies: samples per second, their maximum number, and the gap (m)
_LOOKS, _MOST_LOOKS, _NEAR = 60.0, 2000, 0.005


def track(
    hero: Any,
    motion: Any,
    *,
    strength: Any = None,
    help: tuple[float, float] | None = None,
    pass_overlaps: bool = True,
    **options: Any,
) -> None:
    """Implements `CharacterHandle.track`: adds motors, root assist and a `Tracking` to the character's scene.

    >>> import poise
    >>> scene = poise.Scene()
    >>> hero = scene.add(poise.characters.humanoid(), name="hero")
    >>> bend = poise.motion.keyframes({0.0: {"elbow_l": 0.0}, 0.3: {"elbow_l": 0.9}})
    >>> track(hero, bend, strength=20.0, root="free")
    >>> scene.build().motors
    ['hero/elbow_l']
    """
    scene: Scene = hero.scene
    label = f"{hero.name} tracking"
    if any(known == label for known, _ in scene.controllers):
        raise ValueError(
            f'"{hero.name}" tracks a motion already; join motions before: clip.then(other, …), keyframes(…)'
        )
    model = Scene(gravity=scene.gravity, bodies=_as_made(hero)).compile()
    tracking = Tracking(motion, strength=strength, **options)
    reference = make_reference(motion, model, tracking.floor, (hero.position, hero.quat_wxyz))
    place = Placed(reference, model)
    root = place.root()
    driven = driven_joints(place, whole=tracking.root == "balanced")
    names = [model.joint_names[j] for j in driven]
    tree = int(model.link_root[model.body_link[model.joint_body[place.joints[0]]]])
    strengths, full = by_joint("strength", strength, names, float("inf")), full_strength(model, tree)
    force, torque = _checked_help(help, weight_of(model, tree))
    own_torques = tracking.by == "drives" or tracking.root == "balanced"
    motors: dict[str, dict[str, Any]] = {}
    if not own_torques:
        for joint, name in zip(driven, names, strict=True):
            if strengths[name] > 0.0:
                stiffness, damping = motor_gains(strengths[name], full, tracking.give, tracking.settle)
                gains: dict[str, Any] = {"stiffness": stiffness, "damping": damping, "limit": strengths[name]}
                motors |= dict.fromkeys(_motor_names(model, joint), gains)
    if root >= 0 and tracking.root == "guided":
        for k, part in enumerate(JOINTS["free"].v_names):
            most = force if k < 3 else torque
            motors[f"{model.joint_names[root]}.{part}"] = {"damping": most / _ROOT_GIVE, "limit": most}
    if taken := [motor for motor in motors if any(_acts_on(known.target, motor) for known in scene.actuators)]:
        raise ValueError(
            f"there are motors on {', '.join(taken[:4])} already: leave out scene.motor for joints that are to track, "
            'or let them track by="drives"'
        )
    for motor, gains in motors.items():
        scene.motor(motor, **gains)
    if root >= 0 and tracking.root == "held":
        body = scene.body(model.body_names[model.joint_body[root]])
        body.motion, body.path = "kinematic", RootPath(reference, tracking.start)
    if pass_overlaps:
        known = {frozenset(pair) for pair in scene.excluded_pairs}
        scene.excluded_pairs += [pair for pair in overlapping(reference, place) if frozenset(pair) not in known]
    kept = strength if own_torques else None  # motors have theirs
    scene.controllers.append((label, _maker(reference, kept, strengths, options)))


def _as_made(hero: Any) -> list[Body]:
    """Bodies of a character before placement, so that retargeting does not depend on its pose in the scene."""
    bodies = [hero.scene.body(name) for name in hero.bodies]
    back, position = quat_conjugate(quat_normalize(hero.quat_wxyz)), np.array(hero.position)
    for k, body in enumerate(bodies):
        if body.parent is None:
            x, y, z = rotate(back, np.array(body.position) - position).tolist()
            quat = tuple(quat_multiply(back, np.array(body.quat_wxyz, np.float64)).tolist())
            bodies[k] = replace(body, position=(x, y, z), quat_wxyz=quat)
    return bodies


def overlapping(reference: Reference, place: Placed) -> list[tuple[str, str]]:
    """Names of pairs of bodies of a character that overlap or nearly overlap somewhere in its reference.

    Contacts between them would prevent the reference poses: human thighs are softer than capsules, and hands rest on
    hips.
    """
    model, collider = place.model, Collider(place.model)
    times = np.linspace(reference.start, reference.end, 1 + min(int(reference.duration * _LOOKS), _MOST_LOOKS))
    pairs = set()
    for q in place.at(times).q:
        collider.place(q)
        collider.touch(_NEAR)
        c = collider.c
        n = int(c.count[0])
        pairs |= set(zip(model.solids.body[c.a[:n]].tolist(), model.solids.body[c.b[:n]].tolist(), strict=True))
    return sorted((model.body_names[min(pair)], model.body_names[max(pair)]) for pair in pairs)


def _maker(
    reference: Reference, strength: Any, strengths: dict[str, float], options: dict[str, Any]
) -> Callable[[], Tracking]:
    """A factory of controllers, since each world needs its own."""
    limp = {name for name, value in strengths.items() if value == 0.0}
    return partial(Tracking, reference, strength=strength, limp=limp, **options)


def _motor_names(model: Model, joint: int) -> list[str]:
    name, kind = model.joint_names[joint], model.joint_kinds[joint]
    if kind == "ball" or JOINTS[kind].nv == 1:
        return [name]
    return [f"{name}.{part}" for part in JOINTS[kind].v_names]


def _acts_on(target: str, motor: str) -> bool:
    """Whether a new motor would drive a joint or coordinate, given by its name or the end of its name."""
    own = {motor, motor.rpartition(".")[0]} if "." in last_part(motor) else {motor}
    return any(name == target or name.endswith(f"/{target}") for name in own)


def _checked_help(help: Any, weight: float) -> tuple[float, float]:
    if help is None:
        return _HELP[0] * weight, _HELP[1] * weight
    try:
        force, torque = map(float, help)
    except (TypeError, ValueError):
        raise ValueError(f"help is {help!r}; it must be a force and a torque (N, N·m)") from None
    if not (force >= 0.0 and torque >= 0.0):
        raise ValueError(f"help is {help!r}; force and torque must be 0 or more")
    return force, torque
