"""Names of bones: the side of a joint, and the part of a body that it moves.

Supported are the names of MotionBuilder and CMU (LeftUpLeg), Mixamo (mixamorig:LeftUpLeg), Xsens (LeftUpperLeg),
3ds Max (Bip01 L Thigh), names of joints (LeftHip, left_hip) and Poise's own (thigh_l).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_SIDES = (("Left", "Right"), ("left", "right"), ("LEFT", "RIGHT"))
#: a letter that stands for a side: alone between marks, or before a capital
_LETTER = re.compile(r"(?<![A-Za-z])([LlRr])(?![a-z])|(?<=[a-z])([LR])(?![A-Za-z])")
_OTHER = {"L": "R", "R": "L", "l": "r", "r": "l"}


def other_side(name: str, names: Sequence[str]) -> str | None:
    """The name on the other side of the body; None for joints in the middle.

    >>> other_side("mixamorig:LeftArm", ["mixamorig:RightArm"]), other_side("thigh_l", ["thigh_r"])
    ('mixamorig:RightArm', 'thigh_r')
    """
    return next((candidate for candidate in _others(name) if candidate in names and candidate != name), None)


def _others(name: str) -> Iterator[str]:
    for left, right in _SIDES:
        if left in name:
            yield name.replace(left, right)
        if right in name:
            yield name.replace(right, left)
    for found in _LETTER.finditer(name):
        yield name[: found.start()] + _OTHER[found[0]] + name[found.end() :]
    if name[0] in _OTHER:
        yield _OTHER[name[0]] + name[1:]


def mirror_order(names: Sequence[str], parents: NDArray[np.int64], pairs: Mapping[str, str]) -> NDArray[np.int64]:
    """For each joint the index of its mirror image."""
    place = {name: index for index, name in enumerate(names)}
    given = {**{b: a for a, b in pairs.items()}, **pairs}
    for name in given:
        if name not in place:
            raise ValueError(f'pairs: there is no joint "{name}"')
    order = np.arange(len(names))
    for name, index in place.items():
        partner = given.get(name, other_side(name, names))
        order[index] = place[partner] if partner is not None else index
    for index, across in enumerate(order.tolist()):
        if order[across] != index:
            raise ValueError(f'pairs: "{names[index]}" and "{names[across]}" are not each other\'s mirror; pair them')
        above, beyond = int(parents[index]), int(parents[across])
        if (above < 0) != (beyond < 0) or (above >= 0 and order[above] != beyond):
            raise ValueError(
                f'pairs: "{names[index]}" and "{names[across]}" hang on joints that are not each other\'s mirror'
            )
    return order


#: names of each part of a limb, without the side; the first one in the skeleton is used
_LIMBS: dict[str, tuple[str, ...]] = {
    "upper_arm": ("upperarm", "uparm", "arm", "shldr", "humerus", "shoulder"),
    "forearm": ("forearm", "lowerarm", "lowarm", "elbow", "radius"),
    "hand": ("hand", "wrist"),
    "thigh": ("thigh", "upleg", "upperleg", "femur", "hip"),
    "shank": ("shank", "lowerleg", "lowleg", "calf", "shin", "leg", "knee", "tibia"),
    "foot": ("foot", "ankle"),
}
_MIDDLE: dict[str, tuple[str, ...]] = {
    "pelvis": ("pelvis", "hips", "hip", "root"),
    "head": ("head", "neck"),
}
_PREFIX = re.compile(r"^(bip\d*|bone|jnt|joint|def|character\d*)(?=[a-z])")


def find_parts(names: Sequence[str], parents: Sequence[int] | NDArray[np.int64]) -> dict[str, int]:
    """The joint of each part of a human body: `"thigh_l"`, `"forearm_r"`, `"pelvis"`, `"torso"` and so on.

    The pelvis is the part that carries both legs, the torso the part that carries both arms.

    >>> find_parts(["Hips", "Chest", "LeftArm", "RightArm", "LeftUpLeg"], [-1, 0, 1, 1, 0])
    {'upper_arm_l': 2, 'upper_arm_r': 3, 'thigh_l': 4, 'pelvis': 0, 'torso': 1}
    """
    words = [_word(name) for name in names]
    parts: dict[str, int] = {}
    for part, synonyms in _LIMBS.items():
        for side in ("l", "r"):
            found = [words.index((word, side)) for word in synonyms if (word, side) in words]
            if found:
                parts[f"{part}_{side}"] = found[0]
    for part, synonyms in _MIDDLE.items():
        found = [words.index((word, "")) for word in synonyms if (word, "") in words]
        if found or part == "pelvis":
            parts[part] = found[0] if found else 0
    if "thigh_l" in parts and "thigh_r" in parts:
        # a joint above the hips may have their name
        above = _ancestors(parts["thigh_r"], parents)
        parts["pelvis"] = next((k for k in _ancestors(parts["thigh_l"], parents) if k in above), parts["pelvis"])
    if "upper_arm_l" in parts and "upper_arm_r" in parts:
        above = _ancestors(parts["upper_arm_r"], parents)
        torso = next((joint for joint in _ancestors(parts["upper_arm_l"], parents) if joint in above), 0)
        if torso != parts["pelvis"]:
            parts["torso"] = torso
    return parts


def _word(name: str) -> tuple[str, str]:
    """A name without its namespace, separators and side, and the side."""
    text = re.split(r"[:/|]", name)[-1]
    side = ""
    for left, right in _SIDES:
        for word, letter in ((left, "l"), (right, "r")):
            if not side and word in text:
                text, side = text.replace(word, ""), letter
    found = _LETTER.search(text)
    if not side and found is not None:
        text, side = text[: found.start()] + " " + text[found.end() :], found[0].lower()
    return _PREFIX.sub("", re.sub(r"[^a-z0-9]", "", text.lower())), side


def _ancestors(joint: int, parents: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """A joint's parent, the parent's parent and so on."""
    above = []
    while (joint := int(parents[joint])) >= 0:
        above.append(joint)
    return above
