"""Swapping two shapes flips the normal and nothing else: not the gap, not a point, not the number of touches."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import poise
from collision.convex_pairs import FAR, PLANE, pairs, touches
from poise.collision.detector import Collider, Contact
from poise.kernel.memory import F32, F64, F64X8, Width
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.model.shapes import Shape
from strategies import unit_quat

KINDS = [kind for kind in Solid if kind <= Solid.HULL]
ROUNDING = {F64: 1e-12, F32: 1e-5}
"""Points are of the order of a metre, and a ball's is reckoned from either centre."""


def shape(kind: Solid, rng: np.random.Generator) -> Shape:
    """Needles, pancakes and others."""
    x, y, z = rng.uniform(0.05, 0.5, 3)
    return {
        Solid.PLANE: lambda: poise.plane(),
        Solid.SPHERE: lambda: poise.sphere(x),
        Solid.CAPSULE: lambda: poise.capsule(x, y),
        Solid.BOX: lambda: poise.box(x, y, z),
        Solid.CYLINDER: lambda: poise.cylinder(x, y),
        Solid.ELLIPSOID: lambda: poise.ellipsoid(x, y, z),
        Solid.HULL: lambda: poise.convex(rng.normal(size=(12, 3)) * (x, y, z)),
    }[kind]()


def model_of(one: Shape, other: Shape) -> Model:
    """Two free bodies; a plane is held."""
    scene = poise.Scene()
    for name, solid in (("one", one), ("other", other)):
        scene.add(solid, name=name, fixed=isinstance(solid, type(poise.plane())))
    return scene.compile()


def state(model: Model, poses: dict[str, np.ndarray]) -> np.ndarray:
    q = model.q_rest.copy()
    for name, pose in poses.items():
        if name in model.joint_names:
            q[model.q_slice(name)] = pose
    return q


def found(model: Model, q: np.ndarray, width: Width, search: str) -> list[Contact]:
    collider = Collider(model, width, search=search)
    collider.place(q if width.lanes == 1 else np.tile(q, (width.lanes, 1)))
    collider.touch(0.2)
    return collider.contacts(width.lanes - 1)


def check(kinds: tuple[Solid, Solid], seed: int, width: Width, search: str) -> int:
    """Whether shapes are numbered one way or the other: how many contacts there are."""
    rng = np.random.default_rng([seed, *kinds])
    one, other = (shape(kind, rng) for kind in kinds)
    if seed % 3 == 0 and kinds[0] == kinds[1]:
        other = one  # nothing but their places tells them apart
    there, back = model_of(one, other), model_of(other, one)
    poses = {name: np.array((*rng.uniform(-0.15, 0.15, 3), *unit_quat(rng))) for name in ("one", "other")}
    if seed % 4 == 0:
        poses["other"][3:] = poses["one"][3:]  # parallel
    swapped = {"one": poses["other"], "other": poses["one"]}
    first = found(there, state(there, poses), width, search)
    second = found(back, state(back, swapped), width, search)
    assert len(first) == len(second)
    sign = -1.0 if kinds[0] == kinds[1] else 1.0  # of two kinds A is the lesser one, whatever its number
    for a, b in zip(first, second, strict=True):
        assert (a.a, a.b) == ((b.a, b.b) if sign < 0.0 else (1 - b.a, 1 - b.b))
        assert a.feature == b.feature
        assert abs(a.gap - b.gap) <= 1e-12
        assert np.abs(a.normal - sign * b.normal).max() <= 1e-12
        assert np.abs(a.point - b.point).max() <= 1e-12
    return len(first)


@pytest.mark.parametrize(
    "kinds",
    [pair for pair in combinations_with_replacement(KINDS, 2) if pair != (PLANE, PLANE)],
    ids=lambda pair: f"{pair[0].name}-{pair[1].name}".lower(),
)
def test_numbers_of_shapes_exchanged(kinds: tuple[Solid, Solid]) -> None:
    ways = ((F64, "few"), (F64, "many"), (F64X8, "few"))
    assert sum(check(kinds, seed, *ways[seed % 3]) for seed in range(24)) >= 12


@pytest.mark.parametrize("width", ROUNDING, ids=str)
@pytest.mark.parametrize("kind", KINDS[1:], ids=lambda kind: kind.name.lower())
def test_many_of_one_kind(kind: Solid, width: Width) -> None:
    """Among them touching, deep, parallel ones, needles, pancakes, and some of one centre."""
    a, b = pairs(np.random.default_rng(1), (kind, kind), 2000, "usual")
    one, other = touches(a, b, FAR, width), touches(b, a, FAR, width)
    assert np.array_equal(one.pair, other.pair)
    assert np.array_equal(one.feature, other.feature)
    assert np.array_equal(one.normal, -other.normal)
    assert np.array_equal(one.gap, other.gap)
    assert np.abs(one.point - other.point).max() <= ROUNDING[width]
