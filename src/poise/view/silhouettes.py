"""Quick pictures: bodies as flat silhouettes, several frames of a motion in one drawing.

A silhouette is the convex hull of projected surface points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.errors import resolve_name
from poise.model.scene import Scene
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Plane, Shape, Sphere, TriangleMesh
from poise.motion.rotations import quat_normalize, quat_to_matrix
from poise.view.plots import Drawing, text

Floats = NDArray[np.float64]


def _ball() -> Floats:
    """Points of the unit sphere."""
    up, around = np.meshgrid(np.linspace(0, np.pi, 13), np.linspace(0, 2 * np.pi, 25)[:-1])
    ring = np.stack((np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)), axis=-1)
    return ring.reshape(-1, 3)


_BALL = _ball()
_CORNERS = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


def surface_points(shape: Shape) -> Floats:
    """(n, 3) points of a shape's surface, in the shape's frame, whose hull is the shape; none for a plane.

    >>> from poise.model.shapes import box
    >>> surface_points(box(1, 2, 3)).max(axis=0)
    array([0.5, 1. , 1.5])
    """
    match shape:
        case Sphere(radius=radius):
            return _BALL * radius
        case Ellipsoid(size=size):
            return np.asarray(_BALL * np.asarray(size) / 2)
        case Box(size=size):
            return np.asarray(_CORNERS * np.asarray(size))
        case Capsule(radius=radius, length=length):
            return np.concatenate([_BALL * radius + (0.0, 0.0, end) for end in (-length / 2, length / 2)])
        case Cylinder(radius=radius, length=length):
            around = np.linspace(0, 2 * np.pi, 25)[:-1]
            ring = np.stack((np.cos(around), np.sin(around)), axis=1) * radius
            return np.concatenate([np.column_stack((ring, np.full(24, z))) for z in (-length / 2, length / 2)])
        case ConvexMesh(vertices=vertices) | TriangleMesh(vertices=vertices):
            return np.asarray(vertices, np.float64)
    return np.zeros((0, 3))


def hull(points: Floats) -> Floats:
    """Corners of the convex hull of points in the plane, counter-clockwise (Andrew's monotone chain)."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half(rows: Floats) -> list[Floats]:
        chain: list[Floats] = []
        for point in rows:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    return np.array(half(ordered) + half(ordered[::-1]))


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def strobe(
    scene: Scene,
    names: Sequence[str],
    moments: Sequence[tuple[ArrayLike, ArrayLike, str]],
    *,
    side: ArrayLike = (0.0, -1.0, 0.0),
    spacing: float = 0.0,
    width: float = 900.0,
    title: str = "",
) -> Drawing:
    """Several frames of a motion side by side, viewed against the direction `side`.

    `names` are the model's bodies, in order; a moment is (positions (n, 3), rotations (n, 3, 3), caption). Neighbouring
    moments have a distance of `spacing` metres. Up is z, or y for a view along z.

    >>> from poise.model.shapes import sphere
    >>> scene = Scene()
    >>> ball = scene.add(sphere(0.1), name="ball")
    >>> strobe(scene, ["ball"], [(np.zeros((1, 3)), np.eye(3)[None], "now")]).width
    900.0
    """
    if not len(moments):
        raise ValueError("moments: there is nothing to draw, found no moment")
    frame = _eye(side)
    shapes = _shapes(scene, names)
    if not shapes:
        raise ValueError("names: there is nothing to draw, none of the bodies has a shape with a size")
    outlines = [
        _outlines(shapes, np.asarray(p), np.asarray(r), frame, k * spacing) for k, (p, r, _) in enumerate(moments)
    ]
    corners = np.concatenate([corner for moment in outlines for _, corner, _ in moment])
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin, head, foot = 20.0, 36.0, 30.0
    scale = (width - 2 * margin) / max(high[0] - low[0], 1e-9)
    height = head + foot + (high[1] - low[1]) * scale

    def at(points: Floats) -> Floats:
        return np.column_stack((margin + (points[:, 0] - low[0]) * scale, head + (high[1] - points[:, 1]) * scale))

    parts = [text(margin, 24, title, size=15, extra='font-weight="600"')]
    for moment, (_, _, caption) in zip(outlines, moments, strict=True):
        for color, corner, _ in moment:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at(corner))
            parts.append(f'<polygon points="{points}" fill="{color}" stroke="#ffffff" stroke-width="0.8"/>')
        centre = at(np.mean([corner.mean(axis=0) for _, corner, _ in moment], axis=0)[None])[0]
        parts.append(text(centre[0], height - 10, caption, anchor="middle"))
    return Drawing(width, height, "".join(parts))


def _eye(side: ArrayLike) -> Floats:
    """Rows right, up, towards the eye; (3, 3)."""
    given = np.asarray(side, np.float64)
    if given.shape != (3,) or not np.isfinite(given).all() or not given.any():
        raise ValueError(f"side: must be a direction (x, y, z), found {side!r}")
    toward = given / np.linalg.norm(given)
    right = np.cross((0.0, 0.0, 1.0), toward)
    if np.linalg.norm(right) < 1e-9:
        right = np.cross((0.0, 1.0, 0.0), toward)
    right /= np.linalg.norm(right)
    return np.stack((right, np.cross(toward, right), toward))


def _shapes(scene: Scene, names: Sequence[str]) -> list[tuple[int, Floats, str]]:
    """(body, surface points in its frame, colour) of all shapes that have a size."""
    bodies = {body.name: body for body in scene.bodies}
    found = []
    for index, name in enumerate(names):
        for shape in bodies[resolve_name("body", name, list(bodies))].shapes:
            if not isinstance(shape, Plane):
                turn = quat_to_matrix(quat_normalize(shape.quat_wxyz))
                points = surface_points(shape) @ turn.T + np.asarray(shape.position)
                found.append((index, points, _color(shape)))
    return found


def _color(shape: Shape) -> str:
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in shape.color[:3])


def _outlines(
    shapes: Sequence[tuple[int, Floats, str]], positions: Floats, rotations: Floats, frame: Floats, shift: float
) -> list[tuple[str, Floats, Any]]:
    """(colour, outline, nearness) of every shape, the farthest first."""
    out = []
    for body, points, color in shapes:
        seen = (points @ rotations[body].T + positions[body]) @ frame.T
        out.append((color, hull(seen[:, :2]) + np.array((shift, 0.0)), float(seen[:, 2].mean())))
    return sorted(out, key=lambda outline: outline[2])
