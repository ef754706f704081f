"""Lanes of problems of different sizes: each is solved as if it were alone, whoever its neighbours are."""

from __future__ import annotations

import numpy as np
import pytest

from poise.formulations.step_memory import bound_solver
from poise.kernel.memory import F32X16, F64, F64X8, Block, Width
from poise.solve.newton_kernels import STEPS, newton_block
from poise.solve.problem import Friction, Problem
from solve.kernel_problems import MU, drawn, laid, residual, solved

SINGLES, CONTACTS = 5, 6
SIZE = SINGLES + 3 * CONTACTS


def places(problem: Problem) -> np.ndarray:
    """Rows that a problem has among those of a lane: its singles first, its contacts from where contacts begin."""
    contacts = 3 * len(problem.frictions)
    return np.r_[np.arange(problem.size - contacts), SINGLES + np.arange(contacts)]


def spread_out(problem: Problem) -> Problem:
    """The problem with blank rows for what it lacks."""
    at, A = places(problem), np.zeros((SIZE, SIZE))
    A[np.ix_(at, at)] = problem.matrix()
    b, lo, hi = np.zeros(SIZE), np.zeros(SIZE), np.zeros(SIZE)
    b[at], lo[at], hi[at] = problem.b, problem.lo, problem.hi
    starts = SINGLES + 3 * np.arange(CONTACTS)
    frictions = [Friction(int(s), (int(s) + 1, int(s) + 2), MU, cone=True) for s in starts]
    hi[starts] = np.maximum(hi[starts], 1e-300)  # problems want an order of bounds
    return Problem(A, b, lo, hi, frictions=frictions)


def blank_rest(p: Block, problems: list[Problem], lanes: int) -> None:
    """What kernels have where a lane has no row."""
    p.scale[...] = np.where(p.scale > 0.0, p.scale, 1.0)
    for lane, problem in enumerate(problems[:lanes]):
        rest = np.setdiff1d(np.arange(SIZE), places(problem))
        p.lo[rest, lane] = p.hi[rest, lane] = 0.0
        p.bound[SINGLES + len(problem.frictions) : SINGLES + CONTACTS, lane] = 0.0


def solve_lanes(problems: list[Problem], width: Width, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """(SIZE, lanes) multipliers, and the residuals that are told."""
    p, a = laid([spread_out(problem) for problem in problems], width, tolerance)
    blank_rest(p, problems, width.lanes)
    bound_solver(p, a, newton_block(width, SIZE), SIZE, 0)(300, 2, STEPS)
    return a.lam.copy(), a.residual.copy().reshape(-1)


def many(seed: int, count: int, rank: int = 30) -> list[Problem]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers((1, 1), (CONTACTS + 1, SINGLES + 1), (count, 2)).tolist()
    return [drawn(100 * seed + k, contacts, singles, rank) for k, (contacts, singles) in enumerate(sizes)]


def test_each_lane_has_its_own_answer() -> None:
    problems = many(1, 8)
    lam, told = solve_lanes(problems, F64X8, 1e-11)
    assert (told <= 1e-11).all()
    for lane, problem in enumerate(problems):
        alone, _ = solved([problem], F64, 1e-11)
        assert lam[places(problem), lane] == pytest.approx(alone[:, 0], abs=1e-9)
        assert residual(problem, lam[places(problem), lane]) < 1e-10
        assert not np.delete(lam[:, lane], places(problem)).any()


@pytest.mark.parametrize(("width", "tolerance"), [(F64X8, 1e-9), (F32X16, 1e-4)], ids=str)
def test_no_bit_depends_on_neighbours(width: Width, tolerance: float) -> None:
    """Neither on their rows nor on how hard they are, nor on the lane."""
    for rank in (9, 30):
        mine = many(2, 4, rank)
        one, other = [*mine, *many(3, width.lanes - 4)], [*many(4, width.lanes - 4, 12), *mine[::-1]]
        first, second = solve_lanes(one, width, tolerance)[0], solve_lanes(other, width, tolerance)[0]
        assert np.array_equal(first[:, :4], second[:, :-5:-1])


def test_a_lane_that_is_not_finite_leaves_the_others_alone() -> None:
    problems = many(6, 8)
    fine, _ = solve_lanes(problems, F64X8, 1e-9)
    p, a = laid([spread_out(problem) for problem in problems], F64X8, 1e-9)
    blank_rest(p, problems, 8)
    p.b[0, 3] = np.nan
    bound_solver(p, a, newton_block(F64X8, SIZE), SIZE, 0)(300, 2, STEPS)
    others = [0, 1, 2, 4, 5, 6, 7]
    assert np.array_equal(a.lam[:, others], fine[:, others])
    assert not a.residual.reshape(-1)[3] <= 1e-9
