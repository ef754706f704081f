"""Near pairs: boxes hold their shapes, both searches find the same contacts, and nothing that touches is missed."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from collision.crowds import colliders, crowd, found, places, spheres
from poise.collision.broadphase import search as searches
from poise.collision.broadphase.morton_order import sorted_slots
from poise.collision.broadphase.pair_filter import candidate_pairs, ranks
from poise.collision.broadphase.search import Many
from poise.collision.collision_layout import CONTACTS, MANIFOLD, PAIRS, PLACES, SHAPES, contacts_block, pairs_block
from poise.collision.detector import Collider
from poise.collision.narrowphase.dispatch import collide
from poise.kernel.jit import entry
from poise.kernel.memory import F32, F32X16, F64, F64X8, Width
from poise.model.model import Model
from poise.model.scene import Scene
from poise.model.shapes import Shape
from strategies import unit_quat, vector

_collide = entry(collide, SHAPES, PLACES, PAIRS, CONTACTS, MANIFOLD, extra=("float64",))


def without_search(collider: Collider, slack: float) -> list[tuple]:
    """Contacts of all pairs that may touch, none left out for its box."""
    pairs = candidate_pairs(collider.model)
    other = Collider(collider.model, room=10_000)
    other.x.position[...], other.x.rotation[...] = collider.x.position, collider.x.rotation
    other.c = contacts_block(F64, 10_000)
    blocks = (other.g, other.x, pairs_block(pairs, F64), other.c, other.t)
    _collide[F64](*(block.handle for block in blocks), slack)
    return found(other)


@pytest.mark.parametrize("slack", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_missed(seed: int, slack: float) -> None:
    model = crowd(60, seed)
    rng = np.random.default_rng(seed)
    for q in places(model, rng, 3):
        every = None
        for collider in colliders(model):
            collider.place(q)
            collider.touch(slack)
            every = every if every is not None else without_search(collider, slack)
            assert len(every) > 20
            assert found(collider) == every


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 64, 65, 300])
def test_both_searches_find_the_same_at_every_size_of_the_tree(n: int) -> None:
    model = spheres(n, seed=n, fill=1.0)
    few, many = colliders(model)
    for collider in (few, many):
        collider.place(model.q_rest)
        collider.touch()
    assert found(few) == found(many)
    assert n < 20 or len(found(many)) > n // 2


def test_frame_after_frame_and_after_a_jump() -> None:
    """The order of the slots is kept while shapes drift, and made anew after a jump; contacts do not depend on it."""
    model, rng = spheres(400, fill=0.7), np.random.default_rng(0)
    few, many = colliders(model)
    sorts, sort = [], Many._sort
    assert isinstance(many._search, Many)
    many._search._sort = lambda: (sorts.append(frame), sort(many._search))  # type: ignore[method-assign]
    few.place(model.q_rest)
    at, speed = few.x.position.copy(), rng.normal(size=few.x.position.shape)
    for frame in range(60):
        if frame == 50:
            at[1:] = rng.permutation(at[1:])
        for collider in (few, many):
            collider.x.position[1:] = (at + 0.002 * frame * speed)[1:]
            collider.touch()
        assert found(few) == found(many)
    assert sorts[0] == 0
    assert len(sorts) <= 6
    assert any(50 <= number <= 52 for number in sorts)


def test_the_tree_is_made_anew_only_when_it_got_worse() -> None:
    model = spheres(1000)
    many = Collider(model, search="many")
    many.place(model.q_rest)
    assert isinstance(many._search, Many)
    work = []
    for frame in range(4):
        if frame == 1:
            many.x.position[1:] = np.random.default_rng(0).permutation(many.x.position[1:])
        many.touch()
        work.append(int(many._search._r.work[0]))
    assert work[1] > 0.9 * 125 * 126 / 2  # of shapes in any order, nearly all pairs of 125 leaves meet
    assert work[2] == work[3] < 1.2 * work[0]


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["few", "many"])
@pytest.mark.parametrize("width", [F64X8, F32X16], ids=str)
def test_lanes_find_what_single_worlds_find(width: Width, search: str) -> None:
    """Bit for bit, in the same order, ids included, though every world is another."""
    model = crowd(40, seed=5)
    rng = np.random.default_rng(1)
    q = places(model, rng, width.lanes, 0.3)
    lanes = Collider(model, width, room=4, search=search)
    lanes.place(q)
    lanes.touch(0.01)
    counts = set()
    for world in range(width.lanes):
        one = Collider(model, F64 if width.elem == "f64" else F32, search="few")
        one.x.position[...], one.x.rotation[...] = lanes.x.position[..., world], lanes.x.rotation[..., world]
        one.touch(0.01)
        assert found(one) == found(lanes, world)
        counts.add(len(found(one)))
    assert len(counts) > 3


# ---- boxes -----------------------------------------------------------------------------------------------------------

TETRAHEDRON = np.array([(0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.5), (-0.1, -0.2, -0.3)])
FACES = [(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)]
FORMS: dict[str, Shape] = {
    "sphere": poise.sphere(0.3),
    "capsule": poise.capsule(0.1, 0.7),
    "box": poise.box(0.2, 0.5, 0.9),
    "cylinder": poise.cylinder(0.4, 0.3),
    "ellipsoid": poise.ellipsoid(0.2, 0.6, 1.0),
    "convex": poise.convex(TETRAHEDRON),
    "mesh": poise.triangle_mesh(TETRAHEDRON, FACES),
    "field": poise.height_field([[0.1, -0.3, 0.2], [0.4, 0.0, 0.1]], 2.0, 1.0),
}


def extents(name: str, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest coordinates of a turned shape about its origin: support functions, in closed form."""
    points = {
        "convex": TETRAHEDRON,
        "mesh": TETRAHEDRON,
        "box": np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.25, 0.25) for z in (-0.45, 0.45)]),
        "field": np.array([(x, y, h) for x, y, h in _field_points()]),
    }
    if name in points:
        turned = points[name] @ R.T
        return turned.min(axis=0), turned.max(axis=0)
    axis = np.abs(R[:, 2])
    half = {
        "sphere": np.full(3, 0.3),
        "capsule": 0.35 * axis + 0.1,
        "cylinder": 0.15 * axis + 0.4 * np.sqrt(1.0 - axis**2),
        "ellipsoid": np.linalg.norm(R * (0.1, 0.3, 0.5), axis=1),
    }[name]
    return -half, half


