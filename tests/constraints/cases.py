"""Every part with random attachments, for the tests that all parts must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from constraints.checker import (
    WORLD,
    Moving,
    Rows,
    mat,
    random_moving,
    random_rotation,
    rows_function,
    rows_of,
    vec,
)
from poise.constraints.row_parts import curve_parts, nonholonomic_parts, orientation_parts, point_parts
from poise.kernel.vec import Sym3


@dataclass(frozen=True)
class Case:
    """A part, how many rows it has, and arguments for a pose of two bodies."""

    part: Callable[..., Any]
    n_rows: int
    args: Callable[[np.random.Generator, Moving, Moving], list[Any]]
    relative: bool = True
    """Depends on the relative pose only."""
    holonomic: bool = True
    """Has an error φ, not only a rate."""
    rows: Callable[[list[Any]], Rows] | None = None
    """Rows of given arguments, where these change as the bodies move."""

    def __str__(self) -> str:
        return self.part.__name__

    def rows_with(self, args: list[Any]) -> Rows:
        """The rows as a function of two bodies."""
        return self.rows(args) if self.rows else rows_function(self.part, args)


def _unit(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def _spots(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [vec(rng.uniform(-0.5, 0.5, 3)), vec(rng.uniform(-0.5, 0.5, 3))]


def _spots_and_direction(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [*_spots(rng), vec(_unit(rng))]


def _segment(rng: np.random.Generator, *_: Any) -> list[Any]:
    low = rng.uniform(-1, 1)
    return [*_spots_and_direction(rng), low, low + rng.uniform(0.1, 2)]


def _sphere(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [*_spots(rng), rng.uniform(0.2, 3)]


def _axes(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [vec(_unit(rng)), vec(_unit(rng))]


def rest(rng: np.random.Generator, a: Moving, b: Moving, largest: float = 2.4) -> Any:
    """A pose of rest R₀ from which the two bodies are a turn of at most `largest` away."""
    return mat(random_rotation(rng, largest).T @ a.R.T @ b.R)


def _angle(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    args = [vec(_unit(rng)), rest(rng, a, b)]
    start = float(orientation_parts.angle(a.body, b.body, *args, 0.0).phi)
    return [*args, start + rng.uniform(-2, 2) + 2 * np.pi * rng.integers(-5, 6)]


def _frames(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    return [mat(random_rotation(rng, np.pi)), rest(rng, a, b)]


def _ellipse(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    return [*_frames(rng, a, b), *rng.uniform(0.2, 2.5, 4).tolist()]


# ---- a helix, and a quadric ------------------------------------------------------------------------------------------

RADIUS, PITCH = 1.2, 0.4


def helix(s: float) -> list[np.ndarray]:
    """c, c', c'', c''' and a normal that does not turn about the curve: the torsion is p/√(r² + p²) per unit of s."""
    c, sn = np.cos(s), np.sin(s)
    length = np.hypot(RADIUS, PITCH)
    normal, binormal = np.array([-c, -sn, 0.0]), np.array([PITCH * sn, -PITCH * c, RADIUS]) / length
    alpha = -PITCH / length * s
    return [
        np.array([RADIUS * c, RADIUS * sn, PITCH * s]),
        np.array([-RADIUS * sn, RADIUS * c, PITCH]),
        np.array([-RADIUS * c, -RADIUS * sn, 0.0]),
        np.array([RADIUS * sn, -RADIUS * c, 0.0]),
        np.cos(alpha) * normal + np.sin(alpha) * binormal,
    ]


def foot_of(a: Moving, b: Moving, pb: Any, s: float) -> float:
    """Parameter of the foot on the helix, by the part's own Newton steps."""
    for _ in range(60):
        step, _ = curve_parts.foot(a.body, b.body, pb, *map(vec, helix(s)[:3]))
        s += float(step)
        if abs(step) < 1e-15:
            break
    return s


