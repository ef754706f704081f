"""The convex hull, on ordinary and on hostile points."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, QhullError

import poise
from poise.model.errors import SceneError
from poise.model.hull import checked_faces, convex_hull, polyhedron_moments


def check_hull(points: np.ndarray, faces: np.ndarray) -> None:
    """A closed, outward surface that holds every point: Euler's formula, shared edges, signed distances."""
    edges = Counter(tuple(edge) for face in faces.tolist() for edge in zip(face, face[1:] + face[:1], strict=True))
    assert set(edges.values()) == {1}
    assert all((b, a) in edges for a, b in edges)
    assert len(np.unique(faces)) - len(edges) // 2 + len(faces) == 2
    scale = np.ptp(points, axis=0).max()
    a, b, c = points[faces[:, 0]], points[faces[:, 1]], points[faces[:, 2]]
    normals = np.cross(b - a, c - a)
    heights = (points @ normals.T) - np.einsum("ij,ij->i", a, normals)
    # signed volume, m³, over that of the points' box: rounding only
    assert heights.max() <= 1e-13 * scale * (scale + np.abs(points).max()) * scale


@pytest.mark.parametrize("count", [4, 5, 20, 300])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_random_points(count, offset):
    points = np.random.default_rng(count).normal(size=(count, 3)) + offset
    faces = convex_hull(points)
    check_hull(points, faces)
    assert polyhedron_moments(points, faces)[0] == pytest.approx(ConvexHull(points).volume, rel=1e-9)


def test_points_on_a_sphere_are_all_corners():
    points = np.random.default_rng(3).normal(size=(400, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    faces = convex_hull(points)
    check_hull(points, faces)
    assert len(faces) == 2 * 400 - 4


@pytest.mark.parametrize("n", [2, 3, 5])
def test_grid_with_many_coplanar_and_collinear_points(n):
    axis = np.linspace(-0.3, 0.7, n)
    points = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    faces = convex_hull(np.concatenate((points, points[::2])))
    assert polyhedron_moments(points, faces % len(points))[0] == pytest.approx(1.0, rel=1e-12)


def test_noisy_flat_faces():
    """A box whose faces hold points with rounding noise, as a file in single precision has them."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(600, 3))
    points[np.arange(600), rng.integers(0, 3, 600)] = rng.choice([-1.0, 1.0], 600)
    points = points.astype(np.float32).astype(float) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    faces = convex_hull(points)
    check_hull(points, faces)
    assert polyhedron_moments(points, faces)[0] == pytest.approx(ConvexHull(points).volume, rel=1e-10)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=4, max_size=30))
def test_lattice_points(points):
    """Whole numbers bring repeated, collinear and coplanar points in plenty."""
    array = np.array(points, dtype=float)
    try:
        expected = ConvexHull(array).volume
    except QhullError:
        with pytest.raises(SceneError, match="a solid needs"):
            convex_hull(array)
        return
    faces = convex_hull(array)
    check_hull(array, faces)
    assert polyhedron_moments(array, faces)[0] == pytest.approx(expected, rel=1e-12)


def exact_side(a, b, c, p) -> int:
    """Sign of (b−a) × (c−a) · (p−a), in fractions."""
    a, b, c, p = ([Fraction(float(x)) for x in point] for point in (a, b, c, p))
    u, v, w = ([x - y for x, y in zip(point, a, strict=True)] for point in (b, c, p))
    volume = sum(w[i] * (u[i - 2] * v[i - 1] - u[i - 1] * v[i - 2]) for i in range(3))
    return (volume > 0) - (volume < 0)


def test_the_last_bit_decides():
    """A point within rounding of a face is a corner if it lies outside, however little, and none otherwise."""
    rng = np.random.default_rng(4)
    found = {1: 0, 0: 0, -1: 0}
    for _ in range(200):
        a, b, c = rng.normal(size=(3, 3))
        weights = rng.dirichlet((3.0, 3.0, 3.0))
        point = weights @ (a, b, c)
        normal = np.cross(b - a, c - a)
        faces = convex_hull([a, b, c, point - normal, point])
        side = exact_side(a, b, c, point)
        assert (4 in faces) == (side > 0)
        found[side] += 1
    assert min(found[1], found[-1]) > 50, "both cases were met"


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e90])
def test_any_scale(scale):
    points = np.random.default_rng(1).normal(size=(50, 3))
    assert len(convex_hull(points * scale)) == len(convex_hull(points))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0)], "at least 4 different points, found 3"),
        ([(0, 0, 0)] * 9, "at least 4 different points, found 1"),
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], "all 4 points in one plane"),
        ([(0.1 * k, 0.2 * k, 0.3 * k) for k in range(6)], "all 6 points on one line"),
        (
            [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, float("nan"))],
            r"must be finite, found \(0.0, 0.0, nan\) at index 3",
        ),
        ([(0, 0), (1, 0), (0, 1), (1, 1)], r"must be points \(x, y, z\), found an array of shape \(4, 2\)"),
        ([(0, 0, 0), (1, 0)], "must be a list of points"),
        ("cube", "must be a list of points"),
        ([], "must be points"),
    ],
)
def test_hostile_points(points, message):
    with pytest.raises(SceneError, match=message):
        convex_hull(points)


def test_nearly_flat_points_are_refused():
    points = np.random.default_rng(2).normal(size=(20, 3)) * (1.0, 1.0, 1e-11)
    with pytest.raises(SceneError, match="in one plane"):
        convex_hull(points)


CORNERS = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
OUTWARD = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ([(0, 1, 2)], "must close a surface"),
        ([face[::-1] for face in OUTWARD], "found them inside out"),
        ([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 9)], "vertex 9 does not exist, there are 4"),
        ([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, -1)], "vertex -1 does not exist"),
        ([(0, 1)], "must be triangles"),
        ([(0.0, 1.0, 2.0)], "must be triangles"),
        ([], "must be triangles"),
        (np.zeros((0, 3), int), "found no triangle; leave faces out for the convex hull"),
        ([(0, 1, 2), (0, 1)], "must be triangles of three vertex numbers, found lists of other lengths"),
    ],
)
def test_hostile_faces(faces, message):
    with pytest.raises(SceneError, match=message):
        checked_faces(faces, CORNERS)


def test_sound_faces():
    assert checked_faces(OUTWARD, CORNERS).shape == (4, 3)


def test_a_solid_with_a_dent_is_no_convex_mesh():
    cube = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    faces = [(0, 2, 1), (0, 3, 2), (4, 5, 6), (4, 6, 7), (0, 1, 5), (0, 5, 4)]
    faces += [(1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6), (3, 0, 4), (3, 4, 7)]
    scene = poise.Scene()
    scene.add(poise.convex(cube, faces=faces), name="cube")
    scene.compile()
    cube[6] = (0.3, 0.3, 0.3)
    scene.add(poise.convex(cube, faces=faces, group=0, mask=0, mass=1.0), name="looked at")
    scene.compile()
    scene.add(poise.convex(cube, faces=faces), name="dented")
    with pytest.raises(
        poise.SceneError, match=r'"dented".*faces: must make a convex solid, found vertex \d+ .* m in front'
    ):
        scene.compile()
