"""What is only looked at in demos."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import poise
from poise.motion.rotations import quat_exp

SEEN: dict[str, Any] = {"mask": 0, "group": 2}
"""Options of shapes that touch nothing."""


def thread(points: ArrayLike, radius: float = 0.006, color: tuple[float, ...] = (0.25, 0.45, 0.75, 1.0)) -> list[Any]:
    """Capsules from point to point, (n, 3); m."""
    shapes: list[Any] = []
    for a, b in pairwise(np.asarray(points, np.float64)):
        length = float(np.linalg.norm(b - a))
        axis = np.cross((0.0, 0.0, 1.0), b - a)
        across = float(np.linalg.norm(axis))
        angle = np.arctan2(across, float(b[2] - a[2]))
        turn = quat_exp(axis * (angle / across)) if across > 0.0 else np.array((1.0, 0.0, 0.0, 0.0))
        middle, pose = tuple((0.5 * (a + b)).tolist()), tuple(turn.tolist())
        shapes.append(poise.capsule(radius, length, position=middle, quat_wxyz=pose, color=color, **SEEN))
    return shapes
