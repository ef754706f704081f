"""Rotations as unit quaternions `(w, x, y, z)` in plain numpy. Every function broadcasts over leading axes.

`R_AB` transforms vectors from frame B to frame A; `quat_multiply(q_AB, q_BC)` is `q_AC`.
"""

from __future__ import annotations

from math import cos, factorial, sin
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: below this angle (rad) closed forms with sin and cos are replaced by their series
_SMALL = 1e-4


def unit(vector: ArrayLike) -> Floats:
    """The normalized vector, (..., n); the given one must not be 0."""
    given = np.asarray(vector, dtype=np.float64)
    # the largest component first: squares of tiny or huge numbers would leave the range
    scaled = given / np.maximum.reduce(np.abs(given), axis=-1, keepdims=True)
    direction: Floats = scaled / np.sqrt(np.add.reduce(scaled * scaled, axis=-1, keepdims=True))
    return direction


def quat_normalize(quat_wxyz: ArrayLike) -> Floats:
    """Unit quaternion, (..., 4)."""
    return unit(quat_wxyz)


def quat_conjugate(quat_wxyz: ArrayLike) -> Floats:
    """The inverse rotation, (..., 4)."""
    conjugate: Floats = np.asarray(quat_wxyz, dtype=np.float64) * np.array((1.0, -1.0, -1.0, -1.0))
    return conjugate


def quat_multiply(first_wxyz: ArrayLike, second_wxyz: ArrayLike) -> Floats:
    """Product of two quaternions, (..., 4).

    >>> quat_multiply((0, 1, 0, 0), (0, 0, 1, 0))
    array([0., 0., 0., 1.])
    """
    a = np.asarray(first_wxyz, dtype=np.float64)
    b = np.asarray(second_wxyz, dtype=np.float64)
    aw, ax, ay, az = _components(a)
    bw, bx, by, bz = _components(b)
    product = (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )
    return np.stack(product, axis=-1) if a.ndim > 1 or b.ndim > 1 else np.array(product)


def _components(array: Floats) -> list[Any]:
    """Parts along the last axis: plain numbers of a single vector, on which arithmetic is faster than on numpy's."""
    parts: list[Any] = array.tolist() if array.ndim == 1 else [array[..., k] for k in range(array.shape[-1])]
    return parts


def quat_to_matrix(quat_wxyz: ArrayLike) -> Floats:
    """Rotation matrix of a unit quaternion, (..., 3, 3)."""
    quat = np.asarray(quat_wxyz, dtype=np.float64)
    w, x, y, z = _components(quat)
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
    if quat.ndim == 1:
        return np.array(rows)
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quat_from_matrix(matrix: ArrayLike) -> Floats:
    """Unit quaternion of one rotation matrix (3, 3), with w ≥ 0."""
    m = np.asarray(matrix, dtype=np.float64)
    # four times the outer product of the quaternion with itself; its longest column has no cancellation
    outer = np.array(
        (
            (1 + m[0, 0] + m[1, 1] + m[2, 2], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]),
            (m[2, 1] - m[1, 2], 1 + m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]),
            (m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1 - m[0, 0] + m[1, 1] - m[2, 2], m[1, 2] + m[2, 1]),
            (m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1 - m[0, 0] - m[1, 1] + m[2, 2]),
        )
    )
    quat = quat_normalize(outer[int(np.argmax(np.diagonal(outer)))])
    return -quat if quat[0] < 0.0 else quat


def rotate(quat_wxyz: ArrayLike, vector: ArrayLike) -> Floats:
    """R(quat) · vector, (..., 3).

    >>> rotate((0, 0, 0, 1), (1, 2, 3))
    array([-1., -2.,  3.])
    """
    quat, given = np.asarray(quat_wxyz, dtype=np.float64), np.asarray(vector, dtype=np.float64)
    if quat.ndim == 1:
        rotated: Floats = np.einsum("ij,...j->...i", quat_to_matrix(quat), given)
        return rotated
    w, x, y, z = _components(quat)
    a, b, c = _components(given)
    # v + w t + u × t with t = 2 u × v, u the vector part
    s, t, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    turned = (a + w * s + (y * r - z * t), b + w * t + (z * s - x * r), c + w * r + (x * t - y * s))
    return np.stack(turned, axis=-1)


def quat_exp(rotation_vector: ArrayLike) -> Floats:
    """Unit quaternion of a rotation vector (axis times angle, rad), (..., 4)."""
    vector = np.asarray(rotation_vector, dtype=np.float64)
    x, y, z = _components(vector)
    square = np.asarray(x * x + y * y + z * z)
    angle = np.sqrt(square)
    # sin(θ/2)/θ = 1/2 − θ²/48 + …
    scale = np.sin(0.5 * angle) / np.maximum(angle, _SMALL)
    small = angle < _SMALL
    if small.any():
        scale = np.where(small, 0.5 - square / 48.0, scale)
    quat = np.empty((*vector.shape[:-1], 4))
    quat[..., 0] = np.cos(0.5 * angle)
    for k, part in enumerate((x, y, z)):
        quat[..., 1 + k] = scale * part
    return quat


