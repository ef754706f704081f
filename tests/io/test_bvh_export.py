"""Recordings as BVH: what is read back is where the character was, in its own bones or in those of a clip."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.characters import clips, humanoid
from poise.io import load_bvh, save_bvh
from poise.io.bvh_export import motion_of
from poise.motion import Clip, Skeleton, retarget
from poise.motion.rotations import quat_to_matrix
from poise.sim import Recording

NAMES = {
    "pelvis": "Hips",
    "torso": "Spine1",
    "head": "Head",
    "upper_arm": "Arm",
    "forearm": "ForeArm",
    "hand": "Hand",
    "thigh": "UpLeg",
    "shank": "Leg",
    "foot": "Foot",
}


def hero_model() -> poise.Model:
    scene = poise.Scene(name="yard")
    scene.add_ground()
    scene.add(humanoid(), name="hero")
    scene.add(poise.sphere(0.1), name="ball", position=(1, 1, 0.1))
    return scene.compile()


MODEL = hero_model()


def recorded(q: np.ndarray, rate: float = 120.0, model: poise.Model = MODEL) -> Recording:
    return Recording(np.arange(len(q)) / rate, q, np.zeros((len(q), model.nv)), model)


def disturbed(q: np.ndarray, model: poise.Model = MODEL, much: float = 0.15) -> np.ndarray:
    """Poses near others: what physics might have made of them. Smooth, and every joint takes part."""
    phase = np.random.default_rng(3).uniform(0, 6, model.nv)
    rows = []
    for k, pose in enumerate(q):
        v = much * (1.0 + np.sin(0.1 * k + phase))
        v[:3] *= 0.3
        rows.append(poise.dynamics.displaced(model, pose, v))
    return np.array(rows)


def places(model: poise.Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = poise.dynamics.bodies(model, q)
    return found.position, found.rotation


def foreign_walk(spread: float = 0.6) -> Clip:
    """A child's walk with bones of other names, more of them, and another rest pose: arms to the sides (half rad)."""
    walk = clips.walk(humanoid(height=1.3, mass=30.0), speed=0.9).slice(0.0, 1.5).resampled(60.0)
    bones = walk.skeleton
    names = []
    for name in bones.names:
        part, _, side = name.rpartition("_")
        known = NAMES.get(part if part in NAMES else name, name)
        names.append({"l": "Left", "r": "Right"}[side] + known if part in NAMES else known)
    # toes on the feet
    parents = [int(p) for p in bones.parents]
    n = len(names)
    names += ["LeftToeBase", "RightToeBase"]
    parents += [names.index("LeftFoot"), names.index("RightFoot")]
    offsets = np.concatenate((bones.offsets, [(0.1, 0, -0.04)] * 2))
    rest = np.concatenate((bones.rest_quats_wxyz, [(1, 0, 0, 0)] * 2))
    quats = np.concatenate((walk.quats_wxyz, np.tile((1.0, 0, 0, 0), (walk.n_frames, 2, 1))), axis=1)
    quats[:, n:, 2] = 0.2 * np.sin(walk.times * 5)[:, None]
    clip = Clip(Skeleton(names, parents, offsets, rest), walk.times, quats, walk.root_positions)
    turned = rest.copy()
    for side, sign in (("Left", 1), ("Right", -1)):
        turned[names.index(f"{side}Arm")] = (np.cos(spread), sign * np.sin(spread), 0, 0)
    return clip.at_rest_of(turned)


def as_file(clip: Clip, folder: Path, units: str = "cm") -> Clip:
    """The clip as a program reads it from a file."""
    save_bvh(clip, folder / "source.bvh", units=units, up="y", digits=9)
    return load_bvh(folder / "source.bvh", units=units, up="y", drop_tpose=False)


def test_joints_in_any_order_are_written_branch_by_branch(tmp_path: Path) -> None:
    """The toes of a foot may come last in a skeleton; in a file they follow the foot, and so must their numbers."""
    clip = foreign_walk()
    assert clip.skeleton.names[-2:] == ("LeftToeBase", "RightToeBase")
    back = as_file(clip, tmp_path)
    order = [back.skeleton.index(name) for name in clip.skeleton.names]
    assert order != sorted(order)
    assert np.abs(back.world_positions()[:, order] - clip.world_positions()).max() < 1e-9


