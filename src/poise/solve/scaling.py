"""Scales that equilibrate the rows of a system, so that kilometres beside micrometres lose no digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PASSES = 20
"""Passes of Ruiz's iteration: each takes the square root of the remaining ratio, 1e16 becomes 1.00004."""


def equilibrate(A: Floats) -> Floats:
    """(m,) d > 0, powers of two, with which diag(d) A diag(d) has entries of about 1 at most.

    If A could be positive semi-definite (a_ij² ≤ a_ii a_jj) that is Jacobi's 1/√a_ii, with which the condition is
    within a factor m of the best (van der Sluis 1969); else Ruiz's iteration (2001). Powers of two cause no rounding.

    >>> equilibrate(np.array([[4.0, 1e-3], [1e-3, 1e-6]])).tolist()
    [0.5, 1024.0]
    """
    size = np.abs(A)
    root = np.sqrt(np.diag(size))
    if bool(np.all(size <= np.outer(root, root) * (1.0 + 1e-9))):
        return _powers(np.where(root > 0.0, root, 1.0))
    divide = np.ones(len(A))
    for _ in range(PASSES):
        scaled = size / divide[:, None] / divide[None, :]
        largest = np.maximum(scaled.max(axis=0), scaled.max(axis=1))
        divide *= np.sqrt(np.where(largest > 0.0, largest, 1.0))
    return _powers(divide)


def _powers(divide: Floats) -> Floats:
    """1/divide, rounded to powers of two."""
    return np.asarray(np.exp2(-np.round(np.log2(divide))), np.float64)
