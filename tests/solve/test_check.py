"""How good an answer is: the natural map against other formulas, projections against numerical minimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize

from poise.solve.laws import dead_zone
from poise.solve.problem import Ball, Friction, Options, Problem, Status
from poise.solve.residuals import (
    complementarity,
    natural_map,
    nearest_in_ball,
    nearest_in_cone,
    report,
    size_of,
    violation,
)
from solve.problems import FAMILIES, draw, matrix

RNG = np.random.default_rng(0)
POINTS = [RNG.normal(size=n) * scale for n in (2, 3) for scale in (0.01, 1.0, 100.0) for _ in range(8)]


def squeezed(problem: Problem, lam: np.ndarray) -> np.ndarray:
    """The natural map of bounded rows as a middle of three: mid(s (λ − hi), w, s (λ − lo))."""
    w, scale = problem.residual(lam), problem.diagonal
    return np.median([scale * (lam - problem.hi), w, scale * (lam - problem.lo)], axis=0)


@pytest.mark.parametrize("family", ["lcp", "bounded", "bounded_semidefinite", "spd", "badly_scaled"])
def test_bounded_rows(family):
    for seed in range(20):
        problem = draw(family, seed).problem
        lam = np.random.default_rng(seed).normal(size=problem.size)
        limit = 1e-13 * max(1.0, np.abs(problem.matrix()).max() * np.abs(lam).max(), size_of(problem))
        assert natural_map(problem, lam) == pytest.approx(squeezed(problem, lam), abs=limit)


def test_complementary_rows_are_a_minimum():
    """λ ≥ 0, w ≥ 0: min(s λ, w), with s as given."""
    problem = draw("lcp", 3).problem
    lam = np.random.default_rng(1).normal(size=problem.size)
    assert natural_map(problem, lam, scale=2.5) == pytest.approx(np.minimum(2.5 * lam, problem.residual(lam)))


def test_rows_without_diagonal_count_as_one():
    problem = Problem(np.zeros((1, 1)), [-3.0], lo=[0.0])
    assert natural_map(problem, np.array([1.0])).tolist() == [-3.0]
    assert natural_map(Problem(np.zeros((1, 1)), [3.0], lo=[0.0]), np.array([1.0])).tolist() == [1.0]


def test_laws():
    law = dead_zone(-0.5, 0.5)
    problem = Problem([[2.0]], [0.1], laws={0: law})
    # at λ = 1, w = 2.1; by itself the row would rest at λ = 0 as |b| < 0.5
    assert natural_map(problem, np.array([1.0])) == pytest.approx([2.0])
    assert natural_map(problem, np.array([0.0])) == pytest.approx([0.0])


def test_pyramids():
    """By hand: λ_n = 2, μ = 0.5, so tangents have room ±1."""
    problem = Problem(np.eye(3), [-2.0, -3.0, 0.5], frictions=[Friction(0, (1, 2), 0.5, cone=False)])
    assert natural_map(problem, np.array([2.0, 1.0, -0.5])) == pytest.approx([0.0, 0.0, 0.0])
    assert natural_map(problem, np.array([2.0, 2.0, -0.5])) == pytest.approx([0.0, 1.0, 0.0])
    assert natural_map(problem, np.array([-1.0, 0.0, 0.0])) == pytest.approx([-3.0, 0.0, 0.0])


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("point", POINTS)
def test_nearest_in_cone(point, mu):
    """Moreau: p in the cone, x − p across p, and x − p in the polar cone; and nothing nearer is found numerically."""
    p, size = nearest_in_cone(point, mu), np.linalg.norm(point)
    away = point - p
    assert np.linalg.norm(p[1:]) <= mu * p[0] + 1e-12 * size
    assert abs(away @ p) <= 1e-12 * size**2
    assert away[0] + mu * np.linalg.norm(away[1:]) <= 1e-12 * size
    room = {"type": "ineq", "fun": lambda y: [mu * y[0] - np.sqrt(y[1:] @ y[1:] + 1e-18), y[0]]}
    start = np.zeros(point.size)
    start[0] = 1.0
    found = minimize(lambda y: ((y - point / size) ** 2).sum(), start, constraints=room, method="SLSQP")
    assert np.linalg.norm(away / size) <= np.sqrt(found.fun) + 1e-6


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_contact_that_does_not_slide_cannot_pull(mu):
    """The point (−1, 0, 0) is outside every cone, the one without friction included."""
    assert nearest_in_cone(np.array([-1.0, 0.0, 0.0]), mu).tolist() == [0.0, 0.0, 0.0]
    problem = Problem(np.eye(3), [1.0, 0.0, 0.0], frictions=[Friction(0, (1, 2), mu)])
    assert natural_map(problem, np.zeros(3)).tolist() == [0.0, 0.0, 0.0]  # open
    assert natural_map(problem, np.array([-1.0, 0.0, 0.0])).tolist() == [-1.0, 0.0, 0.0]  # w = 0, but it pulls


@pytest.mark.parametrize("radius", [0.0, 0.5, 3.0, np.inf])
@pytest.mark.parametrize("point", POINTS[::3])
def test_nearest_in_ball(point, radius):
    p, size = nearest_in_ball(point, radius), np.linalg.norm(point)
    assert np.linalg.norm(p) <= radius * (1.0 + 1e-15)
    assert np.linalg.norm(point - p) == pytest.approx(max(size - radius, 0.0), abs=1e-14 * size)


def coulomb(lam: np.ndarray, w: np.ndarray, mu: float) -> float:
    """How far a contact is from Coulomb's law, written out: Signorini, the cone, and sliding against the force."""
    normal, slide, force = min(lam[0], w[0]), np.linalg.norm(w[1:]), np.linalg.norm(lam[1:])
    over = max(force - mu * lam[0], 0.0)
    against = np.linalg.norm(slide * lam[1:] + mu * lam[0] * w[1:])
    return max(abs(normal), over, against)


