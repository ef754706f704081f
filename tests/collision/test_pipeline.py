"""From a pose to contacts: the list grows, has an end and is sorted, and every contact has a name that stays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import poise
from collision.crowds import colliders, crowd, found, places, spheres
from poise.collision import contact_ids, detector
from poise.collision.broadphase.pair_filter import ranks
from poise.collision.collision_layout import CONTACTS, contacts_block
from poise.collision.detector import Collider, contacts
from poise.dynamics.workspace import workspace
from poise.kernel.jit import entry
from poise.kernel.memory import F32X16, F64, F64X8, Block, Width
from poise.model.scene import Scene

SETTLE = entry(contact_ids.settle_ids, CONTACTS)
WIDTHS = (F64, F64X8, F32X16)


@pytest.mark.parametrize("search", ["few", "many"])
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_the_list_grows_as_it_must(width: Width, search: str) -> None:
    model = spheres(60, fill=2.0)
    roomy, narrow = (Collider(model, width, room, search) for room in (1000, 1))
    for collider in (roomy, narrow):
        q = model.q_rest if width.lanes == 1 else np.tile(model.q_rest, (width.lanes, 1))
        collider.place(q)
        collider.touch()
    assert len(found(roomy)) > 64
    for world in range(width.lanes):
        assert found(narrow, world) == found(roomy, world)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_hard_cap_is_told(width: Width, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detector, "HARD_CAP", 100)
    model = spheres(30)
    collider = Collider(model, width, room=8)
    collider.x.position[1:] = 1.0
    with pytest.raises(MemoryError, match="435 contacts in one world; 100 is the most"):
        collider.touch()
    collider.x.position[1:29, 0] = np.arange(28.0).reshape(-1, *[1] * (width.lanes > 1))
    collider.touch()
    assert [(c.a, c.b) for c in collider.contacts()] == [(2, 29), (2, 30), (29, 30)]


def test_a_list_that_is_just_below_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room grows by half, but not beyond the cap."""
    monkeypatch.setattr(detector, "HARD_CAP", 435)
    collider = Collider(spheres(30), room=8)
    collider.x.position[1:] = 1.0
    collider.touch()
    assert len(collider.contacts()) == 435


@pytest.mark.parametrize("search", ["few", "many"])
def test_find_places_shapes_where_the_state_has_them(search: str) -> None:
    model = crowd(40, seed=3)
    collider = Collider(model, search=search)
    for q in places(model, np.random.default_rng(0), 3, 0.2):
        other = Collider(model, search=search)
        other.place(q)
        other.touch(0.02)
        collider.find(workspace(model), 0.02)
        assert found(collider) == found(other) != []


def test_contacts_are_sorted_by_ranks() -> None:
    model = crowd(60)
    place = np.empty(len(model.solids), int)
    place[ranks(model)] = np.arange(len(model.solids))
    for collider in colliders(model):
        collider.place(model.q_rest)
        collider.touch(0.05)
        rows = [(place[c.a], place[c.b]) for c in collider.contacts()]
        assert len(rows) > 50
        assert all(one <= other for one, other in pairwise(rows))
        assert all(a < b for a, b in rows)


# ---- ids -------------------------------------------------------------------------------------------------------------


def test_ids_are_31_bits_of_shapes_and_feature() -> None:
    model = spheres(300, fill=2.0)
    collider = Collider(model)
    collider.place(model.q_rest)
    collider.touch()
    names = [contact.id for contact in collider.contacts()]
    assert len(set(names)) == len(names) > 500
    assert 0 <= min(names) < 1 << 24 < 1 << 30 < max(names) < 1 << 31


def test_ids_stay_from_frame_to_frame_and_in_every_way_of_searching() -> None:
    """Whoever comes and goes: a pair with its feature has one name."""
    model, rng = crowd(50, seed=2), np.random.default_rng(0)
    known: dict[tuple[int, int, int], int] = {}
    seen, kept = 0, 0
    for q in places(model, rng, 6):
        for collider in colliders(model):
            collider.place(q)
            collider.touch(0.02)
            for c in collider.contacts():
                key = (c.a, c.b, c.feature)
                seen, kept = seen + 1, kept + (key in known)
                assert known.setdefault(key, c.id) == c.id
    assert seen > kept > seen // 2
    assert len(set(known.values())) == len(known)


