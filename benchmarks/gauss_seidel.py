"""How long a sweep of projected Gauss-Seidel takes, and how sweeps converge: one problem, lanes, with and without A.

The problem has the size of a humanoid on the ground: 13 contacts and 10 bounded rows over 33 degrees of freedom, random
numbers. Each call starts from zero and takes 20 sweeps; a table of residuals against sweeps is printed after it, with
those of FCLIB's problems if h5py and their files (`../shared/data/fclib`) are installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import util

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _fclib import FOLDER, read_problem

from poise.kernel.memory import F32X16, F64, F64X8, Block, Width
from poise.solve.delassus_operator import Factors
from poise.solve.pgs import PGS
from poise.solve.pgs_kernels import RUN
from poise.solve.pgs_pack import pack, start
from poise.solve.problem import Friction, Options, Problem

QUESTION = "how long a sweep of projected Gauss-Seidel takes"
CONTACTS, BOUNDED, COORDINATES, SWEEPS = 13, 10, 33, 20
LOOKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def problem(factored: bool, cone: bool) -> Problem:
    """Contacts first, then rows with bounds; softness as a stiff ground has it."""
    rng, m = np.random.default_rng(0), 3 * CONTACTS + BOUNDED
    J = rng.normal(size=(m, COORDINATES))
    frictions = [Friction(3 * k, (3 * k + 1, 3 * k + 2), 0.8, cone) for k in range(CONTACTS)]
    A = Factors(J, J.T) if factored else J @ J.T
    b, one = J @ rng.normal(size=COORDINATES), np.ones(m)
    return Problem(A, b, -one, one, 0.01 * one, frictions=frictions)


class Work:
    """A problem in every lane, ready to be solved again and again."""

    def __init__(self, given: Problem, width: Width) -> None:
        layout, self.rows = pack([given], width, 1.0)
        self.answer: Block = start([given], layout, width, Options(tolerance=0.0))
        self.call = RUN[width]

    def run(self, n: int) -> None:
        """Solve it n times."""
        for _ in range(n):
            self.answer.lam[...] = 0.0
            self.call(self.rows.handle, self.answer.handle, SWEEPS, SWEEPS, 1)


SOLVERS = {"": PGS(), ", ω = 1.3": PGS(relaxation=1.3), ", memory 10": PGS(memory=10)}


def residuals(given: Problem, solver: PGS) -> list[float]:
    """Natural residual, of the largest |b|, after so many sweeps."""
    size = float(np.abs(given.b).max())
    return [solver.solve(given, Options(tolerance=1e-14, iterations=n)).natural / size for n in LOOKS]


def show(problems: dict[str, Problem]) -> None:
    width = max(map(len, problems)) + 12
    print(f"\n{'residual after sweeps':{width}}" + "".join(f"{n:>9}" for n in LOOKS))
    for name, given in problems.items():
        for how, solver in SOLVERS.items():
            print(f"{name + how:{width}}" + "".join(f"{x:9.0e}" for x in residuals(given, solver)))


def others() -> dict[str, Problem]:
    """FCLIB's problems, where they are."""
    if util.find_spec("h5py") is None or not FOLDER.is_dir():
        return {}
    return {path.stem: read_problem(path) for path in sorted(FOLDER.glob("*.hdf5"))}


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options)
    kinds = {
        f"{shape}, {storage}": problem(storage == "factors", shape == "cones")
        for shape in ("pyramids", "cones")
        for storage in ("matrix", "factors")
    }
    widths = (F64, F64X8, F32X16)
    works = {(name, width): Work(given, width) for name, given in kinds.items() for width in widths}
    cases = [Case(f"{name} {width}", work.run, worlds=SWEEPS * width.lanes) for (name, width), work in works.items()]
    times = measure(cases, much)
    rows, found = [], []
    for name, given in kinds.items():
        result = PGS().solve(given, Options(tolerance=1e-10, iterations=20_000))
        found.append(result.lam)
        for width in widths:
            row = Row(f"{name}, {width}, a sweep of a problem", times.of(f"{name} {width}"))
            if width is not F64:
                row.beside, row.ratio = "f64", times.ratio(f"{name} {width}", f"{name} {F64}")
            row.residual, row.allowed = result.natural / float(np.abs(given.b).max()), 1e-10
            rows.append(row)
    settings = {"rows": 3 * CONTACTS + BOUNDED, "contacts": CONTACTS, "coordinates": COORDINATES}
    settings |= {"sweeps": SWEEPS, "rounds": much.rounds}
    status = Report("gauss_seidel", QUESTION, settings, rows, found).finish(options.json)
    show({name: kinds[name] for name in kinds if "matrix" in name} | ({} if options.quick else others()))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
