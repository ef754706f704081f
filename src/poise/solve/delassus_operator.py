"""A = J M⁻¹ Jᵀ without forming it: an operator that an iterative solver applies through v = M⁻¹Jᵀλ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.solve.problem import Operator

Floats = NDArray[np.float64]


class Factors(Operator):
    """A = J · response, with response = M⁻¹Jᵀ.

    >>> A = Factors([[1.0, 0.0], [1.0, 1.0]], [[0.5, 0.5], [0.0, 0.25]])
    >>> A.diagonal.tolist(), A.apply(np.array([2.0, 0.0])).tolist()
    ([0.5, 0.75], [1.0, 1.0])
    """

    J: Floats
    """(m, n)"""
    response: Floats
    """(n, m) M⁻¹Jᵀ."""

    def __init__(self, J: ArrayLike, response: ArrayLike) -> None:
        rows, columns = np.array(J, np.float64), np.array(response, np.float64)
        if rows.ndim != 2 or columns.shape != rows.shape[::-1]:
            raise ValueError(f"J has shape {rows.shape} and M⁻¹Jᵀ {columns.shape}; (m, n) and (n, m) are required")
        if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
            raise ValueError("J and M⁻¹Jᵀ must be finite")
        super().__init__(lambda x: np.asarray(rows @ (columns @ x)), np.einsum("ij,ji->i", rows, columns))
        object.__setattr__(self, "J", rows)
        object.__setattr__(self, "response", columns)

    def own(self, rows: NDArray[np.integer[Any]]) -> Floats:
        """(n, k, k) parts of A between the rows of each of n groups (n, k)."""
        return np.asarray(self.J[rows] @ np.moveaxis(self.response[:, rows], 0, 1))
