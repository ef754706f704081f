"""Retargeted motion depends on how bones are posed, not on the rest pose, root, unit and axes of a file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from bvh_rewrites import rewritten, with_other_rest
from poise.io import MotionWarning, load_bvh, save_bvh
from poise.motion import Clip, Skeleton, retarget
from poise.motion.bone_names import find_parts
from poise.motion.retarget_source import Source
from rigs import RIGS, moving

SCENE = poise.Scene()
SCENE.add(poise.characters.humanoid(), name="hero")
MODEL = SCENE.compile()
MOTIONS = ("walk", "crouch", "lunge", "lie", "cartwheel", "still")
DATA = Path(__file__).parents[3] / "shared" / "data"


def read(file: Path) -> Clip:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotionWarning)
        return poise.load_motion(file)


def gap(first: np.ndarray, second: np.ndarray) -> float:
    """Largest difference of coordinates; the sign of a quaternion does not count."""
    worst = 0.0
    for joint, kind in enumerate(MODEL.joint_kinds):
        start, end = MODEL.joint_q_start[joint : joint + 2]
        a, b = first[:, start:end], second[:, start:end].copy()
        if kind in ("free", "ball"):
            b[:, -4:] *= np.where(np.sum(a[:, -4:] * b[:, -4:], axis=1, keepdims=True) < 0.0, -1.0, 1.0)
        worst = max(worst, float(np.abs(a - b).max()))
    return worst


def check_rewrites(clip: Clip, folder: Path, seeds: range) -> None:
    wanted = retarget(clip, MODEL).q
    for seed in seeds:
        other = read(rewritten(clip, folder / "other.bvh", seed))
        assert other.n_frames == clip.n_frames, seed
        assert gap(wanted, retarget(other, MODEL).q) < 1e-6, seed


@pytest.mark.parametrize(("style", "motion"), [("lafan", "walk"), ("plain", "cartwheel")])
def test_rest_pose_root_unit_and_axes_do_not_matter(style: str, motion: str, tmp_path: Path) -> None:
    check_rewrites(moving(RIGS[style], motion), tmp_path, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("style", RIGS)
@pytest.mark.parametrize("motion", MOTIONS)
def test_twenty_rewrites_of_each_rig(style: str, motion: str, tmp_path: Path) -> None:
    check_rewrites(moving(RIGS[style], motion), tmp_path, range(20))


def files() -> list[Path]:
    """Files of others, where a folder of them lies beside the checkout; one has no hips."""
    found = [*sorted(DATA.glob("bvh/*/*.bvh")), *sorted(DATA.glob("deepmimic/humanoid3d_*.txt"))]
    return [file for file in found if file.stem != "rotation_first_root"]


@pytest.mark.slow
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_twenty_rewrites_of_files_of_others(file: Path, tmp_path: Path) -> None:
    clip = read(file)
    check_rewrites(clip.slice(clip.times[0], clip.times[min(clip.n_frames - 1, 200)]), tmp_path, range(20))


def angles(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Between directions (frames, 3); degrees."""
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(one, two), axis=1), np.sum(one * two, axis=1)))


def check_posture(clip: Clip, q: np.ndarray, legs: float = 6.0) -> None:
    """Hips, trunk, head and limbs point where those of the clip do; `legs` is how near those do, in degrees."""
    parts = find_parts(clip.skeleton.names, clip.skeleton.parents)
    places, seen = clip.world_positions(), poise.dynamics.bodies(MODEL, q)

    def there(part: str) -> np.ndarray:
        return places[:, parts[part]]

    def here(part: str) -> np.ndarray:
        return seen.position[:, MODEL.body_index(f"hero/{part}")]

    assert angles(there("thigh_l") - there("thigh_r"), here("thigh_l") - here("thigh_r")).max() < 1e-3
    lines = [at("head") - 0.5 * (at("thigh_l") + at("thigh_r")) for at in (there, here)]
    assert angles(*lines).max() < 5.0
    # the trunks of these rigs are stiff: pelvis and head turn with the line of the trunk
    for part in ("pelvis", "torso", "head"):
        own = seen.rotation[:, MODEL.body_index(f"hero/{part}")]
        assert angles(lines[0], own[:, :, 2]).max() < 10.0, part
        assert angles(there("thigh_l") - there("thigh_r"), own[:, :, 1]).max() < 1.0, part
    for side in "lr":
        for upper, lower in (("thigh", "shank"), ("shank", "foot"), ("upper_arm", "forearm"), ("forearm", "hand")):
            pair = [at(f"{lower}_{side}") - at(f"{upper}_{side}") for at in (there, here)]
            assert angles(*pair).max() < (legs if upper in ("thigh", "shank") else 6.0), (upper, side)


