"""The generators of random problems keep what they promise: their answers obey every law."""

import numpy as np
import pytest

from poise.solve.residuals import natural_map, size_of, violation
from solve.problems import FAMILIES, draw


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_obey_the_laws(family):
    for seed in range(50):
        known = draw(family, seed)
        assert known.problem.residual(known.lam) == pytest.approx(known.w, abs=1e-12 * size_of(known.problem))
        if known.solvable:
            bound = 1e-13 * max(size_of(known.problem), np.abs(known.problem.diagonal).max(initial=0.0))
            assert np.abs(natural_map(known.problem, known.lam, known.w)).max(initial=0.0) <= 10 * bound
            assert violation(known.problem, known.lam) <= 1e-12 * max(1.0, np.abs(known.lam).max(initial=0.0))
        elif family == "infeasible":
            null = np.linalg.svd(known.problem.A)[0][:, -1]
            null = null * np.sign(null[0])
            assert (null > 0.0).all()
            assert null @ known.problem.b < 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_problem(family):
    first, second = draw(family, 7), draw(family, 7)
    assert np.array_equal(first.lam, second.lam)
    assert np.array_equal(first.problem.b, second.problem.b)
