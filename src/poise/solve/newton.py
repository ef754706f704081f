"""Newton's method on the natural map, for problems that sweeps or passes leave unsolved.

The natural map G(λ) = scale (λ − P(λ − w/scale)), with P the solution of a row or block alone, is piecewise smooth
(`residuals.natural_map`). A step solves the linear system of the present pieces (Qi and Sun 1993; for friction: Alart
and Curnier 1991), and goes as far along it as |G| decreases. It takes few steps, each as expensive as a factorization,
without a guarantee of convergence: its result is measured like any other answer. Rows are weighted by 1/√scale, so that
their units do not matter.

If the system of the pieces is singular and has no solution, multipliers must first move along a direction without
effect, until one of them reaches a bound. So a spring holds them near their present values (a proximal point step,
Rockafellar 1976): w + softness (λ − λ before) has no such direction. After an answer the spring is made softer, after a
failure firmer (as Levenberg 1944 and Marquardt 1963 do).

|G| has kinks, along which a monotone search may only take ever shorter steps. After a few short steps it stops and
takes a few bold ones, for which |G| may grow.

If no search from a given start succeeds, another one begins with soft rows, whose answer is easily found, and makes
them stiffer step by step (a continuation). Of the many answers of redundant rows it finds a short one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite

import numpy as np

from poise.kernel.blas import few_blas_threads
from poise.solve.cones import STEEP
from poise.solve.laws import UPRIGHT, Law
from poise.solve.problem import Ball, Floats, Friction, Options, Problem, Result
from poise.solve.residuals import in_cone, natural_map, nearest_in_ball, report, size_of

STEPS = 100
"""Most steps."""
HALVINGS = 10
"""Most halvings of a step, in search of a lower residual."""
POLISHING = 10
"""Most steps that improve an answer: for rows that depend on each other the first ones gain little."""
ROUNDING = 1e-12
"""Natural residual, relative to the largest |b|, from rounding of a few hundred rows."""
RANK = 1e-12
"""Singular values below this share of the largest count as zero."""
SHORT, SHORT_STEPS = 0.1, 4
"""Share of a step that counts as short, and number of short steps in a row after which a search ends."""
BOLD_STEPS, BOLD = 8, 100.0
"""Most bold steps, and the factor by which |G| may exceed its value before them."""
PULLS, SOFTEST = 30, 1.0
"""Most springs, and the greatest softness, relative to the diagonal."""
LOOSER, FIRMER = 0.2, 10.0
"""Factor of a spring after an answer, and after a failure."""
STIFFER, STIFF = 0.3, 1e-10
"""Factor of softness from one problem to the next, and its least value, relative to the diagonal."""


@few_blas_threads
def newton(problem: Problem, start: Floats, tolerance: float, steps: int = STEPS) -> tuple[Floats, list[float]]:
    """The best multipliers, within their bounds, and the largest natural residual, in units of w, after each step.

    >>> problem = Problem([[2.0, 1.0], [1.0, 2.0]], [-3.0, 6.0], lo=[0.0, 0.0])
    >>> newton(problem, np.zeros(2), 1e-12)[0].tolist()
    [1.5, 0.0]
    """
    first = within(problem, start)
    if not isfinite(_largest(problem, first)):
        first = within(problem, np.zeros(problem.size))
    search = _Search(problem, first, tolerance, steps)
    search.descend(problem, first)
    scales, centre, firmness = scales_of(problem), search.best, 1.0
    for _ in range(PULLS):
        own = scales * min(firmness * _softness(problem, centre, scales), SOFTEST)
        if search.over or not np.isfinite(own * centre).all():
            break
        held = replace(problem, cfm=problem.cfm + own, b=problem.b - own * centre)
        reached, lam = search.descend(held, centre)
        centre, firmness = (lam, firmness * LOOSER) if reached else (centre, firmness * FIRMER)
    return search.best, search.residuals


def newton_from_soft(
    problem: Problem, tolerance: float, steps: int = STEPS, uneven: int = 0
) -> tuple[Floats, list[float]]:
    """As `newton`, without a start: the answer with soft rows, followed while they are made stiffer.

    All rows have the same softness, relative to their diagonals; or different ones, by a random seed `uneven` > 0.

    >>> problem = Problem([[1.0, 1.0], [1.0, 1.0]], [-3.0, -3.0], lo=[0.0, 0.0])
    >>> newton_from_soft(problem, 1e-9)[0].round(6).tolist()  # of many answers a short one
    [1.5, 1.5]
    """
    own, lam, softness = scales_of(problem), within(problem, np.zeros(problem.size)), SOFTEST
    if uneven:
        own = own * np.exp(np.random.default_rng(uneven).uniform(-1.0, 1.0, problem.size))
    search = _Search(problem, lam, tolerance, steps)
    while softness > STIFF and not search.over:
        _, lam = search.descend(replace(problem, cfm=problem.cfm + softness * own), lam)
        softness *= STIFFER
    search.descend(problem, lam)
    return search.best, search.residuals


def _softness(problem: Problem, lam: Floats, scales: Floats) -> float:
    """Softness, relative to the diagonal, of a spring with which λ moves by about its own size."""
    size = float(np.abs(lam * np.sqrt(scales)).max(initial=0.0)) or 1.0
    return float(np.abs(natural_map(problem, lam) / np.sqrt(scales)).max(initial=0.0)) / size


class _Search:
    """State of a search: the best multipliers so far."""

    def __init__(self, problem: Problem, start: Floats, tolerance: float, steps: int) -> None:
        self.problem, self.tolerance, self.left = problem, tolerance, steps
        self.best = start
        self.least = _largest(problem, start)
        self.residuals: list[float] = []

    @property
    def over(self) -> bool:
        """Whether the tolerance is met, or the steps are used up."""
        return self.least <= self.tolerance or self.left <= 0

    def descend(self, held: Problem, lam: Floats) -> tuple[bool, Floats]:
        """Newton steps on a problem, with or without springs; returns whether they reach an answer, and the last λ."""
        reached, lam = self._steps(held, lam, bold=False)
        return (True, lam) if reached or self.over else self._steps(held, lam, bold=True)

    def _steps(self, held: Problem, lam: Floats, bold: bool) -> tuple[bool, Floats]:
        """Monotone steps, or a few bold ones; returns whether they reach an answer of the problem, and the last λ."""
        A, scales = held.matrix(), scales_of(held)
        weights = 1.0 / np.sqrt(scales)
        allowed = (BOLD if bold else 1.0) * _length(held, lam, weights)
        short = 0
        for _ in range(BOLD_STEPS if bold else self.left):
            reached = _largest(held, within(held, lam)) <= self.tolerance
            if reached or self.over:
                return reached, lam
            step = _step(held, A, lam, scales, weights)
            share, length = _share(held, lam, step, weights, allowed)
            short = 0 if share >= SHORT else short + 1
            if share == 0.0 or short > SHORT_STEPS:
                return False, lam
            allowed = allowed if bold else length
            lam = lam + share * step
            self.left -= 1
            self._look(lam)
        return _largest(held, within(held, lam)) <= self.tolerance, lam

    def _look(self, lam: Floats) -> None:
        found = within(self.problem, lam)
        self.residuals.append(_largest(self.problem, found))
        if self.residuals[-1] < self.least:
            self.best, self.least = found, self.residuals[-1]


def polished(problem: Problem, found: Result, options: Options) -> Result:
    """The same answer, improved by a few steps if its residual is above rounding: w of nearly dependent rows."""
    size = size_of(problem)
    if not found.ok or found.natural <= ROUNDING * size:
        return found
    lam, steps = newton(problem, found.lam, 1e-2 * ROUNDING * size, POLISHING)
    better = report(problem, lam, found.iterations + len(steps), options)
    return replace(better, status=found.status) if better.natural < found.natural else found


def within(problem: Problem, lam: Floats) -> Floats:
    """(m,) λ projected onto its bounds, laws, balls and cones."""
    out = np.clip(lam, problem.lo, problem.hi)
    for row, law in problem.laws.items():
        out[row] = min(max(lam[row], law.lo), law.hi)
    for ball in problem.balls:
        out[list(ball.rows)] = nearest_in_ball(lam[list(ball.rows)], ball.radius)
    for friction in problem.frictions:
        rows, tangents = [friction.normal, *friction.tangents], list(friction.tangents)
        if friction.cone:
            out[rows] = in_cone(lam[rows], friction.mu)
        else:
            out[friction.normal] = max(float(lam[friction.normal]), 0.0)
            reach = friction.mu * out[friction.normal]
            out[tangents] = np.clip(lam[tangents], -reach, reach)
    return np.asarray(out, np.float64)


def is_definite(problem: Problem, lam: Floats) -> bool:
    """Whether the pieces at an answer λ make a regular system: then no other multipliers near it solve the problem."""
    scales = scales_of(problem)
    matrix = slopes(problem, problem.matrix(), lam, scales) / np.sqrt(np.outer(scales, scales))
    return bool(np.linalg.matrix_rank(matrix, rtol=RANK) == problem.size)


def scales_of(problem: Problem) -> Floats:
    """(m,) the rows' own inverse masses; 1 where a row has none."""
    return np.where(problem.diagonal > 0.0, problem.diagonal, 1.0)


