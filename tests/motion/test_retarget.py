"""Motion of one figure for another: the same coordinates back, the same directions of limbs, soles on the floor."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.motion import Clip, Skeleton, retarget
from poise.motion.bone_names import find_parts
from poise.motion.rotations import quat_conjugate, quat_exp, quat_multiply, rotate

SIDED = {
    "cmu": ("UpLeg", "Leg", "Foot", "Arm", "ForeArm", "Hand", "{side}{bone}"),
    "mixamo": ("UpLeg", "Leg", "Foot", "Arm", "ForeArm", "Hand", "mixamorig:{side}{bone}"),
    "xsens": ("UpperLeg", "LowerLeg", "Foot", "UpperArm", "ForeArm", "Hand", "{side}{bone}"),
    "max": ("Thigh", "Calf", "Foot", "UpperArm", "Forearm", "Hand", "Bip01 {letter} {bone}"),
    "joints": ("Hip", "Knee", "Ankle", "Shoulder", "Elbow", "Wrist", "{side}{bone}"),
    "deepmimic": ("hip", "knee", "ankle", "shoulder", "elbow", "wrist", "{small}_{bone}"),
    "plain": ("thigh", "shank", "foot", "upper_arm", "forearm", "hand", "{bone}_{low}"),
}
PARTS = ("thigh", "shank", "foot", "upper_arm", "forearm", "hand")
MIDDLE = {
    "cmu": ("Hips", "Spine1", "Head"),
    "mixamo": ("mixamorig:Hips", "mixamorig:Spine2", "mixamorig:Head"),
    "xsens": ("Pelvis", "T8", "Head"),
    "max": ("Bip01 Pelvis", "Bip01 Spine1", "Bip01 Head"),
    "joints": ("Hips", "Chest", "Head"),
    "deepmimic": ("root", "chest", "neck"),
    "plain": ("pelvis", "torso", "head"),
}


def called(style: str, part: str, side: str) -> str:
    bone = SIDED[style][PARTS.index(part)]
    words = {"l": ("Left", "left", "L"), "r": ("Right", "right", "R")}[side]
    return SIDED[style][6].format(side=words[0], small=words[1], letter=words[2], low=side, bone=bone)


def names_of(style: str, bodies: list[str]) -> list[str]:
    """Names in a style for the bodies of Poise's humanoid."""
    middle = dict(zip(("pelvis", "torso", "head"), MIDDLE[style], strict=True))
    return [middle[body] if body in middle else called(style, body[:-2], body[-1]) for body in bodies]


def character(height: float = 1.75) -> poise.Model:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1), name="Head of a nail", position=(3, 0, 0.1))
    scene.add(poise.characters.humanoid(height), name="hero")
    return scene.compile()


MODEL = character()
ONE = Skeleton(["a"], [-1], [(0, 0, 0)])
LINKS = [link for link in range(MODEL.n_links) if MODEL.body_names[MODEL.link_body[link]].startswith("hero/")]
BODIES = [MODEL.body_names[MODEL.link_body[link]].removeprefix("hero/") for link in LINKS]


