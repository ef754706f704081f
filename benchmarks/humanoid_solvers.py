"""How solvers handle joints as rows: a person on both feet and a chain with a heavy end, in maximal coordinates.

LIU: projected Gauss-Seidel behaves badly on a humanoid with both feet down, and a pivoting solver does not. Here all
joints, motors and contacts are rows of one problem. The table has the residual after a number of sweeps from zero, and
the joint gaps after a second of steps with warm starts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _common import Case, Effort, Report, Row, Spread, arguments, effort, machine, measure
from _loose_bodies import LooseBodies, Posed, hanging, standing
from solvers import markdown, replace_between

from poise.kernel.blas import asked_for
from poise.kernel.memory import F64, Block
from poise.solve import residuals as check
from poise.solve.cg import CG
from poise.solve.dantzig import Dantzig
from poise.solve.direct import Direct
from poise.solve.lemke import Lemke
from poise.solve.newton import newton
from poise.solve.pgs import PGS
from poise.solve.pgs_kernels import RUN
from poise.solve.pgs_pack import pack, start
from poise.solve.problem import Friction, Options, Problem, Result

QUESTION = "what solvers make of a humanoid's and a chain's joints as rows"
SWEEPS, FINE, EXACT = (10, 50, 200, 1000), 1e-12, 1e-9
LENGTHS, BATCH = (10, 30, 100, 300, 1000), 20
"""Links of chains whose sweeps are timed, and sweeps in one call."""
SETTLE = 24
"""Accurately solved steps before the problem that is measured."""
BEGIN, END = "<!-- {name}: written by `python benchmarks/humanoid_solvers.py --docs` -->", "<!-- end of {name} -->"
DOCS = Path(__file__).resolve().parents[1] / "docs" / "solvers.md"


def swept(solver: PGS, formed: bool, cone: bool = True) -> Callable[[Posed, np.ndarray, int], Result]:
    """So many sweeps of a solver, over the matrix or over bodies."""

    def solve(posed: Posed, warm: np.ndarray, sweeps: int) -> Result:
        problem = posed.formed(cone) if formed else posed.problem
        return solver.solve(problem, Options(FINE, sweeps, warm))

    return solve


def eliminated(posed: Posed, warm: np.ndarray, inner: Callable[[Problem, np.ndarray], np.ndarray]) -> Result:
    """Joints eliminated first, the other rows solved by `inner`: as in trees, whose joints have no rows."""
    whole, n = posed.formed(), posed.joints
    A, b = whole.A, whole.b
    answer = np.linalg.solve(A[:n, :n], np.column_stack((A[:n, n:], b[:n])))
    left = np.zeros(0)
    if whole.size > n:
        schur = A[n:, n:] - A[n:, :n] @ answer[:, :-1]
        frictions = [Friction(f.normal - n, tuple(t - n for t in f.tangents), f.mu, f.cone) for f in whole.frictions]
        rest = b[n:] - A[n:, :n] @ answer[:, -1]
        bounds = whole.lo[n:], whole.hi[n:], whole.cfm[n:]
        left = inner(Problem(0.5 * (schur + schur.T), rest, *bounds, frictions=frictions), warm[n:])
    lam = np.concatenate((-answer[:, :-1] @ left - answer[:, -1], left))
    return check.report(whole, lam, 1, Options(EXACT))


def by_newton(problem: Problem, warm: np.ndarray) -> np.ndarray:
    """A few sweeps, then Newton's method."""
    start = PGS(newton=False).solve(problem, Options(FINE, 10, warm)).lam
    return newton(problem, start, FINE * check.size_of(problem))[0]


def direct_newton(posed: Posed, warm: np.ndarray, sweeps: int = 0) -> Result:
    """Joints eliminated, Newton's method for motors and contacts."""
    return eliminated(posed, warm, by_newton)


def direct_sweeps(posed: Posed, warm: np.ndarray, sweeps: int) -> Result:
    """Joints eliminated, sweeps for motors and contacts."""
    return eliminated(posed, warm, lambda p, start: PGS(newton=False).solve(p, Options(FINE, sweeps, start)).lam)


def at_once(solver: Direct | CG | Dantzig | Lemke) -> Callable[[Posed, np.ndarray, int], Result]:
    """A solver that answers once; friction as pyramids."""
    return lambda posed, warm, sweeps: solver.solve(posed.formed(cone=False), Options(EXACT, 100_000))


