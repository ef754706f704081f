"""Elimination of a Newton step's lines, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from poise.kernel.buffers import GROUP
from poise.kernel.jit import entry
from poise.kernel.memory import F64, F64X8, Block, Width
from poise.solve.active_set_kernels import NEWTON, newton_block
from poise.solve.gauss_kernels import eliminate

ELIMINATE = entry(eliminate, NEWTON)


def systems(seed: int, n: int, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """(lanes, n, n) matrices that need no choice of pivots, and (lanes, n) right sides."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(lanes, n, n)) + 3.0 * np.sqrt(n) * np.eye(n), rng.normal(size=(lanes, n))


def laid(width: Width, A: np.ndarray, b: np.ndarray, rows: list[int], room: int) -> Block:
    n = newton_block(width, room)
    active = len(rows)
    across = (active + GROUP) // GROUP * GROUP
    n.n_active[0], n.across[0], n.row[:active] = active, across, rows
    for i in range(active):
        n.matrix[i * across : i * across + active] = A[:, i].T.reshape(n.matrix[:active].shape)
        n.matrix[i * across + active] = b[:, i] if width.lanes > 1 else b[0, i]
    return n


@pytest.mark.parametrize("width", [F64, F64X8], ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 30, 41])
def test_systems_of_any_size(width: Width, size: int) -> None:
    A, b = systems(size, size, width.lanes)
    n = laid(width, A, b, list(range(size)), 2 * size)
    ELIMINATE[width](n.handle)
    exact = np.linalg.solve(A, b[..., None])[..., 0]
    assert pytest.approx(exact, abs=1e-13) == n.known[:size].reshape(size, -1).T


@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 9, 13, 16, 17, 30, 41])
@pytest.mark.parametrize("others", [0, 1, 3, 4, 6, 9])
def test_of_even_lines_only_what_is_right_of_the_diagonal_counts(size: int, others: int) -> None:
    """A symmetric part, then lines of any sort; what is left of the diagonal is not even a number."""
    A, b = systems(size, size + others, 1)
    A[0, :size, :size] += A[0, :size, :size].T
    exact = np.linalg.solve(A[0], b[0])
    n = laid(F64, A, b, list(range(size + others)), 2 * (size + others))
    n.n_even[0], across = size, int(n.across[0])
    for i in range(size):
        n.matrix[i * across : i * across + i // GROUP * GROUP] = np.nan
    ELIMINATE[F64](n.handle)
    assert pytest.approx(exact, abs=1e-13) == n.known[: size + others]


def test_what_was_there_before_does_not_count() -> None:
    """Memory keeps the numbers of larger systems, whatever they are."""
    A, b = systems(1, 13, 1)
    fresh, used = laid(F64, A, b, list(range(13)), 40), laid(F64, A, b, list(range(13)), 40)
    used.known[...], used.right[...] = np.nan, np.nan
    ELIMINATE[F64](fresh.handle)
    ELIMINATE[F64](used.handle)
    assert np.array_equal(used.known[:13], fresh.known[:13])


def test_lanes_do_not_depend_on_blank_lines_between() -> None:
    """Neighbours may have more rows: a lane then has blank ones between its own, and the same bits."""
    A, b = systems(2, 9, 8)
    close = laid(F64X8, A, b, list(range(9)), 9)
    at = [0, 1, 4, 5, 6, 9, 12, 13, 16]
    wide, right = np.tile(np.eye(17), (8, 1, 1)), np.zeros((8, 17))
    wide[np.ix_(range(8), at, at)], right[:, at] = A, b
    apart = laid(F64X8, wide, right, list(range(17)), 17)
    ELIMINATE[F64X8](close.handle)
    ELIMINATE[F64X8](apart.handle)
    assert np.array_equal(apart.known[at], close.known[:9])


def test_a_pivot_of_nought_counts_as_one() -> None:
    A, b = np.zeros((1, 3, 3)), np.array([[1.0, 2.0, 3.0]])
    n = laid(F64, A, b, [0, 1, 2], 3)
    ELIMINATE[F64](n.handle)
    assert n.known[:3].tolist() == [1.0, 2.0, 3.0]
