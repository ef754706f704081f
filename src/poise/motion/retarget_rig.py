"""The character of a retargeting: positions and directions of its parts, at rest and in motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poise.motion.bone_names import find_parts
from poise.motion.retarget_source import NEXT
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate, turn_between, unit

if TYPE_CHECKING:
    from poise.model.model import Model

Floats = NDArray[np.float64]

IDENTITY = np.array((1.0, 0.0, 0.0, 0.0))
UP = np.array((0.0, 0.0, 1.0))


@dataclass
class Target:
    """A compiled character as the target of retargeting: its links by part, and its rest pose."""

    model: Model
    character: str | None = None
    """Name of the character, or of its root, in models with several."""

    def __post_init__(self) -> None:
        model = self.model
        names = [model.body_names[body] for body in model.link_body]
        self.joint = [-1] * model.n_links
        for joint, body in enumerate(model.joint_body):
            self.joint[int(model.body_link[body])] = joint
        free = [link for link, joint in enumerate(self.joint) if joint >= 0 and model.joint_kinds[joint] == "free"]
        roots = [link for link in free if names[link].rpartition("/")[2] in ("pelvis", "hips", "root")] or free
        if self.character is not None:
            roots = [link for link in free if self.character in (names[link], names[link].rpartition("/")[0])]
        if len(roots) != 1:
            wanted = "one character with a free root" if self.character is None else f'a character "{self.character}"'
            raise ValueError(f"model: must have {wanted}, found {len(roots)}{_listed([names[link] for link in roots])}")
        self.root = roots[0]
        own = [name if model.link_root[link] == self.root else "" for link, name in enumerate(names)]
        found = find_parts(own, model.link_parent.tolist())
        self.parts = {part: link for part, link in found.items() if own[link]} | {"pelvis": self.root}
        self.rest_locals = [self._rest_local(link) for link in range(model.n_links)]
        self.rest_quats, self.rest = self.place(None, None)

    def _rest_local(self, link: int) -> Floats:
        joint = self.joint[link]
        if joint < 0 or self.model.joint_kinds[joint] not in ("free", "ball"):
            return IDENTITY
        end = int(self.model.joint_q_start[joint + 1])
        return np.asarray(self.model.q_rest[end - 4 : end])

    def place(self, turns: list[Floats] | None, root: Floats | None) -> tuple[list[Floats], list[Floats]]:
        """World orientations and positions of links: at rest, or for given orientations and positions of the root."""
        model = self.model
        quats: list[Floats] = []
        places: list[Floats] = []
        for link in range(model.n_links):
            parent, joint = int(model.link_parent[link]), self.joint[link]
            above = quats[parent] if parent >= 0 else IDENTITY
            quat = quat_multiply(quat_multiply(above, model.link_quat_wxyz[link]), self.rest_locals[link])
            quat = quat if turns is None else turns[link]
            place = (places[parent] if parent >= 0 else np.zeros(3)) + rotate(above, model.link_position[link])
            if joint >= 0 and model.joint_kinds[joint] == "free":
                at = int(model.joint_q_start[joint])
                place = model.q_rest[at : at + 3] if root is None or link != self.root else root
            quats.append(quat)
            places.append(place)
        return quats, places

    def to_link(self, link: int, direction: Floats) -> Floats:
        """A direction of the world at rest in the axes of a link."""
        return rotate(quat_conjugate(self.rest_quats[link]), direction)

    def middle(self, part: str) -> Floats:
        """Position of a part at rest, or the middle of a pair; m."""
        names = [name for name in (part, f"{part}_l", f"{part}_r") if name in self.parts] or ["pelvis"]
        return np.asarray(np.mean([self.rest[self.parts[name]] for name in names], axis=0))

    def trunk(self, top: str) -> Floats:
        """Direction of the trunk at rest: from the hips to the head or the arms; with "legs" from the feet to them."""
        line = self.middle("thigh") - self.middle("foot") if top == "legs" else self.middle(top) - self.middle("thigh")
        return unit(line) if np.linalg.norm(line) > 0.0 else UP

    def left(self) -> Floats:
        """The horizontal left direction at rest; unit."""
        yaw = _facing({part: self.rest[link] for part, link in self.parts.items()})
        return np.array((-np.sin(yaw), np.cos(yaw), 0.0))

    def front(self) -> Floats:
        """The horizontal front direction at rest; unit."""
        return np.cross(self.left(), UP)

    def points(self, part: str) -> bool:
        """Whether a limb has an end."""
        return _end_of(part) in self.parts

    def pointing(self, part: str) -> Floats:
        """Direction of a part in the axes of its link: to the end of a limb, up for a head, otherwise to its middle."""
        link = self.parts[part]
        if self.points(part):
            return self.own_direction(part)
        middle = self.model.link_com[link]
        if part == "head" or np.linalg.norm(middle) < 1e-6:
            return self.to_link(link, UP if part == "head" else -UP)
        return unit(middle)

    def bend_axis(self, part: str) -> Floats:
        """The axis in a link about which its limb bends forwards (arms, hips) or backwards (knees); unit.

        It is the axis of the limb's hinge, or without one that of a standing human with hanging arms.
        """
        link, limb = self.parts[part], part.rpartition("_")[0]
        hinge = link if limb in ("forearm", "shank") else self.hinge_below(link)
        if limb in NEXT and hinge is not None and self._kind(hinge) == "hinge":
            low, high = self.model.dof_limits[int(self.model.joint_v_start[self.joint[hinge]])] - self.zero(hinge)
            axis = self.axes(hinge)[0] * (-1.0 if low + high < 0.0 else 1.0)
            return axis if hinge == link else rotate(self.model.link_quat_wxyz[hinge], axis)
        if limb not in ("upper_arm", "forearm", "hand"):
            return self.to_link(link, self.left())
        lowered = turn_between(-UP, rotate(self.rest_quats[link], self.pointing(part)))
        return self.to_link(link, rotate(lowered, -self.left()))

    def _kind(self, link: int) -> str:
        return self.model.joint_kinds[self.joint[link]] if self.joint[link] >= 0 else ""

    def toes_down(self, part: str) -> float:
        """Angle below the horizontal from the ankle to the front of the sole; rad."""
        link = self.parts[part]
        points = shape_points(self.model, link)
        if not points:
            return 0.0
        ends = np.array([rotate(self.rest_quats[link], point) - radius * UP for point, radius in points])
        ahead = ends @ self.front()
        tip = ends[ahead > ahead.max() - 0.1 * np.ptp(ahead) - 1e-9]
        low = tip[:, 2].min()
        return float(np.arctan2(-low, max(float(ahead.max()), 1e-9)))

    def rest_direction(self, part: str) -> Floats:
        """Direction of a limb in the world at rest; unit."""
        return unit(self.rest[self.parts[_end_of(part)]] - self.rest[self.parts[part]])

    def own_direction(self, part: str) -> Floats:
        """Direction of a limb in its own frame; unit."""
        return rotate(quat_conjugate(self.rest_quats[self.parts[part]]), self.rest_direction(part))

    def hinge_below(self, link: int) -> int | None:
        """A child link with a hinge."""
        for child in range(link + 1, self.model.n_links):
            joint = self.joint[child]
            if int(self.model.link_parent[child]) == link and joint >= 0 and self.model.joint_kinds[joint] == "hinge":
                return child
        return None

    def axes(self, link: int) -> list[Floats]:
        """Axes of a link's joint, in the order of its rotations."""
        start, end = (int(k) for k in self.model.link_primitive_start[link : link + 2])
        return [np.asarray(axis) for axis in self.model.primitive_axis[start:end]]

    def zero(self, link: int) -> float:
        """The angle of a hinge at which its link has the model's rest orientation."""
        return float(self.model.q_zero[int(self.model.joint_q_start[self.joint[link]])])

    def leg_length(self) -> float:
        """Length of thigh and shank; m."""
        return _leg_length({part: self.rest[link] for part, link in self.parts.items()})

    def hip_offset(self) -> Floats:
        """Offset from the root to the middle of the hip joints, in the root's frame; m."""
        thighs = [self.rest[self.parts[part]] for part in ("thigh_l", "thigh_r") if part in self.parts]
        if len(thighs) < 2:
            return np.zeros(3)
        return rotate(quat_conjugate(self.rest_quats[self.root]), np.mean(thighs, axis=0) - self.rest[self.root])


