"""Lemke's complementary pivoting (Cottle, Pang and Stone 1992; KOK §6 names it)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from poise.solve.problem import Floats

NOUGHT = 1e-11
"""Entries below this share of a column's largest one are no pivots."""
TIE = 1e-12
"""Difference of ratios below which the next column of the lexicographic order decides."""
EXACT = 1e-10
"""Error of an updated inverse, relative to its terms, above which it is computed from the basis again."""


class End(Enum):
    """How pivoting ended."""

    ANSWER = auto()
    RAY = auto()
    """The entering unknown can grow without bound."""
    CONFLICT = auto()
    """A ray whose direction proves that no z ≥ 0 has M z + q ≥ 0."""
    PIVOTS = auto()
    """Out of pivots."""
    CYCLE = auto()
    """A basis repeated, or became singular: rounding has decided a ratio test, and the path ends."""


@dataclass(frozen=True)
class Pivoted:
    """Result of pivoting."""

    end: End
    z: Floats
    basic: np.ndarray
    """(n,) whether z is in the basis: its residual is then zero."""
    pivots: int


def lemke(M: Floats, q: Floats, cover: Floats, pivots: int) -> Pivoted:
    """z ≥ 0 complementary to w = M z + q ≥ 0, by the path from z = 0, w = q + cover z₀ down to z₀ = 0.

    Ties of the ratio test are broken in lexicographic order of the rows of (x, B⁻¹), so that no basis repeats in exact
    arithmetic. With nearly dependent rows rounding may decide a tie wrongly: the inverse is then recomputed, and a path
    ends when a basis repeats.
    """
    n = len(q)
    if n == 0 or q.min() >= 0.0:
        return Pivoted(End.ANSWER, np.zeros(n), np.zeros(n, bool), 0)
    return _Path(M, q, cover).follow(pivots)


class _Path:
    """State of the path: the basis. Unknowns are numbered w: 0 … n−1, z: n … 2n−1, z₀: 2n."""

    def __init__(self, M: Floats, q: Floats, cover: Floats) -> None:
        n = len(q)
        self.n, self.M, self.q = n, M, q
        self.columns = np.hstack([np.eye(n), -M, -cover[:, None]])
        self.basis = np.arange(n)
        self.inverse = np.eye(n)
        self.count = 0
        self.met: set[bytes] = set()

    def follow(self, pivots: int) -> Pivoted:
        n = self.n
        leaving = self._first()
        while self.count < pivots:
            entering = int(leaving + n if leaving < n else leaving - n)
            column = self.inverse @ self.columns[:, entering]
            place = self._ratio(column)
            if place is None:
                return self._pivoted(End.CONFLICT if self._proof(entering, column) else End.RAY)
            leaving = int(self.basis[place])
            self._pivot(place, entering, column)
            if leaving == 2 * n:
                return self._pivoted(End.ANSWER)
            if not self._refresh() or self._again():
                return self._pivoted(End.CYCLE)
        return self._pivoted(End.PIVOTS)

    def _first(self) -> int:
        """z₀ enters for the most negative w; for ties the last one, whose row is the lexicographic least."""
        column = self.columns[:, 2 * self.n]
        ratios = self.q / -column
        place = int(np.flatnonzero(ratios <= ratios.min() + TIE * abs(ratios.min()))[-1])
        self._pivot(place, 2 * self.n, column)
        return place

    def _ratio(self, column: Floats) -> int | None:
        """The basic unknown that first becomes zero; z₀ if it is one of them."""
        able = np.flatnonzero(column > NOUGHT * max(1.0, float(np.abs(column).max())))
        if able.size == 0:
            return None
        able = self._least(able, np.maximum(self.inverse[able] @ self.q, 0.0) / column[able])
        artificial = np.flatnonzero(self.basis[able] == 2 * self.n)
        if artificial.size:
            return int(able[artificial[0]])
        for index in range(self.n):
            if able.size == 1:
                break
            able = self._least(able, self.inverse[able, index] / column[able])
        return int(able[np.argmax(column[able])])

    @staticmethod
    def _least(able: np.ndarray, ratios: Floats) -> np.ndarray:
        return np.asarray(able[ratios <= ratios.min() + TIE * max(1.0, abs(float(ratios.min())))])

    def _pivot(self, place: int, entering: int, column: Floats) -> None:
        self.basis[place] = entering
        self.count += 1
        row = self.inverse[place] / column[place]
        self.inverse -= np.outer(column, row)
        self.inverse[place] = row

    def _refresh(self) -> bool:
        """Recompute the inverse from the basis if updates have lost accuracy; False if the basis is singular."""
        basis = self.columns[:, self.basis]
        x = self.inverse @ self.q
        error = np.abs(basis @ x - self.q).max()
        if error <= EXACT * (np.abs(self.q).max() + np.abs(x).max()):
            return True
        try:
            self.inverse = np.linalg.inv(basis)
        except np.linalg.LinAlgError:
            return False
        return bool(np.isfinite(self.inverse).all())

    def _again(self) -> bool:
        """Whether the basis repeats."""
        within = np.zeros(2 * self.n + 1, bool)
        within[self.basis] = True
        key = np.packbits(within).tobytes()
        if key in self.met:
            return True
        self.met.add(key)
        return False

    def _proof(self, entering: int, column: Floats) -> bool:
        """Whether the ray's direction u ≥ 0 in z has Mᵀu ≤ 0 and q·u < 0: then 0 ≤ u·(M z + q) < 0 for any answer z."""
        along = np.zeros(2 * self.n + 1)
        along[self.basis] = -column
        along[entering] = 1.0
        u = along[self.n : 2 * self.n]
        size = float(np.abs(u).max(initial=0.0))
        if not size > 0.0:
            return False
        u = u / size
        slack = 1e-9 * max(1.0, float(np.abs(self.M).max()))
        return bool(u.min() >= -1e-9 and (self.M.T @ u).max() <= slack and self.q @ u < -1e-9)

    def _pivoted(self, end: End) -> Pivoted:
        values = np.zeros(2 * self.n + 1)
        values[self.basis] = self.inverse @ self.q
        basic = np.zeros(2 * self.n + 1, bool)
        basic[self.basis] = True
        part = slice(self.n, 2 * self.n)
        return Pivoted(end, np.maximum(values[part], 0.0), basic[part], self.count)
