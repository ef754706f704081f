"""Clips: poses with exact rates, in the world too; parts, loops, mixtures, timings, mirror images."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from poise.motion import Clip, Skeleton
from poise.motion.bone_names import other_side
from poise.motion.clip_editing import heading
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, quat_to_matrix, rotate

NAMES = ["Hips", "Spine", "LeftArm", "RightArm", "LeftHand", "RightHand"]
PARENTS = [-1, 0, 1, 1, 2, 3]
OFFSETS = [(0, 0, 1.0), (0, 0, 0.3), (0, 0.2, 0.2), (0, -0.2, 0.2), (0, 0.3, 0), (0, -0.3, 0)]
TIPS = [(4, (0, 0.1, 0)), (5, (0, -0.1, 0))]


def body(seed: int | None = None) -> Skeleton:
    rest = None if seed is None else np.random.default_rng(seed).normal(size=(6, 4))
    return Skeleton(NAMES, PARENTS, OFFSETS, rest, TIPS)


def waving(seed: int = 0, frames: int = 40, rate: float = 30.0, rest: int | None = None, moved=(0,)) -> Clip:
    """Sums of sines on every joint, with a root that walks along x."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames) / rate
    turns = 0.5 * np.sin(times[:, None, None] * rng.uniform(2, 6, (6, 3)) + rng.uniform(0, 6, (6, 3)))
    path = np.stack((1.2 * times, 0.05 * np.sin(5 * times), 1.0 + 0.03 * np.cos(9 * times)), 1)
    moves = np.repeat(path[:, None], len(moved), axis=1) * np.where(np.arange(len(moved)) == 0, 1.0, 0.1)[:, None]
    return Clip(body(rest), times, quat_exp(turns), moves, moved=moved)


def turned(first, second) -> float:
    """Largest angle between rotations."""
    return float(np.linalg.norm(quat_log(quat_multiply(quat_conjugate(first), second)), axis=-1).max())


def derivative(function, now, h=1e-4):
    parts = [function(now + k * h) for k in (-2, -1, 1, 2)]
    return (parts[0] - 8 * parts[1] + 8 * parts[2] - parts[3]) / (12 * h)


@pytest.mark.parametrize("turns", ["smooth", "squad", "slerp"])
@pytest.mark.parametrize("moves", ["smooth", "catmull_rom", "hermite", "monotone", "linear"])
def test_rates_in_the_world_are_derivatives_of_the_pose(turns, moves):
    clip = waving(rest=3, moved=(0, 2))
    # inside pieces, where all derivatives exist
    now = (clip.times[:-1] + 0.37 * np.diff(clip.times))[::5]

    def world(t):
        return clip.sample(t, turns=turns, moves=moves, tension=0.4).world()

    found = world(now)
    # fifth derivatives of sines of up to 10 rad/s through keys at 30 Hz are below 1e7: h⁴ 1e7 / 30 = 3e-11
    np.testing.assert_allclose(found.velocities, derivative(lambda t: world(t).positions, now), atol=2e-9)
    np.testing.assert_allclose(found.accelerations, derivative(lambda t: world(t).velocities, now), atol=2e-7)
    back = quat_conjugate(found.quats_wxyz)
    spin = derivative(lambda t: quat_log(quat_multiply(world(t).quats_wxyz, back)), now)
    np.testing.assert_allclose(found.angular_velocities, spin, atol=2e-9)
    rate = derivative(lambda t: world(t).angular_velocities, now)
    np.testing.assert_allclose(found.angular_accelerations, rate, atol=2e-7)


