"""What cylinders, ellipsoids and hulls rest with: sides, lines and points, as closed forms; features that stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from poise.collision.detector import Collider, Contact, contacts
from poise.collision.narrowphase.box.clip_faces import CLEARLY
from poise.kernel.memory import F32, F32X16, F64, F64X8, Width
from poise.model.model import Model
from poise.model.shapes import Shape

Array = NDArray[Any]
DEPTH = 1e-3
CUBE = list(product((-0.5, 0.5), repeat=3))


def turn(axis: str, angle: float) -> tuple[float, ...]:
    """Quaternion of a rotation about an axis; rad."""
    return (np.cos(0.5 * angle), *(np.sin(0.5 * angle) * (axis == name) for name in "xyz"))


LYING = turn("x", 0.5 * np.pi)


def cube() -> Shape:
    return poise.convex(CUBE)


def prism(n: int, radius: float, height: float) -> Shape:
    angle = np.arange(n) * 2.0 * np.pi / n
    ring = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)
    points = np.concatenate([np.insert(ring, 2, z, axis=1) for z in (-0.5 * height, 0.5 * height)])
    return poise.convex(points)


def rest(below: Shape, above: Shape, at: Any, quat: Any = (1, 0, 0, 0), slack: float = 0.0) -> list[Contact]:
    """Contacts of a shape with another that stays at the origin; normals turned to point up to the former."""
    scene = poise.Scene()
    scene.add(below, name="below", fixed=True)
    scene.add(above, name="above", position=at, quat_wxyz=quat)
    model = scene.compile()
    found = contacts(model, model.q_rest, slack)
    swapped = found and model.solids.names[found[0].a] == "above[0]"
    return [replace(c, a=c.b, b=c.a, normal=-c.normal) for c in found] if swapped else found


def floors(**others: Shape) -> Any:
    """A plane, a box whose top is at 0.5, and others."""
    known = {"plane": poise.plane(), "box": poise.box(4, 4, 1), **others}
    cases = [(shape, 0.0 if name == "plane" else 0.5) for name, shape in known.items()]
    return pytest.mark.parametrize(("below", "top"), cases, ids=list(known))


def check(found: list[Contact], points: list[tuple[float, float]], z: float) -> None:
    """Touches of equal depth at places in the plane."""
    assert [round(contact.depth, 9) for contact in found] == [DEPTH] * len(points)
    assert np.allclose([contact.normal for contact in found], (0, 0, 1), atol=1e-9)
    mine = sorted(tuple(np.round(contact.point, 6) + 0.0) for contact in found)
    assert np.allclose(mine, sorted((x, y, z - 0.5 * DEPTH) for x, y in points), atol=2e-6)


SQUARE = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]


@floors(hull=poise.convex(np.array(CUBE) * (4, 4, 1)))
def test_a_hull_lies_on_its_face(below: Shape, top: float) -> None:
    check(rest(below, cube(), (0, 0, top + 0.5 - DEPTH)), SQUARE, top)


def test_faces_that_overlap_in_part() -> None:
    found = rest(cube(), cube(), (0.2, 0.3, 1.0 - DEPTH))
    check(found, [(-0.3, -0.2), (0.5, -0.2), (-0.3, 0.5), (0.5, 0.5)], 0.5)


def test_faces_turned_against_each_other() -> None:
    """Eight crossings; four stay, one on each edge."""
    found = rest(cube(), cube(), (0, 0, 1.0 - DEPTH), turn("z", 0.25 * np.pi))
    assert len(found) == 4
    edges = [np.round(contact.point[:2] * (np.abs(contact.point[:2]) > 0.4), 6) + 0.0 for contact in found]
    assert sorted(map(tuple, edges)) == [(-0.5, 0.0), (0.0, -0.5), (0.0, 0.5), (0.5, 0.0)]


@pytest.mark.parametrize("depth", [1e-8, 1e-6, 1e-4])
def test_hulls_face_to_face_touch_at_four_corners_however_little_they_are_turned(depth: float) -> None:
    """Equal faces, turned and shifted against each other by a part of the depth, are nearest along the normal of one or
    across two edges, by chance. The depth is the distance of the planes of both faces along the normal. Edges that are
    nearly parallel cross anywhere: a crossing is kept for a corner that does not spread the four CLEARLY better.
    """
    away = 1.0 - 1.0 / CLEARLY
    rng = np.random.default_rng(5)
    for _ in range(60):
        tilt, at = rng.normal(size=3) * depth * 0.3, rng.normal(size=3) * depth * 0.3 + (0.0, 0.0, 1.0 - depth)
        up = np.array((tilt[1], -tilt[0], 1.0))  # of the cube above, but for squares of the tilt
        found = rest(cube(), cube(), at, (1.0, *(0.5 * tilt)), slack=10.0 * depth)
        assert len({tuple(np.sign(c.point[:2])) for c in found}) == len(found) == 4
        for c in found:
            assert np.allclose(np.abs(c.point[:2]), 0.5, atol=away + 4.0 * depth)
            assert np.allclose(c.normal, (0, 0, 1), atol=2.0 * depth)
            above = up @ (at - 0.5 * up - c.point) / (up @ c.normal)
            assert abs(c.depth - ((0.5 - c.point[2]) / c.normal[2] - above)) < 4.0 * depth**2 + 1e-15


def test_a_hull_stands_on_its_edge_and_its_corner() -> None:
    edge = rest(poise.plane(), cube(), (0, 0, np.sqrt(0.5) - DEPTH), turn("x", 0.25 * np.pi))
    check(edge, [(-0.5, 0.0), (0.5, 0.0)], 0.0)
    axis = np.cross((1, 1, 1), (0, 0, 1)) / np.sqrt(2.0)
    half = 0.5 * np.arccos(1.0 / np.sqrt(3.0))
    corner = (np.cos(half), *(np.sin(half) * axis))
    check(rest(cube(), cube(), (0, 0, 0.5 + np.sqrt(0.75) - DEPTH), corner), [(0.0, 0.0)], 0.5)


def test_edges_that_cross() -> None:
    above = poise.convex(np.array(CUBE) @ np.array([[1, 0, 0], [0, 1, -1], [0, 1, 1]]) / (1, np.sqrt(2), np.sqrt(2)))
    found = rest(above, above, (0, 0, np.sqrt(2.0) - DEPTH), turn("z", 0.5 * np.pi))
    check(found, [(0.0, 0.0)], np.sqrt(0.5))


@floors(hull=cube())
def test_a_cylinder_stands(below: Shape, top: float) -> None:
    found = rest(below, poise.cylinder(0.3, 1.0), (0, 0, top + 0.5 - DEPTH))
    assert [round(contact.depth, 9) for contact in found] == [DEPTH] * 4
    points = np.array([contact.point for contact in found])
    assert np.allclose(np.linalg.norm(points[:, :2], axis=1), 0.3, atol=1e-9)
    angles = np.sort(np.arctan2(points[:, 1], points[:, 0]))
    assert np.allclose(np.diff(angles), 0.5 * np.pi, atol=1e-6)


def test_a_cylinder_that_leans_has_its_lowest_point() -> None:
    lean = 0.003
    found = rest(poise.plane(), poise.cylinder(0.5, 1.0), (0, 0, 0.5), turn("x", lean), slack=1.0)
    assert len(found) == 4
    lowest = 0.5 - 0.5 * np.cos(lean) - 0.5 * np.sin(lean)
    assert min(contact.gap for contact in found) == pytest.approx(lowest, abs=1e-15)


@pytest.mark.parametrize(
    "below", [poise.plane(), poise.box(4, 4, 1), poise.cylinder(2.0, 1.0)], ids=["plane", "box", "cap"]
)
def test_a_cylinder_lies(below: Shape) -> None:
    top = 0.0 if isinstance(below, type(poise.plane())) else 0.5
    found = rest(below, poise.cylinder(0.3, 1.0), (0, 0, top + 0.3 - DEPTH), LYING)
    check(found, [(0.0, -0.5), (0.0, 0.5)], top)


def test_a_cylinder_over_an_edge() -> None:
    check(rest(poise.box(4, 4, 1), poise.cylinder(0.3, 1.0), (0, 2.0, 0.8 - DEPTH), LYING), [(0, 1.5), (0, 2.0)], 0.5)


@pytest.mark.parametrize("other", [poise.cylinder(0.3, 1.0), poise.capsule(0.3, 1.0)], ids=["cylinder", "capsule"])
def test_side_by_side(other: Shape) -> None:
    lying = poise.cylinder(0.5, 1.0, quat_wxyz=LYING)
    check(rest(lying, other, (0, 0.4, 0.8 - DEPTH), LYING), [(0.0, -0.1), (0.0, 0.5)], 0.5)


def test_sides_that_cross_touch_once() -> None:
    lying = poise.cylinder(0.5, 2.0, quat_wxyz=LYING)
    check(rest(lying, poise.cylinder(0.3, 2.0), (0, 0, 0.8 - DEPTH), turn("y", 0.5 * np.pi)), [(0.0, 0.0)], 0.5)


def test_caps() -> None:
    """The lens of two discs, whose tips are √0.75 apart: four points on its rim, over most of its length."""
    found = rest(poise.cylinder(0.5, 1.0), poise.cylinder(0.5, 1.0), (0.5, 0, 1.0 - DEPTH))
    assert [round(contact.depth, 9) for contact in found] == [DEPTH] * 4
    points = np.array([contact.point for contact in found])
    assert (np.linalg.norm(points[:, :2], axis=1) < 0.5 + 1e-9).all()
    assert (np.linalg.norm(points[:, :2] - (0.5, 0), axis=1) < 0.5 + 1e-9).all()
    assert np.ptp(points[:, 1]) > 0.75 * np.sqrt(0.75)


def test_a_capsule_lies_on_a_hull_and_on_a_cap() -> None:
    for below in (cube(), poise.cylinder(0.5, 1.0)):
        found = rest(below, poise.capsule(0.1, 0.8), (0, 0.2, 0.6 - DEPTH), LYING)
        check(found, [(0.0, -0.2), (0.0, 0.5)], 0.5)


def test_round_ones_touch_once() -> None:
    egg = poise.ellipsoid(0.4, 0.6, 1.0)
    for below, top in ((poise.plane(), 0.0), (poise.box(4, 4, 1), 0.5), (cube(), 0.5), (poise.cylinder(1.0, 1.0), 0.5)):
        check(rest(below, egg, (0, 0, top + 0.5 - DEPTH)), [(0.0, 0.0)], top)
    check(rest(poise.ellipsoid(1.0, 1.0, 1.0), egg, (0, 0, 1.0 - DEPTH)), [(0.0, 0.0)], 0.5)


def test_many_corners() -> None:
    """Of a side with more corners than are looked at, four stay on its rim; a hull of 500 corners is climbed."""
    found = rest(poise.box(4, 4, 1), prism(250, 0.5, 1.0), (0, 0, 1.0 - DEPTH))
    assert [round(contact.depth, 9) for contact in found] == [DEPTH] * 4
    points = np.array([contact.point for contact in found])
    assert np.allclose(np.linalg.norm(points[:, :2], axis=1), 0.5, atol=1e-9)
    assert np.linalg.norm(points[:2, :2].sum(axis=0)) < 0.1


def test_features_stay_while_a_hull_rocks() -> None:
    scene = poise.Scene()
    scene.add(poise.convex(np.array(CUBE) * (4, 4, 1)), fixed=True)
    scene.add(cube(), name="cube")
    model = scene.compile()
    seen = set()
    for angle in 1e-4 * np.sin(np.linspace(0.0, 20.0, 200)):
        q = model.q_rest.copy()
        q[2], q[3:7] = 1.0 - DEPTH, turn("x", angle)
        found = contacts(model, q, 0.01)
        assert len(found) == 4
        by_place = sorted((float(c.point[0]) > 0, float(c.point[1]) > 0, c.feature) for c in found)
        seen.add(tuple(by_place))
    assert len(seen) == 1


def pile() -> Model:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(2.0, 2.0, 0.2), name="table", fixed=True)
    scene.add(poise.cylinder(0.2, 0.5), name="drum")
    scene.add(poise.ellipsoid(0.5, 0.4, 0.3), name="egg")
    scene.add(poise.convex(np.array(CUBE) * 0.4), name="cube")
    scene.add(prism(40, 0.3, 0.2), name="coin")
    scene.add(poise.sphere(0.2), name="ball")
    scene.add(poise.capsule(0.1, 0.5), name="rod")
    return scene.compile()


@pytest.mark.parametrize(("width", "single"), [(F64X8, F64), (F32X16, F32)], ids=str)
def test_lanes_are_single_worlds(width: Width, single: Width) -> None:
    model = pile()
    rng = np.random.default_rng(0)
    together, n = Collider(model, width), len(model.solids)
    q, _ = np.linalg.qr(rng.normal(size=(width.lanes, n, 3, 3)))
    turns = (q * np.linalg.det(q)[..., None, None]).astype(width.dtype)
    places = rng.uniform(-0.4, 0.4, (width.lanes, n, 3)).astype(width.dtype)
    together.x.position[...] = np.moveaxis(places, 0, -1)
    together.x.rotation[...] = np.moveaxis(turns.reshape(width.lanes, n, 9), 0, -1)
    together.touch(0.02)
    total = 0
    for world in range(width.lanes):
        alone = Collider(model, single)
        alone.x.position[...], alone.x.rotation[...] = places[world], turns[world].reshape(n, 9)
        alone.touch(0.02)
        mine, theirs = alone.contacts(), together.contacts(world)
        assert [(c.a, c.b, c.feature) for c in mine] == [(c.a, c.b, c.feature) for c in theirs]
        for one, other in zip(mine, theirs, strict=True):
            assert one.gap == other.gap
            assert np.array_equal(one.normal, other.normal)
            assert np.array_equal(one.point, other.point)
        total += len(mine)
    assert total > 20 * width.lanes
