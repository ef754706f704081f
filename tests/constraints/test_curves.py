"""Wires and rails, against motions along a helix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from constraints.cases import RADIUS, foot_of, helix
from constraints.checker import (
    WORLD,
    row_accelerations,
    row_rates,
    rows_of,
    vec,
)
from poise.constraints.row_parts import curve_parts
from poise.kernel.vec import dot

O = vec([0, 0, 0])


def test_a_bead_that_runs_along_a_wire_keeps_to_it() -> None:
    """c(s(t)) is a motion that all rows of the wire allow: φ, φ̇ and φ̈ are 0, and s is its travel."""
    s, rate, bend = 0.7, 1.3, -0.4
    c, c1, c2, c3, g = helix(s)
    b = replace(WORLD, x=c, v=c1 * rate, v_dot=c2 * rate**2 + c1 * bend)
    rows = rows_of(curve_parts.on_curve(WORLD.body, b.body, O, *map(vec, (c, c1, c2, g))))
    assert np.abs(rows[:, 0]).max() <= 1e-15
    assert np.abs(row_rates(rows, WORLD, b)).max() <= 1e-14
    assert np.abs(row_accelerations(rows, WORLD, b)).max() <= 1e-14
    row = rows_of(curve_parts.travel(WORLD.body, b.body, O, s, *map(vec, (c, c1, c2, c3))))
    assert np.isclose(row[0, 0], s)
    assert np.isclose(row_rates(row, WORLD, b)[0], rate)
    assert np.isclose(row_accelerations(row, WORLD, b)[0], bend)


def test_the_foot_is_the_nearest_point() -> None:
    b = replace(WORLD, x=np.array([1.0, 0.4, 0.3]), v=np.array([0.2, -0.1, 0.5]))
    s = foot_of(WORLD, b, O, 0.2)
    grid = np.linspace(-1, 1, 20001)
    nearest = grid[np.argmin([np.linalg.norm(helix(t)[0] - b.x) for t in grid])]
    assert abs(s - nearest) <= 1e-4
    _, rate = curve_parts.foot(WORLD.body, b.body, O, *map(vec, helix(s)[:3]))
    later = foot_of(WORLD, b.at(1e-6), O, s)
    assert np.isclose((later - s) / 1e-6, rate, rtol=1e-5)


def test_normals_are_carried_without_turning() -> None:
    s, ds = 0.3, 1e-3
    carried = curve_parts.carry_normal(vec(helix(s)[4]), vec(helix(s + ds)[1]))
    assert np.allclose(list(carried.leaves()), helix(s + ds)[4], rtol=0, atol=2 * RADIUS * ds**2)
    assert abs(dot(carried, vec(helix(s + ds)[1]))) <= 1e-15
