"""Walking at a given speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.gym.figure import Seen
from poise.gym.joints import ROOT
from poise.gym.stand import fallen
from poise.gym.task import Outcome, Task, at_least

Array = NDArray[Any]
MOST_COST = 10.0
"""Upper bound of the power that the reward counts, over weight times 1 m/s."""


class Walk(Task):
    """Walk along x at `speed` (m/s): one number, or two between which each episode draws its own.

    The reward of a step is 0.3 + 0.7 exp(−4 e²) − `effort` × power: e is the error of the horizontal velocity of the
    centre of mass; power is Σ |τ v| of joints, over weight times 1 m/s. An episode ends when the figure has fallen, as
    in `Stand`. Observations include the direction of x and the speed.
    """

    def __init__(self, n: int = 1, *, speed: Any = 1.0, effort: float = 0.05, **options: Any) -> None:
        super().__init__(n, **options)
        self.speed = _speeds(speed)
        self.effort = at_least("effort", effort, 0.0)
        self.target = np.full(self.n, self.speed[0])
        """(n,) target speeds of this episode; m/s."""

    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """Near the rest pose."""
        q, v = self.near_rest(draws)
        low, high = self.speed
        self.target[which] = [rng.uniform(low, high) for rng in draws]
        return q, v

    def view(self, seen: Seen) -> list[Array]:
        """The direction of x, and the target speed."""
        c, s = seen.heading.T
        return [np.stack((c, -s, self.target), axis=1)]

    def outcome(self, seen: Seen) -> Outcome:
        """Reward for the target speed with little power."""
        off = seen.com_velocity[:, :2] - np.stack((self.target, np.zeros(self.n)), axis=1)
        going = np.exp(-4.0 * np.sum(np.square(off), axis=1))
        torques = self.figure.joints.torques(seen.q, seen.v, self.goals)
        power = np.sum(np.abs(torques * seen.v[:, ROOT:]), axis=1) / self.figure.weight
        reward = 0.3 + 0.7 * going - self.effort * np.minimum(power, MOST_COST)
        terms = {"going": going, "power": power, "speed": seen.com_velocity[:, 0]}
        return Outcome(reward, fallen(seen), np.zeros(self.n, np.bool_), terms)


def _speeds(speed: Any) -> tuple[float, float]:
    pair = tuple(speed) if isinstance(speed, tuple | list | np.ndarray) and np.ndim(speed) else (speed, speed)
    if len(pair) != 2:
        raise ValueError(f"speed is {speed!r}; it must be a number, or the least and the greatest; m/s")
    low, high = (at_least("speed", value, 0.0) for value in pair)
    if high < low:
        raise ValueError(f"speed is {speed!r}; the least comes first")
    return low, high
