"""Cylinders, ellipsoids and hulls beside coal (GJK and EPA).

Coal's answer counts where it is what its own normal says: deep in curved shapes it is not always. For any direction the
gap along it is not above the truth, so that of two answers the greater one is right.
"""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest

from collision.convex_pairs import (
    BOX,
    CAPSULE,
    COMBINATIONS,
    CYLINDER,
    ELLIPSOID,
    FLAT,
    HULL,
    SPHERE,
    Bodies,
    gaps_along,
    pairs,
    pool,
    touches,
)
from poise.model.solids import Solid

names = [f"{a.name}-{b.name}".lower() for a, b in COMBINATIONS]
every_pair = pytest.mark.parametrize("kinds", COMBINATIONS, ids=names)


def solid(shape: Bodies, k: int) -> Any:
    size = shape.size[k]
    if shape.kind == SPHERE:
        return coal.Sphere(size[0])
    if shape.kind == BOX:
        return coal.Box(*(2.0 * size))
    if shape.kind == ELLIPSOID:
        return coal.Ellipsoid(*size)
    if shape.kind == HULL:
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in shape.corners(k):
            points.append(point)
        for face in pool()[shape.hull[k]].faces:
            triangles.append(coal.Triangle(*(int(i) for i in face)))
        return coal.Convex(points, triangles)
    kind = {CAPSULE: coal.Capsule, CYLINDER: coal.Cylinder}[shape.kind]
    return kind(size[0], 2.0 * size[1])


def coal_says(a: Bodies, b: Bodies) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (N,) and normals (N, 3)."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    gaps, normals = [], []
    for k in range(len(a)):
        result = coal.DistanceResult()
        places = [coal.Transform3s(shape.rotation[k], shape.position[k]) for shape in (a, b)]
        gaps.append(coal.distance(solid(a, k), places[0], solid(b, k), places[1], request, result))
        normals.append(np.array(result.normal))
    return np.array(gaps), np.array(normals)


def check(kinds: tuple[Solid, Solid], seed: int, n: int, size: str) -> None:
    a, b = pairs(np.random.default_rng(seed), kinds, n, size)
    found = touches(a, b)
    gap, index = found.deepest(n)
    theirs, normal = coal_says(a, b)
    along = np.where(np.linalg.norm(normal, axis=1) > 0.5, gaps_along(a, b, normal[:, None])[:, 0], -np.inf)
    exact = kinds[0] == SPHERE or (kinds[1] == HULL and kinds[0] in (CAPSULE, *FLAT))
    bound = 1e-6 if exact else 1e-4 * np.abs(gap) + 1e-6
    assert (along < gap + bound).all(), "coal knows a better direction"
    sound = np.abs(along - theirs) < 1e-6
    assert sound.mean() > (0.8 if size == "usual" else 0.5)
    same = np.abs(gap - theirs) < bound
    assert same[sound].mean() > 0.85
    # what is apart by d has one direction; one along which the gap is less by δ is off by √(2 δ / d) at most
    apart = same & (gap > 1e-3 * (a.extent() + b.extent()))
    assert apart.sum() > 0.1 * n
    angle = np.linalg.norm(found.normal[index] - normal, axis=1)
    off = np.sqrt(2.0 * np.abs(gap - along)[apart] / gap[apart])
    assert (angle[apart] < 1e-3 + 2.0 * off).all()


@every_pair
@pytest.mark.parametrize("size", ["usual", "any"])
def test_gaps(kinds: tuple[Solid, Solid], size: str) -> None:
    check(kinds, 0, 1000, size)


@pytest.mark.slow
@every_pair
def test_gaps_of_many(kinds: tuple[Solid, Solid]) -> None:
    for seed in range(10):
        check(kinds, 10 + seed, 10_000, "usual")
