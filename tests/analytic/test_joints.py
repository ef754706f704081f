"""Screw, planar, cylindrical, universal and slider joints against equations of motion derived without them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from poise import dynamics
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene

G = 9.81


def test_screw_under_gravity() -> None:
    """A nut on a vertical screw: (I + m p²) θ″ = −m g p, constant, so that RK4 is exact to rounding."""
    mass, moment, pitch = 1.5, 0.02, 0.05
    body = Body("nut", joints=[Joint("screw", pitch=pitch)], inertia=Inertia(mass, moments=(0.02, 0.02, moment)))
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[body]).compile()
    a = -mass * G * pitch / (moment + mass * pitch**2)
    path = dynamics.simulate(model, 2.0, dt=0.01, every=50)
    np.testing.assert_allclose(path.q[:, 0], 0.5 * a * path.time**2, atol=1e-12 * abs(a) * 4)
    at = dynamics.bodies(model, path.q[-1], path.v[-1])
    np.testing.assert_allclose(at.position[0], (0.0, 0.0, pitch * path.q[-1, 0]), atol=1e-12)
    np.testing.assert_allclose(at.twist[0], np.array([0, 0, 1, 0, 0, pitch]) * path.v[-1, 0], atol=1e-11)


@pytest.mark.parametrize("incline", [0.3, 1.2])
def test_screw_and_slider_on_an_incline(incline: float) -> None:
    """Only the part of gravity along the axis works: g sin α; a slider feels all of it, a screw its share."""
    mass, moment, pitch = 0.8, 0.01, -0.1
    axis = (np.cos(incline), 0.0, -np.sin(incline))
    inertia = Inertia(mass, moments=(moment, moment, moment))
    for joint, want in (
        (Joint("slider", axis=axis), G * np.sin(incline)),
        (Joint("screw", axis=axis, pitch=pitch), mass * G * pitch * np.sin(incline) / (moment + mass * pitch**2)),
    ):
        model = Scene(gravity=(0.0, 0.0, -G), bodies=[Body("body", joints=[joint], inertia=inertia)]).compile()
        np.testing.assert_allclose(dynamics.forward_dynamics(model, [0.4], [2.0]), want, rtol=1e-13)


def test_screw_with_the_mass_off_its_axis() -> None:
    """With the centre at radius r a screw across gravity is a pendulum: (I + m r² + m p²) θ″ = −m g r sin θ."""
    mass, moment, radius, pitch = 0.8, 0.01, 0.3, 0.07
    joint = Joint("screw", axis=(0.0, 1.0, 0.0), pitch=pitch)
    body = Body("body", joints=[joint], inertia=Inertia(mass, (0.0, 0.0, -radius), (moment, moment, moment)))
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[body]).compile()
    for angle in np.linspace(-3, 3, 13):
        want = -mass * G * radius * np.sin(angle) / (moment + mass * radius**2 + mass * pitch**2)
        np.testing.assert_allclose(dynamics.forward_dynamics(model, [angle], [5.0]), want, rtol=1e-12, atol=1e-12)


def test_cylindrical_joint() -> None:
    """Slide and turn do not know each other: free fall along the axis, a compound pendulum about it."""
    mass, moment, arm = 1.1, 0.05, 0.2
    axis = np.array([0.6, 0.0, 0.8])
    joint = Joint("cylindrical", axis=tuple(axis))
    across = np.array([-0.8, 0.0, 0.6])
    body = Body("body", joints=[joint], inertia=Inertia(mass, tuple(arm * across), (moment, moment, moment)))
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[body]).compile()
    path = dynamics.simulate(model, 1.0, q=[0.2, 0.5], v=[1.0, -2.0], dt=1e-3, every=100)
    pull = -G * axis[2]
    np.testing.assert_allclose(path.q[:, 0], 0.2 + path.time + 0.5 * pull * path.time**2, atol=1e-12)
    # height of the centre along `across` decides: potential m g' r cos θ, g' = g · 0.6
    rate = lambda t, y: (y[1], mass * G * 0.6 * arm * np.sin(y[0]) / (moment + mass * arm**2))  # noqa: E731
    truth = solve_ivp(rate, (0, 1), (0.5, -2.0), "DOP853", path.time, rtol=1e-13, atol=1e-13).y
    np.testing.assert_allclose(path.q[:, 1], truth[0], atol=1e-9)


class Puck:
    """A body in a plane whose centre is off the joint: Newton in the plane, Euler about the centre, by hand."""

    mass, moment, offset = 0.9, 0.04, 0.15

    def model(self) -> Model:
        joint = Joint("planar", axis=(0.0, -1.0, 0.0), axis2=(1.0, 0.0, 0.0))  # plane x-z: x along x, y along z
        inertia = Inertia(self.mass, (self.offset, 0.0, 0.0), (self.moment, self.moment, self.moment))
        return Scene(gravity=(0.0, 0.0, -G), bodies=[Body("puck", joints=[joint], inertia=inertia)]).compile()

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Forces act at the joint's origin: c = p + r(cos θ, sin θ), m c″ = F + m g, I θ″ = T − arm × F."""
        m, r, (s, c) = self.mass, self.offset, (np.sin(q[2]), np.cos(q[2]))
        # unknowns x″, y″, θ″
        A = np.array([[m, 0.0, -m * r * s], [0.0, m, m * r * c], [0.0, 0.0, self.moment]])
        b = np.array([tau[0] + m * r * c * v[2] ** 2, tau[1] + m * r * s * v[2] ** 2 - m * G, 0.0])
        b[2] = tau[2] - (r * c * tau[1] - r * s * tau[0])
        return np.linalg.solve(A, b)


