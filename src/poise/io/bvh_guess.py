"""Guesses of what BVH files do not specify: unit of length, up axis, a leading T-pose.

All guesses are made from the posed frames and the lengths of bones. The rest pose of a file shows none of that: its
bones may lie along an axis of their joint, in any direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poise.motion.clip import Clip
from poise.motion.retarget_source import Source
from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply
from poise.motion.skeleton import Skeleton

Floats = NDArray[np.float64]

UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "cmu": 0.0254 / 0.45}
"""Length of the units that files are written in; m. CMU's is an inch, enlarged by 1 / 0.45."""
#: heights (m) that make a unit likely, the likelier units first
_LIKELY = (("m", 0.8, 2.3), ("cm", 0.8, 2.3), ("mm", 0.8, 2.3), ("cmu", 1.2, 2.1), ("inch", 1.2, 2.1), ("dm", 1.2, 2.1))
#: height of a skeleton in unknown units; m
_USUAL = 1.7

_HIGH = ("head", "neck", "skull", "crown")
_LOW = (("foot", "feet", "ankle", "toe"), ("leg", "knee", "shin", "shank", "calf"))
#: frames at which the figure is looked at
_LOOKS = 600
#: shares of a person's height (Winter 2009): ankle to hip, and hip to crown, base of the skull, neck and shoulders
_LEG, _CROWN, _SKULL, _NECK, _SHOULDERS = 0.491, 0.470, 0.37, 0.30, 0.288
#: weights of what speaks for an axis: posture on the mean and when it is most upright, the ground, what is still on the
#: ground, a ground at 0
_POSTURE, _ONCE, _GROUND, _STILL, _ZERO = 2.0, 3.0, 1.0, 0.5, 1.5
#: lowest points that move by this share of the figure's size are on a ground; that of a ground which is at 0
_FLAT, _AT_ZERO = 0.03, 0.05
#: y is up in more files than z, and x in few: what decides where nothing else does
_HABIT = np.array((0.0, 0.2, 0.1))
#: evidence that is weaker than this says nothing
_DECIDES = 0.5
_LIES = ", as the lowest points are level along it, though the head is above the feet along {other} in most frames"
_STANDS = ", as the head is above the feet along it, though the lowest points are more level along {other}"
#: frames at the start that a T-pose is compared with
_START = 200
#: a T-pose is further from the next frame than frames are from each other, by this factor
_JUMP = 8.0
#: joints that turn by less than this are still; rad
_TURNS = 1e-3
#: limbs and spines that are bent by less than this are straight, and pairs of limbs symmetric; rad
_STRAIGHT = np.radians(25.0)
#: in a T-pose legs are less far from the line of the trunk; rad
_SPREAD = np.radians(35.0)


@dataclass(frozen=True)
class UpGuess:
    """Which axis of a file is up."""

    axis: str
    notes: tuple[str, ...]
    """How it was found, and what speaks for another one."""


def guess_up(skeleton: Skeleton, quats: Floats, translations: Floats) -> UpGuess:
    """The axis that posture and ground speak for.

    Posture is where the head is from the feet, on the mean of the frames and in those in which it is most upright. The
    ground is under a figure that stands,
    lies or does a cartwheel: along the axis that is up its lowest point hardly moves, it is where something rests, and
    in many files it is at 0. `quats` (frames, joints, 4) and `translations` (frames, joints, 3) are in the file's axes.
    """
    source = _looked_at(skeleton, quats, translations)
    posture, ground = _posture(source), _ground(source)
    total = _HABIT + ground + (0.0 if posture is None else posture)
    axis = int(np.argmax(total))
    if posture is None:
        return UpGuess("xyz"[axis], (f"{'xyz'[axis]} is taken to be up, as no joint is called head or foot.",))
    why = ""
    for score, reason in ((posture, _LIES), (ground, _STANDS)):
        other = int(np.argmax(score))
        if score[other] - score[axis] > _DECIDES:
            why = reason.format(other="xyz"[other])
    return UpGuess("xyz"[axis], (f"{'xyz'[axis]} is taken to be up{why}.",))


