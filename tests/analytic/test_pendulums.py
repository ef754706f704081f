"""Pendulums with closed forms, and double ones against Lagrange's equations written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

from poise import dynamics
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene

G = 9.81


def pendulum(length: float = 1.0) -> Model:
    """A point mass on a massless rod, turning about −y, so that it hangs at (L sin θ, −L cos θ) in x and z."""
    rod = Body("rod", joints=[Joint("hinge", axis=(0.0, -1.0, 0.0))], inertia=Inertia(2.0, (0.0, 0.0, -length)))
    return Scene(gravity=(0.0, 0.0, -G), bodies=[rod]).compile()


def bob(model: Model, q: np.ndarray) -> np.ndarray:
    """x and z of the point mass."""
    return dynamics.momentum(model, q, np.zeros(model.nv)).com[[0, 2]]


def test_known_positions() -> None:
    """Released at rest from (−1, 0). RK4 at h = 1 ms: h⁴ · 10 s · the fifth derivative (some 10² here) = 1e-9."""
    path = dynamics.simulate(pendulum(), 10.0, q=[-np.pi / 2], dt=1e-3, every=10)
    at = {round(float(t), 6): q for t, q in zip(path.time, path.q, strict=True)}
    np.testing.assert_allclose(bob(pendulum(), at[9.99]), (-0.31643647, -0.94861370), atol=1e-8)
    np.testing.assert_allclose(bob(pendulum(), at[10.0]), (-0.27508746, -0.96141921), atol=1e-8)


def test_period() -> None:
    """4 K(½)/√g = 2.36784195: the pendulum is back where it started, at rest."""
    period = 4 * ellipk(0.5) / np.sqrt(G)
    assert period == pytest.approx(2.36784195, abs=5e-9)
    path = dynamics.simulate(pendulum(), period, q=[-np.pi / 2], dt=period / 4000, every=1000)
    np.testing.assert_allclose(path.q[[0, 2, 4], 0], np.array([-1, 1, -1]) * np.pi / 2, atol=1e-9)
    assert np.abs(path.v[[0, 2, 4]]).max() < 1e-8


@pytest.mark.parametrize("amplitude", [0.1, 1.5, 3.0])
def test_elliptic_motion(amplitude: float) -> None:
    """sin(θ/2) = k sn(K − ω t), k = sin(θ₀/2)."""
    k, omega, length = np.sin(amplitude / 2), np.sqrt(G / 0.8), 0.8
    path = dynamics.simulate(pendulum(length), 3.0, q=[amplitude], dt=1e-3, every=100)
    sn = ellipj(ellipk(k * k) + omega * path.time, k * k)[0]
    np.testing.assert_allclose(path.q[:, 0], 2 * np.arcsin(k * sn), atol=1e-8)


def test_order_of_rk4() -> None:
    """The error at t = 2 falls as h⁴."""
    k = np.sin(0.75)
    sn = ellipj(ellipk(k * k) + np.sqrt(G) * 2.0, k * k)[0]
    errors = []
    for count in (100, 200, 400):
        path = dynamics.simulate(pendulum(), 2.0, q=[1.5], dt=2.0 / count, every=count)
        errors.append(abs(float(path.q[-1, 0]) - 2 * np.arcsin(k * sn)))
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 3.8), errors


class DoublePendulum:
    """Two uniform rods in a plane by Lagrange's equations; angles a of the first and b of the second from straight
    down, both absolute.
    """

    m1, m2, l1, l2 = 1.2, 0.7, 0.9, 0.6

    def model(self) -> Model:
        def rod(name: str, parent: str | None, mass: float, length: float, at: float) -> Body:
            turning = mass * length**2 / 12
            inertia = Inertia(mass, (0.0, 0.0, -length / 2), (turning, turning, 0.0))
            return Body(name, parent, (0.0, 0.0, at), joints=[Joint("hinge", axis=(0.0, -1.0, 0.0))], inertia=inertia)

        bodies = [rod("upper", None, self.m1, self.l1, 0.0), rod("lower", "upper", self.m2, self.l2, -self.l1)]
        return Scene(gravity=(0.0, 0.0, -G), bodies=bodies).compile()

    def rate(self, _: float, y: np.ndarray) -> np.ndarray:
        a, b, u, w = y
        A = (self.m1 / 3 + self.m2) * self.l1**2
        B = self.m2 * self.l2**2 / 3
        C = self.m2 * self.l1 * self.l2 / 2
        M = np.array([[A, C * np.cos(a - b)], [C * np.cos(a - b), B]])
        right = np.array(
            [
                -C * np.sin(a - b) * w * w - (self.m1 / 2 + self.m2) * G * self.l1 * np.sin(a),
                C * np.sin(a - b) * u * u - self.m2 / 2 * G * self.l2 * np.sin(b),
            ]
        )
        return np.concatenate([[u, w], np.linalg.solve(M, right)])


def test_double_pendulum() -> None:
    """Two chaotic seconds: both answers are good to 1e-11 a step, and errors grow by some e^(3 t)."""
    system, start = DoublePendulum(), np.array([2.0, 2.5, 0.5, -1.0])
    truth = solve_ivp(system.rate, (0, 2), start, "DOP853", [2.0], rtol=1e-13, atol=1e-13).y[:, -1]
    q, v = [2.0, 0.5], [0.5, -1.5]  # relative angles
    path = dynamics.simulate(system.model(), 2.0, q=q, v=v, dt=2.5e-4, every=8000)
    got = np.array([path.q[-1, 0], path.q[-1].sum(), path.v[-1, 0], path.v[-1].sum()])
    np.testing.assert_allclose(got, truth, atol=1e-8)


def test_double_pendulum_accelerations() -> None:
    system, model, rng = DoublePendulum(), DoublePendulum().model(), np.random.default_rng(0)
    for y in rng.normal(size=(50, 4)) * 3:
        a = dynamics.forward_dynamics(model, [y[0], y[1] - y[0]], [y[2], y[3] - y[2]])
        np.testing.assert_allclose([a[0], a.sum()], system.rate(0.0, y)[2:], rtol=1e-11, atol=1e-11)


def test_spherical_pendulum_on_a_circle() -> None:
    """Conical pendulum on a ball joint: it goes round at Ω² = m g L / ((I₁ − I₃) cos α), at constant height."""
    length, alpha = 0.5, 0.6
    ball = Body("bob", joints=[Joint("ball")], inertia=Inertia(1.0, (0.0, 0.0, -length), (1e-3, 1e-3, 1e-3)))
    # the small sphere adds its own inertia: I₁ = m L² + i about the pivot, I₃ = i; it turns with the arm about z
    I1, I3 = length**2 + 1e-3, 1e-3
    omega = np.sqrt(G * length / ((I1 - I3) * np.cos(alpha)))
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[ball]).compile()
    quat = np.array([np.cos(alpha / 2), 0.0, -np.sin(alpha / 2), 0.0])  # leans towards +x
    axis_in_body = np.array([np.sin(alpha), 0.0, np.cos(alpha)])
    path = dynamics.simulate(model, 2.0, q=quat, v=omega * axis_in_body, dt=1e-3, every=500)
    for t, q in zip(path.time, path.q, strict=True):
        com = dynamics.momentum(model, q, np.zeros(3)).com
        want = length * np.array([np.sin(alpha) * np.cos(omega * t), np.sin(alpha) * np.sin(omega * t), -np.cos(alpha)])
        np.testing.assert_allclose(com, want, atol=1e-9)
