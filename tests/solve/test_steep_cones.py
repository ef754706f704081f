"""Friction that holds whatever pulls: coefficients so large that contacts stick, infinity among them.

Problems are made from their answers: multipliers that push, with tangents of any size, and b that they take to w = 0.
"""

from __future__ import annotations

import numpy as np
import pytest

from poise.solve.cones import NEVER_SLIPS
from poise.solve.newton import newton, slopes
from poise.solve.problem import Friction, Options, Problem
from poise.solve.residuals import natural_map
from poise.solve.solver_registry import solver_class

CONTACTS = 4


def sticking(seed: int, mu: float, cone: bool) -> tuple[Problem, np.ndarray]:
    """Contacts with light couplings, and the multipliers at which all stick."""
    rng = np.random.default_rng(seed)
    n = 3 * CONTACTS
    J = np.eye(n) + 0.02 * rng.normal(size=(n, n))
    lam = rng.normal(size=n) * 2.0
    lam[::3] = rng.uniform(0.5, 1.0, CONTACTS)
    A = J @ J.T
    return Problem(A, -A @ lam, frictions=[Friction(k, (k + 1, k + 2), mu, cone) for k in range(0, n, 3)]), lam


@pytest.mark.parametrize("mu", [1e3, 1e5, 1e9, np.inf])
@pytest.mark.parametrize(("name", "cone"), [("pgs", True), ("pgs", False), ("dantzig", False), ("lemke", False)])
def test_solvers_find_the_forces_that_hold(name: str, cone: bool, mu: float) -> None:
    for seed in range(10):
        problem, lam = sticking(seed, mu, cone)
        found = solver_class(name)().solve(problem, Options(tolerance=1e-10))
        assert found.ok, seed
        assert found.lam == pytest.approx(lam, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("mu", [2.0, 1e4])
def test_slopes_of_steep_cones_are_those_of_the_natural_map(mu: float) -> None:
    """Against differences, on all pieces: open, sticking, sliding."""
    rng = np.random.default_rng(1)
    problem, _ = sticking(0, mu, True)
    for _ in range(20):
        lam = rng.normal(size=problem.size)
        lam[::3] = np.abs(lam[::3]) / mu
        step = 1e-6 * rng.normal(size=problem.size) / mu
        slope = slopes(problem, problem.matrix(), lam, np.diag(problem.A))
        change = natural_map(problem, lam + step) - natural_map(problem, lam - step)
        assert change == pytest.approx(2.0 * slope @ step, abs=1e-8)


def test_newton_holds_what_infinite_friction_holds() -> None:
    problem, lam = sticking(3, np.inf, True)
    assert problem.frictions[0].mu == NEVER_SLIPS
    found, steps = newton(problem, np.zeros(problem.size), 1e-10)
    assert found == pytest.approx(lam, abs=1e-8)
    assert len(steps) < 20
