"""Height fields and meshes with every convex shape: beside boxes, hulls and planes, closed forms, and brute force.

Bounds. What is flat or a ball is exact: gaps to 1e-9 m, at sizes of about a metre. On cylinders and ellipsoids the
search ends at 1e-4 of the gap, and 2 √ε of the sizes (see test_convex).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from collision.box_cases import rotations, unit_vectors
from collision.surface_cases import (
    CURVED,
    KINDS,
    NEAREST,
    TETRAHEDRON,
    TETRAHEDRON_FACES,
    Stage,
    box_mesh,
    grid_faces,
    grid_vertices,
    hills,
    point_triangle,
    shapes,
)
from poise.collision.ccd.time_of_impact import impacts
from poise.kernel.memory import F32, F32X16

Array = NDArray[Any]
SIZE = (1.0, 0.8, 0.6)
SOLIDS = {
    "box": (poise.triangle_mesh(*box_mesh(SIZE, 1)), poise.box(*SIZE)),
    "fine box": (poise.triangle_mesh(*box_mesh(SIZE, 6)), poise.box(*SIZE)),
    "tetrahedron": (poise.triangle_mesh(TETRAHEDRON, TETRAHEDRON_FACES), poise.convex(TETRAHEDRON)),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def poses(rng: np.random.Generator, n: int, turned: bool, low: float, high: float) -> tuple[Array, Array]:
    """Places about the origin at distances from low to high, with random rotations or none."""
    rotation = rotations(rng, n) if turned else np.tile(np.eye(3), (n, 1, 1))
    return unit_vectors(rng, n) * rng.uniform(low, high, (n, 1)), rotation


def smallest(stage: Stage) -> Array:
    """Least extent of each shape; m."""
    size = stage.model.solids.size[: stage.n]
    return 2.0 * np.where(size > 0.0, size, np.inf).min(axis=1)


def bound(kind: str, gap: Array) -> Array:
    return 1e-4 * np.abs(gap) + 1e-7 if kind in CURVED else 1e-9 + 0.0 * gap


def flat(heights: Array, surface: str) -> Any:
    """A terrain of 2 m as a height field or as an open mesh."""
    if surface == "field":
        return poise.height_field(heights, 2.0, 2.0)
    return poise.triangle_mesh(grid_vertices(heights, 2.0, 2.0), grid_faces(*heights.shape), open=True)


every_surface = pytest.mark.parametrize("surface", ["field", "mesh"])


def check_solid(kind: str, solid: str, seed: int, n: int, rounds: int) -> tuple[int, int]:
    """Gaps and normals of shapes that are apart or overlap by up to a fifth of their size: (compared, not the best).

    In overlaps deeper than a tenth, another way out may be taken than the shortest, if it is hardly longer.
    """
    rng = np.random.default_rng(seed)
    parts = shapes(rng, kind, n, 0.2)
    mesh, convex = (Stage(parts, other) for other in SOLIDS[solid])
    compared = longer = 0
    for turn in range(rounds):
        place, rotation = poses(rng, n, turn % 3 > 0, 0.3, 1.2)
        found, wanted = mesh.touch(place, rotation, 0.3), convex.touch(place, rotation, 0.3)
        assert all(np.isfinite(x).all() for x in (found.gap, found.normal, found.point))
        assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max(initial=0.0) < 1e-14
        (gap, index), (truth, known) = found.deepest(n), wanted.deepest(n)
        counts = np.isfinite(truth) & (truth > -0.2 * smallest(mesh))
        assert (index[counts] >= 0).all()
        off = counts.copy()
        off[counts] = ~(np.abs(gap[counts] - truth[counts]) < bound(kind, truth[counts]))
        assert (truth[off] < -0.1 * smallest(mesh)[off]).all()
        assert ((gap[off] < truth[off]) & (gap[off] > 1.05 * truth[off])).all()
        longer += int(off.sum())
        # apart by d the direction is unique; one along which the gap is less by δ is off by √(2 δ / d)
        apart = counts & (truth > 0.02)
        angle = np.linalg.norm(found.normal[index] - wanted.normal[known], axis=1)
        assert (angle[apart] < 1e-3).all()
        compared += int(counts.sum())
    return compared, longer


@every_kind
@pytest.mark.parametrize("solid", list(SOLIDS))
def test_meshes_of_convex_solids_are_as_the_solids(kind: str, solid: str) -> None:
    compared, longer = check_solid(kind, solid, 0, 50, 12)
    assert compared > 200
    assert longer == 0


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("solid", list(SOLIDS))
def test_many_beside_convex_solids(kind: str, solid: str) -> None:
    rounds = 40 if kind in CURVED else 400
    compared, longer = np.sum([check_solid(kind, solid, 100 + seed, 50, rounds) for seed in range(5)], axis=0)
    assert compared > 20 * rounds
    assert longer <= 2e-4 * compared


@every_kind
@every_surface
def test_a_flat_floor_is_a_plane_across_its_seams(kind: str, surface: str) -> None:
    """Slid over a floor of many triangles, at slight overlap: the normals and gaps of a plane, and no others."""
    rng = np.random.default_rng(1)
    n = 40
    parts = shapes(rng, kind, n, 0.15)
    floor, plane = Stage(parts, flat(np.zeros((14, 11)), surface)), Stage(parts, poise.plane())
    for turn in range(8):
        _, rotation = poses(rng, n, turn % 2 > 0, 0.3, 1.0)
        place = np.concatenate((rng.uniform(-0.4, 0.4, (n, 2)), np.ones((n, 1))), axis=1)
        if turn % 4 == 0:
            place[:, :2] = np.round(place[:, :2] * 10) / 10  # on seams
        reach = plane.touch(place, rotation, 10.0).deepest(n)[0]
        place[:, 2] -= reach + rng.choice([0.0, 1e-3, 0.02, -1e-3], n)
        found, wanted = floor.touch(place, rotation, 0.01), plane.touch(place, rotation, 0.01)
        gap, truth = found.deepest(n)[0], wanted.deepest(n)[0]
        assert np.abs(gap - truth).max() < 1e-9
        assert np.abs(found.normal - (0.0, 0.0, -1.0)).max() < 1e-9
        assert np.abs(found.point[:, 2] - 0.5 * found.gap).max() < 1e-9
        if kind in ("sphere", "capsule", "box"):
            assert (found.count(n) == wanted.count(n)).all()
            for k in range(n):
                assert np.allclose(np.sort(found.of(k).gap), np.sort(wanted.of(k).gap), rtol=0.0, atol=1e-9)


@every_surface
def test_a_box_on_a_fine_floor_stands_on_its_corners(surface: str) -> None:
    rng = np.random.default_rng(2)
    stage = Stage([poise.box(0.5, 0.3, 0.2)], flat(np.zeros((60, 60)), surface))
    for _ in range(20):
        angle = rng.uniform(0.0, 6.3)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[(c, -s, 0), (s, c, 0), (0, 0, 1.0)]])
        place = np.array([[*rng.uniform(-0.3, 0.3, 2), 0.0995]])
        found = stage.touch(place, turn, 0.01)
        corners = place[0, :2] + np.array([(x, y) for x in (-0.25, 0.25) for y in (-0.15, 0.15)]) @ turn[0, :2, :2].T
        assert len(found.gap) == 4
        assert np.allclose(found.gap, -0.0005, rtol=0.0, atol=1e-12)
        off = np.linalg.norm(found.point[:, None, :2] - corners, axis=2)
        assert off.min(axis=0).max() < 1e-12


def fold(rise: float) -> Array:
    """Heights of a straight valley (rise > 0) or ridge along y: |x| · rise."""
    return np.abs(np.linspace(-1.0, 1.0, 9))[None] * rise * np.ones((7, 1))


@every_surface
@pytest.mark.parametrize("rise", [0.2, 1.0, 3.0])
def test_a_ball_in_a_valley_leans_on_both_slopes(surface: str, rise: float) -> None:
    r, length = 0.1, np.hypot(1.0, rise)
    stage = Stage([poise.sphere(r)], flat(fold(rise), surface))
    for y in (0.0, 0.05, 0.123):
        found = stage.touch(np.array([[0.0, y, (r - 1e-3) * length]]), np.eye(3)[None], 0.0)
        order = np.argsort(found.normal[:, 0])
        assert np.allclose(found.normal[order], [(-rise / length, 0, -1 / length), (rise / length, 0, -1 / length)])
        assert np.allclose(found.gap, -1e-3, rtol=0.0, atol=1e-12)


@every_surface
@pytest.mark.parametrize("rise", [-0.2, -1.0, -3.0])
def test_a_ball_on_a_ridge(surface: str, rise: float) -> None:
    """Over the wedge of the ridge the normal leads to it; beside it, it is that of the slope."""
    r, length = 0.1, np.hypot(1.0, rise)
    stage = Stage([poise.sphere(r)], flat(fold(rise), surface))
    limit = np.arctan(-rise)
    for angle in np.linspace(-0.99, 0.99, 7) * limit:
        up = np.array((np.sin(angle), 0.0, np.cos(angle)))
        found = stage.touch(((r - 1e-3) * up + (0, 0.05, 0))[None], np.eye(3)[None], 0.0)
        assert len(found.gap) == 1
        assert np.allclose(found.normal[0], -up, rtol=0.0, atol=1e-9)
        assert np.isclose(found.gap[0], -1e-3, rtol=0.0, atol=1e-12)
    up = np.array((-rise, 0.0, 1.0)) / length
    foot = np.array((0.3, 0.05, 0.3 * rise))
    found = stage.touch((foot + (r - 1e-3) * up)[None], np.eye(3)[None], 0.0)
    assert np.allclose(found.normal, -up[None], rtol=0.0, atol=1e-9)


@every_surface
def test_a_box_in_a_valley_touches_each_slope(surface: str) -> None:
    stage = Stage([poise.box(0.4, 0.3, 0.2)], flat(fold(1.0), surface))
    found = stage.touch(np.array([[0.0, 0.0, 0.2 + 0.1 - 1e-3]]), np.eye(3)[None], 0.0)
    assert sorted(found.normal[:, 0].round(6).tolist()) == [-0.707107] * 2 + [0.707107] * 2
    assert np.allclose(found.gap, -1e-3 / np.sqrt(2.0), rtol=0.0, atol=1e-12)
    assert np.allclose(np.sort(np.abs(found.point[:, 1])), 0.15, rtol=0.0, atol=1e-9)


def heights_at(heights: Array, place: Array) -> Array:
    """Heights of a terrain of 2 m under points within it."""
    cells = len(heights) - 1
    grid = np.clip((place[:, :2] + 1.0) * 0.5 * cells, 0.0, cells - 1e-9)
    (i, j), (u, v) = np.floor(grid.T).astype(int), grid.T % 1.0
    a, b, c, d = heights[j, i], heights[j, i + 1], heights[j + 1, i + 1], heights[j + 1, i]
    return np.where(u >= v, a + u * (b - a) + v * (c - b), a + v * (d - a) + u * (c - d))


def check_spheres(surface: str, seed: int, n: int) -> None:
    """Centres outside of a random terrain: the least of all distances to triangles."""
    rng = np.random.default_rng(seed)
    heights = hills(rng, 12, (0.05, 0.2, 0.4)[seed % 3])
    corners = grid_vertices(heights, 2.0, 2.0)[grid_faces(12, 12)]
    stage = Stage(shapes(rng, "sphere", n, 0.1), flat(heights, surface))
    place = np.concatenate((rng.uniform(-1.2, 1.2, (n, 2)), rng.uniform(-0.1, 0.6, (n, 1))), axis=1)
    inside = np.abs(place[:, :2]).max(axis=1) < 1.0
    above = place[:, 2] > heights_at(heights, place)
    truth = point_triangle(place, corners).min(axis=1) - stage.model.solids.size[:n, 0]
    for limit in (NEAREST, 0.3):
        found = stage.touch(place, np.tile(np.eye(3), (n, 1, 1)), limit)
        gap, index = found.deepest(n)
        counts = above & inside & (truth < limit)
        assert counts.sum() > 0.2 * n
        assert np.abs(gap[counts] - truth[counts]).max() < 1e-9
        # the normal of a triangle is taken where the gap along it is less than the greatest by 1e-9 of it or less
        half = 0.5 * found.gap[:, None] * found.normal
        off = point_triangle((found.point + half)[index[counts]], corners).min(axis=1)
        assert (off < 1e-9 + np.sqrt(2e-9) * point_triangle(place[counts], corners).min(axis=1)).all()


@every_surface
def test_spheres_over_random_terrain(surface: str) -> None:
    for seed in range(4):
        check_spheres(surface, seed, 250)


@pytest.mark.slow
@every_surface
def test_many_spheres_over_random_terrain(surface: str) -> None:
    for seed in range(100):
        check_spheres(surface, 100 + seed, 1000)


@every_kind
def test_nothing_is_lost_in_a_field(kind: str) -> None:
    """Solid below: wherever a shape is under the surface, it is pushed up and out."""
    rng = np.random.default_rng(3)
    n = 60
    stage = Stage(shapes(rng, kind, n, 0.05), flat(hills(rng, 9, 0.2), "field"))
    for _ in range(5):
        _, rotation = poses(rng, n, True, 0.1, 0.2)
        place = np.concatenate((rng.uniform(-0.7, 0.7, (n, 2)), rng.uniform(-0.8, -0.25, (n, 1))), axis=1)
        found = stage.touch(place, rotation, 0.0)
        assert (found.count(n) > 0).all()
        assert (found.normal[:, 2] < 0.0).all()
        assert (found.deepest(n)[0] < 0.0).all()


def test_a_mesh_pushes_to_its_outside_only() -> None:
    """Half in a thin plate it comes out where it came from; under an open sheet there is nothing."""
    plate = Stage([poise.box(0.2, 0.2, 0.2)] * 2, poise.triangle_mesh(*box_mesh((1.0, 1.0, 0.01), 5)))
    found = plate.touch(np.array([(0.1, 0.0, 0.085), (0.1, 0.0, -0.085)]), np.tile(np.eye(3), (2, 1, 1)), 0.0)
    assert np.allclose(found.gap, -0.02, rtol=0.0, atol=1e-12)
    assert np.allclose(found.normal[found.pair == 0], (0, 0, -1), rtol=0.0, atol=1e-12)
    assert np.allclose(found.normal[found.pair == 1], (0, 0, 1), rtol=0.0, atol=1e-12)
    sheet = Stage([poise.box(0.2, 0.2, 0.2), poise.sphere(0.1)], flat(np.zeros((6, 6)), "mesh"))
    below = np.array([(0.03, 0.02, -0.15), (0.03, 0.02, -0.101)])
    assert len(sheet.touch(below, np.tile(np.eye(3), (2, 1, 1)), 0.01).gap) == 0
    sunk = sheet.touch(below + np.array((0.0, 0.0, 0.1)), np.tile(np.eye(3), (2, 1, 1)), 0.01)
    assert np.allclose(sunk.deepest(2)[0], (-0.15, -0.101), rtol=0.0, atol=1e-12)
    assert np.allclose(sunk.normal, (0, 0, -1), rtol=0.0, atol=1e-12)


@every_kind
@pytest.mark.parametrize("size", [1e-3, 0.1, 100.0])
def test_hard_places(kind: str, size: float) -> None:
    """Centres on corners, on edges, in triangles and slivers, of any size: numbers, few touches, and no others."""
    rng = np.random.default_rng(4)
    heights = hills(rng, 7, 0.5)
    vertices, faces = grid_vertices(heights, 2.0, 2.0), grid_faces(7, 7)
    vertices[10] = 0.5 * (vertices[9] + vertices[11]) + (0, 1e-9, 0)  # slivers beside it
    n = 20
    parts = shapes(rng, kind, n, size)
    pick = rng.integers(len(faces), size=n)
    share = rng.dirichlet((1, 1, 1), n)
    share[:5], share[5:10] = (1, 0, 0), (0.5, 0.5, 0)
    for surface in (poise.triangle_mesh(vertices, faces, open=True), poise.height_field(heights, 2.0, 2.0)):
        stage = Stage(parts, surface)
        for turned in (False, True):
            place = np.einsum("nk,nki->ni", share, vertices[faces[pick]])
            _, rotation = poses(rng, n, turned, 0.1, 0.2)
            for limit in (0.0, 0.01, NEAREST):
                found = stage.touch(place, rotation, limit)
                assert all(np.isfinite(x).all() for x in (found.gap, found.normal, found.point))
                assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max(initial=0.0) < 1e-13
                assert (found.gap <= limit).all()
                assert found.count(n).max() <= 8
                for k in range(n):
                    assert len(set(found.of(k).feature.tolist())) == found.count(n)[k]


@every_kind
@every_surface
def test_float32_and_lanes(kind: str, surface: str) -> None:
    """Gaps of float32 lanes beside float64: 1e-4 of sizes of about a metre."""
    rng = np.random.default_rng(5)
    n = 30
    heights = hills(rng, 9, 0.15)
    parts = shapes(rng, kind, n, 0.15)
    exact = Stage(parts, flat(heights, surface))
    _, rotation = poses(rng, n, True, 0.1, 0.2)
    place = np.concatenate((rng.uniform(-0.5, 0.5, (n, 2)), np.full((n, 1), 3.0)), axis=1)
    place[:, 2] -= exact.touch(place, rotation, NEAREST).deepest(n)[0] + rng.choice([0.005, -0.02, 0.0], n)
    gap = exact.touch(place, rotation, 0.05).deepest(n)[0]
    for width in (F32, F32X16):
        stage = Stage(parts, flat(heights, surface), width)
        single = stage.touch(place, rotation, 0.05)
        near = gap < 0.04
        assert np.abs(single.deepest(n)[0][near] - gap[near]).max() < 1e-4
        if width is F32X16:
            assert np.array_equal(stage.found(15).gap, single.gap)


@every_surface
def test_features_stay_while_a_box_rests(surface: str) -> None:
    stage = Stage([poise.box(0.3, 0.3, 0.2)], flat(np.zeros((6, 6)), surface))
    still = [stage.touch(np.array([[0.01, 0.02, 0.0995 - d]]), np.eye(3)[None], 0.0) for d in (0.0, 1e-5, 2e-4)]
    features = [sorted(found.feature.tolist()) for found in still]
    assert features[0] == features[1] == features[2]
    assert len(set(features[0])) == 4


@every_surface
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "hull"])
def test_a_bullet_does_not_pass_a_terrain(surface: str, kind: str) -> None:
    rng = np.random.default_rng(6)
    heights = hills(rng, 9, 0.2)
    for _ in range(5):
        scene = poise.Scene(gravity=(0, 0, 0))
        (bullet,) = shapes(rng, kind, 1, 0.01)
        scene.add(bullet, name="bullet", position=(*rng.uniform(-0.5, 0.5, 2), 4.0))
        scene.add(flat(heights, surface), name="terrain", fixed=True)
        model = scene.compile()
        v = np.array([*rng.normal(size=2) * 50, -1000.0, 0, 0, 0])
        (hit,) = impacts(model, model.q_rest, v, 1 / 100)
        stage = Stage([bullet], flat(heights, surface))
        place = np.array([model.q_rest[:3] + v[:3] * hit.time])
        assert abs(stage.touch(place, np.eye(3)[None], NEAREST).deepest(1)[0][0]) < 1e-8
        before = stage.touch(place - v[:3] * 1e-5, np.eye(3)[None], NEAREST).deepest(1)[0][0]
        assert before > 1e-3


def test_planes_see_the_corners_of_surfaces() -> None:
    stage = Stage([poise.plane()], poise.triangle_mesh(*box_mesh((1.0, 1.0, 1.0), 3)))
    found = stage.touch(np.array([[0.0, 0.0, -0.49]]), np.eye(3)[None], 0.0)
    assert np.allclose(found.gap, -0.01, rtol=0.0, atol=1e-12)
    assert len(found.gap) == 4
    assert np.allclose(np.abs(found.point[:, :2]), 0.5)
    assert np.allclose(found.normal, (0, 0, 1))
