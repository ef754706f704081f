"""How often friction is solved where nothing is known of the answer: contacts of few degrees of freedom, crowded.

Lemke's method must find an answer of every pyramid (its matrix is copositive, see `lemke_form`). Passes, sweeps and
Newton's method need not, friction being no convex problem: their rates are told (run with -s), and held.
"""

import numpy as np
import pytest

from poise.solve.dantzig import Dantzig
from poise.solve.lemke import Lemke
from poise.solve.pgs import PGS
from poise.solve.problem import Friction, Options, Problem
from poise.solve.residuals import natural_map, size_of
from solve.test_dantzig import crowded_pyramids

SOLVERS = {"Lemke": Lemke(), "Dantzig": Dantzig(), "PGS": PGS(), "accelerated PGS": PGS(memory=5, check_every=1)}
CASES = [*((name, "pyramids") for name in SOLVERS), ("PGS", "cones"), ("accelerated PGS", "cones")]
RATE = 0.998


def crowded(seed: int, form: str) -> Problem:
    problem = crowded_pyramids(np.random.default_rng([98, seed]))
    if form == "cones":
        frictions = [Friction(f.normal, f.tangents, f.mu) for f in problem.frictions]
        return Problem(problem.A, problem.b, frictions=frictions)
    return problem


def missed(name: str, form: str, seeds: range) -> list[int]:
    """Seeds of problems that were not solved; each says so."""
    out = []
    for seed in seeds:
        problem = crowded(seed, form)
        result = SOLVERS[name].solve(problem, Options(iterations=20_000))
        assert np.isfinite(result.lam).all()
        assert result.ok == (np.abs(natural_map(problem, result.lam)).max() <= 1e-9 * size_of(problem))
        out += [] if result.ok else [seed]
    return out


@pytest.mark.parametrize(("name", "form"), CASES)
def test_some(name, form):
    assert missed(name, form, range(60)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), CASES)
def test_two_thousand(name, form, record_property):
    rate = 1.0 - len(missed(name, form, range(2000))) / 2000
    record_property("rate", rate)
    print(f"{name} solves {rate:.2%} of crowded {form}")
    assert rate == 1.0 if name == "Lemke" else rate >= RATE
