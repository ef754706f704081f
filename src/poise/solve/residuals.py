"""Residuals of an answer: the natural map of every law, complementarity, bounds. The same for all solvers.

The natural map is the change of a row's multiplier by its law alone, with `scale` as its own inverse mass: it is zero
exactly at a solution, and Lipschitz everywhere. Residuals are in units of w: scale · Δλ.

    bounded row    λ − clip(λ − w/scale, lo, hi)
    piecewise law  λ − law.solve(scale, w − scale λ)
    ball           λ − P(λ − w/scale),       P the nearest point of the ball
    pyramid        as bounded rows, with the tangents' bounds μ λ_normal at the present λ_normal
    cone           λ − P(λ − (w + De Saxcé's correction)/scale), P the nearest point of the cone; the correction adds
                   μ |w_tangent| to the normal residual, which makes the cone's law Coulomb's
    steep cone     (μ > 1) λ − P(λ − w/scale), P clamping the normal to 0 or more first, then the tangent to at most
                   μ times that (Alart and Curnier 1991): a missing normal force counts fully, for any μ
    stick, slip    the smaller of two: at rest within the static bound, or Coulomb's law with the sliding coefficient.
                   A contact that was sliding has the second only
    helpers        as bounded rows, with w − s in place of w, s their shifts; and the distance of shifts and helped rows
                   from their secondary targets (`secondary.shortcoming`)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poise.solve.cones import STEEP
from poise.solve.problem import Friction, Options, Problem, Result, Status
from poise.solve.secondary import shifts_at, shortcoming

Floats = NDArray[np.float64]


def in_cone(point: Floats, mu: float) -> Floats:
    """A projection of (normal, tangents…) onto the cone |tangent| ≤ μ · normal: the nearest point; of a steep cone the
    normal alone first, then the tangent.

    >>> in_cone(np.array([1.0, 0.0, 3.0]), 1.0).tolist(), in_cone(np.array([1.0, 0.0, 3.0]), 2.0).tolist()
    ([2.0, 0.0, 2.0], [1.0, 0.0, 2.0])
    """
    if mu <= STEEP:
        return nearest_in_cone(point, mu)
    normal = max(float(point[0]), 0.0)
    return np.concatenate(([normal], nearest_in_ball(point[1:], mu * normal)))


def nearest_in_cone(point: Floats, mu: float) -> Floats:
    """The point (normal, tangents…) of the cone |tangent| ≤ μ · normal that is nearest.

    >>> nearest_in_cone(np.array([1.0, 0.0, 3.0]), 1.0).tolist()
    [2.0, 0.0, 2.0]
    """
    normal, tangent = point[0], point[1:]
    slide = float(np.linalg.norm(tangent))
    if slide <= mu * normal and normal >= 0.0:  # with μ = 0 the first condition does not bound the normal
        return point
    if mu * slide <= -normal:
        return np.zeros_like(point)
    share = (normal + mu * slide) / (1.0 + mu * mu)
    return np.concatenate(([share], tangent * (mu * share / slide)))


def nearest_in_ball(point: Floats, radius: float) -> Floats:
    """The point of the ball about zero that is nearest."""
    length = float(np.linalg.norm(point))
    return point if length <= radius else point * (radius / length)


def natural_map(problem: Problem, lam: Floats, w: Floats | None = None, scale: Floats | float | None = None) -> Floats:
    """(m,) natural residual of every row, in units of w; the default scale is the rows' own diagonals."""
    w = problem.residual(lam) if w is None else w
    scales = _scales(problem) if scale is None else np.broadcast_to(np.asarray(scale, np.float64), lam.shape)
    if not problem.helps:
        return _own_laws(problem, lam, w, scales)
    s = shifts_at(problem, lam, w)
    own = _own_laws(problem, lam, w - s, scales)
    short = shortcoming(replace(problem, frictions=settled(problem, lam, w, scales)), lam, w, s)
    return np.asarray(np.where(np.abs(short) > np.abs(own), short, own))


def _own_laws(problem: Problem, lam: Floats, w: Floats, scales: Floats) -> Floats:
    """(m,) natural residuals without help."""
    target = np.clip(lam - w / scales, problem.lo, problem.hi)
    for row, law in problem.laws.items():
        target[row] = law.solve(float(scales[row]), float(w[row] - scales[row] * lam[row]))
    for ball in problem.balls:
        rows = list(ball.rows)
        common = float(scales[rows].max())
        target[rows] = nearest_in_ball(lam[rows] - w[rows] / common, ball.radius)
    out = scales * (lam - target)
    for ball in problem.balls:
        rows = list(ball.rows)
        out[rows] = float(scales[rows].max()) * (lam[rows] - target[rows])
    for friction in problem.frictions:
        rows = [friction.normal, *friction.tangents]
        out[rows] = _contact(friction, lam[rows], w[rows], scales[rows])
    return np.asarray(out, np.float64)


def _contact(friction: Friction, lam: Floats, w: Floats, scales: Floats) -> Floats:
    """Natural residual of a contact (normal, tangents…), with one coefficient or with two."""
    slides = _friction(lam, w, friction.plain(sliding=True).mu, friction.cone, scales)
    if not friction.drops or friction.sliding_now:
        return slides
    rests = _at_rest(lam, w, friction.mu, friction.cone, scales)
    return rests if np.abs(rests).max() <= np.abs(slides).max() else slides


