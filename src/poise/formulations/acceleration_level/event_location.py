"""Sub-frame stepping (KOK §7): a tentative step that has gone into something is taken back, and a shorter one tried.

KOK halves the step. Here Newton's method, from the depth and the speed of what has gone in, finds the moment of contact
in a few tries; halving is left for where it leads out of the interval that the moment lies in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.formulations.acceleration_level.evaluate_rows import Seen

Array = NDArray[Any]
TOUCH = 1e-6
"""Gap that counts as none, and depth that counts as none; m or rad."""
DEEP = 1e-4
"""Depth that is left to what is on its way out; m or rad."""
TRIES = 60
"""Of a part at most."""
SHORTEST = 1e-7
"""Interval, of a step, in which the moment of contact need not be looked for."""

Trial = Callable[[float], Seen | None]
"""From the state at the beginning of the part: go on for a time, and look; None where there are no forces for it."""


@dataclass(frozen=True)
class Found:
    """A part of a step that was taken."""

    seen: Seen
    """Rows at its end."""
    length: float
    """s."""
    backtracks: int
    """Tentative steps that were taken back."""


class Start:
    """What overlaps at the beginning of a part, and what is held."""

    def __init__(self, seen: Seen, held: set[int]) -> None:
        self.held = np.array(sorted(held), np.int64)
        below = seen.one_sided & (seen.phi < 0.0)
        self.gaps: dict[int, float] = {}
        self.pairs: dict[int, float] = {}
        for k in np.flatnonzero(below):
            phi, pair = float(seen.phi[k]), int(seen.pairs[k])
            self.gaps[int(seen.keys[k])] = phi
            if pair >= 0:
                self.pairs[pair] = min(phi, self.pairs.get(pair, 0.0))

    def free(self, seen: Seen) -> Array:
        """(B,) blocks that only push and are not held."""
        return np.asarray(seen.one_sided & ~np.isin(seen.keys, self.held))

    def gone_in(self, seen: Seen) -> Array:
        """(B,) whether blocks that were not held are deeper in than they were, and on their way in.

        What is on its way out again is left alone up to a depth: it has been in for less than the part, or the
        integrator has taken a bend for straight.
        """
        bad = self.free(seen) & (seen.phi < np.where(seen.approach() < 0.0, -TOUCH, -DEEP))
        for k in np.flatnonzero(bad):
            known = min(self.gaps.get(int(seen.keys[k]), 0.0), self.pairs.get(int(seen.pairs[k]), 0.0))
            bad[k] = seen.phi[k] < known - TOUCH
        return bad


def to_first_contact(trial: Trial, start: Start, length: float, dt: float) -> Found | None:
    """Go on for a time, or up to the first contact on the way; None where a trial finds no forces.

    The state is that at the end of the part that is told.
    """
    low, high, now, backtracks = 0.0, length, length, 0
    for _ in range(TRIES):
        seen = trial(now)
        if seen is None:
            return None
        bad = start.gone_in(seen)
        if not bad.any():
            if high == length and now == length:
                return Found(seen, now, backtracks)
            low = now
            if _meets(start, seen) or high - low <= SHORTEST * dt:
                return Found(seen, now, backtracks)
        else:
            high = now
            backtracks += 1
            if high - low <= SHORTEST * dt:
                return Found(seen, now, backtracks)  # it was in from the beginning on
        now = _next(start, seen, bad, low, high, now)
    seen = trial(high)
    return None if seen is None else Found(seen, high, backtracks)


def _meets(start: Start, seen: Seen) -> bool:
    """Whether something that was not held touches, and approaches."""
    return bool((start.free(seen) & (seen.phi <= TOUCH) & (seen.approach() < 0.0)).any())


def _next(start: Start, seen: Seen, bad: Array, low: float, high: float, now: float) -> float:
    """The next length to try: the earliest moment at which what has gone in, or is near, would have touched."""
    speed, phi = seen.approach(), seen.phi
    near = bad if bad.any() else start.free(seen) & (phi > TOUCH)
    near = near & (speed < 0.0)
    guess = now + float((phi[near] / -speed[near]).min()) if near.any() else low
    return guess if low < guess < high else 0.5 * (low + high)
