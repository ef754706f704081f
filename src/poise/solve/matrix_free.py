"""A = J M⁻¹ Jᵀ of rows on two or a few rigid bodies each, without forming it: swept body by body (LIU; VON eq. 5).

`PGS` accepts it like any matrix, with every law, friction, warm start, relaxation and acceleration: it updates
v = M⁻¹Jᵀλ instead of w, and the cost of a sweep is proportional to the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.solve.problem import Operator

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class BodyRows(Operator):
    """Rows on the twists (ω, v) of bodies at their centres of mass, and the bodies' inverse masses.

    Args:
        body: (m, E) bodies of each row, −1 for the world or for none; usually two a row.
        J: (m, E, 6) Jacobian of each row on the twist of each of its bodies.
        inverse_mass: (n, 6, 6) M⁻¹ of each body, symmetric, in the same axes; zero for immovable bodies.

    Two masses of 1 kg and 2 kg on a line, held at a distance:

    >>> M = inverse_masses([1.0, 2.0], np.array([np.eye(3), np.eye(3)]))
    >>> A = BodyRows([[0, 1]], [[[0, 0, 0, -1, 0, 0], [0, 0, 0, 1, 0, 0]]], M)
    >>> A.diagonal.tolist(), A.apply(np.array([2.0])).tolist()
    ([1.5], [3.0])
    """

    body: Indices
    """(m, E) no body twice in a row; −1 if there is none."""
    J: Floats
    """(m, E, 6) zero if there is no body."""
    response: Floats
    """(m, E, 6) M⁻¹Jᵀ of each part."""
    n_bodies: int

    def __init__(self, body: ArrayLike, J: ArrayLike, inverse_mass: ArrayLike) -> None:
        which, rows, inverse = _checked(body, J, inverse_mass)
        which, rows = _merged(which, rows)
        response = np.where(which[:, :, None] < 0, 0.0, np.einsum("meij,mej->mei", inverse[which], rows))
        super().__init__(self._apply, np.einsum("mei,mei->m", rows, response))
        for name, value in (("body", which), ("J", rows), ("response", response), ("n_bodies", len(inverse) - 1)):
            object.__setattr__(self, name, value)

    def velocities(self, lam: ArrayLike) -> Floats:
        """(n_bodies, 6) v = M⁻¹Jᵀλ: the velocity change by multipliers."""
        v = np.zeros((self.n_bodies + 1, 6))  # the last one is the world
        np.add.at(v, self.body, self.response * np.asarray(lam, np.float64)[:, None, None])
        return v[:-1]

    def dense(self) -> Floats:
        """(m, m) the matrix, for solvers that need one."""
        J, answer = np.zeros((2, len(self.body), self.n_bodies + 1, 6))
        rows = np.arange(len(self.body))[:, None]
        np.add.at(J, (rows, self.body), self.J)
        np.add.at(answer, (rows, self.body), self.response)
        matrix = np.tensordot(J[:, :-1], answer[:, :-1], axes=((1, 2), (1, 2)))
        return np.asarray(0.5 * (matrix + matrix.T))

    def _apply(self, lam: Floats) -> Floats:
        v = np.append(self.velocities(lam), np.zeros((1, 6)), axis=0)
        return np.asarray(np.einsum("mei,mei->m", self.J, v[self.body]))

    def own(self, rows: NDArray[np.integer[Any]]) -> Floats:
        """(n, k, k) parts of A between the rows of each of n groups (n, k)."""
        bodies = self.body[rows]
        same = (bodies[:, :, None, :, None] == bodies[:, None, :, None, :]) & (bodies >= 0)[:, :, None, :, None]
        dots = np.einsum("nkei,nlfi->nklef", self.J[rows], self.response[rows])
        return np.asarray(np.where(same, dots, 0.0).sum(axis=(3, 4)))

    def parts(self) -> tuple[Indices, Indices, Floats, Floats]:
        """First part of each row (m + 1), and of each part its body, J (…, 6) and M⁻¹Jᵀ (…, 6)."""
        there = self.body >= 0
        start = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
        return start, self.body[there], self.J[there], self.response[there]


def inverse_masses(mass: ArrayLike, inertia: ArrayLike) -> Floats:
    """(n, 6, 6) M⁻¹ of bodies at their centres of mass, angular part first.

    Args:
        mass: (n,) kg.
        inertia: (n, 3, 3) about the centres of mass, in world axes; kg·m².
    """
    masses, inertias = np.array(mass, np.float64), np.array(inertia, np.float64)
    if masses.ndim != 1 or inertias.shape != (*masses.shape, 3, 3):
        raise ValueError(f"mass has shape {masses.shape}, inertia {inertias.shape}; (n,) and (n, 3, 3) are required")
    bad = [k for k, m in enumerate(masses) if not (m > 0.0 and _positive(inertias[k]))]
    if bad:
        raise ValueError(
            f"body {bad[0]}: mass and inertia must be positive, found {masses[bad[0]]} kg and such inertia"
        )
    out = np.zeros((len(masses), 6, 6))
    out[:, :3, :3] = np.linalg.inv(inertias) if len(masses) else inertias
    out[:, [3, 4, 5], [3, 4, 5]] = 1.0 / masses[:, None]
    return out


def stacked(rows: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]]) -> tuple[Indices, Floats]:
    """(m, 2) bodies and (m, 2, 6) Jacobians of groups of rows (a, b, Ja, Jb), one group after another.

    >>> none, one = np.zeros((1, 6)), np.ones((1, 6))
    >>> body, J = stacked([([-1], [0], none, one), ([0], [1], -one, one)])
    >>> body.tolist(), J.shape
    ([[-1, 0], [0, 1]], (2, 2, 6))
    """
    bodies = [np.stack((np.asarray(a, np.intp), np.asarray(b, np.intp)), axis=1) for a, b, _, _ in rows]
    both = [np.stack((np.asarray(Ja, np.float64), np.asarray(Jb, np.float64)), axis=1) for _, _, Ja, Jb in rows]
    return np.concatenate([np.zeros((0, 2), np.intp), *bodies]), np.concatenate([np.zeros((0, 2, 6)), *both])


def _positive(matrix: Floats) -> bool:
    return bool(np.isfinite(matrix).all() and np.linalg.eigvalsh(matrix)[0] > 0.0)


def _checked(body: ArrayLike, J: ArrayLike, inverse_mass: ArrayLike) -> tuple[Indices, Floats, Floats]:
    given = np.array(body)
    rows, inverse = np.array(J, np.float64), np.array(inverse_mass, np.float64)
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"body holds {given.dtype}; whole numbers are required, −1 for the world")
    if given.ndim != 2 or rows.shape != (*given.shape, 6):
        raise ValueError(f"body has shape {given.shape} and J {rows.shape}; (m, E) and (m, E, 6) are required")
    if inverse.ndim != 3 or inverse.shape[1:] != (6, 6):
        raise ValueError(f"inverse_mass has shape {inverse.shape}; (n, 6, 6) is required")
    if not (np.isfinite(rows).all() and np.isfinite(inverse).all()):
        raise ValueError("J and inverse_mass must be finite")
    if given.size and not (given.min() >= -1 and given.max() < len(inverse)):
        wrong = given[(given < -1) | (given >= len(inverse))][0]
        raise ValueError(f"a row names body {wrong}; there are bodies 0 to {len(inverse) - 1}, and −1, the world")
    if not np.allclose(inverse, np.swapaxes(inverse, 1, 2), rtol=1e-10, atol=1e-12 * np.abs(inverse).max(initial=0.0)):
        raise ValueError("inverse_mass must be symmetric")
    # a zero inverse mass for the world, for lookups at −1
    return given.astype(np.intp), rows, np.concatenate((inverse, np.zeros((1, 6, 6))))


def _merged(body: Indices, J: Floats) -> tuple[Indices, Floats]:
    """Merge the parts of a row on the same body."""
    J = np.where(body[:, :, None] < 0, 0.0, J)
    body = body.copy()
    for later in range(1, body.shape[1]):
        for first in range(later):
            twice = (body[:, later] == body[:, first]) & (body[:, later] >= 0)
            J[twice, first] += J[twice, later]
            J[twice, later], body[twice, later] = 0.0, -1
    return body, J
