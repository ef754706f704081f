"""Motion retargeting: a clip's motion for a compiled character, with joints matched by the names of bones.

Clip and character may differ in proportions, rest poses (a T-pose, hanging arms) and joints. Retargeting transfers the
rotation of each part from its rest pose, in world axes, and the directions of limbs. Hinges get the angle that points
their limb in that direction; the ball joint above them twists about its limb, so that they can.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.motion.euler import quat_to_euler
from poise.motion.ground import level_of, rises
from poise.motion.legs import bent
from poise.motion.motion_checks import positive, vectors
from poise.motion.retarget_rig import IDENTITY, UP, Target
from poise.motion.retarget_source import Source
from poise.motion.rotations import (
    cross,
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_multiply,
    rotate,
    turn_between,
)
from poise.motion.segments import is_own, offsets
from poise.motion.soles import turned_up

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.motion.clip import Clip

Floats = NDArray[np.float64]

#: iterations of raising the body, rotating ankles and bending legs: rotated feet stand at other heights
_PASSES = 3
#: for limbs that are bent by less than this (sine), the clip determines the twist of the part above
_STRAIGHT = 0.35


class Retargeted(NamedTuple):
    """Coordinates of a character over time."""

    times: Floats
    """(frames,) s."""
    q: Floats
    """(frames, nq)."""


def retarget(
    clip: Clip,
    model: Model,
    *,
    parts: Mapping[str, str] | None = None,
    scale: float | None = None,
    floor: float | None = 0.0,
    limits: bool = True,
    like: Clip | None = None,
) -> Retargeted:
    """Coordinates of a compiled human character with the motion of a clip.

    Bones are matched by name (see `poise.motion.bone_names`); `parts` adds or changes pairs: a part, like `"thigh_l"`
    or `"torso"`, and the clip's joint. The clip's travel is multiplied by `scale`, by default the ratio of the legs'
    lengths; its start does not change. The whole motion moves up or down such that the soles reach `floor` (m); None
    does not change its height. With `limits` angles of hinges and universals stay in their ranges.

    The fit of clip and character is estimated from the clip: its soles, its height above the floor. With `like`,
    another clip of the same skeleton, it is estimated from that one, so that the result is consistent with it.

    >>> import poise
    >>> from poise.motion import Clip, Skeleton
    >>> names = ["Hips", "LeftUpLeg", "LeftLeg", "LeftFoot", "RightUpLeg", "RightLeg", "RightFoot"]
    >>> left, right = (0, 0.1, 0), (0, -0.1, 0)
    >>> bones = [(0, 0, 0.9), left, (0, 0, -0.4), (0, 0, -0.4), right, (0, 0, -0.4), (0, 0, -0.4)]
    >>> turns = np.tile((1.0, 0, 0, 0), (1, 7, 1))
    >>> turns[0, 5] = (np.cos(0.3), 0, np.sin(0.3), 0)
    >>> clip = Clip(Skeleton(names, [-1, 0, 1, 2, 0, 4, 5], bones), [0.0], turns)
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> retarget(clip, model).q[0, model.q_slice("knee_r")].round(6)
    array([0.6])
    """
    fit = Fit(clip if like is None else like, model, parts=parts, scale=scale)
    source = fit.source
    if like is not None:
        if not like.skeleton.matches(clip.skeleton):
            raise ValueError("like: must have the joints of the clip, found others")
        source = Source(clip, parts or {})
    q, turns = fit.pose(source, limits)
    root = fit.root(source.hips(), turns)
    if floor is not None:
        if like is not None:
            rise = fit.rise(clip.times)
        else:
            q, rise = fit.settled(q, turns, root, limits)
        root[:, 2] += float(vectors("floor", floor, ())) + rise
    at = int(model.joint_q_start[fit.target.joint[fit.target.root]])
    q[:, at : at + 3] = root
    return Retargeted(np.array(clip.times), q)


class Fit:
    """Fit of a clip and a character: common parts, their relative orientations, lengths of legs."""

    def __init__(
        self,
        clip: Clip,
        model: Model,
        *,
        parts: Mapping[str, str] | None = None,
        scale: float | None = None,
        character: str | None = None,
    ) -> None:
        self.target = target = Target(model, character)
        for part in parts or {}:
            if part not in target.parts:
                near = get_close_matches(str(part), target.parts, n=1)
                hint = f', did you mean "{near[0]}"?' if near else ""
                raise ValueError(f'parts: the character has no "{part}"{hint}')
        self.source = source = Source(clip, parts or {})
        self.pairs = {part: joint for part, joint in source.parts.items() if part in target.parts}
        if "pelvis" not in self.pairs or not any(part.startswith("thigh") for part in self.pairs):
            raise ValueError(
                f"parts: no hips and legs are common to the clip ({', '.join(sorted(source.parts)) or 'none'}) "
                f"and the character ({', '.join(sorted(target.parts)) or 'none'}); name the clip's joints with parts="
            )
        lengths = target.leg_length() / source.leg_length()
        self.ratio = lengths if scale is None else positive("scale", scale, "")
        self.own = is_own(source, target, self.pairs)
        self.offsets = offsets(source, target, self.pairs)
        self.start = source.hips()[0] * (1.0, 1.0, 0.0)

    def pose(self, source: Source, limits: bool) -> tuple[Floats, list[Floats]]:
        """Coordinates (frames, nq) except the root's position, and world orientations of all links."""
        target, pairs = self.target, self.pairs
        wanted = {
            target.parts[part]: quat_multiply(source.quats[:, joint], self.offsets[target.parts[part]])
            for part, joint in pairs.items()
        }
        aims: dict[str, Floats] = {}
        for part in pairs:
            aim = source.direction(part) if target.points(part) else None
            if aim is not None:
                aims[part] = aim
        return _solve(target.model, target, wanted, aims, limits)

    def root(self, hips: Floats, turns: list[Floats]) -> Floats:
        """Positions of the root (frames, 3) for those of the middle of the clip's hips."""
        offset = rotate(turns[self.target.root], self.target.hip_offset())
        return np.asarray(self.start + self.ratio * (hips - self.start) - offset)

    def hips(self, root: Floats, turn: Floats) -> Floats:
        """The middle of the clip's hips (frames, 3) for positions and orientations of the root."""
        offset = rotate(turn, self.target.hip_offset())
        return np.asarray(self.start + (root + offset - self.start) / self.ratio)

    def settled(self, q: Floats, turns: list[Floats], root: Floats, limits: bool) -> tuple[Floats, Floats]:
        """The clip's own motion with its soles on a floor at height 0 while they stand.

        Coordinates (frames, nq) except the root's position, and the rise of the root; (frames,) m.
        """
        if self.own:
            # the same proportions: heights are right except for a constant
            return q, np.full(len(root), -level_of(self.target, turns, root))
        given = q, turns
        rise = np.zeros(len(root))
        for k in range(_PASSES + 1):
            raised = root + np.multiply.outer(rise, UP)
            if k:
                q, turns = turned_up(self.target, *given, raised, limits)
                q, turns = bent(self.source, self.target, q, turns, raised, limits)
            if k < _PASSES:
                rise += rises(self.source, self.target, turns, raised)
        return q, rise

    def rise(self, times: Floats) -> Floats:
        """(times,) rise of the clip itself at some times, with joints in their ranges; m."""
        q, turns = self.pose(self.source, True)
        rise = self.settled(q, turns, self.root(self.source.hips(), turns), True)[1]
        return np.interp(times, self.source.clip.times, rise)


