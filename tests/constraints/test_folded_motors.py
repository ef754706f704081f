"""Motors well within their bounds are folded into the inertia: the same motion as with rows, and no rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.dynamics import Drive
from poise.dynamics.state_queries import difference

DT = 1 / 240
SHARP = poise.Reduced(tolerance=1e-12, sweeps=5000)


def as_rows(world: poise.World) -> poise.World:
    """The same world, whose motors are rows: those who add rows of their own are asked once a step."""
    world.rows_hooks.append(lambda rows, state: None)
    return world


def chain(seed: int, *, limit: float = np.inf, gear: float = 1.0) -> poise.Scene:
    """Links on hinges, slides and balls in random directions, with a motor on each."""
    rng = np.random.default_rng(seed)
    scene, below = poise.Scene(gravity=(0, 0, 0)), None
    for k in range(5):
        axis = rng.normal(size=3)
        name, shape = f"link{k}", poise.box(*rng.uniform(0.05, 0.3, 3), density=rng.uniform(300, 3000))
        # next to each other, so that nothing touches
        place = {"position": (1.2 * k, 0, 0), "anchor": (1.2 * k - 0.5, 0.1, -0.1), "name": name}
        kind = ("hinge", "ball", "slider")[k % 3]
        if kind != "ball":
            place["axis"] = axis
        getattr(scene, kind)(below, shape, **place)
        options = {"stiffness": 10.0 ** rng.uniform(1, 4), "damping": 10.0 ** rng.uniform(0, 2)}
        if kind != "ball":
            options["gear"] = gear
        scene.motor(name, limit=limit, **options)
        below = name
    return scene


def moved(world: poise.World, seed: int) -> poise.World:
    """Goals and speeds at random: so slow that it hardly counts how velocity products are integrated."""
    rng = np.random.default_rng(seed)
    world.v[...] = 0.01 * rng.normal(size=world.model.nv)
    for k, motor in enumerate(world.model.motors):
        if not motor.ball:
            world.motor(k).target = rng.uniform(-0.02, 0.02)
            world.motor(k).speed = rng.uniform(-0.02, 0.02)
    return world


def forces(world: poise.World) -> np.ndarray:
    return np.concatenate([np.atleast_1d(force) for force in world.report().motors.values()])


@pytest.mark.parametrize("seed", range(4))
def test_motors_without_bounds_are_drives(seed):
    scene = chain(seed)
    motors = scene.build(SHARP, dt=DT)
    rng = np.random.default_rng(seed)
    motors.v[...] = rng.normal(size=motors.model.nv)
    drives = scene.build(SHARP, dt=DT)
    drives.v[...] = motors.v
    gains = np.zeros((2, motors.model.nv))
    for motor in motors.model.motors:
        gains[:, list(motor.dofs)] = np.array((motor.stiffness, motor.damping))[:, None]
        drives.motor(motor.name).stiffness = drives.motor(motor.name).damping = 0.0
    drives.drive = Drive(*gains, goal_q=motors.model.q_rest)
    for world in (motors, drives):
        world.step(60)
    np.testing.assert_allclose(motors.q, drives.q, atol=1e-11)
    np.testing.assert_allclose(motors.v, drives.v, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_motors_without_bounds_move_as_rows_do_and_are_none(seed):
    scene = chain(seed)
    folded = moved(scene.build(SHARP, dt=DT), seed)
    rows = as_rows(moved(scene.build(SHARP, dt=DT), seed))
    fastest, way = 0.0, 0.0
    for k in range(60):
        folded.step()
        rows.step()
        speed = float(np.abs(rows.v).max())
        fastest, way = max(fastest, speed), way + DT * speed
        # velocity products, which grow with the square of speeds, are integrated by methods of other order
        assert np.abs(difference(folded.model, folded.q, rows.q)).max() < 1e-9 + 10.0 * DT * fastest * way, k
    np.testing.assert_allclose(forces(folded), forces(rows), atol=0.02 * np.abs(forces(rows)).max())
    assert folded.report().rows == 0
    assert rows.report().rows == folded.model.nv


@pytest.mark.parametrize("seed", range(6))
def test_motors_that_reach_their_bounds_and_come_back_move_as_rows_do(seed):
    free = moved(chain(seed).build(SHARP, dt=DT), seed)
    free.step(2)
    limit = 0.4 * float(np.abs(forces(free)).max())
    scene = chain(seed, limit=limit)
    folded = moved(scene.build(SHARP, dt=DT), seed)
    rows = as_rows(moved(scene.build(SHARP, dt=DT), seed))
    at_bounds = []
    for k in range(120):
        folded.step()
        rows.step()
        assert np.abs(difference(folded.model, folded.q, rows.q)).max() < 1e-3, k
        assert np.abs(forces(folded)).max() <= limit * (1.0 + 1e-9)
        np.testing.assert_allclose(forces(folded), forces(rows), atol=0.1 * limit)
        at_bounds.append(folded.report().rows)
    assert min(at_bounds) < max(at_bounds)


def test_a_motor_beyond_its_bound_in_one_step_is_at_it_in_that_step():
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=2.0), axis="x", name="cart")
    scene.motor("cart", stiffness=1000.0, damping=50.0, limit=10.0)
    world = scene.build(dt=DT)
    world.step()
    assert world.report().rows == 0
    world.motor("cart").target = 1.0
    world.step()
    assert world.report().rows == 1
    assert world.report().motors["cart"] == pytest.approx(10.0)
    assert world.v[0] == pytest.approx(10.0 / 2.0 * DT)
    world.motor("cart").target = float(world.q[0])
    world.step(240)
    assert world.report().rows == 0
    assert world.q[0] == pytest.approx(world.motor("cart").target, abs=1e-3)


@pytest.mark.parametrize("gear", [1.0, -3.0, 0.25])
def test_gears_are_in_the_inertia_too(gear):
    scene = chain(3, gear=gear)
    folded = moved(scene.build(SHARP, dt=DT), 3)
    rows = as_rows(moved(scene.build(SHARP, dt=DT), 3))
    for world in (folded, rows):
        world.step(30)
    assert np.abs(difference(folded.model, folded.q, rows.q)).max() < 1e-4


@pytest.mark.parametrize("limit", [np.inf, 15.0])
def test_energy_and_forces_of_steps_are_told_alike(limit):
    scene = chain(1, limit=limit)
    folded = moved(scene.build(SHARP, dt=DT), 1)
    rows = as_rows(moved(scene.build(SHARP, dt=DT), 1))
    for world in (folded, rows):
        world.step(7)
    mine, right = folded.report(), rows.report()
    np.testing.assert_allclose(mine.passive, right.passive, atol=1e-6)
    np.testing.assert_allclose(mine.tau, right.tau, atol=1e-9)


def pushed() -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 0.05))
    model = scene.compile()
    for joint, kind in zip(model.joint_names, model.joint_kinds, strict=True):
        if kind in ("hinge", "ball"):
            scene.motor(joint, stiffness=300.0, damping=15.0, limit=25.0)
    return scene


def test_states_have_which_motors_are_folded():
    scene = pushed()
    world = scene.build(dt=DT)
    world.step(60)
    state, twin = world.state, copy.deepcopy(world)
    world.step(60)
    twin.step(60)
    np.testing.assert_array_equal(twin.q, world.q)
    again = scene.build(dt=DT)
    again.step(3)
    again.state = state
    again.step(60)
    np.testing.assert_array_equal(again.q, world.q)
    again.reset()
    fresh = scene.build(dt=DT)
    for one in (again, fresh):
        one.step(30)
    np.testing.assert_array_equal(again.q, fresh.q)


def test_worlds_of_a_batch_fold_as_a_world_does_and_do_not_feel_each_other():
    scene = pushed()
    world = scene.build(dt=DT)
    batch = scene.build_batch(9, dt=DT, precision="f64", threads=1)
    batch.v[1:, :3] = np.random.default_rng(2).normal(size=(8, 3))
    alone = scene.build_batch(1, dt=DT, precision="f64", threads=1)
    for one in (world, batch, alone):
        one.step(40)
    np.testing.assert_array_equal(batch.q[0], alone.q[0])
    assert np.abs(difference(world.model, world.q, batch.q[0])).max() < 1e-3
    batch.reset()
    alone.reset()
    fresh = scene.build_batch(1, dt=DT, precision="f64", threads=1)
    for one in (batch, alone, fresh):
        one.step(20)
    np.testing.assert_array_equal(batch.q[0], fresh.q[0])
    np.testing.assert_array_equal(alone.q[0], fresh.q[0])


def test_who_adds_rows_is_asked_once_a_step():
    world = pushed().build(dt=DT)
    asked = []
    world.rows_hooks.append(lambda rows, state: asked.append(None))
    world.step(30)
    assert len(asked) == 30


def test_separate_bodies_have_rows():
    scene = chain(2)
    reduced, maximal = moved(scene.build(SHARP, dt=DT), 2), moved(scene.build(poise.Maximal(tolerance=1e-12), dt=DT), 2)
    for world in (reduced, maximal):
        world.step(1)
    assert reduced.report().rows == 0
    assert maximal.report().rows == reduced.model.nv


def test_springs_take_nothing_of_motors_in_steps_of_several_parts():
    """Forces of folded motors are told as theirs, whatever the parts of a step are."""
    scene = poise.Scene()
    scene.add_ground()
    bar = poise.box(0.02, 0.02, 1.0)
    scene.hinge(None, bar, axis="y", anchor=(0, 0, 0.9), position=(0, 0, 0.9), name="bar")
    scene.motor("bar", stiffness=40.0, damping=0.5, limit=1e4)
    world = scene.build(dt=DT)
    world.motor(0).target, world.v[0] = 1.0, 5.0
    recording = world.run(0.05)
    assert recording.solver["parts"][1:].min() > 1
    assert recording.solver["rows"].max() == 0
    np.testing.assert_array_equal(recording.torques["passive"], 0.0)
    np.testing.assert_array_equal(world.report().passive, 0.0)
    assert recording.torques["motors"][1:].min() > 10.0


def test_many_motors_that_reach_their_bounds_at_once_find_room():
    """A step begins again with all of them as rows, which have no room at first."""
    scene = poise.Scene()
    for k in range(90):
        scene.hinge(None, poise.box(0.3, 0.1, 0.1, mass=1.0), axis="z", position=(0, k, 0), name=f"arm{k}")
        scene.motor(f"arm{k}", stiffness=100.0, damping=1.0, limit=0.5, name=f"motor{k}")
    folded, rows = scene.build(dt=DT), as_rows(scene.build(dt=DT))
    for world in (folded, rows):
        for k in range(90):
            world.motor(k).target = 1.0
        world.step(20)
    assert folded.report().rows >= 90
    np.testing.assert_allclose(folded.q, rows.q, atol=1e-9)
    assert np.abs(forces(folded) - 0.5).max() < 1e-9
