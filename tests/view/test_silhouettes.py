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


def test_a_capsule_is_as_thick_at_one_end_as_at_the_other() -> None:
    points = surface_points(poise.capsule(0.5, 2.0))
    for end in (-1.0, 1.0):
        ring = points[np.abs(points[:, 2] - end) < 1e-9]
        assert np.hypot(ring[:, 0], ring[:, 1]).max() == pytest.approx(0.5)


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


def outlines(picture: str) -> list[np.ndarray]:
    texts = re.findall(r'<polygon points="([^"]+)"', picture)
    return [np.array([[float(c) for c in pair.split(",")] for pair in text.split()]) for text in texts]


def quarter(axis: int) -> np.ndarray:
    """Matrix of a quarter turn about a coordinate axis."""
    a, b = (axis + 1) % 3, (axis + 2) % 3
    turn = np.zeros((3, 3))
    turn[axis, axis] = turn[b, a] = 1.0
    turn[a, b] = -1.0
    return turn


def rod(**options) -> poise.Scene:
    """A rod along z whose end is at the origin of its body."""
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.1, 1.0, position=(0, 0, 0.5), **options), name="rod")
    return scene


HERE = np.zeros((1, 3))


def test_bodies_and_shapes_are_turned_the_right_way() -> None:
    """A quarter turn about y takes up (z) to the right (x), seen against −y."""
    upright, turned = (
        outlines(strobe(rod(), ["rod"], [(HERE, np.eye(3)[None], ""), (HERE, turn[None], "")]).svg())[1]
        for turn in (np.eye(3), quarter(1))
    )
    assert np.ptp(upright[:, 1]) == pytest.approx(10 * np.ptp(upright[:, 0]), rel=0.01)
    assert np.ptp(turned[:, 0]) == pytest.approx(10 * np.ptp(turned[:, 1]), rel=0.01)
    both = outlines(strobe(rod(), ["rod"], [(HERE, np.eye(3)[None], ""), (HERE, quarter(1)[None], "")]).svg())
    assert both[1][:, 0].max() > both[0][:, 0].max() + 5 * np.ptp(both[0][:, 0])  # to the right of the upright one
    # the same by the shape's own rotation, of any length
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.1, 1.0, position=(0.5, 0, 0), quat_wxyz=(3, 0, 3, 0)), name="rod")
    scene.add(poise.box(0.1, 0.1, 1.0, position=(0, 0, 0.5)), name="post")
    where = (np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)), "")
    rod_drawn, post = sorted(outlines(strobe(scene, ["rod", "post"], [where]).svg()), key=lambda o: np.ptp(o[:, 1]))
    np.testing.assert_allclose(rod_drawn - rod_drawn.min(axis=0), both[1] - both[1].min(axis=0), rtol=0.05, atol=1)
    assert np.ptp(post[:, 1]) == pytest.approx(np.ptp(rod_drawn[:, 0]), rel=0.01)


def test_moments_stand_apart() -> None:
    moment = (HERE, np.eye(3)[None], "")
    first, second, third = outlines(strobe(rod(), ["rod"], [moment] * 3, spacing=2.0).svg())
    metre = np.ptp(first[:, 1])
    np.testing.assert_allclose(second - first, np.tile((2 * metre, 0), (4, 1)), rtol=0.01, atol=0.2)
    np.testing.assert_allclose(third - second, second - first, atol=0.2)


def test_seen_from_above() -> None:
    """Up on the page is y then."""
    scene = poise.Scene()
    scene.add(poise.box(1.0, 3.0, 0.1), name="board")
    (board,) = outlines(strobe(scene, ["board"], [(HERE, np.eye(3)[None], "")], side=(0, 0, 1)).svg())
    assert np.ptp(board[:, 1]) == pytest.approx(3 * np.ptp(board[:, 0]), rel=0.01)


def test_a_slanted_view_does_not_shrink_what_lies_across() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.5), name="ball")
    (ball,) = outlines(strobe(scene, ["ball"], [(HERE, np.eye(3)[None], "")], side=(0, -1, 2)).svg())
    assert np.ptp(ball[:, 1]) == pytest.approx(np.ptp(ball[:, 0]), rel=0.03)


@pytest.mark.parametrize(
    ("names", "moments", "side", "message"),
    [
        (["rod"], 0, (0, -1, 0), "found no moment"),
        (["rodd"], 1, (0, -1, 0), 'there is no body "rodd", did you mean "rod"'),
        ([], 1, (0, -1, 0), "none of the bodies has a shape"),
        (["rod"], 1, (0, 0, 0), "side: must be a direction"),
        (["rod"], 1, (0, 1), "side: must be a direction"),
        (["rod"], 1, (0, np.nan, 1), "side: must be a direction"),
    ],
)
def test_what_cannot_be_drawn_is_said(names, moments: int, side, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strobe(rod(), names, [(HERE, np.eye(3)[None], "")] * moments, side=side)
