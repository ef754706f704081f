"""Impacts between the parts of a step (KOK §5): impulses that change velocities in an instant.

    w = J v⁺ − v_wanted,   v⁺ = v⁻ + M⁻¹ Jᵀ λ

The first solve is without restitution; then contacts that push after a fast approach get the velocity −e v⁻ (KOK §8.1).
With friction this may add energy (Newton's restitution, T. Kane 1985): then e is reduced to the share at which impulses
do no work. Impacts also stop the motion of loop joints and couplings, which may have just been attached. Impulses
without restitution never do positive work: λᵀ(v⁻ + v⁺)/2 = λᵀ v⁺ − λᵀ A λ/2 ≤ 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.row_store import BALL, CONTACT
from poise.formulations.acceleration_level.evaluate_rows import Seen
from poise.formulations.acceleration_level.solve_forces import STEP_WORK, is_led
from poise.solve.newton import newton
from poise.solve.pgs import PGS
from poise.solve.problem import Friction, Options, Problem
from poise.solve.residuals import natural_map, size_of

Array = NDArray[Any]
HALVINGS = 30
"""Bisections of the share of restitution."""
SWEEPS = 5000
SWEEP_WORK = 3e5
"""Work of a sweep besides its multiply-adds, for its other costs."""
TOLERANCE = 1e-10


def impulses(seen: Seen, touching: Array, bouncing: Array, most: float = np.inf) -> tuple[Array, int, float]:
    """(m,) impulses of all rows, iterations and work; `touching` and `bouncing` mark blocks, (B,).

    Above `most` work, the search for the share of restitution ends with the last share that did no work.
    """
    listed, normals, frictions, lo = _listed(seen, touching)
    if not listed:
        return np.zeros(len(seen.speed)), 0, 0.0
    A, before = seen.A[np.ix_(listed, listed)], seen.speed[listed]
    wanted = np.where([_is_kept(seen, row) for row in listed], before, 0.0)
    hi = np.full(len(listed), np.inf)
    bounce = np.zeros(len(listed))
    for at, k in normals:
        bounce[at] = seen.one["bounce"][listed[at]] if bouncing[k] else 0.0
    x, spent, work = _solve(Problem(A, before - wanted, lo, hi, frictions=frictions), np.zeros(len(listed)))
    bounce[x <= 0.0] = 0.0
    if bounce.any():
        passive = np.array([not _is_kept(seen, row) for row in listed])
        still = x

        def share_of(share: float) -> Array | None:
            nonlocal spent, work
            if 0.0 < share < 1.0 and work >= most:
                return None
            b = np.where(bounce > 0.0, before - share * bounce, before - wanted)
            lam, more, cost = _solve(Problem(A, b, lo, hi, frictions=frictions), still)
            spent, work = spent + more, work + cost
            return lam

        x = _without_gain(A, before, passive, share_of)
    lam = np.zeros(len(seen.speed))
    lam[listed] = x
    return seen.redundant.share_load(lam), spent, work


def _without_gain(A: Array, before: Array, passive: Array, share_of: Any) -> Array:
    """The impulses of the largest share of restitution that do no work."""

    def work(lam: Array) -> float:
        return float((lam * (before + 0.5 * (A @ lam)))[passive].sum())

    scale = float(before @ before) / max(float(np.diag(A).max()), 1e-300)
    lam = share_of(1.0)
    if work(lam) <= 1e-12 * scale:
        return np.asarray(lam)
    low, high, best = 0.0, 1.0, share_of(0.0)
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        lam = share_of(share)
        if lam is None:
            break
        if work(lam) <= 0.0:
            low, best = share, lam
        else:
            high = share
    return np.asarray(best)


def _is_kept(seen: Seen, row: int) -> bool:
    """Whether a row keeps its velocity through an impact: that of a tracked coordinate, or of a motor
    without bounds.
    """
    k = int(np.searchsorted(seen.starts, row, side="right")) - 1
    return is_led(int(seen.keys[k]))


def _listed(seen: Seen, touching: Array) -> tuple[list[int], list[tuple[int, int]], list[Friction], list[float]]:
    """Rows that take part, normals with their blocks, friction, least impulses. Finite forces take no part."""
    listed: list[int] = []
    normals, frictions, lo = [], [], list[float]()
    one_sided, left = seen.one_sided, seen.redundant.is_left(len(seen.speed))
    for k in range(len(seen.keys)):
        n, at = int(seen.starts[k]), len(listed)
        endless = seen.one["lo"][n] == -np.inf and seen.one["hi"][n] == np.inf and seen.kinds[k] != BALL
        if seen.A[n, n] == 0.0:  # nothing can move it
            continue
        if one_sided[k] and touching[k]:
            listed.append(n)
            lo.append(0.0)
            normals.append((at, k))
            if seen.kinds[k] == CONTACT:
                listed += [n + 1, n + 2]
                lo += [-np.inf, -np.inf]
                frictions.append(Friction(at, (at + 1, at + 2), float(seen.one["strike"][n])))
        elif not one_sided[k] and endless and not left[n]:
            listed.append(n)
            lo.append(-np.inf)
    return listed, normals, frictions, lo


def _solve(problem: Problem, warm: Array) -> tuple[Array, int, float]:
    goal = TOLERANCE * size_of(problem)
    x, steps = newton(problem, warm, goal, 50)
    work = len(steps) * (STEP_WORK + float(problem.size) ** 3)
    if float(np.abs(natural_map(problem, x)).max(initial=0.0)) <= goal:
        return x, len(steps), work
    swept = PGS(memory=5).solve(problem, Options(TOLERANCE, SWEEPS, x))
    return swept.lam, len(steps) + swept.iterations, work + (SWEEP_WORK + problem.size**2) * float(swept.iterations)
