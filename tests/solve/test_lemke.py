"""Lemke's method against the answers that the problems were made from, textbook cases, and problems without answer."""

import numpy as np
import pytest
from scipy.optimize import linprog

from poise.solve.laws import at_least, dead_zone, equality, stiffening
from poise.solve.lemke import Lemke
from poise.solve.pivots import End, lemke
from poise.solve.problem import Ball, Friction, Operator, Options, Problem, Status
from poise.solve.residuals import natural_map, size_of
from poise.solve.solver_registry import UnsupportedForm
from solve.problems import FAMILIES, draw, draw_any_size, matrix
from solve.test_dantzig import HARD
from solve.test_near_duplicates import near

TAKEN = [name for name in FAMILIES if name not in ("cone", "balls", "conflicting", "infeasible")]


def agree(family: str, seeds: range, draw=draw) -> None:
    """The natural residual is at rounding; w is the known one (but with friction), λ where it is the only one."""
    for seed in seeds:
        known = draw(family, seed)
        result = Lemke().solve(known.problem)
        size = np.abs(known.problem.b).max(initial=0.0) or 1.0
        assert result.ok, (family, seed, result)
        assert np.abs(natural_map(known.problem, result.lam)).max(initial=0.0) <= 1e-12 * size, (family, seed)
        assert result.violation == 0.0, (family, seed)
        if family != "pyramid":
            assert np.abs(result.w - known.w).max(initial=0.0) <= 1e-10 * size, (family, seed)
        if known.unique:
            assert result.status is Status.SOLVED
            units = np.sqrt(known.problem.diagonal)
            error = np.abs((result.lam - known.lam) * units).max(initial=0.0)
            expected = np.maximum(np.abs(known.lam * units), np.abs(known.problem.b) / units).max(initial=0.0)
            assert error <= 1e-11 * expected, (family, seed)


@pytest.mark.parametrize("family", TAKEN)
def test_answers(family):
    agree(family, range(100))


@pytest.mark.slow
@pytest.mark.parametrize("family", TAKEN)
def test_answers_soak(family):
    agree(family, range(2000), draw_any_size)


@pytest.mark.parametrize("family", ["conflicting", "infeasible"])
def test_problems_without_answer(family):
    for seed in range(100):
        known = draw(family, seed)
        result = Lemke().solve(known.problem)
        assert result.status is Status.CONFLICTING, (seed, result)
        assert np.isfinite(result.lam).all()
        assert result.violation == 0.0
        start = np.linalg.norm(natural_map(known.problem, np.zeros(known.lam.size)))
        assert np.linalg.norm(natural_map(known.problem, result.lam)) <= start * (1.0 + 1e-12)


@pytest.mark.parametrize("family", TAKEN)
def test_large(family):
    for seed in range(3):
        known = draw(family, seed, 200)
        result = Lemke().solve(known.problem)
        assert result.ok
        assert result.natural <= 1e-12 * size_of(known.problem)


# ---------------------------------------------------------------- pivoting


def test_both_rows_hold():
    """By hand: M = [[2, 1], [0, 1]], q = (−5, −3). Both rows hold: z₂ = 3, 2 z₁ = 5 − 3."""
    found = lemke(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([-5.0, -3.0]), np.ones(2), 100)
    assert found.end is End.ANSWER
    assert found.z == pytest.approx([1.0, 3.0])
    assert found.basic.tolist() == [True, True]


def test_nothing_to_pivot():
    found = lemke(-np.eye(3), np.ones(3), np.ones(3), 100)
    assert (found.end, found.pivots, found.z.tolist()) == (End.ANSWER, 0, [0.0, 0.0, 0.0])


def test_a_ray_with_a_proof():
    """Two faces squeeze: z₁ − z₂ ≥ 1 and z₂ − z₁ ≥ 1 cannot both be."""
    found = lemke(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0]), np.ones(2), 100)
    assert found.end is End.CONFLICT


def test_a_ray_without_a_proof():
    """z = (1, 2) is an answer (w = 0), but M is no matrix that Lemke's method promises to solve: one path misses it."""
    M, q = np.array([[1.0, -1.0], [3.0, -1.0]]), np.array([1.0, -1.0])
    assert lemke(M, q, np.ones(2), 100).end is End.RAY
    assert Lemke(tries=1).solve(Problem(M, q, lo=np.zeros(2))).status is Status.STOPPED
    assert Lemke().solve(Problem(M, q, lo=np.zeros(2))).lam == pytest.approx([1.0, 2.0])


def test_out_of_pivots():
    known = draw("lcp", 5)
    found = lemke(known.problem.A, np.asarray(known.problem.b), np.ones(known.lam.size), 1)
    assert (found.end, found.pivots) == (End.PIVOTS, 1)
    result = Lemke().solve(known.problem, Options(iterations=1))
    assert result.status is Status.STOPPED
    assert np.isfinite(result.lam).all()


