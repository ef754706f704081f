"""Curves through values at key times: smooth, Catmull-Rom, Hermite with tension, monotone, linear."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import choice, finite_times, key_times, vectors
from poise.motion.quintic_splines import Ends, quintics, spline_rates, vector_pieces

Floats = NDArray[np.float64]

Moves = Literal["smooth", "catmull_rom", "hermite", "monotone", "linear"]
"""Interpolation of values between keys.

`smooth` is the cubic spline, whose acceleration is continuous. The others are local with a continuous velocity:
`catmull_rom` uses the mean velocity from the key before to the key after, `hermite` reduces it by `tension`, `monotone`
stays in the range of two neighbouring keys (Fritsch and Carlson 1980). `linear` has corners.
"""
#: tolerance between the first and last key of a closed curve
_CLOSED = 1e-6


class Moved(NamedTuple):
    """Values of a curve with their derivatives; each (..., d) for times (...)."""

    value: Floats
    velocity: Floats
    acceleration: Floats


class Spline:
    """A curve through values (n, ...) at increasing times (n,) (s), of any unit.

    With `loop` the last value must equal the first, and the curve repeats. Otherwise it is constant outside its range;
    with `ends="still"` it also starts and stops with continuous velocity and acceleration, with `"free"` the inner keys
    determine its ends. `tension` is for `hermite`: 0 is Catmull-Rom, 1 stops at every key.

    >>> curve = Spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], ends="free")
    >>> [float(part) for part in curve(1.5)]
    [2.25, 3.0, 2.0]
    """

    def __init__(
        self,
        times: ArrayLike,
        values: ArrayLike,
        kind: Moves = "smooth",
        *,
        loop: bool = False,
        ends: Ends = "still",
        tension: float = 0.0,
    ) -> None:
        self.times = key_times(times)
        self.values = vectors("values", values, (len(self.times), ...))
        self.kind: Moves = choice("kind", kind, get_args(Moves))
        self.ends: Ends = choice("ends", ends, get_args(Ends))
        self.loop = bool(loop)
        self.tension = float(vectors("tension", tension, ()))
        if not 0.0 <= self.tension <= 1.0:
            raise ValueError(f"tension: must be between 0 and 1, found {self.tension:g}")
        flat = self.values.reshape(len(self.times), -1)
        if self.loop:
            _check_closed(flat)
        self._pieces: Floats | None = None
        if len(self.times) > 1:
            with np.errstate(all="ignore"):
                self._pieces = self._fit(flat)
            _check_pieces(self.times, self._pieces)

    def _fit(self, flat: Floats) -> Floats:
        """Coefficients (n − 1, 6, d)."""
        if self.kind == "smooth":
            return vector_pieces(self.times, flat, self.loop, self.ends)
        if self.kind == "linear":
            slopes = np.diff(flat, axis=0) / np.diff(self.times)[:, None]
            zero = np.zeros_like(slopes)
            return np.stack((flat[:-1], slopes, zero, zero, zero, zero), axis=1)
        return _cubics(self.times, flat, self._rates(flat))

    def _rates(self, flat: Floats) -> Floats:
        """Velocities (n, d) at the keys, from neighbours."""
        steps = np.diff(self.times)[:, None]
        slopes = np.diff(flat, axis=0) / steps
        rates = _neighbour_rates(steps, slopes, flat, self.loop)
        if self.kind == "hermite":
            rates *= 1.0 - self.tension
        elif self.kind == "monotone":
            rates = _monotone_rates(slopes, rates, self.loop)
        if not self.loop and self.ends == "still":
            rates[[0, -1]] = 0.0
        return rates

    def __call__(self, times: ArrayLike) -> Moved:
        """Value, velocity and acceleration at any times (s)."""
        now = finite_times(times)
        shape = (*now.shape, *self.values.shape[1:])
        value, velocity, acceleration = self.evaluate(now.ravel())
        return Moved(value.reshape(shape), velocity.reshape(shape), acceleration.reshape(shape))

    def evaluate(self, now: Floats) -> tuple[Floats, Floats, Floats]:
        """The same for finite times (k,), with the values flat: (k, d) each."""
        if self._pieces is None:
            value = np.repeat(self.values.reshape(1, -1), len(now), axis=0)
            return value, np.zeros_like(value), np.zeros_like(value)
        piece, since, outside = locate(self.times, now, self.loop)
        value, velocity, acceleration = polynomials(self._pieces[piece], since[:, None])
        if outside is not None:
            velocity[outside], acceleration[outside] = 0.0, 0.0
        return value, velocity, acceleration


def locate(times: Floats, now: Floats, loop: bool) -> tuple[NDArray[np.intp], Floats, NDArray[np.bool_] | None]:
    """For each time its piece, the time since the beginning of that piece, and a mask of times outside the range."""
    start, end = times[0], times[-1]
    outside = None
    if loop:
        now = start + (now - start) % (end - start)
    elif len(now) and (now.min() < start or now.max() > end):
        outside = (now < start) | (now > end)
        now = np.clip(now, start, end)
    piece = np.searchsorted(times, now, side="right") - 1
    np.clip(piece, 0, len(times) - 2, out=piece)
    return piece, now - times[piece], outside


def polynomials(coefficients: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
    """Quintics with coefficients (k, 6, ...) and their first two derivatives at times t (k, ...)."""
    c = [coefficients[:, n] for n in range(6)]
    value, first, second = c[5].copy(), np.zeros_like(c[5]), np.zeros_like(c[5])
    # Horner's scheme for a polynomial and its Taylor coefficients
    for lower in c[4::-1]:
        second *= t
        second += first
        first *= t
        first += value
        value *= t
        value += lower
    second *= 2.0
    return value, first, second


def _cubics(times: Floats, values: Floats, rates: Floats) -> Floats:
    """Pieces with given values and velocities at the keys: cubics written as quintics."""
    steps = np.diff(times)[:, None]
    slopes = np.diff(values, axis=0) / steps
    first = (6.0 * slopes - 4.0 * rates[:-1] - 2.0 * rates[1:]) / steps
    last = (2.0 * rates[:-1] + 4.0 * rates[1:] - 6.0 * slopes) / steps
    return quintics(steps, values[:-1], rates[:-1], first, values[1:], rates[1:], last)


def _neighbour_rates(steps: Floats, slopes: Floats, values: Floats, loop: bool) -> Floats:
    """Velocities from the key before to the key after; at free ends those of the parabola through three keys."""
    rates = np.empty_like(values)
    rates[1:-1] = (values[2:] - values[:-2]) / (steps[1:] + steps[:-1])
    if loop:
        rates[0] = rates[-1] = (steps[0] * slopes[0] + steps[-1] * slopes[-1]) / (steps[0] + steps[-1])
    elif len(slopes) == 1:
        rates[:] = slopes
    else:
        rates[0] = slopes[0] + (slopes[0] - slopes[1]) * steps[0] / (steps[0] + steps[1])
        rates[-1] = slopes[-1] + (slopes[-1] - slopes[-2]) * steps[-1] / (steps[-1] + steps[-2])
    return rates


def _monotone_rates(slopes: Floats, rates: Floats, loop: bool) -> Floats:
    """Rates bounded so that every piece is monotone: 0 at extremes, α² + β² ≤ 9 elsewhere (Fritsch and Carlson)."""
    limited = rates.copy()
    turns = slopes[:-1] * slopes[1:] <= 0.0
    limited[1:-1][turns] = 0.0
    if loop:
        closes = slopes[-1] * slopes[0] <= 0.0
        limited[0][closes] = limited[-1][closes] = 0.0
    for end, slope in ((0, slopes[0]), (-1, slopes[-1])):
        limited[end][limited[end] * slope <= 0.0] = 0.0
    # a piece reduces both of its rates; a key uses the smaller of its two, which is valid for both pieces
    flat = slopes == 0.0
    safe = np.where(flat, 1.0, slopes)
    length = np.hypot(limited[:-1] / safe, limited[1:] / safe)
    shrink = np.where(flat, 0.0, np.minimum(1.0, 3.0 / np.maximum(length, 3.0)))
    factor = np.ones_like(limited)
    factor[:-1] = np.minimum(factor[:-1], shrink)
    factor[1:] = np.minimum(factor[1:], shrink)
    if loop:
        factor[0] = factor[-1] = np.minimum(factor[0], factor[-1])
    return np.asarray(limited * factor)


def _check_closed(flat: Floats) -> None:
    if len(flat) < 3:
        raise ValueError(f"loop: needs at least 3 keys, found {len(flat)}")
    gap = float(np.abs(flat[-1] - flat[0]).max()) if flat.shape[1] else 0.0
    if gap > _CLOSED:
        raise ValueError(f"loop: the last value must be the first, found them {gap:g} apart; repeat it at the end")


def _check_pieces(times: Floats, pieces: Floats) -> None:
    """Raise if the accelerations between keys overflow, because of their times or distances."""
    good = np.isfinite(pieces).reshape(len(pieces), -1).all(axis=1)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"times: accelerations overflow from key {k} to key {k + 1} in {times[k + 1] - times[k]:g} s; "
            "give it more time"
        )


__all__ = ["Moved", "Moves", "Spline", "spline_rates"]
