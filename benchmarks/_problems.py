"""Random problems with known answers, by family. The same seed gives the same problem.

An answer (λ, w) that obeys every law is drawn first; then b = w − (A + diag cfm) λ. So each problem has at least the
answer that comes with it. `unique` says whether λ is the only one; where it is not, judge by the natural residual.

    known = draw("bounded", seed=3)
    result = solver.solve(known.problem)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _problem_parts import (
    Rng,
    bounds,
    complementary,
    cone_contact,
    matrix,
    point_on,
    pyramid_contact,
    random_law,
    size,
    skew,
    unit_vector,
)

from poise.solve.problem import Ball, Friction, Operator, Problem

LARGEST = 200
"""Rows of the largest problems that soaks solve."""


@dataclass(frozen=True)
class Known:
    """A problem and one answer; of a conflicting problem the answer is the shortest of least squares."""

    problem: Problem
    lam: np.ndarray
    w: np.ndarray
    unique: bool = True
    solvable: bool = True


# ---------------------------------------------------------------- rows without bounds


def spd(rng: Rng, m: int | None = None) -> Known:
    """Equality rows, A positive definite."""
    m = size(rng, m=m)
    A, lam = matrix(rng, m), rng.normal(size=m)
    return Known(Problem(A, -A @ lam), lam, np.zeros(m))


def soft(rng: Rng, m: int | None = None) -> Known:
    """Equality rows of a singular A that softness makes definite."""
    m = size(rng, m=m)
    A, lam, cfm = matrix(rng, m, rank=max(1, m // 2)), rng.normal(size=m), rng.uniform(0.01, 1.0, m)
    return Known(Problem(A, -(A @ lam + cfm * lam), cfm=cfm), lam, np.zeros(m))


def semidefinite(rng: Rng, m: int | None = None) -> Known:
    """Equality rows, A singular, the rows consistent; the answer is the shortest one."""
    m = size(rng, 3, m=m)
    A = matrix(rng, m, rank=int(rng.integers(1, m)))
    lam = A @ rng.normal(size=m)
    return Known(Problem(A, -A @ lam), lam, np.zeros(m), unique=False)


def duplicate_rows(rng: Rng, m: int | None = None) -> Known:
    """Equality rows, some of them given twice or three times; the shortest answer shares the load evenly."""
    m = size(rng, 2, 6, m if m is None else max(2, m // 2))
    copies = np.repeat(np.arange(m), rng.integers(1, 4, m))
    if copies.size == m:
        copies = np.append(copies, 0)
    A, lam = matrix(rng, m)[np.ix_(copies, copies)], rng.normal(size=m)
    shared = (lam / np.bincount(copies, minlength=m))[copies]
    return Known(Problem(A, -A @ shared), shared, np.zeros(copies.size), unique=False)


def conflicting(rng: Rng, m: int | None = None) -> Known:
    """Equality rows that contradict each other; the answer is the shortest of least squares."""
    m = size(rng, 3, m=m)
    rank = int(rng.integers(1, m))
    A = matrix(rng, m, rank=rank)
    lam = A @ rng.normal(size=m)
    null = np.linalg.svd(A)[0][:, rank:]
    w = null @ rng.uniform(0.5, 2.0, m - rank)
    return Known(Problem(A, w - A @ lam), lam, w, unique=False, solvable=False)


def nonsymmetric(rng: Rng, m: int | None = None) -> Known:
    """Equality rows, A positive definite and not symmetric."""
    m = size(rng, m=m)
    A, lam = matrix(rng, m) + skew(rng, m), rng.normal(size=m)
    return Known(Problem(A, -A @ lam), lam, np.zeros(m))


def operator(rng: Rng, m: int | None = None) -> Known:
    """Equality rows of an A that can only be applied."""
    known = spd(rng, m)
    A = known.problem.A
    return Known(Problem(Operator(lambda x: A @ x, np.diag(A).copy()), known.problem.b), known.lam, known.w)


# ---------------------------------------------------------------- bounds


def lcp(rng: Rng, m: int | None = None) -> Known:
    """λ ≥ 0 complementary to w ≥ 0 in every row (KOK eq. 16), A positive definite."""
    m = size(rng, m=m)
    A = matrix(rng, m)
    lam, w = complementary(rng, m)
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w)


def degenerate(rng: Rng, m: int | None = None) -> Known:
    """Complementarity with many rows at which both λ and w are zero."""
    m = size(rng, 4, m=m)
    A = matrix(rng, m)
    lam, w = complementary(rng, m)
    both = rng.random(m) < 0.5
    lam[both], w[both] = 0.0, 0.0
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w)


def redundant(rng: Rng, m: int | None = None) -> Known:
    """Complementarity with more contacts than degrees of freedom: w is known, λ is not the only one."""
    m = size(rng, 4, m=m)
    A = matrix(rng, m, rank=max(1, m // 2))
    lam, w = complementary(rng, m)
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w, unique=False)


def infeasible(rng: Rng, m: int | None = None) -> Known:
    """Contacts that no force can separate: A n = 0 and b · n < 0 for an n > 0. The answer of the problem is none."""
    m = size(rng, 3, m=m)
    n = rng.uniform(0.5, 2.0, m)
    across = np.eye(m) - np.outer(n, n) / (n @ n)
    A = across @ matrix(rng, m) @ across
    b = across @ rng.normal(size=m) - n * rng.uniform(0.1, 1.0)
    return Known(Problem((A + A.T) / 2, b, lo=np.zeros(m)), np.zeros(m), b, unique=False, solvable=False)


def bounded_rows(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed: none, one-sided, two-sided, fixed (lo = hi)."""
    m = size(rng, m=m)
    A, cfm = matrix(rng, m), np.where(rng.random(m) < 0.3, rng.uniform(0.0, 0.5, m), 0.0)
    lam, w, lo, hi = bounds(rng, m)
    return Known(Problem(A, w - A @ lam - cfm * lam, lo, hi, cfm), lam, w)