SWEPT: dict[str, Callable[[Posed, np.ndarray, int], Result]] = {
    "sweeps": swept(PGS(newton=False), formed=True),
    "sweeps, pyramids": swept(PGS(newton=False), formed=True, cone=False),
    "sweeps over bodies": swept(PGS(newton=False), formed=False),
    "ω = 1.3, over bodies": swept(PGS(newton=False, relaxation=1.3), formed=False),
    "ω = 0.7, over bodies": swept(PGS(newton=False, relaxation=0.7), formed=False),
    "memory 10, over bodies": swept(PGS(newton=False, memory=10, check_every=1), formed=False),
    "sweeps, Newton where stuck": swept(PGS(), formed=True),
    "joints eliminated, sweeps": direct_sweeps,
}
ONCE: dict[str, Callable[[Posed, np.ndarray, int], Result]] = {
    "joints eliminated, Newton": direct_newton,
    "`Dantzig()`, pyramids": at_once(Dantzig()),
    "`Lemke()`, pyramids": at_once(Lemke()),
}
STEPPED = (
    ("sweeps over bodies", 10),
    ("sweeps over bodies", 50),
    ("sweeps over bodies", 200),
    ("sweeps over bodies", 1000),
    ("memory 10, over bodies", 50),
    ("memory 10, over bodies", 200),
    ("joints eliminated, sweeps", 10),
    ("`Dantzig()`, pyramids", 0),
    ("joints eliminated, Newton", 0),
)
LIMP = ("sweeps over bodies", "memory 10, over bodies", "joints eliminated, sweeps")
EQUALITIES = {
    "`CG()`, over bodies": lambda posed, warm, sweeps: CG().solve(posed.problem, Options(FINE, 10_000)),
    "`Direct()`": at_once(Direct()),
    "`Dantzig()`": at_once(Dantzig()),
    "`Lemke()`": at_once(Lemke()),
    "joints eliminated": direct_newton,
}


@dataclass(frozen=True)
class Stage:
    """One of the scenes: its solvers, and those that step it."""

    name: str
    bodies: LooseBodies
    swept: tuple[str, ...]
    once: dict[str, Callable[[Posed, np.ndarray, int], Result]]
    stepped: tuple[tuple[str, int], ...]

    def solver(self, name: str) -> Callable[[Posed, np.ndarray, int], Result]:
        """By its name."""
        return self.once[name] if name in self.once else SWEPT[name]


def stages(quick: bool) -> list[Stage]:
    """The person after a tenth of a second, with and without motors, and the chain."""
    person, chain = standing(), hanging(10 if quick else 100)
    for bodies in (person, chain):
        for _ in range(2 if quick else SETTLE):
            bodies.step(direct_newton)
    over = ("sweeps", "sweeps over bodies", "ω = 1.3, over bodies", "ω = 0.7, over bodies", "memory 10, over bodies")
    lighter = tuple(row for row in STEPPED if "over bodies" in row[0])
    lighter += (("`Dantzig()`", 0), ("joints eliminated", 0))
    return [
        Stage("a person on both feet", person, tuple(SWEPT), ONCE, STEPPED),
        Stage("the same person limp", replace(person, goal=None), LIMP, {}, ()),
        Stage("a chain with a heavy end", chain, over, EQUALITIES, lighter),
    ]


def timed(solve: Callable[[], Result], rounds: int) -> tuple[Result, Spread]:
    """An answer, and the time of the processor that it takes; the first time does not count."""
    found, seconds = solve(), []
    for _ in range(rounds):
        began = time.process_time()
        solve()
        seconds.append(time.process_time() - began)
    return found, Spread.of(seconds)


def linear(much: Effort) -> list[Row]:
    """A sweep over the bodies of chains, and how it grows with their number: 1 is linear time."""
    cases = []
    for n in LENGTHS:
        problem = hanging(n).pose()[0].problem
        layout, rows = pack([problem], F64, 1.0)
        answer = start([problem], layout, F64, Options(tolerance=0.0))

        def run(count: int, rows: Block = rows, answer: Block = answer) -> None:
            for _ in range(count):
                RUN[F64](rows.handle, answer.handle, BATCH, BATCH, 1)

        cases.append(Case(f"a sweep over {n} links", run, worlds=BATCH))
    times = measure(cases, much)
    found = np.array([times.seconds[case.name] for case in cases])
    slopes = np.polyfit(np.log(LENGTHS), np.log(found), 1)[0]
    rows = [Row(case.name, times.of(case.name)) for case in cases]
    return [*rows, Row("slope over the number of links", Spread.of(slopes), unit="1", least=0.8, most=1.2)]


