"""Rows without bounds, solved by conjugate gradients: A need only be applied (UBC, "Conjugate Gradient")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.kernel.blas import few_blas_threads
from poise.solve.problem import Floats, Form, Operator, Options, Problem, Result, Status
from poise.solve.residuals import report, size_of
from poise.solve.solver_registry import check_form

FLAT = 1e-13
"""Curvature pᵀAp, relative to the largest one, below which a direction counts as one of the null space of A."""
CERTIFIED = 1e-7
"""|A r| relative to |A| |r| below which the remaining residual r proves that the rows contradict each other."""
DONE = 1e-13
"""The same ratio at which rounding prevents further progress."""


@dataclass(frozen=True)
class CG:
    """Preconditioned conjugate gradients.

    >>> from poise.solve.problem import Operator, Problem
    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> result = CG().solve(Problem(Operator(lambda x: A @ x, np.diag(A)), [-3.0, -3.0]))
    >>> result.lam.round(12).tolist(), result.iterations
    ([1.0, 1.0], 1)
    """

    preconditioner: Callable[[Floats], Floats] | None = None
    """r → M⁻¹ r, symmetric and positive definite; by default Jacobi's, r over the diagonal of A."""

    takes: ClassVar[Form] = Form.EQUALITY | Form.OPERATOR

    @few_blas_threads
    def solve(self, problem: Problem, options: Options = Options()) -> Result:  # noqa: B008  frozen, never changed
        """The answer; CONFLICTING, with that of least squares, if the remaining residual proves that there is none."""
        check_form(self, problem, options)
        start = np.zeros(problem.size) if options.warm is None else np.array(options.warm, np.float64)
        run = _Run(problem, options, start, self.preconditioner or jacobi(problem))
        with np.errstate(all="ignore"):
            failed = Status.STOPPED
            if not run.descend():
                nearest = run.least_squares(start)
                if run.least > run.goal and run.contradicts(nearest):
                    run.best, failed = nearest, Status.CONFLICTING
            result = report(problem, run.best, run.iterations, options, failed)
        result.history = run.history
        return result


def jacobi(problem: Problem) -> Callable[[Floats], Floats]:
    """r → r over the diagonal; unchanged for rows with a zero diagonal."""
    diagonal = problem.diagonal
    inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    return lambda r: inverse * r


@dataclass
class _Run:
    """State of one solve: the best answer so far, and the number of iterations."""

    problem: Problem
    options: Options
    best: Floats
    precondition: Callable[[Floats], Floats]
    iterations: int = 0
    least: float = np.inf
    """Largest |residual| at the best answer."""
    steepest: float = 0.0
    """Largest |M⁻¹ A p| / |p|: an estimate of the norm."""
    history: list[float] = field(default_factory=list)

    @property
    def goal(self) -> float:
        """Largest |residual| to reach: half the tolerance, so that rounding in the report does not matter."""
        return 0.5 * self.options.tolerance * size_of(self.problem)

    def product(self, p: Floats) -> Floats:
        """A p, softness included."""
        A = self.problem.A
        applied = A.apply(p) if isinstance(A, Operator) else A @ p
        return np.asarray(applied + np.asarray(self.problem.cfm) * p, np.float64)

    def keep(self, x: Floats, r: Floats) -> bool:
        """Record an answer; returns whether it is good enough."""
        size = float(np.abs(r).max(initial=0.0))
        if size < self.least:
            self.best, self.least = x.copy(), size
        if self.options.history:
            self.history.append(size)
        return size <= self.goal

    def descend(self) -> bool:
        """Conjugate gradients on A λ = −b (UBC, "CG algorithm", with a preconditioner); whether the goal is reached.

        β in the form of Polak and Ribière tolerates a preconditioner that is not quite the same each time. Ends early
        at a direction without curvature: the rows may contradict each other, and the iterates would then grow without
        bound.
        """
        x = self.best
        r = -self.problem.residual(x)
        if self.keep(x, r):
            return True
        z = self.precondition(r)
        p, rho, sharpest = z, float(r @ z), 0.0
        while self.iterations < self.options.iterations:
            self.iterations += 1
            q = self.product(p)
            curvature, length = float(p @ q), float(p @ p)
            sharpest = max(sharpest, curvature / length if length > 0.0 else 0.0)
            self._measure(p, q)
            if not (curvature > FLAT * sharpest * length and rho > 0.0 and np.isfinite(rho)):
                return False
            x = x + (rho / curvature) * p
            fresh = r - (rho / curvature) * q
            if np.abs(fresh).max() <= self.goal:  # confirm the updated residual by a computed one
                fresh = -self.problem.residual(x)
            if self.keep(x, fresh):
                return True
            z = self.precondition(fresh)
            beta = max(0.0, float(z @ (fresh - r)) / rho)
            r, rho, p = fresh, float(fresh @ z), z + beta * p
        return False

    def least_squares(self, x: Floats) -> Floats:
        """Conjugate gradients on min |A λ + b| (Hestenes and Stiefel 1952), which always has an answer."""
        nearest = x
        r = -self.problem.residual(x)
        s = self.product(r)
        z = self.precondition(self.precondition(s))
        p, gamma, least = z, float(s @ z), np.inf
        while self.iterations < self.options.iterations and gamma > 0.0:
            self.iterations += 1
            q = self.product(p)
            length = float(q @ q)
            if not (length > 0.0 and np.isfinite(length)):
                break
            x, r = x + (gamma / length) * p, r - (gamma / length) * q
            if self.keep(x, r):
                break
            s = self.product(r)
            z = self.precondition(self.precondition(s))
            fresh = float(s @ z)
            p, gamma = z + (fresh / gamma) * p, fresh
            if gamma < least:
                least, nearest = gamma, x
            if np.sqrt(gamma) <= DONE * self.steepest * np.linalg.norm(r):
                break
        return nearest

    def contradicts(self, x: Floats) -> bool:
        """Whether the remaining residual r proves that no answer exists: A r = 0 while b · r = −|r|² is not."""
        r = self.problem.residual(x)
        q = self.product(r)
        self._measure(r, q)
        return bool(np.linalg.norm(self.precondition(q)) <= CERTIFIED * self.steepest * np.linalg.norm(r))

    def _measure(self, p: Floats, q: Floats) -> None:
        length = float(np.linalg.norm(p))
        if length > 0.0:
            self.steepest = max(self.steepest, float(np.linalg.norm(self.precondition(q))) / length)