def _largest(problem: Problem, lam: Floats) -> float:
    """Largest natural residual; infinite where λ is not finite."""
    if not np.isfinite(lam).all():
        return inf
    largest = float(np.abs(natural_map(problem, lam)).max(initial=0.0))
    return largest if isfinite(largest) else inf


def _step(problem: Problem, A: Floats, lam: Floats, scales: Floats, weights: Floats) -> Floats:
    """(m,) step that solves the linear system of the pieces at λ; the shortest one if there are many."""
    matrix = slopes(problem, A, lam, scales) * weights[:, None] * weights
    right = -natural_map(problem, lam) * weights
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros(len(lam))
    try:
        x = np.linalg.solve(matrix, right)
        if np.abs(matrix @ x - right).max() <= 1e-8 * np.abs(right).max():
            return np.asarray(x * weights)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK)[0] * weights)


def _length(problem: Problem, lam: Floats, weights: Floats) -> float:
    """|G| with weighted rows."""
    return float(np.linalg.norm(weights * natural_map(problem, lam)))


def _share(problem: Problem, lam: Floats, step: Floats, weights: Floats, allowed: float) -> tuple[float, float]:
    """Share of a step, the largest by repeated halving that decreases |G| below what is allowed, and |G| there.

    The share is 0 if there is none.
    """
    for halvings in range(HALVINGS):
        share = 0.5**halvings
        length = _length(problem, lam + share * step, weights)
        if length < (1.0 - 1e-4 * share) * allowed:
            return share, length
    return 0.0, inf


