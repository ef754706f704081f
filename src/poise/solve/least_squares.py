"""Exact least squares under linear inequalities: min |G u + c| subject to C u ≤ d, from a feasible u.

An active-set method: it takes the least-squares step of the free directions, the shortest one if there are many, up to
the first inequality; constraints with a multiplier of the wrong sign are released. Each full step decreases the sum of
squares, so no set repeats; if steps of length zero cycle, the lowest number is released (Bland).
"""

from __future__ import annotations

import numpy as np

from poise.solve.problem import Floats

RANK = 1e-11
"""Singular values below this, of rows of length one, count as zero."""
NEAR = 1e-12
"""Multipliers and movements below this, in the units of the problem, count as zero."""


def least_squares(G: Floats, c: Floats, C: Floats, d: Floats, start: Floats) -> Floats:
    """(n,) the minimizer u; G is (k, n), C is (p, n), and `start` is feasible.

    >>> least_squares(np.eye(2), np.array([-3.0, -0.5]), np.eye(2), np.ones(2), np.zeros(2)).tolist()
    [1.0, 0.5]
    """
    lengths = np.linalg.norm(C, axis=1)
    C, d = C[lengths > NEAR] / lengths[lengths > NEAR, None], d[lengths > NEAR] / lengths[lengths > NEAR]
    u, held = np.array(start), list[int]()
    size = float(np.abs(G).max(initial=0.0)) or 1.0
    pull = size * (float(np.linalg.norm(G @ u + c)) + size * NEAR)
    limit = 20 * (len(u) + len(d) + 5)
    for step in range(limit):
        free = null_space(C[held]) if held else np.eye(len(u))
        way = -free @ (_pseudo_inverse(G @ free, size) @ (G @ u + c))
        share, stop = _room(u, way, C, d, held)
        u = u + share * way
        if stop >= 0:
            held.append(stop)
            continue
        gradient = G.T @ (G @ u + c)
        if not held:
            return u
        forces = np.linalg.lstsq(C[held].T, -gradient, rcond=None)[0]
        wrong = np.flatnonzero(forces < -NEAR * pull)
        if wrong.size == 0:
            return u
        held.pop(int(wrong[np.argmin(forces[wrong])]) if 2 * step < limit else _lowest(held, wrong))
    return u


def null_space(M: Floats) -> Floats:
    """(n, k) orthonormal basis of the null space of M, whose rows are of length one."""
    if M.shape[0] == 0:
        return np.eye(M.shape[1])
    values, right = np.linalg.svd(M)[1:]
    return np.asarray(right[int((values > RANK).sum()) :].T)


def _lowest(held: list[int], wrong: np.ndarray) -> int:
    return int(min(wrong, key=lambda place: held[int(place)]))


def _room(u: Floats, way: Floats, C: Floats, d: Floats, held: list[int]) -> tuple[float, int]:
    """Share of a step that is feasible, and the inequality that limits it; −1 for none."""
    toward = C @ way
    toward[held] = 0.0
    near = np.flatnonzero(toward > NEAR * max(float(np.abs(way).max(initial=0.0)), 1e-300))
    if near.size == 0:
        return 1.0, -1
    shares = np.maximum(d[near] - C[near] @ u, 0.0) / toward[near]
    first = int(np.argmin(shares))
    return (float(shares[first]), int(near[first])) if shares[first] < 1.0 else (1.0, -1)


def _pseudo_inverse(M: Floats, size: float) -> Floats:
    """Pseudo-inverse of M, with singular values relative to `size`."""
    if M.size == 0:
        return np.zeros((M.shape[1], M.shape[0]))
    left, values, right = np.linalg.svd(M, full_matrices=False)
    keep = values > RANK * size
    return np.asarray((right[keep].T / values[keep]) @ left[:, keep].T)