def _field_points() -> list[tuple[float, float, float]]:
    heights = np.array([[0.1, -0.3, 0.2], [0.4, 0.0, 0.1]])
    return [(x, y, heights[r, c]) for r, y in enumerate((-0.5, 0.5)) for c, x in enumerate((-1.0, 0.0, 1.0))]


def boxes(collider: Collider) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) corners of the boxes of shapes, in the order of shapes."""
    block = collider._search._b  # type: ignore[attr-defined]
    low, high = (np.stack([block.arrays[f"{end}_{x}"] for x in "xyz"], axis=1) for end in ("low", "high"))
    order = ranks(collider.model)
    out = np.empty((2, *low.shape), low.dtype)
    out[0, order], out[1, order] = low, high
    return out[0], out[1]


@pytest.mark.parametrize("far", [0.0, 1e3])
@pytest.mark.parametrize("width", [F64, F32], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_boxes_hold_their_shapes_and_are_tight(name: str, width: Width, far: float) -> None:
    """Hulls, meshes and fields have the box of their box; all else has its own, but for the roundings of `grown`."""
    rng = np.random.default_rng(0)
    scene, count = Scene(), 30
    for k in range(count):
        place = tuple(float(x) + far for x in vector(rng))
        scene.add(FORMS[name], name=f"b{k}", position=place, quat_wxyz=unit_quat(rng), fixed=True)
    model = scene.compile()
    collider = Collider(model, width, search="many")
    collider.touch(0.02)
    low, high = boxes(collider)
    unit = 2.0**-53 if width is F64 else 2.0**-24
    for k in range(count):
        R = collider.x.rotation[k].reshape(3, 3).astype(np.float64)
        inside, outside = extents(name, R)
        p = collider.x.position[k].astype(np.float64)
        if name in ("convex", "mesh"):
            p = p - R @ (0.5 * (TETRAHEDRON.min(axis=0) + TETRAHEDRON.max(axis=0)))
        loose = np.minimum(p + inside - 0.01 - low[k], high[k] - p - outside - 0.01)
        assert np.all(loose >= 0.0)
        if name not in ("convex", "mesh", "field"):
            assert np.all(loose <= 8.0 * unit * (np.abs(p) + 32.0))


@pytest.mark.parametrize("search", ["few", "many"])
@pytest.mark.parametrize("tilt", [(1.0, 0.0, 0.0, 0.0), (0.9, 0.3, -0.2, 0.1), (0.1, 0.7, 0.7, 0.0)])
def test_planes_meet_what_reaches_them(tilt: tuple[float, ...], search: str) -> None:
    """Balls at heights of −1 to 1 m over a tilted plane: those whose lowest point is below it, far from its origin."""
    scene, rng = Scene(), np.random.default_rng(0)
    scene.add(poise.plane(quat_wxyz=tilt), fixed=True, position=(1.0, 2.0, 3.0))
    for k in range(100):
        scene.add(poise.sphere(0.1), name=f"b{k}")
    model = scene.compile()
    collider = Collider(model, search=search)
    R = collider.x.rotation[0].reshape(3, 3)
    heights = rng.uniform(-1, 1, 100)
    collider.x.position[1:] = (1.0, 2.0, 3.0) + np.c_[rng.uniform(-500, 500, (100, 2)), heights] @ R.T
    collider.touch()
    touching = {contact.b - 1 for contact in collider.contacts() if contact.a == 0}
    assert touching == set(np.flatnonzero(heights <= 0.1))


# ---- hostile ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, 1e12])
@pytest.mark.parametrize("search", ["few", "many"])
def test_a_shape_that_is_nowhere_disturbs_no_other(search: str, value: float) -> None:
    model = spheres(100, fill=1.0)
    collider = Collider(model, search=search)
    collider.place(model.q_rest)
    collider.touch()
    lost = {1, 50, 100}
    right = [row for row in found(collider) if not lost & set(row[:2])]
    assert 20 < len(right) < len(found(collider))
    other = Collider(model, search=search)
    other.x.position[...] = collider.x.position
    other.x.position[sorted(lost), 0] = value
    for _ in range(2):
        other.touch()
        assert [row for row in found(other) if not lost & set(row[:2])] == right


@pytest.mark.parametrize("search", ["few", "many"])
@pytest.mark.parametrize("what", ["nothing", "floor", "post", "ball", "floors"])
def test_hardly_any_shapes(search: str, what: str) -> None:
    scene = Scene()
    if what in ("floor", "floors"):
        scene.add_ground()
    if what == "floors":
        scene.add_ground(height=1.0, name="other")
    if what == "post":
        scene.add(poise.box(1, 1, 1), fixed=True)
    if what == "ball":
        scene.add(poise.sphere(1.0))
    collider = Collider(scene.compile(), search=search)
    collider.touch()
    assert collider.contacts() == []


@pytest.mark.parametrize("width", [F64, F32X16], ids=str)
def test_all_in_one_place(width: Width) -> None:
    """Every pair is near: the list of pairs grows."""
    model = spheres(70)
    many = Collider(model, width, search="many")
    many.x.position[1:] = 5.0
    many.touch()
    last = many.contacts(width.lanes - 1)
    assert [(c.a, c.b) for c in last] == [(a, b) for a in range(71) for b in range(a + 1, 71) if a and b]
    assert {contact.gap for contact in last} == {-0.1 if width is F64 else -2.0 * float(np.float32(0.05))}
    assert len({contact.id for contact in last}) == 70 * 69 // 2


def test_far_too_many_near_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "MOST_PAIRS", 1000)
    model = spheres(70)
    many = Collider(model, search="many")
    many.x.position[1:] = 5.0
    with pytest.raises(MemoryError, match="the boxes of 2415 pairs of shapes meet; 1000 is the most"):
        many.touch()


def test_one_far_away_does_not_spoil_the_tree() -> None:
    """A ball at 1e9 m: its leaf meets all 250 nodes of the tree of 125 leaves.

    The others are as they were, on a grid that lies otherwise: as if it were moved by up to 16 times their cube. All
    7750 pairs of leaves would meet in a tree that is spoilt.
    """
    model, work = spheres(1000), []
    side = np.ptp(model.q_rest.reshape(-1, 7)[:, 0])
    for place in (*(side * np.array((0.0, 0.5, 1.0, 1.7, 2.5, 4.0, 8.0, 16.0))), 1e9):
        many = Collider(model, search="many")
        many.place(model.q_rest)
        many.x.position[1, 0] += place
        many.touch()
        work.append(int(many._search._r.work[0]))  # type: ignore[attr-defined]
    assert work[-1] < max(work[:-1]) + 250


def test_large_among_small_do_not_spoil_the_tree() -> None:
    """Ten slabs through a crowd of 1,000 balls are compared with it once a leaf at most."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 2, (1000, 3))
    high = low + 0.1
    high[::100] += 5.0
    slots = sorted_slots(low, high)
    assert set(slots[-10:]) == set(range(0, 1000, 100))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_slots_of_boxes_that_are_not_finite(value: float) -> None:
    low, high = np.zeros((4, 3)), np.ones((4, 3))
    low[2, 1] = value
    assert sorted(sorted_slots(low, high)) == [0, 1, 2, 3]
    assert sorted(sorted_slots(low + value, high)) == [0, 1, 2, 3]
    assert sorted_slots(low[:0], high[:0]).shape == (0,)


