"""Spinning bodies: heavy tops, steady precession, and the free asymmetric body in Jacobi's elliptic functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipj

from poise import dynamics
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene

G = 9.81


def heavy_top() -> Model:
    body = Body("top", joints=[Joint("ball")], inertia=Inertia(15.0, (0.0, 1.0, 0.0), (0.234375, 0.46875, 0.234375)))
    return Scene(gravity=(0.0, 0.0, -G), bodies=[body]).compile()


def test_heavy_top_at_one_second() -> None:
    """At 150 rad/s and h = 0.1 ms a step turns 0.015 rad: 150 · 0.015⁴ / 120 = 6e-8 a second, falling as h⁴."""
    truth = np.array([0.17334396, 0.64008859, -0.74849079])
    errors = []
    for dt in (4e-4, 2e-4, 1e-4):
        path = dynamics.simulate(heavy_top(), 1.0, v=[0.0, 150.0, -4.61538], dt=dt, every=100000)
        com = dynamics.momentum(heavy_top(), path.q[-1], path.v[-1]).com
        errors.append(float(np.abs(com - truth).max()))
    assert errors[-1] < 2e-8  # the reference has eight digits
    assert errors[0] / errors[1] > 2**3.5, errors


def top_on_hinges(lean: float) -> Model:
    """A symmetric top on three hinges in a row: precession about z, nutation about x, spin about the axis.

    Upright, the first and the last would be one: it rests leaning.
    """
    inertia = Inertia(0.4, (0.0, 0.0, 0.3), (0.003, 0.003, 0.005))
    hinges = [
        Joint("hinge", "yaw", axis=(0.0, np.sin(lean), np.cos(lean))),
        Joint("hinge", "lean", axis=(1.0, 0.0, 0.0), rest=lean),
        Joint("hinge", "spin", axis=(0.0, 0.0, 1.0)),
    ]
    quat = (np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0)
    top = Body("top", quat_wxyz=quat, joints=hinges, inertia=inertia)
    return Scene(gravity=(0.0, 0.0, -G), bodies=[top]).compile()


def top_on_ball() -> Model:
    inertia = Inertia(0.4, (0.0, 0.0, 0.3), (0.003, 0.003, 0.005))
    return Scene(gravity=(0.0, 0.0, -G), bodies=[Body("top", joints=[Joint("ball")], inertia=inertia)]).compile()


def precession(theta: float, spin: float, sign: float) -> float:
    """Ω = [I₃ω₃ ± √(I₃²ω₃² − 4 I₁ m g l cos θ)] / (2 I₁ cos θ), I₁ about the pivot."""
    I1, I3, weight = 0.003 + 0.4 * 0.3**2, 0.005, 0.4 * G * 0.3
    root = np.sqrt((I3 * spin) ** 2 - 4 * I1 * weight * np.cos(theta))
    return float((I3 * spin + sign * root) / (2 * I1 * np.cos(theta)))


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["slow", "fast"])
def test_steady_precession(sign: float) -> None:
    """Both roots, on hinges and on a ball: the lean stays, the axis goes round at Ω; accelerations vanish at once."""
    theta, spin = 0.7, 150.0
    omega = precession(theta, spin, sign)
    hinged = top_on_hinges(theta)
    rates = np.array([omega, 0.0, spin - omega * np.cos(theta)])
    a = dynamics.forward_dynamics(hinged, [0.0, theta, 0.0], rates)
    assert np.abs(a).max() < 1e-9 * max(spin, omega) ** 2
    ball = top_on_ball()
    quat = np.array([np.cos(theta / 2), np.sin(theta / 2), 0.0, 0.0])
    v = np.array([0.0, omega * np.sin(theta), spin])  # ω₃ is the whole spin about the axis
    time, dt = 0.2, 1e-4
    path = dynamics.simulate(ball, time, q=quat, v=v, dt=dt, every=500)
    twin = dynamics.simulate(hinged, time, q=[0.0, theta, 0.0], v=rates, dt=dt, every=500)
    for t, q, angles in zip(path.time, path.q, twin.q, strict=True):
        axis = dynamics.momentum(ball, q, np.zeros(3)).com / 0.3
        want = [np.sin(theta) * np.sin(omega * t), -np.sin(theta) * np.cos(omega * t), np.cos(theta)]
        np.testing.assert_allclose(axis, want, atol=1e-7)
        np.testing.assert_allclose(angles[:2], [omega * t, theta], atol=1e-7)


@pytest.mark.parametrize("joint", ["free", "ball"])
def test_free_asymmetric_body(joint: str) -> None:
    """Euler's equations, I₁ < I₂ < I₃, spinning about the stiffest axis and wobbling widely: ω in cn, sn, dn of p t."""
    inertia = np.array([0.1, 0.2, 0.28])
    body = Body("plate", joints=[Joint(joint)], inertia=Inertia(1.0, moments=tuple(inertia)))
    model = Scene(gravity=(0.0, 0.0, 0.0), bodies=[body]).compile()
    start = np.array([2.0, 0.0, 2.5])  # 2 E I₂ < L²: the motion is about the third axis
    energy2, momentum2 = float(inertia @ start**2), float((inertia * start) @ (inertia * start))
    assert momentum2 > energy2 * inertia[1]
    amplitude = np.sqrt(
        [
            (energy2 * inertia[2] - momentum2) / (inertia[0] * (inertia[2] - inertia[0])),
            (energy2 * inertia[2] - momentum2) / (inertia[1] * (inertia[2] - inertia[1])),
            (momentum2 - energy2 * inertia[0]) / (inertia[2] * (inertia[2] - inertia[0])),
        ]
    )
    rate = np.sqrt((inertia[2] - inertia[1]) * (momentum2 - energy2 * inertia[0]) / inertia.prod())
    modulus = (
        (inertia[1] - inertia[0])
        * (energy2 * inertia[2] - momentum2)
        / ((inertia[2] - inertia[1]) * (momentum2 - energy2 * inertia[0]))
    )
    spins = slice(3, 6) if joint == "free" else slice(0, 3)
    v = np.zeros(model.nv)
    v[spins] = start
    path = dynamics.simulate(model, 5.0, v=v, dt=1e-3, every=50)
    sn, cn, dn, _ = ellipj(rate * path.time, modulus)
    want = amplitude * np.stack([cn, sn, dn], axis=1)  # ω₂′ = (I₃ − I₁) ω₃ ω₁ / I₂ > 0 at the start
    np.testing.assert_allclose(path.v[:, spins], want, atol=1e-9)
    kinetic, momenta = dynamics.energy(model, path.q, path.v).kinetic, dynamics.momentum(model, path.q, path.v).angular
    np.testing.assert_allclose(kinetic, 0.5 * energy2, rtol=1e-10)
    np.testing.assert_allclose(momenta, np.broadcast_to(inertia * start, momenta.shape), atol=1e-10)


def test_flipping_plate() -> None:
    """Dzhanibekov: about the middle axis it turns over, energy and |L| unchanged; about the others it stays."""
    body = Body("plate", joints=[Joint("free")], inertia=Inertia(1.0, moments=(0.1, 0.2, 0.28)))
    model = Scene(gravity=(0.0, 0.0, 0.0), bodies=[body]).compile()
    for axis, flips in ((0, False), (1, True), (2, False)):
        v = np.full(6, 1e-3)
        v[3 + axis] = 6.0
        path = dynamics.simulate(model, 6.0, v=v, dt=1e-3, every=20)
        assert (path.v[:, 3 + axis].min() < -5.9) == flips
        kinetic = dynamics.energy(model, path.q, path.v).kinetic
        np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-8)
