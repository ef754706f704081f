"""The checker finds what is wrong: it is only worth as much as the mistakes that it does not let pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from constraints.checker import check_balance, check_derivatives, random_moving, rows_of, vec
from poise.constraints.row_parts.point_parts import Part, along, distance
from poise.kernel.spatial import Force
from poise.kernel.vec import cross, dot, zero3

ORIGIN = vec([0, 0, 0])


def _linear_motor_of_the_paper(a: Any, b: Any, u: Any) -> Part:
    """VON §5.3.2 as printed: J = (−w, 0), (w, 0), J̇v = (ω_A × w) · (v_B − v_A)."""
    n = a.R @ u
    none = zero3(n.x)
    return Part(dot(n, b.x - a.x), dot(cross(a.w, n), b.v - a.v), Force(none, -n), Force(none, n))


def _bodies() -> Any:
    rng = np.random.default_rng(3)
    return random_moving(rng), random_moving(rng)


def test_the_linear_motor_as_printed_is_wrong_and_ours_is_not() -> None:
    a, b = _bodies()
    u = vec([0.6, 0.0, 0.8])
    printed = rows_of(_linear_motor_of_the_paper(a.body, b.body, u))
    ours = rows_of(along(a.body, b.body, ORIGIN, ORIGIN, u))
    with pytest.raises(AssertionError, match="φ̇"):
        check_derivatives(lambda a, b: rows_of(_linear_motor_of_the_paper(a.body, b.body, u)), a, b)
    with pytest.raises(AssertionError, match="net couple"):
        check_balance(printed, a, b)
    # the term that is missing in print: (w × (x_B − x_A)) · ω_A
    missing = np.zeros(14)
    missing[2:5] = np.cross(a.R @ [0.6, 0.0, 0.8], b.x - a.x)
    assert np.allclose(ours[0, [0, *range(2, 14)]], (printed[0] + missing)[[0, *range(2, 14)]], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda p: Part(p.phi * 1.000001, p.gamma, p.a, p.b), "φ̇"),
        (lambda p: Part(p.phi, p.gamma * 1.00001, p.a, p.b), "φ̈"),
        (lambda p: Part(p.phi, p.gamma, p.a * 1.000001, p.b), "φ̇"),
        (lambda p: Part(p.phi, p.gamma, p.b, p.a), "φ̇"),
    ],
)
def test_small_mistakes_are_found(wrong: Any, said: str) -> None:
    a, b = _bodies()
    args = vec([0.1, 0.2, 0.3]), vec([-0.3, 0.1, 0.2])
    check_derivatives(lambda a, b: rows_of(distance(a.body, b.body, *args)), a, b)
    with pytest.raises(AssertionError, match=said):
        check_derivatives(lambda a, b: rows_of(wrong(distance(a.body, b.body, *args))), a, b)
