"""Boxes against planes, spheres, capsules and boxes: brute force over faces and edges, closed forms, symmetries.

Bounds: what ties is told apart by 1e-10 of the sizes and the distance (`grain` in float64), so no gap is off by more
than a few of that: SLACK is ten. In float32 the grain is 2e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from collision import box_oracle
from collision.box_cases import pairs, rotations, unit_vectors
from collision.box_oracle import truth
from collision.many_pairs import Shapes, Touches, touches
from poise.kernel.memory import F32, F64
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
FAR = 1e5
"""A limit that keeps every touch; m."""
SLACK = {F64: 1e-9, F32: 2e-5}
ROUND = (Solid.SPHERE, Solid.CAPSULE)


def span(a: Shapes, b: Shapes) -> Array:
    """Sizes and distance of pairs: what rounding is in proportion to; m."""
    return a.half.sum(axis=1) + b.half.sum(axis=1) + np.linalg.norm(b.position - a.position, axis=1)


def off_surface(shape: Shapes, x: Array) -> Array:
    """How far points are from the surfaces of round shapes and boxes."""
    if shape.kind == Solid.BOX:
        return np.abs(box_oracle.out_of(shape, x[:, None])[0][:, 0])
    along = shape.rotation[:, :, 2] * shape.half[:, 1:2]
    s = np.einsum("ni,ni->n", x - shape.position, along) / np.maximum(np.einsum("ni,ni->n", along, along), 1e-300)
    foot = shape.position + np.clip(s, -1.0, 1.0)[:, None] * along
    return np.abs(np.linalg.norm(x - foot, axis=1) - shape.half[:, 0])


def check_witnesses(a: Shapes, b: Shapes, found: Touches, slack: float) -> None:
    """The points half a gap before and behind are on the surfaces; normals are unit vectors; features differ."""
    k, half = found.pair, 0.5 * found.gap[:, None] * found.normal
    size = span(a, b)[k]
    assert all(np.isfinite(x).all() for x in (found.gap, found.normal, found.point))
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < slack
    assert (off_surface(b[k], found.point + half) / size).max() < slack
    # the core of a capsule that crosses the box has no side: its surface is where the normal says
    outside = np.ones(len(k), bool) if a.kind == Solid.BOX else found.gap > -a.half[k, 0]
    assert (off_surface(a[k], found.point - half) / size)[outside].max() < slack
    assert len(np.unique(np.stack((found.pair, found.feature)), axis=1).T) == len(found.pair)


def check_truth(kind: int, seed: int, n: int, size: str = "any") -> None:
    a, b = pairs(np.random.default_rng(seed), kind, n, size)
    found = touches(a, b, FAR)
    gap, normal, unique = truth(a, b)
    least, index = found.deepest(n)
    assert (index >= 0).all()
    assert (np.abs(least - gap) / span(a, b)).max() < SLACK[F64]
    assert np.abs(least - gap).max() < 1e-6
    sine = np.linalg.norm(np.cross(found.normal[index], normal), axis=1)
    assert ((sine < 1e-3) & (np.einsum("ni,ni->n", found.normal[index], normal) > 0.0))[unique].all()
    assert unique.mean() > 0.5
    assert found.count(n).max() <= (1 if kind == Solid.SPHERE else 2 if kind == Solid.CAPSULE else 4)
    check_witnesses(a, b, found, SLACK[F64])


@pytest.mark.parametrize("kind", [*ROUND, Solid.BOX])
@pytest.mark.parametrize("size", ["usual", "any"])
def test_brute_force(kind: Solid, size: str) -> None:
    check_truth(int(kind), 1, 1000, size)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*ROUND, Solid.BOX])
def test_brute_force_on_many(kind: Solid) -> None:
    for seed in range(20):
        check_truth(int(kind), 100 + seed, 5000)


def test_plane_has_the_deepest_corner() -> None:
    """Four corners of one face; none of the box is deeper than the deepest of them."""
    rng = np.random.default_rng(2)
    a, b = pairs(rng, int(Solid.PLANE), 1000)
    a = Shapes(a.kind, a.half, rng.normal(size=(1000, 3)), a.rotation)
    found = touches(a, b, FAR)
    heights = np.einsum("nki,ni->nk", box_oracle.corners(b) - a.position[:, None], a.rotation[:, :, 2])
    least, _ = found.deepest(1000)
    size = b.half.sum(axis=1) + np.linalg.norm(b.position - a.position, axis=1)
    assert (np.abs(least - heights.min(axis=1)) / size).max() < 1e-14
    assert (found.count(1000) == 4).all()
    assert np.array_equal(found.normal, a.rotation[found.pair, :, 2])
    up = np.einsum("ni,ni->n", found.point - a.position[found.pair], found.normal)
    assert (np.abs(up - 0.5 * found.gap) / size[found.pair]).max() < 1e-14
    corner = found.point + found.normal * 0.5 * found.gap[:, None]
    assert (off_surface(b[found.pair], corner) / size[found.pair]).max() < 1e-14


# ---- closed forms ----------------------------------------------------------------------------------------------------


def cube(position: tuple[float, ...], rotation: Array | None = None, half: float = 0.5) -> Shapes:
    turn = np.eye(3) if rotation is None else rotation
    return Shapes(int(Solid.BOX), np.full((1, 3), half), np.array([position], float), turn[None])


def turned(axis: tuple[float, ...], angle: float) -> Array:
    k = np.array(axis) / np.linalg.norm(axis)
    K = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


UP = np.eye(3)[2]
ON_EDGE = turned((1, 0, 0), np.pi / 4)
ON_CORNER = turned((1, -1, 0), np.arctan(np.sqrt(2.0)))
FLOORS = {
    "plane": Shapes(int(Solid.PLANE), np.zeros((1, 3)), np.zeros((1, 3)), np.eye(3)[None]),
    "box": Shapes(int(Solid.BOX), np.array([[5.0, 5.0, 1.0]]), np.array([[0.0, 0.0, -1.0]]), np.eye(3)[None]),
}


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize(
    ("turn", "height", "count"),
    [(np.eye(3), 0.5, 4), (ON_EDGE, np.sqrt(0.5), 2), (ON_CORNER, np.sqrt(0.75), 1)],
    ids=["face", "edge", "corner"],
)
@pytest.mark.parametrize("gap", [-0.01, 0.0, 0.01])
def test_cube_on_the_floor(floor: str, turn: Array, height: float, count: int, gap: float) -> None:
    found = touches(FLOORS[floor], cube((0.3, 0.2, height + gap), turn), 0.05)
    assert len(found.gap) == count
    assert np.abs(found.gap - gap).max() < 1e-14
    assert np.abs(found.normal - UP).max() < 1e-14
    assert np.abs(found.point[:, 2] - 0.5 * gap).max() < 1e-14
    low = sorted(map(tuple, np.round(box_oracle.corners(cube((0.3, 0.2, height), turn))[0], 9)), key=lambda p: p[2])
    assert sorted(map(tuple, np.round(found.point[:, :2], 9))) == sorted(p[:2] for p in low[:count])


def test_cube_on_cube_shifted_overlaps_in_a_rectangle() -> None:
    found = touches(cube((0, 0, 0)), cube((0.1, 0.2, 0.99)), 0.0)
    assert np.allclose(found.gap, -0.01, atol=1e-14)
    assert np.allclose(
        sorted(map(tuple, found.point.round(6))), [(x, y, 0.495) for x in (-0.4, 0.5) for y in (-0.3, 0.5)]
    )


def test_cube_turned_on_a_cube_shares_an_octagon_of_which_a_square_stays() -> None:
    """A square of an octagon's corners has √½ of its area, 8 (√2 − 1) h² = 2 (√2 − 1) for h = ½."""
    found = touches(cube((0, 0, 0)), cube((0, 0, 0.999), turned((0, 0, 1), np.pi / 4)), 0.0)
    x, y = found.point[:, :2].T
    order = np.argsort(np.arctan2(y, x))
    x, y = x[order], y[order]
    area = 0.5 * np.abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    assert len(x) == 4
    assert area == pytest.approx(2.0 * (np.sqrt(2.0) - 1.0) * np.sqrt(0.5), rel=1e-8)


