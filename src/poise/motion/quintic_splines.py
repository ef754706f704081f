"""Piecewise quintics through key values and key rotations, twice continuously differentiable."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply, turn_derivatives, turn_excess

Floats = NDArray[np.float64]

Ends = Literal["still", "free"]
"""End conditions of an open curve: zero velocity and acceleration, or determined by the inner keys."""
#: maximum iterations for the angular velocities of a rotation spline, and their tolerance
_ROUNDS, _STAYS = 60, 1e-11


def vector_pieces(times: Floats, values: Floats, loop: bool, ends: Ends = "still") -> Floats:
    """Coefficients (n − 1, 6, d) of polynomials in the time since each key.

    Velocities and accelerations at the keys are those of the cubic spline, so that every piece is that spline. With
    still ends it is clamped (no velocity there), and the acceleration at the two ends is zero as well.
    """
    rates = spline_rates(times, values, loop, ends)
    steps = np.diff(times)[:, None]
    slopes = np.diff(values, axis=0) / steps
    # second derivative of a cubic piece at its start: (6 slope − 4 v₀ − 2 v₁) / h
    bends = np.zeros_like(values)
    bends[:-1] = (6.0 * slopes - 4.0 * rates[:-1] - 2.0 * rates[1:]) / steps
    if loop:
        bends[-1] = bends[0]
    elif ends == "free":
        bends[-1] = (2.0 * rates[-2] + 4.0 * rates[-1] - 6.0 * slopes[-1]) / steps[-1]
    else:
        bends[0] = 0.0
    return quintics(steps, values[:-1], rates[:-1], bends[:-1], values[1:], rates[1:], bends[1:])


def spline_rates(times: Floats, values: Floats, loop: bool, ends: Ends = "still") -> Floats:
    """Derivatives (n, d) of the cubic spline at its keys: periodic, clamped to 0 at the ends, or not-a-knot (free)."""
    steps = np.diff(times)
    slopes = np.diff(values, axis=0) / steps[:, None]
    rates = np.zeros_like(values)
    if loop:
        before, after = np.roll(steps, 1), steps
        right = 3.0 * (after[:, None] * np.roll(slopes, 1, axis=0) + before[:, None] * slopes)
        rates[:-1] = _solve_cyclic(after, 2.0 * (before + after), before, right)
        rates[-1] = rates[0]
    elif ends == "free":
        rates[:] = _free_rates(steps, slopes)
    elif len(times) > 2:
        before, after = steps[:-1], steps[1:]
        right = 3.0 * (after[:, None] * slopes[:-1] + before[:, None] * slopes[1:])
        rates[1:-1] = _solve_tridiagonal(after, 2.0 * (before + after), before, right)
    return rates


def _free_rates(steps: Floats, slopes: Floats) -> Floats:
    """Rates of the spline whose third derivative does not jump at the second key and at the last but one.

    Two keys make a line, three a parabola; the spline through keys of a cubic is that cubic.
    """
    count = len(steps) + 1
    if count == 2:
        return np.repeat(slopes, 2, axis=0)
    if count == 3:
        bend = (slopes[1] - slopes[0]) / (steps[0] + steps[1])
        return np.stack((slopes[0] - bend * steps[0], slopes[0] + bend * steps[0], slopes[1] + bend * steps[1]))
    lower, diagonal, upper = np.empty(count), np.empty(count), np.empty(count)
    right = np.empty((count, slopes.shape[1]))
    before, after = steps[:-1], steps[1:]
    lower[1:-1], diagonal[1:-1], upper[1:-1] = after, 2.0 * (before + after), before
    right[1:-1] = 3.0 * (after[:, None] * slopes[:-1] + before[:, None] * slopes[1:])
    for end, inner, beside in ((0, 1, upper), (-1, -2, lower)):
        near, far = steps[end], steps[inner]
        both = near + far
        diagonal[end], beside[end] = far, both
        right[end] = ((near + 2.0 * both) * far * slopes[end] + near * near * slopes[inner]) / both
    return _solve_tridiagonal(lower, diagonal, upper, right)


def _solve_tridiagonal(lower: Floats, diagonal: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve a tridiagonal system that needs no pivoting; `lower[0]` and `upper[-1]` are not used."""
    pivots, solution = diagonal.tolist(), right.copy()
    low, up = lower.tolist(), upper.tolist()
    for k in range(1, len(pivots)):
        factor = low[k] / pivots[k - 1]
        pivots[k] -= factor * up[k - 1]
        solution[k] -= factor * solution[k - 1]
    solution[-1] /= pivots[-1]
    for k in reversed(range(len(pivots) - 1)):
        solution[k] = (solution[k] - up[k] * solution[k + 1]) / pivots[k]
    return solution


