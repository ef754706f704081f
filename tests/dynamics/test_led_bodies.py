"""Kinematic bodies: they follow their paths to the bit, what hangs from them feels it, and RK4 keeps its order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from poise import dynamics
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.motion.path import FunctionPath, PathPoint

LENGTH, GRAVITY = 0.7, 9.81


class Shaken:
    """A support that swings along x and z, with its exact derivatives."""

    amplitude = np.array((0.2, 0.0, 0.1))
    rates = np.array((3.0, 1.0, 7.0))

    def __call__(self, time: float) -> PathPoint:
        a, w, t = self.amplitude, self.rates, time
        still = np.zeros(3)
        position, velocity = a * np.sin(w * t), a * w * np.cos(w * t)
        return PathPoint(position, np.array((1.0, 0, 0, 0)), velocity, still, -a * w * w * np.sin(w * t), still)


def pendulum_on(path: object) -> Model:
    """A point mass on a rod that turns about y under a support that is led."""
    bob = Inertia(1.3, (0.0, 0.0, -LENGTH))
    bodies = [
        Body("support", motion="kinematic", path=path, inertia=Inertia(5.0, moments=(1.0, 1.0, 1.0))),
        Body("rod", "support", joints=[Joint("hinge", axis=(0.0, 1.0, 0.0))], inertia=bob),
    ]
    return Scene(gravity=(0.0, 0.0, -GRAVITY), bodies=bodies).compile()


def swing(path: Shaken, theta: float, speed: float, times: np.ndarray) -> np.ndarray:
    """The closed equation: L θ″ = −(g + z̈) sin θ + ẍ cos θ, with the bob at (−L sin θ, −L cos θ) from the support."""

    def rate(t: float, y: np.ndarray) -> tuple[float, float]:
        x, _, z = path(t).acceleration
        return y[1], (-(GRAVITY + z) * np.sin(y[0]) + x * np.cos(y[0])) / LENGTH

    answer = solve_ivp(rate, (0.0, times[-1]), (theta, speed), "DOP853", times, rtol=1e-13, atol=1e-14)
    return answer.y


def run(model: Model, dt: float, steps: int, method: str = "rk4") -> dynamics.Simulation:
    sim = dynamics.Simulation(model, dt=dt, method=method)
    sim.q[7], sim.v[6] = 0.4, -1.0
    sim.step(steps)
    return sim


def test_pendulum_on_a_shaken_support() -> None:
    model, path = pendulum_on(Shaken()), Shaken()
    truth = swing(path, 0.4, -1.0, np.array([0.0, 2.0]))[:, -1]
    errors = []
    for count in (200, 400, 800):
        sim = run(model, 2.0 / count, count)
        errors.append(abs(sim.q[7] - truth[0]) + abs(sim.v[6] - truth[1]))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert errors[-1] < 1e-7
    assert np.all(orders > 3.8), (errors, orders)


def test_semi_implicit_is_of_first_order() -> None:
    model, path = pendulum_on(Shaken()), Shaken()
    truth = swing(path, 0.4, -1.0, np.array([0.0, 2.0]))[:, -1]
    errors = [abs(run(model, 2.0 / n, n, "semi_implicit").q[7] - truth[0]) for n in (2000, 4000, 8000)]
    assert np.all(np.abs(np.log2(np.array(errors[:-1]) / errors[1:]) - 1.0) < 0.2), errors


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_support_is_where_its_path_is(method: str) -> None:
    path = Shaken()
    sim = run(pendulum_on(path), 0.01, 37, method)
    point = path(sim.time)
    np.testing.assert_array_equal(sim.q[:7], (*point.position, *point.quat_wxyz))
    np.testing.assert_array_equal(sim.v[:6], (*point.velocity, *point.angular_velocity))


def test_turning_table_flings_outwards() -> None:
    """A slider on a turntable, from rest: r = r₀ cosh Ωt, a closed form of the centrifugal force."""
    omega, start = 3.0, 0.2
    turning = FunctionPath(lambda t: ((0.0, 0.0, 0.0), (np.cos(omega * t / 2), 0.0, 0.0, np.sin(omega * t / 2))))
    table = Body("table", motion="kinematic", path=turning, inertia=Inertia(1.0, moments=(1, 1, 1)))
    bead = Body("bead", "table", joints=[Joint("slider", axis=(1.0, 0.0, 0.0))], inertia=Inertia(0.5))
    model = Scene(bodies=[table, bead]).compile()
    sim = dynamics.Simulation(model, dt=1e-3, method="rk4")
    sim.q[7] = start
    sim.step(1000)
    # FunctionPath's differences are good to some 1e-8 of an acceleration
    assert sim.q[7] == pytest.approx(start * np.cosh(omega), rel=1e-7)
    assert sim.v[6] == pytest.approx(start * omega * np.sinh(omega), rel=1e-7)


def test_tilted_parent_of_a_led_body() -> None:
    """A path is in its parent's frame: a body led below a moving one rides along."""
    bodies = [
        Body("arm", joints=[Joint("hinge", axis=(0.0, 1.0, 0.0))], inertia=Inertia(1.0, moments=(0.1, 0.1, 0.1))),
        Body("led", "arm", motion="kinematic", path=Shaken(), inertia=Inertia(1.0, moments=(0.1, 0.1, 0.1))),
    ]
    sim = dynamics.Simulation(Scene(bodies=bodies).compile(), dt=1e-3, method="rk4")
    sim.v[0] = 2.0
    sim.step(500)
    poses = dynamics.bodies(sim.model, sim.q, sim.v)
    arm, led = sim.model.body_index("arm"), sim.model.body_index("led")
    point = Shaken()(sim.time)
    want = poses.rotation[arm] @ point.position
    np.testing.assert_allclose(poses.position[led], want, atol=1e-14)
    w = poses.twist[arm, :3]
    np.testing.assert_allclose(
        poses.twist[led, 3:], np.cross(w, want) + poses.rotation[arm] @ point.velocity, atol=1e-13
    )


def test_led_body_needs_the_force_that_inverse_dynamics_says() -> None:
    """Momentum balance of support and bob: the force on the support is m a of both, less their weight."""
    model, path, time = pendulum_on(Shaken()), Shaken(), 0.3
    point = path(time)
    q = np.array([*point.position, *point.quat_wxyz, 0.4])
    v = np.array([*point.velocity, *point.angular_velocity, -1.0])
    led = np.array([*point.acceleration, *point.angular_acceleration, 0.0])
    a = dynamics.forward_dynamics(model, q, v, prescribed=led)
    force = dynamics.inverse_dynamics(model, q, v, a)
    x, _, z = point.acceleration
    bob_x = x - LENGTH * (a[6] * np.cos(0.4) - np.sin(0.4))
    bob_z = z + LENGTH * (a[6] * np.sin(0.4) + np.cos(0.4))
    np.testing.assert_allclose(force[0], 5.0 * x + 1.3 * bob_x, rtol=1e-12)
    np.testing.assert_allclose(force[2], 5.0 * (z + GRAVITY) + 1.3 * (bob_z + GRAVITY), rtol=1e-12)
    assert abs(force[6]) < 1e-12
