"""Characters of other scenes, and of lists of bodies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from poise.model.build import CharacterHandle
from poise.model.scene import Character, Scene
from poise.model.surface_rules import RULES, differing


def own_bodies(scene: Scene, hero: CharacterHandle) -> Character:
    """A character before its placement in a scene."""
    bodies = deepcopy([scene.body(name) for name in hero.bodies])
    start = f"{hero.name}/"
    for body in bodies:
        body.name = body.name.removeprefix(start)
        body.parent = None if body.parent is None else body.parent.removeprefix(start)
        for joint in body.joints:
            joint.name = None if joint.name is None else joint.name.removeprefix(start)
    return Character(hero.name, bodies)


def keep_rules(scene: Scene, hero: CharacterHandle, other: Scene, file: str) -> list[str]:
    """Let the surfaces of a character keep the rules of its file, where the scene has others; one sentence for each."""
    said = []
    for option, here, there in differing(scene.rules, other.rules):
        for name in hero.bodies:
            for shape in scene.body(name).shapes:
                if getattr(shape.material, option) is None:
                    setattr(shape.material, option, there)
        said.append(
            f'{option} is "{there}" in "{file}" and "{here}" here: surfaces of "{hero.name}" keep "{there}"; of two '
            f"surfaces with different rules the later one of {', '.join(RULES)} holds. {option}: {there} here makes "
            "all surfaces alike."
        )
    return said


def merge(scene: Scene, other: Scene, prefix: str) -> None:
    """Copy joints, motors and constraints of another scene, whose bodies have a prefix here."""

    def full(name: Any) -> Any:
        return f"{prefix}/{name}" if isinstance(name, str) and name not in ("", "world") else name

    def renamed(options: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for key, value in options.items():
            if key == "body":
                value = full(value)
            elif key == "joints" and isinstance(value, dict):
                value = {full(name): factor for name, factor in value.items()}
            elif isinstance(value, dict):
                value = renamed(value)
            found[key] = value
        return found

    for loop in deepcopy(other.loops):
        loop.name, loop.first, loop.second = full(loop.name), full(loop.first), full(loop.second)
        scene.loops.append(loop)
    for actuator in deepcopy(other.actuators):
        actuator.name, actuator.target = full(actuator.name), full(actuator.target)
        actuator.options = renamed(actuator.options)
        scene.actuators.append(actuator)
    for equality in deepcopy(other.equalities):
        equality.name, equality.first, equality.second = (
            full(equality.name),
            full(equality.first),
            full(equality.second),
        )
        equality.options = renamed(equality.options)
        scene.equalities.append(equality)
    for skin in deepcopy(other.skins):
        skin.name = full(skin.name)
        for bone in skin.bones:
            bone.body = full(bone.body)
        scene.skins.append(skin)
    scene.excluded_pairs += [(full(a), full(b)) for a, b in other.excluded_pairs]
    for pair in deepcopy(other.contact_pairs):
        pair.first, pair.second = (full(pair.first[0]), pair.first[1]), (full(pair.second[0]), pair.second[1])
        scene.contact_pairs.append(pair)
    scene.unsupported += other.unsupported