def test_planar_joint() -> None:
    puck, model, rng = Puck(), Puck().model(), np.random.default_rng(0)
    frame = np.array(model.joint_frame[0]).reshape(3, 3)
    np.testing.assert_allclose(frame[:, 2], (0.0, 0.0, 1.0), atol=1e-15)
    for _ in range(30):
        q, v, tau = rng.normal(size=(3, 3)) * 2
        got = dynamics.forward_dynamics(model, q, v, tau)
        np.testing.assert_allclose(got, puck.acceleration(q, v, tau), rtol=1e-11, atol=1e-11)
    # thrown, it goes along a parabola and spins at a constant rate about its centre
    path = dynamics.simulate(model, 1.0, v=[1.0, 3.0, 5.0], dt=1e-3, every=100)
    com = dynamics.momentum(model, path.q, path.v).com
    start_speed = np.array([1.0, 3.0 + puck.offset * 5.0])
    np.testing.assert_allclose(path.q[:, 2], 5.0 * path.time, atol=1e-10)
    np.testing.assert_allclose(com[:, 0], puck.offset + start_speed[0] * path.time, atol=1e-10)
    np.testing.assert_allclose(com[:, 2], start_speed[1] * path.time - 0.5 * G * path.time**2, atol=1e-10)


class Gimbal:
    """A body on a universal joint (z, then the carried x) by Lagrange's equations.

    ω in the body's axes is (b′, a′ sin b, a′ cos b) for angles a about z and b about x, so that
    T = ½ I₁ b′² + ½ a′² J(b) with J = I₂ sin² b + I₃ cos² b, all about the fixed point.
    """

    mass, height = 0.7, 0.25
    moments = np.array([0.02, 0.03, 0.04])

    def model(self) -> Model:
        joint = Joint("universal", axis=(0.0, 0.0, 1.0), axis2=(1.0, 0.0, 0.0))
        inertia = Inertia(self.mass, (0.0, 0.0, self.height), tuple(self.moments))
        return Scene(gravity=(0.0, 0.0, -G), bodies=[Body("disc", joints=[joint], inertia=inertia)]).compile()

    def rate(self, _: float, y: np.ndarray) -> np.ndarray:
        _, b, u, w = y
        i1, i2, i3 = self.moments + self.mass * self.height**2 * np.array([1.0, 1.0, 0.0])
        J = i2 * np.sin(b) ** 2 + i3 * np.cos(b) ** 2
        slope = 2 * (i2 - i3) * np.sin(b) * np.cos(b)  # dJ/db
        return np.array(
            [u, w, -slope * w * u / J, (0.5 * slope * u * u + self.mass * G * self.height * np.sin(b)) / i1]
        )