def _helix_args(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    """An attachment point on B that is some decimetres from the helix."""
    s = rng.uniform(-2, 2)
    near = helix(s)[0] + rng.uniform(-0.3, 0.3, 3)
    pb = vec(b.R.T @ (a.x + a.R @ near - b.x))
    c, c1, c2, _, g = helix(foot_of(a, b, pb, s))
    return [pb, *map(vec, (c, c1, c2, g))]


def _helix_rows(args: list[Any]) -> Rows:
    def rows(a: Moving, b: Moving) -> np.ndarray:
        y = np.array(list(point_parts.seen_from(a.body, b.body, args[0]).leaves()))
        c, c1, c2, _, g = map(vec, helix(foot_of(a, b, args[0], np.arctan2(y[1], y[0]))))
        return rows_of(curve_parts.on_curve(a.body, b.body, args[0], c, c1, c2, g))

    return rows


def _travel_args(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    pb = _helix_args(rng, a, b)[0]
    s = rng.uniform(-0.1, 0.1) + foot_of(a, b, pb, _guess(a, b, pb))
    return [pb, s, *map(vec, helix(s)[:4])]


def _guess(a: Moving, b: Moving, pb: Any) -> float:
    y = list(point_parts.seen_from(a.body, b.body, pb).leaves())
    return float(np.arctan2(y[1], y[0]))


def _travel_rows(args: list[Any]) -> Rows:
    def rows(a: Moving, b: Moving) -> np.ndarray:
        s = foot_of(a, b, args[0], _guess(a, b, args[0]))
        return rows_of(curve_parts.travel(a.body, b.body, args[0], s, *map(vec, helix(s)[:4])))

    return rows


QUADRIC = np.array([[0.7, 0.1, -0.2], [0.1, -0.4, 0.3], [-0.2, 0.3, 0.9]])
TILT = np.array([0.3, -0.5, 0.8])


def _surface_args(rng: np.random.Generator, a: Moving, b: Moving) -> list[Any]:
    """f = ½ yᵀQy + t·y − 1 at a point of B."""
    pb = vec(rng.uniform(-0.5, 0.5, 3))
    y = np.array(list(point_parts.seen_from(a.body, b.body, pb).leaves()))
    upper = [QUADRIC[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return [pb, float(0.5 * y @ QUADRIC @ y + TILT @ y - 1), vec(QUADRIC @ y + TILT), Sym3(*map(float, upper))]


def _surface_rows(args: list[Any]) -> Rows:
    class At:
        """The same point, whatever is drawn."""

        def uniform(self, *_: Any) -> list[float]:
            return list(args[0].leaves())

    return lambda a, b: rows_of(point_parts.on_surface(a.body, b.body, *_surface_args(At(), a, b)))  # type: ignore[arg-type]


# ---- rolling ---------------------------------------------------------------------------------------------------------


def _wheel(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [vec(_unit(rng)), vec(rng.uniform(-0.5, 0.5, 3)), vec(_unit(rng)), rng.uniform(0.1, 1)]


def _skate(rng: np.random.Generator, *_: Any) -> list[Any]:
    return [vec(_unit(rng)), vec(rng.uniform(-0.5, 0.5, 3)), vec(_unit(rng))]


CASES = [
    Case(point_parts.point, 3, _spots, relative=False),
    Case(point_parts.along, 1, _spots_and_direction),
    Case(point_parts.offset, 3, _spots),
    Case(point_parts.on_line, 2, _spots_and_direction),
    Case(point_parts.on_segment, 3, _segment),
    Case(point_parts.distance, 1, _spots),
    Case(point_parts.inside_sphere, 1, _sphere),
    Case(point_parts.on_surface, 1, _surface_args, rows=_surface_rows),
    Case(curve_parts.on_curve, 2, _helix_args, rows=_helix_rows),
    Case(curve_parts.travel, 1, _travel_args, rows=_travel_rows),
    Case(orientation_parts.perpendicular, 1, _axes),
    Case(orientation_parts.parallel, 2, _axes),
    Case(orientation_parts.angle, 1, _angle),
    Case(orientation_parts.orientation, 3, lambda rng, a, b: [rest(rng, a, b)]),
    Case(orientation_parts.swing, 1, _frames),
    Case(orientation_parts.swing_ellipse, 1, _ellipse),
    Case(orientation_parts.swing_cone, 1, lambda rng, a, b: [*_frames(rng, a, b), rng.uniform(0.2, 3)]),
    Case(nonholonomic_parts.wheel, 2, _wheel, holonomic=False),
    Case(nonholonomic_parts.skate, 1, _skate, holonomic=False),
    Case(nonholonomic_parts.spin_about, 1, lambda rng, *_: [vec(_unit(rng))], holonomic=False),
    Case(nonholonomic_parts.spin, 3, lambda *_: [], holonomic=False),
]


def bodies(rng: np.random.Generator, which: str) -> tuple[Moving, Moving]:
    """Two bodies, either of which may be the world."""
    a, b = random_moving(rng), random_moving(rng)
    return {"free": (a, b), "world A": (WORLD, b), "world B": (a, WORLD)}[which]
