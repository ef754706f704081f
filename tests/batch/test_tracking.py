"""Worlds of a batch follow motions: each one of its own, from a time and a place of its own, as a `World` does."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.characters import clips
from poise.dynamics.state_queries import difference
from poise.motion.rotations import quat_exp, quat_multiply, rotate

DT = 1 / 240


def walkers(by: str = "motors", root: str = "guided", **options) -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground()
    hero = scene.add(poise.characters.humanoid(), name="hero")
    hero.track(clips.walk(), by=by, root=root, **options)
    return scene


def swinging(**options) -> poise.Scene:
    """An arm that swings, led by a drive."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    swing = poise.motion.keyframes({0.0: {"arm": 0.0}, 0.5: {"arm": 0.8}, 1.0: {"arm": 0.0}}, loop=True)
    scene.controllers.append(("swing", lambda: poise.control.Tracking(swing, by="drives", **options)))
    return scene


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
@pytest.mark.parametrize("root", ["guided", "free"])
def test_a_world_of_a_batch_follows_as_a_world_does(by, root):
    scene = walkers(by, root)
    world, batch = scene.build(dt=DT), scene.build_batch(3, dt=DT, precision="f64", threads=1)
    for one in (world, batch):
        one.step(12)
    # feet on the ground share their load in more than one way: what is compared is where that shows least
    for k in range(3):
        assert np.abs(difference(world.model, world.q, batch.q[k])).max() < 1e-4


def test_each_world_has_a_phase_of_its_own():
    batch = walkers().build_batch(20, dt=DT, threads=1)
    walk = batch.tracking()
    length = walk.motions[0].duration
    walk.start[:] = -np.linspace(0.0, length, 20, endpoint=False)
    walk.begin()
    batch.step(60)
    assert batch.solved.all()
    wanted, _ = walk.at()
    for k in range(20):
        off = difference(batch.model, wanted[k], batch.q[k].astype(float))
        assert np.abs(off).max() < 0.1, k
    apart = np.abs(batch.q[:10, 7:] - batch.q[10:, 7:]).max(axis=1)
    assert (apart > 0.1).all()


def test_each_world_has_a_place_of_its_own_and_its_clip_there():
    batch = walkers().build_batch(4, dt=DT, precision="f64", threads=1)
    walk = batch.tracking()
    walk.position[:] = [(0, 0, 0), (3, -1, 0), (0, 0, 0), (-2, 5, 0)]
    walk.heading[:] = [0.0, 0.0, 2.0, -1.3]
    walk.begin()
    batch.step(48)
    first = batch.q[0]
    for k in range(1, 4):
        turn = quat_exp(np.array((0.0, 0.0, walk.heading[k])))
        np.testing.assert_allclose(batch.q[k, :3], walk.position[k] + rotate(turn, first[:3]), atol=2e-5)
        side = np.abs(np.dot(quat_multiply(turn, first[3:7]), batch.q[k, 3:7]))
        assert side == pytest.approx(1.0, abs=1e-8)
        np.testing.assert_allclose(batch.q[k, 7:], first[7:], atol=2e-4)


def test_each_world_has_a_motion_of_its_own():
    scene = walkers()
    batch = scene.build_batch(6, dt=DT, threads=1)
    walk = batch.tracking()
    walk.motions = [clips.walk(), clips.wave(), clips.squat()]
    walk.motion[:] = [0, 1, 2, 0, 1, 2]
    walk.start[3:] = -0.4
    walk.begin()
    batch.step(96)
    wanted, _ = walk.at()
    for k in range(6):
        assert np.abs(difference(batch.model, wanted[k], batch.q[k].astype(float))).max() < 0.1, k
    alone = scene.build_batch(1, dt=DT, threads=1)
    one = alone.tracking()
    one.motions = clips.squat()
    one.start[:] = -0.4
    one.begin()
    alone.step(96)
    np.testing.assert_array_equal(alone.q[0], batch.q[5])


