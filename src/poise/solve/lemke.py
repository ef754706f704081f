"""Bounds, piecewise laws and friction pyramids, solved exactly by Lemke's method; A need not be symmetric.

The problem is converted to standard form (`lemke_form`), its rows are scaled, and its free unknowns eliminated.
Complementary pivots (`pivots`) find the active rows, which are solved again from the original numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from poise.kernel.blas import few_blas_threads
from poise.solve.lemke_form import Standard, standard
from poise.solve.multi_pass import solve_in_rounds, wants_rounds
from poise.solve.newton import STEPS, is_definite, newton, newton_from_soft, polished, within
from poise.solve.pivots import End, lemke
from poise.solve.problem import Floats, Form, Options, Problem, Result, Status
from poise.solve.residuals import natural_map, report, size_of
from poise.solve.scaling import equilibrate
from poise.solve.solver_registry import check_form

RANK = 1e-12
"""Singular values of the free rows below this share of the largest count as zero."""
NEAR = 1e-10
"""Unknowns and residuals below this, in scaled units, count as zero."""
NULL = 1e-11
"""Effects below this, in scaled units, count as zero."""
PROJECTIONS = 50
"""Alternating projections, to find another answer."""


@dataclass(frozen=True)
class Lemke:
    """Lemke's method. It starts from zero and ignores a warm start.

    >>> from poise.solve.problem import Problem
    >>> result = Lemke().solve(Problem([[2.0, 1.0], [1.0, 2.0]], [-2.0, 1.0], lo=[0.0, 0.0]))
    >>> result.lam.tolist(), result.w.tolist()
    ([1.0, 0.0], [0.0, 2.0])
    """

    tries: int = 6
    """Most paths, each with another covering vector, until one ends in an answer or in a proof that there is none."""

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(f"tries is {self.tries}; at least one path must be followed")

    takes: ClassVar[Form] = ~(Form.BALLS | Form.CONES)

    @few_blas_threads
    def solve(self, problem: Problem, options: Options = Options()) -> Result:  # noqa: B008  frozen, never changed
        """The answer. CONFLICTING if it is proved that none exists, STOPPED if the paths end without a proof."""
        check_form(self, problem, options)
        if wants_rounds(problem):
            return solve_in_rounds(self, problem, options)
        with np.errstate(all="ignore"):
            form = standard(problem)
            scaled, units = _alike(form)
            reduced = _eliminate(scaled)
            spent, failed, best = 0, Status.STOPPED, _Candidate.of(problem, form, np.zeros(len(form.q)))
            for cover, soft in _covers(len(reduced.q), self.tries):
                found = lemke(reduced.M + np.diag(soft * reduced.own), reduced.q, cover, options.iterations - spent)
                spent += found.pivots
                z, basic = reduced.restore(found.z, found.basic)
                both = [_Candidate.of(problem, form, x * units) for x in (_active(scaled, basic), z)]
                best = min(best, *both, key=lambda candidate: candidate.error)
                if (found.end is End.CONFLICT and soft == 0.0) or reduced.conflict:
                    failed = Status.CONFLICTING
                result = report(problem, best.lam, spent, options, failed)
                if result.ok or failed is Status.CONFLICTING:
                    break
            if result.ok and has_others(scaled, units, best.z / units):
                result.status = Status.SINGULAR
            if result.status is Status.STOPPED:
                result = _mended(problem, result, options)
            return polished(problem, result, options)


@dataclass(frozen=True)
class _Candidate:
    """A candidate answer, the end of a path."""

    z: Floats
    lam: Floats
    error: float
    """Length of the natural residuals of all rows."""

    @staticmethod
    def of(problem: Problem, form: Standard, z: Floats) -> _Candidate:
        lam = within(problem, form.multipliers(z))
        natural = natural_map(problem, lam) if np.isfinite(lam).all() else np.full(1, np.inf)
        largest = float(np.abs(natural).max(initial=0.0))
        # squares of the residuals themselves may underflow or overflow
        error = largest * float(np.linalg.norm(natural / largest)) if 0.0 < largest < np.inf else largest
        return _Candidate(z, lam, error)


@dataclass(frozen=True)
class _Reduced:
    """The problem after elimination of free unknowns, with z ≥ 0 only."""

    M: Floats
    q: Floats
    back: Floats
    """(n, kept) derivatives of the full problem's unknowns by those of this one."""
    constant: Floats
    """(n,) unknowns of the full problem where those of this one are zero."""
    kept: np.ndarray
    """Indices of the unknowns that are not free; those of this problem have the same order, split ones after."""
    own: Floats
    """(kept,) 1 for an unknown that changes a multiplier, 0 for a cap."""
    conflict: bool
    """Whether equality rows contradict each other for any values of the other unknowns."""

    def restore(self, z: Floats, basic: np.ndarray) -> tuple[Floats, np.ndarray]:
        """The unknowns of the full problem, and which of them have a residual of zero."""
        full = np.ones(self.constant.size, bool)
        full[self.kept] = basic[: self.kept.size]
        return self.constant + self.back @ z, full


