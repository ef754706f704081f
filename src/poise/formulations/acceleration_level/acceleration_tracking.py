"""Trajectory control by acceleration constraints (KOK §8.3).

A tracked coordinate has a row without bounds, with the acceleration

    q̈ = q̈_ref + kv (q̇_ref − q̇) + kp (q_ref − q)                                             (KOK eq. 22, fed forward)

KOK omits q̈_ref, and so lags behind. Whatever forces act on the body, the coordinate has this acceleration: the error
e = q_ref − q obeys ë + kv ė + kp e = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES
from poise.dynamics.argument_checks import dof_number
from poise.model.errors import did_you_mean
from poise.model.joints import Primitive
from poise.model.model import Model

Array = NDArray[Any]
Reference = Callable[[float], tuple[Any, Any, Any]]
"""Time (s) → coordinates, velocities, accelerations; n numbers each."""
TRACK = CODES - 1
"""The tracking row of coordinate d has the id 8 d + 7."""


def gains(settle_time: float, tolerance: float = 0.01) -> tuple[float, float]:
    """(kp, kv), critically damped, that reduce an initial error at rest to a share of itself within a time.

    The error falls as (1 + ωt) e^(−ωt), which never rises again: ω is such that it is `tolerance` at `settle_time` (s).
    KOK's kp = 1/t², kv = √2/t are neither: they are damped by 0.71, and leave 70% of an error after t.

    >>> kp, kv = gains(0.5, 0.1)
    >>> round(kp, 3), round(kv, 3), round(kv**2 / (4 * kp), 12)
    (60.52, 15.559, 1.0)
    """
    if not (isfinite(settle_time) and settle_time > 0.0):
        raise ValueError(f"settle_time is {settle_time}; it must be a positive time in seconds")
    if not 0.0 < tolerance < 1.0:
        raise ValueError(f"tolerance is {tolerance}; it must be a share of the error, above 0 and below 1")
    x = 1.0 - np.log(tolerance)  # ω t, from above: the logarithm of the error is concave in it
    for _ in range(60):
        step = (np.log1p(x) - x - np.log(tolerance)) * (1.0 + x) / x
        x += step
        if abs(step) <= 1e-15 * x:
            break
    omega = float(x) / settle_time
    return omega * omega, 2.0 * omega


DEFAULT_GAINS = gains(0.1)
"""Errors decrease to 1 % within 0.1 s."""


@dataclass(frozen=True, eq=False)
class Track:
    """Coordinates that track a reference."""

    dofs: Array
    """(n,) indices of their velocities."""
    coordinates: Array
    """(n,) indices of their coordinates."""
    names: tuple[str, ...]
    reference: Reference
    kp: float
    kv: float

    def accelerations(self, time: float, q: Array, v: Array) -> Array:
        """(n,) accelerations of the coordinates (KOK eq. 22)."""
        wanted, speed, push = self.at(time)
        return push + self.kv * (speed - v[self.dofs]) + self.kp * (wanted - q[self.coordinates])

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """The reference at a time, checked."""
        answer = self.reference(time)
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            raise ValueError(f"the reference at {time:g} s is {answer!r}; it must be (q, v, a)")
        n, parts = len(self.dofs), []
        for name, part in zip("qva", answer, strict=True):
            array = np.atleast_1d(np.asarray(part, np.float64))
            if array.shape != (n,) or not np.isfinite(array).all():
                raise ValueError(
                    f"{name} of the reference at {time:g} s is {part!r}; it must be {n} finite numbers, "
                    f"one for each of {', '.join(self.names)}"
                )
            parts.append(array)
        return parts[0], parts[1], parts[2]


def make_track(
    model: Model, names: str | Sequence[str], reference: Reference, pair: tuple[float, float] | None
) -> Track:
    """A track of joints or coordinates by their names."""
    if not callable(reference):
        raise TypeError(
            f"reference is a {type(reference).__name__}; it must be a function of time that gives (q, v, a)"
        )
    kp, kv = DEFAULT_GAINS if pair is None else pair
    for name, value in (("kp", kp), ("kv", kv)):
        if not (isfinite(value) and value >= 0.0):
            raise ValueError(f"{name} is {value}; it must be finite, 0 or more")
    dofs = tracked_dofs(model, names)
    starts = {int(d): int(j) for d, j in zip(model.primitive_v_start, model.primitive_q_start, strict=True)}
    coordinates = np.array([starts[d] for d in dofs], np.int64)
    labels = tuple(model.dof_names[d] for d in dofs)
    return Track(np.array(dofs, np.int64), coordinates, labels, reference, float(kp), float(kv))


def tracked_dofs(model: Model, names: str | Sequence[str]) -> list[int]:
    """Indices of coordinates by their names or those of their joints; only hinges and slides can be tracked."""
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise ValueError("names is empty; give at least one joint or coordinate")
    dofs: list[int] = []
    for name in given:
        dofs += _dofs_of(model, name)
    if twice := {model.dof_names[d] for d in dofs if dofs.count(d) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))}: named twice")
    kinds = {int(d): int(k) for d, k in zip(model.primitive_v_start, model.primitive_kind, strict=True)}
    for d in dofs:
        if kinds.get(d, int(Primitive.BALL)) == int(Primitive.BALL):
            raise ValueError(
                f'"{model.dof_names[d]}" belongs to a free or ball joint; only hinges and slides can be tracked'
            )
        if model.dof_prescribed[d]:
            raise ValueError(f'"{model.dof_names[d]}" is moved along a path; it cannot be tracked')
    return dofs


def _dofs_of(model: Model, name: str) -> list[int]:
    if name in model.joint_names:
        return [int(d) for d in np.flatnonzero(model.dof_joint == model.joint_names.index(name))]
    if name in model.dof_names:
        return [dof_number(model, name)]
    known = [*dict.fromkeys([*model.joint_names, *model.dof_names])]
    raise ValueError(f'no joint or coordinate is called "{name}"{did_you_mean(name, known)}')