def test_cones_are_nought_exactly_where_coulombs_law_holds():
    for seed in range(100):
        known = draw("cone", seed)
        for index, friction in enumerate(known.problem.frictions):
            rows = [friction.normal, *friction.tangents]
            assert coulomb(known.lam[rows], known.w[rows], friction.mu) <= 1e-12
            lam, w = known.lam.copy(), known.w.copy()
            rng = np.random.default_rng([seed, index])
            lam[rows], w[rows] = (
                lam[rows] + 0.1 * rng.normal(size=len(rows)),
                w[rows] + 0.1 * rng.normal(size=len(rows)),
            )
            off = np.abs(natural_map(known.problem, lam, w)[rows]).max()
            assert (off > 1e-6) == (coulomb(lam[rows], w[rows], friction.mu) > 1e-6)


def test_sliding_the_wrong_way_is_found():
    problem = Problem(np.eye(2), [-1.0, 0.0], frictions=[Friction(0, (1,), 0.5)])
    right, wrong = np.array([0.0, -1.0]), np.array([0.0, 1.0])
    lam = np.array([1.0, 0.5])
    assert np.abs(natural_map(problem, lam, right)).max() <= 1e-15
    assert np.abs(natural_map(problem, lam, wrong)).max() > 0.1


def test_balls():
    """Inside w must be nought; on the sphere w must point inwards against λ."""
    problem = Problem(np.eye(2), [0.0, 0.0], balls=[Ball((0, 1), 1.0)])
    on = np.array([0.6, 0.8])
    assert natural_map(problem, on, -2.0 * on) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert np.abs(natural_map(problem, on, 2.0 * on)).max() > 0.5
    assert natural_map(problem, 0.5 * on, np.array([0.1, 0.2])) == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("family", FAMILIES)
def test_moving_an_answer_off_shows(family):
    """The natural map is nought at the answer and grows where single multipliers of a unique answer are moved."""
    for seed in range(20):
        known = draw(family, seed)
        if not (known.unique and known.solvable and known.lam.size):
            continue
        at = np.abs(natural_map(known.problem, known.lam)).max()
        moved = known.lam + 1e-3 * np.abs(known.lam).max(initial=0.0)
        if np.array_equal(moved, known.lam):
            continue
        assert np.abs(natural_map(known.problem, moved)).max() > 1e3 * at


