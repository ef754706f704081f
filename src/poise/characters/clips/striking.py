"""A punch: a fist that moves to a target and back, standing with one foot in front."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.characters.anthropometry import FOREARM, KNUCKLES, UPPER_ARM
from poise.characters.clips.curves import between
from poise.characters.clips.figure import RATE, Draft, Figure, quats_of_axes, side_sign
from poise.characters.clips.standing import balanced, plant
from poise.model.scene import Character
from poise.motion import Clip
from poise.motion.motion_checks import choice, vectors
from poise.motion.rotations import cross, quat_conjugate, quat_multiply, rotate, unit

Floats = NDArray[np.float64]

#: least bend of elbows; rad
_STRAIGHT, _BENT = 0.15, 2.5
#: times at which the fist starts, arrives, leaves, is back; s
_AWAY, _THERE, _LEAVES, _BACK, _END = 0.30, 0.48, 0.53, 1.05, 1.4


def fist_offset(figure: Figure) -> float:
    """Distance from the elbow to the third knuckle of a straight wrist; m."""
    upper = float(np.linalg.norm(figure.offset("forearm_l")))
    return upper * FOREARM / UPPER_ARM * (1.0 + KNUCKLES["male"])


def lay_arm(draft: Draft, side: str, fist: Floats, elbow: ArrayLike) -> None:
    """Inverse kinematics of an arm: knuckles at positions (n, 3), the elbow as near to a direction (3,) as possible.

    The arm's bones are not perpendicular to the elbow's axis by a few degrees, so that the reach of a bent arm, in the
    frame of the upper arm, is a d + b (d rotated about that axis); its length gives the angle, and two directions give
    the rotation of the shoulder.
    """
    figure = draft.figure
    name = f"upper_arm_{side}"
    bone = figure.offset(f"forearm_{side}")
    a, b = float(np.linalg.norm(bone)), fist_offset(figure)
    d = bone / a
    s, c = d[1], -d[2]
    places, quats = draft.place()
    torso = figure.index["torso"]
    shoulder = places[:, figure.index[name]]
    way = rotate(quat_conjugate(quats[:, torso]), fist - shoulder)
    square = np.sum(way * way, axis=1)
    cosine = ((square - ((a + b) * s) ** 2) / c**2 - a * a - b * b) / (2 * a * b)
    bend = np.arccos(np.clip(cosine, np.cos(_BENT), np.cos(_STRAIGHT)))
    reach = a * d + b * np.stack((c * np.sin(bend), np.full_like(bend, s), -c * np.cos(bend)), axis=1)
    pole = rotate(quat_conjugate(quats[:, torso]), np.broadcast_to(np.asarray(elbow, np.float64), fist.shape))
    own = _axes(reach, np.broadcast_to(d, reach.shape))
    goal = _axes(way, pole)
    draft.quats[:, figure.index[name]] = quat_multiply(goal, quat_conjugate(own))
    draft.turn(f"forearm_{side}", y=-bend)
    if figure.has_hands:
        draft.turn(f"hand_{side}")


def _axes(first: Floats, second: Floats) -> Floats:
    """Quaternions (n, 4) of frames whose x is along a vector, and whose x-y plane contains another."""
    x = unit(first)
    z = unit(cross(x, second))
    return quats_of_axes(x, cross(z, x), z)


def reaches(draft: Draft, side: str, fist: Floats, frame: int) -> None:
    """Raise ValueError if a position is too near to or too far from the shoulder in a frame."""
    figure = draft.figure
    shoulder = draft.place()[0][frame, figure.index[f"upper_arm_{side}"]]
    a, b = float(np.linalg.norm(figure.offset(f"forearm_{side}"))), fist_offset(figure)
    near, far = (float(np.sqrt(a * a + b * b + 2 * a * b * np.cos(bend))) for bend in (_BENT, _STRAIGHT))
    found = float(np.linalg.norm(fist - shoulder))
    if not near <= found <= far:
        where = ", ".join(f"{x:.2f}" for x in shoulder)
        raise ValueError(
            f"target: must be {near:.2f} to {far:.2f} m from the shoulder, which is at ({where}), found {found:.2f} m"
        )
    if fist[0] < shoulder[0]:
        raise ValueError(
            f"target: must be in front of the shoulder, beyond x = {shoulder[0]:.2f} m, found {fist[0]:.2f}"
        )


def punch(character: Character | None = None, target: ArrayLike | None = None, side: str = "r") -> Clip:
    """A straight punch from a guard and back to it; the knuckles are at `target` (m) at 0.5 s.

    The character faces x, at the origin. Unless given, the target is in front of it at the height of the chin. Raises
    ValueError for targets out of reach.

    >>> clip = punch(target=(0.6, 0.05, 1.3))
    >>> clip.duration
    1.4
    """
    figure = Figure(character)
    hand = choice("side", side, ("l", "r"))
    sign, other = side_sign(hand), "l" if hand == "r" else "r"
    scale = figure.scale
    goal = np.array((0.78, 0.0, 1.42)) * scale if target is None else vectors("target", target, (3,))
    now = np.arange(round(_END * RATE) + 1) / RATE
    draft = Draft(figure, now)
    there = between(now, _AWAY, _THERE) - between(now, _LEAVES, _BACK)
    # the body leads the fist
    body = between(now, _AWAY - 0.08, _THERE - 0.02) - between(now, _LEAVES, _BACK + 0.05)
    wind = between(now, 0.05, 0.24) - between(now, 0.24, 0.40)
    plant(draft, other, 0.12 * scale, 0.11 * scale, -sign * 0.10)
    plant(draft, hand, -0.16 * scale, 0.13 * scale, sign * 0.75, pitch=-0.10 - 0.40 * body)
    draft.turn("pelvis", y=0.06 + 0.04 * body, z=sign * (0.45 + 0.05 * wind - 0.52 * body))
    draft.turn("torso", y=0.10 + 0.04 * body, z=sign * (0.15 + 0.05 * wind - 0.50 * body))
    draft.turn("head", y=-0.06 - 0.04 * body, z=-sign * (0.55 + 0.10 * wind - 0.95 * body))
    draft.root[:, 2] -= (0.012 + 0.02 * body) * scale
    rest = np.array((0.33, 0.14 * sign, 1.30)) * scale
    back = np.array((-0.02, 0.0, -0.02)) * scale
    guard = np.array((0.46, -0.12 * sign, 1.32)) * scale
    chin = np.array((0.30, -0.15 * sign, 1.33)) * scale
    fist = rest + there[:, None] * (goal - rest) + wind[:, None] * back
    cover = guard + body[:, None] * (chin - guard)
    shift = (0.015 + 0.03 * body - 0.01 * wind) * scale
    for _ in range(3):
        balanced(draft, x=shift, y=0.0)
        lay_arm(draft, hand, fist, (0.0, 0.6 * sign, -1.0))
        lay_arm(draft, other, cover, (0.0, -0.6 * sign, -1.0))
    draft.check("character")
    reaches(draft, hand, goal, round(0.5 * RATE))
    return draft.clip("punch")
