"""Vectors and matrices of three against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel.matrices import mat3, skew, sym3, times
from kernel.runner import COMPILED, MODES, Mode, Of, run
from poise.kernel import vec
from poise.kernel.scalars import get_lane, select, set_lane
from poise.kernel.vec import Mat3, Sym3, Vec3

N = 50


def _inputs(mode: Mode, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = {"a": (N, 3), "b": (N, 3), "M": (N, 9), "L": (N, 9), "S": (N, 6), "k": (N,)}
    return {name: mode.round(rng.uniform(-1, 1, size)) for name, size in sizes.items()}


def _all(a: Any, b: Any, M: Any, L: Any, S: Any, k: Any) -> Any:
    return (
        vec.dot(a, b),
        vec.cross(a, b),
        vec.norm(a),
        a + b,
        a - b,
        -a,
        a * k,
        k * a,
        2.0 * a,
        M @ a,
        M @ L,
        M @ S,
        S @ a,
        vec.transpose(M),
        vec.transpose_times(M, a),
        vec.outer(a, b),
        vec.square(a),
        vec.skew(a),
        vec.full(S),
        vec.symmetric(vec.full(S)),
        vec.rotate_sym(M, S),
        vec.point_inertia(k, a),
        vec.column0(M),
        vec.column1(M),
        vec.column2(M),
        vec.identity3(k),
        vec.zero3(k),
        M + L,
        S - S * k,
    )


def _expected(a: Any, b: Any, M: Any, L: Any, S: Any, k: Any) -> list[np.ndarray]:
    m, s, kk = mat3(M), sym3(S), k[:, None]
    upper = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
    dots = np.einsum("ni,ni->n", a, b)
    around = k[:, None, None] * (np.einsum("ni,ni->n", a, a)[:, None, None] * np.eye(3) - a[:, :, None] * a[:, None, :])
    turned = m @ s @ m.transpose(0, 2, 1)
    flat = [dots, np.cross(a, b), np.linalg.norm(a, axis=1), a + b, a - b, -a, a * kk, a * kk, 2 * a]
    flat += [times(m, a), (m @ mat3(L)).reshape(N, 9), (m @ s).reshape(N, 9), times(s, a)]
    flat += [m.transpose(0, 2, 1).reshape(N, 9), times(m.transpose(0, 2, 1), a)]
    flat += [(a[:, :, None] * b[:, None, :]).reshape(N, 9), (a[:, :, None] * a[:, None, :])[:, *upper]]
    flat += [skew(a).reshape(N, 9), s.reshape(N, 9), S, turned[:, *upper], around[:, *upper]]
    flat += [m[:, :, 0], m[:, :, 1], m[:, :, 2], np.tile(np.eye(3).ravel(), (N, 1)), np.zeros((N, 3))]
    return [*flat, M + L, S - S * kk]


def _args(x: dict[str, np.ndarray]) -> list[Any]:
    return [Of(Vec3, x["a"]), Of(Vec3, x["b"]), Of(Mat3, x["M"]), Of(Mat3, x["L"]), Of(Sym3, x["S"]), x["k"]]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_vectors_and_matrices(mode: Mode) -> None:
    x = _inputs(mode)
    expected = _expected(*x.values())
    found = run(mode, _all, *_args(x))
    for k, (result, right) in enumerate(zip(found, expected, strict=True)):
        # sums of at most nine products of numbers below 1, each rounded once or twice
        assert np.abs(result - right).max() <= 18 * mode.eps, f"result {k}"


@pytest.mark.parametrize("mode", COMPILED[1:], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_lanes_do_not_leak(mode: Mode, bad: float) -> None:
    x = _inputs(mode)
    clean = run(mode, _all, *_args(x))
    for sample in (0, mode.width.lanes - 1, 17):
        y = {name: array.copy() for name, array in x.items()}
        for array in y.values():
            array[sample] = bad
        others = np.arange(N) != sample
        for before, after in zip(clean, run(mode, _all, *_args(y)), strict=True):
            assert before[others].tobytes() == after[others].tobytes()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_zero_vectors_and_small_ones(mode: Mode) -> None:
    a = mode.round([[0, 0, 0], [1e-12, 0, 0], [3e-15, 4e-15, 0], [np.nan, 0, 0], [np.inf, 0, 0]])
    length = run(mode, _norm, Of(Vec3, a))
    assert length[0] == 0.0
    assert np.allclose(length[1:3], np.linalg.norm(a[1:3], axis=1), rtol=2 * mode.eps, atol=0)
    assert np.isnan(length[3])
    assert np.isinf(length[4])


def _norm(a: Any) -> Any:
    return vec.norm(a)


def _mixed(a: Any, b: Any, k: Any) -> Any:
    chosen = select(k > 0.0, a, b)
    constant = select(k > 0.0, a, Vec3(1.0, k, 0.0))
    lane = set_lane(a, 0, get_lane(b, 0))
    return chosen, constant, lane, Vec3(1.0, k, 2.0) + a


@pytest.mark.parametrize("mode", COMPILED, ids=str)
def test_values_are_selected_mixed_and_set_lane_by_lane(mode: Mode) -> None:
    x = _inputs(mode)
    a, b, k = x["a"], x["b"], x["k"]
    chosen, constant, lane, total = run(mode, _mixed, Of(Vec3, a), Of(Vec3, b), k)
    yes = (k > 0)[:, None]
    ones = np.ones(N)
    assert np.array_equal(chosen, np.where(yes, a, b))
    assert np.array_equal(constant, np.where(yes, a, np.stack([ones, k, 0 * ones], axis=1)))
    first = (np.arange(N) % mode.width.lanes == 0)[:, None]
    assert np.array_equal(lane, np.where(first, b, a))
    assert np.allclose(total, a + np.stack([ones, k, 2 * ones], axis=1), rtol=0, atol=2 * mode.eps)


def test_values_say_what_they_are() -> None:
    assert repr(Vec3(1.0, 2.0, 3.0)) == "Vec3(1.0, 2.0, 3.0)"
    assert list(Mat3.of(*range(9)).leaves()) == list(range(9))
    with pytest.raises(TypeError, match="Vec3 takes 3 values, not 2"):
        Vec3(1.0, 2.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        Vec3(1.0, 2.0, 3.0) + 1.0
    with pytest.raises(TypeError, match="unsupported operand"):
        Vec3(1.0, 2.0, 3.0) * Vec3(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        Sym3(*range(6)) @ Mat3(*range(9))
