"""Functions of scalars against references of higher precision, in every way that a formula can run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from kernel.reference import atan2_ref, near_quarter_turns, sin_cos, ulps
from kernel.runner import ARRAYS, ARRAYS32, COMPILED, MODES, Mode, run
from poise.kernel.scalars import (
    PI,
    all_lanes,
    any_lane,
    atan2,
    cos,
    fabs,
    floor,
    get_lane,
    maximum,
    minimum,
    rint,
    select,
    set_lane,
    sin,
    sincos,
    spread,
    sqrt,
    sum_lanes,
    to_int,
    to_real,
    zero,
)

MANY = (ARRAYS, ARRAYS32, *COMPILED)
NAN, INF = float("nan"), float("inf")
# Each result is rounded some five times on the way: the angle's rest, the polynomial, and the last sum, which alone
# costs half a unit. Three units leave room for the rest of an angle of 1e4 that is rounded before it is used.
SINE_ULPS = 3.0
# three halvings of the angle, each with a root, a sum and a quotient (1.3 units), then the series
ATAN_ULPS = 6.0


def _seed() -> np.random.Generator:
    return np.random.default_rng(20)


@functools.cache
def _angles(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Angles to 1e4, near multiples of π/2 and anywhere, with their sines and cosines."""
    rng = _seed()
    size = np.concatenate([rng.uniform(0, 1e4, 2500), 10.0 ** rng.uniform(-8, 4, 1500), rng.uniform(0, 7, 1000)])
    turns = near_quarter_turns(6366, dtype)
    picked = np.concatenate([turns[:300], turns[rng.integers(0, len(turns), 2500)]])
    x = np.concatenate([size * rng.choice([-1.0, 1.0], len(size)), picked, -picked[:500]])
    x = x.astype(dtype).astype(np.float64)
    return x, sin_cos(x)


def _sincos(x: Any) -> Any:
    return (*sincos(x), sin(x), cos(x))


@pytest.mark.parametrize("mode", MANY, ids=str)
def test_sine_and_cosine_are_good_to_the_last_places(mode: Mode) -> None:
    x, reference = _angles(mode.dtype)
    s, c, s1, c1 = run(mode, _sincos, x)
    assert ulps(s, reference[:, 0], mode.dtype).max() <= SINE_ULPS
    assert ulps(c, reference[:, 1], mode.dtype).max() <= SINE_ULPS
    assert np.array_equal(s, s1)
    assert np.array_equal(c, c1)


@pytest.mark.parametrize("mode", [m for m in MANY if m.dtype is np.float64], ids=str)
def test_sine_and_cosine_hold_to_a_million_radians(mode: Mode) -> None:
    x = _seed().uniform(-1e6, 1e6, 2000)
    reference = sin_cos(x)
    s, c, *_ = run(mode, _sincos, x)
    assert ulps(s, reference[:, 0], mode.dtype).max() <= SINE_ULPS
    assert ulps(c, reference[:, 1], mode.dtype).max() <= SINE_ULPS


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_sine_and_cosine_of_special_angles(mode: Mode) -> None:
    tiny = np.array([0.0, -0.0, 1e-300, -1e-300, 5e-324, 1e-160, 1e-45, 1e-40, 1e-30, 1e-12])
    s, c, *_ = run(mode, _sincos, tiny)
    assert np.array_equal(s, mode.round(tiny))
    assert np.all(c == 1.0)
    s, c, *_ = run(mode, _sincos, np.array([NAN, INF, -INF, 1.0]))
    assert np.all(np.isnan(s[:3]) & np.isnan(c[:3]))
    assert abs(s[3] - np.sin(1.0)) <= mode.eps
    angle = mode.round([PI, PI / 2, -PI, 2 * PI])
    reference = sin_cos(angle)
    s, c, *_ = run(mode, _sincos, angle)
    assert ulps(s, reference[:, 0], mode.dtype).max() <= SINE_ULPS
    assert ulps(c, reference[:, 1], mode.dtype).max() <= SINE_ULPS


