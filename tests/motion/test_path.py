"""Paths: through their keys, smooth, with the derivatives that they claim."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from poise.motion import ConstantPath, FunctionPath, KeyedPath, OrbitPath, PathPoint, RotationCurve
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply, quat_to_matrix, rotate

FIELDS = ("position", "velocity", "acceleration", "angular_velocity", "angular_acceleration")


def distance(first: PathPoint, second: PathPoint) -> float:
    """Greatest difference of anything in two points; the sign of a quaternion does not count."""
    turn = quat_log(quat_multiply(quat_conjugate(first.quat_wxyz), second.quat_wxyz))
    return max(np.abs(turn).max(), *(np.abs(getattr(first, f) - getattr(second, f)).max() for f in FIELDS))


def check_derivatives(path, times, scale: float, h: float = 1e-3) -> None:
    """Velocities and accelerations against central differences of the pose, of fourth order in h.

    `scale` bounds the sixth derivative of the pose; rounding adds about ε/h² to the second difference.
    """
    numeric = FunctionPath(lambda t: (path(t).position, path(t).quat_wxyz), step=h)
    for time in times:
        exact, found = path(time), numeric(time)
        assert distance(exact, found) < scale * h**4 + 1e-8, time


def random_keys(seed: int, count: int = 6):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.uniform(0.5, 1.5, count)), rng.normal(size=(count, 3)), rng.normal(size=(count, 4))


def inside(times, h=1e-3, count=9):
    """Times away from the keys by more than a stencil, where only two derivatives are continuous."""
    return np.concatenate([np.linspace(a + 3 * h, b - 3 * h, count) for a, b in itertools.pairwise(times)])


@pytest.mark.parametrize("seed", range(4))
def test_derivatives(seed):
    times, positions, quats = random_keys(seed)
    # quintics over half a second with values of a few units: sixth derivatives of rotations reach some 10⁶
    check_derivatives(KeyedPath(times, positions, quats), inside(times), scale=1e6)


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_pose_velocity_and_acceleration_are_continuous(seed, loop):
    times, positions, quats = random_keys(seed)
    if loop:
        positions[-1], quats[-1] = positions[0], -quats[0]
    path = KeyedPath(times, positions, quats, loop=loop)
    for time in (*times, times[0] + 5 * (times[-1] - times[0])):
        gaps = [distance(path(time - h), path(time + h)) for h in (1e-5, 1e-7)]
        # what is continuous and smooth on either side closes in proportion to the step
        assert gaps[1] < 0.02 * gaps[0] + 1e-9


@pytest.mark.parametrize("loop", [False, True])
def test_keys_are_met(loop):
    times, positions, quats = random_keys(7)
    if loop:
        positions[-1], quats[-1] = positions[0], quats[0]
    path = KeyedPath(times, positions, quats, loop=loop)
    for time, position, quat in zip(times, positions, quats, strict=True):
        point = path(time)
        np.testing.assert_allclose(point.position, position, atol=1e-12)
        assert abs(point.quat_wxyz @ quat) == pytest.approx(np.linalg.norm(quat), rel=1e-12)


def test_still_outside_the_range():
    times, positions, quats = random_keys(2)
    path = KeyedPath(times, positions, quats)
    for time, key in ((-100.0, 0), (times[0], 0), (times[-1], -1), (1e9, -1)):
        point = path(time)
        assert point.position.tolist() == positions[key].tolist()
        assert not any(getattr(point, f).any() for f in FIELDS[1:])


def test_inner_pieces_are_the_clamped_cubic_spline():
    times, positions, _ = random_keys(3)
    spline = CubicSpline(times, positions, bc_type="clamped")
    path = KeyedPath(times, positions)
    for time in np.linspace(times[1], times[-2], 50):
        point = path(time)
        np.testing.assert_allclose(point.position, spline(time), atol=1e-12)
        np.testing.assert_allclose(point.velocity, spline(time, 1), atol=1e-11)
        np.testing.assert_allclose(point.acceleration, spline(time, 2), atol=1e-10)


def test_loop_is_the_periodic_cubic_spline():
    times, positions, _ = random_keys(4)
    positions[-1] = positions[0]
    spline = CubicSpline(times, positions, bc_type="periodic")
    path = KeyedPath(times, positions, loop=True)
    period = times[-1] - times[0]
    for time in np.linspace(times[0], times[-1], 50):
        for turns in (-3, 0, 2):
            point = path(time + turns * period)
            np.testing.assert_allclose(point.position, spline(time), atol=1e-11)
            np.testing.assert_allclose(point.acceleration, spline(time, 2), atol=1e-9)


def test_even_keys_give_an_even_turn():
    """A constant spin sampled at keys comes back as that spin, to the ends where these are free."""
    times = np.arange(6.0)
    axis = np.array((0.6, 0.0, 0.8))
    turned = RotationCurve(times, quat_exp(times[:, None] * axis), ends="free")(np.linspace(0.0, 5.0, 51))
    np.testing.assert_allclose(turned.angular_velocity, np.tile(axis, (51, 1)), atol=1e-12)
    np.testing.assert_allclose(turned.angular_acceleration, np.zeros((51, 3)), atol=1e-11)


def test_the_shorter_way_is_taken():
    quats = np.array([(1.0, 0, 0, 0), (-np.cos(0.1), 0, 0, -np.sin(0.1))])
    path = KeyedPath([0, 1], np.zeros((2, 3)), quats)
    turned = [np.linalg.norm(quat_log(path(t).quat_wxyz)) for t in np.linspace(0, 1, 20)]
    assert max(turned) == pytest.approx(0.2, abs=1e-12)


def test_half_turn_between_keys():
    """At π the way is not unique, but it is taken, smoothly."""
    path = KeyedPath([0, 1, 2], np.zeros((3, 3)), [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)])
    check_derivatives(path, inside([0.0, 1.0, 2.0]), scale=1e6)


def test_one_key_and_two_keys():
    point = KeyedPath([1.0], [(1, 2, 3)], [(0, 2, 0, 0)])(5.0)
    assert point.position.tolist() == [1, 2, 3]
    assert point.quat_wxyz.tolist() == [0, 1, 0, 0]
    path = KeyedPath([0, 2], [(0, 0, 0), (1, 0, 0)])
    assert path(1.0).position == pytest.approx((0.5, 0, 0))
    # rest to rest by a quintic: 15/8 of the mean speed in the middle
    assert path(1.0).velocity == pytest.approx((0.5 * 15 / 8, 0, 0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 2.0), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_quaternions_stay_unit(gaps, seed):
    rng = np.random.default_rng(seed)
    times = np.cumsum(gaps)
    path = KeyedPath(times, rng.normal(size=(len(times), 3)), rng.normal(size=(len(times), 4)))
    for time in np.linspace(times[0] - 0.5, times[-1] + 0.5, 25):
        point = path(time)
        assert np.linalg.norm(point.quat_wxyz) == pytest.approx(1.0, abs=1e-12)
        assert all(np.isfinite(getattr(point, f)).all() for f in FIELDS)


def test_keys_are_copied():
    positions = np.zeros((2, 3))
    path = KeyedPath([0, 1], positions)
    positions += 9.0
    for still in (path, ConstantPath()):
        point = still(-1.0)
        assert not point.position.any()
        point.position[:] = 1.0
        assert not still(-1.0).position.any()


def test_orbit():
    path = OrbitPath(start=(2, 0, 1), speed=3.0, center=(1, 0, 1), axis=(0, 0, 2), quat_wxyz=(1, 1, 0, 0))
    check_derivatives(path, np.linspace(-1, 2, 7), scale=3.0**6)
    for time in (0.0, 0.7, 5.0):
        point = path(time)
        assert np.linalg.norm(point.position - (1, 0, 1)) == pytest.approx(1.0)
        assert np.linalg.norm(point.velocity) == pytest.approx(3.0)
        assert np.linalg.norm(point.acceleration) == pytest.approx(9.0)
        np.testing.assert_allclose(quat_to_matrix(point.quat_wxyz) @ point.angular_velocity, (0, 0, 3), atol=1e-14)


def test_function_path_of_known_motion():
    """x = sin t and a turn of t² about x."""
    path = FunctionPath(lambda t: ((np.sin(t), 0, 0), quat_exp(np.array((t * t, 0, 0)))))
    point = path(0.5)
    np.testing.assert_allclose(point.velocity, (np.cos(0.5), 0, 0), atol=1e-11)
    np.testing.assert_allclose(point.acceleration, (-np.sin(0.5), 0, 0), atol=1e-8)
    np.testing.assert_allclose(point.angular_velocity, (1.0, 0, 0), atol=1e-11)
    np.testing.assert_allclose(point.angular_acceleration, (2.0, 0, 0), atol=1e-8)


@pytest.mark.parametrize(("loop", "ends"), [(False, "still"), (False, "free"), (True, "still")])
def test_about_one_axis_the_curve_is_the_spline_of_the_angle(loop, ends):
    """There turns add up, so that spins at the keys are those of the cubic spline."""
    steps, turns = np.array((0.5, 1.3, 0.4, 0.9)), np.array((0.3, -0.8, 1.1, 0.2))
    if loop:
        turns[-1] = -turns[:-1].sum()
    times, angles = np.concatenate(([2.0], 2.0 + np.cumsum(steps))), np.concatenate(([0.0], np.cumsum(turns)))
    axis = np.array((0.0, 0.6, 0.8))
    curve = RotationCurve(times, quat_exp(angles[:, None] * axis), loop=loop, ends=ends)
    bounds = "periodic" if loop else {"still": "clamped", "free": "not-a-knot"}[ends]
    spline = CubicSpline(times, np.where(np.arange(5) == 4, angles[0], angles) if loop else angles, bc_type=bounds)
    moments = times if ends == "still" and not loop else np.linspace(2.0, times[-1] - 1e-9, 40)
    inner = (moments > times[0]) & (moments < times[-1]) | (ends == "free") | loop
    found = curve(moments)
    np.testing.assert_allclose(found.angular_velocity, spline(moments, 1)[:, None] * axis, atol=1e-10)
    np.testing.assert_allclose(found.angular_acceleration[inner], spline(moments, 2)[inner, None] * axis, atol=1e-9)


def tumbling(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotations about axes that move, exp(a) exp(b), with velocities and accelerations in their own axes."""
    a, da, dda = (
        np.stack((f, 0.0 * f, 0.0 * f), axis=1)
        for f in (np.sin(2 * times), 2 * np.cos(2 * times), -4 * np.sin(2 * times))
    )
    b, db, ddb = (np.stack((0.0 * f, f, 0.0 * f), axis=1) for f in (times**2, 2 * times, 2.0 + 0.0 * times))
    back = quat_conjugate(quat_exp(b))
    carried = rotate(back, da)
    return quat_multiply(quat_exp(a), quat_exp(b)), carried + db, rotate(back, dda) + ddb - np.cross(db, carried)


