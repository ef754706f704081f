"""What can be changed while a world is looked at, and how it gets into a scene."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any

from poise.formulations.reduced import Reduced
from poise.model.errors import did_you_mean
from poise.model.scene import Scene
from poise.sim.world import World

_FACTORS = ("gravity", "friction", "strength", "help", "pull")


@dataclass(frozen=True)
class Settings:
    """Factors of what the scene says, and how steps are made.

    >>> Settings().changed(level="acceleration", gravity=0.5).formulation.level
    'acceleration'
    """

    gravity: float = 1.0
    friction: float = 1.0
    strength: float = 1.0
    """Of motors of joints: stiffness, damping and limit."""
    help: float = 1.0
    """Of motors that pull roots along."""
    pull: float = 1.0
    """Of the greatest force of dragging."""
    formulation: Reduced = field(default_factory=Reduced)
    dt: float | None = None
    """s; the scene's own where missing."""

    def changed(self, **what: Any) -> Settings:
        """Others; options of the formulation are known by their names too."""
        own = {f.name for f in fields(self)}
        options = {f.name for f in fields(Reduced)}
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
            parts.setdefault("sleeping", False)
        whole = {name: value for name, value in what.items() if name in own}
        if parts:
            whole["formulation"] = replace(whole.get("formulation", self.formulation), **parts)
        return replace(self, **whole)


def build(scene: Scene, settings: Settings) -> World:
    """A world of a scene, as the settings want it; the scene stays as it is."""
    x, y, z = (settings.gravity * part for part in scene.gravity)
    variant = replace(scene, gravity=(x, y, z))
    if settings.friction != 1.0:
        variant.bodies = [
            replace(body, shapes=[_with_friction(shape, settings.friction) for shape in body.shapes])
            for body in scene.bodies
        ]
    return variant.build(settings.formulation, dt=settings.dt)


def _with_friction(shape: Any, factor: float) -> Any:
    return replace(shape, material=replace(shape.material, friction=factor * shape.material.friction))


def lay_strengths(world: World, settings: Settings) -> None:
    """Set the strengths of motors: those of free joints are help from outside."""
    model = world.model
    free = {
        d
        for j, kind in enumerate(model.joint_kinds)
        if kind == "free"
        for d in range(int(model.joint_v_start[j]), int(model.joint_v_start[j + 1]))
    }
    for k, motor in enumerate(model.motors):
        factor = settings.help if free & set(motor.dofs) else settings.strength
        placed = world.motor(k)
        placed.stiffness, placed.damping = _times(factor, motor.stiffness), _times(factor, motor.damping)
        placed.limit = (_times(factor, motor.low), _times(factor, motor.high))


def _times(factor: float, value: float) -> float:
    return factor * value if factor != 0.0 else 0.0  # of an endless one too
