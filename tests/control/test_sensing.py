"""External actions are sensed from motion, and answered through a filter (LAM §3.2)."""

from __future__ import annotations

from math import exp, inf, sqrt

import numpy as np
import pytest

import poise
from poise.control import Actuators, RotationActuator, TranslationActuator
from poise.control.disturbance_observer import filtered
from poise.motion import ConstantPath, KeyedPath
from poise.motion.rotations import quat_exp


def brick_world(dt: float = 0.002) -> poise.World:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.1, 0.3, 0.6, mass=3.0), name="brick")
    return scene.build(dt=dt)


def test_what_is_sensed_is_what_has_pushed() -> None:
    """Without a filter the correction is the negative of the external action, for a free body: of a force to rounding,
    of a torque to first order of the step.
    """
    world, rng = brick_world(), np.random.default_rng(4)
    pulls = [
        TranslationActuator("brick", ConstantPath((1, 0, 0)), 5.0, gamma=inf),
        RotationActuator("brick", ConstantPath((0, 0, 0), quat_exp((1, 0, 1))), 3.0, gamma=inf),
    ]
    world.add_controller(guide := Actuators(pulls))
    world.v[...] = rng.normal(size=6)
    world.step()
    for _ in range(20):
        force, torque, R = rng.normal(size=3), rng.normal(size=3), world.body("brick").pose[0]
        world.apply_force("brick", force, torque=torque)
        turn_before = poise.dynamics.bodies(world.model, world.q).rotation[0]
        world.step()
        turn_after = poise.dynamics.bodies(world.model, world.q).rotation[0]
        world.step()  # senses the step before
        told = guide.read(world.state)
        assert told["brick move"].correction == pytest.approx(-force, abs=1e-9)
        # a torque is seen in the axes of the body, which has turned on
        first = 2.0 * world.dt * np.linalg.norm(world.v[3:]) * (np.linalg.norm(torque) + 3.0)  # the actuator's, too
        assert told["brick turn"].correction == pytest.approx(-turn_after @ turn_before.T @ torque, abs=first), R


def test_the_filter_answers_a_lasting_force_by_1_minus_exp_whatever_the_steps() -> None:
    rng, force = np.random.default_rng(0), np.array((1.0, -2.0, 3.0))
    correction, time = np.zeros(3), 0.0
    for dt in rng.uniform(0.0, 0.3, 50):  # some of them longer than 1 / γ
        correction, time = filtered(correction, force, 5.0, float(dt)), time + float(dt)
        assert correction == pytest.approx(-force * (1.0 - exp(-5.0 * time)), rel=1e-9)
    assert np.array_equal(filtered(correction, force, 0.0, 0.1), correction)
    assert filtered(correction, force, inf, 0.1) == pytest.approx(-force, rel=1e-15)


def test_it_is_the_printed_filter_for_short_steps() -> None:
    old, force, dt = np.array((1.0, 0.0, 2.0)), np.array((0.0, 3.0, 1.0)), 1e-6
    assert filtered(old, force, 5.0, dt) == pytest.approx(-5.0 * dt * force + (1 - 5.0 * dt) * old, abs=1e-10)


def test_a_beam_on_a_hinge_learns_the_torque_of_its_weight() -> None:
    scene = poise.Scene()
    scene.hinge(None, poise.box(1.0, 0.1, 0.1, mass=2.0), name="beam", axis="y", anchor=(-0.5, 0, 0))
    sags = {}
    for gamma in (0.0, 5.0):
        world = scene.build(dt=0.002)
        turn = RotationActuator("beam", ConstantPath(), 1.0, relaxation=0.05, gamma=gamma)
        world.add_controller(guide := Actuators([turn]))
        world.step(5000)
        sags[gamma] = abs(float(world.q[0]))
    J = 2.0 * (1.0 + 0.01) / 12.0
    # without learning, sag s holds the weight: J 2α/Δt² s = m g l cos s
    assert J * turn.stiffness * sags[0.0] == pytest.approx(9.81 * np.cos(sags[0.0]), rel=1e-6)
    assert sags[5.0] < 1e-6
    assert guide.read(world.state)["beam turn"].push == pytest.approx((0.0, -9.81, 0.0), abs=1e-5)