def _solve_cyclic(lower: Floats, diagonal: Floats, upper: Floats, right: Floats) -> Floats:
    """Solve a tridiagonal system with corners: `lower[0]` stands in the last column, `upper[-1]` in the first.

    The corners are a product u wᵀ, which the Sherman-Morrison formula adds to the solution.
    """
    count = len(diagonal)
    if count == 2:
        matrix = np.array(((diagonal[0], lower[0] + upper[0]), (lower[1] + upper[1], diagonal[1])))
        return np.asarray(np.linalg.solve(matrix, right))
    scale = -diagonal[0]
    plain = diagonal.copy()
    plain[0] -= scale
    plain[-1] -= lower[0] * upper[-1] / scale
    corner = np.zeros((count, 1))
    corner[0], corner[-1] = scale, upper[-1]
    both = _solve_tridiagonal(lower, plain, upper, np.concatenate((right, corner), axis=1))
    answer, side = both[:, :-1], both[:, -1:]
    ratio = lower[0] / scale
    return np.asarray(answer - side * (answer[0] + ratio * answer[-1]) / (1.0 + side[0] + ratio * side[-1]))


def quintics(steps: Floats, p0: Floats, v0: Floats, a0: Floats, p1: Floats, v1: Floats, a1: Floats) -> Floats:
    """Coefficients (n, 6, ...) of quintics with given value, first and second derivative at 0 and at each step."""
    h = steps
    # the remainder at the end after the first three terms
    p = p1 - p0 - h * v0 - 0.5 * h * h * a0
    v = v1 - v0 - h * a0
    a = a1 - a0
    cubic = (10.0 * p - 4.0 * h * v + 0.5 * h * h * a) / h**3
    quartic = (-15.0 * p + 7.0 * h * v - h * h * a) / h**4
    fifth = (6.0 * p - 3.0 * h * v + 0.5 * h * h * a) / h**5
    return np.stack((p0, v0, 0.5 * a0, cubic, quartic, fifth), axis=1)


def rotation_pieces(times: Floats, quats: Floats, loop: bool, ends: Ends = "still") -> Floats:
    """Coefficients (n − 1, 6, ..., 3) of the rotation vector from each key (n, ..., 4), in the time since it.

    At a key the rotation vector is 0 and its derivatives are the body's angular velocity and acceleration; at the next
    key they follow from those by the Jacobian of the rotation vector. So both are shared by the pieces on either side.
    """
    turns = quat_log(quat_multiply(quat_conjugate(quats[:-1]), quats[1:]))
    steps = np.diff(times).reshape(-1, *([1] * (turns.ndim - 1)))
    spins, spin_rates = _parabola_spins(steps, turns, loop, ends)
    if not loop and ends == "free" and len(turns) > 1:
        for end, middle, far in ((0, 1, 2), (-1, -2, -3)):
            spins[end], spin_rates[end] = _end_spin(times[[end, middle, far]], quats[[end, middle, far]])
    if len(turns) > (2 if ends == "free" and not loop else 1):
        spins, spin_rates = _spline_spins(steps, turns, quats, spins, spin_rates, loop, ends)
    rates, accelerations = turn_derivatives(turns, spins[1:], spin_rates[1:])
    return quintics(steps, np.zeros_like(turns), spins[:-1], spin_rates[:-1], turns, rates, accelerations)


def _spline_spins(
    steps: Floats, turns: Floats, quats: Floats, spins: Floats, spin_rates: Floats, loop: bool, ends: Ends
) -> tuple[Floats, Floats]:
    """Angular velocities and accelerations (n, ..., 3) of the cubic spline at its keys, from those of parabolas.

    The spline is one of the rotation vectors from each key, in which the spins of neighbours are J⁻¹ times those in
    their own axes. This couples the three axes weakly: the difference J⁻¹ − 1 is on the right-hand side, in a
    fixed-point iteration. Where it does not converge, for large rotations between keys, the parabolas remain.
    """
    found = spins
    for _ in range(_ROUNDS):
        last, found = found, _spline_round(steps, turns, quats, found, loop, ends)
        stays = np.abs(found - last).max(axis=(0, -1)) <= _STAYS * np.abs(found).max(axis=(0, -1))
        if stays.all():
            break
    mean = turns / steps
    rates = np.zeros_like(spins)
    rates[:-1] = (6.0 * mean - 4.0 * found[:-1] - 2.0 * (found[1:] + turn_excess(turns, found[1:]))) / steps
    if loop:
        rates[-1] = rates[0]
    elif ends == "free":
        back = found[-2] + turn_excess(-turns[-1], found[-2])
        rates[-1] = (2.0 * back + 4.0 * found[-1] - 6.0 * mean[-1]) / steps[-1]
    else:
        rates[0] = 0.0
    return np.where(stays[..., None], found, spins), np.where(stays[..., None], rates, spin_rates)


