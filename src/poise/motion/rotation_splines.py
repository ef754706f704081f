"""Rotation splines through keys: smooth, squad, slerp; for any number of rotations at once."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import choice, finite_times, key_times, unit_quats
from poise.motion.quintic_splines import Ends, rotation_pieces
from poise.motion.rotations import (
    cross,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    rotate,
    turn_derivatives,
    turn_rates,
)
from poise.motion.splines import _check_pieces, locate, polynomials

Floats = NDArray[np.float64]

Turns = Literal["smooth", "squad", "slerp"]
"""Interpolation of rotations between keys.

`smooth` is continuous in angular acceleration. `squad` (Shoemake 1987) is continuous in angular velocity where keys
are evenly spaced. `slerp` has a constant angular velocity between keys, which jumps at the keys.
"""
_CLOSED = 1e-6
#: rotations that are evaluated at once
_BLOCK = 4096


class Turned(NamedTuple):
    """Rotations of a curve with their rates, for times (...)."""

    quat_wxyz: Floats
    """(..., 4) unit."""
    angular_velocity: Floats
    """(..., 3) in body axes; rad/s."""
    angular_acceleration: Floats
    """(..., 3) in body axes; rad/s²."""


class RotationCurve:
    """A curve through rotations (n, ..., 4) at increasing times (n,) (s), with the shorter rotation between keys.

    With `loop` the last rotation must equal the first, and the curve repeats; otherwise it is constant outside its
    range. `ends` applies to the smooth curve: `"still"` starts and stops without a jump; with `"free"` the inner keys
    determine the ends.

    >>> curve = RotationCurve([0.0, 2.0], [(1, 0, 0, 0), (0, 0, 0, 1)], "slerp")
    >>> curve(1.0).angular_velocity.round(3)
    array([0.   , 0.   , 1.571])
    """

    def __init__(
        self,
        times: ArrayLike,
        quats_wxyz: ArrayLike,
        kind: Turns = "smooth",
        *,
        loop: bool = False,
        ends: Ends = "still",
    ) -> None:
        self.times = key_times(times)
        self.quats_wxyz = unit_quats("quats_wxyz", quats_wxyz, (len(self.times), ...))
        self.kind: Turns = choice("kind", kind, get_args(Turns))
        self.ends: Ends = choice("ends", ends, get_args(Ends))
        self.loop = bool(loop)
        if self.loop:
            self._check_closed()
        self._keys = self.quats_wxyz.reshape(len(self.times), -1, 4)
        if len(self.times) > 1:
            with np.errstate(all="ignore"):
                self._pieces = self._fit()
            _check_pieces(self.times, self._pieces)

    def _check_closed(self) -> None:
        if len(self.times) < 3:
            raise ValueError(f"loop: needs at least 3 keys, found {len(self.times)}")
        turn = quat_log(quat_multiply(quat_conjugate(self.quats_wxyz[0]), self.quats_wxyz[-1]))
        angle = float(np.linalg.norm(turn, axis=-1).max()) if turn.size else 0.0
        if angle > _CLOSED:
            raise ValueError(
                f"loop: the last rotation must be the first, found them {angle:g} rad apart; repeat it at the end"
            )

    def _fit(self) -> Floats:
        """Coefficients of each piece: of the smooth curve, rotation vectors of slerp, or inner keys of squad."""
        if self.kind == "smooth":
            return rotation_pieces(self.times, self._keys, self.loop, self.ends)
        turns = quat_log(quat_multiply(quat_conjugate(self._keys[:-1]), self._keys[1:]))
        return turns if self.kind == "slerp" else self._inner_keys(turns)

    def _inner_keys(self, turns: Floats) -> Floats:
        """Squad's control rotations: sₖ = qₖ exp(−(log(qₖ⁻¹ qₖ₊₁) + log(qₖ⁻¹ qₖ₋₁))/4); at ends the keys themselves."""
        sums = np.zeros((len(self.times), *turns.shape[1:]))
        sums[1:-1] = turns[1:] - turns[:-1]
        if self.loop:
            sums[0] = sums[-1] = turns[0] - turns[-1]
        return quat_multiply(self._keys, quat_exp(-0.25 * sums))

    def __call__(self, times: ArrayLike) -> Turned:
        """Rotation, angular velocity and angular acceleration at any times (s)."""
        now = finite_times(times)
        shape = (*now.shape, *self.quats_wxyz.shape[1:-1])
        quats, spin, spin_rate = self.evaluate(now.ravel())
        return Turned(quats.reshape(*shape, 4), spin.reshape(*shape, 3), spin_rate.reshape(*shape, 3))

    def evaluate(self, now: Floats) -> tuple[Floats, Floats, Floats]:
        """The same for finite times (k,), with the rotations flat: (k, j, 4) and (k, j, 3)."""
        if len(self.times) == 1:
            still = np.zeros((len(now), self._keys.shape[1], 3))
            return np.repeat(self._keys, len(now), axis=0), still, still.copy()
        rows = max(1, _BLOCK // max(1, self._keys.shape[1]))
        if len(now) <= rows:
            return self._block(now)
        joints = self._keys.shape[1]
        whole = (np.empty((len(now), joints, 4)), np.empty((len(now), joints, 3)), np.empty((len(now), joints, 3)))
        for start in range(0, len(now), rows):
            for array, part in zip(whole, self._block(now[start : start + rows]), strict=True):
                array[start : start + rows] = part
        return whole

    def _block(self, now: Floats) -> tuple[Floats, Floats, Floats]:
        """The same, for few enough times that intermediate results fit into the cache."""
        piece, since, outside = locate(self.times, now, self.loop)
        t = since[:, None, None]
        if self.kind == "smooth":
            quats, spin, spin_rate = self._smooth(piece, t)
        elif self.kind == "slerp":
            step = (self.times[piece + 1] - self.times[piece])[:, None, None]
            spin = self._pieces[piece] / step
            quats = quat_multiply(self._keys[piece], quat_exp(spin * t))
            spin_rate = np.zeros_like(spin)
        else:
            quats, spin, spin_rate = self._squad(piece, t)
        if outside is not None:
            spin[outside], spin_rate[outside] = 0.0, 0.0
        return quats, spin, spin_rate

    def _smooth(self, piece: NDArray[np.intp], t: Floats) -> tuple[Floats, Floats, Floats]:
        turn, rate, acceleration = polynomials(self._pieces[piece], t)
        spin, spin_rate = turn_rates(turn, rate, acceleration)
        return quat_multiply(self._keys[piece], quat_exp(turn)), spin, spin_rate

    def _squad(self, piece: NDArray[np.intp], t: Floats) -> tuple[Floats, Floats, Floats]:
        """slerp(A, B, h) with A = slerp(qₖ, qₖ₊₁, u), B = slerp(sₖ, sₖ₊₁, u), h = 2u(1 − u), and its derivatives."""
        step = (self.times[piece + 1] - self.times[piece])[:, None, None]
        u = t / step
        outer, outer_spin = _uniform(self._keys[piece], self._keys[piece + 1], u, step)
        inner, inner_spin = _uniform(self._pieces[piece], self._pieces[piece + 1], u, step)
        # D = A⁻¹ B rotates with B and against A
        between = quat_multiply(quat_conjugate(outer), inner)
        carried = rotate(quat_conjugate(between), outer_spin)
        spin = inner_spin - carried
        turn = quat_log(between)
        rate, acceleration = turn_derivatives(turn, spin, cross(spin, carried))
        h, dh, ddh = 2.0 * u * (1.0 - u), (2.0 - 4.0 * u) / step, -4.0 / (step * step)
        part_spin, part_rate = turn_rates(
            h * turn, dh * turn + h * rate, ddh * turn + 2.0 * dh * rate + h * acceleration
        )
        part = quat_exp(h * turn)
        carried = rotate(quat_conjugate(part), outer_spin)
        quats = quat_multiply(outer, part)
        return quats, part_spin + carried, part_rate - cross(part_spin, carried)


def _uniform(start: Floats, end: Floats, u: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Slerp and its angular velocity, which is constant."""
    turn = quat_log(quat_multiply(quat_conjugate(start), end))
    return quat_multiply(start, quat_exp(u * turn)), turn / step
