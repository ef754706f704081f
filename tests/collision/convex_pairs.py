"""Pairs of convex shapes, many at once, and what can be known of them without a search: supports, insides, brute force.

For any unit n the gap along n, least of B less greatest of A, is not above the signed distance, and the greatest over
all n is the signed distance. Two points, one in A and one in B, are not nearer than the distance. So what is apart
proves itself; what overlaps is compared with all normals of sides and crossings of edges, or with many directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collision.box_cases import rotations, turns, unit_vectors
from collision.many_pairs import Touches
from poise.collision.collision_layout import (
    CONTACTS,
    MANIFOLD,
    MOST_TOUCHES,
    PAIRS,
    PLACES,
    SHAPES,
    contacts_block,
    pairs_block,
)
from poise.collision.narrowphase.dispatch import collide
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Count, Width
from poise.model.polytopes import Polytope, polytope
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
PLANE, SPHERE, CAPSULE, BOX = Solid.PLANE, Solid.SPHERE, Solid.CAPSULE, Solid.BOX
CYLINDER, ELLIPSOID, HULL = Solid.CYLINDER, Solid.ELLIPSOID, Solid.HULL
FLAT = (BOX, HULL)
COMBINATIONS = [(a, b) for b in (CYLINDER, ELLIPSOID, HULL) for a in Solid if SPHERE <= a <= b]
FAR = 1e5
"""A limit that keeps every touch; m."""
POOL = 24
"""Different hulls."""
_collide = entry(collide, SHAPES, PLACES, PAIRS, CONTACTS, MANIFOLD, extra=("float64",))


@cache
def pool() -> tuple[Polytope, ...]:
    """Hulls with extents of about 1 m: a tetrahedron, a cube, a prism, and random ones."""
    rng = np.random.default_rng(12)
    cube = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T
    angle = np.arange(6) * np.pi / 3
    prism = np.concatenate([np.stack((np.cos(angle), np.sin(angle), 0 * angle + z), axis=1) for z in (-0.5, 0.5)])
    known = [np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1.0)]), cube, prism]
    others = [rng.normal(size=(rng.integers(5, 15), 3)) for _ in range(POOL - len(known))]
    return tuple(polytope(points) for points in [*known, *others])


@dataclass(frozen=True)
class Bodies:
    """N shapes of a kind. The size of a hull is what its points are multiplied with."""

    kind: Solid
    size: Array
    position: Array
    rotation: Array
    hull: Array
    """(N,) number in the pool."""

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, k: Any) -> Bodies:
        return Bodies(self.kind, self.size[k], self.position[k], self.rotation[k], self.hull[k])

    def at(self, position: Array) -> Bodies:
        """The same elsewhere."""
        return replace(self, position=position)

    def extent(self) -> Array:
        """Radius about the centre that holds a shape, or more; m."""
        if self.kind == PLANE:
            return np.ones(len(self))
        if self.kind == HULL:
            radius = np.array([np.linalg.norm(hull.vertices, axis=1).max() for hull in pool()])
            return radius[self.hull] * self.size.max(axis=1)
        return self.size.sum(axis=1)

    def corners(self, k: int) -> Array:
        """Points of hull k in its own axes."""
        return pool()[self.hull[k]].vertices * self.size[k]


def heights(shape: Bodies, n: Array) -> tuple[Array, Array]:
    """How far shapes reach along directions n (N, m, 3): heights over the origin (N, m), and the points (N, m, 3)."""
    local, size = np.einsum("nji,nmj->nmi", shape.rotation, n), shape.size[:, None]
    sign = np.where(local < 0.0, -1.0, 1.0)
    if shape.kind in (SPHERE, CAPSULE):
        along = np.array((0.0, 0.0, 1.0)) * (size[..., 1:2] if shape.kind == CAPSULE else 0.0)
        p = local * size[..., :1] + sign * along
    elif shape.kind == BOX:
        p = sign * size
    elif shape.kind == CYLINDER:
        across = np.linalg.norm(local[..., :2], axis=-1, keepdims=True)
        rim = local[..., :2] / np.where(across > 0.0, across, 1.0) * size[..., :1]
        p = np.concatenate((rim, sign[..., 2:] * size[..., 1:2]), axis=-1)
    elif shape.kind == ELLIPSOID:
        p = local * size**2 / np.linalg.norm(local * size, axis=-1, keepdims=True)
    else:
        p = np.zeros_like(local)
        for number, hull in enumerate(pool()):
            mine = shape.hull == number
            scaled = local[mine] * size[mine]
            p[mine] = hull.vertices[np.argmax(scaled @ hull.vertices.T, axis=-1)] * size[mine]
    points = shape.position[:, None] + np.einsum("nij,nmj->nmi", shape.rotation, p)
    return np.einsum("nmi,nmi->nm", n, points), points


def gaps_along(a: Bodies, b: Bodies, n: Array) -> Array:
    """Gaps along directions (N, m, 3)."""
    return -heights(b, -n)[0] - heights(a, n)[0]


def outside(shape: Bodies, x: Array) -> Array:
    """How far points (N, 3) are outside; negative inside. On the surface this is 0, elsewhere about the distance."""
    p, size = np.einsum("nji,nj->ni", shape.rotation, x - shape.position), shape.size
    if shape.kind == PLANE:
        return p[:, 2]
    if shape.kind in (SPHERE, CAPSULE):
        half = size[:, 1] if shape.kind == CAPSULE else 0.0
        z = p[:, 2] - np.clip(p[:, 2], -half, half)
        return np.linalg.norm(np.stack((p[:, 0], p[:, 1], z)), axis=0) - size[:, 0]
    if shape.kind == BOX:
        return (np.abs(p) - size).max(axis=1)
    if shape.kind == CYLINDER:
        return np.maximum(np.linalg.norm(p[:, :2], axis=1) - size[:, 0], np.abs(p[:, 2]) - size[:, 1])
    if shape.kind == ELLIPSOID:
        level = np.linalg.norm(p / size, axis=1)
        return (level - 1.0) * level / np.linalg.norm(p / size**2, axis=1)
    out = np.zeros(len(x))
    for number, hull in enumerate(pool()):
        mine = shape.hull == number
        normal = hull.side_normal / size[mine][:, None]
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
        first = hull.vertices[hull.side_corners[hull.side_start[:-1]]] * size[mine][:, None]
        out[mine] = np.einsum("nki,nki->nk", normal, p[mine][:, None] - first).max(axis=1)
    return out


# ---- what Poise finds ------------------------------------------------------------------------------------------------


def shapes_arrays(a: Bodies, b: Bodies) -> dict[str, Array]:
    """Fields of the view of shapes, those of a first."""
    both, n = (a, b), len(a)
    arrays: dict[str, Any] = {
        "kind": np.repeat(np.array([a.kind, b.kind], np.int32), n),
        "size": np.concatenate([shape.size for shape in both]),
        "reach": np.concatenate([shape.extent() for shape in both]),
    }
    hulls = [pool()[k] if s.kind == HULL else None for s in both for k in s.hull]
    scale = np.concatenate([shape.size for shape in both])
    n_vertices = np.array([0 if hull is None else len(hull.vertices) for hull in hulls])
    arrays["vertex_start"] = np.concatenate(([0], n_vertices.cumsum()))
    there = [(hull, k) for k, hull in enumerate(hulls) if hull is not None]
    vertices = [hull.vertices * scale[k] for hull, k in there]
    normals = [hull.side_normal / scale[k] for hull, k in there]
    sides = np.concatenate(([0], np.cumsum([len(hull.side_normal) for hull, _ in there]))).astype(int)
    start = arrays["vertex_start"]
    arrays["vertex"] = np.concatenate((*vertices, np.zeros((0, 3))))
    arrays["side_normal"] = np.concatenate((*normals, np.zeros((0, 3))))
    arrays["side_normal"] /= np.linalg.norm(arrays["side_normal"], axis=1, keepdims=True)
    lists = {
        "neighbor": ("neighbor_start", [hull.neighbors + start[k] for hull, k in there]),
        "side_corner": ("side_start", [hull.side_corners + start[k] for hull, k in there]),
        "around": ("around_start", [hull.around + sides[i] for i, (hull, _) in enumerate(there)]),
    }
    for name, (starts, parts) in lists.items():
        arrays[name] = np.concatenate((*parts, [])).astype(np.int32)
        counts = [np.diff(getattr(hull, starts)) for hull, _ in there]
        arrays[starts] = np.concatenate(([0], *counts)).cumsum().astype(np.int32)
    arrays["vertex_start"] = start.astype(np.int32)
    return arrays


def touches(a: Bodies, b: Bodies, limit: float = FAR, width: Width = F64) -> Touches:
    """What Poise finds between shape k of a and shape k of b, gaps up to a limit."""
    n = len(a)
    arrays = shapes_arrays(a, b)
    room = {name: 0 if kind is Count else 2 * n + 1 for name, kind in SHAPES.fields.items()}
    shapes = SHAPES.block(width, **(room | arrays | {"n_shapes": 2 * n}))
    rotation = np.concatenate((a.rotation, b.rotation)).reshape(-1, 9)
    places = PLACES.block(width, position=np.concatenate((a.position, b.position)), rotation=rotation)
    pairs = pairs_block(np.arange(2 * n, dtype=np.int32).reshape(2, n).T, width)
    contacts = contacts_block(width, MOST_TOUCHES * n)
    blocks = (shapes, places, pairs, contacts, manifold_block(width))
    _collide[width](*(block.handle for block in blocks), limit)
    found = int(contacts.count[0])
    arrays = contacts.arrays | {"pair": contacts.a}  # shape k of a is in pair k
    get = {name: arrays[name][:found] for name in ("pair", "gap", "normal", "point", "feature")}
    return Touches(**{name: np.array(x, np.float64 if x.dtype.kind == "f" else np.int64) for name, x in get.items()})


# ---- random pairs ----------------------------------------------------------------------------------------------------


def bodies(rng: np.random.Generator, kind: Solid, n: int, low: float, high: float, rotation: Array) -> Bodies:
    """Shapes of sizes between low and high, among them needles, pancakes and round ones."""
    free = np.exp(rng.uniform(np.log(low), np.log(high), (n, 3)))
    thin = np.sort(free, axis=1)
    which = rng.integers(4, size=n)[:, None]
    size = np.select(
        [which == 0, which == 1, which == 2], [free[:, [0, 0, 0]], thin[:, [0, 0, 2]], thin[:, [2, 2, 0]]], free
    )
    if kind in (CAPSULE, CYLINDER):
        size = np.stack((size[:, 0], size[:, 2], np.zeros(n)), axis=1)
    elif kind == SPHERE:
        size = size * (1.0, 0.0, 0.0)
    return Bodies(kind, size, np.zeros((n, 3)), rotation, rng.integers(POOL, size=n))


def pairs(rng: np.random.Generator, kinds: tuple[Solid, Solid], n: int, size: str) -> tuple[Bodies, Bodies]:
    """N pairs: of one centre, one in the other, overlapping, touching along a direction, near, apart; also parallel."""
    low, high = {"usual": (0.05, 1.0), "any": (5e-4, 50.0)}[size]
    base = rotations(rng, n)
    base[rng.random(n) < 0.3] = np.eye(3)
    a = bodies(rng, kinds[0], n, low, high, base @ turns(rng, n))
    b = bodies(rng, kinds[1], n, low, high, base)
    along = unit_vectors(rng, n)
    of_axis = rng.random(n) < 0.3
    along[of_axis] = base[of_axis, :, rng.integers(3)]
    reach = heights(a, along[:, None])[0][:, 0] + heights(b, -along[:, None])[0][:, 0]
    least = np.minimum(a.extent(), b.extent())
    gap = least * rng.choice([-1.5, -0.5, -0.1, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 1.0], n)
    far = along * (reach + gap)[:, None]
    middle = rng.uniform(-0.3, 0.3, (n, 3)) * least[:, None]
    which = rng.integers(8, size=n)[:, None]
    place = np.select([which == 0, which < 3, which == 3], [np.zeros((n, 3)), middle, 0.5 * far], far)
    return a, b.at(place)


# ---- brute force -----------------------------------------------------------------------------------------------------


def sides_and_edges(shape: Bodies, k: int) -> tuple[Array, Array]:
    """Normals of the sides and directions of the edges of a box or hull, in world axes."""
    R = shape.rotation[k]
    if shape.kind == BOX:
        return R.T, R.T
    hull, corners = pool()[shape.hull[k]], shape.corners(k)
    normal = hull.side_normal / shape.size[k]
    ends = np.sort(hull.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges = np.unique(ends, axis=0)
    along = corners[edges[:, 1]] - corners[edges[:, 0]]
    return (normal / np.linalg.norm(normal, axis=1, keepdims=True)) @ R.T, along @ R.T


def greatest_gap(a: Bodies, b: Bodies, k: int) -> float:
    """The signed distance of overlapping polytopes: greatest gap along normals of sides and crossings of edges."""
    (normal_a, along_a), (normal_b, along_b) = sides_and_edges(a, k), sides_and_edges(b, k)
    along_a, along_b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (along_a, along_b))
    across = np.cross(along_a[:, None], along_b[None]).reshape(-1, 3)
    length = np.linalg.norm(across, axis=1)
    across = across[length > 1e-9] / length[length > 1e-9][:, None]
    n = np.concatenate((normal_a, normal_b, across))
    n = np.concatenate((n, -n))
    one = slice(k, k + 1)
    return float(gaps_along(a[one], b[one], n[None]).max())


def greatest_gap_tried(rng: np.random.Generator, a: Bodies, b: Bodies, tries: int = 1500) -> Array:
    """A bound from below of the signed distances: the best of many directions, improved by small random turns.

    Directions are also drawn as the normals of flattened shapes are, and along axes.
    """
    n = unit_vectors(rng, tries)[None] * np.ones((len(a), 1, 1))
    drawn = [n]
    for shape in (a, b):
        if shape.kind in (ELLIPSOID, HULL, BOX, CYLINDER):
            size = shape.size[:, [0, 0, 1]] if shape.kind == CYLINDER else shape.size
            flat = n[:, : tries // 2] / size[:, None]
            drawn.append(np.einsum("nij,nmj->nmi", shape.rotation, flat))
            drawn += [np.swapaxes(shape.rotation, 1, 2), -np.swapaxes(shape.rotation, 1, 2)]
    n = np.concatenate(drawn, axis=1)
    n /= np.linalg.norm(n, axis=2, keepdims=True)
    gap = gaps_along(a, b, n)
    best = np.take_along_axis(n, np.argsort(-gap, axis=1)[:, :4, None], axis=1)
    for step in 0.1 * 0.8 ** np.arange(50):
        near = best[:, :, None] + step * rng.normal(size=(len(a), 4, 12, 3))
        near[:, :, 0] = best
        near /= np.linalg.norm(near, axis=3, keepdims=True)
        gap = gaps_along(a, b, near.reshape(len(a), 48, 3)).reshape(len(a), 4, 12)
        best = np.take_along_axis(near, gap.argmax(axis=2)[:, :, None, None], axis=2)[:, :, 0]
    return gap.max(axis=(1, 2))
