"""Laws: the set of allowed pairs of a multiplier λ and a residual w = A λ + b.

A law is a non-increasing graph in the plane (λ, w): where λ grows, w decreases or stays. It has vertices and two end
rays (LIU's "target manifold", VON fig. 3):

    equality       w = 0 for any λ                                         joints, loops
    at_least       λ ≥ 0, w ≥ 0, one of them zero                          contacts, lower limits (KOK eq. 16)
    at_most        λ ≤ 0, w ≤ 0, one of them zero                          upper limits
    bounded        w = 0 while lo < λ < hi, else λ stays at its bound      motors, friction (VON eq. 8)
    dead_zone      λ = 0 while |w| < band, else |w| = band                 controllers that ignore small errors (LIU)
    stiffening     w = −compliance(λ) · λ, piece by piece                  springs that stiffen with load (LIU)

The graph is non-increasing, and the system's own line w = a λ + r (a > 0, the other rows fixed) increases, so that the
two meet in one point: that is the law's inverse, `solve`. All solvers use it.

Laws over several rows are elsewhere: friction and balls in `problem`, secondary targets in `secondary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan

UPRIGHT = -inf
"""Slope of an end ray on which λ is constant and w unbounded."""


@dataclass(frozen=True)
class Law:
    """A non-increasing graph: vertices (λ, w) from left to right, and the slopes dw/dλ ≤ 0 of the rays at both ends."""

    vertices: tuple[tuple[float, float], ...]
    left: float = 0.0
    """Slope left of the first vertex; `UPRIGHT` if λ cannot be less."""
    right: float = 0.0
    """Slope right of the last vertex; `UPRIGHT` if λ cannot be more."""

    def __post_init__(self) -> None:
        if not self.vertices:
            raise ValueError("a law needs at least one vertex")
        if not all(isfinite(x) for vertex in self.vertices for x in vertex):
            raise ValueError(f"vertices of a law must be finite, not {self.vertices}")
        for (lam, w), (next_lam, next_w) in zip(self.vertices, self.vertices[1:], strict=False):
            if next_lam < lam or next_w > w:
                raise ValueError(f"a law cannot rise or go back: {(next_lam, next_w)} comes after {(lam, w)}")
        for name, slope in (("left", self.left), ("right", self.right)):
            if isnan(slope) or slope > 0.0:
                raise ValueError(f"the {name} slope of a law is {slope}; it must be 0, negative, or UPRIGHT")

    @property
    def lo(self) -> float:
        """Least multiplier."""
        return self.vertices[0][0] if self.left == UPRIGHT else -inf

    @property
    def hi(self) -> float:
        """Greatest multiplier."""
        return self.vertices[-1][0] if self.right == UPRIGHT else inf

    def solve(self, a: float, r: float) -> float:
        """The λ at which the line w = a λ + r, a > 0, meets the graph.

        >>> at_least().solve(2.0, -3.0), at_least().solve(2.0, 3.0)
        (1.5, 0.0)
        """
        if not a > 0.0:
            raise ValueError(f"a is {a}; a row's own inverse mass must be positive")
        before: tuple[float, float] | None = None
        for lam, w in self.vertices:
            if a * lam + r >= w:  # the line is above this vertex: they meet on the piece before it
                return _meet(a, r, before, (lam, w), self.left)
            before = (lam, w)
        return _meet_ray(a, r, self.vertices[-1], self.right)

    def natural(self, lam: float, w: float, scale: float = 1.0) -> float:
        """Distance of λ from its law: the natural map, zero if and only if (λ, w) is on the graph.

        >>> at_least().natural(-1.0, 0.0), at_least().natural(2.0, 0.0), at_least().natural(0.0, 3.0)
        (1.0, 0.0, 0.0)
        """
        return self.solve(scale, w - scale * lam) - lam


def _meet(a: float, r: float, before: tuple[float, float] | None, vertex: tuple[float, float], left: float) -> float:
    """λ on the piece that ends in a vertex: from the vertex before it, or from the left ray."""
    if before is None:
        return _meet_ray(a, r, vertex, left)
    (lam0, w0), (lam1, w1) = before, vertex
    if lam1 == lam0:
        return lam0
    slope = (w1 - w0) / (lam1 - lam0)
    return min(max((w0 - slope * lam0 - r) / (a - slope), lam0), lam1)


def _meet_ray(a: float, r: float, vertex: tuple[float, float], slope: float) -> float:
    """λ on an end ray."""
    lam, w = vertex
    return lam if slope == UPRIGHT else (w - slope * lam - r) / (a - slope)


def equality() -> Law:
    """w = 0.

    >>> equality().solve(2.0, 1.0)
    -0.5
    """
    return Law(((0.0, 0.0),))


def at_least() -> Law:
    """λ ≥ 0 complementary to w ≥ 0.

    >>> at_least().lo, at_least().hi
    (0.0, inf)
    """
    return Law(((0.0, 0.0),), left=UPRIGHT)


def at_most() -> Law:
    """λ ≤ 0 complementary to w ≤ 0.

    >>> at_most().solve(1.0, 2.0), at_most().solve(1.0, -2.0)
    (-2.0, 0.0)
    """
    return Law(((0.0, 0.0),), right=UPRIGHT)


def bounded(lo: float, hi: float) -> Law:
    """w = 0 while λ is between its bounds; either may be infinite.

    >>> bounded(-1.0, 1.0).solve(1.0, -5.0)
    1.0
    """
    if isnan(lo) or isnan(hi) or lo > hi or lo == inf or hi == -inf:
        raise ValueError(f"bounds {lo} to {hi}: the lower one must not be above the upper one")
    ends = [(end, 0.0) for end in (lo, hi) if isfinite(end)] or [(0.0, 0.0)]
    return Law(tuple(ends), UPRIGHT if isfinite(lo) else 0.0, UPRIGHT if isfinite(hi) else 0.0)


def dead_zone(below: float, above: float, lo: float = -inf, hi: float = inf) -> Law:
    """No force while below ≤ w ≤ above; beyond, a force holds w at the edge, within its bounds.

    >>> law = dead_zone(-0.5, 0.5)
    >>> law.solve(1.0, 0.2), law.solve(1.0, 0.8)
    (0.0, -0.30000000000000004)
    """
    if not (below <= 0.0 <= above and lo <= 0.0 <= hi):
        raise ValueError(f"a dead zone contains zero: w from {below} to {above}, λ from {lo} to {hi}")
    vertices = [(0.0, above), (0.0, below)]
    if isfinite(lo):
        vertices.insert(0, (lo, above))
    if isfinite(hi):
        vertices.append((hi, below))
    return Law(tuple(vertices), UPRIGHT if isfinite(lo) else 0.0, UPRIGHT if isfinite(hi) else 0.0)


def stiffening(loads: Sequence[float], compliances: Sequence[float]) -> Law:
    """A spring, symmetric in both directions: one compliance −dw/dλ up to each load, and the last one beyond.

    >>> law = stiffening([10.0], [0.1, 0.01])
    >>> law.vertices
    ((-10.0, 1.0), (0.0, 0.0), (10.0, -1.0))
    """
    if len(compliances) != len(loads) + 1 or any(c < 0.0 or not isfinite(c) for c in compliances):
        raise ValueError("give one compliance, 0 or more, for each load and one for what is beyond the last")
    if list(loads) != sorted(set(loads)) or any(load <= 0.0 for load in loads):
        raise ValueError(f"loads must be positive and grow: {list(loads)}")
    right, lam, w = [(0.0, 0.0)], 0.0, 0.0
    for load, compliance in zip(loads, compliances, strict=False):
        lam, w = float(load), w - compliance * (load - lam)
        right.append((lam, w))
    left = [(-x, -y) for x, y in right[:0:-1]]
    return Law(tuple(left + right), left=-compliances[-1], right=-compliances[-1])
