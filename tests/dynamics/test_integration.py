"""Integrators: what they keep, and at which order their errors fall when the step is halved."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from poise import characters, dynamics
from poise.io.mjcf import load_mjcf
from poise.model.joints import JOINTS
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from strategies import one_joint_scene, random_v

MOVING = tuple(kind for kind in JOINTS if kind != "fixed")


def humanoid(whose: str) -> Model:
    """A humanoid afloat: no gravity, no springs, no dampers. Ours has ball joints, that of dm_control hinges only."""
    if whose == "ours":
        scene = Scene()
        scene.add(characters.humanoid())
    else:
        scene = load_mjcf(Path(find_spec("dm_control").origin).parent / "suite" / "humanoid.xml")
    model = scene.compile()
    nothing = np.zeros(model.nv)
    return replace(model, gravity=np.zeros(3), dof_damping=nothing, dof_stiffness=nothing)


def momentum_error(model: Model, q: np.ndarray, v: np.ndarray, q0: np.ndarray, v0: np.ndarray) -> tuple[float, float]:
    """Relative change of linear and of angular momentum."""
    before, after = dynamics.momentum(model, q0, v0), dynamics.momentum(model, q, v)
    linear, angular = after.linear - before.linear, after.angular - before.angular
    return (
        float(np.linalg.norm(linear) / np.linalg.norm(before.linear)),
        float(np.linalg.norm(angular) / np.linalg.norm(before.angular)),
    )


@pytest.mark.parametrize("whose", ["ours", "dm_control's"])
def test_humanoid_keeps_its_momentum(whose: str) -> None:
    """Ten seconds of RK4 at 1 ms: 10 s · h⁴ · fifth derivatives stays far below 1e-7."""
    model = humanoid(whose)
    v = np.random.default_rng(0).normal(size=model.nv)
    path = dynamics.simulate(model, 10.0, v=v, dt=1e-3, every=1000)
    for q, now in zip(path.q, path.v, strict=True):
        linear, angular = momentum_error(model, q, now, path.q[0], v)
        assert linear < 1e-7
        assert angular < 1e-7
    start, end = (dynamics.energy(model, path.q[k], path.v[k]).total for k in (0, -1))
    assert abs(end - start) < 1e-7 * start


def orders(errors: list[float]) -> list[float]:
    return [float(np.log2(a / b)) for a, b in pairwise(errors)]


@pytest.mark.parametrize("whose", ["ours", "dm_control's"])
@pytest.mark.parametrize(
    ("method", "steps", "least", "most"), [("rk4", (8, 4, 2), 3.8, 5.5), ("semi_implicit", (2, 1, 0.5), 0.8, 1.3)]
)
def test_momentum_and_energy_of_humanoid_at_the_order_of_the_method(whose, method, steps, least, most) -> None:
    model = humanoid(whose)
    v = np.random.default_rng(1).normal(size=model.nv)
    found: dict[str, list[float]] = {"linear": [], "angular": [], "energy": []}
    for step in steps:
        path = dynamics.simulate(model, 0.8, v=v, dt=step * 1e-3, method=method, every=10000)
        linear, angular = momentum_error(model, path.q[-1], path.v[-1], path.q[0], v)
        start, end = (dynamics.energy(model, path.q[k], path.v[k]).total for k in (0, -1))
        for name, value in (("linear", linear), ("angular", angular), ("energy", abs(end - start) / start)):
            found[name].append(float(value))
    for name, errors in found.items():
        assert all(least <= order <= most for order in orders(errors)), (name, errors, orders(errors))


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize(("method", "least"), [("rk4", 3.8), ("semi_implicit", 0.8)])
def test_motion_of_every_joint_at_the_order_of_the_method(kind: str, method: str, least: float) -> None:
    """Distance of pose and velocity from a run with RK4 at a much smaller step, as the step is halved."""
    model = one_joint_scene(kind, seed=4).compile()
    v = 2.0 * random_v(model, np.random.default_rng(3))
    exact = dynamics.simulate(model, 0.5, v=v, dt=0.5 / 8192, every=8192)
    errors = []
    for count in (128, 256, 512):
        path = dynamics.simulate(model, 0.5, v=v, dt=0.5 / count, method=method, every=count)
        apart = dynamics.difference(model, exact.q[-1], path.q[-1])
        errors.append(float(np.linalg.norm(apart) + np.linalg.norm(path.v[-1] - exact.v[-1])))
    floor = 1e-11 * float(np.abs(exact.v[-1]).max() + 1.0)
    measured = [order for order, error in zip(orders(errors), errors[1:], strict=True) if error > floor]
    assert max(errors) < 1.0
    assert all(order >= least for order in measured), (errors, measured)
    assert measured or method == "rk4"


def spinning_top() -> Model:
    """A body that spins and tumbles fast on a ball joint, and one that does so afloat from it."""
    inertia = Inertia(1.0, (0.0, 0.0, 0.1), (0.02, 0.03, 0.01))
    bodies = [
        Body("top", joints=[Joint("ball")], inertia=inertia),
        Body("moon", "top", (0.0, 0.0, 0.3), joints=[Joint("free")], inertia=inertia),
    ]
    return Scene(bodies=bodies).compile()


def test_rk4_keeps_its_order_on_spinning_rotations() -> None:
    model = spinning_top()
    v = np.array([3.0, -2.0, 40.0, 0.1, 0.2, -0.1, 5.0, 25.0, -4.0])
    exact = dynamics.simulate(model, 0.25, v=v, dt=0.25 / 16384, every=16384)
    errors = []
    for count in (256, 512, 1024):
        path = dynamics.simulate(model, 0.25, v=v, dt=0.25 / count, every=count)
        errors.append(float(np.linalg.norm(dynamics.difference(model, exact.q[-1], path.q[-1]))))
    assert all(order >= 3.8 for order in orders(errors)), (errors, orders(errors))


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_quaternions_stay_unit(method: str) -> None:
    model = spinning_top()
    path = dynamics.simulate(model, 1.0, v=np.full(model.nv, 5.0), dt=1e-3, method=method, every=100)
    for quats in (path.q[:, :4], path.q[:, 7:11]):
        np.testing.assert_allclose(np.linalg.norm(quats, axis=1), 1.0, atol=4e-16)


def test_going_back_to_a_state_gives_the_same_bits() -> None:
    model = spinning_top()
    sim = dynamics.Simulation(model, dt=1e-3, method="rk4")
    sim.v[...] = 3.0
    sim.step(10)
    kept = sim.state
    sim.step(50)
    first = sim.state
    sim.state = kept
    for _ in range(50):
        sim.step()
    np.testing.assert_array_equal(sim.q, first.q)
    np.testing.assert_array_equal(sim.v, first.v)
    assert sim.time == pytest.approx(0.06, abs=1e-12)
