"""Conjugate gradients against the answers that the problems were made from, and against Direct."""

import numpy as np
import pytest

from poise.solve.cg import CG
from poise.solve.direct import Direct
from poise.solve.problem import Operator, Options, Problem, Status
from poise.solve.solver_registry import UnsupportedForm
from solve.problems import draw, draw_any_size, matrix

FAMILIES = ["spd", "soft", "semidefinite", "duplicate_rows", "badly_scaled_rows", "operator"]


def agree(family: str, seeds: range, draw=draw) -> None:
    for seed in seeds:
        known = draw(family, seed)
        result = CG().solve(known.problem)
        size = np.abs(known.problem.b).max()
        assert result.status is Status.SOLVED, (family, seed, result)
        assert np.abs(known.problem.residual(result.lam)).max() <= 1e-9 * size
        if known.unique and family != "badly_scaled_rows":
            least = np.linalg.eigvalsh(known.problem.matrix())[0]
            assert np.linalg.norm(result.lam - known.lam) <= 1e-9 * size * np.sqrt(known.lam.size) / least


def conflict(seeds: range, draw=draw) -> None:
    for seed in seeds:
        known = draw("conflicting", seed)
        result = CG().solve(known.problem, Options(iterations=20_000))  # as many as the condition, times a few
        assert result.status is Status.CONFLICTING, (seed, result)
        assert result.w == pytest.approx(known.w, abs=1e-8 * np.abs(known.problem.b).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_answers(family):
    agree(family, range(150))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_soak(family):
    agree(family, range(2000), draw_any_size)


def test_conflicts_end_in_least_squares():
    conflict(range(150))


@pytest.mark.slow
def test_conflicts_soak():
    conflict(range(2000), draw_any_size)


def test_as_many_iterations_as_there_are_distinct_eigenvalues():
    """A = I + u uᵀ has two, so two iterations do, whatever its size."""
    u = np.linspace(1.0, 2.0, 50)
    A = np.eye(50) + np.outer(u, u)
    result = CG(preconditioner=lambda r: r).solve(Problem(A, -np.arange(50.0)))
    assert result.status is Status.SOLVED
    assert result.iterations == 2


def test_applies_the_operator_once_an_iteration():
    n, calls = 2000, []

    def apply(x):
        calls.append(1)
        out = 2.5 * x
        out[1:] -= x[:-1]
        out[:-1] -= x[1:]
        return out

    b = np.sin(np.arange(n))
    result = CG().solve(Problem(Operator(apply, np.full(n, 2.5)), b))
    assert result.status is Status.SOLVED
    assert result.iterations <= len(calls) <= result.iterations + 5 < 100
    assert np.abs(apply(result.lam) + b).max() <= 1e-9


def test_a_preconditioner_of_ones_own():
    """The inverse itself needs one iteration."""
    A = matrix(np.random.default_rng(5), 30)
    inverse = np.linalg.inv(A)
    problem = Problem(A, np.ones(30))
    assert CG(preconditioner=lambda r: inverse @ r).solve(problem).iterations == 1
    assert CG().solve(problem).iterations > 5


def test_starting_at_the_answer_takes_no_iteration():
    known = draw("spd", 11)
    result = CG().solve(known.problem, Options(warm=known.lam))
    assert result.iterations == 0
    assert np.array_equal(result.lam, known.lam)


def test_starting_near_takes_fewer():
    A = matrix(np.random.default_rng(6), 60, floor=0.01)
    lam = np.ones(60)
    problem = Problem(A, -A @ lam)
    cold = CG().solve(problem)
    near = CG().solve(problem, Options(warm=lam + 1e-7 * np.sin(np.arange(60))))
    assert near.iterations < cold.iterations


def test_out_of_iterations():
    A = matrix(np.random.default_rng(7), 40, floor=1e-3)
    result = CG().solve(Problem(A, np.ones(40)), Options(iterations=3))
    assert result.status is Status.STOPPED
    assert result.iterations == 3
    assert 1e-9 < result.natural <= 1.0


def test_history_ends_below_the_tolerance():
    result = CG().solve(draw("spd", 13).problem, Options(history=True))
    assert len(result.history) == result.iterations + 1
    assert result.history[-1] == pytest.approx(result.natural, abs=1e-12)
    assert result.history[0] > 1e3 * result.history[-1]


def test_the_same_as_direct_where_rows_are_soft():
    for seed in range(20):
        problem = draw("soft", seed).problem
        assert CG().solve(problem, Options(tolerance=1e-13)).lam == pytest.approx(Direct().solve(problem).lam, rel=1e-9)


@pytest.mark.parametrize(("b", "status"), [([0.0, 0.0], Status.SOLVED), ([0.0, 3.0], Status.CONFLICTING)])
def test_nought(b, status):
    result = CG().solve(Problem(np.zeros((2, 2)), b))
    assert result.status is status
    assert result.lam.tolist() == [0.0, 0.0]


def test_nothing_to_solve():
    assert CG().solve(Problem(np.zeros((0, 0)), np.zeros(0))).status is Status.SOLVED


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_two_rows_that_contradict_each_other_meet_halfway(unit):
    result = CG().solve(Problem(unit * np.ones((2, 2)), [-1.0, -3.0]))
    assert result.status is Status.CONFLICTING
    assert result.w == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize("iterations", [1, 20, 40, 400])
def test_the_search_for_a_proof_counts_as_well(iterations):
    """200 rows that contradict each other, of rank 100 or more: no proof without as many iterations as that."""
    for seed in range(57, 70):
        problem = draw("conflicting", seed, 200).problem
        if np.linalg.matrix_rank(problem.A) < 100:
            continue
        result = CG().solve(problem, Options(iterations=iterations))
        assert result.iterations <= iterations
        assert result.iterations == iterations or result.status is Status.CONFLICTING
        assert iterations > 40 or result.status is Status.STOPPED


def test_least_squares_finds_what_descent_cannot():
    """Not definite: the first direction has a curvature of nought."""
    A = np.diag([1.0, -1.0, 2.0])
    result = CG().solve(Problem(Operator(lambda x: A @ x, np.ones(3)), [1.0, 1.0, 0.0]))
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx([-1.0, 1.0, 0.0])


def test_an_indefinite_operator_ends_honestly():
    A = np.diag([1.0, -1.0])
    result = CG().solve(Problem(Operator(lambda x: A @ x, np.ones(2)), [1.0, 1.0]))
    assert np.isfinite(result.lam).all()
    assert result.ok == (np.abs(A @ result.lam + 1.0).max() <= 1e-9)


def test_an_operator_that_answers_nan_ends_without_one():
    result = CG().solve(Problem(Operator(lambda x: x * np.nan, np.ones(2)), [1.0, 1.0]))
    assert result.status is Status.STOPPED
    assert np.isfinite(result.lam).all()


@pytest.mark.parametrize("problem", [Problem([[1.0]], [1.0], lo=[0.0]), Problem([[1.0, 1.0], [0.0, 1.0]], [1.0, 1.0])])
def test_refuses(problem):
    with pytest.raises(UnsupportedForm, match=r"CG does not take (bounds|nonsymmetric)"):
        CG().solve(problem)
