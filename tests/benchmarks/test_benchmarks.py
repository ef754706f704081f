"""Benchmarks run, print a table and write JSON that can be read; how fast anything is, is never asserted."""

from __future__ import annotations

import json
import math

import pytest

from benchmark_scripts import FOLDER, helper, script

NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
TARGETED = {
    "articulated_body": 5,
    "deltas": 8,
    "scaling": 2,
    "call_overhead": 2,
    "startup": 4,
    "stages": 0,
    "gauss_seidel": 0,
    "contacts": 6,
    "constraint_matrix": 6,
    "pictures": 2,
    "pairs": 0,
    "solvers": 0,
    "convergence": 0,
    "humanoid_solvers": 1,
    "collision": 7,
    "step": 2,
    "links": 2,
    "ragdoll": 3,
    "boxes": 11,
    "batch": 0,
    "environments": 0,
    "motion": 1,
    "energy": 0,
    "around": 9,
}

BRIEF = ("call_overhead", "collision", "constraint_matrix", "convergence", "energy", "motion")
"""Those that take a few seconds; the others run with the slow tests."""


def is_spread(data: dict) -> bool:
    """Median between the quartiles, all finite."""
    numbers = [data["low"], data["median"], data["high"]]
    return all(math.isfinite(x) for x in numbers) and numbers == sorted(numbers)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in BRIEF else pytest.mark.slow) for n in NAMES])
def test_benchmark_prints_a_table_and_writes_json(name, tmp_path, capsys):
    file = tmp_path / "found.json"
    status = script(name)["main"](["--quick", "--rounds", "2", "--json", str(file)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["benchmark"] == name
    assert f"{name}: {found['question']}" in printed
    assert {"cpu", "cores", "compiled_for", "simd_bits", "versions"} <= found["machine"].keys()
    assert {"python", "poise", "numba", "numpy"} <= found["machine"]["versions"].keys()
    assert found["settings"]["rounds"] == 2
    rows = found["rows"]
    assert all(row["what"] in printed for row in rows)
    assert all(is_spread(row["value"]) for row in rows)
    assert all(is_spread(row["ratio"]) and row["beside"] for row in rows if row["ratio"])
    assert all(row["residual"] <= row["allowed"] for row in rows if row["residual"] is not None)
    assert sum(row["met"] is not None for row in rows) >= TARGETED[name]


@pytest.mark.slow
def test_results_are_the_same_in_every_run(tmp_path):
    digests = []
    for k in range(2):
        file = tmp_path / f"{k}.json"
        assert script("stages")["main"](["--quick", "--rounds", "1", "--json", str(file)]) == 0
        digests.append(json.loads(file.read_text(encoding="utf-8"))["digest"])
    assert digests[0] == digests[1] is not None


def test_every_benchmark_has_its_targets_counted_here():
    assert set(NAMES) == TARGETED.keys()


@pytest.mark.parametrize("name", NAMES)
def test_help_says_what_is_measured(name, capsys):
    with pytest.raises(SystemExit) as left:
        script(name)["main"](["--help"])
    assert left.value.code == 0
    assert "--quick" in capsys.readouterr().out


@pytest.mark.parametrize("rounds", ["0", "-3", "many"])
def test_rounds_must_be_a_count(rounds, capsys):
    with pytest.raises(SystemExit) as left:
        script("scaling")["main"](["--rounds", rounds])
    assert left.value.code == 2
    assert "--rounds" in capsys.readouterr().err


def test_model_that_is_no_file_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"no_such\.xml is no file; name an MJCF file"):
        helper("_trees").find_humanoid(str(tmp_path / "no_such.xml"))


def test_model_from_the_environment(tmp_path, monkeypatch):
    trees = helper("_trees")
    monkeypatch.setenv(trees.VARIABLE, str(tmp_path / "other.xml"))
    with pytest.raises(SystemExit, match=r"other\.xml is no file"):
        trees.find_humanoid()
    (tmp_path / "other.xml").write_text("<mujoco/>")
    assert trees.find_humanoid() == tmp_path / "other.xml"


def test_avx2_leaves_out_all_that_is_wider(monkeypatch):
    import llvmlite.binding as llvm

    has = {"avx2": True, "fma": True, "avx512f": True, "avx512vl": True, "avx10.1": True, "sse4a": False}
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: has)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "znver5")
    given = script("articulated_body")["without_avx512"]()
    assert given["NUMBA_CPU_NAME"] == "znver3"
    assert set(given["NUMBA_CPU_FEATURES"].split(",")) == {
        "+avx2",
        "+fma",
        "-avx512f",
        "-avx512vl",
        "-avx10.1",
        "-sse4a",
    }


def test_avx2_needs_it(monkeypatch):
    import llvmlite.binding as llvm

    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {"neon": True})
    with pytest.raises(SystemExit, match="has no AVX2"):
        script("articulated_body")["main"](["--avx2"])
