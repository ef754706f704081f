"""References as tables of cubics, which compiled code samples at any time.

A reference is divided into intervals of equal length, at most 1/RATE s. In each interval every number is a cubic with
the reference's values and velocities at both ends. Rotations are cubics of the four numbers of a quaternion, which is
normalized when sampled. If keys lie at ends of intervals, cubic splines and straight lines are exact; the error of
smooth curves is Δ⁴/384 times the fourth derivative, Δ being the length of an interval. `error` is the measured one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.control.reference import Placed
from poise.motion.rotations import quat_multiply

Floats = NDArray[np.float64]

RATE = 240.0
"""Minimum number of intervals per second."""
FINER = (1.0, 25.0 / 24.0, 1.25, 2.0, 2.5, 4.0, 5.0)
"""Candidate multiples of RATE; the first with keys at ends of intervals and a small error is used."""
TOLERANCE = 1e-5
"""Greatest error of a table that replaces a reference; m or rad, half of that for quaternions."""
UNITS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
"""Units of time of which keys may be multiples; s."""
MOST_NUMBERS = 1 << 25
"""Maximum size of a table: 256 MB."""
CHECKED = 2048
"""Number of intervals in which the error is measured."""
_INSIDE = 1e-9
"""Values at the end of an interval are evaluated this share of it before the end, so that corners and jumps stay
between intervals."""


class Intervals(NamedTuple):
    """A motion divided into intervals of time."""

    start: float
    """s."""
    duration: float
    """s."""
    loops: bool
    coefficients: Floats
    """(intervals, columns, 4) coefficients of 1, u, u², u³, where u runs from 0 to 1 in an interval."""
    stride: Floats
    """(numbers,) increments per cycle of a cyclic motion."""
    error: float
    """Greatest measured difference from the reference: m or rad."""

    @property
    def rate(self) -> float:
        """Intervals per second."""
        return len(self.coefficients) / self.duration if self.duration > 0.0 else 1.0


def tabulate(place: Placed) -> Intervals | None:
    """The intervals of a reference on a model, or None if no table within the maximum size meets TOLERANCE."""
    reference = place.reference
    if not reference.has_one_period:
        return None
    best: Intervals | None = None
    for multiple in FINER:
        n = max(int(np.ceil(reference.duration * RATE * multiple - 1e-9)), 1)
        n = _with_keys(place, n)
        if n * _columns(place) * 4 > MOST_NUMBERS:
            break
        found = _cut(place, n)
        if best is None or found.error < best.error:
            best = found
        if best.error <= TOLERANCE:
            return best
        if reference.duration <= 0.0:
            break
    return None


def _columns(place: Placed) -> int:
    lay = place.layout
    return len(lay.numbers) + 4 * len(lay.quats)


def _with_keys(place: Placed, n: int) -> int:
    """At least n intervals, such that keys lie at their ends if a unit of time allows it."""
    reference = place.reference
    since, length = reference.key_times - reference.start, reference.duration
    if length <= 0.0:
        return 1
    steps = np.diff(since)
    evenly = [len(steps)] if len(steps) and np.ptp(steps) <= 1e-6 * float(steps.mean()) else []
    for parts in (*evenly, *(round(length / unit) for unit in UNITS)):
        places = since / length * max(parts, 1)
        if parts and np.abs(places - np.rint(places)).max() < 1e-6:
            return -(-n // parts) * parts
    return n


def _cut(place: Placed, n: int) -> Intervals:
    reference = place.reference
    length = reference.duration / n
    starts: Floats = np.asarray(reference.start + length * np.arange(n), dtype=np.float64)
    begin = _values(place, starts)
    if reference.has_corners:
        end = _values(place, starts + (1.0 - _INSIDE) * length)
    else:
        last = _values(place, np.array([reference.end]))
        end = np.concatenate((begin[0][1:], last[0])), np.concatenate((begin[1][1:], last[1]))
    _continue_signs(begin[0], end, len(place.layout.numbers))
    p0, v0, p1, v1 = begin[0], begin[1] * length, end[0], end[1] * length
    coefficients = np.stack((p0, v0, 3.0 * (p1 - p0) - 2.0 * v0 - v1, 2.0 * (p0 - p1) + v0 + v1), axis=-1)
    stride = reference.stride_of(place)
    table = Intervals(reference.start, reference.duration, reference.loops, coefficients, stride, 0.0)
    return table._replace(error=_error(table, place))


def _values(place: Placed, times: Floats) -> tuple[Floats, Floats]:
    """(k, columns) numbers and quaternions at times, and their rates."""
    lay, now = place.layout, place.at(times)
    quats = now.q[:, lay.quats]
    spins = np.concatenate((np.zeros((*quats.shape[:-1], 1)), now.v[:, lay.spins]), axis=-1)
    rates = 0.5 * quat_multiply(quats, spins)
    flat = quats.reshape(len(times), -1), rates.reshape(len(times), -1)
    return (
        np.concatenate((now.q[:, lay.numbers], flat[0]), axis=1),
        np.concatenate((now.v[:, lay.speeds], flat[1]), axis=1),
    )


def _continue_signs(begin: Floats, end: tuple[Floats, Floats], first: int) -> None:
    """Make the signs of quaternions (columns from `first` on) and rates at ends of intervals match their starts."""
    shape = (len(begin), -1, 4)
    near = np.sum(begin[:, first:].reshape(shape) * end[0][:, first:].reshape(shape), axis=-1, keepdims=True)
    for part in end:
        part[:, first:] = np.where(near < 0.0, -part[:, first:].reshape(shape), part[:, first:].reshape(shape)).reshape(
            len(begin), -1
        )


def _error(table: Intervals, place: Placed) -> float:
    """The greatest error within intervals, of positions and angles; m or rad."""
    n, lay = len(table.coefficients), place.layout
    chosen = np.unique(np.linspace(0, n - 1, min(n, CHECKED)).astype(np.intp))
    worst = 0.0
    for u in (0.25, 0.5, 0.75):
        found = table.coefficients[chosen] @ np.array((1.0, u, u * u, u * u * u))
        right = _values(place, table.start + (chosen + u) / n * table.duration)[0]
        k = len(lay.numbers)
        worst = max(worst, float(np.abs(found[:, :k] - right[:, :k]).max(initial=0.0)))
        a, b = (part[:, k:].reshape(len(chosen), -1, 4) for part in (found, right))
        a = a / np.sqrt(np.sum(a * a, axis=-1, keepdims=True))
        nearest = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
        worst = max(worst, 2.0 * float(nearest.max(initial=0.0)))
    return worst


class Tables:
    """Motions of one set of joints, contiguous in memory, for `formulations.commands.motion_tracking`."""

    def __init__(self, parts: Sequence[Intervals]) -> None:
        if not parts:
            raise ValueError("there are no motions")
        self.parts = tuple(parts)
        rows = [len(part.coefficients) for part in parts]
        self.first_row = np.cumsum([0, *rows[:-1]]).astype(np.int32)
        self.rows = np.array(rows, np.int32)
        self.coefficients = np.concatenate([part.coefficients.reshape(-1) for part in parts])
        self.stride = np.concatenate([part.stride for part in parts])
        self.columns = parts[0].coefficients.shape[1]

    def schedule(self) -> dict[str, Any]:
        """Times and memory offsets of the motions, as fields of `motion_tracking.SCHEDULE`."""
        numbers = {name: np.array([float(getattr(part, name)) for part in self.parts]) for name in ("duration", "rate")}
        loops = np.array([part.loops for part in self.parts], np.int32)
        return {**numbers, "loops": loops, "first_interval": self.first_row, "n_intervals": self.rows}