def _looked_at(skeleton: Skeleton, quats: Floats, translations: Floats) -> Source:
    """Some of the frames, in the file's own axes and units."""
    pick = np.unique(np.linspace(0, len(quats) - 1, min(len(quats), _LOOKS)).astype(int))
    every = range(len(skeleton))
    return Source(Clip(skeleton, np.arange(len(pick)), quats[pick], translations[pick], moved=list(every)), {})


def _posture(source: Source) -> Floats | None:
    """For each axis how much the head is above the feet along it; None where no joint has such a name."""
    names = source.clip.skeleton.names
    high = _called(names, _HIGH)
    low = _called(names, _LOW[0]) or _called(names, _LOW[1])
    if not high or not low:
        return None
    way = source.places[:, high].mean(axis=1) - source.places[:, low].mean(axis=1)
    way /= np.maximum(np.linalg.norm(way, axis=1), 1e-12)[:, None]
    return np.asarray(_POSTURE * way.mean(axis=0) + _ONCE * np.quantile(way, 0.95, axis=0))


def _ground(source: Source) -> Floats:
    """For each axis how much the figure moves on a ground that lies across it."""
    places, size = source.places[:, source.figure()], max(source.size, 1e-12)
    lowest = places.min(axis=1) / size
    ends = np.quantile(lowest, (0.02, 0.98), axis=0)
    score = -_GROUND * np.log(ends[1] - ends[0] + _FLAT)
    score += _ZERO * np.exp(-((np.median(lowest, axis=0) / _AT_ZERO) ** 2))
    if len(places) < 2:
        return np.asarray(score)
    speeds = np.linalg.norm(np.diff(places, axis=0), axis=2) / size
    usual = max(float(np.median(speeds)), 1e-9)
    for axis in range(3):
        touching = places[:-1, :, axis].argmin(axis=1)
        slow = float(np.median(np.take_along_axis(speeds, touching[:, None], axis=1))) / usual
        score[axis] -= _STILL * np.log(slow + 0.1)
    return np.asarray(score)


def _called(names: tuple[str, ...], words: tuple[str, ...]) -> list[int]:
    return [k for k, name in enumerate(names) if any(word in name.casefold() for word in words)]


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


@dataclass(frozen=True)
class UnitGuess:
    """The unit of a file."""

    meters: float
    height: float
    """Of the figure, stretched out; in the unit."""
    notes: tuple[str, ...]
    """How it was found, and what speaks for another one."""


def guess_length(skeleton: Skeleton, quats: Floats, translations: Floats, up: str) -> UnitGuess:
    """The unit in which the bones of the figure, stretched out, make a person.

    Two other heights are looked at as well, and noted where they are those of another unit: how high the figure gets in
    its frames along the axis that is up, and how high it is in the rest pose of the file.
    """
    source = _looked_at(skeleton, quats, translations)
    height = _stature(source)
    unit, meters = guess_unit(height)
    person = f"{height:.4g} high ({height * meters:.2f} m)"
    notes = [f"lengths are taken to be {_named(unit, meters)}, as the bones are those of a figure {person}."]
    axis = "xyz".index(up)
    reach = float(np.quantile(np.ptp(source.places[:, source.figure(), axis], axis=1), 0.95))
    rest_positions, rest_quats = skeleton.rest_world
    points = np.concatenate((rest_positions, skeleton.place_tips(rest_positions, rest_quats)))
    rest = float(np.ptp(points[source.figure(), axis]))
    for high, where in ((reach, f"its frames along {up}"), (rest, "its rest pose")):
        other = guess_unit(high)
        if high > 0.0 and other[1] != meters and (other[0] or unit):
            only = "only " if high < height else ""
            notes.append(
                f"the figure is {only}{high:.4g} high in {where}, which would be a person in {_named(*other)}."
            )
    return UnitGuess(meters, height, tuple(notes))


def _named(unit: str, meters: float) -> str:
    return unit if unit not in ("", "cmu") else f"{100.0 * meters:.3g} cm each"


