"""Skeletons: trees of named joints, their rest poses, and forward kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import Frozen, unit_quats, vectors
from poise.motion.rotations import cross, quat_multiply, rotate

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Skeleton(Frozen):
    """An immutable tree of joints: the first is the root, and parents precede their children.

    A joint's frame is at the joint; `rest_quats_wxyz` is its orientation in its parent's frame at rest. `tips` are
    (joint, offset) of ends of bones without another joint: fingertips, the crown.

    >>> arm = Skeleton(["shoulder", "elbow"], [-1, 0], [(0, 0, 1.4), (0.3, 0, 0)], tips=[(1, (0.25, 0, 0))])
    >>> arm.index("elbow"), arm.rest_positions[1].tolist()
    (1, [0.3, 0.0, 1.4])
    """

    names: tuple[str, ...]
    """One for each joint, all different."""
    parents: Indices
    """(joints,) index of the parent, −1 for the root."""
    offsets: Floats
    """(joints, 3) from the parent's origin, in the parent's axes; m."""
    rest_quats_wxyz: Floats
    """(joints, 4) orientation at rest in the parent's axes; by default all (1, 0, 0, 0)."""
    tips: tuple[tuple[int, Floats], ...]
    """Each a joint and an offset (3,) in its axes; m."""

    def __init__(
        self,
        names: Sequence[str],
        parents: ArrayLike,
        offsets: ArrayLike,
        rest_quats_wxyz: ArrayLike | None = None,
        tips: Sequence[tuple[int, ArrayLike]] = (),
    ) -> None:
        count = _check_names(names)
        above = np.array(parents, dtype=np.int64)
        if above.shape != (count,):
            raise ValueError(f"parents: must have the shape ({count},), found {above.shape}")
        if above[0] != -1 or (above[1:] < 0).any() or (above >= np.arange(count)).any():
            raise ValueError("parents: the first joint is the root (-1), the others follow their parents")
        quats = np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)) if rest_quats_wxyz is None else rest_quats_wxyz
        ends = tuple((int(joint), vectors("tips", offset, (3,))) for joint, offset in tips)
        for joint, _ in ends:
            if not 0 <= joint < count:
                raise ValueError(f"tips: there is no joint {joint}, the last is {count - 1}")
        self._set(
            names=tuple(names),
            parents=above,
            offsets=vectors("offsets", offsets, (count, 3)),
            rest_quats_wxyz=unit_quats("rest_quats_wxyz", quats, (count, 4)),
            tips=ends,
        )

    def __repr__(self) -> str:
        return f"<Skeleton: {len(self)} joints, {self.names[0]!r} and below>"

    def __len__(self) -> int:
        return len(self.names)

    def index(self, joint: str | int) -> int:
        """The index of a joint by its name, or by the part of its name that follows the last colon."""
        if not isinstance(joint, str):
            if -len(self) <= joint < len(self):
                return int(joint) % len(self)
            raise ValueError(f"there is no joint {joint}, the last is {len(self) - 1}")
        if joint in self.names:
            return self.names.index(joint)
        short = [name.rpartition(":")[2] for name in self.names]
        if short.count(joint) == 1:
            return short.index(joint)
        near = get_close_matches(str(joint), (*self.names, *short), n=1)
        hint = f', did you mean "{near[0]}"?' if near else ""
        raise ValueError(f'there is no joint "{joint}"{hint}')

    def children(self, joint: str | int) -> list[int]:
        """Indices of the children of a joint."""
        return [int(child) for child in np.flatnonzero(self.parents == self.index(joint))]

    @cached_property
    def rest_world(self) -> tuple[Floats, Floats]:
        """World positions (joints, 3) and orientations (joints, 4) of the joints at rest."""
        return self.place(self.rest_quats_wxyz, self.offsets)

    @property
    def rest_positions(self) -> Floats:
        """(joints, 3) in the world at rest; m."""
        return self.rest_world[0]

    @cached_property
    def height(self) -> float:
        """From the lowest to the highest point at rest; m."""
        position, quat = self.rest_world
        points = np.concatenate((position, self.place_tips(position, quat)))
        return float(np.ptp(points[:, 2]))

    def place(self, quats_wxyz: Floats, translations: Floats) -> tuple[Floats, Floats]:
        """World positions and orientations (..., joints, 3 and 4) from those of each joint in its parent's frame."""
        shape = np.broadcast_shapes(quats_wxyz.shape[:-1], translations.shape[:-1])
        position, quat = np.empty((*shape, 3)), np.empty((*shape, 4))
        position[..., 0, :], quat[..., 0, :] = translations[..., 0, :], quats_wxyz[..., 0, :]
        for j, p in enumerate(self.parents.tolist()):
            if p >= 0:
                position[..., j, :] = position[..., p, :] + rotate(quat[..., p, :], translations[..., j, :])
                quat[..., j, :] = quat_multiply(quat[..., p, :], quats_wxyz[..., j, :])
        return position, quat

    def place_tips(self, positions: Floats, quats_wxyz: Floats) -> Floats:
        """World positions (..., tips, 3) of the tips from those of the joints."""
        if not self.tips:
            return np.empty((*positions.shape[:-2], 0, 3))
        joints = [joint for joint, _ in self.tips]
        offsets = np.array([offset for _, offset in self.tips])
        return np.asarray(positions[..., joints, :] + rotate(quats_wxyz[..., joints, :], offsets))

    def scaled(self, factor: float) -> Skeleton:
        """The same skeleton with all lengths multiplied."""
        tips = [(joint, factor * offset) for joint, offset in self.tips]
        return Skeleton(self.names, self.parents, factor * self.offsets, self.rest_quats_wxyz, tips)

    def matches(self, other: Skeleton) -> bool:
        """Whether joints have the same names and parents."""
        return self.names == other.names and bool(np.array_equal(self.parents, other.parents))


