"""Pivoting: known answers of random problems, all combinations tried one by one, closed forms, hostile input."""

import itertools
import threading

import numpy as np
import pytest
from scipy.optimize import linprog

from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.solve.dantzig import Dantzig, Slides, pieces_of, pivot_rows
from poise.solve.dantzig_tableau import TABLEAU, sweep
from poise.solve.laws import UPRIGHT, Law, bounded, dead_zone, stiffening
from poise.solve.problem import Ball, Friction, Operator, Options, Problem, Status
from poise.solve.residuals import natural_map, size_of, violation
from poise.solve.solver_registry import UnsupportedForm
from solve.problems import BOUNDS, EQUALITIES, draw, draw_any_size, matrix

SOLVABLE = [*EQUALITIES, *BOUNDS, "laws", "laws_and_bounds", "pyramid"]
UNIQUE_W = [family for family in SOLVABLE if family != "pyramid"]


def solve(problem, **options):
    return Dantzig().solve(problem, Options(**options))


def check_honest(problem, result):
    """What every answer must be, good or bad: finite, within its bounds, and no better than it says."""
    assert np.isfinite(result.lam).all()
    assert violation(problem, result.lam) <= 1e-12 * max(1.0, np.abs(result.lam).max(initial=0.0))
    natural = np.abs(natural_map(problem, result.lam)).max(initial=0.0)
    assert result.natural == natural
    if result.ok:
        assert natural <= 1e-9 * size_of(problem)


def check_known(family, seed, draw=draw):
    known = draw(family, seed)
    result = solve(known.problem)
    assert result.ok, (family, seed, result.status, result.natural)
    check_honest(known.problem, result)
    assert result.natural <= 1e-12 * size_of(known.problem)
    scale = np.sqrt(np.where(known.problem.diagonal > 0.0, known.problem.diagonal, 1.0))
    if known.unique:
        size = np.abs(known.lam * scale).max(initial=1e-300)
        assert result.lam * scale == pytest.approx(known.lam * scale, rel=0, abs=1e-10 * size)
    if family in UNIQUE_W:  # of a semi-definite A all answers have one w
        size = np.abs(np.append(known.problem.b / scale, known.lam * scale)).max(initial=0.0)
        assert result.w / scale == pytest.approx(known.w / scale, rel=0, abs=1e-10 * size)


# ---- random problems with known answers


@pytest.mark.parametrize("family", SOLVABLE)
def test_known_answers(family):
    for seed in range(150):
        check_known(family, seed)


@pytest.mark.slow
@pytest.mark.parametrize("family", SOLVABLE)
def test_known_answers_soak(family):
    for seed in range(2000):
        check_known(family, seed, draw_any_size)


@pytest.mark.parametrize("family", ["conflicting", "infeasible"])
def test_contradictions_are_told(family):
    for seed in range(150):
        known = draw(family, seed)
        result = solve(known.problem)
        assert result.status is Status.CONFLICTING
        check_honest(known.problem, result)
        assert np.abs(result.lam).max() < 1e6
        if family == "conflicting":
            assert result.lam == pytest.approx(known.lam, abs=1e-8 * np.abs(known.lam).max())


def test_large_problems():
    rng = np.random.default_rng(5)
    m = 150
    A = matrix(rng, m)
    lo = np.where(rng.random(m) < 0.3, -np.inf, 0.0)
    active = rng.random(m) < 0.6
    lam = np.where(lo < 0.0, rng.normal(size=m), np.where(active, rng.exponential(size=m), 0.0))
    w = np.where((lo < 0.0) | active, 0.0, rng.exponential(size=m))
    result = solve(Problem(A, w - A @ lam, lo=lo))
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx(lam, abs=1e-10)


# ---- badly conditioned problems: each has an answer


