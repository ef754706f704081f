"""Times of impact of moving shapes, as functions of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.ccd.conservative_advancement import FLIGHTS, first_touches
from poise.collision.ccd.swept_aabb import sweeps, swept_pairs
from poise.collision.collision_layout import MANIFOLD, PLACES, SHAPES, shapes_block
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.collision.ray_casting.rays import places
from poise.dynamics.argument_checks import checked_step
from poise.dynamics.state_queries import Bodies, bodies
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block
from poise.model.model import Model

Array = NDArray[Any]
NEAR = 1e-9
"""Gap that counts as contact; m."""

_first_touches = entry(first_touches, SHAPES, PLACES, FLIGHTS, MANIFOLD, extra=("float64", "float64"), lanes=False)


@dataclass(frozen=True)
class Impact:
    """A future contact of two shapes."""

    a: int
    """Shape."""
    b: int
    """Shape."""
    time: float
    """Time from now; s."""
    normal: Array
    """(3,) from A to B, at that time."""
    point: Array
    """(3,) where; m."""
    gap: float
    """Gap at that time; at most `near`, except for shapes that spin beside each other so fast that the search ended
    there. They have no contact before; m."""


def impacts(model: Model, q: ArrayLike, v: ArrayLike, dt: float, near: float = NEAR) -> list[Impact]:
    """Pairs of shapes that come within a gap `near` in the next `dt`, sorted by time.

    Each body moves with its present twist, about its centre of mass. Pairs that are in contact already have time 0.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.01), name="ball", position=(-1, 0, 0))
    >>> _ = scene.add(poise.sphere(0.01), name="target", fixed=True)
    >>> model = scene.compile()
    >>> [round(impact.time, 6) for impact in impacts(model, model.q_rest, [1000, 0, 0, 0, 0, 0], 1 / 30)]
    [0.00098]
    """
    step = checked_step(dt)
    if not (np.isfinite(near) and near > 0.0):
        raise ValueError(f"near is {near}; it must be a positive distance")
    solids, placed = model.solids, bodies(model, q, v)
    g, x, centre, twist, arm = _moving_shapes(model, q, placed)
    moves = sweeps(x.position, solids.reach, arm, twist, step)
    pairs = swept_pairs(model, x.rotation.reshape(-1, 3, 3)[:, :, 2], moves, near)
    n = len(pairs)
    flights = FLIGHTS.block(
        F64,
        n_pairs=n,
        a=pairs[:, 0],
        b=pairs[:, 1],
        centre=centre,
        twist=twist,
        arm=np.linalg.norm(arm, axis=1),
        **dict.fromkeys(("time", "gap", "normal", "point"), n),
    )
    t = manifold_block(F64, {*solids.kind.tolist()})
    _first_touches[F64](g.handle, x.handle, flights.handle, t.handle, step, near)
    found = np.flatnonzero(flights.time <= step)
    return [_impact(flights, int(k)) for k in found[np.argsort(flights.time[found], kind="stable")]]


def _moving_shapes(model: Model, q: ArrayLike, placed: Bodies) -> tuple[Block, Block, Array, Array, Array]:
    """Shapes and their poses; for each its centre of rotation, its twist there, and the arm to its own centre."""
    solids = model.solids
    place, turn = places(model, q)
    com = np.einsum("nij,nj->ni", placed.rotation, model.body_com)
    speed = placed.twist[:, 3:] + np.cross(placed.twist[:, :3], com)
    centre = (placed.position + com)[solids.body]
    twist = np.concatenate((placed.twist[:, :3], speed), axis=1)[solids.body]
    x = PLACES.block(F64, position=place, rotation=turn.reshape(-1, 9))
    return shapes_block(solids, F64, model.link_root), x, centre, twist, place - centre


def _impact(flights: Block, k: int) -> Impact:
    return Impact(
        int(flights.a[k]),
        int(flights.b[k]),
        float(flights.time[k]),
        flights.normal[k].copy(),
        flights.point[k].copy(),
        float(flights.gap[k]),
    )
