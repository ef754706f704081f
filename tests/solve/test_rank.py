"""Redundant rows of positive semi-definite matrices, against NumPy's pseudo-inverse."""

from __future__ import annotations

import numpy as np
import pytest

from poise.solve.rank import redundant_rows, shortest


def singular(seed: int, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray, int]:
    """J of a rank below its rows, and rows of very different sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    rank = int(rng.integers(1, n + 1))
    J = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    return J, (J**2).sum(axis=1), rank


@pytest.mark.parametrize("seed", range(20))
def test_as_many_rows_are_left_as_the_rank(seed: int) -> None:
    J, weight, rank = singular(seed)
    kept = ~redundant_rows(J @ J.T, weight)
    assert kept.sum() == rank
    assert np.linalg.matrix_rank(J[kept] / np.sqrt(weight[kept])[:, None]) == rank


@pytest.mark.parametrize("seed", range(20))
def test_the_shortest_multipliers_are_those_of_the_pseudo_inverse(seed: int) -> None:
    """Their effect Jᵀλ stays to rounding, times the condition of the rows that are left."""
    J, weight, _ = singular(seed)
    root = np.sqrt(weight)
    scaled = J / root[:, None]
    lam = np.random.default_rng(seed + 100).normal(size=len(J)) / root
    found = shortest(J @ J.T, weight, lam) * root
    values = np.linalg.svd(scaled)[1]
    rounding = 1e-14 * len(J) * (values[0] / values[min(scaled.shape) - 1]) ** 2
    assert found == pytest.approx(scaled @ np.linalg.pinv(scaled) @ (lam * root), abs=rounding)
    assert scaled.T @ found == pytest.approx(J.T @ lam, abs=rounding)


@pytest.mark.parametrize("size", [1e-31, 1e-20, 1e-13])
def test_rows_that_are_rounding_against_their_bodies_are_redundant(size: float) -> None:
    """However good their pivots are against themselves."""
    A = np.diag([1.0, size, 0.25, size])
    assert redundant_rows(A, np.ones(4)).tolist() == [False, True, False, True]
    assert shortest(A, np.ones(4), np.array([1.0, 1e9, 2.0, -1e9])).tolist() == [1.0, 0.0, 2.0, 0.0]


def test_heavy_and_light_bodies_do_not_make_rows_redundant() -> None:
    """A row on a ship of 1e7 kg beside one on a part of 1e-6 kg: each counts against its own bodies."""
    A = np.diag([1e-7, 1e6])
    assert not redundant_rows(A, np.diag(A)).any()


def test_rows_that_only_an_error_of_place_tells_apart_are_redundant() -> None:
    """J of two rows that would be the same if bodies were not off by 1e-5 rad."""
    J = np.array([[1.0, 0.0], [1.0, 1e-5]])
    assert redundant_rows(J @ J.T, np.ones(2)).tolist() == [False, False]
    assert redundant_rows(J @ J.T, np.ones(2), blur=100.0 * 1e-5**2).tolist() == [False, True]
