"""Newton's method, with a choice of pivots, on islands that sweeps and steps without one have left unsolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poise.kernel.memory import Block
from poise.solve.check import natural_map
from poise.solve.newton import newton
from poise.solve.pgs_kernels import BALL, CONE, LAW
from poise.solve.problem import Ball, Friction, Problem

if TYPE_CHECKING:
    from poise.formulations.stepper import Stepper

NEWTON_STEPS, NEWTON_ROWS = 12, 250
"""Of an island, and of how many rows at most."""


def try_newton(stepper: Stepper, island: int) -> int:
    """On the problem of an island, which has been laid; better multipliers go to the rows. How many steps it took."""
    n, p, a = int(stepper.system.n_rows[0]), stepper.problem, stepper.answer
    if n > NEWTON_ROWS or np.any(p.block_kind[: int(p.n_blocks[0])] == LAW):
        return 0  # left to sweeps
    problem, tolerance = packed_problem(p, n), float(a.tolerance[0])
    lam, residuals = newton(problem, a.lam[:n].copy(), tolerance, NEWTON_STEPS)
    residual = float(np.abs(natural_map(problem, lam)).max()) / tolerance
    if residual < stepper.islands.residual[island]:
        a.lam[:n], stepper.islands.residual[island] = lam, residual
        stepper.rows.now.lam[stepper.system.slot[:n]] = lam
        stepper.rules.answered[0] = 0
    return len(residuals)


def packed_problem(p: Block, n: int) -> Problem:
    """The problem that a block holds, of n rows without laws."""
    A = np.array(p.a[: int(p.stride[0]) * n].reshape(n, -1)[:, :n])
    blocks = int(p.n_blocks[0])
    kinds, starts = p.block_kind[:blocks], p.block_start[:blocks]
    cones = [
        Friction(int(row), (int(row) + 1, int(row) + 2), float(p.bound[k]), cone=True)
        for k, (kind, row) in enumerate(zip(kinds.tolist(), starts.tolist(), strict=True))
        if kind == CONE
    ]
    balls = [
        Ball((int(row), int(row) + 1, int(row) + 2), float(p.bound[k]))
        for k, (kind, row) in enumerate(zip(kinds.tolist(), starts.tolist(), strict=True))
        if kind == BALL
    ]
    lo, hi = p.lo[:n].copy(), p.hi[:n].copy()
    return Problem(A, p.b[:n].copy(), lo, hi, frictions=cones, balls=balls)