def soles(q: np.ndarray) -> np.ndarray:
    """(2, frames) heights of the lowest corner of each foot; m."""
    seen, solids, low = poise.dynamics.bodies(MODEL, q), MODEL.solids, []
    for side in "lr":
        body = MODEL.body_index(f"hero/foot_{side}")
        shape = int(np.flatnonzero(solids.body == body)[0])
        signs = np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3)
        corners = solids.position[shape] + signs * solids.size[shape]
        heights = seen.position[:, body, 2, None] + np.einsum("fj,cj->fc", seen.rotation[:, body, 2], corners)
        low.append(heights.min(axis=1))
    return np.array(low)


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("style", RIGS)
def test_rigs_of_many_programs(style: str, motion: str, tmp_path: Path) -> None:
    """Files of their kind, as they come: unit and axis up are guessed, the figure is upright and on the ground."""
    clip = moving(RIGS[style], motion)
    up, unit = {"bandai": ("y", "cm"), "xsens": ("z", "m"), "mixamo": ("y", "cm")}.get(style, ("z", "inch"))
    save_bvh(clip, tmp_path / "rig.bvh", units=unit, up=up, digits=9)
    loaded = read(tmp_path / "rig.bvh")
    assert loaded.origin is not None
    assert loaded.origin.up == up
    assert loaded.origin.meters == pytest.approx({"cm": 0.01, "m": 1.0, "inch": 0.0254}[unit])
    # in a crouch of 45 degrees ankles would bend back farther than their range
    found = retarget(loaded, MODEL, limits=False).q
    # the feet of this cartwheel swing through the ground, by some centimetres
    check_posture(loaded, found, legs=16.0 if motion == "cartwheel" else 6.0)
    low = soles(found)
    if motion in ("walk", "crouch", "lunge", "still"):
        assert np.abs(low.min(axis=0)).max() < 5e-3
    if motion == "lie":
        assert np.abs(low.min(axis=0)[:8]).max() < 5e-3


@pytest.mark.parametrize("style", RIGS)
@pytest.mark.parametrize("motion", ["crouch", "lunge"])
def test_feet_whose_ankles_bend_too_far_stand_on_their_toes(style: str, motion: str) -> None:
    """Shanks lean by 46 and 29 degrees, ankles bend back by 20: with flat feet beside it, one would be 3 cm deep."""
    found = retarget(moving(RIGS[style], motion), MODEL).q
    low = soles(found)
    assert np.abs(low).max() < 5e-3
    for side in "lr":
        pitch = found[:, MODEL.q_slice(f"hero/ankle_{side}")][:, 0]
        assert pitch.max() < np.deg2rad(20.0) + 1e-9
        knee = found[:, MODEL.q_slice(f"hero/knee_{side}")][:, 0]
        # they bend evenly: no more than by a quarter of the way in a frame
        assert np.abs(np.diff(knee)).max() < 0.25 * np.ptp(knee)


def standing(clip: Clip, slow: float = 0.2) -> np.ndarray:
    """(2, frames) whether each foot of a clip is down: its points are slow, and it is as low as feet often are."""
    source = Source(clip, {})
    feet = [source.foot(side) for side in "lr"]
    low = np.array([points[..., 2].min(axis=0) for points in feet])
    speed = np.array([np.linalg.norm(np.gradient(at, clip.times, axis=1), axis=2).max(axis=0) for at in feet])
    return (speed < slow) & (low < np.quantile(low.min(axis=0), 0.1) + 0.03)


