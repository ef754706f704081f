"""What random problems are made of: matrices, points that obey a law, bounds, contacts."""

from __future__ import annotations

import numpy as np

from poise.solve.laws import Law, at_least, at_most, bounded, dead_zone, equality, stiffening

Rng = np.random.Generator


def matrix(rng: Rng, m: int, rank: int | None = None, floor: float = 0.05) -> np.ndarray:
    """(m, m) symmetric; positive definite with a condition of some hundreds, or positive semi-definite of a rank."""
    rank = m if rank is None else rank
    factor = rng.normal(size=(m, rank)) / np.sqrt(max(rank, 1))
    A = factor @ factor.T
    return A + floor * np.eye(m) if rank >= m else A


def size(rng: Rng, least: int = 2, most: int = 12, m: int | None = None) -> int:
    """The given number of rows, but at least that of the family; a random number if none is given."""
    if m is None:
        return int(rng.integers(least, most + 1))
    return max(m, 1 if least == 2 else least)


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


def complementary(rng: Rng, m: int) -> tuple[np.ndarray, np.ndarray]:
    """λ and w of which one is zero and the other is not negative."""
    active = rng.random(m) < 0.5
    sizes = rng.exponential(size=m)
    return np.where(active, sizes, 0.0), np.where(active, 0.0, sizes)


def bounds(rng: Rng, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """λ, w, lo, hi of rows with all kinds of bounds; if λ is at a bound, w has the matching sign or is zero."""
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


def pyramid_contact(rng: Rng, count: int, mu: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    """λ and w of the normal row, λ and w of the tangent rows."""
    if rng.random() < 0.3:
        return 0.0, float(rng.exponential()), np.zeros(count), rng.normal(size=count)
    normal = float(rng.exponential())
    way = rng.choice([-1.0, 1.0], count)
    slides = rng.random(count) < 0.5
    lam = np.where(slides, way * mu * normal, rng.uniform(-1.0, 1.0, count) * mu * normal)
    return normal, 0.0, lam, np.where(slides, -way * rng.exponential(size=count), 0.0)


def cone_contact(rng: Rng, count: int, mu: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    """The same of a true cone: open, sticking, or sliding against the force."""
    place = rng.random()
    if place < 0.3:
        return 0.0, float(rng.exponential()), np.zeros(count), rng.normal(size=count)
    normal, direction = float(rng.exponential()), unit_vector(rng, count)
    if place < 0.65:
        return normal, 0.0, direction * mu * normal * rng.uniform(0.0, 0.95), np.zeros(count)
    return normal, 0.0, direction * mu * normal, -direction * rng.exponential()


def unit_vector(rng: Rng, n: int) -> np.ndarray:
    """(n,) of length 1, any direction."""
    vector = rng.normal(size=n)
    return vector / np.linalg.norm(vector)


def skew(rng: Rng, m: int) -> np.ndarray:
    """(m, m) with S = −Sᵀ."""
    half = rng.normal(size=(m, m)) / np.sqrt(max(m, 1))
    return half - half.T