def test_universal_joint() -> None:
    gimbal, model = Gimbal(), Gimbal().model()
    start = np.array([0.3, 0.6, 4.0, -1.0])
    path = dynamics.simulate(model, 1.0, q=start[:2], v=start[2:], dt=5e-4, every=200)
    truth = solve_ivp(gimbal.rate, (0, 1), start, "DOP853", path.time, rtol=1e-13, atol=1e-13).y.T
    np.testing.assert_allclose(np.concatenate([path.q, path.v], axis=1), truth, atol=1e-8)


def test_cart_and_pole() -> None:
    """(M + m) x″ + m l (θ″ cos θ − θ′² sin θ) = F and l θ″ + x″ cos θ + g sin θ = 0, two joints on two bodies."""
    cart, bob, length = 2.0, 0.5, 0.6
    bodies = [
        Body("cart", joints=[Joint("slider", axis=(1.0, 0.0, 0.0))], inertia=Inertia(cart)),
        Body("pole", "cart", joints=[Joint("hinge", axis=(0.0, -1.0, 0.0))], inertia=Inertia(bob, (0, 0, -length))),
    ]
    model = Scene(gravity=(0.0, 0.0, -G), bodies=bodies).compile()
    for theta, speed, force in np.random.default_rng(1).normal(size=(30, 3)) * 3:
        M = np.array([[cart + bob, bob * length * np.cos(theta)], [np.cos(theta), length]])
        want = np.linalg.solve(M, [force + bob * length * speed**2 * np.sin(theta), -G * np.sin(theta)])
        got = dynamics.forward_dynamics(model, [0.3, theta], [1.0, speed], [force, 0.0])
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_wheel_and_axle() -> None:
    """Atwood's machine with the rope's inertia as an armature: a = m g / (m + I/r²) for a weight on a drum."""
    weight, reflected = 1.2, 0.8
    joint = Joint("slider", axis=(0.0, 0.0, -1.0), armature=reflected)
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[Body("weight", joints=[joint], inertia=Inertia(weight))]).compile()
    np.testing.assert_allclose(dynamics.forward_dynamics(model, [0.0], [0.0]), weight * G / (weight + reflected))
    assert dynamics.energy(model, [0.0], [2.0]).kinetic == pytest.approx(0.5 * (weight + reflected) * 4.0, rel=1e-15)
    np.testing.assert_allclose(dynamics.momentum(model, [0.0], [2.0]).linear, (0.0, 0.0, -2.0 * weight))


def test_thrown_body_falls_on_a_parabola() -> None:
    body = Body("stone", joints=[Joint("free")], inertia=Inertia(3.0, (0.1, -0.2, 0.3), (0.3, 0.4, 0.5)))
    model = Scene(gravity=(0.0, 0.0, -G), bodies=[body]).compile()
    path = dynamics.simulate(model, 1.0, v=[1.0, 2.0, 3.0, 2.0, -3.0, 1.0], dt=1e-3, every=100)
    com, momenta = dynamics.momentum(model, path.q, path.v).com, dynamics.momentum(model, path.q, path.v)
    speed = momenta.linear[0] / 3.0
    t = path.time[:, None]
    np.testing.assert_allclose(com, com[0] + speed * t + 0.5 * np.array([0, 0, -G]) * t * t, atol=1e-9)
    np.testing.assert_allclose(momenta.angular, np.broadcast_to(momenta.angular[0], (len(t), 3)), atol=1e-9)
