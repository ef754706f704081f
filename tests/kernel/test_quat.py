"""Rotations: quaternions, matrices, the exponential map and its inverse, at angles that are easy and that are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from kernel.matrices import mat3, skew, times
from kernel.runner import COMPILED, MODES, Mode, Of, run
from poise.kernel import quat as qt
from poise.kernel.quat import Quat
from poise.kernel.scalars import PI
from poise.kernel.vec import Mat3, Vec3

N = 60
ANGLES = [1e-12, 1e-8, 1e-5, 1e-3, 0.04, 0.0499999, 0.05, 0.0500001, 0.2, 0.2449, 0.245, 1.0, 2.0, 3.0, 3.1415]


def _wxyz(r: Rotation) -> np.ndarray:
    return np.roll(r.as_quat(), 1, axis=1)


def _scipy(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.roll(q, -1, axis=1))


def _inputs(mode: Mode) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    p, q = rng.normal(size=(2, N, 4))
    unit = [mode.round(x / np.linalg.norm(x, axis=1)[:, None]) for x in (p, q)]
    return {"p": unit[0], "q": unit[1], "v": mode.round(rng.uniform(-1, 1, (N, 3)))}


def _products(p: Any, q: Any, v: Any) -> Any:
    return p @ q, qt.conjugate(p), qt.rotation(p), qt.rotate(p, v), qt.normalize(p * 3.5), p @ qt.conjugate(p)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_products_and_rotations(mode: Mode) -> None:
    x = _inputs(mode)
    args = [Of(Quat, x["p"]), Of(Quat, x["q"]), Of(Vec3, x["v"])]
    product, turned_back, matrix, turned, unit, one = run(mode, _products, *args)
    right = _wxyz(_scipy(x["p"]) * _scipy(x["q"]))
    right *= np.sign(np.einsum("ni,ni->n", right, product))[:, None]
    tolerance = 12 * mode.eps  # inputs have unit length to half an eps a part, and scipy makes them exact
    assert np.abs(product - right).max() <= tolerance
    assert np.array_equal(turned_back, x["p"] * [1, -1, -1, -1])
    assert np.abs(mat3(matrix) - _scipy(x["p"]).as_matrix()).max() <= tolerance
    assert np.abs(turned - _scipy(x["p"]).apply(x["v"])).max() <= tolerance
    assert np.abs(turned - times(mat3(matrix), x["v"])).max() <= tolerance
    assert np.abs(np.linalg.norm(unit, axis=1) - 1).max() <= 3 * mode.eps
    assert np.abs(one - [1, 0, 0, 0]).max() <= tolerance


def _from_matrix(m: Any) -> Any:
    return qt.quaternion(m)


def _hard_rotations() -> Rotation:
    """Random ones, half turns about axes and diagonals and nearly so: every branch decides somewhere."""
    rng = np.random.default_rng(6)
    axes = np.concatenate([np.eye(3), -np.eye(3), [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [1, -1, 1]]])
    axes = axes / np.linalg.norm(axes, axis=1)[:, None]
    near = [Rotation.from_rotvec(axes * angle) for angle in (PI, PI - 1e-9, PI - 1e-4, PI / 2, 1e-9, 0.0)]
    return Rotation.concatenate([Rotation.from_quat(rng.normal(size=(N, 4))), *near])


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_matrix_gives_back_its_quaternion_in_every_branch(mode: Mode) -> None:
    exact = _hard_rotations()
    matrix = mode.round(exact.as_matrix().reshape(-1, 9))
    q = run(mode, _from_matrix, Of(Mat3, matrix))
    right = _wxyz(exact)
    assert {0, 1, 2, 3} == set(np.abs(right).argmax(axis=1))
    assert np.all(q[:, 0] >= 0)
    assert np.abs(np.linalg.norm(q, axis=1) - 1).max() <= 3 * mode.eps
    assert np.abs(np.abs(np.einsum("ni,ni->n", q, right)) - 1).max() <= 8 * mode.eps
    assert np.abs(mat3(run(mode, _matrix, Of(Quat, q))) - exact.as_matrix()).max() <= 8 * mode.eps


def _matrix(q: Any) -> Any:
    return qt.rotation(q)


def _exp_log(phi: Any) -> Any:
    q = qt.exp_rotation(phi)
    return q, qt.log_rotation(q), qt.log_rotation(-q), qt.log_rotation(q * 2.5)


def _vectors(mode: Mode, angles: list[float], seed: int = 7) -> np.ndarray:
    axes = np.random.default_rng(seed).normal(size=(len(angles), 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return mode.round(axes * np.array(angles)[:, None])


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_exponential_and_logarithm_undo_each_other(mode: Mode) -> None:
    phi = _vectors(mode, ANGLES * 4)
    size = np.linalg.norm(phi, axis=1)
    q, *logs = run(mode, _exp_log, Of(Vec3, phi))
    right = np.concatenate([np.cos(size / 2)[:, None], phi * (np.sin(size / 2) / size)[:, None]], axis=1)
    assert np.abs(q - right).max() <= 4 * mode.eps
    assert np.abs(q[:, 1:] / right[:, 1:] - 1).max() <= 8 * mode.eps  # small ones to the last places too
    for log in logs:
        assert np.all(np.linalg.norm(log - phi, axis=1) <= 16 * mode.eps * size)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_exponential_of_many_turns(mode: Mode) -> None:
    phi = _vectors(mode, [7.0, 100.0, 1e3, 9.9e3, 1e4] * 8)
    size = np.linalg.norm(phi.astype(np.longdouble), axis=1)
    q, *_ = run(mode, _exp_log, Of(Vec3, phi))
    # the length of φ, rounded, is already a turn of |φ| eps away
    allowed = (4 + size.astype(float)) * mode.eps
    right = np.concatenate([np.cos(size / 2)[:, None], phi * (np.sin(size / 2) / size)[:, None]], axis=1)
    assert np.all(np.abs(q - right.astype(float)).max(axis=1) <= allowed)
    assert np.abs(np.linalg.norm(q, axis=1) - 1).max() <= 6 * mode.eps


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-160, 3e-162, 1e-30, 1e-24, 1e-20, 1e-8, 5e-324])
def test_the_smallest_rotations_are_exact(mode: Mode, angle: float) -> None:
    phi = mode.round([[angle, 0, 0], [0, -angle, 0], [angle, angle, -angle]])
    q, log, *_ = run(mode, _exp_log, Of(Vec3, phi))
    assert np.all(np.abs(q[:, 0] - 1) <= mode.eps)
    # half of the smallest number is nought
    least = float(np.finfo(mode.dtype).smallest_subnormal)
    assert np.allclose(q[:, 1:], phi / 2, rtol=4 * mode.eps, atol=least)
    assert np.allclose(log, phi, rtol=8 * mode.eps, atol=2 * least)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_half_turns(mode: Mode) -> None:
    q = mode.round([[0, 1, 0, 0], [-0.0, 0, 1, 0], [1e-9, 0, 0, 1], [-1e-9, 0, 0, 1], [0, 0.6, 0, 0.8], [-1, 0, 0, 0]])
    log = run(mode, _log, Of(Quat, q))
    assert np.abs(np.linalg.norm(log[:5], axis=1) - PI).max() <= 2e-9 + 6 * mode.eps
    assert np.abs(log[0] - [PI, 0, 0]).max() <= 6 * mode.eps
    assert log[2][2] > 0
    assert log[3][2] < 0  # just past the half turn is just short of one the other way
    assert np.all(log[5] == 0)
    phi = _vectors(mode, [PI, PI - 1e-7, float(np.nextafter(PI, 4)), float(np.nextafter(PI, 3))] * 3)
    back = run(mode, _exp_log, Of(Vec3, phi))[1]
    back *= np.sign(np.einsum("ni,ni->n", back, phi))[:, None]
    assert np.abs(back - phi).max() <= 16 * mode.eps


def _log(q: Any) -> Any:
    return qt.log_rotation(q)


def _normalize(q: Any) -> Any:
    return qt.normalize(q)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_zero_and_broken_quaternions(mode: Mode) -> None:
    nan, inf = np.nan, np.inf
    zeros = mode.round([[0, 0, 0, 0], [-0.0, 0, -0.0, 0]])
    assert np.array_equal(run(mode, _normalize, Of(Quat, zeros)), [[1, 0, 0, 0]] * 2)
    assert np.all(run(mode, _log, Of(Quat, zeros)) == 0)
    scales = np.array([1e-17, 1e-10, 1.0, 1e10, 1e17])[:, None] * [0.5, -0.5, 0.5, 0.5]
    assert np.allclose(run(mode, _normalize, Of(Quat, scales)), [0.5, -0.5, 0.5, 0.5], rtol=4 * mode.eps)
    broken = np.array([[nan, 0, 0, 0], [1, nan, 0, 0], [0, 0, 0, nan], [nan, 1, 0, 0]])
    assert np.all(np.isnan(run(mode, _normalize, Of(Quat, broken))))
    assert np.all(np.isnan(run(mode, _log, Of(Quat, broken))).any(axis=1))
    phi = np.array([[nan, 0, 0], [0, inf, 0], [0, 0, -inf]])
    assert np.all(np.isnan(run(mode, _exp_log, Of(Vec3, phi))[0]).any(axis=1))


def _rate(phi: Any, omega: Any) -> Any:
    return qt.exp_rate(phi, omega)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_rate_of_the_rotation_vector_in_closed_form(mode: Mode) -> None:
    angles = [0.0, *ANGLES, 4.0, 5.0, 6.0]
    phi = _vectors(mode, angles)
    omega = mode.round(np.random.default_rng(8).uniform(-1, 1, (len(angles), 3)))
    t = np.linalg.norm(phi, axis=1)
    t = np.where(t == 0, 1e-30, t)[:, None, None]
    W = skew(phi)
    # right Jacobian of the exponential map; its inverse turns ω into φ̇
    series = sum((-1) ** k * t ** (2 * k) / math.factorial(2 * k + 3) for k in range(10))
    third = np.where(t < 1, series, (t - np.sin(t)) / t**3)
    jacobian = np.eye(3) - 2 * np.sin(t / 2) ** 2 / t**2 * W + third * (W @ W)
    right = np.linalg.solve(jacobian, omega[:, :, None])[:, :, 0]
    # past the half turn θ/2 cot θ/2 changes by θ/(2 sin² θ/2) a radian, and so do its errors, here and there
    grown = np.where(t[:, 0, 0] > PI, t[:, 0, 0] / np.sin(t[:, 0, 0] / 2) ** 2, 1.0)
    error = np.abs(run(mode, _rate, Of(Vec3, phi), Of(Vec3, omega)) - right).max(axis=1)
    assert np.all(error <= (10 + 2 * grown) * mode.eps)


@pytest.mark.parametrize("mode", [m for m in MODES if m.dtype is np.float64], ids=str)
def test_rate_of_the_rotation_vector_by_differences(mode: Mode) -> None:
    phi = _vectors(mode, [1e-6, 0.1, 0.3, 1.0, 2.0, 3.0])
    omega = np.random.default_rng(9).uniform(-1, 1, phi.shape)
    h = 1e-5
    ahead = (Rotation.from_rotvec(phi) * Rotation.from_rotvec(omega * h)).as_rotvec()
    behind = (Rotation.from_rotvec(phi) * Rotation.from_rotvec(-omega * h)).as_rotvec()
    # central differences: h² from their order, eps/h from rounding
    assert np.abs(run(mode, _rate, Of(Vec3, phi), Of(Vec3, omega)) - (ahead - behind) / (2 * h)).max() <= 1e-9


def _about_axis(axis: Any, s: Any, c: Any) -> Any:
    return qt.axis_angle(axis, s, c)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_rotation_about_an_axis(mode: Mode) -> None:
    axes = np.random.default_rng(10).normal(size=(N, 3))
    axes = mode.round(axes / np.linalg.norm(axes, axis=1)[:, None])
    angle = np.linspace(-7, 7, N)
    matrix = run(mode, _about_axis, Of(Vec3, axes), np.sin(angle), np.cos(angle))
    assert np.abs(mat3(matrix) - Rotation.from_rotvec(axes * angle[:, None]).as_matrix()).max() <= 12 * mode.eps


@pytest.mark.parametrize("mode", COMPILED[1:], ids=str)
def test_lanes_do_not_leak(mode: Mode) -> None:
    phi = _vectors(mode, ANGLES * 3)
    clean = run(mode, _exp_log, Of(Vec3, phi))
    for sample, bad in ((0, np.nan), (mode.width.lanes - 1, np.inf), (9, 1e4), (20, 0.0)):
        other = phi.copy()
        other[sample] = bad
        kept = np.arange(len(phi)) != sample
        for before, after in zip(clean, run(mode, _exp_log, Of(Vec3, other)), strict=True):
            assert before[kept].tobytes() == after[kept].tobytes()
