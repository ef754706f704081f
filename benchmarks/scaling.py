"""How the time of one forward dynamics grows with the number of links, in a chain and in a bush.

Trees of hinges with 10, 100 and 1000 links; a bush is a random tree in which no link has more than three children. The
slope is that of the line through log time over log links: 1 is linear time. Inside a kernel, in float64.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from _common import Case, Report, Row, Spread, Timings, arguments, effort, measure
from _kernels import ABM
from _trees import States, bush, chain, fill, filled, handles, random_states, tree

from poise import dynamics
from poise.kernel.memory import F64
from poise.model.model import Model

QUESTION = "time of one forward dynamics over the number of links"
SIZES = (10, 100, 1000)
SHAPES = {"chain": chain, "bush": bush}
ALLOWED = 1e-9


def small_states(model: Model) -> States:
    """A gentle pose and slow motion: at random ones a chain of 1000 links would whip."""
    states = random_states(model, 1)
    return States(0.1 * states.q, 0.01 * states.v, states.tau)


def case(name: str, model: Model, states: States) -> Case:
    """One tree."""
    space, run = filled(model, F64, states), ABM[F64]
    return Case(name, lambda n: run(*handles(space), 0.0, n), prepare=lambda: fill(space, states))


def residual(model: Model, states: States) -> tuple[float, np.ndarray]:
    """Forces that the accelerations would take less those given, beside the forces that are at work; accelerations."""
    q, v, tau = states.q[0], states.v[0], states.tau[0]
    a = dynamics.forward_dynamics(model, q, v, tau)
    left = np.abs(dynamics.inverse_dynamics(model, q, v, a) - tau).max()
    return float(left / np.abs(dynamics.bias_forces(model, q, v)).max()), a


def slope(times: Timings, shape: str) -> Spread:
    """Slope of log time over log links, in each round."""
    logs = np.log([times.seconds[f"{shape} {n}"] for n in SIZES])
    return Spread.of(np.polyfit(np.log(SIZES), logs, 1)[0])


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options)
    report = Report("scaling", QUESTION, {"rounds": much.rounds, "sizes": list(SIZES)})
    cases, left = [], {}
    for shape, parents in SHAPES.items():
        for n in SIZES:
            model = tree(parents(n))
            states = small_states(model)
            name = f"{shape} {n}"
            cases.append(case(name, model, states))
            left[name], a = residual(model, states)
            report.results.append(a)
    times = measure(cases, much)
    for shape in SHAPES:
        for n in SIZES:
            name = f"{shape} {n}"
            each = times.of(name).median / n * 1e9
            note = f"{each:.0f} ns a link"
            report.rows.append(
                Row(f"{shape} of {n} links", times.of(name), residual=left[name], allowed=ALLOWED, note=note)
            )
        report.rows.append(Row(f"{shape}: slope", slope(times, shape), unit="1", least=0.9, most=1.1))
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
