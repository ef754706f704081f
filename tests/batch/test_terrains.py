"""Worlds of a batch that stand on different terrains: each moves as one whose scene never had the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poise
from crowd_bits import bits, same, shuffle_worlds
from poise.batch.worlds import Batch

TERRAINS = {
    "flat": ["floor"],
    "stairs": ["low step", "high step"],
    "hill": ["hill"],
    "roof": ["roof"],
    "nothing": [],
}
"""A plane, boxes, a height field, a mesh, and no ground at all."""
EXACT = poise.Reduced(tolerance=1e-11)


def heights() -> np.ndarray:
    x, y = np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-2, 2, 9))
    return np.asarray(0.1 * np.cos(2 * x) * np.cos(3 * y))


def toys(terrains: dict[str, list[str]]) -> poise.Scene:
    """Balls, boxes and a capsule above terrains, beside a post that all worlds have."""
    names = {name for parts in terrains.values() for name in parts}
    scene = poise.Scene()
    if "floor" in names:
        scene.add_ground(name="floor")
    for k in range(4):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"toy {k}", position=(0.05 * k, 0.02 * k, 0.4 + 0.25 * k))
    if "low step" in names:
        scene.add(poise.box(2.0, 4.0, 0.2), name="low step", position=(-0.9, 0, -0.1), fixed=True)
        scene.add(poise.box(2.0, 4.0, 0.2), name="high step", position=(1.1, 0, 0.05), fixed=True)
    scene.add(poise.box(0.1, 0.1, 2.0), name="post", position=(0.35, 0, 1), fixed=True)
    if "hill" in names:
        scene.add(poise.height_field(heights(), 4.0, 4.0), name="hill", fixed=True)
    if "roof" in names:
        corners = [(-2, -2, -0.3), (2, -2, -0.3), (2, 2, -0.3), (-2, 2, -0.3), (0, 0, 0.05)]  # below other terrains
        faces = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
        scene.add(poise.triangle_mesh(corners, faces, open=True), name="roof", fixed=True)
    scene.add(poise.capsule(0.08, 0.3), name="roll", position=(-0.3, 0.1, 0.5))
    return scene


def batch_of(terrains: dict[str, list[str]], n: int, **options: Any) -> Batch:
    """Worlds on terrains in turn, each in a state of its own."""
    batch = toys(terrains).build_batch(n, terrains=terrains, **({"dt": 1 / 240, "threads": 1} | options))
    batch.terrain = np.arange(n) % len(terrains)
    batch.q, batch.v = thrown(batch, n)
    return batch


def thrown(batch: Batch, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    q = np.repeat(batch.model.q_rest[None], n, axis=0)
    q[:, [0, 1, 7, 8, 14, 15]] += rng.uniform(-0.1, 0.1, (n, 6))
    return q, 0.5 * rng.normal(size=(n, batch.model.nv))


# ---- what is not chosen is not there ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "vary"), [("f32", ()), ("f64", ()), ("f64", ("friction",))])
def test_a_world_is_that_of_a_scene_with_its_terrain_alone(precision: str, vary: tuple[str, ...]) -> None:
    """To the bit, on each sort of terrain, with the others in its very place."""
    n = 20
    options: dict[str, Any] = {"precision": precision, "vary": vary}
    mixed = batch_of(TERRAINS, n, **options)
    friction = np.linspace(0.1, 1.0, n)[:, None]
    if vary:
        mixed.vary(friction=friction)
    mixed.step(120)
    assert not mixed.diverged.any()
    for k, (name, parts) in enumerate(TERRAINS.items()):
        own = np.arange(n) % len(TERRAINS) == k
        alone = toys({name: parts}).build_batch(n, dt=1 / 240, threads=1, **options)
        alone.q, alone.v = thrown(alone, n)
        if vary:
            alone.vary(friction=friction)
        alone.step(120)
        assert same(bits(mixed), bits(alone), own), name
        if parts:
            assert alone.contacts[own].min() > 0


def test_without_terrains_all_shapes_are_there() -> None:
    """The test above can fail: the shapes of all terrains together are another world."""
    chosen = batch_of({"all": [name for parts in TERRAINS.values() for name in parts]}, 8)
    plain = toys(TERRAINS).build_batch(8, dt=1 / 240, threads=1)
    plain.q, plain.v = thrown(plain, 8)
    mixed = batch_of(TERRAINS, 8)
    for batch in (chosen, plain, mixed):
        batch.step(120)
    assert same(bits(chosen), bits(plain))
    assert not np.isclose(mixed.q, plain.q, atol=1e-3).all(axis=1).any()


def test_nobody_feels_on_what_others_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits whichever worlds make a group, on whatever threads, and where a neighbour is lost."""
    n = 37
    expected = batch_of(TERRAINS, n)
    for _ in range(30):
        expected.step(3)
    shuffle_worlds(monkeypatch)
    for threads in (1, 3):
        batch = batch_of(TERRAINS, n, threads=threads)
        batch.tau[5, 0] = np.nan
        for _ in range(30):
            batch.step(3)
        assert batch.diverged.tolist() == [k == 5 for k in range(n)]
        assert same(bits(batch), bits(expected), np.arange(n) != 5)