# ---- slopes of the natural map ---------------------------------------------------------------------------------------


def slopes(problem: Problem, A: Floats, lam: Floats, scales: Floats) -> Floats:
    """(m, m) dG/dλ at λ: of a single row P′ A + (1 − P′) scale, P′ being 1 if it is free and 0 at a bound."""
    w = problem.residual(lam)
    aim = lam - w / scales
    free = ((aim > problem.lo) & (aim < problem.hi)).astype(np.float64)
    for row, law in problem.laws.items():
        free[row] = _law_slope(law, float(scales[row]), float(w[row] - scales[row] * lam[row]))
    out = A * free[:, None] + np.diag(scales * (1.0 - free))
    for ball in problem.balls:
        _set_ball(out, ball, A, lam, w, scales)
    for friction in problem.frictions:
        (_set_cone if friction.cone else _set_pyramid)(out, friction, A, lam, w, scales)
    return out


def _law_slope(law: Law, scale: float, rest: float) -> float:
    """P′ of a law: scale / (scale + c) on a piece w = … − c λ, 0 on a vertical one."""
    lam = law.solve(scale, rest)
    points = law.vertices
    if lam < points[0][0] or lam > points[-1][0]:
        slope = law.left if lam < points[0][0] else law.right
        return 0.0 if slope == UPRIGHT else scale / (scale - slope)
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 < lam < x1:
            return scale / (scale + (y0 - y1) / (x1 - x0))
    return 0.0


