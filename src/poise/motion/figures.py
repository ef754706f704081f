"""What retargeting asks of a figure: where its parts are at rest and in motion, where limbs point, where soles are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poise.motion.bones import find_parts
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate, unit

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.motion.clip import Clip

Floats = NDArray[np.float64]

#: what each part of a limb points to
_NEXT = {"upper_arm": "forearm", "forearm": "hand", "thigh": "shank", "shank": "foot"}
#: share of the frames in which feet may be lower than their standing height
LOW = 0.05
IDENTITY = np.array((1.0, 0.0, 0.0, 0.0))
UP = np.array((0.0, 0.0, 1.0))
#: a foot stands where it is lower than this above its lowest (of the leg's length) and slower than this (1/s of it)
_STANDING = (0.03, 0.3)
#: a foot has stood long enough to tell its sole from; s. Its sole is not tilted by more than this at rest (cosine)
_LONG, _TILT = 0.2, 0.7


@dataclass
class Source:
    """What is asked of a clip."""

    clip: Clip
    given: Mapping[str, str]

    def __post_init__(self) -> None:
        skeleton = self.clip.skeleton
        self.parts = find_parts(skeleton.names, skeleton.parents)
        for part, joint in self.given.items():
            self.parts[part] = skeleton.index(joint)
        self.rest, self.rest_quats = skeleton.rest_world
        self.places, quats = skeleton.place(self.clip.quats_wxyz, self.clip.all_translations())
        self.turns = quat_multiply(quats, quat_conjugate(self.rest_quats))

    def turned(self, joint: int) -> Floats:
        """How far a joint has turned from rest, seen from the world; (frames, 4)."""
        return self.turns[:, joint]

    def points(self, part: str) -> bool:
        """Whether a limb has an end."""
        return _end_of(part) in self.parts and bool(np.any(self.rest_direction(part)))

    def rest_direction(self, part: str) -> Floats:
        """Where a limb points at rest; unit, or 0 where its ends are one."""
        span = self.rest[self.parts[_end_of(part)]] - self.rest[self.parts[part]]
        return unit(span) if np.any(span) else span

    def direction(self, part: str) -> Floats:
        """Where a limb points in the world; (frames, 3)."""
        return rotate(self.turned(self.parts[part]), self.rest_direction(part))

    def sole_up(self, joint: int) -> Floats:
        """What is up for a foot at rest (3,): what is up on the mean while it stands, as feet stand flat.

        At rest a figure's feet need not be flat: CMU's are turned with the legs, which are spread.
        """
        clip, leg = self.clip, self.leg_length()
        if clip.n_frames < 3:
            return UP
        height = self.places[:, joint, 2]
        speed = np.linalg.norm(np.gradient(self.places[:, joint], clip.times, axis=0), axis=1)
        stands = (height < np.quantile(height, LOW) + _STANDING[0] * leg) & (speed < _STANDING[1] * leg)
        if np.count_nonzero(stands) < _LONG * clip.rate:
            return UP
        mean = rotate(quat_conjugate(self.turned(joint)[stands]), UP).mean(axis=0)
        return unit(mean) if mean[2] > _TILT else UP

    @property
    def yaw(self) -> float:
        """Which way the figure faces at rest: its left is at its other side; rad."""
        return _facing({part: self.rest[joint] for part, joint in self.parts.items()})

    def leg_length(self) -> float:
        """Of thigh and shank; m."""
        return _leg_length({part: self.rest[joint] for part, joint in self.parts.items()})

    def hips(self) -> Floats:
        """The middle of the hip joints; (frames, 3)."""
        return np.asarray(self.places[:, self.hip_joints()].mean(axis=1))

    def hip_joints(self) -> list[int]:
        """The joints whose middle the hips are."""
        joints = [self.parts[part] for part in ("thigh_l", "thigh_r") if part in self.parts]
        return joints if len(joints) == 2 else [self.parts["pelvis"]]


@dataclass
class Target:
    """What is asked of a compiled character: its links by part, and its rest pose."""

    model: Model
    character: str | None = None
    """Name of the character, or of its root, where there are several."""

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

    def points(self, part: str) -> bool:
        """Whether a limb has an end."""
        return _end_of(part) in self.parts

    def rest_direction(self, part: str) -> Floats:
        """Where a limb points in the world at rest; unit."""
        return unit(self.rest[self.parts[_end_of(part)]] - self.rest[self.parts[part]])

    def own_direction(self, part: str) -> Floats:
        """Where a limb points in its own frame; unit."""
        return rotate(quat_conjugate(self.rest_quats[self.parts[part]]), self.rest_direction(part))

    def hinge_below(self, link: int) -> int | None:
        """A link that hangs on this one by a hinge."""
        for child in range(link + 1, self.model.n_links):
            joint = self.joint[child]
            if int(self.model.link_parent[child]) == link and joint >= 0 and self.model.joint_kinds[joint] == "hinge":
                return child
        return None

    def axes(self, link: int) -> list[Floats]:
        """Axes of a link's joint, in the order in which it turns about them."""
        start, end = (int(k) for k in self.model.link_primitive_start[link : link + 2])
        return [np.asarray(axis) for axis in self.model.primitive_axis[start:end]]

    def zero(self, link: int) -> float:
        """The angle of a hinge at which its link is as the model has it."""
        return float(self.model.q_zero[int(self.model.joint_q_start[self.joint[link]])])

    @property
    def yaw(self) -> float:
        """Which way the character faces at rest; rad."""
        return _facing({part: self.rest[link] for part, link in self.parts.items()})

    def leg_length(self) -> float:
        """Of thigh and shank; m."""
        return _leg_length({part: self.rest[link] for part, link in self.parts.items()})

    def hip_offset(self) -> Floats:
        """From the root to the middle of the hip joints, in the root's frame; m."""
        thighs = [self.rest[self.parts[part]] for part in ("thigh_l", "thigh_r") if part in self.parts]
        if len(thighs) < 2:
            return np.zeros(3)
        return rotate(quat_conjugate(self.rest_quats[self.root]), np.mean(thighs, axis=0) - self.rest[self.root])

    def lowest_sole(self, turns: list[Floats], root: Floats) -> Floats:
        """Height of the lowest point of the feet's shapes, or of the ankles; (frames,) m."""
        _, places = self.place(turns, root)
        lowest = np.full(len(root), np.inf)
        for part in ("foot_l", "foot_r", "shank_l", "shank_r"):
            if part in self.parts and (part.startswith("foot") or "foot" + part[5:] not in self.parts):
                link = self.parts[part]
                for point, radius in shape_points(self.model, link) or [(np.zeros(3), 0.0)]:
                    height = places[link][:, 2] + rotate(turns[link], point)[:, 2] - radius
                    lowest = np.minimum(lowest, height)
        return lowest if np.isfinite(lowest).all() else np.asarray(root[:, 2])


