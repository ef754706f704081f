"""Poses where directions, twists and swings cease to exist: everything stays finite, and is exact close by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constraints.checker import (
    LANES,
    Moving,
    check_balance,
    check_derivatives,
    exp,
    mat,
    random_moving,
    rows_function,
    rows_of,
    samples_of,
    vec,
)
from kernel.runner import MODES, Mode, run
from poise.constraints.row_parts import curve_parts, nonholonomic_parts, orientation_parts, point_parts
from poise.kernel.vec import Sym3

FLOATING = tuple(mode for mode in MODES if mode in LANES or str(mode) in ("floats", "arrays"))
O, X, Y = vec([0, 0, 0]), vec([1, 0, 0]), vec([0, 1, 0])
ONE = mat(np.eye(3))


def _pair(turn: Any = (0, 0, 0), apart: Any = (0, 0, 0), seed: int = 5) -> tuple[Moving, Moving]:
    """Two bodies that move, B turned and moved as said from where A is."""
    rng = np.random.default_rng(seed)
    a, b = random_moving(rng), random_moving(rng)
    return a, replace(b, x=a.x + a.R @ np.array(apart, float), R=a.R @ exp(turn))


def _still(turn: Any = (0, 0, 0), apart: Any = (0, 0, 0)) -> tuple[Moving, Moving]:
    """The same about the world's axes, exactly."""
    a, b = _pair()
    return replace(a, x=np.zeros(3), R=np.eye(3)), replace(b, x=np.array(apart, float), R=exp(turn))


HALF = mat(np.diag([-1.0, 1.0, -1.0]))  # half a turn about y, to the last bit
BACK = (lambda a, b: (a, replace(b, R=np.diag([-1.0, 1.0, -1.0]))))(*_still())

