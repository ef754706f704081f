"""A humanoid for clips: bones, masses, soles, and inverse kinematics of limbs in closed form.

A leg has six degrees of freedom (hip three, knee one, ankle two), so that the pose of a foot determines all of them.
The ankle's two rotations, about the side-to-side axis of the shank and then about the length of the foot, leave that
length in the plane of the leg. So the axis of the knee is perpendicular to the foot's length and to the line from hip
to ankle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.characters.humanoid import humanoid
from poise.model.scene import Character
from poise.model.shapes import Box
from poise.motion import Clip, Skeleton
from poise.motion.rotations import cross, quat_conjugate, quat_exp, quat_multiply, rotate, unit

Floats = NDArray[np.float64]

#: parts that every humanoid has
_PARTS = ("pelvis", "torso", "head")
_LIMBS = ("upper_arm", "forearm", "thigh", "shank", "foot")
#: least bend of knees; rad
STRAIGHT = 0.03
#: keys of clips per second
RATE = 120.0


def side_sign(side: str) -> float:
    """Sign of a side along y."""
    return 1.0 if side == "l" else -1.0


def turn(x: ArrayLike = 0.0, y: ArrayLike = 0.0, z: ArrayLike = 0.0) -> Floats:
    """Quaternions (..., 4) of rotations about z, then about the new y, then about the new x; rad."""
    angles = np.broadcast_arrays(*(np.asarray(angle, np.float64) for angle in (x, y, z)))
    parts = [np.zeros((*angles[0].shape, 3)) for _ in range(3)]
    for k in range(3):
        parts[k][..., k] = angles[k]
    about_x, about_y, about_z = (quat_exp(part) for part in parts)
    return quat_multiply(quat_multiply(about_z, about_y), about_x)


def quats_of_axes(x: Floats, y: Floats, z: Floats) -> Floats:
    """Quaternions (n, 4) of frames with given axes, (n, 3) each; neighbours have the same sign."""
    m = np.stack((x, y, z), axis=-1)
    trace = m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    rows = [np.stack((1 + trace, m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]), axis=-1)]
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        row = np.zeros((len(m), 4))
        row[:, 0] = m[:, j, i] - m[:, i, j]
        row[:, 1 + k] = 1 + 2 * m[:, k, k] - trace
        row[:, 1 + i], row[:, 1 + j] = m[:, i, k] + m[:, k, i], m[:, j, k] + m[:, k, j]
        rows.append(row)
    stacked = np.stack(rows, axis=1)
    best = np.argmax(np.stack([row[:, k] for k, row in enumerate(rows)], axis=1), axis=1)
    return unit(stacked[np.arange(len(m)), best])


@dataclass(frozen=True)
class Foot:
    """Pose of one foot over time."""

    ankle: Floats
    """(n, 3) m."""
    quat: Floats
    """(n, 4)."""


class Figure:
    """Geometry and masses of a humanoid character."""

    def __init__(self, character: Character | None) -> None:
        whole = humanoid() if character is None else character
        if not isinstance(whole, Character):
            raise TypeError(f"character: must be a character, as poise.characters.humanoid() is, found {whole!r:.60}")
        bodies = whole.bodies
        names = [body.name for body in bodies]
        missing = [n for n in (*_PARTS, *(f"{n}_{s}" for n in _LIMBS for s in "lr")) if n not in names]
        if missing:
            raise ValueError(f'character: must be a humanoid, found no "{missing[0]}" in "{whole.name}"')
        self.index = {name: k for k, name in enumerate(names)}
        parents = [-1 if body.parent is None else self.index[body.parent] for body in bodies]
        self.offsets = np.array([body.position for body in bodies], np.float64)
        self.skeleton = Skeleton(names, parents, self.offsets)
        inertias = [body.inertia for body in bodies]
        self.masses = np.array([0.0 if one is None else one.mass for one in inertias])
        self.coms = np.array([(0.0, 0.0, 0.0) if one is None else one.com for one in inertias], np.float64)
        self.thigh = float(-self.offset("shank_l")[2])
        self.shank = float(-self.offset("foot_l")[2])
        self.leg = self.thigh + self.shank
        shape: Any = next(shape for shape in bodies[self.index["foot_l"]].shapes if isinstance(shape, Box))
        self.heel = float(shape.position[0] - shape.size[0] / 2)
        self.toe = float(shape.position[0] + shape.size[0] / 2)
        self.sole = float(shape.position[2] - shape.size[2] / 2)
        self.scale = float(self.offsets[0, 2]) / (0.53 * 1.75)
        """Scale of lengths, relative to a height of 1.75 m."""
        self.has_hands = "hand_l" in self.index

    def offset(self, name: str) -> Floats:
        """From the parent's joint to the part's own, in the rest pose; m."""
        return np.asarray(self.offsets[self.index[name]])

    @property
    def foot_length(self) -> float:
        """From heel to toe; m."""
        return self.toe - self.heel


class Draft:
    """Poses of a figure under construction: path of the pelvis, rotations of joints, and feet as goals of legs."""

    def __init__(self, figure: Figure, times: Floats) -> None:
        self.figure, self.times = figure, times
        count = len(times)
        self.root = np.zeros((count, 3))
        self.root[:, 2] = figure.offsets[0, 2]
        self.quats = np.tile((1.0, 0.0, 0.0, 0.0), (count, len(figure.index), 1))
        self.feet: dict[str, Foot] = {}

    def turn(self, part: str, x: ArrayLike = 0.0, y: ArrayLike = 0.0, z: ArrayLike = 0.0) -> None:
        """Rotate a part relative to its parent: about z, then y, then x; rad."""
        self.quats[:, self.figure.index[part]] = turn(x, y, z)

    def arm(
        self,
        side: str,
        flexion: ArrayLike,
        abduction: ArrayLike = 0.0,
        rotation: ArrayLike = 0.0,
        elbow: ArrayLike = 0.0,
        wrist: ArrayLike = 0.0,
    ) -> None:
        """Set an arm by its angles: flexion, abduction, inward rotation, bend of the elbow; rad."""
        sign = side_sign(side)
        lift = turn(x=sign * np.asarray(abduction), y=-np.asarray(flexion))
        self.quats[:, self.figure.index[f"upper_arm_{side}"]] = quat_multiply(
            lift, turn(z=-sign * np.asarray(rotation))
        )
        self.turn(f"forearm_{side}", y=-np.asarray(elbow))
        if self.figure.has_hands:
            self.turn(f"hand_{side}", x=-sign * np.asarray(wrist))

    def foot(self, side: str, ankle: Floats, quat: Floats) -> None:
        """Set the pose of a foot in the world."""
        self.feet[side] = Foot(ankle, quat)

    def hip(self, side: str) -> Floats:
        """(n, 3) the centre of a hip; m."""
        return np.asarray(self.root + rotate(self.quats[:, 0], self.figure.offset(f"thigh_{side}")))

    def stretch(self, side: str) -> Floats:
        """(n,) distance from hip to ankle, over the leg's length."""
        return np.asarray(np.linalg.norm(self.feet[side].ankle - self.hip(side), axis=1) / self.figure.leg)

    def head_room(self, bend: float) -> float:
        """Distance that the pelvis could rise until the first knee is bent by no more than `bend` (rad); m.

        The straighter a knee, the faster it must rotate when the hip approaches the foot.
        """
        figure = self.figure
        longest = _third_side(figure.thigh, figure.shank, bend)
        room = []
        for side, feet in self.feet.items():
            way = self.hip(side) - feet.ankle
            flat = np.minimum(np.hypot(way[:, 0], way[:, 1]), longest)
            room.append(np.min(np.sqrt(longest**2 - flat**2) - way[:, 2]))
        return float(min(room))

    def lay_legs(self) -> None:
        """Inverse kinematics: angles of both legs from the poses of feet."""
        figure = self.figure
        a, b = figure.thigh, figure.shank
        for side, feet in self.feet.items():
            way = feet.ankle - self.hip(side)
            length = np.linalg.norm(way, axis=1)
            far = np.minimum(length, _third_side(a, b, STRAIGHT))
            down = way / length[:, None]
            axis = unit(cross(rotate(feet.quat, (1.0, 0.0, 0.0)), down))
            # angle at the hip between the thigh and the line to the ankle
            lean = np.arccos(np.clip((a * a + far * far - b * b) / (2 * a * far), -1.0, 1.0))
            front = cross(down, axis)
            thigh_down = np.cos(lean)[:, None] * down + np.sin(lean)[:, None] * front
            knee = a * thigh_down
            shank_down = unit(far[:, None] * down - knee)
            thigh = quats_of_axes(cross(axis, -thigh_down), axis, -thigh_down)
            shank = quats_of_axes(cross(axis, -shank_down), axis, -shank_down)
            for name, upper, lower in (
                ("thigh", self.quats[:, 0], thigh),
                ("shank", thigh, shank),
                ("foot", shank, feet.quat),
            ):
                self.quats[:, figure.index[f"{name}_{side}"]] = quat_multiply(quat_conjugate(upper), lower)

    def place(self) -> tuple[Floats, Floats]:
        """Positions (n, parts, 3) and orientations (n, parts, 4) of all parts in the world."""
        translations = np.tile(self.figure.offsets, (len(self.times), 1, 1))
        translations[:, 0] = self.root
        return self.figure.skeleton.place(self.quats, translations)

    def centre_of_mass(self) -> Floats:
        """(n, 3) m."""
        places, quats = self.place()
        points = places + rotate(quats, np.broadcast_to(self.figure.coms, places.shape))
        return np.asarray(np.einsum("k,nkj->nj", self.figure.masses / self.figure.masses.sum(), points))

    def settle(self, wanted: Floats, axes: str, rounds: int = 20) -> None:
        """Move the pelvis until the centre of mass is at a goal (n, 3) along some axes; feet do not move.

        Legs, a third of the mass, move by about half, so that each round reduces the error to a fifth.
        """
        mask = np.array([axis in axes for axis in "xyz"])
        for _ in range(rounds):
            self.lay_legs()
            off = (wanted - self.centre_of_mass()) * mask
            self.root += 1.15 * off
            if np.abs(off).max() < 1e-10:
                break
        self.lay_legs()

    def check(self, what: str) -> None:
        """Raise ValueError if a leg is too short for its foot."""
        longest = _third_side(self.figure.thigh, self.figure.shank, STRAIGHT) / self.figure.leg
        worst = max(float(self.stretch(side).max()) for side in self.feet)
        if worst > longest + 1e-9:
            raise ValueError(f"{what}: the legs are too short for that, by {(worst - longest) * 100:.2g} %")

    def clip(self, name: str, *, stride: float | None = None) -> Clip:
        """The finished clip; with `stride` (m) a cyclic clip, whose last key is added here."""
        quats, root, times = self.quats, self.root, self.times
        if stride is not None:
            quats = np.concatenate((quats, quats[:1]))
            root = np.concatenate((root, root[:1] + np.array((stride, 0.0, 0.0))))
            times = np.append(times, times[-1] + (times[1] - times[0]))
        steps = np.sum(quats[1:] * quats[:-1], axis=-1)
        signs = np.cumprod(np.where(steps < 0.0, -1.0, 1.0), axis=0)
        quats = np.concatenate((quats[:1], quats[1:] * signs[..., None]))
        if stride is not None:
            return Clip(self.figure.skeleton, times, quats, root, loop=True, stride=(stride, 0.0, 0.0), name=name)
        return Clip(self.figure.skeleton, times, quats, root, name=name)


