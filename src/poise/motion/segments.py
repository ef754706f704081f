"""Frames of segments: constant orientations of a character's links in a clip's joints, from posed bones.

Each link rotates with one joint of the clip, up to a constant rotation. That rotation aligns directions of the link
with directions of the posed bones: hips and shoulders from right to left, the trunk from hips to neck, limbs along
their bones with their bending axis, feet along the toes and flat on the ground.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poise.motion.retarget_rig import UP, Target
from poise.motion.retarget_source import NEXT, Source
from poise.motion.rotations import cross, quat_conjugate, quat_from_matrix, quat_multiply, rotate, turn_between, unit

Floats = NDArray[np.float64]

#: the parent of each part
_ABOVE = {"torso": "pelvis", "head": "torso", "upper_arm": "torso", "forearm": "upper_arm", "hand": "forearm"}
_ABOVE |= {"thigh": "pelvis", "shank": "thigh", "foot": "shank"}
#: frames in which the trunk is shorter than its longest by this share have the weight 1/e: a bend of about 16 degrees
_SHORTER = 0.01
#: bends (squared sine) with the same weight as the hanging direction of limbs, and as the toes: 10 and 18 degrees
_STRAIGHT, _TOES = 0.03, 0.1
#: the weight of rotations farther from the robust mean than this decreases with the distance; rad
_USUAL = 0.1
_ROUNDS = 20
#: relative tolerance of lengths at which segments are the character's own
_SAME = 1e-5
#: a foot stands where it is lower than this above its lowest (of the leg's length) and slower than this (1/s of it)
_STANDING = (0.03, 0.3)
#: share of the frames in which feet may be lower than their standing height
_LOW = 0.05
#: least standing time for finding a sole (s), its greatest tilt from the expected direction (cosine), and the greatest
#: rate of its tilt (rad/s)
_LONG, _TILT, _TILTING = 0.2, 0.7, 0.5
#: the crown is above a head's joint if its direction is within this (cosine) of that of the neck
_CROWN = 0.7


def offsets(source: Source, target: Target, pairs: Mapping[str, int]) -> dict[int, Floats]:
    """Orientations (4,) of links in the axes of their joints of the clip, by link."""
    if is_own(source, target, pairs):
        return {
            target.parts[part]: quat_multiply(
                quat_conjugate(source.rest_quats[joint]), target.rest_quats[target.parts[part]]
            )
            for part, joint in pairs.items()
        }
    return _Fitting(source, target, pairs).offsets


def is_own(source: Source, target: Target, pairs: Mapping[str, int]) -> bool:
    """Whether the clip's skeleton at rest is the scaled character at rest, as in files that Poise writes.

    Then nothing is estimated from the poses, neither soles nor the direction of the head.
    """
    hips, base = source.rest[pairs["pelvis"]], target.rest[target.parts["pelvis"]]
    ratio = target.leg_length() / source.leg_length()
    joints, links = list(pairs.values()), [target.parts[part] for part in pairs]
    own = (source.rest[joints] - hips) * ratio
    return bool(np.allclose(own, np.array(target.rest)[links] - base, rtol=0.0, atol=_SAME * target.leg_length()))


class _Fitting:
    """Orientations of links in joints, computed from the trunk outwards."""

    def __init__(self, source: Source, target: Target, pairs: Mapping[str, int]) -> None:
        self.source, self.target, self.pairs = source, target, pairs
        self.offsets: dict[int, Floats] = {}
        kind, line, straight = _trunk(source)
        for part in _outwards(pairs):
            limb = part.rpartition("_")[0] or part
            if limb == "pelvis":
                offset = self._trunk_part(part, source.across("thigh"), kind, line, straight)
            elif limb == "torso":
                offset = self._trunk_part(part, source.shoulders(), kind, line, straight)
            elif limb == "foot":
                offset = self._foot(part)
            else:
                offset = self._pointing(part)
            self.offsets[target.parts[part]] = offset

    def link(self, part: str) -> Floats:
        """World orientation of a fitted part's link; (frames, 4)."""
        return quat_multiply(self.source.quats[:, self.pairs[part]], self.offsets[self.target.parts[part]])

    def _trunk_part(self, part: str, across: Floats | None, kind: str, line: Floats, straight: Floats) -> Floats:
        """Pelvis or chest: from its hips or shoulders, and along the trunk in frames in which that is straight."""
        source, joint, target = self.source, self.pairs[part], self.target
        link = target.parts[part]
        up, own_up = _mean(source.local(joint, line), straight), target.to_link(link, target.trunk(kind))
        left = _mean(source.local(joint, across), straight) if across is not None else self._left(part, straight)
        own_left = target.to_link(link, target.left())
        rigid = _rigid(source, target, part, self.pairs)
        if rigid is not None:
            up, own_up = rigid
        return quat_multiply(_frame(left, up), quat_conjugate(_frame(own_left, own_up)))

    def _left(self, part: str, straight: Floats) -> Floats:
        """The left direction of a trunk part without a pair of joints: as for the others, otherwise any direction."""
        source, joint = self.source, self.pairs[part]
        for across in (source.across("thigh"), source.shoulders(), source.across("foot"), source.across("shank")):
            if across is not None:
                return _mean(source.local(joint, across), straight)
        return np.array((0.0, 1.0, 0.0))

    def _pointing(self, part: str) -> Floats:
        """A limb, hand or head: along its bone, with the twist from its bending axis."""
        source, target, joint = self.source, self.target, self.pairs[part]
        guess, side = self._hanging(part), target.bend_axis(part)
        along = source.direction(part)
        if part == "head" and along is not None:
            over = _mean(source.local(self.pairs[part], rotate(guess, target.pointing(part))), np.ones(len(along)))
            # some files have the crown at a side of the head
            along = along if _mean(source.local(joint, along), np.ones(len(along))) @ over > _CROWN else None
        if along is None:
            return _usual_turn(quat_multiply(quat_conjugate(source.quats[:, joint]), guess))
        own = target.pointing(part)
        turned = quat_multiply(turn_between(rotate(guess, own), along), guess)
        near = 0.5 * (1.0 + np.sum(rotate(guess, own) * along, axis=1))
        axis = _STRAIGHT * near[:, None] * source.local(joint, rotate(turned, side))
        axis = _usual_axis(axis) * len(axis) if part == "head" else axis.sum(axis=0)
        for known in (self._bend(part), self._toes(part)):
            if known is not None:
                axis = axis + source.local(joint, known).sum(axis=0)
        direction = _mean(source.local(joint, along), np.ones(len(along)))
        return quat_multiply(_frame(direction, axis), quat_conjugate(_frame(own, side)))

    def _hanging(self, part: str) -> Floats:
        """Orientation of a link at its rest orientation relative to its parent; (frames, 4)."""
        target, above = self.target, _above(part)
        while above not in self.pairs or target.parts[above] not in self.offsets:
            above = _above(above)
        start = quat_conjugate(target.rest_quats[target.parts[above]])
        return quat_multiply(self.link(above), quat_multiply(start, target.rest_quats[target.parts[part]]))

    def _bend(self, part: str) -> Floats | None:
        """The bending axis of a limb, whose length grows with the bend; (frames, 3)."""
        limb, _, side = part.rpartition("_")
        upper, lower = {"upper_arm": ("upper_arm", "forearm"), "forearm": ("upper_arm", "forearm")}.get(
            limb, ("thigh", "shank")
        )
        if limb not in NEXT or f"{upper}_{side}" not in self.pairs or f"{lower}_{side}" not in self.pairs:
            return None
        one, two = (self.source.direction(f"{name}_{side}") for name in (upper, lower))
        if one is None or two is None:
            return None
        axis = cross(one, two)
        return np.asarray(axis * np.linalg.norm(axis, axis=1)[:, None])

    def _toes(self, part: str) -> Floats | None:
        """The bending axis of a leg from its foot, as ankles do not rotate about the shank; (frames, 3)."""
        limb, _, side = part.rpartition("_")
        if limb not in ("thigh", "shank") or f"foot_{side}" not in self.pairs:
            return None
        toes, shank = (self.source.direction(f"{name}_{side}") for name in ("foot", "shank"))
        return None if toes is None or shank is None else _TOES * cross(toes, shank)

    def _foot(self, part: str) -> Floats:
        """A foot: along its toes, with its sole down while it stands; otherwise like the other foot, or as at rest."""
        source, target, joint = self.source, self.target, self.pairs[part]
        link = target.parts[part]
        guess, toes = self._hanging(part), source.direction(part)
        front, up = (target.to_link(link, axis) for axis in (target.front(), UP))
        if toes is None:
            turn = _usual_turn(quat_multiply(quat_conjugate(source.quats[:, joint]), guess))
            along, level = rotate(turn, front), rotate(turn, up)
            found = _sole_up(source, joint, level)
            level = level if found is None else found
        else:
            along = _mean(source.local(joint, toes), np.ones(len(toes)))
            level = self._level(part)
        return quat_multiply(_frame(level, along), quat_conjugate(_frame(up, front)))

    def _level(self, part: str) -> Floats:
        """The up direction of a foot with toes, in the axes of its joint; (3,)."""
        down = self.target.toes_down(part)
        for name in (part, part[:-1] + {"l": "r", "r": "l"}[part[-1]]):
            toes = self.source.direction(name) if name in self.pairs else None
            if toes is None or _above(name) not in self.pairs:
                continue
            joint, every = self.pairs[name], np.ones(len(toes))
            along = _mean(self.source.local(joint, toes), every)
            upwards = rotate(self._hanging(name), self.target.to_link(self.target.parts[name], UP))
            shank = _mean(self.source.local(joint, upwards), every)
            found = _sole_up(self.source, joint, _frame_up(along, shank, down))
            if found is not None and name == part:
                return found
            if found is not None:
                down = float(np.arcsin(np.clip(-found @ along, -1.0, 1.0)))
            if name == part:
                own = along, shank
        return _frame_up(*own, down)


