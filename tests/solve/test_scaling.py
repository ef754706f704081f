"""Equilibration: rows and columns alike, in powers of two, whatever the units were."""

import numpy as np
import pytest

from poise.solve.scaling import equilibrate
from solve.problems import matrix


@pytest.mark.parametrize("seed", range(20))
def test_a_definite_matrix_gets_a_diagonal_of_one(seed):
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-4.0, 4.0, 8)
    A = matrix(rng, 8) * np.outer(units, units)
    d = equilibrate(A)
    assert np.all((d * d * np.diag(A) >= 0.5) & (d * d * np.diag(A) <= 2.0))
    assert np.array_equal(np.frexp(d)[0], np.full(8, 0.5))


@pytest.mark.parametrize("seed", range(20))
def test_a_saddle_has_no_row_that_is_large_or_small(seed):
    """Noughts on the diagonal: the largest entry of each row counts, within the rounding of d to powers of 2."""
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-4.0, 4.0, 6)
    J = rng.normal(size=(2, 4))
    A = np.block([[np.eye(4), J.T], [J, np.zeros((2, 2))]]) * np.outer(units, units)
    d = equilibrate(A)
    largest = np.abs(A * np.outer(d, d)).max(axis=1)
    assert largest.max() <= 2.001
    assert largest.min() >= 0.499


def test_large_entries_on_one_side_only():
    """Not symmetric: both what a row does and what is done to it count."""
    A = np.array([[1.0, 1e6, 0.0], [0.0, 1.0, 1e-9], [1e-6, 0.0, 1.0]])
    d = equilibrate(A)
    assert np.abs(A * np.outer(d, d)).max() <= 2.001


def test_rows_of_noughts_keep_their_unit():
    assert equilibrate(np.array([[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).tolist() == [0.5, 0.5, 1.0]
    assert equilibrate(np.diag([4.0, 0.0])).tolist() == [0.5, 1.0]
    assert equilibrate(np.zeros((0, 0))).shape == (0,)