@pytest.mark.parametrize("uneven", [0.0, 0.3])
def test_curves_through_a_tumbling_body_are_of_the_order_of_splines(uneven):
    """Fourth order in the rotation, third in its velocity, second in its acceleration; all the way to free ends."""
    errors = []
    for count in (21, 41, 81):
        times = np.linspace(0.0, 2.0, count)
        times[1:-1] += uneven * np.diff(times)[0] * np.sin(7.0 * times[1:-1])
        curve = RotationCurve(times, tumbling(times)[0], ends="free")
        moments = np.linspace(0.0, 2.0, 333)
        quats, spins, rates = tumbling(moments)
        found = curve(moments)
        off = quat_log(quat_multiply(quat_conjugate(quats), found.quat_wxyz))
        errors.append(
            [np.abs(part).max() for part in (off, found.angular_velocity - spins, found.angular_acceleration - rates)]
        )
    for order, first, second, third in zip((4.0, 3.0, 2.0), *errors, strict=True):
        assert np.log2(second / third) > order - 0.4, (order, first, second, third)


def test_keys_that_are_far_apart_turn_smoothly():
    """Half turns about changing axes: the curve is still one that goes on with its velocity and acceleration."""
    quats = np.array([(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0.6, 0, 0, 0.8), (0, 0.6, 0.8, 0)], float)
    curve = RotationCurve(np.arange(5.0), quats)
    for key in (1.0, 2.0, 3.0):
        before, after = curve(key - 1e-9), curve(key + 1e-9)
        np.testing.assert_allclose(before.angular_velocity, after.angular_velocity, atol=1e-5)
        np.testing.assert_allclose(before.angular_acceleration, after.angular_acceleration, atol=1e-5)
    assert np.isfinite(curve(np.linspace(0.0, 4.0, 101)).angular_velocity).all()


