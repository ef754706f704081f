"""Cameras of pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.ray_casting.rays import places
from poise.model.model import Model
from poise.model.shape_arrays import Solid, Solids
from poise.view.skinned import skin_points

Floats = NDArray[np.float64]
Vector = tuple[float, float, float]

_SIDE: Vector = (1.6, -1.0, 0.5)
"""Default direction to the eye: from the front, slightly from the right and from above."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera.

    >>> Camera(position=(3, -3, 2), target=(0, 0, 1)).axes()[2].round(3).tolist()
    [-0.688, 0.688, -0.229]
    """

    position: Vector
    """Position of the eye; m."""
    target: Vector
    """Point in the middle of the picture; m."""
    up: Vector = (0.0, 0.0, 1.0)
    """Up direction; its part across the view is up in the picture."""
    field_of_view: float = math.radians(40.0)
    """Vertical field of view; rad."""

    def __post_init__(self) -> None:
        for name in ("position", "target", "up"):
            value = checked_vector(name, getattr(self, name))
            object.__setattr__(self, name, tuple(value.tolist()))
        angle = self.field_of_view
        if not isinstance(angle, int | float) or not 0.0 < angle < math.pi:
            raise ValueError(f"field_of_view is an angle between 0 and π, found {angle!r} (radians)")
        self.axes()

    def axes(self) -> Floats:
        """(3, 3) unit vectors to the right, up and forward, as rows."""
        forward = np.subtract(self.target, self.position)
        distance = float(np.linalg.norm(forward))
        if not distance > 0.0:
            raise ValueError(f"target is where the eye is, at {self.position}: there is no direction to look in")
        forward = forward / distance
        right = np.cross(forward, np.asarray(self.up) / (np.abs(self.up).max() or 1.0))
        if float(np.linalg.norm(right)) < 1e-9:
            raise ValueError(f"up is {self.up}, which is along the view or zero: it must point across it")
        right = right / np.linalg.norm(right)
        return np.stack((right, np.cross(right, forward), forward))

    @property
    def distance(self) -> float:
        """Distance of the target from the eye; m."""
        return math.dist(self.position, self.target)

    @classmethod
    def looking_at(
        cls,
        model: Model,
        q: ArrayLike,
        *,
        side: ArrayLike = _SIDE,
        margin: float = 1.2,
        field_of_view: float = math.radians(40.0),
        aspect: float = 4.0 / 3.0,
    ) -> Camera:
        """A camera with all moving shapes in view, or without any all finite shapes, at one pose or several.

        `q` is (nq,) or (n, nq); `side` is the direction from the model to the eye; with `margin` 1 there is no space at
        the edges; `aspect` is the width of the picture over its height.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 3))
        >>> model = scene.compile()
        >>> Camera.looking_at(model, model.q_rest).target
        (0.0, 0.0, 3.0)
        """
        poses = np.atleast_2d(np.asarray(q, np.float64))
        shapes = [bounds(model.solids, *places(model, pose)) for pose in poses]
        corners = np.concatenate([*shapes, *(points for pose in poses for points in skin_points(model, pose))])
        return cls.around(corners, side=side, margin=margin, field_of_view=field_of_view, aspect=aspect)

    @classmethod
    def around(
        cls,
        points: ArrayLike,
        *,
        side: ArrayLike = _SIDE,
        margin: float = 1.2,
        field_of_view: float = math.radians(40.0),
        aspect: float = 4.0 / 3.0,
    ) -> Camera:
        """A camera with given points (n, 3; m) in view; options are those of `looking_at`.

        >>> Camera.around([(0, 0, 0), (0, 0, 2)]).target
        (0.0, 0.0, 1.0)
        """
        corners = np.asarray(points, np.float64).reshape(-1, 3)
        middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0)) if len(corners) else np.zeros(3)
        away = checked_vector("side", side)
        if not away.any():
            raise ValueError("side is (0, 0, 0): it must be a direction from the model to the eye")
        away = away / np.linalg.norm(away)
        up = (0.0, 0.0, 1.0) if abs(away[2]) < 0.999 else (0.0, 1.0, 0.0)
        trial = cls(tuple(middle + away), tuple(middle), up, field_of_view)
        right, above, forward = trial.axes()
        apart = corners - middle if len(corners) else np.full((1, 3), 0.5)
        tangent = math.tan(0.5 * field_of_view) / margin
        # each corner is in view if its angle from the axis is less than half of the field of view
        need = np.maximum(np.abs(apart @ above) / tangent, np.abs(apart @ right) / (tangent * aspect))
        distance = float((need - apart @ forward).max())
        return cls(tuple(middle + away * distance), tuple(middle), up, field_of_view)


def as_asked(usual: Camera, asked: Mapping[str, Any], origin: ArrayLike = (0.0, 0.0, 0.0)) -> Camera:
    """A camera with a scene file's settings (see `poise.model.Settings`), and defaults otherwise.

    Positions in the settings are in the world (m); those of the camera are relative to `origin`.

    >>> usual = Camera(position=(3, 0, 1), target=(0, 0, 1))
    >>> as_asked(usual, {"target": (0, 0, 2)}).position
    (3.0, 0.0, 2.0)
    """
    eye, target, origin = np.asarray(usual.position), np.asarray(usual.target), np.asarray(origin, np.float64)
    if "target" in asked:
        eye, target = eye - target, checked_vector("target", asked["target"]) - origin
        eye = eye + target
    if "position" in asked:
        eye = checked_vector("position", asked["position"]) - origin
    up = asked.get("up", usual.up)
    if "up" not in asked and np.linalg.norm(np.cross(target - eye, up)) < 1e-6:
        up = (0.0, 1.0, 0.0)
    return Camera(tuple(eye), tuple(target), up, asked.get("field_of_view", usual.field_of_view))


def checked_vector(name: str, value: Any) -> Floats:
    """Three finite numbers."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be three finite numbers, found {value!r}")
    return array


def half_boxes(solids: Solids) -> tuple[Floats, Floats]:
    """(n, 3) centres and halves of the boxes about all shapes in their own frames; infinite of planes; m."""
    centre, half = np.zeros((len(solids), 3)), solids.size.copy()
    for i, kind in enumerate(solids.kind):
        a, b, c = solids.size[i]
        if kind == Solid.PLANE:
            half[i] = math.inf
        elif kind == Solid.SPHERE:
            half[i] = a
        elif kind in (Solid.CAPSULE, Solid.CYLINDER):
            half[i] = (a, a, b + a if kind == Solid.CAPSULE else b)
        elif kind == Solid.FIELD:
            high = float(solids.heights[solids.height_start[i] : solids.height_start[i + 1]].max())
            centre[i, 2], half[i] = 0.5 * (c + high), (a, b, 0.5 * (high - c))
    return centre, half


_CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


def box_corners(solids: Solids, position: Floats, rotation: Floats) -> Floats:
    """(n, 8, 3) corners of the boxes about all shapes, in the world; not finite of planes; m."""
    centre, half = half_boxes(solids)
    local = centre[:, None] + half[:, None] * _CORNERS
    with np.errstate(invalid="ignore"):
        return np.asarray(np.einsum("nij,nkj->nki", rotation, local) + position[:, None])


def bounds(solids: Solids, position: Floats, rotation: Floats) -> Floats:
    """(…, 3) corners of the relevant shapes: those that move, or without any all finite ones; m."""
    moving = solids.link >= 0
    shown = moving if moving.any() else solids.kind != Solid.PLANE
    return box_corners(solids, position, rotation)[shown].reshape(-1, 3)