def _stature(source: Source) -> float:
    """How high the figure would be if it stood upright, from its bones; its largest extent where they have no names."""
    parts = source.parts
    hips = [parts[name] for name in ("thigh_l", "thigh_r") if name in parts]
    legs = [source.chain(parts[name], (*hips, parts["pelvis"])) for name in source.feet()]
    if not legs or not any(legs):
        return float(np.quantile(np.ptp(source.places[:, source.figure()], axis=1).max(axis=1), 0.95))
    leg, share = float(np.mean(legs)), _LEG
    between = float(np.median(np.linalg.norm(source.hips() - source.place("pelvis"), axis=1)))
    if "head" in parts:
        ends = source.ends(parts["head"])
        trunk = between + source.chain(parts["head"], (parts["pelvis"],))
        if ends:
            trunk += max(source.span(parts["head"], end) for end in ends)
        neck = "head" not in source.names[parts["head"]].casefold()
        share += _CROWN if ends else _NECK if neck else _SKULL
        leg += trunk
    elif "upper_arm_l" in parts and "upper_arm_r" in parts:
        found = source.top()
        if found is not None:
            leg += float(np.quantile(np.linalg.norm(found[1] - source.hips(), axis=1), 0.95))
            share += _SHOULDERS
    return leg / share


def leads_with_tpose(skeleton: Skeleton, quats: Floats, translations: Floats) -> bool:
    """Whether the first frame is a pose of its own: limbs and spine straight, the two sides alike.

    And the next frame is far away beside what follows.
    """
    if len(quats) < 4:
        return False
    first = _looked_at(skeleton, quats[:1], translations[:1])
    quats = quats[:_START]
    steps = quat_log(quat_multiply(quat_conjugate(quats[:-1]), quats[1:]))
    sizes = np.linalg.norm(steps, axis=-1)
    moving = sizes.max(axis=0) > _TURNS
    if not moving.any():
        return False
    means = sizes[:, moving].mean(axis=1)
    jumps = means[0] > _JUMP * np.median(means[1:]) and means[0] > means[1:].max()
    return bool(jumps and _is_straight(first))


def _is_straight(source: Source) -> bool:
    """Whether a single frame shows a figure with straight limbs and a straight spine, the same on both sides."""
    bends = []
    for side in "lr":
        for upper, lower in (("upper_arm", "forearm"), ("thigh", "shank")):
            if f"{upper}_{side}" in source.parts and f"{lower}_{side}" in source.parts:
                bends.append((source.direction(f"{upper}_{side}"), source.direction(f"{lower}_{side}")))
    spine = source.spine()
    bones = np.diff(source.places[:, spine], axis=1)
    lengths = np.linalg.norm(bones, axis=2)[0]
    long = [k for k in range(len(lengths)) if lengths[k] > 0.01 * source.size]
    # the first bone from the hips is oblique in many figures
    bends += [(bones[:, a], bones[:, b]) for a, b in pairwise(long[1:])]
    trunk = source.places[:, spine[-1]] - source.hips()
    legs = [source.place(name) for name in ("foot_l", "foot_r") if name in source.parts]
    if not legs or not np.any(trunk):
        return False
    if max(_angle(trunk[0], (source.hips() - foot)[0]) for foot in legs) > _SPREAD:
        return False
    for one, two in bends:
        if one is not None and two is not None and _angle(one[0], two[0]) > _STRAIGHT:
            return False
    across = source.across("thigh")
    for limb in ("upper_arm", "thigh"):
        pair = [source.direction(f"{limb}_{side}") if f"{limb}_{side}" in source.parts else None for side in "lr"]
        if across is not None and pair[0] is not None and pair[1] is not None:
            left, right, mirror = pair[0][0], pair[1][0], across[0] / np.linalg.norm(across[0])
            if _angle(left - 2.0 * mirror * (mirror @ left), right) > _STRAIGHT:
                return False
    return True


def _angle(one: Floats, two: Floats) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(one, two)), one @ two))
