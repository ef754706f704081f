"""Rotations against scipy and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from poise.motion.rotations import (
    cross,
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
    rotate,
    skew,
    turn_jacobian,
    turn_jacobian_rate,
    turn_rates,
)

quats = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 1e-3).map(quat_normalize)
vectors = st.tuples(*[st.floats(-4, 4)] * 3).map(np.array)


def scipy_rotation(quat_wxyz) -> Rotation:
    return Rotation.from_quat(np.roll(quat_wxyz, -1))


@given(quats, quats, vectors)
def test_against_scipy(a, b, v):
    ra, rb = scipy_rotation(a), scipy_rotation(b)
    np.testing.assert_allclose(quat_to_matrix(a), ra.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(rotate(a, v), ra.apply(v), atol=1e-14)
    np.testing.assert_allclose(quat_to_matrix(quat_multiply(a, b)), (ra * rb).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(quat_to_matrix(quat_conjugate(a)), ra.inv().as_matrix(), atol=1e-14)
    found = quat_from_matrix(quat_to_matrix(a))
    assert found[0] >= 0
    np.testing.assert_allclose(found, np.sign(found @ a) * a, atol=1e-14)


@pytest.mark.parametrize("axis", np.eye(3).tolist())
def test_half_turns_from_matrices(axis):
    quat = np.array((0.0, *axis))
    assert abs(quat_from_matrix(quat_to_matrix(quat)) @ quat) == pytest.approx(1.0)


@given(vectors.filter(lambda v: np.linalg.norm(v) < 3.1))
def test_exponential_and_logarithm(v):
    np.testing.assert_allclose(quat_log(quat_exp(v)), v, atol=1e-14)
    np.testing.assert_allclose(quat_log(-quat_exp(v)), v, atol=1e-14)
    np.testing.assert_allclose(quat_to_matrix(quat_exp(v)), Rotation.from_rotvec(v).as_matrix(), atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 0.99999e-4, 1.00001e-4, 0.1])
def test_small_angles_keep_their_digits(angle):
    vector = np.array((0.6, 0.0, 0.8)) * angle
    np.testing.assert_allclose(quat_log(quat_exp(vector)), vector, rtol=1e-12, atol=0)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e200])
def test_normalizing_any_length(scale):
    np.testing.assert_allclose(quat_normalize(np.array((1, 2, 3, 4)) * scale), np.array((1, 2, 3, 4)) / 30**0.5)


def test_broadcasting():
    rng = np.random.default_rng(0)
    a, b, v = quat_normalize(rng.normal(size=(5, 4))), quat_normalize(rng.normal(size=(5, 4))), rng.normal(size=(5, 3))
    for k in range(5):
        np.testing.assert_array_equal(quat_multiply(a, b)[k], quat_multiply(a[k], b[k]))
        np.testing.assert_array_equal(quat_multiply(a[0], b)[k], quat_multiply(a[0], b[k]))
        np.testing.assert_allclose(rotate(a, v)[k], rotate(a[k], v[k]), atol=1e-15)
        np.testing.assert_allclose(quat_log(a)[k], quat_log(a[k]), atol=1e-15)


@given(vectors, vectors)
def test_cross_products(a, b):
    np.testing.assert_array_equal(cross(a, b), np.cross(a, b))
    np.testing.assert_allclose(skew(a) @ b, np.cross(a, b), atol=1e-14)


@given(vectors, vectors, vectors)
def test_rates_of_a_rotation_vector(turn, rate, acceleration):
    """ω and its rate against central differences along r + ṙ t + r̈ t²/2; errors of order h²."""
    h = 1e-4
    curve = [turn + rate * t + 0.5 * acceleration * t * t for t in (-h, 0.0, h)]
    behind, now, ahead = (quat_exp(r) for r in curve)
    spin, spin_rate = turn_rates(turn, rate, acceleration)
    half_back = quat_log(quat_multiply(quat_conjugate(now), behind))
    half_on = quat_log(quat_multiply(quat_conjugate(now), ahead))
    np.testing.assert_allclose(spin, (half_on - half_back) / (2 * h), atol=1e-5)
    # seen from the present orientation, the second derivative of the rotation vector is that of the rotation
    np.testing.assert_allclose(spin_rate, (half_on + half_back) / h**2, atol=1e-4)


@pytest.mark.parametrize("length", [0.0, 1e-9, 0.999999, 1.000001, 3.0, 6.0])
def test_jacobian_and_its_rate(length):
    """The series and the closed form meet at 1 rad."""
    turn, rate = np.array((0.6, 0.48, 0.64)) * length, np.array((0.3, -0.5, 0.7))
    h = 1e-6
    numeric = (turn_jacobian(turn + h * rate) - turn_jacobian(turn - h * rate)) / (2 * h)
    np.testing.assert_allclose(turn_jacobian_rate(turn, rate), numeric, atol=1e-9)
    np.testing.assert_allclose(turn_jacobian(turn) @ turn, turn, atol=1e-14)