def test_crossed_edges_touch_once() -> None:
    """Two cubes edge on edge, at right angles: the gap is between the edges, along the line of centres."""
    for gap in (-0.02, 0.0, 0.02):
        a, b = cube((0, 0, 0), ON_EDGE), cube((0, 0, np.sqrt(2.0) + gap), turned((0, 1, 0), np.pi / 4))
        found = touches(a, b, 0.03)
        assert len(found.gap) == 1
        assert found.gap[0] == pytest.approx(gap, abs=3.0 * SLACK[F64])
        assert np.allclose(found.normal, UP, atol=1e-14)
        assert np.allclose(found.point, (0, 0, np.sqrt(0.5) + 0.5 * gap), atol=3.0 * SLACK[F64])


def test_corner_to_corner_is_farther_than_any_axis_tells() -> None:
    found = touches(cube((0, 0, 0)), cube((1.1, 1.2, 1.3)), 1.0)
    assert found.gap == pytest.approx([np.sqrt(0.14)], rel=1e-14)
    assert np.allclose(found.normal[0] * np.sqrt(0.14), (0.1, 0.2, 0.3), atol=1e-14)
    assert np.allclose(found.point[0], (0.55, 0.6, 0.65))
    assert len(touches(cube((0, 0, 0)), cube((1.1, 1.2, 1.3)), 0.35).gap) == 0  # above 0.3, the best axis


