"""Mass properties against closed forms of other texts, sums over points, and integrals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.model.errors import SceneError
from poise.model.massprops import (
    MassProperties,
    body_mass_properties,
    combine,
    pack_inertia,
    shape_mass_properties,
    shift_inertia,
    unpack_inertia,
)
from poise.model.scene import Body, Inertia
from poise.model.shapes import Shape, box, capsule, convex, cylinder, ellipsoid, plane, sphere
from poise.motion.rotations import quat_normalize, quat_to_matrix

SHAPES = {
    "sphere": (sphere(0.3), lambda p: np.sum(p**2, axis=1) <= 0.09),
    "box": (box(0.2, 0.5, 0.9), lambda p: np.all(np.abs(p) <= (0.1, 0.25, 0.45), axis=1)),
    "cylinder": (cylinder(0.3, 0.8), lambda p: (np.hypot(p[:, 0], p[:, 1]) <= 0.3) & (np.abs(p[:, 2]) <= 0.4)),
    "ellipsoid": (ellipsoid(0.4, 0.6, 1.0), lambda p: np.sum((p / (0.2, 0.3, 0.5)) ** 2, axis=1) <= 1),
    "capsule": (
        capsule(0.2, 0.5),
        lambda p: np.hypot(np.hypot(p[:, 0], p[:, 1]), np.maximum(np.abs(p[:, 2]) - 0.25, 0)) <= 0.2,
    ),
}


def grid_moments(inside, n: int = 120) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and inertia of one kilogram by the midpoint rule on a grid of side 1.2."""
    x = (np.arange(n) + 0.5) / n * 1.2 - 0.6
    points = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[inside(points)]
    com = points.mean(axis=0)
    spread = (points - com).T @ (points - com) / len(points)
    return len(points) * (1.2 / n) ** 3, com, np.trace(spread) * np.eye(3) - spread


@pytest.mark.parametrize("name", SHAPES)
def test_shape_against_numerical_integration(name):
    shape, inside = SHAPES[name]
    volume, com, inertia = grid_moments(inside)
    found = shape_mass_properties(shape)
    # surface cells are cut at random: the error of the rule falls as (cell/size)^1.5
    assert found.mass == pytest.approx(1000 * volume, rel=5e-3)
    assert found.com == pytest.approx(com, abs=2e-3)
    np.testing.assert_allclose(found.inertia / found.mass, inertia, atol=5e-3 * np.trace(inertia))


def test_capsule_is_a_cylinder_and_two_half_spheres():
    """Limits: no length gives a sphere, no radius gives a rod."""
    ball = shape_mass_properties(sphere(0.2, mass=3.0))
    round_one = shape_mass_properties(capsule(0.2, 1e-12, mass=3.0))
    np.testing.assert_allclose(round_one.inertia, ball.inertia, rtol=1e-9)
    rod = shape_mass_properties(capsule(1e-9, 2.0, mass=3.0))
    assert rod.inertia[0, 0] == pytest.approx(3.0 * 2.0**2 / 12, rel=1e-8)


@pytest.mark.parametrize("name", SHAPES)
def test_given_mass_wins_over_density(name):
    shape, _ = SHAPES[name]
    heavy = type(shape)(**{**shape.__dict__, "mass": 7.0, "density": 1.0})
    by_density = shape_mass_properties(shape)
    found = shape_mass_properties(heavy)
    assert found.mass == 7.0
    np.testing.assert_allclose(found.inertia, by_density.inertia * 7.0 / by_density.mass, rtol=1e-14)


def test_weightless_shapes():
    for shape in (sphere(1.0, density=0.0), sphere(1.0, mass=0.0), plane()):
        found = shape_mass_properties(shape)
        assert found.mass == 0.0
        assert not found.inertia.any()


def test_mesh_of_a_box_is_the_box():
    corners = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.25, 0.25) for z in (-0.45, 0.45)])
    mesh = shape_mass_properties(convex(corners + 5.0))
    solid = shape_mass_properties(box(0.2, 0.5, 0.9))
    assert mesh.mass == pytest.approx(solid.mass, rel=1e-12)
    assert mesh.com == pytest.approx((5.0, 5.0, 5.0), rel=1e-13)
    np.testing.assert_allclose(mesh.inertia, solid.inertia, atol=1e-12 * np.trace(solid.inertia))


