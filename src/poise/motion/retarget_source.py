"""The clip of a retargeting: positions of joints, lengths of bones, directions of parts, in its frames.

Everything here comes from positions in the posed frames, and from the rotations of joints between them. The rest pose
of a file is arbitrary: bones may be along an axis of their joint, and the skeleton may be bent or lying.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from poise.motion.bone_names import find_parts
from poise.motion.rotations import quat_conjugate, rotate

if TYPE_CHECKING:
    from poise.motion.clip import Clip

Floats = NDArray[np.float64]

#: the part that each part of a limb points to
NEXT = {"upper_arm": "forearm", "forearm": "hand", "thigh": "shank", "shank": "foot"}
#: joints nearer to each other than this share of the leg coincide
_ONE_PLACE = 0.01
#: children that do not show the direction of a head or a hand
_ASIDE = re.compile(r"thumb|eye|jaw|face|ear|nose|brow|lid|lip|tongue|teeth|hair", re.IGNORECASE)


@dataclass
class Source:
    """A clip as the source of retargeting."""

    clip: Clip
    given: Mapping[str, str]

    def __post_init__(self) -> None:
        skeleton = self.clip.skeleton
        self.parts = find_parts(skeleton.names, skeleton.parents)
        for part, joint in self.given.items():
            self.parts[part] = skeleton.index(joint)
        self.rest, self.rest_quats = skeleton.rest_world
        joints, self.quats = skeleton.place(self.clip.quats_wxyz, self.clip.all_translations())
        self.places = np.concatenate((joints, skeleton.place_tips(joints, self.quats)), axis=1)
        """(frames, joints and tips, 3) in the world; m."""
        self.parents = [*skeleton.parents.tolist(), *(joint for joint, _ in skeleton.tips)]
        self.names = [*skeleton.names, *("" for _ in skeleton.tips)]

    def place(self, part: str) -> Floats:
        """Position of the joint of a part; (frames, 3)."""
        return np.asarray(self.places[:, self.parts[part]])

    def local(self, joint: int, vectors: Floats) -> Floats:
        """World vectors (frames, 3) in the axes of a joint."""
        return rotate(quat_conjugate(self.quats[:, joint]), vectors)

    def span(self, first: int, second: int) -> float:
        """The median distance of two joints; m."""
        return float(np.median(np.linalg.norm(self.places[:, second] - self.places[:, first], axis=1)))

    def chain(self, joint: int, stops: Collection[int]) -> float:
        """The length of the bones from a joint up to one of others, or to the root; m."""
        length = 0.0
        while joint not in stops and self.parents[joint] >= 0:
            length += self.span(joint, self.parents[joint])
            joint = self.parents[joint]
        return length

    def spine(self) -> list[int]:
        """The joints from the hips to the head, and the end of the head."""
        if "head" not in self.parts:
            return [self.parts["pelvis"]]
        joints = [self.parts["head"]]
        while joints[-1] != self.parts["pelvis"] and self.parents[joints[-1]] >= 0:
            joints.append(self.parents[joints[-1]])
        return joints[::-1] + self.ends(joints[0])[:1]

    @cached_property
    def size(self) -> float:
        """Extent of the hips and their descendants, median over frames; m.

        A joint above the hips may be anywhere, as at the origin of the world.
        """
        return float(np.median(np.linalg.norm(np.ptp(self.places[:, self.figure()], axis=1), axis=1)))

    def figure(self) -> list[int]:
        """The hips and all joints and tips below them."""
        return [self.parts["pelvis"], *self.below(self.parts["pelvis"])]

    def ends(self, joint: int) -> list[int]:
        """The nearest joints and tips below a joint that do not coincide with it, without thumbs, eyes and the like."""
        found: list[int] = []
        level = [k for k, parent in enumerate(self.parents) if parent == joint]
        while level:
            away = [k for k in level if self.span(joint, k) > _ONE_PLACE * self.size]
            found += away
            level = [k for k, parent in enumerate(self.parents) if parent in level and parent not in away]
        return [k for k in found if not _ASIDE.search(self.names[k] or self.names[self.parents[k]])]

    def below(self, joint: int) -> list[int]:
        """All joints and tips below a joint."""
        found = {joint: None}
        for k, parent in enumerate(self.parents):
            if parent in found:
                found[k] = None
        return list(found)[1:]

    def feet(self) -> list[str]:
        """The lowest part of each leg: feet, or shanks without feet."""
        sides = [(f"foot_{side}", f"shank_{side}") for side in "lr"]
        return [next(part for part in pair if part in self.parts) for pair in sides if set(pair) & set(self.parts)]

    def foot(self, side: str) -> Floats:
        """The points of a foot, from the ankle to the toes: (points, frames, 3) m; none without an ankle."""
        joint = self.parts.get(f"foot_{side}")
        points = [] if joint is None else [joint, *self.below(joint)]
        return np.moveaxis(self.places[:, points], 1, 0)

    def farthest(self, joint: int) -> list[int]:
        """The joint or tip below a joint that is farthest from it."""
        below = self.below(joint)
        return [max(below, key=lambda k: self.span(joint, k))] if below else []

    def end(self, part: str) -> Floats | None:
        """End of a part: the next joint of its limb, the tip of the toes for a foot, otherwise its descendants."""
        limb, _, side = part.rpartition("_")
        following = self.parts.get(f"{NEXT.get(limb, '')}_{side}")
        joint = self.parts[part]
        below = self.farthest(joint) if limb == "foot" else self.ends(joint)
        ends = below if following is None else [following]
        if not ends or self.span(joint, ends[0]) <= _ONE_PLACE * self.size:
            return None
        return np.asarray(self.places[:, ends].mean(axis=1))

    def direction(self, part: str) -> Floats | None:
        """Direction of a part in the world, (frames, 3) unit; None if it has no end."""
        end = self.end(part)
        if end is None:
            return None
        way = end - self.place(part)
        return np.asarray(way / np.maximum(np.linalg.norm(way, axis=1), 1e-12)[:, None])

    def points(self, part: str) -> bool:
        """Whether a limb has an end."""
        return part.rpartition("_")[0] in NEXT and self.end(part) is not None

    def across(self, part: str) -> Floats | None:
        """Vector from the right joint of a pair to the left one; (frames, 3) m."""
        if f"{part}_l" not in self.parts or f"{part}_r" not in self.parts:
            return None
        way = self.place(f"{part}_l") - self.place(f"{part}_r")
        return way if np.median(np.linalg.norm(way, axis=1)) > _ONE_PLACE * self.size else None

    def shoulders(self) -> Floats | None:
        """Vector from the right collar to the left one, which rotate with the chest; if they coincide, of the arms."""
        arms = self.across("upper_arm")
        if arms is None or "torso" not in self.parts:
            return arms
        left, right = (self._below("torso", f"upper_arm_{side}") for side in "lr")
        collars = self.places[:, left] - self.places[:, right]
        wide = np.median(np.linalg.norm(collars, axis=1)) > 0.1 * np.median(np.linalg.norm(arms, axis=1))
        return np.asarray(collars) if wide else arms

    def _below(self, part: str, lower: str) -> int:
        """The child of a part's joint on the path to the joint of a lower part."""
        joint = self.parts[lower]
        while self.parents[joint] not in (-1, self.parts[part]):
            joint = self.parents[joint]
        return joint

    def hip_joints(self) -> list[int]:
        """The joints whose middle the hips are."""
        joints = [self.parts[part] for part in ("thigh_l", "thigh_r") if part in self.parts]
        return joints if len(joints) == 2 else [self.parts["pelvis"]]

    def hips(self) -> Floats:
        """The middle of the hip joints; (frames, 3)."""
        return np.asarray(self.places[:, self.hip_joints()].mean(axis=1))

    def top(self) -> tuple[str, Floats] | None:
        """The upper end of the trunk: the neck's joint, otherwise the middle of the arms; its part and (frames, 3)."""
        pelvis = self.parts["pelvis"]
        torso = self.parts.get("torso", pelvis)
        if "head" in self.parts:
            chain = [self.parts["head"]]
            while chain[-1] not in (-1, torso):
                chain.append(self.parents[chain[-1]])
            # without a chest, the first joint of the spine is too near for a reliable direction
            between = chain[-2::-1] if chain[-1] == torso != pelvis else chain[:1]
            apart = [joint for joint in between if self.span(torso, joint) > _ONE_PLACE * self.size]
            if apart:
                return "head", np.asarray(self.places[:, apart[0]])
        if "upper_arm_l" in self.parts and "upper_arm_r" in self.parts:
            return "upper_arm", np.asarray(0.5 * (self.place("upper_arm_l") + self.place("upper_arm_r")))
        return None

    def leg_length(self) -> float:
        """Mean length of the legs from hip over knee to ankle; 1 without legs; m."""
        lengths = []
        for side in "lr":
            names = [f"{part}_{side}" for part in ("thigh", "shank", "foot")]
            joints = [self.parts[name] for name in names if name in self.parts]
            if len(joints) == 3:
                lengths.append(self.span(joints[0], joints[1]) + self.span(joints[1], joints[2]))
        return float(np.mean(lengths)) if lengths and min(lengths) > 0.0 else 1.0