def coordinates(frames: int = 30, seed: int = 0) -> np.ndarray:
    """Smooth coordinates with bent knees and elbows, inside all ranges."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / 30

    def wave(size: int, reach: float) -> np.ndarray:
        return reach * np.sin(t * rng.uniform(1, 4, size) + rng.uniform(0, 6, size))

    q = np.tile(MODEL.q_rest, (frames, 1))
    for joint, kind in enumerate(MODEL.joint_kinds):
        start, end = MODEL.joint_q_start[joint : joint + 2]
        if not MODEL.joint_names[joint].startswith("hero/"):
            continue
        if kind == "free":
            q[:, start : start + 3] += wave(3, 0.3) + t * (1.0, 0.5, 0.0)
            q[:, end - 4 : end] = quat_exp(wave(3, 0.6))
        elif kind == "ball":
            q[:, start:end] = quat_exp(wave(3, 0.5))
        elif kind == "hinge":
            q[:, start] = 1.0 + wave(1, 0.4)[:, 0]
        else:
            q[:, start:end] = wave(2, 0.15)
    return q


def as_clip(q: np.ndarray, style: str = "plain", rest: np.ndarray | None = None, scale: float = 1.0) -> Clip:
    """The same motion as a clip, with joints of other names, frames at rest, and size."""
    parents = [LINKS.index(p) if (p := int(MODEL.link_parent[link])) in LINKS else -1 for link in LINKS]
    turns = np.empty((len(q), len(LINKS), 4))
    for k, link in enumerate(LINKS):
        joint = int(np.flatnonzero(MODEL.joint_body == MODEL.link_body[link])[0])
        start, end = MODEL.joint_q_start[joint : joint + 2]
        if MODEL.joint_kinds[joint] in ("free", "ball"):
            turns[:, k] = q[:, end - 4 : end]
        else:
            first = MODEL.link_primitive_start[link]
            turns[:, k] = (1.0, 0.0, 0.0, 0.0)
            for n in range(end - start):
                turn = quat_exp(q[:, start + n, None] * MODEL.primitive_axis[first + n])
                turns[:, k] = quat_multiply(turns[:, k], turn)
    root = int(
        MODEL.joint_q_start[[n.endswith("root") and n.startswith("hero") for n in MODEL.joint_names].index(True)]
    )
    offsets = MODEL.link_position[LINKS].copy()
    offsets[0] = MODEL.q_rest[root : root + 3]
    clip = Clip(
        Skeleton(names_of(style, BODIES), parents, offsets), np.arange(len(q)) / 30, turns, q[:, root : root + 3]
    )
    return (clip if rest is None else clip.at_rest_of(rest)).scaled(scale)


def same(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference of coordinates; the sign of a quaternion does not count."""
    gap = 0.0
    for joint, kind in enumerate(MODEL.joint_kinds):
        start, end = MODEL.joint_q_start[joint : joint + 2]
        a, b = first[:, start:end], second[:, start:end]
        if kind in ("free", "ball"):
            flip = np.where(np.sum(a[:, -4:] * b[:, -4:], axis=1, keepdims=True) < 0.0, -1.0, 1.0)
            b = np.concatenate((b[:, :-4], b[:, -4:] * flip), axis=1)
        gap = max(gap, float(np.abs(a - b).max()))
    return gap


@pytest.mark.parametrize("style", SIDED)
def test_parts_are_found_by_name(style):
    names = names_of(style, BODIES)
    parents = [LINKS.index(p) if (p := int(MODEL.link_parent[link])) in LINKS else -1 for link in LINKS]
    assert find_parts(names, parents) == {body: k for k, body in enumerate(BODIES)}


def test_a_collar_is_no_upper_arm():
    names = ["Hips", "Spine", "LeftShoulder", "LeftArm", "RightShoulder", "RightArm", "LHipJoint", "LeftUpLeg"]
    parts = find_parts(names, [-1, 0, 1, 2, 1, 4, 0, 6])
    assert parts == {"upper_arm_l": 3, "upper_arm_r": 5, "thigh_l": 7, "pelvis": 0, "torso": 1}


@pytest.mark.parametrize("style", SIDED)
def test_a_characters_own_motion_comes_back(style):
    q = coordinates()
    found = retarget(as_clip(q, style), MODEL, floor=None)
    assert same(found.q, q) < 1e-9
    assert found.times.tolist() == (np.arange(30) / 30).tolist()


def test_orientations_of_frames_at_rest_do_not_matter():
    rest = np.random.default_rng(5).normal(size=(len(LINKS), 4))
    q = coordinates(seed=2)
    assert same(retarget(as_clip(q, rest=rest), MODEL, floor=None).q, q) < 1e-9


