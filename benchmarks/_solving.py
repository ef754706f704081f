"""Solvers in loops: the same problem solved again and again from the same start."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Real, View, Width, load, store
from poise.kernel.scalars import zero
from poise.solve.dantzig import Pivoted, Slides, pivot_rows
from poise.solve.pgs_kernels import ANSWER, ROWS, run
from poise.solve.pgs_pack import pack, start
from poise.solve.problem import Options, Problem
from poise.solve.residuals import natural_map, size_of

MOST = 20_000
"""Sweeps, or pivots."""
START = View("Start", lam=Real, best_residual=Real)


@kernel
def repeat_run(p, s, h, sweeps, every, n):
    """Gauss-Seidel from where it started, n times."""
    for _ in range(n):
        for r in range(load(p.n_rows, 0)):
            store(s.lam, r, load(h.lam, r))
        best = load(h.best_residual, 0)
        store(s.best_residual, 0, best)
        store(s.sweeps, 0, zero(best))
        for k in range(load(p.n_blocks, 0)):
            store(s.slip, k, zero(best))
        run(p, s, sweeps, every, 1)


RUN = entry(repeat_run, ROWS, ANSWER, START, extra=("int64", "int64", "int64"))


class Sweeping:
    """Gauss-Seidel on problems side by side, packed and ready."""

    def __init__(
        self,
        problems: Sequence[Problem],
        warm: Sequence[np.ndarray] | None,
        tolerance: float,
        width: Width = F64,
        every: int = 4,
    ) -> None:
        self.problems, self.tolerance, self.width, self.every = problems, tolerance, width, every
        layout, self.rows = pack(problems, width, 1.0)
        self.answer: Block = start(problems, layout, width, Options(tolerance=tolerance), warm)
        self.start = START.block(width, lam=self.answer.lam, best_residual=np.full(1, inf))
        self.call = RUN[width]

    def run(self, n: int) -> None:
        """Solve n times, in a loop inside a kernel."""
        self.call(self.rows.handle, self.answer.handle, self.start.handle, MOST, self.every, n)

    def answers(self) -> np.ndarray:
        """(problems, m) multipliers."""
        return np.atleast_2d(self.answer.best.T)[: len(self.problems)].astype(np.float64)

    def sweeps(self) -> str:
        """How many it took: least to most."""
        found = self.answer.sweeps.reshape(-1)[: len(self.problems)]
        low, high = int(found.min()), int(found.max())
        return f"{low} sweeps" if low == high else f"{low}–{high} sweeps"

    def residual(self) -> float:
        """The worst of them."""
        return max(relative_residual(p, lam) for p, lam in zip(self.problems, self.answers(), strict=True))


class Pivoting:
    """Dantzig's method through `pivot_rows`, called from Python."""

    def __init__(self, problem: Problem, warm: np.ndarray | None) -> None:
        self.problem, self.warm = problem, warm
        self.lo, self.hi = np.array(problem.lo), np.array(problem.hi)
        tangents = [(tangent, f.normal, f.mu) for f in problem.frictions for tangent in f.tangents]
        self.slides = Slides(*(np.array(column) for column in zip(*tangents, strict=True)))
        self.lo[self.slides.normal] = 0.0
        self.last = self._call()

    def _call(self) -> Pivoted:
        p = self.problem
        return pivot_rows(p.A, p.b, self.lo, self.hi, self.slides, warm=self.warm, limit=MOST)

    def run(self, n: int) -> None:
        """Solve n times."""
        for _ in range(n):
            self.last = self._call()

    def residual(self) -> float:
        """Of what was found last."""
        return relative_residual(self.problem, self.last.lam)


def relative_residual(problem: Problem, lam: np.ndarray) -> float:
    """Largest natural residual, of the largest |b|."""
    return float(np.abs(natural_map(problem, lam)).max()) / size_of(problem)
