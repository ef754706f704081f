"""Shapes as triangles with normals, for formats without other shapes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.io.meshes import is_closed
from poise.model.massprops import mesh_arrays
from poise.model.shape_arrays import Solid, Solids
from poise.model.shapes import ConvexMesh

Floats = NDArray[np.float64]

_SEGMENTS = 24
"""Around a round shape."""
_CREASE = math.cos(math.radians(35.0))
"""Faces that meet at less than this angle are shaded as one smooth surface."""
_FLAT = 1e-12
"""Triangles of less than this part of the largest one's area are left out."""


class Surface(NamedTuple):
    """Triangles in the frame of their shape."""

    vertices: Floats
    """(n, 3) m."""
    normals: Floats
    """(n, 3) outward, unit."""
    faces: NDArray[np.int64]
    """(m, 3) counter-clockwise from outside."""


def surface(solids: Solids, shape: int) -> Surface:
    """The surface of a shape by its number; planes, which have no end, have none.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.box(1, 2, 3), name="crate")
    >>> top = surface(scene.compile().solids, 0).vertices.max(axis=0)
    >>> top.tolist()
    [0.5, 1.0, 1.5]
    """
    kind = Solid(int(solids.kind[shape]))
    a, b, c = (float(part) for part in solids.size[shape])
    if kind == Solid.SPHERE:
        return _ball((a, a, a))
    if kind == Solid.ELLIPSOID:
        return _ball((a, b, c))
    if kind == Solid.CAPSULE:
        return _lathe(_capsule_outline(a, b))
    if kind == Solid.CYLINDER:
        return _join([_lathe(outline) for outline in _cylinder_outlines(a, b)])
    if kind == Solid.BOX:
        return _box(a, b, c)
    if kind in (Solid.HULL, Solid.FIELD, Solid.MESH):
        return shaded(*triangles(solids, shape))
    raise ValueError(f"shape {shape} is a plane, which has no end")


def triangles(solids: Solids, shape: int) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices (n, 3; m) and triangles (m, 3) of a hull, height field or mesh by its number."""
    return _field(solids, shape) if solids.kind[shape] == Solid.FIELD else _mesh(solids, shape)


def has_back(solids: Solids, shape: int) -> bool:
    """Whether the back of a shape's surface can be seen: of a height field, and of a mesh that does not close."""
    if solids.kind[shape] == Solid.MESH:
        return not is_closed(_mesh(solids, shape)[1])
    return bool(solids.kind[shape] == Solid.FIELD)


def tiles(half: float, square: float) -> tuple[Surface, Surface]:
    """Light and dark squares of a floor about its origin, at z = 0; m."""
    n = max(1, math.ceil(half / square))
    grid = np.arange(-n, n)
    x, y = (axis.reshape(-1) for axis in np.meshgrid(grid, grid))
    found = []
    for parity in (0, 1):
        mine = (x + y) % 2 == parity
        low = np.stack((x[mine], y[mine], np.zeros(mine.sum())), axis=1)
        corners = low[:, None] + np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)])
        start = 4 * np.arange(len(low))[:, None, None]
        faces = (start + np.array([(0, 1, 2), (0, 2, 3)])).reshape(-1, 3)
        vertices = square * corners.reshape(-1, 3)
        found.append(Surface(vertices, np.tile((0.0, 0.0, 1.0), (len(vertices), 1)), faces))
    return found[0], found[1]


def _ball(half: tuple[float, float, float]) -> Surface:
    """An ellipsoid: a sphere that is stretched."""
    round_one = _lathe(_capsule_outline(1.0, 0.0))
    normals = round_one.normals / np.array(half)
    return Surface(round_one.vertices * half, normals / np.linalg.norm(normals, axis=1, keepdims=True), round_one.faces)


