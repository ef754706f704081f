"""Euler angles in any order, as in motion files."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import choice, finite_times

Floats = NDArray[np.float64]

ORDERS = tuple("".join(order) for order in permutations("xyz"))

#: gimbal lock: half of the middle angle's distance from its ends is below this; rad
_LOCKED = 1e-9


def quat_from_euler(order: str, angles: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) of rotations by angles (..., n) about the axes of `order`, a letter each; rad.

    Rotations are intrinsic: the matrix is the product of the rotations in the given order.

    >>> quat_from_euler("zx", (np.pi, 0.0)).round(6) + 0.0
    array([0., 0., 0., 1.])
    """
    turns = finite_times(angles)
    if turns.shape[-1:] != (len(order),) or any(letter not in "xyz" for letter in order):
        raise ValueError(f'order: must have an axis for each angle, found "{order}" for the shape {turns.shape}')
    cosines, sines = np.cos(0.5 * turns), np.sin(0.5 * turns)
    quat = np.zeros((*turns.shape[:-1], 4))
    quat[..., 0] = 1.0
    parts = [quat[..., k] for k in range(4)]
    for k, letter in enumerate(order):
        parts = _turned(parts, "xyz".index(letter), cosines[..., k], sines[..., k])
    return np.stack(parts, axis=-1)


def _turned(parts: list[Floats], axis: int, c: Floats, s: Floats) -> list[Floats]:
    """The quaternion (w, x, y, z) times a rotation about one axis."""
    w, v = parts[0], parts[1:]
    i, j, k = axis, (axis + 1) % 3, (axis + 2) % 3
    new = [w * c - v[i] * s, v[0], v[1], v[2]]
    new[1 + i] = v[i] * c + w * s
    new[1 + j] = v[j] * c + v[k] * s
    new[1 + k] = v[k] * c - v[j] * s
    return new


def quat_to_euler(order: str, quat_wxyz: ArrayLike) -> Floats:
    """Euler angles (..., 3) of rotations (..., 4) about the three axes of `order`; rad.

    The middle one is from −π/2 to π/2. At both ends (gimbal lock) the last one is 0.

    >>> quat_to_euler("zyx", quat_from_euler("zyx", (0.3, -0.2, 0.1))).round(6)
    array([ 0.3, -0.2,  0.1])
    """
    i, j, k = ("xyz".index(letter) for letter in choice("order", order, ORDERS))
    quat = np.asarray(quat_wxyz, dtype=np.float64)
    # axes of a noncyclic order are left-handed: rotations about them have the opposite sign
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    w, (x, y, z) = quat[..., 0], (sign * quat[..., 1 + axis] for axis in (i, j, k))
    # sums and differences of the outer angles are as exact as the quaternion (Bernardes and Viollet 2022); the angles
    # themselves are not, near the ends of the middle one
    near, far = np.hypot(w - y, x - z), np.hypot(w + y, x + z)
    difference, total = np.arctan2(x - z, w - y), np.arctan2(x + z, w + y)
    middle = 2.0 * np.arctan2(far, near) - 0.5 * np.pi
    first, last = total + difference, total - difference
    first = np.where(far < _LOCKED, 2.0 * difference, np.where(near < _LOCKED, 2.0 * total, first))
    last = np.where((far < _LOCKED) | (near < _LOCKED), 0.0, last)
    return sign * np.stack((_wrapped(first), middle, _wrapped(last)), axis=-1)


def _wrapped(angle: Floats) -> Floats:
    """The angle from −π to π."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))


def continuous(angles: Floats) -> Floats:
    """Angles (frames, ..., 3) of `quat_to_euler` without jumps: each the equivalent triple nearest to the last."""
    other = np.stack((angles[..., 0] + np.pi, np.pi - angles[..., 1], angles[..., 2] + np.pi), axis=-1)
    out = angles.copy()
    circle = 2.0 * np.pi
    for frame in range(1, len(out)):
        last = out[frame - 1]
        one = angles[frame] + circle * np.round((last - angles[frame]) / circle)
        two = other[frame] + circle * np.round((last - other[frame]) / circle)
        nearer = np.abs(two - last).sum(axis=-1) < np.abs(one - last).sum(axis=-1) - 1e-9
        out[frame] = np.where(nearer[..., None], two, one)
    return out
