"""Rows that kernels add: lanes that want them, counting beyond room, slots that others used before, warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constraints.test_rows import MODEL, WIDTHS
from poise.constraints.emit_rows import open_block, put_bound, put_bounds, put_dof_row, put_row, put_term
from poise.constraints.response.delassus import row_jacobian
from poise.constraints.response.row_system import see
from poise.constraints.row_store import BALL, CONTACT, HARD_CAP, KINDS, LAW, SINGLE, STORE, STRIDES
from poise.constraints.rows import Rows
from poise.constraints.rows_to_problem import keep_multipliers
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width, load
from poise.kernel.scalars import spread, zero
from poise.kernel.spatial import Force

EASY = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
ORDERS = View(
    "Orders",
    n=Count,  # blocks that some world may want
    kind=Index,  # (n)
    terms=Index,  # (n) further terms of the block's first row
    bare=Index,  # (n) 1 where nothing but bodies and Jacobians is said
    on_dof=Index,  # (n) 1 where the first row is on a coordinate
    wanted=Int,  # (n) 1 in the worlds that want it
    id=Int,  # (n)
    body=Int,  # (n) b, and of terms
    dof=Int,  # (n)
    J=Force,  # (3 n)
    size=Real,  # (n) lo, μ or radius; coefficient of terms
)


@kernel
def emit(r, e):
    """Add every block in the worlds that want it."""
    for k in range(e.n):
        wanted, kind = load(e.wanted, k) > 0, load(e.kind, k)
        body, size = load(e.body, k), load(e.size, k)
        slot, there = open_block(r, kind, wanted, load(e.id, k))
        for j in range(STRIDES[kind]):
            J = load(e.J, 3 * k + j)
            put_row(r, slot + j, there, zero(body) - 1, body, -J, J)
        if load(e.on_dof, k) != 0:
            put_dof_row(r, slot, there, load(e.dof, k), size)
        for j in range(load(e.terms, k)):
            if j % 2 == 0:
                put_term(r, slot, there, body, load(e.J, 3 * k + 1), zero(body) - 1, zero(size))
            else:
                put_term(r, slot, there, zero(body) - 1, load(e.J, 3 * k) * 0.0, load(e.dof, k), size)
        if load(e.bare, k) == 0:
            put_bounds(r, slot, there, -size, spread(1.0, size))
            put_bound(r, slot, there, size)


EMIT = entry(emit, STORE, ORDERS)


def random_orders(width: Width, rng: np.random.Generator, n: int) -> Block:
    """Blocks that each world wants or not."""
    block = ORDERS.block(width, **(dict.fromkeys(ORDERS.fields, n) | {"J": 3 * n}))
    block.kind[...] = rng.integers(4, size=n)
    block.terms[...] = rng.integers(4, size=n) * (block.kind < 2)
    block.bare[...] = rng.integers(2, size=n)
    block.on_dof[...] = rng.integers(2, size=n) * (block.kind == SINGLE)
    block.wanted[...] = rng.integers(2, size=block.wanted.shape)
    block.id[...] = rng.permutation(n).reshape(n, *(1,) * (block.id.ndim - 1))
    block.body[...] = rng.integers(2, size=block.body.shape)
    block.dof[...] = rng.integers(MODEL.nv, size=block.dof.shape)
    block.J[...] = rng.normal(size=block.J.shape)
    block.size[...] = rng.uniform(0.1, 1.0, block.size.shape)
    return block


def emit_all(rows: Rows, orders: Block) -> int:
    """Emit, and again for as long as there is no room; gives how often."""
    for times in range(1, 5):
        rows.clear()
        EMIT[rows.width](rows.now.handle, orders.handle)
        if not rows.full():
            return times
        rows.grow()
    raise AssertionError("there is never enough room")


def spoil(rows: Rows) -> None:
    """Fill the store with what another step might have left."""
    for block in (rows.now, rows.before):
        for name, array in block.arrays.items():
            if name not in ("first", "room", "count", "term_count"):
                array[...] = 3


def of_world(block: Block, world: int) -> dict[str, np.ndarray]:
    """Arrays of one world; topology is shared."""
    fields = block.view.fields.items()
    shared = {name for name, kind in fields if kind is Index or block.width.lanes == 1}
    return {name: array if name in shared else array[..., world] for name, array in block.arrays.items()}


def check_world(rows: Rows, orders: Block, world: int) -> None:
    """Every block of a world, field by field."""
    mine, order = of_world(rows.now, world), of_world(orders, world)
    wanted = [k for kind in range(4) for k in np.flatnonzero(order["wanted"]) if order["kind"][k] == kind]
    assert rows.ids(world) == [int(order["id"][k]) for k in wanted]
    place = dict.fromkeys(range(4), 0)
    for k in wanted:
        kind = int(order["kind"][k])
        first = int(rows.now.first[kind]) + STRIDES[kind] * place[kind]
        place[kind] += 1
        size, body, dof, bare = order["size"][k], order["body"][k], order["dof"][k], bool(order["bare"][k])
        for j in range(STRIDES[kind]):
            on_dof, slot, J = bool(order["on_dof"][k]) and j == 0, first + j, order["J"][3 * k + j]
            assert (mine["a"][slot], mine["b"][slot]) == (-1, -1 if on_dof else body)
            np.testing.assert_array_equal(mine["Jb"][slot], 0 * J if on_dof else J)
            np.testing.assert_array_equal(mine["Ja"][slot], 0 * J if on_dof else -J)
            assert (mine["dof"][slot], mine["Jdof"][slot]) == ((dof, size) if on_dof else (-1, 0.0))
            for name in ("phi", "gamma", "target", "a_ref", "alpha", "beta", "erp", "cfm", "lam"):
                assert mine[name][slot] == 0.0, name
            bounds = (-np.inf, np.inf) if bare or j else (-size, 1.0)
            assert (mine["lo"][slot], mine["hi"][slot]) == bounds
        assert mine["bound"][first] == (0.0 if bare else size)
        chain = rows._terms(first, world)
        expected = range(int(order["terms"][k]))[::-1]
        assert len(chain) == len(expected)
        for at, j in zip(chain, expected, strict=True):
            on_body = j % 2 == 0
            assert (mine["term_body"][at], mine["term_dof"][at]) == ((body, -1) if on_body else (-1, dof))
            np.testing.assert_array_equal(mine["term_J"][at], order["J"][3 * k + 1] if on_body else np.zeros(6))
            assert mine["term_Jdof"][at] == (0.0 if on_body else size)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@EASY
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 40), roomy=st.booleans())
def test_kernels_add_what_they_say(width: Width, seed: int, n: int, roomy: bool) -> None:
    """In whatever was there before, with room for nothing or for everything."""
    rng = np.random.default_rng(seed)
    rows = Rows(MODEL, width, room=dict.fromkeys((*KINDS, "term"), 120 if roomy else 0))
    spoil(rows)
    orders = random_orders(width, rng, n)
    times = emit_all(rows, orders)
    assert times == 1 if roomy else times <= 3  # for the blocks, and then for their terms
    for world in range(width.lanes):
        check_world(rows, orders, world)
    rows.listing()  # blanks the rest, and that alone
    for world in range(width.lanes):
        check_world(rows, orders, world)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_beyond_the_room_nothing_is_written(width: Width) -> None:
    rng = np.random.default_rng(1)
    rows = Rows(MODEL, width, room={"single": 2, "law": 0, "contact": 1, "ball": 0, "term": 1})
    spoil(rows)
    orders = random_orders(width, rng, 30)
    orders.wanted[...] = 1
    orders.terms[...] = 2 * (orders.kind == SINGLE)
    EMIT[width](rows.now.handle, orders.handle)
    n = [int((orders.kind == kind).sum()) for kind in range(4)]
    assert list(rows.counts(width.lanes - 1).values()) == n
    assert rows.full()
    assert int(rows.now.term_count.max()) == 4  # of the rows that were there
    assert len(rows.ids(width.lanes - 1)) == 3
    for name, array in rows.now.arrays.items():
        room = {"first": 4, "room": 4, "count": 4, "term_count": 1}.get(name, 1 if name.startswith("term_") else 5)
        assert len(array) == (0 if name.startswith("law_") else room), name


def test_a_kernel_beyond_the_hard_cap_is_told() -> None:
    rows = Rows(MODEL)
    rows.now.count[BALL] = HARD_CAP
    orders = random_orders(rows.width, np.random.default_rng(0), 1)
    orders.kind[0], orders.wanted[0] = BALL, 1
    EMIT[rows.width](rows.now.handle, orders.handle)
    with pytest.raises(MemoryError, match=f"{HARD_CAP + 1} ball blocks in one world"):
        rows.grow()


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_emitted_rows_are_seen_by_trees(width: Width) -> None:
    """The Jacobian, bodies of terms and all, of rows that kernels wrote in lanes: A = J M⁻¹ Jᵀ in every world."""
    rng = np.random.default_rng(4)
    rows = Rows(MODEL, width)
    spoil(rows)
    orders = random_orders(width, rng, 12)
    emit_all(rows, orders)
    v = rng.normal(size=(width.lanes, MODEL.nv))
    q = np.tile(MODEL.q_rest, (width.lanes, 1))
    seen = see(rows, q, v) if width.lanes > 1 else see(rows, q[0], v[0])
    for world in range(width.lanes):
        J = row_jacobian(rows, MODEL.q_rest, world)
        speed = seen.speed[world] if width.lanes > 1 else seen.speed
        eps = 100 * float(np.finfo(width.dtype).eps)
        np.testing.assert_allclose(speed, J @ v[world], atol=eps * (1.0 + np.abs(J) @ np.abs(v[world])).max())


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@EASY
@given(seed=st.integers(0, 2**32 - 1))
def test_warm_start_of_emitted_blocks(width: Width, seed: int) -> None:
    """Ids that a world has in both steps keep their multipliers, whatever the order and the neighbours."""
    rng = np.random.default_rng(seed)
    rows = Rows(MODEL, width, room=dict.fromkeys((*KINDS, "term"), 1))
    orders = random_orders(width, rng, 20)
    orders.kind[orders.kind == CONTACT] = LAW  # contacts turn: tested elsewhere
    kinds = {int(orders.id.reshape(20, -1)[k, 0]): int(orders.kind[k]) for k in range(20)}
    before: list[dict[int, list[float]]] = [{} for _ in range(width.lanes)]
    for _ in range(4):
        rows.begin()
        orders.wanted[...] = rng.integers(2, size=orders.wanted.shape)
        order = rng.permutation(20)
        for name, array in orders.arrays.items():
            if name != "J":
                array[...] = array[order]
        emit_all(rows, orders)
        rows.warm_start()
        rows.listing()
        for world in range(width.lanes):
            for id in rows.ids(world):
                nothing = [0.0] * STRIDES[kinds[id]]
                assert rows.multipliers(id, world).tolist() == before[world].get(id, nothing)
        shape = (rows.listing().size,) if width.lanes == 1 else (width.lanes, rows.listing().size)
        keep_multipliers(rows, rng.normal(size=shape))
        before = [{id: rows.multipliers(id, w).tolist() for id in rows.ids(w)} for w in range(width.lanes)]


def test_a_step_before_that_was_too_full_is_searched_as_far_as_it_goes() -> None:
    """Blocks that were counted but not written have no multipliers to find; what lies behind them is of other kinds."""
    rows = Rows(MODEL, room={"single": 2})
    rows.add(id=0, dof=0)
    rows.add(id=1, dof=1)
    rows.add_contact(id=7, Ja=np.zeros((3, 6)), b=0, Jb=np.ones((3, 6)), mu=1.0)
    rows.now.lam[...] = np.arange(5.0, 5.0 + len(rows.now.lam))
    rows.now.count[SINGLE] = 50
    rows.begin()
    rows.add(id=7, dof=0)
    rows.add(id=1, dof=0)
    rows.warm_start()
    assert rows.multipliers(7).tolist() == [0.0]
    assert rows.multipliers(1).tolist() == [6.0]