def _outwards(pairs: Mapping[str, int]) -> list[str]:
    """Parts, parents first."""
    order = ("pelvis", "torso", "head", "upper_arm", "forearm", "hand", "thigh", "shank", "foot")
    return sorted(pairs, key=lambda part: order.index(part if part in order else part.rpartition("_")[0]))


def _above(part: str) -> str:
    """The parent of a part."""
    limb, _, side = part.rpartition("_")
    above = _ABOVE[limb or part]
    return above if above in ("pelvis", "torso") else f"{above}_{side}"


def _trunk(source: Source) -> tuple[str, Floats, Floats]:
    """The upper end part of the trunk, (frames, 3) its direction from the hips, and (frames,) its straightness.

    A skeleton without a trunk uses the line of its legs, from the feet up.
    """
    found, hips = source.top(), source.hips()
    if found is None:
        kind, line = "legs", hips - np.mean([source.place(part) for part in source.feet() or ["pelvis"]], axis=0)
    else:
        kind, line = found[0], found[1] - hips
    length = np.linalg.norm(line, axis=1)
    longest = float(np.quantile(length, 1.0 - _LOW))
    shorter = np.maximum(1.0 - length / max(longest, 1e-12), 0.0)
    return kind, line / np.maximum(length, 1e-12)[:, None], np.exp(-((shorter / _SHORTER) ** 2))


