"""Springs and dampers: harmonic motion, backward Euler to rounding, and where explicit damping must fail."""

from __future__ import annotations

import numpy as np
import pytest

from poise import dynamics
from poise.dynamics import Drive
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene

MASS, STIFFNESS, DAMPING = 2.0, 50.0, 3.0


def slider(stiffness: float = 0.0, damping: float = 0.0, rest: float = 0.0, gravity: float = 0.0) -> Model:
    joint = Joint("slider", axis=(0.0, 0.0, 1.0), stiffness=stiffness, damping=damping, spring=rest)
    return Scene(gravity=(0.0, 0.0, -gravity), bodies=[Body("cart", joints=[joint], inertia=Inertia(MASS))]).compile()


def test_harmonic_motion() -> None:
    """x = x₀ + (a − x₀) cos ωt about the sagged rest; RK4 at 1 ms: (ωh)⁴ · ωt / 120 = 1e-10."""
    model, omega = slider(STIFFNESS, rest=0.3, gravity=9.81), np.sqrt(STIFFNESS / MASS)
    middle = 0.3 - MASS * 9.81 / STIFFNESS
    path = dynamics.simulate(model, 5.0, q=[0.8], dt=1e-3, every=50)
    np.testing.assert_allclose(path.q[:, 0], middle + (0.8 - middle) * np.cos(omega * path.time), atol=1e-9)
    energy = dynamics.energy(model, path.q, path.v).total
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


def test_damped_motion() -> None:
    """Below critical damping: e^(−ct/2m), frequency √(k/m − c²/4m²)."""
    model, decay = slider(STIFFNESS, DAMPING), DAMPING / (2 * MASS)
    omega = np.sqrt(STIFFNESS / MASS - decay**2)
    path = dynamics.simulate(model, 3.0, q=[0.5], dt=1e-3, every=50)
    wave = np.cos(omega * path.time) + decay / omega * np.sin(omega * path.time)
    np.testing.assert_allclose(path.q[:, 0], 0.5 * np.exp(-decay * path.time) * wave, atol=1e-10)


def backward_euler(x: float, v: float, h: float, k: float, c: float, goal: float) -> tuple[float, float]:
    """m (v⁺ − v)/h = −k (x⁺ − goal) − c v⁺, x⁺ = x + h v⁺."""
    speed = (MASS * v - h * k * (x - goal)) / (MASS + h * c + h * h * k)
    return x + h * speed, speed


@pytest.mark.parametrize("driven", [False, True], ids=["spring", "drive"])
@pytest.mark.parametrize(("stiffness", "damping", "h"), [(50.0, 3.0, 0.01), (1e8, 1e5, 0.02), (1e-3, 0.0, 1.0)])
def test_implicit_spring_is_backward_euler(driven: bool, stiffness: float, damping: float, h: float) -> None:
    """To rounding, at any stiffness; the force that is reported is the one that was met."""
    model = slider() if driven else slider(stiffness, damping, rest=0.2)
    sim = dynamics.Simulation(model, dt=h, method="semi_implicit")
    if driven:
        sim.drive = Drive(stiffness, damping, [0.2])
    sim.q[0], sim.v[0] = 0.5, -1.0
    x, v = 0.5, -1.0
    for _ in range(200):
        before = v
        x, v = backward_euler(x, v, h, stiffness, damping, 0.2)
        sim.step()
        assert sim.q[0] == pytest.approx(x, rel=1e-12, abs=1e-13)
        assert sim.v[0] == pytest.approx(v, rel=1e-9, abs=1e-11)
        assert sim.drive_forces[0] == pytest.approx(MASS * (v - before) / h, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("ratio", [0.5, 1.9, 2.1, 50.0])
def test_damping_explicit_and_implicit(ratio: float) -> None:
    """h kd/m = ratio. Explicit: v shrinks by 1 − ratio a step, so that it grows past 2 (LIU eq. 11). Implicit: by
    m/(m + h kd), at any ratio.
    """
    h = 0.01
    kd = ratio * MASS / h
    implicit = dynamics.Simulation(slider(0.0, kd), dt=h)
    implicit.v[0] = 1.0
    explicit = dynamics.Simulation(slider(), dt=h)
    explicit.v[0] = 1.0
    for n in range(1, 21):
        implicit.step()
        assert implicit.v[0] == pytest.approx((MASS / (MASS + h * kd)) ** n, rel=1e-12)
        explicit.tau[0] = -kd * explicit.v[0]
        explicit.step()
        assert explicit.v[0] == pytest.approx((1.0 - ratio) ** n, rel=1e-9)
    assert (abs(explicit.v[0]) > 1.0) == (ratio > 2.0)


def test_rk4_damping_has_its_own_limit() -> None:
    """RK4 is explicit too: stable up to h kd/m = 2.785, the edge of its region on the real axis."""
    for ratio, grows in ((2.7, False), (2.9, True)):
        h = 0.01
        path = dynamics.simulate(slider(0.0, ratio * MASS / h), 200 * h, v=[1.0], dt=h, every=200)
        z = -ratio
        factor = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
        assert path.v[-1, 0] == pytest.approx(factor**200, rel=1e-9)
        assert (abs(path.v[-1, 0]) > 1.0) == grows


def test_ball_spring_is_an_isotropic_torsion_spring() -> None:
    """A sphere on a ball joint with a spring turns about a fixed axis as a torsion pendulum does, through 2.5 rad."""
    inertia, k, axis = 0.05, 4.0, np.array([0.6, -0.48, 0.64])
    joint = Joint("ball", stiffness=k)
    body = Body("bob", joints=[joint], inertia=Inertia(1.0, moments=(inertia,) * 3))
    model = Scene(gravity=(0.0, 0.0, 0.0), bodies=[body]).compile()
    quat = np.array([np.cos(1.25), *(np.sin(1.25) * axis)])
    path = dynamics.simulate(model, 2.0, q=quat, dt=5e-4, every=100)
    angle = 2.5 * np.cos(np.sqrt(k / inertia) * path.time)
    want = np.concatenate([np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None] * axis], axis=1)
    np.testing.assert_allclose(path.q * np.sign((path.q * want).sum(axis=1))[:, None], want, atol=1e-7)
    np.testing.assert_allclose(dynamics.energy(model, quat, np.zeros(3)).spring, 0.5 * k * 2.5**2, rtol=1e-12)


def test_implicit_spring_on_a_ball_is_stable_at_any_stiffness() -> None:
    body = Body("bob", joints=[Joint("ball", stiffness=1e8)], inertia=Inertia(1.0, moments=(0.01, 0.02, 0.025)))
    model = Scene(gravity=(0.0, 0.0, 0.0), bodies=[body]).compile()
    sim = dynamics.Simulation(model, dt=0.01)
    sim.q[...] = (np.cos(1.0), 0.0, np.sin(1.0), 0.0)
    sim.step(50)
    assert np.abs(dynamics.difference(model, model.q_rest, sim.q)).max() < 1e-6
    assert np.abs(sim.v).max() < 1e-3
