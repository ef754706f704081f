"""Marks: dots, lines and arrows that are drawn over a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.state_queries import bodies
from poise.model.model import Model
from poise.view.render_camera import checked_vector

Floats = NDArray[np.float64]
Color = tuple[float, float, float]

_CONE_SIDES = 12


@dataclass(frozen=True)
class Mark:
    """A round rod from a to b, or a cone whose tip is at b."""

    a: tuple[float, float, float]
    b: tuple[float, float, float]
    """m."""
    radius: float
    """m."""
    color: Color
    """sRGB, 0 to 1."""
    cone: bool = False


def dot(point: ArrayLike, radius: float, color: Color) -> Mark:
    """A point, with a radius in metres.

    >>> dot((0, 0, 1), 0.02, (1, 0, 0)).b
    (0.0, 0.0, 1.0)
    """
    place = _vector("point", point)
    return Mark(place, place, _radius(radius), color)


def line(a: ArrayLike, b: ArrayLike, radius: float, color: Color) -> Mark:
    """A line from a to b, with a radius in metres.

    >>> line((0, 0, 0), (0, 0, 1), 0.01, (1, 0, 0)).radius
    0.01
    """
    return Mark(_vector("a", a), _vector("b", b), _radius(radius), color)


def arrow(a: ArrayLike, b: ArrayLike, radius: float, color: Color) -> list[Mark]:
    """An arrow from a to its tip at b; `radius` is that of its shaft, in metres.

    >>> len(arrow((0, 0, 0), (0, 0, 1), 0.01, (1, 0, 0)))
    2
    """
    start, end = np.array(_vector("a", a)), np.array(_vector("b", b))
    thick = _radius(radius)
    length = float(np.linalg.norm(end - start))
    if length == 0.0:
        return [dot(a, radius, color)]
    head = min(5.0 * thick, 0.6 * length)
    neck = end - (end - start) * (head / length)
    return [line(start, neck, thick, color), Mark(_vector("a", neck), _vector("b", end), 0.45 * head, color, cone=True)]


def skeleton(model: Model, q: ArrayLike, radius: float = 0.012, color: Color = (0.98, 0.78, 0.15)) -> list[Mark]:
    """Lines from the origin of each moving body to that of the one that carries it, and dots there.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> len(skeleton(model, model.q_rest))
    29
    """
    place = bodies(model, q).position[model.link_body]
    joints = [dot(point, 1.8 * radius, color) for point in place]
    carried = np.flatnonzero(model.link_parent >= 0)
    return joints + [line(place[model.link_parent[k]], place[k], radius, color) for k in carried]


def _vector(name: str, value: Any) -> tuple[float, float, float]:
    x, y, z = checked_vector(name, value).tolist()
    return (x, y, z)


def _radius(radius: Any) -> float:
    if not isinstance(radius, int | float) or not (math.isfinite(radius) and radius > 0.0):
        raise ValueError(f"radius must be a length above 0, found {radius!r}")
    return float(radius)


def linear(color: ArrayLike) -> Floats:
    """SRGB colours as linear light.

    >>> linear((0.0, 0.5, 1.0)).round(3).tolist()
    [0.0, 0.214, 1.0]
    """
    c = np.clip(np.asarray(color, np.float64), 0.0, 1.0)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def cone_planes() -> tuple[Floats, Floats]:
    """Half spaces n · x ≤ offset of a cone of many sides, its base of radius 1 at z = −1, its tip at z = 1."""
    around = np.arange(_CONE_SIDES) * (2.0 * math.pi / _CONE_SIDES)
    sides = np.stack((np.cos(around), np.sin(around), np.full(_CONE_SIDES, 0.5)), axis=1)
    normals = np.concatenate((sides, [(0.0, 0.0, -1.0)]))
    return normals, np.concatenate((np.full(_CONE_SIDES, 0.5), [1.0]))


_ENDS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


def mark_arrays(marks: Sequence[Mark], eye: Floats) -> dict[str, Any]:
    """Marks in the kernels' layout, relative to the eye; and (n, 8, 3) `corners` of boxes about them."""
    n = len(marks)
    a = np.array([mark.a for mark in marks], np.float64).reshape(n, 3)
    b = np.array([mark.b for mark in marks], np.float64).reshape(n, 3)
    radius = np.array([mark.radius for mark in marks], np.float64)
    span = b - a
    length = np.linalg.norm(span, axis=1)
    along = np.where(length[:, None] > 0.0, span / np.maximum(length, 1e-300)[:, None], (0.0, 0.0, 1.0))
    frame = _frames(along)
    middle = 0.5 * (a + b) - eye
    half = np.stack((radius, radius, 0.5 * length + radius), axis=1)
    return {
        "mark_kind": np.array([int(mark.cone) for mark in marks], np.int32),
        "mark_position": middle,
        "mark_rotation": frame.reshape(n, 9),
        "mark_size": np.stack((radius, np.maximum(0.5 * length, 1e-9), np.zeros(n)), axis=1),
        "mark_color": linear(np.array([mark.color for mark in marks], np.float64).reshape(n, 3)),
        "corners": np.einsum("nij,nkj->nki", frame, half[:, None] * _ENDS) + middle[:, None],
    }


def _frames(along: Floats) -> Floats:
    """(n, 3, 3) rotations that map z to given directions."""
    least = np.eye(3)[np.abs(along).argmin(axis=1)]
    x = np.cross(least, along)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack((x, np.cross(along, x), along), axis=2)
