"""Redundant rows of a positive semi-definite matrix, to rounding, and the shortest multipliers: kernels.

A closed loop often has redundant rows: those perpendicular to the plane of a planar one, one of Bricard's five, all of
a second joint in the same place. A = J M⁻¹ Jᵀ is then singular, and rounding decides the result of a factorization:
a diagonal entry of 1e-31, or a pivot of 1e-16, divides like any other number.

So A is factored by A = L Lᵀ, row by row (Cholesky), and a row is *redundant*

    if its diagonal entry is zero relative to `weight`, its inverse mass if its bodies were free: the entry is a sum of
    squares, of which joints have removed all but rounding;
    if its pivot is zero relative to its own diagonal entry: earlier rows have all its effects.

`blur` is the bound of zero: rounding, or the square of the angle between the bodies' poses and those at which rows
would depend on each other. Good pivots are factored first, in rounds, so that no poor one disturbs them; rows that can
hardly move, in a mechanism near a singular pose, come after all others (`find_remainder`).

Redundant rows need no multipliers of their own. Of all multipliers with the same effect, those of least Σ weight λ² are
λ = W^-½ Q Qᵀ W^½ λ, where the columns of Q are those of W^-½ L made orthonormal: two joints in one place share their
load, and no row acts against another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.kernel.buffers import GROUP
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, group_size, load, load_group, store, store_group, store_where
from poise.kernel.scalars import any_lane, maximum, minimum, select, sqrt, zero
from poise.kernel.trace import constant, formula, precision
from poise.solve.active_set_kernels import NEWTON, newton_block

Array = NDArray[Any]
ROUNDS = 4
STRONG = 0.1
"""Least pivot, relative to the weight, of the first round if `strong` is set."""
FIRST, SECOND = 1e-3, 1e-6
"""Least pivots, relative to the diagonal, of the first two rounds and the third."""
LEAST, MOST = 1e-12, 1e-8
"""Bounds of `blur`, for pivots and diagonal entries: for exact poses, and for inexact ones."""


@formula
def least_pivot(like):
    """Rounding error of a zero pivot, relative to its diagonal entry."""
    return constant(max(LEAST, 64.0 * 2.0 ** (1 - precision(like))), like)


@formula
def least_entry(like):
    """Rounding error of a zero diagonal entry, relative to its weight: it is a sum of squares."""
    return constant(max(LEAST, (32.0 * 2.0 ** (1 - precision(like))) ** 2), like)


@kernel
def across_of(n):
    """Stride of the factors, from one line to the next."""
    return (load(n.n_joint, 0) + GROUP) // GROUP * GROUP


@kernel
def begin_factors(n):
    """Open all rows that take part, except those with a zero diagonal entry."""
    count, across = load(n.n_joint, 0), across_of(n)
    none = zero(load(n.blur, 0))
    nothing = maximum(least_entry(none), minimum(load(n.blur, 0), none + MOST))
    for k in range(count):
        own, part = load(n.matrix, k * across + k), load(n.part, k) > 0.5
        moves = part & (own > nothing * load(n.weight, k))
        store(n.own, k, own)
        store(n.turn, k, none)
        store(n.open, k, select(moves, none + 1.0, none))
        store(n.redundant, k, select(part & ~moves, none + 1.0, none))
    for k in range(across):
        store(n.known, k, none)


@kernel
def take_row(n, k, share, least, round):
    """Factor row k, if it is open and its pivot exceeds a share of its diagonal entry and the share `least` of its
    weight; `turn` stores the round, from 1.
    """
    across = across_of(n)
    pivot, own = load(n.matrix, k * across + k), load(n.own, k)
    take = (load(n.open, k) > 0.5) & (pivot > share * own) & (pivot > least * load(n.weight, k))
    if not any_lane(take):
        return
    none = zero(pivot)
    root = sqrt(select(take, pivot, none + 1.0))
    inverse = select(take, 1.0 / root, none)
    store_where(n.open, k, none, take)
    store_where(n.turn, k, none + (1.0 + round), take)
    count = load(n.n_joint, 0)
    for i in range(count):
        entry = load(n.matrix, max(i, k) * across + min(i, k))
        store(n.known, i, entry * inverse * load(n.open, i))
    for i in range(count):
        column = load(n.known, i)
        if any_lane(column != 0.0):
            at = i * across
            for j in range(0, i + 1, group_size(n.matrix)):
                store_group(n.matrix, at + j, load_group(n.matrix, at + j) - column * load_group(n.known, j))
    for i in range(count):
        store_where(n.matrix, i * across + k, load(n.known, i), take)
        store(n.known, i, none)
    store_where(n.matrix, k * across + k, root, take)


@kernel
def find_redundant(n, strong):
    """Factor the matrix, of which the part right of the diagonal is not read: writes L in its place, column by column;
    returns the lanes in which a row depends on others. Rows with a pivot of less than the share `strong` of their
    weight come after all others.
    """
    begin_factors(n)
    none = zero(load(n.blur, 0))
    last = maximum(least_pivot(none), minimum(load(n.blur, 0), none + MOST))
    for round in range(ROUNDS):
        share = last
        if round <= 1:
            share = maximum(last, none + FIRST)
        elif round == 2:
            share = maximum(last, none + SECOND)
        for k in range(load(n.n_joint, 0)):
            take_row(n, k, share, strong if round == 0 else 0.0, round)
    some = none > 0.0
    for k in range(load(n.n_joint, 0)):
        left = load(n.open, k) > 0.5
        some = some | left
        store_where(n.redundant, k, none + 1.0, left)
    return some


@kernel
def came_before(n, j, k, round):
    """Lanes in which row j was factored in a round, from 1, before row k."""
    of, turn = load(n.turn, j), load(n.turn, k)
    if j < k:
        return (of == round) & (of <= turn)
    return (of == round) & (of < turn)


@kernel
def find_remainder(n, k):
    """The combination of rows, in `known`, that is row k less the effects of rows factored before it: the square of its
    length is the pivot of row k. `find_redundant` must run before, which factors rows by round and number.
    """
    count, across = load(n.n_joint, 0), across_of(n)
    none = zero(load(n.blur, 0))
    for j in range(count):
        store(n.known, j, none)
    store(n.known, k, none + 1.0)
    for back in range(ROUNDS):
        for other in range(count):
            j = count - 1 - other
            before, at = came_before(n, j, k, float(ROUNDS - back)), j * across + j
            if any_lane(before):
                sum = none
                for i in range(count):
                    if i != j:
                        sum = sum + load(n.matrix, i * across + j) * load(n.known, i)
                store_where(n.known, j, -(sum / select(before, load(n.matrix, at), none + 1.0)), before)


# ---- the shortest multipliers ----------------------------------------------------------------------------------------


@kernel
def column_product(n, k, j):
    """Scalar product of columns k and j of the factors."""
    across = across_of(n)
    sum = zero(load(n.blur, 0))
    for i in range(load(n.n_joint, 0)):
        sum = sum + load(n.matrix, i * across + k) * load(n.matrix, i * across + j)
    return sum


@kernel
def make_orthonormal(n):
    """Orthonormalize the columns of L of factored rows, over the roots of the weights; others are zero."""
    count, across = load(n.n_joint, 0), across_of(n)
    none = zero(load(n.blur, 0))
    for i in range(count):
        weight = load(n.weight, i)
        scale = select(weight > 0.0, 1.0 / sqrt(select(weight > 0.0, weight, none + 1.0)), none)
        for k in range(count):
            own = (load(n.part, k) > 0.5) & (load(n.redundant, k) < 0.5)
            store(n.matrix, i * across + k, select(own, load(n.matrix, i * across + k) * scale, none))
    for k in range(count):
        for _ in range(2):  # the second pass removes rounding errors
            for j in range(k):
                share = column_product(n, k, j)
                if any_lane(share != 0.0):
                    for i in range(count):
                        at = i * across
                        store(n.matrix, at + k, load(n.matrix, at + k) - share * load(n.matrix, at + j))
        size = column_product(n, k, k)
        inverse = select(size > 0.0, 1.0 / sqrt(select(size > 0.0, size, none + 1.0)), none)
        for i in range(count):
            store(n.matrix, i * across + k, load(n.matrix, i * across + k) * inverse)


@kernel
def shorten(n):
    """The shortest multipliers with the same effect as those in `known`; `find_redundant` must run before."""
    make_orthonormal(n)
    count, across = load(n.n_joint, 0), across_of(n)
    none = zero(load(n.blur, 0))
    for i in range(count):
        store(n.known, i, load(n.known, i) * sqrt(load(n.weight, i)))
        store(n.right, i, none)
    for k in range(count):
        share = none
        for i in range(count):
            share = share + load(n.matrix, i * across + k) * load(n.known, i)
        for i in range(count):
            store(n.right, i, load(n.right, i) + share * load(n.matrix, i * across + k))
    for i in range(count):
        weight = load(n.weight, i)
        scale = select(weight > 0.0, 1.0 / sqrt(select(weight > 0.0, weight, none + 1.0)), none)
        store(n.known, i, load(n.right, i) * scale)


# ---- from Python -----------------------------------------------------------------------------------------------------


@kernel
def find_of_one(n, shortens):
    """Redundant rows; with `shortens` also the shortest of the multipliers in `known`."""
    for k in range(load(n.n_joint, 0)):
        store(n.step, k, load(n.known, k))
    find_redundant(n, 0.0)
    if shortens != 0:
        for k in range(load(n.n_joint, 0)):
            store(n.known, k, load(n.step, k))
        shorten(n)
    return 0


_FIND = entry(find_of_one, NEWTON, extra=("int64",))


def _ask(A: Array, weight: Array, blur: float, lam: Array | None) -> Any:
    m = len(A)
    block = newton_block(F64, m)
    across = (m + GROUP) // GROUP * GROUP
    block.matrix[: m * across].reshape(m, across)[:, :m] = A
    block.n_joint[0], block.part[:m], block.weight[:m], block.blur[0] = m, 1.0, weight, blur
    block.known[:m] = 0.0 if lam is None else lam
    _FIND[F64](block.handle, int(lam is not None))
    return block


def redundant_rows(A: Array, weight: Array, blur: float = 0.0) -> NDArray[np.bool_]:
    """(m,) rows of a positive semi-definite matrix that have no effect, or none that others lack.

    >>> redundant_rows(np.array([[2.0, 0.0, 2.0], [0.0, 1e-31, 0.0], [2.0, 0.0, 2.0]]), np.ones(3)).tolist()
    [False, True, True]
    """
    if not len(A):
        return np.zeros(0, bool)
    return np.asarray(_ask(A, weight, blur, None).redundant[: len(A)] > 0.5)


def shortest(A: Array, weight: Array, lam: Array, blur: float = 0.0) -> Array:
    """(m,) the multipliers of least Σ weight λ² with the same effect as λ.

    >>> shortest(np.array([[2.0, 2.0], [2.0, 2.0]]), np.ones(2), np.array([3.0, 0.0])).round(12).tolist()
    [1.5, 1.5]
    """
    if not len(A):
        return np.zeros(0)
    return np.array(_ask(A, weight, blur, lam).known[: len(A)])
