"""Spatial motions, forces, inertias and transforms against 6 × 6 matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from kernel.matrices import articulated6, cross_motion6, force_transform, inertia6, mat3, motion_transform, sym3, times
from kernel.runner import COMPILED, MODES, Mode, Of, run
from poise.kernel import spatial as sp
from poise.kernel.vec import Mat3, Sym3, Vec3

N = 40


def _inputs(mode: Mode) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)

    def pose() -> np.ndarray:
        R = Rotation.from_quat(rng.normal(size=(N, 4))).as_matrix().reshape(N, 9)
        return np.concatenate([R, rng.uniform(-1, 1, (N, 3))], axis=1)

    sizes = {"a": 6, "b": 6, "f": 6, "i": 10, "A": 21}
    out = {name: rng.uniform(-1, 1, (N, size)) for name, size in sizes.items()}
    out |= {"X": pose(), "Y": pose(), "r": rng.uniform(-1, 1, (N, 3)), "k": rng.uniform(-1, 1, N)}
    return {name: mode.round(array) for name, array in out.items()}


def _moving(a: Any, b: Any, f: Any, i: Any, A: Any, X: Any, Y: Any, r: Any, k: Any) -> Any:
    return (
        sp.move_motion(X, a),
        sp.move_force(X, f),
        sp.move_inertia(X, i),
        sp.cross_motion(a, b),
        sp.cross_force(a, f),
        i @ a,
        A @ a,
        sp.pair(a, f),
        sp.kinetic_energy(i, a),
        sp.without(A, f * k, f),
        sp.articulated(i),
        sp.inverse(X),
        X @ Y,
        X @ r,
        sp.motion_at(a, r),
        sp.force_at(f.f, r),
        sp.no_motion(k),
        sp.no_force(k),
        sp.rigid_inertia(X.R, X.p, i.m, r, i.I),
        a + b * k,
        sp.less(k, a, f),
    )


def _args(x: dict[str, np.ndarray]) -> list[Any]:
    kinds = {"a": sp.Motion, "b": sp.Motion, "f": sp.Force, "i": sp.Inertia, "A": sp.Articulated}
    kinds |= {"X": sp.Transform, "Y": sp.Transform, "r": Vec3}
    return [Of(kinds[name], array) if name in kinds else array for name, array in x.items()]


def _expected(x: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The same with matrices; inertias stay matrices."""
    a, f, k, r = x["a"], x["f"], x["k"], x["r"]
    R, p = mat3(x["X"][:, :9]), x["X"][:, 9:]
    S, p2 = mat3(x["Y"][:, :9]), x["Y"][:, 9:]
    I6, A6 = inertia6(x["i"]), articulated6(x["A"])
    back = np.concatenate([R.transpose(0, 2, 1), -np.einsum("nji,nj->ni", R, p)[:, :, None]], axis=2)
    Xf = force_transform(R, p)
    composed = np.concatenate([(R @ S).reshape(N, 9), times(R, p2) + p], axis=1)
    m = x["i"][:, 0]
    c = times(R, r) + p
    cc = np.einsum("ni,ni->n", c, c)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None, :]
    world = R @ sym3(x["i"][:, 4:]) @ R.transpose(0, 2, 1) + m[:, None, None] * cc
    upper = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
    return [
        times(motion_transform(R, p), a),
        times(Xf, f),
        Xf @ I6 @ Xf.transpose(0, 2, 1),
        times(cross_motion6(a), x["b"]),
        -times(cross_motion6(a).transpose(0, 2, 1), f),
        times(I6, a),
        times(A6, a),
        np.einsum("ni,ni->n", a, f),
        0.5 * np.einsum("ni,nij,nj->n", a, I6, a),
        A6 - k[:, None, None] * f[:, :, None] * f[:, None, :],
        I6,
        np.concatenate([back[:, :, :3].reshape(N, 9), back[:, :, 3]], axis=1),
        composed,
        times(R, r) + p,
        a[:, 3:] + np.cross(a[:, :3], r),
        np.concatenate([np.cross(r, f[:, 3:]), f[:, 3:]], axis=1),
        np.zeros((N, 6)),
        np.zeros((N, 6)),
        np.concatenate([m[:, None], c * m[:, None], world[:, *upper]], axis=1),
        a + x["b"] * k[:, None],
        k - np.einsum("ni,ni->n", a, f),
    ]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_spatial_algebra(mode: Mode) -> None:
    x = _inputs(mode)
    found = run(mode, _moving, *_args(x))
    found[2], found[9], found[10] = inertia6(found[2]), articulated6(found[9]), articulated6(found[10])
    for k, (result, right) in enumerate(zip(found, _expected(x), strict=True)):
        # at most some twenty products of numbers below 3 (the largest is a moved inertia), each rounded twice
        assert np.abs(result - right).max() <= 100 * mode.eps, f"result {k}"


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_power_and_energy_do_not_depend_on_the_frame(mode: Mode) -> None:
    x = _inputs(mode)
    before, after, energy, moved = run(mode, _invariants, *_args(x))
    assert np.abs(before - after).max() <= 200 * mode.eps
    assert np.abs(energy - moved).max() <= 200 * mode.eps


def _invariants(a: Any, b: Any, f: Any, i: Any, A: Any, X: Any, Y: Any, r: Any, k: Any) -> Any:
    a2, f2, i2 = sp.move_motion(X, a), sp.move_force(X, f), sp.move_inertia(X, i)
    return sp.pair(a, f), sp.pair(a2, f2), sp.kinetic_energy(i, a), sp.kinetic_energy(i2, a2)


@pytest.mark.parametrize("mode", COMPILED[1:], ids=str)
def test_lanes_do_not_leak(mode: Mode) -> None:
    x = _inputs(mode)
    clean = run(mode, _moving, *_args(x))
    for sample, bad in ((0, np.nan), (mode.width.lanes - 1, np.inf), (11, -7.0)):
        y = {name: array.copy() for name, array in x.items()}
        for array in y.values():
            array[sample] = bad
        others = np.arange(N) != sample
        for before, after in zip(clean, run(mode, _moving, *_args(y)), strict=True):
            assert before[others].tobytes() == after[others].tobytes()


def test_products_that_mean_nothing_are_refused() -> None:
    zeros = [0.0] * 21
    i, m = sp.Inertia.of(*zeros[:10]), sp.Motion.of(*zeros[:6])
    f, X = sp.Force.of(*zeros[:6]), sp.Transform.of(*zeros[:12])
    for left, right in ((i, f), (X, m), (i, i), (sp.Articulated.of(*zeros), f), (m, i)):
        with pytest.raises(TypeError, match="unsupported operand"):
            left @ right
    with pytest.raises(TypeError, match="unsupported operand"):
        m + f
    assert sp.Transform.size == 12
    assert sp.Articulated.size == 21
    assert sp.Inertia.size == 10
    assert (Mat3.size, Sym3.size) == (9, 6)
