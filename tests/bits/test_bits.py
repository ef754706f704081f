"""Results are the recorded ones, bit by bit, where hashes of this target were recorded: `python -m tests.bits`.

Hashes guard changes that must not change results: moves, renames, other ways to the same step. A change of behaviour
records them again, and its commit says which scenes differ and why.
"""

from __future__ import annotations

import copy
import json

import pytest

from .__main__ import compare, main
from .runs import AFTER, COLUMNS, Hashes, differences, is_hash, key, other_versions, recorded, run, target
from .scenes import SCENES

QUICK = ("humanoid_falls", "heap_of_shapes", "four_bar")


@pytest.mark.parametrize("column", ["reduced", "maximal", "batch f64"])
@pytest.mark.parametrize("scene", QUICK)
def test_results_are_those_of_another_run_and_the_recorded_ones(scene: str, column: str) -> None:
    found = run(scene, column)
    assert [is_hash(one) for one in found] == [True] * len(AFTER)
    assert run(scene, column) == found
    before = recorded(target())
    if before is not None and not other_versions(target()):
        assert found == before[key(scene, column)]


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_all_results_are_the_recorded_ones(column: str) -> None:
    before = recorded(target())
    if before is None or other_versions(target()):
        pytest.skip(f"no hashes of {target()} were recorded with these versions of packages")
    now = {key(scene, column): run(scene, column) for scene in SCENES}
    assert differences({cell: before[cell] for cell in now}, now) == []


# ---- what is said of differences -------------------------------------------------------------------------------------

OLD: Hashes = {"a, reduced": ["0" * 16, "1" * 16, "2" * 16], "b, reduced": ["3" * 16], "c, maximal": ["4" * 16]}


def test_nothing_is_said_of_equal_hashes() -> None:
    assert differences(OLD, copy.deepcopy(OLD)) == []


def test_a_difference_names_the_cell_and_the_step() -> None:
    now = {**copy.deepcopy(OLD), "d, reduced": ["5" * 16]}
    now["a, reduced"][2] = "f" * 16
    now["b, reduced"] = ["refused: it cannot"]
    del now["c, maximal"]
    assert differences(OLD, now) == [
        f"a, reduced: differs after {AFTER[1]} steps",
        "b, reduced: differs from the first step on (is 'refused: it cannot')",
        "c, maximal: gone",
        "d, reduced: new",
    ]


def test_a_run_that_ends_early_differs_where_it_ends() -> None:
    now = {"a, reduced": OLD["a, reduced"][:2]}
    assert differences({"a, reduced": OLD["a, reduced"]}, now) == [f"a, reduced: differs after {AFTER[1]} steps"]


def test_without_a_record_the_command_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("no such target", None, {}) == 1
    assert "--record" in capsys.readouterr().out


def test_the_command_records_and_compares(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from . import __main__, runs

    monkeypatch.setattr(runs, "HASHES", tmp_path)
    monkeypatch.setattr(__main__, "ROOT", tmp_path)
    only = ["--scene", "tumbling_plate", "--column", "reduced"]
    assert main(only) == 1
    assert main([*only, "--record"]) == 0
    assert main(only) == 0
    path = runs.path_of(target())
    content = json.loads(path.read_text())
    content["hashes"]["tumbling_plate, reduced"][1] = "0" * 16
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(only) == 1
    assert "tumbling_plate, reduced: differs after 1 steps" in capsys.readouterr().out
