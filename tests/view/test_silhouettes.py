"""Silhouettes: the outline of a shape is where its surface is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import poise
from poise.view.silhouettes import hull, strobe, surface_points


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (poise.sphere(0.5), (1, 1, 1)),
        (poise.box(1, 2, 3), (1, 2, 3)),
        (poise.ellipsoid(1, 2, 3), (1, 2, 3)),
        (poise.capsule(0.5, 2.0), (1, 1, 3)),
        (poise.cylinder(0.5, 2.0), (1, 1, 2)),
        (poise.convex([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]), (1, 2, 3)),
    ],
)
def test_surface_points_span_the_shape(shape, size) -> None:
    np.testing.assert_allclose(np.ptp(surface_points(shape), axis=0), size, rtol=0.02)


def test_the_hull_of_a_square_is_its_corners() -> None:
    rng = np.random.default_rng(1)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    corners = hull(np.concatenate((rng.random((200, 2)), square, square)))
    assert {tuple(c) for c in corners} == {tuple(c) for c in square}
    x, y = corners.T
    area = 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    assert area == pytest.approx(1.0)  # positive: counter-clockwise


def test_bodies_are_drawn_where_they_are_and_the_near_one_over_the_far_one() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.5, color=(1, 0, 0, 1)), name="near", position=(0, -2, 0))
    scene.add(poise.sphere(0.5, color=(0, 0, 1, 1)), name="far", position=(0.5, 2, 1))
    scene.add_ground()
    model = scene.compile()
    where = poise.dynamics.bodies(model, model.q_rest)
    picture = strobe(scene, model.body_names, [(where.position, where.rotation, "now")], side=(0, -1, 0)).svg()
    polygons = re.findall(r'<polygon points="([^"]+)" fill="(#\w+)"', picture)
    assert [color for _, color in polygons] == ["#0000ff", "#ff0000"]
    far, near = (np.array([[float(c) for c in p.split(",")] for p in text.split()]) for text, _ in polygons)
    scale = np.ptp(near[:, 0])  # one metre
    shift = (far.max(axis=0) + far.min(axis=0) - near.max(axis=0) - near.min(axis=0)) / 2 / scale
    np.testing.assert_allclose(shift, (0.5, -1.0), atol=0.01)  # right is x, up is −y of the picture
    assert ">now</text>" in picture
