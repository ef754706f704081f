"""Kinematic bodies without paths: they stay where they are put and go on at the velocity that they have."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.motion import KeyedPath
from poise.motion.rotations import quat_multiply, quat_normalize

DT, G = 1 / 240, 9.81
FORMULATIONS = {
    "reduced": poise.Reduced(),
    "two parts": poise.Reduced(substeps=2),
    "acceleration": poise.Reduced(level="acceleration"),
    "maximal": poise.Maximal(),
}
TURN = quat_normalize(np.array((0.9, 0.1, -0.3, 0.2)))


def lift(sleeping: bool = False) -> poise.World:
    """A load on a plate, half a metre up."""
    scene = poise.Scene()
    scene.add(poise.box(2, 1, 0.1), name="lift", kinematic=True, position=(0, 0, 0.5))
    scene.add(poise.box(0.2, 0.2, 0.2), name="load", position=(0, 0, 0.65))
    return scene.build(poise.Reduced(sleeping=sleeping), dt=DT)


def lone(**where: Any) -> poise.Scene:
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.2, 0.3), name="box", kinematic=True, **where)
    return scene


@pytest.mark.parametrize("kind", FORMULATIONS)
def test_it_stays_where_it_is_put(kind: str) -> None:
    world = lone(position=(1, 2, 3), quat_wxyz=TURN).build(FORMULATIONS[kind], dt=DT)
    assert world.q == pytest.approx([1, 2, 3, *TURN], abs=1e-15)
    world.body("box").place((0.1, 0.2, 0.3), (1, 0, 0, 0))
    world.step(10)
    assert world.q.tolist() == [0.1, 0.2, 0.3, 1, 0, 0, 0]
    world.q[:3] = (3, 2, 1)
    world.step(10)
    assert world.q[:3].tolist() == [3, 2, 1]
    assert not world.v.any()


@pytest.mark.parametrize("kind", FORMULATIONS)
def test_it_arrives_at_a_pose_and_goes_on(kind: str) -> None:
    """The turn is about one axis at constant speed; each step rounds."""
    world = lone(position=(1, 2, 3), quat_wxyz=TURN).build(FORMULATIONS[kind], dt=DT)
    target, turned = np.array((1.5, 2, 2.5)), quat_multiply(TURN, quat_normalize(np.array((0.7, 0.1, 0.5, -0.3))))
    world.body("box").move_kinematic(target, turned, dt=0.5)
    world.step(120)
    assert world.q[:3] == pytest.approx(target, abs=1e-12)
    assert abs(world.q[3:] @ turned) == pytest.approx(1.0, abs=1e-12)
    world.step(120)
    assert world.q[:3] == pytest.approx(target + np.array((0.5, 0, -0.5)), abs=1e-12)
    world.body("box").move_kinematic(target)  # in one step
    world.step()
    assert world.q[:3] == pytest.approx(target, abs=1e-12)


def test_a_plate_that_moves_carries_its_load() -> None:
    """It starts at once: the load slides by v²/(2 μ g) until it is as fast, to first order in the step."""
    world, speed = lift(), 0.5
    world.step(24)
    world.body("lift").move_kinematic((speed, 0, 0.5), dt=1.0)
    world.step(120)
    slid = world.q[0] - world.q[7]
    assert world.v[6] == pytest.approx(speed, abs=1e-5)
    assert slid == pytest.approx(speed**2 / (2 * 0.8 * G), abs=speed * DT)
    world.body("lift").place(velocity=(0, 0, 0.1))
    world.step(120)
    assert world.q[9] - world.q[2] == pytest.approx(0.15, abs=1e-4)
    assert world.v[8] == pytest.approx(0.1, abs=1e-5)


def test_a_plate_that_is_placed_wakes_its_load() -> None:
    world = lift(sleeping=True)
    world.step(480)
    assert world.body("load").asleep
    world.step(10)
    world.body("lift").place((0, 0, 0.3))
    world.step(60)
    fallen = world.q[9]
    assert not world.body("load").asleep
    assert fallen < 0.55
    world.step(480)
    assert world.body("load").asleep
    world.body("lift").move_kinematic((0, 0, 0.4), dt=0.25)
    world.step(60)
    assert world.q[9] == pytest.approx(0.55, abs=1e-3)


def test_states_copies_and_pickles_hold_it() -> None:
    world = lift(sleeping=True)
    world.body("lift").move_kinematic((0.1, 0, 0.6), TURN, dt=0.2)
    world.step(20)
    saved, others = world.state, [copy.deepcopy(world), pickle.loads(pickle.dumps(world))]
    world.step(20)
    end = world.q.copy()
    world.state = saved
    for one in (world, *others):
        one.step(20)
        assert np.array_equal(one.q, end)
        assert np.array_equal(one.v, world.v)


def test_recordings_show_it(tmp_path: Path) -> None:
    world = lift()
    world.body("lift").move_kinematic((0.3, 0, 0.5), dt=0.5)
    recording = world.run(0.5, every=60)
    recording.save(tmp_path / "lift.npz")
    again = poise.sim.Recording.load(tmp_path / "lift.npz")
    assert again.q[:, 0] == pytest.approx([0.0, 0.15, 0.3], abs=1e-12)


@pytest.mark.parametrize(("precision", "near"), [("f64", 2e-6), ("f32", 1e-3)])
def test_worlds_of_a_batch_have_poses_of_their_own(precision: str, near: float) -> None:
    """In float64 they differ by what a step is solved to, 1e-4 g h: 2 µm in half a second."""
    world = lift()
    scene = poise.Scene()
    scene.add(poise.box(2, 1, 0.1), name="lift", kinematic=True, position=(0, 0, 0.5))
    scene.add(poise.box(0.2, 0.2, 0.2), name="load", position=(0, 0, 0.65))
    batch = scene.build_batch(5, dt=DT, precision=precision, threads=1)  # type: ignore[arg-type]
    speeds = np.linspace(-0.2, 0.2, 5)
    batch.q[:, 1], batch.v[:, 0] = speeds, speeds
    batch.q[:, 8] = speeds
    batch.step(120)
    assert batch.q[:, :3] == pytest.approx(np.column_stack((speeds / 2, speeds, np.full(5, 0.5))), abs=1e-5)
    world.q[1], world.v[0], world.q[8] = speeds[3], speeds[3], speeds[3]
    world.step(120)
    assert batch.q[3] == pytest.approx(world.q, abs=near)


@pytest.mark.parametrize("kind", ["reduced", "maximal"])
def test_what_is_welded_to_it_follows(kind: str) -> None:
    scene = lone(position=(0, 0, 1))
    scene.add(poise.box(0.2, 0.2, 0.2), name="held", position=(0.5, 0, 1))
    scene.loop("weld", "box", "held")
    world = scene.build(FORMULATIONS[kind], dt=DT)
    target = np.array((0.1, 0.2, 1.3))
    world.body("box").move_kinematic(target, dt=1.0)
    world.step(240)
    assert world.body("held").position == pytest.approx(target + np.array((0.5, 0, 0)), abs=1e-4)


def on_path() -> poise.World:
    scene = poise.Scene()
    scene.add(poise.box(1, 1, 0.1), name="lift", kinematic=KeyedPath([0, 1], [(0, 0, 0), (0, 0, 1)]))
    scene.add(poise.sphere(0.1), name="ball", position=(3, 0, 0))
    return scene.build(dt=DT)


@pytest.mark.parametrize("name", ["q", "v"])
def test_what_a_path_says_cannot_be_written(name: str) -> None:
    world, free = on_path(), on_path()
    world.step(20)
    with pytest.raises(ValueError, match='"lift" follows a path'):
        world.body("lift").place((0, 0, 2))
    with pytest.raises(ValueError, match='"lift" follows a path'):
        world.body("lift").move_kinematic((0, 0, 2))
    getattr(world, name)[2] += 0.25
    with pytest.raises(ValueError, match=f'"lift" follows a path, which prescribes its {name}'):
        world.step()
    world.step(20)  # the path's numbers are back
    free.step(40)
    assert np.array_equal(world.q, free.q)
    assert world.time == free.time


def test_states_of_other_times_are_taken_up() -> None:
    world = on_path()
    world.step(20)
    saved = world.state
    world.step(20)
    world.state = saved
    world.step(20)
    other = on_path()
    other.step(40)
    assert np.array_equal(world.q, other.q)
    world.reset()
    world.step(5)


def test_wrong_moves_are_refused() -> None:
    world = lift()
    with pytest.raises(ValueError, match="is moved by forces"):
        world.body("load").move_kinematic((0, 0, 1))
    with pytest.raises(ValueError, match="dt is 0"):
        world.body("lift").move_kinematic((0, 0, 1), dt=0.0)
    with pytest.raises(ValueError, match="quat_wxyz must be a rotation"):
        world.body("lift").move_kinematic(quat_wxyz=(0, 0, 0, 0))
    scene = poise.Scene()
    scene.add(poise.box(1, 1, 1), name="box", kinematic=KeyedPath([0, 1], [(0, 0, 0), (0, 0, 1)]))
    with pytest.raises(ValueError, match='"box" follows a path'):
        scene.build_batch(2, threads=1)
    with pytest.raises(ValueError, match='"box" is kinematic'):
        lone().build(poise.Maximal(solver="pgs", stabilization="speed"))


def test_files_keep_it(tmp_path: Path) -> None:
    scene = lone(position=(1, 2, 3), quat_wxyz=TURN)
    assert scene.save(tmp_path / "box.yaml") == []
    assert poise.load(tmp_path / "box.yaml").compile().digest() == scene.compile().digest()
    scene.save(tmp_path / "box.xml")
    model = poise.load(tmp_path / "box.xml").compile()
    assert model.q_rest == pytest.approx(scene.compile().q_rest, abs=1e-12)
    assert model.paths == ()


# ---- compiled steps --------------------------------------------------------------------------------------------------


def led_things(formulation: poise.Reduced | poise.Maximal | None = None) -> poise.World:
    """A box on a plate that goes up and down and turns, beside a ball that a fast paddle hits."""

    def up_and_down(time: float) -> poise.motion.PathPoint:
        z, w = 0.5 + 0.1 * np.sin(3.0 * time), 0.4 * time
        still = np.zeros(3)
        quat = np.array((np.cos(0.5 * w), 0.0, 0.0, np.sin(0.5 * w)))
        speed, turn = np.array((0.0, 0.0, 0.3 * np.cos(3.0 * time))), np.array((0.0, 0.0, 0.4))
        gain = np.array((0.0, 0.0, -0.9 * np.sin(3.0 * time)))
        return poise.motion.PathPoint(np.array((0.0, 0.0, z)), quat, speed, turn, gain, still)

    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(1.0, 1.0, 0.05), name="plate", kinematic=up_and_down)
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.7))
    scene.add(poise.box(0.02, 0.5, 0.5), name="paddle", kinematic=poise.motion.OrbitPath(start=(3, 0, 0.3), speed=20.0))
    scene.add(poise.sphere(0.1), name="ball", position=(0, 3, 0.3))
    return scene.build(formulation) if formulation is not None else scene.build()


@pytest.mark.parametrize("formulation", [poise.Reduced(), poise.Maximal(), poise.Reduced(sleeping=True)], ids=str)
def test_compiled_steps_follow_paths_as_steps_from_python_do(formulation: poise.Reduced | poise.Maximal) -> None:
    many, one, called = (led_things(formulation) for _ in range(3))
    called.after_step(lambda world: None)  # which takes its steps out of the compiled loop
    assert many._marches()
    assert not called._marches()
    many.step(150)
    for _ in range(150):
        one.step()
        called.step()
    for other in (one, called):
        assert np.array_equal(many.q, other.q)
        assert np.array_equal(many.v, other.v)
        assert np.array_equal(many.a, other.a)


def test_a_path_that_fails_does_so_in_its_own_step() -> None:
    """Paths are asked ahead of time; the steps before the one that cannot be taken are taken."""
    scene = poise.Scene()
    straight = poise.motion.OrbitPath(start=(1, 0, 0), speed=1.0)

    def breaks_off(time: float) -> poise.motion.PathPoint:
        if time > 0.1:
            raise ValueError("no path from here")
        return straight(time)

    scene.add(poise.sphere(0.1), name="ball", kinematic=breaks_off)
    world = scene.build(dt=0.01)
    with pytest.raises(ValueError, match="no path from here"):
        world.step(50)
    assert world.time == pytest.approx(0.1)
