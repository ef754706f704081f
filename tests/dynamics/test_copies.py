"""Copies, pickles and threads: what is copied stands on its own, what is dropped is freed, what is shared is safe."""

from __future__ import annotations

import copy
import dataclasses
import gc
import multiprocessing
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poise import dynamics
from poise.dynamics import Drive, Simulation
from poise.model.model import Model
from poise.model.scene import Scene
from poise.model.shapes import sphere
from poise.motion.path import OrbitPath
from strategies import one_joint_scene, random_q, random_v

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
}
each_way = pytest.mark.parametrize("duplicate", WAYS.values(), ids=WAYS)


@pytest.fixture
def model() -> Model:
    return one_joint_scene("universal", seed=3).compile()


def busy(model: Model) -> Simulation:
    """A simulation with everything acting, a few steps on its way."""
    rng = np.random.default_rng(0)
    sim = Simulation(model, dt=0.002)
    sim.q[...], sim.v[...], sim.tau[...] = random_q(model, rng), random_v(model, rng), random_v(model, rng)
    sim.forces[...] = rng.normal(size=sim.forces.shape)
    sim.drive = Drive(3.0, 0.5, model.q_rest)
    sim.step(3)
    return sim


@each_way
def test_a_copied_simulation_goes_its_own_way_and_the_same_way(model: Model, duplicate: Callable[[Any], Any]) -> None:
    sim = busy(model)
    twin = duplicate(sim)
    start = sim.state
    assert twin.state.same_bits(start)
    np.testing.assert_array_equal(twin.drive_forces, sim.drive_forces)
    np.testing.assert_array_equal(twin.a, sim.a)
    twin.step(20)
    assert sim.state.same_bits(start)
    end = twin.state
    assert not end.same_bits(start)
    sim.step(20)
    assert sim.state.same_bits(end)
    del sim
    gc.collect()
    twin.step()
    assert not twin.state.same_bits(end)


def test_a_simulation_that_follows_a_path_keeps_following_it() -> None:
    scene = Scene()
    scene.add(sphere(0.1), name="led", kinematic=OrbitPath(start=(1, 0, 0), speed=2.0))
    sim = Simulation(scene.compile(), dt=0.01)
    sim.step(5)
    twin = copy.deepcopy(sim)
    sim.step(5)
    twin.step(5)
    assert twin.state.same_bits(sim.state)
    assert 0.0 < sim.q[1] < 1.0


def test_what_a_subclass_adds_is_copied_too(model: Model) -> None:
    class Counted(Simulation):
        calls = 0

        def step(self, n: int = 1) -> None:
            self.calls += n
            super().step(n)

    sim = Counted(model, dt=0.01)
    sim.step(2)
    twin = copy.copy(sim)
    twin.step(3)
    assert (sim.calls, twin.calls) == (2, 5)


def _end_of(sim: Simulation) -> bytes:
    sim.step(50)
    return sim.q.tobytes() + sim.v.tobytes()


def test_a_simulation_travels_to_another_process(model: Model) -> None:
    sim = busy(model)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_end_of, (sim,))
    assert there == _end_of(sim)


def test_method_and_model_are_settled_and_the_step_is_checked(model: Model) -> None:
    sim = Simulation(model, dt=0.01)
    for name, value in (("method", "rk4"), ("model", model)):
        with pytest.raises(AttributeError):
            setattr(sim, name, value)
    for wrong in (0.0, -1.0, np.nan, "soon"):
        with pytest.raises(ValueError, match="dt"):
            sim.dt = wrong
    sim.dt = 0.02
    sim.step(2)
    assert sim.time == 0.04


@each_way
def test_copies_of_a_model_cannot_be_changed_either(model: Model, duplicate: Callable[[Any], Any]) -> None:
    twin = duplicate(model)
    assert twin.digest() == model.digest()
    for name, array in twin.arrays().items():
        assert not array.flags.writeable, name
    q, v = random_q(model, np.random.default_rng(1)), np.ones(model.nv)
    np.testing.assert_array_equal(dynamics.forward_dynamics(twin, q, v), dynamics.forward_dynamics(model, q, v))


