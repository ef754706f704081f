"""How far joints are beyond their limits, from coordinates alone."""

from __future__ import annotations

import numpy as np

from poise.model.model import Model
from poise.motion.rotations import quat_to_matrix


def direction(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """(..., 3) where the x axis comes to by the swing (0, y, z)."""
    size = np.hypot(y, z)
    share = np.sinc(size / np.pi)
    return np.stack((np.cos(size), z * share, -y * share), axis=-1)


def beyond_cone(d: np.ndarray, a: float, b: float) -> float:
    """Largest angle from one of (n, 3) directions to the nearest on an elliptic cone about x, 0 within; rad.

    The nearest one is looked for in ever finer steps.
    """
    sine = np.hypot(d[:, 1], d[:, 2])
    share = np.arctan2(sine, d[:, 0]) / np.maximum(sine, 1e-300)
    d = d[np.hypot(d[:, 2] * share / a, d[:, 1] * share / b) > 1.0]
    if len(d) == 0:
        return 0.0
    middle, wide, each = np.zeros((len(d), 1)), np.pi, np.arange(len(d))
    for _ in range(6):
        places = middle + np.linspace(-wide, wide, 41)
        # chords are exact where cosines of small angles are not
        chords = np.linalg.norm(direction(a * np.cos(places), b * np.sin(places)) - d[:, None], axis=-1)
        best = np.argmin(chords, axis=1)
        middle, wide = places[each, best, None], wide / 10
    return float(2.0 * np.arcsin(chords[each, best].max() / 2.0))


def beyond_ball(model: Model, joint: int, q: np.ndarray) -> float:
    """How far a ball is beyond its cone or its twist in any of (n, nq) states, from R C⁻¹ in its frame; rad."""
    frame, start = model.joint_frame[joint].reshape(3, 3), int(model.joint_q_start[joint])
    quats = q[:, start : start + 4] / np.linalg.norm(q[:, start : start + 4], axis=1)[:, None]
    Q = frame.T @ quat_to_matrix(quats) @ quat_to_matrix(model.joint_limit_centre[joint]).T @ frame
    low, high = model.joint_twist[joint]
    twist = np.arctan2(Q[:, 2, 1] - Q[:, 1, 2], Q[:, 1, 1] + Q[:, 2, 2])
    twist += 2 * np.pi * np.rint((0.5 * (low + high) - twist) / (2 * np.pi))
    return max(
        beyond_cone(Q[:, :, 0], *model.joint_cone[joint]), float((low - twist).max()), float((twist - high).max())
    )


def beyond_limits(model: Model, q: np.ndarray) -> float:
    """How far any joint is beyond its limits in any of (n, nq) states, balls among them; degrees, 0 within."""
    coordinate = np.zeros(model.nv, np.intp)
    coordinate[model.primitive_v_start] = model.primitive_q_start
    limited = np.flatnonzero(np.isfinite(model.dof_limits).any(axis=1))
    low, high = model.dof_limits[limited].T
    single = q[:, coordinate[limited]]
    balls = [joint for joint, kind in enumerate(model.joint_kinds) if kind == "ball"]
    beyond = [float((low - single).max()), float((single - high).max()), *(beyond_ball(model, k, q) for k in balls)]
    return float(np.degrees(max(0.0, *beyond)))