def test_steps_at_once_are_steps_one_by_one() -> None:
    one, other = batch_of(TERRAINS, 15, precision="f64"), batch_of(TERRAINS, 15, precision="f64")
    for _ in range(60):
        one.step()
    other.step(60)
    assert same(bits(one)[:2], bits(other)[:2])


def test_shapes_may_be_in_several_terrains_and_go_by_their_own_names() -> None:
    """Balls come to rest on the highest shape that their terrain has; one body has two of them."""
    scene = poise.Scene()
    boxes = [poise.box(1, 1, 0.2, name=f"slab {k}", position=(0, 0, 0.5 * k)) for k in range(2)]
    scene.add(poise.Body("slabs", shapes=boxes), fixed=True)
    scene.add_ground()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0.8))
    terrains = {"both": "slabs", "low": ["slab 0", "slab 0"], "slabs and ground": ["slabs", "ground"], "none": []}
    batch = scene.build_batch(4, EXACT, dt=1 / 240, precision="f64", threads=1, terrains=terrains)
    batch.terrain = range(4)
    batch.step(240)
    assert batch.terrains == tuple(terrains)
    fallen = 0.8 - 9.81 * 0.5  # steps of free fall are exact
    assert batch.q[:3, 2] == pytest.approx([0.7, 0.2, 0.7], abs=1e-4)
    assert batch.q[3, 2] == pytest.approx(fallen, abs=1e-9)
    assert batch.contacts.tolist() == [1, 1, 1, 0]


# ---- choosing anew ---------------------------------------------------------------------------------------------------


def test_another_terrain_begins_without_memory() -> None:
    """A world that changes terrain goes on as one that begins there in its state; others go on as if nothing was."""
    changed, kept = batch_of(TERRAINS, 10, precision="f64"), batch_of(TERRAINS, 10, precision="f64")
    changed.step(80)
    kept.step(80)
    changed.terrain[[1, 6]] = 0, 3
    changed.terrain[2] = 2  # as before
    fresh = batch_of(TERRAINS, 10, precision="f64")
    fresh.q, fresh.v, fresh.terrain = changed.q, changed.v, changed.terrain
    for batch in (changed, kept, fresh):
        batch.step(40)
    new = np.isin(np.arange(10), [1, 6])
    assert same(bits(changed)[:2], bits(fresh)[:2], new)
    assert same(bits(changed), bits(kept), ~new)
    assert not np.array_equal(changed.q[~new], fresh.q[~new])  # memory does make a difference


def test_worlds_begin_anew_on_other_terrains() -> None:
    batch = batch_of(TERRAINS, 6, precision="f64")
    batch.step(50)
    batch.reset([0, 2], terrain="stairs")
    batch.reset([3, 4], terrain=["nothing", "hill"])
    batch.reset([False] * 5 + [True], terrain=3)
    batch.reset([], terrain=[])
    assert batch.terrain.tolist() == [1, 1, 1, 4, 2, 3]
    batch.reset()
    assert batch.terrain.tolist() == [1, 1, 1, 4, 2, 3]  # as what acts, it stays
    fresh = toys(TERRAINS).build_batch(6, dt=1 / 240, precision="f64", threads=1, terrains=TERRAINS)
    fresh.terrain = ["stairs", "stairs", "stairs", "nothing", "hill", "roof"]
    batch.step(70)
    fresh.step(70)
    assert same(bits(batch), bits(fresh))
    fresh.terrain = "hill"
    assert fresh.terrain.tolist() == [2] * 6