def quat_log(quat_wxyz: ArrayLike) -> Floats:
    """Rotation vector of a unit quaternion, of length at most π, (..., 3); rad."""
    quat = np.asarray(quat_wxyz, dtype=np.float64)
    quat = np.where(quat[..., :1] < 0.0, -quat, quat)
    sine = np.sqrt(np.sum(quat[..., 1:] ** 2, axis=-1, keepdims=True))
    small = sine < _SMALL
    safe = np.where(small, 1.0, sine)
    # θ/sin(θ/2) = 2 + sin²(θ/2)/3 + …
    scale = np.where(small, 2.0 + sine * sine / 3.0, 2.0 * np.arctan2(safe, quat[..., :1]) / safe)
    vector: Floats = scale * quat[..., 1:]
    return vector


def cross(first: Floats, second: Floats) -> Floats:
    """Cross product of vectors (..., 3); several times faster than numpy's."""
    ax, ay, az = _components(first)
    bx, by, bz = _components(second)
    product = (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return np.stack(product, axis=-1) if first.ndim > 1 or second.ndim > 1 else np.array(product)


def turn_between(start: ArrayLike, end: ArrayLike) -> Floats:
    """The shortest rotations from unit vectors (..., 3) to others, (..., 4); about any axis for opposite ones.

    >>> turn_between((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)).round(6)
    array([0.707107, 0.      , 0.      , 0.707107])
    """
    first, second = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(end, np.float64))
    scalar = 1.0 + np.sum(first * second, axis=-1, keepdims=True)
    quats = np.concatenate((scalar, cross(first, second)), axis=-1)
    opposite = scalar[..., 0] < 1e-12
    if np.any(opposite):
        other = np.eye(3)[np.argmin(np.abs(first), axis=-1)]
        across = np.concatenate((np.zeros_like(scalar), cross(first, other)), axis=-1)
        quats = np.where(opposite[..., None], across, quats)
    return unit(quats)


