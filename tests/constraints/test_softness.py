"""Soft rows are springs met at the end of a step: at every level, and back again."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from poise.constraints.softness import (
    HARD,
    Softness,
    damping_of,
    frequency_of,
    oscillator,
    spring,
    stiffness_of,
)

STIFFNESS = st.floats(0.0, 1e8)
DAMPING = st.floats(0.0, 1e6)
STEP = st.floats(1e-5, 0.1)
MASS = st.floats(1e-3, 1e3)
ERROR = st.floats(-1.0, 1.0)
SPEED = st.floats(-10.0, 10.0)


def backward_euler(k: float, c: float, h: float, m: float, x: float, v: float) -> float:
    """Velocity after a step of m v̇ = −k x − c v, both taken at its end."""
    return (m * v - h * k * x) / (m + h * c + h * h * k)


@given(STIFFNESS, DAMPING, STEP, MASS, ERROR, SPEED)
def test_a_velocity_row_is_the_backward_euler_spring(k, c, h, m, x, v) -> None:
    assume(h * k + c > 1e-6)
    soft = spring(k, c, h)
    impulse = (soft.velocity_target(x, h) - v) / (1.0 / m + soft.cfm)
    expected = backward_euler(k, c, h, m, x, v)
    # both are sums of two terms of the size of v and x/h, divided alike
    assert v + impulse / m == pytest.approx(expected, rel=1e-9, abs=1e-11 * (abs(v) + abs(x) / h))


@given(STIFFNESS, DAMPING, STEP, MASS, ERROR, SPEED)
@example(k=0.0, c=1.0, h=0.0625, m=1.0, x=0.0, v=5e-324)
def test_all_levels_say_the_same(k, c, h, m, x, v) -> None:
    assume(h * k + c > 1e-6)
    soft = spring(k, c, h)
    alpha, beta = soft.acceleration_gains(h)
    by_force = (-alpha * x - beta * v) / (1.0 / m + soft.cfm)
    by_impulse = (soft.velocity_target(x, h) - v) / (1.0 / m + soft.cfm) / h
    by_shift = (soft.position_target(x) - h * v) / (1.0 / m + soft.cfm) / h**2
    size = (abs(alpha * x) + abs(beta * v)) / (1.0 / m + soft.cfm)
    # numbers below 1e-300 have fewer digits, whatever the formula
    np.testing.assert_allclose([by_impulse, by_shift], by_force, rtol=1e-9, atol=1e-12 * size + 1e-300)


@given(st.floats(1e-3, 1e8), st.floats(1e-3, 1e6), STEP)
def test_there_and_back(k, c, h) -> None:
    soft = spring(k, c, h)
    # 1 − erp loses digits where one of the two is much the weaker
    weak = max(h * k / c, c / (h * k))
    assert stiffness_of(soft, h) == pytest.approx(k, rel=1e-12)
    assert damping_of(soft, h) == pytest.approx(c, rel=1e-14 * weak + 1e-12)


@given(st.floats(0.1, 100.0), st.floats(0.01, 3.0), st.floats(1e-3, 1e3), st.floats(1e-4, 0.01))
def test_frequency_and_ratio_there_and_back(frequency, ratio, inverse_mass, h) -> None:
    found = frequency_of(oscillator(frequency, ratio, inverse_mass, h), inverse_mass, h)
    assert found == pytest.approx((frequency, ratio), rel=1e-8)


def test_an_oscillator_swings_at_its_frequency() -> None:
    h, mass = 1e-5, 2.0
    soft = oscillator(3.0, 0.0, 1.0 / mass, h)
    x, v, crossings = 1.0, 0.0, []
    for step in range(100_000):
        v += (soft.velocity_target(x, h) - v) / (1.0 / mass + soft.cfm) / mass
        before, x = x, x + h * v
        if before > 0.0 >= x:
            crossings.append(step * h)
    # first order: the period is off by some (ω h)²
    assert np.diff(crossings).mean() == pytest.approx(1.0 / 3.0, rel=1e-4)


def test_explicit_gains_explode_where_the_row_does_not() -> None:
    """LIU eq. 11: damping alone, h c / m = 3."""
    h, m, c = 0.1, 1.0, 30.0
    soft, explicit, implicit = spring(0.0, c, h), 1.0, 1.0
    for _ in range(20):
        explicit -= h * c / m * explicit
        implicit += (soft.velocity_target(0.0, h) - implicit) / (1.0 / m + soft.cfm) / m
    assert abs(explicit) > 1e5
    assert implicit == pytest.approx((m / (m + h * c)) ** 20, rel=1e-12)


def test_hard_rows() -> None:
    assert spring(inf, 0.0, 0.01) == spring(inf, 5.0, 0.01) == HARD
    assert spring(0.0, inf, 0.01) == Softness(0.0, 0.0)
    assert stiffness_of(HARD, 0.01) == inf
    assert damping_of(Softness(0.0, 0.0), 0.01) == inf
    assert stiffness_of(Softness(0.0, 0.0), 0.01) == 0.0
    assert damping_of(HARD, 0.01) == 0.0
    with pytest.raises(ValueError, match="does not swing"):
        frequency_of(HARD, 1.0, 0.01)


def test_a_critically_damped_row_does_not_overshoot() -> None:
    h = 1e-3
    soft = oscillator(2.0, 1.0, 1.0, h)
    x, v = 1.0, 0.0
    for _ in range(2000):
        v += (soft.velocity_target(x, h) - v) / (1.0 + soft.cfm)
        x += h * v
        assert x > 0.0
    assert x < 1e-7  # (1 + ω t) exp(−ω t) is 3e-10 after 2 s, and the first-order step is a little slower


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spring(-1.0, 0.0, 0.1), "stiffness is -1.0"),
        (lambda: spring(float("nan"), 0.0, 0.1), "stiffness is nan"),
        (lambda: spring(1.0, -2.0, 0.1), "damping is -2.0"),
        (lambda: spring(0.0, 0.0, 0.1), "no row"),
        (lambda: spring(1.0, 1.0, 0.0), "dt is 0.0"),
        (lambda: spring(1.0, 1.0, inf), "dt is inf"),
        (lambda: oscillator(0.0, 1.0, 1.0, 0.1), "frequency is 0.0"),
        (lambda: oscillator(1.0, -1.0, 1.0, 0.1), "ratio is -1.0"),
        (lambda: oscillator(1.0, 1.0, 0.0, 0.1), "inverse_mass is 0.0"),
        (lambda: Softness(1.5, 0.0), "erp is 1.5"),
        (lambda: Softness(0.5, -1.0), "cfm is -1.0"),
        (lambda: Softness(0.5, inf), "cfm is inf"),
    ],
)
def test_nonsense_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
