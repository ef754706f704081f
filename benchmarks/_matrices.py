"""Methods for the matrix of a list of rows, K = J M⁻¹ Jᵀ, each timed from the state to the matrix.

prepare        what all ways but the dense one begin with, alone: poses and articulated inertias
test forces    a whole forward dynamics for every row, and one without (KOK §4.2: m + 1 calls)
cached         the same, with what depends on the state alone computed once
dense          J given; M as a matrix, Cholesky and products by LAPACK and BLAS
deltas         acceleration deltas (KOK §4.3), one row after another
gram           what simulations do: half a delta a row, then products of what it left behind
lanes          the same for eight rows an instruction
worlds         the same for eight worlds an instruction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from _matrix_kernels import CACHED_TEST_FORCES, DELTAS, GRAM, GRAM_LANES, PREPARE, TEST_FORCES
from _trees import States, fill, filled, handles

from poise import dynamics
from poise.constraints.response.delassus import row_jacobian
from poise.constraints.response.row_system import System
from poise.constraints.rows import Rows
from poise.dynamics.workspace import Workspace
from poise.kernel.jit import Entry
from poise.kernel.memory import F64, F64X8


@dataclass(frozen=True)
class Way:
    """A method for the matrix, to be timed."""

    name: str
    run: Callable[[int], object]
    """From the state to the matrix, n times."""
    prepare: Callable[[], None]
    """Begin with the states again."""
    made: Callable[[], np.ndarray] | None
    """(worlds, m, m) what was built last; None where nothing is."""
    worlds: int = 1

    def residual(self, truth: Sequence[np.ndarray]) -> float | None:
        """Greatest difference from the true matrices (those of the last worlds), of the greatest entry."""
        if self.made is None:
            return None
        self.prepare()
        self.run(1)
        pairs = zip(self.made(), truth[-self.worlds :], strict=True)
        return max(float(np.abs(K - right).max() / np.abs(right).max()) for K, right in pairs)


class Ways:
    """All methods for some rows: of the last state alone, and of eight states in lanes."""

    def __init__(self, states: States, one: Rows, eight: Rows) -> None:
        self.model, self.states = one.model, {F64: States(states.q[-1:], states.v[-1:], states.tau[-1:]), F64X8: states}
        self.rows = {F64: one, F64X8: eight}
        self.spaces = {width: filled(self.model, width, self.states[width]) for width in (F64, F64X8)}
        self.spaces[F64].x.set_count("n_forces", 1)
        self.J = row_jacobian(one, states.q[-1])
        self.K = np.zeros((1, len(self.J), len(self.J)))

    def all(self) -> list[Way]:
        """Every method."""
        return [
            self._prepared(),
            self._kernel("test forces", TEST_FORCES),
            self._kernel("cached", CACHED_TEST_FORCES),
            Way("dense", self._dense, lambda: None, lambda: self.K),
            self._kernel("deltas", DELTAS),
            self._kernel("gram", GRAM),
            self._lanes(),
            self._kernel("worlds", GRAM, eight=True),
        ]

    def _prepared(self) -> Way:
        call, given = PREPARE[F64], handles(self.spaces[F64])
        return Way("prepare", lambda n: call(*given, n), lambda: fill(self.spaces[F64], self.states[F64]), None)

    def _kernel(self, name: str, loop: Entry, *, eight: bool = False) -> Way:
        width = F64X8 if eight else F64
        system, call = System(self.rows[width], lanes=False), loop[width]
        return self._way(name, self.spaces[width], system, lambda given: lambda n: call(*given, n))

    def _lanes(self) -> Way:
        system, call = System(self.rows[F64]), GRAM_LANES[(F64, F64, F64, F64, F64, F64X8, F64, F64)]
        return self._way(
            "lanes", self.spaces[F64], system, lambda given: lambda n: call(*given, system.plain.handle, n)
        )

    def _way(
        self,
        name: str,
        space: Workspace,
        system: System,
        loop: Callable[[tuple[np.ndarray, ...]], Callable[[int], object]],
    ) -> Way:
        width, m = space.width, len(self.J)
        given = (*handles(space), self.rows[width].now.handle, system.t.handle, system.flow.handle)

        def begin() -> None:
            fill(space, self.states[width])

        def made() -> np.ndarray:
            return system.matrix().reshape(width.lanes, m, m)

        return Way(name, loop(given), begin, made, width.lanes)

    def _dense(self, n: int) -> None:
        q = self.states[F64].q[0]
        for _ in range(n):
            half = np.linalg.solve(np.linalg.cholesky(dynamics.mass_matrix(self.model, q)), self.J.T)
            self.K[0] = half.T @ half


def reference(rows: Rows, q: np.ndarray) -> np.ndarray:
    """(m, m) J M⁻¹ Jᵀ in NumPy."""
    J = row_jacobian(rows, q)
    return np.asarray(J @ np.linalg.solve(dynamics.mass_matrix(rows.model, q), J.T))