def test_parallel_edges_apart_touch_at_both_ends() -> None:
    found = touches(cube((0, 0, 0)), cube((1.3, 0.2, 1.4)), 1.0)
    assert found.gap == pytest.approx([0.5, 0.5], rel=1e-14)
    assert np.allclose(found.normal, (0.6, 0.0, 0.8))
    assert np.allclose(sorted(found.point[:, 1]), (-0.3, 0.5))


def capsule(position: tuple[float, ...], axis: tuple[float, ...], radius: float, half: float) -> Shapes:
    k = np.array(axis) / np.linalg.norm(axis)
    side = np.cross(k, np.eye(3)[np.abs(k).argmin()])
    side /= np.linalg.norm(side)
    turn = np.stack((side, np.cross(k, side), k), axis=1)
    return Shapes(int(Solid.CAPSULE), np.array([[radius, half, 0.0]]), np.array([position], float), turn[None])


@pytest.mark.parametrize("height", [0.65, 0.59, 0.5, 0.4], ids=["apart", "shallow", "core on the face", "core inside"])
def test_capsule_along_a_face_touches_at_both_ends(height: float) -> None:
    found = touches(capsule((0.1, 0, height), (1, 0, 0), 0.1, 0.3), cube((0, 0, 0)), 0.1)
    assert found.gap == pytest.approx([height - 0.6] * 2, abs=1e-9)
    assert np.allclose(found.normal, -UP)
    assert np.allclose(found.point, [(x, 0, 0.5 + 0.5 * (height - 0.6)) for x in (-0.2, 0.4)])
    assert found.feature.tolist() == [0, 1]


def test_capsule_longer_than_the_face_touches_at_its_edges() -> None:
    found = touches(capsule((0.1, 0, 0.55), (1, 0, 0), 0.1, 3.0), cube((0, 0, 0)), 0.1)
    assert np.allclose(found.point, [(x, 0, 0.475) for x in (-0.5, 0.5)], atol=1e-9)


def test_capsule_along_an_edge_touches_twice() -> None:
    found = touches(capsule((0.6, 0.1, 0.6), (0, 1, 0), 0.1, 0.3), cube((0, 0, 0)), 0.1)
    assert found.gap == pytest.approx([np.sqrt(0.02) - 0.1] * 2)
    assert np.allclose(found.normal, (-np.sqrt(0.5), 0, -np.sqrt(0.5)))
    assert np.allclose(np.sort(found.point[:, 1]), (-0.2, 0.4))


