"""Integrators of a part of a step for arbitrary accelerations: each stage computes new constraint forces.

    euler       v += h a(q, v);  q ⊕= h v                        first order, semi-implicit
    midpoint    a at half the step, from there over the whole    second order
    rk4         the classic Runge-Kutta method                   fourth order

Within a step q = q₀ ⊕ φ, and φ̇ = v except for rotations (Munthe-Kaas, see `dynamics.integrate`): the orders hold for
rotations too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from poise.formulations.acceleration_level.evaluate_rows import Looker

Array = NDArray[Any]
Accelerations = Callable[[float], "Array | None"]
"""Time → rates of the velocities of the state in the workspace; None if no forces satisfy the rows."""


def euler(at: Looker, accelerations: Accelerations, q: Array, v: Array, now: float, h: float) -> bool:
    """Semi-implicit Euler; returns whether there were forces."""
    a = accelerations(now)
    if a is None:
        return False
    speed = v + h * a
    _move(at, q, h * speed, speed, now + h)
    return True


def midpoint(at: Looker, accelerations: Accelerations, q: Array, v: Array, now: float, h: float) -> bool:
    """Explicit midpoint."""
    a = accelerations(now)
    if a is None:
        return False
    way = 0.5 * h * v
    _move(at, q, way, v + 0.5 * h * a, now + 0.5 * h)
    rate = at.carrier.rate(way)
    a = accelerations(now + 0.5 * h)
    if a is None:
        return False
    _move(at, q, h * rate, v + h * a, now + h)
    return True


def rk4(at: Looker, accelerations: Accelerations, q: Array, v: Array, now: float, h: float) -> bool:
    """The classic Runge-Kutta method."""
    rate = a = np.zeros_like(v)
    sum_rate, sum_a = np.zeros_like(v), np.zeros_like(v)
    for reach, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        way = rate * (reach * h)
        _move(at, q, way, v + a * (reach * h), now + reach * h)
        rate = at.carrier.rate(way)
        found = accelerations(now + reach * h)
        if found is None:
            return False
        a = found
        sum_rate, sum_a = sum_rate + weight * rate, sum_a + weight * a
    _move(at, q, sum_rate * (h / 6.0), v + sum_a * (h / 6.0), now + h)
    return True


def _move(at: Looker, q: Array, way: Array, v: Array, time: float) -> None:
    """Set the state to q ⊕ way, v, and kinematic bodies to their paths at that time."""
    at.carrier.move(q, way, v)
    at.place(time)


INTEGRATORS = {"euler": euler, "midpoint": midpoint, "rk4": rk4}
