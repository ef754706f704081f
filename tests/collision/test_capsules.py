"""Capsules that are left out before their touches are computed: never one that touches, and nearly all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel.runner import COMPILED, FLOATS, Mode, Of, run
from poise.collision.collision_layout import Placed
from poise.collision.narrowphase.sphere_capsule import capsule_capsule, capsules_near
from poise.kernel.scalars import select

MODES = tuple(mode for mode in (FLOATS, *COMPILED) if str(mode) in ("floats", "f64", "f32", "f64x8", "f32x16"))


def turned(rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, 3, 3) rotations of any kind."""
    return np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]


def tilted(rng: np.random.Generator, turns: np.ndarray) -> np.ndarray:
    """The same with a small turn before it, from none at all to a tenth."""
    n = len(turns)
    angle = np.where(rng.random(n) < 0.1, 0.0, 10.0 ** rng.uniform(-10, -1, n))
    way = rng.normal(size=(n, 3))
    x, y, z = (way / np.linalg.norm(way, axis=1)[:, None]).T
    zero = np.zeros(n)
    K = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    s, c = np.sin(angle)[:, None, None], 2.0 * np.sin(0.5 * angle)[:, None, None] ** 2
    return turns @ (np.eye(3) + s * K + c * (K @ K))


def capsules(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 15) each: two capsules, half of them nearly parallel, up to 3 m apart, near and far from the origin."""
    rng = np.random.default_rng(7)
    R = turned(rng, n)
    S = np.where((np.arange(n) % 2 == 0)[:, None, None], tilted(rng, R), turned(rng, n))
    place = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-1, 1, (n, 1))
    halves = [np.column_stack([rng.uniform(0.02, 0.2, n), rng.uniform(0.0, 0.6, n), np.zeros(n)]) for _ in range(2)]
    other = place + rng.uniform(-1.5, 1.5, (n, 3))
    one = np.column_stack([place, R.reshape(n, 9), halves[0]])
    return one, np.column_stack([other, S.reshape(n, 9), halves[1]])


def _both(a: Any, b: Any, room: Any) -> Any:
    """The gap; whether capsules are near for a limit that is so much above it."""
    one, two, beside = capsule_capsule(a, b)
    gap = select(beside & (two.gap < one.gap), two.gap, one.gap)
    return gap, capsules_near(a, b, gap + room)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("share", [0.0, 1e-3, 1e-1])
def test_nobody_who_touches_is_left_out(mode: Mode, share: float) -> None:
    """With the gap itself for a limit everything counts on rounding."""
    a, b = capsules(4000)
    _, near = run(mode, _both, Of(Placed, a), Of(Placed, b), np.full(len(a), share))
    assert np.all(near == 1.0)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_who_is_farther_than_rounding_tells_is_left_out(mode: Mode) -> None:
    """What is allowed for doubt is 8 √eps of lengths below 5 m."""
    a, b = capsules(4000)
    doubt = 8.0 * np.sqrt(mode.eps) * 5.0
    gap, near = run(mode, _both, Of(Placed, a), Of(Placed, b), np.full(len(a), -2.0 * doubt))
    apart = gap > 2.0 * doubt
    assert np.count_nonzero(apart) > 2000
    assert np.all(near[apart] == 0.0)
