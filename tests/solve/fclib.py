"""Frictional contact problems of the FCLIB collection (HDF5, frictionalcontactlibrary.github.io), as `Problem`s.

A contact has a normal and two tangents, in this order. "Local" problems give W and q, w = W r + q; "global" ones give
M, H and f with M v = H r + f and w = Hᵀ v + w₀, so that W = Hᵀ M⁻¹ H. Matrices are triplets (nz ≥ 0), compressed by
columns (nz = −1) or by rows (nz = −2).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from poise.solve.check import natural_map
from poise.solve.factors import Factors
from poise.solve.problem import Friction, Problem

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "fclib"


def read_matrix(group: Any) -> np.ndarray:
    rows, columns, nz = (int(group[name][0]) for name in ("m", "n", "nz"))
    i, p, x = (np.asarray(group[name]) for name in ("i", "p", "x"))
    matrix = np.zeros((rows, columns))
    if nz >= 0:
        np.add.at(matrix, (i[:nz], p[:nz]), x[:nz])
        return matrix
    outer = np.repeat(np.arange(len(p) - 1), np.diff(p))
    inner = i[: p[-1]]
    np.add.at(matrix, (inner, outer) if nz == -1 else (outer, inner), x[: p[-1]])
    return matrix


def read_problem(path: Path, factored: bool = False) -> Problem:
    """The problem of a file; of a global one A is never formed where `factored`."""
    import h5py

    with h5py.File(path) as file:
        if "fclib_local" in file:
            group = file["fclib_local"]
            A: Any = read_matrix(group["W"])
            A, q = 0.5 * (A + A.T), np.asarray(group["vectors/q"])
        else:
            group = file["fclib_global"]
            M, H = read_matrix(group["M"]), read_matrix(group["H"])
            response = np.linalg.solve(M, H)
            q = H.T @ np.linalg.solve(M, group["vectors/f"][()]) + group["vectors/w"][()]
            A = Factors(H.T, response) if factored else H.T @ response
        mu = np.asarray(group["vectors/mu"])
    return Problem(A, q, frictions=[Friction(3 * k, (3 * k + 1, 3 * k + 2), float(m)) for k, m in enumerate(mu)])


def relative_residual(problem: Problem, lam: np.ndarray) -> float:
    """FCLIB's measure: the norm of the natural map, De Saxcé's correction in, divided by the norm of q."""
    return float(np.linalg.norm(natural_map(problem, lam, scale=1.0)) / np.linalg.norm(problem.b))
