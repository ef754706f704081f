"""Worlds of separate bodies: what they remember, to the last bit, with contacts, loops, motors and kinematic bodies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from math import sin
from typing import Any

import numpy as np
import pytest

import poise
from poise.dynamics import Diverged, bodies
from poise.dynamics.maximal_bodies.body_state import OWN
from poise.formulations.maximal_coordinates.maximal_driver import ApartStepper
from poise.model.joints import JOINTS
from poise.motion import FunctionPath
from poise.sim import ContactSensor, ForcePlate, Imu, JointSensor

LEVELS = ("velocity", "acceleration")


def lift(time: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A plate that goes up and down, and to the side."""
    return (0.1 * sin(3.0 * time), 0.0, 0.05 * sin(5.0 * time)), (1.0, 0.0, 0.0, 0.0)


def tangle(level: Any = "velocity", dt: float = 1 / 200, **options: Any) -> poise.World:
    """A plate on a path, on which a box slides; an arm with a motor, tied to the box by a ball joint; a gear."""
    scene = poise.Scene()
    scene.add(poise.box(2.0, 2.0, 0.1), name="plate", kinematic=FunctionPath(lift))
    box = scene.add(poise.box(0.3, 0.2, 0.2, mass=2.0), name="box", position=(0.02, 0, 0.16))
    rod = poise.capsule(0.03, 0.3, mass=0.5)
    upper = scene.ball(None, rod, name="upper", position=(0, 0, 0.8), anchor=(0, 0, 0.2), damping=0.02)
    lower = scene.hinge(upper, rod, name="lower", position=(0, 0, -0.4), anchor=(0, 0, 0.2), axis="y", limits=(-1, 1))
    scene.loop("ball", lower, box, "tie", position=(0, 0, 0.2))
    scene.motor("lower", stiffness=5.0, damping=0.5, target=0.3, limit=3.0, name="motor")
    for name, place in (("one", 1.0), ("other", 1.4)):
        bar = poise.box(0.2, 0.05, 0.05, mass=1.0)
        scene.hinge(None, bar, axis="y", anchor=(-0.1, 0, 0), position=(place, 0, 1), name=name)
    scene.couple("one", "other", (0.0, -2.0))
    world = scene.build(poise.Maximal(level=level, **options), dt=dt)
    world.v[world.model.dof_names.index("one")] = 1.0
    world.v[world.model.dof_names.index("other")] = -0.5
    return world


def chain(formulation: Any = None, dt: float = 1 / 200) -> poise.World:
    """One joint of every kind after the other, in the air."""
    scene = poise.Scene()
    parent = None
    for k, kind in enumerate(kind for kind in JOINTS if kind not in ("fixed", "free")):
        part = poise.box(0.1, 0.15, 0.2, mass=1.0 / (1 + k), group=0, mask=0)
        axis = ((1.0, 0.2, 0.3), (0.1, 1.0, 0.2), (0.3, -0.2, 1.0))[k % 3]
        joint = poise.Joint(kind, anchor=(0, 0.02, 0.12), axis=axis, pitch=0.05 if kind == "screw" else 0.0)
        parent = scene.add(part, name=kind, parent=parent, joint=joint, position=(0.02, 0, -0.25))
    world = scene.build(formulation or poise.Maximal(), dt=dt)
    world.v[...] = np.cos(np.arange(world.model.nv))
    return world


def stepper_of(world: poise.World) -> ApartStepper:
    stepper: Any = world._stepper
    return stepper if isinstance(stepper, ApartStepper) else stepper.inner


def poses_of(world: poise.World) -> Any:
    """(n_links, 7) rotations and centres of mass of the bodies themselves."""
    return stepper_of(world).bodies.own[: OWN * world.model.n_links].reshape(-1, OWN)[:, :7].copy()


# ---- what is remembered ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_states_go_back_to_the_last_bit(level: str, tmp_path) -> None:
    world = tangle(level)
    world.step(25)
    saved = world.state
    saved.save(tmp_path / "state.npz", world.model)
    world.step(15)
    end = world.state
    for state in (saved, poise.State.load(tmp_path / "state.npz", world.model)):
        world.state = state
        assert world.state.same_bits(saved)
        world.step(15)
        assert world.state.same_bits(end)
    world.reset()
    world.v[...] = tangle(level).v
    world.step(40)
    assert world.q.tobytes() == end.q.tobytes()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda world: pickle.loads(pickle.dumps(world))])
def test_copies_and_pickles_go_the_same_way(twin: Callable[[poise.World], poise.World], level: str) -> None:
    world = tangle(level)
    world.step(20)
    other = twin(world)
    world.step(5)
    other.step(15)
    world.step(10)
    assert world.state.same_bits(other.state)


