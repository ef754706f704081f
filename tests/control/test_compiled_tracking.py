"""Tracking in the compiled loop: tables are as exact as they say, and set what Python would set."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from tests.control.test_tracking import DT, arm, stand
from tests.python_calls import count_calls

import poise
from poise.characters import clips
from poise.control import Reference, Tracking
from poise.control.motion_table import TOLERANCE, Intervals, _cut, tabulate
from poise.control.reference import Placed
from poise.dynamics.state_queries import difference
from poise.motion import keyframes


class InPython(Tracking):
    """One that is never compiled: the world calls its `update`."""

    def compile(self, memory):
        return None


def follow(reference, by="motors", root="guided", kind=Tracking, **options) -> poise.World:
    """A world whose hero follows a reference, begun on it."""
    scene = poise.Scene()
    scene.add_ground()
    hero = scene.add(poise.characters.humanoid(), name="hero")
    hero.track(reference, by=by, root=root, **options)
    world = scene.build(dt=DT)
    name = next(iter(world.controllers))
    if kind is not Tracking:
        given = world.controllers[name]
        world.remove_controller(name)
        kept = {key: getattr(given, key) for key in ("by", "root", "strength", "give", "settle", "floor", "start")}
        world.add_controller(kind(given.motion, **kept), name=name)
    return world


def walk() -> Reference:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    return Reference(clips.walk(), scene.compile(), floor=0.0)


def sample(table: Intervals, times: np.ndarray, numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and unit quaternions, of a table: the cubics as they are written down."""
    since = (times - table.start) * table.rate
    rounds = np.zeros_like(since)
    if table.loops:
        rounds = np.floor((times - table.start) / table.duration)
        since = since - rounds * len(table.coefficients)
    k = np.clip(np.floor(since).astype(int), 0, len(table.coefficients) - 1)
    u = np.clip(since - k, 0.0, 1.0)[:, None]
    c = table.coefficients[k]
    found = c[..., 0] + u * (c[..., 1] + u * (c[..., 2] + u * c[..., 3]))
    quats = found[:, numbers:].reshape(len(times), -1, 4)
    return (
        found[:, :numbers] + rounds[:, None] * table.stride,
        quats / np.linalg.norm(quats, axis=-1, keepdims=True),
    )


# ---- tables ----------------------------------------------------------------------------------------------------------


def spinning(frames: int, seed: int, *, loop: bool = False) -> Reference:
    """A free body on a random way, at times that no unit divides."""
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    scene.hinge("ball", poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    model, rng = scene.compile(), np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.02, 0.2, frames))
    q = rng.normal(size=(frames, model.nq)).cumsum(axis=0) * 0.1
    turns = np.concatenate((np.ones((frames, 1)), 0.3 * rng.normal(size=(frames, 3))), axis=1)
    q[:, 3:7] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    return Reference((times, q), model, loop=loop)


def kicking(moves: str, loop: bool) -> Reference:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    keys = {0.0: {"arm": 0.0}, 0.3: {"arm": 0.8}, 0.45: {"arm": -0.2}, 1.2: {"arm": 0.0}}
    return Reference(keyframes(keys, moves=moves, loop=loop), scene.compile())


@pytest.mark.parametrize(
    "reference",
    [
        *(lambda seed=seed, loop=loop: spinning(14, seed, loop=loop) for seed in range(3) for loop in (False, True)),
        *(lambda moves=moves, loop=loop: kicking(moves, loop) for moves in ("smooth", "linear") for loop in (0, 1)),
        walk,
    ],
)
def test_a_table_is_as_near_its_reference_as_it_says(reference):
    reference = reference()
    place = Placed(reference, reference.model)
    table = tabulate(place)
    assert table is not None
    assert table.error <= TOLERANCE
    later = 3.0 if table.loops else 1.0
    times = reference.start + reference.duration * later * np.random.default_rng(5).uniform(0.0, 1.0, 3000)
    numbers, quats = sample(table, times, len(place.layout.numbers))
    right = place.at(times).q
    # between the three shares of an interval at which the error is looked for it may be somewhat larger
    np.testing.assert_allclose(numbers, right[:, place.layout.numbers], atol=2.0 * TOLERANCE)
    if place.layout.quats.size:
        dots = np.abs(np.sum(quats * right[:, place.layout.quats], axis=-1))
        assert 2.0 * np.arccos(np.minimum(dots, 1.0)).max() < 2.0 * TOLERANCE


def test_the_error_of_a_table_falls_with_the_fourth_power_of_its_intervals():
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    model, rng = scene.compile(), np.random.default_rng(4)
    turns = np.concatenate((np.ones((14, 1)), 0.3 * rng.normal(size=(14, 3))), axis=1)
    q = np.concatenate((np.zeros((14, 3)), turns / np.linalg.norm(turns, axis=1, keepdims=True)), axis=1)
    place = Placed(Reference((np.linspace(0.0, 1.3, 14), q), model), model)
    # keys are at ends of intervals, so that the curve is smooth within each
    errors = [_cut(place, n).error for n in (130, 260, 520)]
    assert errors[0] == pytest.approx(16.0 * errors[1], rel=0.25)
    assert errors[1] == pytest.approx(16.0 * errors[2], rel=0.25)


def test_what_jumps_between_ends_of_intervals_is_left_to_python():
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    model = scene.compile()
    keys = {0.0: {"arm": 0.0}, 1.0 / np.pi: {"arm": 1.0}, 1.0: {"arm": 0.0}}
    reference = Reference(keyframes(keys, moves="linear"), model)
    assert tabulate(Placed(reference, model)) is None
    world = scene.build(dt=DT)
    world.add_controller(Tracking(reference, by="drives"))
    world.step(120)
    assert world.q[0] == pytest.approx(reference.coordinates(model, world.time).q[0], abs=0.02)


