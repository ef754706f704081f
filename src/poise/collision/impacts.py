"""First touches of moving shapes, as functions of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.impact import FLIGHTS, first_touches
from poise.collision.layout import MANIFOLD, PLACES, SHAPES
from poise.collision.pipeline import Collider
from poise.dynamics.inputs import checked_step
from poise.dynamics.measures import bodies
from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.model.model import Model

Array = NDArray[Any]
NEAR = 1e-9
"""Gap that counts as a touch; m."""

_first_touches = entry(first_touches, SHAPES, PLACES, FLIGHTS, MANIFOLD, extra=("float64", "float64"), lanes=False)


@dataclass(frozen=True)
class Impact:
    """Two shapes that come to touch."""

    a: int
    """Shape."""
    b: int
    """Shape."""
    time: float
    """From now; s."""
    normal: Array
    """(3,) from A to B, then."""
    point: Array
    """(3,) where; m."""


def impacts(model: Model, q: ArrayLike, v: ArrayLike, dt: float, near: float = NEAR) -> list[Impact]:
    """Pairs of shapes that come within a gap `near` in the next `dt`, the first ones first.

    Each body goes on with its present twist, about its centre of mass. Pairs that touch already come at time 0.

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
    collider, solids = Collider(model), model.solids
    placed = bodies(model, q, v)
    collider.place(q)
    arm = np.einsum("nij,nj->ni", placed.rotation, model.body_com)
    speed = placed.twist[:, 3:] + np.cross(placed.twist[:, :3], arm)
    twists = np.concatenate((placed.twist[:, :3], speed), axis=1)
    n = len(collider.pairs)
    flights = FLIGHTS.block(
        F64,
        n_pairs=n,
        a=collider.pairs[:, 0],
        b=collider.pairs[:, 1],
        centre=(placed.position + arm)[solids.body],
        twist=twists[solids.body],
        time=n,
        normal=n,
        point=n,
    )
    _first_touches[F64](collider.g.handle, collider.x.handle, flights.handle, collider.t.handle, step, near)
    found = [k for k in range(n) if flights.time[k] <= step]
    found.sort(key=lambda k: float(flights.time[k]))
    return [
        Impact(
            int(flights.a[k]),
            int(flights.b[k]),
            float(flights.time[k]),
            flights.normal[k].copy(),
            flights.point[k].copy(),
        )
        for k in found
    ]
