"""Standing with random pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.gym.figure import Seen
from poise.gym.task import Outcome, Task, at_least

Array = NDArray[Any]
LOW = 0.65
"""The figure has fallen when its hips are below this fraction of their height in standing."""
GAP = (1.5, 3.0)
"""Range of the time from one push to the next; s."""
LASTS = 0.1
"""Duration of a push; s."""
PUSHES = 16
"""Pushes that are drawn for an episode; then they repeat."""


def fallen(seen: Seen) -> Array:
    """(n,) whether hips are low, or a shape other than the feet touches the ground."""
    low = seen.bodies.position[:, seen.figure.pelvis, 2] < LOW * seen.figure.hips
    return np.asarray(low | seen.touching())


class Stand(Task):
    """Stand upright and still. Every 1.5 to 3 s the trunk is pushed with up to `push` N·s from any side.

    The reward of a step is up × (0.5 + 0.5 still) − 0.1 effort: `up` is the vertical component of the trunk's axis,
    `still` is exp(−4 |v|²) of the centre of mass, `effort` is the mean square of the action. An episode ends when the
    hips are below 0.65 of their height, or a shape other than the feet touches the ground.
    """

    def __init__(self, n: int = 1, *, push: float = 20.0, **options: Any) -> None:
        super().__init__(n, **options)
        self.push = at_least("push", push, 0.0)
        self._lasts = max(round(LASTS / self.period), 1)
        self._begins = np.zeros((self.n, PUSHES), np.int64)
        self._force = np.zeros((self.n, PUSHES, 3))

    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """Near the rest pose."""
        q, v = self.near_rest(draws)
        chance = np.array([rng.uniform(0.0, 1.0, (3, PUSHES)) for rng in draws])
        gaps = GAP[0] + (GAP[1] - GAP[0]) * chance[:, 0]
        self._begins[which] = np.ceil(np.cumsum(gaps, axis=1) / self.period)
        size = self.push * chance[:, 1] / (self._lasts * self.period)
        angle = 2.0 * np.pi * chance[:, 2]
        self._force[which] = np.stack((size * np.cos(angle), size * np.sin(angle), 0.0 * size), axis=-1)
        return q, v

    def prepare(self, actions: Array) -> None:
        """Apply the pushes that are due."""
        super().prepare(actions)
        if self.push:
            since = self.age[:, None] % (self._begins[:, -1:] + self._lasts) - self._begins
            now = (since >= 0) & (since < self._lasts)
            self.batch.forces[:, self.figure.torso, 3:] = np.sum(now[:, :, None] * self._force, axis=1)

    def outcome(self, seen: Seen) -> Outcome:
        """Reward for standing upright and still with little effort."""
        up = np.clip(seen.up, 0.0, 1.0)
        still = np.exp(-4.0 * np.sum(np.square(seen.com_velocity), axis=1))
        effort = np.mean(np.square(self.asked), axis=1)
        reward = up * (0.5 + 0.5 * still) - 0.1 * effort
        terms = {"up": up, "still": still, "effort": effort}
        return Outcome(reward.astype(np.float64), fallen(seen), np.zeros(self.n, np.bool_), terms)
