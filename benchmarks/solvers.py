"""How each solver does on each family of problems: success rate, accuracy, time.

Families are random problems with known answers (`_problems`), by default of 2 to 12 rows, and some of about a hundred.
All registered solvers get the same problems and the same options. A solver succeeds if it says so and the natural
residual, measured here independently, meets the tolerance; for a family without an answer, it succeeds by saying that.
A false claim (solved, and the residual is too large or there is no answer; conflicting, and there is one) is counted
separately, and fails the benchmark.

Solvers use one thread of BLAS, or the number in POISE_BLAS_THREADS.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from _common import Report, Row, Spread, arguments, circumstances, machine
from _problems import FAMILIES, Known, draw
from _round_problems import ROUNDS, draw_round

from poise.kernel.blas import asked_for
from poise.solve.problem import Form, Options, Problem, Result, Status
from poise.solve.residuals import natural_map, size_of
from poise.solve.solver_registry import SOLVERS, Solver, solver_class

QUESTION = "what each solver makes of each family of problems"
ROWS = 100
"""Of larger problems; those of contacts have about as many."""
OPTIONS = Options(tolerance=1e-9, iterations=20_000)
LARGE = {f"{name}_{ROWS}": name for name in ("spd", "lcp", "bounded", "laws", "pyramid", "cone")}
"""Families of which larger problems are solved too."""
GROUPS = (
    "rows without bounds",
    "rows with bounds",
    "piecewise laws",
    "friction and balls",
    "laws that depend on others",
    "no answer",
    "larger",
)
BEGIN, END = "<!-- {name}: written by `python benchmarks/solvers.py --docs` -->", "<!-- end of {name} -->"
DOCS = Path(__file__).resolve().parents[1] / "docs" / "solvers.md"


@dataclass
class Tally:
    """How a solver did on a family."""

    family: str
    solver: str
    group: str
    problems: int = 0
    solved: int = 0
    wrong_claims: int = 0
    residuals: list[float] = field(default_factory=list)
    """Natural residual of each answer, of the largest |b|."""
    claimed: float = 0.0
    """Largest residual of an answer that is claimed to be one; infinite if a claim is wrong in another way."""
    seconds: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)

    def add(self, known: Known, result: Result) -> None:
        """Judge an answer."""
        natural = natural_map(known.problem, result.lam) / size_of(known.problem)
        residual = float(np.abs(natural).max(initial=0.0))
        solved, wrong = judge(known, result, residual)
        self.problems += 1
        self.solved += solved
        self.wrong_claims += wrong
        self.residuals.append(residual)
        self.iterations.append(result.iterations)
        if result.ok:
            self.claimed = max(self.claimed, residual)
        if wrong:
            self.claimed = max(self.claimed, residual if known.solvable and result.ok else float("inf"))

    @property
    def rate(self) -> str:
        """Success as a percentage, rounded down so that 100 % means all; wrong claims beside it."""
        wrong = f", {self.wrong_claims} wrong" if self.wrong_claims else ""
        return f"{100 * self.solved // self.problems} %{wrong}"

    def cells(self) -> list[str]:
        """For the tables: success, wrong claims, residuals, time, iterations."""
        median, worst = np.median(self.residuals), max(self.residuals)
        return [
            f"{100 * self.solved // self.problems} %",
            str(self.wrong_claims),
            f"{median:.0e}",
            f"{worst:.0e}",
            _short_time(float(np.median(self.seconds))),
            f"{np.median(self.iterations):.0f}",
            str(max(self.iterations)),
        ]

    def row(self) -> Row:
        """For the JSON that all benchmarks write."""
        note = f"{self.rate} of {self.problems}, {np.median(self.iterations):.0f} iterations"
        what, times = f"{self.family}, {self.solver}", Spread.of(self.seconds)
        return Row(what, times, residual=self.claimed, allowed=OPTIONS.tolerance, note=note)

    def data(self) -> dict[str, object]:
        """All figures."""
        return asdict(self) | {"seconds": float(np.median(self.seconds)), "success": self.solved / self.problems}


HEADINGS = ("success", "wrong claims", "residual", "worst", "time", "iterations", "most")


def judge(known: Known, result: Result, residual: float) -> tuple[bool, bool]:
    """Whether a solver succeeded, and whether its claim is false."""
    meets = residual <= OPTIONS.tolerance
    if not known.solvable:
        return result.status is Status.CONFLICTING, result.ok
    return result.ok and meets, (result.ok and not meets) or result.status is Status.CONFLICTING


def problems_of(family: str, count: int) -> list[Known]:
    """The first problems of a family; of large ones a quarter as many."""
    if family in LARGE:
        return [draw(LARGE[family], seed, ROWS) for seed in range(-(-count // 4))]
    source = draw_round if family in ROUNDS else draw
    return [source(family, seed) for seed in range(count)]


def forms_of(family: Iterable[Known]) -> Form:
    """The forms that all problems of a family need together."""
    forms = Form.EQUALITY
    for known in family:
        forms |= known.problem.forms()
    return forms


def group_of(name: str, family: Sequence[Known]) -> str:
    """The heading of a family."""
    forms = forms_of(family)
    if name in LARGE:
        return "larger"
    if not family[0].solvable:
        return "no answer"
    if forms & (Form.SECONDARY | Form.STICK_SLIP):
        return "laws that depend on others"
    if forms & (Form.PYRAMIDS | Form.CONES | Form.BALLS):
        return "friction and balls"
    if forms & Form.LAWS:
        return "piecewise laws"
    return "rows with bounds" if forms & Form.BOUNDS else "rows without bounds"


def tally(name: str, family: Sequence[Known], rounds: int) -> dict[str, Tally | None]:
    """How every solver does on a family; None where the manifest says that it does not take it."""
    forms, group = forms_of(family), group_of(name, family)
    found: dict[str, Tally | None] = {}
    solvers: dict[str, Solver] = {}
    for solver in SOLVERS:
        kind = solver_class(solver)
        found[solver] = Tally(name, solver, group) if forms in kind.takes else None
        if forms in kind.takes:
            solvers[solver] = kind()
            solvers[solver].solve(family[0].problem, OPTIONS)  # compiles
    for known in family:
        for solver, result, seconds in in_turns(solvers, known.problem, rounds):
            entry = found[solver]
            assert entry is not None
            entry.seconds.append(seconds)
            if result is not None:
                entry.add(known, result)
    return found


def in_turns(solvers: dict[str, Solver], problem: Problem, rounds: int) -> Iterable[tuple[str, Result | None, float]]:
    """Solver, result (of the first round only) and seconds, in the one order and then in the other."""
    for k in range(rounds):
        for name, solver in solvers.items() if k % 2 == 0 else reversed(solvers.items()):
            start = time.perf_counter()
            result = solver.solve(problem, OPTIONS)
            seconds = time.perf_counter() - start
            yield name, result if k == 0 else None, seconds


Found = dict[str, dict[str, Tally | None]]


def measure_all(count: int, rounds: int) -> Found:
    """family → solver → how it did."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return {name: tally(name, problems_of(name, count), rounds) for name in (*FAMILIES, *ROUNDS, *LARGE)}
    finally:
        if collecting:
            gc.enable()


