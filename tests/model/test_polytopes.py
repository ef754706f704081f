"""Hulls as collision reads them: corners, edges, flat sides; and how they lie in the arrays of a model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import poise
from poise.model.errors import SceneError
from poise.model.polytopes import Polytope, polytope

CUBE = np.array(list(product((-0.5, 0.5), repeat=3)))


def check(hull: Polytope) -> None:
    """Euler's formula, sides counter-clockwise and in their planes, corners behind all of them, edges both ways."""
    n, sides = len(hull.vertices), np.split(hull.side_corners, hull.side_start[1:-1])
    edges = np.split(hull.neighbors, hull.neighbor_start[1:-1])
    assert n - sum(map(len, edges)) // 2 + len(hull.faces) == 2
    assert all(k in edges[other] for k in range(n) for other in edges[k])
    scale = np.ptp(hull.vertices, axis=0).max()
    for number, (corners, normal) in enumerate(zip(sides, hull.side_normal, strict=True)):
        points = hull.vertices[corners]
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
        assert np.abs((points - points[0]) @ normal).max() <= 4e-7 * scale
        assert ((hull.vertices - points[0]) @ normal).max() <= 4e-7 * scale
        turns = np.cross(np.roll(points, -1, axis=0) - points, np.roll(points, -2, axis=0) - points) @ normal
        assert (turns > 0.0).all()
        for corner in corners:
            assert number in hull.around[hull.around_start[corner] : hull.around_start[corner + 1]]


@pytest.mark.parametrize("n", [4, 10, 100])
def test_random_hulls(n: int) -> None:
    check(polytope(np.random.default_rng(n).normal(size=(n, 3))))


def test_triangles_in_one_plane_are_one_side() -> None:
    cube = polytope(CUBE)
    check(cube)
    assert np.diff(cube.side_start).tolist() == [4] * 6


def test_single_precision_does_not_split_a_side() -> None:
    """Points rounded to float32 are off by 6e-8 of the extent."""
    angle = np.arange(32) * np.pi / 16
    ring = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    points = np.concatenate([np.insert(ring, 2, z, axis=1) for z in (-1.0, 1.0)])
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    prism = polytope((points @ turn).astype(np.float32))
    check(prism)
    assert sorted(np.diff(prism.side_start).tolist()) == [4] * 32 + [32] * 2


def test_points_on_edges_and_in_sides_are_no_corners_of_these() -> None:
    grid = np.array(list(product((-0.5, 0.0, 0.5), repeat=3)))
    cube = polytope(grid)
    assert sorted(np.diff(cube.side_start).tolist()) == [4] * 6


def test_inner_points_are_left_out_of_a_model() -> None:
    inner = np.random.default_rng(1).uniform(-0.4, 0.4, (20, 3))
    scene = poise.Scene()
    scene.add(poise.convex(np.concatenate((inner, CUBE))))
    scene.add(poise.box(1, 1, 1))
    scene.add(poise.convex([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)]))
    solids = scene.compile().solids
    assert solids.vertex_start.tolist() == [0, 8, 8, 12]
    assert len(solids.side_normal) == len(solids.side_start) - 1 == 10
    assert len(solids.neighbor_start) == len(solids.around_start) == 13
    last = slice(solids.side_start[6], None)
    assert set(solids.side_corners[last].tolist()) == {8, 9, 10, 11}
    start = solids.neighbor_start[8]
    assert set(solids.neighbors[start:].tolist()) == {8, 9, 10, 11}
    assert set(solids.around[solids.around_start[8] :].tolist()) == {6, 7, 8, 9}


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], "in one plane"),
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, np.nan)], "nan"),
        ([(0, 0, 0), (1, 0, 0)], "at least 4"),
    ],
)
def test_hostile_points(points: list[tuple[float, float, float]], found: str) -> None:
    with pytest.raises(SceneError, match=found):
        polytope(points)
