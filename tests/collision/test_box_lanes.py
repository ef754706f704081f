"""Boxes through the whole way of a model: worlds in lanes have the contacts of single worlds, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.collision.detector import Collider, contacts
from poise.kernel.memory import F32, F32X16, F64, F64X8, Width
from poise.model.model import Model


def pile() -> Model:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(2.0, 2.0, 0.2), name="table", fixed=True)
    scene.add(poise.box(0.5, 0.4, 0.3), name="box")
    scene.add(poise.box(0.3, 0.3, 0.3), name="cube")
    scene.add(poise.sphere(0.2), name="ball")
    scene.add(poise.capsule(0.1, 0.5), name="rod")
    return scene.compile()


@pytest.mark.parametrize(("width", "single"), [(F64X8, F64), (F32X16, F32)], ids=str)
def test_lanes_are_single_worlds(width: Width, single: Width) -> None:
    model = pile()
    rng = np.random.default_rng(0)
    together = Collider(model, width)
    n = len(model.solids)
    q, _ = np.linalg.qr(rng.normal(size=(width.lanes, n, 3, 3)))
    turns = (q * np.linalg.det(q)[..., None, None]).astype(width.dtype)
    places = rng.uniform(-0.4, 0.4, (width.lanes, n, 3)).astype(width.dtype)
    turns[:, 0], places[:, 0] = np.eye(3), 0.0
    together.x.position[...] = np.moveaxis(places, 0, -1)
    together.x.rotation[...] = np.moveaxis(turns.reshape(width.lanes, n, 9), 0, -1)
    together.touch(0.02)
    total = 0
    for world in range(width.lanes):
        alone = Collider(model, single)
        alone.x.position[...], alone.x.rotation[...] = places[world], turns[world].reshape(n, 9)
        alone.touch(0.02)
        mine, theirs = alone.contacts(), together.contacts(world)
        assert [(c.a, c.b, c.feature, c.id) for c in mine] == [(c.a, c.b, c.feature, c.id) for c in theirs]
        for one, other in zip(mine, theirs, strict=True):
            assert one.gap == other.gap
            assert np.array_equal(one.normal, other.normal)
            assert np.array_equal(one.point, other.point)
        total += len(mine)
    assert total > 10 * width.lanes


def test_contacts_of_a_scene() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.499))
    model = scene.compile()
    found = contacts(model, model.q_rest)
    assert len(found) == 4
    assert {round(contact.depth, 12) for contact in found} == {0.001}
    assert sorted(contact.feature for contact in found) == [0, 1, 2, 3]
