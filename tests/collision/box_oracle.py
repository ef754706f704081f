"""What is true of boxes, by brute force: slow, simple, and written without a look at how Poise does it.

All functions take (N, …) arrays. A box is (half (N, 3), position (N, 3), rotation (N, 3, 3)).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collision.many_pairs import Shapes
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
EDGES = np.array([(i, j) for i in range(8) for j in range(i + 1, 8) if np.abs(SIGNS[i] - SIGNS[j]).sum() == 2.0])


def corners(box: Shapes) -> Array:
    """(N, 8, 3)"""
    return box.position[:, None] + np.einsum("nij,nkj->nki", box.rotation, SIGNS * box.half[:, None])


def core(capsule: Shapes) -> Array:
    """(N, 2, 3) ends of a capsule's segment."""
    half = capsule.rotation[:, :, 2] * capsule.half[:, 1:2]
    return np.stack((capsule.position - half, capsule.position + half), axis=1)


def separation(a: Array, b: Array, normals: Array) -> Array:
    """(N, M) from the points a (N, P, 3) to the points b along normals (N, M, 3); never above the true distance."""
    least = np.einsum("nmi,npi->nmp", normals, b).min(axis=2)
    return least - np.einsum("nmi,npi->nmp", normals, a).max(axis=2)


def unit(v: Array) -> Array:
    """Unit vectors; nought stays nought."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return v / np.where(length > 1e-12, length, np.inf)


def axes(directions_a: Array, directions_b: Array) -> Array:
    """(N, M, 3) normals of faces and across edges, both ways; of a segment as B its direction is the only edge."""
    cross = unit(np.cross(directions_a[:, :, None], directions_b[:, None]).reshape(len(directions_a), -1, 3))
    both = [directions_a, cross] if directions_b.shape[1] == 1 else [directions_a, directions_b, cross]
    some = np.concatenate(both, axis=1)
    return np.concatenate((some, -some), axis=1)


def out_of(box: Shapes, x: Array) -> tuple[Array, Array]:
    """Signed distance of points (N, P, 3) from a box's surface, and their nearest points of the solid box."""
    local = np.einsum("nji,npj->npi", box.rotation, x - box.position[:, None])
    over = np.abs(local) - box.half[:, None]
    outside = np.linalg.norm(np.maximum(over, 0.0), axis=2)
    near = np.clip(local, -box.half[:, None], box.half[:, None])
    world = box.position[:, None] + np.einsum("nij,npj->npi", box.rotation, near)
    return np.where(outside > 0.0, outside, over.max(axis=2)), world


def segments_apart(p: Array, u: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """Nearest points of segments p + s u and q + t v, s and t from 0 to 1, by all cases of ends and insides."""
    w = p - q
    uu, vv, uv = (u * u).sum(-1), (v * v).sum(-1), (u * v).sum(-1)
    uw, vw = (u * w).sum(-1), (v * w).sum(-1)
    det = uu * vv - uv * uv
    uu1, vv1 = np.where(uu > 0, uu, 1.0), np.where(vv > 0, vv, 1.0)
    inner = np.where(det > 0, (uv * vw - vv * uw) / np.where(det > 0, det, 1.0), 0.0)
    best, points = np.full(uu.shape, np.inf), (p, q)
    for s, t in (
        (inner, None),
        (np.zeros_like(uu), None),
        (np.ones_like(uu), None),
        (None, np.zeros_like(uu)),
        (None, np.ones_like(uu)),
    ):
        one = np.clip(s if s is not None else (uv * t - uw) / uu1, 0.0, 1.0)
        two = np.clip(t if t is not None else (uv * one + vw) / vv1, 0.0, 1.0)
        x, y = p + one[..., None] * u, q + two[..., None] * v
        length = np.linalg.norm(x - y, axis=-1)
        nearer = length < best
        best = np.where(nearer, length, best)
        points = tuple(np.where(nearer[..., None], new, old) for new, old in zip((x, y), points, strict=True))
    return points


def apart(a: Array, edges_a: Array, b: Shapes, edges_b: Array) -> tuple[Array, Array]:
    """Distance and direction, from A to B, of corners and edges of A against box B: every edge against every edge.

    `a` are corners (N, P, 3); edges are pairs of ends (N, E, 2, 3).
    """
    x, (_, y) = a, out_of(b, a)
    p, q = edges_a[:, :, None, 0], edges_b[:, None, :, 0]
    u, v = edges_a[:, :, None, 1] - p, edges_b[:, None, :, 1] - q
    shape = np.broadcast_shapes(p.shape, q.shape)
    e, f = segments_apart(*(np.broadcast_to(z, shape) for z in (p, u, q, v)))
    x = np.concatenate((x, e.reshape(len(a), -1, 3)), axis=1)
    y = np.concatenate((y, f.reshape(len(a), -1, 3)), axis=1)
    lengths = np.linalg.norm(y - x, axis=2)
    best = lengths.argmin(axis=1)
    rows = np.arange(len(a))
    return lengths[rows, best], unit(y[rows, best] - x[rows, best])


def edges(box: Shapes) -> Array:
    """(N, 12, 2, 3)"""
    return corners(box)[:, EDGES]


def box_box(a: Shapes, b: Shapes) -> tuple[Array, Array, Array]:
    """Signed distance, normal from A to B, and whether no other normal is nearly as good."""
    ca, cb = corners(a), corners(b)
    one, n1 = apart(ca, edges(a), b, edges(b))
    two, n2 = apart(cb, edges(b), a, edges(a))
    distance = np.minimum(one, two)
    normal = np.where((one <= two)[:, None], n1, -n2)
    every = axes(np.swapaxes(a.rotation, 1, 2), np.swapaxes(b.rotation, 1, 2))
    return choose(ca, cb, every, distance, normal)


def capsule_box(a: Shapes, b: Shapes) -> tuple[Array, Array, Array]:
    """Likewise; A is a capsule."""
    ends, cb = core(a), corners(b)
    distance, normal = apart(ends, ends[:, None], b, edges(b))
    every = axes(np.swapaxes(b.rotation, 1, 2), a.rotation[:, :, 2][:, None])
    gap, normal, unique = choose(ends, cb, every, distance, normal)
    return gap - a.half[:, 0], normal, unique


def truth(a: Shapes, b: Shapes) -> tuple[Array, Array, Array]:
    """Likewise; A is a sphere, a capsule or a box."""
    if a.kind == Solid.SPHERE:
        a = Shapes(int(Solid.CAPSULE), a.half * (1.0, 0.0, 0.0), a.position, a.rotation)
    return capsule_box(a, b) if a.kind == Solid.CAPSULE else box_box(a, b)


def choose(pa: Array, pb: Array, normals: Array, distance: Array, apart_normal: Array) -> tuple[Array, Array, Array]:
    """The true gap: where some axis parts the points it is their distance, else the shortest way out."""
    along = np.where(np.linalg.norm(normals, axis=2) > 0.5, separation(pa, pb, normals), -np.inf)
    best = along.argmax(axis=1)
    rows = np.arange(len(pa))
    depth, axis = along[rows, best], normals[rows, best]
    scale = np.ptp(pa, axis=1).max(axis=1) + np.ptp(pb, axis=1).max(axis=1)
    parted = depth > 0.0
    other = np.einsum("nmi,ni->nm", normals, axis) < np.cos(1e-4)
    second = np.where(other, along, -np.inf).max(axis=1)
    unique = np.where(parted, distance > 1e-4 * scale, second < depth - 1e-6 * scale)
    return np.where(parted, distance, depth), np.where(parted[:, None], apart_normal, axis), unique
