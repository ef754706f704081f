"""Figures as motion capture and animation programs build them: other bones, other axes in them, with and without toes.

All of them move alike: they walk on the spot, crouch, lie down or turn a cartwheel. The rest pose in which every joint
has no rotation is a heap for those whose bones lie along an axis of their joints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poise.motion import Clip, Skeleton
from poise.motion.rotations import quat_conjugate, quat_exp, quat_from_matrix, quat_multiply, rotate

Table = dict[str, tuple[str, str, tuple[float, float, float]]]


@dataclass(frozen=True)
class Rig:
    """Names of joints, and which axis of a joint its bone lies along: "world" where all axes are the world's."""

    thigh: str
    shank: str
    foot: str
    toe: str | None
    collar: str | None
    arm: str
    forearm: str
    hand: str
    hips: str
    spine: tuple[str, ...]
    head: tuple[str, ...]
    along: str
    backwards: float = 0.0
    """How far behind the hips the spine begins; m."""
    root: str | None = None
    crown: bool = True


RIGS = {
    "lafan": Rig(
        "{Side}UpLeg", "{Side}Leg", "{Side}Foot", "{Side}Toe", "{Side}Shoulder", "{Side}Arm", "{Side}ForeArm",
        "{Side}Hand", "Hips", ("Spine", "Spine1", "Spine2"), ("Neck", "Head"), "x", backwards=0.045, crown=False,
    ),
    "mixamo": Rig(
        "mixamorig:{Side}UpLeg", "mixamorig:{Side}Leg", "mixamorig:{Side}Foot", "mixamorig:{Side}ToeBase",
        "mixamorig:{Side}Shoulder", "mixamorig:{Side}Arm", "mixamorig:{Side}ForeArm", "mixamorig:{Side}Hand",
        "mixamorig:Hips", ("mixamorig:Spine", "mixamorig:Spine1", "mixamorig:Spine2"),
        ("mixamorig:Neck", "mixamorig:Head"), "y", backwards=0.01,
    ),
    "bandai": Rig(
        "UpperLeg_{S}", "LowerLeg_{S}", "Foot_{S}", "Toes_{S}", "Shoulder_{S}", "UpperArm_{S}", "LowerArm_{S}",
        "Hand_{S}", "Hips", ("Spine", "Chest"), ("Neck", "Head"), "x", root="joint_Root",
    ),
    "xsens": Rig(
        "{Side}UpperLeg", "{Side}LowerLeg", "{Side}Foot", "{Side}Toe", "{Side}Shoulder", "{Side}UpperArm",
        "{Side}ForeArm", "{Side}Hand", "Pelvis", ("L5", "L3", "T12", "T8"), ("Neck", "Head"), "world", backwards=0.02,
    ),
    "plain": Rig(
        "{Side}Hip", "{Side}Knee", "{Side}Ankle", None, None, "{Side}Shoulder", "{Side}Elbow", "{Side}Wrist",
        "Hips", ("Chest",), ("Head",), "world",
    ),
}  # fmt: skip


