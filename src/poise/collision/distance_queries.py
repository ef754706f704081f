"""Distance queries between shapes and from a point to shapes: for sensors, picking and planning."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.collision_layout import MANIFOLD, PLACES, SHAPES, shapes_block
from poise.collision.narrowphase.convex.pair_distances import MEASURES, measure
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.collision.ray_casting.rays import FARTHEST, checked_vectors, places
from poise.dynamics.argument_checks import body_number, check_model, number_within
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block
from poise.model.errors import resolve_name
from poise.model.model import Model
from poise.model.shape_arrays import Solid

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
ENDLESS = 1e29
"""A limit above any distance; m."""

_measure = entry(measure, SHAPES, PLACES, MEASURES, MANIFOLD, extra=("float64",), lanes=False)


class Closest(NamedTuple):
    """The nearest points of two shapes, or those of least penetration if they overlap."""

    distance: float
    """Negative where they overlap; m."""
    normal: Floats
    """(3,) unit, from A to B."""
    point_a: Floats
    """(3,) on the surface of A; m."""
    point_b: Floats
    """(3,) on the surface of B, `point_a` + `distance` · `normal`; m."""
    a: int
    """Index in `model.solids`."""
    b: int
    """Index in `model.solids`."""


class Nearby(NamedTuple):
    """The nearest point of a shape to a given point."""

    distance: float
    """Negative inside the shape; m."""
    normal: Floats
    """(3,) unit, out of the shape."""
    point: Floats
    """(3,) on the surface; m."""
    shape: int
    """Index in `model.solids`."""


def closest(model: Model, q: ArrayLike, a: str | int, b: str | int) -> Closest:
    """Signed distance of two shapes at a pose, and their nearest points.

    `a` and `b` are indices of shapes, as in contacts and ray hits, or names: of a shape (`model.solids.names`), or of a
    body, whose nearest shape counts. Groups and masks have no effect, but visual shapes (both 0) have no distance.
    Height fields and meshes have distances to convex shapes, on their outer side only: behind it the distance is inf
    and points are NaN.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> near = closest(model, model.q_rest, "ground", "ball")
    >>> near.distance, near.normal.tolist(), near.point_b.tolist()
    (1.5, [0.0, 0.0, 1.0], [0.0, 0.0, 1.5])
    """
    check_model(model)
    of_a, of_b = _shapes("a", model, a), _shapes("b", model, b)
    pairs = np.array([(i, j) for i in of_a for j in of_b if i != j], np.int32).reshape(-1, 2)
    if not len(pairs):
        raise ValueError(f"a and b are both {a!r}; two different shapes have a distance")
    _check_kinds(model, pairs)
    kind = model.solids.kind
    swapped = kind[pairs[:, 0]] > kind[pairs[:, 1]]
    pairs[swapped] = pairs[swapped, ::-1]
    ruler = _ruler(model)
    p = ruler.measured(model, q, pairs)
    k = int(np.argmin(np.where(p.found, p.gap, math.inf)))
    i, j = int(pairs[k, 0]), int(pairs[k, 1])
    if not p.found[k]:
        distance, normal, middle = math.inf, np.full(3, math.nan), np.full(3, math.nan)
        half = normal
    else:
        distance, normal, middle = float(p.gap[k]), p.normal[k].copy(), p.point[k].copy()
        half = 0.5 * distance * normal
    if swapped[k]:
        return Closest(distance, -normal, middle + half, middle - half, j, i)
    return Closest(distance, normal, middle - half, middle + half, i, j)


def closest_points(
    model: Model,
    q: ArrayLike,
    point: ArrayLike,
    *,
    most: float = math.inf,
    groups: int | None = None,
    ignore: Sequence[str | int] = (),
) -> list[Nearby]:
    """The nearest points of all shapes to a point (x, y, z) at a pose, the nearest shape first.

    Shapes farther than `most` (m) are excluded, and those of the bodies in `ignore`, such as a sensor's own body. With
    `groups` only shapes whose `group` has one of its bits count. Visual shapes (group and mask 0) are always excluded.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> near = closest_points(model, model.q_rest, (0, 0, 1))
    >>> [(model.solids.names[one.shape], one.distance, one.point.tolist()) for one in near]
    [('ball[0]', 0.5, [0.0, 0.0, 1.5]), ('ground[0]', 1.0, [0.0, 0.0, 0.0])]
    >>> closest_points(model, model.q_rest, (0, 0, 1), most=0.4)
    []
    """
    check_model(model)
    here = _checked_point(point)
    far = _checked_most(most)
    solids = model.solids
    counts = (solids.group | solids.mask) != 0
    if groups is not None:
        counts &= (solids.group & _checked_groups(groups)) != 0
    counts &= ~np.isin(solids.body, [body_number(model, body) for body in ignore])
    ruler = _ruler(model)
    centre, _ = places(model, q)
    apart = np.linalg.norm(centre - here, axis=1) - solids.reach
    shapes = np.flatnonzero(counts & ~(apart > far))
    probe = len(solids)
    first = np.where(solids.kind[shapes] < Solid.SPHERE, shapes, probe)
    pairs = np.stack((first, np.where(first == probe, shapes, probe)), axis=1).astype(np.int32)
    p = ruler.measured(model, q, pairs, here, far)
    out = np.where((first == probe)[:, None], -p.normal, p.normal)
    on = p.point - 0.5 * p.gap[:, None] * out
    order = [k for k in np.argsort(p.gap, kind="stable") if p.found[k]]
    return [Nearby(float(p.gap[k]), out[k].copy(), on[k].copy(), int(shapes[k])) for k in order]


class _Ruler:
    """The shapes of a model, and a sphere of radius 0 for points. It holds no reference to the model."""

    def __init__(self, model: Model) -> None:
        n = len(model.solids)
        shapes = shapes_block(model.solids, F64, model.link_root)
        counts = shapes.counts() | {"n_shapes": n + 1}
        self.g = SHAPES.block(F64, **counts, **{name: _one_more(name, a) for name, a in shapes.arrays.items()})
        self.g.kind[n] = Solid.SPHERE
        self.x = PLACES.block(F64, position=n + 1, rotation=n + 1)
        self.x.rotation[n] = np.eye(3).reshape(-1)
        self.t = manifold_block(F64, {*model.solids.kind.tolist()})

    def measured(
        self, model: Model, q: ArrayLike, pairs: NDArray[np.int32], point: Floats | None = None, limit: float = ENDLESS
    ) -> Block:
        """Least gaps of pairs at a pose; the number of the point is that after the last shape's."""
        centre, turn = places(model, q)
        n = len(centre)
        self.x.position[:n], self.x.rotation[:n] = centre, turn.reshape(-1, 9)
        self.x.position[n] = 0.0 if point is None else point
        sizes = dict.fromkeys(("found", "gap", "normal", "point"), len(pairs))
        p = MEASURES.block(F64, n_pairs=len(pairs), a=pairs[:, 0], b=pairs[:, 1], **sizes)
        _measure[F64](self.g.handle, self.x.handle, p.handle, self.t.handle, limit)
        return p


