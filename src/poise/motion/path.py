"""Paths: poses over time with exact velocity and acceleration, for kinematic bodies.

A path is any function of time (s) that returns a `PathPoint`. Poses are of the body's frame in its parent's frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.motion.motion_checks import key_times, unit_quats, vectors
from poise.motion.quintic_splines import rotation_pieces, vector_pieces
from poise.motion.rotations import (
    cross,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalize,
    rotate,
    turn_rates,
    unit,
)

Floats = NDArray[np.float64]

#: tolerance between the two ends of a closed path; m and rad
_CLOSED = 1e-6


@dataclass(frozen=True, eq=False)
class PathPoint:
    """Pose, velocity and acceleration of a path at one time.

    >>> OrbitPath(start=(2, 0, 0), speed=3.0)(0.0).acceleration
    array([-18.,   0.,   0.])
    """

    position: Floats
    """(3,) m."""
    quat_wxyz: Floats
    """(4,) unit."""
    velocity: Floats
    """(3,) of the body's origin, in the parent's axes; m/s."""
    angular_velocity: Floats
    """(3,) in the body's axes; rad/s."""
    acceleration: Floats
    """(3,) of the body's origin, in the parent's axes; m/s²."""
    angular_acceleration: Floats
    """(3,) in the body's axes; rad/s²."""


class Path(Protocol):
    """Interface of paths of kinematic bodies: callables that map a time (s) to a `PathPoint`.

    >>> def falling(time: float) -> PathPoint:
    ...     still, down = np.zeros(3), np.array((0.0, 0.0, -9.81))
    ...     return PathPoint(down * time**2 / 2, np.array((1.0, 0, 0, 0)), down * time, still, down, still)
    >>> path: Path = falling
    >>> path(2.0).velocity
    array([  0.  ,   0.  , -19.62])
    """

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        ...


class ConstantPath:
    """A constant pose.

    >>> ConstantPath((0, 0, 1))(3.0).position
    array([0., 0., 1.])
    """

    def __init__(self, position: ArrayLike = (0, 0, 0), quat_wxyz: ArrayLike = (1, 0, 0, 0)) -> None:
        self.described = {"kind": "constant", "position": position, "quat_wxyz": quat_wxyz}
        self._position = vectors("position", position, (3,))
        self._quat = unit_quats("quat_wxyz", quat_wxyz, (4,))

    def __call__(self, time: float, /) -> PathPoint:
        """The same pose at any time."""
        return _still(self._position, self._quat)


class OrbitPath:
    """A circle about an axis at constant speed; the body rotates with it.

    `start` is the position at time 0; with `start` on the axis the body rotates in place.

    >>> OrbitPath(start=(1, 0, 0), speed=2.0)(0.0).velocity
    array([0., 2., 0.])
    """

    def __init__(
        self,
        start: ArrayLike,
        speed: float,
        center: ArrayLike = (0, 0, 0),
        axis: ArrayLike = (0, 0, 1),
        quat_wxyz: ArrayLike = (1, 0, 0, 0),
    ) -> None:
        self.described = {"kind": "orbit", "start": start, "speed": speed, "center": center, "axis": axis}
        self.described["quat_wxyz"] = quat_wxyz
        direction = vectors("axis", axis, (3,))
        if not direction.any():
            raise ValueError("axis: must point somewhere, found (0, 0, 0)")
        self._center = vectors("center", center, (3,))
        self._arm = vectors("start", start, (3,)) - self._center
        self._omega = float(vectors("speed", speed, ())) * unit(direction)
        self._quat = unit_quats("quat_wxyz", quat_wxyz, (4,))

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        turn = quat_exp(self._omega * _finite_time(time))
        quat = quat_multiply(turn, self._quat)
        arm = rotate(turn, self._arm)
        velocity = cross(self._omega, arm)
        spin = rotate(quat_conjugate(quat), self._omega)
        return PathPoint(self._center + arm, quat, velocity, spin, cross(self._omega, velocity), np.zeros(3))


class FunctionPath:
    """A path from a function of time that returns (position, quat_wxyz); derivatives by central differences.

    The error of the velocity is of order `step`⁴, that of rounding about 1e-16 / `step` (/ `step`² for accelerations).

    >>> FunctionPath(lambda t: ((t * t, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)))(1.0).velocity.round(6)
    array([2., 0., 0.])
    """

    _OFFSETS = np.array((-2.0, -1.0, 0.0, 1.0, 2.0))
    _FIRST = np.array((1.0, -8.0, 0.0, 8.0, -1.0)) / 12.0
    _SECOND = np.array((-1.0, 16.0, -30.0, 16.0, -1.0)) / 12.0

    def __init__(self, pose: Callable[[float], tuple[ArrayLike, ArrayLike]], step: float = 1e-3) -> None:
        if not callable(pose):
            raise ValueError(f"pose: must be a function of time, found {pose!r}")
        self._pose = pose
        self._step = float(vectors("step", step, ()))
        if self._step <= 0.0:
            raise ValueError(f"step: must be more than 0, found {self._step:g}")

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        now = _finite_time(time)
        poses = [self._pose(now + float(offset) * self._step) for offset in self._OFFSETS]
        positions = np.array([vectors("position", pose[0], (3,)) for pose in poses])
        quats = np.array([unit_quats("quat_wxyz", pose[1], (4,)) for pose in poses])
        # rotation vectors relative to the present orientation have the body's angular velocity as their derivative
        turns = quat_log(quat_multiply(quat_conjugate(quats[2]), quats))
        first, second = self._FIRST / self._step, self._SECOND / self._step**2
        return PathPoint(positions[2], quats[2], first @ positions, first @ turns, second @ positions, second @ turns)


