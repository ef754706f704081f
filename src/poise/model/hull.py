"""Convex hulls and solid moments of polyhedra.

The hull is computed by adding points one at a time to a growing polytope (quickhull, Barber, Dobkin, Huhdanpaa 1996).
The side of a plane on which a point lies is decided in floating point where the error bound allows it and in exact
integers otherwise, so that coplanar, repeated and nearly equal points cannot break the surface.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.errors import SceneError

Floats = NDArray[np.float64]
Faces = NDArray[np.int64]
Triple = tuple[float, float, float]

#: points thinner than this fraction of their largest extent count as flat
_FLAT = 1e-9
#: bound of the rounding error of a 3 × 3 determinant of differences, over its permanent (Shewchuk 1997: 7 ε)
_ROUNDING = 16.0 * 2.0**-53


def convex_hull(points: ArrayLike) -> Faces:
    """Triangles of the convex hull, (m, 3) indices into `points`, counter-clockwise seen from outside.

    Coplanar faces are split into triangles. Raises `SceneError` when the points have no volume.
    """
    return _hull_faces(checked_vertices(points).tobytes()).copy()


@lru_cache(maxsize=64)
def _hull_faces(coordinates: bytes) -> Faces:
    """Cached, since mass and collision need the same hull, and models may be compiled again."""
    vertices = np.frombuffer(coordinates).reshape(-1, 3)
    # scaling by powers of two is exact, and prevents overflow of volumes of huge or tiny points
    _, exponent = np.frexp(np.abs(vertices).max())
    return _Hull(np.ldexp(vertices, -int(exponent))).run()


def checked_vertices(points: ArrayLike) -> Floats:
    """`points` as an (n, 3) array that has a volume, or `SceneError`."""
    try:
        vertices = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise SceneError("must be a list of points (x, y, z), found something else", field="vertices") from None
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise SceneError(f"must be points (x, y, z), found an array of shape {vertices.shape}", field="vertices")
    if not np.isfinite(vertices).all():
        row = int(np.flatnonzero(~np.isfinite(vertices).all(axis=1))[0])
        raise SceneError(f"must be finite, found {tuple(vertices[row].tolist())} at index {row}", field="vertices")
    distinct = np.unique(vertices, axis=0)
    if len(distinct) < 4:
        raise SceneError(f"a solid needs at least 4 different points, found {len(distinct)}", field="vertices")
    # exact scaling by a power of two keeps the sums of huge points finite
    _, exponent = np.frexp(np.abs(distinct).max())
    spread = np.ldexp(distinct, -int(exponent))
    spread -= spread.mean(axis=0)
    scale = float(np.abs(spread).max())
    _, _, axes = np.linalg.svd(spread / scale, full_matrices=False)
    extents = np.ptp(spread @ axes.T, axis=0)
    flat = int(np.count_nonzero(extents <= _FLAT * extents[0]))
    if flat:
        what = "on one line" if flat > 1 else "in one plane"
        raise SceneError(f"a solid needs a volume, found all {len(distinct)} points {what}", field="vertices")
    return vertices


class _Hull:
    """State of a hull under construction."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self.rows: list[Triple] = [tuple(row) for row in points.tolist()]
        self.faces: dict[int, tuple[int, int, int]] = {}
        self.outside: dict[int, NDArray[np.int64]] = {}
        self.edges: dict[tuple[int, int], int] = {}
        self.next_face = 0

    @cached_property
    def exact(self) -> list[tuple[int, int, int]]:
        """The points as integers."""
        return _whole_numbers(self.points)

    def run(self) -> Faces:
        """Grow from a tetrahedron until no point is outside."""
        corners = self._first_corners()
        rest = np.setdiff1d(np.arange(len(self.points)), corners)
        a, b, c, d = corners
        self._add([(a, b, c), (a, d, b), (b, d, c), (c, d, a)], rest)
        pending = [face for face in self.faces if len(self.outside[face])]
        while pending:
            face = pending.pop()
            if face not in self.faces or not len(self.outside[face]):
                continue
            apex = self._farthest(face)
            visible = self._visible_from(apex, face)
            pending += self._replace(visible, apex)
        return np.array(list(self.faces.values()), dtype=np.int64)

    def _first_corners(self) -> tuple[int, int, int, int]:
        """Four points that span a volume, the fourth behind the triangle of the other three."""
        points = self.points
        a = int(np.lexsort(points.T)[0])
        b = int(np.argmax(np.sum((points - points[a]) ** 2, axis=1)))
        away = np.cross(points - points[a], points[b] - points[a])
        c = int(np.argmax(np.sum(away**2, axis=1)))
        normal = np.cross(points[b] - points[a], points[c] - points[a])
        d = int(np.argmax(np.abs((points - points[a]) @ normal)))
        side = self._exact_side(a, b, c, d)
        if side == 0:
            raise SceneError("a solid needs a volume, found all points in one plane", field="vertices")
        return (a, b, c, d) if side < 0 else (a, c, b, d)

    def _exact_side(self, a: int, b: int, c: int, p: int) -> int:
        """Sign of the volume (b−a) × (c−a) · (p−a): 1 when p is outside."""
        ax, ay, az = self.exact[a]
        ux, uy, uz = (x - y for x, y in zip(self.exact[b], (ax, ay, az), strict=True))
        vx, vy, vz = (x - y for x, y in zip(self.exact[c], (ax, ay, az), strict=True))
        wx, wy, wz = (x - y for x, y in zip(self.exact[p], (ax, ay, az), strict=True))
        volume = wx * (uy * vz - uz * vy) + wy * (uz * vx - ux * vz) + wz * (ux * vy - uy * vx)
        return (volume > 0) - (volume < 0)

    def _sides(self, face: tuple[int, int, int], candidates: NDArray[np.int64]) -> Floats:
        """Signed volumes of the candidates over a face; the sign is exact."""
        a, b, c = face
        normal, largest = self._normal(face)
        w = self.points[candidates] - self.points[a]
        volumes: Floats = w @ np.array(normal)
        permanent = np.abs(w) @ np.array(largest)
        for k in np.flatnonzero(np.abs(volumes) <= _ROUNDING * permanent):
            volumes[k] = self._exact_side(a, b, c, int(candidates[k])) * np.finfo(np.float64).tiny
        return volumes

    def _normal(self, face: tuple[int, int, int]) -> tuple[Triple, Triple]:
        """(b−a) × (c−a), and the permanent of each component: the same sums with absolute values."""
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (self.rows[k] for k in face)
        ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
        normal = (uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx)
        largest = (abs(uy * vz) + abs(uz * vy), abs(uz * vx) + abs(ux * vz), abs(ux * vy) + abs(uy * vx))
        return normal, largest

    def _is_outside(self, face: tuple[int, int, int], p: int) -> bool:
        """Whether one point is in front of a face; exact as `_sides` is."""
        (nx, ny, nz), (lx, ly, lz) = self._normal(face)
        (ax, ay, az), (px, py, pz) = self.rows[face[0]], self.rows[p]
        wx, wy, wz = px - ax, py - ay, pz - az
        volume = wx * nx + wy * ny + wz * nz
        if abs(volume) <= _ROUNDING * (abs(wx) * lx + abs(wy) * ly + abs(wz) * lz):
            return self._exact_side(*face, p) > 0
        return volume > 0.0

    def _farthest(self, face: int) -> int:
        candidates = self.outside[face]
        return int(candidates[np.argmax(self._sides(self.faces[face], candidates))])

    def _visible_from(self, apex: int, start: int) -> list[int]:
        """Faces that the point is in front of; they form one patch around `start`."""
        seen, patch, stack = {start}, [start], [start]
        while stack:
            a, b, c = self.faces[stack.pop()]
            for edge in ((b, a), (c, b), (a, c)):
                other = self.edges[edge]
                if other in seen:
                    continue
                seen.add(other)
                if self._is_outside(self.faces[other], apex):
                    patch.append(other)
                    stack.append(other)
        return patch

    def _replace(self, visible: list[int], apex: int) -> list[int]:
        """Remove visible faces, close the hole with triangles to the apex; returns new faces with points outside."""
        gone = set(visible)
        rim = []
        for face in visible:
            a, b, c = self.faces[face]
            rim += [edge for edge in ((a, b), (b, c), (c, a)) if self.edges[edge[::-1]] not in gone]
        orphans = np.unique(np.concatenate([self.outside[face] for face in visible]))
        for face in visible:
            a, b, c = self.faces.pop(face)
            del self.outside[face], self.edges[a, b], self.edges[b, c], self.edges[c, a]
        return self._add([(a, b, apex) for a, b in rim], orphans[orphans != apex])

    def _add(self, triangles: list[tuple[int, int, int]], candidates: NDArray[np.int64]) -> list[int]:
        """Add faces; each candidate is assigned to the first face that it is in front of, or dropped if inside."""
        added = []
        for a, b, c in triangles:
            face, self.next_face = self.next_face, self.next_face + 1
            self.faces[face] = (a, b, c)
            self.edges[a, b] = self.edges[b, c] = self.edges[c, a] = face
            in_front = self._sides((a, b, c), candidates) > 0.0 if len(candidates) else np.zeros(0, dtype=bool)
            self.outside[face] = candidates[in_front]
            candidates = candidates[~in_front]
            if len(self.outside[face]):
                added.append(face)
        return added