def test_hashes_spread_evenly() -> None:
    """300,000 names of neighbouring numbers: as many twins as 31 random bits have, 21 ± 4.6 (five sigmas)."""

    @contact_ids.kernel
    def name_all(c):
        for a in range(100):
            for b in range(100):
                for feature in range(30):
                    contact_ids.store(c.id, (a * 100 + b) * 30 + feature, contact_ids.contact_id(a, 100 + b, feature))

    block = contacts_block(F64, 300_000)
    entry(name_all, CONTACTS)[F64](block.handle)
    twins = 300_000 - len(np.unique(block.id))
    expected = 300_000**2 / 2**32
    assert abs(twins - expected) <= 5.0 * np.sqrt(expected)
    assert np.all(np.bincount(block.id >> 27, minlength=16) > 0.97 * 300_000 / 16)


def list_of(width: Width, rows: list[list[int]], room: int) -> Block:
    """Contacts with these ids, a list a world."""
    block = contacts_block(width, room)
    count, names = (a.reshape(-1, width.lanes) for a in (block.count, block.id))
    names[...] = 7  # what is beyond the end does not matter
    for world in range(width.lanes):
        row = rows[world % len(rows)]
        count[0, world] = len(row)
        names[: len(row), world] = row
    return block


def settled(names: list[int]) -> list[int]:
    """The rule, as a sentence: who comes later takes the next number that is free."""
    taken: list[int] = []
    for name in names:
        while name in taken:
            name = (name + 1) & contact_ids.BITS
        taken.append(name)
    return taken


@pytest.mark.parametrize("length", [0, 1, 2, 20, contact_ids.FEW, contact_ids.FEW + 1, 200])
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_clashes_are_settled(width: Width, length: int) -> None:
    rng = np.random.default_rng(length)
    rows = [
        rng.integers(0, 1 << 31, length).tolist(),
        rng.integers(0, length + 1, length).tolist(),
        [contact_ids.BITS] * length,
        rng.integers(0, 1 << 31, length // 2).tolist(),
    ]
    block = list_of(width, rows, max(length, 1))
    assert SETTLE[width](block.handle) == length
    names = block.id.reshape(-1, width.lanes)
    for world in range(width.lanes):
        row = rows[world % len(rows)]
        assert names[: len(row), world].tolist() == settled(row)


def test_a_list_without_room_is_left_alone() -> None:
    block = list_of(F64, [[3, 3, 3]], 3)
    block.count[0] = 1000
    assert SETTLE[F64](block.handle) == 1000
    assert block.id.tolist() == [3, 3, 3]


# ---- hostile ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slack", [-1e-9, np.nan, np.inf])
def test_slack_is_a_distance(slack: float) -> None:
    model = spheres(2)
    with pytest.raises(ValueError, match=rf"slack is {slack}; it must be a distance, 0 or more"):
        contacts(model, model.q_rest, slack)


@pytest.mark.parametrize("room", [0, -3])
def test_there_must_be_room(room: int) -> None:
    with pytest.raises(ValueError, match=f"room for {room} contacts; it must be 1 at least"):
        Collider(spheres(2), room=room)


def test_a_search_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"search is 'grid'; it may be 'few' or 'many', or None"):
        Collider(spheres(2), search="grid")  # type: ignore[arg-type]


@pytest.mark.parametrize("world", [-1, 8])
def test_a_world_that_there_is_not(world: int) -> None:
    collider = Collider(spheres(2), F64X8)
    with pytest.raises(IndexError, match=f"world {world} of 8"):
        collider.contacts(world)


def test_as_many_poses_as_worlds() -> None:
    model = spheres(2)
    with pytest.raises(ValueError, match="3 poses for 8 worlds: give one each"):
        Collider(model, F64X8).place(np.tile(model.q_rest, (3, 1)))
    with pytest.raises(ValueError, match="2 poses for 1 worlds"):
        contacts(model, np.tile(model.q_rest, (2, 1)))


def test_margins_and_slack_add_up() -> None:
    """Two balls 30 mm apart; margins of 10 and 15 mm leave 5 mm to the slack."""
    scene = Scene()
    scene.add(poise.sphere(0.1, margin=0.01), name="a")
    scene.add(poise.sphere(0.1, margin=0.015), name="b", position=(0.23, 0, 0))
    model = scene.compile()
    assert contacts(model, model.q_rest, 0.004) == []
    (contact,) = contacts(model, model.q_rest, 0.006)
    assert contact.gap == pytest.approx(0.03, abs=1e-15)
    assert contact.depth == -contact.gap
    assert contact.point.tolist() == pytest.approx([0.115, 0.0, 0.0])