def bones(rig: Rig) -> tuple[Table, list[tuple[str, tuple[float, float, float]]]]:
    """Parents, parts and places (m) of all joints of a figure that stands with its arms hanging, and its tips."""
    table: Table = {}
    if rig.root:
        table[rig.root] = ("", "", (0.4, -0.3, 0.0))
    table[rig.hips] = (rig.root or "", "pelvis", (0.0, 0.0, 0.95))
    above, low = rig.hips, 1.02
    for k, name in enumerate(rig.spine):
        height = low + (1.30 - low) * k / max(len(rig.spine) - 1, 1) if len(rig.spine) > 1 else 1.15
        table[name] = (above, f"spine{k}", (-rig.backwards, 0.0, height))
        above = name
    chest = above
    for k, name in enumerate(rig.head):
        table[name] = (above, "neck" if k < len(rig.head) - 1 else "head", (-0.01, 0.0, 1.50 + 0.1 * k))
        above = name
    tips = [(above, (0.0, 0.0, 1.78))] if rig.crown else []
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        letter = side[0].lower()

        def called(name: str, side: str = side) -> str:
            return name.format(Side=side, S=side[0])

        shoulder = chest
        if rig.collar:
            table[called(rig.collar)] = (chest, "collar_" + letter, (0.0, sign * 0.06, 1.43))
            shoulder = called(rig.collar)
        table[called(rig.arm)] = (shoulder, "upper_arm_" + letter, (0.0, sign * 0.18, 1.43))
        table[called(rig.forearm)] = (called(rig.arm), "forearm_" + letter, (0.0, sign * 0.18, 1.14))
        table[called(rig.hand)] = (called(rig.forearm), "hand_" + letter, (0.0, sign * 0.18, 0.89))
        tips.append((called(rig.hand), (0.0, sign * 0.18, 0.80)))
        table[called(rig.thigh)] = (rig.hips, "thigh_" + letter, (0.0, sign * 0.09, 0.92))
        table[called(rig.shank)] = (called(rig.thigh), "shank_" + letter, (0.01, sign * 0.09, 0.50))
        table[called(rig.foot)] = (called(rig.shank), "foot_" + letter, (0.0, sign * 0.09, 0.08))
        if rig.toe:
            table[called(rig.toe)] = (called(rig.foot), "toe_" + letter, (0.14, sign * 0.09, 0.02))
            tips.append((called(rig.toe), (0.2, sign * 0.09, 0.02)))
    return table, tips


def moving(rig: Rig, motion: str, frames: int = 60) -> Clip:
    """A rig that walks on the spot, crouches, lunges, lies down or turns a cartwheel; z up, in metres, facing x."""
    table, tips = bones(rig)
    names = list(table)
    places = np.array([table[name][2] for name in names])
    parents = [names.index(table[name][0]) if table[name][0] else -1 for name in names]
    times = np.arange(frames) / 30.0
    turns, path = poses(motion, times)
    world = np.empty((frames, len(names), 4))
    for k, name in enumerate(names):
        own = turns.get(table[name][1], np.zeros((frames, 3)))
        above = world[:, parents[k]] if parents[k] >= 0 else np.tile((1.0, 0.0, 0.0, 0.0), (frames, 1))
        world[:, k] = quat_multiply(above, quat_exp(own))
    tip_places = [(names.index(joint), np.array(place)) for joint, place in tips]
    frame = [_own_axes(rig, k, names, parents, places, tip_places) for k in range(len(names))]
    return _clip(names, parents, places, tip_places, world, np.array(frame), path, times, rig)


def _own_axes(rig: Rig, joint: int, names: list[str], parents: list[int], places: np.ndarray, tips: list) -> np.ndarray:
    """The orientation (4,) of a joint's axes while the figure stands."""
    ends = [places[k] for k, parent in enumerate(parents) if parent == joint]
    ends += [place for owner, place in tips if owner == joint]
    if rig.along == "world" or not ends:
        return np.array((1.0, 0.0, 0.0, 0.0))
    way = np.mean(ends, axis=0) - places[joint]
    bone = way / np.linalg.norm(way)
    third = np.cross(bone, (0.31, 0.9, 0.2))
    third /= np.linalg.norm(third)
    axes = [bone, np.cross(third, bone), third]
    if rig.along == "y":
        axes = [third, bone, np.cross(third, bone)]
    return quat_from_matrix(np.stack(axes, axis=1))


def _clip(
    names: list[str],
    parents: list[int],
    places: np.ndarray,
    tips: list[tuple[int, np.ndarray]],
    world: np.ndarray,
    frame: np.ndarray,
    path: np.ndarray,
    times: np.ndarray,
    rig: Rig,
) -> Clip:
    """The clip of joints whose own axes are turned by constant rotations, with a rest pose that nobody has chosen."""
    offsets = np.array([places[k] - (places[p] if p >= 0 else 0.0) for k, p in enumerate(parents)])
    above = [np.array((1.0, 0.0, 0.0, 0.0)) if p < 0 else frame[p] for p in parents]
    skeleton = Skeleton(
        names,
        parents,
        np.array([rotate(quat_conjugate(turn), offset) for turn, offset in zip(above, offsets, strict=True)]),
        tips=[(k, rotate(quat_conjugate(frame[k]), place - places[k])) for k, place in tips],
    )
    quats = np.empty_like(world)
    for k, parent in enumerate(parents):
        turned = quat_multiply(world[:, k], frame[k])
        quats[:, k] = (
            turned
            if parent < 0
            else quat_multiply(quat_conjugate(quat_multiply(world[:, parent], frame[parent])), turned)
        )
    hips = names.index(rig.hips)
    moves = np.tile(skeleton.offsets, (len(times), 1, 1))
    moves[:, hips] = path if hips == 0 else rotate(quat_conjugate(frame[0]), path - places[0])
    moved = sorted({0, hips})
    return Clip(skeleton, times, quats, moves[:, moved], moved=moved, name="rig")


