"""Broadphase of continuous collision: pairs of moving shapes whose swept boxes and spheres come near each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poise.collision.broadphase.pair_filter import Indices, may_touch, ranks
from poise.model.model import Model
from poise.model.shape_arrays import Solid

Floats = NDArray[np.float64]
ROOM = 1 << 20
"""Pairs that are processed at once."""


@dataclass(frozen=True)
class Sweeps:
    """Swept spheres of shapes: from a position (n, 3) by a displacement (n, 3), with a radius (n,); m."""

    start: Floats
    way: Floats
    radius: Floats


def sweeps(place: Floats, reach: Floats, arm: Floats, twist: Floats, dt: float) -> Sweeps:
    """Sweeps of shapes at positions (n, 3) that rotate about centres (n, 3) at a distance `arm`, with twists (n, 6).

    A shape's centre deviates from the straight path by the rotation of its arm: by |ω| dt |arm|, at most 2 |arm|.
    """
    length = np.linalg.norm(arm, axis=1)
    aside = np.minimum(np.linalg.norm(twist[:, :3], axis=1) * dt, 2.0) * length
    return Sweeps(place, twist[:, 3:] * dt, reach + aside)


def swept_pairs(model: Model, plane_normal: Floats, moves: Sweeps, near: float) -> Indices:
    """(n, 2) pairs that may touch and whose sweeps come within a distance, as `pair_filter.candidate_pairs` sorts them.

    `plane_normal` (n, 3) is valid only for planes.
    """
    order = ranks(model)
    planes = order[: int(np.count_nonzero(model.solids.kind == Solid.PLANE))]
    others = order[len(planes) :]
    found = [_reached(plane, others, plane_normal[plane], moves, near) for plane in planes]
    found += [_meeting(model, others, moves, near)]
    pairs = np.concatenate([np.zeros((0, 2), np.int32), *found])
    pairs = pairs[may_touch(model, pairs[:, 0], pairs[:, 1])]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return pairs[np.lexsort((place[pairs[:, 1]], place[pairs[:, 0]]))]


def _reached(plane: np.int32, others: Indices, normal: Floats, moves: Sweeps, near: float) -> Indices:
    """Pairs of a plane and shapes that come near it."""
    height = (moves.start[others] - moves.start[plane]) @ normal
    lowest = height + np.minimum((moves.way[others] - moves.way[plane]) @ normal, 0.0)
    below = others[~(lowest > moves.radius[others] + near + _rounding(moves, others))]
    return np.stack((np.full_like(below, plane), below), axis=1)


def _rounding(moves: Sweeps, shapes: Indices) -> Floats:
    """Rounding error of a distance; m."""
    size = np.abs(moves.start[shapes]).sum(axis=1) + np.abs(moves.way[shapes]).sum(axis=1) + moves.radius[shapes]
    return np.asarray(16.0 * np.finfo(np.float64).eps * size)


def _meeting(model: Model, shapes: Indices, moves: Sweeps, near: float) -> Indices:
    """Pairs of shapes whose boxes overlap: sweep and prune along the axis of largest spread."""
    if not len(shapes):
        return np.zeros((0, 2), np.int32)
    start, way = moves.start[shapes], moves.way[shapes]
    half = (moves.radius[shapes] + 0.5 * near + _rounding(moves, shapes))[:, None]
    low, high = np.minimum(start, start + way) - half, np.maximum(start, start + way) + half
    axis = int(np.argmax(np.std(0.5 * (low + high), axis=0)))
    turn = np.argsort(low[:, axis], kind="stable")
    low, high, shapes = low[turn], high[turn], shapes[turn]
    ends = np.searchsorted(low[:, axis], high[:, axis], side="right")
    counts = np.maximum(ends - np.arange(len(shapes)) - 1, 0)
    total = np.concatenate(([0], np.cumsum(counts)))
    found, first = [np.zeros((0, 2), np.int32)], 0
    while first < len(shapes):
        last = max(int(np.searchsorted(total, total[first] + ROOM, side="right")) - 1, first + 1)
        rows = np.repeat(np.arange(first, last), counts[first:last])
        columns = rows + 1 + np.arange(len(rows)) - (total[rows] - total[first])
        meet = np.all((low[rows] <= high[columns]) & (low[columns] <= high[rows]), axis=1)
        found.append(_near_balls(_sorted(model, shapes[rows[meet]], shapes[columns[meet]]), moves, near))
        first = last
    return np.concatenate(found)


def _sorted(model: Model, one: Indices, other: Indices) -> Indices:
    """Pairs, with the lesser rank first."""
    kind = model.solids.kind
    later = (kind[one] > kind[other]) | ((kind[one] == kind[other]) & (one > other))
    return np.stack((np.where(later, other, one), np.where(later, one, other)), axis=1)


def _near_balls(pairs: Indices, moves: Sweeps, near: float) -> Indices:
    """The pairs whose spheres come within a distance during their motion."""
    a, b = pairs.T
    apart, way = moves.start[b] - moves.start[a], moves.way[b] - moves.way[a]
    length2 = np.einsum("ni,ni->n", way, way)
    some = length2 > 0.0
    when = np.clip(-np.einsum("ni,ni->n", apart, way) / np.where(some, length2, 1.0), 0.0, 1.0)
    least = np.linalg.norm(apart + way * when[:, None], axis=1)
    reach = moves.radius[a] + moves.radius[b] + near + _rounding(moves, a) + _rounding(moves, b)
    return pairs[~(least > reach)]
