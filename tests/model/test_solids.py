"""Shapes as arrays."""

import numpy as np
import pytest

import poise
from poise.model.shape_arrays import Solid

POINTS = np.random.default_rng(0).normal(size=(30, 3))


def solids(**shapes):
    scene = poise.Scene()
    for name, shape in shapes.items():
        scene.add(shape, name=name, fixed=True)
    return scene.compile().solids


def test_sizes_and_reaches():
    found = solids(
        floor=poise.plane(),
        ball=poise.sphere(0.2),
        bone=poise.capsule(0.1, 0.6),
        crate=poise.box(0.2, 0.4, 0.4),
        can=poise.cylinder(0.3, 0.8),
        egg=poise.ellipsoid(0.2, 0.4, 0.6),
    )
    assert found.kind.tolist() == [int(kind) for kind in list(Solid)[:6]]
    assert found.size[1:].tolist() == [[0.2, 0, 0], [0.1, 0.3, 0], [0.1, 0.2, 0.2], [0.3, 0.4, 0], [0.1, 0.2, 0.3]]
    assert found.reach.tolist() == pytest.approx([np.inf, 0.2, 0.4, 0.3, 0.5, 0.3])
    assert found.names[1] == "ball[0]"
    assert not found.size.flags.writeable


def test_points_are_about_the_centre_of_their_box():
    found = solids(rock=poise.convex(POINTS + np.array((3.0, 0.0, 0.0)), position=(1.0, 0.0, 0.0)))
    low, high = POINTS.min(axis=0), POINTS.max(axis=0)
    assert found.position[0] == pytest.approx(0.5 * (low + high) + (4.0, 0.0, 0.0))
    assert found.size[0] == pytest.approx(0.5 * (high - low))
    assert np.abs(found.vertices).max(axis=0) == pytest.approx(found.size[0])
    assert found.reach[0] == pytest.approx(np.linalg.norm(found.vertices, axis=1).max())


def test_hulls_that_are_only_looked_at_are_not_worked_out():
    seen, solid = poise.convex(POINTS, group=0, mask=0, mass=1.0), poise.convex(POINTS)
    assert solids(seen=seen).face_start.tolist() == [0, 0]
    assert solids(solid=solid).face_start[1] >= 4


def test_height_fields():
    found = solids(hills=poise.height_field([[0.0, 0.5, 1.0], [0.0, 0.0, -0.5]], 4.0, 2.0))
    assert found.grid.tolist() == [[2, 3]]
    assert found.heights.tolist() == [0.0, 0.5, 1.0, 0.0, 0.0, -0.5]
    assert found.size[0].tolist() == [2.0, 1.0, -0.5]


POINTS4 = np.concatenate((np.eye(3), np.zeros((1, 3))))
POINTS5 = np.concatenate((POINTS4, np.ones((1, 3))))
CLOSED = np.array([(0, 1, 2), (1, 0, 3), (2, 1, 3), (0, 2, 3)])
SOUP = POINTS4[CLOSED].reshape(-1, 3)


def test_meshes_know_what_is_beyond_their_edges():
    found = solids(rock=poise.triangle_mesh(POINTS4, CLOSED))
    assert found.beyond.tolist() == [[3, 3, 3], [2, 2, 2], [0, 0, 0], [1, 1, 1]]
    assert np.diff(found.neighbor_start).tolist() == [3, 3, 3, 3]
    sheet = solids(sheet=poise.triangle_mesh(POINTS4, CLOSED[:2], open=True))
    assert sheet.beyond.tolist() == [[3, -1, -1], [2, -1, -1]]


def test_meshes_that_nothing_touches_may_be_anything():
    assert len(solids(seen=poise.triangle_mesh(SOUP, np.arange(12).reshape(4, 3), group=0, mask=0)).faces) == 4


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (poise.height_field([[0.0, 1.0]], 1.0, 1.0), "at least 2 rows"),
        (poise.height_field([[0.0, np.nan], [0.0, 0.0]], 1.0, 1.0), "row 0, column 1"),
        (poise.height_field([[0.0, 1.0], [0.0]], 1.0, 1.0), "one length"),
        (poise.height_field(np.zeros((2, 2)), 0.0, 1.0), "extent"),
        (poise.triangle_mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 3)]), "vertices 0 to 2"),
        (poise.triangle_mesh([(0, 0, 0), (1, 0, 0), (2, 0, 0)], [(0, 1, 2)]), "area"),
        (poise.triangle_mesh([(0, 0, np.inf)], [(0, 0, 0)]), "finite"),
        (poise.triangle_mesh(np.eye(3), [(0, 1, 2)]), "3 open edges, one from vertex 0 to 1; say open=True"),
        (poise.triangle_mesh(np.eye(3), [(0, 1, 2)], open="yes"), "True or False"),
        (poise.triangle_mesh(POINTS4, [(0, 1, 2), (0, 1, 3)], open=True), "same way.* edge from vertex 0 to 1"),
        (
            poise.triangle_mesh(POINTS5, [(0, 1, 2), (1, 0, 3), (0, 1, 4)], open=True),
            "3 meet at the edge",
        ),
        (
            poise.triangle_mesh(SOUP, np.arange(12).reshape(4, 3)),
            "12 open edges.*8 vertices are at the place",
        ),
        (poise.sphere(0.1, mask=1 << 40), "32 bits"),
    ],
)
def test_bad_shapes(shape, message):
    with pytest.raises(poise.SceneError, match=message):
        solids(bad=shape)


@pytest.mark.parametrize(
    "shape", [poise.height_field(np.zeros((2, 2)), 1.0, 1.0), poise.triangle_mesh(np.eye(3), [(0, 1, 2)], open=True)]
)
def test_landscapes_stay_where_they_are(shape):
    scene = poise.Scene()
    scene.add(shape, name="hills")
    with pytest.raises(poise.SceneError, match="does not move"):
        scene.compile()