def _whole_numbers(points: Floats) -> list[tuple[int, int, int]]:
    """The points times one power of two, as integers, without rounding."""
    numbers = [[Fraction(float(x)) for x in point] for point in points]
    scale = max(x.denominator for point in numbers for x in point)
    return [(int(x * scale), int(y * scale), int(z * scale)) for x, y, z in numbers]


def polyhedron_volumes(corners: Floats) -> Floats:
    """Signed volumes (m,) of the tetrahedra between triangles (m, 3, 3) and the origin; m³."""
    volumes: Floats = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    return volumes


def polyhedron_moments(vertices: Floats, faces: Faces) -> tuple[float, Floats, Floats]:
    """Volume (m³), centre of mass (m) and inertia of one kilogram about it (m²) of a closed, outward-facing surface.

    The solid is the signed sum of the tetrahedra between each triangle (a, b, c) and a point o, of volume
    V = (a−o) · (b−o) × (c−o) / 6. Seen from o, ∫ x xᵀ = V/20 · (s sᵀ + Σ x xᵀ), with s = Σ x over the corners.
    """
    origin = vertices.mean(axis=0)
    corners = (vertices - origin)[faces]
    volumes = polyhedron_volumes(corners)
    volume = float(volumes.sum())
    total = corners.sum(axis=1)
    com = np.einsum("i,ij->j", volumes, total) / (4.0 * volume)
    second = np.einsum("i,ij,ik->jk", volumes, total, total) + np.einsum("i,inj,ink->jk", volumes, corners, corners)
    covariance = second / (20.0 * volume) - np.outer(com, com)
    inertia = np.trace(covariance) * np.eye(3) - covariance
    return volume, origin + com, 0.5 * (inertia + inertia.T)


