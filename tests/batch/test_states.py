"""States of single worlds of a batch: worlds that are set to them go on with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.model.errors import SceneError


def falling() -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground(friction=0.7)
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 0.05))
    model = scene.compile()
    for joint, kind in zip(model.joint_names, model.joint_kinds, strict=True):
        if kind == "hinge":
            scene.motor(joint, stiffness=200.0, damping=10.0, limit=20.0)
    return scene


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_world_that_is_set_to_a_state_goes_on_with_the_same_bits(precision):
    batch = falling().build_batch(6, precision=precision, threads=1)
    rng = np.random.default_rng(1)
    batch.reset(q_noise=0.05, v_noise=0.5, rng=rng)
    batch.step(70)
    states = [batch.get_state(k) for k in range(6)]
    assert all(state.slots["warm_start/count"].sum() > 0 for state in states)
    batch.step(50)
    later, times = batch.q.copy(), batch.time.copy()
    batch.set_state([4, 1], states[2])
    batch.set_state(0, states[5])
    batch.step(50)
    np.testing.assert_array_equal(batch.q[4], later[2])
    np.testing.assert_array_equal(batch.q[1], later[2])
    np.testing.assert_array_equal(batch.q[0], later[5])
    assert batch.time[4] == times[2]
    assert batch.time[3] > times[3]


def test_states_of_a_batch_and_of_a_world_are_alike():
    scene = falling()
    batch, world = scene.build_batch(2, precision="f64", threads=1), scene.build()
    batch.step(60)
    state = batch.get_state(1)
    world.state = state
    read = world.state
    assert read.time == state.time
    for name in ("warm_start/count", "warm_start/id", "warm_start/impulse", "motors/unsaturated"):
        np.testing.assert_array_equal(read.slots[name], state.slots[name], err_msg=name)
    world.step()
    batch.step()
    # impulses of a foot are not unique: two solvers end within the tolerance, 1e-4 of the speeds
    np.testing.assert_allclose(world.q, batch.q[1], atol=1e-5)
    batch.set_state(None, world.state)
    np.testing.assert_array_equal(batch.q, np.tile(world.q, (2, 1)))


def test_without_a_warm_start_a_world_starts_from_nothing():
    scene = falling()
    batch, fresh = (scene.build_batch(1, precision="f64", threads=1) for _ in range(2))
    batch.step(60)
    state = batch.get_state(0)
    bare = poise.State(state.q, state.v, state.time)
    batch.set_state(0, bare)
    fresh.reset(q=state.q, v=state.v)
    for one in (batch, fresh):
        one.step(5)
    np.testing.assert_array_equal(batch.q, fresh.q)


def test_loops_and_controls_are_a_part():
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.loop("slider", "arm", None, axis="x", position=(0, 0, -0.5), limits=(-0.1, 0.1), name="rail")
    scene.motor("arm", stiffness=50.0, damping=1.0)
    batch = scene.build_batch(2, precision="f64", threads=1)
    batch.ctrl[:, 0] = [0.05, -0.05]
    batch.step(30)
    state = batch.get_state(0)
    assert state.slots["control"].tolist() == [0.05]
    batch.set_state(1, state)
    batch.step(30)
    np.testing.assert_array_equal(batch.q[1], batch.q[0])


def test_states_that_do_not_fit_change_nothing():
    batch = falling().build_batch(2, threads=1)
    batch.step(60)
    state, before = batch.get_state(0), batch.get_state(1)
    bad = state.copy()
    bad.slots["warm_start/id"] = bad.slots["warm_start/id"][1:]
    with pytest.raises(SceneError, match="warm_start/id"):
        batch.set_state(1, bad)
    bad = state.copy()
    bad.slots["motors/unsaturated"] = np.ones(3)
    with pytest.raises(SceneError, match="motors/unsaturated"):
        batch.set_state(1, bad)
    bad = state.copy()
    bad.q[0] = np.nan
    with pytest.raises(ValueError, match="q"):
        batch.set_state(1, bad)
    with pytest.raises(TypeError, match=r"poise\.State"):
        batch.set_state(1, state.q)
    with pytest.raises((IndexError, ValueError), match="2"):
        batch.get_state(2)
    after = batch.get_state(1)
    for name, array in before.slots.items():
        np.testing.assert_array_equal(after.slots[name], array, err_msg=name)
    np.testing.assert_array_equal(after.q, before.q)