def _rigid(source: Source, target: Target, part: str, pairs: Mapping[str, int]) -> tuple[Floats, Floats] | None:
    """Up directions of a segment and of the character's, if both have the same shape, so that no pose is needed."""
    base, tops, wings = {"pelvis": ("pelvis", ("torso",), "thigh"), "torso": ("torso", ("head",), "upper_arm")}[part]
    names = [*tops, f"{wings}_l", f"{wings}_r"]
    if any(name not in pairs or source.parents[pairs[name]] != pairs[base] for name in names):
        return None
    joint, link = pairs[base], target.parts[base]
    every = np.ones(len(source.places))
    own = np.array([_average(source.local(joint, source.place(name) - source.place(base)), every) for name in names])
    theirs = np.array([target.to_link(link, target.rest[target.parts[name]] - target.rest[link]) for name in names])
    own = own * (target.leg_length() / source.leg_length())
    sides = [np.linalg.norm(points[:, None] - points[None], axis=2) for points in (own, theirs)]
    if np.abs(sides[0] - sides[1]).max() > _SAME * target.leg_length():
        return None
    return (own[0] - 0.5 * (own[1] + own[2]), theirs[0] - 0.5 * (theirs[1] + theirs[2]))


def _sole_up(source: Source, joint: int, guess: Floats) -> Floats | None:
    """The up direction (3,) of a foot: the mean world up while it stands, as feet stand flat; None if it never stands.

    Frames in which that is far from `guess` are excluded: the foot lies on its side, or its heel is up.
    """
    clip, leg = source.clip, source.leg_length()
    if clip.n_frames < 3:
        return None
    height = source.places[:, joint, 2]
    speed = np.linalg.norm(np.gradient(source.places[:, joint], clip.times, axis=0), axis=1)
    stands = (height < np.quantile(height, _LOW) + _STANDING[0] * leg) & (speed < _STANDING[1] * leg)
    up = source.local(joint, np.broadcast_to(UP, (clip.n_frames, 3)))
    tilting = np.linalg.norm(np.gradient(up, clip.times, axis=0), axis=1)
    stands &= (up @ guess > _TILT) & (tilting < _TILTING)
    if np.count_nonzero(stands) < _LONG * clip.rate:
        return None
    return unit(up[stands].mean(axis=0))