def _atan2(y: Any, x: Any) -> Any:
    return atan2(y, x)


@pytest.mark.parametrize("mode", MANY, ids=str)
def test_atan2_of_points_all_around(mode: Mode) -> None:
    rng = _seed()
    y = mode.round(rng.normal(size=2500) * 10.0 ** rng.uniform(-6, 6, 2500))
    x = mode.round(rng.normal(size=2500) * 10.0 ** rng.uniform(-6, 6, 2500))
    assert ulps(run(mode, _atan2, y, x), atan2_ref(y, x), mode.dtype).max() <= ATAN_ULPS


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_atan2_of_special_points(mode: Mode) -> None:
    tiny = float(np.finfo(mode.dtype).smallest_subnormal) * 8
    points = [(0, 0), (0, 1), (1, 0), (-1, 0), (0, -1), (1, 1), (-1, -1), (tiny, tiny), (tiny, -tiny), (0, tiny)]
    points += [(INF, 1), (-INF, 1), (1, INF), (1, -INF), (INF, INF), (-INF, -INF), (INF, -INF), (tiny, 1), (1, tiny)]
    y, x = np.array(points, float).T
    expected = np.arctan2(y, x)
    assert np.allclose(run(mode, _atan2, y, x), expected, rtol=ATAN_ULPS * mode.eps, atol=0)
    y, x = np.array([(NAN, 1), (1, NAN), (NAN, NAN), (NAN, 0), (0, NAN), (INF, NAN)]).T
    assert np.all(np.isnan(run(mode, _atan2, y, x)))


def _roots(x: Any) -> Any:
    return 1.0 / sqrt(x), x / sqrt(x), 1.0 / x


@pytest.mark.parametrize("mode", MODES[1:], ids=str)  # Python's own floats refuse to be divided by nought
def test_reciprocal_roots_are_divisions(mode: Mode) -> None:
    tiny = float(np.finfo(mode.dtype).smallest_subnormal)
    x = np.array([4.0, 2.0, 3.0, 1e-30, 1e30, tiny, 100 * tiny, INF, 0.0]).astype(mode.dtype)
    inverse, root, reciprocal = run(mode, _roots, x)
    with np.errstate(all="ignore"):
        one = mode.dtype(1)
        assert np.array_equal(inverse, one / np.sqrt(x))  # an estimate would be NaN for 0 and ∞
        assert np.array_equal(root, x / np.sqrt(x), equal_nan=True)
        assert np.array_equal(reciprocal, one / x)


def _simple(a: Any, b: Any) -> Any:
    return sqrt(fabs(a)), rint(a), floor(a), fabs(a), minimum(a, b), maximum(a, b), a + b, a - b, a * b, a / b, -a


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_arithmetic_is_that_of_the_type(mode: Mode) -> None:
    rng = _seed()
    a = np.concatenate([rng.normal(size=500) * 100, np.arange(-8, 8) / 2, [0.0, 1e-310, 1e-40, 1e30]])
    b = rng.permutation(a) + 0.25
    a, b = a.astype(mode.dtype), b.astype(mode.dtype)
    expected = [np.sqrt(np.abs(a)), np.rint(a), np.floor(a), np.abs(a), np.minimum(a, b), np.maximum(a, b)]
    expected += [a + b, a - b, a * b, a / b, -a]
    for found, right in zip(run(mode, _simple, a, b), expected, strict=True):
        assert np.array_equal(found, right)  # each is one correctly rounded operation


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_nan_and_infinity_mean_themselves(mode: Mode) -> None:
    a = np.array([NAN, INF, -INF, 1.0, NAN, INF])
    b = np.array([1.0, 1.0, 1.0, INF, INF, INF])
    root, nearest, low, size, least, most, total, rest, product, ratio, minus = run(mode, _simple, a, b)
    for found in (root, nearest, low, size, total, product, minus):
        assert np.array_equal(np.isnan(found), np.isnan(a))
    assert np.array_equal(least, [1, 1, -INF, 1, INF, INF])  # b where they do not compare
    assert np.array_equal(most, [1, INF, 1, INF, INF, INF])
    assert np.isnan(rest[5])
    assert np.isnan(ratio[5])
    assert ratio[3] == 0.0


