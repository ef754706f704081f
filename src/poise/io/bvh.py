"""Clips from BVH files and BVH files from clips."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from poise.io.bvh_guess import UNITS, guess_length, guess_up, leads_with_tpose
from poise.io.bvh_text import CHANNELS, BvhFile, BvhJoint, format_bvh, parse_bvh
from poise.io.encodings import decoded_wide, is_wide
from poise.io.sealed import check_unsealed
from poise.model.errors import SceneError, did_you_mean
from poise.model.regular_file import read_regular
from poise.motion.clip import Clip, Origin
from poise.motion.euler import continuous, quat_from_euler, quat_to_euler
from poise.motion.skeleton import Skeleton

Floats = NDArray[np.float64]

Up = Literal["x", "y", "z"]
#: the file's axes that become x, y, z. A skeleton that faces z in a y-up file faces x, with its left at y
_AXES: dict[str, list[int]] = {"x": [1, 2, 0], "y": [2, 0, 1], "z": [0, 1, 2]}
_DEFAULT = ("Zrotation", "Xrotation", "Yrotation")
#: angles below this are omitted if a file's channels cannot represent them; rad
_NO_ANGLE = 1e-9
#: bounds of the length of a unit; m
_LEAST_UNIT, _MOST_UNIT = 1e-9, 1e9


class MotionWarning(UserWarning):
    """A motion file does not specify something, and the reader guessed it."""


def load_bvh(
    source: str | PathLike[str],
    *,
    units: str | float | None = None,
    up: Up | None = None,
    drop_tpose: bool | None = None,
    rate: float | None = None,
) -> Clip:
    r"""Read a clip from a BVH file, or from the text of one. Lengths become metres, z becomes up.

    BVH files do not say their unit (`units`: "m", "cm", "mm", "dm", "inch", "cmu", or metres), nor which axis is up,
    nor whether the first frame is a T-pose that is not part of the motion. What is not given is guessed; the clip's
    `notes` and a `MotionWarning` say how. `rate` (frames a second) overrides the file's. Raises SceneError with the
    line of what cannot be read.

    >>> text = "HIERARCHY ROOT hip { OFFSET 0 0 0 CHANNELS 2 Yposition Zrotation End Site { OFFSET 0 10 0 } }"
    >>> clip = load_bvh(text + "\nMOTION\nFrames: 1\nFrame Time: 0.1\n95 90\n", units="cm", up="y")
    >>> clip.world_positions(0, tips=True).round(6) + 0.0
    array([[ 0.  ,  0.  ,  0.95],
           [ 0.  , -0.1 ,  0.95]])
    """
    text, file = read_text(source)
    return told(read_bvh(text, file, units, up, drop_tpose, rate), file)


def read_bvh(
    text: str,
    file: str | None,
    units: str | float | None = None,
    up: str | None = None,
    drop_tpose: bool | None = None,
    rate: float | None = None,
) -> Clip:
    """The clip of a text, without a warning; see `load_bvh`."""
    text = text.removeprefix("\ufeff")
    meters = None if units is None else unit_length(units, file)
    if up is not None and up not in _AXES:
        raise SceneError(f'must be "x", "y" or "z", found {up!r}', field="up", file=file)
    if rate is not None and not (isinstance(rate, int | float) and 0.0 < rate < 1e6):
        raise SceneError(f"must be frames a second, found {rate!r}", field="rate", file=file)
    return clip_from_bvh(parse_bvh(text, file, rate), meters, up, drop_tpose, file)


def told(clip: Clip, file: str | None) -> Clip:
    """Warn of a clip's notes at the caller's caller, and return the clip."""
    if clip.notes:
        warnings.warn(f"{file or 'BVH'}: {' '.join(clip.notes)}", MotionWarning, stacklevel=3)
    return clip


def read_text(source: str | PathLike[str]) -> tuple[str, str | None]:
    """The text of a file and its name; a string that begins like BVH or JSON is text already."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:9].casefold().startswith(("hierarchy", "{")):
        return source.lstrip("\ufeff"), None
    try:
        file = Path(source)
        check_unsealed(file)
        content = read_regular(file)
    except TypeError:
        raise SceneError(f"the path of a file should be given, found {source!r:.80}") from None
    except FileNotFoundError:
        raise SceneError("there is no such file", file=str(source)) from None
    except SceneError:
        raise
    except (OSError, ValueError) as error:
        raise SceneError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=str(source)) from error
    return decode(content, str(file)), str(file)


def decode(content: bytes, file: str | None) -> str:
    """Text in UTF-8 or UTF-16, else in Latin-1, which any bytes are."""
    if is_wide(content):
        return decoded_wide(content, file)
    if b"\x00" in content:
        line = content[: content.index(b"\x00")].count(b"\n") + 1
        raise SceneError("it is a binary file, found a zero byte", file=file, line=line)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def unit_length(units: Any, file: str | None = None) -> float:
    """Length of a unit that is named, or given in metres."""
    if isinstance(units, str):
        if units not in UNITS:
            raise SceneError(f'there is no unit "{units}"{did_you_mean(units, UNITS)}', field="units", file=file)
        return UNITS[units]
    if (
        isinstance(units, bool)
        or not isinstance(units, int | float | np.floating)
        or not _LEAST_UNIT < units < _MOST_UNIT
    ):
        raise SceneError(f"must be a name or a length in metres, found {units!r}", field="units", file=file)
    return float(units)