def test_a_replaced_field_is_held_like_the_others(model: Model) -> None:
    mine = np.zeros(3)
    floating = dataclasses.replace(model, gravity=mine)
    mine[2] = -100.0
    assert not floating.gravity.any()
    assert not dynamics.gravity_forces(floating, model.q_rest).any()
    assert dynamics.gravity_forces(model, model.q_rest).any()
    lunar = dataclasses.replace(model, gravity=(0, 0, -1.62))
    assert lunar.gravity.tolist() == [0.0, 0.0, -1.62]
    view = mine.view()
    view.flags.writeable = False
    kept = dataclasses.replace(model, gravity=view)
    mine[2] = 5.0
    assert kept.gravity[2] == -100.0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("q_zero", np.zeros(0), "q_zero has 0 elements"),
        ("dof_damping", np.zeros(9), "dof_damping has 9 elements; the others make it"),
        ("link_dof_start", np.zeros(1, np.int32), "link_dof_start has 1 elements"),
        ("primitive_axis", np.zeros((7, 3)), "primitive_axis has 7 elements"),
        ("gravity", np.zeros(2), "gravity has shape"),
        ("gravity", "down", "gravity must be an array of numbers, not 'down'"),
    ],
)
def test_fields_that_kernels_would_read_past_are_refused(model: Model, field: str, value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        dataclasses.replace(model, **{field: value})


def test_models_are_freed_once_nobody_holds_them() -> None:
    """Memory that functions keep for a model goes with it."""
    model = one_joint_scene("ball", seed=1).compile()
    q, v = model.q_rest, np.zeros(model.nv)
    dynamics.forward_dynamics(model, q, v)
    dynamics.forward_dynamics(model, [q, q], v, dtype=np.float32)
    dynamics.mass_matrix(model, q)
    dynamics.energy(model, q, v)
    dynamics.bodies(model, q)
    dynamics.jacobian(model, q, 0)
    dynamics.response(model, q, v)
    dynamics.displaced(model, q, v)
    Simulation(model).step()
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


CALLS: dict[str, Callable[[Any], Any]] = {
    "simulate": lambda m: dynamics.simulate(m, 1.0),
    "Simulation": Simulation,
    "difference": lambda m: dynamics.difference(m, [0.0], [0.0]),
    "response": lambda m: dynamics.response(m, [0.0], [0.0]),
    "force_delta": lambda m: dynamics.force_delta(m, [0.0], 0, (1, 0, 0)),
    "torque_delta": lambda m: dynamics.torque_delta(m, [0.0], 0),
    "jacobian": lambda m: dynamics.jacobian(m, [0.0], 0),
    "displaced": lambda m: dynamics.displaced(m, [0.0], [0.0]),
    "mass_matrix": lambda m: dynamics.mass_matrix(m, [0.0]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_scene_is_not_a_model(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"model must be a compiled model, not Scene; scene\.compile\(\) makes one"):
        call(Scene())


class Labelled(np.ndarray):
    """An array of another class."""


def test_arrays_of_any_make(model: Model) -> None:
    """Read-only, strided, of other byte orders, types and classes: all are read as the numbers that they are."""
    rng = np.random.default_rng(2)
    q, v = random_q(model, rng), random_v(model, rng)
    want = dynamics.forward_dynamics(model, q, v)
    frozen = q.copy()
    frozen.flags.writeable = False
    strided = np.repeat(q, 3)[::3]
    for other in (frozen, strided, q[::-1].copy()[::-1], q.astype(">f8"), q.view(Labelled), q.tolist(), np.ma.array(q)):
        assert np.array_equal(np.ravel(dynamics.forward_dynamics(model, other, v)), want)
    rows = np.asfortranarray(np.stack([q, q, q]))
    assert np.array_equal(dynamics.forward_dynamics(model, rows, v), np.stack([want] * 3))
    hidden = np.ma.array(q, mask=[True] + [False] * (model.nq - 1))
    with pytest.raises(ValueError, match="q is masked in places"):
        dynamics.forward_dynamics(model, hidden, v)


def test_displacements_may_run_backwards_but_not_nowhere(model: Model) -> None:
    v = np.ones(model.nv)
    there = dynamics.displaced(model, model.q_rest, v, 0.25)
    np.testing.assert_allclose(dynamics.displaced(model, there, v, -0.25), model.q_rest, atol=1e-15)
    for wrong in (np.inf, "soon", None):
        with pytest.raises(ValueError, match="dt"):
            dynamics.displaced(model, model.q_rest, v, wrong)


def test_no_thread_keeps_a_model() -> None:
    """Each thread has a workspace of its own, which goes with the model while the thread goes on."""
    models = [one_joint_scene("hinge", seed=4).compile()]
    gone = weakref.ref(models[0])
    computed, freed = threading.Barrier(5), threading.Event()
    found: list[bytes] = []

    def work() -> None:
        found.append(dynamics.gravity_forces(models[0], models[0].q_rest).tobytes())
        computed.wait(60)
        freed.wait(60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    computed.wait(60)
    models.clear()
    gc.collect()
    kept = gone()
    freed.set()
    for thread in threads:
        thread.join()
    assert kept is None
    assert len(found) == 4
    assert len(set(found)) == 1
