"""The table of solvers: success is measured and not believed, what is refused has a dash, the page tells the truth."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmark_scripts import helper
from poise.solve.problem import Form, Options, Problem, Status
from poise.solve.residuals import report
from poise.solve.solver_registry import SOLVERS, solver_class
from solve.problems import FAMILIES, draw
from solve.round_problems import ROUNDS

solvers = helper("solvers")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "solvers.md").read_text(encoding="utf-8")
SOLVABLE, HOPELESS = draw("lcp", 1), draw("infeasible", 1)


@pytest.mark.parametrize(
    ("known", "status", "residual", "verdict"),
    [
        (SOLVABLE, Status.SOLVED, 1e-10, (True, False)),
        (SOLVABLE, Status.SINGULAR, 1e-10, (True, False)),
        (SOLVABLE, Status.STOPPED, 1e-10, (False, False)),  # good enough, but it does not know
        (SOLVABLE, Status.SOLVED, 1e-8, (False, True)),
        (SOLVABLE, Status.SOLVED, float("nan"), (False, True)),
        (SOLVABLE, Status.STOPPED, 1.0, (False, False)),
        (SOLVABLE, Status.CONFLICTING, 1.0, (False, True)),
        (HOPELESS, Status.CONFLICTING, 1.0, (True, False)),
        (HOPELESS, Status.STOPPED, 1.0, (False, False)),
        (HOPELESS, Status.SOLVED, 1e-10, (False, True)),
    ],
)
def test_success_and_wrong_claims(known, status, residual, verdict):
    result = report(known.problem, known.lam, 1, Options())
    result.status = status
    assert solvers.judge(known, result, residual) == verdict


class Liar:
    """Says that nought is the answer."""

    takes = ~Form(0)

    def solve(self, problem: Problem, options: Options = solvers.OPTIONS):
        result = report(problem, np.zeros(problem.size), 1, options)
        result.status, result.natural = Status.SOLVED, 0.0
        return result


@pytest.fixture
def few(monkeypatch):
    """A family of every group but the large ones, so that the whole takes a moment."""
    names = ("spd", "single", "laws", "cone", "infeasible", "nonsymmetric")
    monkeypatch.setattr(solvers, "FAMILIES", {name: FAMILIES[name] for name in names})
    monkeypatch.setattr(solvers, "ROUNDS", {"secondary": ROUNDS["secondary"]})
    monkeypatch.setattr(solvers, "LARGE", {"large": "spd"})


def test_a_claim_that_is_not_true_fails_the_benchmark(few, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(solvers, "SOLVERS", {"liar": ""})
    monkeypatch.setattr(solvers, "solver_class", lambda name: Liar)
    file = tmp_path / "found.json"
    assert solvers.main(["--quick", "--json", str(file)]) == 1
    told = capsys.readouterr().out
    assert "wrong: residual of spd, liar is" in told
    table = {entry["family"]: entry for entry in json.loads(file.read_text())["table"]}
    assert table["spd"]["wrong_claims"] == table["spd"]["problems"] == 8
    assert table["infeasible"]["wrong_claims"] == 8
    assert table["spd"]["success"] == 0.0


def test_tables_are_at_most_120_columns_wide(few, tmp_path, capsys):
    file = tmp_path / "found.json"
    assert solvers.main(["--quick", "--json", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    assert set(solvers.GROUPS) <= {line.strip() for line in lines}
    found = json.loads(file.read_text())
    assert found["refused"]["cone"] == ["direct", "cg", "dantzig", "lemke"]
    told = {(entry["family"], entry["solver"]): entry for entry in found["table"]}
    assert told["spd", "direct"]["success"] == 1.0
    assert told["nonsymmetric", "lemke"]["success"] == 1.0
    assert max(told["spd", "direct"]["residuals"]) < 1e-14
    assert all(entry["wrong_claims"] == 0 for entry in told.values())


def test_dashes_are_where_the_manifest_refuses(few):
    found = solvers.measure_all(8, 1)
    rows = {cells[0]: cells[1:] for cells in solvers.overview(found)}
    assert rows.keys() == found.keys()
    for name in (*solvers.FAMILIES, *solvers.ROUNDS):
        forms = solvers.forms_of(solvers.problems_of(name, 8))
        refused = [forms not in solver_class(solver).takes for solver in SOLVERS]
        assert [cell == "—" for cell in rows[name]] == refused


@pytest.mark.parametrize("text", ["", "<a>\n", "<b> <a>", "<a> <a> <b>"])
def test_a_page_without_its_marks_is_refused(text):
    with pytest.raises(ValueError, match="the document wants the line '<a>' once"):
        solvers.replace_between(text, "<a>", "<b>", "new")


def test_only_what_stands_between_the_marks_is_put_anew():
    once = solvers.replace_between("head\n<a>\nold\n<b>\ntail\n", "<a>", "<b>", "new\n")
    assert once == "head\n<a>\n\nnew\n\n<b>\ntail\n"
    assert solvers.replace_between(once, "<a>", "<b>", "new\n") == once


# ---- docs/solvers.md -------------------------------------------------------------------------------------------------


def table_of(name: str) -> list[list[str]]:
    """Cells of the table between two marks of the page."""
    begin, end = solvers.BEGIN.format(name=name), solvers.END.format(name=name)
    lines = PAGE.partition(begin)[2].partition(end)[0].splitlines()
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("| ")]


def test_the_page_tells_what_the_manifest_says():
    """If this fails, run `python benchmarks/solvers.py --docs`."""
    head, _, *rows = table_of("manifest")
    assert head == ["form", *SOLVERS]
    takes = {row[0]: dict(zip(SOLVERS, row[1:], strict=True)) for row in rows}
    assert takes.keys() == {form.name.lower() for form in Form}
    for form in Form:
        for solver in SOLVERS:
            said = {"yes": True, "—": False}[takes[form.name.lower()][solver]]
            assert said == (form in solver_class(solver).takes), f"{solver} takes {form.name}"


def test_the_page_tells_of_every_family_and_every_solver():
    """If this fails, run `python benchmarks/solvers.py --docs`."""
    head, _, *rows = table_of("overview")
    assert head == ["family", *SOLVERS]
    assert {row[0] for row in rows} == {*FAMILIES, *ROUNDS, *solvers.LARGE}
    for name, *cells in rows:
        forms = solvers.forms_of(solvers.problems_of(name, 40))
        assert [cell == "—" for cell in cells] == [forms not in solver_class(solver).takes for solver in SOLVERS]
        assert all(re.fullmatch(r"—|\d+ %", cell) for cell in cells), "a wrong claim is no result"
        assert f"`{name}`" in PAGE, "every family is explained"