def clip_from_bvh(
    bvh: BvhFile, meters: float | None, up: str | None, drop_tpose: bool | None, file: str | None = None
) -> Clip:
    """A clip from a file's numbers; None stands for what shall be guessed."""
    skeleton = Skeleton(
        [joint.name for joint in bvh.joints],
        [joint.parent for joint in bvh.joints],
        [joint.offset for joint in bvh.joints],
        tips=bvh.tips,
    )
    quats, translations, moved = _read_channels(bvh)
    notes = list(bvh.notes)
    spread = _spread(skeleton, translations, moved)
    tpose = leads_with_tpose(skeleton, quats, spread) if drop_tpose is None else bool(drop_tpose)
    if tpose and len(quats) < 2:
        raise SceneError("the only frame cannot be left out", field="drop_tpose", file=file)
    first = 1 if tpose else 0
    if up is None:
        found = guess_up(skeleton, quats[first:], spread[first:])
        up = found.axis
        notes += found.notes
    if meters is None:
        unit = guess_length(skeleton, quats[first:], spread[first:], up)
        meters = unit.meters
        if not _LEAST_UNIT < meters < _MOST_UNIT:
            what = f"it is of a figure {unit.height:.3g} high, which is no person in any unit"
            raise SceneError(f"{what}: give its unit as units=", file=file)
        notes += unit.notes
    if tpose and drop_tpose is None:
        notes.append("the first frame is taken to be a T-pose and left out.")
    if len(notes) > len(bvh.notes):
        notes.append("units=, up= and drop_tpose= override what is guessed.")
    axes = _AXES[up]
    return Clip(
        Skeleton(
            skeleton.names,
            skeleton.parents,
            skeleton.offsets[:, axes] * meters,
            tips=[(joint, offset[axes] * meters) for joint, offset in skeleton.tips],
        ),
        np.arange(len(quats) - first) * bvh.frame_time,
        quats[first:][..., [0, *(1 + axis for axis in axes)]],
        translations[first:][..., axes] * meters,
        moved=moved,
        name=Path(file).stem if file else "",
        notes=notes,
        origin=Origin("bvh", meters, up, tuple(joint.channels for joint in bvh.joints), tpose),
    )


def _read_channels(bvh: BvhFile) -> tuple[Floats, Floats, list[int]]:
    """Rotations (frames, joints, 4), translations (frames, moved, 3) and who has them; in the file's axes and units."""
    count = len(bvh.frames)
    quats = np.zeros((count, len(bvh.joints), 4))
    quats[..., 0] = 1.0
    moved: list[int] = []
    paths: list[Floats] = []
    orders: dict[str, list[tuple[int, list[int]]]] = {}
    start = 0
    for index, joint in enumerate(bvh.joints):
        columns = {channel: start + k for k, channel in enumerate(joint.channels)}
        start += len(columns)
        turns = [channel for channel in joint.channels if channel.endswith("rotation")]
        if turns:
            order = "".join(channel[0].lower() for channel in turns)
            orders.setdefault(order, []).append((index, [columns[channel] for channel in turns]))
        if index == 0 or len(turns) < len(columns):
            # a position takes the place of the offset, it is not added to it
            path = np.tile(joint.offset, (count, 1))
            for axis, channel in enumerate(CHANNELS[:3]):
                if channel in columns:
                    path[:, axis] = bvh.frames[:, columns[channel]]
            moved.append(index)
            paths.append(path)
    for order, users in orders.items():
        angles = np.deg2rad(bvh.frames[:, [columns for _, columns in users]])
        quats[:, [index for index, _ in users]] = quat_from_euler(order, angles)
    return quats, np.stack(paths, axis=1), moved


def _spread(skeleton: Skeleton, translations: Floats, moved: Sequence[int]) -> Floats:
    """Translations of all joints (frames, joints, 3)."""
    every = np.tile(skeleton.offsets, (len(translations), 1, 1))
    every[:, list(moved)] = translations
    return every


