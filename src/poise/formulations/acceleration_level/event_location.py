"""Event location by backtracking (KOK §7): a tentative step that penetrates is undone, and a shorter one is tried.

KOK bisects the step. Here Newton's method, on the depth and speed of the penetration, finds the time of contact in a
few trials; bisection is used where it leaves the interval that contains this time.
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
"""Gap, or depth, that counts as touching; m or rad."""
DEEP = 1e-4
"""Depth that is tolerated while it decreases; m or rad."""
TRIES = 60
"""Of a part, at most."""
SHORTEST = 1e-7
"""Interval, relative to the step, in which the time of contact is not searched further."""

Trial = Callable[[float], Seen | None]
"""Step from the beginning of the part for a time, and evaluate the rows; None if no forces satisfy them."""


@dataclass(frozen=True)
class Found:
    """A completed part of a step."""

    seen: Seen
    """Rows at its end."""
    length: float
    """s."""
    backtracks: int
    """Number of tentative steps that were undone."""


class Start:
    """Overlaps at the beginning of a part, and the active blocks."""

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
        """(B,) blocks that only push and are not active."""
        return np.asarray(seen.one_sided & ~np.isin(seen.keys, self.held))

    def gone_in(self, seen: Seen) -> Array:
        """(B,) whether inactive blocks are deeper than at the beginning, and still approaching.

        Separating blocks are tolerated up to a depth: they penetrated for less than the part, or the integrator
        replaced a curve by a straight line.
        """
        bad = self.free(seen) & (seen.phi < np.where(seen.approach() < 0.0, -TOUCH, -DEEP))
        for k in np.flatnonzero(bad):
            known = min(self.gaps.get(int(seen.keys[k]), 0.0), self.pairs.get(int(seen.pairs[k]), 0.0))
            bad[k] = seen.phi[k] < known - TOUCH
        return bad


def to_first_contact(trial: Trial, start: Start, length: float, dt: float) -> Found | None:
    """Step for a time, or up to the first contact within it; None if a trial finds no forces.

    The state is that at the end of the returned part.
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
                return Found(seen, now, backtracks)  # it was in from the beginning
        now = _next(start, seen, bad, low, high, now)
    seen = trial(high)
    return None if seen is None else Found(seen, high, backtracks)


def _meets(start: Start, seen: Seen) -> bool:
    """Whether an inactive block touches, and approaches."""
    return bool((start.free(seen) & (seen.phi <= TOUCH) & (seen.approach() < 0.0)).any())


def _next(start: Start, seen: Seen, bad: Array, low: float, high: float, now: float) -> float:
    """The next length to try: the earliest time at which penetrating, or near, blocks would have touched."""
    speed, phi = seen.approach(), seen.phi
    near = bad if bad.any() else start.free(seen) & (phi > TOUCH)
    near = near & (speed < 0.0)
    guess = now + float((phi[near] / -speed[near]).min()) if near.any() else low
    return guess if low < guess < high else 0.5 * (low + high)
