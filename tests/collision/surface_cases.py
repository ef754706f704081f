"""Many convex shapes, each alone with one other shape, at any pose; meshes and terrains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from collision.many_pairs import Touches
from poise.collision.collision_layout import (
    CONTACTS,
    MANIFOLD,
    MOST_TOUCHES,
    PAIRS,
    PLACES,
    SHAPES,
    contacts_block,
    pairs_block,
    shapes_block,
)
from poise.collision.narrowphase.dispatch import collide
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.dynamics.dynamics_layout import matrices
from poise.kernel.jit import entry
from poise.kernel.memory import F64, At, Width, single
from poise.model.shapes import Shape

Array = NDArray[Any]
NEAREST = 1e30
"""A limit that asks for the nearest touch."""
_collide = entry(
    collide,
    SHAPES,
    PLACES,
    PAIRS,
    CONTACTS,
    At(MANIFOLD, single),
    extra=("float64",),
)


class Stage:
    """N shapes, each in a pair with one other that stays where it is."""

    def __init__(self, shapes: list[Shape], other: Shape, width: Width = F64) -> None:
        scene = poise.Scene()
        for k, shape in enumerate([*shapes, other]):
            scene.add(shape, name=f"body{k}", fixed=True)
        self.model = scene.compile()
        self.n, self.width = len(shapes), width
        solids = self.model.solids
        self.own = matrices(solids.quat_wxyz).reshape(-1, 3, 3)
        self.offset = solids.position
        self.swapped = bool(solids.kind[0] > solids.kind[-1])
        last = np.full(self.n, self.n)
        pairs = np.stack((last, np.arange(self.n)) if self.swapped else (np.arange(self.n), last), axis=1)
        self.shapes = shapes_block(solids, width, np.zeros(0, np.int32))
        self.pairs = pairs_block(pairs.astype(np.int32), width)
        self.contacts = contacts_block(width, MOST_TOUCHES * self.n)
        self.manifold = manifold_block(width)

    def touch(self, position: Array, rotation: Array, limit: float) -> Touches:
        """Touches of shape k, placed so, with the other: normals from it to the other."""
        places = np.concatenate((position, np.zeros((1, 3))))
        turns = np.concatenate((rotation, np.eye(3)[None]))
        where = PLACES.block(
            self.width,
            position=self._lanes(places + np.einsum("nij,nj->ni", turns, self.offset)),
            rotation=self._lanes((turns @ self.own).reshape(-1, 9)),
        )
        blocks = (self.shapes, where, self.pairs, self.contacts, self.manifold)
        _collide[self.width](*(block.handle for block in blocks), limit)
        return self.found(0)

    def _lanes(self, x: Array) -> Array:
        return x if self.width.lanes == 1 else np.repeat(x[:, :, None], self.width.lanes, axis=2)

    def found(self, lane: int) -> Touches:
        """What was found in one lane."""
        arrays = {
            name: x if self.width.lanes == 1 else np.asarray(x)[..., lane] for name, x in self.contacts.arrays.items()
        }
        n = int(arrays["count"][0])
        assert n <= MOST_TOUCHES * self.n
        normal = np.array(arrays["normal"][:n], np.float64)
        return Touches(
            np.array(arrays["b" if self.swapped else "a"][:n], np.int64),
            np.array(arrays["gap"][:n], np.float64),
            -normal if self.swapped else normal,
            np.array(arrays["point"][:n], np.float64),
            np.array(arrays["feature"][:n], np.int64),
        )


def points_of_hull(rng: np.random.Generator) -> Array:
    return rng.normal(size=(int(rng.integers(6, 14)), 3))


KINDS = {
    "sphere": lambda rng, s: poise.sphere(s * rng.uniform(0.5, 2.0)),
    "capsule": lambda rng, s: poise.capsule(s * rng.uniform(0.5, 1.5), s * rng.uniform(0.5, 5.0)),
    "box": lambda rng, s: poise.box(*(s * rng.uniform(0.7, 4.0, 3))),
    "cylinder": lambda rng, s: poise.cylinder(s * rng.uniform(0.5, 2.0), s * rng.uniform(0.7, 4.0)),
    "ellipsoid": lambda rng, s: poise.ellipsoid(*(s * rng.uniform(0.7, 4.0, 3))),
    "hull": lambda rng, s: poise.convex(s * points_of_hull(rng)),
}
CURVED = ("cylinder", "ellipsoid")


def shapes(rng: np.random.Generator, kind: str, n: int, size: float) -> list[Shape]:
    """N shapes of a kind, of about a size (m)."""
    return [KINDS[kind](rng, size) for _ in range(n)]


# ---- surfaces --------------------------------------------------------------------------------------------------------


def grid_faces(rows: int, columns: int) -> Array:
    """Triangles over a grid of vertices, row by row, split as cells of height fields are."""
    j, i = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a = (j * columns + i).reshape(-1)
    b, c, d = a + 1, a + columns + 1, a + columns
    return np.stack((np.stack((a, b, c), axis=1), np.stack((a, c, d), axis=1)), axis=1).reshape(-1, 3)


def grid_vertices(heights: Array, x: float, y: float) -> Array:
    """Vertices of a height field."""
    rows, columns = heights.shape
    grid = np.meshgrid(np.linspace(-0.5, 0.5, columns) * x, np.linspace(-0.5, 0.5, rows) * y)
    return np.stack((grid[0].reshape(-1), grid[1].reshape(-1), heights.reshape(-1)), axis=1)


def box_mesh(size: tuple[float, float, float], cells: int = 1) -> tuple[Array, Array]:
    """Vertices and triangles of a box whose faces are split into so many cells along each edge."""
    line = np.linspace(-0.5, 0.5, cells + 1)
    u, v = (x.reshape(-1) for x in np.meshgrid(line, line))
    vertices, faces = [], []
    for axis in range(3):
        for side in (-0.5, 0.5):
            corner = np.zeros((len(u), 3))
            corner[:, axis], corner[:, axis - 2], corner[:, axis - 1] = side, u, v
            own = grid_faces(cells + 1, cells + 1) + sum(len(x) for x in vertices)
            vertices.append(corner)
            faces.append(own if side > 0 else own[:, ::-1])
    points, numbers = np.unique(np.round(np.concatenate(vertices), 12), axis=0, return_inverse=True)
    return points * np.array(size), numbers.reshape(-1)[np.concatenate(faces)]


TETRAHEDRON = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1.0)]) * 0.5
TETRAHEDRON_FACES = np.array([(0, 1, 2), (0, 3, 1), (0, 2, 3), (1, 3, 2)])


def hills(rng: np.random.Generator, n: int, steep: float) -> Array:
    """Random heights (n, n), of differences up to `steep`."""
    return rng.uniform(-0.5, 0.5, (n, n)) * steep


# ---- the nearest points of triangles, by themselves ------------------------------------------------------------------


def point_triangle(p: Array, corners: Array) -> Array:
    """Distances of points (N, 3) from triangles (M, 3, 3); (N, M)."""
    a, b, c = (corners[:, k] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    inside = np.ones((len(p), len(corners)), bool)
    least = np.full((len(p), len(corners)), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along = end - start
        out = np.cross(along, normal)
        way = p[:, None] - start
        inside &= np.einsum("nmi,mi->nm", way, out) <= 0.0
        s = np.clip(np.einsum("nmi,mi->nm", way, along) / np.einsum("mi,mi->m", along, along), 0.0, 1.0)
        least = np.minimum(least, np.linalg.norm(way - s[..., None] * along, axis=2))
    height = np.abs(np.einsum("nmi,mi->nm", p[:, None] - a, normal))
    return np.where(inside, height, least)
