"""Laws in pieces: points of their graphs lie on the piece that is found, and just beyond its end on the next."""

import numpy as np
import pytest

from poise.solve.pgs import PGS
from poise.solve.piecewise import Plane, units_of
from poise.solve.problem import Options, Problem
from solve.problems import draw

FAMILIES = ["bounded", "lcp", "laws", "laws_and_bounds", "pyramid", "cone", "balls"]


def value(plane: Plane, lam: np.ndarray, w: np.ndarray) -> float:
    """How far above its value a plane is."""
    own = sum(x * lam[row] for row, x in plane.lam.items()) + sum(x * w[row] for row, x in plane.w.items())
    return own - plane.value


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_lie_on_their_pieces(family):
    for seed in range(40):
        known = draw(family, seed)
        units = units_of(known.problem, known.lam, known.w, 0.0)
        planes = [plane for unit in units for plane in unit.piece.equal]
        assert len(planes) == known.problem.size
        for plane in planes:
            assert value(plane, known.lam, known.w) == pytest.approx(0.0, abs=1e-12)
        for end, beyond in [end for unit in units for end in unit.piece.ends]:
            assert value(end, known.lam, known.w) <= 1e-12
            assert 0 <= beyond <= 12


@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_are_linear_to_first_order(family):
    """Another answer near by, its b a little different, lies on the same planes: exactly, or to second order."""
    tight = Options(tolerance=1e-13, iterations=100_000)
    for seed in range(6):
        problem = draw(family, seed).problem
        rng = np.random.default_rng(seed)
        first = PGS(memory=5).solve(problem, tight)
        if first.natural > 1e-10:
            continue
        step = 1e-5 * rng.normal(size=problem.size)
        near = Problem(
            problem.A,
            problem.b + step,
            problem.lo,
            problem.hi,
            problem.cfm,
            problem.laws,
            problem.frictions,
            problem.balls,
        )
        second = PGS(memory=5).solve(near, tight)
        units = units_of(problem, first.lam, first.w, 0.0)
        if [unit.at for unit in units] != [unit.at for unit in units_of(near, second.lam, second.w, 0.0)]:
            continue  # it has gone to another piece
        for plane in [plane for unit in units for plane in unit.piece.equal]:
            assert value(plane, second.lam, second.w) == pytest.approx(0.0, abs=1e-8)


def test_a_row_with_bounds():
    problem = Problem(np.eye(1), [0.0], [-1.0], [2.0])
    for lam, w, piece in ((-1.0, 0.5, 0), (0.3, 0.0, 1), (2.0, -0.5, 2)):
        assert units_of(problem, np.array([lam]), np.array([w]), 0.0)[0].at == piece
    unit = units_of(problem, np.array([0.0]), np.zeros(1), 0.0)[0]
    assert [beyond for _, beyond in unit.piece.ends] == [0, 2]
    assert len(units_of(Problem(np.eye(1), [0.0]), np.zeros(1), np.zeros(1), 0.0)[0].pieces) == 1
