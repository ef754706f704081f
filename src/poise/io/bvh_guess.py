"""What BVH files do not say: the unit of length, which axis is up, whether the first frame is only a T-pose."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply
from poise.motion.skeleton import Skeleton

Floats = NDArray[np.float64]

UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "cmu": 0.0254 / 0.45}
"""Length of the units that files are written in; m. CMU's is an inch, enlarged by 1 / 0.45."""
#: heights (m) that make a unit likely, the likelier units first
_LIKELY = (("m", 0.8, 2.3), ("cm", 0.8, 2.3), ("mm", 0.8, 2.3), ("cmu", 1.2, 2.1), ("inch", 1.2, 2.1), ("dm", 1.2, 2.1))
#: height of a figure in units that nobody knows; m
_USUAL = 1.7

_HIGH = ("head", "neck", "skull", "crown")
_LOW = (("foot", "feet", "ankle", "toe"), ("leg", "knee", "shin", "shank", "calf"))
#: frames at which the way from the feet to the head is looked at
_LOOKS = 32
#: frames at the start that a T-pose is compared with
_START = 200
#: a T-pose is further from the next frame than frames are from each other, by this factor
_JUMP = 8.0
#: rotations of a T-pose are 0, but for a few that mend the rest pose; rad
_ZERO = 1e-3


def guess_up(skeleton: Skeleton, quats: Floats, translations: Floats) -> str | None:
    """The axis from the feet to the head in most frames, or at rest; None where no joint has such a name.

    `quats` (frames, joints, 4) and `translations` (frames, joints, 3) are in the file's own axes.
    """
    high = _called(skeleton, _HIGH)
    low = _called(skeleton, _LOW[0]) or _called(skeleton, _LOW[1])
    if not high or not low:
        return None
    pick = np.unique(np.linspace(0, len(quats) - 1, min(len(quats), _LOOKS)).astype(int))
    moving, _ = skeleton.place(quats[pick], translations[pick])
    for positions in (moving, skeleton.rest_positions[None]):
        ways = positions[:, high].mean(axis=1) - positions[:, low].mean(axis=1)
        way = np.median(ways, axis=0)
        axis = int(np.argmax(np.abs(way)))
        if way[axis] > 0.0 and way[axis] > 1.5 * np.delete(np.abs(way), axis).max():
            return "xyz"[axis]
    return None


def _called(skeleton: Skeleton, words: tuple[str, ...]) -> list[int]:
    return [k for k, name in enumerate(skeleton.names) if any(word in name.casefold() for word in words)]


def guess_unit(height: float) -> tuple[str, float]:
    """The name and the length (m) of the unit in which a figure's height is like a human's.

    >>> guess_unit(172.0), guess_unit(1.7), guess_unit(3400.0)
    (('cm', 0.01), ('m', 1.0), ('', 0.0005))
    """
    if not height > 0.0:
        return "m", 1.0
    for unit, least, most in _LIKELY:
        if least <= height * UNITS[unit] <= most:
            return unit, UNITS[unit]
    return "", _USUAL / height


def rest_height(skeleton: Skeleton, up: str) -> float:
    """How high the figure stands at rest, in the file's units; its largest extent where that is nothing."""
    positions, quats = skeleton.rest_world
    points = np.concatenate((positions, skeleton.place_tips(positions, quats)))
    extent = np.ptp(points, axis=0)
    height = float(extent["xyz".index(up)])
    return height if height > 0.1 * extent.max() else float(extent.max())


def leads_with_tpose(quats: Floats) -> bool:
    """Whether the first frame is a pose of its own, with most joints as they are at rest.

    Most rotations of moving joints are 0 in it, and the next frame is far away beside what follows.
    """
    if len(quats) < 4:
        return False
    quats = quats[:_START]
    steps = quat_log(quat_multiply(quat_conjugate(quats[:-1]), quats[1:]))
    sizes = np.linalg.norm(steps, axis=-1)
    moving = sizes.max(axis=0) > _ZERO
    if not moving.any():
        return False
    at_rest = np.linalg.norm(quat_log(quats[0]), axis=-1)[moving] < _ZERO
    means = sizes[:, moving].mean(axis=1)
    return bool(at_rest.mean() > 0.5 and means[0] > _JUMP * np.median(means[1:]) and means[0] > means[1:].max())
