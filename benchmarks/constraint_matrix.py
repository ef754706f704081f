"""How long the matrix of m rows takes: by test forces, by acceleration deltas, in lanes.

Unit forces at random points of the bodies of MuJoCo's humanoid, against the world; K[i, j] is the acceleration of point
i by force j. KOK §4.2 makes m + 1 calls of the whole forward dynamics; §4.3 makes m calls of deltas, each "about three
times faster", or "fifty to sixty percent" beside calls that keep what depends on the state alone. Every method starts
from the state (see `_matrices`); simulations use half deltas. `--figure` draws docs/figures/constraint_matrix.svg
again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _common import Case, Effort, Report, Row, Timings, arguments, effort, measure
from _matrices import Ways, reference
from _trees import States, find_humanoid, load_model, random_states

from poise import dynamics
from poise.constraints.rows import Rows
from poise.kernel.memory import F64, F64X8
from poise.model.model import Model
from poise.view.plots import Drawing, below, line_chart

QUESTION = "the matrix of m rows, by test forces, by deltas and in lanes"
ALLOWED = 1e-9
SIZES = (1, 2, 3, 6, 9, 12, 18, 24, 36, 48, 60)
TOLD = (1, 3, 12, 36, 60)
"""Sizes in the table; the figure has all."""
MANY = 12
"""From so many rows on the targets count: KOK compares a call with a call, not with what comes before all of them."""
LEGEND = {
    "test forces": "test forces",
    "cached": "test forces, cached",
    "deltas": "deltas",
    "gram": "half deltas",
    "lanes": "half deltas, 8 rows",
    "worlds": "half deltas, 8 worlds",
}
NAMES = tuple(LEGEND)
WORLDS = 8
FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "constraint_matrix.svg"


def random_rows(model: Model, poses: np.ndarray, count: int) -> Rows:
    """Forces at points a hand's breadth or so from the centres of random bodies: the same ones in every pose."""
    rng = np.random.default_rng(count)
    bodies = rng.choice(np.flatnonzero(model.body_link >= 0), count)
    arms, forces = rng.normal(scale=0.1, size=(count, 3)), rng.normal(size=(count, 3))
    forces /= np.linalg.norm(forces, axis=1, keepdims=True)
    rows = Rows(model, F64 if len(poses) == 1 else F64X8)
    for world, q in enumerate(poses):
        turns = dynamics.bodies(model, q).rotation[bodies]
        moments = np.cross(np.einsum("kij,kj->ki", turns, arms), forces)
        for i, body in enumerate(bodies.tolist()):
            rows.add(id=i, b=body, Jb=np.concatenate([moments[i], forces[i]]), world=world)
    return rows


def time_size(
    model: Model, states: States, count: int, much: Effort
) -> tuple[Timings, dict[str, float | None], np.ndarray]:
    """Times and residuals of all methods for a number of rows, and the matrix."""
    single = [random_rows(model, q[None], count) for q in states.q]
    ways = Ways(states, single[-1], random_rows(model, states.q, count)).all()
    ways = {way.name: way for way in ways if way.name in NAMES}
    truth = [reference(rows, q) for rows, q in zip(single, states.q, strict=True)]
    worst = {name: way.residual(truth) for name, way in ways.items()}
    matrix = ways["lanes"].made()
    cases = [Case(name, way.run, way.worlds, way.prepare) for name, way in ways.items()]
    return measure(cases, much), worst, matrix


def table_rows(count: int, times: Timings, worst: dict[str, float | None]) -> list[Row]:
    """What the table says of one size."""
    table = []
    for name in NAMES:
        row = Row(
            f"{count} row{'s' * (count > 1)}: {LEGEND[name]}", times.of(name), residual=worst[name], allowed=ALLOWED
        )
        if name != NAMES[0]:
            row.beside, row.ratio = NAMES[0], times.ratio(name, NAMES[0])
        row.note = "per world" if name == "worlds" else ""
        table.append(row)
        if name == "deltas":
            beside = Row(row.what, row.value, beside=LEGEND["cached"], ratio=times.ratio(name, "cached"))
            beside.residual, beside.allowed = row.residual, ALLOWED
            beside.note = f"{100 / beside.ratio.median - 100:.0f} % faster"
            if count >= MANY:
                row.most, beside.most = 1 / 3, 1 / 1.5
            table.append(beside)
    return table


def draw(times: dict[int, Timings], model: Model) -> Drawing:
    """Times over the number of rows: all methods, and the faster ones alone."""
    sizes = list(times)
    curves = {name: [1e6 * times[size].of(name).median for size in sizes] for name in NAMES}

    def chart(names: Sequence[str], title: str) -> Drawing:
        chosen = {LEGEND[name]: curves[name] for name in names}
        return line_chart(sizes, chosen, title=title, x_label="rows", y_label="time (µs)")

    whole = chart(
        NAMES[2:] + NAMES[:2], f"The matrix of a humanoid's constraints ({model.nv} degrees of freedom), from the state"
    )
    return below(whole, chart(NAMES[2:], "Without test forces"))


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True, figure=f"write docs/figures/{FIGURE.name}")
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options, rounds=150, batch=3e-4)
    states = random_states(model, WORLDS)
    times, table, results = {}, [], []
    for count in TOLD if options.quick else SIZES:
        times[count], worst, matrix = time_size(model, states, count, much)
        results.append(matrix)
        if count in TOLD:
            table += table_rows(count, times[count], worst)
    if options.figure:
        FIGURE.parent.mkdir(exist_ok=True)
        draw(times, model).save(FIGURE)
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "rounds": much.rounds, "worlds": WORLDS}
    return Report("constraint_matrix", QUESTION, settings, table, results).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
