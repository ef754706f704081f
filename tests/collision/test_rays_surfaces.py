"""Rays meet height fields and meshes where their triangles are, and nothing falls through between these."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from collision.ray_reference import field_triangles, first_triangle, in_frame, rays_about, round_mesh, still
from poise.collision.ray_casting.rays import cast
from poise.motion.rotations import quat_to_matrix
from strategies import unit_quat, vector


def landscape(rows: int = 9, columns: int = 13):
    return np.random.default_rng(2).uniform(-0.3, 0.5, (rows, columns))


def test_height_fields_are_the_triangles_that_they_are_said_to_be() -> None:
    rng, heights = np.random.default_rng(8), landscape()
    model = still(poise.height_field(heights, 4.0, 3.0), vector(rng), unit_quat(rng))
    o, aim = rng.normal(size=(600, 3)) * (3, 3, 1), rng.uniform(-1, 1, (600, 3)) * (2.2, 1.7, 0.4)
    turn = quat_to_matrix(model.solids.quat_wxyz[0])
    world, way = o @ turn.T + model.solids.position[0], (aim - o) @ turn.T
    hits = cast(model, model.q_rest, world, way)
    wanted = first_triangle(field_triangles(heights, 4.0, 3.0), *in_frame(model, world, way))
    # rays that run along an edge of the rim may go either way
    assert (hits.hit == np.isfinite(wanted)).mean() > 0.995
    both = hits.hit & np.isfinite(wanted)
    assert both.sum() > 300
    np.testing.assert_allclose(hits.distance[both], wanted[both].astype(float), rtol=1e-9, atol=1e-12)
    point = (hits.point[both] - model.solids.position[0]) @ turn
    normal = hits.normal[both] @ turn
    assert (normal[:, 2] > 0).all()
    for e in ((1e-7, 0), (0, 1e-7)):  # the surface that the normal is across goes on where it says
        ahead = point + np.array((*e, 0.0)) + np.array((0, 0, 1.0))
        ahead[:, 2] -= (normal[:, 0] * e[0] + normal[:, 1] * e[1]) / normal[:, 2]
        down = cast(model, model.q_rest, ahead @ turn.T + model.solids.position[0], -turn[:, 2])
        close = np.abs(down.distance - 1.0) < 1e-10
        assert close.mean() > 0.98  # but where an edge lies within 1e-7


def test_nothing_falls_through_a_height_field() -> None:
    """Rays along the borders and the diagonals of cells, and straight down on their corners."""
    heights = landscape(5, 5)
    model = still(poise.height_field(heights, 4.0, 4.0))
    x, y = np.meshgrid(np.arange(-2.0, 2.1), np.arange(-2.0, 2.1))
    above = np.stack((x, y, np.full_like(x, 3.0)), axis=-1)
    hits = cast(model, model.q_rest, above, (0, 0, -1))
    np.testing.assert_allclose(3.0 - hits.distance, heights, atol=1e-15)
    below = cast(model, model.q_rest, above * (1, 1, -1), (0, 0, 1))
    np.testing.assert_allclose(below.distance - 3.0, heights, atol=1e-15)
    # from above one corner to below another one, along a line of the grid
    for way in ((1, 0), (0, 1), (1, 1)):
        o = np.array((-1.0, -1.0, 0.6))
        hits = cast(model, model.q_rest, o, (*(2.0 * np.array(way)), -1.0))
        assert hits.hit
        at = hits.point
        down = cast(model, model.q_rest, (at[0], at[1], 3.0), (0, 0, -1))
        assert at[2] == pytest.approx(3.0 - down.distance, abs=1e-14)


def test_meshes_are_their_triangles() -> None:
    rng = np.random.default_rng(4)
    vertices, faces = rng.normal(size=(60, 3)), rng.integers(0, 60, (150, 3))
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])]
    model = still(poise.triangle_mesh(vertices, faces, group=0, mask=0), vector(rng), unit_quat(rng))
    o, d = rays_about(rng, 800, 1.5, 3.0)
    hits = cast(model, model.q_rest, o, d)
    po, pd = in_frame(model, o, d)
    solids = model.solids
    corners = solids.vertices[solids.faces]
    wanted = first_triangle(corners, po, pd)
    np.testing.assert_array_equal(hits.hit, np.isfinite(wanted))
    both = hits.hit
    np.testing.assert_allclose(hits.distance[both], wanted[both].astype(float), rtol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(hits.normal[both], axis=1), 1.0, rtol=1e-12)


def test_nothing_slips_through_between_triangles() -> None:
    """Rays at the corners, the middles of edges and points close to them of a closed mesh, from in- and outside."""
    vertices, faces = round_mesh(2)
    model = still(poise.triangle_mesh(vertices, faces))
    solids = model.solids
    corners = (solids.vertices + solids.position[0])[solids.faces].reshape(-1, 3, 3)
    share = np.random.default_rng(0).random((len(corners), 1))
    middles = [corners[:, k] * share + corners[:, k - 1] * (1 - share) for k in range(3)]
    aims = np.concatenate((corners.reshape(-1, 3), *middles))
    aims = np.concatenate((aims, aims + 1e-16, aims * (1 + 1e-15)))
    for o in ((0.0, 0.0, 0.0), (0.1, -0.2, 0.3)):
        hits = cast(model, model.q_rest, o, aims - o)
        assert hits.hit.all()
        np.testing.assert_allclose(hits.distance, np.linalg.norm(aims - np.array(o), axis=1), rtol=1e-9)
    outside = cast(model, model.q_rest, aims * 5.0, -aims)
    assert outside.hit.all()
    assert np.abs(outside.normal * aims).sum(axis=1).min() > 0.5
