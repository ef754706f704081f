"""Boxes beside coal (GJK and EPA): gaps agree to 1e-6 m, and where they do not brute force is on Poise's side."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
import pytest

from collision.box_cases import pairs
from collision.box_oracle import truth
from collision.many_pairs import Shapes, touches
from poise.model.shape_arrays import Solid


def solid(shape: Shapes, k: int) -> Any:
    half = shape.half[k]
    if shape.kind == Solid.BOX:
        return coal.Box(*(2.0 * half))
    return coal.Capsule(half[0], 2.0 * half[1]) if shape.kind == Solid.CAPSULE else coal.Sphere(half[0])


def coal_gaps(a: Shapes, b: Shapes) -> np.ndarray:
    request = coal.DistanceRequest()
    request.gjk_max_iterations = request.epa_max_iterations = 500
    gaps = []
    for k in range(len(a)):
        places = [coal.Transform3s(shape.rotation[k], shape.position[k]) for shape in (a, b)]
        gaps.append(coal.distance(solid(a, k), places[0], solid(b, k), places[1], request, coal.DistanceResult()))
    return np.array(gaps)


def check(kind: int, seed: int, n: int, size: str) -> None:
    a, b = pairs(np.random.default_rng(seed), kind, n, size)
    mine, _ = touches(a, b, 1e5).deepest(n)
    theirs = coal_gaps(a, b)
    differ = np.abs(mine - theirs) > 1e-6
    assert differ.mean() < (0.02 if size == "usual" else 0.25)
    assert (np.abs(mine - truth(a, b)[0])[differ] < 1e-6).all()


@pytest.mark.parametrize("kind", [Solid.SPHERE, Solid.CAPSULE, Solid.BOX])
@pytest.mark.parametrize("size", ["usual", "any"])
def test_gaps(kind: Solid, size: str) -> None:
    check(int(kind), 0, 1000, size)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Solid.SPHERE, Solid.CAPSULE, Solid.BOX])
def test_gaps_of_many(kind: Solid) -> None:
    for seed in range(10):
        check(int(kind), 10 + seed, 10_000, "usual")
