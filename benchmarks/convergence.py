"""How fast solvers come near the answer of contact problems: natural residual against sweeps or pivots, as a picture.

Problems are files of FCLIB's format (FILE …, which need h5py), else a column of boxes that is built here. Each is
solved as it is given, with true cones, and once more with pyramids instead. A line is the residual of a solver's answer
after the given number of sweeps; solvers that pivot have one answer, and so one point. The residual is FCLIB's: the
norm of the natural map with De Saxcé's correction, divided by the norm of b.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _common import Report, Row, Spread, arguments, circumstances
from _fclib import column_of_boxes, read_problem, relative_residual

from poise.solve.dantzig import Dantzig
from poise.solve.lemke import Lemke
from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem, Result
from poise.solve.solver_registry import Solver
from poise.view.plots import COLORS, Curve, Drawing, Mark, below, chart

QUESTION = "how fast solvers come near the answer of contact problems"
FLOOR = 1e-17
"""Residuals below this are drawn here: they are zero to rounding."""
EXACT = Options(tolerance=1e-13, iterations=100_000)
"""For sweeps, to see where they end."""
ENOUGH = 1e-9
"""Tolerance for pivots and Newton's steps: they reach many more digits or none, and smaller tolerances gain nothing."""
PURPLE = "#7b3294"
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK = COLORS


@dataclass(frozen=True)
class Way:
    """A solver with its settings, and how it is drawn."""

    name: str
    solver: Solver
    color: str
    dashed: bool = False
    width: float = 2.0
    mark: Mark | None = None
    """Shape of the one point of a solver that pivots."""
    warm: bool = False
    """Start from the answer of a problem that differs by a hundredth."""
    factored: bool = False
    tolerance: float = EXACT.tolerance


SHARED = [
    Way("Gauss-Seidel, cold", PGS(newton=False), BLUE, width=5.0),
    Way("Newton where stuck", PGS(), PURPLE, tolerance=ENOUGH),
    Way("warm", PGS(newton=False), SKY, warm=True),
    Way("ω = 0.7", PGS(newton=False, relaxation=0.7), GREEN, dashed=True),
    Way("ω = 1.3", PGS(newton=False, relaxation=1.3), GREEN),
    Way("ω = 1.6", PGS(newton=False, relaxation=1.6), PINK),
    Way("memory 10", PGS(newton=False, memory=10), RED),
    Way("factors, not a matrix", PGS(newton=False), BLACK, dashed=True, factored=True),
    Way("two passes", PGS(newton=False, friction="two_pass"), ORANGE),
    Way("ten passes", PGS(newton=False, friction="two_pass", passes=10), ORANGE, dashed=True),
]
CONES = SHARED
PYRAMIDS = [
    *SHARED,
    Way("Dantzig (pivots)", Dantzig(), BLACK, mark="diamond", tolerance=ENOUGH),
    Way("Lemke (pivots)", Lemke(), RED, mark="square", tolerance=ENOUGH),
]


@dataclass(frozen=True)
class Given:
    """A problem in both storages, with cones or with pyramids."""

    name: str
    whole: Problem
    factored: Problem

    def with_cones(self) -> Given:
        """As FCLIB means it."""
        return replace(self, name=f"{self.name}, cones")

    def with_pyramids(self) -> Given:
        """The same with each tangent row by itself."""
        return Given(f"{self.name}, pyramids", _pyramids(self.whole), _pyramids(self.factored))


def _pyramids(problem: Problem) -> Problem:
    return replace(problem, frictions=[replace(friction, cone=False) for friction in problem.frictions])


@dataclass
class Course:
    """How a solver went."""

    way: Way
    sweeps: list[int]
    residuals: list[float]
    last: Result
    seconds: float
    """Of the processor, for the last and longest solution: a picture takes long, and others may be busy."""

    def curve(self) -> Curve:
        """For the picture."""
        x, y = np.maximum(self.sweeps, 1), np.maximum(self.residuals, FLOOR)
        return Curve(self.way.name, x, y, self.way.color, self.way.dashed, self.way.width, self.way.mark)


def run(given: Given, way: Way, looks: Sequence[int]) -> Course:
    """A solver's residuals after so many sweeps, or where it ended if it pivots."""
    problem = given.factored if way.factored else given.whole
    warm = _warm(given.whole) if way.warm else None
    sweeps, residuals = [], []
    way.solver.solve(_pyramids(column_of_boxes(1).problem()))  # compiles
    for n in [EXACT.iterations] if way.mark else looks:
        options = replace(EXACT, tolerance=way.tolerance, iterations=n, warm=warm)
        start = time.process_time()
        result = way.solver.solve(problem, options)
        seconds = time.process_time() - start
        residuals.append(relative_residual(given.whole, result.lam))
        sweeps.append(result.iterations)
        if result.iterations < n:  # it met the tolerance, or gave up: no more to see
            break
    return Course(way, sweeps, residuals, result, seconds)


