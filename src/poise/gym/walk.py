"""To walk at a speed."""

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
"""Power beyond this, of the weight times 1 m/s, costs no more."""


class Walk(Task):
    """Go along x at `speed` (m/s): one number, or two between which each episode draws its own.

    A step pays 0.3 + 0.7 exp(−4 e²) − `effort` × power: e is what the velocity of the centre of mass on the ground is
    off; power is Σ |τ v| of joints, in parts of the weight times 1 m/s. It is over when the person has fallen, as in
    `Stand`. Where to face, and how fast to go, is seen.
    """

    def __init__(self, n: int = 1, *, speed: Any = 1.0, effort: float = 0.05, **options: Any) -> None:
        super().__init__(n, **options)
        self.speed = _speeds(speed)
        self.effort = at_least("effort", effort, 0.0)
        self.target = np.full(self.n, self.speed[0])
        """(n,) speeds of this episode; m/s."""

    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """Near the pose at rest."""
        q, v = self.near_rest(draws)
        low, high = self.speed
        self.target[which] = [rng.uniform(low, high) for rng in draws]
        return q, v

    def view(self, seen: Seen) -> list[Array]:
        """Where x is, and how fast to go."""
        c, s = seen.heading.T
        return [np.stack((c, -s, self.target), axis=1)]

    def outcome(self, seen: Seen) -> Outcome:
        """As fast as asked, with little power."""
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