def test_sorting_brings_neighbours_together() -> None:
    """On a grid of 8³ boxes each eight slots are a block of 2³."""
    grid = np.stack(np.meshgrid(*3 * (np.arange(8.0),), indexing="ij"), axis=-1).reshape(-1, 3)
    grid = np.random.default_rng(0).permutation(grid)
    slots = sorted_slots(grid, grid + 0.5).reshape(-1, 8)
    assert np.all(np.ptp(grid[slots], axis=1) == 1.0)


def test_still_leaves_are_not_compared() -> None:
    """A wall of 1,000 balls and one ball that moves: one leaf looks around."""
    scene = Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 0))
    for k in range(1000):
        scene.add(poise.sphere(0.1), name=f"wall{k}", position=(0.2 * (k % 100), 0.15, 0.2 * (k // 100)), fixed=True)
    many = Collider(scene.compile(), search="many")
    many.touch()
    assert len(many.contacts()) == 1
    assert many._search._r.work[0] < 10  # type: ignore[attr-defined]


def test_many_shapes_take_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def way(model: Model) -> str:
        return type(Collider(model)._search).__name__

    model = spheres(20)
    assert way(model) == "Few"
    monkeypatch.setattr("poise.collision.detector.FEW", 20)
    assert way(model) == "Many"
