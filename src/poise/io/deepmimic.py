"""Clips from the motion files of DeepMimic (Peng et al. 2018): JSON with one row of numbers for each frame."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.bvh import read_text
from poise.io.json_lines import line_of, read_json
from poise.model.errors import SceneError
from poise.motion.clip import Clip, Origin
from poise.motion.euler import quat_from_euler
from poise.motion.rotations import quat_exp, quat_multiply, quat_normalize
from poise.motion.skeleton import Skeleton

Floats = NDArray[np.float64]

#: numbers of a frame that each kind of joint takes
_WIDTHS = {"none": 7, "spherical": 4, "revolute": 1, "prismatic": 1, "fixed": 0}
#: y becomes up: a figure that faces x still does, and its left, which was −z, is y
_AXES, _SIGNS = [0, 2, 1], np.array((1.0, -1.0, 1.0))
#: no length, time or angle is beyond this
_LARGEST = 1e7


@dataclass(frozen=True)
class _Joint:
    """A joint of DeepMimic's character files."""

    name: str
    kind: str
    parent: int
    attach: tuple[float, float, float]
    """From the parent; m."""
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Rest orientation: turns about x, y and z; rad."""


def _humanoid() -> list[_Joint]:
    """The figure that DeepMimic's humanoid motions are for, with the right side at +z."""
    joints = [
        _Joint("root", "none", -1, (0.0, 0.0, 0.0)),
        _Joint("chest", "spherical", 0, (0.0, 0.236151, 0.0)),
        _Joint("neck", "spherical", 1, (0.0, 0.223894, 0.0)),
    ]
    for side, sign in (("right", 1.0), ("left", -1.0)):
        first = len(joints)
        joints += [
            _Joint(f"{side}_hip", "spherical", 0, (0.0, 0.0, sign * 0.084887)),
            _Joint(f"{side}_knee", "revolute", first, (0.0, -0.421546, 0.0)),
            _Joint(f"{side}_ankle", "spherical", first + 1, (0.0, -0.40987, 0.0)),
            _Joint(f"{side}_shoulder", "spherical", 1, (-0.02405, 0.2435, sign * 0.18311)),
            _Joint(f"{side}_elbow", "revolute", first + 3, (0.0, -0.274788, 0.0)),
            _Joint(f"{side}_wrist", "fixed", first + 4, (0.0, -0.258947, 0.0)),
        ]
    return joints


#: where the bodies of that figure end that carry no other joint: the crown, and the middle of the sole's front edge; m
_TIPS = {"neck": (0.0, 0.2775, 0.0), "right_ankle": (0.1335, -0.05, 0.0), "left_ankle": (0.1335, -0.05, 0.0)}


def load_deepmimic(source: str | PathLike[str], *, character: str | PathLike[str] | None = None) -> Clip:
    """Read a clip from a DeepMimic motion, for its humanoid or for the figure of a `character` file. z becomes up.

    Raises SceneError for a file that is not of this kind, with the frame and the line.

    >>> import json
    >>> ball, leg_and_arm = (1, 0, 0, 0), (1, 0, 0, 0, 0, *(1, 0, 0, 0) * 2, 0)
    >>> frame = [0.5, 0, 0.9, 0, *ball * 3, *leg_and_arm, *leg_and_arm]
    >>> clip = load_deepmimic(json.dumps({"Loop": "none", "Frames": [frame, frame]}))
    >>> clip.duration, clip.root_positions[0, 2].tolist()
    (0.5, 0.9)
    """
    text, file = read_text(source)
    return read_deepmimic(text, file, character)


def read_deepmimic(text: str, file: str | None, character: str | PathLike[str] | None = None) -> Clip:
    """The clip of a text; see `load_deepmimic`."""
    document = _json(text, file)
    joints = _humanoid() if character is None else _read_character(character)
    width = sum(_WIDTHS[joint.kind] for joint in joints) + 1
    figure = "DeepMimic's humanoid" if character is None else f"the figure of {character}"
    frames = _frames(document, width, figure, text, file)
    quats, moves = _columns(joints, frames, text, file)
    skeleton = Skeleton(
        [joint.name for joint in joints],
        [joint.parent for joint in joints],
        np.array([joint.attach for joint in joints])[:, _AXES] * _SIGNS,
        _convert(np.array([quat_from_euler("zyx", joint.turn[::-1]) for joint in joints])),
        [
            (index, np.array(_TIPS[joint.name])[_AXES] * _SIGNS)
            for index, joint in enumerate(joints)
            if character is None and joint.name in _TIPS
        ],
    )
    times = _times(frames, text, file)
    moved = [0, *(index for index in moves if index)]
    translations = np.stack([moves[index][:, _AXES] * _SIGNS for index in moved], axis=1)
    notes: tuple[str, ...] = ()
    if document.get("Loop") == "wrap":
        notes = ("the file is made to be repeated: see clip.looped.",)
    name = Path(file).stem if file else ""
    origin = Origin("deepmimic", 1.0, "y")
    return Clip(skeleton, times, _convert(quats), translations, moved=moved, name=name, notes=notes, origin=origin)


def _json(text: str, file: str | None) -> dict[str, Any]:
    document = read_json(text, file)
    if not isinstance(document, dict) or "Frames" not in document:
        found = ", ".join(list(document)[:5]) if isinstance(document, dict) else type(document).__name__
        what = f'a DeepMimic motion is an object with "Frames", found {found or "an empty object"}'
        raise SceneError(what, file=file, line=1)
    return document


