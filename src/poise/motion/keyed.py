"""Piecewise quintics through key values and key rotations, twice continuously differentiable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply, turn_jacobian, turn_jacobian_rate

Floats = NDArray[np.float64]


def vector_pieces(times: Floats, values: Floats, loop: bool) -> Floats:
    """Coefficients (n − 1, 6, d) of polynomials in the time since each key.

    Velocities and accelerations at the keys are those of the cubic spline, so that every piece is that spline; without
    `loop` it is clamped (no velocity at the ends), and the acceleration at the two ends is taken away as well.
    """
    rates = spline_rates(times, values, loop)
    steps = np.diff(times)[:, None]
    slopes = np.diff(values, axis=0) / steps
    # second derivative of a cubic piece at its start: (6 slope − 4 v₀ − 2 v₁) / h
    bends = np.zeros_like(values)
    bends[:-1] = (6.0 * slopes - 4.0 * rates[:-1] - 2.0 * rates[1:]) / steps
    bends[-1] = bends[0] if loop else 0.0
    if not loop:
        bends[0] = 0.0
    ends = np.stack((values[:-1], rates[:-1], bends[:-1], values[1:], rates[1:], bends[1:]), axis=1)
    return np.array([_quintic(step, piece) for step, piece in zip(steps[:, 0], ends, strict=True)])


def spline_rates(times: Floats, values: Floats, loop: bool) -> Floats:
    """Derivatives (n, d) of the cubic spline at its keys: periodic, or clamped to 0 at the ends."""
    steps = np.diff(times)
    slopes = np.diff(values, axis=0) / steps[:, None]
    rates = np.zeros_like(values)
    if loop:
        m = len(steps)
        before, after = np.roll(steps, 1), steps
        matrix = np.diag(2.0 * (before + after))
        for k in range(m):
            matrix[k, (k - 1) % m] += after[k]
            matrix[k, (k + 1) % m] += before[k]
        right = 3.0 * (after[:, None] * np.roll(slopes, 1, axis=0) + before[:, None] * slopes)
        rates[:-1] = np.linalg.solve(matrix, right)
        rates[-1] = rates[0]
    elif len(times) > 2:
        before, after = steps[:-1], steps[1:]
        right = 3.0 * (after[:, None] * slopes[:-1] + before[:, None] * slopes[1:])
        rates[1:-1] = _solve_tridiagonal(after, 2.0 * (before + after), before, right)
    return rates


def _solve_tridiagonal(lower: Floats, diagonal: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve a diagonally dominant tridiagonal system; `lower[0]` and `upper[-1]` are not used."""
    pivots, solution = diagonal.copy(), right.copy()
    for k in range(1, len(pivots)):
        factor = lower[k] / pivots[k - 1]
        pivots[k] -= factor * upper[k - 1]
        solution[k] -= factor * solution[k - 1]
    solution[-1] /= pivots[-1]
    for k in reversed(range(len(pivots) - 1)):
        solution[k] = (solution[k] - upper[k] * solution[k + 1]) / pivots[k]
    return solution


def _quintic(step: float, ends: Floats) -> Floats:
    """Coefficients (6, d) of the quintic with given value, first and second derivative at 0 and at `step`."""
    p0, v0, a0, p1, v1, a1 = ends
    h = step
    # what the first three terms leave to do at the end
    p = p1 - p0 - h * v0 - 0.5 * h * h * a0
    v = v1 - v0 - h * a0
    a = a1 - a0
    cubic = (10.0 * p - 4.0 * h * v + 0.5 * h * h * a) / h**3
    quartic = (-15.0 * p + 7.0 * h * v - h * h * a) / h**4
    fifth = (6.0 * p - 3.0 * h * v + 0.5 * h * h * a) / h**5
    return np.stack((p0, v0, 0.5 * a0, cubic, quartic, fifth))


def rotation_pieces(times: Floats, quats: Floats, loop: bool) -> Floats:
    """Coefficients (n − 1, 6, 3) of the rotation vector from each key, in the time since it.

    At a key the rotation vector is 0 and its derivatives are the body's angular velocity and acceleration; at the next
    key they follow from those by the Jacobian of the rotation vector. So both are shared by the pieces on either side.
    """
    turns = quat_log(quat_multiply(quat_conjugate(quats[:-1]), quats[1:]))
    spins, spin_rates = _key_spins(np.diff(times), turns, loop)
    pieces = []
    for k, step in enumerate(np.diff(times)):
        jacobian = turn_jacobian(turns[k])
        rate = np.linalg.solve(jacobian, spins[k + 1])
        acceleration = np.linalg.solve(jacobian, spin_rates[k + 1] - turn_jacobian_rate(turns[k], rate) @ rate)
        zero = np.zeros(3)
        pieces.append(_quintic(step, np.stack((zero, spins[k], spin_rates[k], turns[k], rate, acceleration))))
    return np.array(pieces)


def _key_spins(steps: Floats, turns: Floats, loop: bool) -> tuple[Floats, Floats]:
    """Angular velocities and accelerations (n, 3) at the keys from the parabola through three neighbours; 0 at ends.

    The rotation vectors to the previous and to the next key are both in the axes of the key between.
    """
    spins, spin_rates = np.zeros((len(turns) + 1, 3)), np.zeros((len(turns) + 1, 3))
    mean = turns / steps[:, None]
    before, after = steps[:-1, None], steps[1:, None]
    spins[1:-1] = (after * mean[:-1] + before * mean[1:]) / (before + after)
    spin_rates[1:-1] = 2.0 * (mean[1:] - mean[:-1]) / (before + after)
    if loop:
        first, last = steps[0], steps[-1]
        spins[0] = spins[-1] = (first * mean[-1] + last * mean[0]) / (first + last)
        spin_rates[0] = spin_rates[-1] = 2.0 * (mean[0] - mean[-1]) / (first + last)
    return spins, spin_rates