# ---- what is set -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
@pytest.mark.parametrize("root", ["guided", "free"])
def test_compiled_tracking_sets_what_python_sets(by, root):
    reference = walk()
    compiled = follow(reference, by=by, root=root)
    python = follow(reference, by=by, root=root, kind=InPython)
    tracking = next(iter(compiled.controllers.values()))
    for world in (compiled, python):
        world.step(30)
    # the second derivative of a cubic is off by 2 Δ⁻² times what the cubic is; a contact that slips multiplies both
    error = 1e-6 if by != "accelerations" else 1e-4
    assert np.abs(difference(compiled.model, python.q, compiled.q)).max() < error
    assert np.abs(compiled.v - python.v).max() < error / DT
    inputs = [world._space.x for world in (compiled, python)]
    if by == "drives":
        followed = tracking.joint_gains[:, 0] > 0.0
        goals = [(x.goal_q.copy(), x.goal_v.copy()) for x in inputs]
        assert np.abs(difference(compiled.model, goals[0][0], goals[1][0]))[followed].max() < error
        np.testing.assert_allclose(goals[0][1][followed], goals[1][1][followed], atol=error / DT)
    motors = [world._stepper.extras.motors for world in (compiled, python)]
    for name in ("stiffness", "damping", "low", "high"):
        np.testing.assert_array_equal(motors[0].arrays[name], motors[1].arrays[name])
    for name in ("target", "speed"):
        np.testing.assert_allclose(motors[0].arrays[name], motors[1].arrays[name], atol=10.0 * error)


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
def test_an_arm_follows_in_compiled_code_as_in_python(by):
    compiled, _ = arm(by=by)
    tracking = compiled.controllers["Tracking"]
    python, _ = arm(by=by)
    python.remove_controller("Tracking")
    python.add_controller(InPython(tracking.motion, by=by))
    for world in (compiled, python):
        world.step(480)
    np.testing.assert_allclose(compiled.q, python.q, atol=10.0 * tracking.tables().parts[0].error)
    # what hangs on a spring lags by what gravity takes, at 10 N·m of 1,000 N·m/rad
    np.testing.assert_allclose(compiled.q, np.sin(compiled.time), atol=0.02)


def test_strength_of_its_own_and_scales_are_laid_before_the_next_step():
    reference = walk()
    compiled, python = (follow(reference, strength=60.0, kind=kind) for kind in (Tracking, InPython))
    for world in (compiled, python):
        world.step(5)
        next(iter(world.controllers.values())).scale({"elbow*": 0.2}, stiffness=0.5)
        world.step(5)
    for name in ("stiffness", "damping", "low", "high"):
        mine, right = (world._stepper.extras.motors.arrays[name] for world in (compiled, python))
        np.testing.assert_array_equal(mine, right)
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-7)


def test_steps_that_track_call_no_python():
    world = follow(walk())
    world.step(2)
    assert count_calls(lambda: world.step(60)) < 20 * 60  # of `update` alone there are thousands in each step


# ---- the same bits ---------------------------------------------------------------------------------------------------


def whole(world: poise.World) -> dict[str, np.ndarray]:
    state = world.state
    return {"q": state.q, "v": state.v, **{name: np.asarray(array) for name, array in state.slots.items()}}


def assert_same(one: poise.World, other: poise.World) -> None:
    found, right = whole(one), whole(other)
    assert found.keys() == right.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], right[name], err_msg=name)


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
def test_hooks_and_single_steps_change_no_bits(by):
    reference = walk()
    at_once, singly, hooked = (follow(reference, by=by) for _ in range(3))
    at_once.step(40)
    for _ in range(40):
        singly.step()
    hooked.after_step(lambda world: None)
    hooked.step(40)
    assert_same(singly, at_once)
    assert_same(hooked, at_once)


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda world: pickle.loads(pickle.dumps(world))])
def test_copies_go_on_with_the_same_bits(by, again):
    world = follow(walk(), by=by)
    world.step(13)
    twin, state = again(world), world.state
    world.step(20)
    twin.step(2)
    assert count_calls(lambda: twin.step(18)) < 20 * 18
    assert_same(twin, world)
    world.state = state
    world.step(20)
    assert_same(twin, world)


@pytest.mark.parametrize("by", ["motors", "drives", "accelerations"])
def test_a_step_that_fails_leaves_nothing_of_what_was_set_for_it(by):
    world, twin = (follow(walk(), by=by) for _ in range(2))
    for one in (world, twin):
        one.step(7)
    before = whole(world)
    world.tau[8] = np.inf
    with pytest.raises(poise.Diverged):
        world.step(3)
    after = whole(world)
    for name in before:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    for name in ("target", "speed", "stiffness", "low"):
        mine, right = (one._stepper.extras.motors.arrays[name] for one in (world, twin))
        np.testing.assert_array_equal(mine, right, err_msg=name)
    world.tau[8] = 0.0
    for one in (world, twin):
        one.step(7)
    assert_same(world, twin)


def test_standing_still_after_the_end_of_a_motion_is_compiled_too():
    scene = poise.Scene()
    stand(scene, by="drives")
    world = scene.build(dt=DT)
    world.step(int(3.5 / DT))
    tracking = next(iter(world.controllers.values()))
    wanted = tracking.reference.coordinates(world.model, 3.5)
    motion = difference(world.model, wanted.q, world.q)
    assert np.abs(motion[6:]).max() < 0.1