def carry(
    skeleton: Skeleton,
    quats: Floats,
    spins: tuple[Floats, Floats],
    moves: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Forward kinematics: world positions, orientations, velocities, angular velocities, and both accelerations.

    `quats` (..., joints, 4) and the angular `spins` (velocity, acceleration; own axes) are those of joints in their
    parents' frames, `moves` their translations with two derivatives (parents' axes). The results are in world axes.
    """
    shape = quats.shape[:-1]
    quat = np.empty((*shape, 4))
    position, velocity, spin, acceleration, spin_rate = (np.empty((*shape, 3)) for _ in range(5))
    for j, p in enumerate(skeleton.parents.tolist()):
        at, speed, rush = (part[..., j, :] for part in moves)
        if p < 0:
            quat[..., j, :], position[..., j, :] = quats[..., j, :], at
            velocity[..., j, :], acceleration[..., j, :] = speed, rush
            own, own_rate = rotate(quat[..., j, :], spins[0][..., j, :]), rotate(quat[..., j, :], spins[1][..., j, :])
            spin[..., j, :], spin_rate[..., j, :] = own, own_rate
            continue
        turn, w, dw = quat[..., p, :], spin[..., p, :], spin_rate[..., p, :]
        arm = rotate(turn, at)
        position[..., j, :] = position[..., p, :] + arm
        swing, whirl = cross(w, arm), cross(dw, arm)
        if np.any(speed) or np.any(rush):
            slide = rotate(turn, speed)
            velocity[..., j, :] = velocity[..., p, :] + swing + slide
            whirl += cross(w, 2.0 * slide) + rotate(turn, rush)
        else:
            velocity[..., j, :] = velocity[..., p, :] + swing
        acceleration[..., j, :] = acceleration[..., p, :] + whirl + cross(w, swing)
        quat[..., j, :] = quat_multiply(turn, quats[..., j, :])
        own = rotate(quat[..., j, :], spins[0][..., j, :])
        spin[..., j, :] = w + own
        spin_rate[..., j, :] = dw + rotate(quat[..., j, :], spins[1][..., j, :]) + cross(w, own)
    return position, quat, velocity, spin, acceleration, spin_rate


def _check_names(names: Sequence[str]) -> int:
    """Number of names; raises unless all are different texts."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"names: must be text, found {name!r}")
        if name in seen:
            raise ValueError(f'names: must differ, found "{name}" twice')
        seen.add(name)
    if not seen:
        raise ValueError("names: a skeleton has at least one joint, found none")
    return len(seen)
