"""Sweeps over bodies go the way of sweeps over a matrix."""

from __future__ import annotations

import re

import numpy as np
import pytest

from poise.kernel.memory import F64X8
from poise.solve.cg import CG
from poise.solve.delassus_operator import Factors
from poise.solve.direct import Direct
from poise.solve.matrix_free import BodyRows, inverse_masses, stacked
from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem
from solve.body_problems import body_problem, random_bodies

ROUNDING = 1e-11
"""What a few sweeps of a few dozen rows make of roundings of 1e-16, cones sought to 1e-5 of their slip not counted."""


def dense_parts(A: BodyRows) -> tuple[np.ndarray, np.ndarray]:
    """J (m, 6 n) and M⁻¹Jᵀ (6 n, m), whole."""
    J, response = np.zeros((2, len(A.body), A.n_bodies + 1, 6))
    rows = np.arange(len(A.body))[:, None]
    np.add.at(J, (rows, A.body), A.J)
    np.add.at(response, (rows, A.body), A.response)
    return J[:, :-1].reshape(len(J), -1), response[:, :-1].reshape(len(J), -1).T


@pytest.mark.parametrize("seed", range(40))
def test_the_operator_is_the_matrix(seed):
    problem, _ = body_problem(seed)
    A = problem.A
    J, response = dense_parts(A)
    formed = J @ response
    np.testing.assert_allclose(formed, formed.T, atol=1e-13 * np.abs(formed).max())
    np.testing.assert_allclose(np.diag(formed), A.diagonal, atol=1e-13 * np.abs(formed).max())
    lam = np.random.default_rng(seed).normal(size=problem.size)
    np.testing.assert_allclose(A.apply(lam), formed @ lam, atol=1e-12 * np.abs(formed).max())
    np.testing.assert_allclose(A.velocities(lam).ravel(), response @ lam, atol=1e-12)
    rows = np.random.default_rng(seed).integers(0, problem.size, (4, 3))
    np.testing.assert_allclose(A.own(rows), formed[rows[:, :, None], rows[:, None, :]], atol=1e-13 * formed.max())


@pytest.mark.parametrize("sweeps", [1, 2, 5, 20])
@pytest.mark.parametrize("relaxation", [1.0, 1.4, 0.6])
def test_sweep_for_sweep_as_with_a_matrix(sweeps, relaxation):
    """Every law and block, in the order of the rows; the residual and the best multipliers too."""
    solver, options = PGS(relaxation=relaxation, newton=False, check_every=1), Options(iterations=sweeps, history=True)
    for seed in range(40):
        problem, formed = body_problem(seed)
        ours, theirs = solver.solve(problem, options), solver.solve(formed, options)
        size = 1.0 + np.abs(theirs.lam).max()
        np.testing.assert_allclose(ours.lam, theirs.lam, atol=ROUNDING * size * 10)
        np.testing.assert_allclose(ours.history, theirs.history, atol=ROUNDING * size * 100)
        assert ours.iterations == theirs.iterations
        assert ours.natural == pytest.approx(theirs.natural, abs=ROUNDING * size * 100)


@pytest.mark.parametrize(
    "solver", [PGS(), PGS(memory=5, check_every=1), PGS(relaxation=1.3)], ids=["plain", "memory", "omega"]
)
def test_answers(solver):
    """To the tolerance, and again from there at once."""
    for seed in range(40):
        problem, formed = body_problem(seed)
        result = solver.solve(problem, Options(iterations=20_000))
        assert result.ok
        assert np.abs(formed.residual(result.lam) - result.w).max() < 1e-10
        again = solver.solve(problem, Options(iterations=20_000, warm=result.lam))
        assert again.ok
        assert again.iterations <= 4


def test_problems_in_lanes():
    """Other numbers, the same bodies: each answer is that of the problem alone."""
    rng = np.random.default_rng(3)
    body = rng.integers(-1, 4, (9, 2))
    problems = [
        Problem(BodyRows(body, rng.normal(size=(9, 2, 6)), random_bodies(rng, 4)), rng.normal(size=9), np.zeros(9))
        for _ in range(5)
    ]
    together = PGS().solve_many(problems, Options(iterations=5000), F64X8)
    for problem, result in zip(problems, together, strict=True):
        alone = PGS(newton=False).solve(problem, Options(iterations=5000))
        np.testing.assert_allclose(result.lam, alone.lam, atol=1e-7 * (1 + np.abs(alone.lam).max()))
    others = [*problems[:1], Problem(BodyRows(body[::-1], problems[0].A.J, random_bodies(rng, 4)), np.zeros(9))]
    with pytest.raises(ValueError, match="problem 1 has other blocks or rows than problem 0"):
        PGS().solve_many(others, Options(), F64X8)


