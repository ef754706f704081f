"""The row store from Python: what is written, growth, ids, lanes."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.constraints.row_parts import point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.row_store import HARD_CAP, KINDS, NO_END, STRIDES, VERTICES
from poise.constraints.row_validation import NUMBERS, Term
from poise.constraints.rows import Rows
from poise.kernel.memory import F32X16, F64, F64X8, Width
from poise.kernel.vec import Vec3
from poise.model.model import Model
from poise.model.scene import Body, Inertia, Joint, Scene
from poise.solve.laws import Law, dead_zone, stiffening

WIDTHS = (F64, F64X8, F32X16)
EASY = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
UP = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
EYES = np.concatenate([np.zeros((3, 3)), np.roll(np.eye(3), 1, axis=0)], axis=1)
"""Normal along z, tangents along x and y."""


def arm_model() -> Model:
    inertia = Inertia(1.0, moments=(1.0, 1.0, 1.0))
    bodies = [Body("hero/torso", joints=[Joint("free", name="hero/root")], inertia=inertia)]
    bodies += [Body("hero/arm", "hero/torso", joints=[Joint("hinge", name="hero/elbow")], inertia=inertia)]
    return Scene(bodies=bodies).compile()


MODEL = arm_model()


def one(rows: Rows, world: int = 0) -> dict[str, np.ndarray]:
    """Arrays of a world."""
    arrays, lanes = rows.now.arrays.items(), rows.width.lanes
    return {k: a if lanes == 1 or k in ("first", "room") else a[..., world] for k, a in arrays}


# ---- what is written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_everything_of_a_row_is_written(width: Width) -> None:
    rows, world = Rows(MODEL, width, room={"term": 0}), width.lanes - 1
    Ja, Jb, J = np.arange(18.0).reshape(3, 6)
    numbers = {name: k / 16 for k, name in enumerate(NUMBERS, 1)}
    terms = [Term("arm", J), Term(dof="elbow", coefficient=2.5), Term(-1, J)]
    given_ = {"a": "hero/torso", "Ja": Ja, "b": "arm", "Jb": Jb, "dof": "elbow", "coefficient": -3.0, "terms": terms}
    assert rows.add(id=9, world=world, **given_, **numbers) == 9
    rows.add(id=10, dof=2, world=world)
    slots, mine = rows.listing().slots, one(rows, world)
    first, second = slots
    assert (mine["a"][first], mine["b"][first], mine["dof"][first], mine["Jdof"][first]) == (0, 1, 6, -3.0)
    np.testing.assert_array_equal(mine["Ja"][first], Ja)
    np.testing.assert_array_equal(mine["Jb"][first], Jb)
    assert {name: mine[name][first] for name in NUMBERS} == numbers
    bodies, dofs = rows.body_terms(int(first), world), rows.dof_terms(int(first), world)
    assert [(b, six.tolist()) for b, six in bodies] == [(0, Ja.tolist()), (1, Jb.tolist()), (1, J.tolist())]
    assert dofs == [(6, -3.0), (6, 2.5)]
    defaults = dict.fromkeys(NUMBERS, 0.0) | {"lo": -inf, "hi": inf, "erp": 1.0}
    assert {name: mine[name][second] for name in NUMBERS} == defaults
    assert (rows.body_terms(int(second), world), rows.dof_terms(int(second), world)) == ([], [(2, 1.0)])
    assert rows.ids(world) == [9, 10]
    assert rows.counts(world) == {"single": 2, "law": 0, "contact": 0, "ball": 0}
    if world:
        assert rows.ids(0) == []


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_blocks_and_laws_are_written(width: Width) -> None:
    rows, world = Rows(MODEL, width), width.lanes - 1
    Ja, Jb = np.arange(36.0).reshape(2, 3, 6)
    rows.add_contact(id=5, a="torso", Ja=Ja, b="arm", Jb=Jb, mu=0.75, phi=-0.5, target=(1, 2, 3), world=world)
    rows.add_ball(id=6, a=-1, Ja=Jb, b="arm", Jb=Ja, radius=8.0, beta=(4, 5, 6), world=world)
    rows.add(id=7, dof="elbow", law=Law(((-2.0, 1.0), (0.0, 0.0), (4.0, -3.0)), left=-0.5), world=world)
    listing, mine = rows.listing(), one(rows, world)
    assert [KINDS[k] for k in listing.kinds] == ["law", "contact", "ball"]
    assert listing.starts.tolist() == [0, 1, 4, 7]
    contact, ball = listing.slots[1:4], listing.slots[4:]
    np.testing.assert_array_equal(mine["Ja"][contact], Ja)
    np.testing.assert_array_equal(mine["Jb"][ball], Ja)
    assert mine["phi"][contact].tolist() == [-0.5, 0.0, 0.0]
    assert mine["target"][contact].tolist() == [1.0, 2.0, 3.0]
    assert mine["beta"][ball].tolist() == [4.0, 5.0, 6.0]
    assert mine["a"][[*contact, *ball]].tolist() == [0, 0, 0, -1, -1, -1]
    assert (mine["bound"][contact[0]], mine["bound"][ball[0]]) == (0.75, 8.0)
    assert mine["law_lam"][:VERTICES].tolist() == [-2.0, 0.0, *[4.0] * 6]
    assert mine["law_w"][:VERTICES].tolist() == [1.0, 0.0, *[-3.0] * 6]
    assert (mine["law_left"][0], mine["law_right"][0]) == (0.5, 0.0)
    assert rows.ids(world) == [7, 5, 6]


def test_an_upright_end_of_a_law_is_told_from_slopes() -> None:
    rows = Rows(MODEL)
    rows.add(id=0, dof=0, law=dead_zone(-1.0, 1.0, -5.0, 5.0))
    rows.add(id=1, dof=0, law=stiffening([1.0], [1.0, 1.0]))
    assert rows.now.law_left[:2].tolist() == [NO_END, 1.0]
    assert rows.now.law_right[:2].tolist() == [NO_END, 1.0]


def test_a_part_is_added_on_two_and_on_four_bodies() -> None:
    rng = np.random.default_rng(3)
    q, v = MODEL.q_rest.copy(), rng.normal(size=MODEL.nv)
    torso, arm, world = (body_at(MODEL, q, v, body) for body in ("torso", "arm", -1))
    pa, pb = Vec3(0.1, 0.2, 0.3), Vec3(-0.3, 0.2, 0.4)
    rope = point_parts.distance(torso, arm, pa, pb)
    belt = point_parts.gear(rope, point_parts.distance(world, arm, pa, pb), 0.5, 0.1)
    rows = Rows(MODEL)
    rows.add_part(rope, ("torso", "arm"), id=0, hi=0.0)
    rows.add_part(belt, ("torso", "arm", -1, "arm"), id=1, phi=0.25)
    mine = rows.now.arrays
    assert (mine["phi"][0], mine["gamma"][0], mine["hi"][0]) == (float(rope.phi), float(rope.gamma), 0.0)
    assert (mine["phi"][1], mine["gamma"][1]) == (0.25, float(belt.gamma))
    np.testing.assert_array_equal(mine["Jb"][0], [float(x) for x in rope.b.leaves()])
    bodies = rows.body_terms(1)
    assert [body for body, _ in bodies] == [0, 1, 1]
    np.testing.assert_array_equal(bodies[2][1], [float(x) for x in belt.d.leaves()])


# ---- growth ----------------------------------------------------------------------------------------------------------


def snapshot(rows: Rows) -> list[Any]:
    """Everything that each world's blocks are, without where they lie."""
    out: list[Any] = []
    for world in range(rows.width.lanes):
        mine, listing = one(rows, world), rows.listing()
        fields = [*NUMBERS, "a", "b", "Ja", "Jb", "dof", "Jdof", "lam"]
        for slot in listing.slots:
            out.append([mine[name][slot].tolist() for name in fields])
            out += [[(b, J.tolist()) for b, J in rows.body_terms(int(slot), world)], rows.dof_terms(int(slot), world)]
        firsts = listing.slots[listing.starts[:-1]]
        out += [mine["id"][firsts].tolist(), mine["bound"][firsts].tolist(), rows.counts(world), rows.ids(world)]
        n = int((listing.kinds == KINDS.index("law")).sum())
        out += [mine["law_lam"][: n * VERTICES].tolist(), mine["law_w"][: n * VERTICES].tolist()]
        out += [mine["law_left"][:n].tolist(), mine["law_right"][:n].tolist()]
    return out


