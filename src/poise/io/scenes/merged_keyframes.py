"""Keyframes of a character's file as states of the whole scene that the character is in."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from poise.model.build import CharacterHandle
from poise.model.model import Model
from poise.model.scene import Keyframe, Scene
from poise.motion.rotations import quat_multiply, quat_normalize, rotate
from poise.sim.world_motors import Controls

Floats = NDArray[np.float64]


def merged_keyframes(model: Model, hero: CharacterHandle, other: Scene, taken: Collection[str]) -> list[Keyframe]:
    """The keyframes of another scene under the name of a character; everything else is at rest.

    Poses of bodies that are free in the character's frame go along to where the character is.
    """
    if not other.keyframes:
        return []
    own = other.compile()
    frames = []
    for frame in other.keyframes:
        name = f"{hero.name}/{frame.name}"
        if name not in taken:
            q, v = _coordinates(model, own, hero, frame)
            frames.append(Keyframe(name, frame.time, q, v, _controls(model, other, hero, frame)))
    return frames


def _coordinates(
    model: Model, own: Model, hero: CharacterHandle, frame: Keyframe
) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Coordinates and velocities of the whole scene."""
    q, v = model.q_rest.copy(), np.zeros(model.nv)
    for k, joint in enumerate(own.joint_names):
        full = f"{hero.name}/{joint}"
        if full not in model.joint_names:
            continue
        here = model.joint_names.index(full)
        if model.joint_kinds[here] != own.joint_kinds[k]:
            continue
        moved = own.joint_kinds[k] == "free" and own.body_parent[own.joint_body[k]] < 0
        if frame.q is not None:
            pose = np.array(frame.q[own.joint_q_start[k] : own.joint_q_start[k + 1]])
            q[model.q_slice(full)] = _placed(hero, pose) if moved else pose
        if frame.v is not None:
            speed = np.array(frame.v[own.joint_v_start[k] : own.joint_v_start[k + 1]])
            v[model.v_slice(full)] = _turned(hero, speed) if moved else speed
    return (
        None if frame.q is None else tuple(q.tolist()),
        None if frame.v is None else tuple(v.tolist()),
    )


def _placed(hero: CharacterHandle, pose: Floats) -> Floats:
    """A pose in the character's frame as one of the scene (or of the parent that carries the character)."""
    turn = quat_normalize(hero.quat_wxyz)
    return np.concatenate((np.array(hero.position) + rotate(turn, pose[:3]), quat_multiply(turn, pose[3:])))


def _turned(hero: CharacterHandle, speed: Floats) -> Floats:
    """Velocity of a free body, likewise; angular velocities are in the body's own axes."""
    return np.concatenate((rotate(quat_normalize(hero.quat_wxyz), speed[:3]), speed[3:]))


def _controls(model: Model, other: Scene, hero: CharacterHandle, frame: Keyframe) -> tuple[float, ...] | None:
    """Controls of all motors: those of others are what they are at first."""
    if frame.control is None or len(frame.control) != len(other.actuators):
        return None
    values = Controls(model).values
    names = [motor.name for motor in model.motors]
    for actuator, number in zip(other.actuators, frame.control, strict=True):
        values[names.index(f"{hero.name}/{actuator.name}")] = number
    return tuple(values.tolist())
