"""How long the contacts of a humanoid on the ground take: their matrix, and its solution, beside MuJoCo's whole step.

MuJoCo's humanoid with twelve contacts, while it settles and once it has settled (see `_contacts`). The matrix by every
method (see `_matrices`), then projected Gauss-Seidel on the true cones from the answer of the step before, and
Dantzig's method on pyramids to the end. MuJoCo steps from the same state again and again, with its own warm start; the
cost of restoring the state is subtracted. Its step does more: it detects the contacts, and joints at their limits are
part of its problem. The notes say what limits add to ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from _common import Case, Report, Row, Timings, arguments, effort, measure
from _contacts import GroundPeer, Moment, Stage, carried_over, contact_rows, jacobian, problem
from _matrices import Ways
from _solving import Pivoting, Sweeping
from _trees import States, find_humanoid, load_model

from poise.kernel.memory import F64X8
from poise.model.model import Model
from poise.solve.pgs import PGS
from poise.solve.problem import Options, Problem

QUESTION = "the contacts of a humanoid on the ground, beside MuJoCo's whole step"
ALLOWED = 1e-9
STAGES: tuple[Stage, ...] = ("settling", "settled")
SOLVERS = ("Newton", "PGS")
"""MuJoCo's: the one that it has by default, and Gauss-Seidel."""
WORLDS = 8
TARGETS = {"lanes": 0.25, "PGS": 0.2, "Dantzig": 2.0}


@dataclass
class Measured:
    """Something to time, with what the table says of it."""

    key: str
    what: str
    run: Callable[[int], object]
    residual: Callable[[], float | None] | None = None
    allowed: float = ALLOWED
    worlds: int = 1
    note: Callable[[], str] = str
    most: float | None = None
    prepare: Callable[[], object] | None = None


def solved(given: Problem) -> np.ndarray:
    """All digits that there are."""
    result = PGS(memory=10).solve(given, Options(tolerance=1e-10, iterations=100_000))
    if not result.ok:
        raise SystemExit(f"the step before has no answer to start from: {result.status.value}, {result.natural:.1e}")
    return result.lam


def steps(peer: GroundPeer, moment: Moment) -> list[Measured]:
    """MuJoCo's own."""

    def run(solver: str, n: int) -> None:
        peer.use(solver)
        peer.steps(moment, n)

    def note(solver: str) -> str:
        peer.use(solver)
        data = peer.at(moment)
        taken = int(data.solver_niter[0])
        return f"{data.nefc} rows, {taken} iteration{'s' * (taken != 1)}"

    return [
        Measured(f"mj_step {solver}", f"mj_step, {solver}", partial(run, solver), note=partial(note, solver))
        for solver in SOLVERS
    ]


def matrices(model: Model, peer: GroundPeer, moments: Sequence[Moment]) -> list[Measured]:
    """Every method, from the state to the matrix."""
    q, v = (np.array([getattr(moment, name) for moment in moments]) for name in ("q", "v"))
    stores = contact_rows(model, moments[-1:]), contact_rows(model, moments)
    truth = [peer.matrix(moment) for moment in moments]
    return [
        Measured(
            way.name,
            f"matrix, {way.name}" if way.made else way.name,
            way.run,
            partial(way.residual, truth),
            worlds=way.worlds,
            most=TARGETS.get(way.name),
            prepare=way.prepare,
        )
        for way in Ways(States(q, v, np.zeros_like(v)), *stores).all()
    ]


def sweeping(model: Model, moments: Sequence[Moment]) -> list[Measured]:
    """Gauss-Seidel on cones."""
    whole = [problem(model, moment) for moment in moments]
    pairs = list(pairwise(moments))
    warm = [carried_over(solved(p), *pair) for p, pair in zip(whole[:-1], pairs, strict=True)]
    limited = [problem(model, moment, limits=True) for moment in moments[-2:]]
    limited_warm = [carried_over(solved(limited[0]), *pairs[-1])]

    def measured(key: str, work: Sweeping, most: float | None = None) -> Measured:
        allowed = work.tolerance * (1.0 + ALLOWED)  # NumPy's sums round otherwise than the kernel's
        return Measured(key, key, work.run, work.residual, allowed, work.width.lanes, work.sweeps, most)

    found = [
        measured("PGS, warm, 1e-3", Sweeping(whole[-1:], warm[-1:], 1e-3), TARGETS["PGS"]),
        measured("PGS, warm, 1e-6", Sweeping(whole[-1:], warm[-1:], 1e-6)),
        measured("PGS, cold, 1e-3", Sweeping(whole[-1:], None, 1e-3)),
        measured(f"PGS, warm, 1e-3, {F64X8}", Sweeping(whole[1:], warm, 1e-3, F64X8)),
        measured(f"PGS, warm, 1e-6, {F64X8}", Sweeping(whole[1:], warm, 1e-6, F64X8)),
    ]
    if limited[0].size == limited[1].size:
        found.append(measured("PGS, warm, 1e-3, limits", Sweeping(limited[1:], limited_warm, 1e-3)))
    return found


def pivoting(model: Model, before: Moment, now: Moment) -> list[Measured]:
    """Dantzig's method on pyramids."""
    found = []
    for limits, words in ((False, ""), (True, ", limits")):
        given = problem(model, now, cone=False, limits=limits)
        last = Pivoting(problem(model, before, cone=False, limits=limits), None).last.lam
        starts = {"": None} | ({", warm": carried_over(last, before, now)} if last.size == given.size else {})
        for start, warm in starts.items():
            work, key = Pivoting(given, warm), f"Dantzig{start}{words}"
            found.append(Measured(key, key, work.run, work.residual, most=TARGETS.get(key), note=partial(told, work)))
    return found


def told(work: Pivoting) -> str:
    """What it took."""
    return f"{work.last.steps} pivots, {work.last.passes} passes"


def rows(stage: Stage, found: Sequence[Measured], times: Timings) -> list[Row]:
    """The table of one stage."""
    beside, table = f"{stage} mj_step Newton", []
    for one in found:
        name = f"{stage} {one.key}"
        row = Row(f"{stage}: {one.what}", times.of(name), most=one.most, allowed=one.allowed)
        if name != beside:
            row.beside, row.ratio = "mj_step", times.ratio(name, beside)
        row.residual = one.residual() if one.residual else None
        row.note = ", ".join(filter(None, [one.note(), "per world" if one.worlds > 1 else ""]))
        table.append(row)
    return table


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options, rounds=150, batch=3e-4)
    peer = GroundPeer(path, model)
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "rounds": much.rounds, "worlds": WORLDS}
    table, results = [], []
    for stage in STAGES:
        moments = peer.stretch(stage, WORLDS + 1)
        found = steps(peer, moments[-1]) + matrices(model, peer, moments[1:])
        found += sweeping(model, moments) + pivoting(model, *moments[-2:])
        cases = [Case(f"{stage} {one.key}", one.run, one.worlds, one.prepare) for one in found]
        restore = Case("restore", partial(peer.restore, moments[-1]))
        times = measure([*cases, restore], much)
        for solver in SOLVERS:
            times.seconds[f"{stage} mj_step {solver}"] -= times.seconds["restore"]
        table += rows(stage, found, times)
        J = jacobian(model, moments[-1])
        settings[f"J {stage} beside MuJoCo's"] = f"{np.abs(J - peer.jacobian(moments[-1])).max():.1e}"
        results.append(problem(model, moments[-1]).A)
    return Report("contacts", QUESTION, settings, table, results).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