def test_a_state_of_a_tree_puts_bodies_where_its_coordinates_say() -> None:
    """And one of separate bodies is one of a tree, without their gaps."""
    tree, apart = chain(poise.Reduced()), chain()
    tree.step(20)
    apart.state = tree.state
    apart.step(10)
    fresh = chain()
    fresh.q[...], fresh.v[...] = tree.q, tree.v
    fresh.step(10)
    assert apart.q.tobytes() == fresh.q.tobytes()
    tree.state = apart.state
    tree.step(10)
    assert np.isfinite(tree.q).all()


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_written_to_coordinates_and_velocities_counts(level: str) -> None:
    """A world that has moved is after that as a fresh one is."""
    formulation = poise.Maximal(level=level)
    world, fresh = chain(formulation), chain(formulation)
    world.step(20)
    fresh.q[...] += 0.1 * np.sin(np.arange(world.model.nq))
    fresh.v[...] = np.sin(np.arange(world.model.nv))
    world.q[...], world.v[...] = fresh.q, fresh.v
    world.step(10)
    fresh.step(10)
    assert world.q.tobytes() == fresh.q.tobytes()
    assert world.v.tobytes() == fresh.v.tobytes()


def test_what_is_written_to_one_joint_moves_it_and_what_it_carries() -> None:
    world = chain()
    world.step(20)
    before, twin = bodies(world.model, world.q), copy.copy(world)
    world.q[0] += 0.3
    world.step()
    assert abs(world.q[0] - twin.q[0]) > 0.2
    moved, index = bodies(world.model, world.q), world.model.body_index("planar")
    assert np.linalg.norm(moved.position[index] - before.position[index]) > 0.05
    twin.q[...] = twin.q.copy()  # the same numbers: nothing was written
    twin.v[...] = twin.v.copy()
    again = chain()
    again.step(21)
    twin.step()
    assert twin.q.tobytes() == again.q.tobytes()


def test_what_is_written_of_velocities_leaves_bodies_where_they_are() -> None:
    world = chain(poise.Maximal(stabilization="speed", erp=0.0), dt=0.01)
    world.step(20)
    gaps = np.abs(stepper_of(world).gaps).max()
    assert gaps > 1e-6  # what would be lost
    own = poses_of(world)
    world.v[...] = 0.0
    world.dt = 1e-9
    world.step()
    assert np.abs(poses_of(world) - own).max() < 1e-7


# ---- steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_substeps_are_steps(level: str) -> None:
    world, other = tangle(level, dt=1 / 100, substeps=4), tangle(level, dt=1 / 400)
    world.step(10)
    other.step(40)
    assert np.allclose(world.q, other.q, rtol=0.0, atol=1e-12)
    assert np.allclose(world.v, other.v, rtol=0.0, atol=1e-10)


def fallen(dt: float = 1 / 240) -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(height=1.75, mass=70.0), name="hero", position=(0, 0, 1.2))
    return scene.build(poise.Maximal(), dt=dt)


def flail() -> poise.World:
    """Limbs so fast that most steps have several parts."""
    world = fallen(1 / 60)
    world.v[...] = np.random.default_rng(3).normal(scale=2.0, size=world.model.nv)
    return world


def whirl() -> poise.World:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.05, 0.05, 1.0, mass=1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.motor("arm", damping=5.0, speed=20.0, limit=30.0, name="motor")
    return scene.build(poise.Maximal(), dt=1 / 100)


