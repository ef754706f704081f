"""Tracking where scenes are not the plainest: loops, heroes elsewhere and side by side, copies, moving ground."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import poise
from poise.characters import clips, humanoid
from poise.control import Reference, Tracking, correction
from poise.control.reference import Placed
from poise.dynamics import inverse_dynamics, momentum
from poise.motion import Clip, keyframes
from poise.motion.path import PathPoint

DT = 1 / 240
WALK = clips.walk()
BEND = keyframes({0.0: {"elbow_l": 0.2}, 0.3: {"elbow_l": 1.0}})


def alone() -> poise.Model:
    scene = poise.Scene()
    scene.add(humanoid(), name="hero")
    return scene.compile()


# ---- loops -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [None, 0.0])
def test_a_loop_goes_on_and_on_without_a_seam(floor):
    model = alone()
    walk = Reference(WALK, model, floor=floor)
    length, early = walk.duration, np.linspace(0.0, walk.duration, 7)
    first, fifth = walk.coordinates(model, early), walk.coordinates(model, early + 4 * length)
    stride = np.zeros(model.nq)
    stride[:3] = 4 * (walk.coordinates(model, length).q[:3] - walk.coordinates(model, 0.0).q[:3])
    assert stride[0] > 4 * 1.2
    np.testing.assert_allclose(fifth.q, first.q + stride, atol=1e-9)
    np.testing.assert_allclose(fifth.v, first.v, atol=1e-7)
    # accelerations of splines change by their jerk, some 1e4 rad/s³, in the 2e-6 s between
    before, after = (walk.coordinates(model, length + side) for side in (-1e-6, 1e-6))
    np.testing.assert_allclose(after.q - before.q, 0.0, atol=1e-4)
    np.testing.assert_allclose(after.v, before.v, atol=1e-2)


def test_a_hero_walks_on_beyond_the_end_of_a_loop():
    scene = poise.Scene()
    scene.add_ground()
    hero = scene.add(humanoid(), name="hero")
    hero.track(WALK)
    world = scene.build(dt=DT)
    start = float(world.q[0])
    told = correction(world.run(1.6 * WALK.duration), world.controllers["hero tracking"])
    assert float(world.q[0]) - start > 1.3 * WALK.stride[0]
    assert told.mean_deg < 1.0
    assert told.root_error.max() < 0.02


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_clips_of_few_frames_are_poses_to_hold(frames):
    scene = poise.Scene()
    hero = scene.add(humanoid(), name="hero")
    hero.track(clips.stand().keyed(**first_frames(clips.stand(), frames)))
    world = scene.build(dt=DT)
    world.step(5)
    assert np.isfinite(world.q).all()


def first_frames(clip: Clip, frames: int) -> dict:
    some = {name: getattr(clip, name)[:frames] for name in ("times", "quats_wxyz", "translations")}
    return some | {"loop": False, "stride": (0.0, 0.0, 0.0)}


# ---- where heroes are ------------------------------------------------------------------------------------------------


def test_a_clip_begins_where_the_hero_was_put_and_faces_as_it_does():
    scene = poise.Scene()
    hero = scene.add(humanoid(), name="hero", position=(3.0, 1.0, 0.5), quat_wxyz=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    hero.track(WALK, root="free")
    there = scene.build(dt=DT).controllers["hero tracking"]
    model = alone()
    here = Reference(WALK, model, floor=0.0)
    for time in (0.0, 0.4, 3.0):
        a, b = here.coordinates(model, time), there.at(time)
        x, y, z = a.q[:3]
        np.testing.assert_allclose(b.q[:3], (3.0 - y, 1.0 + x, 0.5 + z), atol=1e-9)
        np.testing.assert_allclose(b.v[:3], (-a.v[1], a.v[0], a.v[2]), atol=1e-7)
        np.testing.assert_allclose(b.q[7:], a.q[7:], atol=1e-9)
        np.testing.assert_allclose(b.v[3:], a.v[3:], atol=1e-7)


def test_two_heroes_track_side_by_side():
    scene = poise.Scene()
    scene.add_ground()
    for k, (name, height) in enumerate((("tall", 1.85), ("small", 1.3))):
        scene.add(humanoid(height=height), name=name, position=(0, 2.0 * k, 0)).track(clips.stand())
    world = scene.build(dt=DT)
    recording = world.run(0.5)
    for k, name in enumerate(("tall", "small")):
        told = correction(recording, world.controllers[f"{name} tracking"])
        assert told.mean_deg < 0.2
        assert float(world.body(f"{name}/pelvis").position[1]) == pytest.approx(2.0 * k, abs=0.05)
        assert set(told.slip) == {f"{name}/foot_l", f"{name}/foot_r"}


def test_drives_of_two_heroes_do_not_put_out_each_other():
    scene = poise.Scene(gravity=(0, 0, 0))
    for k, name in enumerate("ab"):
        scene.add(humanoid(), name=name, position=(0, 2.0 * k, 0)).track(BEND, by="drives", root="free")
    world = scene.build(dt=DT)
    world.step(200)
    saved = world.state
    elbows = [float(world.q[world.model.q_slice(f"{name}/elbow_l")][0]) for name in "ab"]
    np.testing.assert_allclose(elbows, 1.0, atol=0.01)
    world.step(10)
    end, world.state = world.state, saved
    world.step(10)
    assert world.state.same_bits(end)


# ---- asked twice -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["guided", "balanced", "free", "held"])
def test_a_hero_follows_one_motion(root):
    scene = poise.Scene()
    hero = scene.add(humanoid(), name="hero")
    stand = clips.stand()
    hero.track(stand, root=root)
    motors = len(scene.actuators)
    with pytest.raises(ValueError, match='"hero" tracks a motion already'):
        hero.track(stand, root=root)
    assert (len(scene.actuators), len(scene.controllers)) == (motors, 1)


@pytest.mark.parametrize(("joint", "taken"), [("knee_l", "hero/knee_l"), ("ankle_l.turn1", "hero/ankle_l.turn1")])
def test_motors_of_ones_own_are_told_of_before_anything_changes(joint, taken):
    scene = poise.Scene()
    hero = scene.add(humanoid(), name="hero")
    scene.motor(joint)
    with pytest.raises(ValueError, match=f"there are motors on {taken} already"):
        hero.track(clips.stand())
    assert (len(scene.actuators), len(scene.controllers)) == (1, 0)


@pytest.mark.parametrize("root", ["guided", "held", "balanced"])
def test_scenes_and_worlds_that_track_can_be_pickled(root):
    scene = poise.Scene()
    scene.add_ground()
    hero = scene.add(humanoid(), name="hero")
    root_keys = {"root": (0, 0, 0.93, 1, 0, 0, 0)}
    hero.track(keyframes({0.0: {"elbow_l": 0.2} | root_keys, 0.3: {"elbow_l": 1.0} | root_keys}), root=root)
    world = pickle.loads(pickle.dumps(scene)).build(dt=DT)
    world.step(3)
    twin = pickle.loads(pickle.dumps(world))
    for one in (world, twin):
        one.step(3)
    np.testing.assert_array_equal(world.q, twin.q)


# ---- gravity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gravity", [(0, 0, 0), (9.81, 0, 0), (0, 0, 9.81), (0.5, 0, -9.81)])
def test_nobody_balances_where_down_is_elsewhere(gravity):
    scene = poise.Scene(gravity=gravity)
    scene.add_ground()
    scene.add(humanoid(), name="hero").track(BEND, root="balanced")
    with pytest.raises(ValueError, match="to balance it must point down"):
        scene.build()


# ---- what is told ----------------------------------------------------------------------------------------------------


def test_torques_told_are_those_of_inverse_dynamics():
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=2.0), axis="y", anchor=(0, 0, 0.5), name="upper")
    lower = poise.box(0.1, 0.1, 0.8, mass=1.0)
    scene.hinge("upper", lower, axis="y", anchor=(0, 0, 0.4), position=(0, 0, -0.9), name="lower")
    for joint in ("upper", "lower"):
        scene.motor(joint, stiffness=4000.0, damping=200.0)
    times = np.linspace(0.0, 2.0, 101)
    world = scene.build(dt=1 / 1000)
    swing = Tracking((times, np.stack((0.5 * np.sin(2 * times), 0.8 * np.sin(3 * times)), axis=1)))
    world.add_controller(swing)
    world.v[:] = 1.0, 2.4
    recording = world.run(1.0)
    told = correction(recording, swing)
    a = np.diff(recording.v, axis=0) * 1000.0
    for k in range(100, 1000, 100):
        tau = inverse_dynamics(world.model, recording.q[k], recording.v[k], a[k])
        # a step of 1 ms: what changes by 100 N·m/s at most
        np.testing.assert_allclose(told.torque[k + 1], np.abs(tau), atol=0.1)


def test_help_is_what_momentum_lacks():
    scene = poise.Scene(gravity=(0, 0, -9.81))
    hero = scene.add(humanoid(), name="hero")
    hero.track(clips.squat(), help=(2000.0, 2000.0))
    world = scene.build(dt=DT)
    recording = world.run(0.5)
    told = correction(recording, world.controllers["hero tracking"])
    total = np.array([momentum(world.model, q, v).linear for q, v in zip(recording.q, recording.v, strict=True)])
    pushed = np.diff(total, axis=0) / DT + (0.0, 0.0, told.weight)
    # momentum at q that have moved on: of second order in a step beside what velocities make of it
    np.testing.assert_allclose(told.help_force[1:], pushed, atol=0.02 * told.weight)
    assert np.abs(told.help_force[1:, 2]).mean() > 0.9 * told.weight


class Belt:
    """Goes along x at an even speed."""

    def __call__(self, time: float, /) -> PathPoint:
        none = np.zeros(3)
        here = np.array((0.5 * time, 0.0, -0.1))
        return PathPoint(here, np.array((1.0, 0, 0, 0)), np.array((0.5, 0, 0)), none, none, none)


def test_feet_slide_on_a_belt_until_it_carries_them():
    scene, rough = poise.Scene(), poise.Material(friction=0.4)
    scene.add(poise.box(10.0, 2.0, 0.2, material=rough), name="belt", kinematic=Belt())
    scene.add(poise.box(0.2, 0.2, 0.2, mass=3.0, material=rough), name="foot", position=(0, 0, 0.1))
    world = scene.build(dt=0.001)
    recording = world.run(0.8)
    told = correction(recording, keyframes({0.0: {"foot": (0, 0, 0.1, 1, 0, 0, 0)}}))
    # friction takes it along in v / (μ g), meanwhile it lags by half of the way; a step of 1 ms is 0.5 mm
    lag = 0.5**2 / (2 * 0.4 * 9.81)
    assert float(0.5 * world.time - world.q[world.model.q_slice("foot")][0]) == pytest.approx(lag, abs=1e-3)
    assert told.slip["foot"][-1] == pytest.approx(lag, abs=1e-3)


def test_what_was_not_recorded_is_not_told():
    scene = poise.Scene()
    scene.add_ground()
    scene.add(humanoid(), name="hero").track(clips.stand())
    world = scene.build(dt=DT)
    told = correction(world.run(0.05, record=()), world.controllers["hero tracking"])
    assert np.isnan(told.torque).all()
    assert np.isnan(told.help_force).all()
    assert not told.touching
    assert "no external help" not in told.summary()
    assert "contacts were not recorded" in told.summary()
    assert "torques and external help were not recorded" in told.summary()


def test_a_held_root_is_told_as_held():
    scene = poise.Scene()
    scene.add(humanoid(), name="hero").track(clips.stand(), root="held")
    world = scene.build(dt=DT)
    told = correction(world.run(0.05), world.controllers["hero tracking"])
    assert told.held
    assert "no external help" not in told.summary()
    assert "the root is held on its way" in told.summary()


def test_sliders_are_told_in_their_own_units():
    scene = poise.Scene()
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=1.0), axis="z", name="lift")
    scene.hinge("lift", poise.box(0.1, 0.1, 0.4, mass=1.0), axis="y", anchor=(0, 0, 0.2), name="arm")
    world = scene.build(dt=DT)
    still = Reference(([0.0, 1.0], np.tile((0.1, 0.0), (2, 1))), world.model)
    told = correction(world.run(DT), still)
    assert told.error_deg[0].tolist() == [100.0, 0.0]
    assert told.max_deg < 1.0
    assert "lift: 100.0" in told.summary()
    assert "mm (at most" in told.summary()
    place = Placed(still, world.model)
    assert place.root() == -1