def _masks(a: Any, b: Any) -> Any:
    p, q = a > 0.0, b > 0.0
    yes, no = a == a, a != a
    return p & q, p | q, p ^ q, a < b, a <= b, a >= b, a == b, a != b, yes, no, p == q, p != q


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_masks_and_comparisons(mode: Mode) -> None:
    a, b = (m.ravel() for m in np.meshgrid([-1.0, 0.0, -0.0, 2.0, NAN, INF, -INF], [-1.0, 0.0, 2.0, NAN, INF]))
    p, q = a > 0, b > 0
    expected = [p & q, p | q, p ^ q, a < b, a <= b, a >= b, a == b, a != b, a == a, a != a, p == q, p != q]
    for found, right in zip(run(mode, _masks, a, b), expected, strict=True):
        assert np.array_equal(found, right.astype(float))


def _inverted(a: Any, b: Any) -> Any:
    return ~(a > b), ~(a == a) | (b < 0.0)


@pytest.mark.parametrize("mode", MODES[1:], ids=str)
def test_a_mask_can_be_inverted(mode: Mode) -> None:  # of Python's own bool ~ makes an integer: not for formulas
    a, b = np.array([1.0, 2.0, NAN, -1.0]), np.array([2.0, 1.0, 0.0, -1.0])
    found = run(mode, _inverted, a, b)
    assert np.array_equal(found[0], [1, 0, 1, 1])
    assert np.array_equal(found[1], [0, 0, 1, 1])


def _selected(a: Any, b: Any) -> Any:
    yes = a > b
    return select(yes, a, b), select(yes, 1.0, b), select(yes, a, 2.0), select(any_lane(a == a), a, b)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_select_takes_one_side_or_the_other(mode: Mode) -> None:
    a, b = mode.round([1.0, 2.5, NAN, INF, 0.0]), mode.round([2.0, 1.5, 3.5, NAN, -INF])
    yes = a > b
    both, first, second, _ = run(mode, _selected, a, b)
    assert np.array_equal(both, np.where(yes, a, b), equal_nan=True)
    assert np.array_equal(first, np.where(yes, 1.0, b), equal_nan=True)
    assert np.array_equal(second, np.where(yes, a, 2.0), equal_nan=True)


def _over_lanes(x: Any) -> Any:
    one = zero(x) + 1.0
    some, every = any_lane(x > 0.0), all_lanes(x > 0.0)
    return select(some, one, zero(x)), select(every, one, zero(x))


@pytest.mark.parametrize("mode", COMPILED, ids=str)
def test_any_and_every_lane(mode: Mode) -> None:
    lanes = mode.width.lanes
    rows = np.concatenate([np.zeros((1, lanes)), np.ones((1, lanes)), np.eye(lanes), 1.0 - np.eye(lanes)])
    rows[rows == 0.0] = NAN
    some, every = run(mode, _over_lanes, rows.ravel())
    assert np.array_equal(some.reshape(rows.shape), np.repeat(np.any(rows > 0, axis=1)[:, None], lanes, axis=1))
    assert np.array_equal(every.reshape(rows.shape), np.repeat(np.all(rows > 0, axis=1)[:, None], lanes, axis=1))


def _first_and_last(x: Any) -> Any:
    last = x.type.width - 1 if hasattr(x, "type") else 0
    first = get_lane(x, 0)
    return spread(first, x) if hasattr(x, "type") else first, set_lane(x, last, 7.0), set_lane(x, 0, first + 1.0)


