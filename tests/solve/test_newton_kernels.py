"""Sweeps and Newton's steps in kernels, as worlds solve their rows: against the natural map of `check`."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from poise.kernel.memory import F32X16, F64, F64X8
from poise.solve.newton_kernels import NEWTON_SHARE, SOLVE, STEPS, newton_block
from poise.solve.pgs_kernels import CAPPED
from poise.solve.problem import Problem
from solve.kernel_problems import drawn, laid, residual, solved


@pytest.mark.parametrize(("contacts", "singles", "rank"), [(0, 6, 12), (4, 3, 30), (8, 4, 40)])
def test_definite_problems_are_solved_to_rounding(contacts: int, singles: int, rank: int) -> None:
    for seed in range(40):
        problem = drawn(seed, contacts, singles, rank)
        lam, sweeps = solved([problem], F64, 1e-11)
        assert residual(problem, lam[:, 0]) < 1e-10
        assert sweeps[0] < 100


@pytest.mark.parametrize(("contacts", "singles", "rank"), [(4, 2, 6), (8, 0, 6), (12, 4, 12)])
def test_more_rows_than_degrees_of_freedom(contacts: int, singles: int, rank: int) -> None:
    """Multipliers are not unique; with friction there may be none. 99 of 100 are solved as worlds need it."""
    solutions = 0
    for seed in range(100):
        problem = drawn(seed, contacts, singles, rank)
        tolerance = 1e-3 * float(np.abs(problem.b).max())
        lam, _ = solved([problem], F64, tolerance)
        solutions += residual(problem, lam[:, 0]) <= 1.01 * tolerance
    assert solutions >= 97


def test_lanes_solve_each_its_own_problem() -> None:
    problems = [drawn(seed, 8, 4, 32) for seed in range(8)]
    lam, _ = solved(problems, F64X8, 1e-11)
    for lane, problem in enumerate(problems):
        alone, _ = solved([problem], F64, 1e-11)
        assert lam[:, lane] == pytest.approx(alone[:, 0], abs=1e-9)


def test_a_lane_does_not_depend_on_its_neighbours() -> None:
    one = [drawn(seed, 6, 2, 12) for seed in range(8)]
    other = [one[0]] + [drawn(seed, 6, 2, 12) for seed in range(20, 27)]
    assert np.array_equal(solved(one, F64X8, 1e-9)[0][:, 0], solved(other, F64X8, 1e-9)[0][:, 0])


def test_single_precision() -> None:
    problems = [drawn(seed, 4, 2, 30) for seed in range(16)]
    lam, _ = solved(problems, F32X16, 1e-4)
    for lane, problem in enumerate(problems):
        assert residual(problem, lam[:, lane].astype(np.float64)) < 2e-4


def test_fewer_sweeps_than_it_takes_alone() -> None:
    """Steps do what sweeps would need many for: two bodies of very different mass."""
    problem = Problem([[1.0, -0.999], [-0.999, 1.0]], [-1.0, 0.5], lo=[0.0, 0.0])
    lam, sweeps = solved([problem], F64, 1e-10)
    assert lam[:, 0] == pytest.approx(np.linalg.solve(problem.matrix(), -problem.b), rel=1e-8)
    assert sweeps[0] <= 20


@pytest.mark.parametrize("what", [np.nan, inf, -inf])
def test_what_is_not_finite_ends(what: float) -> None:
    """It claims nothing: neither an answer nor a residual."""
    problem = drawn(0, 2, 2, 12)
    p, a = laid([problem], F64, 1e-9)
    p.b[3] = what
    SOLVE[F64](p.handle, a.handle, newton_block(F64, problem.size).handle, 50, 2, STEPS)
    assert not a.residual[0] <= 1e-9


def test_a_search_that_is_cut_short_ends_with_the_best_multipliers_so_far() -> None:
    """The residual falls, or stays, as more sweeps are allowed; the limit holds, and `status` tells that it did.

    It is looked at after every second sweep and at the end: what it is after the last of an odd number, a search that
    goes on does not see.
    """
    for seed in range(10):
        problem = drawn(seed, 12, 4, 20)
        last = np.inf
        for most in (1, 2, 3, 5, 8, 13, 21, 34):
            p, a = laid([problem], F64, 1e-11)
            a.most_sweeps[...] = most
            SOLVE[F64](p.handle, a.handle, newton_block(F64, problem.size).handle, 500, 2, 0)
            assert a.sweeps[0] <= most
            assert a.residual[0] <= last * (1.0 + 1e-12)
            assert (a.status[0] == CAPPED) == (a.residual[0] > 1e-11)
            last = a.residual[0] if most % 2 == 0 else last


def test_work_is_counted_and_capped_however_large_the_problem() -> None:
    """A step of Newton's method that costs more than is left is not begun; every search may end a few looks late."""
    for seed in range(10):
        problem = drawn(seed, 20, 0, 30)
        n = problem.size
        for most in (10.0 * n**2, 100.0 * n**2, 1e9):
            p, a = laid([problem], F64, 1e-12)
            a.most_work[...] = most
            SOLVE[F64](p.handle, a.handle, newton_block(F64, n).handle, 500, 2, STEPS)
            assert a.work[0] <= most + 10.0 * n**2
            assert a.newton_work[0] <= NEWTON_SHARE * most + 10.0 * n**2