def poses(motion: str, times: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rotation vectors (frames, 3) of parts beside those above them, and the path of the hips (frames, 3)."""
    n, phase = len(times), 2.0 * np.pi * times
    zero, path = np.zeros(n), np.tile((0.3, 0.2, 0.95), (n, 1))
    turns: dict[str, np.ndarray] = {}

    def turn(part: str, x: object = 0.0, y: object = 0.0, z: object = 0.0) -> None:
        turns[part] = np.stack(np.broadcast_arrays(x, y, z, zero)[:3], axis=1)

    for side, late, sign in (("l", 0.0, 1.0), ("r", np.pi, -1.0)):
        lift = np.clip(np.sin(phase + late), 0.0, 1.0) ** 2
        turn(f"thigh_{side}", y=-0.9 * lift)
        turn(f"shank_{side}", y=1.4 * lift)
        turn(f"foot_{side}", y=-0.2 * lift)
        turn(f"upper_arm_{side}", x=sign * 0.15, y=-0.5 * np.cos(phase + late))
        turn(f"forearm_{side}", y=-0.6 - 0.4 * np.cos(phase + late))
    if motion == "still":
        turns = {}
    elif motion == "crouch":
        bend = 0.8 * np.sin(0.5 * np.pi * times / times[-1]) if n > 1 else np.full(n, 0.8)
        for side in "lr":
            turn(f"thigh_{side}", y=-bend)
            turn(f"shank_{side}", y=2.0 * bend)
            turn(f"foot_{side}", y=-bend)
        path[:, 2] = 0.95 - 0.84 * (1.0 - np.cos(bend))
    elif motion == "lunge":
        # the hips go down over feet that stay flat; the left shank leans farther than the right one
        bend = 0.5 * np.sin(0.5 * np.pi * times / times[-1]) if n > 1 else np.full(n, 0.5)
        lean = 0.4 * bend
        lift = np.arccos(2.0 * np.cos(bend) - np.cos(lean))
        for side, thigh, shank in (("l", bend, bend), ("r", lift, lean)):
            turn(f"thigh_{side}", y=-thigh)
            turn(f"shank_{side}", y=thigh + shank)
            turn(f"foot_{side}", y=-shank)
        path[:, 2] = 0.95 - 0.84 * (1.0 - np.cos(bend))
    elif motion == "lie":
        # stands for a sixth of the time, then sinks backwards and lies on its back with some kicking
        share = np.clip((times / times[-1] - 1.0 / 6.0) * 6.0, 0.0, 1.0)
        fall = 0.5 * np.pi * share * share * (3.0 - 2.0 * share)
        turn("pelvis", y=-fall)
        for side, late in (("l", 0.0), ("r", np.pi)):
            # arms do not go through the ground
            turn(f"upper_arm_{side}", y=-0.3 - 0.3 * np.cos(phase + late))
        path[:, 0] -= 0.95 * np.sin(fall)
        path[:, 2] = 0.12 * np.sin(fall) + 0.95 * np.cos(fall)
    elif motion == "cartwheel":
        angle = np.clip(times / times[-1] * 1.2 - 0.1, 0.0, 1.0) * 4.0 * np.pi
        turns = {"pelvis": np.stack((angle, zero, zero), axis=1)}
        for side, sign in (("l", 1.0), ("r", -1.0)):
            turn(f"upper_arm_{side}", x=sign * np.clip(angle, 0.0, 1.0) * 2.7)
            turn(f"thigh_{side}", x=sign * 0.3)
        path[:, 1] -= 0.7 * angle
        path[:, 2] = 0.65 + 0.28 * np.maximum(np.cos(angle), 0.0) + 0.4 * np.maximum(-np.cos(angle), 0.0)
    return turns, path