def stances(stands: np.ndarray, times: np.ndarray) -> list[tuple[int, int]]:
    """First and last frames, the latter excluded, of a foot that stands for a tenth of a second or more."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], stands.astype(int), [0]))))
    frame = float(np.median(np.diff(times)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if (b - a) * frame >= 0.1]


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_files_of_others_are_upright_and_on_the_ground(file: Path) -> None:
    """Hips, trunk and head within 20 degrees of the clip's bones, soles of feet that stand within 5 mm of the floor."""
    clip = read(file)
    found = retarget(clip, MODEL).q
    source, seen = Source(clip, {}), poise.dynamics.bodies(MODEL, found)
    place = {part: seen.position[:, MODEL.body_index(f"hero/{part}")] for part in ("head", "thigh_l", "thigh_r")}
    turn = {part: seen.rotation[:, MODEL.body_index(f"hero/{part}")] for part in ("pelvis", "head")}
    assert angles(source.place("thigh_l") - source.place("thigh_r"), turn["pelvis"][:, :, 1]).max() < 1e-3
    lines = [at["head"] - 0.5 * (at["thigh_l"] + at["thigh_r"]) for at in (_places(source), place)]
    assert angles(*lines).max() < 20.0
    crown = source.direction("head")
    if crown is not None and file.stem != "jesse_dance":  # whose head ends at its side
        assert angles(crown, turn["head"][:, :, 2]).max() < 20.0
    low, stands = soles(found), standing(clip)
    if stands.any():
        near = np.abs(low[stands]) < 5e-3
        assert near.mean() > 0.95 or np.count_nonzero(~near) <= 2
        assert np.abs(low[stands]).max() < 0.02
    for side in range(2):
        for first, last in stances(standing(clip, 0.05)[side], clip.times):
            assert np.abs(low[side, first:last]).max() < 5e-3
    assert np.mean(low.min(axis=0) < -5e-3) < 0.05
    assert low.min() > -0.02


def _places(source: Source) -> dict[str, np.ndarray]:
    return {part: source.place(part) for part in ("head", "thigh_l", "thigh_r")}


@pytest.mark.parametrize("style", RIGS)
@pytest.mark.parametrize("frames", [1, 2])
def test_clips_of_one_and_two_frames(style: str, frames: int, tmp_path: Path) -> None:
    clip = moving(RIGS[style], "still", frames)
    save_bvh(clip, tmp_path / "rig.bvh", units="cm", up="y", digits=9)
    loaded = read(tmp_path / "rig.bvh")
    found = retarget(loaded, MODEL).q
    check_posture(loaded, found)
    assert np.abs(soles(found)).max() < 5e-3


def test_one_low_frame_and_flights_do_not_lift_the_rest(tmp_path: Path) -> None:
    """A frame that is 30 cm too low, and a jump of half a second: those who stand are on the floor all the same."""
    clip = moving(RIGS["mixamo"], "still", 90)
    moves = clip.translations.copy()
    flight = np.clip(clip.times - 1.0, 0.0, 0.5)
    moves[:, 0, 2] += 0.5 * 9.81 * flight * (0.5 - flight)
    moves[20, 0, 2] -= 0.3
    found = retarget(clip.keyed(clip.times, clip.quats_wxyz, moves), MODEL).q
    low = soles(found).min(axis=0)
    stands = np.delete(np.arange(90), [*range(19, 22), *range(29, 47)])
    assert np.abs(low[stands]).max() < 5e-3
    assert low[36:39].min() > 0.2


def test_steps_that_are_higher_than_the_floor_stay_so() -> None:
    """Who steps on a box of 20 cm stands on it, and not on the floor."""
    clip = moving(RIGS["xsens"], "still", 120)
    moves = clip.translations.copy()
    moves[:, 0, 2] += 0.2 * np.clip((clip.times - 1.8) / 0.2, 0.0, 1.0)
    found = retarget(clip.keyed(clip.times, clip.quats_wxyz, moves), MODEL).q
    low = soles(found).min(axis=0)
    assert np.abs(low[:45]).max() < 5e-3
    assert low[70:] == pytest.approx(0.2 * retarget_ratio(clip), abs=2e-2)


def retarget_ratio(clip: Clip) -> float:
    """How much longer the character's legs are than the clip's."""
    own = find_parts(clip.skeleton.names, clip.skeleton.parents)
    places, seen = clip.world_positions(0), poise.dynamics.bodies(MODEL, MODEL.q_rest[None]).position[0]
    lengths = [
        sum(float(np.linalg.norm(at(a) - at(b))) for a, b in (("thigh_l", "shank_l"), ("shank_l", "foot_l")))
        for at in (lambda part: places[own[part]], lambda part: seen[MODEL.body_index(f"hero/{part}")])
    ]
    return lengths[1] / lengths[0]


