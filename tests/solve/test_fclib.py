"""Contact problems from other people's simulations (FCLIB): stacks of boxes, a heap of capsules.

The files are looked for beside the repository; a small one of each kind is written here, so that reading them is tested
in any case.
"""

from __future__ import annotations

import numpy as np
import pytest

from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem
from solve.fclib import FOLDER, read_matrix, read_problem, relative_residual

BOXES, CAPSULES = "Box_Stacks-i0122-82-5.hdf5", "Capsules-i125-1213.hdf5"
#: file → sweeps that are enough, rows
GOALS = {BOXES: (200, 246), CAPSULES: (5000, 858)} if FOLDER.is_dir() else {}


def solved(problem: Problem, sweeps: int, relaxation: float = 1.0) -> float:
    """FCLIB's residual after at most so many sweeps."""
    result = PGS(relaxation=relaxation).solve(problem, Options(tolerance=1e-9, iterations=sweeps))
    assert result.ok
    assert result.violation <= 1e-15
    return relative_residual(problem, result.lam)


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("relaxation", [1.0, 1.3])
def test_real_problems_are_solved_in_so_many_sweeps(name, relaxation):
    sweeps, rows = GOALS[name]
    problem = read_problem(FOLDER / name)
    assert problem.size == rows
    assert relative_residual(problem, np.zeros(rows)) > 1e-2
    assert solved(problem, sweeps, relaxation) < 1e-8


@pytest.mark.parametrize("name", [name for name in GOALS if name == BOXES])
def test_factors_need_no_matrix(name):
    problem = read_problem(FOLDER / name, factored=True)
    assert solved(problem, 200) < 1e-8


def write_matrix(group, A: np.ndarray, nz: int) -> None:
    """Triplets (nz ≥ 0), by columns (−1) or by rows (−2)."""
    if nz == -1:
        outer, inner = np.nonzero(A.T)
        x = A[inner, outer]
    else:
        outer, inner = np.nonzero(A)
        x = A[outer, inner]
    if nz >= 0:
        i, p, nz = outer, inner, len(x)
    else:
        i, p = inner, np.searchsorted(outer, np.arange(len(A if nz == -2 else A.T) + 1))
    data = {"m": [len(A)], "n": [A.shape[1]], "nz": [nz], "i": i, "p": p, "x": x}
    for name, values in data.items():
        group[name] = np.asarray(values, np.float64 if name == "x" else np.int32)


@pytest.mark.parametrize("nz", [0, -1, -2])
def test_matrices_are_read_in_every_form(tmp_path, nz):
    import h5py

    rng = np.random.default_rng(2)
    A = rng.normal(size=(4, 6)) * (rng.random((4, 6)) < 0.5)
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        write_matrix(file.create_group("A"), A, nz)
        assert np.array_equal(read_matrix(file["A"]), A)


def test_global_and_local_problems_are_the_same(tmp_path):
    """A ball of 2 kg that slides over the floor, written both ways: friction takes μ m g h off its momentum."""
    import h5py

    dt, mass, speed, mu = 0.01, 2.0, 3.0, 0.4
    M, H = mass * np.eye(3), np.eye(3)[[2, 0, 1]].T  # the normal is z
    f = np.array([mass * speed, 0.0, -mass * 9.81 * dt])
    with h5py.File(tmp_path / "global.hdf5", "w") as file:
        group = file.create_group("fclib_global")
        write_matrix(group.create_group("M"), M, 0)
        write_matrix(group.create_group("H"), H, -1)
        group["vectors/f"], group["vectors/w"], group["vectors/mu"] = f, np.zeros(3), [mu]
    with h5py.File(tmp_path / "local.hdf5", "w") as file:
        group = file.create_group("fclib_local")
        write_matrix(group.create_group("W"), H.T @ H / mass, -2)
        group["vectors/q"], group["vectors/mu"] = H.T @ f / mass, [mu]
    expected = mass * 9.81 * dt * np.array([1.0, -mu, 0.0])
    for name in ("global", "local"):
        problem = read_problem(tmp_path / f"{name}.hdf5")
        result = PGS().solve(problem)
        assert result.lam == pytest.approx(expected, rel=1e-14)
        assert relative_residual(problem, result.lam) < 1e-15
