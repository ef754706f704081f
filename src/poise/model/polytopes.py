"""Convex hulls for collision: corners, the edges between them, and faces with any number of corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.hull import checked_vertices, convex_hull
from poise.motion.rotations import cross

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FLAT = 2e-7
"""Triangles whose corners are within this fraction of the hull's extent of one plane form one face."""


@dataclass(frozen=True, eq=False)
class Polytope:
    """A convex hull without the points inside it. Lists of lists are flat, with the start of each."""

    vertices: Floats
    """(n, 3) corners; m."""
    faces: Indices
    """(m, 3) triangles, counter-clockwise from outside."""
    neighbor_start: Indices
    """(n + 1,) into `neighbors`."""
    neighbors: Indices
    """Corners at the other ends of each corner's edges."""
    side_start: Indices
    """(k + 1,) into `side_corners`."""
    side_corners: Indices
    """Corners of each face, counter-clockwise from outside."""
    side_normal: Floats
    """(k, 3) outward, unit."""
    around_start: Indices
    """(n + 1,) into `around`."""
    around: Indices
    """Faces around each corner."""


def polytope(points: ArrayLike) -> Polytope:
    """The convex hull of points (n, 3); m.

    >>> import itertools
    >>> cube = polytope([*itertools.product((-1.0, 1.0), repeat=3), (0.0, 0.0, 0.0)])
    >>> len(cube.vertices), len(cube.faces), len(cube.side_normal)
    (8, 12, 6)
    >>> np.diff(cube.side_start).tolist()
    [4, 4, 4, 4, 4, 4]
    """
    corners = checked_vertices(points)
    triangles = convex_hull(corners)
    used, numbers = np.unique(triangles, return_inverse=True)
    faces = numbers.reshape(-1, 3)
    vertices = corners[used]
    neighbors = [np.unique(row) for row in _neighbors(len(vertices), faces)]
    normals, sides = _sides(vertices, faces)
    around = _around(len(vertices), faces, sides)
    loops = [_outline(vertices, np.unique(faces[side]), normal) for normal, side in zip(normals, sides, strict=True)]
    return Polytope(
        vertices=vertices,
        faces=faces,
        neighbor_start=_starts(neighbors),
        neighbors=np.concatenate(neighbors),
        side_start=_starts(loops),
        side_corners=np.concatenate(loops),
        side_normal=normals,
        around_start=_starts(around),
        around=np.concatenate(around),
    )


def _starts(lists: list[Indices]) -> Indices:
    return np.concatenate(([0], np.cumsum([len(part) for part in lists]))).astype(np.int64)


def _neighbors(n: int, faces: Indices) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(n)]
    for a, b, c in faces.tolist():
        lists[a].append(b)
        lists[b].append(c)
        lists[c].append(a)
    return lists


def _normals(vertices: Floats, faces: Indices) -> tuple[Floats, Floats]:
    """Unit normals (m, 3) and areas (m,) of triangles; a triangle without an area has the normal 0."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    length = np.linalg.norm(across, axis=1)
    return across / np.where(length > 0.0, length, 1.0)[:, None], 0.5 * length


def _sides(vertices: Floats, faces: Indices) -> tuple[Floats, list[Indices]]:
    """Triangles merged into faces: unit normals (k, 3), and the triangles of each face.

    The largest triangles come first: their planes are the most accurate, and slivers are merged into a neighbour.
    """
    normals, areas = _normals(vertices, faces)
    slack = FLAT * float(np.ptp(vertices, axis=0).max())
    edges = {(row[k], row[k - 2]): f for f, row in enumerate(faces.tolist()) for k in range(3)}
    taken = np.full(len(faces), -1)
    sides: list[Indices] = []
    kept: list[Floats] = []
    for seed in np.argsort(-areas, kind="stable").tolist():
        if taken[seed] >= 0 or areas[seed] == 0.0:
            continue
        normal, level = normals[seed], float(normals[seed] @ vertices[faces[seed, 0]])
        taken[seed] = len(sides)
        members, stack = [seed], [seed]
        while stack:
            row = faces[stack.pop()].tolist()
            for k in range(3):
                other = edges[row[k - 2], row[k]]
                if taken[other] < 0 and np.all(np.abs(vertices[faces[other]] @ normal - level) <= slack):
                    if normals[other] @ normal < 0.0:
                        continue  # the opposite face of a hull thinner than the tolerance
                    taken[other] = len(sides)
                    members.append(other)
                    stack.append(other)
        sides.append(np.array(members))
        kept.append(normal)
    return np.array(kept), sides


def _around(n: int, faces: Indices, sides: list[Indices]) -> list[Indices]:
    lists: list[set[int]] = [set() for _ in range(n)]
    for number, side in enumerate(sides):
        for vertex in np.unique(faces[side]).tolist():
            lists[vertex].add(number)
    return [np.array(sorted(row)) for row in lists]


def _outline(vertices: Floats, members: Indices, normal: Floats) -> Indices:
    """Corners of a face, counter-clockwise: the convex hull in the plane (A. M. Andrew 1979)."""
    first = np.zeros(3)
    first[np.argmin(np.abs(normal))] = 1.0
    x_axis = cross(first, normal)
    x_axis /= np.linalg.norm(x_axis)
    flat = vertices[members] @ np.stack((x_axis, cross(normal, x_axis)), axis=1)
    if len(members) == 3:
        a, b, c = flat
        turned = (b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0] < 0.0
        return members[::-1] if turned else members
    order = np.lexsort((flat[:, 1], flat[:, 0])).tolist()

    def chain(path: list[int]) -> list[int]:
        out: list[int] = []
        for k in path:
            while len(out) > 1:
                u, v = flat[out[-1]] - flat[out[-2]], flat[k] - flat[out[-2]]
                if u[0] * v[1] - u[1] * v[0] > 0.0:
                    break
                out.pop()
            out.append(k)
        return out[:-1]

    return members[chain(order) + chain(order[::-1])]
