"""./test everywhere: runs by name with their variables, a table, and a status that is not 0 when any of them is red."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTEST = """
import os
print("1 passed in 0.01s" if {good} else "FAILED tests/a.py::b - because\\n2 passed, 1 failed in 0.02s")
raise SystemExit(not ({good}))
"""


@pytest.fixture
def module(monkeypatch):
    spec = importlib.util.spec_from_file_location("everywhere", ROOT / ".ci" / "everywhere.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "everywhere", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_has", lambda feature: True)
    for name in {name for run in module.runs().values() for name in run.variables}:
        monkeypatch.delenv(name, raising=False)  # those of the run that these tests are part of
    return module


def stand_in(good: str) -> list[str]:
    """A command that prints what pytest would."""
    return ["-c", PYTEST.format(good=good)]


def test_a_red_run_is_told_by_name_and_status(module, capfd):
    status = module.everywhere(["native", "seeds-1"], stand_in("'POISE_SEED_OFFSET' not in os.environ"))
    printed = capfd.readouterr().out
    assert status == 1
    assert re.search(r"^native +1 +0 ", printed, re.MULTILINE)
    assert re.search(r"^seeds-1 +2 +1 ", printed, re.MULTILINE)
    assert "tests/a.py::b: seeds-1" in printed


def test_green_runs_have_status_0(module, capfd):
    assert module.everywhere(["native", "blas-zen"], stand_in("True")) == 0
    assert "blas-zen" in capfd.readouterr().out


def test_a_run_that_breaks_off_is_red(module, capfd):
    assert module.everywhere(["native"], ["-c", "raise SystemExit(3)"]) == 1


def test_a_run_that_a_machine_cannot_do_is_left_out(module, monkeypatch, capfd):
    monkeypatch.setattr(module, "_has", lambda feature: feature != "avx2")
    assert module.everywhere(["avx2", "native"], stand_in("True")) == 0
    assert re.search(r"^avx2 +needs avx2: left out", capfd.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("avx2", "NUMBA_CPU_NAME", "haswell"),
        ("generic", "NUMBA_CPU_NAME", "x86-64"),
        ("generic", "NUMBA_CPU_FEATURES", ""),
        ("blas-skylakex", "OPENBLAS_CORETYPE", "SkylakeX"),
        ("native", "OPENBLAS_NUM_THREADS", "1"),
        ("blas-threads", "OPENBLAS_NUM_THREADS", None),
        ("seeds-2", "POISE_SEED_OFFSET", "2000"),
    ],
)
def test_runs_set_their_variables(module, monkeypatch, capfd, name, variable, value):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert module.everywhere([name], stand_in(f"os.environ.get({variable!r}) == {value!r}")) == 0


def test_all_runs_unless_some_are_named(module):
    assert module.split([]) == (list(module.runs()), [])
    assert len(module.runs()) == 9
    assert module.split(["avx2", "seeds-1", f"{ROOT}/tests/solve", "-x"]) == (
        ["avx2", "seeds-1"],
        [f"{ROOT}/tests/solve", "-x"],
    )
    with pytest.raises(SystemExit, match=r"no run named 'avx3', and no file; runs: native, avx2, generic"):
        module.split(["avx3"])


def test_kernels_of_different_targets_are_kept_apart(module):
    """The key of the cache knows name and features: no run is handed the code of another."""
    code = "from poise.kernel.jit import cache_key; print(cache_key())"
    keys = set()
    for name in ("native", "avx2", "generic"):
        variables = {key: value for key, value in module.runs()[name].variables.items() if value is not None}
        given = os.environ | {"PYTHONPATH": str(ROOT / "src")} | variables
        keys.add(subprocess.check_output([sys.executable, "-c", code], env=given, text=True))
    assert len(keys) == 3


def test_every_run_is_listed_where_a_reader_looks(module):
    header = (ROOT / "test").read_text(encoding="utf-8")
    assert all(name in header for name in module.runs())