def _capsule_outline(radius: float, half: float) -> Floats:
    """(n, 4) distance from the axis, z, and the normal's two parts, from the bottom to the top."""
    angle = np.linspace(-0.5 * math.pi, 0.5 * math.pi, _SEGMENTS // 2 + 1)
    cos, sin = np.cos(angle), np.sin(angle)
    cos[[0, -1]] = 0.0
    rim = np.stack((radius * cos, radius * sin, cos, sin), axis=1)
    middle = len(rim) // 2
    if half == 0.0:
        return rim
    up = np.array((0.0, half, 0.0, 0.0))
    return np.concatenate((rim[: middle + 1] - up, rim[middle:] + up))


def _cylinder_outlines(radius: float, half: float) -> list[Floats]:
    """Bottom, side and top, each with normals of its own."""
    bottom = np.array([(0.0, -half, 0.0, -1.0), (radius, -half, 0.0, -1.0)])
    side = np.array([(radius, -half, 1.0, 0.0), (radius, half, 1.0, 0.0)])
    top = np.array([(radius, half, 0.0, 1.0), (0.0, half, 0.0, 1.0)])
    return [bottom, side, top]


def _lathe(outline: Floats) -> Surface:
    """An outline turned about z. Points on the axis are one vertex, so that no triangle is without area."""
    around = np.arange(_SEGMENTS) * (2.0 * math.pi / _SEGMENTS)
    cos, sin = np.cos(around), np.sin(around)
    vertices: list[Floats] = []
    normals: list[Floats] = []
    rings: list[NDArray[np.int64]] = []
    count = 0
    for radius, z, out, up in outline:
        n = _SEGMENTS if radius > 0.0 else 1
        vertices.append(np.stack((radius * cos[:n], radius * sin[:n], np.full(n, z)), axis=1))
        normals.append(np.stack((out * cos[:n], out * sin[:n], np.full(n, up)), axis=1))
        rings.append(np.broadcast_to(count + np.arange(n), (_SEGMENTS,)))
        count += n
    faces = []
    for (below, r_below), (above, r_above) in zip(
        zip(rings, outline[:, 0], strict=True), zip(rings[1:], outline[1:, 0], strict=True), strict=False
    ):
        next_below, next_above = np.roll(below, -1), np.roll(above, -1)
        if r_below > 0.0:
            faces.append(np.stack((below, next_below, next_above), axis=1))
        if r_above > 0.0:
            faces.append(np.stack((below, next_above, above), axis=1))
    return Surface(np.concatenate(vertices), np.concatenate(normals), np.concatenate(faces))


def _box(a: float, b: float, c: float) -> Surface:
    vertices: list[Floats] = []
    normals: list[Floats] = []
    faces: list[list[tuple[int, int, int]]] = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            normal = np.zeros(3)
            normal[axis] = sign
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            u, v = (u, v) if sign > 0 else (v, u)
            start = 4 * len(faces)
            vertices += [normal - u - v, normal + u - v, normal + u + v, normal - u + v]
            normals += [normal] * 4
            faces.append([(start, start + 1, start + 2), (start, start + 2, start + 3)])
    return Surface(np.array(vertices) * (a, b, c), np.array(normals), np.array(faces).reshape(-1, 3))


def _join(parts: list[Surface]) -> Surface:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=False)]
    vertices, normals = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return Surface(vertices, normals, np.concatenate(faces))


def _field(solids: Solids, shape: int) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices and triangles of a height field: each cell is split from its least x and y."""
    rows, columns = (int(n) for n in solids.grid[shape])
    heights = solids.heights[int(solids.height_start[shape]) : int(solids.height_start[shape + 1])]
    half_x, half_y = solids.size[shape, :2]
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    number = np.arange(rows * columns).reshape(rows, columns)
    low, right = number[:-1, :-1].reshape(-1), number[:-1, 1:].reshape(-1)
    far, left = number[1:, 1:].reshape(-1), number[1:, :-1].reshape(-1)
    faces = np.concatenate((np.stack((low, right, far), axis=1), np.stack((low, far, left), axis=1)))
    return np.stack((x.reshape(-1), y.reshape(-1), heights), axis=1), faces


def _mesh(solids: Solids, shape: int) -> tuple[Floats, NDArray[np.int64]]:
    vertices = solids.vertices[int(solids.vertex_start[shape]) : int(solids.vertex_start[shape + 1])]
    faces = solids.faces[int(solids.face_start[shape]) : int(solids.face_start[shape + 1])]
    if not len(faces):  # nothing touches it, so its hull was not sought
        return mesh_arrays(ConvexMesh(vertices=vertices))
    return vertices, faces.astype(np.int64)


def shaded(vertices: Floats, faces: NDArray[np.int64]) -> Surface:
    """A mesh with three vertices per triangle, and normals that are smooth except at creases."""
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    kept = area > _FLAT * area.max(initial=0.0)
    faces, corners, normal, area = faces[kept], corners[kept], normal[kept], area[kept]
    flat = normal / area[:, None]
    owner, vertex = np.repeat(np.arange(len(faces)), 3), faces.reshape(-1)
    # every pair of corners that are at one vertex: the second one's face counts if it is not beyond a crease
    order = np.argsort(vertex, kind="stable")
    count = np.bincount(vertex, minlength=len(vertices))
    first = np.repeat(order, count[vertex[order]])
    run = np.concatenate(([0], np.cumsum(count)))[vertex[first]]
    within = np.arange(len(first)) - np.repeat(
        np.cumsum(count[vertex[order]]) - count[vertex[order]], count[vertex[order]]
    )
    second = order[run + within]
    smooth = np.einsum("ij,ij->i", flat[owner[first]], flat[owner[second]]) > _CREASE
    total = np.zeros((len(vertex), 3))
    np.add.at(total, first[smooth], normal[owner[second[smooth]]])
    total /= np.linalg.norm(total, axis=1, keepdims=True)
    return Surface(corners.reshape(-1, 3), total, np.arange(len(vertex)).reshape(-1, 3))
