"""Ray casting: the first hit of each ray, for distance sensors, picking and pictures."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.broadphase.aabb import place_shapes
from poise.collision.collision_layout import PLACES, SHAPES, shapes_block
from poise.collision.ray_casting.ray_kernels import cast_rays
from poise.collision.ray_casting.ray_layout import RAYS, STACK, SURFACES, surfaces_block
from poise.dynamics import kinematics
from poise.dynamics.argument_checks import body_number, check_model
from poise.dynamics.dynamics_layout import MODEL, STATE, WORK, matrices
from poise.dynamics.workspace import Workspace, Worlds
from poise.kernel.jit import entry
from poise.kernel.memory import F64, F64X8, Block
from poise.model.model import Model

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_place_links = entry(kinematics.place_links, MODEL, STATE, WORK)
_place_shapes = entry(place_shapes, WORK, SHAPES, PLACES)
_cast = entry(cast_rays, SHAPES, SURFACES, PLACES, RAYS, extra=("float64",))
_WIDTHS = (F64, F64, F64, F64X8)
FARTHEST = 1e15
"""Largest coordinate that is accepted; m."""
_GROUPS = 4096
"""Groups of rays per call of the kernel."""


class Hits(NamedTuple):
    """Hits of rays. Without a hit: distance inf, shape −1, point and normal NaN."""

    distance: Floats
    """(…,) from the origin of the ray; m."""
    point: Floats
    """(…, 3) m."""
    normal: Floats
    """(…, 3) unit, out of the shape, for rays from either side."""
    shape: Numbers
    """(…,) index in `model.solids`."""

    @property
    def hit(self) -> NDArray[np.bool_]:
        """(…,) whether the ray has a hit."""
        return np.asarray(self.shape >= 0)


class _Sight:
    """The shapes of a model, prepared for rays. It is cached for the model, but holds no reference to it."""

    def __init__(self, model: Model) -> None:
        n = len(model.solids)
        self.g = shapes_block(model.solids, F64, model.link_root)
        self.u = surfaces_block(model.solids, F64)
        self.x = PLACES.block(F64, position=n, rotation=n)
        if n:
            self.x.position[...] = model.solids.position
            self.x.rotation[...] = matrices(model.solids.quat_wxyz)
        self.r: Block | None = None

    def place(self, model: Model, q: ArrayLike) -> None:
        """Place the shapes at a pose."""
        worlds = Worlds(model, np.float64, {"q": q})
        if worlds.count is not None:
            raise ValueError(f"q has shape {np.shape(q)}; rays are cast at one pose, ({model.nq},)")

        def call(space: Workspace) -> list[np.ndarray]:
            _place_links[F64](space.m.handle, space.s.handle, space.w.handle)
            _place_shapes[F64](space.w.handle, self.g.handle, self.x.handle)
            return []

        worlds.run(call)

    def rays(self, groups: int) -> Block:
        """Memory for this many groups of rays."""
        if self.r is None or len(self.r.distance) < groups:
            sizes = dict.fromkeys(("origin", "direction", "distance", "shape", "normal"), groups)
            self.r = RAYS.block(F64X8, n_groups=groups, seen=len(self.x.position), stack=STACK, **sizes)
        self.r.set_count("n_groups", groups)
        return self.r


_local = threading.local()


def _sight(model: Model) -> _Sight:
    """The instance of this thread, made once."""
    if not hasattr(_local, "known"):
        _local.known = weakref.WeakKeyDictionary()
    if model not in _local.known:
        _local.known[model] = _Sight(model)
    found: _Sight = _local.known[model]
    return found


def places(model: Model, q: ArrayLike) -> tuple[Floats, Floats]:
    """Centres (n, 3) and rotations (n, 3, 3) of all shapes of a model at a pose, in the world.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(1, 2, 3))
    >>> model = scene.compile()
    >>> places(model, model.q_rest)[0].tolist()
    [[1.0, 2.0, 3.0]]
    """
    check_model(model)
    sight = _sight(model)
    sight.place(model, q)
    return sight.x.position.copy(), sight.x.rotation.reshape(-1, 3, 3).copy()


def cast(
    model: Model,
    q: ArrayLike,
    origins: ArrayLike,
    directions: ArrayLike,
    *,
    near: float = 0.0,
    far: float = math.inf,
    ignore: Sequence[str | int] = (),
) -> Hits:
    """The first hits of rays from `origins` (…, 3) along `directions` (…, 3), at a pose.

    Origins and directions are broadcast against each other; directions may have any length. Hits nearer than `near` or
    farther than `far` (m) do not count, nor do shapes of the bodies in `ignore`, such as a sensor's own body. A ray
    that starts inside a solid hits its surface from inside; the normal still points outward. Planes are hit from below
    too. Height fields and meshes are surfaces without thickness: a ray may start on either side.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add_ground(), scene.add(poise.sphere(0.5), name="ball", position=(0, 0, 2))
    >>> model = scene.compile()
    >>> hits = cast(model, model.q_rest, (0, 0, 5), [(0, 0, -1), (3, 0, -4), (0, 0, 1)])
    >>> hits.distance.tolist(), [model.solids.names[k] if k >= 0 else None for k in hits.shape]
    ([2.5, 6.25, inf], ['ball[0]', 'ground[0]', None])
    """
    check_model(model)
    start, along = _checked_rays(origins, directions)
    low, high = _checked_range(near, far)
    sight = _sight(model)
    sight.place(model, q)
    shape = start.shape[:-1]
    start, along = start.reshape(-1, 3), along.reshape(-1, 3)
    seen = ~np.isin(model.solids.body, [body_number(model, body) for body in ignore])
    distance, met, normal = np.empty(len(start)), np.empty(len(start), np.int64), np.empty((len(start), 3))
    step = _GROUPS * F64X8.lanes
    for first in range(0, len(start), step):
        part = slice(first, first + step)
        distance[part], met[part], normal[part] = _run(sight, start[part], along[part], seen, low, high)
    missed = met < 0
    distance[missed] = math.inf
    normal[missed] = math.nan
    point = np.full_like(start, math.nan)
    point[~missed] = start[~missed] + along[~missed] * distance[~missed, None]
    return Hits(distance.reshape(shape), point.reshape(*shape, 3), normal.reshape(*shape, 3), met.reshape(shape))


def _run(
    sight: _Sight, start: Floats, along: Floats, seen: NDArray[np.bool_], near: float, far: float
) -> tuple[Floats, Numbers, Floats]:
    """Distance, shape and normal of some rays."""
    lanes, count = F64X8.lanes, len(start)
    groups = -(-count // lanes)
    r = sight.rays(groups)
    rows = np.minimum(np.arange(groups * lanes), count - 1)  # the last ray fills up the last group
    r.origin[:groups] = start[rows].reshape(groups, lanes, 3).swapaxes(1, 2)
    r.direction[:groups] = along[rows].reshape(groups, lanes, 3).swapaxes(1, 2)
    r.distance[:groups] = far
    r.seen[...] = seen
    _cast[_WIDTHS](sight.g.handle, sight.u.handle, sight.x.handle, r.handle, near)
    normal = r.normal[:groups].swapaxes(1, 2).reshape(-1, 3)[:count]
    return r.distance[:groups].reshape(-1)[:count], r.shape[:groups].reshape(-1)[:count], normal


def _checked_rays(origins: Any, directions: Any) -> tuple[Floats, Floats]:
    """Origins and unit directions of one shape."""
    start, along = checked_vectors("origins", origins), checked_vectors("directions", directions)
    if np.abs(start).max(initial=0.0) > FARTHEST:
        raise ValueError(f"origins has numbers up to {np.abs(start).max():g}; {FARTHEST:g} m is the farthest")
    largest = np.abs(along).max(axis=-1, keepdims=True, initial=0.0)
    if not largest.all():
        where = np.argwhere(largest[..., 0] == 0.0)[0]
        raise ValueError(f"directions{where.tolist() if len(where) else ''} is (0, 0, 0), which leads nowhere")
    along = along / largest  # squares cannot overflow
    along = along / np.linalg.norm(along, axis=-1, keepdims=True)
    try:
        shape = np.broadcast_shapes(start.shape, along.shape)
    except ValueError:
        raise ValueError(
            f"origins {start.shape} and directions {along.shape} do not go together: give one for all, or one for each"
        ) from None
    return np.broadcast_to(start, shape), np.broadcast_to(along, shape)


def checked_vectors(name: str, value: Any) -> Floats:
    """Vectors (…, 3) of finite numbers."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be vectors (x, y, z), found {value!r}") from None
    if array.ndim == 0 or array.shape[-1] != 3:
        raise ValueError(f"{name} must be vectors (x, y, z) in the last axis, found an array of shape {array.shape}")
    if not np.isfinite(array).all():
        where = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name}{where.tolist()} is {array[tuple(where)]}; every number must be finite")
    return array


def _checked_range(near: Any, far: Any) -> tuple[float, float]:
    low, high = float(near), float(far)
    if not (math.isfinite(low) and 0.0 <= low <= high):
        raise ValueError(f"near and far must be distances with 0 ≤ near ≤ far, found {low:g} and {high:g}")
    return low, min(high, 1e29)