def test_positions_by_matrices():
    clip = waving(rest=1, moved=(0, 4))
    every = clip.all_translations()
    found = clip.world_positions(tips=True)
    for frame in (0, 7, 39):
        poses = []
        for j, p in enumerate(PARENTS):
            local = np.eye(4)
            local[:3, :3], local[:3, 3] = quat_to_matrix(clip.quats_wxyz[frame, j]), every[frame, j]
            poses.append(local if p < 0 else poses[p] @ local)
            np.testing.assert_allclose(found[frame, j], poses[j][:3, 3], atol=1e-14)
        for k, (joint, offset) in enumerate(TIPS):
            np.testing.assert_allclose(found[frame, 6 + k], (poses[joint] @ [*offset, 1.0])[:3], atol=1e-14)
    np.testing.assert_allclose(clip.world_positions(7), found[7, :6], atol=1e-14)
    np.testing.assert_allclose(clip.sample(clip.times).world().positions, found[:, :6], atol=1e-13)
    np.testing.assert_allclose(clip.sample(clip.times[3]).world().tips, found[3, 6:], atol=1e-13)


def test_accelerations_are_continuous_over_keys():
    clip = waving()
    eps = 1e-8
    before, after = clip.sample(clip.times[1:-1] - eps), clip.sample(clip.times[1:-1] + eps)
    # third derivatives are below 1e5
    np.testing.assert_allclose(before.angular_accelerations, after.angular_accelerations, atol=2e-3)
    np.testing.assert_allclose(before.accelerations, after.accelerations, atol=2e-3)


def test_path_of_a_joint():
    clip = waving(rest=5)
    point, world = clip.path("RightHand")(0.5), clip.sample(0.5).world()
    np.testing.assert_allclose(point.position, world.positions[5], atol=1e-14)
    np.testing.assert_allclose(rotate(point.quat_wxyz, point.angular_velocity), world.angular_velocities[5], atol=1e-13)
    np.testing.assert_allclose(point.acceleration, world.accelerations[5], atol=1e-11)


def test_slices_are_the_same_motion():
    clip = waving(frames=91)
    part = clip.slice(0.51, 1.72)
    assert part.times[0] == 0.0
    assert part.duration == pytest.approx(1.21)
    now = np.linspace(0, 1.21, 50)
    one, two = part.sample(now), clip.sample(now + 0.51)
    assert turned(one.quats_wxyz, two.quats_wxyz) < 2e-3
    whole = clip.slice(0.0, 3.0)
    assert turned(whole.quats_wxyz, clip.quats_wxyz) < 1e-14
    np.testing.assert_allclose(whole.translations, clip.translations, atol=1e-14)


def test_resampling():
    clip = waving(frames=61)
    fast = clip.resampled(240.0)
    assert fast.rate == pytest.approx(240.0)
    assert fast.n_frames == 481
    # a curve through samples of a curve: its error falls with the fourth power of the step, from 3e-5 at 30 Hz
    again = fast.resampled(30.0)
    assert turned(again.quats_wxyz, clip.quats_wxyz) < 1e-12
    assert clip.resampled(7.0).duration <= 2.0


def test_loops_have_no_seam():
    clip = waving(frames=91)
    loop = clip.looped(0.4)
    assert loop.loop
    assert loop.duration == pytest.approx(2.6)
    eps = 1e-7
    before, after = loop.sample(loop.duration - eps), loop.sample(loop.duration + eps)
    assert turned(before.quats_wxyz, after.quats_wxyz) < 1e-5
    for part in ("angular_velocities", "angular_accelerations", "translations", "velocities", "accelerations"):
        np.testing.assert_allclose(getattr(before, part), getattr(after, part), atol=1e-3)
    # no jerk at the seam: fading by s(t) from one to another that is D away adds 2 s' D' + s'' D; for s of fifth order
    # |s'| ≤ 15/8 / 0.4 s, |s''| ≤ 10/√3 / (0.4 s)²
    now, window = np.linspace(0, loop.duration, 400), np.linspace(0, 0.4, 100)
    first, last = clip.sample(window), clip.sample(window + 2.6)
    away = turned(first.quats_wxyz, last.quats_wxyz)
    faster = np.linalg.norm(first.angular_velocities - last.angular_velocities, axis=-1).max()
    bound = np.abs(clip.sample(np.linspace(0, 3, 400)).angular_accelerations).max()
    bound += 2.0 * 15 / 8 / 0.4 * faster + 10 / np.sqrt(3.0) / 0.4**2 * away
    assert np.abs(loop.sample(now).angular_accelerations).max() < bound


