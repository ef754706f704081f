"""Rows from step to step: lists that change, and multipliers that follow their ids."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints.test_rows import EASY, EYES, MODEL, WIDTHS
from poise.constraints.row_store import KINDS
from poise.constraints.row_validation import Term
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import keep_multipliers, warm_multipliers
from poise.kernel.memory import F64X8, Width
from poise.solve.laws import dead_zone


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_new_step_and_a_new_start(width: Width) -> None:
    rows, last = Rows(MODEL, width), width.lanes - 1
    rows.add(id=1, dof=0, terms=[Term(dof=1)], world=last)
    rows.now.lam[0] = 3.0
    rows.begin()
    assert rows.ids(last) == []
    assert not rows.now.term_count.any()
    rows.add(id=1, dof=0, world=last)
    assert rows.multipliers(1, last).tolist() == [0.0]
    rows.warm_start()
    assert rows.multipliers(1, last).tolist() == [3.0]
    rows.clear()
    rows.add(id=1, dof=0, world=last)
    rows.warm_start(scale=0.5)
    assert rows.multipliers(1, last).tolist() == [1.5]


def test_a_list_of_the_same_length_is_listed_anew_after_growth() -> None:
    """Growth moves regions: what was listed before it is of no use."""
    rows = Rows(MODEL, room={"single": 1, "contact": 1})
    rows.add(id=0, dof=0)
    rows.add_contact(id=1, Ja=EYES, b=1, Jb=EYES, mu=1.0)
    before = rows.listing().slots.tolist()
    rows.now.count[0] = 2
    rows.grow()
    rows.now.count[0] = 1
    after = rows.listing().slots
    assert before != after.tolist()
    np.testing.assert_array_equal(rows.now.Jb[after[1:]], EYES)


def frame(rng: np.random.Generator) -> np.ndarray:
    """Three directions at right angles: normal, tangents."""
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q * np.sign(np.diag(R))


def contact_rows(axes: np.ndarray, world_is_b: bool) -> dict[str, Any]:
    """Jacobians of a contact along three axes, with arms, on a body that is a or b; the world's part is left empty."""
    J = np.concatenate([np.cross([0.3, -0.2, 0.5], axes), axes], axis=1)
    none = np.zeros((3, 6))
    return {"a": 0, "Ja": -J, "b": -1, "Jb": none} if world_is_b else {"a": -1, "Ja": none, "b": 0, "Jb": J}


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("world_is_b", [False, True])
def test_the_force_of_a_contact_stays_while_its_tangents_turn(width: Width, world_is_b: bool) -> None:
    rng, rows = np.random.default_rng(8), Rows(MODEL, width)
    tolerance = 8 * float(np.finfo(width.dtype).eps)
    turns = rng.uniform(-3, 3, width.lanes)
    before = [frame(rng) for _ in turns]
    for world, axes in enumerate(before):
        rows.add_contact(id=4, mu=1.0, world=world, **contact_rows(axes, world_is_b))
    lam = rng.normal(size=(width.lanes, 3))
    keep_multipliers(rows, lam if width.lanes > 1 else lam[0])
    rows.begin()
    for world, (axes, turn) in enumerate(zip(before, turns, strict=True)):
        n, t, s = axes
        c, d = np.cos(turn), np.sin(turn)
        turned = np.array([n, c * t + d * s, c * s - d * t])
        rows.add_contact(id=4, mu=1.0, world=world, **contact_rows(turned, world_is_b))
    rows.warm_start()
    for world, (axes, turn) in enumerate(zip(before, turns, strict=True)):
        found, (n, t, s) = rows.multipliers(4, world), axes
        c, d = np.cos(turn), np.sin(turn)
        force = found @ np.array([n, c * t + d * s, c * s - d * t])
        assert found[0] == pytest.approx(lam[world, 0], abs=tolerance * 3)
        np.testing.assert_allclose(force, lam[world] @ axes, atol=tolerance * 3)


class Stepper:
    """A plain list of blocks a world, beside the store: id → (multipliers, axes)."""

    def __init__(self, rows: Rows, rng: np.random.Generator) -> None:
        self.rows, self.rng = rows, rng
        self.kinds = rng.integers(4, size=12)
        self.held: list[dict[int, tuple[np.ndarray, np.ndarray]]] = [{} for _ in range(rows.width.lanes)]

    def add(self, id: int, world: int, axes: np.ndarray) -> None:
        kind, rows = int(self.kinds[id]), self.rows
        J = np.concatenate([np.zeros((3, 3)), axes], axis=1)
        if kind == 0:
            rows.add(id=id, b=0, Jb=J[0], world=world)
        elif kind == 1:
            rows.add(id=id, b=0, Jb=J[0], world=world, law=dead_zone(-1, 1))
        elif kind == 2:
            rows.add_contact(id=id, Ja=-J, b=0, Jb=J, mu=1.0, world=world)
        else:
            rows.add_ball(id=id, Ja=-J, b=0, Jb=J, radius=1.0, world=world)

    def step(self, scale: float) -> None:
        """Blocks come and go, in any order; what stays keeps its force."""
        rng, rows = self.rng, self.rows
        rows.begin()
        now: list[dict[int, np.ndarray]] = []
        for world in range(rows.width.lanes):
            chosen = rng.permutation(12)[: rng.integers(13)]
            now.append({int(id): frame(rng) for id in chosen})
            for id, axes in now[-1].items():
                self.add(id, world, axes)
        rows.warm_start(scale)
        eps = float(np.finfo(rows.width.dtype).eps)
        for world, blocks in enumerate(now):
            for id, axes in blocks.items():
                found, (lam, old) = rows.multipliers(id, world), self.held[world].get(id, (np.zeros(3), axes))
                want = axes @ (lam @ old) if self.kinds[id] == 2 else lam[: len(found)]
                np.testing.assert_allclose(found, scale * want, atol=20 * eps)
        warm = warm_multipliers(rows)
        lam = rng.normal(size=warm.shape)
        keep_multipliers(rows, lam)
        for world, blocks in enumerate(now):
            self.held[world] = {}
            for id, axes in blocks.items():
                lam = rows.multipliers(id, world).astype(float)
                self.held[world][id] = np.pad(lam, (0, 3 - len(lam))), axes


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@settings(EASY, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_multipliers_follow_their_ids(width: Width, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stepper = Stepper(Rows(MODEL, width, room=dict.fromkeys((*KINDS, "term"), 1)), rng)
    for scale in (1.0, 0.5, 1.0, 2.0):
        stepper.step(scale)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS, ids=str)
@settings(EASY, max_examples=100, derandomize=False)
@given(seed=st.integers(0, 2**32 - 1))
def test_multipliers_follow_their_ids_for_long(width: Width, seed: int) -> None:
    stepper = Stepper(Rows(MODEL, width, room=dict.fromkeys((*KINDS, "term"), 1)), np.random.default_rng(seed))
    for _ in range(30):
        stepper.step(1.0)


def test_multipliers_of_lanes_have_a_row_for_each_world() -> None:
    rows = Rows(MODEL, F64X8)
    rows.add(id=3, dof=0, world=2)
    rows.add(id=4, dof=0, world=2)
    lam = np.arange(16.0).reshape(8, 2)
    keep_multipliers(rows, lam)
    assert rows.multipliers(4, world=2).tolist() == [5.0]
    np.testing.assert_array_equal(warm_multipliers(rows)[2], [4.0, 5.0])
    for wrong in (lam.T, lam[0], np.full((8, 2), nan)):
        with pytest.raises(ValueError, match=r"lam must be finite numbers of shape \(8, 2\)"):
            keep_multipliers(rows, wrong)
