"""Anderson's acceleration of a fixed-point iteration λ ← G(λ) (Anderson 1965; Walker and Ni 2011, algorithm AA).

The next point is the combination of the last ones whose steps f = G(λ) − λ cancel best:

    min |f_k − ΔF γ|,   λ_{k+1} = G(λ_k) − ΔG γ

If the iteration is linear this is GMRES in disguise. The actual iteration has kinks, so that a combination may diverge:
when the residual grows, the history is cleared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TRUST = 2.0
"""Growth of the residual over the best one at which the history is cleared."""
RANK = 1e-10
"""Singular values below this share of the largest are noise."""


REACH = 1e6
"""Largest proposal, relative to the last step: rounding errors would dominate the direction of multipliers that drift
without bound."""


STALL = 30
"""Steps without a better residual after which the history is cleared."""


class Anderson:
    """Keeps the last steps and proposes the next point.

    When proposals diverge it returns to the best point and pauses the acceleration, each time for twice as long: plain
    convergence is kept.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.points: list[Floats] = []
        self.steps: list[Floats] = []
        self._best, self._best_point, self._stalled = np.inf, np.zeros(0), 0
        self._rest, self._next_rest = 0, 1

    def propose(self, before: Floats, after: Floats, residual: float) -> Floats:
        """The next point, after G has mapped `before` to `after`, whose residual is given."""
        self._stalled += 1
        if residual < self._best:
            self._best, self._best_point, self._stalled = residual, after, 0
        if self._rest:
            self._rest -= 1
            self._stalled = 0
            return after
        if not residual < TRUST * self._best or self._stalled > STALL:
            self.points, self.steps, self._stalled = [], [], 0
            self._rest, self._next_rest = self._next_rest, 2 * self._next_rest
            return self._best_point if self._best_point.size else after
        self.points = [*self.points, after][-self.memory - 1 :]
        self.steps = [*self.steps, after - before][-self.memory - 1 :]
        return after if len(self.steps) == 1 else self._combine(after)

    def _combine(self, after: Floats) -> Floats:
        if not np.isfinite(self.steps).all():
            return after
        changes, moves = np.diff(self.steps, axis=0).T, np.diff(self.points, axis=0).T
        way = moves @ np.linalg.lstsq(changes, self.steps[-1], rcond=RANK)[0]
        near = float(np.abs(way).max(initial=0.0)) <= REACH * float(np.abs(self.steps[-1]).max(initial=0.0))
        return np.asarray(after - way if near else after)