def test_size_is_taken_care_of():
    q = coordinates(seed=3)
    found = retarget(as_clip(q, scale=2.5), MODEL, floor=None).q
    root = MODEL.q_slice("root")
    place = slice(root.start, root.start + 2)
    # it starts where the clip does, and goes as far as its own legs take it
    np.testing.assert_allclose(found[0, place], 2.5 * q[0, place], atol=1e-9)
    np.testing.assert_allclose(found[:, place] - found[0, place], q[:, place] - q[0, place], atol=1e-9)
    rest = np.ones(MODEL.nq, bool)
    rest[root.start : root.start + 3] = False
    assert np.abs(np.abs(found) - np.abs(q))[:, rest].max() < 1e-9
    wide = retarget(as_clip(q), MODEL, scale=2.0, floor=None).q
    np.testing.assert_allclose(wide[:, place] - wide[0, place], 2.0 * (q[:, place] - q[0, place]), atol=1e-9)


def limb_errors(clip: Clip, q: np.ndarray, model: poise.Model = MODEL) -> dict[str, np.ndarray]:
    """Angles (rad) between the limbs of the clip and those of the character, by part and frame."""
    parts = find_parts(clip.skeleton.names, clip.skeleton.parents)
    places, bodies = clip.world_positions(), poise.dynamics.bodies(model, q).position
    errors = {}
    for limb, end in (("upper_arm", "forearm"), ("forearm", "hand"), ("thigh", "shank"), ("shank", "foot")):
        for side in "lr":
            a, b = f"{limb}_{side}", f"{end}_{side}"
            if a in parts and b in parts:
                one = places[:, parts[b]] - places[:, parts[a]]
                two = bodies[:, model.body_index(f"hero/{b}")] - bodies[:, model.body_index(f"hero/{a}")]
                cosine = np.sum(one * two, axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(two, axis=1)
                errors[a] = np.arccos(np.clip(cosine, -1.0, 1.0))
    return errors


def test_limbs_point_the_same_way_from_any_rest_pose_and_facing():
    """A skeleton whose rest pose is a T, and which faces −y: the same motion, other rotations."""
    q = coordinates(seed=4)
    clip = as_clip(q, "cmu")
    skeleton = clip.skeleton
    # turn the arms of the rest pose out, and the whole figure about z: other offsets, and so other rotations
    parts = find_parts(skeleton.names, skeleton.parents)
    about = quat_exp((0.0, 0.0, -0.5 * np.pi))
    pose = np.tile(about, (len(skeleton), 1))
    for side, sign in (("l", 1.0), ("r", -1.0)):
        for part in ("upper_arm", "forearm", "hand"):
            pose[parts[f"{part}_{side}"]] = quat_multiply(about, quat_exp((sign * np.deg2rad(82.0), 0.0, 0.0)))
    above = np.concatenate(((np.array((1.0, 0, 0, 0))), pose.ravel())).reshape(-1, 4)[skeleton.parents + 1]
    offsets = rotate(above, skeleton.offsets)
    quats = quat_multiply(quat_multiply(above, clip.quats_wxyz), quat_conjugate(pose))
    other = Clip(Skeleton(skeleton.names, skeleton.parents, offsets), clip.times, quats, clip.translations)
    np.testing.assert_allclose(other.world_positions(), clip.world_positions(), atol=1e-12)
    found = retarget(other, MODEL, floor=None).q
    assert max(error.max() for error in limb_errors(other, found).values()) < 1e-6
    root = MODEL.q_slice("root")
    np.testing.assert_allclose(np.abs(found[:, root]), np.abs(q[:, root]), atol=1e-9)


def lowest_corner(model: poise.Model, q: np.ndarray, sides: str = "lr") -> np.ndarray:
    """Height of the lowest corner of the feet's boxes, through the model's own kinematics."""
    bodies = poise.dynamics.bodies(model, q)
    low = np.full(len(q), np.inf)
    for shape in np.flatnonzero(np.isin(model.solids.body, [model.body_index(f"hero/foot_{side}") for side in sides])):
        body = model.solids.body[shape]
        for signs in np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3):
            corner = model.solids.position[shape] + rotate(
                model.solids.quat_wxyz[shape], signs * model.solids.size[shape]
            )
            low = np.minimum(low, bodies.position[:, body, 2] + (bodies.rotation[:, body] @ corner)[:, 2])
    return low