class KeyedPath:
    """A smooth path through key poses: pose, velocity and acceleration are continuous at every time.

    Positions follow cubic splines; rotations are the shorter ones from key to key. Outside its range the path is
    constant; it starts and stops without a jump. With `loop` the last pose must equal the first, and the path repeats.

    >>> path = KeyedPath([0.0, 1.0, 2.0], [(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    >>> path(1.0).position, path(9.0).velocity
    (array([1., 0., 0.]), array([0., 0., 0.]))
    """

    def __init__(
        self, times: ArrayLike, positions: ArrayLike, quats_wxyz: ArrayLike | None = None, loop: bool = False
    ) -> None:
        self.described = {"kind": "keyed", "times": times, "positions": positions, "loop": bool(loop)}
        self.described |= {} if quats_wxyz is None else {"quats_wxyz": quats_wxyz}
        self.times = key_times(times)
        count = len(self.times)
        self.positions = vectors("positions", positions, (count, 3))
        no_turn = np.tile((1.0, 0.0, 0.0, 0.0), (count, 1))
        self.quats_wxyz = unit_quats("quats_wxyz", no_turn if quats_wxyz is None else quats_wxyz, (count, 4))
        self.loop = bool(loop)
        if self.loop:
            self._check_closed()
        if count > 1:
            # accelerations between keys overflow if times are too close or poses too distant
            with np.errstate(all="ignore"):
                self._moves = vector_pieces(self.times, self.positions, self.loop)
                self._turns = rotation_pieces(self.times, self.quats_wxyz, self.loop)
            good = np.isfinite(self._moves).all(axis=(1, 2)) & np.isfinite(self._turns).all(axis=(1, 2))
            if not good.all():
                k = int(np.argmin(good))
                raise ValueError(
                    f"times: accelerations overflow from key {k} to key {k + 1} in "
                    f"{self.times[k + 1] - self.times[k]:g} s; give it more time"
                )

    def _check_closed(self) -> None:
        if len(self.times) < 3:
            raise ValueError(f"loop: needs at least 3 keys, found {len(self.times)}")
        gap = float(np.linalg.norm(self.positions[-1] - self.positions[0]))
        turn = quat_log(quat_multiply(quat_conjugate(self.quats_wxyz[0]), self.quats_wxyz[-1]))
        angle = float(np.linalg.norm(turn))
        if gap > _CLOSED or angle > _CLOSED:
            raise ValueError(
                f"loop: the last pose must be the first, found them {gap:g} m and {angle:g} rad apart; "
                "repeat the first key at the end"
            )

    def __call__(self, time: float, /) -> PathPoint:
        """Pose, velocity and acceleration at `time` (s)."""
        k, since = self._piece(time)
        if since is None:
            return _still(self.positions[k], self.quats_wxyz[k])
        powers = _powers(since)
        position, velocity, acceleration = powers @ self._moves[k]
        turn, turn_rate, turn_acceleration = powers @ self._turns[k]
        spin, spin_rate = turn_rates(turn, turn_rate, turn_acceleration)
        quat = quat_normalize(quat_multiply(self.quats_wxyz[k], quat_exp(turn)))
        return PathPoint(position, quat, velocity, spin, acceleration, spin_rate)

    def position(self, time: float, /) -> Floats:
        """(3,) position at `time` (s); faster than a full `PathPoint`; m.

        >>> KeyedPath([0.0, 1.0], [(0, 0, 0), (1, 0, 0)]).position(0.5)
        array([0.5, 0. , 0. ])
        """
        k, since = self._piece(time)
        return np.array(self.positions[k]) if since is None else np.asarray(_powers(since)[0] @ self._moves[k])

    def quat(self, time: float, /) -> Floats:
        """(4,) orientation at `time` (s), wxyz; faster than a full `PathPoint`.

        >>> KeyedPath([0.0, 1.0], [(0, 0, 0), (1, 0, 0)]).quat(0.5)
        array([1., 0., 0., 0.])
        """
        k, since = self._piece(time)
        if since is None:
            return np.array(self.quats_wxyz[k])
        turn = np.asarray(_powers(since)[0] @ self._turns[k])
        return quat_normalize(quat_multiply(self.quats_wxyz[k], quat_exp(turn)))

    def _piece(self, time: float) -> tuple[int, float | None]:
        """The key before a time, and the time since; None where the path is constant at that key."""
        now, (start, end) = _finite_time(time), (self.times[0], self.times[-1])
        if self.loop:
            now = start + (now - start) % (end - start)
        elif now <= start or len(self.times) == 1:
            return 0, None
        elif now >= end:
            return len(self.times) - 1, None
        k = min(int(np.searchsorted(self.times, now, side="right")) - 1, len(self.times) - 2)
        return k, float(now - self.times[k])


def _powers(t: float) -> Floats:
    """Matrix (3, 6) from coefficients to a quintic polynomial and its first and second derivative."""
    return np.array(
        (
            (1.0, t, t**2, t**3, t**4, t**5),
            (0.0, 1.0, 2.0 * t, 3.0 * t**2, 4.0 * t**3, 5.0 * t**4),
            (0.0, 0.0, 2.0, 6.0 * t, 12.0 * t**2, 20.0 * t**3),
        )
    )


def _still(position: Floats, quat: Floats) -> PathPoint:
    return PathPoint(position.copy(), quat.copy(), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))


def _finite_time(time: float) -> float:
    try:
        now = float(time)
    except (TypeError, ValueError):
        raise ValueError(f"time: must be a number of seconds, found {time!r}") from None
    if not np.isfinite(now):
        raise ValueError(f"time: must be a finite number, found {now}")
    return now
