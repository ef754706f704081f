"""Cylinders, ellipsoids and hulls against every convex shape: proofs, brute force, closed forms, symmetries.

Bounds. A support point is off by a few ε of the span (sizes and distance), and the gap of polytopes is the height of
one over a side: 64 ε span are allowed, and 1e-9 of the gap. On curved shapes the search ends when |v|² no longer falls,
which is when the direction is known to √ε: 2 √ε span are allowed, and 1e-4 of the gap, since the polytope that finds
the region of the deepest place is let go at 3e-5. A direction counts as settled when it turns by less than 1e-5 rad, so
that points on curved shapes are off by 1e-5 span at most.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from collision.box_cases import rotations, unit_vectors
from collision.convex_pairs import (
    BOX,
    CAPSULE,
    COMBINATIONS,
    CYLINDER,
    ELLIPSOID,
    FAR,
    FLAT,
    HULL,
    PLANE,
    SPHERE,
    Bodies,
    bodies,
    gaps_along,
    greatest_gap,
    greatest_gap_tried,
    heights,
    outside,
    pairs,
    touches,
)
from collision.many_pairs import Touches
from poise.kernel.memory import F32, F64
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
EPSILON = float(np.finfo(np.float64).eps)
LEANING = 1e-3
"""Lines that lean by less than this touch side by side, each end with a normal of its own; rad."""
names = [f"{a.name}-{b.name}".lower() for a, b in COMBINATIONS]
every_pair = pytest.mark.parametrize("kinds", COMBINATIONS, ids=names)
DEEP = [(a, b) for b in (CYLINDER, ELLIPSOID) for a in (CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL)]
every_size = pytest.mark.parametrize("size", ["usual", "any"])


def span(a: Bodies, b: Bodies) -> Array:
    """Sizes and distance of pairs; m."""
    return a.extent() + b.extent() + np.linalg.norm(b.position - a.position, axis=1)


def is_flat(a: Bodies, b: Bodies) -> bool:
    """Whether two shapes are exact: polytopes and balls, or a ball with a closed form."""
    return a.kind == SPHERE or (b.kind == HULL and a.kind in (CAPSULE, *FLAT))


def slack(a: Bodies, b: Bodies, gap: Array) -> Array:
    """Error of gaps that theory allows; m."""
    if is_flat(a, b):
        return 1e-9 * np.abs(gap) + 64.0 * EPSILON * span(a, b)
    return 1e-4 * np.abs(gap) + 2.0 * np.sqrt(EPSILON) * span(a, b)


def deepest(a: Bodies, b: Bodies, found: Touches) -> tuple[Array, Array, Array]:
    """Gap, normal and point of the deepest touch of each pair: each pair has one."""
    gap, index = found.deepest(len(a))
    assert (index >= 0).all()
    return gap, found.normal[index], found.point[index]


def check_touches(a: Bodies, b: Bodies, found: Touches) -> None:
    """Numbers, unit normals, features that differ, points half a gap before and behind that are on the surfaces."""
    assert all(np.isfinite(x).all() for x in (found.gap, found.normal, found.point))
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < 16.0 * EPSILON
    assert len(np.unique(np.stack((found.pair, found.feature)), axis=1).T) == len(found.pair)
    k, half = found.pair, 0.5 * found.gap[:, None] * found.normal
    bound = (1e-8 if is_flat(a, b) else 3e-5) * span(a, b)
    assert (outside(a[k], found.point - half) < bound[k]).all()
    assert (outside(b[k], found.point + half) < bound[k]).all()
    gap, normal, point = deepest(a, b, found)
    half = 0.5 * gap[:, None] * normal
    assert (np.abs(outside(a, point - half)) < bound).all()
    assert (np.abs(outside(b, point + half)) < bound).all()


def check_directions(a: Bodies, b: Bodies, found: Touches, rng: np.random.Generator) -> None:
    """The gap is what it is along the normal, and no direction 1e-3 rad off is better."""
    gap, normal, _ = deepest(a, b, found)
    bound = own = slack(a, b, gap)
    if {a.kind, b.kind} <= {CAPSULE, CYLINDER}:
        bound = bound + LEANING**2 * span(a, b)
        own = bound + 0.5 * LEANING * span(a, b)  # each end of a line has a normal of its own
    assert (np.abs(gaps_along(a, b, normal[:, None])[:, 0] - gap) < own).all()
    near = normal[:, None] + 1e-3 * unit_vectors(rng, 32)
    near /= np.linalg.norm(near, axis=2, keepdims=True)
    assert (gaps_along(a, b, near).max(axis=1) < gap + bound).all()


def check_overlaps(a: Bodies, b: Bodies, gap: Array, rng: np.random.Generator, most: int) -> None:
    """No direction is better than that of the deepest touch."""
    k = np.flatnonzero(gap < 0.0)[:most]
    assert len(k) > 0.25 * min(most, len(gap))
    if {a.kind, b.kind} <= set(FLAT):
        best = np.array([greatest_gap(a, b, i) for i in k])
        assert (np.abs(best - gap[k]) < slack(a, b, gap)[k]).all()
    else:
        best = greatest_gap_tried(rng, a[k], b[k])
        assert (best < gap[k] + slack(a, b, gap)[k]).all()


def check(kinds: tuple[Solid, Solid], seed: int, n: int, size: str, most: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = pairs(rng, kinds, n, size)
    found = touches(a, b)
    check_touches(a, b, found)
    check_directions(a, b, found, rng)
    check_overlaps(a, b, found.deepest(n)[0], rng, most)


@every_pair
@every_size
def test_pairs(kinds: tuple[Solid, Solid], size: str) -> None:
    """Apart: points on both surfaces with the gap along the normal between them prove the distance."""
    check(kinds, 0, 1000, size, 120)


@pytest.mark.slow
@every_pair
def test_many_pairs(kinds: tuple[Solid, Solid]) -> None:
    """Of sizes up to twenty times each other. What is beyond that is counted beside coal, where it may miss."""
    for seed in range(10):
        check(kinds, 100 + seed, 10_000, "usual", 1000)


@pytest.mark.parametrize("kind", [CYLINDER, ELLIPSOID, HULL])
def test_swapping_flips_the_normal(kind: Solid) -> None:
    a, b = pairs(np.random.default_rng(1), (kind, kind), 1000, "usual")
    one, other = touches(a, b), touches(b, a)
    (gap, normal, point), (gap_back, normal_back, point_back) = deepest(a, b, one), deepest(b, a, other)
    bound = slack(a, b, gap)
    assert (np.abs(gap - gap_back) < bound).all()
    apart = gap > 1e-3 * span(a, b)
    assert apart.sum() > 100
    assert (np.linalg.norm(normal + normal_back, axis=1) < 1e-3)[apart].all()
    single = apart & (one.count(1000) == 1) & (other.count(1000) == 1)
    assert (np.linalg.norm(point - point_back, axis=1) < 1e-3 * span(a, b))[single].all()


@every_pair
def test_a_limit_leaves_out_what_is_farther(kinds: tuple[Solid, Solid]) -> None:
    a, b = pairs(np.random.default_rng(2), kinds, 500, "usual")
    every, near = touches(a, b, FAR), touches(a, b, 0.02)
    gap, _ = every.deepest(500)
    gap_near, index = near.deepest(500)
    clear = np.abs(gap - 0.02) > 1e-6
    assert ((index >= 0) == (gap <= 0.02))[clear].all()
    assert (near.gap <= 0.02).all()
    there = clear & (index >= 0)
    assert (np.abs(gap - gap_near) < slack(a, b, gap))[there].all()


@pytest.mark.parametrize("kind", [CYLINDER, ELLIPSOID, HULL])
@every_size
def test_planes(kind: Solid, size: str) -> None:
    rng = np.random.default_rng(3)
    n = 1000
    low, high = {"usual": (0.05, 1.0), "any": (5e-4, 50.0)}[size]
    plane = Bodies(PLANE, np.zeros((n, 3)), rng.normal(size=(n, 3)), rotations(rng, n), np.zeros(n, int))
    rotation = rotations(rng, n)
    rotation[: n // 4] = plane.rotation[: n // 4]
    b = bodies(rng, kind, n, low, high, rotation)
    up = plane.rotation[:, :, 2]
    lift = heights(b, -up[:, None])[0][:, 0] + rng.choice([-0.1, 0.0, 0.1], n) * b.extent()
    b = b.at(plane.position + up * lift[:, None])
    found = touches(plane, b)
    gap, normal, _ = deepest(plane, b, found)
    truth = -heights(b.at(b.position - plane.position), -up[:, None])[0][:, 0]
    assert (np.abs(gap - truth) < 64.0 * EPSILON * (b.extent() + 4.0)).all()
    assert np.array_equal(normal, up)
    check_touches(plane, b, found)
    assert found.count(n).max() == (1 if kind == ELLIPSOID else 4)


@pytest.mark.parametrize("kinds", COMBINATIONS, ids=names)
def test_float32(kinds: tuple[Solid, Solid]) -> None:
    """ε is 1.2e-7; directions are known to √ε = 3.5e-4, and gaps to 2 √ε span at the worst, as in float64."""
    a, b = pairs(np.random.default_rng(4), kinds, 500, "usual")
    exact, single = touches(a, b, FAR, F64), touches(a, b, FAR, F32)
    gap, _ = exact.deepest(500)
    gap_single, index = single.deepest(500)
    assert (index >= 0).all()
    assert all(np.isfinite(x).all() for x in (single.gap, single.normal, single.point))
    bound = 2.0 * np.sqrt(np.finfo(np.float32).eps) * span(a, b)
    assert (np.abs(gap - gap_single) < bound).all()
    assert np.abs(np.linalg.norm(single.normal, axis=1) - 1.0).max() < 1e-5


@pytest.mark.parametrize("kinds", [(BOX, HULL), (CYLINDER, CYLINDER), (ELLIPSOID, ELLIPSOID)], ids=str)
def test_far_from_the_origin(kinds: tuple[Solid, Solid]) -> None:
    """A kilometre away positions are known to 1e-13 m, and gaps to little more."""
    a, b = pairs(np.random.default_rng(5), kinds, 300, "usual")
    away = np.array((1000.0, -700.0, 300.0))
    gap, _ = touches(a, b).deepest(300)
    gap_away, _ = touches(a.at(a.position + away), b.at(b.position + away)).deepest(300)
    assert (np.abs(gap - gap_away) < slack(a, b, gap) + 1e-12).all()


def test_the_middle_of_an_ellipsoid() -> None:
    """A ball in the middle plane may go either way; one in the centre leaves along the least axis."""
    half = np.array([[0.3, 0.2, 0.5], [0.3, 0.2, 0.5], [0.2, 0.2, 0.2], [0.3, 0.3, 0.1]])
    centre = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.2], [0.0, 0.0, 0.0], [0.0, 1e-200, 0.0]])
    turn, none = np.broadcast_to(np.eye(3), (4, 3, 3)), np.zeros(4, int)
    a = Bodies(SPHERE, np.full((4, 3), (0.01, 0.0, 0.0)), centre, turn, none)
    b = Bodies(ELLIPSOID, half, np.zeros((4, 3)), turn, none)
    gap, normal, _ = deepest(a, b, touches(a, b))
    # x_i = e_i² p_i / (e_i² − e_y²) and x_y from the surface
    x = np.array((0.09 * 0.1 / 0.05, 0.0, 0.25 * 0.2 / 0.21))
    x[1] = 0.2 * np.sqrt(1.0 - (x[0] / 0.3) ** 2 - (x[2] / 0.5) ** 2)
    assert np.allclose(gap, [-0.21, -0.01 - np.linalg.norm(x - centre[1]), -0.21, -0.11], rtol=0, atol=1e-15)
    assert np.allclose(np.abs(normal[[0, 3]]), [(0, 1, 0), (0, 0, 1)], atol=1e-15)


def test_a_pancake_that_a_needle_has_pierced() -> None:
    """Rounding stops the search for nearest points of these before it finds that they overlap.

    The pancake comes out of the end of the needle, across: 42 mm, where 620 mm lead out along its greatest radius.
    """
    flat = [
        [0.9083159375083852, -0.07949093227008487, 0.4106620865810433],
        [-0.39902019256459764, 0.12985188280303556, 0.9077011482080531],
        [-0.12547925563205634, -0.9883418842785829, 0.08622804756391944],
    ]
    across = [
        [0.07949093226706694, 0.4106620865806853, -0.9083159375088112],
        [-0.1298518827984368, 0.907701148208496, 0.39902019256508686],
        [0.9883418842794298, 0.08622804756096297, 0.12547925562741713],
    ]
    pancake = [0.6086711121316077, 0.6086711121316077, 0.022424395523770624]
    needle = [0.1491797096829494, 0.1491797096829494, 28.73185802481523]
    place = [-26.087420340258493, 11.460117628504488, 3.603845259517339]
    none = np.zeros(1, int)
    a = Bodies(ELLIPSOID, np.array([pancake]), np.zeros((1, 3)), np.array([flat]), none)
    b = Bodies(ELLIPSOID, np.array([needle]), np.array([place]), np.array([across]), none)
    gap, _ = touches(a, b).deepest(1)
    best = greatest_gap_tried(np.random.default_rng(0), a, b)
    assert best[0] == pytest.approx(-0.042, abs=1e-3)
    assert abs(gap - best)[0] < slack(a, b, gap)[0]


@pytest.mark.parametrize("kinds", DEEP, ids=[f"{a.name}-{b.name}".lower() for a, b in DEEP])
def test_small_deep_in_round(kinds: tuple[Solid, Solid]) -> None:
    """Ways out are nearly alike: points face each other along the normal, and turning all does not change the gap.

    Of all ways that are best nearby a search follows some. Any two of these differ by no more than twice how far the
    small shape is from the middle and how large it is; 19 of 20 searches find the best.
    """
    rng = np.random.default_rng(7)
    n, turned = 20, 15
    small = bodies(rng, kinds[0], n, 5e-4, 5e-2, rotations(rng, n))
    large = bodies(rng, kinds[1], n, 5.0, 50.0, rotations(rng, n))
    if kinds[1] == ELLIPSOID:
        large = replace(large, size=large.size[:, [0, 0, 0]])
    small = small.at(unit_vectors(rng, n) * (small.extent() * rng.uniform(0.0, 2.0, n))[:, None])
    whole = rotations(rng, n * turned)
    a, b = (
        replace(
            shape[np.repeat(np.arange(n), turned)],
            position=np.einsum("nij,nj->ni", whole, np.repeat(shape.position, turned, axis=0)),
            rotation=whole @ np.repeat(shape.rotation, turned, axis=0),
        )
        for shape in sorted((small, large), key=lambda shape: shape.kind)
    )
    gap, normal, point = deepest(a, b, touches(a, b))
    half = 0.5 * gap[:, None] * normal
    bound = 1e-5 * span(a, b) + 1e-6
    assert (np.abs(outside(a, point - half)) < bound).all()
    assert (np.abs(outside(b, point + half)) < bound).all()
    short = (gap.reshape(n, turned).max(axis=1, keepdims=True) - gap.reshape(n, turned)).ravel()
    alike = 2.0 * (np.linalg.norm(small.position, axis=1) + small.extent())
    assert (short < slack(a, b, gap)).mean() >= 0.95
    assert (short < slack(a, b, gap) + np.repeat(alike, turned)).all()