def _at_rest(lam: Floats, w: Floats, mu: float, cone: bool, scales: Floats) -> Floats:
    """Residual of a contact that should stick: tangents without sliding, their force within the bound."""
    out = w.copy()
    out[0] = scales[0] * (lam[0] - max(lam[0] - w[0] / scales[0], 0.0))
    reach, tangent = mu * max(lam[0], 0.0), lam[1:]
    within = nearest_in_ball(tangent, reach) if cone else np.clip(tangent, -reach, reach)
    over = scales[1:] * (tangent - within)
    out[1:] = np.where(np.abs(over) > np.abs(w[1:]), over, w[1:])
    return out


def settled(problem: Problem, lam: Floats, w: Floats, scales: Floats | None = None) -> tuple[Friction, ...]:
    """The contacts with one coefficient each: that of rest if they rest, else the sliding one."""
    scales = _scales(problem) if scales is None else scales
    out = []
    for friction in problem.frictions:
        rows = [friction.normal, *friction.tangents]
        rests = np.abs(_at_rest(lam[rows], w[rows], friction.most, friction.cone, scales[rows])).max()
        slides = np.abs(
            _friction(lam[rows], w[rows], friction.plain(sliding=True).mu, friction.cone, scales[rows])
        ).max()
        out.append(friction.plain(sliding=bool(slides < rests)))
    return tuple(out)


def _friction(lam: Floats, w: Floats, mu: float, cone: bool, scales: Floats) -> Floats:
    if not cone:
        reach = mu * max(lam[0], 0.0)
        low, high = np.full(lam.shape, -reach), np.full(lam.shape, reach)
        low[0], high[0] = 0.0, np.inf
        return np.asarray(scales * (lam - np.clip(lam - w / scales, low, high)))
    common = float(scales.max())
    corrected = w.copy()
    if mu <= STEEP:
        corrected[0] += mu * float(np.linalg.norm(w[1:]))
    return np.asarray(common * (lam - in_cone(lam - corrected / common, mu)))


def _scales(problem: Problem) -> Floats:
    """The rows' own inverse masses; 1 for a row that has none."""
    diagonal = problem.diagonal
    return np.where(diagonal > 0.0, diagonal, 1.0)


def complementarity(problem: Problem, lam: Floats, w: Floats) -> float:
    """Largest |λ − nearer bound| · |w| of a bounded row, and |λ w| of a contact's normal row; w − s of helpers."""
    w = w - shifts_at(problem, lam, w) if problem.helps else w
    lo, hi = np.asarray(problem.lo), np.asarray(problem.hi)
    apart = np.fmin(np.where(np.isfinite(lo), lam - lo, np.inf), np.where(np.isfinite(hi), hi - lam, np.inf))
    others = problem.block_rows() | set(problem.laws)
    bounded = [row for row in np.flatnonzero(np.isfinite(apart)) if int(row) not in others]
    normals = [friction.normal for friction in problem.frictions]
    worst = float(np.abs(apart[bounded] * w[bounded]).max(initial=0.0))
    return max(worst, float(np.abs(lam[normals] * w[normals]).max(initial=0.0)))


def violation(problem: Problem, lam: Floats) -> float:
    """Largest distance of multipliers from their bounds, balls and cones, in units of λ."""
    worst = float(np.maximum(problem.lo - lam, lam - problem.hi).max(initial=0.0))
    for law in problem.laws.items():
        worst = max(worst, law[1].lo - lam[law[0]], lam[law[0]] - law[1].hi)
    for ball in problem.balls:
        worst = max(worst, float(np.linalg.norm(lam[list(ball.rows)])) - ball.radius)
    for friction in problem.frictions:
        tangent = lam[list(friction.tangents)]
        size = float(np.linalg.norm(tangent)) if friction.cone else float(np.abs(tangent).max())
        worst = max(worst, -float(lam[friction.normal]), size - friction.most * max(float(lam[friction.normal]), 0.0))
    return max(worst, 0.0)


def size_of(problem: Problem) -> float:
    """Scale of tolerances: the largest part of a |b| that its row can remove alone; 1 if there is none.

    A motor with a limit may have any target velocity, a weak spring any error: if these counted fully, they would
    determine the tolerance of every row.

    >>> size_of(Problem(np.eye(2), [1e10, 3.0], lo=[-5.0, 0.0], hi=[5.0, np.inf]))
    5.0
    """
    own = np.maximum(problem.diagonal - problem.cfm, 0.0)
    b, most = np.abs(problem.b), np.maximum(problem.hi, -problem.lo)
    for ball in problem.balls:
        most[list(ball.rows)] = np.minimum(most[list(ball.rows)], ball.radius)
    soft, bounded = problem.cfm > 0.0, (most > 0.0) & (most < np.inf)
    b = b * np.divide(own, own + problem.cfm, out=np.ones(problem.size), where=soft)
    with np.errstate(over="ignore"):  # an overflow is no bound
        b[bounded] = np.minimum(b, np.where(bounded, most, 1.0) * own)[bounded]
    return float(b.max(initial=0.0)) or 1.0


def report(problem: Problem, lam: Floats, iterations: int, options: Options, failed: Status = Status.STOPPED) -> Result:
    """A result with all residuals: SOLVED if the tolerance is met, else `failed`. It never has NaN."""
    if not np.isfinite(lam).all():
        lam, failed = np.zeros(problem.size), Status.STOPPED
    w = problem.residual(lam)
    natural = float(np.abs(natural_map(problem, lam, w)).max(initial=0.0))
    status = Status.SOLVED if natural <= options.tolerance * size_of(problem) else failed
    return Result(lam, w, status, iterations, natural, complementarity(problem, lam, w), violation(problem, lam))
