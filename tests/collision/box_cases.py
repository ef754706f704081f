"""Pairs of shapes that are easy, hard and degenerate."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collision.box_oracle import SIGNS
from collision.many_pairs import Shapes
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
SIZES = {
    "usual": (0.05, 1.0),
    "any": (5e-4, 50.0),
}


def rotations(rng: np.random.Generator, n: int) -> Array:
    """Random rotation matrices (N, 3, 3)."""
    q = rng.normal(size=(n, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def quarter_turns() -> Array:
    """(24, 3, 3) rotations that map axes to axes."""
    found = []
    for order, signs in product(permutations(range(3)), SIGNS):
        m = np.zeros((3, 3))
        m[range(3), order] = signs
        if np.linalg.det(m) > 0:
            found.append(m)
    return np.array(found)


def small_turns(rng: np.random.Generator, n: int) -> Array:
    """Rotations by 1e-14 to 0.1 rad."""
    phi = unit_vectors(rng, n) * 10.0 ** rng.uniform(-14, -1, (n, 1))
    K = np.zeros((n, 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -phi[:, 2], phi[:, 1], -phi[:, 0]
    K -= np.swapaxes(K, 1, 2)
    q, r = np.linalg.qr(np.eye(3) + K + 0.5 * K @ K)
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


def unit_vectors(rng: np.random.Generator, n: int) -> Array:
    v = rng.normal(size=(n, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def turns(rng: np.random.Generator, n: int) -> Array:
    """Rotations of B against A: any, quarter turns, nearly quarter turns, about one axis of A."""
    any_turn, quarter = rotations(rng, n), quarter_turns()[rng.integers(24, size=n)]
    nearly = small_turns(rng, n) @ quarter
    angle = rng.choice([rng.uniform(-np.pi, np.pi), np.pi / 4, np.pi / 6], n)
    c, s, o, i = np.cos(angle), np.sin(angle), np.zeros(n), np.ones(n)
    spin = np.moveaxis(np.array([[c, -s, o], [s, c, o], [o, o, i]]), 2, 0)
    about = quarter_turns()[rng.integers(24, size=n)] @ spin @ quarter
    which = rng.integers(5, size=n)
    return np.select([(which == k)[:, None, None] for k in (0, 1, 2, 3)], [quarter, nearly, about, any_turn], any_turn)


def sizes(rng: np.random.Generator, n: int, low: float, high: float) -> Array:
    """Half edges: cubes, any boxes, needles and pancakes."""
    free = np.exp(rng.uniform(np.log(low), np.log(high), (n, 3)))
    which = rng.integers(4, size=n)[:, None]
    thin = np.sort(free, axis=1)
    needle = thin[:, [0, 0, 2]]
    pancake = thin[:, [2, 2, 0]]
    return np.select([which == 0, which == 1, which == 2], [free[:, [0, 0, 0]], needle, pancake], free)


def reach(shape: Shapes, direction: Array) -> Array:
    """How far a shape reaches along directions (N, 3) from its centre."""
    local = np.einsum("nji,nj->ni", shape.rotation, direction)
    if shape.kind == Solid.SPHERE:
        return shape.half[:, 0]
    if shape.kind == Solid.CAPSULE:
        return shape.half[:, 0] + shape.half[:, 1] * np.abs(local[:, 2])
    return (np.abs(local) * shape.half).sum(axis=1)


def halves(rng: np.random.Generator, kind: int, n: int, low: float, high: float) -> Array:
    if kind in (Solid.BOX, Solid.PLANE):
        return sizes(rng, n, low, high)
    out = np.zeros((n, 3))
    out[:, : (1 if kind == Solid.SPHERE else 2)] = np.exp(
        rng.uniform(np.log(low), np.log(high), (n, 1 if kind == Solid.SPHERE else 2))
    )
    return out


def pairs(rng: np.random.Generator, kind: int, n: int, size: str = "any") -> tuple[Shapes, Shapes]:
    """N pairs of a shape and a box: apart, near, touching, overlapping, one in the other, of one centre."""
    low, high = SIZES[size]
    base = rotations(rng, n)
    aligned = rng.random(n) < 0.3
    base[aligned] = np.eye(3)
    a = Shapes(kind, halves(rng, kind, n, low, high), np.zeros((n, 3)), base @ turns(rng, n))
    b = Shapes(int(Solid.BOX), sizes(rng, n, low, high), np.zeros((n, 3)), base)
    along = unit_vectors(rng, n)
    of_face = rng.random(n) < 0.4
    along[of_face] = base[of_face, :, rng.integers(3)]
    least = np.minimum(a.half[:, 0], b.half.min(axis=1))
    gap = least * rng.choice([-1.5, -0.5, -1e-1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 1.0], n)
    far = along * (reach(a, along) + reach(b, along) + gap)[:, None]
    sideways = np.einsum("nij,nj->ni", base, rng.uniform(-1.0, 1.0, (n, 3)) * (a.half + b.half))
    sideways -= along * np.einsum("ni,ni->n", sideways, along)[:, None]
    middle = rng.uniform(-0.3, 0.3, (n, 3)) * b.half
    which = rng.integers(8, size=n)[:, None]
    place = np.select([which == 0, which == 1, which < 5], [np.zeros((n, 3)), middle, far + sideways], far)
    return a, Shapes(b.kind, b.half, b.position + place, b.rotation)