def in_group(found: Found, group: str) -> list[Tally]:
    """What was found under a heading."""
    entries = [entry for row in found.values() for entry in row.values() if entry is not None]
    return [entry for entry in entries if entry.group == group]


def _short_time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


# ---- for people ------------------------------------------------------------------------------------------------------


def overview(found: Found) -> list[list[str]]:
    """Rows of cells: family, then the success of each solver; — where the manifest refuses."""
    order = [(name, row) for group in GROUPS for name, row in found.items() if _group(row) == group]
    return [[name, *("—" if entry is None else entry.rate for entry in row.values())] for name, row in order]


def _group(row: dict[str, Tally | None]) -> str:
    return next(entry.group for entry in row.values() if entry is not None)


def show(report: Report, found: Found) -> None:
    """An overview, then a table for each form; all within 120 columns."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=118)
    table = Table("family", *SOLVERS, title=f"{report.name}: {report.question}", title_justify="left")
    for cells in overview(found):
        table.add_row(*cells)
    console.print(table)
    for group in GROUPS:
        table = Table(title=group, title_justify="left")
        table.add_column("family, solver", no_wrap=True, min_width=30)
        for heading in HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for entry in in_group(found, group):
            table.add_row(f"{entry.family}, {entry.solver}", *entry.cells())
        console.print(table)
    for line in circumstances(report):
        console.print(line)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a document."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def manifest_table() -> str:
    """Which solver takes which form."""
    rows = []
    for form in Form:
        takes = ["yes" if form in solver_class(solver).takes else "—" for solver in SOLVERS]
        rows.append([str(form.name).lower(), *takes])
    return markdown(["form", *SOLVERS], rows)


def write_docs(page: Path, found: Found, settings: dict[str, object]) -> None:
    """Put the tables into a document, between their marks."""
    facts = machine()
    words = ", ".join(f"{name} {value}" for name, value in settings.items())
    details = f"Measured on {facts['cpu']}; {words}.\n"
    for group in GROUPS:
        rows = [[entry.family, entry.solver, *entry.cells()] for entry in in_group(found, group)]
        details += f"\n### {group.capitalize()}\n\n" + markdown(["family", "solver", *HEADINGS], rows)
    tables = {
        "manifest": manifest_table(),
        "overview": markdown(["family", *SOLVERS], overview(found)),
        "details": details,
    }
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = replace_between(text, BEGIN.format(name=name), END.format(name=name), table)
    page.write_text(text, encoding="utf-8")


def replace_between(text: str, begin: str, end: str, new: str) -> str:
    """Text with new content between two lines."""
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the document wants the line {begin!r} once, and {end!r} once after it")
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    return f"{head}{begin}\n\n{new}\n{end}{tail}"


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, docs=f"write the tables into docs/{DOCS.name} too")
    count, rounds = (8, 1) if options.quick else (200, 3)
    rounds = options.rounds or rounds
    found = measure_all(count, rounds)
    entries = [entry for row in found.values() for entry in row.values() if entry is not None]
    settings = {"tolerance": OPTIONS.tolerance, "iterations": OPTIONS.iterations}
    settings |= {"problems": count, "larger problems": -(-count // 4), "rounds": rounds}
    settings |= {"threads of BLAS": asked_for()}
    report = Report("solvers", QUESTION, settings, [entry.row() for entry in entries])
    report.results = [np.array(entry.residuals) for entry in entries]
    refused = {name: [solver for solver, entry in row.items() if entry is None] for name, row in found.items()}
    report.more = {"table": [entry.data() for entry in entries], "refused": refused}
    status = report.finish(options.json, lambda told: show(told, found))
    if options.docs:
        write_docs(DOCS, found, settings)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
