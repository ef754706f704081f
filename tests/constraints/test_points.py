"""What parts of points and their combinations measure, against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from constraints.cases import bodies
from constraints.checker import (
    WORLD,
    Moving,
    check_balance,
    check_derivatives,
    exp,
    mat,
    random_moving,
    random_rotation,
    rows_of,
    vec,
)
from poise.constraints.row_parts import orientation_parts, point_parts
from poise.kernel.vec import Sym3, dot

O, X, Y, Z = vec([0, 0, 0]), vec([1, 0, 0]), vec([0, 1, 0]), vec([0, 0, 1])
ONE = mat(np.eye(3))
PA, PB = np.array([0.3, -0.2, 0.5]), np.array([-0.1, 0.4, 0.2])
U = np.array([0.6, 0.0, 0.8])
W = np.array([-0.8, 0.0, 0.6])


def test_places_on_planes_lines_and_segments() -> None:
    b = replace(WORLD, x=np.array([1.0, 2.0, 3.0])).body
    a = WORLD.body
    assert point_parts.along(a, b, O, O, Z).phi == 3.0
    assert [p.phi for p in point_parts.offset(a, b, X, O)] == [0.0, 2.0, 3.0]
    assert np.isclose(np.hypot(*(p.phi for p in point_parts.on_line(a, b, O, O, Z))), np.hypot(1, 2))
    for low, high, room in ((0.0, 10.0, 3.0), (0.0, 4.0, 1.0), (0.0, 2.0, -1.0), (5.0, 9.0, -2.0)):
        g, h, end = point_parts.on_segment(a, b, O, O, Z, low, high)
        assert np.isclose(np.hypot(g.phi, h.phi), np.hypot(1, 2))
        assert np.isclose(end.phi, room)
        # a positive multiplier pushes away from the nearer end
        assert end.b.f.z == (1.0 if 3.0 - low < high - 3.0 else -1.0)
    assert np.isclose(point_parts.distance(a, b, O, O).phi, np.sqrt(14))
    assert np.isclose(point_parts.at_least(point_parts.distance(a, b, O, O), 3.0).phi, np.sqrt(14) - 3)
    rope = point_parts.at_most(point_parts.distance(a, b, O, O), 5.0)
    assert np.isclose(rope.phi, 5 - np.sqrt(14))
    assert np.allclose([rope.b.f.x, rope.b.f.y, rope.b.f.z], -np.array([1, 2, 3]) / np.sqrt(14))
    wall = point_parts.inside_sphere(a, b, O, O, np.sqrt(14))
    assert np.allclose(rows_of(wall)[0, 11:14], -np.array([1, 2, 3]) / np.sqrt(14))
    assert abs(wall.phi) <= 1e-15


def test_positive_multipliers_push_b_away() -> None:
    a, b = bodies(np.random.default_rng(8), "free")
    row = rows_of(point_parts.distance(a.body, b.body, O, O))[0]
    assert row[11:14] @ (b.x - a.x) > 0
    assert row[5:8] @ (b.x - a.x) < 0


def test_a_sphere_as_a_surface_is_the_inside_of_a_sphere() -> None:
    a, b = bodies(np.random.default_rng(9), "free")
    y, radius = point_parts.seen_from(a.body, b.body, vec(PB)), 0.7
    f = (dot(y, y) / radius - radius) / 2
    k = 1 / radius
    row = point_parts.on_surface(a.body, b.body, vec(PB), f, y * k, Sym3(k, k, k, 0.0, 0.0, 0.0))
    assert np.allclose(
        rows_of(row), -rows_of(point_parts.inside_sphere(a.body, b.body, O, vec(PB), radius)), rtol=1e-12
    )


def test_perpendiculars_are_a_right_handed_frame() -> None:
    rng = np.random.default_rng(10)
    for u in [*np.eye(3), *-np.eye(3), *rng.normal(size=(20, 3)), *rng.normal(size=(5, 3)) * 1e-12]:
        g, h = (np.array(list(v.leaves())) for v in point_parts.perpendiculars(vec(u)))
        frame = np.stack([u / np.linalg.norm(u), g, h])
        assert np.allclose(frame @ frame.T, np.eye(3), rtol=0, atol=1e-14)
        assert np.isclose(np.linalg.det(frame), 1.0)


def test_the_world_is_a_body_at_rest() -> None:
    assert list(point_parts.world(1.0).leaves()) == list(WORLD.body.leaves())


@pytest.mark.parametrize("ratio", [-2.0, 0.5, 3.0])
def test_gear_between_two_hinges_on_a_common_housing(ratio: float) -> None:
    """Bodies 1 and 2 on hinges of body 0: J and γ of both angles, and no net couple on the three."""
    rng = np.random.default_rng(12)
    housing = random_moving(rng)
    first, second = (replace(random_moving(rng), R=housing.R @ random_rotation(rng, 2.0)) for _ in range(2))

    def rows(a: Moving, b: Moving, c: Moving, d: Moving) -> np.ndarray:
        one = orientation_parts.angle(a.body, b.body, vec(U), ONE, 0.0)
        two = orientation_parts.angle(c.body, d.body, vec(W), ONE, 0.0)
        return rows_of(point_parts.gear(one, two, ratio, 0.3))

    four = housing, first, housing, second
    check_derivatives(rows, *four)
    check_balance(rows(*four), *four)


def test_gear_of_an_angle_and_a_slider_is_rack_and_pinion() -> None:
    """A pinion of radius r on a rack: travel = r · angle."""
    r = 0.05
    rack = replace(WORLD, x=np.array([0.4, 0, 0]))
    pinion = replace(WORLD, R=exp([0, 0.4 / r - 2 * np.pi, 0]))
    travel = point_parts.along(WORLD.body, rack.body, O, O, X)
    turned = orientation_parts.angle(WORLD.body, pinion.body, Y, ONE, 0.4 / r)
    assert abs(point_parts.gear(travel, turned, -r, 0.0).phi) <= 1e-15


def test_parts_on_the_same_bodies_add_up() -> None:
    a, b = bodies(np.random.default_rng(13), "free")
    spots = vec(PA), vec(PB)
    total = point_parts.along(a.body, b.body, *spots, X) * 2.0 + point_parts.along(a.body, b.body, *spots, Y)
    assert np.allclose(
        rows_of(total), rows_of(point_parts.along(a.body, b.body, *spots, vec([2, 1, 0]))), rtol=0, atol=1e-14
    )