def test_own_bones_read_back_give_the_poses(tmp_path: Path) -> None:
    walk = retarget(clips.walk(humanoid()).slice(0, 1.0), MODEL)
    q = disturbed(walk.q)
    recorded(q).save(tmp_path / "x.bvh")
    clip = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    assert clip.skeleton.names[:3] == ("pelvis", "torso", "head")
    assert clip.times == pytest.approx(np.arange(len(q)) / 120.0, abs=1e-5 * len(q))
    world = clip.sample(clip.times).world()
    position, rotation = places(MODEL, q)
    for k, name in enumerate(clip.skeleton.names):
        body = MODEL.body_index(name)
        assert np.abs(world.positions[:, k] - position[:, body]).max() < 1e-6, name
        turn = np.array([quat_to_matrix(quat) for quat in world.quats_wxyz[:, k]])
        assert np.abs(turn - rotation[:, body]).max() < 1e-6, name


def test_own_bones_retargeted_give_the_coordinates(tmp_path: Path) -> None:
    q = disturbed(retarget(clips.walk(humanoid()).slice(0, 1.0), MODEL).q)
    recorded(q).save(tmp_path / "x.bvh")
    clip = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    back = retarget(clip, MODEL, floor=None, limits=False).q
    back[:, MODEL.q_slice("ball")] = q[:, MODEL.q_slice("ball")]
    for found, wanted in zip(places(MODEL, back), places(MODEL, q), strict=True):
        assert np.abs(found - wanted).max() < 1e-6


@pytest.mark.parametrize(("units", "factor"), [("cm", 0.01), ("mm", 0.001), ("m", 1.0)])
def test_the_bones_of_a_clip_read_back_give_the_poses(units: str, factor: float, tmp_path: Path) -> None:
    """Character of 1.75 m, clip of a child: the file has the child's bones, and leads the character back exactly."""
    clip = as_file(foreign_walk(), tmp_path, units)
    q = disturbed(retarget(clip, MODEL).q)
    recording = Recording(clip.times, q, np.zeros((len(q), MODEL.nv)), MODEL)
    recording.save(tmp_path / "x.bvh", like=clip, digits=9)
    back = load_bvh(tmp_path / "x.bvh", units=units, up="y", drop_tpose=False)
    assert back.skeleton.names == clip.skeleton.names
    assert back.origin is not None
    assert clip.origin is not None
    assert back.origin.channels == clip.origin.channels
    assert back.skeleton.offsets[1:] == pytest.approx(clip.skeleton.offsets[1:], abs=1e-8)
    assert back.rate == pytest.approx(clip.rate, rel=1e-4)
    again = retarget(back, MODEL, limits=False, like=clip).q
    again[:, MODEL.q_slice("ball")] = q[:, MODEL.q_slice("ball")]
    for found, wanted in zip(places(MODEL, again), places(MODEL, q), strict=True):
        assert np.abs(found - wanted).max() < 1e-6


def test_what_was_not_corrected_is_the_clip_itself(tmp_path: Path) -> None:
    """A clip that the character can do exactly comes back as it was, toes that it has not too."""
    clip = as_file(foreign_walk(spread=0.0), tmp_path)
    moved = retarget(clip, MODEL)
    back = motion_of(Recording(moved.times, moved.q, np.zeros((len(moved.q), MODEL.nv)), MODEL), like=clip)
    found, wanted = back.world_positions(), clip.world_positions()
    # feet are turned so that their soles are level on the mean, which the two axes of an ankle follow but nearly
    own = [k for k, name in enumerate(clip.skeleton.names) if "Toe" not in name]
    assert np.abs(found - wanted)[:, own].max() < 1e-6
    toes = clip.skeleton.index("LeftToeBase")
    assert np.abs(back.quats_wxyz[:, toes] - clip.quats_wxyz[:, toes]).max() < 1e-9


def files() -> dict[str, Path]:
    """Files of others, where a folder of them lies beside the checkout."""
    found = sorted((Path(__file__).parents[3] / "shared" / "data" / "bvh").glob("[ac]*/*.bvh"))
    return {file.stem: file for file in found}


def test_motions_of_others_come_back(tmp_path: Path) -> None:
    for file in files().values():
        comes_back(file, tmp_path)


