"""Closed loops in a tree: four-bar linkages, cut open at one hinge and closed by rows.

Two cranks hang side by side, a coupler joins their ends; the tree is the chain crank, coupler, crank, and two rows hold
the last crank's foot. Cranks of the same length r make a parallelogram: its coupler never turns, so it is a pendulum,

    (2 I + m r²) θ̈ = −(2 m_c s + m r) g sin θ

with I a crank's inertia about its pivot and s the way to its centre. The loop is then straight in the coordinates
(θ, −θ, θ), and nothing may open it. Cranks of different lengths make a loop that is curved: integrators leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from poise import dynamics
from poise.constraints.response.row_system import answer, see
from poise.constraints.row_parts import point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import acceleration_problem, velocity_problem
from poise.kernel.vec import Vec3
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.solve.direct import Direct

G, R, SPAN = 9.81, 0.5, 0.8
CRANK, COUPLER = 0.7, 1.9
"""kg"""
SPIN = 0.02
"""Moment of inertia of a crank about its own centre; kg·m²."""
START = 0.9
"""rad from hanging"""
RATE = 10.0
"""Errors are damped out critically at this rate (VON eq. 11); rad/s."""
State = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Linkage:
    """A linkage whose last crank has a length of its own."""

    length: float
    model: Model

    def loop(self, q: np.ndarray, v: np.ndarray, **numbers: float) -> tuple[Rows, np.ndarray]:
        """The two rows that close the loop, and its error; m."""
        world, last = (body_at(self.model, q, v, body) for body in (-1, "last"))
        foot = Vec3(0.0, 0.0, self.length / 2)  # from the centre of mass
        x, _, z = point_parts.point(world, last, Vec3(SPAN, 0.0, 0.0), foot)
        rows = Rows(self.model)
        for k, part in enumerate((x, z)):
            rows.add_part(part, (-1, "last"), id=k, **numbers)
        return rows, np.array([float(x.phi), float(z.phi)])

    def error(self, q: np.ndarray) -> np.ndarray:
        return self.loop(q, np.zeros(3))[1]

    def closed(self, theta: float) -> np.ndarray:
        """Coordinates with the first crank at an angle and the loop closed."""
        rest = fsolve(lambda rest: self.error(np.array([theta, *rest])), (-theta, theta), xtol=1e-12)
        return np.array([theta, *rest])

    def accelerations(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Of the closed linkage (KOK §4.2), its errors damped out."""
        rows, _ = self.loop(q, v, alpha=RATE**2, beta=2 * RATE)
        seen = see(rows, q, v)
        result = Direct().solve(acceleration_problem(rows, seen))
        assert result.ok
        return seen.a_free + answer(rows, q, result.lam)

    def runge_kutta(self, q: np.ndarray, v: np.ndarray, h: float) -> State:
        """A step at acceleration level; coordinates of hinges are numbers."""

        def rate(y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[3:], self.accelerations(y[:3], y[3:])])

        y = np.concatenate([q, v])
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y[:3], y[3:]

    def impulses(self, q: np.ndarray, v: np.ndarray, h: float, erp: float = 0.3) -> State:
        """A semi-implicit step at velocity level (VON eq. 10)."""
        rows, _ = self.loop(q, v, erp=erp)
        seen = see(rows, q, v, dt=h)
        result = Direct().solve(velocity_problem(rows, seen, h))
        assert result.ok
        v = v + h * seen.a_free + answer(rows, q, result.lam, dt=h)
        return dynamics.displaced(self.model, q, v, h), v


def linkage(length: float) -> Linkage:
    """All turn about y. The coupler's frame is at the first crank's end, the last crank's at its own joint."""
    first = Inertia(CRANK, (0.0, 0.0, -R / 2), (SPIN, SPIN, 0.001))
    last = Inertia(CRANK, (0.0, 0.0, length / 2), (SPIN, SPIN, 0.001))
    bar = Inertia(COUPLER, (SPAN / 2, 0.0, 0.0), (0.1, 0.1, 0.1))
    hinge = [Joint("hinge", axis=(0.0, 1.0, 0.0))]
    bodies = [
        Body("first", None, (0.0, 0.0, 0.0), joints=hinge, inertia=first),
        Body("bar", "first", (0.0, 0.0, -R), joints=hinge, inertia=bar),
        Body("last", "bar", (SPAN, 0.0, 0.0), joints=hinge, inertia=last),
    ]
    return Linkage(length, Scene(gravity=(0.0, 0.0, -G), bodies=bodies).compile())


PARALLEL, CROOKED = linkage(R), linkage(0.7)


@dataclass(frozen=True)
class Second:
    """What a second came to."""

    q: np.ndarray
    v: np.ndarray
    opened: float
    """Worst error of the loop; m."""
    leak: float
    """Worst change of energy; J."""