def _frames(document: dict[str, Any], width: int, figure: str, text: str, file: str | None) -> Floats:
    """Numbers (frames, width); `figure` says whose."""
    rows = document["Frames"]
    if not isinstance(rows, list) or not rows:
        raise SceneError("must be a list of frames", field="Frames", file=file, line=line_of(text, "Frames"))
    for number, row in enumerate(rows):
        wrong = _wrong(row, width, figure, last=number == len(rows) - 1)
        if wrong:
            line = line_of(text, "Frames", number)
            raise SceneError(wrong, field=f"Frames[{number}]", file=file, line=line)
    return np.array(rows, dtype=np.float64)


def _times(frames: Floats, text: str, file: str | None) -> Floats:
    """(frames,) s; each has the duration of the frame."""
    times = np.concatenate(((0.0,), np.cumsum(frames[:-1, 0])))
    lost = np.flatnonzero(np.diff(times) <= 0.0)
    if len(lost):
        k = int(lost[0])
        what = f"its duration of {frames[k, 0]:g} s is lost beside the {times[k]:g} s before it"
        raise SceneError(what, field=f"Frames[{k}]", file=file, line=line_of(text, "Frames", k))
    return times


def _wrong(row: Any, width: int, figure: str, *, last: bool) -> str:
    """What is wrong with a frame; empty where nothing is."""
    if not isinstance(row, list) or len(row) != width:
        found = len(row) if isinstance(row, list) else repr(row)[:40]
        return f"must have {width} numbers for {figure}, found {found}"
    for x in row:
        if isinstance(x, bool) or not isinstance(x, int | float) or not abs(x) < _LARGEST:
            return f"must be numbers, found {repr(x)[:40]}"
    if not row[0] > 0.0 and not last:
        return f"its duration must be more than 0 s, found {row[0]}"
    return ""


def _columns(joints: list[_Joint], frames: Floats, text: str, file: str | None) -> tuple[Floats, dict[int, Floats]]:
    """Rotations (frames, joints, 4) and paths of the joints that move along; in the file's axes."""
    quats = np.zeros((len(frames), len(joints), 4))
    quats[..., 0] = 1.0
    moves: dict[int, Floats] = {}
    at = 1
    for index, joint in enumerate(joints):
        rest = quat_from_euler("zyx", joint.turn[::-1])
        part = frames[:, at : at + _WIDTHS[joint.kind]]
        at += _WIDTHS[joint.kind]
        if joint.kind == "none":
            moves[index], turn = part[:, :3], part[:, 3:]
        elif joint.kind == "spherical":
            turn = part
        elif joint.kind == "revolute":
            turn = quat_exp(part * (0.0, 0.0, 1.0))
        else:
            turn = np.tile((1.0, 0.0, 0.0, 0.0), (len(frames), 1))
            if joint.kind == "prismatic":
                moves[index] = np.array(joint.attach) + part * (1.0, 0.0, 0.0)
        empty = ~turn.any(axis=1)
        if empty.any():
            frame = int(np.argmax(empty))
            what, line = f'the rotation of "{joint.name}" is (0, 0, 0, 0)', line_of(text, "Frames", frame)
            raise SceneError(what, field=f"Frames[{frame}]", file=file, line=line)
        quats[:, index] = quat_multiply(rest, quat_normalize(turn))
    return quats, moves


def _convert(quats: Floats) -> Floats:
    return quats[..., [0, 1, 3, 2]] * np.concatenate(((1.0,), _SIGNS))


def _read_character(path: str | PathLike[str]) -> list[_Joint]:
    """Joints of a character file."""
    text, file = read_text(path)
    document = read_json(text, file)
    try:
        listed = list(document["Skeleton"]["Joints"])
    except (KeyError, TypeError):
        what = 'it is no character of DeepMimic: there is no list "Joints" in an object "Skeleton"'
        raise SceneError(what, file=file, line=1) from None
    if not listed:
        raise SceneError("it is no character of DeepMimic: it has no joints", file=file, line=1)
    joints: list[_Joint] = []
    taken: set[str] = set()
    for place, given in enumerate(listed):
        try:
            joint = _joint(given, place)
            if joint.name in taken:
                raise ValueError(f"its name must be new, found {joint.name!r:.80}")
        except ValueError as error:
            line = line_of(text, "Skeleton", "Joints", place)
            raise SceneError(str(error), field=f"Joints[{place}]", file=file, line=line) from None
        taken.add(joint.name)
        joints.append(joint)
    return joints


def _joint(given: Any, place: int) -> _Joint:
    """A joint of a character file by its number; ValueError says what is wrong with it."""
    if not isinstance(given, dict):
        raise ValueError(f"must be an object, found {repr(given)[:40]}")
    kind, name, parent = given.get("Type"), given.get("Name"), given.get("Parent")
    if not isinstance(kind, str) or kind not in _WIDTHS or (kind == "none") != (place == 0):
        raise ValueError(f'joints of type "{str(kind)[:40]}" are not read')
    if isinstance(parent, bool) or not isinstance(parent, int | float) or parent not in range(-1, place):
        raise ValueError(f"its parent must come before it, found {repr(parent)[:40]}")
    if (parent < 0) != (place == 0):
        raise ValueError(f"its parent must come before it, found {parent}")
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"its name must be text, found {repr(name)[:40]}")
    numbers = [_number(given, f"Attach{axis}", None) for axis in "XYZ"]
    turns = [_number(given, f"AttachTheta{axis}", 0.0) for axis in "XYZ"]
    return _Joint(name, kind, int(parent), (numbers[0], numbers[1], numbers[2]), (turns[0], turns[1], turns[2]))


def _number(given: dict[str, Any], name: str, default: float | None) -> float:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise ValueError(f"{name} must be a finite number, found {repr(value)[:40]}")
    return float(value)