def checked_faces(faces: ArrayLike, vertices: Floats) -> Faces:
    """`faces` as an (m, 3) array of indices that closes a solid and faces outward, or `SceneError`."""
    try:
        triangles = np.asarray(faces)
    except ValueError:
        raise SceneError(
            "must be triangles of three vertex numbers, found lists of other lengths", field="faces"
        ) from None
    if triangles.ndim != 2 or triangles.shape[1] != 3 or not np.issubdtype(triangles.dtype, np.integer):
        raise SceneError(
            f"must be triangles of three vertex numbers, found an array of shape {triangles.shape} "
            f"and type {triangles.dtype}",
            field="faces",
        )
    if not len(triangles):
        raise SceneError("must close a surface, found no triangle; leave faces out for the convex hull", field="faces")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        wrong = int(triangles.min() if triangles.min() < 0 else triangles.max())
        raise SceneError(f"vertex {wrong} does not exist, there are {len(vertices)} (0 first)", field="faces")
    edges = np.concatenate((triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]))
    forward = {tuple(edge) for edge in edges.tolist()}
    if len(forward) != len(edges) or any((b, a) not in forward for a, b in forward):
        raise SceneError("must close a surface, each edge shared by two triangles of the same sense", field="faces")
    if polyhedron_volumes(vertices[triangles] - vertices.mean(axis=0)).sum() <= 0.0:
        raise SceneError("must run counter-clockwise seen from outside, found them inside out", field="faces")
    return triangles.astype(np.int64)


def dent(vertices: Floats, faces: Faces) -> tuple[int, int, float] | None:
    """The least convex edge of a closed surface: (face, vertex in front of it, height; m), or None if it is convex.

    A closed surface is convex if it is convex at every edge. Heights within a millionth of its extent count as flat.

    >>> corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.0)])
    >>> dent(corners, np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])) is None
    True
    """
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    normal = across / np.where(area > 0.0, area, 1.0)[:, None]
    owner = {(row[k], row[k - 2]): (f, row[k - 1]) for f, row in enumerate(faces.tolist()) for k in range(3)}
    sides = [(f, owner[b, a][1]) for (a, b), (f, _) in owner.items()]
    face, beyond = np.array(sides).T
    heights = np.einsum("ni,ni->n", normal[face], vertices[beyond] - corners[face, 0])
    worst = int(heights.argmax())
    if heights[worst] <= 1e-6 * float(np.ptp(vertices, axis=0).max()):
        return None
    return int(face[worst]), int(beyond[worst]), float(heights[worst])