def _set_ball(out: Floats, ball: Ball, A: Floats, lam: Floats, w: Floats, scales: Floats) -> None:
    rows = list(ball.rows)
    scale = float(scales[rows].max())
    aim = lam[rows] - w[rows] / scale
    size, free = float(np.linalg.norm(aim)), np.eye(len(rows))
    if size > ball.radius:
        free = (free - np.outer(aim, aim) / size**2) * (ball.radius / size)
    _set_block(out, rows, free, A[rows], scale)


def _set_pyramid(out: Floats, friction: Friction, A: Floats, lam: Floats, w: Floats, scales: Floats) -> None:
    """The normal row like any other; a tangent row at its bound follows ±μ λ_normal."""
    aim, normal = lam - w / scales, friction.normal
    reach = friction.mu * max(float(lam[normal]), 0.0)
    for row in (normal, *friction.tangents):
        free = aim[row] > 0.0 if row == normal else abs(aim[row]) < reach
        out[row] = A[row] if free else 0.0
        if not free:
            out[row, row] = scales[row]
            if row != normal and lam[normal] > 0.0:
                out[row, normal] = -scales[row] * friction.mu * np.sign(aim[row])


def _set_cone(out: Floats, friction: Friction, A: Floats, lam: Floats, w: Floats, scales: Floats) -> None:
    """Derivative of the projection onto the cone and of De Saxcé's correction μ |w_tangent| of the normal residual; a
    steep cone has no correction, and its tangent follows the normal.
    """
    rows, mu = [friction.normal, *friction.tangents], friction.mu
    scale, slip = float(scales[rows].max()), w[rows[1:]]
    speed = float(np.linalg.norm(slip))
    felt, corrected = A[rows], w[rows].copy()
    if speed > 0.0 and mu <= STEEP:
        felt = felt.copy()
        felt[0] += mu * (slip / speed) @ A[rows[1:]]
        corrected[0] += mu * speed
    aim = lam[rows] - corrected / scale
    normal, slide = float(aim[0]), float(np.linalg.norm(aim[1:]))
    free = np.eye(len(rows))
    if mu > STEEP:
        if normal <= 0.0:
            free[:] = 0.0
        elif slide > mu * normal:
            way = aim[1:] / slide
            free[1:, 1:] = (free[1:, 1:] - np.outer(way, way)) * (mu * normal / slide)
            free[1:, 0] = mu * way
    elif mu * slide <= -normal and (slide > 0.0 or normal < 0.0):
        free[:] = 0.0
    elif slide > mu * normal:
        way = aim[1:] / slide
        along = np.concatenate(([1.0], mu * way))
        free[1:, 1:] -= np.outer(way, way)
        free *= mu * (normal + mu * slide) / slide
        free[0, 0] = 0.0
        free = (free + np.outer(along, along)) / (1.0 + mu * mu)
    _set_block(out, rows, free, felt, scale)


def _set_block(out: Floats, rows: list[int], free: Floats, felt: Floats, scale: float) -> None:
    out[rows] = free @ felt
    out[np.ix_(rows, rows)] += scale * (np.eye(len(rows)) - free)
