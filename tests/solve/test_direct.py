"""Direct against the answers that the problems were made from."""

import numpy as np
import pytest

from poise.solve.direct import Direct
from poise.solve.problem import Operator, Options, Problem, Status
from poise.solve.scaling import equilibrate
from poise.solve.solver_registry import UnsupportedForm
from solve.problems import draw, draw_any_size

FAMILIES = {
    "spd": Status.SOLVED,
    "soft": Status.SOLVED,
    "nonsymmetric": Status.SOLVED,
    "badly_scaled_rows": Status.SOLVED,
    "operator": Status.SOLVED,
    "semidefinite": Status.SINGULAR,
    "duplicate_rows": Status.SINGULAR,
    "conflicting": Status.CONFLICTING,
}


def agree(family: str, seeds: range, draw=draw) -> None:
    """λ of the problem's own, the shortest one where there are many, to the digits that its condition leaves.

    Where rows conflict, the answer of least squares moves with the square of the condition (Wedin 1973); where they are
    singular, units that differ between rows make the null space less certain.
    """
    for seed in seeds:
        known = draw(family, seed)
        result = Direct().solve(known.problem)
        A, size = known.problem.matrix(), np.abs(known.problem.b).max()
        assert result.status is FAMILIES[family], (family, seed, result)
        d = equilibrate(A)
        values = np.linalg.svd(A * np.outer(d, d))[1]
        condition = values[0] / values[values > 1e-12 * values[0]][-1]
        conflict = condition * np.linalg.norm(known.w) / np.linalg.norm(A @ known.lam)
        spread = 1.0 if known.unique else d.max() / d.min()
        digits = 1e-14 * condition * spread * (1.0 + conflict)
        error = np.abs((result.lam - known.lam) / d).max() / np.abs(known.lam / d).max()
        assert error <= digits, (family, seed, error, digits)
        if known.solvable:
            assert result.natural <= 1e-13 * size * max(1.0, d.min() * condition), (family, seed)
        else:
            assert result.w == pytest.approx(known.w, abs=1e-11 * size)


@pytest.mark.parametrize("family", FAMILIES)
def test_answers(family):
    agree(family, range(150))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_soak(family):
    agree(family, range(2000), draw_any_size)


@pytest.mark.parametrize("family", ["spd", "soft", "badly_scaled_rows", "operator"])
def test_definite_systems_need_no_singular_vectors(family, monkeypatch):
    monkeypatch.setattr(Direct, "_split", lambda *given: pytest.fail("Cholesky's factors are enough"))
    agree(family, range(50))


@pytest.mark.parametrize("family", ["nonsymmetric", "semidefinite", "duplicate_rows", "conflicting"])
def test_other_systems_are_not_left_to_cholesky(family, monkeypatch):
    found = []
    definite = Direct._definite
    monkeypatch.setattr(Direct, "_definite", lambda *given: found.append(definite(*given)) or found[-1])
    agree(family, range(50))
    assert found == [None] * 50


def test_nothing_to_solve():
    result = Direct().solve(Problem(np.zeros((0, 0)), np.zeros(0)))
    assert (result.status, result.lam.shape, result.natural) == (Status.SOLVED, (0,), 0.0)


def test_one_row():
    assert Direct().solve(Problem([[4.0]], [2.0])).lam.tolist() == [-0.5]


@pytest.mark.parametrize(("b", "status"), [([0.0, 0.0], Status.SINGULAR), ([0.0, 3.0], Status.CONFLICTING)])
def test_nought(b, status):
    result = Direct().solve(Problem(np.zeros((2, 2)), b))
    assert result.status is status
    assert result.lam.tolist() == [0.0, 0.0]


def test_a_row_of_noughts_leaves_the_others_alone():
    A = np.diag([2.0, 0.0, 4.0])
    result = Direct().solve(Problem(A, [-2.0, 1.0, -8.0]))
    assert result.status is Status.CONFLICTING
    assert result.lam == pytest.approx([1.0, 0.0, 2.0])


@pytest.mark.parametrize("unit", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_duplicates_share_evenly_in_any_unit(unit):
    result = Direct().solve(Problem(unit * np.ones((3, 3)), [-6.0 * unit] * 3))
    assert result.status is Status.SINGULAR
    assert result.lam == pytest.approx([2.0, 2.0, 2.0])


def test_shortest_in_the_problems_own_units():
    """Equilibration must not change what "shortest" means: of 1e-4 x + 1e4 y = 1e4 it is (1e-8, 1), nearly."""
    J = np.array([[1e-4], [1e4]])
    result = Direct().solve(Problem(J @ J.T, (-J[:, 0] * 1e4).tolist()))
    assert result.status is Status.SINGULAR
    assert result.lam == pytest.approx([1e-8, 1.0], rel=1e-6)


def test_hilbert_matrix_of_condition_1e13_is_met_to_the_tolerance():
    A = np.array([[1.0 / (i + j + 1) for j in range(10)] for i in range(10)])
    result = Direct().solve(Problem(A, -A @ np.ones(10)))
    assert result.ok
    assert result.natural <= 1e-12


def test_indefinite_saddle():
    A = np.array([[2.0, 1.0], [1.0, 0.0]])
    assert Direct().solve(Problem(A, [-3.0, -1.0])).lam == pytest.approx([1.0, 1.0])


def test_huge_numbers_end_without_nan():
    result = Direct().solve(Problem([[1e300, 1e300], [1e300, -1e300]], [1e300, 0.0]))
    assert np.isfinite(result.lam).all()
    assert result.lam == pytest.approx([-0.5, -0.5])


def test_an_operator_that_is_not_symmetric():
    A = np.array([[1.0, 2.0], [0.0, 1.0]])
    result = Direct().solve(Problem(Operator(lambda x: A @ x, np.diag(A).copy()), [-3.0, -1.0]))
    assert result.lam == pytest.approx([1.0, 1.0])


def test_a_tolerance_that_cannot_be_met_is_told():
    """Rounding leaves something of most residuals; where by chance nothing is left, the tolerance is met."""
    results = [Direct().solve(draw("spd", seed).problem, Options(tolerance=1e-40)) for seed in range(20)]
    for result in results:
        assert result.status is (Status.SOLVED if result.natural == 0.0 else Status.STOPPED)
        assert result.natural < 1e-14
    assert any(result.status is Status.STOPPED for result in results)


def test_refuses_bounds():
    with pytest.raises(UnsupportedForm, match="Direct does not take bounds"):
        Direct().solve(Problem([[1.0]], [1.0], lo=[0.0]))
