"""What parts of orientation measure, against closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constraints.checker import (
    WORLD,
    Moving,
    exp,
    mat,
    random_moving,
    random_rotation,
    row_rates,
    rows_of,
    vec,
)
from poise.constraints.row_parts import orientation_parts

X, Y = vec([1, 0, 0]), vec([0, 1, 0])
ONE = mat(np.eye(3))
PA, PB = np.array([0.3, -0.2, 0.5]), np.array([-0.1, 0.4, 0.2])
R0 = random_rotation(np.random.default_rng(11))
U = np.array([0.6, 0.0, 0.8])


def _joined(rng: np.random.Generator, turn: Any, pa: Any, pb: Any, R0: np.ndarray) -> tuple[Moving, Moving]:
    """A anywhere, B such that their points coincide and R_AᵀR_BR₀ᵀ is a rotation by `turn`."""
    a, b = random_moving(rng), random_moving(rng)
    R = a.R @ exp(turn) @ R0
    return a, replace(b, R=R, x=a.x + a.R @ pa - R @ pb)


def test_angle_counts_turns() -> None:
    """A hinge turned by five turns forth and seven back, a third of a turn at a time."""
    rng = np.random.default_rng(4)
    a = random_moving(rng)
    previous, right = 0.0, 0.0
    for step in [2.1] * 15 + [-2.1] * 36:
        right += step
        part = orientation_parts.angle(a.body, replace(a, R=a.R @ exp(U * right) @ R0).body, vec(U), mat(R0), previous)
        previous = float(part.phi)
        assert abs(previous - right) <= 1e-13 * 20
        assert np.allclose(rows_of(part)[0, 8:11], a.R @ U, rtol=0, atol=1e-14)


def test_rotation_vector_is_the_error_of_orientation() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        turn = rng.uniform(-1.7, 1.7, 3)
        a, b = _joined(rng, turn, PA, PB, R0)
        assert np.allclose(
            rows_of(orientation_parts.orientation(a.body, b.body, mat(R0)))[:, 0], turn, rtol=0, atol=1e-14
        )


def test_orientation_is_corrected_about_the_axis_of_von() -> None:
    """§5.2: turning B at −w z about the world's axis of the error removes all of it in unit time."""
    rng = np.random.default_rng(6)
    turn = np.array([0.5, -0.4, 0.9])
    a, b = _joined(rng, turn, PA, PB, R0)
    rows = rows_of(orientation_parts.orientation(a.body, b.body, mat(R0)))
    still = replace(a, w=np.zeros(3), v=np.zeros(3))
    turning = replace(b, w=-(a.R @ turn), v=np.zeros(3))
    assert np.allclose(row_rates(rows, still, turning), -turn, rtol=0, atol=1e-14)


def test_swing_and_twist_are_what_a_turn_was_made_of() -> None:
    """Q = swing about an axis across x, after a twist about x."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame = random_rotation(rng, 3.0)
        size, way, twist = rng.uniform(0, 3.1), rng.uniform(-np.pi, np.pi), rng.uniform(-3.1, 3.1)
        turn = exp(frame @ [0, size * np.cos(way), size * np.sin(way)]) @ exp(frame @ [twist, 0, 0])
        a = random_moving(rng)
        b = replace(random_moving(rng), R=a.R @ turn @ R0)
        swing = orientation_parts.swing(a.body, b.body, mat(frame), mat(R0))
        assert abs(swing.phi - size) <= 1e-13
        assert np.isclose(np.linalg.norm(rows_of(swing)[0, 8:11]), 1.0)
        angle = orientation_parts.angle(a.body, b.body, vec(frame[:, 0]), mat(R0), 0.0)
        assert abs(angle.phi - twist) <= 1e-12  # ε/cos(size/2)
        cone = orientation_parts.swing_cone(a.body, b.body, mat(frame), mat(R0), 0.8)
        assert abs(cone.phi - (0.64 - size**2) / 1.6) <= 1e-12


@pytest.mark.parametrize("way", np.linspace(-3, 3, 13).tolist())
def test_ellipse_has_its_own_half_axis_on_each_side(way: float) -> None:
    """φ = 0 on the ellipse, more inside, less outside; at the ends of its axes the slope is h/h_i."""
    halves = {"y": (0.9, 0.3), "z": (0.6, 1.4)}
    y, z = np.cos(way), np.sin(way)
    hy, hz = halves["y"][int(y < 0)], halves["z"][int(z < 0)]
    edge = 1.0 / np.hypot(y / hy, z / hz)
    for part, sign in ((0.0, 1), (0.5, 1), (0.99, 1), (1.0, 0), (1.01, -1), (1.8, -1)):
        b = replace(WORLD, R=exp(np.array([0, y, z]) * edge * part) @ exp([0.7, 0, 0]))
        row = orientation_parts.swing_ellipse(WORLD.body, b.body, ONE, ONE, 0.9, 0.3, 0.6, 1.4)
        assert abs(row.phi - 0.15 * (1 - part**2)) <= 1e-14
        assert sign == (0 if abs(row.phi) < 1e-14 else np.sign(row.phi))
        # turning on outwards, the way to the limit shrinks
        outwards = rows_of(row)[0, 8:11] @ [0, y, z]
        assert np.isclose(outwards, -0.3 * part / edge, rtol=1e-9, atol=1e-14)


def test_universal_error_is_the_angle_past_a_right_one() -> None:
    b = replace(WORLD, R=exp([0, 0, 0.01]))
    assert np.isclose(orientation_parts.perpendicular(WORLD.body, b.body, X, Y).phi, np.sin(0.01))
