"""Targets that advance along a path with the body's progress (LAM §2.2).

A target is a parameter on a path (the path's time, without a relation to the world's time). It stays at the *base
distance* from the body and never moves backwards: if it is nearer, it advances to the first point ahead at that
distance; if it is farther, it waits. All points that it passes are nearer than the base distance, so that every point
of the path is within the base distance of the motion under any disturbance.

For orientations the distance is the angle of the relative rotation. LAM has 2 acos(Re q), which for −q is the longer
rotation; here it is 2 atan2(|Im q|, |Re q|), the shorter one, which is exact for small angles too.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from poise.motion.path import ConstantPath, KeyedPath, Path
from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply

Floats = NDArray[np.float64]
SAMPLES = 64
"""Samples of a path between two keys; the path is assumed nearly straight between two samples."""
_CHUNK = 256
_NEAR = 1e-9
"""Relative tolerance of the base distance."""


class Route:
    """Positions or orientations along a path, with the samples and arc lengths that targets need.

    >>> straight = KeyedPath([0, 1], [(0, 0, 0), (2, 0, 0)])
    >>> route = Route(straight, turns=False)
    >>> s = route.ahead(0.0, np.array((0.0, 0.3, 0.0)), 0.5)
    >>> route.value(s).round(6)
    array([0.4, 0. , 0. ])
    """

    def __init__(self, path: Path, *, turns: bool, span: tuple[float, float] | None = None) -> None:
        self.path, self.turns = path, turns
        knots, self.loop = _knots(path, span)
        self.start, self.end = float(knots[0]), inf if self.loop else float(knots[-1])
        self.period = float(knots[-1] - knots[0])
        self.s = _sampled(knots)
        """(n,) parameters of samples, in one cycle of a closed path."""
        self.values = np.array([self.value(float(s)) for s in self.s])
        """(n, 3) m or (n, 4) wxyz."""
        steps = [float(self.distance(b, a)) for a, b in zip(self.values[:-1], self.values[1:], strict=True)]
        self.lengths = np.concatenate(((0.0,), np.cumsum(steps)))
        """(n,) arc length from the start; m or rad."""

    def value(self, s: float) -> Floats:
        """(3,) position or (4,) orientation at a parameter."""
        if isinstance(self.path, KeyedPath):
            return self.path.quat(s) if self.turns else self.path.position(s)
        point = self.path(s)
        return point.quat_wxyz if self.turns else point.position

    def distance(self, values: Floats, here: Floats) -> Floats:
        """Distances of values (…, 3 or 4) from one value; m or rad."""
        if not self.turns:
            return np.asarray(np.sqrt(np.sum((values - here) ** 2, axis=-1)))
        between = quat_multiply(values, quat_conjugate(here))
        return np.asarray(2.0 * np.arctan2(np.sqrt(np.sum(between[..., 1:] ** 2, axis=-1)), np.abs(between[..., 0])))

    def offset(self, s: float, here: Floats) -> Floats:
        """(3,) from here to a target; a rotation vector in world axes for orientations (LAM eq. 4); m or rad."""
        there = self.value(s)
        return quat_log(quat_multiply(there, quat_conjugate(here))) if self.turns else there - here

    def ahead(self, s: float, here: Floats, base: float, gate: float = inf) -> float:
        """The first parameter from s on at which the target is `base` away from here; s itself if it already is.

        At most `gate` or the end of the path. On a closed path that is never so far away, the farthest point.
        """
        last = min(gate, s + self.period if self.loop else self.end)
        near = self._beyond(s, here, base)
        if s >= last or near >= 0.0:
            return s
        knots, values = self._knots_ahead(s, last)
        low, farthest = (s, near), (s, near)
        for k in range(0, len(knots), _CHUNK):
            beyond = self.distance(values[k : k + _CHUNK], here) - base
            hits = np.flatnonzero(beyond >= 0.0)
            j = int(hits[0]) if len(hits) else len(beyond)
            if j:
                low = float(knots[k + j - 1]), float(beyond[j - 1])
            if len(hits):
                return self._crossing(low, (float(knots[k + j]), float(beyond[j])), here, base)
            top = int(beyond.argmax())
            farthest = max(farthest, (float(knots[k + top]), float(beyond[top])), key=lambda place: place[1])
        end = self._beyond(last, here, base)
        if end >= 0.0:
            return self._crossing(low, (last, end), here, base)
        return farthest[0] if self.loop and gate > last else last

    def _knots_ahead(self, s: float, last: float) -> tuple[Floats, Floats]:
        """Samples with s < parameter < last."""
        knots, values = self.s, self.values
        if self.loop:
            rounds = np.floor((s - self.start) / self.period) * self.period
            knots = np.concatenate((knots[:-1], knots + self.period)) + rounds
            values = np.concatenate((values[:-1], values))
        inside = slice(np.searchsorted(knots, s, side="right"), np.searchsorted(knots, last, side="left"))
        return knots[inside], values[inside]

    def _beyond(self, s: float, here: Floats, base: float) -> float:
        return float(self.distance(self.value(s), here)) - base

    def _crossing(self, low: tuple[float, float], high: tuple[float, float], here: Floats, base: float) -> float:
        """The parameter at which the distance reaches `base`, by false position (Illinois); LAM uses bisection.

        `low` and `high` are parameters with their distances minus the base distance, negative and nonnegative.
        """
        (s0, f0), (s1, f1), side = low, high, 0
        for _ in range(60):
            if f1 <= _NEAR * base or s1 - s0 <= 1e-13 * max(1.0, abs(s1)):
                break
            s = s0 + (s1 - s0) * f0 / (f0 - f1)
            if not s0 < s < s1:
                s = 0.5 * (s0 + s1)
            f = self._beyond(s, here, base)
            if abs(f) <= _NEAR * base:
                return s
            if f > 0.0:
                s1, f1, f0, side = s, f, 0.5 * f0 if side > 0 else f0, 1
            else:
                s0, f0, f1, side = s, f, 0.5 * f1 if side < 0 else f1, -1
        return s1

    def length_at(self, s: float) -> float:
        """Arc length from the start to a parameter; m or rad."""
        rounds = np.floor((s - self.start) / self.period) if self.loop else 0.0
        return float(np.interp(s - rounds * self.period, self.s, self.lengths) + rounds * self.lengths[-1])

    def direction(self, s: float) -> Floats:
        """(3,) unit vector along the path at a parameter; in world axes, for orientations the axis. 0 on a dwell.

        It is the direction just before the parameter, so that it is defined where a path reverses.
        """
        before, after = s - self.period / max(len(self.s) - 1, 1), s
        if not self.loop and before < self.start:
            before, after = self.start, min(2.0 * self.start - before, self.end)
        along = self.offset(after, self.value(before))
        size = float(np.sqrt(along @ along))
        return along / size if size > 0.0 else np.zeros(3)

    def gate_from(self, s: float, gate: float) -> float:
        """The next parameter of a gate, from s on: on a closed path in this cycle or in the next."""
        if not self.loop:
            return gate
        phase = (gate - self.start) % self.period
        rounds = np.ceil((s - self.start - phase) / self.period)
        return float(self.start + phase + max(rounds, 0.0) * self.period)


def _knots(path: Path, span: tuple[float, float] | None) -> tuple[Floats, bool]:
    """Parameters of the keys, or of the ends, and whether the path is closed."""
    if not callable(path):
        raise TypeError(f"path is a {type(path).__name__}; it must be a path, as poise.motion has them")
    if span is not None:
        ends = np.asarray(span, np.float64)
        if ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
            raise ValueError(f"span is {span!r}; it must be where the path starts and ends, two rising times")
        return ends, False
    if isinstance(path, KeyedPath):
        return path.times, path.loop and len(path.times) > 1
    if isinstance(path, ConstantPath):
        return np.zeros(1), False
    raise ValueError(f"a {type(path).__name__} has no end: give the span=(start, end) of it that is to be followed")


def _sampled(knots: Floats) -> Floats:
    """Parameters of knots and of samples between them."""
    if len(knots) == 1:
        return np.array(knots)
    count = SAMPLES if len(knots) > 2 else 4 * SAMPLES
    parts = [np.linspace(a, b, count, endpoint=False) for a, b in pairwise(knots)]
    return np.concatenate((*parts, knots[-1:]))
