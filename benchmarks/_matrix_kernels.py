"""Kernels that build the matrix of a list of point rows, in loops: see `_matrices` for the ways."""

from __future__ import annotations

from _kernels import touch

from poise.constraints.store import STORE
from poise.constraints.tree import FLOW, PLAIN, SYSTEM, gram, gram_lanes
from poise.constraints.tree_values import VELOCITY, see_lanes, see_rows
from poise.dynamics.abm import accelerate, articulated_body, balance, prepare
from poise.dynamics.layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.responses import RESPONSE, carry, respond, spread_acceleration
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, F64X8, Count, Index, Real, View, load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import Force, pair

POINTS = View(
    "Points",
    n_rows=Count,
    n_padded=Count,  # rows in whole groups of lanes
    body_a=Index,  # −1: the world
    body_b=Index,
    link_a=Index,
    link_b=Index,
    pull=Force,  # of each row, on B: about O, where the tree's passes work; N·m, N
    push_a=Force,  # and about the origins of the bodies, as inputs have it
    push_b=Force,
    base=Real,  # acceleration of each row without any force
    J=Real,  # (nv, n_padded)
    K=Real,  # (n_padded, n_padded)
)

GROUPS = View("Groups", J=Real, K=Real, answer=Real)
"""The same J and K as lanes of rows, and M⁻¹ Jᵀ."""


@kernel
def row_acceleration(acceleration, r, i):
    """Of row i, from those of the links."""
    a, b = load(r.link_a, i), load(r.link_b, i)
    pull = load(r.pull, i)
    found = zero(pull.f.x)
    if b >= 0:
        found = found + pair(load(acceleration, b), pull)
    if a >= 0:
        found = found - pair(load(acceleration, a), pull)
    return found


@kernel
def apply_row(x, r, i, size):
    """Put the force of row i on its bodies, or with size 0 take it away."""
    a, b = load(r.body_a, i), load(r.body_b, i)
    if a >= 0:
        store(x.force, a, load(r.push_a, i) * size)
    if b >= 0:
        store(x.force, b, load(r.push_b, i) * size)


@kernel
def column_of_differences(w, r, j):
    """Column j, from the links' accelerations with and without its force."""
    for i in range(r.n_rows):
        store(r.K, j * r.n_padded + i, row_acceleration(w.acceleration, r, i) - load(r.base, i))


@kernel
def by_calls(m, s, x, w, r):
    """m + 1 whole calls."""
    articulated_body(m, s, x, w, 0.0)
    for i in range(r.n_rows):
        store(r.base, i, row_acceleration(w.acceleration, r, i))
    for j in range(r.n_rows):
        apply_row(x, r, j, 1.0)
        articulated_body(m, s, x, w, 0.0)
        apply_row(x, r, j, 0.0)
        column_of_differences(w, r, j)


@kernel
def by_cached(m, s, x, w, r):
    """m + 1 calls of what depends on the forces."""
    prepare(m, s, x, w, 0.0)
    balance(m, x, w)
    accelerate(m, x, w)
    for i in range(r.n_rows):
        store(r.base, i, row_acceleration(w.acceleration, r, i))
    for j in range(r.n_rows):
        apply_row(x, r, j, 1.0)
        balance(m, x, w)
        accelerate(m, x, w)
        apply_row(x, r, j, 0.0)
        column_of_differences(w, r, j)


@kernel
def by_deltas(m, w, t, r):
    """A delta for every row, two for rows between bodies that both move; the upper half is the lower one's mirror."""
    for j in range(r.n_rows):
        pull, a, b = load(r.pull, j), load(r.link_a, j), load(r.link_b, j)
        at = j * r.n_padded
        if b >= 0:
            carry(m, w, t, load(m.link_dof_start, b + 1) - 1, pull)
            spread_acceleration(m, w, t)
            for i in range(j, r.n_rows):
                store(r.K, at + i, row_acceleration(t.acceleration, r, i))
        if a >= 0:
            carry(m, w, t, load(m.link_dof_start, a + 1) - 1, pull * -1.0)
            spread_acceleration(m, w, t)
            for i in range(j, r.n_rows):
                found = row_acceleration(t.acceleration, r, i)
                if b >= 0:
                    found = found + load(r.K, at + i)
                store(r.K, at + i, found)
        for i in range(j + 1, r.n_rows):
            store(r.K, i * r.n_padded + j, load(r.K, at + i))


