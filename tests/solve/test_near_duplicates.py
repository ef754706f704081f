"""Two rows that all but say the same: contacts a nanometre apart, a limit beside a motor, a loop closed twice.

With rows ε apart the smallest eigenvalue of A is about ε². What the rows ask may agree (a consistent problem, whose
answer of size 1 is known), or differ by much more than ε (then multipliers of 1/ε or 1/ε² would be needed, or none do).
"""

from collections import Counter

import numpy as np
import pytest

from poise.solve.pgs import PGS
from poise.solve.problem import Friction, Options, Problem, Status
from poise.solve.residuals import natural_map, size_of, violation
from poise.solve.solver_registry import SOLVERS, solver_class

GAPS = [0.0, 1e-16, 1e-14, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3]
FORMS = ["equalities", "contacts", "motors", "pyramids", "cones"]
OPTIONS = Options(iterations=3000)
SEEDS = 40
MISSES = {("PGS", "pyramids"): 2, ("PGS", "cones"): 2}
"""Of so many seeds: friction is not monotone, and sweeps with Newton's method miss one such problem in some thousands,
where copies are 1e-7 apart one in 700 or so; three of one set are then one chance in 1e5."""


def near(form: str, gap: float, clash: float, seed: int) -> Problem:
    """Rows of six coordinates, every one of them (every contact) given twice, the second time `gap` away.

    Without a clash b comes from an answer (λ, w); a clash moves what the copies ask for.
    """
    rng = np.random.default_rng([17, seed])
    width = 3 if form in ("pyramids", "cones") else 1
    once = rng.normal(size=(2 * width, 6))
    J = np.vstack([once, once + gap * rng.normal(size=once.shape)])
    m, lo, hi, frictions = len(J), None, None, ()
    A, lam, w = J @ J.T, rng.uniform(0.5, 1.0, len(J)), np.zeros(len(J))
    if form in ("contacts", "motors"):
        lo, hi = np.zeros(m), np.full(m, 2.0 if form == "motors" else np.inf)
        lam[1], w[1] = 0.0, 0.3
    elif width == 3:
        frictions = [Friction(k, (k + 1, k + 2), 0.7, form == "cones") for k in range(0, m, 3)]
        lam.reshape(-1, 3)[:, 1:] *= 0.3
    b = w - A @ lam
    b[m // 2 :] += clash * rng.normal(size=m // 2)
    return Problem(A, b, lo, hi, frictions=frictions)


def check(solver, problem: Problem) -> Status:
    """Honest, finite, within bounds, and no worse than doing nothing."""
    result = solver.solve(problem, OPTIONS)
    assert np.isfinite(result.lam).all()
    assert violation(problem, result.lam) <= 1e-12 * max(1.0, np.abs(result.lam).max())
    natural = np.abs(natural_map(problem, result.lam)).max()
    assert result.natural == pytest.approx(natural)
    assert result.ok == (natural <= 1e-9 * size_of(problem))
    assert natural <= np.abs(natural_map(problem, np.zeros(problem.size))).max()
    return result.status


def takers(problem: Problem) -> list:
    return [solver for name in SOLVERS for solver in [solver_class(name)()] if problem.forms() in type(solver).takes]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_that_agree_are_solved(form, gap):
    """By every solver: an answer of size 1 exists, and the tolerance is far above what rounding leaves."""
    missed = Counter[str]()
    for seed in range(SEEDS):
        problem = near(form, gap, 0.0, seed)
        solvers = takers(problem)
        assert len(solvers) >= (1 if form == "cones" else 3)
        for solver in solvers:
            name = type(solver).__name__
            missed[name] += check(solver, problem) not in (Status.SOLVED, Status.SINGULAR)
            assert missed[name] <= MISSES.get((name, form), 0), (name, seed)


def test_friction_given_twice_is_seldom_missed_by_sweeps():
    """One problem in 25 was, where Newton's method was not tried in time or gave up in valleys; one in thousands is."""
    solver, cases = PGS(), [(form, gap) for form in ("pyramids", "cones") for gap in GAPS]
    missed = [
        (form, gap, seed)
        for form, gap in cases
        for seed in range(60)
        if not solver.solve(near(form, gap, 0.0, seed), OPTIONS).ok
    ]
    assert len(missed) <= 6, missed  # of 960, where half a problem is expected and 38 were


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_that_clash_end_honestly(form, gap):
    for seed in range(10):
        problem = near(form, gap, 1.0, seed)
        for solver in takers(problem):
            check(solver, problem)


def test_copies_that_clash_by_all_means_are_told():
    """No gap, no bounds that let go: nothing can meet two rows that are one and ask for two things."""
    for seed in range(10):
        problem = near("equalities", 0.0, 1.0, seed)
        for solver in takers(problem):
            assert check(solver, problem) is Status.CONFLICTING, type(solver).__name__