@pytest.mark.parametrize("height", [1.2, 2.0])
@pytest.mark.parametrize("floor", [0.0, 0.7])
def test_soles_come_down_to_the_floor(height, floor):
    model = character(height)
    found = retarget(as_clip(coordinates(60)), model, floor=floor).q
    low = lowest_corner(model, found)
    assert np.quantile(low, 0.05) == pytest.approx(floor, abs=1e-9)
    assert low.min() > floor - 0.1


def test_feet_that_are_not_flat_at_rest_stand_flat():
    """A figure that stands with its legs straight, though at rest they are spread and the feet with them."""
    spread = np.deg2rad(20.0)
    names = ["Hips", "LeftUpLeg", "LeftLeg", "LeftFoot", "RightUpLeg", "RightLeg", "RightFoot"]
    bones = [(0, 0, 0.9)]
    turns = np.tile((1.0, 0.0, 0.0, 0.0), (40, 7, 1))
    for joint, sign in ((1, 1.0), (4, -1.0)):
        down = (0, sign * 0.45 * np.sin(spread), -0.45 * np.cos(spread))
        bones += [(0, sign * 0.1, 0), down, down]
        turns[:, joint] = quat_exp((-sign * spread, 0.0, 0.0))
    clip = Clip(Skeleton(names, [-1, 0, 1, 2, 0, 4, 5], bones), np.arange(40) / 30, turns)
    found = retarget(clip, MODEL).q
    feet = poise.dynamics.bodies(MODEL, found).rotation[:, [MODEL.body_index(f"hero/foot_{side}") for side in "lr"]]
    np.testing.assert_allclose(feet[..., 2], np.broadcast_to((0, 0, 1), feet.shape[:-1]), atol=1e-9)
    np.testing.assert_allclose(lowest_corner(MODEL, found), 0.0, atol=1e-9)


def test_angles_are_kept_in_their_ranges():
    q = coordinates()
    knee = MODEL.q_slice("knee_l")
    q[:, knee] = 3.0
    low, high = MODEL.dof_limits[MODEL.v_slice("knee_l")][0]
    assert retarget(as_clip(q), MODEL).q[:, knee] == pytest.approx(high)
    assert retarget(as_clip(q), MODEL, limits=False).q[:, knee] == pytest.approx(3.0)
    assert low <= 0.0


def test_quaternions_do_not_jump():
    q = coordinates(200, seed=7)
    found = retarget(as_clip(q), MODEL).q
    assert np.abs(np.diff(found[:, MODEL.q_slice("shoulder_l")], axis=0)).max() < 0.2


def test_a_name_that_nobody_knows_can_be_told():
    clip = as_clip(coordinates(), "cmu")
    strange = Skeleton(
        [n.replace("LeftUpLeg", "Keule") for n in clip.skeleton.names], clip.skeleton.parents, clip.skeleton.offsets
    )
    renamed = Clip(strange, clip.times, clip.quats_wxyz, clip.translations)
    wanted = retarget(clip, MODEL).q
    assert same(retarget(renamed, MODEL, parts={"thigh_l": "Keule"}).q, wanted) < 1e-12
    assert same(retarget(renamed, MODEL).q, wanted) > 0.1


