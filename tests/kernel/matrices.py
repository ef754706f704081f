"""Values of the kernel language as NumPy matrices, sample by sample."""

from __future__ import annotations

import numpy as np


def mat3(a: np.ndarray) -> np.ndarray:
    """(n, 9) → (n, 3, 3)."""
    return a.reshape(-1, 3, 3)


def sym3(a: np.ndarray) -> np.ndarray:
    """(n, 6) xx yy zz xy xz yz → (n, 3, 3)."""
    xx, yy, zz, xy, xz, yz = a.T
    return np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)


def skew(r: np.ndarray) -> np.ndarray:
    """(n, 3) → (n, 3, 3), the matrix of r ×."""
    x, y, z = r.T
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=1).reshape(-1, 3, 3)


def times(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Matrix times vector for each sample."""
    return np.einsum("nij,nj->ni", m, v)


def blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """[[a, b], [c, d]] for each sample."""
    return np.concatenate([np.concatenate([a, b], axis=2), np.concatenate([c, d], axis=2)], axis=1)


def inertia6(a: np.ndarray) -> np.ndarray:
    """(n, 10) mass, first moment, second moment → (n, 6, 6) [[I, h×], [−h×, m 1]]."""
    m, h, second = a[:, 0], skew(a[:, 1:4]), sym3(a[:, 4:])
    return blocks(second, h, -h, m[:, None, None] * np.eye(3))


def articulated6(a: np.ndarray) -> np.ndarray:
    """(n, 21) → (n, 6, 6) [[A, B], [Bᵀ, C]]."""
    b = mat3(a[:, 6:15])
    return blocks(sym3(a[:, :6]), b, b.transpose(0, 2, 1), sym3(a[:, 15:]))


def motion_transform(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """6 × 6 matrix that carries motions from frame B to frame A: [[R, 0], [p× R, R]]."""
    return blocks(R, np.zeros_like(R), skew(p) @ R, R)


def force_transform(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """6 × 6 matrix that carries forces from frame B to frame A: [[R, p× R], [0, R]]."""
    return blocks(R, skew(p) @ R, np.zeros_like(R), R)


def cross_motion6(a: np.ndarray) -> np.ndarray:
    """(n, 6) → (n, 6, 6), the matrix of a × for motions."""
    w, v = skew(a[:, :3]), skew(a[:, 3:])
    return blocks(w, np.zeros_like(w), v, w)