@pytest.mark.parametrize("mode", COMPILED, ids=str)
def test_one_lane_is_read_and_written_by_a_constant_number(mode: Mode) -> None:
    x = mode.round(_seed().normal(size=(3, mode.width.lanes)))
    first, last, more = (r.reshape(x.shape) for r in run(mode, _first_and_last, x.ravel()))
    assert np.array_equal(first, np.repeat(x[:, :1], mode.width.lanes, axis=1))
    expected = x.copy()
    expected[:, -1] = 7.0
    assert np.array_equal(last, expected)
    expected = x.astype(mode.dtype)
    expected[:, 0] += mode.dtype(1)
    assert np.array_equal(more, expected)


def _sum(x: Any) -> Any:
    return spread(sum_lanes(x), x)


@pytest.mark.parametrize("mode", COMPILED, ids=str)
def test_the_sum_of_all_lanes_is_that_of_halves(mode: Mode) -> None:
    """Each half is added to the other: the same roundings, whatever the width."""
    x = mode.round(_seed().normal(size=(5, mode.width.lanes)))
    expected = x.astype(mode.dtype)
    while (half := expected.shape[1] // 2) > 0:
        expected = expected[:, :half] + expected[:, half:]
    assert np.array_equal(run(mode, _sum, x.ravel()).reshape(x.shape), np.repeat(expected, mode.width.lanes, axis=1))
    assert sum_lanes(x[0]) == pytest.approx(x[0].sum(), rel=1e-14, abs=1e-14)
    assert sum_lanes(2.5) == 2.5


def _whole(x: Any) -> Any:
    return to_int(x), to_real(to_int(x), x), zero(x), spread(2.5, x)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_reals_become_integers_towards_zero(mode: Mode) -> None:
    x = np.array([0.0, 0.9, -0.9, 1.5, -1.5, 1e6 + 0.5, NAN, INF, -INF, 1e30, -1e30])
    limits = np.iinfo(np.int32 if mode.dtype is np.float32 else np.int64)
    whole, back, nothing, constant = run(mode, _whole, x)
    assert whole.tolist() == [0, 0, 0, 1, -1, 1000000, 0, limits.max, limits.min, limits.max, limits.min]
    assert np.array_equal(back[:7], [0, 0, 0, 1, -1, 1000000, 0])
    assert np.all(nothing == 0.0)
    assert np.all(constant == 2.5)


def _integers(a: Any, b: Any, x: Any) -> Any:
    numbers = a + b, a - b, a * b, -a, a << 3, a >> 2, a & b, a | b, a ^ b, ~a, a + 1, 2 * b, select(x > 0.0, a, b)
    return (*numbers, a < b, a == b, a >= 3, to_real(a, x) + x)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_integers_of_each_lane(mode: Mode) -> None:
    rng = _seed()
    a, b = rng.integers(-1000, 1000, 200), rng.integers(-1000, 1000, 200)
    b[:20] = a[:20]
    x = mode.round(rng.normal(size=200))
    right = [a + b, a - b, a * b, -a, a << 3, a >> 2, a & b, a | b, a ^ b, ~a, a + 1, 2 * b, np.where(x > 0, a, b)]
    right += [a < b, a == b, a >= 3]
    found = run(mode, _integers, a, b, x)
    for result, expected in zip(found[:-1], right, strict=True):
        assert np.array_equal(result, expected)
    assert np.array_equal(found[-1].astype(mode.dtype), a.astype(mode.dtype) + x.astype(mode.dtype))


def _not_reassociated(a: Any, b: Any) -> Any:
    return a + b - a, (a + b) + (-a), a * b / b - a, (b + a) - b - a


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_sums_keep_their_order(mode: Mode) -> None:
    a, b = np.array([1e30, 1e30, 1.0]), np.array([1.0, -3.0, 1e-30])
    first, second, *_ = run(mode, _not_reassociated, a, b)
    assert np.array_equal(first, [0, 0, 0])  # what is exact on paper is lost on the way, as written
    assert np.array_equal(second, [0, 0, 0])