def test_tetrahedron_closed_form():
    """Unit corner tetrahedron: volume 1/6, Ixx = 1/40·… about its centre: covariance 3/80 and −1/80 (Tonon 2004)."""
    found = shape_mass_properties(convex([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], mass=1.0))
    assert found.com == pytest.approx((0.25, 0.25, 0.25), rel=1e-14)
    expected = np.full((3, 3), 1 / 80) + (2 * 3 / 80 - 1 / 80) * np.eye(3)
    np.testing.assert_allclose(found.inertia, expected, rtol=1e-13)


positions = st.tuples(*[st.floats(-3, 3)] * 3)
quats = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1)


@given(st.lists(st.tuples(positions, quats, st.floats(0.1, 5)), min_size=1, max_size=5), positions, quats)
def test_combination_does_not_depend_on_the_frame(parts, position, quat):
    """Moving each part and then combining is combining and then moving."""
    lumps = [shape_mass_properties(box(0.3, 0.5, 0.7, position=p, quat_wxyz=q, mass=m)) for p, q, m in parts]
    moved_first = combine(lump.moved(position, quat) for lump in lumps)
    moved_last = combine(lumps).moved(position, quat)
    assert moved_first.mass == pytest.approx(moved_last.mass, rel=1e-12)
    np.testing.assert_allclose(moved_first.com, moved_last.com, atol=1e-10)
    np.testing.assert_allclose(moved_first.inertia, moved_last.inertia, atol=1e-9)


def test_combination_is_the_whole():
    """A box cut in eight is the box again."""
    parts = [
        shape_mass_properties(box(0.5, 1.0, 1.5, position=(0.25 * x, 0.5 * y, 0.75 * z)))
        for x in (-1, 1)
        for y in (-1, 1)
        for z in (-1, 1)
    ]
    whole = shape_mass_properties(box(1.0, 2.0, 3.0))
    found = combine(parts)
    assert found.mass == pytest.approx(whole.mass, rel=1e-13)
    np.testing.assert_allclose(found.inertia, whole.inertia, atol=1e-10)


@given(st.tuples(positions, positions), quats)
def test_rotation_keeps_principal_moments(vectors, quat):
    matter = combine([MassProperties(1.0, np.array(v), np.eye(3)) for v in vectors])
    turned = matter.turned(np.zeros(3), quat_to_matrix(quat_normalize(quat)))
    expected = np.linalg.eigvalsh(matter.inertia)
    np.testing.assert_allclose(np.linalg.eigvalsh(turned.inertia), expected, atol=1e-12 * expected.max())
    assert (turned.inertia == turned.inertia.T).all()


def test_parallel_axes():
    np.testing.assert_allclose(shift_inertia(np.zeros((3, 3)), 2.0, (0, 0, 3)), np.diag((18.0, 18.0, 0.0)))


def test_packing():
    matrix = np.array(((1.0, 4, 5), (4, 2, 6), (5, 6, 3)))
    assert pack_inertia(matrix).tolist() == [1, 2, 3, 4, 5, 6]
    assert (unpack_inertia(pack_inertia(matrix)) == matrix).all()


def test_given_inertia_wins_over_shapes_and_turns():
    half = 0.5**0.5
    body = Body(
        "b", shapes=[sphere(1.0)], inertia=Inertia(2.0, (1, 0, 0), (1, 2, 2.5), (half, 0, 0, half), (0.1, 0, 0))
    )
    found = body_mass_properties(body)
    assert found.mass == 2.0
    assert found.com.tolist() == [1, 0, 0]
    # a quarter turn about z: x → y, y → −x
    np.testing.assert_allclose(found.inertia, [[2, -0.1, 0], [-0.1, 1, 0], [0, 0, 2.5]], atol=1e-15)


def test_bare_shape_has_no_mass_formula():
    with pytest.raises(SceneError, match="the mass of a Shape is not known"):
        shape_mass_properties(Shape())
