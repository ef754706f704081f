"""Residuals against sweeps: lines that go down, points where pivots end, a picture that says what is what."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from benchmark_scripts import helper

convergence, fclib = helper("convergence"), helper("_fclib")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Numbers and picture of the column of boxes."""
    folder = tmp_path_factory.mktemp("column")
    numbers, picture = folder / "found.json", folder / "column.svg"
    assert convergence.main(["--quick", "--json", str(numbers), "--out", str(picture)]) == 0
    return json.loads(numbers.read_text(encoding="utf-8")), picture.read_text(encoding="utf-8")


def test_lines_go_down_and_pivots_end_at_the_answer(run):
    found, _ = run
    for form, ways in (("cones", convergence.CONES), ("pyramids", convergence.PYRAMIDS)):
        curves = found["curves"][f"A column of boxes, {form}"]
        assert curves.keys() == {way.name for way in ways}
        for sweeps, residuals in curves.values():
            assert sweeps == sorted(sweeps)
            assert len(sweeps) == 1 or residuals[-1] < residuals[0]
        assert curves["memory 10"][1][-1] < 1e-12
        assert curves["warm"][1][0] < curves["Gauss-Seidel, cold"][1][0]
    for name in ("Dantzig (pivots)", "Lemke (pivots)"):
        (pivots,), (residual,) = curves[name]
        assert pivots > 1
        assert residual < 1e-9


def test_factors_go_the_way_of_the_matrix(run):
    for curves in run[0]["curves"].values():
        (sweeps, residuals), (same, told) = curves["Gauss-Seidel, cold"], curves["factors, not a matrix"]
        assert sweeps == same
        assert told == pytest.approx(residuals, rel=1e-9)


def test_the_picture_names_every_solver_once_a_chart(run):
    root = ET.fromstring(run[1])
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for way in convergence.SHARED:
        assert words.count(way.name) == 2
    assert words.count("Lemke (pivots)") == 1
    assert len(re.findall("<polyline", run[1])) == 2 * len(convergence.SHARED)


def test_two_passes_solve_another_problem(run):
    """VON §3.5: bounds of friction that are estimated once do not lead to the answer, whatever the sweeps."""
    table = run[0]["table"]["A column of boxes, cones"]
    assert table["two passes"][0] == "stopped"
    assert table["memory 10"][0] == "solved"


def test_the_square_root_of_a_matrix_is_a_product():
    J = np.random.default_rng(3).normal(size=(7, 4))
    A = J @ J.T
    root = fclib.square_root(A)
    assert root.J.shape == (7, 4)
    np.testing.assert_allclose(root.J @ root.response, A, atol=1e-13 * np.abs(A).max())


def test_a_warm_start_is_near_and_not_the_answer():
    problem = fclib.column_of_boxes(3).problem()
    warm = convergence._warm(problem)
    residual = fclib.relative_residual(problem, warm)
    # b moves by a hundredth, and the natural map by at most (1 + μ) times as much at every contact
    assert 1e-6 < residual <= 0.01 * (1.0 + problem.frictions[0].mu) * 1.01


def test_a_file_that_is_none_is_named(tmp_path, capsys):
    path = tmp_path / "some.hdf5"
    path.write_text("no")
    assert convergence.main([str(path)]) == 2
    assert f"convergence: {path} cannot be read as HDF5" in capsys.readouterr().err
    assert convergence.main([str(tmp_path / "none.hdf5")]) == 2


@pytest.mark.parametrize("sweeps", ["0", "-1", "9", "x"])
def test_sweeps_must_be_enough_for_a_line(sweeps, capsys):
    with pytest.raises(SystemExit) as left:
        convergence.main(["--sweeps", sweeps])
    assert left.value.code == 2
    assert "--sweeps" in capsys.readouterr().err


def test_looks_start_at_one_and_end_where_asked():
    looks = convergence.looks_up_to(1000, 30)
    assert (looks[0], looks[-1]) == (1, 1000)
    assert looks == sorted(set(looks))
