"""Implicit springs that pull points of bodies towards targets, for example markers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.softness import spring
from poise.control.torque_limits import SETTLE
from poise.dynamics.argument_checks import body_number, checked_vector
from poise.dynamics.state_queries import bodies
from poise.model.model import Model
from poise.motion.path import Path

Floats = NDArray[np.float64]
_FIRST_ID = 1 << 29


@dataclass(frozen=True, eq=False)
class PointTarget:
    """A spring and damper with a bounded force, which pulls a point of a body along a path through the world.

    >>> from poise.motion import KeyedPath
    >>> PointTarget("hand_r", KeyedPath([0, 1], [(0, 0, 1), (0.5, 0, 1)]), strength=80.0).stiffness
    2000.0
    """

    body: str | int
    """By its name or number."""
    path: Path
    """Target of the point; only positions are used."""
    point: ArrayLike = (0.0, 0.0, 0.0)
    """In the body's frame; m."""
    strength: float = inf
    """Greatest force; N."""
    stiffness: float = 2000.0
    """N/m."""
    damping: float | None = None
    """N·s/m; default: 0.05 s times the stiffness."""

    def __post_init__(self) -> None:
        """Validate the fields."""
        checked_vector("point", self.point)
        for name in ("strength", "stiffness", "damping"):
            value = getattr(self, name)
            if value is not None and not float(value) >= 0.0:
                raise ValueError(f"{name} is {value}; it must be 0 or more")
        if not callable(self.path):
            raise TypeError(f"path is a {type(self.path).__name__}; it must be a path, like clip.path(joint)")


class Pulled:
    """A point target on a model."""

    def __init__(self, target: PointTarget, model: Model, shift: float) -> None:
        self.target, self.model, self.shift = target, model, shift
        self.body = body_number(model, target.body)
        self.point = checked_vector("point", target.point)
        label = f"{model.body_names[self.body]} {self.point.tolist()}"
        # ids are the same in every run, so that states continue bit for bit
        self.id = _FIRST_ID + 4 * (crc32(label.encode()) >> 6)

    def add(self, rows: Any, q: Floats, time: float, dt: float) -> None:
        """Add its rows to a step."""
        target, place = self.target, bodies(self.model, q)
        R = place.rotation[self.body]
        now = place.position[self.body] + R @ self.point
        arm = R @ (self.point - self.model.body_com[self.body])
        damping = SETTLE * target.stiffness if target.damping is None else target.damping
        soft = spring(target.stiffness, damping, dt)
        ends = [np.asarray(target.path(time + self.shift + late).position) for late in (0.0, dt)]
        wanted = soft.erp * (ends[1] - now) / dt + (1.0 - soft.erp) * (ends[1] - ends[0]) / dt
        J = np.concatenate((np.array([np.cross(arm, axis) for axis in np.eye(3)]), np.eye(3)), axis=1)
        if target.strength < inf:
            radius = float(target.strength)
            rows.add_ball(
                id=self.id,
                b=self.body,
                Ja=np.zeros((3, 6)),
                Jb=J,
                radius=radius,
                target=wanted.tolist(),
                cfm=[soft.cfm] * 3,
            )
            return
        for k in range(3):
            rows.add(id=self.id + k, b=self.body, Jb=J[k], target=float(wanted[k]), cfm=soft.cfm)