def shape_points(model: Model, link: int) -> list[tuple[Floats, float]]:
    """Points and radii that bound the shapes of a link: ends of capsules, corners of boxes; m in the link's frame."""
    solids = model.solids
    points: list[tuple[Floats, float]] = []
    for k in np.flatnonzero(solids.link == link):
        size, centre, quat = solids.size[k], solids.position[k], solids.quat_wxyz[k]
        vertices = solids.vertices[int(solids.vertex_start[k]) : int(solids.vertex_start[k + 1])]
        radius = 0.0
        # 1 is a sphere, 2 a capsule along z; see poise.model.shape_arrays
        if solids.kind[k] == 1:
            vertices, radius = np.zeros((1, 3)), float(size[0])
        elif solids.kind[k] == 2:
            vertices, radius = np.array(((0.0, 0.0, -size[1]), (0.0, 0.0, size[1]))), float(size[0])
        elif not len(vertices):
            vertices = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
        points += [(centre + rotate(quat, vertex), radius) for vertex in vertices]
    return points


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _end_of(part: str) -> str:
    """The part that a limb points to; other parts themselves."""
    limb, _, side = part.rpartition("_")
    return f"{NEXT[limb]}_{side}" if limb in NEXT else ""


def _facing(places: Mapping[str, Floats]) -> float:
    """The yaw of a skeleton's front direction, from its left and right parts; rad."""
    for part in ("thigh", "upper_arm", "foot"):
        if f"{part}_l" in places and f"{part}_r" in places:
            across = places[f"{part}_l"] - places[f"{part}_r"]
            if np.hypot(across[0], across[1]) > 0.0:
                return float(np.arctan2(-across[0], across[1]))
    return 0.0


def _leg_length(places: Mapping[str, Floats]) -> float:
    """Mean length of the existing legs; 1 without legs."""
    lengths = []
    for side in ("l", "r"):
        joints = [places[f"{part}_{side}"] for part in ("thigh", "shank", "foot") if f"{part}_{side}" in places]
        if len(joints) == 3:
            lengths.append(sum(float(np.linalg.norm(b - a)) for a, b in pairwise(joints)))
    return float(np.mean(lengths)) if lengths and min(lengths) > 0.0 else 1.0