def test_complementarity_by_hand():
    problem = Problem(np.eye(4), [0.0] * 4, lo=[0.0, -np.inf, -1.0, -np.inf], hi=[np.inf, 2.0, 1.0, np.inf])
    lam, w = np.array([3.0, 1.5, 0.0, 9.0]), np.array([2.0, -4.0, 0.5, 100.0])
    assert complementarity(problem, lam, w) == pytest.approx(6.0)
    assert complementarity(problem, lam * [0, 1, 1, 1], w) == pytest.approx(2.0)
    contact = Problem(np.eye(2), [0.0, 0.0], frictions=[Friction(0, (1,), 0.5)])
    assert complementarity(contact, np.array([2.0, 7.0]), np.array([-3.0, 7.0])) == pytest.approx(6.0)


def test_violation_by_hand():
    problem = Problem(np.eye(2), [0.0, 0.0], lo=[0.0, -np.inf], hi=[np.inf, 1.0])
    assert violation(problem, np.array([-0.25, 0.0])) == 0.25
    assert violation(problem, np.array([0.0, 3.0])) == 2.0
    assert violation(problem, np.array([5.0, -5.0])) == 0.0
    ball = Problem(np.eye(2), [0.0, 0.0], balls=[Ball((0, 1), 1.0)])
    assert violation(ball, np.array([3.0, 4.0])) == 4.0
    for cone, expected in [(True, 4.0), (False, 3.0)]:
        contact = Problem(np.eye(3), np.zeros(3), frictions=[Friction(0, (1, 2), 0.5, cone)])
        assert violation(contact, np.array([2.0, 3.0, 4.0])) == pytest.approx(expected)
        assert violation(contact, np.array([-2.0, 0.0, 0.0])) == 2.0
    law = Problem(np.eye(1), [0.0], laws={0: dead_zone(-1.0, 1.0, -2.0, 2.0)})
    assert violation(law, np.array([2.5])) == 0.5


def test_report():
    A = matrix(np.random.default_rng(2), 3)
    lam = np.ones(3)
    problem = Problem(A, -A @ lam)
    good = report(problem, lam, 7, Options())
    assert (good.status, good.iterations) == (Status.SOLVED, 7)
    assert good.natural == np.abs(natural_map(problem, lam)).max()
    bad = report(problem, lam + 1e-6, 7, Options(), Status.CONFLICTING)
    assert bad.status is Status.CONFLICTING
    assert report(problem, lam + 1e-6, 7, Options(tolerance=1e-3)).status is Status.SOLVED


@pytest.mark.parametrize("hostile", [np.nan, np.inf])
def test_a_report_never_holds_what_is_not_a_number(hostile):
    result = report(Problem(np.eye(2), [1.0, 1.0]), np.array([hostile, 0.0]), 1, Options(), Status.CONFLICTING)
    assert result.lam.tolist() == [0.0, 0.0]
    assert result.status is Status.STOPPED
    assert result.natural == 1.0


def test_tolerances_are_measured_by_the_largest_b():
    assert size_of(Problem(np.eye(2), [-5.0, 1.0])) == 5.0
    assert size_of(Problem(np.eye(2), [0.0, 0.0])) == 1.0
    assert size_of(Problem(np.zeros((0, 0)), [])) == 1.0


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 10.0, 1e4, 1e9, np.inf])
def test_what_falls_unheld_has_the_residual_of_its_fall_at_any_coefficient(mu):
    """No multiplier, and the contact is approached at 1: by itself the row would stop that. Of the nearest point of a
    cone as wide as friction is at most 1, half is left of it.
    """
    problem = Problem(np.eye(3), [-1.0, 0.3, -0.2], frictions=[Friction(0, (1, 2), mu)])
    assert 0.5 <= np.abs(natural_map(problem, np.zeros(3))).max() <= 1.0
    resting = natural_map(problem, np.array([1.0, -0.3, 0.2]))
    assert np.abs(resting).max() == pytest.approx(0.0, abs=1e-15) or mu < 0.4
