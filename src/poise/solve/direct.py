"""Rows without bounds, solved by factorization: A λ = −b (VON §3.2.4: "standard factorization techniques").

A definite system is solved by Cholesky factorization. Any other is split by its singular vectors: the shortest answer
has no part in the null space, and no multiplier can remove b's part in it, the conflict between the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from poise.kernel.blas import few_blas_threads
from poise.solve.problem import Floats, Form, Options, Problem, Result, Status
from poise.solve.residuals import report
from poise.solve.scaling import equilibrate
from poise.solve.solver_registry import check_form


@dataclass(frozen=True)
class Direct:
    """Dense factorization: the exact answer of linear systems, or the shortest answer of least squares.

    >>> from poise.solve.problem import Problem
    >>> result = Direct().solve(Problem([[2.0, 1.0], [1.0, 2.0]], [-3.0, -3.0]))
    >>> result.lam.round(12).tolist(), result.status.value
    ([1.0, 1.0], 'solved')
    """

    rank: float = 1e-12
    """Singular values of the equilibrated A below this share of the largest count as zero."""
    refinements: int = 3
    """Most steps of iterative refinement."""

    takes: ClassVar[Form] = Form.EQUALITY | Form.NONSYMMETRIC | Form.OPERATOR

    @few_blas_threads
    def solve(self, problem: Problem, options: Options = Options()) -> Result:  # noqa: B008  frozen, never changed
        """The answer; SINGULAR with the shortest one if there are many, CONFLICTING if there is none."""
        check_form(self, problem, options)
        if problem.size == 0:
            return report(problem, np.zeros(0), 0, options)
        with np.errstate(all="ignore"):
            A, b = problem.matrix(), np.asarray(problem.b)
            d = equilibrate(A)
            scaled = A * d[:, None] * d[None, :]
            definite = self._definite(A, scaled, d, b, problem, options)
            if definite is not None:
                return definite
            lam, full = self._split(A, scaled, d, b)
            result = report(problem, lam, 1, options, Status.STOPPED if full else Status.CONFLICTING)
        if not full and result.status is Status.SOLVED:
            return replace(result, status=Status.SINGULAR)
        return result

    def _definite(
        self, A: Floats, scaled: Floats, d: Floats, b: Floats, problem: Problem, options: Options
    ) -> Result | None:
        """The answer by Cholesky factorization, or None if A is not definite enough for it."""
        if not np.allclose(scaled, scaled.T, rtol=0.0, atol=1e-10):
            return None
        try:
            factor = np.linalg.cholesky((scaled + scaled.T) / 2.0)
        except np.linalg.LinAlgError:
            return None
        pivots = np.diag(factor)
        # a pivot is only an upper bound of the smallest eigenvalue, so singular systems need a wide margin
        if not pivots.min() ** 2 > 100.0 * self.rank * pivots.max() ** 2:
            return None
        lam = np.zeros(len(b))
        for _ in range(1 + self.refinements):
            half = np.linalg.solve(factor, d * (A @ lam + b))
            step = d * np.linalg.solve(factor.T, half)
            lam = lam - step
            if np.abs(step).max() <= 1e-15 * np.abs(lam).max():
                break
        result = report(problem, lam, 1, options)
        return result if result.status is Status.SOLVED else None

    def _split(self, A: Floats, scaled: Floats, d: Floats, b: Floats) -> tuple[Floats, bool]:
        """The shortest answer of least squares, in the units of the problem; and whether A has full rank."""
        try:
            left, values, right = np.linalg.svd(scaled)
        except np.linalg.LinAlgError:
            return np.zeros(len(b)), False
        keep = values > self.rank * values.max(initial=0.0)
        # D A D u = 0 means A (D u) = 0: null vectors in the units of the problem, made orthonormal again
        null, conull = (_orthonormal(d[:, None] * vectors[:, ~keep]) for vectors in (right.T, left))
        lam = np.zeros(len(b))
        for _ in range(1 + self.refinements):
            error = A @ lam + b
            error -= conull @ (conull.T @ error)
            step = right[keep].T @ ((left[:, keep].T @ (d * error)) / values[keep])
            lam = lam - d * step
            lam -= null @ (null.T @ lam)
        return lam, bool(keep.all())


def _orthonormal(vectors: Floats) -> Floats:
    """An orthonormal basis of the same space; the vectors are first scaled to equal length."""
    return np.asarray(np.linalg.qr(vectors / np.linalg.norm(vectors, axis=0))[0])
