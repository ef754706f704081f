"""How the links of a character sit in the joints of a clip: frames of segments, built from posed bones.

Each link turns with one joint of the clip, from which it differs by a rotation that never changes. That rotation lays
directions of the link along directions of the posed bones: hips and shoulders from right to left, the trunk from hips
to neck, limbs along their bones with the axis that they bend about, feet along the toes and flat on the ground.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poise.motion.retarget_rig import UP, Target
from poise.motion.retarget_source import NEXT, Source
from poise.motion.rotations import cross, quat_conjugate, quat_from_matrix, quat_multiply, rotate, turn_between, unit

Floats = NDArray[np.float64]

#: the part that each part hangs on
_ABOVE = {"torso": "pelvis", "head": "torso", "upper_arm": "torso", "forearm": "upper_arm", "hand": "forearm"}
_ABOVE |= {"thigh": "pelvis", "shank": "thigh", "foot": "shank"}
#: frames in which the trunk is shorter than its longest by this share count for 1/e: it is bent by about 16 degrees
_SHORTER = 0.01
#: bends (the squared sine) that count as much as how limbs hang and as where toes point: 10 and 18 degrees
_STRAIGHT, _TOES = 0.03, 0.1
#: turns farther from the usual one than this count less the farther they are; rad
_USUAL = 0.1
_ROUNDS = 20
#: segments of which all lengths agree to this share are the character's own
_SAME = 1e-5
#: a foot stands where it is lower than this above its lowest (of the leg's length) and slower than this (1/s of it)
_STANDING = (0.03, 0.3)
#: share of the frames in which feet may be lower than their standing height
_LOW = 0.05
#: a foot has stood long enough to show its sole; s. Its sole is not tilted by more than this (cosine) from where it is
#: expected, and its tilt changes no faster than this (rad/s)
_LONG, _TILT, _TILTING = 0.2, 0.7, 0.5
#: the crown is above a head's joint where that is no farther than this (cosine) from where a head is on its neck
_CROWN = 0.7


def offsets(source: Source, target: Target, pairs: Mapping[str, int]) -> dict[int, Floats]:
    """Orientations (4,) of links in the axes of the joints that they turn with, by link."""
    if is_own(source, target, pairs):
        return {
            target.parts[part]: quat_multiply(
                quat_conjugate(source.rest_quats[joint]), target.rest_quats[target.parts[part]]
            )
            for part, joint in pairs.items()
        }
    return _Fitting(source, target, pairs).offsets


def is_own(source: Source, target: Target, pairs: Mapping[str, int]) -> bool:
    """Whether the clip's figure at rest is the character at rest, smaller or larger: what Poise writes itself.

    Then nothing must be found from how the figure is posed, neither soles nor where the head looks.
    """
    hips, base = source.rest[pairs["pelvis"]], target.rest[target.parts["pelvis"]]
    ratio = target.leg_length() / source.leg_length()
    joints, links = list(pairs.values()), [target.parts[part] for part in pairs]
    own = (source.rest[joints] - hips) * ratio
    return bool(np.allclose(own, np.array(target.rest)[links] - base, rtol=0.0, atol=_SAME * target.leg_length()))


class _Fitting:
    """Orientations of links in joints, found from the trunk outwards."""

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
        """How the link of a part that was fitted is turned in the world; (frames, 4)."""
        return quat_multiply(self.source.quats[:, self.pairs[part]], self.offsets[self.target.parts[part]])

    def _trunk_part(self, part: str, across: Floats | None, kind: str, line: Floats, straight: Floats) -> Floats:
        """Pelvis or chest: as its hips or shoulders lie, and along the trunk in frames in which that is straight."""
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
        """What is left for a part of the trunk without a pair of joints: as for the others, else any direction."""
        source, joint = self.source, self.pairs[part]
        for across in (source.across("thigh"), source.shoulders(), source.across("foot"), source.across("shank")):
            if across is not None:
                return _mean(source.local(joint, across), straight)
        return np.array((0.0, 1.0, 0.0))

    def _pointing(self, part: str) -> Floats:
        """A limb, hand or head: along its bone, turned about it by the axis that it bends about."""
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
        """How a link would be turned if it hung on the one above as it does at rest; (frames, 4)."""
        target, above = self.target, _above(part)
        while above not in self.pairs or target.parts[above] not in self.offsets:
            above = _above(above)
        start = quat_conjugate(target.rest_quats[target.parts[above]])
        return quat_multiply(self.link(above), quat_multiply(start, target.rest_quats[target.parts[part]]))

    def _bend(self, part: str) -> Floats | None:
        """The axis that a limb bends about, longer where it is bent more; (frames, 3)."""
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
        """The axis of a leg that its foot suggests, as ankles do not turn about the shank; (frames, 3)."""
        limb, _, side = part.rpartition("_")
        if limb not in ("thigh", "shank") or f"foot_{side}" not in self.pairs:
            return None
        toes, shank = (self.source.direction(f"{name}_{side}") for name in ("foot", "shank"))
        return None if toes is None or shank is None else _TOES * cross(toes, shank)

    def _foot(self, part: str) -> Floats:
        """A foot: along its toes, with its sole down where it stands, else as the other one, else as it is at rest."""
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
        """What is up for a foot with toes, in the axes of its joint; (3,)."""
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
    """Parts, each after the one that it hangs on."""
    order = ("pelvis", "torso", "head", "upper_arm", "forearm", "hand", "thigh", "shank", "foot")
    return sorted(pairs, key=lambda part: order.index(part if part in order else part.rpartition("_")[0]))


def _above(part: str) -> str:
    """The part that a part hangs on."""
    limb, _, side = part.rpartition("_")
    above = _ABOVE[limb or part]
    return above if above in ("pelvis", "torso") else f"{above}_{side}"


def _trunk(source: Source) -> tuple[str, Floats, Floats]:
    """The part that the trunk ends at, (frames, 3) where it points from the hips, and (frames,) how straight it is.

    A figure without a trunk has the line of its legs, from the feet up.
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
    """What is up for a segment and for the character's where both have the same shape, so that no posture is needed."""
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
    """What is up for a foot (3,): what is up on the mean while it stands, as feet stand flat; None if it never stands.

    Frames in which that is far from a guess do not count: there a foot lies, or its heel is up.
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
    """A frame (4,) whose y is along one direction, and whose z is as near to another as that lets it be."""
    y = unit(first)
    second = second - y * (y @ second)
    if np.linalg.norm(second) < 1e-9:
        second = np.eye(3)[int(np.argmin(np.abs(y)))]
        second = second - y * (y @ second)
    z = unit(second)
    return quat_from_matrix(np.stack((np.cross(y, z), y, z), axis=1))


def _frame_up(along: Floats, shank: Floats, down: float) -> Floats:
    """What is up for a foot whose toes are lower than its ankle by an angle, on the side of its shank; (3,)."""
    level = shank - along * (along @ shank)
    if np.linalg.norm(level) < 1e-9:
        level = np.eye(3)[int(np.argmin(np.abs(along)))]
        level = level - along * (along @ level)
    return np.asarray(np.cos(down) * unit(level) - np.sin(down) * along)


def _average(vectors: Floats, weights: Floats) -> Floats:
    return np.asarray(weights @ vectors / weights.sum())


def _mean(vectors: Floats, weights: Floats) -> Floats:
    """The direction (3,) of the weighted mean of vectors (frames, 3); any where there is none."""
    mean = _average(vectors, weights)
    length = float(np.linalg.norm(mean))
    return mean / length if length > 1e-9 else np.array((0.0, 0.0, 1.0))


def _usual_axis(vectors: Floats) -> Floats:
    """The mean (3,) of vectors (frames, 3), in which those far from most others count little."""
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
    """The mean (4,) of rotations (frames, 4), in which those far from most others count little."""
    weights = np.ones(len(quats))
    mean = quats[0]
    for _ in range(_ROUNDS):
        # the mean is the direction that the outer products of all have most of
        mean = np.linalg.eigh(np.einsum("f,fi,fj->ij", weights, quats, quats))[1][:, -1]
        weights = 1.0 / (2.0 * np.arccos(np.clip(np.abs(quats @ mean), 0.0, 1.0)) + _USUAL)
    return np.asarray(mean)
