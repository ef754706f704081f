"""Rays by other means than the engine's: roots of convex functions by halving, triangles one by one, 80-bit numbers."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

import poise
from poise.motion.rotations import quat_to_matrix

Real = np.longdouble


def still(shape, position=(0, 0, 0), quat=(1, 0, 0, 0)) -> poise.Model:
    """A shape that stays where it is."""
    scene = poise.Scene()
    scene.add(shape, name="thing", position=position, quat_wxyz=quat, fixed=True)
    return scene.compile()


def rays_about(rng: np.random.Generator, count: int, reach: float, far: float):
    """Rays from anywhere within a ball, at anything in a smaller one."""
    o = rng.normal(size=(count, 3)) * far
    aim = rng.normal(size=(count, 3)) * reach * 0.5
    return o, aim - o


def in_frame(model: poise.Model, o, d):
    """Rays in the frame of the only shape of a model, unit directions, in 80 bits."""
    solids = model.solids
    turn = quat_to_matrix(solids.quat_wxyz[0]).astype(Real)
    d = np.asarray(d, Real)
    d = d / norm(d)[:, None]
    return (np.asarray(o, Real) - solids.position[0].astype(Real)) @ turn, d @ turn


def convex_function(kind: str, size, vertices=None):
    """f(p) of points (n, 3) of the shape's frame, in 80 bits: convex, negative inside, nought on the surface."""
    size = np.asarray(size, Real)
    if kind == "sphere":
        return lambda p: norm(p) - size[0]
    if kind == "capsule":
        core = np.array([0, 0, 1], Real)
        return lambda p: norm(p - np.clip(p[:, 2:], -size[1], size[1]) * core) - size[0]
    if kind == "box":
        return lambda p: (np.abs(p) - size).max(axis=1)
    if kind == "cylinder":
        return lambda p: np.maximum(norm(p[:, :2]) - size[0], np.abs(p[:, 2]) - size[1])
    if kind == "ellipsoid":
        return lambda p: (norm(p / size) - 1) * size.min()
    planes = np.unique(ConvexHull(vertices).equations, axis=0).astype(Real)
    return lambda p: (p @ planes[:, :3].T + planes[:, 3]).max(axis=1)


def norm(p):
    return np.sqrt((p * p).sum(axis=-1))


def crossings(f, o, d, reach):
    """Where rays enter and leave f ≤ 0, (n,) each, and the least f along each; o and d are (n, 3) in 80 bits."""
    middle = -(o * d).sum(axis=1)
    low, high = middle - 2 * reach, middle + 2 * reach

    def at(t):
        return f(o + d * t[:, None])

    a, b = low, high
    for _ in range(130):  # thirds: (2/3)^130 is 1e-23
        u, v = a + (b - a) / 3, b - (b - a) / 3
        left = at(u) < at(v)
        a, b = np.where(left, a, u), np.where(left, v, b)
    deepest = (a + b) / 2
    return _root(at, deepest, low), _root(at, deepest, high), at(deepest)


def _root(at, inside, outside):
    for _ in range(80):
        half = (inside + outside) / 2
        within = at(half) <= 0
        inside, outside = np.where(within, half, inside), np.where(within, outside, half)
    return (inside + outside) / 2


def first_triangle(corners, o, d):
    """Distances (n,) to the nearest of triangles (m, 3, 3), inf where there is none (Möller and Trumbore 1997)."""
    corners, o, d = (np.asarray(x, Real) for x in (corners, o, d))
    nearest = np.full(len(o), np.inf, Real)
    for a, b, c in corners:
        e1, e2 = b - a, c - a
        p = np.cross(d, e2)
        det = p @ e1
        with np.errstate(divide="ignore", invalid="ignore"):
            s = o - a
            u = (s * p).sum(axis=1) / det
            w = np.cross(s, e1)
            v = (d * w).sum(axis=1) / det
            t = (w @ e2) / det
        met = (det != 0) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0)
        nearest = np.where(met & (t < nearest), t, nearest)
    return nearest


def field_triangles(heights, x, y):
    """(m, 3, 3) corners of a height field, each cell split from its least x and y."""
    rows, columns = heights.shape
    xs, ys = np.linspace(-x / 2, x / 2, columns), np.linspace(-y / 2, y / 2, rows)
    points = np.stack((*np.meshgrid(xs, ys), heights), axis=-1)
    p00, p10, p01, p11 = points[:-1, :-1], points[:-1, 1:], points[1:, :-1], points[1:, 1:]
    both = [np.stack(t, axis=2).reshape(-1, 3, 3) for t in ((p00, p10, p11), (p00, p11, p01))]
    return np.concatenate(both)


def round_mesh(times: int = 2):
    """Vertices and faces of an octahedron whose faces have been split into four so many times, on the unit sphere."""
    vertices = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
    vertices = [np.array(v, float) for v in vertices]
    faces = [(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)]
    for _ in range(times):
        known: dict[tuple[int, int], int] = {}

        def half(a: int, b: int, known=known) -> int:
            key = (min(a, b), max(a, b))
            if key not in known:
                known[key] = len(vertices)
                middle = vertices[a] + vertices[b]
                vertices.append(middle / np.linalg.norm(middle))
            return known[key]

        split = []
        for a, b, c in faces:
            ab, bc, ca = half(a, b), half(b, c), half(c, a)
            split += [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        faces = split
    return np.array(vertices), np.array(faces)
