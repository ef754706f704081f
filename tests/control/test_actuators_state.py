"""What actuators remember is part of the state of their world, bit for bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import poise
from poise.control import Actuators, RotationActuator, Stage, TranslationActuator, Way
from poise.motion import KeyedPath
from poise.motion.rotations import quat_exp


def busy_world() -> poise.World:
    """A body that is led and turned and learns, through contacts and stages, and another one on a loop."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name="box", position=(0, 0, 0.3))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 1, 0.1))
    scene.add(poise.box(0.2, 0.2, 0.5, mass=2.0), name="post", position=(0.5, 0, 0.25))
    world = scene.build(dt=1 / 240)
    way = KeyedPath([0, 1, 2], [(0, 0, 0.3), (0.6, 0, 0.3), (1.2, 0, 0.3)], [quat_exp((0, 0, a)) for a in (0, 1, 2)])
    ring = KeyedPath(range(5), [(0, 1, 0.1), (0.3, 1.3, 0.1), (0, 1.6, 0.1), (-0.3, 1.3, 0.1), (0, 1, 0.1)], loop=True)
    options = {"relaxation": 0.04, "gamma": 5.0}
    pulls = [
        TranslationActuator("box", way, 0.15, limit=60.0, speeds={1.0: 0.5}, **options),
        RotationActuator("box", way, 0.3, **options),
        TranslationActuator("ball", ring, 0.15, **options),
    ]
    stages = [
        Stage("go", {"box move": 1.0, "box turn": 1.0}, [Way("on", arrived=False, after=0.6)], together=True),
        Stage("on", {"ball move": 2.0}, [Way("go", arrived=False, after=0.5)]),
    ]
    world.add_controller(Actuators(pulls, stages), name="guide")
    return world


def hit(world: poise.World, steps: int) -> None:
    for k in range(steps):
        if k % 50 == 20:
            world.apply_force("box", (0, 300, 100))
        world.step()


def same(a: poise.State, b: poise.State) -> bool:
    names = sorted(name for name in a.slots if name.startswith("control/"))
    assert len(names) == 9
    assert names == sorted(name for name in b.slots if name.startswith("control/"))
    return (
        np.array_equal(a.q, b.q)
        and np.array_equal(a.v, b.v)
        and a.time == b.time
        and all(a.slots[name].tobytes() == b.slots[name].tobytes() for name in names)
    )


def test_a_world_that_goes_back_goes_the_same_way_again() -> None:
    world = busy_world()
    hit(world, 130)
    kept = world.state
    hit(world, 100)  # stages change in the meantime
    after = world.state
    assert not same(kept, after)
    assert after.slots["control/guide/stage"] != kept.slots["control/guide/stage"]
    for _ in range(2):
        world.state = kept
        assert same(world.state, kept)
        hit(world, 100)
        assert same(world.state, after)


def test_without_the_slots_it_would_go_another_way() -> None:
    world = busy_world()
    hit(world, 130)
    kept = world.state
    hit(world, 100)
    after = world.state
    for name in ("parameter", "correction", "push", "velocity", "stage", "gate"):
        other = kept.copy()
        slot = other.slots[f"control/guide/{name}"]
        slot[...] = 1 - slot if name == "stage" else slot * 0.5
        world.state = other
        hit(world, 100)
        assert not np.array_equal(world.q, after.q), name


def test_copies_and_pickles_go_the_same_way() -> None:
    world = busy_world()
    hit(world, 130)
    twins = [copy.deepcopy(world), pickle.loads(pickle.dumps(world))]
    hit(world, 100)
    for twin in twins:
        hit(twin, 100)
        assert same(twin.state, world.state)


def test_a_state_in_a_file_is_the_same(tmp_path) -> None:
    world = busy_world()
    hit(world, 130)
    world.state.save(tmp_path / "state.npz", world.model)
    hit(world, 60)
    after = world.state
    world.state = poise.State.load(tmp_path / "state.npz", world.model)
    hit(world, 60)
    assert same(world.state, after)


def test_a_reset_starts_anew() -> None:
    world = busy_world()
    hit(world, 100)
    first = world.state
    world.reset()
    hit(world, 100)
    assert same(world.state, first)


def test_a_step_that_fails_leaves_what_is_remembered_alone() -> None:
    world = busy_world()
    hit(world, 30)
    kept = world.state

    def fail(state):
        raise RuntimeError("no")

    world.add_controller(fail)
    with pytest.raises(RuntimeError, match="no"):
        world.step()
    world.remove_controller("fail")
    assert same(world.state, kept)


def test_controllers_know_how_long_the_step_will_be() -> None:
    world, seen = poise.Scene().build(dt=0.5), []
    world.add_controller(lambda state: seen.append((state.time, state.dt)), name="clock")
    world.step()
    world.dt = 0.25
    world.step(2)
    assert seen == [(0.0, 0.5), (0.5, 0.25), (0.75, 0.25)]


def test_the_same_at_any_level_and_with_substeps() -> None:
    """Only the velocity level is promised to be stable at any relaxation time; at usual ones the others follow too."""
    ends = []
    for formulation in (poise.Reduced(), poise.Reduced(substeps=4), poise.Reduced(level="acceleration")):
        scene = poise.Scene()
        scene.add(poise.sphere(0.1, mass=2.0), name="ball")
        world = scene.build(formulation, dt=1 / 240)
        line = KeyedPath([0, 1], [(0, 0, 0), (2, 0, 0)])
        world.add_controller(Actuators([TranslationActuator("ball", line, 0.2, relaxation=0.05, gamma=5.0)]))
        world.step(240)
        ends.append(world.q[:3].copy())
    for end in ends[1:]:
        assert end == pytest.approx(ends[0], abs=0.02)  # first order: v h and some
