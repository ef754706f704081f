"""Laws as linear pieces: the equations of each piece, its ends, and the next pieces.

The answers of a problem are one linear system while every row and block stays on its piece. That is exact for rows with
bounds, piecewise laws and pyramids. Cones and balls are linearized at the given point: this includes the first-order
rotation of friction with the sliding direction.

Along the graph of a law, which is non-increasing, z = scale · λ − w only grows: z determines the piece, and bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from poise.solve.cones import STEEP
from poise.solve.laws import UPRIGHT, Law, bounded
from poise.solve.problem import Ball, Floats, Friction, Problem


@dataclass(frozen=True)
class Plane:
    """Σ lam[r] λ_r + Σ w[r] w_r, to be equal to `value` or at most `value`."""

    lam: Mapping[int, float]
    w: Mapping[int, float]
    value: float = 0.0


@dataclass(frozen=True)
class Piece:
    """One piece of the law of a row or a block."""

    equal: tuple[Plane, ...]
    """Equations on the piece, one plane for each row."""
    ends: tuple[tuple[Plane, int], ...] = ()
    """Inequalities of the piece, and the number of the piece beyond each."""


@dataclass
class Unit:
    """A row or a block: its pieces, and the index of the present one."""

    pieces: tuple[Piece, ...]
    at: int

    @property
    def piece(self) -> Piece:
        """The present piece."""
        return self.pieces[self.at]


def units_of(problem: Problem, lam: Floats, w: Floats, near: float) -> list[Unit]:
    """All rows and blocks of a problem with plain friction, each on the piece of λ − w/scale.

    Helped rows that are nearer to a bound than `near`, in units of w, are put on the piece of that bound.
    """
    diagonal = problem.diagonal
    scales = np.where(diagonal > 0.0, diagonal, 1.0)
    helped = {one.row for one in problem.helps}
    in_blocks = problem.block_rows()
    units = []
    for row in range(problem.size):
        if row in in_blocks:
            continue
        law = problem.laws.get(row) or bounded(float(problem.lo[row]), float(problem.hi[row]))
        units.append(_row(row, law, float(scales[row]), lam, w, near if row in helped else 0.0))
    for f in problem.frictions:
        if f.cone:
            units.append(_cone(f, lam, w, float(scales[[f.normal, *f.tangents]].max())))
        else:
            units.append(_row(f.normal, bounded(0.0, np.inf), float(scales[f.normal]), lam, w, 0.0))
            units += [_tangent(row, f, float(scales[row]), lam, w) for row in f.tangents]
    units += [_ball(ball, lam, w, float(scales[list(ball.rows)].max())) for ball in problem.balls]
    return units


def _row(row: int, law: Law, scale: float, lam: Floats, w: Floats, near: float) -> Unit:
    """A row with its pieces from left to right, on its present one."""
    lines, ends = _lines(row, law, scale)
    down = [((Plane({row: -scale}, {row: 1.0}, -end), k),) for k, end in enumerate(ends)]
    up = [((Plane({row: scale}, {row: -1.0}, end), k + 1),) for k, end in enumerate(ends)]
    pieces = [Piece((line,), before + after) for line, before, after in zip(lines, [(), *down], [*up, ()], strict=True)]
    z = scale * float(lam[row]) - float(w[row])
    at = sum(z > end for end in ends)
    if near > 0.0 and len(lines) > 1:
        at += (at < len(ends) and ends[at] - z <= near and not lines[at + 1].w) - (
            at > 0 and z - ends[at - 1] <= near and not lines[at - 1].w
        )
    return Unit(tuple(pieces), int(at))


def _lines(row: int, law: Law, scale: float) -> tuple[list[Plane], list[float]]:
    """The lines of a law's pieces from left to right, and z at the vertices between them."""
    points = list(law.vertices)
    lines, ends = [_line(row, points[0], law.left)], []
    slopes = [UPRIGHT if lam1 == lam0 else (w1 - w0) / (lam1 - lam0) for (lam0, w0), (lam1, w1) in pairwise(points)]
    for point, slope in zip(points, [*slopes, law.right], strict=True):
        line = _line(row, point, slope)
        if line != lines[-1]:
            lines.append(line)
            ends.append(scale * point[0] - point[1])
    return lines, ends


