"""Every part: J and γ against differences, balance of forces, the same numbers in every lane."""

from __future__ import annotations

import numpy as np
import pytest

from constraints.cases import CASES, Case, bodies
from constraints.checker import (
    LANES,
    check_balance,
    check_compiled,
    check_derivatives,
    check_invariance,
)
from kernel.runner import Mode

SEEDS = range(8)


@pytest.mark.parametrize("which", ["free", "world A", "world B"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_jacobian_and_gamma_are_derivatives(case: Case, which: str) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        a, b = bodies(rng, which)
        rows = case.rows_with(case.args(rng, a, b))
        assert rows(a, b).shape == (case.n_rows, 14)
        check_derivatives(rows, a, b, holonomic=case.holonomic)


@pytest.mark.parametrize("case", [case for case in CASES if case.relative], ids=str)
def test_forces_balance(case: Case) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        a, b = bodies(rng, "free")
        rows = case.rows_with(case.args(rng, a, b))
        check_balance(rows(a, b), a, b)
        check_invariance(rows, a, b, rng)


@pytest.mark.parametrize("mode", LANES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_lanes_agree_with_plain_python(case: Case, mode: Mode) -> None:
    rng = np.random.default_rng(7)
    samples = []
    for _ in range(19):  # the last vector is not full
        a, b = bodies(rng, "free")
        samples.append([a.body, b.body, *case.args(rng, a, b)])
    check_compiled(mode, case.part, samples)