def test_a_hit_is_not_answered_at_once() -> None:
    """The correction gives the whole impulse back, over 1/γ: a quarter of it in 0.29 / γ."""
    world = brick_world(0.001)
    world.add_controller(
        guide := Actuators([TranslationActuator("brick", ConstantPath(), 5.0, limit=1e9, gamma=2.0, alpha=1e-6)])
    )
    world.step()
    world.apply_impulse("brick", (3.0, 0, 0))
    world.step(2)
    assert guide.read(world.state)["brick move"].correction[0] == pytest.approx(-2.0 * 3.0, rel=0.01)
    assert world.v[0] == pytest.approx(1.0, rel=0.02)
    world.step(round(1000 * 0.2877 / 2.0))
    assert world.v[0] == pytest.approx(0.75, rel=0.02)


def growth(rho: float, gamma: float, ratio: float) -> float:
    """How much wider a carriage that shows 1/ρ of its inertia swings late than early; Δt / h is `ratio`, B = 1."""
    h = 0.01
    scene = poise.Scene(gravity=(0, 0, 0))
    cart = scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=1.0), axis="x", name="cart", armature=rho - 1.0)
    world = scene.build(dt=h)
    pull = TranslationActuator(cart.name, ConstantPath((0.1, 0, 0)), 1.0, relaxation=ratio * h, gamma=gamma)
    world.add_controller(Actuators([pull]))
    late = []
    for _ in range(3000):
        world.step()
        late.append(float(world.q[0]))
        if abs(late[-1]) > 2.0:
            return inf
    return float(np.ptp(late[-800:]) / np.ptp(late[:800]))


@pytest.mark.parametrize("ratio", [2.0, 5.0])
def test_without_a_filter_it_oscillates_beyond_a_known_ratio_of_inertias(ratio: float) -> None:
    """s² (1 + ρ h s) + 2β/Δt s + 2α/Δt² is stable for ρ h < B √(2/α) Δt, to first order in h / Δt."""
    limit = sqrt(2.0 / 0.1) * ratio
    assert growth(0.6 * limit, inf, ratio) < 1e-6
    assert growth(1.6 * limit, inf, ratio) == inf
    assert growth(1.6 * limit, 0.02 / (ratio * 0.01), ratio) < 0.3  # a slow filter does not


def test_between_known_rates_a_filter_oscillates_too() -> None:
    """ĉ γ² + (ĉ² + k̂ − ρ k̂) γ + ĉ k̂ > 0 with k̂ = 2α/Δt², ĉ = 2β/Δt: for B = 1 always so while ρ < 9."""
    assert growth(4.0, 3.0, 20.0) < 1e-4
    k, c, rho = 0.2 / 0.2**2, 2.0 * sqrt(0.2) / 0.2, 30.0
    low, high = np.sort(np.roots((c, c * c + k - rho * k, c * k)))
    assert growth(rho, 0.3 * low, 20.0) < 0.7
    assert growth(rho, sqrt(low * high), 20.0) == inf


def test_a_path_under_gravity_does_not_sag_after_the_time_of_adaptation() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    line = KeyedPath([0, 1], [(0, 0, 0), (20, 0, 0)])
    for gamma in (2.0, 4.0):
        world = scene.build(dt=1 / 240)
        pull = TranslationActuator("ball", line, 0.3, relaxation=0.05, gamma=gamma)
        world.add_controller(Actuators([pull]))
        world.step(round(10.0 / gamma * 240))
        # an oscillator, critically damped, under what is left of the weight: g e^(−γt) / (ω − γ)²
        left = 9.81 * exp(-10.0) / (sqrt(pull.stiffness) - gamma) ** 2
        assert abs(world.q[2]) == pytest.approx(left, rel=0.2)
        assert world.q[0] > 1.0