def test_a_head_whose_crown_is_at_its_side() -> None:
    """Some files have the end of the head where its joint's axis points, which is not up."""
    clip = moving(RIGS["bandai"], "walk")
    skeleton, head = clip.skeleton, clip.skeleton.index("Head")
    tips = [(k, (0.0, 0.2, 0.0) if k == head else offset) for k, offset in skeleton.tips]
    other = Skeleton(skeleton.names, skeleton.parents, skeleton.offsets, tips=tips)
    found = retarget(Clip(other, clip.times, clip.quats_wxyz, clip.translations, moved=clip.moved), MODEL).q
    assert poise.dynamics.bodies(MODEL, found).rotation[:, MODEL.body_index("hero/head"), 2, 2].min() > np.cos(0.2)


def test_guesses_that_disagree_are_told(tmp_path: Path) -> None:
    clip = moving(RIGS["lafan"], "lie", 240).shifted((0.0, 0.0, 0.0), np.pi)
    save_bvh(clip, tmp_path / "lies.bvh", units="cm", up="y", digits=9)
    with pytest.warns(
        MotionWarning, match="y is taken to be up, as the lowest points are level along it, though"
    ) as told:
        load_bvh(tmp_path / "lies.bvh")
    assert "high in its rest pose" in str(told[0].message)
    walk = with_other_rest(moving(RIGS["plain"], "walk"), np.tile((1.0, 0.0, 0.0, 0.0), (15, 1)))
    save_bvh(walk, tmp_path / "walks.bvh", units="cm", up="y", digits=9)
    with pytest.warns(MotionWarning) as told:
        load_bvh(tmp_path / "walks.bvh")
    assert "though" not in str(told[0].message)
    assert "rest pose" not in str(told[0].message)


def test_a_file_without_legs_is_refused_as_before() -> None:
    arms = Skeleton(
        ["Hips", "Spine", "LeftArm", "RightArm"], [-1, 0, 1, 1], [(0, 0, 1), (0, 0, 0.3), (0, 0.2, 0), (0, -0.2, 0)]
    )
    clip = Clip(arms, [0.0, 0.1], np.tile((1.0, 0, 0, 0), (2, 4, 1)))
    with pytest.raises(ValueError, match="parts: no hips and legs are common"):
        retarget(clip, MODEL)


def test_own_export_of_a_custom_skeleton_in_centimetres_is_read_back(tmp_path: Path) -> None:
    """A character with bones along its joints' x axes, whose bodies are a heap at rest: its recording, read back.

    The frames of its bodies are those of such a rig, so that the file's rest pose is a heap of 30 cm.
    """
    clip = moving(RIGS["bandai"], "walk", 30)
    scene = poise.Scene(name="own")
    skeleton = clip.skeleton
    for k, name in enumerate(skeleton.names):
        if k == 0:
            continue
        parent = skeleton.names[skeleton.parents[k]] if k > 1 else None
        body = poise.sphere(0.03)
        if parent is None:
            scene.add(body, name=name, position=tuple(clip.translations[0, 1]))
        else:
            scene.ball(parent, body, name=name, position=tuple(skeleton.offsets[k]))
    model = scene.compile()
    q = np.tile(model.q_rest, (clip.n_frames, 1))
    places = skeleton.place(clip.quats_wxyz, clip.all_translations())
    for k, name in enumerate(skeleton.names[1:], 1):
        joint = int(np.flatnonzero(np.array(model.joint_body) == model.body_index(name))[0])
        start, end = model.joint_q_start[joint : joint + 2]
        q[:, start:end][:, -4:] = clip.quats_wxyz[:, k] if k > 1 else places[1][:, 1]
        if k == 1:
            q[:, start : start + 3] = places[0][:, 1]
    recording = poise.sim.Recording(clip.times, q, np.zeros((len(q), model.nv)), model)
    recording.save(tmp_path / "own.bvh")
    back = read(tmp_path / "own.bvh")
    assert back.origin is not None
    assert back.origin.meters == 0.01
    assert back.origin.up == "y"
    own = [back.skeleton.index(name) for name in skeleton.names[1:]]
    np.testing.assert_allclose(back.world_positions()[:, own], places[0][:, 1:], atol=1e-6)
    check_posture(back, retarget(back, MODEL, limits=False).q)