def test_any_axis_but_none_will_do_for_an_orbit():
    for length in (1e-200, 1e200):
        point = OrbitPath((1, 0, 0), 2.0, axis=(0, 0, length))(0.0)
        np.testing.assert_array_equal(point.velocity, (0, 2, 0))


NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KeyedPath([], []), r"times: must be a list of at least one time, found an array of shape \(0,\)"),
        (lambda: KeyedPath(0.0, [(0, 0, 0)]), "times: must be a list of at least one time"),
        (lambda: KeyedPath("abc", [(0, 0, 0)]), "times: must be numbers, found 'abc'"),
        (lambda: KeyedPath([0, NAN], np.zeros((2, 3))), "times: must be finite"),
        (
            lambda: KeyedPath([0, 1, 1], np.zeros((3, 3))),
            "times: must increase, found 1 s followed by 1 s at index 2",
        ),
        (lambda: KeyedPath([0, 2, 1], np.zeros((3, 3))), "times: must increase, found 2 s followed by 1 s at index 2"),
        (
            lambda: KeyedPath([0, 1], np.zeros((3, 3))),
            r"positions: must have the shape \(2, 3\), found \(3, 3\)",
        ),
        (lambda: KeyedPath([0], [(0, 0, NAN)]), "positions: must be finite, found nan"),
        (lambda: KeyedPath([0], [("a", 0, 0)]), "positions: must be numbers"),
        (
            lambda: KeyedPath([0], [(0, 0, 0)], [(1, 0, 0)]),
            r"quats_wxyz: must have the shape \(1, 4\), found \(1, 3\)",
        ),
        (
            lambda: KeyedPath([0, 1], np.zeros((2, 3)), [(1, 0, 0, 0), (0, 0, 0, 0)]),
            r"quats_wxyz: must be rotations \(w, x, y, z\), found \(0, 0, 0, 0\)",
        ),
        (lambda: KeyedPath([0, 1], np.zeros((2, 3)), loop=True), "loop: needs at least 3 keys, found 2"),
        (
            lambda: KeyedPath([0, 1, 2], [(0, 0, 0), (1, 0, 0), (2, 0, 0)], loop=True),
            "loop: the last pose must be the first, found them 2 m and 0 rad apart; repeat the first key at the end",
        ),
        (
            lambda: KeyedPath([0, 1, 2], np.zeros((3, 3)), [(1, 0, 0, 0), (0, 1, 0, 0), (1, 1e-4, 0, 0)], loop=True),
            "found them 0 m and 0.0002 rad apart",
        ),
        (
            lambda: KeyedPath([0, 1, 1 + 1e-13, 2], [(0, 0, 0), (1, 0, 0), (1e300, 0, 0), (0, 0, 0)]),
            "accelerations overflow from key . to key . in .* s; give it more time",
        ),
        (lambda: KeyedPath([0], [(0, 0, 0)])("noon"), "a number of seconds, found 'noon'"),
        (lambda: KeyedPath([0], [(0, 0, 0)])(NAN), "time: must be a finite number, found nan"),
        (lambda: ConstantPath((0, 0)), r"position: must have the shape \(3,\), found \(2,\)"),
        (lambda: ConstantPath((0, 0, 0), (0, 0, 0, 0)), "quat_wxyz: must be rotations"),
        (lambda: OrbitPath((1, 0, 0), 1.0, axis=(0, 0, 0)), "axis: must point somewhere"),
        (lambda: OrbitPath((1, 0, 0), NAN), "speed: must be finite, found nan"),
        (lambda: OrbitPath((1, 0, 0), "fast"), "speed: must be numbers, found 'fast'"),
        (lambda: FunctionPath(3), "pose: must be a function of time, found 3"),
        (lambda: FunctionPath(lambda t: ((0, 0, 0), (1, 0, 0, 0)), step=0.0), "step: must be more than 0, found 0"),
        (lambda: FunctionPath(lambda t: ((0, 0), (1, 0, 0, 0)))(0.0), "position: must have the shape"),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("loop", [False, True])
def test_position_and_rotation_alone_are_those_of_the_whole_point(loop: bool) -> None:
    rng = np.random.default_rng(6)
    places, quats = rng.normal(size=(5, 3)), quat_exp(rng.normal(size=(5, 3)))
    if loop:
        places[-1], quats[-1] = places[0], quats[0]
    path = KeyedPath([0.0, 0.5, 0.7, 2.0, 3.0], places, quats, loop=loop)
    for time in (-1.0, 0.0, 0.3, 0.7, 2.9, 3.0, 7.0):
        assert path.position(time) == pytest.approx(path(time).position, abs=1e-14)
        assert path.quat(time) == pytest.approx(path(time).quat_wxyz, abs=1e-14)
    single = KeyedPath([1.0], [(1, 2, 3)])
    assert single.position(5.0).tolist() == [1.0, 2.0, 3.0]