def test_a_loop_goes_on_and_on():
    loop = waving(frames=91).looped(0.4)
    assert loop.stride[2] == 0.0
    assert loop.stride[0] == pytest.approx(1.2 * 2.6, rel=1e-6)
    one, many = loop.sample(0.7), loop.sample(0.7 + 5 * loop.duration)
    assert turned(one.quats_wxyz, many.quats_wxyz) < 1e-12
    np.testing.assert_allclose(many.translations[0] - one.translations[0], 5 * loop.stride, atol=1e-12)
    assert np.diff(loop.sample(np.linspace(0, 10, 200)).translations[:, 0, 0]).min() > 0.0
    spot = waving(frames=91).looped(0.4, travel=False)
    assert np.abs(spot.sample(np.linspace(0, 10, 200)).translations[:, 0, 0]).max() < 0.2
    three = loop.slice(0.0, 3 * loop.duration)
    assert three.n_frames == 3 * (loop.n_frames - 1) + 1
    assert three.root_positions[-1, 0] == pytest.approx(three.root_positions[0, 0] + 3 * loop.stride[0])


def test_a_closed_clip_loops_as_it_is():
    times = np.linspace(0, 2, 21)
    quats = quat_exp(np.sin(np.pi * times)[:, None, None] * np.ones((6, 3)) * 0.3)
    quats[-1] = quats[0]
    clip = Clip(body(), times, quats)
    loop = clip.looped(0.0)
    assert turned(loop.sample(0.3).quats_wxyz, loop.sample(4.3).quats_wxyz) < 1e-12
    with pytest.raises(ValueError, match="loop: the last rotation must be the first"):
        waving().looped(0.0)


def test_blends():
    one, two = waving(0), waving(1)
    for weight, wanted in ((0.0, one), (1.0, two)):
        mix = one.blend(two, weight)
        assert turned(mix.quats_wxyz, wanted.quats_wxyz) < 1e-13
        np.testing.assert_allclose(mix.translations, wanted.translations, atol=1e-13)
    half = one.blend(two, 0.5)
    for side in (one, two):
        angle = quat_log(quat_multiply(quat_conjugate(side.quats_wxyz), half.quats_wxyz))
        whole = quat_log(quat_multiply(quat_conjugate(one.quats_wxyz), two.quats_wxyz))
        np.testing.assert_allclose(np.linalg.norm(angle, axis=-1), 0.5 * np.linalg.norm(whole, axis=-1), atol=1e-12)
    ramp = one.blend(two, lambda t: t / t[-1])
    assert turned(ramp.quats_wxyz[0], one.quats_wxyz[0]) < 1e-13
    assert turned(ramp.quats_wxyz[-1], two.quats_wxyz[-1]) < 1e-13


@pytest.mark.parametrize("blend", [0.0, 0.3])
def test_one_clip_after_another(blend):
    one, two = waving(0), waving(1).shifted((3, 4, 0), yaw=2.0)
    both = one.then(two, blend)
    wanted = one.duration + two.duration - blend + (0.0 if blend else 1 / 30)
    assert both.duration == pytest.approx(wanted)
    assert turned(both.sample(0.2).quats_wxyz, one.sample(0.2).quats_wxyz) < 1e-4
    late = two.sample(two.duration - 0.2)
    found = both.sample(both.duration - 0.2)
    assert turned(found.quats_wxyz[1:], late.quats_wxyz[1:]) < 1e-4
    # it goes on where the first was, in the direction in which it headed
    jumps = np.linalg.norm(np.diff(both.root_positions[:, :2], axis=0), axis=1)
    assert jumps.max() < 0.12
    start = two.sample(0.0)
    turn = heading(quat_multiply(one.sample(one.duration - blend).quats_wxyz[0], quat_conjugate(start.quats_wxyz[0])))
    carried = two.shifted(yaw=float(turn)).sample(two.duration)
    assert turned(both.quats_wxyz[-1, 0], carried.quats_wxyz[0]) < 1e-12
    plain = one.then(two, blend, align=False)
    np.testing.assert_allclose(plain.root_positions[-1], two.root_positions[-1], atol=1e-12)