SINGULAR: dict[str, tuple[Any, tuple[Moving, Moving], list[Any]]] = {
    "distance 0": (point_parts.distance, _still(), [O, O]),
    "distance 1e-12": (point_parts.distance, _pair(apart=(1e-12, 0, 0)), [O, O]),
    "distance 1e-20": (point_parts.distance, _still(apart=(0, 1e-20, 0)), [O, O]),
    "centre of a sphere": (point_parts.inside_sphere, _still(), [O, O, 0.5]),
    "swing 0": (orientation_parts.swing, _still(), [ONE, ONE]),
    "swing 1e-20": (orientation_parts.swing, _still((0, 1e-20, 0)), [ONE, ONE]),
    "swing 1e-9": (orientation_parts.swing, _pair((0, 1e-9, 0)), [ONE, ONE]),
    "swing π": (orientation_parts.swing, BACK, [ONE, ONE]),
    "swing π - 1e-9": (orientation_parts.swing, _pair((0, np.pi - 1e-9, 0)), [ONE, ONE]),
    "ellipse at swing 0": (orientation_parts.swing_ellipse, _still(), [ONE, ONE, 0.5, 0.6, 0.7, 0.8]),
    "ellipse at swing 1e-9": (orientation_parts.swing_ellipse, _pair((0, 0, 1e-9)), [ONE, ONE, 0.5, 0.6, 0.7, 0.8]),
    "ellipse at swing π": (orientation_parts.swing_ellipse, BACK, [ONE, ONE, 0.5, 0.6, 0.7, 0.8]),
    "ellipse at swing π - 1e-9": (
        orientation_parts.swing_ellipse,
        _pair((0, 0.6 * (np.pi - 1e-9), 0.8 * (np.pi - 1e-9))),
        [ONE, ONE, 0.5, 0.6, 0.7, 0.8],
    ),
    "ellipse of nothing": (orientation_parts.swing_ellipse, _pair((0.1, 0.2, 0.3)), [ONE, ONE, 0.0, 0.0, 0.0, 0.0]),
    "cone at swing 0": (orientation_parts.swing_cone, _still(), [ONE, ONE, 0.5]),
    "cone at swing π": (orientation_parts.swing_cone, BACK, [ONE, ONE, 3.0]),
    "twist of a backward axis": (orientation_parts.angle, BACK, [X, ONE, 0.0]),
    "twist of nearly a backward axis": (orientation_parts.angle, _pair((0, np.pi - 1e-9, 0)), [X, ONE, 0.0]),
    "angle of half a turn": (orientation_parts.angle, BACK, [Y, ONE, 0.0]),
    "orientation 0": (orientation_parts.orientation, _still(), [ONE]),
    "orientation 1e-20": (orientation_parts.orientation, _still((1e-20, 0, 0)), [ONE]),
    "orientation π": (orientation_parts.orientation, BACK, [ONE]),
    "orientation from the other side": (orientation_parts.orientation, _still(), [HALF]),
    "axes that should be perpendicular and are parallel": (orientation_parts.perpendicular, _still(), [X, X]),
    "axes that should be parallel and are opposite": (orientation_parts.parallel, _still(), [X, vec([-1, 0, 0])]),
    "line without direction": (point_parts.on_line, _pair(apart=(1, 0, 0)), [O, O, O]),
    "segment without length": (point_parts.on_segment, _still(), [O, O, X, 0.0, 0.0]),
    "surface without gradient": (point_parts.on_surface, _still(), [O, 0.0, O, Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)]),
    "cusp of a curve": (curve_parts.on_curve, _still(), [O, O, O, X, Y]),
    "cusp of a rail": (curve_parts.travel, _still(), [O, 0.0, O, O, X, Y]),
    "centre of curvature": (curve_parts.on_curve, _still(), [O, X, Y, vec([-1, 0, 0]), X]),
    "wheel that lies flat": (nonholonomic_parts.wheel, _still(), [Y, O, Y, 0.3]),
    "skate that stands upright": (nonholonomic_parts.skate, _still(), [Y, O, Y]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_rows_are_finite_and_balanced(name: str) -> None:
    part, (a, b), args = SINGULAR[name]
    rows = rows_of(part(a.body, b.body, *args))
    assert np.isfinite(rows).all()
    check_balance(rows, a, b)


# one compilation serves all poses of a part
POSES = {part: [(pair, args) for p, pair, args in SINGULAR.values() if p is part] for part, _, _ in SINGULAR.values()}


@pytest.mark.parametrize("mode", FLOATING, ids=str)
@pytest.mark.parametrize("part", POSES, ids=lambda part: part.__name__)
def test_lanes_are_finite(part: Any, mode: Mode) -> None:
    samples = [[a.body, b.body, *args] for (a, b), args in POSES[part]]
    found = run(mode, part, *samples_of(samples))
    for rows in found if isinstance(found, list) else [found]:
        assert np.isfinite(rows).all()
        # what is finite but would overflow when squared is of no use to a solver
        assert np.abs(rows[:, 2:]).max() < 1e7


@pytest.mark.parametrize(
    "part",
    [
        point_parts.distance,
        orientation_parts.swing,
        orientation_parts.swing_ellipse,
        orientation_parts.orientation,
        orientation_parts.angle,
    ],
)
def test_a_body_with_nan_gives_nan_not_a_wrong_row(part: Any) -> None:
    a, b = _pair((0.1, 0.2, 0.3), (0.1, 0, 0))
    args = next(args for p, _, args in SINGULAR.values() if p is part)
    b = replace(b, x=b.x * np.nan, R=b.R * np.nan)
    assert np.isnan(rows_of(part(a.body, b.body, *args))[:, 0]).all()


NEAR: dict[str, tuple[Any, tuple[Moving, Moving], list[Any], float]] = {
    "distance 1e-2": (point_parts.distance, _pair(apart=(0.01, 0, 0)), [O, O], 1e-5),
    "distance 1e-4": (point_parts.distance, _pair(apart=(0, 1e-4, 0)), [O, O], 1e-7),
    "ellipse at 0": (orientation_parts.swing_cone, _pair(), [ONE, ONE, 0.5], 1e-3),
    "ellipse at 1e-6": (orientation_parts.swing_cone, _pair((0, 0, 1e-6)), [ONE, ONE, 0.5], 1e-3),
    "ellipse at 0.05": (orientation_parts.swing_ellipse, _pair((0, 0.04, 0.03)), [ONE, ONE, 0.5, 0.6, 0.7, 0.8], 1e-3),
    "ellipse at π/2": (
        orientation_parts.swing_ellipse,
        _pair((0, 0.6 * 1.571, 0.8 * 1.571)),
        [ONE, ONE, 1.5, 1.6, 1.7, 1.8],
        1e-3,
    ),
    "ellipse at 3.1": (orientation_parts.swing_ellipse, _pair((0, 1.86, 2.48)), [ONE, ONE, 1.5, 1.6, 1.7, 1.8], 1e-4),
    "ellipse at π - 1e-3": (
        orientation_parts.swing_ellipse,
        _pair((0, 0.6 * (np.pi - 1e-3), 0.8 * (np.pi - 1e-3))),
        [ONE, ONE, 2.5, 2.6, 1.7, 1.8],
        2e-6,
    ),
    "swing 1e-2": (orientation_parts.swing, _pair((0, 0.006, 0.008)), [ONE, ONE], 1e-5),
    "swing π - 1e-2": (orientation_parts.swing, _pair((0, np.pi - 0.01, 0)), [ONE, ONE], 1e-5),
    "cone at π - 1e-2": (orientation_parts.swing_cone, _pair((0, np.pi - 0.01, 0)), [ONE, ONE, 3.0], 1e-5),
    "orientation 1e-9": (orientation_parts.orientation, _pair((1e-9, 0, 0)), [ONE], 1e-3),
    "orientation where the series ends": (orientation_parts.orientation, _pair((0.5, -0.3, 0.4)), [ONE], 1e-3),
    "orientation 3.1": (orientation_parts.orientation, _pair((1.86, -2.48, 0)), [ONE], 1e-3),
    "twist next to a backward axis": (orientation_parts.angle, _pair((0.3, np.pi - 0.01, 0.1)), [X, ONE, 0.0], 1e-5),
    "angle next to half a turn": (orientation_parts.angle, _pair((3.14, 0, 0.001)), [X, ONE, 3.1], 1e-3),
    "angle across half a turn": (orientation_parts.angle, _pair((np.pi, 0, 0)), [X, ONE, 3.1], 1e-3),
    "wheel that nearly lies flat": (nonholonomic_parts.wheel, _still((1e-2, 0, 0)), [Y, O, Y, 0.3], 1e-5),
}


@pytest.mark.parametrize("name", NEAR)
def test_rows_are_exact_near_singular_poses(name: str) -> None:
    part, (a, b), args, h = NEAR[name]
    check_derivatives(rows_function(part, args), a, b, holonomic=part is not nonholonomic_parts.wheel, h=h)


def test_swing_limits_are_smooth_at_zero_swing() -> None:
    """J shrinks with the swing, from whatever side: no direction is preferred."""
    for size in (1e-2, 1e-4, 1e-6):
        for turn in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
            a, b = _still((0, size * np.cos(turn), size * np.sin(turn)))
            row = rows_of(orientation_parts.swing_ellipse(a.body, b.body, ONE, ONE, 0.5, 0.6, 0.7, 0.8))[0]
            assert np.abs(row[2:]).max() <= 2.001 * size  # h/h_y² = 2
            assert abs(row[0] - 0.25) <= 1.001 * size**2 + 1e-16
