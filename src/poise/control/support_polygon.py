"""Support polygon of a character: the points of its soles on the ground, and their convex hull."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.argument_checks import body_number
from poise.model.model import Model
from poise.model.shape_arrays import Solid

Floats = NDArray[np.float64]


def check_gravity(model: Model) -> None:
    """Raise unless gravity points down, along −z, as balance assumes."""
    x, y, z = np.asarray(model.gravity, np.float64).tolist()
    if not (z < 0.0 and np.hypot(x, y) <= 1e-9 * -z):
        raise ValueError(f"gravity is ({x:g}, {y:g}, {z:g}); to balance it must point down, as (0, 0, -9.81) does")


def sole_points(model: Model, body: str | int) -> Floats:
    """(n, 3) corners of the boxes, or lowest points of the other shapes, of a foot in its own frame, z up at rest; m.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.box(0.2, 0.1, 0.06), name="foot", position=(0, 0, 0.03))
    >>> sole_points(scene.compile(), "foot").round(3).tolist()[0]
    [-0.1, -0.05, -0.03]
    """
    index, solids = body_number(model, body), model.solids
    touches = (solids.group != 0) | (solids.mask != 0)  # other shapes are visual only
    shapes = np.flatnonzero((solids.body == index) & touches)
    points = [_lowest(solids.kind[k], solids.size[k]) + solids.position[k] for k in shapes.tolist()]
    if not points:
        raise ValueError(f'"{model.body_names[index]}" has no shape to stand on')
    all_points = np.concatenate(points)
    return np.asarray(all_points[all_points[:, 2] <= all_points[:, 2].min() + 0.01])


def _lowest(kind: int, size: Floats) -> Floats:
    """Lowest points of an upright shape."""
    if kind == Solid.BOX:
        return np.array([(x * size[0], y * size[1], -size[2]) for x in (-1, 1) for y in (-1, 1)])
    if kind == Solid.CAPSULE:
        return np.array([(0.0, 0.0, z * size[1] - size[0]) for z in (-1, 1)])
    return np.array([(0.0, 0.0, -float(size[0]))])


def hull(points: Floats) -> Floats:
    """(k, 2) corners of the convex hull of (n, 2) points, counterclockwise (Andrew's chains).

    >>> hull(np.array([(0, 0), (2, 0), (1, 0.5), (2, 2), (0, 2)], float)).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    """
    order = points[np.lexsort((points[:, 1], points[:, 0]))]
    if len(order) < 3:
        return np.asarray(order)
    return np.array(_chain(order)[:-1] + _chain(order[::-1])[:-1])


def _chain(points: Floats) -> list[Floats]:
    """The lower hull of points in order."""
    out: list[Floats] = []
    for point in points:
        while len(out) > 1 and _turn(out[-2], out[-1], point) <= 0.0:
            out.pop()
        out.append(point)
    return out


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def nearest_within(point: Floats, corners: Floats, margin: float = 0.0) -> Floats:
    """(2,) the point of a convex region nearest to another, `margin` from its edges where it is wide enough; m.

    >>> square = np.array([(0, 0), (2, 0), (2, 2), (0, 2)], float)
    >>> nearest_within(np.array((3.0, 1.0)), square, 0.1).tolist()
    [1.9, 1.0]
    """
    region = _shrunk(corners, margin)
    edges = list(zip(region, np.roll(region, -1, axis=0), strict=True))
    if len(region) > 2 and all(_turn(a, b, point) >= 0.0 for a, b in edges):
        return np.asarray(point, np.float64)
    best = [_on_segment(point, a, b) for a, b in edges]
    return min(best, key=lambda place: float(np.sum((place - point) ** 2)))


def _on_segment(point: Floats, a: Floats, b: Floats) -> Floats:
    along = b - a
    size = float(along @ along)
    share = 0.0 if size == 0.0 else min(1.0, max(0.0, float((point - a) @ along) / size))
    return np.asarray(a + share * along)


def _shrunk(corners: Floats, margin: float) -> Floats:
    """The region, shrunk towards its middle until its edges move by a margin, at most half way."""
    if margin <= 0.0 or len(corners) < 3:
        return corners
    middle = corners.mean(axis=0)
    inner = min(edge_distance(middle, corners), 1e9)
    return np.asarray(middle + (corners - middle) * max(0.5, 1.0 - margin / max(inner, 1e-9)))


def edge_distance(point: Floats, corners: Floats, direction: Sequence[float] | None = None) -> float:
    """Distance of a point within a convex region from its edge: the shortest one, or along a direction; m.

    >>> square = np.array([(0, 0), (2, 0), (2, 2), (0, 2)], float)
    >>> edge_distance(np.array((1.0, 0.5)), square), edge_distance(np.array((1.0, 0.5)), square, (1, 0))
    (0.5, 1.0)
    """
    ways = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = b - a
        normal = np.array((along[1], -along[0])) / max(float(np.linalg.norm(along)), 1e-300)
        gap = float(normal @ (a - point))
        speed = 1.0 if direction is None else float(normal @ np.asarray(direction, np.float64))
        if speed > 1e-12:
            ways.append(gap / speed)
    return max(0.0, min(ways, default=0.0))