def test_reports_tell_of_the_own_terrain() -> None:
    scene = poise.Scene()
    scene.add_ground(), scene.add_ground(height=0.5, name="table")
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.6))
    terrains = {"low": ["ground"], "high": ["table"]}
    batch = scene.build_batch(2, EXACT, dt=1 / 240, precision="f64", threads=1, terrains=terrains)
    batch.terrain = ["low", "high"]
    batch.step(240)
    for world, name in enumerate(("ground", "table")):
        told = batch.report(world)
        assert [(contact.body_a, contact.body_b) for contact in told.contacts] == [(name, "ball")]
        assert told.contacts[0].normal_force == pytest.approx(2.0 * 9.81, rel=1e-6)
        assert told.overlap < 1e-3  # the ball of world 0 is all inside the table that it has not


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terrains", "error", "message"),
    [
        ({"flat": ["flor"]}, ValueError, 'terrain "flat": no body or shape is called "flor", did you mean "floor"'),
        ({"flat": ["floor"], "toys": ["toy 1"]}, ValueError, r'"toys": shape "toy 1\[0\]" moves with body "toy 1"'),
        ({"flat": ["world"]}, ValueError, 'terrain "flat": no body or shape is called "world"'),
        ({"flat": ["bare"]}, ValueError, 'terrain "flat": body "bare" has no shapes'),
        ({"flat": [3]}, TypeError, 'terrain "flat" has 3; it must be a list of names'),
        ({"flat": 3}, TypeError, 'terrain "flat" must be a list of names of bodies and shapes, not 3'),
        ({"flat": None}, TypeError, 'terrain "flat" must be a list'),
        ({3: ["floor"]}, TypeError, "terrains have names, not 3"),
        ({"": ["floor"]}, TypeError, "terrains have names, not ''"),
        ({}, ValueError, "terrains is empty"),
        (["floor"], TypeError, "terrains must map names to lists of shapes, not be a list"),
    ],
)
def test_terrains_that_cannot_be_are_refused(terrains: Any, error: type[Exception], message: str) -> None:
    scene = toys(TERRAINS)
    scene.add(poise.Body("bare"), fixed=True)
    with pytest.raises(error, match=message):
        scene.build_batch(3, terrains=terrains)


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ("stars", ValueError, "no terrain is called 'stars', did you mean \"stairs\""),
        (["flat", "stairs", "moon"], ValueError, "no terrain is called 'moon'"),
        (5, ValueError, r'terrain is 5; there are 0 \("flat"\), 1 \("stairs"\)'),
        (-1, ValueError, "terrain is -1; there are"),
        ([0, 1, 2**40], ValueError, f"terrain is {2**40}"),
        ([0, 1], ValueError, r"terrain has shape \(2,\); it may be one name or number, or \(3,\)"),
        (1.0, TypeError, "by names or whole numbers, not by float64"),
        (np.nan, TypeError, "by names or whole numbers, not by float64"),
        (True, TypeError, "by names or whole numbers, not by bool"),
        (None, TypeError, "by names or whole numbers, not by None"),
    ],
)
def test_choices_that_cannot_be_are_refused(choice: Any, error: type[Exception], message: str) -> None:
    """And leave all as it was."""
    batch = batch_of(TERRAINS, 3)
    batch.step(2)
    before = bits(batch)
    with pytest.raises(error, match=message):
        batch.terrain = choice
    if choice is not None:
        with pytest.raises(error, match=message):
            batch.reset(terrain=choice)
    assert batch.terrain.tolist() == [0, 1, 2]
    assert same(bits(batch), before)


def test_numbers_that_were_written_are_checked_before_anything_moves() -> None:
    batch = batch_of(TERRAINS, 3)
    before = bits(batch)
    batch.terrain[1] = 9
    with pytest.raises(ValueError, match=r'terrain\[1\] is 9; there are 0 \("flat"\)'):
        batch.step()
    assert same(bits(batch), before)
    batch.terrain[1] = 0
    batch.step()
    assert (batch.time > 0.0).all()


def test_a_batch_without_terrains_has_none_to_choose() -> None:
    batch = toys(TERRAINS).build_batch(2, threads=1)
    assert batch.terrains == ()
    for choose in (lambda: batch.terrain, lambda: setattr(batch, "terrain", 0), lambda: batch.reset(terrain=0)):
        with pytest.raises(ValueError, match="make the batch with terrains="):
            choose()