def comes_back(file: Path, tmp_path: Path) -> None:
    """Bodies are where they were, to 1e-6 m and of directions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clip = poise.load_motion(file)
        clip = clip.slice(0.0, clip.times[min(240, clip.n_frames - 1)])
        moved = retarget(clip, MODEL)
        q = disturbed(moved.q, much=0.05)
        recording = Recording(moved.times, q, np.zeros((len(q), MODEL.nv)), MODEL)
        recording.save(tmp_path / "x.bvh", like=clip, digits=9)
        assert clip.origin is not None
        back = load_bvh(tmp_path / "x.bvh", units=clip.origin.meters, up=clip.origin.up, drop_tpose=False)
    again = retarget(back, MODEL, limits=False, like=clip).q
    again[:, MODEL.q_slice("ball")] = q[:, MODEL.q_slice("ball")]
    pairs = zip(places(MODEL, again), places(MODEL, q), strict=True)
    off = max(float(np.abs(found - wanted).max()) for found, wanted in pairs)
    print(f"\n{file.stem}: bodies of {len(q)} corrected frames come back to {off:.1e}")
    assert off < 1e-6


def test_joints_beside_the_origins_and_slides(tmp_path: Path) -> None:
    """Bodies whose joints are elsewhere, and slides, get positions in the file."""
    scene = poise.Scene(name="crane")
    scene.hinge(None, poise.box(0.2, 0.2, 1.0), axis="z", name="mast", anchor=(0.3, 0, 0), position=(0, 0, 1))
    scene.slider("mast", poise.box(1.0, 0.1, 0.1), axis="x", name="trolley", position=(0.5, 0, 0.5))
    model = scene.compile()
    q = np.stack((np.linspace(0, 2, 30), np.linspace(0, 0.4, 30)), axis=1)
    recorded(q, model=model).save(tmp_path / "x.bvh")
    clip = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    names = [model.body_names[body] for body in model.link_body]
    for k, name in enumerate(clip.skeleton.names):
        body = model.body_names.index(names[k])
        assert np.abs(clip.world_positions()[:, k] - places(model, q)[0][:, body]).max() < 1e-6, name


def test_rates(tmp_path: Path) -> None:
    """Uneven frames are made even; a rate that is asked for is the file's."""
    q = retarget(clips.walk(humanoid()).slice(0, 1.0), MODEL).q
    times = np.append(np.arange(len(q) - 1) / 120.0, (len(q) - 1.5) / 120.0)
    uneven = Recording(times, q, np.zeros((len(q), MODEL.nv)), MODEL)
    uneven.save(tmp_path / "x.bvh")
    assert "Frame Time: 0.0083" in (tmp_path / "x.bvh").read_text()
    recorded(q).save(tmp_path / "y.bvh", fps=30)
    clip = load_bvh(tmp_path / "y.bvh", units="cm", up="y", drop_tpose=False)
    assert clip.rate == pytest.approx(30.0, rel=1e-4)
    assert np.abs(clip.root_positions - q[::4][: clip.n_frames, MODEL.q_slice("root")][:, :3]).max() < 1e-6


def two_heroes() -> poise.Model:
    scene = poise.Scene()
    scene.add(humanoid(), name="one")
    scene.add(humanoid(height=1.6), name="two", position=(2, 0, 0))
    return scene.compile()


def test_one_of_several(tmp_path: Path) -> None:
    model = two_heroes()
    recording = recorded(np.tile(model.q_rest, (3, 1)), model=model)
    with pytest.raises(poise.SceneError, match="BVH holds one character, and there are one, two: name one"):
        recording.save(tmp_path / "x.bvh")
    with pytest.raises(poise.SceneError, match='there is no character "too", did you mean "two"'):
        recording.save(tmp_path / "x.bvh", character="too")
    recording.save(tmp_path / "x.bvh", character="two")
    clip = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    assert clip.root_positions[0] == pytest.approx(model.q_rest[model.q_slice("two/root")][:3], abs=1e-8)
    recording.save(tmp_path / "y.bvh", character="two", like=foreign_walk())
    with pytest.raises(poise.SceneError, match="like: model: must have one character with a free root, found 2"):
        recording.save(tmp_path / "y.bvh", like=foreign_walk())


def test_refusals(tmp_path: Path) -> None:
    q = np.tile(MODEL.q_rest, (3, 1))
    with pytest.raises(poise.SceneError, match="like: must be a clip"):
        recorded(q).save(tmp_path / "x.bvh", like="walk.bvh")
    with pytest.raises(poise.SceneError, match="fps: must be frames a second"):
        recorded(q).save(tmp_path / "x.bvh", fps=0)
    empty = poise.Scene().compile()
    with pytest.raises(poise.SceneError, match="nothing moves"):
        recorded(np.zeros((3, 0)), model=empty).save(tmp_path / "x.bvh")
    lone = Clip(Skeleton(["a"], [-1], [(0, 0, 0)]), [0.0], [[(1, 0, 0, 0)]])
    with pytest.raises(poise.SceneError, match="no hips and legs are common"):
        recorded(q).save(tmp_path / "x.bvh", like=lone)


def test_names_that_bvh_cannot_hold(tmp_path: Path) -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="a b\n{c}")
    scene.hinge("a b\n{c}", poise.sphere(0.1), axis="y", name="{ }", position=(0, 0, 1))
    model = scene.compile()
    recorded(np.tile(model.q_rest, (2, 1)), model=model).save(tmp_path / "x.bvh")
    clip = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    assert clip.skeleton.names == ("a_b_c", "joint")
