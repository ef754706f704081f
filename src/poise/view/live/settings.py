"""Settings that the viewer can change, and their application to a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any

import numpy as np

from poise.control.torque_limits import PARTS, by_joint, named
from poise.control.tracking import Tracking
from poise.formulations.formulation_registry import Formulation, of_kind
from poise.formulations.reduced import Reduced
from poise.model.errors import did_you_mean
from poise.model.model import Model
from poise.model.scene import Scene
from poise.sim.world import World

STRENGTHS = ("strength", *PARTS, "stiffness", "help", "pull")
"""Factors that do not need a new world."""
_FACTORS = ("gravity", "friction", *STRENGTHS)


@dataclass(frozen=True)
class Settings:
    """Factors of the scene's values, and options of the formulation.

    >>> Settings().changed(level="acceleration", gravity=0.5).formulation.level
    'acceleration'
    """

    gravity: float = 1.0
    friction: float = 1.0
    strength: float = 1.0
    """Factor of stiffness, damping and limit of joints with motors or tracking."""
    legs: float = 1.0
    """Of their strength, as all parts have it."""
    trunk: float = 1.0
    arms: float = 1.0
    stiffness: float = 1.0
    """Factor of stiffness and damping only."""
    help: float = 1.0
    """Factor of the root assist."""
    pull: float = 1.0
    """Factor of the greatest drag force."""
    formulation: Formulation = field(default_factory=Reduced)
    dt: float | None = None
    """s; default: the scene's."""

    def changed(self, **what: Any) -> Settings:
        """Others; options of the formulation are known by their names too, and `coordinates` chooses another one."""
        if "coordinates" in what:
            what["formulation"] = of_kind(what.pop("coordinates"), self.formulation)
        own = {f.name for f in fields(self)}
        options = {f.name for f in fields(what.get("formulation", self.formulation))}
        for name in what:
            if name not in own | options:
                raise ValueError(f"there is no setting {name!r}{did_you_mean(name, sorted(own | options))}")
        for name in _FACTORS:
            value = what.get(name, 1.0)
            if not (isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value!r}; it must be a factor, 0 or more")
        parts = {name: value for name, value in what.items() if name in options}
        if parts.get("level") == "velocity":
            parts.setdefault("integrator", None)
        if parts.get("level") == "acceleration":
            parts |= {"sleeping": False} if "sleeping" in options else {}
        whole = {name: value for name, value in what.items() if name in own}
        if parts:
            whole["formulation"] = replace(whole.get("formulation", self.formulation), **parts)
        return replace(self, **whole)


def joints_with_motors(model: Model) -> list[int]:
    """Numbers of joints."""
    dofs = [motor.dofs[0] for motor in model.motors if motor.dofs]
    return sorted(set((np.searchsorted(model.joint_v_start, dofs, "right") - 1).tolist()))


def parts_of(world: World) -> list[str]:
    """Parts of characters that have strength: what has joints with motors, or that track."""
    moved = {world.model.joint_names[j] for j in joints_with_motors(world.model)}
    for controller in world.controllers.values():
        if isinstance(controller, Tracking):
            moved |= set(controller.joints)
    return [part for part in PARTS if named(part, sorted(moved))]


def build(scene: Scene, settings: Settings) -> World:
    """A world of a scene with the settings; the scene does not change."""
    x, y, z = (settings.gravity * part for part in scene.gravity)
    variant = replace(scene, gravity=(x, y, z))
    if settings.friction != 1.0:
        variant.bodies = [
            replace(body, shapes=[_with_friction(shape, settings.friction, scene) for shape in body.shapes])
            for body in scene.bodies
        ]
    return variant.build(settings.formulation, dt=settings.dt)


def _with_friction(shape: Any, factor: float, scene: Scene) -> Any:
    """A shape with friction such that contacts have the factor: its square root if coefficients multiply."""
    rule = shape.material.friction_combine or scene.friction_combine
    own = factor**0.5 if rule == "multiply" else factor
    return replace(shape, material=replace(shape.material, friction=own * shape.material.friction))


def strength_of(settings: Settings, joints: Sequence[str]) -> dict[str, float]:
    """Factor of each joint's strength.

    >>> strength_of(Settings(strength=0.5, legs=3.0), ["hero/knee_l", "hero/elbow_l"])
    {'hero/knee_l': 1.5, 'hero/elbow_l': 0.5}
    """
    return by_joint("strength", _by_parts(settings), joints, 1.0) if joints else {}


def _by_parts(settings: Settings) -> dict[str, float]:
    return {"*": settings.strength} | {part: settings.strength * getattr(settings, part) for part in PARTS}


def lay_strengths(world: World, settings: Settings) -> None:
    """Set the strengths of motors, those of free joints being help from outside; and of what tracks without them."""
    model = world.model
    factors = strength_of(settings, list(model.joint_names))
    for k, motor in enumerate(model.motors):
        joint = int(np.searchsorted(model.joint_v_start, motor.dofs[0], "right")) - 1 if motor.dofs else -1
        free = joint >= 0 and model.joint_kinds[joint] == "free"
        factor = settings.help if free else factors[model.joint_names[joint]] if joint >= 0 else settings.strength
        gain = factor if free else factor * settings.stiffness
        placed = world.motor(k)
        placed.stiffness, placed.damping = _times(gain, motor.stiffness), _times(gain, motor.damping)
        placed.limit = (_times(factor, motor.low), _times(factor, motor.high))
    for controller in world.controllers.values():
        if isinstance(controller, Tracking):
            controller.scale(_by_parts(settings), stiffness=settings.stiffness)


def _times(factor: float, value: float) -> float:
    return factor * value if factor != 0.0 else 0.0  # also for an infinite value