def test_time_warps():
    clip = waving(frames=61)
    slow = clip.warp([0.0, 2.0], [0.0, 5.0])
    np.testing.assert_allclose(slow.times, 2.5 * clip.times, atol=1e-12)
    np.testing.assert_allclose(slow.sample(2.5).velocities[0], clip.sample(1.0).velocities[0] / 2.5, atol=1e-9)
    bent = clip.warp([0.5, 1.0, 1.5], [0.5, 0.8, 1.5])
    assert bent.times[30] == pytest.approx(0.8)
    assert np.diff(bent.times).min() > 0.0
    assert bent.times[-1] == pytest.approx(2.0)
    assert bent.times[0] == 0.0
    assert clip.warp([1.0], [3.0]).times[0] == pytest.approx(2.0)


@pytest.mark.parametrize("rest", [None, 4])
def test_mirror_images(rest):
    clip = waving(rest=rest, moved=(0, 4))
    if rest is not None:
        # frames of joints that are turned anyhow, on a body that is symmetric all the same
        clip = waving(moved=(0, 4)).at_rest_of(np.random.default_rng(4).normal(size=(6, 4)))
    image = clip.mirrored()
    swap = [0, 1, 3, 2, 5, 4]
    flip = np.array((1.0, -1.0, 1.0))
    np.testing.assert_allclose(
        image.world_positions(tips=True), clip.world_positions(tips=True)[:, [*swap, 7, 6]] * flip, atol=1e-13
    )
    assert image.moved == (0, 5)
    again = image.mirrored()
    assert turned(again.quats_wxyz, clip.quats_wxyz) < 1e-12
    np.testing.assert_allclose(again.translations, clip.translations, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("LeftArm", "RightArm"),
        ("mixamorig:RightHandIndex1", "mixamorig:LeftHandIndex1"),
        ("LHipJoint", "RHipJoint"),
        ("thigh_l", "thigh_r"),
        ("Thigh.R", "Thigh.L"),
        ("lShldr", "rShldr"),
        ("r_elbow", "l_elbow"),
        ("KneeL", "KneeR"),
        ("left_hip", "right_hip"),
        ("Bip01 L Foot", "Bip01 R Foot"),
        ("LowerBack", None),
        ("Head", None),
        ("lhand", "rhand"),
        ("lowerback", None),
        ("root", None),
    ],
)
def test_sides_by_name(name, other):
    assert other_side(name, ["x", "Rowerback", "Tail", other or name, name]) == other


def test_frames_at_rest_do_not_change_the_motion():
    clip = waving(rest=2, moved=(0, 3))
    other = clip.at_rest_of(np.random.default_rng(8).normal(size=(6, 4)))
    np.testing.assert_allclose(other.world_positions(tips=True), clip.world_positions(tips=True), atol=1e-13)
    np.testing.assert_allclose(other.skeleton.rest_positions, clip.skeleton.rest_positions, atol=1e-14)


def test_scaling_and_shifting():
    clip = waving()
    np.testing.assert_allclose(clip.scaled(0.5).world_positions(), 0.5 * clip.world_positions(), atol=1e-14)
    moved = clip.shifted((1, 2, 3), yaw=0.7).world_positions()
    turned_about_z = rotate(quat_exp((0, 0, 0.7)), clip.world_positions())
    np.testing.assert_allclose(moved, turned_about_z + np.array((1, 2, 3)), atol=1e-13)


def test_nothing_can_be_changed():
    clip = waving()
    with pytest.raises(AttributeError, match="Clip cannot be changed"):
        clip.loop = True
    with pytest.raises(ValueError, match="read-only"):
        clip.quats_wxyz[0, 0, 0] = 2.0
    with pytest.raises(AttributeError, match="Skeleton cannot be changed"):
        clip.skeleton.names = ()
    for other in (pickle.loads(pickle.dumps(clip)), copy.deepcopy(clip)):
        np.testing.assert_array_equal(other.sample(0.3).quats_wxyz, clip.sample(0.3).quats_wxyz)
        with pytest.raises(ValueError, match="read-only"):
            other.quats_wxyz[0, 0, 0] = 2.0