def test_other_solvers_take_it_as_an_operator():
    rng = np.random.default_rng(5)
    A = BodyRows(np.array([[-1, 0], [0, 1], [1, 2], [2, -1]]), rng.normal(size=(4, 2, 6)), random_bodies(rng, 3))
    problem = Problem(A, rng.normal(size=4))
    want = Direct().solve(problem).lam
    np.testing.assert_allclose(CG().solve(problem).lam, want, rtol=1e-6)
    factors = Problem(Factors(*dense_parts(A)), problem.b)
    np.testing.assert_allclose(PGS().solve(factors, Options(iterations=20_000)).lam, want, rtol=1e-6)
    np.testing.assert_allclose(PGS().solve(problem, Options(iterations=20_000)).lam, want, rtol=1e-6)


def test_a_body_twice_in_a_row_counts_once():
    rng = np.random.default_rng(0)
    J, M = rng.normal(size=(1, 3, 6)), random_bodies(rng, 2)
    A = BodyRows([[1, 0, 1]], J, M)
    both = J[0, 0] + J[0, 2]
    assert A.diagonal[0] == pytest.approx(both @ M[1] @ both + J[0, 1] @ M[0] @ J[0, 1], rel=1e-14)
    assert sorted(A.body[0].tolist()) == [-1, 0, 1]


def test_what_cannot_be_moved_does_not_move():
    rng = np.random.default_rng(0)
    M = random_bodies(rng, 2)
    M[0] = 0.0
    A = BodyRows([[0, 1], [0, -1]], rng.normal(size=(2, 2, 6)), M)
    assert np.all(A.velocities([1.0, 1.0])[0] == 0.0)
    assert A.diagonal[1] == 0.0
    assert PGS().solve(Problem(A, [1.0, 0.0])).ok


def test_no_rows():
    assert PGS().solve(Problem(BodyRows(np.zeros((0, 2), int), np.zeros((0, 2, 6)), np.zeros((3, 6, 6))), [])).ok
    body, J = stacked([])
    assert body.shape == (0, 2)
    assert J.shape == (0, 2, 6)


def test_inverse_masses():
    inertia = np.array([np.diag([1.0, 2.0, 4.0])])
    np.testing.assert_array_equal(np.diag(inverse_masses([0.5], inertia)[0]), [1.0, 0.5, 0.25, 2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("body", "J", "M", "message"),
    [
        ([[0.5, 1]], np.zeros((1, 2, 6)), np.zeros((2, 6, 6)), "body holds float64; whole numbers are required"),
        ([0, 1], np.zeros((1, 2, 6)), np.zeros((2, 6, 6)), "body has shape (2,) and J (1, 2, 6)"),
        ([[0, 1]], np.zeros((1, 2, 5)), np.zeros((2, 6, 6)), "(m, E) and (m, E, 6) are required"),
        ([[0, 1]], np.zeros((1, 2, 6)), np.zeros((2, 6)), "inverse_mass has shape (2, 6); (n, 6, 6) is required"),
        ([[0, 2]], np.zeros((1, 2, 6)), np.zeros((2, 6, 6)), "a row names body 2; there are bodies 0 to 1"),
        ([[0, -2]], np.zeros((1, 2, 6)), np.zeros((2, 6, 6)), "a row names body -2; there are bodies 0 to 1"),
        ([[0, 1]], np.full((1, 2, 6), np.nan), np.zeros((2, 6, 6)), "J and inverse_mass must be finite"),
        ([[0, 1]], np.zeros((1, 2, 6)), np.triu(np.ones((2, 6, 6))), "inverse_mass must be symmetric"),
    ],
)
def test_what_is_no_row_is_refused(body, J, M, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BodyRows(body, J, M)


@pytest.mark.parametrize(
    ("mass", "inertia", "message"),
    [
        ([1.0], np.eye(3), "mass has shape (1,), inertia (3, 3); (n,) and (n, 3, 3) are required"),
        ([1.0, 0.0], np.array([np.eye(3)] * 2), "body 1: mass and inertia must be positive, found 0.0 kg"),
        ([1.0], -np.eye(3)[None], "body 0: mass and inertia must be positive"),
    ],
)
def test_what_is_no_mass_is_refused(mass, inertia, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        inverse_masses(mass, inertia)