def _line(row: int, point: tuple[float, float], slope: float) -> Plane:
    lam, w = point
    return Plane({row: 1.0}, {}, lam) if slope == UPRIGHT else Plane({row: -slope}, {row: 1.0}, w - slope * lam)


def _tangent(row: int, f: Friction, scale: float, lam: Floats, w: Floats) -> Unit:
    """A tangent row of a pyramid: at −μ λ_n, at rest, at μ λ_n."""
    n, mu = f.normal, f.mu
    low, high = Plane({row: 1.0, n: mu}, {}), Plane({row: 1.0, n: -mu}, {})
    below = Plane({row: scale, n: scale * mu}, {row: -1.0})
    above = Plane({row: -scale, n: scale * mu}, {row: 1.0})
    pieces = (
        Piece((low,), ((below, 1),)),
        Piece((Plane({}, {row: 1.0}),), ((_minus(below), 0), (_minus(above), 2))),
        Piece((high,), ((above, 1),)),
    )
    z, reach = scale * float(lam[row]) - float(w[row]), scale * mu * max(float(lam[n]), 0.0)
    return Unit(pieces, 0 if z < -reach else 2 if z > reach else 1)


def _cone(f: Friction, lam: Floats, w: Floats, scale: float) -> Unit:
    """A cone, linearized: separated, at rest, sliding."""
    n, t, mu = f.normal, list(f.tangents), f.mu
    slide = float(np.linalg.norm(w[t]))
    along = _direction(w[t] if slide > 0.0 else -lam[t])
    force = _direction(lam[t] if np.any(lam[t]) else -w[t])
    opens = Plane({n: -1.0}, {})
    still = tuple(Plane({}, {row: 1.0}) for row in (n, *t))
    # λ_t = −μ λ_n w_t/|w_t|: along the sliding direction, and across it to first order
    sliding = [Plane({}, {n: 1.0}), Plane(_over(t, along) | {n: mu}, {})]
    for across in _others(along):
        sliding.append(Plane(_over(t, slide * across), _over(t, mu * max(float(lam[n]), 0.0) * across)))
    pieces = (
        Piece(tuple(Plane({row: 1.0}, {}) for row in (n, *t)), ((Plane({}, {n: -1.0}), 2 if slide > 0.0 else 1),)),
        Piece(still, ((opens, 0), (Plane(_over(t, force) | {n: -mu}, {}), 2))),
        Piece(tuple(sliding), ((opens, 0), (Plane({}, _over(t, -along)), 1))),
    )
    pull, steep = float(np.linalg.norm(lam[t] - w[t] / scale)), mu > STEEP
    aim = float(lam[n] - (w[n] + (0.0 if steep else mu * slide)) / scale)
    return Unit(pieces, 1 if pull <= mu * aim else 0 if (0.0 if steep else mu * pull) <= -aim else 2)


def _ball(ball: Ball, lam: Floats, w: Floats, scale: float) -> Unit:
    """Inside, and on the sphere."""
    rows, radius = list(ball.rows), ball.radius
    still = tuple(Plane({}, {row: 1.0}) for row in rows)
    if np.isinf(radius):
        return Unit((Piece(still),), 0)
    pull = float(np.linalg.norm(w[rows]))
    out = _direction(lam[rows] - w[rows] / scale)
    on = [Plane(_over(rows, out), {}, radius)]
    on += [Plane(_over(rows, pull * across), _over(rows, radius * across)) for across in _others(out)]
    if radius == 0.0:
        return Unit((Piece(tuple(Plane({row: 1.0}, {}) for row in rows)),), 0)
    pieces = (
        Piece(still, ((Plane(_over(rows, out), {}, radius), 1),)),
        Piece(tuple(on), ((Plane({}, _over(rows, out)), 0),)),
    )
    return Unit(pieces, int(np.linalg.norm(lam[rows] - w[rows] / scale) > radius))


def _minus(plane: Plane) -> Plane:
    return Plane({row: -x for row, x in plane.lam.items()}, {row: -x for row, x in plane.w.items()}, -plane.value)


def _over(rows: list[int], vector: Floats) -> dict[int, float]:
    return {row: float(x) for row, x in zip(rows, vector, strict=True)}


def _direction(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length > 0.0 else np.eye(len(vector))[0])


def _others(direction: Floats) -> Floats:
    """(n − 1, n) unit vectors perpendicular to a direction and to each other."""
    return np.asarray(np.linalg.svd(direction[None, :])[2][1:])