def _frame(first: Floats, second: Floats) -> Floats:
    """A frame (4,) whose y is along one direction, and whose z is as near as possible to another."""
    y = unit(first)
    second = second - y * (y @ second)
    if np.linalg.norm(second) < 1e-9:
        second = np.eye(3)[int(np.argmin(np.abs(y)))]
        second = second - y * (y @ second)
    z = unit(second)
    return quat_from_matrix(np.stack((np.cross(y, z), y, z), axis=1))


def _frame_up(along: Floats, shank: Floats, down: float) -> Floats:
    """The up direction of a foot whose toes are lower than its ankle by an angle, on the side of its shank; (3,)."""
    level = shank - along * (along @ shank)
    if np.linalg.norm(level) < 1e-9:
        level = np.eye(3)[int(np.argmin(np.abs(along)))]
        level = level - along * (along @ level)
    return np.asarray(np.cos(down) * unit(level) - np.sin(down) * along)


def _average(vectors: Floats, weights: Floats) -> Floats:
    return np.asarray(weights @ vectors / weights.sum())


def _mean(vectors: Floats, weights: Floats) -> Floats:
    """The direction (3,) of the weighted mean of vectors (frames, 3); arbitrary if the mean is zero."""
    mean = _average(vectors, weights)
    length = float(np.linalg.norm(mean))
    return mean / length if length > 1e-9 else np.array((0.0, 0.0, 1.0))


def _usual_axis(vectors: Floats) -> Floats:
    """Robust mean (3,) of vectors (frames, 3): outliers have little weight."""
    sizes = np.linalg.norm(vectors, axis=1)
    mean = vectors.mean(axis=0)
    for _ in range(_ROUNDS):
        if not np.any(mean):
            break
        cosine = vectors @ unit(mean) / np.maximum(sizes, 1e-12)
        weights = 1.0 / (np.arccos(np.clip(cosine, -1.0, 1.0)) + _USUAL)
        mean = _average(vectors, weights)
    return np.asarray(mean)


def _usual_turn(quats: Floats) -> Floats:
    """Robust mean (4,) of rotations (frames, 4): outliers have little weight."""
    weights = np.ones(len(quats))
    mean = quats[0]
    for _ in range(_ROUNDS):
        # the mean is the principal eigenvector of the sum of outer products
        mean = np.linalg.eigh(np.einsum("f,fi,fj->ij", weights, quats, quats))[1][:, -1]
        weights = 1.0 / (2.0 * np.arccos(np.clip(np.abs(quats @ mean), 0.0, 1.0)) + _USUAL)
    return np.asarray(mean)
