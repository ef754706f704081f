"""Goals for inverse kinematics: targets of a body, the centre of mass or the whole pose.

Each has a priority (0 is the highest; a lower one never disturbs a higher one) and a weight among goals of the same
priority. The mean length of the character's bones converts angles to distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.errors import SceneError, did_you_mean
from poise.motion.motion_checks import unit_quats, vectors
from poise.motion.rotations import quat_to_matrix, unit

Floats = NDArray[np.float64]
Body = str | int

HIGHEST = 99
"""Last priority; the first is 0."""


@dataclass(frozen=True, eq=False)
class Goal:
    """A goal, made by the functions of this module."""

    kind: str
    body: Body | None
    points: Floats
    """(k, 3) in the body's frame; m."""
    wanted: Floats
    """Position (3,) or heights (k,) in m, rotation (3, 3), direction (3,), or coordinates (nq,)."""
    rows: Floats
    """(n, 3) world axes along which positions count."""
    priority: int
    weight: float
    at: bool = False
    """Whether `wanted` of an aim is a point to look at, not a direction."""


def position(
    body: Body,
    goal: ArrayLike,
    *,
    point: ArrayLike = (0.0, 0.0, 0.0),
    axes: str = "xyz",
    priority: int = 0,
    weight: float = 1.0,
) -> Goal:
    """Move a point of a body (m, in its own frame) to a point of the world (m), along the given world `axes`.

    >>> position("hand_r", (0.4, -0.2, 1.1)).kind
    'position'
    """
    return Goal(
        "position",
        _body(body),
        vectors("point", point, (3,))[None],
        vectors("goal", goal, (3,)),
        _axes(axes),
        *_rank(priority, weight),
    )


def orientation(body: Body, quat_wxyz: ArrayLike, *, priority: int = 0, weight: float = 1.0) -> Goal:
    """Rotate a body to an orientation in the world.

    >>> orientation("head", (1, 0, 0, 0)).wanted.shape
    (3, 3)
    """
    wanted = quat_to_matrix(unit_quats("quat_wxyz", quat_wxyz, (4,)))
    return Goal("orientation", _body(body), np.zeros((1, 3)), wanted, np.eye(3), *_rank(priority, weight))


def aim(
    body: Body,
    axis: ArrayLike,
    *,
    direction: ArrayLike | None = None,
    at: ArrayLike | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
    priority: int = 0,
    weight: float = 1.0,
) -> Goal:
    """Point an axis of a body along a direction of the world, or from `point` of the body `at` a point (m).

    >>> aim("head", (1, 0, 0), at=(2.0, 0.0, 1.5)).at
    True
    """
    if (direction is None) == (at is None):
        raise ValueError("aim: give either direction= (a vector) or at= (a place)")
    own = _direction("axis", axis)
    wanted = _direction("direction", direction) if at is None else vectors("at", at, (3,))  # type: ignore[arg-type]
    points = np.stack((vectors("point", point, (3,)), own))
    return Goal("aim", _body(body), points, wanted, np.zeros((2, 3)), *_rank(priority, weight), at is not None)


def centre_of_mass(goal: ArrayLike, *, axes: str = "xyz", priority: int = 0, weight: float = 1.0) -> Goal:
    """Move the centre of mass of all moving bodies to a point of the world (m); `axes="xy"` leaves its height free.

    >>> centre_of_mass((0, 0, 0), axes="xy").rows.shape
    (2, 3)
    """
    return Goal("centre", None, np.zeros((0, 3)), vectors("goal", goal, (3,)), _axes(axes), *_rank(priority, weight))


def above(body: Body, height: ArrayLike = 0.0, *, points: ArrayLike = ((0.0, 0.0, 0.0),), priority: int = 0) -> Goal:
    """Keep points (k, 3) of a body (m, in its own frame) above a height (m): one-sided, like a floor.

    Heights may differ from point to point.

    >>> above("foot_l", points=[(0.1, 0, 0), (-0.1, 0, 0)]).points.shape
    (2, 3)
    """
    places = vectors("points", points, (...,))
    places = places[None] if places.ndim == 1 else places
    if places.ndim != 2 or places.shape[1] != 3 or not len(places):
        raise ValueError(f"points: must be one or more places of three numbers, found the shape {places.shape}")
    rows = np.tile((0.0, 0.0, 1.0), (len(places), 1))
    heights = vectors("height", height, () if np.ndim(height) == 0 else (len(places),))
    heights = np.broadcast_to(heights, (len(places),)).copy()
    return Goal("above", _body(body), places, heights, rows, *_rank(priority, 1.0))


def pose(q: ArrayLike, *, priority: int = HIGHEST, weight: float = 1.0) -> Goal:
    """Match all coordinates (nq,), within the freedom that goals of higher priority leave.

    >>> pose([0.0, 0.5]).priority
    99
    """
    try:
        wanted = np.array(q, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"q: must be numbers, found {q!r:.80}") from None
    return Goal("pose", None, np.zeros((0, 3)), wanted, np.zeros((0, 3)), *_rank(priority, weight))


def _body(body: Any) -> Body:
    if isinstance(body, bool) or not isinstance(body, str | int | np.integer):
        raise SceneError(f"must be the name or number of a body, found {body!r}", field="body")
    return body if isinstance(body, str) else int(body)


def _axes(axes: Any) -> Floats:
    if not isinstance(axes, str) or not axes or len(set(axes)) != len(axes) or set(axes) - set("xyz"):
        raise ValueError(f'axes: must be some of "xyz", each once, found {axes!r}{did_you_mean(axes, ["xyz", "xy"])}')
    return np.eye(3)[["xyz".index(axis) for axis in axes]]


def _direction(field: str, value: ArrayLike) -> Floats:
    vector = vectors(field, value, (3,))
    if not np.any(vector):
        raise ValueError(f"{field}: must have a direction, found (0, 0, 0)")
    return unit(vector / np.abs(vector).max())


def _rank(priority: Any, weight: Any) -> tuple[int, float]:
    whole = isinstance(priority, int | np.integer) and not isinstance(priority, bool)
    if not whole or not 0 <= priority <= HIGHEST:
        raise ValueError(f"priority: must be a whole number from 0 (first) to {HIGHEST}, found {priority!r}")
    number = float(vectors("weight", weight, ()))
    if not 1e-6 <= number <= 1e6:
        raise ValueError(f"weight: must be from 1e-6 to 1e6, found {weight!r}")
    return int(priority), number
