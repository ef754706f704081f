"""Distances of shapes and points: proved by support functions, by names and numbers, hostile input.

Two points a distance d apart along n, each the farthest of its shape along n, prove d: no two are nearer. Of what
overlaps no direction may part the shapes sooner.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import poise
from collision.box_cases import unit_vectors
from poise.collision.detector import contacts
from poise.collision.distance_queries import closest, closest_points
from poise.collision.ray_casting.rays import places
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene
from poise.model.shape_arrays import Solid
from strategies import unit_quat

Array = NDArray[Any]
BOUND = 1e-6
"""What a search may leave open of a distance: 1e-4 of it at most, and 2 √ε of sizes and places of about a metre."""


def zoo(rng: np.random.Generator, spread: float) -> Model:
    """One body of each convex kind, and ground."""
    scene = poise.Scene()
    scene.add_ground()
    shapes = {
        "sphere": poise.sphere(0.2),
        "capsule": poise.capsule(0.1, 0.4),
        "box": poise.box(0.2, 0.5, 0.3),
        "cylinder": poise.cylinder(0.15, 0.4),
        "ellipsoid": poise.ellipsoid(0.2, 0.5, 0.3),
        "hull": poise.convex(rng.normal(size=(15, 3)) * 0.2),
    }
    for name, shape in shapes.items():
        place = rng.uniform((-spread, -spread, 0.0), (spread, spread, 2.0 * spread))
        scene.add(shape, name=name, position=place, quat_wxyz=unit_quat(rng))
    return scene.compile()


def support(model: Model, shape: int, n: Array) -> Array:
    """How far a shape reaches along directions (…, 3), over the origin; m."""
    solids = model.solids
    centre, turn = (x[shape] for x in places(model, model.q_rest))
    local, (x, y, z), kind = n @ turn, solids.size[shape], solids.kind[shape]
    if kind == Solid.SPHERE:
        reach = np.full(local.shape[:-1], x)
    elif kind == Solid.CAPSULE:
        reach = x + y * np.abs(local[..., 2])
    elif kind == Solid.BOX:
        reach = np.abs(local) @ (x, y, z)
    elif kind == Solid.CYLINDER:
        reach = x * np.linalg.norm(local[..., :2], axis=-1) + y * np.abs(local[..., 2])
    elif kind == Solid.ELLIPSOID:
        reach = np.linalg.norm(local * (x, y, z), axis=-1)
    else:
        assert kind == Solid.HULL
        reach = (local @ solids.vertices[slice(*solids.vertex_start[shape : shape + 2])].T).max(axis=-1)
    return np.asarray(n @ centre + reach)


def greatest_gap(model: Model, a: int, b: int, n: Array) -> float:
    return float((-support(model, b, -n) - support(model, a, n)).max())


@pytest.mark.parametrize("spread", [0.15, 1.0])
def test_distances_of_every_two_shapes(spread: float) -> None:
    rng = np.random.default_rng(int(10 * spread))
    signs = set()
    for _ in range(15):
        model = zoo(rng, spread)
        for a, b in combinations(range(1, 7), 2):
            near, back = closest(model, model.q_rest, a, b), closest(model, model.q_rest, b, a)
            assert (near.a, near.b, back.a, back.b) == (a, b, b, a)
            assert near.distance == back.distance
            assert np.array_equal(near.normal, -back.normal)
            assert np.array_equal(near.point_a, back.point_b)
            n = near.normal
            assert abs(np.linalg.norm(n) - 1.0) < 1e-14
            assert np.abs(near.point_b - near.point_a - near.distance * n).max() < 1e-14
            # points are off by the square root of what is open of the distance, sideways
            bound = BOUND + 1e-4 * abs(near.distance)
            assert abs(support(model, a, n) - n @ near.point_a) < bound
            assert abs(-support(model, b, -n) - n @ near.point_b) < bound
            assert greatest_gap(model, a, b, unit_vectors(rng, 300)) < near.distance + bound
            signs.add(near.distance > 0.0)
    assert spread == 1.0 or signs == {True, False}


def test_the_ground() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        model = zoo(rng, 0.5)
        for shape in range(1, 7):
            near = closest(model, model.q_rest, "ground", shape)
            low = -support(model, shape, np.array((0.0, 0.0, -1.0)))
            assert near.distance == pytest.approx(low, abs=1e-14)
            assert near.normal.tolist() == [0.0, 0.0, 1.0]
            assert near.point_a[2] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("spread", [0.15, 1.0])
def test_points(spread: float) -> None:
    rng = np.random.default_rng(int(10 * spread))
    inside = 0
    for _ in range(20):
        model = zoo(rng, spread)
        point = rng.uniform((-spread, -spread, 0.0), (spread, spread, 2.0 * spread))
        found = closest_points(model, model.q_rest, point)
        assert sorted(one.shape for one in found) == list(range(7))
        assert [one.distance for one in found] == sorted(one.distance for one in found)
        for one in found:
            assert np.abs(point - one.point - one.distance * one.normal).max() < 1e-14
            if one.shape == 0:
                assert one.distance == pytest.approx(point[2], abs=1e-15)
                continue
            assert abs(support(model, one.shape, one.normal) - one.normal @ one.point) < 1e-12
            n = unit_vectors(rng, 300)
            assert (n @ point - support(model, one.shape, n)).max() < one.distance + 1e-12
            inside += one.distance < 0.0
    assert spread == 1.0 or inside > 10


def test_points_that_have_no_direction() -> None:
    """At the centre of every shape, and on its surface."""
    model = zoo(np.random.default_rng(3), 1.0)
    centre, _ = places(model, model.q_rest)
    for shape in range(1, 7):
        (one,) = [x for x in closest_points(model, model.q_rest, centre[shape]) if x.shape == shape]
        assert one.distance < 0.0
        assert np.linalg.norm(one.normal) == pytest.approx(1.0, abs=1e-14)
        (on,) = [x for x in closest_points(model, model.q_rest, one.point) if x.shape == shape]
        assert abs(on.distance) < 1e-12
        assert np.linalg.norm(on.normal) == pytest.approx(1.0, abs=1e-14)
        assert np.abs(on.point - one.point).max() < 1e-7


def test_the_same_as_contacts() -> None:
    model = zoo(np.random.default_rng(4), 0.2)
    least: dict[tuple[int, int], float] = {}
    for contact in contacts(model, model.q_rest, 1.0):
        key = (contact.a, contact.b)
        least[key] = min(contact.gap, least.get(key, math.inf))
    assert len(least) == 21
    for (a, b), gap in least.items():
        assert closest(model, model.q_rest, a, b).distance == gap


# ---- names, limits, groups -------------------------------------------------------------------------------------------


def feet() -> Model:
    """A trunk with two feet of two shapes each, and a ball."""
    toe, heel = poise.sphere(0.05, name="toe", position=(0.1, 0, 0)), poise.box(0.1, 0.1, 0.05, group=2, mask=2)
    hinge = [Joint("hinge")]
    bodies = [
        Body("hero/trunk", joints=[Joint("free")], shapes=[poise.capsule(0.1, 0.3, name="chest")]),
        Body("hero/foot_l", parent="hero/trunk", joints=hinge, position=(0, 0.2, -1), shapes=[toe, heel]),
        Body("hero/foot_r", parent="hero/trunk", joints=hinge, position=(0, -0.2, -1), shapes=[toe, heel]),
        Body("pin", shapes=[poise.sphere(0.1, name="head", group=0, mask=0)], motion="fixed"),
        Body("bare", motion="fixed"),
    ]
    scene = Scene(bodies=bodies)
    scene.add(poise.sphere(0.1), name="ball", position=(1, 0.2, -1))
    return scene.compile()


def test_bodies_and_shapes_by_name_and_number() -> None:
    model = feet()
    names = list(model.solids.names)
    toe, ball = 1, names.index("ball[0]")
    assert names[toe] == "toe"
    by_body = closest(model, model.q_rest, "hero/foot_l", "ball")
    assert (by_body.a, by_body.b) == (toe, ball)
    assert by_body.distance == pytest.approx(0.75, abs=1e-15)
    for a, b in (("foot_l", "ball[0]"), (toe, "ball"), (np.int64(toe), ball)):
        same = closest(model, model.q_rest, a, b)
        assert (same.a, same.b, same.distance) == (toe, ball, by_body.distance)
    assert closest(model, model.q_rest, "chest", "ball").a == 0
    feet_apart = closest(model, model.q_rest, "foot_l", "foot_r")
    assert feet_apart.distance == pytest.approx(0.3, abs=1e-15)
    assert closest(model, model.q_rest, "foot_l", toe).a == toe + 1  # a shape has no distance from itself


def test_a_pose_moves_them() -> None:
    model = feet()
    q = model.q_rest.copy()
    q[:3] += (0.1, 0.0, 0.0)
    assert closest(model, q, "foot_l", "ball").distance == pytest.approx(0.65, abs=1e-15)
    assert closest_points(model, q, (1.0, 0.2, -1.0), ignore=["ball"])[0].distance == pytest.approx(0.75, abs=1e-15)


def test_points_within_a_distance_in_groups_and_without_some() -> None:
    model = feet()
    here = (1.0, 0.2, -1.0)

    def found(**options: Any) -> list[str]:
        return [model.solids.names[one.shape] for one in closest_points(model, model.q_rest, here, **options)]

    every = found()
    assert every[:2] == ["ball[0]", "toe"]
    assert len(every) == 6  # the head is only looked at
    assert found(most=0.85) == every[:2]
    assert found(most=-0.05) == ["ball[0]"]
    assert found(most=-0.2) == []
    assert sorted(found(groups=2)) == ["hero/foot_l[1]", "hero/foot_r[1]"]
    assert found(groups=4) == []
    assert len(found(groups=3)) == 6
    assert found(ignore=["ball", "hero/foot_l"])[0] == "toe"
    assert len(found(ignore=[0, 1, 2])) == 1


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("balls", "chest", r'there is no shape or body "balls", did you mean "ball"'),
        ("chest", "toe", r'b is "toe", as shapes \[1, 3\] are called: give a number, or the name of a body'),
        ("ball", "ball", r"a and b are both 'ball'"),
        (2, 2, "a and b are both 2"),
        (99, 0, "a 99: the model has shapes 0 to 6"),
        (0, -1, "b -1: the model has shapes 0 to 6"),
        (0, 1.5, "b must be a name or a number, not 1.5"),
        (0, None, "b must be a name or a number, not None"),
        ("bare", 0, 'a is body "bare", which has no shape that can touch anything'),
        ("pin", 0, 'a is body "pin", which has no shape that can touch anything'),
        ("head", 0, r'shape "head" is visual only \(group and mask 0\)'),
    ],
)
def test_names_that_mean_nothing(a: Any, b: Any, message: str) -> None:
    model = feet()
    with pytest.raises(ValueError, match=message):
        closest(model, model.q_rest, a, b)


def test_what_has_no_distance() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.plane(), name="slope", fixed=True)
    for name in ("hills", "dunes"):
        scene.add(poise.height_field(np.zeros((3, 3)), 1.0, 1.0), name=name, fixed=True)
    model = scene.compile()
    with pytest.raises(ValueError, match=r'shapes "ground\[0\]" and "slope\[0\]" are planes, which have no end'):
        closest(model, model.q_rest, "ground", "slope")
    with pytest.raises(ValueError, match="are a field and a field; fields and meshes are measured against convex"):
        closest(model, model.q_rest, "hills", "dunes")


@pytest.mark.parametrize(
    ("point", "options", "message"),
    [
        ((0, 0, math.nan), {}, r"point\[2\] is nan"),
        ((0, math.inf, 0), {}, r"point\[1\] is inf"),
        ((0, 0), {}, r"point must be vectors \(x, y, z\)"),
        (np.zeros((2, 3)), {}, r"point has shape \(2, 3\); it must be one point"),
        ((0, 0, 1e16), {}, "1e[+]15 m is the farthest"),
        ("here", {}, "point must be vectors"),
        ((0, 0, 0), {"most": math.nan}, "most is nan"),
        ((0, 0, 0), {"most": "far"}, "most must be a distance, found 'far'"),
        ((0, 0, 0), {"groups": 1.5}, "groups must be a whole number"),
        ((0, 0, 0), {"groups": True}, "groups must be a whole number"),
        ((0, 0, 0), {"ignore": ["nobody"]}, 'there is no body "nobody"'),
    ],
)
def test_points_that_are_none(point: Any, options: dict[str, Any], message: str) -> None:
    model = feet()
    with pytest.raises(ValueError, match=message):
        closest_points(model, model.q_rest, point, **options)


def test_poses_that_are_none() -> None:
    model = feet()
    q = model.q_rest.copy()
    q[0] = math.nan
    for ask in (lambda q: closest(model, q, 0, 1), lambda q: closest_points(model, q, (0, 0, 0))):
        with pytest.raises(ValueError, match=r"q\[0\] is nan"):
            ask(q)
        with pytest.raises(ValueError, match="one pose"):
            ask(np.tile(model.q_rest, (2, 1)))


def test_a_model_without_shapes() -> None:
    model = Scene().compile()
    assert closest_points(model, model.q_rest, (0, 0, 0)) == []
    with pytest.raises(ValueError, match="the model has no shapes"):
        closest(model, model.q_rest, 0, 1)