def _alike(form: Standard) -> tuple[Standard, Floats]:
    """The same problem in scaled units: z = units · z'. Caps have the unit of their row's w."""
    n = form.E.shape[1]
    d = np.ones(len(form.q))
    d[:n] = equilibrate(form.M[:n, :n]) if n else 1.0
    for cap in range(n, len(form.q)):
        d[cap] = 1.0 / d[int(np.argmax(form.M[:n, cap]))]
    q = d * form.q
    size = float(np.abs(q).max(initial=0.0)) or 1.0
    return replace(form, M=form.M * d[:, None] * d[None, :], q=q / size), d * size


def _eliminate(form: Standard) -> _Reduced:
    """Solve the free rows for the free unknowns (Cottle, Pang and Stone 1992).

    If they are singular, the remaining unknowns either have no effect on the other rows (redundant rows, which stay
    zero), or are split into two nonnegative unknowns.
    """
    free, kept = np.flatnonzero(form.free), np.flatnonzero(~form.free)
    n = len(form.q)
    moving = (kept < form.E.shape[1]).astype(np.float64)
    if free.size == 0:
        return _Reduced(form.M, form.q, np.eye(n), np.zeros(n), kept, moving, False)
    own, into = form.M[np.ix_(free, free)], form.M[np.ix_(free, kept)]
    out, left = form.M[np.ix_(kept, free)], form.M[np.ix_(kept, kept)]
    U, values, Vt = np.linalg.svd(own)
    keep = values > RANK * max(float(values.max()), 1e-3)
    solve = (Vt[keep].T / values[keep]) @ U[:, keep].T
    right, lefts = Vt[~keep].T, U[:, ~keep]
    if np.abs(lefts - right @ (right.T @ lefts)).max(initial=0.0) <= 1e-9:
        lefts = right
    constant = np.zeros(n)
    constant[free] = -solve @ form.q[free]
    back = np.zeros((n, kept.size))
    back[kept, np.arange(kept.size)] = 1.0
    back[free] = -solve @ into
    M, q = left - out @ solve @ into, form.q[kept] - out @ solve @ form.q[free]
    rest, spare = lefts.T @ into, out @ right
    missed = lefts.T @ form.q[free]
    if max(np.abs(rest).max(initial=0.0), np.abs(spare).max(initial=0.0)) <= 1e-11:
        return _Reduced(M, q, back, constant, kept, moving, bool(np.abs(missed).max(initial=0.0) > 1e-11))
    k = right.shape[1]
    M = np.block([[M, spare, -spare], [rest, np.zeros((k, 2 * k))], [-rest, np.zeros((k, 2 * k))]])
    q = np.concatenate([q, missed, -missed])
    more = np.zeros((n, 2 * k))
    more[free] = np.hstack([right, -right])
    return _Reduced(M, q, np.hstack([back, more]), constant, kept, np.append(moving, np.ones(2 * k)), False)


def _covers(n: int, tries: int) -> Iterator[tuple[Floats, float]]:
    """Covering vectors and softness of the paths: ones and hard rows, then others, and every second time softer rows.

    Friction on singular A may end in a ray although there is an answer; with soft rows there is no ray. The rows that
    are active in the soft problem are then solved hard.
    """
    yield np.ones(n), 0.0
    rng = np.random.default_rng(1)
    for index in range(1, tries):
        yield np.exp(rng.uniform(-1.0, 1.0, n)), 1e-8 * 10.0**index if index % 2 else 0.0


def _active(form: Standard, basic: np.ndarray) -> Floats:
    """The unknowns in the basis from their own rows, M z = −q, with zero for the others."""
    rows, z = np.flatnonzero(basic), np.zeros(len(form.q))
    if rows.size:
        z[rows] = _solved(form.M[np.ix_(rows, rows)], -form.q[rows])
    return z


def _solved(M: Floats, right: Floats) -> Floats:
    """M⁻¹ right; the shortest solution of least squares if M is singular."""
    try:
        x = np.linalg.solve(M, right)
        if np.abs(M @ x - right).max() <= 1e-8 * np.abs(right).max():
            return np.asarray(x, np.float64)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(M, right, rcond=1e-14)[0], np.float64)


