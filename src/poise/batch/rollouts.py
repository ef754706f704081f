"""Rollouts: motions of many worlds over a horizon, as arrays for cost functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import Bodies, bodies, momentum
from poise.model.model import Model

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Motions of n worlds at some moments of a horizon: time first, then worlds. Measures are computed on access.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> q, v = np.tile(model.q_rest, (3, 5, 1)), np.zeros((3, 5, model.nv))
    >>> seen = Rollouts(model, np.array((0.1, 0.2, 0.3)), q, v, np.zeros((3, 5, 1)))
    >>> seen.com.shape, float(seen.com[0, 0, 2]), seen.bodies.position.shape
    ((3, 5, 3), 2.0, (3, 5, 1, 3))
    """

    model: Model
    times: Array
    """(moments,) since the initial state; s."""
    q: Array
    """(moments, n, nq) coordinates."""
    v: Array
    """(moments, n, nv) velocities."""
    u: Array
    """(moments, n, channels) controls until each moment."""

    @property
    def shape(self) -> tuple[int, int]:
        """Moments and worlds: the shape of costs."""
        return self.q.shape[0], self.q.shape[1]

    def _flat(self, values: Array) -> Array:
        return values.reshape(-1, values.shape[-1])

    @cached_property
    def bodies(self) -> Bodies:
        """Poses and twists of all bodies, each (moments, n, …) as `poise.dynamics.bodies` has them."""
        found = bodies(self.model, self._flat(self.q), self._flat(self.v), dtype=self.q.dtype)
        return Bodies(*(part.reshape(*self.shape, *part.shape[1:]) for part in found))

    @cached_property
    def _whole(self) -> tuple[Array, Array]:
        found = momentum(self.model, self._flat(self.q), self._flat(self.v), dtype=self.q.dtype)
        speed = found.linear / np.asarray(found.mass)[:, None]
        return found.com.reshape(*self.shape, 3), speed.reshape(*self.shape, 3)

    @property
    def com(self) -> Array:
        """(moments, n, 3) centre of mass of all moving bodies; m."""
        return self._whole[0]

    @property
    def com_velocity(self) -> Array:
        """(moments, n, 3) its velocity; m/s."""
        return self._whole[1]

    @cached_property
    def capture_point(self) -> Array:
        """(moments, n, 2) capture point of the centre of mass, for feet at the height 0: c + ċ/ω; m.

        ω² = g/z, as for `poise.control.Balance` (Hof 2008).
        """
        com, speed = self._whole
        g = float(np.linalg.norm(self.model.gravity))
        return np.asarray(com[..., :2] + speed[..., :2] * np.sqrt(np.maximum(com[..., 2:], 0.05) / g))