def test_ties_at_every_step_end():
    """A cyclic matrix, and one in which all rows are alike: every ratio test is a tie."""
    M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    found = lemke(M, -np.ones(3), np.ones(3), 100)
    assert found.end is End.ANSWER
    assert found.z == pytest.approx(np.full(3, 1.0 / 3.0))
    everything = np.ones((12, 12)) + np.eye(12)
    found = lemke(everything, -np.ones(12), np.ones(12), 100)
    assert found.end is End.ANSWER
    assert found.z == pytest.approx(np.full(12, 1.0 / 13.0))


@pytest.mark.parametrize(
    ("M", "q", "cover"),
    [
        ([[2.0, 5.0, 3.0], [3.0, 2.0, 5.0], [5.0, 3.0, 2.0]], [-2.0, -1.0, -1.0], [2.0, 1.0, 1.0]),
        ([[4.0, 5.0, 3.0], [3.0, 4.0, 5.0], [5.0, 3.0, 4.0]], [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]),
        ([[5.0, 5.0, 4.0], [2.0, 5.0, 0.0], [3.0, 1.0, 1.0]], [-2.0, -2.0, -1.0], [2.0, 2.0, 1.0]),
    ],
    ids=["largest pivot first", "first row first", "first row at the start"],
)
def test_ties_decided_otherwise_would_go_round(M, q, cover):
    """Every ratio is a tie at the start. M is positive, so the path ends in an answer; other rules never leave it."""
    M, q = np.array(M), np.array(q)
    found = lemke(M, q, np.array(cover), 20)
    assert found.end is End.ANSWER
    assert np.minimum(found.z, M @ found.z + q) == pytest.approx(np.zeros(3), abs=1e-14)


def test_paths_over_nearly_dependent_rows_meet_no_basis_twice():
    """Contacts given twice, 1e-7 apart: pivots of 1e-14 wear an inverse that is only updated, and ties then go wrong.

    A path over n columns takes some 2 n pivots; one that goes round takes all that it may.
    """
    for seed in range(60):
        problem = near("pyramids", 1e-7, 0.0, seed)
        result = Lemke().solve(problem, Options(iterations=3000))
        assert result.ok, seed
        assert result.iterations <= 6 * 2 * 32, seed  # six paths; 20 columns and 8 caps, and as much again


def test_the_path_ends_where_it_may():
    """z₀ and another unknown become nought together: letting the other one go would lead into a ray."""
    M, q = np.array([[2.0, -2.0], [1.0, -1.0]]), np.array([-2.0, -1.0])
    found = lemke(M, q, np.ones(2), 20)
    assert found.end is End.ANSWER
    assert found.z.tolist() == [1.0, 0.0]


def test_a_ray_that_proves_nothing():
    """u = (1, 0) has u ≥ 0 and Mᵀu ≤ 0, but q · u = 0: no contradiction. (z₂ = 2 makes w₁ = −4; there is no answer.)"""
    found = lemke(np.array([[0.0, -2.0], [0.0, 1.0]]), np.array([0.0, -2.0]), np.ones(2), 20)
    assert found.end is End.RAY


def test_murtys_exponential_problem_still_ends():
    """Murty 1978: M lower triangular with twos, q = −2ⁿ…: Lemke's path may be long, but it ends."""
    n = 8
    M = np.tril(np.full((n, n), 2.0), -1) + np.eye(n)
    q = -np.cumsum(2.0 ** np.arange(n, 0, -1))
    result = Lemke().solve(Problem(M, q, lo=np.zeros(n)))
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx([-q[0]] + [0.0] * (n - 1))


# ---------------------------------------------------------------- laws, friction, singular systems


def test_block_on_a_slope_sticks_then_slides():
    """Unit mass, normal load 1: friction holds a pull of up to μ, then lets go; KOK eqs. 19-21."""
    for pull, held in [(0.3, 0.3), (-0.3, -0.3), (0.9, 0.5), (-0.9, -0.5)]:
        problem = Problem(np.eye(2), [-1.0, -pull], frictions=[Friction(0, (1,), 0.5, cone=False)])
        result = Lemke().solve(problem)
        assert result.status is Status.SOLVED
        assert result.lam == pytest.approx([1.0, held])


def test_an_open_contact_has_no_friction():
    result = Lemke().solve(Problem(np.eye(2), [1.0, -5.0], frictions=[Friction(0, (1,), 0.5, cone=False)]))
    assert result.lam.tolist() == [0.0, 0.0]