def skew(vector: ArrayLike) -> Floats:
    """The matrix S(a) of the cross product, (..., 3, 3), with S(a) · b = a × b."""
    v = np.asarray(vector, dtype=np.float64)
    matrix = np.zeros((*v.shape[:-1], 3, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return matrix


def _turn_series(angle: float) -> tuple[float, float, float, float]:
    """With θ the angle: a = (1 − cos θ)/θ², b = (θ − sin θ)/θ³, a′/θ and b′/θ."""
    square = angle * angle
    if angle < 1.0:
        signs = [(-1) ** k for k in range(10)]
        a = sum(signs[k] * square**k / factorial(2 * k + 2) for k in range(10))
        b = sum(signs[k] * square**k / factorial(2 * k + 3) for k in range(10))
        da = sum(signs[k] * 2 * k * square ** (k - 1) / factorial(2 * k + 2) for k in range(1, 10))
        db = sum(signs[k] * 2 * k * square ** (k - 1) / factorial(2 * k + 3) for k in range(1, 10))
        return a, b, da, db
    a = (1.0 - cos(angle)) / square
    b = (angle - sin(angle)) / (square * angle)
    return a, b, (sin(angle) / angle - 2.0 * a) / square, (a - 3.0 * b) / square


def turn_jacobian(turn: Floats) -> Floats:
    """J with ω = J(r) ṙ: from the rate of a rotation vector to angular velocity in the body's axes; (3, 3).

    J = 1 − a [r]× + b [r]×², a = (1 − cos θ)/θ², b = (θ − sin θ)/θ³.
    """
    a, b, _, _ = _turn_series(float(np.sqrt(turn @ turn)))
    s = skew(turn)
    jacobian: Floats = np.eye(3) - a * s + b * (s @ s)
    return jacobian


def turn_jacobian_rate(turn: Floats, rate: Floats) -> Floats:
    """Time derivative of `turn_jacobian` along a rotation vector with the given rate; (3, 3)."""
    a, b, da, db = _turn_series(float(np.sqrt(turn @ turn)))
    along = float(turn @ rate)
    s, ds = skew(turn), skew(rate)
    derivative: Floats = -da * along * s - a * ds + db * along * (s @ s) + b * (ds @ s + s @ ds)
    return derivative


def turn_rates(turn: Floats, rate: Floats, acceleration: Floats) -> tuple[Floats, Floats]:
    """Angular velocity and acceleration in the body's axes from a rotation vector and its two derivatives, (..., 3)."""
    if turn.ndim > 1:
        return _many_turn_rates(turn, rate, acceleration)
    jacobian = turn_jacobian(turn)
    return jacobian @ rate, jacobian @ acceleration + turn_jacobian_rate(turn, rate) @ rate


def turn_derivatives(turn: Floats, spin: Floats, spin_rate: Floats) -> tuple[Floats, Floats]:
    """The two derivatives of rotation vectors (..., 3) from angular velocity and acceleration in the body's axes.

    The inverse of `turn_rates`: J⁻¹ = 1 + [r]×/2 + c [r]×², c = (1 − (θ/2) cot(θ/2))/θ².
    """
    rate = spin + turn_excess(turn, spin)
    bend = _many_turn_rates(turn, rate, np.zeros_like(rate))[1]
    return rate, spin_rate - bend + turn_excess(turn, spin_rate - bend)


def turn_excess(turn: Floats, spin: Floats) -> Floats:
    """(J⁻¹ − 1) ω: the rate of rotation vectors (..., 3) minus the angular velocity in the body's axes."""
    once = cross(turn, spin)
    result: Floats = 0.5 * once + _inverse_factor(turn)[..., None] * cross(turn, once)
    return result


def _many_turn_rates(turn: Floats, rate: Floats, acceleration: Floats) -> tuple[Floats, Floats]:
    """`turn_rates` of many at once, without the matrices: J x = x − a r × x + b r × (r × x)."""
    r, v, u = _apart(turn), _apart(rate), _apart(acceleration)
    a, b, da, db = _turn_factors(_inner(r, r))
    along = _inner(r, v)
    once = _outer(r, v)
    twice = _outer(r, once)
    bent = _outer(r, u)
    bent_twice, inward = _outer(r, bent), _outer(v, once)
    # terms of J̇ ṙ that do not vanish; ṙ × ṙ = 0
    da, db = along * da, along * db
    spin, spin_rate = np.empty(turn.shape), np.empty(turn.shape)
    for k in range(3):
        spin[..., k] = v[k] - a * once[k] + b * twice[k]
        spin_rate[..., k] = u[k] - a * bent[k] + b * (bent_twice[k] + inward[k]) + db * twice[k] - da * once[k]
    return spin, spin_rate


def _apart(vectors: Floats) -> list[Floats]:
    """The three components as contiguous arrays: arithmetic on them is twice as fast."""
    return [np.ascontiguousarray(vectors[..., k]) for k in range(3)]


def _inner(a: list[Floats], b: list[Floats]) -> Floats:
    return np.asarray(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


def _outer(a: list[Floats], b: list[Floats]) -> list[Floats]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


#: coefficients of the series of `_turn_factors` in powers of θ²
_A_SERIES = tuple((-1) ** k / factorial(2 * k + 2) for k in range(9))
_B_SERIES = tuple((-1) ** k / factorial(2 * k + 3) for k in range(9))
_DA_SERIES = tuple(2 * k * (-1) ** k / factorial(2 * k + 2) for k in range(1, 9))
_DB_SERIES = tuple(2 * k * (-1) ** k / factorial(2 * k + 3) for k in range(1, 9))
#: B₂ₖ/(2k)!, k ≥ 1, with all signs positive: the series of c
_C_SERIES = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600)
#: below this angle (rad) the series are used: their last term is below rounding there
_SERIES_ANGLE = 0.6


def _turn_factors(square: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """`_turn_series` for arrays of squared angles."""
    small = np.minimum(square, _SERIES_ANGLE**2)
    factors = [_horner(series, small) for series in (_A_SERIES, _B_SERIES, _DA_SERIES, _DB_SERIES)]
    large = square > _SERIES_ANGLE**2
    if large.any():
        theta2 = square[large]
        angle = np.sqrt(theta2)
        a = 2.0 * np.sin(0.5 * angle) ** 2 / theta2
        b = (angle - np.sin(angle)) / (theta2 * angle)
        exact = (a, b, (np.sin(angle) / angle - 2.0 * a) / theta2, (a - 3.0 * b) / theta2)
        for factor, value in zip(factors, exact, strict=True):
            factor[large] = value
    return factors[0], factors[1], factors[2], factors[3]


def _inverse_factor(turn: Floats) -> Floats:
    """c = (1 − (θ/2) cot(θ/2))/θ² of `turn_derivatives`, (...)."""
    square = np.asarray(np.sum(turn * turn, axis=-1))
    factor = _horner(_C_SERIES, np.minimum(square, _SERIES_ANGLE**2))
    large = square > _SERIES_ANGLE**2
    if large.any():
        half = 0.5 * np.sqrt(square[large])
        factor[large] = (1.0 - half * np.cos(half) / np.sin(half)) / square[large]
    return factor


def _horner(series: tuple[float, ...], x: Floats) -> Floats:
    value = np.full_like(x, series[-1])
    for coefficient in series[-2::-1]:
        value *= x
        value += coefficient
    return value
