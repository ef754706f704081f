"""Many pairs of moving shapes at once, each pair alone, and their gaps at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collision.box_cases import rotations, unit_vectors
from collision.convex_pairs import Bodies, bodies, heights, shapes_arrays
from poise.collision.ccd.conservative_advancement import FLIGHTS, first_touches
from poise.collision.collision_layout import MANIFOLD, PLACES, SHAPES
from poise.collision.narrowphase.convex.pair_distances import MEASURES, measure
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block, Count
from poise.model.shape_arrays import Solid

Array = NDArray[Any]
_measure = entry(measure, SHAPES, PLACES, MEASURES, MANIFOLD, extra=("float64",), lanes=False)
_first_touches = entry(first_touches, SHAPES, PLACES, FLIGHTS, MANIFOLD, extra=("float64", "float64"), lanes=False)


@dataclass(frozen=True)
class Flights:
    """N pairs: shapes as they start, centres of rotation and twists (N, 6), those of a first."""

    a: Bodies
    b: Bodies
    centre: Array
    """(2, N, 3) m."""
    twist: Array
    """(2, N, 6) rad/s, m/s."""

    def shapes(self) -> Block:
        """As kernels see them."""
        n = 2 * len(self.a)
        room = {name: 0 if kind is Count else n + 1 for name, kind in SHAPES.fields.items()}
        return SHAPES.block(F64, **(room | shapes_arrays(self.a, self.b) | {"n_shapes": n}))

    def places(self, times: Array) -> Block:
        """Where shapes are at times (N,)."""
        position, rotation = [], []
        for shape, centre, twist in zip((self.a, self.b), self.centre, self.twist, strict=True):
            turn = turned(twist[:, :3] * times[:, None])
            arm = np.einsum("nij,nj->ni", turn, shape.position - centre)
            position.append(centre + twist[:, 3:] * times[:, None] + arm)
            rotation.append((turn @ shape.rotation).reshape(-1, 9))
        return PLACES.block(F64, position=np.concatenate(position), rotation=np.concatenate(rotation))


def turned(phi: Array) -> Array:
    """Rotation matrices (N, 3, 3) of rotation vectors (N, 3): the formula of Rodrigues."""
    angle = np.linalg.norm(phi, axis=1)
    axis = phi / np.where(angle > 0.0, angle, 1.0)[:, None]
    K = np.zeros((len(phi), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    K -= np.swapaxes(K, 1, 2)
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * K @ K


class Watch:
    """Looks at pairs that fly."""

    def __init__(self, flights: Flights) -> None:
        self.flights, self.n = flights, len(flights.a)
        self._shapes, self._t = flights.shapes(), manifold_block(F64)
        pairs = np.arange(2 * self.n, dtype=np.int32).reshape(2, self.n)
        sizes = dict.fromkeys(("found", "gap", "normal", "point"), self.n)
        self._measures = MEASURES.block(F64, n_pairs=self.n, a=pairs[0], b=pairs[1], **sizes)

    def gaps(self, times: Array) -> Array:
        """(N,) gaps, each pair at its own time."""
        x = self.flights.places(times)
        _measure[F64](self._shapes.handle, x.handle, self._measures.handle, self._t.handle, 1e29)
        assert self._measures.found.all()
        return np.array(self._measures.gap)

    def impacts(self, dt: float, near: float) -> Array:
        """(N,) times that Poise finds, beyond dt where there is no touch."""
        n, flights, x = self.n, self.flights, self.flights.places(np.zeros(self.n))
        pairs = np.arange(2 * n, dtype=np.int32).reshape(2, n)
        centre, twist = flights.centre.reshape(-1, 3), flights.twist.reshape(-1, 6)
        sizes = dict.fromkeys(("time", "gap", "normal", "point"), n)
        arm = np.linalg.norm(x.position - centre, axis=1)
        f = FLIGHTS.block(F64, n_pairs=n, a=pairs[0], b=pairs[1], centre=centre, twist=twist, arm=arm, **sizes)
        _first_touches[F64](self._shapes.handle, x.handle, f.handle, self._t.handle, dt, near)
        return np.array(f.time)

    def first_look(self, dt: float, deep: float, looks: int) -> Array:
        """(N,) when the gap is first seen to be within `deep`, made exact by bisection; infinite where it is not.

        Between two looks a touch may be overlooked: an answer is right, but none proves nothing.
        """
        low, high = np.zeros(self.n), np.full(self.n, np.inf)
        for t in np.linspace(0.0, dt, looks):
            hit = (self.gaps(np.full(self.n, t)) <= deep) & ~np.isfinite(high)
            high[hit] = t
            low[~np.isfinite(high)] = t
        seen = np.isfinite(high)
        for _ in range(45):
            middle = np.where(seen, 0.5 * (low + np.where(seen, high, 0.0)), 0.0)
            inside = self.gaps(middle) <= deep
            high = np.where(seen & inside, middle, high)
            low = np.where(seen & ~inside, middle, low)
        return high


def flights(rng: np.random.Generator, kinds: tuple[Solid, Solid], n: int, dt: float) -> Flights:
    """Shapes that start apart; most fly at each other, all spin, some fast, about points beside their centres.

    A plane is held.
    """
    a, b = (bodies(rng, kind, n, 0.02, 0.4, rotations(rng, n)) for kind in kinds)
    along = unit_vectors(rng, n)
    if kinds[0] == Solid.PLANE:
        along = a.rotation[:, :, 2]
        reach = heights(b, -along[:, None])[0][:, 0]
    else:
        reach = a.extent() + b.extent()
    distance = reach + rng.uniform(0.01, 1.0, n)
    b = b.at(along * distance[:, None])
    aside = [rng.normal(size=(n, 3)) * 0.1 * rng.integers(2, size=(n, 1)) for _ in range(2)]
    centre = np.stack((a.position + aside[0], b.position + aside[1]))
    spin = rng.normal(size=(2, n, 3)) * 10.0 ** rng.uniform(-1, 2, (2, n, 1))
    speed = rng.normal(size=(2, n, 3)) * rng.uniform(0.0, 5.0, (1, n, 1))
    at_it = (rng.random(n) < 0.7)[:, None]
    fast = distance[:, None] / dt * rng.uniform(0.3, 3.0, (n, 1))
    speed[1] = np.where(at_it, speed[0] - along * fast + rng.normal(size=(n, 3)), speed[1])
    twist = np.concatenate((spin, speed), axis=2)
    if kinds[0] == Solid.PLANE:
        twist[0] = 0.0
    return Flights(a, b, centre, twist)