@kernel
def fill_chain(m, w, r, i, link, sign):
    """Add a link's part of row i of J."""
    pull = load(r.pull, i) * sign
    if link >= 0:
        d = load(m.link_dof_start, link + 1) - 1
        while d >= 0:
            at = d * r.n_padded + i
            store(r.J, at, load(r.J, at) + pair(load(w.axis, d), pull))
            d = load(m.dof_parent, d)


@kernel
def fill_jacobian(m, w, r):
    """J of all rows, columns one after another."""
    nothing = zero(load(r.J, 0))
    for k in range(m.nv * r.n_padded):
        store(r.J, k, nothing)
    for i in range(r.n_rows):
        fill_chain(m, w, r, i, load(r.link_b, i), 1.0)
        fill_chain(m, w, r, i, load(r.link_a, i), -1.0)


@kernel
def product(m, r, g, k, groups):
    """Group k of every row of K = J (M⁻¹ Jᵀ), four rows at a time: each sum waits for itself only."""
    for i in range(0, r.n_padded, 4):
        nothing = zero(load(g.answer, 0))
        one, two, three, four = nothing, nothing, nothing, nothing
        for d in range(m.nv):
            x, at = load(g.answer, d * groups + k), d * r.n_padded + i
            one = one + x * load(r.J, at)
            two = two + x * load(r.J, at + 1)
            three = three + x * load(r.J, at + 2)
            four = four + x * load(r.J, at + 3)
        at = i * groups + k
        store(g.K, at, one)
        store(g.K, at + groups, two)
        store(g.K, at + 2 * groups, three)
        store(g.K, at + 3 * groups, four)


@kernel
def by_lanes(m, w, t, r, g):
    """M⁻¹ Jᵀ of a group of rows, times J."""
    fill_jacobian(m, w, r)
    groups = r.n_padded // 8
    for k in range(groups):
        for d in range(m.nv):
            store(t.tau, d, load(g.J, d * groups + k))
        respond(m, w, t)
        for d in range(m.nv):
            store(g.answer, d * groups + k, load(t.a, d))
    for k in range(groups):
        product(m, r, g, k, groups)


@kernel
def repeat_calls(m, s, x, w, r, n):
    """The whole way, n times."""
    for _ in range(n):
        by_calls(m, s, x, w, r)
        touch(s.q, 0)


@kernel
def repeat_cached(m, s, x, w, r, n):
    """The whole way, n times."""
    for _ in range(n):
        by_cached(m, s, x, w, r)
        touch(s.q, 0)


@kernel
def repeat_deltas(m, s, x, w, t, r, n):
    """The whole way, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        by_deltas(m, w, t, r)
        touch(s.q, 0)


@kernel
def repeat_lanes(m, s, x, w, t, r, g, n):
    """The whole way, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        by_lanes(m, w, t, r, g)
        touch(s.q, 0)


@kernel
def repeat_engine_rows(m, s, x, w, r, t, f, n):
    """What Poise does with rows one by one, or with worlds in lanes, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        see_rows(m, s, w, r, t, f, 0.0, VELOCITY)
        gram(m, t)
        touch(s.q, 0)


@kernel
def repeat_engine_lanes(m, s, x, w, r, t, f, plain, n):
    """What Poise does with rows in lanes, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        see_lanes(m, s, w, r, t, f, 0.0, VELOCITY)
        gram_lanes(m, t, plain)
        touch(s.q, 0)


_TREE = (MODEL, STATE, INPUT, WORK)
CALLS = entry(repeat_calls, *_TREE, POINTS, extra=("int64",))
CACHED = entry(repeat_cached, *_TREE, POINTS, extra=("int64",))
DELTAS = entry(repeat_deltas, *_TREE, RESPONSE, POINTS, extra=("int64",))
LANES = entry(repeat_lanes, *_TREE, RESPONSE, POINTS, GROUPS, extra=("int64",))
ENGINE_ROWS = entry(repeat_engine_rows, *_TREE, STORE, SYSTEM, FLOW, extra=("int64",))
ENGINE_LANES = entry(repeat_engine_lanes, *_TREE, STORE, SYSTEM, FLOW, PLAIN, extra=("int64",))
MIXED = (F64, F64, F64, F64, F64X8, F64, F64X8)
ENGINE_MIXED = (F64, F64, F64, F64, F64, F64X8, F64, F64)
"""One world, rows in lanes: of deltas, and of the engine."""