def _solve(
    model: Model, target: Target, wanted: Mapping[int, Floats], aims: Mapping[str, Floats], limits: bool
) -> tuple[Floats, list[Floats]]:
    """Coordinates (frames, nq) except the root's position, and world orientations of all links."""
    frames = len(next(iter(wanted.values())))
    q = np.tile(model.q_rest, (frames, 1))
    turns: list[Floats] = []
    names = {link: part for part, link in target.parts.items()}
    for link in range(model.n_links):
        parent = int(model.link_parent[link])
        base = quat_multiply(turns[parent] if parent >= 0 else IDENTITY, model.link_quat_wxyz[link])
        joint, goal = target.joint[link], wanted.get(link)
        kind = model.joint_kinds[joint] if joint >= 0 else ""
        at = int(model.joint_q_start[joint]) if joint >= 0 else 0
        local = np.tile(target.rest_locals[link], (frames, 1))
        if goal is not None and kind in ("free", "ball"):
            if names[link] in aims:
                # bones that have positions of their own do not always point where their joints turn them
                along = rotate(goal, target.own_direction(names[link]))
                goal = quat_multiply(turn_between(along, aims[names[link]]), goal)
            child = target.hinge_below(link)
            if child is not None and names.get(child) in aims and names[link] in aims:
                goal = _twisted(model, target, link, child, goal, aims[names[child]], names)
            local = _continuous(quat_multiply(quat_conjugate(base), goal))
            q[:, at + (3 if kind == "free" else 0) :][:, :4] = local
        elif goal is not None and kind in ("hinge", "universal"):
            wish = quat_multiply(quat_conjugate(base), goal)
            axes = target.axes(link)
            if kind == "universal":
                angles = _two_angles(axes, wish)
            elif names[link] in aims:
                aim = rotate(quat_conjugate(base), aims[names[link]])
                angles = _signed_angle(axes[0], target.own_direction(names[link]), aim)[:, None]
            else:
                angles = _twist(axes[0], wish)[:, None]
            local = np.tile(IDENTITY, (frames, 1))
            for k, axis in enumerate(axes):
                q[:, at + k] = _kept(model, joint, k, angles[:, k] + model.q_zero[at + k], limits)
                local = quat_multiply(local, quat_exp((q[:, at + k] - model.q_zero[at + k])[:, None] * axis))
        turns.append(quat_multiply(base, local))
    return q, turns


