"""Contact problems from simulations (FCLIB's format): stacks of boxes, a heap of capsules, a column built here.

The files of others are looked for beside the repository; what is built here is solved in any case.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from poise.solve.pgs import PGS
from poise.solve.problem import Options
from solve.fclib import FOLDER, column_of_boxes, read_matrix, read_problem, relative_residual

BOXES, CAPSULES, COLUMN = "Box_Stacks-i0122-82-5.hdf5", "Capsules-i125-1213.hdf5", "a column of boxes"
#: file → sweeps that are enough, rows
GOALS = {COLUMN: (1000, 60)} | ({BOXES: (200, 246), CAPSULES: (5000, 858)} if FOLDER.is_dir() else {})
MASS, PUSH, STEP = 2.0, 0.1, 0.01  # kg, m/s, s


@pytest.fixture
def find(tmp_path):
    """Path of a problem's file, which is written where it is not one of others."""

    def path(name: str) -> Path:
        if name != COLUMN:
            return FOLDER / name
        write_column(tmp_path / "column.hdf5", boxes=5)
        return tmp_path / "column.hdf5"

    return path


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("relaxation", [1.0, 1.3])
def test_problems_are_solved_in_so_many_sweeps(find, name, relaxation):
    sweeps, rows = GOALS[name]
    problem = read_problem(find(name))
    assert problem.size == rows
    assert relative_residual(problem, np.zeros(rows)) > 1e-2
    result = PGS(relaxation=relaxation).solve(problem, Options(tolerance=1e-9, iterations=sweeps))
    assert result.ok
    assert result.violation <= 1e-15
    assert relative_residual(problem, result.lam) < 1e-8


@pytest.mark.parametrize("name", GOALS)
def test_factors_need_no_matrix(find, name):
    path, options = find(name), Options(iterations=GOALS[name][0])
    factored, whole = read_problem(path, factored=True), read_problem(path)
    result = PGS().solve(factored, options)
    assert result.ok
    assert relative_residual(whole, result.lam) < 1e-8


def test_a_column_weighs_on_the_floor(find):
    """Every interface carries the boxes above it, and the push, too weak to tip them over, goes down into the floor."""
    problem = read_problem(find(COLUMN))
    result = PGS().solve(problem, Options(tolerance=1e-12, iterations=5000))
    assert result.ok
    impulses = result.lam.reshape(5, 4, 3).sum(axis=1)
    above = MASS * np.arange(5, 0, -1)
    assert impulses[:, 0] == pytest.approx(above * 9.81 * STEP, rel=1e-9)
    assert impulses[:, 1] == pytest.approx(-np.full(5, MASS * PUSH), rel=1e-9)
    assert impulses[:, 2] == pytest.approx(np.zeros(5), abs=1e-10)


def write_column(path: Path, boxes: int) -> None:
    import h5py

    column = column_of_boxes(boxes, MASS, PUSH, STEP)
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_global")
        write_matrix(group.create_group("M"), column.M, 0)
        write_matrix(group.create_group("H"), column.H, 0)
        group["vectors/f"], group["vectors/w"], group["vectors/mu"] = column.f, column.w, column.mu


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


@pytest.mark.parametrize(("kind", "message"), [("text", "cannot be read as HDF5"), ("other", "found a_table")])
def test_files_of_another_kind_are_named(tmp_path, kind, message):
    import h5py

    path = tmp_path / "some.hdf5"
    if kind == "text":
        path.write_text("x, y")
    else:
        with h5py.File(path, "w") as file:
            file.create_group("a_table")
    with pytest.raises(ValueError, match=rf"some\.hdf5 .*{message}"):
        read_problem(path)