def add_anything(rows: Rows, rng: np.random.Generator, id: int, world: int) -> None:
    """A random block of a random kind."""
    kind = rng.integers(4)
    if kind < 2:
        law = stiffening([float(rng.uniform(1, 2))], [0.5, 0.25])
        extra: dict[str, Any] = {"law": law} if kind else {"lo": -1.0, "phi": rng.normal()}
        terms = [Term("arm", rng.normal(size=6)), Term(dof=3, coefficient=float(rng.normal()))][: rng.integers(3)]
        rows.add(id=id, a=0, Ja=rng.normal(size=6), terms=terms, world=world, **extra)
        return
    Ja, Jb = rng.normal(size=(2, 3, 6))
    if kind == 2:
        rows.add_contact(id=id, Ja=Ja, b=1, Jb=Jb, mu=float(rng.uniform(0, 2)), world=world)
    else:
        rows.add_ball(id=id, Ja=Ja, b=1, Jb=Jb, radius=float(rng.uniform(0, 2)), world=world)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@EASY
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 60))
def test_growth_keeps_everything(width: Width, seed: int, count: int) -> None:
    """The same blocks in a store that grows all the time, and in one with room: the same rows, in both steps."""
    small = dict.fromkeys((*KINDS, "term"), 0)
    large = dict.fromkeys((*KINDS, "term"), 200)
    stores = []
    for room in (small, large):
        rng, rows = np.random.default_rng(seed), Rows(MODEL, width, room)
        for k in range(count):
            add_anything(rows, rng, k, int(rng.integers(width.lanes)))
        slots = rows.listing().slots
        rows.now.lam[slots] = rng.normal(size=rows.now.lam[slots].shape)
        rows.listing()  # blanks what no world has
        first = snapshot(rows)
        rows.begin()
        for k in range(count, 2 * count):  # growth now moves the step before as well
            add_anything(rows, rng, k, int(rng.integers(width.lanes)))
        second = snapshot(rows)
        rows.begin()
        rows.now, rows.before = rows.before, rows.now
        stores.append((first, second))
        assert not rows.full()
    assert stores[0] == stores[1]


