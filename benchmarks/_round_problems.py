"""Random problems with known answers that take more than one solution: secondary targets, friction that drops.

As in `_problems`, an answer that obeys every law is drawn first, and b after it. Other answers may exist.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _problems import Known, Rng, bounded_rows, cone, pyramid

from poise.solve.problem import Friction, Help, Problem


def secondary(rng: Rng) -> Known:
    """A row with one to three helpers among rows with all kinds of bounds.

    The helped row is inside its bounds, or at one with w = 0 by just enough help (shifts y = s/t in proportion to what
    each does for w, cut off at 1: the conditions of the least Σ y²), or at one with all helpers at their tolerances.
    """
    k = int(rng.integers(1, 4))
    known = bounded_rows(rng, 1 + k + int(rng.integers(0, 5)))
    A, lam, lo, hi = known.problem.matrix(), known.lam, known.problem.lo.copy(), known.problem.hi.copy()
    # no row at its bound with w = 0: that would be a corner between pieces
    w = np.where(lam == lo, np.abs(known.w) + 0.1, np.where(lam == hi, -np.abs(known.w) - 0.1, 0.0))
    side, place, tolerances = float(rng.choice([-1.0, 1.0])), int(rng.integers(3)), rng.uniform(0.1, 2.0, k)
    lo[0], hi[0] = -rng.uniform(0.1, 1.0), rng.uniform(0.1, 1.0)
    lam[0], w[0] = (0.0, 0.0) if place == 0 else (hi[0] if side > 0.0 else lo[0], 0.0)
    held = np.flatnonzero((lam > lo) & (lam < hi))
    free = np.intersect1d(held, np.arange(1, 1 + k))
    if place and free.size:
        answers = np.linalg.solve(A[np.ix_(held, held)], (held[:, None] == free) * 1.0)
        effects = A[0, held] @ answers * tolerances[free - 1]
        y = side * effects / np.abs(effects).max() * rng.uniform(0.2, 2.0)
        y = np.clip(y, -1.0, 1.0) if place == 1 else np.sign(y)
        w[free] = y * tolerances[free - 1]
    if place and np.all(np.abs(w[free]) == tolerances[free - 1]):
        w[0] = -side * rng.exponential()
    helps = [Help(0, tuple(range(1, 1 + k)), tuple(tolerances.tolist()))]
    return Known(Problem(A, w - A @ lam, lo, hi, helps=helps), lam, w, unique=False)


def stick_slip_pyramid(rng: Rng) -> Known:
    """Pyramids whose friction drops once they slide. Between the two coefficients another answer exists."""
    return with_drops(pyramid(rng), rng)


def stick_slip_cone(rng: Rng) -> Known:
    """Cones whose friction drops once they slide. Between the two coefficients another answer exists."""
    return with_drops(cone(rng), rng)


def with_drops(known: Known, rng: Rng) -> Known:
    """The same contacts and answer, those that slide with a larger coefficient for rest, others with a smaller one."""
    frictions, lam, w = [], known.lam, known.w
    for f in known.problem.frictions:
        tangents, now, drop = list(f.tangents), bool(rng.random() < 0.4), float(rng.uniform(0.3, 0.9))
        static, sliding = f.mu, drop * f.mu
        if np.any(w[tangents] != 0.0) and lam[f.normal] > 0.0:
            static, sliding = f.mu / drop, f.mu
        elif np.linalg.norm(lam[tangents]) > sliding * lam[f.normal]:
            now = False
        frictions.append(Friction(f.normal, f.tangents, static, f.cone, sliding, now))
    return Known(Problem(known.problem.A, known.problem.b, frictions=tuple(frictions)), lam, w, unique=False)


ROUNDS: dict[str, Callable[[Rng], Known]] = {
    "secondary": secondary,
    "stick_slip_pyramid": stick_slip_pyramid,
    "stick_slip_cone": stick_slip_cone,
}
"""By name."""


def draw_round(family: str, seed: int) -> Known:
    """The problem of a family that a seed gives."""
    return ROUNDS[family](np.random.default_rng([sum(map(ord, family)), seed]))
