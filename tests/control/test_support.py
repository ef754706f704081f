"""Support: hulls, ways to edges, points of soles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import poise
from poise.control.support_polygon import edge_distance, hull, nearest_within, sole_points
from poise.model.scene import Body, Inertia


@pytest.mark.parametrize("seed", range(10))
def test_hulls_are_as_a_peer_has_them(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(3 + 5 * seed, 2))
    ours, theirs = hull(points), points[ConvexHull(points).vertices]
    assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))
    x, y = ours.T
    assert np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) > 0.0  # counterclockwise


def test_hulls_of_few_points_and_of_points_in_a_line() -> None:
    assert hull(np.array([(1.0, 2.0)])).tolist() == [[1.0, 2.0]]
    line = np.array([(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)])
    assert {(0.0, 0.0), (3.0, 3.0)} <= set(map(tuple, hull(line)))


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_is_within_and_no_other_is_nearer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = hull(rng.normal(size=(8, 2)))
    point = 4.0 * rng.normal(size=2)
    found = nearest_within(point, corners)
    faces = ConvexHull(corners).equations
    assert (faces[:, :2] @ found + faces[:, 2]).max() < 1e-12
    share = rng.dirichlet(np.ones(len(corners)), 500)
    others = share @ corners
    assert np.linalg.norm(found - point) <= np.linalg.norm(others - point, axis=1).min() + 1e-12


def test_what_is_within_stays() -> None:
    square = np.array([(0, 0), (2, 0), (2, 2), (0, 2)], float)
    assert nearest_within(np.array((0.5, 1.5)), square).tolist() == [0.5, 1.5]
    assert nearest_within(np.array((0.01, 1.0)), square, 0.1) == pytest.approx([0.1, 1.0])


def test_ways_to_the_edge() -> None:
    square = np.array([(0, 0), (2, 0), (2, 2), (0, 2)], float)
    middle = np.array((1.0, 1.0))
    assert edge_distance(middle, square) == 1.0
    assert edge_distance(middle, square, (np.sqrt(0.5), np.sqrt(0.5))) == pytest.approx(np.sqrt(2.0))
    assert edge_distance(np.array((3.0, 1.0)), square) == 0.0


def test_soles_of_boxes_and_of_others() -> None:
    scene = poise.Scene()
    scene.add([poise.box(0.2, 0.1, 0.06), poise.box(0.1, 0.1, 0.1, position=(0, 0, 0.2))], name="foot")
    scene.add(poise.sphere(0.1), name="ball")
    model = scene.compile()
    assert sole_points(model, "foot") == pytest.approx(
        np.array([(x, y, -0.03) for x in (-0.1, 0.1) for y in (-0.05, 0.05)])
    )
    assert sole_points(model, "ball").tolist() == [[0.0, 0.0, -0.1]]


def test_what_has_no_shape_cannot_stand() -> None:
    scene = poise.Scene()
    scene.add(Body("ghost", inertia=Inertia(1.0, moments=(1.0, 1.0, 1.0))), name="ghost")
    with pytest.raises(ValueError, match="no shape to stand on"):
        sole_points(scene.compile(), "ghost")


def test_nobody_stands_on_what_is_only_looked_at() -> None:
    scene = poise.Scene()
    boot = poise.box(0.4, 0.4, 0.2, group=0, mask=0)
    scene.add([poise.box(0.2, 0.1, 0.06), boot], name="foot", position=(0, 0, 1))
    assert sole_points(scene.compile(), "foot")[:, 2] == pytest.approx([-0.03] * 4)
