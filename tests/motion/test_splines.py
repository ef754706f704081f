"""Curves through values and rotations: against SciPy, closed forms and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.spatial.transform import Rotation, Slerp

from poise.motion import RotationCurve, Spline
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, turn_derivatives, turn_rates

MOVES = ("smooth", "catmull_rom", "hermite", "monotone", "linear")
TURNS = ("smooth", "squad", "slerp")


def keys(seed: int, count: int = 9, even: bool = False):
    rng = np.random.default_rng(seed)
    steps = np.full(count, 0.7) if even else rng.uniform(0.4, 1.3, count)
    return np.cumsum(steps), rng.normal(size=(count, 2, 3))


def rotations(seed: int, count: int = 9, even: bool = False):
    times, values = keys(seed, count, even)
    return times, quat_exp(values)


def between(times, count=7):
    """Times inside the pieces, away from the keys."""
    share = np.linspace(0.03, 0.97, count)
    return (times[:-1, None] + share * np.diff(times)[:, None]).ravel()


def derivative(function, now, h=1e-4):
    """Central difference, with an error of order h⁴."""
    parts = [function(now + k * h) for k in (-2, -1, 1, 2)]
    return (parts[0] - 8 * parts[1] + 8 * parts[2] - parts[3]) / (12 * h)


@pytest.mark.parametrize("seed", range(3))
def test_smooth_curves_are_scipys_cubic_splines(seed):
    times, values = keys(seed)
    now = between(times)
    reference = CubicSpline(times, values)
    ours = Spline(times, values, ends="free")(now)
    for order, found in enumerate(ours):
        np.testing.assert_allclose(found, reference(now, order), atol=1e-11)
    values[-1] = values[0]
    reference = CubicSpline(times, values, bc_type="periodic")
    for order, found in enumerate(Spline(times, values, loop=True)(now + 3 * (times[-1] - times[0]))):
        np.testing.assert_allclose(found, reference(now, order), atol=1e-11)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_few_keys_with_free_ends(count):
    """Two make a line, three a parabola, four a cubic."""
    times = np.array([0.0, 0.4, 1.5, 2.0])[:count]
    cubic = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.25][:count])
    found = Spline(times, cubic(times), ends="free")(np.linspace(0, times[-1], 11))
    now = np.linspace(0, times[-1], 11)
    for order, part in enumerate(found):
        np.testing.assert_allclose(part, cubic.deriv(order)(now) if order else cubic(now), atol=1e-12)


def test_a_long_loop_needs_no_large_matrix():
    times = np.linspace(0.0, 2 * np.pi, 20001)
    found = Spline(times, np.stack((np.sin(times), np.cos(times)), 1), loop=True)([1.0, 7.0])
    # the error of a cubic spline is of order h⁴, that of its second derivative of order h²
    np.testing.assert_allclose(found.value[:, 0], np.sin([1.0, 7.0]), atol=1e-13)
    np.testing.assert_allclose(found.acceleration[:, 0], -np.sin([1.0, 7.0]), atol=1e-7)


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("ends", ["still", "free"])
def test_curves_go_through_their_keys_with_the_derivatives_that_they_claim(kind, loop, ends):
    times, values = keys(5)
    if loop:
        values[-1] = values[0]
    curve = Spline(times, values, kind, loop=loop, ends=ends, tension=0.3)
    np.testing.assert_allclose(curve(times).value, values, atol=1e-12)
    now = between(times)
    np.testing.assert_allclose(curve(now).velocity, derivative(lambda t: curve(t).value, now), atol=1e-9)
    np.testing.assert_allclose(curve(now).acceleration, derivative(lambda t: curve(t).velocity, now), atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "order"), [("smooth", 2), ("catmull_rom", 1), ("hermite", 1), ("monotone", 1), ("linear", 0)]
)
@pytest.mark.parametrize("loop", [False, True])
def test_continuity_at_keys(kind, order, loop):
    times, values = keys(6)
    if loop:
        values[-1] = values[0]
    curve = Spline(times, values, kind, loop=loop, ends="still", tension=0.5)
    eps = 1e-9
    before, after = curve(times - eps), curve(times + eps)
    for part in range(order + 1):
        # third derivatives of these keys are below 1e3
        np.testing.assert_allclose(before[part], after[part], atol=1e3 * 2 * eps * 10)


def test_catmull_rom_and_tension():
    times, values = keys(1, even=True)
    rates = (values[2:] - values[:-2]) / (times[2:] - times[:-2])[:, None, None]
    for kind, tension, factor in (("catmull_rom", 0.0, 1.0), ("hermite", 0.25, 0.75), ("hermite", 1.0, 0.0)):
        curve = Spline(times, values, kind, ends="free", tension=tension)
        np.testing.assert_allclose(curve(times[1:-1]).velocity, factor * rates, atol=1e-12)
        inner = CubicHermiteSpline(times[1:-1], values[1:-1], factor * rates)
        now = between(times[1:-1])
        np.testing.assert_allclose(curve(now).value, inner(now), atol=1e-12)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12), st.integers(0, 5), st.booleans())
def test_monotone_curves_stay_between_neighbours(values, seed, loop):
    times, _ = keys(seed, len(values))
    if loop:
        values[-1] = values[0]
    found = Spline(times, values, "monotone", loop=loop, ends="free")
    now = between(times, 25).reshape(-1, 25)
    curve = found(now).value
    low, high = np.minimum(values[:-1], values[1:]), np.maximum(values[:-1], values[1:])
    assert (curve >= low[:, None] - 1e-12).all()
    assert (curve <= high[:, None] + 1e-12).all()


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("loop", [False, True])
def test_rotations_go_through_their_keys_with_the_rates_that_they_claim(kind, loop):
    times, quats = rotations(7)
    if loop:
        quats[-1] = -quats[0]
    curve = RotationCurve(times, quats, kind, loop=loop, ends="free")
    assert np.abs(np.abs(np.sum(curve(times).quat_wxyz * quats, axis=-1)) - 1.0).max() < 1e-12
    now = between(times)
    found = curve(now)
    np.testing.assert_allclose(np.linalg.norm(found.quat_wxyz, axis=-1), 1.0, atol=1e-14)
    # seen from the present orientation, rotation vectors have the body's rates as their derivatives
    back = quat_conjugate(found.quat_wxyz)
    numeric = derivative(lambda t: quat_log(quat_multiply(back, curve(t).quat_wxyz)), now)
    np.testing.assert_allclose(found.angular_velocity, numeric, atol=1e-8)
    numeric = derivative(lambda t: curve(t).angular_velocity, now)
    np.testing.assert_allclose(found.angular_acceleration, numeric, atol=1e-7)


@pytest.mark.parametrize(("kind", "order"), [("smooth", 2), ("squad", 1), ("slerp", 0)])
@pytest.mark.parametrize("loop", [False, True])
def test_continuity_of_rotations(kind, order, loop):
    times, quats = rotations(8, even=True)
    if loop:
        quats[-1] = quats[0]
    curve = RotationCurve(times, quats, kind, loop=loop)
    eps = 1e-9
    at = times if loop else times[1:-1]
    before, after = curve(at - eps), curve(at + eps)
    turn = quat_log(quat_multiply(quat_conjugate(before.quat_wxyz), after.quat_wxyz))
    assert np.abs(turn).max() < 1e-6
    for part in range(1, order + 1):
        np.testing.assert_allclose(before[part], after[part], atol=1e-4)


def test_slerp_is_scipys():
    times, quats = rotations(9)
    reference = Slerp(times, Rotation.from_quat(quats[:, 0], scalar_first=True))
    now = between(times)
    found = RotationCurve(times, quats, "slerp")(now).quat_wxyz[:, 0]
    wanted = reference(now).as_quat(scalar_first=True)
    assert np.abs(np.abs(np.sum(found * wanted, axis=-1)) - 1.0).max() < 1e-14


@pytest.mark.parametrize("kind", TURNS)
def test_uniform_rotation_is_kept(kind):
    """Keys of a constant angular velocity give just that."""
    spin = np.array((0.3, -1.0, 0.5))
    times = np.linspace(0.0, 2.0, 9)
    curve = RotationCurve(times, quat_exp(times[:, None] * spin), kind, ends="free")
    found = curve(between(times))
    np.testing.assert_allclose(found.angular_velocity, np.tile(spin, (len(found.quat_wxyz), 1)), atol=1e-12)
    np.testing.assert_allclose(found.angular_acceleration, 0.0, atol=1e-10)


def test_smooth_rotations_converge():
    """Through keys of a known motion the error falls as the cube of the step at least."""

    def motion(t):
        return np.stack((np.sin(t), 0.5 * np.cos(2 * t), 0.3 * t), -1)

    errors = []
    for count in (21, 41, 81):
        times = np.linspace(0.0, 4.0, count)
        now = np.linspace(0.5, 3.5, 301)
        found = RotationCurve(times, quat_exp(motion(times)), ends="free")(now).quat_wxyz
        errors.append(np.abs(quat_log(quat_multiply(quat_conjugate(quat_exp(motion(now))), found))).max())
    assert errors[0] / errors[1] > 7.0
    assert errors[1] / errors[2] > 7.0


def test_rates_of_rotation_vectors_there_and_back():
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(400, 3)) * rng.uniform(0.0, 1.7, (400, 1)) ** 4
    turn[:3] = 0.0
    spin, spin_rate = rng.normal(size=(2, 400, 3))
    rate, acceleration = turn_derivatives(turn, spin, spin_rate)
    again = turn_rates(turn, rate, acceleration)
    size = 1.0 + np.abs(rate).max(axis=1, keepdims=True) ** 2 + np.abs(acceleration).max(axis=1, keepdims=True)
    assert np.abs((again[0] - spin) / size).max() < 1e-13
    assert np.abs((again[1] - spin_rate) / size).max() < 1e-12
    for k in range(0, 400, 37):
        one = turn_rates(turn[k], rate[k], acceleration[k])
        np.testing.assert_allclose(one[0], again[0][k], atol=1e-12)
        np.testing.assert_allclose(one[1], again[1][k], atol=1e-11 * size[k, 0])


def test_outside_and_single_keys():
    curve = Spline([1.0, 2.0], [0.0, 4.0], "linear")
    assert [float(x) for x in curve(9.0)] == [4.0, 0.0, 0.0]
    assert [float(x) for x in curve(0.0)] == [0.0, 0.0, 0.0]
    assert float(curve(2.0).velocity) == 4.0
    assert Spline([1.0], [[1.0, 2.0]])([0.0, 5.0]).value.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    turn = RotationCurve([0.0], [(1, 0, 0, 0)])([0.0, 1.0])
    assert turn.quat_wxyz.shape == (2, 4)
    assert turn.angular_velocity.shape == (2, 3)


def test_many_times_are_taken_in_blocks_that_do_not_show():
    times, quats = rotations(3, count=40)
    curve = RotationCurve(times, np.repeat(quats, 20, axis=1))
    now = np.linspace(times[0], times[-1], 700)
    whole = curve(now)
    for k in range(0, 700, 53):
        for found, wanted in zip(curve(now[k]), whole, strict=True):
            np.testing.assert_array_equal(found, wanted[k])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spline([0, 1], [0, 1], "smoth"), r'kind: must be one of .*found .smoth., did you mean "smooth"\?'),
        (lambda: Spline([0, 1], [0, 1], ends="open"), "ends: must be one of"),
        (lambda: Spline([0, 1], [0, 1], tension=2.0), "tension: must be between 0 and 1, found 2"),
        (lambda: Spline([0, 1], [0, 1, 2]), r"values: must have the shape \(2, …\), found \(3,\)"),
        (lambda: Spline([0, 1], [0, np.nan]), "values: must be finite, found nan"),
        (lambda: Spline([0, 0], [0, 1]), "times: must increase"),
        (lambda: Spline([], []), "times: must be a list of at least one time"),
        (lambda: Spline([0, 1, 2], [0, 1, 2], loop=True), "loop: the last value must be the first, found them 2 apart"),
        (lambda: Spline([0, 1], [0, 0], loop=True), "loop: needs at least 3 keys, found 2"),
        (lambda: Spline([0, 5e-324], [0, 1]), "times: accelerations overflow from key 0 to key 1"),
        (lambda: Spline([0, 1], [0, 1])(np.inf), "times: must be finite"),
        (lambda: Spline([0, 1], [0, 1])("soon"), "times: must be numbers of seconds, found 'soon'"),
        (lambda: RotationCurve([0], [(0, 0, 0, 0)]), "found \\(0, 0, 0, 0\\)"),
        (lambda: RotationCurve([0], [(0, 0, 1)]), r"must be rotations \(w, x, y, z\), found the shape \(1, 3\)"),
        (lambda: RotationCurve([0, 1], np.eye(4)[:2], "lerp"), "kind: must be one of"),
        (lambda: RotationCurve([0, 1, 2], np.eye(4)[:3], loop=True), "loop: the last rotation must be the first"),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