def _two_angles(axes: list[Floats], quats: Floats) -> Floats:
    """Angles (frames, 2) about two perpendicular axes whose rotations are nearest to given ones (frames, 4)."""
    first, second = axes
    frame = quat_from_matrix(np.stack((first, second, np.cross(first, second)), axis=1))
    return quat_to_euler("xyz", quat_multiply(quat_multiply(quat_conjugate(frame), quats), frame))[:, :2]


def _twisted(
    model: Model, target: Target, link: int, child: int, goal: Floats, aim: Floats, names: Mapping[int, str]
) -> Floats:
    """The target of a ball joint, twisted about its limb so that the hinge below can point its limb at the aim.

    For a straight limb the twist is undetermined, and that of the clip is used.
    """
    along = target.own_direction(names[link])
    axis = target.axes(child)[0]
    place = model.link_quat_wxyz[child]
    limb = target.own_direction(names[child])
    wanted = rotate(quat_conjugate(goal), aim)
    # solve along · R(axis, θ) limb = c + a cos θ + b sin θ = cosine of the angle between the two limbs
    flat = limb - axis * (axis @ limb)
    a, b = along @ rotate(place, flat), along @ rotate(place, np.cross(axis, flat))
    c = along @ rotate(place, axis * (axis @ limb))
    cosine = np.clip((wanted @ along - c) / np.maximum(np.hypot(a, b), 1e-12), -1.0, 1.0)
    bend = np.arccos(cosine)
    low, high = model.dof_limits[int(model.joint_v_start[target.joint[child]])] - target.zero(child)
    options = np.arctan2(b, a) + np.stack((bend, -bend))
    options = (options + np.pi) % (2.0 * np.pi) - np.pi
    outside = np.maximum(options - high, 0.0) + np.maximum(low - options, 0.0)
    angle = np.where(outside[0] <= outside[1], options[0], options[1])
    reached = rotate(place, rotate(quat_exp(angle[:, None] * axis), limb))
    twist = _signed_angle(along, reached, wanted)
    bent = np.linalg.norm(np.cross(wanted, along), axis=-1) / _STRAIGHT
    share = np.clip(bent, 0.0, 1.0)
    # a joint of the clip that bends backwards would need half a rotation, which is outside the range of limbs
    share = share * share * (3.0 - 2.0 * share) * np.clip(2.0 - 3.0 * np.abs(twist) / np.pi, 0.0, 1.0)
    return quat_multiply(goal, quat_exp((share * twist)[:, None] * along))


def _signed_angle(axis: Floats, start: Floats, end: Floats) -> Floats:
    """Angles (frames,) about an axis from one direction to others, both projected along it."""
    start, end = np.broadcast_arrays(start, end)
    flat = start - np.multiply.outer(start @ axis, axis)
    sine = np.sum(axis * cross(flat, np.array(end)), axis=-1)
    return np.asarray(np.arctan2(sine, np.sum(flat * end, axis=-1)))


def _twist(axis: Floats, quats: Floats) -> Floats:
    """Twist angles (frames,) of rotations about an axis."""
    angle = 2.0 * np.arctan2(quats[:, 1:] @ axis, quats[:, 0])
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def _kept(model: Model, joint: int, number: int, angle: Floats, limits: bool) -> Floats:
    """Angles within the range of a joint's coordinate."""
    low, high = model.dof_limits[int(model.joint_v_start[joint]) + number]
    return np.clip(angle, low, high) if limits else angle


def _continuous(quats: Floats) -> Floats:
    """The rotations (frames, 4) with continuous signs."""
    flips = np.where(np.sum(quats[1:] * quats[:-1], axis=1) < 0.0, -1.0, 1.0)
    return np.asarray(quats * np.concatenate(((1.0,), np.cumprod(flips)))[:, None])
