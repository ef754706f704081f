"""Shapes apart from random meshes, beside coal's trees of triangles."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest

import poise
from collision.box_cases import rotations
from collision.surface_cases import CURVED, KINDS, NEAREST, Stage, grid_faces, grid_vertices, hills, shapes
from poise.model.polytopes import polytope
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Shape, Sphere

every_kind = pytest.mark.parametrize("kind", list(KINDS))


def lists(vertices: np.ndarray, faces: np.ndarray) -> tuple[Any, Any]:
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for point in vertices:
        points.append(point)
    for face in faces:
        triangles.append(coal.Triangle(*(int(i) for i in face)))
    return points, triangles


def tree(vertices: np.ndarray, faces: np.ndarray) -> Any:
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(vertices))
    model.addSubModel(*lists(vertices, faces))
    model.endModel()
    return model


def solid(shape: Shape) -> Any:
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.length)
    if isinstance(shape, Cylinder):
        return coal.Cylinder(shape.radius, shape.length)
    if isinstance(shape, Box):
        return coal.Box(*shape.size)
    if isinstance(shape, Ellipsoid):
        return coal.Ellipsoid(*(0.5 * np.array(shape.size)))
    assert isinstance(shape, ConvexMesh)
    hull = polytope(shape.vertices)
    return coal.Convex(*lists(hull.vertices, hull.faces))


def check(kind: str, seed: int, n: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    heights = hills(rng, 10, 0.3)
    vertices, faces = grid_vertices(heights, 2.0, 2.0), grid_faces(10, 10)
    parts = shapes(rng, kind, n, 0.1)
    stage = Stage(parts, poise.triangle_mesh(vertices, faces, open=True))
    field = Stage(parts, poise.height_field(heights, 2.0, 2.0))
    terrain, solids = tree(vertices, faces), [solid(shape) for shape in parts]
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-9
    request.gjk_max_iterations = 500
    for _ in range(rounds):
        rotation = rotations(rng, n)
        place = np.concatenate((rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(0.4, 1.5, (n, 1))), axis=1)
        theirs = np.empty(n)
        for k in range(n):
            where = coal.Transform3s(rotation[k], place[k])
            theirs[k] = coal.distance(solids[k], where, terrain, coal.Transform3s(), request, coal.DistanceResult())
        apart = theirs > 1e-3
        assert apart.sum() > 0.4 * n
        bound = 1e-4 * np.abs(theirs) + 1e-6 if kind in CURVED else 1e-6
        for ours in (stage, field):
            gap = ours.touch(place, rotation, NEAREST).deepest(n)[0]
            assert (np.abs(gap - theirs) < bound)[apart].all()


@every_kind
def test_distances(kind: str) -> None:
    check(kind, 0, 100, 10)


@pytest.mark.slow
@every_kind
def test_many_distances(kind: str) -> None:
    for seed in range(10):
        check(kind, 10 + seed, 200, 50)
