"""Rays meet shapes where they are: against roots found by halving and triangles one by one, in 80-bit numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import poise
from collision.ray_reference import (
    convex_function,
    crossings,
    in_frame,
    norm,
    rays_about,
    still,
)
from poise.collision.ray_casting.rays import cast, places
from poise.motion.rotations import quat_to_matrix
from strategies import unit_quat, vector

POINTS = np.random.default_rng(5).normal(size=(30, 3)) * (0.4, 0.6, 0.3)
CONVEX = {
    "sphere": (poise.sphere(0.7), (0.7, 0, 0)),
    "capsule": (poise.capsule(0.2, 1.0), (0.2, 0.5, 0)),
    "box": (poise.box(0.4, 1.0, 0.7), (0.2, 0.5, 0.35)),
    "cylinder": (poise.cylinder(0.3, 0.8), (0.3, 0.4, 0)),
    "ellipsoid": (poise.ellipsoid(0.6, 1.0, 0.3), (0.3, 0.5, 0.15)),
    "hull": (poise.convex([tuple(p) for p in POINTS]), (0, 0, 0)),
}
#: |f| at a computed hit: coordinates of some metres, rounded some twenty times
SURFACE = 1e-14
#: the distance is the root of f: its error is that of f over its slope along the ray, here at least 1e-3
DISTANCE = 1e-9


def shape_points(model, kind):
    return model.solids.vertices if kind == "hull" else None


@pytest.mark.parametrize("far", [0.05, 2.0, 1e4], ids=["inside", "outside", "far away"])
@pytest.mark.parametrize("kind", CONVEX)
def test_convex_shapes(kind, far) -> None:
    rng = np.random.default_rng(len(kind))
    shape, size = CONVEX[kind]
    model = still(shape, vector(rng), unit_quat(rng))
    reach = float(model.solids.reach[0])
    o, d = rays_about(rng, 400, reach, far)
    o += model.solids.position[0]
    hits = cast(model, model.q_rest, o, d)
    po, pd = in_frame(model, o, d)
    f = convex_function(kind, size, shape_points(model, kind))
    enter, leave, least = crossings(f, po, pd, reach)
    rounding = 1e-15 * (1.0 + far)
    clear = np.abs(least) > 10 * rounding
    wanted = (least <= 0) & (leave >= 0)
    assert wanted.sum() > 40
    np.testing.assert_array_equal(hits.hit[clear], wanted[clear])
    t = np.where(enter >= 0, enter, leave)
    both = hits.hit & wanted & clear
    at = po[both] + pd[both] * hits.distance[both, None]
    assert np.abs(f(at)).max() < SURFACE + 10 * rounding
    slope = np.abs(f(at + pd[both] * 1e-6) - f(at - pd[both] * 1e-6)) / 2e-6
    good = slope > 1e-3
    assert good.sum() > 0.9 * both.sum()
    error = np.abs(hits.distance[both] - t[both])[good]
    assert (error / np.maximum(t[both][good], 1e-3)).max() < DISTANCE
    inside = f(po) < -1e-9
    assert inside.sum() > 100 if far < 1 else inside.sum() < 100
    np.testing.assert_allclose(
        hits.point[both],
        o[both] + (d / np.linalg.norm(d, axis=1)[:, None] * hits.distance[:, None])[both],
        atol=1e-12 * (1 + far),
    )


@pytest.mark.parametrize("kind", CONVEX)
def test_normals_are_gradients_and_point_outward(kind) -> None:
    rng = np.random.default_rng(3)
    shape, size = CONVEX[kind]
    model = still(shape, vector(rng), unit_quat(rng))
    o, d = rays_about(rng, 300, float(model.solids.reach[0]), 2.0)
    o += model.solids.position[0]
    hits = cast(model, model.q_rest, o, d)
    seen = hits.hit
    f = convex_function(kind, size, shape_points(model, kind))
    turn = quat_to_matrix(model.solids.quat_wxyz[0])
    local = (hits.point[seen] - model.solids.position[0]) @ turn
    step = 1e-6
    slopes = [(f(local + step * e) - f(local - step * e)) / (2 * step) for e in np.eye(3)]
    gradient = np.stack(slopes, axis=1)
    smooth = np.ones(len(local), bool)  # away from edges, where the gradient is that of one face
    for e in np.eye(3):
        bend = np.abs(f(local + 1e-4 * e) + f(local - 1e-4 * e) - 2 * f(local))
        smooth &= np.asarray(bend < 2e-6, bool)
    assert smooth.sum() > 100
    np.testing.assert_allclose(np.linalg.norm(hits.normal[seen], axis=1), 1.0, rtol=1e-12)
    gradient /= norm(gradient)[:, None]
    # central differences: step² times a third derivative of at most 100/m², and rounding over the step
    np.testing.assert_allclose((hits.normal[seen] @ turn)[smooth], gradient[smooth].astype(float), atol=1e-8)


def test_from_inside_the_surface_is_met_from_within() -> None:
    model = still(poise.sphere(2.0))
    hits = cast(model, model.q_rest, (0.5, 0, 0), [(1, 0, 0), (-1, 0, 0), (0, 1, 0)])
    np.testing.assert_allclose(hits.distance, [1.5, 2.5, math.sqrt(4 - 0.25)], rtol=1e-15)
    assert ((hits.normal * [(1, 0, 0), (-1, 0, 0), (0, 1, 0)]).sum(axis=1) > 0).all()


@pytest.mark.parametrize("kind", CONVEX)
def test_rays_along_the_axes_with_noughts_in_their_directions(kind) -> None:
    shape, _ = CONVEX[kind]
    model = still(shape)
    half = model.solids.size[0] if kind not in ("sphere", "capsule", "cylinder") else None
    if kind == "sphere":
        half = np.full(3, 0.7)
    if kind == "capsule":
        half = np.array([0.2, 0.2, 0.7])
    if kind == "cylinder":
        half = np.array([0.3, 0.3, 0.4])
    if kind == "hull":
        model = still(poise.convex([(x, y, z) for x in (-1, 1) for y in (-2, 2) for z in (-3, 3)]))
        half = np.array([1.0, 2.0, 3.0])
    ways = np.concatenate((np.eye(3), -np.eye(3)))
    hits = cast(model, model.q_rest, -5.0 * ways, ways)
    np.testing.assert_allclose(hits.distance, 5.0 - np.concatenate((half, half)), rtol=1e-15)
    np.testing.assert_allclose(hits.normal, -ways, atol=1e-15)
    # nearly along the axes: the same but for a billionth
    hits = cast(model, model.q_rest, -5.0 * ways, ways + 1e-12)
    np.testing.assert_allclose(hits.distance, 5.0 - np.concatenate((half, half)), rtol=1e-11)
    # beside, a millimetre off the shape
    beside = np.roll(ways, 1, axis=1) * (np.roll(np.concatenate((half, half)), 0).max() + 0.001)
    assert not cast(model, model.q_rest, beside - 5.0 * ways, ways).hit.any()


@pytest.mark.parametrize("off", [1e-3, 1e-6, 1e-9, 1e-12])
def test_grazing_rays(off) -> None:
    """At a distance r (1 ± off) from the axis of a round shape: half a chord is r √(2 off − off²)."""
    for shape in (poise.sphere(0.5), poise.capsule(0.5, 1.0), poise.cylinder(0.5, 1.0), poise.ellipsoid(1, 1, 1)):
        model = still(shape)
        for turn in np.linspace(0.0, 6.0, 7):
            side = np.array((math.cos(turn), math.sin(turn), 0.0))
            along = np.array((-math.sin(turn), math.cos(turn), 0.0))
            over, under = (side * 0.5 * (1 + sign * off) - 3.0 * along for sign in (1, -1))
            hits = cast(model, model.q_rest, [over, under], along)
            assert hits.hit.tolist() == [False, True]
            half = 0.5 * math.sqrt(2 * off - off * off)
            # the squares of two lengths of 0.5 m are rounded, and their difference is half²
            assert hits.distance[1] == pytest.approx(3.0 - half, abs=1e-15 / half + 1e-14)


def test_on_the_edges_and_faces_of_a_box() -> None:
    model = still(poise.box(2, 2, 2))
    assert cast(model, model.q_rest, (1, 0, 5), (0, 0, -1)).distance == 4.0  # within a face: boundaries belong to it
    assert cast(model, model.q_rest, (1, 1, 5), (0, 0, -1)).distance == 4.0
    diagonal = cast(model, model.q_rest, (3, 3, 3), (-1, -1, -1))  # at a corner
    assert diagonal.distance == pytest.approx(2 * math.sqrt(3), rel=1e-15)
    assert not cast(model, model.q_rest, (1 + 1e-12, 0, 5), (0, 0, -1)).hit


def test_planes_are_met_from_both_sides_and_not_along() -> None:
    quat = (math.cos(0.2), 0, math.sin(0.2), 0)  # normal turned by 0.4 about y
    model = still(poise.plane(), (0, 0, 1), quat)
    hits = cast(
        model,
        model.q_rest,
        [(0, 0, 3), (0, 0, -1), (0, 5, 3), (0, 0, 3)],
        [(0, 0, -1), (0, 0, 2), (0, 1, 0), (0, 0, 1)],
    )
    assert hits.distance.tolist() == pytest.approx([2.0, 2.0, math.inf, math.inf], rel=1e-15)
    np.testing.assert_allclose(hits.normal[:2], [(math.sin(0.4), 0, math.cos(0.4))] * 2, atol=1e-15)


# ---- scenes ----------------------------------------------------------------------------------------------------------


def crowd() -> poise.Model:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 0.3))
    for k, (shape, _) in enumerate(CONVEX.values()):
        scene.add(shape, name=f"thing{k}", position=(1.0 + k, 0.5 * k - 1, 0.5))
    return scene.compile()


def test_the_nearest_shape_of_many_wherever_they_have_moved() -> None:
    """The same as one shape after another."""
    rng, model = np.random.default_rng(1), crowd()
    q = poise.dynamics.displaced(model, model.q_rest, 0.3 * rng.normal(size=model.nv))
    o, d = rng.normal((0, 0, 1), size=(500, 3)), rng.normal(size=(500, 3))
    hits = cast(model, q, o, d)
    assert set(hits.shape) >= {-1, 0}
    assert len(set(hits.shape)) > 12
    alone = []
    solids, everyone = model.solids, set(range(model.n_bodies))
    for body in sorted(everyone):
        alone.append(cast(model, q, o, d, ignore=sorted(everyone - {body})))
        shown = alone[-1].shape[alone[-1].hit]
        assert set(solids.body[shown]) <= {body}
    np.testing.assert_array_equal(hits.distance, np.min([one.distance for one in alone], axis=0))
    position, rotation = places(model, q)
    where = poise.dynamics.bodies(model, q)
    np.testing.assert_allclose(rotation[1], where.rotation[1] @ quat_to_matrix(solids.quat_wxyz[1]), atol=1e-14)
    np.testing.assert_allclose(position[1], where.position[1] + where.rotation[1] @ solids.position[1], atol=1e-14)


def test_many_rays_are_as_good_as_one() -> None:
    model = crowd()
    rng = np.random.default_rng(6)
    o, d = rng.normal((0, 0, 1), size=(40000, 3)), rng.normal(size=(40000, 3))
    many = cast(model, model.q_rest, o, d)
    for k in (0, 7, 8, 32767, 32768, 39999):
        one = cast(model, model.q_rest, o[k], d[k])
        assert one.distance.shape == ()
        assert one.point.shape == (3,)
        np.testing.assert_array_equal(one.distance, many.distance[k])
        np.testing.assert_array_equal(one.normal, many.normal[k])
        np.testing.assert_array_equal(one.shape, many.shape[k])


def test_near_far_and_ignored_bodies() -> None:
    scene = poise.Scene()
    for k in range(3):
        scene.add(poise.sphere(0.5), name=f"ball{k}", position=(2.0 * k, 0, 0))
    model = scene.compile()

    def look(**options):
        hits = cast(model, model.q_rest, (-2, 0, 0), (3, 0, 0), **options)
        return float(hits.distance), int(hits.shape)

    assert look() == (1.5, 0)
    assert look(near=1.6) == (2.5, 0)  # from within
    assert look(near=2.6) == (3.5, 1)
    assert look(ignore=["ball0"]) == look(ignore=[0]) == (3.5, 1)
    assert look(ignore=["ball0", "ball1"], far=5.4) == (math.inf, -1)
    assert look(ignore=["ball0", "ball1"], far=5.6) == (5.5, 2)


def test_shapes_of_rays() -> None:
    model = crowd()
    hits = cast(model, model.q_rest, np.full((4, 1, 3), 5.0), np.full((5, 3), -1.0))
    assert hits.distance.shape == hits.shape.shape == (4, 5)
    assert hits.point.shape == hits.normal.shape == (4, 5, 3)
    nothing = cast(model, model.q_rest, np.zeros((0, 3)), (0, 0, 1))
    assert nothing.distance.shape == (0,)
    empty = poise.Scene().compile()
    missed = cast(empty, empty.q_rest, (0, 0, 1), (0, 0, -1))
    assert missed.distance == math.inf
    assert missed.shape == -1
    assert np.isnan(missed.point).all()
    assert np.isnan(missed.normal).all()


def test_directions_of_any_length() -> None:
    model = still(poise.sphere(1.0))
    hits = cast(model, model.q_rest, (3, 0, 0), [(-1e-300, 0, 0), (-1e300, 0, 0), (-5e-324, 0, 0)])
    assert hits.distance.tolist() == [2.0, 2.0, 2.0]


def test_extreme_sizes() -> None:
    for size in (1e-6, 1e6):
        model = still(poise.sphere(size))
        hits = cast(model, model.q_rest, (3 * size, 0.5 * size, 0), (-1, 0, 0))
        assert hits.distance == pytest.approx((3 - math.sqrt(0.75)) * size, rel=1e-14)
    thin = still(poise.ellipsoid(2.0, 2.0, 2e-6))
    assert cast(thin, thin.q_rest, (0.6, 0, 5), (0, 0, -1)).distance == pytest.approx(5 - 0.8e-6, rel=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directions": (0, 0, 0)}, r"directions is \(0, 0, 0\), which leads nowhere"),
        ({"directions": [(0, 0, 1), (0, 0, 0)]}, r"directions\[1\] is \(0, 0, 0\)"),
        ({"directions": (0, math.nan, 1)}, r"directions\[1\] is nan; every number must be finite"),
        ({"origins": (0, 0, math.inf)}, r"origins\[2\] is inf"),
        ({"origins": (0, 0)}, r"origins must be vectors \(x, y, z\) in the last axis, found an array of shape \(2,\)"),
        ({"origins": 3.0}, "origins must be vectors"),
        ({"origins": "here"}, "origins must be vectors"),
        ({"origins": (1e16, 0, 0)}, "origins has numbers up to 1e[+]16; 1e[+]15 m is the farthest"),
        ({"origins": np.zeros((2, 3)), "directions": np.ones((3, 3))}, r"origins \(2, 3\) and directions \(3, 3\)"),
        ({"near": -1.0}, "0 ≤ near ≤ far, found -1 and inf"),
        ({"near": 2.0, "far": 1.0}, "0 ≤ near ≤ far, found 2 and 1"),
        ({"near": math.nan}, "0 ≤ near ≤ far"),
        ({"far": math.nan}, "0 ≤ near ≤ far"),
        ({"ignore": ["heroo/pelvis"]}, "there is no body"),
        ({"ignore": [99]}, "body 99: the model has"),
        ({"q": [0.0]}, "q has shape"),
    ],
)
def test_hostile_input(change, message) -> None:
    model = crowd()
    given = {"q": model.q_rest, "origins": (0, 0, 1), "directions": (0, 0, -1)} | change
    with pytest.raises((ValueError, KeyError, poise.SceneError), match=message):
        cast(model, **given)


def test_a_batch_of_poses_is_refused() -> None:
    model = crowd()
    with pytest.raises(ValueError, match="rays are cast at one pose"):
        cast(model, np.tile(model.q_rest, (2, 1)), (0, 0, 1), (0, 0, 1))
    with pytest.raises(TypeError, match="must be a compiled model"):
        cast(poise.Scene(), [0.0], (0, 0, 1), (0, 0, 1))
