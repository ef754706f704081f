"""Least squares within inequalities, against another solver, and the conditions of a minimum."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from poise.solve.least_squares import least_squares, null_space


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_boxes(rank):
    """As near as an independent solver comes, also where many points come as near."""
    for seed in range(40):
        rng = np.random.default_rng([rank, seed])
        G, c = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 4)), rng.normal(size=5)
        C, d = np.vstack([np.eye(4), -np.eye(4)]), rng.uniform(0.0, 0.5, 8)
        u = least_squares(G, c, C, d, np.zeros(4))
        found = lsq_linear(G, -c, (-d[4:] - 1e-300, d[:4] + 1e-300), tol=1e-14, method="bvls").x
        assert (C @ u <= d + 1e-12).all()
        assert np.linalg.norm(G @ u + c) <= np.linalg.norm(G @ found + c) + 1e-10


def test_any_inequalities():
    """Kuhn and Tucker: forces of the inequalities that are met, none of them pulling, balance the gradient."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        G, c, C, d = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(9, 4)), rng.exponential(size=9)
        u = least_squares(G, c, C, d, np.zeros(4))
        slack = d - C @ u
        assert slack.min() >= -1e-12
        gradient = G.T @ (G @ u + c)
        at = C[slack <= 1e-10]
        left = nnls(at.T, -gradient)[1] if len(at) else np.linalg.norm(gradient)
        assert left <= 1e-9


def test_corners_where_too_many_inequalities_meet():
    """The start is at a corner of thirty of them; the way out is found."""
    rng = np.random.default_rng(3)
    C = rng.normal(size=(30, 3))
    C[:, 0] = -np.abs(C[:, 0])  # all let u₀ grow
    u = least_squares(np.eye(3), np.array([-1.0, 0.0, 0.0]), C, np.zeros(30), np.zeros(3))
    assert (C @ u <= 1e-12).all()
    assert u == pytest.approx([1.0, 0.0, 0.0])


def test_nothing_to_do():
    assert least_squares(np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2)), np.zeros(0), np.ones(2)).tolist() == [
        1.0,
        1.0,
    ]
    assert least_squares(np.zeros((1, 0)), np.ones(1), np.zeros((0, 0)), np.zeros(0), np.zeros(0)).shape == (0,)


def test_null_space():
    M = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.8, -0.6, 0.0]])
    assert np.abs(null_space(M)) == pytest.approx(np.array([[0.0], [0.0], [1.0]]), abs=1e-12)
    assert null_space(np.zeros((0, 2))).shape == (2, 2)
