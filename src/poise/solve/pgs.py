"""Projected Gauss-Seidel (KOK §6): any law, friction as pyramids or true cones, one problem or many in lanes.

Row by row, block by block, each is put on its law while the others are fixed. The error decreases by a factor a sweep
that depends on the coupling of the rows: a few sweeps are enough for games, hundreds or thousands give all digits.
Singular systems are no obstacle. The work of a sweep is that of one product A λ. A need not be formed: see
`delassus_operator.Factors`, and `matrix_free.BodyRows` for rows on two bodies each, for which a sweep takes linear
time.

On a few problems sweeps cycle (friction with strong coupling of normals and tangents), or converge very slowly
(singular systems with eigenvalues near zero). If hundreds of sweeps have not halved the residual, or the remaining
sweeps will not reach the tolerance, Newton's method on the natural map continues from the best multipliers. One of its
steps counts as a sweep, for more than 30 rows as one for every 30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, log
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from poise.kernel.blas import few_blas_threads
from poise.kernel.memory import F64, F64X8, Block, Width
from poise.solve import residuals as check
from poise.solve.anderson import Anderson
from poise.solve.multi_pass import solve_in_rounds, wants_rounds
from poise.solve.newton import STEPS, newton, newton_from_soft
from poise.solve.pgs_kernels import REFRESH, RUN
from poise.solve.pgs_pack import pack, start
from poise.solve.problem import Ball, Form, Operator, Options, Problem, Result, Status
from poise.solve.solver_registry import check_form, check_warm

Floats = NDArray[np.float64]
FrictionMode = Literal["as_given", "two_pass"]
DEFAULTS = Options()
PATIENCE = 256
"""Sweeps that should at least halve the residual."""
NEWTON_ROWS = 1000
"""Most rows of a problem for which Newton's method is tried."""
PRICE_ROWS = 30
"""Rows for which a Newton step counts as one sweep: a step costs their cube, in large blocks, and a sweep their
square."""
CERTAINTY = 1e-9
"""A drift d of the multipliers proves a conflict if |Aᵀ d| is below this share of |A| |d|, and −b · d above its root
of |b| |d|."""


