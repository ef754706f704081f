"""The methods for a constraint matrix in loops, each from the state to the matrix."""

from __future__ import annotations

from _kernels import touch

from poise.constraints.response.delassus_kernels import FLOW, PLAIN, SYSTEM, gram, gram_lanes
from poise.constraints.response.delassus_methods import by_cached_test_forces, by_deltas, by_test_forces
from poise.constraints.response.row_velocity import VELOCITY, look, see_lanes, see_rows
from poise.constraints.row_store import STORE
from poise.dynamics.aba import prepare
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.kernel.jit import entry, kernel


@kernel
def repeat_test_forces(m, s, x, w, r, t, f, n):
    """m + 1 forward dynamics, n times."""
    for _ in range(n):
        by_test_forces(m, s, x, w, r, t, 1.0)
        touch(s.q, 0)


@kernel
def repeat_cached_test_forces(m, s, x, w, r, t, f, n):
    """m + 1 of what depends on the forces, n times."""
    for _ in range(n):
        by_cached_test_forces(m, s, x, w, r, t, 1.0)
        touch(s.q, 0)


@kernel
def repeat_deltas(m, s, x, w, r, t, f, n):
    """A delta a row, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        by_deltas(m, w, r, t, f)
        touch(s.q, 0)


@kernel
def repeat_gram(m, s, x, w, r, t, f, n):
    """YᵀY of rows one by one, or of worlds in lanes, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        look(m, s, w, t, f, 0.0)
        see_rows(m, s, w, r, t, f, 0.0, VELOCITY)
        gram(m, t)
        touch(s.q, 0)


@kernel
def repeat_gram_lanes(m, s, x, w, r, t, f, plain, n):
    """YᵀY of rows in lanes, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        look(m, s, w, t, f, 0.0)
        see_lanes(m, s, w, r, t, f, 0.0, VELOCITY)
        gram_lanes(m, t, plain)
        touch(s.q, 0)


@kernel
def repeat_prepare(m, s, x, w, n):
    """The common first part of all methods, n times."""
    for _ in range(n):
        prepare(m, s, x, w, 0.0)
        touch(s.q, 0)


_TREE = (MODEL, STATE, INPUT, WORK)
_ROWS = (*_TREE, STORE, SYSTEM, FLOW)
TEST_FORCES = entry(repeat_test_forces, *_ROWS, extra=("int64",), lanes=False)
CACHED_TEST_FORCES = entry(repeat_cached_test_forces, *_ROWS, extra=("int64",), lanes=False)
DELTAS = entry(repeat_deltas, *_ROWS, extra=("int64",), lanes=False)
GRAM = entry(repeat_gram, *_ROWS, extra=("int64",))
GRAM_LANES = entry(repeat_gram_lanes, *_ROWS, PLAIN, extra=("int64",))
PREPARE = entry(repeat_prepare, *_TREE, extra=("int64",))