def rain() -> poise.World:
    """More contacts than there is room for at first, and one that is fast."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(12):
        place = (0.3 * (k % 4), 0.3 * (k // 4), 0.3 + 0.02 * k)
        scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name=f"box {k}", position=place)
    world = scene.build(poise.Maximal(), dt=1 / 100)
    world.body("box 3").place((0.9, 0, 3.0), velocity=(0, 0, -40.0))
    return world


@pytest.mark.parametrize(("make", "n"), [(fallen, 150), (flail, 60), (whirl, 60), (rain, 50), (chain, 100)])
def test_many_steps_are_as_one_by_one(make: Callable[[], poise.World], n: int) -> None:
    many, one, called = make(), make(), make()
    called.after_step(lambda world: None)  # which takes the way through Python
    assert many._marches()
    assert not called._marches()
    many.step(n)
    for _ in range(n):
        one.step()
        called.step()
    for other in (one, called):
        assert np.array_equal(many.q, other.q)
        assert np.array_equal(many.v, other.v)
        assert np.array_equal(stepper_of(many).bodies.own, stepper_of(other).bodies.own)
        assert str(many.report().contacts) == str(other.report().contacts)


@pytest.mark.parametrize("level", LEVELS)
def test_runs_sensors_and_events_change_nothing(level: str) -> None:
    plain, run = tangle(level), tangle(level)
    _ = run.events
    plain.step(30)
    signals = {
        "joint": JointSensor("lower"),
        "imu": Imu("box"),
        "plate": ForcePlate("plate"),
        "touch": ContactSensor("box"),
        "energy": lambda world: world.report().energy.total,
    }
    recording = run.run(30 / 200, signals=signals)
    assert run.q.tobytes() == plain.q.tobytes()
    assert run.v.tobytes() == plain.v.tobytes()
    assert recording.q[-1].tobytes() == plain.q.tobytes()
    assert np.isfinite(np.asarray(recording.signals["joint"])).all()
    assert np.abs(np.asarray(recording.signals["plate"])[-1, 2]) > 1.0


def test_events_tell_of_touches() -> None:
    world = rain()
    heard: list[Any] = []
    _ = world.events
    world.after_step(lambda world: heard.extend(world.events))
    world.step(40)
    assert {name for event in heard for name in event.names} >= {"ground", "box 3"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("substeps", "watched"), [(1, False), (3, False), (1, True)])
def test_a_step_that_diverges_leaves_all_as_it_was(level: str, substeps: int, watched: bool) -> None:
    world = tangle(level, substeps=substeps)
    if watched:
        world.before_step(lambda world: None)
    world.step(20)
    before, own = world.state, stepper_of(world).bodies.own.copy()
    world.tau[-1] = np.inf
    with pytest.raises(Diverged):
        world.step(3)
    world.tau[-1] = 0.0
    assert world.state.same_bits(before)
    assert stepper_of(world).bodies.own.tobytes() == own.tobytes()
    twin = tangle(level, substeps=substeps)
    twin.step(25)
    world.step(5)
    assert world.q.tobytes() == twin.q.tobytes()


def test_a_march_that_diverges_keeps_the_last_good_state() -> None:
    world = fallen()
    world.step(30)
    before, own = world.state, stepper_of(world).bodies.own.copy()
    world.forces[3, 2] = np.inf
    with pytest.raises(Diverged):
        world.step(5)
    world.forces[3, 2] = 0.0
    assert world.q.tobytes() == before.q.tobytes()
    assert world.v.tobytes() == before.v.tobytes()
    assert stepper_of(world).bodies.own.tobytes() == own.tobytes()
    twin = fallen()
    twin.step(60)
    world.step(30)
    assert world.q.tobytes() == twin.q.tobytes()


# ---- what holds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("stabilization", ["displacement", "speed"])
def test_all_that_is_tied_stays_together(level: str, stabilization: Any) -> None:
    """Led bodies are on their paths to rounding; gaps of joints and loops are of the second order of the step."""
    dt = 1 / 200
    world = tangle(level, dt=dt, stabilization=stabilization)
    worst = tie = 0.0
    for _ in range(100):
        world.step()
        worst = max(worst, float(np.abs(stepper_of(world).gaps).max()))
        placed, model = bodies(world.model, world.q), world.model
        low, box = (model.body_index(name) for name in ("lower", "box"))
        points = ((low, (0, 0, -0.2)), (box, (-0.02, 0, 0.04)))
        ends = [placed.position[k] + placed.rotation[k] @ point for k, point in points]
        tie = max(tie, float(np.linalg.norm(ends[0] - ends[1])))
        assert np.allclose(placed.position[model.body_index("plate")], lift(world.time)[0], rtol=0.0, atol=1e-12)
        assert np.linalg.norm(world.q[model.joint_q_start[1] :][3:7]) == pytest.approx(1.0)
    assert worst < dt**2 * 20.0
    assert tie < dt**2 * 100.0
    assert abs(world.q[-2] + 2.0 * world.q[-1]) < 1e-3  # the gear


def test_a_loop_that_is_let_go_and_tied_again() -> None:
    world = tangle()
    world.step(10)
    world.loop("tie").active = False
    world.step(10)
    state = world.state
    world.loop("tie").active = True
    world.step(10)
    end = world.q.copy()
    assert np.linalg.norm(world.loop("tie").force) > 0.0
    world.state = state
    assert not world.loop("tie").active
    world.loop("tie").active = True
    world.step(10)
    assert world.q.tobytes() == end.tobytes()


def test_loops_are_attached_and_detached_on_the_way() -> None:
    world = chain()
    world.step(5)
    world.attach("planar", None, "ball", name="pin")
    saved = world.state
    pinned = bodies(world.model, world.q).position[world.model.body_index("planar")].copy()
    world.step(40)
    assert np.linalg.norm(bodies(world.model, world.q).position[world.model.body_index("planar")] - pinned) < 1e-3
    end = world.q.copy()
    world.state = saved
    world.step(40)
    assert world.q.tobytes() == end.tobytes()


@pytest.mark.parametrize("level", LEVELS)
def test_a_world_without_bodies_goes_on(level: str) -> None:
    world = poise.Scene().build(poise.Maximal(level=level), dt=0.5)
    world.step(3)
    assert world.time == 1.5