def save_bvh(
    clip: Clip,
    path: str | PathLike[str],
    *,
    units: str | float | None = None,
    up: Up | None = None,
    digits: int = 6,
) -> None:
    """Write a clip as BVH. Unit, axes and channels are those of the file that it came from, else cm and y up.

    Frames must be evenly spaced (see `clip.resampled`). `digits` follow the point of every number.

    >>> import tempfile, pathlib
    >>> from poise.motion import Clip, Skeleton
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "nod.bvh"
    >>> nod = Clip(Skeleton(["neck"], [-1], [(0, 0, 1.5)]), [0.0, 0.5], [[(1, 0, 0, 0)], [(1, 0, 0.1, 0)]])
    >>> save_bvh(nod, file)
    >>> load_bvh(file, units="cm", up="y").root_positions.round(6).tolist()
    [[0.0, 0.0, 1.5], [0.0, 0.0, 1.5]]
    """
    origin = clip.origin if clip.origin is not None and clip.origin.format == "bvh" else None
    meters = unit_length(units) if units is not None else origin.meters if origin else UNITS["cm"]
    axis = up if up is not None else origin.up if origin else "y"
    if axis not in _AXES:
        raise SceneError(f'must be "x", "y" or "z", found {axis!r}', field="up")
    if not isinstance(digits, int) or not 0 <= digits <= 17:
        raise SceneError(f"must be a whole number from 0 to 17, found {digits!r}", field="digits")
    same = origin is not None and len(origin.channels) == len(clip.skeleton) and axis == origin.up
    bvh = bvh_from_clip(clip, meters, axis, origin.channels if origin and same else ())
    Path(path).write_text(format_bvh(bvh, digits), encoding="utf-8", newline="\n")


def bvh_from_clip(clip: Clip, meters: float, up: str, channels: Sequence[tuple[str, ...]] = ()) -> BvhFile:
    """A file's numbers from a clip; joints get more channels than given where these cannot hold their motion."""
    steps = np.diff(clip.times)
    step = clip.duration / len(steps) if len(steps) else 1.0 / 30.0
    if len(steps) and np.abs(steps - step).max() > 1e-4 * step:
        raise SceneError("frames of BVH are evenly spaced, and these are not; use clip.resampled(rate)", field="clip")
    for name in clip.skeleton.names:
        if name != name.strip() or any(letter in "{}\r\n" for letter in name):
            raise SceneError(f"BVH holds no names with braces or line ends, found {name!r}", field="clip")
    plain = clip.at_rest_of(np.tile((1.0, 0.0, 0.0, 0.0), (len(clip.skeleton), 1)))
    back = np.argsort(_AXES[up])
    skeleton = plain.skeleton
    offsets = skeleton.offsets[:, back] / meters
    moves = plain.all_translations()[..., back] / meters
    quats = plain.quats_wxyz[..., [0, *(1 + axis for axis in back)]]
    given = [
        channels[index] if channels else _default_channels(index, index in plain.moved)
        for index in range(len(skeleton))
    ]
    angles = _euler_angles([_order(own) for own in given], quats)
    names: list[tuple[str, ...]] = []
    columns: list[Floats] = []
    for index, wanted in enumerate(given):
        own, numbers = _joint_columns(wanted, angles[:, index], moves[:, index], offsets[index])
        names.append(own)
        columns.append(numbers)
    joints = tuple(
        BvhJoint(name, int(parent), (float(x), float(y), float(z)), own)
        for name, parent, (x, y, z), own in zip(skeleton.names, skeleton.parents, offsets, names, strict=True)
    )
    tips = tuple((joint, _triple(offset[back] / meters)) for joint, offset in skeleton.tips)
    return BvhFile(joints, tips, np.concatenate(columns, axis=1), step)


def _triple(vector: Floats) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])


def _default_channels(index: int, moves: bool) -> tuple[str, ...]:
    return (*CHANNELS[:3], *_DEFAULT) if index == 0 or moves else _DEFAULT


def _order(channels: Sequence[str]) -> str:
    """Letters of the rotation channels."""
    return "".join(channel[0].lower() for channel in channels if channel.endswith("rotation"))


def _full(order: str) -> str:
    """All three axes, those that are missing last."""
    return order + "".join(letter for letter in "zxy" if letter not in order)


def _euler_angles(orders: Sequence[str], quats: Floats) -> Floats:
    """Angles (frames, joints, 3) about the axes of each joint's order, and those that it lacks."""
    angles = np.empty((*quats.shape[:2], 3))
    for full in {_full(order) for order in orders}:
        users = [index for index, order in enumerate(orders) if _full(order) == full]
        angles[:, users] = continuous(quat_to_euler(full, quats[:, users]))
    return angles


def _joint_columns(
    channels: tuple[str, ...], angles: Floats, moves: Floats, offset: Floats
) -> tuple[tuple[str, ...], Floats]:
    """Channels of one joint, with what is missing added, and their numbers (frames, channels)."""
    order = _order(channels)
    if np.abs(angles[:, len(order) :]).max(initial=0.0) > _NO_ANGLE:
        order = _full(order)
    values: dict[str, Floats] = {}
    for axis, channel in enumerate(CHANNELS[:3]):
        if channel in channels or np.abs(moves[:, axis] - offset[axis]).max() > 1e-12 * (1.0 + abs(offset[axis])):
            values[channel] = moves[:, axis]
    values |= {f"{letter.upper()}rotation": np.rad2deg(angles[:, k]) for k, letter in enumerate(order)}
    own = (*channels, *(channel for channel in values if channel not in channels))
    numbers = [values[channel] for channel in own]
    return own, np.stack(numbers, axis=1) if numbers else np.empty((len(angles), 0))
