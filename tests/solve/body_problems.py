"""Random problems of rows on rigid bodies, as an operator over bodies and as a matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poise.solve.laws import dead_zone
from poise.solve.matrix_free import BodyRows, inverse_masses
from poise.solve.problem import Ball, Friction, Problem


def random_bodies(rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, 6, 6) inverse masses."""
    clouds = rng.normal(size=(count, 8, 3))
    squares = np.einsum("npi,npj->nij", clouds, clouds)
    inertia = np.trace(squares, axis1=1, axis2=2)[:, None, None] * np.eye(3) - squares
    return inverse_masses(rng.uniform(0.5, 3.0, count), inertia)


def body_problem(seed: int, softness: float = 0.1) -> tuple[Problem, Problem]:
    """Equalities, bounds, cones, pyramids, balls narrow and wide, laws, on one to three of the bodies and the world."""
    rng = np.random.default_rng(seed)
    bodies = int(rng.integers(2, 7))
    groups = [1] * int(rng.integers(1, 8)) + [3] * int(rng.integers(0, 5)) + [5] * int(rng.integers(0, 2))
    m = sum(groups)
    body = np.repeat(rng.integers(-1, bodies, (len(groups), 3)), groups, axis=0)
    J = rng.normal(size=(m, 3, 6))
    lo, hi = np.full(m, -np.inf), np.full(m, np.inf)
    frictions, balls, laws = [], [], {}
    row = 0
    for size in groups:
        what = int(rng.integers(3))
        if size == 1 and what == 1:
            lo[row], hi[row] = -rng.uniform(0, 1), rng.uniform(0, 1)
        elif size == 1 and what == 2:
            laws[row] = dead_zone(-0.2, 0.3)
        elif size == 3 and what < 2:
            frictions.append(Friction(row, (row + 1, row + 2), float(rng.uniform(0.2, 1.0)), cone=what == 0))
        elif size > 1:
            balls.append(Ball(tuple(range(row, row + size)), float(rng.uniform(0.1, 1.0))))
        row += size
    A = BodyRows(body, J, random_bodies(rng, bodies))
    problem = Problem(A, rng.normal(size=m), lo, hi, np.full(m, softness), laws, frictions, balls)
    formed = Problem(A, np.zeros(m)).matrix()
    return problem, replace(problem, A=0.5 * (formed + formed.T))