def test_capsule_across_an_edge_or_upright_touches_once() -> None:
    across = touches(capsule((0.6, 0.1, 0.6), (1, 0, -1), 0.1, 0.3), cube((0, 0, 0)), 0.1)
    assert across.gap == pytest.approx([np.sqrt(0.02) - 0.1])
    upright = touches(capsule((0.1, 0.1, 0.85), (0, 0, 1), 0.1, 0.3), cube((0, 0, 0)), 10.0)
    assert upright.gap == pytest.approx([-0.05])


def test_capsule_through_a_box_leaves_the_shortest_way() -> None:
    """A core through an edge's side: out across the edge, not through a face that is farther."""
    found = touches(capsule((0.45, 0.0, 0.45), (1, 0, -1), 0.1, 3.0), cube((0, 0, 0)), 0.0)
    assert found.gap == pytest.approx([-0.1 * np.sqrt(0.5) - 0.1])
    assert np.allclose(found.normal, (-np.sqrt(0.5), 0, -np.sqrt(0.5)))


def test_sphere_inside_leaves_through_the_nearest_face() -> None:
    ball = Shapes(int(Solid.SPHERE), np.array([[0.1, 0, 0]]), np.array([[0.1, -0.3, 0.2]]), np.eye(3)[None])
    found = touches(ball, cube((0, 0, 0)), 0.0)
    assert found.gap == pytest.approx([-0.3])
    assert np.allclose(found.normal, (0, 1, 0))
    assert np.allclose(found.point, (0.1, -0.35, 0.2))


# ---- symmetries ------------------------------------------------------------------------------------------------------


def test_swapping_boxes_flips_the_normal_and_nothing_else() -> None:
    """Where one normal is the best, and of no more than four shared corners, which are chosen the same way."""
    a, b = pairs(np.random.default_rng(3), int(Solid.BOX), 2000, "usual")
    gap, _, unique = truth(a, b)
    size = span(a, b)
    one, two = touches(a, b, 0.1), touches(b, a, 0.1)
    near = gap < 0.1 - 1e-6
    (least, i), (back, j) = one.deepest(2000), two.deepest(2000)
    assert (np.abs(least[near] - back[near]) / size[near]).max() < SLACK[F64]
    assert np.abs(one.normal[i] + two.normal[j])[near & unique].max() < 1e-3
    few = np.flatnonzero(near & unique & (one.count(2000) < 4))
    assert len(few) > 200
    different = 0
    for k in few:
        x, y = one.of(k), two.of(k)
        nearest = np.linalg.norm(x.point[:, None] - y.point[None], axis=2)
        different += len(x.gap) != len(y.gap) or max(nearest.min(axis=0).max(), nearest.min(axis=1).max()) > 1e-6
    assert different == 0


@pytest.mark.parametrize("kind", [Solid.PLANE, *ROUND, Solid.BOX])
def test_moving_both_moves_the_touches(kind: Solid) -> None:
    rng = np.random.default_rng(4)
    a, b = pairs(rng, int(kind), 500, "usual")
    turn, shift = rotations(rng, 1)[0], rng.normal(size=3)
    here, there = touches(a, b, FAR), touches(a.moved(turn, shift), b.moved(turn, shift), FAR)
    least, i = here.deepest(500)
    moved, j = there.deepest(500)
    assert (np.abs(least - moved) / (1.0 + span(a, b))).max() < SLACK[F64]
    unique = truth(a, b)[2] if kind != Solid.PLANE else np.ones(500, bool)
    assert np.abs(here.normal[i] @ turn.T - there.normal[j])[unique].max() < 1e-3


@pytest.mark.parametrize("kind", [*ROUND, Solid.BOX])
def test_limit_leaves_out_what_is_farther_and_changes_nothing_else(kind: Solid) -> None:
    a, b = pairs(np.random.default_rng(5), int(kind), 1000, "usual")
    gap, _, _ = truth(a, b)
    limit = 0.05
    found = touches(a, b, limit)
    sure = np.abs(gap - limit) > SLACK[F64] * span(a, b)
    assert ((found.count(1000) > 0) == (gap <= limit))[sure].all()
    assert found.gap.max() <= limit
    assert 0.2 < (gap <= limit).mean() < 0.95
    assert (np.abs(found.deepest(1000)[0] - gap) / span(a, b))[(gap <= limit) & sure].max() < SLACK[F64]