def box_contacts(pull: float) -> Problem:
    """A box of unit mass, inertia and half-widths, on four corners: 12 rows, rank 6. Gravity 10, pulled along x."""
    rows = []
    for x, y in [(1, 1), (1, -1), (-1, 1), (-1, -1)]:
        for axis in ([0, 0, 1], [1, 0, 0], [0, 1, 0]):
            rows.append([*axis, *np.cross([x, y, -1], axis)])
    J = np.array(rows, float)
    frictions = [Friction(3 * i, (3 * i + 1, 3 * i + 2), 0.5, cone=False) for i in range(4)]
    return Problem(J @ J.T, J @ [pull, 0, -10, 0, 0, 0], frictions=frictions)


@pytest.mark.parametrize(("pull", "along"), [(3.0, 0.0), (8.0, 3.0), (0.0, 0.0), (-8.0, -3.0)])
def test_a_box_on_four_corners(pull, along):
    """It sticks, or slides with what the pull has over μ m g; the normal forces carry the weight in any case."""
    problem = box_contacts(pull)
    result = Lemke().solve(problem)
    assert result.ok
    assert result.lam[0::3].sum() == pytest.approx(10.0)
    assert result.w[1::3] == pytest.approx(np.full(4, along), abs=1e-9)
    if along == 0.0:
        assert result.status is Status.SINGULAR


def test_a_law_is_the_same_as_its_bounds():
    for seed in range(30):
        known = draw("lcp", seed)
        rows = range(known.lam.size)
        as_laws = Problem(known.problem.A, known.problem.b, laws=dict.fromkeys(rows, at_least()))
        assert Lemke().solve(as_laws).lam == pytest.approx(known.lam, abs=1e-12)


def test_dead_zone_and_spring():
    """One row each, by hand: w = λ + 0.8 stops at 0.5; 0.1 (λ) + … = −c λ."""
    A = np.diag([1.0, 0.1])
    result = Lemke().solve(Problem(A, [0.8, -3.0], laws={0: dead_zone(-0.5, 0.5), 1: stiffening([10.0], [0.1, 0.01])}))
    # beyond 10 the spring gives w = −1 − 0.01 (λ − 10); 0.1 λ − 3 meets it at λ = 2.1/0.11
    assert result.lam == pytest.approx([-0.3, 2.1 / 0.11])


def test_equality_law_and_redundant_rows():
    result = Lemke().solve(Problem(np.ones((2, 2)), [-2.0, -2.0], laws={0: equality(), 1: equality()}))
    assert result.status is Status.SINGULAR
    assert result.lam == pytest.approx([1.0, 1.0])


def test_a_saddle_with_bounds():
    """Free rows without a diagonal: [[0, 1], [−1, 0]] as equality and contact: λ₂ = 1, λ₁ = −w₂ … = 3."""
    result = Lemke().solve(Problem([[0.0, 1.0], [-1.0, 1.0]], [-1.0, 2.0], lo=[-np.inf, 0.0]))
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx([3.0, 1.0])


def width_of_answers(problem: Problem, w: np.ndarray) -> float:
    """How far multipliers can move while w stays (linear programs): w is the same in all answers of a symmetric A."""
    lo, hi = np.array(problem.lo), np.array(problem.hi)
    moves = np.abs(w) < 1e-9
    right = w - np.asarray(problem.b)
    start = Lemke().solve(problem).lam
    bounds = [(a, b) if free else (x, x) for a, b, x, free in zip(lo, hi, start, moves, strict=True)]
    bounds = [tuple(None if np.isinf(x) else x for x in pair) for pair in bounds]
    keep = np.linalg.svd(problem.A)
    rank = int((keep[1] > 1e-12 * keep[1][0]).sum())
    rows = keep[0][:, :rank].T
    widest = 0.0
    for row in np.flatnonzero(moves):
        for sign in (1.0, -1.0):
            cost = np.zeros(problem.size)
            cost[row] = -sign
            answer = linprog(cost, A_eq=rows @ problem.A, b_eq=rows @ right, bounds=bounds)
            if answer.status == 3:
                return np.inf
            assert answer.status == 0, answer.message
            widest = max(widest, sign * (answer.x[row] - start[row]))
    return widest


@pytest.mark.parametrize("family", ["redundant", "bounded_semidefinite"])
def test_singular_says_that_there_are_other_answers(family):
    told = there = 0
    for seed in range(25):
        problem = draw(family, seed).problem
        result = Lemke().solve(problem)
        width = width_of_answers(problem, result.w)
        if result.status is Status.SINGULAR:
            assert width > 1e-6, seed
        told += result.status is Status.SINGULAR
        there += width > 1e-6
    assert told >= 0.9 * there > 0, "it may miss a few"


