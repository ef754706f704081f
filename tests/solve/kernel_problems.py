"""Random problems of contacts, limits and motors, laid out as worlds have them for their kernels."""

from __future__ import annotations

from math import inf

import numpy as np

from poise.formulations.driver import answer_block, problem_block
from poise.kernel.memory import Block, Width, aligned
from poise.solve.newton_kernels import SOLVE, STEPS, newton_block
from poise.solve.pgs_kernels import BOUNDED, CONE
from poise.solve.problem import Friction, Problem
from poise.solve.residuals import natural_map

MU = 0.7


def drawn(seed: int, contacts: int, singles: int, rank: int) -> Problem:
    """Contacts, limits, and motors of bounded strength on a system of so many degrees of freedom."""
    rng = np.random.default_rng(seed)
    n = singles + 3 * contacts
    J = rng.normal(size=(n, rank))
    A = J @ J.T / rank + np.diag(np.r_[np.full(singles, 1e-3), np.zeros(3 * contacts)])
    b = J @ rng.normal(size=rank)
    lo, hi = np.full(n, -inf), np.full(n, inf)
    lo[:singles:2] = 0.0
    lo[1:singles:2], hi[1:singles:2] = -0.3, 0.3
    starts = singles + 3 * np.arange(contacts)
    lo[starts] = 0.0
    cones = [Friction(int(s), (int(s) + 1, int(s) + 2), MU, cone=True) for s in starts]
    return Problem(A, b, lo, hi, frictions=cones)


def laid(problems: list[Problem], width: Width, tolerance: float) -> tuple[Block, Block]:
    """Blocks of problems that have the same rows, one a lane."""
    first = problems[0]
    n, singles = first.size, first.size - 3 * len(first.frictions)
    shape = (n * n, width.lanes) if width.lanes > 1 else (n * n,)
    p = problem_block(width, n, 0, aligned(shape, width.dtype))
    starts = [*range(singles), *range(singles, n + 1, 3)]
    p.n_rows[0], p.stride[0], p.n_blocks[0] = n, n, len(starts) - 1
    p.block_kind[: len(starts) - 1] = [BOUNDED] * singles + [CONE] * len(first.frictions)
    p.block_start[: len(starts)] = starts
    p.block_row[:n] = np.arange(n)
    p.bound[...] = MU
    a = answer_block(width, n)
    for lane, problem in enumerate(problems):
        at = (slice(None), lane) if width.lanes > 1 else slice(None)
        matrix = problem.matrix()
        p.a[at] = matrix.ravel()
        for k, start in enumerate(starts[singles:-1], singles):
            own = matrix[start : start + 3, start : start + 3] + 1e-9 * np.eye(3)
            sym = own[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            p.local[k][at] = sym
        for name, values in (("b", problem.b), ("lo", problem.lo), ("hi", problem.hi)):
            p.arrays[name][:n][at] = values
        p.scale[:n][at] = np.diag(matrix)
    a.best_residual[...] = a.residual[...] = inf
    a.tolerance[...] = tolerance
    return p, a


def solved(problems: list[Problem], width: Width, tolerance: float, sweeps: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """(n, lanes) multipliers, and how many sweeps each took."""
    p, a = laid(problems, width, tolerance)
    SOLVE[width](p.handle, a.handle, newton_block(width, problems[0].size).handle, sweeps, 2, STEPS)
    return a.best.reshape(-1, width.lanes)[: problems[0].size], a.sweeps.reshape(-1)


def residual(problem: Problem, lam: np.ndarray) -> float:
    return float(np.abs(natural_map(problem, lam)).max())
