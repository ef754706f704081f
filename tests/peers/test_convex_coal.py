"""Every two convex shapes beside coal (GJK and EPA): gaps, normals, points.

Coal is not always right, deep in curved shapes above all. So every answer is proved by itself, and where the two differ
it is shown who is right. For any direction the gap along it, by the support functions, is not above the truth. Two
points of the shapes are not nearer to each other than the truth. What Poise says is therefore

    not too small    if the gap along its own normal, or another direction, is what it says
    not too great    if its points, that far from each other, are in the shapes; or, where these overlap, as long as
                     nobody knows a direction along which the gap is greater
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import coal
import numpy as np
import pytest
from numpy.typing import NDArray

from collision.box_cases import rotations
from collision.convex_pairs import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FLAT,
    HULL,
    PLANE,
    SPHERE,
    Bodies,
    bodies,
    gaps_along,
    greatest_gap,
    heights,
    outside,
    pairs,
    pool,
    touches,
)
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
KINDS = [kind for kind in Solid if kind <= HULL]
COMBINATIONS = [pair for pair in combinations_with_replacement(KINDS, 2) if pair[1] != PLANE]
every_pair = pytest.mark.parametrize("kinds", COMBINATIONS, ids=[f"{a.name}-{b.name}".lower() for a, b in COMBINATIONS])
SIZES = {"usual": (0.05, 1.0), "any": (5e-4, 50.0)}
LEANING = {(CAPSULE, CYLINDER): 1e-3, (CYLINDER, CYLINDER): 1e-3}
"""Lines that lean by less than this touch side by side, each end with a normal of its own; rad."""


# ---- pairs -----------------------------------------------------------------------------------------------------------


def planes(rng: np.random.Generator, kind: Solid, n: int, size: str) -> tuple[Bodies, Bodies]:
    """Planes, and shapes deep in them, touching, apart; some lie flat."""
    plane = Bodies(PLANE, np.zeros((n, 3)), rng.normal(size=(n, 3)), rotations(rng, n), np.zeros(n, int))
    rotation = rotations(rng, n)
    rotation[: n // 4] = plane.rotation[: n // 4]
    b = bodies(rng, kind, n, *SIZES[size], rotation)
    up = plane.rotation[:, :, 2]
    lift = heights(b, -up[:, None])[0][:, 0]
    lift += rng.choice([-3.0, -1.0, -0.1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 1.0], n) * b.extent()
    return plane, b.at(plane.position + up * lift[:, None])


def on_edges(rng: np.random.Generator, a: Bodies, b: Bodies) -> Bodies:
    """B moved to where an edge of it, or a straight side, crosses one of A, or nearly does."""
    n = len(a)
    one, other = (shape.rotation[np.arange(n), :, rng.integers(3, size=n)] for shape in (a, b))
    across = np.cross(one, other)
    length = np.linalg.norm(across, axis=1)
    along = np.where(length[:, None] > 1e-3, across / np.maximum(length, 1e-3)[:, None], one)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    (top, at_a), (bottom, at_b) = heights(a, along[:, None]), heights(b.at(np.zeros((n, 3))), -along[:, None])
    gap = rng.choice([-0.1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1], n) * np.minimum(a.extent(), b.extent())
    aside = at_a[:, 0] - at_b[:, 0]
    aside -= along * np.einsum("ni,ni->n", aside, along)[:, None]
    middle = along * (top + bottom)[:, :1]
    return b.at(aside * rng.choice([0.0, 1.0], (n, 1)) + middle + along * gap[:, None])


def cases(kinds: tuple[Solid, Solid], seed: int, n: int, size: str) -> tuple[Bodies, Bodies]:
    """Touching, apart, deep, of one centre, parallel, edge on edge; needles and pancakes among them."""
    rng = np.random.default_rng([seed, *kinds])
    if kinds[0] == PLANE:
        return planes(rng, kinds[1], n, size)
    a, b = pairs(rng, kinds, n, size)
    edges = np.arange(n) % 8 == 0
    place = b.position.copy()
    place[edges] = on_edges(rng, a[edges], b[edges]).position
    return a, b.at(place)


def span(a: Bodies, b: Bodies) -> Array:
    """Sizes and distance of pairs; m."""
    return a.extent() + b.extent() + np.linalg.norm(b.position - a.position, axis=1)


def along(a: Bodies, b: Bodies, normal: Array) -> Array:
    """(N,) gaps along normals; a plane has one, its own."""
    if a.kind != PLANE:
        return gaps_along(a, b, normal[:, None])[:, 0]
    up = a.rotation[:, :, 2]
    own = -heights(b.at(b.position - a.position), -up[:, None])[0][:, 0]
    return np.where(np.linalg.norm(normal - up, axis=1) < 1e-6, own, -np.inf)


# ---- coal ------------------------------------------------------------------------------------------------------------


def solid(shape: Bodies, k: int) -> Any:
    size = shape.size[k]
    if shape.kind == PLANE:
        return coal.Halfspace(np.array((0.0, 0.0, 1.0)), 0.0)
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


def coal_says(a: Bodies, b: Bodies) -> tuple[Array, Array]:
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


# ---- comparison ------------------------------------------------------------------------------------------------------


def is_exact(kinds: tuple[Solid, Solid]) -> bool:
    """Whether two shapes have a closed form, or are polytopes and balls."""
    return kinds[0] in (PLANE, SPHERE) or not {CYLINDER, ELLIPSOID} & set(kinds)


def misses(kinds: tuple[Solid, Solid], seed: int, n: int, size: str) -> Array:
    """(N,) pairs of which anything is not as it should be."""
    a, b = cases(kinds, seed, n, size)
    found = touches(a, b)
    gap, index = found.deepest(n)
    assert (index >= 0).all()
    assert all(np.isfinite(x).all() for x in (found.gap, found.normal, found.point))
    normal, middle = found.normal[index], found.point[index]
    bound = np.full(n, 1e-6) if is_exact(kinds) else 1e-4 * np.abs(gap) + 1e-6
    theirs, direction = coal_says(a, b)
    usable = np.abs(np.linalg.norm(direction, axis=1) - 1.0) < 1e-6
    other = np.where(usable, along(a, b, direction), -np.inf)
    leaning = LEANING.get(kinds, 1e-6)
    if kinds in LEANING:
        bound += leaning**2 * span(a, b)
    lost = off_surfaces(kinds, a, b, middle, 0.5 * gap[:, None] * normal)
    # too small; a normal may be off by so little that the gap along it is less only because shapes are long
    own = along(a, b, normal)
    lost |= own < gap - bound - leaning * span(a, b)
    best = np.maximum(own, other)
    if set(kinds) <= set(FLAT):
        for k in np.flatnonzero(best < gap - bound):
            best[k] = greatest_gap(a, b, int(k))
    lost |= best < gap - bound
    # too great: coal knows a better direction
    lost |= other > gap + bound
    # not the same as coal says, though that is neither less than there is nor untrue of coal's own direction
    same = np.abs(gap - theirs) < bound
    lost |= ~(same | (gap > 0.0) | (theirs < gap) | (other < theirs - 0.5 * bound))
    assert same.mean() > (0.8 if size == "usual" else 0.5)
    return lost | other_normals(gap, normal, other, direction, same & usable, span(a, b))


def off_surfaces(kinds: tuple[Solid, Solid], a: Bodies, b: Bodies, middle: Array, half: Array) -> Array:
    """(N,) pairs of which a point, half a gap before or behind the middle, is not on the surface.

    A side faces the other shape if the gap along its normal is the least one but for 1e-10 of it: up to 1.5e-5 rad off.
    """
    closed = kinds[0] == PLANE or kinds[1] <= BOX
    bound = 1e-6 if closed else 1e-6 + 1.5e-5 * span(a, b)
    return (np.abs(outside(a, middle - half)) > bound) | (np.abs(outside(b, middle + half)) > bound)


def other_normals(gap: Array, normal: Array, other: Array, direction: Array, same: Array, size: Array) -> Array:
    """(N,) pairs whose normal is not within 1e-3 rad of coal's, though there is only one.

    What is apart by d has one direction; along one that is off by θ the gap is less by d θ² / 2 at least. Shapes that
    overlap may have several: coal's is another one if the gap along it is as great, and no answer if it is less.
    """
    angle = np.linalg.norm(normal - direction, axis=1)
    apart, deep = same & (gap > 1e-3 * size), same & (gap < -1e-3 * size)
    assert apart.sum() > 0.05 * len(gap)
    assert deep.sum() > 0.1 * len(gap)
    assert (angle[deep] < 1e-3).mean() > 0.7
    off = np.sqrt(2.0 * np.abs(gap - other) / np.where(apart, gap, 1.0), where=apart, out=np.zeros(len(gap)))
    return apart & (angle > 1e-3 + 2.0 * off)


@every_pair
@pytest.mark.parametrize("size", ["usual", "any"])
def test_pairs(kinds: tuple[Solid, Solid], size: str) -> None:
    assert not misses(kinds, 0, 1000, size).any()


@pytest.mark.slow
@every_pair
@pytest.mark.parametrize("size", ["usual", "any"])
def test_many_pairs(kinds: tuple[Solid, Solid], size: str) -> None:
    """100,000 of each."""
    assert not sum(misses(kinds, 10 + seed, 10_000, size).sum() for seed in range(10))
