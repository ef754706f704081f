"""Balls whose radius follows the normal multiplier of a contact, as rolling and torsional friction have them: Newton's
steps, sweeps and lanes against the natural map of `check` and against sweeps alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest

from poise.formulations.driver import answer_block, problem_block
from poise.formulations.step_memory import bound_solver
from poise.kernel.memory import F32X16, F64, F64X8, Block, Width, aligned
from poise.solve.newton_kernels import SOLVE, STEPS, newton_block
from poise.solve.pgs_kernels import BALL, CONE
from poise.solve.problem import Ball, Friction, Problem
from poise.solve.residuals import natural_map

MU = 0.6
PER_CONTACT = 9
"""Rows: a cone of three, torsion (one, and two that are blank), rolling (two, and a blank one)."""


@dataclass(frozen=True)
class Rolling:
    """Contacts first, then torsion and rolling of each, in turn."""

    problem: Problem
    roll: float
    contacts: int

    @property
    def starts(self) -> list[int]:
        """First rows of all blocks."""
        return list(range(0, self.problem.size, 3))

    def normal(self, block: int) -> int:
        """Row of the contact that a ball belongs to."""
        return 3 * ((block - self.contacts) // 2)

    def residual(self, lam: np.ndarray) -> float:
        """Largest natural residual, radii being those of the normal multipliers at hand."""
        radius = [self.roll * max(lam[self.normal(k)], 0.0) for k in range(self.contacts, len(self.starts))]
        rows = [self._rows(k) for k in range(self.contacts, len(self.starts))]
        balls = [Ball(own, float(r)) for own, r in zip(rows, radius, strict=True)]
        return float(np.abs(natural_map(replace(self.problem, balls=balls), lam)).max())

    def _rows(self, block: int) -> tuple[int, ...]:
        start = self.starts[block]
        return (start,) if (block - self.contacts) % 2 == 0 else (start, start + 1)


def drawn(seed: int, contacts: int, rank: int, roll: float = 0.2) -> Rolling:
    """Contacts with rolling and torsional friction on a system of so many degrees of freedom."""
    rng = np.random.default_rng(seed)
    n = PER_CONTACT * contacts
    J = rng.normal(size=(n, rank))
    for k in range(contacts):
        at = 3 * contacts + 6 * k
        J[[at + 1, at + 2, at + 5]] = 0.0
    b = J @ rng.normal(size=rank)
    lo, hi = np.full(n, -inf), np.full(n, inf)
    lo[: 3 * contacts : 3] = 0.0
    cones = [Friction(s, (s + 1, s + 2), MU, cone=True) for s in range(0, 3 * contacts, 3)]
    return Rolling(Problem(J @ J.T / rank, b, lo, hi, frictions=cones), roll, contacts)


def laid(problems: list[Rolling], width: Width, tolerance: float) -> tuple[Block, Block]:
    """Blocks of problems that have the same rows, one a lane."""
    first = problems[0]
    n, starts = first.problem.size, first.starts
    shape = (n * n, width.lanes) if width.lanes > 1 else (n * n,)
    p, a = problem_block(width, n, 0, aligned(shape, width.dtype)), answer_block(width, n)
    p.n_rows[0], p.stride[0], p.n_blocks[0] = n, n, len(starts)
    p.block_kind[: len(starts)] = [CONE] * first.contacts + [BALL] * 2 * first.contacts
    p.block_start[: len(starts) + 1] = [*starts, n]
    p.block_row[:n] = np.arange(n)
    for lane, one in enumerate(problems):
        at = (slice(None), lane) if width.lanes > 1 else slice(None)
        matrix = one.problem.matrix()
        p.a[at] = matrix.ravel()
        p.scale[:n][at] = np.where(np.diag(matrix) > 0.0, np.diag(matrix), np.repeat(np.diag(matrix)[::3], 3))
        for name, values in (("b", one.problem.b), ("lo", one.problem.lo), ("hi", one.problem.hi)):
            p.arrays[name][:n][at] = values
        for k, start in enumerate(starts):
            own = matrix[start : start + 3, start : start + 3]
            own = own + np.diag(np.where(np.diag(own) > 0.0, 1e-9, np.diag(own).max()))
            p.local[k][at] = own[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            cone = k < one.contacts
            here = (k, lane) if width.lanes > 1 else k
            p.bound[here], p.normal[here] = (MU, 0) if cone else (one.roll, one.normal(k) + 1)
    a.best_residual[...] = a.residual[...] = inf
    a.tolerance[...] = tolerance
    return p, a


def solved(one: Rolling, tolerance: float, sweeps: int = 500, steps: int = STEPS) -> tuple[np.ndarray, int]:
    """Multipliers, and the sweeps that they took."""
    p, a = laid([one], F64, tolerance)
    SOLVE[F64](p.handle, a.handle, newton_block(F64, one.problem.size).handle, sweeps, 2, steps)
    return a.lam[: one.problem.size].copy(), int(a.sweeps[0])


@pytest.mark.parametrize(("contacts", "rank"), [(1, 12), (3, 30), (6, 60)])
def test_definite_problems_are_solved_to_rounding_in_few_sweeps(contacts: int, rank: int) -> None:
    """Some balls are within their radius, some at it, some have none."""
    states = set()
    for seed in range(60):
        one = drawn(seed, contacts, rank, (0.02, 0.2, 2.0)[seed % 3])
        lam, sweeps = solved(one, 1e-11)
        assert one.residual(lam) < 1e-10
        assert sweeps < 100
        for k in range(contacts, 3 * contacts):
            radius, size = one.roll * lam[one.normal(k)], np.linalg.norm(lam[3 * k : 3 * k + 3])
            states.add("none" if radius == 0.0 else "at" if size > radius * (1.0 - 1e-9) else "within")
    assert states == {"none", "at", "within"}


@pytest.mark.parametrize(("contacts", "rank", "roll"), [(2, 20, 0.05), (4, 40, 0.3), (3, 40, 1.0), (6, 60, 0.1)])
def test_newton_and_sweeps_alone_find_the_same_answer(contacts: int, rank: int, roll: float) -> None:
    for seed in range(50, 60):
        one = drawn(seed, contacts, rank, roll)
        quick, sweeps = solved(one, 1e-11)
        slow, many = solved(one, 1e-11, sweeps=40000, steps=0)
        assert one.residual(slow) < 1e-10
        assert quick == pytest.approx(slow, abs=1e-8)
        assert sweeps <= many


def test_most_problems_with_more_rows_than_degrees_of_freedom_are_solved() -> None:
    """Multipliers are not unique; with friction there may be none. Of 60 at most 3 are left."""
    left = 0
    for seed in range(60):
        one = drawn(seed, 6, 12, 0.1)
        tolerance = 1e-4 * float(np.abs(one.problem.b).max())
        lam, _ = solved(one, tolerance)
        left += one.residual(lam) > 1.01 * tolerance
    assert left <= 3


@pytest.mark.parametrize(("width", "tolerance", "exact"), [(F64X8, 1e-11, 1e-8), (F32X16, 1e-4, 1e-2)], ids=str)
def test_lanes_find_the_answers_of_single_problems(width: Width, tolerance: float, exact: float) -> None:
    """Light sweeps move balls too, and what they leave is solved alone."""
    problems = [drawn(seed, 3, 36, 0.1) for seed in range(width.lanes)]
    p, a = laid(problems, width, tolerance)
    n = problems[0].problem.size
    bound_solver(p, a, newton_block(width, n), n, 0)(500, 2, STEPS)
    for lane, one in enumerate(problems):
        assert one.residual(a.lam[:n, lane].astype(np.float64)) < 10.0 * tolerance
        assert a.lam[:n, lane] == pytest.approx(solved(one, 1e-11)[0], abs=exact)


def test_light_sweeps_of_lanes_solve_what_is_easy_without_newton() -> None:
    problems = [drawn(seed, 2, 300, 0.1) for seed in range(8)]
    p, a = laid(problems, F64X8, 1e-4)
    n, room = problems[0].problem.size, newton_block(F64X8, problems[0].problem.size)
    bound_solver(p, a, room, n, 0)(500, 2, STEPS)
    assert (a.residual <= 1e-4).all()
    assert not room.steps.any()


@pytest.mark.parametrize("width", [F64X8, F32X16], ids=str)
def test_no_bit_of_a_lane_depends_on_its_neighbours(width: Width) -> None:
    tolerance = 1e-9 if width is F64X8 else 1e-4
    one = [drawn(seed, 3, 12, 0.1) for seed in range(width.lanes)]
    other = [drawn(seed, 3, 40, 0.1) for seed in range(100, 100 + width.lanes - 1)] + [one[0]]
    answers = []
    for problems in (one, other):
        p, a = laid(problems, width, tolerance)
        n = problems[0].problem.size
        bound_solver(p, a, newton_block(width, n), n, 0)(500, 2, STEPS)
        answers.append(a.lam[:n].copy())
    assert np.array_equal(answers[0][:, 0], answers[1][:, -1])