class PGS:
    """Projected Gauss-Seidel.

    Args:
        relaxation: ω, above 0 and below 2; 1.2 to 1.4 often halves the sweeps of problems with many contacts.
        check_every: Sweeps between two measurements of the natural residual. A measurement costs less than a sweep.
        friction: "as_given": every contact obeys Coulomb's law, as a pyramid or a cone, in each sweep. "two_pass"
            (VON §3.5): normal forces are estimated without friction, then friction is bounded by μ times the
            estimate. That is another problem: status and residual of the result are those of the given one.
        memory: History of Anderson's acceleration, in steps; 0 for none. 5 to 10 often save nine sweeps in ten where
            many are needed. A step is `check_every` sweeps: 1 suits small problems, 4 large ones.
        passes: Number of solves of "two_pass": 2 as in VON, more to update the estimate.
        newton: Whether Newton's method is tried if 256 sweeps have not halved the residual, or sweeps will not
            reach the tolerance in time. Never in lanes, never before the 512th sweep, and up to 1000 rows.

    Convergence: systems of monotone laws with symmetric positive semi-definite A are solved, given enough sweeps.
    Friction is not monotone and has no guarantee: of duplicated contacts, the worst known case, one problem in some
    thousands ends as STOPPED.

    >>> PGS().solve(Problem([[2.0, 1.0], [1.0, 2.0]], [-3.0, 6.0], lo=[0.0, 0.0])).lam.tolist()
    [1.5, 0.0]
    """

    takes: ClassVar[Form] = ~Form(0)

    def __init__(
        self,
        *,
        relaxation: float = 1.0,
        check_every: int = 4,
        memory: int = 0,
        friction: FrictionMode = "as_given",
        passes: int = 2,
        newton: bool = True,
    ) -> None:
        if not 0.0 < relaxation < 2.0:
            raise ValueError(f"relaxation is {relaxation}; it must be above 0 and below 2")
        if friction not in get_args(FrictionMode):
            raise ValueError(f"friction is {friction!r}; there are {', '.join(get_args(FrictionMode))}")
        self.relaxation = float(relaxation)
        self.check_every = _whole("check_every", check_every, 1)
        self.memory = _whole("memory", memory, 0)
        self.friction = friction
        self.passes = _whole("passes", passes, 2)
        self.newton = bool(newton)

    @few_blas_threads
    def solve(self, problem: Problem, options: Options = DEFAULTS) -> Result:
        """The multipliers with the least natural residual of all sweeps; see `Solver.solve`."""
        check_form(self, problem, options)
        _check_options(options)
        if wants_rounds(problem):
            return solve_in_rounds(self, problem, options)
        if self.friction == "two_pass" and problem.frictions:
            return self._solve_in_passes(problem, options)
        return self._solve(problem, options)

    @few_blas_threads
    def solve_many(
        self, problems: Sequence[Problem], options: Options = DEFAULTS, width: Width = F64X8
    ) -> list[Result]:
        """Problems with the same blocks of rows, `width.lanes` at a time. `options.warm` has a row for each.

        Each answer has the same bits for any other problems in the lanes. Friction is "as_given", without acceleration.
        If a problem has secondary targets, or friction that drops, all are solved one by one.
        """
        _check_options(options)
        results: list[Result] = []
        _check_guesses(problems, options)
        for problem in problems:
            check_form(self, problem)
        if any(wants_rounds(problem) for problem in problems):
            starts = [None] * len(problems) if options.warm is None else list(options.warm)
            return [self.solve(p, replace(options, warm=warm)) for p, warm in zip(problems, starts, strict=True)]
        for first in range(0, len(problems), width.lanes):
            group = list(problems[first : first + width.lanes])
            guesses = None if options.warm is None else options.warm[first : first + width.lanes]
            layout, p = pack(group, width, self.relaxation)
            s = start(group, layout, width, options, guesses)
            RUN[width](p.handle, s.handle, options.iterations, self.check_every, 1)
            best = s.best.reshape(layout.size, width.lanes).astype(np.float64)
            sweeps = s.sweeps.reshape(width.lanes)
            results += [
                _report(problem, best[:, lane].copy(), int(sweeps[lane]), options) for lane, problem in enumerate(group)
            ]
        return results

    def _solve(self, problem: Problem, options: Options) -> Result:
        layout, p = pack([problem], F64, self.relaxation)
        s = start([problem], layout, F64, options, None if options.warm is None else [options.warm])
        history: list[float] = []
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run proves nothing
            if options.history or self.memory:
                drift = self._step_by_step(problem, p, s, options, history)
            else:
                drift = self._in_bouts(problem, p, s, options)
        failed = Status.CONFLICTING if proves_conflict(problem, drift) else Status.STOPPED
        result = _report(problem, s.best.copy(), int(s.sweeps[0]), options, failed)
        result.history = history if options.history else []
        return result

    def _in_bouts(self, problem: Problem, p: Block, s: Block, options: Options) -> Floats:
        """Sweeps in batches, with a check of progress after each; returns the last step."""
        look = self.check_every * REFRESH  # the number of sweeps after which w is recomputed anyway
        patience = _Patience(-(-PATIENCE // look) * look)
        last = min(self.check_every, options.iterations)
        while (left := options.iterations - last - int(s.sweeps[0])) > 0 and _unsolved(s):
            RUN[F64](p.handle, s.handle, min(patience.bout, left) - 1, self.check_every, 1)
            before = s.lam.copy()
            RUN[F64](p.handle, s.handle, 1, 1, 1)
            if patience.lost(s, options.iterations - last) and not proves_conflict(problem, s.lam - before):
                self._try_newton(problem, s, options.iterations - last - int(s.sweeps[0]), patience.tries)
        before = s.lam.copy()
        RUN[F64](p.handle, s.handle, last, self.check_every, 1)
        return np.asarray(s.lam - before)

    def _try_newton(self, problem: Problem, s: Block, left: int, tries: int) -> list[float]:
        """Newton's method, for at most the cost of `left` sweeps; returns the residuals.

        It continues from the best multipliers the first time, later from the last ones; if that fails, from soft rows,
        with another random softness each time.
        """
        residuals: list[float] = []
        if not self.newton or problem.size > NEWTON_ROWS:
            return residuals
        tolerance, start = float(s.tolerance[0]), (s.best if tries == 1 else s.lam).copy()
        price = max(1, problem.size // PRICE_ROWS)
        for soft in (False, True):
            most = max(0, min(STEPS, left // price - len(residuals)))
            lam, found = (
                newton_from_soft(problem, tolerance, most, tries - 1)
                if soft
                else newton(problem, start, tolerance, most)
            )
            residuals += found
            if min(found, default=np.inf) < s.best_residual[0]:
                s.best[...], s.best_residual[0] = lam, min(found)
            if not _unsolved(s):
                s.lam[...], s.residual[0] = s.best, s.best_residual[0]
                break
        s.sweeps[0] += price * len(residuals)
        return residuals

    def _step_by_step(self, problem: Problem, p: Block, s: Block, options: Options, history: list[float]) -> Floats:
        """A few sweeps at a time, with the residual recorded after each and acceleration between; the last step."""
        run, stride = RUN[F64], 1 if options.history else self.check_every
        ahead, drift, patience = Anderson(self.memory), np.zeros_like(s.lam), _Patience(PATIENCE)
        run(p.handle, s.handle, 0, 1, 1)
        while _unsolved(s) and s.sweeps[0] < options.iterations:
            before = s.lam.copy()
            run(p.handle, s.handle, min(stride, options.iterations - int(s.sweeps[0])), stride, 0)
            history.append(float(s.residual[0]))
            drift = s.lam - before
            if patience.lost(s, options.iterations) and not proves_conflict(problem, drift):
                history += self._try_newton(problem, s, options.iterations - int(s.sweeps[0]), patience.tries)
            if self.memory and _unsolved(s):
                s.lam[...] = ahead.propose(before, s.lam.copy(), float(s.residual[0]))
        return drift

    def _solve_in_passes(self, problem: Problem, options: Options) -> Result:
        """VON §3.5: without friction first, then with bounds of friction from the last normal forces."""
        lam = options.warm
        normals = [friction.normal for friction in problem.frictions]
        reach = np.zeros(len(normals))
        iterations = 0
        for n in range(self.passes):
            share = (options.iterations - iterations) // (self.passes - n)
            fixed = with_fixed_friction(problem, reach)
            result = self._solve(fixed, replace(options, warm=lam, iterations=share, history=False))
            lam, iterations = result.lam, iterations + result.iterations
            reach = np.array([friction.mu for friction in problem.frictions]) * np.maximum(lam[normals], 0.0)
        return _report(problem, np.asarray(lam), iterations, options)


def with_fixed_friction(problem: Problem, reach: Floats) -> Problem:
    """The problem with friction forces bounded by numbers, one a contact, instead of by the normal forces."""
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    balls = list(problem.balls)
    for friction, radius in zip(problem.frictions, reach, strict=True):
        lo[friction.normal], hi[friction.normal] = 0.0, np.inf
        tangents = list(friction.tangents)
        if friction.cone:
            balls.append(Ball(friction.tangents, float(radius)))
        else:
            lo[tangents], hi[tangents] = -radius, radius
    return Problem(problem.A, problem.b, lo, hi, problem.cfm, problem.laws, (), balls)


def slip_rates(problem: Problem, result: Result) -> Floats:
    """(m,) KOK's λ (eqs. 20 and 21) of every tangent row of a pyramid, zero elsewhere, in units of w.

    KOK bounds friction by two conditions on f_t and λ,

        (a_t − a_t^d) + λ ≥ 0  complementary to  f_t ≥ 0        (20)
        μ f_n − f_t ≥ 0        complementary to  λ ≥ 0          (21)

    Solved together for one contact, with the others fixed, they put f_t within 0 … μ f_n: a sweep does this for a
    pyramid, in both directions of the tangent. λ is the remaining slip.
    """
    rates = np.zeros(problem.size)
    for friction in problem.frictions:
        if not friction.cone:
            rows = list(friction.tangents)
            rates[rows] = np.abs(result.w[rows])
    return rates


def proves_conflict(problem: Problem, drift: Floats) -> bool:
    """Whether multipliers with a persistent drift d prove that no answer meets all rows.

    Aᵀ d = 0 and b · d < 0, and d stays within the bounds: then d · w = b · d < 0 for every λ, while every law that d
    affects needs d · w ≥ 0 (Farkas). A drift of rows with laws or in blocks proves nothing.
    """
    size = float(np.abs(drift).max(initial=0.0))
    if not (size > 0.0 and isfinite(size)) or isinstance(problem.A, Operator):
        return False
    d = drift / size
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    barred = list(problem.block_rows() | set(problem.laws))
    lo[barred], hi[barred] = 0.0, 0.0
    inside = np.where(np.isfinite(lo), np.maximum(d, 0.0), d)
    inside = np.where(np.isfinite(hi), np.minimum(inside, 0.0), inside)
    stiff = float(np.abs(problem.A).max(initial=0.0)) + float(np.asarray(problem.cfm).max(initial=0.0))
    turned = problem.A.T @ inside + problem.cfm * inside
    still = float(np.abs(d - inside).max()) <= CERTAINTY and float(np.abs(turned).max()) <= CERTAINTY * stiff
    return bool(still and -float(inside @ problem.b) > CERTAINTY**0.5 * check.size_of(problem))


class _Patience:
    """Detects whether a batch of sweeps has not halved the residual, or more such batches will not be enough; the next
    batch is then twice as long.
    """

    def __init__(self, bout: int) -> None:
        self.bout = self.end = bout
        self.best, self.tries = np.inf, 0

    def lost(self, s: Block, sweeps: int) -> bool:
        """Whether a batch has just ended without enough progress, with `sweeps` sweeps in all."""
        if s.sweeps[0] < self.end or not _unsolved(s):
            return False
        before, self.best = self.best, float(s.best_residual[0])
        lost = self.best > 0.5 * before or self._too_slow(before, float(s.tolerance[0]), sweeps - int(s.sweeps[0]))
        self.tries += lost
        self.bout *= 2 if lost else 1
        self.end = int(s.sweeps[0]) + self.bout
        return lost

    def _too_slow(self, before: float, tolerance: float, left: int) -> bool:
        """Whether `left` sweeps at the rate of this batch, which began at the residual `before`, miss the tolerance."""
        if not (isfinite(before) and 0.0 < tolerance < self.best < before):
            return False
        return log(self.best / tolerance) * self.bout > log(before / self.best) * left


def _unsolved(s: Block) -> bool:
    return bool(s.best_residual[0] > s.tolerance[0])


def _report(problem: Problem, lam: Floats, sweeps: int, options: Options, failed: Status = Status.STOPPED) -> Result:
    """`residuals.report`, for numbers whose squares or products may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return check.report(problem, lam, sweeps, options, failed)


def _check_guesses(problems: Sequence[Problem], options: Options) -> None:
    if options.warm is None:
        return
    if len(options.warm) != len(problems):
        raise ValueError(f"warm has {len(options.warm)} rows for {len(problems)} problems")
    for problem, guess in zip(problems, options.warm, strict=True):
        check_warm(problem, guess)


def _whole(name: str, number: int, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{name} is {number!r}; it must be a whole number, {least} or more")
    return int(number)


def _check_options(options: Options) -> None:
    _whole("iterations", options.iterations, 0)
    if not (options.tolerance >= 0.0 and isfinite(options.tolerance)):
        raise ValueError(f"tolerance is {options.tolerance}; it must be 0 or more")