def look(stage: Stage, rounds: int) -> tuple[list[list[str]], list[Row]]:
    """Residuals from zero, over the largest |b|: lines of a table, and rows of the report."""
    posed, _, _ = stage.bodies.copy().pose()
    size, nought = check.size_of(posed.problem), np.zeros(posed.problem.size)
    lines, rows = [], []
    for name in stage.swept:
        cells, took = [], Spread(0.0, 0.0, 0.0)
        for sweeps in SWEEPS:
            found, took = timed(lambda n=sweeps, name=name: SWEPT[name](posed, nought, n), rounds)
            cells.append(f"{found.natural / size:.0e}")
        lines.append([name, *cells, _milliseconds(took.median)])
        rows.append(Row(f"{stage.name}: {name}", took, note=f"{SWEEPS[-1]} sweeps: {cells[-1]}"))
    for name, solve in stage.once.items():
        found, took = timed(lambda solve=solve: solve(posed, nought, 0), rounds)
        last = f"{found.natural / size:.0e}" + (f" ({found.iterations} steps)" if found.iterations > 1 else "")
        lines.append([name, "", "", "", last, _milliseconds(took.median)])
        rows.append(Row(f"{stage.name}: {name}", took, residual=found.natural / size, allowed=10.0 * EXACT))
    return lines, rows


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{1e3 * seconds:.0f} ms"


def _millimetres(metres: float) -> str:
    return f"{1e3 * metres:.2g}" if metres < 0.1 else f"{1e3 * metres:.0f}"


def march(stage: Stage, name: str, sweeps: int, seconds: float) -> list[str]:
    """Steps of one solver: what becomes of the joints."""
    bodies, solve = stage.bodies.copy(), stage.solver(name)
    began, offsets, residuals, overlaps = bodies.links.x.copy(), [], [], []
    for _ in range(round(seconds / bodies.dt)):
        result, joints = bodies.step(lambda posed, warm: solve(posed, warm, sweeps))
        offsets.append(np.linalg.norm(joints.error[:, 3:], axis=1))
        residuals.append(result.natural)
        overlaps.append(max([-one.gap for one in bodies.touching()], default=0.0))
        if not np.abs(bodies.links.x).max() < 1e3:
            return [name, str(sweeps or "—"), "flies apart", "", "", "", ""]
    moved = float(np.linalg.norm(bodies.links.x - began, axis=1).max())
    return [
        name,
        str(sweeps or "—"),
        f"{np.mean(residuals):.0e}",
        _millimetres(np.mean(offsets)),
        _millimetres(np.max(offsets)),
        _millimetres(max(overlaps)) if bodies.collider is not None else "—",
        _millimetres(moved),
    ]


LOOKED = ["solver", *(f"{n} sweeps" for n in SWEEPS), "time"]
MARCHED = [
    "solver",
    "sweeps a step",
    "residual (m/s)",
    "joints off, mean (mm)",
    "most (mm)",
    "overlap (mm)",
    "moved (mm)",
]


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, docs=f"write the tables into docs/{DOCS.name} too")
    rounds = options.rounds or (1 if options.quick else 3)
    seconds = 3 / 240 if options.quick else 1.0
    tables: dict[str, str] = {}
    rows = linear(effort(options, rounds=30))
    scenes = stages(options.quick)
    for stage in scenes:
        lines, timed_rows = look(stage, rounds)
        rows += timed_rows
        marched = [march(stage, name, sweeps, seconds) for name, sweeps in stage.stepped]
        tables[stage.name] = markdown(LOOKED, lines) + ("\n" + markdown(MARCHED, marched) if marched else "")
    settings = {"rounds": rounds, "seconds": seconds}
    settings |= {f"rows of {stage.name}": stage.bodies.copy().pose()[0].problem.size for stage in scenes}
    report = Report("humanoid_solvers", QUESTION, settings, rows, more={"tables": tables})
    status = report.finish(options.json)
    for name, table in tables.items():
        print(f"\n{name}\n\n{table}")
    if options.docs:
        text = DOCS.read_text(encoding="utf-8")
        facts = f"Measured on {machine()['cpu']}; rounds {rounds}, threads of BLAS {asked_for()}.\n"
        for name, table in tables.items():
            text = replace_between(text, BEGIN.format(name=name), END.format(name=name), f"{facts}\n{table}")
        DOCS.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
