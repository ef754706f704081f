"""What a step costs more when it is called from Python than inside a kernel's own loop.

A semi-implicit step of MuJoCo's humanoid: `Simulation.step()` and the bare compiled entry, each called once a step,
less the same step in `step(n)`, where the loop over steps is inside the kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _trees import find_humanoid, handles, load_model, random_states

from poise.dynamics import Simulation
from poise.dynamics.simulation import STEPPERS
from poise.dynamics.workspace import Workspace
from poise.kernel.memory import F64
from poise.model.state import State

QUESTION = "what a step costs more when Python calls it"
STEPS = 50


def repeated(call: Callable[[], object]) -> Callable[[int], None]:
    """A loop in Python."""

    def many(n: int) -> None:
        for _ in range(n):
            call()

    return many


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options)
    states = random_states(model, 1)
    start = State(states.q[0], states.v[0], 0.0)
    called, looped = Simulation(model, start), Simulation(model, start)
    space = Workspace(model, F64)
    bare, given = STEPPERS["semi_implicit"][F64], (*handles(space), space.stages.handle)

    def reset_bare() -> None:
        space.s.q[...], space.s.v[...] = start.q, start.v

    times = measure(
        [
            Case("loop", looped.step, prepare=lambda: setattr(looped, "state", start)),
            Case("step", repeated(called.step), prepare=lambda: setattr(called, "state", start)),
            Case("bare", repeated(lambda: bare(*given, model.dt, 1)), prepare=reset_bare),
            Case("nothing", repeated(lambda: None)),
        ],
        much,
    )
    for simulation in (called, looped):
        simulation.state = start
    looped.step(STEPS)
    for _ in range(STEPS):
        called.step()
    apart = float(np.abs(called.q - looped.q).max())
    rows = [
        Row("step(n) / n, in a kernel", times.of("loop")),
        Row("Simulation.step() from Python", times.of("step")),
        Row("bare entry from Python", times.of("bare")),
        Row("a loop over nothing in Python", times.of("nothing")),
        Row("Simulation.step() less step(n) / n", times.excess("step", "loop"), most=3e-6),
        Row("bare entry less step(n) / n", times.excess("bare", "loop"), most=3e-6),
    ]
    rows[4].residual, rows[4].allowed, rows[4].note = apart, 0.0, f"residual: poses after {STEPS} steps"
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "dt": model.dt, "rounds": much.rounds}
    return Report("call_overhead", QUESTION, settings, rows, [called.q, called.v]).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