def _mended(problem: Problem, found: Result, options: Options) -> Result:
    """Newton's method for nearly dependent rows, on which pivots failed by rounding: from the best answer and then from
    soft rows.
    """
    tolerance, best = options.tolerance * size_of(problem), found
    for soft in (False, True):
        left = max(0, min(STEPS, options.iterations - best.iterations))
        lam, steps = newton_from_soft(problem, tolerance, left) if soft else newton(problem, found.lam, tolerance, left)
        result = report(problem, lam, best.iterations + len(steps), options)
        if result.ok:
            return result if is_definite(problem, lam) else replace(result, status=Status.SINGULAR)
        best = replace(result if result.natural < best.natural else best, iterations=result.iterations)
    return best


def has_others(form: Standard, units: Floats, z: Floats) -> bool:
    """Whether a scaled problem has other multipliers than the answer z that solve it too.

    Searches for a direction without effect in which unknowns between their bounds change with any sign, and those at a
    bound (z = 0 and v = 0) only away from it. Alternating projections between the null space and the feasible
    directions find such a direction: True is certain, False is not quite.
    """
    v = form.M @ z + form.q
    size = max(1.0, float(np.abs(z).max(initial=0.0)))
    inside = form.free | (z > NEAR * size)
    weak = ~inside & (np.abs(v) <= NEAR * size)
    rows = np.flatnonzero(inside)
    if any(_moves(form, units, rows, vector) for vector in _null_space(form, rows).T):
        return True
    ways = _one_starts(form, rows, np.flatnonzero(weak))
    columns = np.arange(len(v)) < form.E.shape[1]
    shut = (form.M[weak & ~columns] < 0.0).any(axis=0)
    ways.append(_all_start(form, inside, weak & columns & ~shut))
    return any(_open(form, weak, way) and _moves(form, units, np.arange(len(v)), way) for way in ways)


def _one_starts(form: Standard, inside: np.ndarray, weak: np.ndarray) -> list[Floats]:
    """Directions (n,) in which one weak unknown grows and the inner ones compensate for it, by least squares."""
    if inside.size == 0:
        return [np.eye(len(form.q))[start] for start in weak]
    own, push = form.M[np.ix_(inside, inside)], form.M[np.ix_(inside, weak)]
    answers = np.linalg.lstsq(own, -push, rcond=NULL)[0]
    out = np.zeros((weak.size, len(form.q)))
    out[:, inside] = answers.T
    out[np.arange(weak.size), weak] = 1.0
    return list(out)


def _all_start(form: Standard, inside: np.ndarray, weak: np.ndarray) -> Floats:
    """A direction (n,) without effect in which as many weak unknowns as possible grow."""
    rows, way = np.flatnonzero(inside | weak), np.zeros(len(form.q))
    null, starts = _null_space(form, rows), weak[rows]
    # different sizes, or a tangent's two columns would cancel each other
    vector = null @ (null.T @ np.where(starts, 1.0 + np.modf(0.618 * rows)[0], 0.0))
    for _ in range(PROJECTIONS):
        vector = null @ (null.T @ np.where(starts, np.maximum(vector, 0.0), vector))
    # the null space of the unknowns that grew is exact, while projections only converge to it
    some = ~starts | (vector > 1e-3 * np.abs(vector).max(initial=0.0))
    null = _null_space(form, rows[some])
    way[rows[some]] = null @ (null.T @ vector[some])
    return way


def _open(form: Standard, weak: np.ndarray, way: Floats) -> bool:
    """Whether a direction is feasible: unknowns that move keep their residual, weak ones leave their bound or stay."""
    size = float(np.abs(way).max(initial=0.0))
    if not size > 1e-6:
        return False
    effect = form.M @ way / size
    stays = np.abs(effect[np.abs(way) > NULL * size]).max(initial=0.0) <= NULL
    return bool(stays and effect[weak].min(initial=0.0) >= -NULL and way[weak].min(initial=0.0) >= 0.0)


def _null_space(form: Standard, rows: np.ndarray) -> Floats:
    """(rows, k) directions of some unknowns without effect on their own residuals."""
    if rows.size == 0:
        return np.zeros((0, 0))
    values, right = np.linalg.svd(form.M[np.ix_(rows, rows)])[1:]
    return np.asarray(right[values <= NULL * max(1.0, float(values.max()))].T, np.float64)


def _moves(form: Standard, units: Floats, rows: np.ndarray, vector: Floats) -> bool:
    """Whether a direction of the unknowns changes a multiplier: for a tangent's two columns their difference counts."""
    along = np.zeros(len(form.q))
    along[rows] = vector
    columns = form.E.shape[1]
    change = np.abs(form.E @ (units * along)[:columns])
    unit = (np.abs(form.E) * units[:columns]).max(axis=1, initial=0.0)
    return bool(np.any(change > 1e-6 * unit * np.abs(vector).max()))
