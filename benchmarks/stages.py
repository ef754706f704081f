"""Where the time of one forward dynamics goes, stage by stage, in float64 and in lanes.

The stages of the articulated-body algorithm on MuJoCo's humanoid, each alone in a loop inside a kernel, per world.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from _common import Case, Report, Row, arguments, effort, measure
from _kernels import ABM, STAGES
from _trees import fill, filled, find_humanoid, handles, load_model, random_states

from poise.kernel.memory import F32X16, F64, F64X8, Width
from poise.model.model import Model

QUESTION = "where the time of one forward dynamics goes"
WIDTHS = (F64, F64X8, F32X16)


def cases(model: Model, width: Width) -> list[Case]:
    """The whole and its stages."""
    states = random_states(model, width.lanes)
    space = filled(model, width, states)

    def ready() -> None:
        """Every stage finds what those before it left."""
        fill(space, states)
        ABM[width](*handles(space), 0.0, 1)

    def loop(run: Any) -> Any:
        return lambda n: run(*handles(space), 0.0, n)

    found = {"whole": ABM, **STAGES}
    return [Case(f"{width} {name}", loop(e[width]), width.lanes, ready) for name, e in found.items()]


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options)
    times = measure([case for width in WIDTHS for case in cases(model, width)], much)
    rows = []
    for width in WIDTHS:
        whole = f"{width} whole"
        rows.append(Row(f"{width}: whole call", times.of(whole)))
        for stage in STAGES:
            name = f"{width} {stage}"
            rows.append(Row(f"{width}: {stage}", times.of(name), beside=whole, ratio=times.ratio(name, whole)))
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "rounds": much.rounds}
    results = []
    for width in WIDTHS:
        space = filled(model, width, random_states(model, width.lanes))
        ABM[width](*handles(space), 0.0, 1)
        results.append(space.w.a)
    return Report("stages", QUESTION, settings, rows, results).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
