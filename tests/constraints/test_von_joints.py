"""Joints of VON §4 from parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constraints.cases import bodies
from constraints.checker import (
    Moving,
    check_balance,
    exp,
    random_moving,
    random_rotation,
    rows_of,
    vec,
)
from poise.constraints.row_parts import nonholonomic_parts, orientation_parts, point_parts

PA, PB = np.array([0.3, -0.2, 0.5]), np.array([-0.1, 0.4, 0.2])
R0 = random_rotation(np.random.default_rng(11))
U = np.array([0.6, 0.0, 0.8])
"""Hinge axis, or first axis of the universal joint, in A; R₀ᵀU in B."""
W = np.array([-0.8, 0.0, 0.6])
"""Second axis of the universal joint, R₀ᵀW in B: perpendicular to U at rest."""


def _joined(rng: np.random.Generator, turn: Any, pa: Any, pb: Any, R0: np.ndarray) -> tuple[Moving, Moving]:
    """A anywhere, B such that their points coincide and R_AᵀR_BR₀ᵀ is a rotation by `turn`."""
    a, b = random_moving(rng), random_moving(rng)
    R = a.R @ exp(turn) @ R0
    return a, replace(b, R=R, x=a.x + a.R @ pa - R @ pb)


def _ball(a: Moving, b: Moving) -> np.ndarray:
    return rows_of(point_parts.point(a.body, b.body, vec(PA), vec(PB)))


def _universal(a: Moving, b: Moving) -> np.ndarray:
    return np.vstack([_ball(a, b), rows_of(orientation_parts.perpendicular(a.body, b.body, vec(U), vec(R0.T @ W)))])


def _hinge(a: Moving, b: Moving) -> np.ndarray:
    return np.vstack([_ball(a, b), rows_of(orientation_parts.parallel(a.body, b.body, vec(U), vec(R0.T @ U)))])


def _universal_turn(rng: np.random.Generator) -> np.ndarray:
    """About U, then about the axis W that went along with it."""
    return exp(U * rng.uniform(-3, 3)) @ exp(W * rng.uniform(-3, 3))


JOINTS = {
    "ball": (_ball, 3, lambda rng: exp(rng.uniform(-2, 2, 3))),
    "universal": (_universal, 4, _universal_turn),
    "hinge": (_hinge, 5, lambda rng: exp(U * rng.uniform(-9, 9))),
}


@pytest.mark.parametrize("name", JOINTS)
def test_joints_of_von_from_parts(name: str) -> None:
    """§4.1-4.3: so many rows, all independent; whatever the joint allows leaves φ = 0, and nothing else does."""
    joint, n_rows, turn = JOINTS[name]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a = random_moving(rng)
        R = a.R @ turn(rng) @ R0
        b = replace(random_moving(rng), R=R, x=a.x + a.R @ PA - R @ PB)
        rows = joint(a, b)
        assert len(rows) == n_rows
        assert np.abs(rows[:, 0]).max() <= 1e-14
        assert np.linalg.svd(rows[:, 2:], compute_uv=False)[-1] > 0.05
        check_balance(rows, a, b)
        # a velocity that the rows allow keeps φ at 0 to second order; it leaves 12 − n directions
        allowed = np.linalg.svd(rows[:, 2:])[2][n_rows:]
        assert len(allowed) == 12 - n_rows
        for twist in allowed:
            a2, b2 = (replace(m, w=t[:3], v=t[3:], w_dot=np.zeros(3), v_dot=np.zeros(3)) for m, t in
                      ((a, twist[:6]), (b, twist[6:])))  # fmt: skip
            assert np.abs(joint(a2.at(1e-4), b2.at(1e-4))[:, 0]).max() <= 1e-7


def test_hinge_rows_are_those_of_von() -> None:
    """§4.3 on the hinge: J = (0, ∓g), (0, ∓h) and φ ≈ g · (u_A × u_B), with the signs of ours; the axes are aligned."""
    rng = np.random.default_rng(0)
    a, b = _joined(rng, U * 0.7, PA, PB, R0)
    rows = _hinge(a, b)[3:]
    g, h = (a.R @ np.array(list(v.leaves())) for v in point_parts.perpendiculars(vec(U)))
    for row, axis in zip(rows, (g, h), strict=True):
        assert np.allclose(row[8:11], axis, rtol=0, atol=1e-14)
        assert np.allclose(row[2:5], -axis, rtol=0, atol=1e-14)
        # spin_about is the same row at velocity level; γ differs by what the misalignment's rate makes of it
        spin = rows_of(nonholonomic_parts.spin_about(a.body, b.body, vec(a.R.T @ axis)))[0]
        assert np.allclose(spin[2:], row[2:], rtol=0, atol=1e-14)
        assert np.isclose(spin[1], np.cross(a.w, axis) @ (b.w - a.w))
    tilted = replace(b, R=exp(g * 1e-4) @ b.R)
    assert np.allclose(_hinge(a, tilted)[3:, 0], [1e-4, 0], rtol=0, atol=1e-11)


def test_point_rows_are_those_of_von() -> None:
    """§3.1: J₁ = (−E, r₁×), J₂ = (E, −r₂×), c = ω₁×(ω₁×r₁) − ω₂×(ω₂×r₂), here angular first and γ = −c."""
    a, b = bodies(np.random.default_rng(1), "free")
    rows = rows_of(point_parts.point(a.body, b.body, vec(PA), vec(PB)))
    ra, rb = a.R @ PA, b.R @ PB

    def skew(r: np.ndarray) -> np.ndarray:
        return np.cross(np.eye(3), r)  # rows e_k × r: [r]×ᵀ

    assert np.allclose(rows[:, 2:], np.hstack([skew(ra), -np.eye(3), -skew(rb), np.eye(3)]), rtol=0, atol=1e-15)
    c = np.cross(a.w, np.cross(a.w, ra)) - np.cross(b.w, np.cross(b.w, rb))
    assert np.allclose(rows[:, 1], -c, rtol=1e-14)


def test_points_in_world_axes_leave_the_couple_that_their_error_makes() -> None:
    a, b = bodies(np.random.default_rng(2), "free")
    rows = rows_of(point_parts.point(a.body, b.body, vec(PA), vec(PB)))
    couple = rows[:, 2:5] + rows[:, 8:11] + np.cross(a.x, rows[:, 5:8]) + np.cross(b.x, rows[:, 11:14])
    assert np.allclose(couple, np.cross(rows[:, 0], np.eye(3)), rtol=0, atol=1e-14)