def nearly_duplicate(rng):
    """More rows than degrees of freedom, half of them all but copies of others, with all kinds of bounds."""
    m = int(rng.integers(3, 30))
    J = rng.normal(size=(m, max(2, m // 3)))
    for _ in range(m // 2):
        J[rng.integers(m)] = J[rng.integers(m)] + 10.0 ** rng.uniform(-12.0, -3.0) * rng.normal(size=J.shape[1])
    return with_bounds(rng, J @ J.T)


def with_bounds(rng, A):
    """Rows at a bound, between bounds, without bounds; b such that one answer is of size 1."""
    m = len(A)
    lo, hi = np.where(rng.random((2, m)) < 0.4, np.inf, 1.0) * [[-1.0], [1.0]]
    lam = rng.choice([-1.0, 0.3, 1.0], m)
    push = rng.exponential(size=m)
    w = np.where((lam == 1.0) & (hi == 1.0), -push, np.where((lam == -1.0) & (lo == -1.0), push, 0.0))
    return Problem(A, w - A @ lam, lo, hi)


def scaled_duplicates(rng):
    p = nearly_duplicate(rng)
    units = 10.0 ** rng.uniform(-8.0, 8.0, p.size)
    return Problem(p.A * np.outer(units, units), p.b * units, p.lo / units, p.hi / units)


def hilbert(rng):
    m = int(rng.integers(3, 14))
    return with_bounds(rng, 1.0 / (np.arange(m)[:, None] + np.arange(m) + 1.0))


def integers(rng):
    """Small whole numbers: rows reach their corners together."""
    m = int(rng.integers(4, 40))
    J = rng.integers(-1, 2, (m, max(2, m // 3))).astype(float)
    lam = rng.integers(0, 2, m).astype(float)
    w = np.where(lam > 0.0, 0.0, rng.integers(0, 2, m))
    return Problem(J @ J.T, w - J @ J.T @ lam, np.zeros(m), np.where(rng.random(m) < 0.3, 1.0, np.inf))


HARD = {f.__name__: f for f in (nearly_duplicate, scaled_duplicates, hilbert, integers)}


def check_hard(family, seeds):
    for seed in seeds:
        problem = HARD[family](np.random.default_rng([99, seed]))
        result = solve(problem)
        assert result.ok, (family, seed, result.status, result.natural)
        assert np.abs(natural_map(problem, result.lam)).max() <= 1e-9 * size_of(problem)


@pytest.mark.parametrize("family", HARD)
def test_badly_conditioned(family):
    check_hard(family, range(100))


def test_rounding_that_leads_pivots_astray():
    """With the rounding of AVX-512 one of these goes round and round, the other leaves 5e-12 in one of 175 rows."""
    check_hard("scaled_duplicates", [304])
    check_known("redundant", 780, draw_any_size)


@pytest.mark.slow
@pytest.mark.parametrize("family", HARD)
def test_badly_conditioned_soak(family):
    check_hard(family, range(100, 2100))


def crowded_pyramids(rng):
    """Up to sixteen contacts of few degrees of freedom, whatever they do: strong coupling, redundant rows."""
    contacts, n = int(rng.integers(1, 17)), int(rng.integers(3, 34))
    J = rng.normal(size=(3 * contacts, n))
    frictions = [Friction(3 * i, (3 * i + 1, 3 * i + 2), float(rng.uniform(0.0, 1.2)), False) for i in range(contacts)]
    return Problem(J @ J.T, J @ rng.normal(size=n), frictions=frictions)


def failures(seeds):
    failed = []
    for seed in seeds:
        problem = crowded_pyramids(np.random.default_rng([99, seed]))
        result = solve(problem)
        assert np.isfinite(result.lam).all()
        assert result.ok == (np.abs(natural_map(problem, result.lam)).max() <= 1e-9 * size_of(problem))
        failed += [] if result.ok else [seed]
    return failed


def test_crowded_pyramids():
    assert failures(range(100)) == []


@pytest.mark.slow
def test_crowded_pyramids_soak():
    # friction is no convex problem: passes and Newton's method may both fail, which is then told
    assert len(failures(range(100, 2100))) <= 2


def test_newton_goes_on_where_passes_fail(monkeypatch):
    """Of crowded pyramids passes alone leave one or two in a hundred unsolved."""
    with monkeypatch.context() as patch:
        patch.setattr("poise.solve.dantzig._coupled", lambda problem, found, options: found)
        unsolved = failures(range(100, 400))
    assert unsolved
    for seed in unsolved:
        assert solve(crowded_pyramids(np.random.default_rng([99, seed]))).ok, seed


def test_passes_look_ahead():
    # bounds of sliding tangents are foreseen: plain passes would close in on them by and by
    passes = []
    for seed in range(40):
        problem = crowded_pyramids(np.random.default_rng([7, seed]))
        slides = [(row, f.normal, f.mu) for f in problem.frictions for row in f.tangents]
        tangent, normal, mu = (np.array(column) for column in zip(*slides, strict=True))
        lo = np.where(np.isin(np.arange(problem.size), normal), 0.0, -np.inf)
        found = pivot_rows(problem.A, problem.b, lo, np.full(problem.size, np.inf), Slides(tangent, normal, mu))
        passes.append(found.passes)
    assert np.median(passes) <= 8


# ---- against other ways


def by_enumeration(A, b, lo, hi):
    """Every row at its lower bound, free, or at its upper bound: the combination that obeys the law."""
    m = len(b)
    for sides in itertools.product((-1, 0, 1), repeat=m):
        free = [i for i in range(m) if sides[i] == 0]
        lam = np.array([0.0 if s == 0 else (lo[i] if s < 0 else hi[i]) for i, s in enumerate(sides)])
        if not np.isfinite(lam).all():
            continue
        lam[free] = np.linalg.solve(A[np.ix_(free, free)], -(b + A @ lam)[free])
        w = A @ lam + b
        inside = ((lam >= lo - 1e-12) & (lam <= hi + 1e-12)).all()
        if inside and all(s * w[i] <= 1e-12 for i, s in enumerate(sides)):
            return lam
    raise AssertionError("a positive definite problem has an answer")


def test_the_same_as_trying_all_combinations():
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        m = int(rng.integers(1, 6))
        A, b = matrix(rng, m), rng.normal(size=m)
        lo, hi = -rng.exponential(size=m), rng.exponential(size=m)
        lo[rng.random(m) < 0.3] = -np.inf
        hi[rng.random(m) < 0.3] = np.inf
        assert solve(Problem(A, b, lo, hi)).lam == pytest.approx(by_enumeration(A, b, lo, hi), abs=1e-12)


def room_for_others(problem, result):
    """How far a multiplier can move to another answer, by linear programs: A v = 0, rows with w ≠ 0 held."""
    A, held = problem.matrix(), np.abs(result.w) > 1e-8
    low = np.where(held, 0.0, np.clip(problem.lo - result.lam, -10.0, 0.0))
    high = np.where(held, 0.0, np.clip(problem.hi - result.lam, 0.0, 10.0))
    _, sizes, rows = np.linalg.svd(A)
    rows = rows[sizes > 1e-10 * max(sizes.max(), 1e-300)]
    most = 0.0
    for unit in (*np.eye(problem.size), *-np.eye(problem.size)):
        found = linprog(
            unit,
            A_eq=rows if len(rows) else None,
            b_eq=np.zeros(len(rows)) if len(rows) else None,
            bounds=np.column_stack((low, high)),
        )
        most = max(most, -found.fun if found.status == 0 else 0.0)
    return most


@pytest.mark.parametrize("family", ["redundant", "bounded_semidefinite", "degenerate", "nought"])
def test_singular_says_whether_there_are_other_answers(family):
    """SINGULAR is certain. Others that take several rows to leave their bounds at once may be missed: one in 80 is, of
    those with all kinds of bounds.
    """
    missed = 0
    for seed in range(30):
        problem = draw(family, seed).problem
        result = solve(problem)
        others = room_for_others(problem, result) > 1e-6
        assert result.ok
        assert others or result.status is Status.SOLVED, seed
        missed += others and result.status is Status.SOLVED
    assert missed <= (4 if family == "bounded_semidefinite" else 0)


def test_sweeps_keep_the_inverse():
    rng = np.random.default_rng(3)
    A, n = matrix(rng, 7), 7
    sizes = dict.fromkeys(TABLEAU.fields, n) | {"A": n * n, "T": n * n, "told": 6}
    block, run = TABLEAU.block(F64, **sizes), entry(sweep, TABLEAU, extra=("int64",))[F64]
    block.T[...] = A.ravel()
    S: list[int] = []
    for k in (2, 5, 0, 2, 6, 5, 1):  # in, in, in, out, in, out, in
        run(block.handle, k)
        S = [row for row in S if row != k] if k in S else [*S, k]
        N = [row for row in range(n) if row not in S]
        T, inverse = block.T.reshape(n, n), np.linalg.inv(A[np.ix_(S, S)])
        assert T[np.ix_(S, S)] == pytest.approx(-inverse, abs=1e-12)
        assert T[np.ix_(S, N)] == pytest.approx(inverse @ A[np.ix_(S, N)], abs=1e-12)
        assert T[np.ix_(N, N)] == pytest.approx(
            A[np.ix_(N, N)] - A[np.ix_(N, S)] @ inverse @ A[np.ix_(S, N)], abs=1e-12
        )


# ---- closed forms


def box_on_four_contacts(cfm, mass=8.0, size=(0.4, 0.6), fall=-0.04):
    """A box at rest but for a step of gravity: w is the velocity at its four corners (LIU)."""
    a, b = size[0] / 2, size[1] / 2
    corners = np.array([(a, b), (-a, b), (a, -b), (-a, -b)])
    J = np.column_stack((np.ones(4), corners[:, 1], -corners[:, 0]))
    inverse = np.diag([1 / mass, 12 / (mass * size[1] ** 2), 12 / (mass * size[0] ** 2)])
    return Problem(J @ inverse @ J.T, np.full(4, fall), lo=np.zeros(4), cfm=np.full(4, cfm)), corners, mass * -fall


def test_soft_contacts_share_a_weight_evenly():
    problem, _, weight = box_on_four_contacts(cfm=1e-6)
    result = solve(problem)
    assert result.status is Status.SOLVED
    assert result.lam == pytest.approx(np.full(4, weight / (4.0 + 8.0 * 1e-6)), rel=1e-9)


def test_hard_contacts_balance_a_weight_but_need_not_share_it():
    problem, corners, weight = box_on_four_contacts(cfm=0.0)
    result = solve(problem)
    assert result.status is Status.SINGULAR
    assert result.lam.sum() == pytest.approx(weight, rel=1e-12)
    assert corners.T @ result.lam == pytest.approx(np.zeros(2), abs=1e-12)
    assert (result.lam >= 0.0).all()
    assert np.ptp(result.lam) > 0.1 * weight  # whoever is asked first carries


def block_on_slope(mu, push):
    """A point mass of 1 on a plane: the normal row, then one tangent row."""
    return Problem(np.eye(2), [-2.0, push], frictions=[Friction(0, (1,), mu, cone=False)])


@pytest.mark.parametrize(("mu", "tangent", "slip"), [(0.8, -1.5, 0.0), (0.5, -1.0, 0.5), (0.0, 0.0, 1.5)])
def test_a_block_sticks_or_slides(mu, tangent, slip):
    result = solve(block_on_slope(mu, 1.5))
    assert result.ok
    assert result.lam == pytest.approx([2.0, tangent], abs=1e-12)
    assert result.w == pytest.approx([0.0, slip], abs=1e-12)


def test_friction_that_presses_on_its_own_contact():
    # sliding: λ_t = μ λ_n, w_n = λ_n + 0.5 λ_t − 1 = 0, so λ_n = 1 / (1 + 0.5 μ)
    problem = Problem([[1.0, 0.5], [0.5, 1.0]], [-1.0, -9.0], frictions=[Friction(0, (1,), 1.2, cone=False)])
    result = solve(problem)
    assert result.ok
    assert result.lam == pytest.approx([1.0 / 1.6, 1.2 / 1.6], rel=1e-11)


def test_friction_whose_passes_swing():
    # the same with μ times the coupling above 1: bounds set from the last normal force would swing for ever
    problem = Problem([[1.0, 0.9], [0.9, 1.0]], [-1.0, -9.0], frictions=[Friction(0, (1,), 2.0, cone=False)])
    result = solve(problem)
    assert result.ok
    assert result.lam == pytest.approx([1.0 / 2.8, 2.0 / 2.8], rel=1e-9)


def test_painleve_wedge_ends():
    # friction that frees its own contact faster than it closes: λ_n (1 − 0.9 · 2) = 1 has no answer λ_n ≥ 0
    problem = Problem([[1.0, -0.9], [-0.9, 1.0]], [-1.0, -9.0], frictions=[Friction(0, (1,), 2.0, cone=False)])
    result = solve(problem)
    check_honest(problem, result)


@pytest.mark.parametrize(
    ("b", "lam", "w"), [(0.3, 0.0, 0.3), (-0.3, 0.0, -0.3), (1.5, -0.5, 0.5), (9.0, -3.0, 3.0), (-1.0, 0.25, -0.5)]
)
def test_dead_zone_with_limits(b, lam, w):
    result = solve(Problem([[2.0]], [b], laws={0: dead_zone(-0.5, 0.5, -3.0, 3.0)}))
    assert result.status is Status.SOLVED
    assert (result.lam[0], result.w[0]) == pytest.approx((lam, w), abs=1e-14)


@pytest.mark.parametrize("b", [-30.0, -7.0, -0.5, 0.0, 0.5, 7.0, 30.0])
def test_a_spring_that_stiffens(b):
    law = stiffening([1.0, 3.0], [2.0, 0.5, 0.01])
    result = solve(Problem([[1.5]], [b], laws={0: law}))
    assert result.lam[0] == pytest.approx(law.solve(1.5, b), rel=1e-13)


def test_rows_move_over_vertices_while_others_are_driven():
    # row 0 settles on its first piece; row 1, driven later, pushes it over the kink at λ = 1
    laws = {0: stiffening([1.0], [1.0, 0.1])}
    A = np.array([[1.0, -0.9], [-0.9, 1.0]])
    result = solve(Problem(A, [-1.0, -3.0], lo=[-np.inf, 0.0], laws=laws))
    assert result.ok
    assert result.lam[0] > 1.0
    assert result.w[0] == pytest.approx(-1.0 - 0.1 * (result.lam[0] - 1.0), abs=1e-12)
    assert result.w[1] == pytest.approx(0.0, abs=1e-12)


def test_softness_is_a_slope():
    hard, soft = np.array([[2.0, 0.5], [0.5, 1.0]]), [0.3, 0.7]
    with_cfm = solve(Problem(hard, [-1.0, -2.0], lo=[0.0, 0.0], cfm=soft))
    laws = {row: Law(((0.0, 0.0),), UPRIGHT, -soft[row]) for row in range(2)}
    with_laws = solve(Problem(hard, [-1.0, -2.0], laws=laws))
    assert with_laws.lam == pytest.approx(with_cfm.lam, rel=1e-13)


def test_pieces_of_laws():
    assert pieces_of(bounded(-1.0, 2.0)) == (
        (-1.0, -1.0, np.inf, 0.0, -1.0, 0.0),
        (-1.0, 2.0, 0.0, 0.0, 0.0, 0.0),
        (2.0, 2.0, 0.0, -np.inf, -1.0, 0.0),
    )
    one_point = Law(((3.0, 1.0), (3.0, 1.0), (3.0, 0.0)), UPRIGHT, UPRIGHT)  # λ = 3 whatever w is
    assert pieces_of(one_point) == ((3.0, 3.0, np.inf, -np.inf, -1.0, 0.0),)


# ---- hostile input


def test_no_rows():
    found: list[Status] = []
    thread = threading.Thread(target=lambda: found.append(solve(Problem(np.zeros((0, 0)), [])).status))
    thread.start()  # a thread that has no memory of earlier problems
    thread.join()
    assert found == [Status.SOLVED]


def test_rows_that_nothing_can_move():
    stuck = solve(Problem(np.zeros((2, 2)), [-1.0, 1.0], lo=[0.0, 0.0]))
    assert stuck.status is Status.CONFLICTING
    assert np.isfinite(stuck.lam).all()
    limited = solve(Problem(np.zeros((2, 2)), [-1.0, 1.0], lo=[-2.0, -2.0], hi=[3.0, 3.0]))
    assert limited.status is Status.SOLVED
    assert limited.lam.tolist() == [3.0, -2.0]


def test_a_zero_row_among_others():
    A = np.zeros((3, 3))
    A[:2, :2] = [[2.0, 1.0], [1.0, 2.0]]
    result = solve(Problem(A, [-3.0, -3.0, 0.0], lo=[0.0, 0.0, 0.0]))
    assert result.status is Status.SINGULAR
    assert result.lam[:2] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_units_do_not_matter(scale):
    known = draw("bounded", 11)
    p = known.problem
    scaled = Problem(p.A * scale, p.b, p.lo / scale, p.hi / scale, p.cfm * scale)
    assert solve(scaled).lam * scale == pytest.approx(known.lam, abs=1e-11)
    pushed = Problem(p.A, p.b * scale, p.lo * scale, p.hi * scale, p.cfm)
    assert solve(pushed).lam / scale == pytest.approx(known.lam, abs=1e-11)


def test_duplicate_contacts_of_all_scales():
    for seed in range(100):
        rng = np.random.default_rng([23, seed])
        m = int(rng.integers(2, 6))
        copies = np.repeat(np.arange(m), rng.integers(1, 4, m))
        units = 10.0 ** rng.uniform(-4.0, 4.0, copies.size)
        A = matrix(rng, m)[np.ix_(copies, copies)] * np.outer(units, units)
        active = rng.random(m) < 0.5
        lam, w = np.where(active, 1.0, 0.0), np.where(active, 0.0, 1.0)
        lam = (lam / np.bincount(copies, minlength=m))[copies] / units
        problem = Problem(A, w[copies] * units - A @ lam, lo=np.zeros(copies.size))
        result = solve(problem)
        assert result.ok, seed
        assert result.w / units == pytest.approx(w[copies], abs=1e-9), seed


def test_conflicting_contacts_leave_the_others_alone():
    # two rows pull one coordinate apart; the third has nothing to do with them
    A = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    result = solve(Problem(A, [-1.0, -1.0, -4.0], lo=[0.0, 0.0, 0.0]))
    assert result.status is Status.CONFLICTING
    assert result.lam[2] == pytest.approx(2.0)
    assert np.abs(result.lam).max() < 10.0


def test_equalities_beside_contradicting_contacts():
    A = np.ones((2, 2))
    result = solve(Problem(A, [1.0, -1.0], lo=[-np.inf, 0.0]))
    assert result.status is Status.CONFLICTING
    assert np.isfinite(result.lam).all()


def test_indefinite_matrices_end():
    for seed in range(200):
        rng = np.random.default_rng([31, seed])
        m = int(rng.integers(1, 9))
        A = rng.normal(size=(m, m))
        problem = Problem((A + A.T) / 2, rng.normal(size=m), lo=np.where(rng.random(m) < 0.5, 0.0, -np.inf))
        result = solve(problem)
        assert np.isfinite(result.lam).all()
        assert result.ok == (result.natural <= 1e-9 * size_of(problem))
        assert result.natural <= np.abs(natural_map(problem, np.zeros(m))).max()  # no worse than doing nothing
    # λ = (−11/3, 7/3) obeys, but pivoting meets a negative pivot: a ray proves no contradiction then
    saddle = solve(Problem([[1.0, 2.0], [2.0, 1.0]], [-1.0, 5.0], hi=[np.inf, 10.0]))
    assert saddle.status is Status.STOPPED
    free = solve(Problem([[1.0, 2.0], [2.0, 1.0]], [-1.0, 5.0]))
    assert free.status is Status.SOLVED
    assert free.lam == pytest.approx([-11.0 / 3.0, 7.0 / 3.0])


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_numbers_near_the_end_of_the_range(size):
    for problem in (
        Problem([[size, 0.0], [0.0, 1.0]], [-1.0, -1.0], lo=[0.0, 0.0]),
        Problem([[1.0, 0.0], [0.0, 1.0]], [-size, 1.0], lo=[0.0, 0.0]),
    ):
        result = solve(problem)
        assert np.isfinite(result.lam).all()


def test_coinciding_vertices_do_not_cycle():
    # every row is pushed onto a corner of its law at the same moment
    for m in (2, 5, 20):
        A = np.eye(m) + np.ones((m, m))
        result = solve(Problem(A, -np.full(m, m + 1.0), np.zeros(m), np.ones(m)))
        assert result.ok
        assert result.lam == pytest.approx(np.ones(m))


def test_a_problem_on_which_pivoting_by_index_is_exponential():
    # Fathi's symmetric form of Murty's example: the product of a triangle of twos with its transpose
    m = 12
    triangle = np.tril(np.full((m, m), 2.0), -1) + np.eye(m)
    problem = Problem(triangle @ triangle.T, -np.ones(m), lo=np.zeros(m))
    result = solve(problem, iterations=200)
    assert result.status is Status.SOLVED


def test_out_of_steps_is_told():
    problem = draw("lcp", 4).problem
    for steps in (0, 1, 2):
        result = solve(problem, iterations=steps)
        check_honest(problem, result)
    m = 40
    rng = np.random.default_rng(2)
    large = Problem(matrix(rng, m), rng.normal(size=m), -np.full(m, 0.1), np.full(m, 0.1))
    result = solve(large, iterations=0)
    assert result.status is Status.STOPPED
    check_honest(large, result)


def test_warm_starts():
    known = draw("bounded", 8)
    cold, warm = solve(known.problem), solve(known.problem, warm=known.lam)
    assert warm.lam == pytest.approx(cold.lam, abs=1e-12)
    far = solve(known.problem, warm=np.full(known.lam.size, 1e3))
    assert far.lam == pytest.approx(cold.lam, abs=1e-10)
    with pytest.raises(ValueError, match=r"warm has shape \(1,\); it must be \d+ finite multipliers"):
        solve(known.problem, warm=np.zeros(1))
    with pytest.raises(ValueError, match="warm has NaN or infinity"):
        solve(known.problem, warm=np.full(known.lam.size, np.nan))


def test_warm_starts_save_steps():
    rng = np.random.default_rng(9)
    m = 40
    A, b = matrix(rng, m), rng.normal(size=m)
    cold = solve(Problem(A, b, lo=np.zeros(m)))
    next_step = Problem(A, b + 0.01 * rng.normal(size=m), lo=np.zeros(m))
    assert solve(next_step, warm=cold.lam).iterations < solve(next_step).iterations


def test_warm_starts_of_friction():
    fewer = 0
    for seed in range(30):
        problem = draw("pyramid", seed).problem
        cold = solve(problem)
        warm = solve(problem, warm=cold.lam)
        assert warm.ok
        assert warm.iterations <= cold.iterations + problem.size  # tangents at rest may have to be looked at anew
        assert warm.natural <= 1e-9 * size_of(problem)
        fewer += warm.iterations < cold.iterations
    assert fewer >= 15


@pytest.mark.parametrize(
    ("problem", "what"),
    [
        (Problem(np.eye(2), [1.0, 1.0], frictions=[Friction(0, (1,), 0.5)]), "cones"),
        (Problem(np.eye(2), [1.0, 1.0], balls=[Ball((0, 1), 1.0)]), "balls"),
        (Problem([[1.0, 0.5], [0.0, 1.0]], [1.0, 1.0]), "nonsymmetric"),
        (Problem(Operator(lambda x: x, np.ones(2)), [1.0, 1.0]), "operator"),
    ],
)
def test_forms_that_it_does_not_take(problem, what):
    with pytest.raises(UnsupportedForm, match=f"Dantzig does not take {what}"):
        solve(problem)


# ---- arrays


def test_the_same_bits_in_every_thread():
    known = [draw("laws_and_bounds", seed).problem for seed in range(40)]
    alone = [solve(problem).lam for problem in known]
    found: dict[int, list[np.ndarray]] = {}

    def work(number):
        found[number] = [solve(problem).lam for problem in known]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for lams in found.values() for a, b in zip(alone, lams, strict=True))


def test_arrays_without_a_problem():
    p = block_on_slope(0.5, 1.5)
    slides = Slides(np.array([1]), np.array([0]), np.array([0.5]))
    answer = pivot_rows(p.A, p.b, np.array([0.0, -np.inf]), np.array([np.inf, np.inf]), slides)
    assert answer.lam == pytest.approx([2.0, -1.0])
    assert (answer.conflicting, answer.singular, answer.stopped) == (False, False, False)
    assert p.A.tolist() == np.eye(2).tolist()  # what is given is left as it is