def _spline_round(steps: Floats, turns: Floats, quats: Floats, spins: Floats, loop: bool, ends: Ends) -> Floats:
    """Spins (n, ..., 3) that satisfy the spline's equations, with J⁻¹ − 1 applied to the previous ones."""
    h, mean = steps.ravel(), turns / steps
    ahead, behind = turn_excess(turns, spins[1:]), turn_excess(-turns, spins[:-1])
    new = np.zeros_like(spins)
    if loop:
        before, after = np.roll(steps, 1, axis=0), steps
        right = after * (3.0 * np.roll(mean, 1, axis=0) - np.roll(behind, 1, axis=0)) + before * (3.0 * mean - ahead)
        low, up = h, np.roll(h, 1)
        flat = _solve_cyclic(low, 2.0 * (low + up), up, right.reshape(len(h), -1))
        new[:-1] = flat.reshape(right.shape)
        new[-1] = new[0]
        return new
    before, after = steps[:-1], steps[1:]
    right = np.zeros_like(spins)
    right[1:-1] = after * (3.0 * mean[:-1] - behind[:-1]) + before * (3.0 * mean[1:] - ahead[1:])
    lower, diagonal, upper = np.zeros(len(spins)), np.ones(len(spins)), np.zeros(len(spins))
    lower[1:-1], diagonal[1:-1], upper[1:-1] = h[1:], 2.0 * (h[:-1] + h[1:]), h[:-1]
    if ends == "free":  # not a knot, as `_free_rates`
        for end, inner, beside, excess in ((0, 1, upper, ahead[0]), (-1, -2, lower, behind[-1])):
            near, far = h[end], h[inner]
            both = near + far
            second = quats[2] if end == 0 else quats[-3]
            way = quat_log(quat_multiply(quat_conjugate(quats[end]), second)) * (1.0 if end == 0 else -1.0)
            slope = (way - turns[end]) / far
            diagonal[end], beside[end] = far, both
            right[end] = ((near + 2.0 * both) * far * mean[end] + near * near * slope) / both - both * excess
    new[:] = _solve_tridiagonal(lower, diagonal, upper, right.reshape(len(spins), -1)).reshape(spins.shape)
    return new


def _end_spin(times: Floats, quats: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and acceleration at the first of three keys: of the parabola of rotation vectors from there."""
    near, far = (quat_log(quat_multiply(quat_conjugate(quats[0]), quats[k])) for k in (1, 2))
    s, t = times[1] - times[0], times[2] - times[0]
    bend = (far / t - near / s) / (t - s)
    return near / s - bend * s, 2.0 * bend


def _parabola_spins(steps: Floats, turns: Floats, loop: bool, ends: Ends) -> tuple[Floats, Floats]:
    """Angular velocities and accelerations (n, ..., 3) at the keys from the parabola through three neighbours.

    The rotation vectors to the previous and to the next key are both in the axes of the key between. At the ends both
    are 0; with two keys and free ends the rotation is uniform.
    """
    spins, spin_rates = (np.zeros((len(turns) + 1, *turns.shape[1:])) for _ in range(2))
    mean = turns / steps
    before, after = steps[:-1], steps[1:]
    spins[1:-1] = (after * mean[:-1] + before * mean[1:]) / (before + after)
    spin_rates[1:-1] = 2.0 * (mean[1:] - mean[:-1]) / (before + after)
    if loop:
        first, last = steps[0], steps[-1]
        spins[0] = spins[-1] = (first * mean[-1] + last * mean[0]) / (first + last)
        spin_rates[0] = spin_rates[-1] = 2.0 * (mean[0] - mean[-1]) / (first + last)
    elif ends == "free" and len(turns) == 1:
        spins[:] = mean[0]
    return spins, spin_rates