def _one_more(name: str, array: Any) -> Any:
    """An array of shapes with one more at its end. Pools only get longer; the ranges of the new shape are empty."""
    last = array[-1:] if name.endswith("_start") else np.zeros_like(array, shape=(1, *array.shape[1:]))
    return np.concatenate((array, last))


_local = threading.local()


def _ruler(model: Model) -> _Ruler:
    """The instance of this thread, made once."""
    if not hasattr(_local, "known"):
        _local.known = weakref.WeakKeyDictionary()
    if model not in _local.known:
        _local.known[model] = _Ruler(model)
    found: _Ruler = _local.known[model]
    return found


def _shapes(name: str, model: Model, which: str | int) -> list[int]:
    """Indices of the shapes that a number or name refers to."""
    solids = model.solids
    if not isinstance(which, str):
        return [number_within(name, which, len(solids), "shapes")]
    full = which if which in solids.names else resolve_name("shape or body", which, [*model.body_names, *solids.names])
    called = [k for k, known in enumerate(solids.names) if known == full]
    if len(called) > 1:
        raise ValueError(f'{name} is "{which}", as shapes {called} are called: give a number, or the name of a body')
    if called:
        return called
    body = model.body_index(full)
    shapes = [int(k) for k in np.flatnonzero((solids.body == body) & ((solids.group | solids.mask) != 0))]
    if not shapes:
        raise ValueError(f'{name} is body "{full}", which has no shape that can touch anything')
    return shapes


def _check_kinds(model: Model, pairs: NDArray[np.int32]) -> None:
    """Raise ValueError for pairs that have no distance."""
    solids = model.solids
    for k in np.unique(pairs):
        if solids.group[k] == 0 and solids.mask[k] == 0:
            raise ValueError(f'shape "{solids.names[k]}" is visual only (group and mask 0): it has no distances')
    for i, j in pairs.tolist():
        kinds = Solid(solids.kind[i]), Solid(solids.kind[j])
        both = f'shapes "{solids.names[i]}" and "{solids.names[j]}"'
        if kinds == (Solid.PLANE, Solid.PLANE):
            raise ValueError(f"{both} are planes, which have no end; one of two shapes must have")
        if min(kinds) > Solid.HULL:
            names = " and a ".join(kind.name.lower() for kind in kinds)
            raise ValueError(f"{both} are a {names}; fields and meshes are measured against convex shapes")


def _checked_point(point: Any) -> Floats:
    here = checked_vectors("point", point)
    if here.shape != (3,):
        raise ValueError(f"point has shape {here.shape}; it must be one point (x, y, z)")
    if np.abs(here).max() > FARTHEST:
        raise ValueError(f"point has numbers up to {np.abs(here).max():g}; {FARTHEST:g} m is the farthest")
    return here


def _checked_most(most: Any) -> float:
    try:
        far = float(most)
    except (TypeError, ValueError):
        raise ValueError(f"most must be a distance, found {most!r}") from None
    if math.isnan(far):
        raise ValueError("most is nan; it must be a distance, negative for points inside shapes alone")
    return min(far, ENDLESS)


def _checked_groups(groups: Any) -> int:
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer):
        raise ValueError(f"groups must be a whole number whose bits are groups, found {groups!r}")
    return int(groups)
