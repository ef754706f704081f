"""Frictional contact problems of the FCLIB collection (HDF5, frictionalcontactlibrary.github.io), as `Problem`s.

A contact has a normal and two tangents, in this order. "Local" problems give W and q, w = W r + q; "global" ones give
M, H and f with M v = H r + f and w = Hᵀ v + w₀, so that W = Hᵀ M⁻¹ H. Matrices are triplets (nz ≥ 0), compressed by
columns (nz = −1) or by rows (nz = −2).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poise.solve.delassus_operator import Factors
from poise.solve.problem import Friction, Problem
from poise.solve.residuals import natural_map

#: files of others, beside the repository
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fclib"


@dataclass(frozen=True)
class Bodies:
    """A global problem: masses, contact directions and momentum, all of 3 m contact rows and n coordinates."""

    M: np.ndarray
    """(n, n)"""
    H: np.ndarray
    """(n, 3 m)"""
    f: np.ndarray
    """(n,) momentum without contacts."""
    w: np.ndarray
    """(3 m,) velocities that are added to those of the contacts."""
    mu: np.ndarray
    """(m,)"""

    def problem(self, factored: bool = False) -> Problem:
        """What solvers see; A is never formed where `factored`."""
        response = np.linalg.solve(self.M, self.H)
        q = self.H.T @ np.linalg.solve(self.M, self.f) + self.w
        return contacts(Factors(self.H.T, response) if factored else self.H.T @ response, q, self.mu)


def contacts(A: Any, q: np.ndarray, mu: np.ndarray) -> Problem:
    """Contacts of three rows each, with true cones."""
    return Problem(A, q, frictions=[Friction(3 * k, (3 * k + 1, 3 * k + 2), float(m)) for k, m in enumerate(mu)])


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
    """The problem of a file; where `factored`, A is a product: M⁻¹ in the middle, or of a local one its square root."""
    import h5py

    try:
        file = h5py.File(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read as HDF5: {error}") from None
    with file:
        if "fclib_local" in file:
            group = file["fclib_local"]
            W = read_matrix(group["W"])
            W = 0.5 * (W + W.T)
            mu = np.asarray(group["vectors/mu"])
            return contacts(square_root(W) if factored else W, np.asarray(group["vectors/q"]), mu)
        if "fclib_global" not in file:
            raise ValueError(f"{path} holds no fclib_local and no fclib_global; found {', '.join(file) or 'nothing'}")
        group = file["fclib_global"]
        f, w, mu = (np.asarray(group[f"vectors/{name}"]) for name in ("f", "w", "mu"))
        return Bodies(read_matrix(group["M"]), read_matrix(group["H"]), f, w, mu).problem(factored)


def square_root(A: np.ndarray) -> Factors:
    """A = J Jᵀ of a symmetric, positive semi-definite A, of as many columns as it has rank."""
    values, vectors = np.linalg.eigh(A)
    keep = values > 1e-12 * values.max(initial=0.0)
    J = vectors[:, keep] * np.sqrt(values[keep])
    return Factors(J, J.T)


def column_of_boxes(boxes: int, mass: float = 2.0, push: float = 0.1, step: float = 0.01) -> Bodies:
    """Boxes of 1 × 1 × 0.2 m, one on top of the other, four contacts below each, the top one pushed along x.

    `mass` in kg of each, `push` the speed in m/s that the top one has, `step` in s that gravity has acted.
    """
    M = np.kron(np.eye(boxes), np.diag([mass] * 3 + [mass * (1.0 + 0.04) / 12.0] * 2 + [mass / 6.0]))
    H = np.zeros((6 * boxes, 12 * boxes))
    for box in range(boxes):
        for corner in range(4):
            x, y = 0.5 * (1 - 2 * (corner % 2)), 0.5 * (1 - 2 * (corner // 2))
            for k, axis in enumerate(np.eye(3)[[2, 0, 1]]):
                column = 12 * box + 3 * corner + k
                H[6 * box : 6 * box + 6, column] = (*axis, *np.cross((x, y, -0.1), axis))
                if box:
                    H[6 * box - 6 : 6 * box, column] = (*-axis, *np.cross((x, y, 0.1), -axis))
    f = np.kron(np.ones(boxes), mass * np.array([0.0, 0.0, -9.81 * step, 0.0, 0.0, 0.0]))
    f[-6] = mass * push
    return Bodies(M, H, f, np.zeros(12 * boxes), np.full(4 * boxes, 5.0))


def relative_residual(problem: Problem, lam: np.ndarray) -> float:
    """FCLIB's measure: the norm of the natural map, De Saxcé's correction in, divided by the norm of q."""
    return float(np.linalg.norm(natural_map(problem, lam, scale=1.0)) / np.linalg.norm(problem.b))
