"""Which pairs may touch: the rules one by one, and against a plain loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from collision.crowds import colliders, crowd
from poise.collision.broadphase import pair_filter
from poise.collision.broadphase.pair_filter import candidate_pairs, may_touch, ranks
from poise.model.contact_pairs import ContactPair
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene


def by_hand(model: Model) -> set[tuple[int, int]]:
    """The rules, as sentences."""
    solids, excluded = model.solids, {frozenset(map(int, pair)) for pair in model.excluded}
    paired = {frozenset(map(int, pair)) for pair in model.contact_pairs}
    allowed = set()
    for a in range(len(solids)):
        for b in range(len(solids)):
            link_a, link_b = int(solids.link[a]), int(solids.link[b])
            if a == b or link_a == link_b:
                continue
            if frozenset((a, b)) in paired:
                if (solids.kind[a], a) < (solids.kind[b], b):
                    allowed.add((a, b))
                continue
            if min(link_a, link_b) >= 0 and (
                model.link_parent[link_a] == link_b or model.link_parent[link_b] == link_a
            ):
                continue
            if not (int(solids.group[a]) & int(solids.mask[b]) or int(solids.group[b]) & int(solids.mask[a])):
                continue
            if frozenset((int(solids.body[a]), int(solids.body[b]))) in excluded:
                continue
            if (solids.kind[a], a) < (solids.kind[b], b):
                allowed.add((a, b))
    return allowed


@pytest.mark.parametrize("seed", range(4))
def test_against_a_loop(seed: int) -> None:
    model = crowd(40, seed)
    found = candidate_pairs(model)
    assert found.dtype == np.int32
    assert len(found) == len(set(map(tuple, found.tolist())))
    assert set(map(tuple, found.tolist())) == by_hand(model)
    assert np.all(may_touch(model, found[:, 0], found[:, 1]))
    assert np.all(may_touch(model, found[:, 1], found[:, 0]))


def test_sorted_by_ranks() -> None:
    model = crowd(40)
    place = np.empty(len(model.solids), int)
    place[ranks(model)] = np.arange(len(model.solids))
    assert np.all(np.diff(model.solids.kind[ranks(model)]) >= 0)
    rows = place[candidate_pairs(model)]
    assert np.all(rows[:, 0] < rows[:, 1])
    assert rows.tolist() == sorted(rows.tolist())


@pytest.mark.parametrize("room", [1, 7, 1000])
def test_looked_at_in_pieces(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = crowd(30)
    whole = candidate_pairs(model)
    monkeypatch.setattr(pair_filter, "ROOM", room)
    assert np.array_equal(candidate_pairs(model), whole)


def names(model: Model) -> set[frozenset[str]]:
    body = [model.body_names[b] for b in model.solids.body]
    return {frozenset((body[a], body[b])) for a, b in candidate_pairs(model).tolist()}


def row_of_balls(**options: object) -> Scene:
    """A chain a–b–c, a ball that is free, a floor, a post."""
    ball, hinge = poise.sphere(0.1), [Joint("hinge")]
    chain = [Body(n, parent=p, joints=hinge, shapes=[ball]) for n, p in (("a", None), ("b", "a"), ("c", "b"))]
    scene = Scene(bodies=[*chain, Body("free", joints=[Joint("free")], shapes=[ball])], **options)
    scene.add_ground()
    scene.add(poise.sphere(0.1), name="post", fixed=True)
    return scene


def test_neighbours_and_what_never_moves_are_left_out() -> None:
    every = {frozenset(p) for p in ("ac", *(("free", x) for x in "abc"))}
    every |= {frozenset((x, y)) for x in ("a", "b", "c", "free") for y in ("ground", "post")}
    assert names(row_of_balls().compile()) == every


def test_excluded_pairs_are_left_out_however_they_are_named() -> None:
    once = names(row_of_balls().compile())
    scene = row_of_balls(excluded_pairs=[("c", "a"), ("free", "ground"), ("ground", "free")])
    assert once - names(scene.compile()) == {frozenset("ac"), frozenset(("free", "ground"))}


def test_contact_pairs_touch_whatever_else_says_otherwise() -> None:
    once = names(row_of_balls().compile())
    mute = {"group": 1 << 30, "mask": 0}
    scene = row_of_balls(excluded_pairs=[("free", "ground")])
    scene.add(poise.sphere(0.1, **mute), name="mute", joint="free")
    wanted = [("a", "b"), ("ground", "free"), ("mute", "ground"), ("post", "ground")]
    scene.contact_pairs = [ContactPair((one, 0), (other, 0)) for one, other in wanted]
    assert names(scene.compile()) == once | {frozenset(pair) for pair in wanted[:3]}


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ((1, 0), (0, 1), True),
        ((1, 1), (2, 2), False),
        ((1, 2), (2, 0), True),
        ((0, 0), (1, 1), False),
        ((1 << 30, 0), (0, 1 << 30), True),
        ((0x7FFFFFFF, 0), (0, 1 << 30), True),
        ((1 << 30, 1 << 30), (1, 1), False),
    ],
)
def test_groups_and_masks(one: tuple[int, int], other: tuple[int, int], meet: bool) -> None:
    scene = Scene()
    for k, (group, mask) in enumerate((one, other)):
        scene.add(poise.sphere(0.1, group=group, mask=mask), name=f"ball{k}")
    model = scene.compile()
    assert len(candidate_pairs(model)) == meet
    for collider in colliders(model):
        collider.touch()
        assert len(collider.contacts()) == meet


def test_no_shapes() -> None:
    assert candidate_pairs(Scene().compile()).shape == (0, 2)
    assert ranks(Scene().compile()).shape == (0,)
