"""Wheels, skates and spins, against motions that are known to roll."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from constraints.cases import bodies
from constraints.checker import (
    WORLD,
    Moving,
    exp,
    row_accelerations,
    row_rates,
    rows_of,
    vec,
)
from poise.constraints.row_parts import nonholonomic_parts, point_parts

O, X, Y, Z = vec([0, 0, 0]), vec([1, 0, 0]), vec([0, 1, 0]), vec([0, 0, 1])
U = np.array([0.6, 0.0, 0.8])


def test_a_wheel_that_rolls_does_not_slip() -> None:
    """Upright about y on z = 0: v_x = r ω_y, at any acceleration v̇_x = r ω̇_y."""
    r = 0.3
    b = replace(WORLD, x=np.array([0, 0, r]), R=exp([0, 0.7, 0]), w=np.array([0, 4.0, 0]), v=np.array([4 * r, 0, 0]),
                w_dot=np.array([0, -2.0, 0]), v_dot=np.array([-2 * r, 0, 0]))  # fmt: skip
    rows = rows_of(nonholonomic_parts.wheel(WORLD.body, b.body, Z, O, Y, r))
    assert np.abs(row_rates(rows, WORLD, b)).max() <= 1e-15
    assert np.abs(row_accelerations(rows, WORLD, b)).max() <= 1e-15
    # too fast by 1 m/s; a sideways push; B is driven forwards by a positive multiplier
    assert np.allclose(row_rates(rows, WORLD, replace(b, v=np.add(b.v, [1, 0, 0]))), [1, 0])
    assert np.allclose(row_rates(rows, WORLD, replace(b, v=np.add(b.v, [0, 1, 0]))), [0, 1])


def test_a_leaning_wheel_touches_at_the_lowest_point_of_its_rim() -> None:
    """Slip against the velocity of the rim's point that is lowest over the plane, found by looking at all of them."""
    rng = np.random.default_rng(14)
    a, b = bodies(rng, "free")
    normal, centre, r = np.array([0.0, 0.6, 0.8]), np.array([0.1, 0.2, -0.3]), 0.4
    rows = rows_of(nonholonomic_parts.wheel(a.body, b.body, vec(normal), vec(centre), Y, r))
    turn = np.linspace(0, 2 * np.pi, 200001)
    rim = centre[:, None] + r * np.stack([np.cos(turn), np.zeros_like(turn), np.sin(turn)])
    arms = b.R @ rim
    arm = arms[:, np.argmin(a.R @ normal @ arms)]
    slide = b.v + np.cross(b.w, arm) - a.v - np.cross(a.w, b.x + arm - a.x)
    in_plane = slide - (a.R @ normal) * (a.R @ normal @ slide)
    assert np.isclose(np.linalg.norm(row_rates(rows, a, b)), np.linalg.norm(in_plane), rtol=1e-4)
    assert np.allclose(rows[:, 11:14] @ a.R @ normal, 0, rtol=0, atol=1e-15)


def test_a_coin_that_rolls_in_a_circle() -> None:
    """Leaning by θ, contact on a circle of radius c about the world's z at rate Ω: Ċ = 0 along the exact motion.

    Its spin about the axle is −Ω c/r, its centre keeps to c − r sin θ; its acceleration is centripetal. The material at
    the contact never slips, so J v = 0 and J v̇ + γ = 0. The acceleration of a point nailed to the rim is not 0.
    """
    r, c, lean, rate = 0.2, 1.5, 0.4, 2.0
    axle = np.array([np.cos(lean), 0.0, np.sin(lean)])  # at x = c, leaning towards the middle
    axle_spin = -rate * c / r
    # the frame that goes round with the contact turns the wheel too: ω = Ω z + spin · axle
    w = np.array([0, 0, rate]) + axle_spin * axle
    centre = np.array([c - r * np.sin(lean), 0.0, r * np.cos(lean)])
    v = np.cross([0, 0, rate], centre)
    w_dot = np.cross([0, 0, rate], w)
    v_dot = np.cross([0, 0, rate], v)
    b = Moving(centre, np.eye(3), w, v, w_dot, v_dot)
    rows = rows_of(nonholonomic_parts.wheel(WORLD.body, b.body, Z, O, vec(axle), r))
    assert np.abs(row_rates(rows, WORLD, b)).max() <= 1e-14
    assert np.abs(row_accelerations(rows, WORLD, b)).max() <= 1e-13
    nailed = rows_of(point_parts.offset(WORLD.body, b.body, O, vec([r * np.sin(lean), 0.0, -r * np.cos(lean)])))
    assert np.abs(row_rates(nailed, WORLD, b)).max() <= 1e-14
    assert np.abs(row_accelerations(nailed, WORLD, b)[:2]).max() > 1.0


def test_a_skate_glides_along_and_not_across() -> None:
    b = replace(WORLD, R=exp([0, 0, 0.5]), v=np.array([np.cos(0.5), np.sin(0.5), 0]) * 3)
    row = rows_of(nonholonomic_parts.skate(WORLD.body, b.body, Z, O, X))
    assert abs(row_rates(row, WORLD, b)[0]) <= 1e-15
    aside = replace(b, v=np.array([-np.sin(0.5), np.cos(0.5), 0]) * 3)
    assert np.isclose(row_rates(row, WORLD, aside)[0], 3.0)
    # gliding along a curve needs the centripetal acceleration v ω
    turning = replace(b, w=np.array([0, 0, 2.0]))
    row = rows_of(nonholonomic_parts.skate(WORLD.body, turning.body, Z, O, X))
    assert np.isclose(row_accelerations(row, WORLD, turning)[0], -6.0)


def test_spins_are_those_of_von() -> None:
    """§5.2: (0, −E), (0, E) and J̇v = 0; §5.3.1: (ω_A × w) · (ω_B − ω_A)."""
    a, b = bodies(np.random.default_rng(15), "free")
    rows = rows_of(nonholonomic_parts.spin(a.body, b.body))
    assert np.allclose(row_rates(rows, a, b), b.w - a.w)
    assert (rows[:, :2] == 0).all()
    row = rows_of(nonholonomic_parts.spin_about(a.body, b.body, vec(U)))
    assert np.isclose(row_rates(row, a, b)[0], a.R @ U @ (b.w - a.w))
    assert np.isclose(row[0, 1], np.cross(a.w, a.R @ U) @ (b.w - a.w))
