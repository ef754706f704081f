"""Every part: J and γ against differences, balance of forces, the same numbers in every lane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constraints.cases import CASES, Case, bodies
from constraints.checker import (
    LANES,
    check_balance,
    check_compiled,
    check_derivatives,
    check_invariance,
    samples_of,
    vec,
)
from kernel.runner import FLOATS, Mode, run
from poise.constraints.row_parts import curve_parts, nonholonomic_parts, point_parts

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


@pytest.mark.parametrize("case", CASES, ids=str)
def test_float32_loses_nothing_far_from_the_origin(case: Case) -> None:
    """8 km away rows are the same to the last bit: whatever enters is relative to a body."""
    rng = np.random.default_rng(9)
    grid = 2.0**-10  # what float32 tells apart at 8192
    samples = []
    for _ in range(16):
        a, b = (replace(m, x=np.rint(m.x / grid) * grid) for m in bodies(rng, "free"))
        samples.append((a, b, case.args(rng, a, b)))
    near, far = (
        run(
            LANES[1],
            case.part,
            *samples_of([[*(replace(m, x=m.x + away).body for m in (a, b)), *args] for a, b, args in samples]),
        )
        for away in (0.0, 8192.0)
    )
    assert np.asarray(near).tobytes() == np.asarray(far).tobytes()


def _helpers(a: Any, b: Any, p: Any, u: Any, k: Any) -> Any:
    """What combines parts, and what callers of parts use beside them."""
    first, second = point_parts.along(a, b, p, p, u), point_parts.distance(a, point_parts.world(k), p, p)
    step, rate = curve_parts.foot(a, b, p, p, u, p)
    return (
        point_parts.gear(first, second, k, 0.5),
        point_parts.at_least(first, k) + point_parts.at_most(first, k) * 0.5,
        point_parts.row_velocity(first, a, b),
        point_parts.seen_from(a, b, p),
        *point_parts.perpendiculars(u),
        step,
        rate,
        curve_parts.carry_normal(p, u),
        nonholonomic_parts.slip(a, b, p, u, u, p),
    )


@pytest.mark.parametrize("mode", LANES, ids=str)
def test_helpers_agree_in_lanes(mode: Mode) -> None:
    rng = np.random.default_rng(8)
    samples = [
        [*(m.body for m in bodies(rng, "free")), vec(rng.normal(size=3)), vec(rng.normal(size=3)), rng.uniform(1, 2)]
        for _ in range(19)
    ]
    columns = samples_of(samples)
    for column in columns[:-1]:
        column.array[...] = mode.round(column.array)
    columns[-1] = mode.round(columns[-1])
    for found, right in zip(run(mode, _helpers, *columns), run(FLOATS, _helpers, *columns), strict=True):
        assert np.abs(found - right).max() <= 64 * mode.eps * max(1.0, np.abs(right).max())