def test_a_contact_at_rest_could_carry_as_well():
    """All w are nought at λ = (0, 0, 3, −1); and so they are where both normals grow and the second tangent falls."""
    J = np.array([[-1.0, 0.0], [-1.0, -1.0], [0.0, -1.0], [-1.0, -1.0]])
    frictions = [Friction(0, (1,), 1.0, cone=False), Friction(2, (3,), 1.0, cone=False)]
    problem = Problem(J @ J.T, [1.0, -1.0, -2.0, -1.0], frictions=frictions)
    result = Lemke().solve(problem)
    assert result.status is Status.SINGULAR
    assert result.lam == pytest.approx([0.0, 0.0, 3.0, -1.0], abs=1e-14)
    assert natural_map(problem, np.array([0.1, 0.0, 3.1, -1.1])) == pytest.approx(np.zeros(4), abs=1e-14)


@pytest.mark.parametrize("family", ["nearly_duplicate", "scaled_duplicates"])
def test_newton_mends_what_rounding_spoils(family, monkeypatch):
    """Rows that are all but copies of others, and paths that all end early, as where small pivots have misled them."""
    monkeypatch.setattr("poise.solve.lemke.lemke", lambda M, q, cover, pivots: lemke(M, q, cover, min(pivots, 2)))
    spoilt = 0
    for seed in range(40):
        problem = HARD[family](np.random.default_rng([99, seed]))
        result = Lemke().solve(problem)
        assert result.ok, seed
        assert result.natural <= 1e-9 * size_of(problem)
        with monkeypatch.context() as patch:
            patch.setattr("poise.solve.lemke._mended", lambda problem, found, options: found)
            spoilt += Lemke().solve(problem).status is Status.STOPPED
    assert spoilt > 20


# ---------------------------------------------------------------- hostile


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_units(unit):
    known = draw("bounded", 4)
    problem = known.problem
    scaled = Problem(
        unit * problem.A, unit * np.asarray(problem.b), problem.lo, problem.hi, unit * np.asarray(problem.cfm)
    )
    result = Lemke().solve(scaled)
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx(known.lam, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (Problem(np.zeros((2, 2)), [-1.0, 1.0], lo=[0.0, 0.0]), Status.CONFLICTING),
        (Problem(np.zeros((2, 2)), [-1.0, 1.0], lo=[0.0, 0.0], hi=[2.0, 2.0]), Status.SOLVED),
        (Problem(np.zeros((2, 2)), [0.0, 0.0]), Status.SINGULAR),
        (Problem(np.zeros((2, 2)), [0.0, 1.0]), Status.CONFLICTING),
        (Problem(np.ones((2, 2)), [-1.0, -1.0], lo=[0.0, 0.0]), Status.SINGULAR),
        (Problem(np.ones((2, 2)), [-1.0, -2.0], lo=[0.0, -np.inf]), Status.SOLVED),
        (Problem(np.eye(2), [-5.0, 5.0], lo=[1.0, 1.0], hi=[1.0, 1.0]), Status.SOLVED),
        (Problem([[-1.0]], [-1.0], lo=[0.0]), Status.CONFLICTING),
        (Problem([[1e-300]], [-1e-300], lo=[0.0]), Status.SOLVED),
    ],
)
def test_odd_systems(problem, status):
    result = Lemke().solve(problem)
    assert np.isfinite(result.lam).all()
    assert result.status is status, result


def test_an_operator_is_formed():
    known = draw("lcp", 8)
    A = known.problem.A
    result = Lemke().solve(Problem(Operator(lambda x: A @ x, np.diag(A).copy()), known.problem.b, known.problem.lo))
    assert result.lam == pytest.approx(known.lam)


def test_the_same_bits_each_time():
    problem = draw("pyramid", 9).problem
    assert np.array_equal(Lemke().solve(problem).lam, Lemke().solve(problem).lam)


def test_an_indefinite_matrix_ends_honestly():
    rng = np.random.default_rng(10)
    for _ in range(50):
        m = 6
        half = rng.normal(size=(m, m))
        problem = Problem(half + half.T, rng.normal(size=m), lo=np.zeros(m), hi=rng.choice([1.0, np.inf], m))
        result = Lemke().solve(problem)
        assert np.isfinite(result.lam).all()
        assert result.ok == (result.natural <= 1e-9 * np.abs(problem.b).max())


def test_refuses_cones_and_balls():
    A = matrix(np.random.default_rng(0), 2)
    with pytest.raises(UnsupportedForm, match="Lemke does not take cones"):
        Lemke().solve(Problem(A, [1.0, 1.0], frictions=[Friction(0, (1,), 0.5)]))
    with pytest.raises(UnsupportedForm, match="Lemke does not take balls"):
        Lemke().solve(Problem(A, [1.0, 1.0], balls=[Ball((0, 1), 1.0)]))


def test_no_tries():
    with pytest.raises(ValueError, match="tries is 0"):
        Lemke(tries=0)
