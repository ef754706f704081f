"""Legs bend where soles would be below the floor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from poise.motion.legs import _angles, _Leg
from poise.motion.rotations import quat_exp, rotate

#: thigh, shank and foot, which is flat on the ground, of a leg stretched downwards, in its plane
THIGH, SHANK = np.array([0.0, 0.0, -0.42]), np.array([0.0, 0.0, -0.4])
SOLE = np.array([[-0.06, 0.0, -0.08], [0.18, 0.0, -0.08]])
AXIS = np.array([0.0, 1.0, 0.0])


def leg(sunk: np.ndarray, hip: float = 0.0, knee: float = 0.0, ankle: float = 0.0, most: float = 0.6):
    """Joints, sole, axis and room of a leg whose lowest point is below the floor by `sunk`; its knee bends one way."""
    turns = [quat_exp(angle * AXIS) for angle in np.cumsum([hip, knee, ankle])]
    knee_at = rotate(turns[0], THIGH)
    ankle_at = knee_at + rotate(turns[1], SHANK)
    sole = np.array([ankle_at + rotate(turns[2], point) for point in SOLE])
    height = -sunk - sole[:, 2].min()
    up = np.multiply.outer(height, [0.0, 0.0, 1.0])
    room = np.tile(np.array([[-most, most], [0.0, most], [-most, most]])[..., None], (1, 1, len(sunk)))
    joints = [up, up + knee_at, up + ankle_at]
    return joints, sole[:, None] + up, np.tile(AXIS, (len(sunk), 1)), room


@pytest.mark.parametrize("lean", [-0.3, 0.0, 0.2])
def test_a_stretched_leg_bends(lean: float) -> None:
    """Where a stretched knee bends, its leg keeps its length in the first order: it must be bent all the same."""
    sunk = np.linspace(2e-3, 0.034, 17)
    case = leg(sunk, hip=lean, ankle=-lean)
    angles = _angles(*case)
    low = -_Leg(*case)._off(angles)[0][:-1].max(axis=0)
    assert (-low < 2e-3).all()
    # the deeper it is the more it bends
    assert (np.diff(angles[1]) > -1e-4).all()


def test_a_leg_above_the_floor_by_nothing_stays() -> None:
    angles = _angles(*leg(np.full(3, 1e-9), hip=0.2, knee=0.4, ankle=-0.6))
    assert np.abs(angles).max() < 1e-6


def test_no_other_search_finds_better() -> None:
    """Beside a bounded quasi-Newton method from six starts: random legs, those of other lengths and short of room."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        hip, knee, ankle = rng.uniform([-0.8, 0.0, -0.5], [0.8, 1.2, 0.5])
        most = float(rng.choice([0.1, 0.3, 0.6]))
        case = leg(rng.uniform(1e-3, 0.05, 1), hip, knee * rng.integers(2), ankle, most)
        part = _Leg(*case)

        def cost(angles: np.ndarray, part: _Leg = part) -> float:
            return float(part._cost(part._off(angles[:, None])[0], angles[:, None])[0])

        room = case[3][..., 0]
        starts = [np.zeros(3), *rng.uniform(room[:, 0], room[:, 1], (5, 3))]
        best = min(minimize(cost, start, method="L-BFGS-B", bounds=room).fun for start in starts)
        assert cost(_angles(*case)[:, 0]) < 1.02 * best + 1e-8