def test_bits_are_those_of_any_number_of_worlds_steps_and_threads():
    def run(n: int, threads: int, steps: list[int]) -> np.ndarray:
        batch = walkers().build_batch(n, dt=DT, threads=threads)
        walk = batch.tracking()
        walk.start[:] = -0.05 * np.arange(n)
        walk.begin()
        for count in steps:
            batch.step(count)
        return batch.q[:5].copy()

    right = run(40, 1, [30])
    np.testing.assert_array_equal(run(40, 2, [30]), right)
    np.testing.assert_array_equal(run(5, 1, [30]), right)
    np.testing.assert_array_equal(run(21, 1, [1] * 30), right)


def test_times_add_up_as_those_of_a_world():
    scene = swinging()
    world, batch = scene.build(dt=1 / 300), scene.build_batch(2, dt=1 / 300, precision="f64", threads=1)
    world.step(1000)
    for _ in range(10):
        batch.step(100)
    assert batch.time[0] == world.time
    np.testing.assert_allclose(batch.q[:, 0], world.q[0], atol=1e-9)


def test_worlds_that_begin_anew_begin_their_time():
    batch = swinging().build_batch(3, threads=1)
    batch.step(100)
    batch.reset([1])
    assert batch.time[1] == 0.0
    assert batch.time[0] == batch.time[2] > 0.3
    swings = batch.tracking()
    swings.begin([1])
    batch.step(50)
    q, _ = swings.at()
    np.testing.assert_allclose(batch.q, q, atol=0.05)


def test_what_is_written_wrongly_is_refused_before_a_step():
    batch = swinging().build_batch(3, threads=1)
    swings = batch.tracking()
    swings.motion[1] = 1
    with pytest.raises(ValueError, match=r"motion\[1\] is 1; there are 0 to 0"):
        batch.step()
    swings.motion[1] = 0
    swings.heading[2] = np.nan
    with pytest.raises(ValueError, match=r"heading\[2\] is not finite"):
        batch.step()
    swings.heading[2] = 0.0
    with pytest.raises(ValueError, match="too abrupt for an exact table"):
        swings.motions = [
            poise.motion.keyframes({0.0: {"arm": 0.0}, 1 / np.pi: {"arm": 1.0}, 1.0: {"arm": 0.0}}, moves="linear")
        ]
    with pytest.raises(ValueError, match="no character that follows a motion is called 'walk'; there is \"swing\""):
        batch.tracking("walk")
    assert batch.time[0] == 0.0
    batch.step()
    assert batch.time[0] > 0.0


def test_motions_are_of_the_same_joints():
    scene = poise.Scene()
    for name in ("left", "right"):
        scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name=name)
    swing = poise.motion.keyframes({0.0: {"left": 0.0}, 1.0: {"left": 0.5}})
    scene.controllers.append(("swing", lambda: poise.control.Tracking(swing, by="drives")))
    batch = scene.build_batch(2, threads=1)
    with pytest.raises(ValueError, match="left, right are in one only"):
        batch.tracking().motions = [poise.motion.keyframes({0.0: {"right": 0.0}, 1.0: {"right": 0.5}})]


@pytest.mark.parametrize("options", [{"adjust": lambda state, wanted: wanted}])
def test_what_python_computes_is_refused(options):
    scene = swinging(**options)
    with pytest.raises(ValueError, match=r'controller \("swing"\) \(with adjust, points or balance\)'):
        scene.build_batch(2, threads=1)
    with pytest.raises(ValueError, match="which a batch cannot call"):
        walkers(root="balanced").build_batch(2, threads=1)


def test_bounded_springs_hold_balls_in_lanes():
    """Shoulders and hips of the humanoid are balls: their motors pull by rotations, as those of a world do."""
    scene = walkers(strength=60.0)
    world, batch = scene.build(dt=DT), scene.build_batch(2, dt=DT, precision="f64", threads=1)
    assert any(motor.ball for motor in world.model.motors)
    for one in (world, batch):
        one.step(3)
    np.testing.assert_allclose(batch.q[0], world.q, atol=1e-5)  # contacts are solved to 1e-4 of their speeds