def _warm(problem: Problem) -> np.ndarray:
    """The answer of a problem that differs by a hundredth, as that of the step before does."""
    noise = problem.residual(np.random.default_rng(0).normal(size=problem.size)) - problem.b  # bodies can move so
    b = problem.b + 0.01 * noise * np.linalg.norm(problem.b) / np.linalg.norm(noise)
    return PGS(memory=10).solve(replace(problem, b=b), EXACT).lam


def looks_up_to(most: int, count: int) -> list[int]:
    """Numbers of sweeps from 1 on, evenly spread on a logarithmic axis."""
    return [int(n) for n in np.unique(np.geomspace(1.0, most, count).round())]


def picture(given: Given, courses: Sequence[Course]) -> Drawing:
    """Residuals over sweeps."""
    title = f"{given.name}: {given.whole.size} rows"
    pivots = any(course.way.mark for course in courses)
    labels = {"x_label": "sweeps, or pivots" if pivots else "sweeps", "y_label": "natural residual / |b|"}
    return chart([course.curve() for course in courses], log_x=True, log_y=True, title=title, height=420, **labels)


HEADINGS = ("ends", "iterations", "CPU time", "residual", "w from cones", "λ from cones")


def cells(course: Course, cone: Result, size: float) -> list[str]:
    """For the table: how it ended, and how far its answer is from that of the cones, of |b| and of |λ|."""
    last = course.last
    apart, forces = np.linalg.norm(last.w - cone.w) / size, np.linalg.norm(last.lam - cone.lam)
    ended, took = [last.status.value, str(last.iterations)], f"{course.seconds * 1e3:.1f} ms"
    return [*ended, took, f"{course.residuals[-1]:.0e}", f"{apart:.0e}", f"{forces / np.linalg.norm(cone.lam):.0e}"]


def show(report: Report) -> None:
    """A table for each problem and form."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=118)
    console.print(f"{report.name}: {report.question}")
    for name, courses in report.more["table"].items():
        table = Table(title=name, title_justify="left")
        table.add_column("solver", no_wrap=True)
        for heading in HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for way, told in courses.items():
            table.add_row(way, *told)
        console.print(table)
    for line in circumstances(report):
        console.print(line)


def read(files: Sequence[Path]) -> list[Given]:
    """The problems of some files, or the one that is built here."""
    if not files:
        column = column_of_boxes(5)
        return [Given("A column of boxes", column.problem(), column.problem(factored=True))]
    return [Given(path.stem, read_problem(path), read_problem(path, factored=True)) for path in files]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this benchmark takes."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="problems in FCLIB's format (HDF5)")
    parser.add_argument("--out", type=Path, metavar="FILE.svg", help="save the picture there")
    parser.add_argument("--sweeps", type=_sweeps, default=10_000, metavar="N", help="so many at most (10000)")


def _sweeps(text: str) -> int:
    number = int(text)
    if number < 10:
        raise argparse.ArgumentTypeError(f"{number} sweeps; at least 10 are needed for a line")
    return number


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, extend=add_arguments)
    try:
        problems = read(options.files)
    except ValueError as error:
        print(f"convergence: {error}", file=sys.stderr)
        return 2
    looks = looks_up_to(100, 6) if options.quick else looks_up_to(options.sweeps, 80)
    told: list[Row] = []
    pictures: list[Drawing] = []
    curves, table = {}, {}
    for given in problems:
        cone, size = PGS(memory=10).solve(given.whole, EXACT), float(np.linalg.norm(given.whole.b))
        for form, ways in ((given.with_cones(), CONES), (given.with_pyramids(), PYRAMIDS)):
            courses = [run(form, way, looks) for way in ways]
            pictures.append(picture(form, courses))
            told += [Row(course.way.name, Spread.of([course.seconds]), note=form.name) for course in courses]
            curves[form.name] = {course.way.name: [course.sweeps, course.residuals] for course in courses}
            table[form.name] = {course.way.name: cells(course, cone, size) for course in courses}
    settings = {"tolerance": EXACT.tolerance, "sweeps": looks[-1], "looks": len(looks), "rounds": options.rounds or 1}
    if options.out is not None:
        below(*pictures).save(options.out)
    report = Report("convergence", QUESTION, settings, told, more={"curves": curves, "table": table})
    return report.finish(options.json, show)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
