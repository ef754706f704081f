"""Curves of clips: eases, bumps, quintics and closed splines. All have smooth velocities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ease(share: ArrayLike) -> Floats:
    """From 0 to 1 as `share` goes from 0 to 1, with zero velocity and acceleration at both ends.

    >>> ease([-1.0, 0.5, 2.0]).tolist()
    [0.0, 0.5, 1.0]
    """
    s = np.clip(np.asarray(share, np.float64), 0.0, 1.0)
    return np.asarray(s**3 * (10.0 + s * (6.0 * s - 15.0)))


def bump(share: ArrayLike) -> Floats:
    """From 0 to 1 and back as `share` goes from 0 to 1, with zero velocity and acceleration at both ends.

    >>> bump([0.0, 0.5, 1.0]).tolist()
    [0.0, 1.0, 0.0]
    """
    s = np.clip(np.asarray(share, np.float64), 0.0, 1.0)
    return np.asarray((4.0 * s * (1.0 - s)) ** 3)


def stroll(share: ArrayLike, up: float, down: float) -> Floats:
    """From 0 to 1 as `share` goes from 0 to 1: speeds up in the first part `up`, slows down in the last part `down`.

    >>> stroll([0.0, 0.5, 1.0], 0.4, 0.4).round(12).tolist()
    [0.0, 0.5, 1.0]
    """
    s = np.clip(np.asarray(share, np.float64), 0.0, 1.0)
    early, late = np.minimum(s / up, 1.0), np.minimum((1.0 - s) / down, 1.0)
    whole = 1.0 - 0.5 * (up + down)
    way = up * early**3 * (1.0 - early / 2) + np.maximum(s - up, 0.0)
    way += np.where(late < 1.0, down * (late - 0.5 - late**3 * (1.0 - late / 2)), 0.0)
    return np.asarray(way / whole)


def between(now: ArrayLike, start: float, end: float) -> Floats:
    """The ease from the time `start` to `end`."""
    return ease((np.asarray(now, np.float64) - start) / (end - start))


def quintic(now: Floats, start: float, end: float, first: tuple[float, ...], last: tuple[float, ...]) -> Floats:
    """The quintic with (value, velocity, acceleration) at two times.

    >>> quintic(np.array([0.0, 1.0, 2.0]), 0.0, 2.0, (0.0, 1.0, 0.0), (2.0, 1.0, 0.0)).round(12).tolist()
    [0.0, 1.0, 2.0]
    """
    length = end - start
    s = (now - start) / length
    (p, v, a), (p1, v1, a1) = ((x[0], x[1] * length, x[2] * length**2) for x in (first, last))
    gap, rate, bend = p1 - p - v - a / 2, v1 - v - a, a1 - a
    cubic, quartic, fifth = 10 * gap - 4 * rate + bend / 2, -15 * gap + 7 * rate - bend, 6 * gap - 3 * rate + bend / 2
    return np.asarray(p + s * (v + s * (a / 2 + s * (cubic + s * (quartic + s * fifth)))))
