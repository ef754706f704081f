"""Random problems with known answers, by family. The same seed gives the same problem.

An answer (λ, w) that obeys every law is drawn first; then b = w − (A + diag cfm) λ. So each problem has at least the
answer that comes with it. `unique` says whether λ is the only one; where it is not, judge by the natural residual.

    from solve.problems import draw
    known = draw("bounded", seed=3)
    result = solver.solve(known.problem)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from poise.solve.laws import Law, at_least, at_most, bounded, dead_zone, equality, stiffening
from poise.solve.problem import Ball, Friction, Operator, Problem

Rng = np.random.Generator
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


def matrix(rng: Rng, m: int, rank: int | None = None, floor: float = 0.05) -> np.ndarray:
    """(m, m) symmetric; positive definite with a condition of some hundreds, or positive semi-definite of a rank."""
    rank = m if rank is None else rank
    factor = rng.normal(size=(m, rank)) / np.sqrt(max(rank, 1))
    A = factor @ factor.T
    return A + floor * np.eye(m) if rank >= m else A


def size(rng: Rng, least: int = 2, most: int = 12, m: int | None = None) -> int:
    """So many rows as are asked for, or as many as the family needs; drawn where nothing is asked."""
    if m is None:
        return int(rng.integers(least, most + 1))
    return max(m, 1 if least == 2 else least)


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
    A, lam = matrix(rng, m) + _skew(rng, m), rng.normal(size=m)
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
    lam, w = _complementary(rng, m)
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w)


def degenerate(rng: Rng, m: int | None = None) -> Known:
    """Complementarity with many rows at which both λ and w are nought."""
    m = size(rng, 4, m=m)
    A = matrix(rng, m)
    lam, w = _complementary(rng, m)
    both = rng.random(m) < 0.5
    lam[both], w[both] = 0.0, 0.0
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w)


def redundant(rng: Rng, m: int | None = None) -> Known:
    """Complementarity with more contacts than degrees of freedom: w is known, λ is not the only one."""
    m = size(rng, 4, m=m)
    A = matrix(rng, m, rank=max(1, m // 2))
    lam, w = _complementary(rng, m)
    return Known(Problem(A, w - A @ lam, lo=np.zeros(m)), lam, w, unique=False)


def infeasible(rng: Rng, m: int | None = None) -> Known:
    """Contacts that nothing can keep apart: A n = 0 and b · n < 0 for an n > 0. The answer that comes along is none."""
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
    lam, w, lo, hi = _bounds(rng, m)
    return Known(Problem(A, w - A @ lam - cfm * lam, lo, hi, cfm), lam, w)


def bounded_semidefinite(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, A singular; w is known, λ is not the only one."""
    m = size(rng, 3, m=m)
    A = matrix(rng, m, rank=max(1, m // 2))
    lam, w, lo, hi = _bounds(rng, m)
    return Known(Problem(A, w - A @ lam, lo, hi), lam, w, unique=False)


def bounded_nonsymmetric(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, A positive definite and not symmetric."""
    m = size(rng, m=m)
    A = matrix(rng, m) + _skew(rng, m)
    lam, w, lo, hi = _bounds(rng, m)
    return Known(Problem(A, w - A @ lam, lo, hi), lam, w)


def badly_scaled(rng: Rng, m: int | None = None) -> Known:
    """All kinds of bounds mixed, the diagonal of A from 1e-8 to 1e8: kilometres beside micrometres."""
    m = size(rng, m=m)
    A, units = matrix(rng, m), 10.0 ** rng.uniform(-4.0, 4.0, m)
    lam, w, lo, hi = _bounds(rng, m)
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
    lam, w, lo, hi = _bounds(rng, m)
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
        direction = _direction(rng, int(width))
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


# ---------------------------------------------------------------- parts


def random_law(rng: Rng) -> Law:
    """A law of any kind, the ready-made ones and free ones with upright, sloping and level pieces."""
    kind = int(rng.integers(7))
    if kind == 0:
        return equality()
    if kind == 1:
        return at_least()
    if kind == 2:
        return at_most()
    if kind == 3:
        return bounded(float(-rng.exponential()), float(rng.exponential()))
    if kind == 4:
        ends = (float(-rng.exponential()), float(rng.exponential())) if rng.random() < 0.5 else (-np.inf, np.inf)
        return dead_zone(float(-rng.exponential()), float(rng.exponential()), *ends)
    if kind == 5:
        loads = np.cumsum(rng.exponential(size=rng.integers(1, 4)) + 0.1)
        return stiffening(loads.tolist(), rng.exponential(size=loads.size + 1).tolist())
    return _free_law(rng)


def _free_law(rng: Rng) -> Law:
    steps = rng.exponential(size=(int(rng.integers(1, 6)), 2)) * (rng.random((1, 2)) < 0.9)
    steps[rng.random(steps.shape) < 0.3] = 0.0
    vertices = rng.normal(size=2) + np.cumsum(steps * [1.0, -1.0], axis=0)
    left, right = (float(rng.choice([0.0, -np.inf, -rng.exponential()])) for _ in range(2))
    return Law(tuple((float(x), float(y)) for x, y in vertices), left, right)


def point_on(law: Law, rng: Rng) -> tuple[float, float]:
    """A point of a law's graph: on a vertex, on a segment between two, or on an end ray."""
    piece = int(rng.integers(-1, len(law.vertices)))
    if rng.random() < 0.25:
        return law.vertices[max(piece, 0)]
    if piece == -1:
        return _on_ray(law.vertices[0], law.left, -float(rng.exponential()))
    if piece == len(law.vertices) - 1:
        return _on_ray(law.vertices[-1], law.right, float(rng.exponential()))
    (x0, y0), (x1, y1), share = law.vertices[piece], law.vertices[piece + 1], float(rng.random())
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def _on_ray(vertex: tuple[float, float], slope: float, way: float) -> tuple[float, float]:
    x, y = vertex
    return (x, y - way) if np.isinf(slope) else (x + way, y + slope * way)


def _complementary(rng: Rng, m: int) -> tuple[np.ndarray, np.ndarray]:
    active = rng.random(m) < 0.5
    sizes = rng.exponential(size=m)
    return np.where(active, sizes, 0.0), np.where(active, 0.0, sizes)


def _bounds(rng: Rng, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """λ, w, lo, hi of rows with all kinds of bounds; where λ is at a bound, w points that way or is nought."""
    lo, hi = -rng.exponential(size=m), rng.exponential(size=m)
    lo[rng.random(m) < 0.3], hi[rng.random(m) < 0.3] = -np.inf, np.inf
    shift = np.where(rng.random(m) < 0.3, rng.normal(size=m), 0.0)
    lo, hi = lo + shift, hi + shift
    fixed = (rng.random(m) < 0.1) & np.isfinite(lo)
    hi[fixed] = lo[fixed]
    place, push = rng.integers(3, size=m), rng.exponential(size=m) * (rng.random(m) < 0.9)
    at_lo, at_hi = (place == 0) & np.isfinite(lo), (place == 1) & np.isfinite(hi)
    inside = np.clip(rng.normal(size=m), lo, hi)
    lam = np.where(at_lo, lo, np.where(at_hi, hi, inside))
    return lam, np.where(at_lo, push, np.where(at_hi, -push, 0.0)), lo, hi


def _friction(rng: Rng, cone: bool, m: int | None) -> Known:
    tangents = rng.integers(1, 3, size(rng, 1, 4, m if m is None else round(m / 2.5)))
    m = int((1 + tangents).sum())
    A, lam, w, frictions, start = matrix(rng, m), np.zeros(m), np.zeros(m), [], 0
    for count in tangents:
        rows = np.arange(start + 1, start + 1 + count)
        mu = float(rng.choice([0.0, rng.uniform(0.1, 1.2)], p=[0.1, 0.9]))
        contact = _cone_contact if cone else _pyramid_contact
        lam[start], w[start], lam[rows], w[rows] = contact(rng, int(count), mu)
        frictions.append(Friction(start, tuple(int(row) for row in rows), mu, cone))
        start += 1 + int(count)
    return Known(Problem(A, w - A @ lam, frictions=tuple(frictions)), lam, w, unique=False)


def _pyramid_contact(rng: Rng, count: int, mu: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    """λ and w of the normal row, λ and w of the tangent rows."""
    if rng.random() < 0.3:
        return 0.0, float(rng.exponential()), np.zeros(count), rng.normal(size=count)
    normal = float(rng.exponential())
    way = rng.choice([-1.0, 1.0], count)
    slides = rng.random(count) < 0.5
    lam = np.where(slides, way * mu * normal, rng.uniform(-1.0, 1.0, count) * mu * normal)
    return normal, 0.0, lam, np.where(slides, -way * rng.exponential(size=count), 0.0)


def _cone_contact(rng: Rng, count: int, mu: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    place = rng.random()
    if place < 0.3:
        return 0.0, float(rng.exponential()), np.zeros(count), rng.normal(size=count)
    normal, direction = float(rng.exponential()), _direction(rng, count)
    if place < 0.65:
        return normal, 0.0, direction * mu * normal * rng.uniform(0.0, 0.95), np.zeros(count)
    return normal, 0.0, direction * mu * normal, -direction * rng.exponential()


def _direction(rng: Rng, n: int) -> np.ndarray:
    vector = rng.normal(size=n)
    return vector / np.linalg.norm(vector)


def _skew(rng: Rng, m: int) -> np.ndarray:
    half = rng.normal(size=(m, m)) / np.sqrt(max(m, 1))
    return half - half.T
