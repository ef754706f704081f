"""Characters of a scene file that follow a motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.io.motions import load_motion
from poise.io.scenes.schema import MotionPart, TrackPart
from poise.model.build import CharacterHandle
from poise.model.errors import SceneError, did_you_mean
from poise.model.scene import Character

if TYPE_CHECKING:
    from poise.io.scenes.builder import Builder

CLIPS = ("jump", "punch", "run", "squat", "stand", "walk", "wave", "wing_beat")


@dataclass(frozen=True, eq=False)
class Tracked:
    """A maker of controllers that remembers what the file said, so that it can be written again."""

    make: Callable[[], Any]
    character: str
    said: dict[str, Any]
    """Options of `hero.track`, and of its motion, as plain data."""
    motors: tuple[str, ...] = ()
    """What tracking has added to the scene: names of motors, pairs, and the root as it was where it is held."""
    pairs: tuple[tuple[str, str], ...] = ()
    root: tuple[str, str, Any] | None = None
    files: dict[str, Path] = field(default_factory=dict)

    def __call__(self) -> Any:
        """A controller for one world."""
        return self.make()


class _Bad(Exception):
    """A motion that could not be read; the error was reported."""


def add_tracking(builder: Builder, part: TrackPart, hero: CharacterHandle, person: Character, label: str) -> None:
    """Let a character follow what a part says."""
    if not isinstance(part.motion, MotionPart):
        return
    said: dict[str, Any] = {}
    names = ("strength", "root", "help", "by", "give", "settle", "floor", "start", "pass_overlaps", "balance", "limp")
    options = {name: getattr(part, name) for name in names if part.has(name)}
    scene, root = builder.scene, builder.scene.body(hero.bodies[0])
    before = len(scene.actuators), len(scene.excluded_pairs), (root.name, root.motion, root.path)
    try:
        motion = _motion(builder, part.motion, person, label, said)
        hero.track(motion, **options)
    except _Bad:
        return
    except (SceneError, ValueError, TypeError) as error:
        text = error.problems[0].message if isinstance(error, SceneError) else str(error)
        word = text.partition(" ")[0].rstrip(":")
        builder.fail(part, word if word in options else "motion", text, label)
        return
    name, make = scene.controllers[-1]
    added = tuple(actuator.name for actuator in scene.actuators[before[0] :])
    pairs = tuple(scene.excluded_pairs[before[1] :])
    held = before[2] if root.motion != before[2][1] else None
    scene.controllers[-1] = (name, Tracked(make, hero.name, {"motion": said, **options}, added, pairs, held))


def _motion(builder: Builder, part: MotionPart, person: Character, label: str, said: dict[str, Any]) -> Any:
    """The motion that a part names."""
    given = [name for name in ("file", "clip", "keys") if part.has(name)]
    options = dict(part.options or {})
    if len(given) != 1:
        builder.fail(part, "", 'a motion is one of "file", "clip" and "keys"', f"{label}: motion")
        raise _Bad
    said |= {given[0]: getattr(part, given[0])} | ({"options": options} if options else {})
    if part.file is not None:
        path = builder.folder / part.file
        said["file"] = str(path)
        try:
            return load_motion(path, **options)
        except SceneError as error:
            for problem in error.problems:
                if problem.line is not None:
                    builder.problems.append(problem)
                else:
                    builder.fail(part, "file", f'"{part.file}": {problem.message}', f"{label}: motion")
            raise _Bad from None
    return (
        _clip(builder, part, person, options, label) if part.clip is not None else _keys(builder, part, options, label)
    )


def _clip(builder: Builder, part: MotionPart, person: Character, options: dict[str, Any], label: str) -> Any:
    from poise.characters import clips

    place = f"{label}: motion"
    if part.clip not in CLIPS:
        hint = did_you_mean(part.clip, CLIPS)
        builder.fail(part, "clip", f'there is no clip "{part.clip}"{hint}; a file is named with "file"', place)
        raise _Bad
    make = getattr(clips, part.clip)
    known = [name for name in signature(make).parameters if name != "character"]
    for name in options:
        if name not in known:
            builder.fail(
                part, "options", f'the clip "{part.clip}" has no option "{name}"{did_you_mean(name, known)}', place
            )
            raise _Bad
    try:
        return make(person, **options)
    except (SceneError, ValueError, TypeError) as error:
        builder.fail(part, "options" if options else "clip", str(error), place)
        raise _Bad from None


def _keys(builder: Builder, part: MotionPart, options: dict[str, Any], label: str) -> Any:
    from poise.motion import keyframes

    if part.written("keys") != "keys" and any(
        isinstance(v, tuple) for frame in part.keys.values() for v in frame.values()
    ):
        builder.fail(part, "keys", "only angles can be in other units; write keys for positions and rotations", label)
        raise _Bad
    try:
        return keyframes(part.keys, **options)
    except (ValueError, TypeError) as error:
        builder.fail(part, "keys", str(error), f"{label}: motion")
        raise _Bad from None