SK = body()
ONE = Skeleton(["a"], [-1], [(0, 0, 0)])
STILL = np.tile((1.0, 0, 0, 0), (2, 6, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Skeleton([], [], np.zeros((0, 3))), "names: a skeleton has at least one joint"),
        (lambda: Skeleton(["a", "a"], [-1, 0], np.zeros((2, 3))), 'names: must differ, found "a" twice'),
        (lambda: Skeleton(["a", " "], [-1, 0], np.zeros((2, 3))), "names: must be text, found ' '"),
        (lambda: Skeleton(["a", "b"], [-1, 1], np.zeros((2, 3))), "parents: the first joint is the root"),
        (lambda: Skeleton(["a", "b"], [-1, -1], np.zeros((2, 3))), "parents: the first joint is the root"),
        (lambda: Skeleton(["a"], [-1, 0], np.zeros((1, 3))), r"parents: must have the shape \(1,\)"),
        (lambda: Skeleton(["a"], [-1], [(0, 0)]), r"offsets: must have the shape \(1, 3\)"),
        (lambda: Skeleton(["a"], [-1], [(0, 0, 0)], tips=[(1, (0, 0, 0))]), "tips: there is no joint 1, the last is 0"),
        (lambda: SK.index("LeftArn"), r'there is no joint "LeftArn", did you mean "LeftArm"\?'),
        (lambda: SK.index(9), "there is no joint 9, the last is 5"),
        (lambda: Clip("walk", [0], STILL), "skeleton: must be a Skeleton"),
        (lambda: Clip(SK, [0, 1], STILL[:, :5]), r"quats_wxyz: must have the shape \(2, 6, 4\), found \(2, 5, 4\)"),
        (lambda: Clip(SK, [0, 1], STILL * 0), "found \\(0, 0, 0, 0\\)"),
        (lambda: Clip(SK, [1, 0], STILL), "times: must increase"),
        (lambda: Clip(SK, [0, 1], STILL, np.zeros((3, 3))), "translations: must have the shape"),
        (lambda: Clip(SK, [0, 1], STILL, moved=(2,)), "moved: must list different joints, the root first"),
        (lambda: Clip(SK, [0, 1], STILL, moved=(0, "Leg")), 'there is no joint "Leg"'),
        (lambda: Clip(SK, [0, 1], STILL, stride=(1, 0, 0)), "stride: only a loop has one"),
        (lambda: waving().sample(0.0, turns="lerp"), "kind: must be one of"),
        (lambda: waving().sample(np.nan), "times: must be finite"),
        (lambda: waving().world_positions(40), "frame: there are 40, found 40"),
        (lambda: waving().slice(1.0, 0.5), "end: must be after the start"),
        (lambda: waving().slice(-1.0, 0.5), "start: must be from 0 to 1.3 s, found -1"),
        (lambda: waving().looped(1.0), "blend: must be from 0 to half of the clip's 1.3 s, found 1"),
        (lambda: waving().blend(3), "other: must be a clip, found 3"),
        (
            lambda: waving().blend(Clip(Skeleton(["a"], [-1], [(0, 0, 0)]), [0], [[(1, 0, 0, 0)]])),
            "must have the same joints",
        ),
        (lambda: waving().blend(waving(), 1.5), "weight: must be from 0 to 1, found 1.5 to 1.5"),
        (lambda: waving().then(waving(), 2.0), "blend: must be from 0 to the shorter clip's 1.3 s"),
        (lambda: waving().warp([0, 1], [0]), "new_times: must be as many as the times, found 1 for 2"),
        (lambda: waving().resampled(0), "rate: must be more than 0 frames a second, found 0"),
        (lambda: waving().mirrored("w"), "axis: must be one of"),
        (lambda: waving().mirrored(pairs={"Tail": "Tail"}), 'pairs: there is no joint "Tail"'),
        (lambda: waving().mirrored(pairs={"LeftHand": "RightArm"}), "not each other's mirror"),
        (lambda: waving().scaled(-1.0), "factor: must be more than 0"),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
