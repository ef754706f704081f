"""Rotations as unit quaternions `(w, x, y, z)` in plain numpy. Every function broadcasts over leading axes.

`R_AB` turns vectors from frame B to frame A; `quat_multiply(q_AB, q_BC)` is `q_AC`.
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
    """The vector of length 1 in the same direction, (..., n); the given one must not be 0."""
    given = np.asarray(vector, dtype=np.float64)
    # the largest component first: squares of tiny or huge numbers would leave the range
    scaled = given / np.max(np.abs(given), axis=-1, keepdims=True)
    direction: Floats = scaled / np.sqrt(np.sum(scaled * scaled, axis=-1, keepdims=True))
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


def _components(quat: Floats) -> list[Any]:
    """w, x, y, z: plain numbers of a single quaternion, on which arithmetic is several times faster than on numpy's."""
    parts: list[Any] = quat.tolist() if quat.ndim == 1 else [quat[..., k] for k in range(4)]
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
    rotated: Floats = np.einsum("...ij,...j->...i", quat_to_matrix(quat_wxyz), np.asarray(vector, dtype=np.float64))
    return rotated


def quat_exp(rotation_vector: ArrayLike) -> Floats:
    """Unit quaternion of a rotation vector (axis times angle, rad), (..., 4)."""
    vector = np.asarray(rotation_vector, dtype=np.float64)
    angle = np.sqrt(np.sum(vector * vector, axis=-1, keepdims=True))
    small = angle < _SMALL
    safe = np.where(small, 1.0, angle)
    # sin(θ/2)/θ = 1/2 − θ²/48 + …
    scale = np.where(small, 0.5 - angle * angle / 48.0, np.sin(0.5 * safe) / safe)
    return np.concatenate((np.cos(0.5 * angle), scale * vector), axis=-1)


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
    """Cross product of two vectors (3,); several times faster than numpy's on one pair."""
    ax, ay, az = first.tolist()
    bx, by, bz = second.tolist()
    return np.array((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


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
    """Angular velocity and acceleration in the body's axes from a rotation vector and its two derivatives."""
    jacobian = turn_jacobian(turn)
    return jacobian @ rate, jacobian @ acceleration + turn_jacobian_rate(turn, rate) @ rate
