"""Any problem of bounds, piecewise laws and friction pyramids as a linear complementarity problem.

Multipliers are sums of columns u that are free or nonnegative: λ = base + E u, and each column's own residual is
v = Eᵀ w + offset + soft · u, which must be complementary to u (or zero if u is free). So

    no bounds        λ = u, u free
    lo ≤ λ           λ = lo + u
    λ ≤ hi           λ = hi − u
    lo ≤ λ ≤ hi      λ = lo + u; a cap σ ≥ 0 complementary to hi − lo − u ≥ 0, and v + σ in place of v
    piecewise law    one column a piece, as long as the piece: pieces with a higher −w fill later automatically
    pyramid          λ_t = u₊ − u₋; a cap σ ≥ 0 complementary to μ λ_n − u₊ − u₋ ≥ 0, and v + σ in place of v

The cap is the additional variable λ of KOK eqs. 20-21; with both directions of the tangent they are Stewart and
Trinkle's form (1996), whose matrix is copositive where A is positive semi-definite: Lemke's method finds an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite

import numpy as np

from poise.solve.laws import UPRIGHT, Law
from poise.solve.problem import Floats, Problem


@dataclass
class Column:
    """One unknown u, which changes one multiplier."""

    row: int
    sign: float
    """dλ/du: 1 or −1."""
    free: bool = False
    cap: float = inf
    """Greatest u."""
    offset: float = 0.0
    soft: float = 0.0


@dataclass
class Cap:
    """Σ u of its columns ≤ room + share · u of the normal column."""

    columns: tuple[int, ...]
    room: float
    normal: int = -1
    share: float = 0.0


@dataclass
class Columns:
    """The columns of a problem's multipliers."""

    base: Floats
    """(m,) λ where all columns are zero."""
    columns: list[Column] = field(default_factory=list)
    caps: list[Cap] = field(default_factory=list)

    def add(self, column: Column) -> int:
        """Add a column, and its cap if it has one; returns its index."""
        self.columns.append(column)
        index = len(self.columns) - 1
        if isfinite(column.cap):
            self.caps.append(Cap((index,), column.cap))
        return index

    def build(self) -> Floats:
        """(m, n) E = dλ/du."""
        E = np.zeros((self.base.size, len(self.columns)))
        for index, column in enumerate(self.columns):
            E[column.row, index] = column.sign
        return E


@dataclass(frozen=True)
class Standard:
    """v = M z + q; z = (columns, caps); free z have v = 0, all others z ≥ 0 complementary to v ≥ 0."""

    M: Floats
    q: Floats
    free: np.ndarray
    """(n,) whether an unknown is free."""
    E: Floats
    """(m, columns) dλ/dz; caps change no multiplier."""
    base: Floats

    def multipliers(self, z: Floats) -> Floats:
        """(m,) λ of the unknowns z."""
        return np.asarray(self.base + self.E @ z[: self.E.shape[1]])


def columns_of(problem: Problem) -> Columns:
    """The columns of a problem, row by row."""
    lo, hi = np.asarray(problem.lo), np.asarray(problem.hi)
    out = Columns(np.zeros(problem.size))
    blocks = problem.block_rows()
    for row in range(problem.size):
        if row in blocks:
            continue
        if row in problem.laws:
            _add_law(out, row, problem.laws[row])
        else:
            _add_bounds(out, row, float(lo[row]), float(hi[row]))
    for friction in problem.frictions:
        normal = out.add(Column(friction.normal, 1.0))
        for tangent in friction.tangents if friction.mu > 0.0 else ():
            both = out.add(Column(tangent, 1.0)), out.add(Column(tangent, -1.0))
            out.caps.append(Cap(both, 0.0, normal, friction.mu))
    return out


def _add_bounds(out: Columns, row: int, lo: float, hi: float) -> None:
    if lo == hi:
        out.base[row] = lo
    elif isfinite(lo):
        out.base[row] = lo
        out.add(Column(row, 1.0, cap=hi - lo))
    elif isfinite(hi):
        out.base[row] = hi
        out.add(Column(row, -1.0))
    else:
        out.add(Column(row, 1.0, free=True))


def _add_law(out: Columns, row: int, law: Law) -> None:
    """Add rays and segments. On a piece from w₀ with slope −s: w − w₀ + s u = 0; below its start u is zero."""
    (first, w_first), (_, w_last) = law.vertices[0], law.vertices[-1]
    out.base[row] = first
    if len(law.vertices) == 1 and law.left == law.right != UPRIGHT:
        out.add(Column(row, 1.0, free=True, offset=-w_first, soft=-law.left))
        return
    if law.left != UPRIGHT:
        out.add(Column(row, -1.0, offset=w_first, soft=-law.left))
    for (x0, y0), (x1, y1) in zip(law.vertices, law.vertices[1:], strict=False):
        if x1 > x0:
            out.add(Column(row, 1.0, cap=x1 - x0, offset=-y0, soft=(y0 - y1) / (x1 - x0)))
    if law.right != UPRIGHT:
        out.add(Column(row, 1.0, offset=-w_last, soft=-law.right))


def standard(problem: Problem) -> Standard:
    """The linear complementarity problem of a problem."""
    parts = columns_of(problem)
    E, A = parts.build(), problem.matrix()
    n, k = len(parts.columns), len(parts.caps)
    M, q = np.zeros((n + k, n + k)), np.zeros(n + k)
    M[:n, :n] = E.T @ A @ E + np.diag([column.soft for column in parts.columns])
    q[:n] = E.T @ (A @ parts.base + np.asarray(problem.b)) + [column.offset for column in parts.columns]
    for index, cap in enumerate(parts.caps, start=n):
        q[index] = cap.room
        for column in cap.columns:
            M[column, index], M[index, column] = 1.0, -1.0
        if cap.normal >= 0:
            M[index, cap.normal] = cap.share
    free = np.array([column.free for column in parts.columns] + [False] * k, bool)
    return Standard(M, q, free, E, parts.base)