def motions() -> dict[str, Clip]:
    """The motion of the humanoid itself, and files of others where a folder of them lies beside the checkout."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    found = [*sorted(folder.glob("bvh/*/*.bvh")), *sorted(folder.glob("deepmimic/humanoid3d_*.txt"))]
    # this one has no hips
    found = [file for file in found if file.stem != "rotation_first_root"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"own": as_clip(coordinates())} | {file.stem: poise.load_motion(file) for file in found}


@pytest.mark.parametrize("clip", motions().values(), ids=motions())
def test_motions_of_others(clip):
    found = retarget(clip, MODEL).q
    assert np.isfinite(found).all()
    errors = limb_errors(clip, found)
    assert len(errors) == 8
    # upper parts hang on balls, which can do all; lower ones on hinges that do not bend back or sideways. Legs bend
    # where their soles would be below the floor
    for part, error in errors.items():
        most = {"thigh": (0.15, 0.3), "shank": (0.16, 0.4), "forearm": (0.13, 0.3)}.get(part[:-2], (1e-6, 1e-6))
        assert np.median(error) < most[0], part
        assert error.max() < most[1], part
    trunk = trunk_errors(clip, found)
    # the trunk has one joint here, and five in some clips: in a deep bend its middle is elsewhere
    assert np.degrees(trunk["hips"].max()) < 1e-3
    assert np.degrees(np.median(trunk["neck"])) < 6.0
    assert np.degrees(trunk["neck"].max()) < 20.0
    heights = standing_soles(clip, found)
    if clip.name and len(heights):
        assert np.quantile(heights, 0.95) < 5e-3
    assert lowest_corner(MODEL, found).min() > -0.05


def trunk_errors(clip: Clip, q: np.ndarray) -> dict[str, np.ndarray]:
    """Angles (rad) of the line between the hips, and of that from their middle to the joint that carries the head."""
    parts = find_parts(clip.skeleton.names, clip.skeleton.parents)
    places, bodies = clip.world_positions(), poise.dynamics.bodies(MODEL, q).position
    here = {name: bodies[:, MODEL.body_index(f"hero/{name}")] for name in ("thigh_l", "thigh_r", "head")}
    there = {name: places[:, parts[name]] for name in here}
    errors = {}
    for name, line in (
        ("hips", lambda at: at["thigh_l"] - at["thigh_r"]),
        ("neck", lambda at: at["head"] - 0.5 * (at["thigh_l"] + at["thigh_r"])),
    ):
        one, two = line(here), line(there)
        errors[name] = np.arctan2(np.linalg.norm(np.cross(one, two), axis=1), np.sum(one * two, axis=1))
    return errors


def standing_soles(clip: Clip, q: np.ndarray) -> np.ndarray:
    """Heights (m) of the standing sole that is nearer to the floor, in frames in which all points of a foot rest."""
    parts = find_parts(clip.skeleton.names, clip.skeleton.parents)
    places, parents = clip.world_positions(tips=True), clip.skeleton.parents.tolist()
    parents += [joint for joint, _ in clip.skeleton.tips]
    nearest = np.full(len(q), np.inf)
    for side in "lr":
        joint = parts[f"foot_{side}"]
        points = places[:, [joint, *(k for k, parent in enumerate(parents) if parent == joint)]]
        speed = np.linalg.norm(np.gradient(points, clip.times, axis=0), axis=2).max(axis=1)
        # the ankle too is low: the heel is down
        low = [height < np.quantile(height, 0.05) + 0.02 for height in points[..., 2].T]
        stands = (speed < 0.1) & np.all(low, axis=0)
        nearest = np.minimum(nearest, np.where(stands, np.abs(lowest_corner(MODEL, q, side)), np.inf))
    return nearest[np.isfinite(nearest)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: retarget(as_clip(coordinates()), MODEL, scale=0.0), "scale: must be more than 0"),
        (lambda: retarget(as_clip(coordinates()), MODEL, floor=np.nan), "floor: must be finite"),
        (
            lambda: retarget(as_clip(coordinates()), MODEL, parts={"tigh_l": "a"}),
            r'has no "tigh_l", did you mean "thigh_l"\?',
        ),
        (lambda: retarget(as_clip(coordinates()), MODEL, parts={"thigh_l": "a"}), 'there is no joint "a"'),
        (
            lambda: retarget(Clip(Skeleton(["a"], [-1], [(0, 0, 0)]), [0], [[(1, 0, 0, 0)]]), MODEL),
            "no hips and legs are common",
        ),
        (lambda: retarget(as_clip(coordinates()), poise.Scene().compile()), "one character with a free root, found 0"),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_names_in_a_file_of_deepmimic_are_known():
    frame = [0.1, 0, 0.9, 0, *(1, 0, 0, 0) * 3, *(1, 0, 0, 0, 0, *(1, 0, 0, 0) * 2, 0) * 2]
    clip = poise.io.load_deepmimic(json.dumps({"Loop": "none", "Frames": [frame] * 4}))
    found = retarget(clip, MODEL).q
    np.testing.assert_allclose(found[:, MODEL.q_slice("knee_l")], 0.0, atol=1e-9)