def run(of: Linkage, step: Callable[..., State], h: float) -> Second:
    q, v = of.closed(START), np.zeros(3)
    start = float(dynamics.energy(of.model, q, v).total)
    opened, leak = 0.0, 0.0
    for _ in range(round(1.0 / h)):
        q, v = step(q, v, h)
        opened = max(opened, float(np.abs(of.error(q)).max()))
        leak = max(leak, abs(float(dynamics.energy(of.model, q, v).total) - start))
    return Second(q, v, opened, leak)


def pendulum(time: float) -> np.ndarray:
    """(θ, θ̇) of the parallelogram."""
    inertia = 2 * (SPIN + CRANK * (R / 2) ** 2) + COUPLER * R**2
    pull = (2 * CRANK * R / 2 + COUPLER * R) * G
    found = solve_ivp(
        lambda t, y: (y[1], -pull / inertia * np.sin(y[0])), (0, time), (START, 0), "DOP853", rtol=1e-12, atol=1e-13
    )
    return found.y[:, -1]


def test_a_parallelogram_is_a_pendulum() -> None:
    """Runge-Kutta at acceleration level, to fourth order: with rates of some 5 rad/s, (5 h)⁴/120 a unit of time is 3e-9
    at h = 0.005, of angles of 1 rad, rates of 5 rad/s and energies of 10 J. The loop is closed to rounding.
    """
    theta, rate = pendulum(1.0)
    straight = np.array([1.0, -1.0, 1.0])
    coarse, fine = (run(PARALLEL, PARALLEL.runge_kutta, h) for h in (0.01, 0.005))
    off = [float(np.abs(r.q - theta * straight).max()) for r in (coarse, fine)]
    assert off[1] < 1e-7
    assert off[0] / off[1] == pytest.approx(16.0, rel=0.3)
    np.testing.assert_allclose(fine.v, rate * straight, atol=1e-6)
    assert fine.leak < 1e-7
    assert max(coarse.opened, fine.opened) < 1e-13


def test_acceleration_level_keeps_a_loop_closed_and_its_energy() -> None:
    """A curved loop: Runge-Kutta opens it, and stabilization closes it again, both to fourth order."""
    coarse, fine = (run(CROOKED, CROOKED.runge_kutta, h) for h in (0.01, 0.005))
    assert fine.opened < 1e-7
    assert fine.leak < 1e-6
    assert coarse.opened / fine.opened > 8.0  # 16 in the limit
    assert coarse.leak / fine.leak > 8.0


def test_velocity_level_keeps_a_loop_closed() -> None:
    """Semi-implicit: a step leaves ½ h² |J̇v| open, and stabilization takes the part `erp` of it away each step, so that
    h² |J̇v|/(2 erp) is the most that gathers; bodies here are slower than 5 rad/s and shorter than 1 m.
    """
    for h in (0.004, 0.002):
        result = run(CROOKED, CROOKED.impulses, h)
        assert result.opened <= 0.5 * h**2 * 25.0 / 0.3
    assert result.opened > 1e-8  # the loop is curved


def test_velocity_level_follows_the_motion_to_first_order() -> None:
    theta, _ = pendulum(1.0)
    off = [float(abs(run(PARALLEL, PARALLEL.impulses, h).q[0] - theta)) for h in (0.004, 0.002)]
    assert off[1] < 0.02
    assert off[0] / off[1] == pytest.approx(2.0, rel=0.25)


def test_without_rows_the_loop_opens() -> None:
    """The rows do it, not the tree."""
    model = CROOKED.model

    def free(q: np.ndarray, v: np.ndarray, h: float) -> State:
        v = v + h * dynamics.forward_dynamics(model, q, v)
        return dynamics.displaced(model, q, v, h), v

    assert run(CROOKED, free, 0.01).opened > 0.1


def test_an_open_loop_is_pulled_shut() -> None:
    """VON eq. 11 on an error of a centimetre, critically damped: φ = φ₀ (1 + ω t) exp(−ω t)."""
    q, v = CROOKED.closed(START), np.zeros(3)
    q[2] += 0.02
    start = CROOKED.error(q)
    h, steps = 0.005, 60
    for _ in range(steps):
        q, v = CROOKED.runge_kutta(q, v, h)
    left = (1 + RATE * h * steps) * np.exp(-RATE * h * steps)
    assert np.abs(start).max() > 5e-3
    np.testing.assert_allclose(CROOKED.error(q), start * left, atol=1e-6 * np.abs(start).max() + fourth(h))


def fourth(h: float) -> float:
    """What Runge-Kutta leaves of a loop of half a metre at rates of 10 rad/s; m."""
    return 0.5 * (RATE * h) ** 4 / 120
