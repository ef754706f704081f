"""Clips on the spot: standing, squatting, waving, punching. The centre of mass is kept above the feet."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.characters.clips.curves import between
from poise.characters.clips.figure import RATE, Draft, Figure, side_sign, sole_pose
from poise.model.scene import Character
from poise.motion import Clip
from poise.motion.motion_checks import choice, positive

Floats = NDArray[np.float64]

#: distance of the standing centre of mass in front of the ankles, over the foot's length
_BALANCE = 0.19


def draft_on_feet(
    figure: Figure,
    seconds: float,
    *,
    width: float = 0.095,
    yaw: float = 0.12,
    loop: bool = False,
    rate: float = RATE / 2,
) -> tuple[Draft, Floats]:
    """Poses on two flat feet beside each other, ankles at x = 0, and their times (s)."""
    count = round(seconds * rate)
    times = np.arange(count + (0 if loop else 1), dtype=np.float64) * (seconds / count)
    draft = Draft(figure, times)
    for side in "lr":
        plant(draft, side, 0.0, width * figure.scale, side_sign(side) * yaw)
    return draft, times


def plant(draft: Draft, side: str, ankle: float, width: float, yaw: float, pitch: ArrayLike = 0.0) -> None:
    """Put a foot on the floor: its ankle at x if it is flat, rotated outwards; its heel is up if pitch is below 0."""
    figure, count = draft.figure, len(draft.times)
    heel = np.array((ankle, side_sign(side) * width, 0.0)) + figure.heel * np.array((np.cos(yaw), np.sin(yaw), 0.0))
    pitches = np.broadcast_to(np.asarray(pitch, np.float64), (count,))
    draft.foot(side, *sole_pose(figure, np.tile(heel, (count, 1)), pitches, yaw))


def balanced(draft: Draft, x: ArrayLike = 0.0, y: ArrayLike = 0.0) -> None:
    """Bring the centre of mass above the feet: at the offset x, y (m) from its place in standing."""
    wanted = np.zeros((len(draft.times), 3))
    wanted[:, 0] = _BALANCE * draft.figure.foot_length + np.asarray(x)
    wanted[:, 1] = y
    draft.settle(wanted, "xy")


def breathe(draft: Draft, depth: ArrayLike = 1.0) -> None:
    """Sway a little and breathe every four seconds; arms hang loosely."""
    angle = 2.0 * np.pi * draft.times / 4.0
    breath = np.asarray(depth) * (0.5 - 0.5 * np.cos(angle))
    sway = np.asarray(depth) * np.sin(angle / 2)
    draft.turn("pelvis", y=0.02, z=0.012 * sway)
    draft.turn("torso", x=-0.006 * sway, y=0.03 - 0.022 * breath, z=-0.008 * sway)
    draft.turn("head", y=-0.04 + 0.015 * breath, z=0.02 * np.asarray(depth) * np.sin(angle / 2 + 0.6))
    for side in "lr":
        draft.arm(
            side,
            flexion=0.04 + 0.010 * breath,
            abduction=-0.02 + 0.018 * breath,
            rotation=0.25,
            elbow=0.22 + 0.02 * breath,
            wrist=0.12,
        )


def stand(character: Character | None = None) -> Clip:
    """Standing at ease, as a cyclic clip of eight seconds: two breaths, and a slow sway of some millimetres.

    >>> clip = stand()
    >>> clip.loop, clip.duration
    (True, 8.0)
    """
    figure = Figure(character)
    draft, times = draft_on_feet(figure, 8.0, loop=True, rate=RATE / 4)
    breathe(draft)
    angle = 2.0 * np.pi * times / 8.0
    draft.root[:, 2] -= 0.006 * figure.scale * (1.0 + 0.1 * np.cos(2.0 * angle))
    sway = 0.006 * figure.scale
    balanced(draft, x=sway * np.sin(angle + 0.5), y=1.5 * sway * np.cos(angle))
    draft.check("character")
    return draft.clip("stand", stride=0.0)


def squat(character: Character | None = None, depth: float = 0.8, seconds: float = 3.0) -> Clip:
    """A squat and back, arms held out; the centre of mass remains above the feet, which are flat.

    At a `depth` of 1 thighs are about level, which is the limit of the ankles' range.

    >>> clip = squat(depth=0.5)
    >>> low, high = clip.root_positions[:, 2].min(), clip.root_positions[0, 2]
    >>> bool(low < high - 0.1)
    True
    """
    deep = positive("depth", depth, "")
    if deep > 1.0:
        raise ValueError(f"depth: must be at most 1, where thighs are level, found {deep:g}")
    length = _seconds(seconds, 1.0)
    figure = Figure(character)
    draft, times = draft_on_feet(figure, length, width=0.14, yaw=0.35)
    breathe(draft, 0.0)
    down = deep * (between(times, 0.03 * length, 0.47 * length) - between(times, 0.53 * length, 0.97 * length))
    lean = down**0.68
    # pelvis and trunk bend forwards and arms rise, so that the body remains above the feet
    draft.turn("pelvis", y=0.02 + 0.69 * lean)
    draft.turn("torso", y=0.03 + 0.46 * lean)
    draft.turn("head", y=-0.04 - 0.70 * lean)
    for side in "lr":
        draft.arm(
            side,
            flexion=0.04 + 2.55 * down,
            abduction=-0.02 + 0.02 * down,
            rotation=0.25 - 0.15 * down,
            elbow=0.22 - 0.05 * down,
            wrist=0.12 * (1.0 - down),
        )
    draft.root[:, 2] -= figure.scale * (0.006 + 0.345 * down)
    balanced(draft, x=-0.03 * figure.scale * lean)
    draft.check("depth")
    return draft.clip("squat")


def wave(character: Character | None = None, times: int = 3, side: str = "r") -> Clip:
    """A standing figure raises a hand, waves it some times and lowers it.

    >>> wave(times=2).duration < wave(times=4).duration
    True
    """
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= 100:
        raise ValueError(f"times: must be a whole number from 1 to 100, found {times!r}")
    hand = choice("side", side, ("l", "r"))
    figure = Figure(character)
    length = 0.7 * times + 1.8
    draft, now = draft_on_feet(figure, length)
    breathe(draft, between(now, 0.0, 1.0) - between(now, length - 1.0, length))
    up = between(now, 0.05, 0.95) - between(now, length - 1.0, length - 0.05)
    inside = between(now, 0.6, 1.1) - between(now, length - 1.15, length - 0.65)
    to_and_fro = inside * np.sin(2.0 * np.pi * (now - 0.75) / 0.7)
    sign = side_sign(hand)
    draft.turn("torso", x=-0.05 * sign * up, y=0.03 - 0.01 * up, z=0.06 * sign * up)
    draft.turn("head", x=0.04 * sign * up, y=-0.04 - 0.03 * up, z=0.10 * sign * up)
    draft.arm(
        hand,
        flexion=0.04 + 0.55 * up,
        abduction=-0.02 + 1.15 * up,
        rotation=0.25 - 1.25 * up + 0.28 * to_and_fro,
        elbow=0.22 + 1.75 * up + 0.22 * to_and_fro,
        wrist=0.12 * (1.0 - up) + 0.25 * to_and_fro,
    )
    draft.root[:, 2] -= 0.006 * figure.scale
    balanced(draft, y=-0.012 * figure.scale * sign * up)
    draft.check("character")
    return draft.clip("wave")


def _seconds(value: float, least: float) -> float:
    length = positive("seconds", value)
    if not least <= length <= 60.0:
        raise ValueError(f"seconds: must be from {least:g} to 60 s, found {length:g}")
    return length
