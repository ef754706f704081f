"""Characters of a scene that are to follow a motion: motors for their joints, help for their roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poise.control.reference import Placed, RootPath
from poise.control.strengths import by_joint, full_strength, motor_gains, weight_of
from poise.control.tracking import Tracking, make_reference
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Scene

#: speed error at which a root is helped with all there is; m/s or rad/s
_ROOT_GIVE = 0.1
#: how often its weight a guided root may be pulled by, and its torque in weights times a metre
_HELP = (3.0, 1.0)


def track(hero: Any, motion: Any, *, strength: Any = None, help: tuple[float, float] | None = None, **options: Any) -> None:
    """See `CharacterHandle.track`."""
    scene: Scene = hero.scene
    alone = Scene(gravity=scene.gravity, bodies=[scene.body(name) for name in hero.bodies])
    model = alone.compile()
    tracking = Tracking(motion, strength=strength, **options)
    reference = make_reference(motion, model, tracking.floor)
    place = Placed(reference, model)
    root = place.root()
    names = [model.joint_names[j] for j in place.joints if j != root]
    tree = int(model.link_root[model.body_link[model.joint_body[place.joints[0]]]])
    strengths, full = by_joint("strength", strength, names, float("inf")), full_strength(model, tree)
    force, torque = _checked_help(help, weight_of(model, tree))
    if tracking.by != "drives":
        for joint in (j for j in place.joints if j != root):
            name = model.joint_names[joint]
            if strengths[name] > 0.0:
                stiffness, damping = motor_gains(strengths[name], full, tracking.give, tracking.settle)
                for label in _motor_names(model, joint):
                    scene.motor(label, stiffness=stiffness, damping=damping, limit=strengths[name])
    if root >= 0 and tracking.root == "guided":
        for k, part in enumerate(JOINTS["free"].v_names):
            most = force if k < 3 else torque
            scene.motor(f"{model.joint_names[root]}.{part}", damping=most / _ROOT_GIVE, limit=most)
    elif root >= 0 and tracking.root == "held":
        body = scene.body(model.body_names[model.joint_body[root]])
        body.motion, body.path = "kinematic", RootPath(reference, tracking.start)
    kept = strength if tracking.by == "drives" else None  # motors have theirs
    scene.controllers.append((f"{hero.name} tracking", _maker(reference, kept, strengths, options)))


def _maker(reference: Any, strength: Any, strengths: dict[str, float], options: dict[str, Any]) -> Callable[[], Tracking]:
    """Each world has a controller of its own."""
    limp = {name for name, value in strengths.items() if value == 0.0}
    return lambda: Tracking(reference, strength=strength, limp=limp, **options)


def _motor_names(model: Model, joint: int) -> list[str]:
    name, kind = model.joint_names[joint], model.joint_kinds[joint]
    if kind == "ball" or JOINTS[kind].nv == 1:
        return [name]
    return [f"{name}.{part}" for part in JOINTS[kind].v_names]


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