def test_room_is_made_by_halves() -> None:
    rows = Rows(MODEL, room={"single": 4, "contact": 2})
    rows.now.count[0] = 9
    assert rows.full()
    rows.grow()
    assert rows.now.room.tolist() == [13, 1, 2, 1]
    assert not rows.full()
    rows.now.term_count[0] = 21
    assert rows.full()
    rows.grow()
    assert rows.now.counts()["term_room"] == 31
    assert rows.before.counts()["term_room"] == 31
    assert rows.before.room.tolist() == rows.now.room.tolist()


def test_hard_cap() -> None:
    rows = Rows(MODEL)
    rows.now.count[2] = HARD_CAP + 1
    with pytest.raises(MemoryError, match=f"{HARD_CAP + 1} contact blocks in one world; {HARD_CAP} is the most"):
        rows.grow()
    rows.now.count[2] = 0
    rows.now.term_count[0] = HARD_CAP + 1
    with pytest.raises(MemoryError, match=f"{HARD_CAP + 1} further terms in one world; {HARD_CAP} is the most"):
        rows.grow()
    rows.clear()
    rows.now.count[0] = HARD_CAP
    with pytest.raises(MemoryError, match=f"{HARD_CAP} single blocks in world 0; that is the most"):
        rows.add(id=5, dof=0)
    assert rows.now.count[0] == HARD_CAP


def test_terms_beyond_their_room_are_noticed_though_no_row_is_new() -> None:
    rows = Rows(MODEL, room={"term": 2})
    rows.add(id=0, dof=0)
    rows.listing()
    rows.now.term_count[0] = 3
    with pytest.raises(ValueError, match="no room for: grow, and emit them again"):
        rows.listing()


# ---- lanes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS[1:], ids=str)
def test_slots_that_a_world_does_not_use_are_nought(width: Width) -> None:
    """Whatever was in the slot before, it has no Jacobian, no bounds, no terms, no law, no id."""
    rng = np.random.default_rng(5)
    rows = Rows(MODEL, width)
    for array in (*rows.now.arrays.values(), *rows.before.arrays.values()):
        if array.ndim > 1 and len(array) > 4:  # lanes, but not the counts
            array[...] = 7
    busy, idle = 3, 5
    for k in range(12):
        add_anything(rows, rng, k, busy)
    rows.add_contact(id=20, Ja=EYES, b=1, Jb=EYES, mu=1.0, world=busy)
    rows.add(id=21, dof=0, law=dead_zone(-1, 1), world=busy)
    before = {name: array[..., busy].copy() for name, array in rows.now.arrays.items() if array.ndim > 1}
    listing = rows.listing()
    for name, array in before.items():
        np.testing.assert_array_equal(rows.now.arrays[name][..., busy], array, err_msg=name)
    mine = one(rows, idle)
    for name in ("a", "b", "dof", "term"):
        assert np.all(mine[name][listing.slots] == -1), name
    for name in ("Ja", "Jb", "Jdof", "lam", *NUMBERS):
        assert not mine[name][listing.slots].any(), name
    firsts = listing.slots[listing.starts[:-1]]
    assert np.all(mine["id"][firsts] == -1)
    assert not mine["bound"][firsts].any()
    n = int((listing.kinds == KINDS.index("law")).sum())
    assert n > 0
    assert not mine["law_lam"][: n * VERTICES].any()
    assert not mine["law_w"][: n * VERTICES].any()
    assert np.all(mine["law_left"][:n] == NO_END)
    assert np.all(mine["law_right"][:n] == NO_END)
    assert rows.ids(idle) == []


def test_ids_are_each_worlds_own() -> None:
    rows = Rows(MODEL, F64X8)
    for world in range(8):
        for id in (3, 4):
            rows.add(id=id + world, dof=0, world=world)
    assert [rows.ids(world) for world in range(8)] == [[3 + w, 4 + w] for w in range(8)]
    with pytest.raises(ValueError, match="world 2 has a row of id 5 already"):
        rows.add(id=5, dof=0, world=2)
    rows.add_contact(id=9, Ja=EYES, b=0, Jb=EYES, mu=0.0, world=2)
    assert rows.ids(2) == [5, 6, 9]
    assert STRIDES[KINDS.index("contact")] == len(rows.multipliers(9, 2))
