"""Clips from the motion files of DeepMimic (Peng et al. 2018): JSON with one row of numbers for each frame."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.bvh import read_text
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

    Raises SceneError for a file that is not of this kind, with the frame.

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
    frames = _frames(document, sum(_WIDTHS[joint.kind] for joint in joints) + 1, file)
    quats, moves = _columns(joints, frames, file)
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
    times = np.concatenate(((0.0,), np.cumsum(frames[:-1, 0])))
    moved = [0, *(index for index in moves if index)]
    translations = np.stack([moves[index][:, _AXES] * _SIGNS for index in moved], axis=1)
    notes: tuple[str, ...] = ()
    if document.get("Loop") == "wrap":
        notes = ("the file is made to be repeated: see clip.looped.",)
    name = Path(file).stem if file else ""
    origin = Origin("deepmimic", 1.0, "y")
    return Clip(skeleton, times, _convert(quats), translations, moved=moved, name=name, notes=notes, origin=origin)


def _json(text: str, file: str | None) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise SceneError(f"it is no JSON: {error.msg}", file=file, line=error.lineno) from None
    except RecursionError:
        raise SceneError("it is no motion: brackets in brackets in brackets", file=file) from None
    if not isinstance(document, dict) or "Frames" not in document:
        found = ", ".join(list(document)[:5]) if isinstance(document, dict) else type(document).__name__
        raise SceneError(
            f'a DeepMimic motion is an object with "Frames", found {found or "an empty object"}', file=file
        )
    return document


def _frames(document: dict[str, Any], width: int, file: str | None) -> Floats:
    """Numbers (frames, width)."""
    rows = document["Frames"]
    if not isinstance(rows, list) or not rows:
        raise SceneError("must be a list of frames", field="Frames", file=file)
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            found = len(row) if isinstance(row, list) else repr(row)[:40]
            raise SceneError(f"must have {width} numbers, found {found}", field=f"Frames[{number}]", file=file)
        bad = next(
            (x for x in row if isinstance(x, bool) or not isinstance(x, int | float) or not abs(x) < _LARGEST), 0
        )
        if bad != 0:
            raise SceneError(f"must be numbers, found {bad!r:.40}", field=f"Frames[{number}]", file=file)
        if not row[0] > 0.0 and number < len(rows) - 1:
            raise SceneError(
                f"its duration must be more than 0 s, found {row[0]}", field=f"Frames[{number}]", file=file
            )
    return np.array(rows, dtype=np.float64)


def _columns(joints: list[_Joint], frames: Floats, file: str | None) -> tuple[Floats, dict[int, Floats]]:
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
            where = f"Frames[{int(np.argmax(empty))}]"
            raise SceneError(f'the rotation of "{joint.name}" is (0, 0, 0, 0)', field=where, file=file)
        quats[:, index] = quat_multiply(rest, quat_normalize(turn))
    return quats, moves


def _convert(quats: Floats) -> Floats:
    return quats[..., [0, 1, 3, 2]] * np.concatenate(((1.0,), _SIGNS))


def _read_character(path: str | PathLike[str]) -> list[_Joint]:
    """Joints of a character file."""
    text, file = read_text(path)
    try:
        listed = json.loads(text)["Skeleton"]["Joints"]
        joints: list[_Joint] = []
        for place, joint in enumerate(listed):
            kind, parent = str(joint["Type"]), int(joint["Parent"])
            if kind not in _WIDTHS or (kind == "none") != (place == 0):
                raise SceneError(f'joints of type "{kind}" are not read', field=f"Joints[{place}]", file=file)
            if not -1 <= parent < place or (parent < 0) != (place == 0):
                raise SceneError(f"its parent must come before it, found {parent}", field=f"Joints[{place}]", file=file)
            attach = tuple(float(joint[f"Attach{axis}"]) for axis in "XYZ")
            turn = tuple(float(joint.get(f"AttachTheta{axis}", 0.0)) for axis in "XYZ")
            if not joint["Name"] or joint["Name"] in [other.name for other in joints]:
                raise SceneError(f"its name must be new, found {joint['Name']!r}", field=f"Joints[{place}]", file=file)
            if not np.isfinite([*attach, *turn]).all():
                raise SceneError("its place must be finite", field=f"Joints[{place}]", file=file)
            joints.append(_Joint(str(joint["Name"]), kind, parent, attach, turn))  # type: ignore[arg-type]
    except SceneError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SceneError(f"it is no character of DeepMimic: {error!r:.80}", file=file) from None
    if not joints:
        raise SceneError("it is no character of DeepMimic: it has no joints", file=file)
    return joints