def shape_points(model: Model, link: int) -> list[tuple[Floats, float]]:
    """Points and radii that hold the shapes of a link: ends of capsules, corners of boxes; m in the link's frame."""
    solids = model.solids
    points: list[tuple[Floats, float]] = []
    for k in np.flatnonzero(solids.link == link):
        size, centre, quat = solids.size[k], solids.position[k], solids.quat_wxyz[k]
        vertices = solids.vertices[int(solids.vertex_start[k]) : int(solids.vertex_start[k + 1])]
        radius = 0.0
        # 1 is a sphere, 2 a capsule along z; see poise.model.solids
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
    """The part that a limb points to, itself for what is no limb."""
    limb, _, side = part.rpartition("_")
    return f"{_NEXT[limb]}_{side}" if limb in _NEXT else ""


def _facing(places: Mapping[str, Floats]) -> float:
    """The direction of a figure's front about z, from where its left and its right are; rad."""
    for part in ("thigh", "upper_arm", "foot"):
        if f"{part}_l" in places and f"{part}_r" in places:
            across = places[f"{part}_l"] - places[f"{part}_r"]
            if np.hypot(across[0], across[1]) > 0.0:
                return float(np.arctan2(-across[0], across[1]))
    return 0.0


def _leg_length(places: Mapping[str, Floats]) -> float:
    """Mean length of the legs that are there; 1 if there is none."""
    lengths = []
    for side in ("l", "r"):
        joints = [places[f"{part}_{side}"] for part in ("thigh", "shank", "foot") if f"{part}_{side}" in places]
        if len(joints) == 3:
            lengths.append(sum(float(np.linalg.norm(b - a)) for a, b in pairwise(joints)))
    return float(np.mean(lengths)) if lengths and min(lengths) > 0.0 else 1.0