def bounded_semidefinite(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, A singular; w is known, λ is not the only one."""
    m = size(rng, 3, m=m)
    A = matrix(rng, m, rank=max(1, m // 2))
    lam, w, lo, hi = bounds(rng, m)
    return Known(Problem(A, w - A @ lam, lo, hi), lam, w, unique=False)


def bounded_nonsymmetric(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, A positive definite and not symmetric."""
    m = size(rng, m=m)
    A = matrix(rng, m) + skew(rng, m)
    lam, w, lo, hi = bounds(rng, m)
    return Known(Problem(A, w - A @ lam, lo, hi), lam, w)


def badly_scaled(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, the diagonal of A from 1e-8 to 1e8: kilometres beside micrometres."""
    m = size(rng, m=m)
    A, units = matrix(rng, m), 10.0 ** rng.uniform(-4.0, 4.0, m)
    lam, w, lo, hi = bounds(rng, m)
    scaled = A * np.outer(units, units)
    lam, w, lo, hi = lam / units, w * units, lo / units, hi / units
    return Known(Problem(scaled, w - scaled @ lam, lo, hi), lam, w)


def badly_scaled_rows(rng: Rng, m: int | None = None) -> Known:
    """Equality rows, the diagonal of A from 1e-8 to 1e8."""
    m = size(rng, m=m)
    units, lam = 10.0 ** rng.uniform(-4.0, 4.0, m), rng.normal(size=m)
    A = matrix(rng, m) * np.outer(units, units)
    return Known(Problem(A, -A @ (lam / units)), lam / units, np.zeros(m))


# ---------------------------------------------------------------- laws and blocks


def law_rows(rng: Rng, m: int | None = None) -> Known:
    """Every row follows a piecewise law; points on vertices, on segments, on rays."""
    m = size(rng, m=m)
    A = matrix(rng, m)
    laws = {row: random_law(rng) for row in range(m)}
    points = np.array([point_on(law, rng) for law in laws.values()])
    lam, w = points[:, 0], points[:, 1]
    return Known(Problem(A, w - A @ lam, laws=laws), lam, w)


def laws_and_bounds(rng: Rng, m: int | None = None) -> Known:
    """Half of the rows with bounds, half with laws, softness in some."""
    m = size(rng, 4, m=m)
    A, cfm = matrix(rng, m), np.where(rng.random(m) < 0.3, rng.uniform(0.0, 0.5, m), 0.0)
    lam, w, lo, hi = bounds(rng, m)
    laws = {int(row): random_law(rng) for row in np.flatnonzero(rng.random(m) < 0.5)}
    for row, law in laws.items():
        lam[row], w[row] = point_on(law, rng)
        lo[row], hi[row] = -np.inf, np.inf
    return Known(Problem(A, w - A @ lam - cfm * lam, lo, hi, cfm, laws), lam, w)


def pyramid(rng: Rng, m: int | None = None) -> Known:
    """Contacts with friction, each tangent row by itself: open, sticking, sliding. Another answer may exist."""
    return _friction(rng, cone=False, m=m)


def cone(rng: Rng, m: int | None = None) -> Known:
    """Contacts with friction, the true cone: open, sticking, sliding. Another answer may exist."""
    return _friction(rng, cone=True, m=m)


def balls(rng: Rng, m: int | None = None) -> Known:
    """Blocks of multipliers with a bound on their length; the rows left over are equalities."""
    count = size(rng, 1, 4, m if m is None else m // 2)
    widths = rng.integers(1, 4, count)
    m = int(widths.sum()) + size(rng, 0, 2)
    A, lam, w, blocks, start = matrix(rng, m), rng.normal(size=m), np.zeros(m), [], 0
    for width in widths:
        rows = np.arange(start, start + width)
        start += int(width)
        direction = unit_vector(rng, int(width))
        radius = float(rng.uniform(0.2, 2.0))
        if rng.random() < 0.5:
            lam[rows] = direction * radius * rng.uniform(0.0, 0.95)
        else:
            lam[rows], w[rows] = direction * radius, -direction * rng.exponential()
        blocks.append(Ball(tuple(int(row) for row in rows), radius))
    return Known(Problem(A, w - A @ lam, balls=tuple(blocks)), lam, w)


def empty(rng: Rng | None = None, m: int | None = None) -> Known:
    """No rows."""
    return Known(Problem(np.zeros((0, 0)), np.zeros(0)), np.zeros(0), np.zeros(0))


def single(rng: Rng, m: int | None = None) -> Known:
    """One row with bounds."""
    return bounded_rows(rng, 1)


def nought(rng: Rng, m: int | None = None) -> Known:
    """A = 0 and rows that are content as they are: w = b."""
    m = size(rng, m=m)
    b = np.where(rng.random(m) < 0.5, rng.exponential(size=m), 0.0)
    return Known(Problem(np.zeros((m, m)), b, lo=np.zeros(m)), np.zeros(m), b, unique=False)


Family = Callable[[Rng, int | None], Known]
"""Draws a problem of about so many rows, or of a few."""

EQUALITIES: dict[str, Family] = {
    "spd": spd,
    "soft": soft,
    "semidefinite": semidefinite,
    "duplicate_rows": duplicate_rows,
    "badly_scaled_rows": badly_scaled_rows,
    "empty": empty,
}
"""Symmetric and solvable, without bounds."""

BOUNDS: dict[str, Family] = {
    "lcp": lcp,
    "degenerate": degenerate,
    "redundant": redundant,
    "bounded": bounded_rows,
    "bounded_semidefinite": bounded_semidefinite,
    "badly_scaled": badly_scaled,
    "single": single,
    "nought": nought,
}
"""Symmetric and solvable, with bounds."""

FAMILIES: dict[str, Family] = {
    **EQUALITIES,
    **BOUNDS,
    "conflicting": conflicting,
    "infeasible": infeasible,
    "nonsymmetric": nonsymmetric,
    "bounded_nonsymmetric": bounded_nonsymmetric,
    "operator": operator,
    "laws": law_rows,
    "laws_and_bounds": laws_and_bounds,
    "pyramid": pyramid,
    "cone": cone,
    "balls": balls,
}
"""Everything, by name."""


def draw(family: str, seed: int, m: int | None = None) -> Known:
    """The problem of a family that a seed gives, of about m rows."""
    return FAMILIES[family](np.random.default_rng([sum(map(ord, family)), seed]), m)


def draw_any_size(family: str, seed: int) -> Known:
    """The same for soaks: from 1 to 200 rows, evenly on a logarithmic scale, and of fifty seeds one of 200 rows."""
    share = 1.0 if seed % 50 == 7 else float(np.random.default_rng([5, seed]).random())
    return draw(family, seed, round(LARGEST**share))


def _friction(rng: Rng, cone: bool, m: int | None) -> Known:
    tangents = rng.integers(1, 3, size(rng, 1, 4, m if m is None else round(m / 2.5)))
    m = int((1 + tangents).sum())
    A, lam, w, frictions, start = matrix(rng, m), np.zeros(m), np.zeros(m), [], 0
    for count in tangents:
        rows = np.arange(start + 1, start + 1 + count)
        mu = float(rng.choice([0.0, rng.uniform(0.1, 1.2)], p=[0.1, 0.9]))
        contact = cone_contact if cone else pyramid_contact
        lam[start], w[start], lam[rows], w[rows] = contact(rng, int(count), mu)
        frictions.append(Friction(start, tuple(int(row) for row in rows), mu, cone))
        start += 1 + int(count)
    return Known(Problem(A, w - A @ lam, frictions=tuple(frictions)), lam, w, unique=False)