# ---- float32, hostile ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*ROUND, Solid.BOX])
def test_float32(kind: Solid) -> None:
    a, b = (
        Shapes(s.kind, *(np.float32(x).astype(np.float64) for x in (s.half, s.position, s.rotation)))
        for s in pairs(np.random.default_rng(6), int(kind), 1000)
    )
    found = touches(a, b, FAR, F32)
    gap, normal, unique = truth(a, b)
    least, index = found.deepest(1000)
    assert (np.abs(least - gap) / span(a, b)).max() < SLACK[F32]
    check_witnesses(a, b, found, SLACK[F32])
    # a direction between points that are d apart is off by rounding / d
    clear = unique & (np.abs(gap) > 1e-2 * span(a, b))
    assert np.einsum("ni,ni->n", found.normal[index], normal)[clear].min() > np.cos(0.02)


def test_what_is_not_a_number_touches_nothing_and_harms_no_neighbour() -> None:
    a, b = pairs(np.random.default_rng(7), int(Solid.BOX), 50, "usual")
    before = touches(a, b, FAR)
    b.position[10, 1], b.rotation[20, 0, 0] = np.nan, np.nan
    after = touches(a, b, FAR)
    assert 10 not in after.pair
    for k in set(range(50)) - {10, 20}:
        assert np.array_equal(before.of(k).gap, after.of(k).gap)
        assert np.array_equal(before.of(k).point, after.of(k).point)


# ---- frame to frame --------------------------------------------------------------------------------------------------


def features(a: list[Shapes], b: list[Shapes], limit: float) -> list[tuple[int, ...]]:
    """Sorted features of each frame."""
    frames = [
        Shapes(s[0].kind, *(np.concatenate([getattr(x, name) for x in s]) for name in ("half", "position", "rotation")))
        for s in (a, b)
    ]
    found = touches(frames[0], frames[1], limit)
    return [tuple(sorted(found.of(k).feature)) for k in range(len(a))]


@pytest.mark.parametrize("floor", FLOORS)
def test_features_stay_while_a_box_rocks(floor: str) -> None:
    """Tilts of a hundredth, turning slowly: which corner is deepest changes, what touches does not."""
    phases = np.linspace(0.0, 4.0 * np.pi, 400)
    boxes = [cube((0.3, 0.2, 0.499), turned((np.cos(p), np.sin(p), 0.3), 0.01)) for p in phases]
    seen = features([FLOORS[floor]] * len(boxes), boxes, 0.03)
    assert set(seen) == {(0, 1, 2, 3)}


def test_features_stay_while_a_stack_of_equal_boxes_trembles() -> None:
    """Corners over corners, moved and turned by up to 2e-5: inside or outside, they keep their names."""
    rng = np.random.default_rng(8)
    boxes = [
        cube((*rng.uniform(-2e-5, 2e-5, 2), 0.9999), turned(tuple(unit_vectors(rng, 1)[0]), rng.uniform(0, 2e-5)))
        for _ in range(400)
    ]
    assert set(features([cube((0, 0, 0))] * len(boxes), boxes, 0.01)) == {(0, 1, 2, 3)}


def test_features_stay_while_a_capsule_rocks() -> None:
    tilts = 0.02 * np.sin(np.linspace(0.0, 4.0 * np.pi, 400))
    rods = [capsule((0.1, 0.0, 0.595), (1.0, 0.1, tilt), 0.1, 0.3) for tilt in tilts]
    assert set(features(rods, [cube((0, 0, 0))] * len(rods), 0.03)) == {(0, 1)}


def test_gap_changes_as_slowly_as_the_box_moves() -> None:
    """From frame to frame no gap of a turning cube changes by more than its corners move."""
    angles = np.linspace(0.0, np.pi, 2001)
    turn = [turned((1.0, 0.7, 0.2), angle) for angle in angles]
    floor = FLOORS["box"]
    least = [touches(floor, cube((0.3, 0.2, 0.8), R), FAR).gap.min() for R in turn]
    assert np.abs(np.diff(least)).max() <= np.sqrt(0.75) * (angles[1] - angles[0])