def _third_side(a: float, b: float, bend: float) -> float:
    """Distance of the ends of two bones whose joint is bent by an angle; m."""
    return float(np.sqrt(a * a + b * b + 2 * a * b * np.cos(bend)))


def sole_pose(figure: Figure, heel: Floats, pitch: Floats, yaw: float) -> tuple[Floats, Floats]:
    """Ankle (n, 3) and orientation (n, 4) of a foot that is flat with its heel at `heel` if `pitch` is 0.

    With toes up (pitch > 0) it stands on its heel, with toes down on its toes.
    """
    quat = turn(y=-pitch, z=yaw)
    along = np.array((np.cos(yaw), np.sin(yaw), 0.0))
    on_toe = pitch < 0.0
    pivot = heel + np.where(on_toe, figure.foot_length, 0.0)[:, None] * along
    return ankle_over(figure, pivot, np.where(on_toe, figure.toe, figure.heel), quat), quat


def ankle_over(figure: Figure, point: Floats, along: ArrayLike, quat: Floats) -> Floats:
    """Ankle (n, 3) of a foot for which a point of the sole, `along` its length from below the ankle, is at `point`."""
    local = np.zeros((len(quat), 3))
    local[:, 0], local[:, 2] = along, figure.sole
    return np.asarray(point - rotate(quat, local))
