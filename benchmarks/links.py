"""How the time of a whole step grows with the number of links: a chain on the ground that touches it in ten places.

Chains of 10 to 1,000 links with alternating hinges; ten balls among them rest on the ground, the others have no
contact. The slope of the line through log time over log links: 1 is linear time, less if the contacts dominate. In
maximal coordinates the multipliers of joints are eliminated in tree order; the largest joint gap is listed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from _common import Case, Report, Row, Spread, arguments, effort, measure

import poise
from poise.formulations.maximal_coordinates.maximal import Maximal
from poise.formulations.options import Options
from poise.formulations.reduced import Reduced
from poise.model.model import Model
from poise.sim.world import World

QUESTION = "time of a step over the number of links, with ten contacts"
SIZES = (10, 30, 100, 300, 1000)
TOUCHING, SETTLED, TOLERANCE = 10, 20, 1e-3
LONG = 0.1
WAYS: dict[str, Options] = {"reduced": Reduced(), "maximal": Maximal()}


def chain(n: int) -> Model:
    """Balls of 100 g in a row, hinged to each other; ten of them are large, and collide."""
    scene = poise.Scene()
    scene.add_ground()
    apart = n // TOUCHING
    large = {apart * k for k in range(TOUCHING)}
    link = scene.add(poise.sphere(0.05, mass=0.1), name="link 0", position=(0, 0, 0.05))
    for k in range(1, n):
        ball = poise.sphere(0.05, mass=0.1) if k in large else poise.sphere(0.02, mass=0.1, group=0, mask=0)
        place = {"position": (LONG, 0, 0), "anchor": (-0.5 * LONG, 0, 0)}
        link = scene.hinge(link.name, ball, axis="y", name=f"link {k}", damping=0.01, **place)
    return scene.compile()


def settled(n: int, how: Options) -> World:
    """A chain after some steps."""
    world = World(chain(n), how, dt=1 / 240)
    world.step(SETTLED)
    return world


def gap(world: World) -> str:
    """The largest of a joint, where joints can have any."""
    stepper: Any = world._stepper
    return f", gap {1e3 * np.abs(stepper.gaps[:, 3:]).max():.1e} mm" if hasattr(stepper, "gaps") else ""


def case(name: str, world: World) -> Case:
    """Steps from one state."""
    kept = world.state

    def back() -> None:
        world.state = kept

    return Case(name, world.step, prepare=back)


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options)
    worlds = {f"{n} links, {way}": settled(n, how) for way, how in WAYS.items() for n in SIZES}
    times = measure([case(name, world) for name, world in worlds.items()], much)
    report = Report("links", QUESTION, {"rounds": much.rounds, "sizes": list(SIZES)})
    for name, world in worlds.items():
        world.step()
        told = world.report()
        report.results.append(world.q.copy())
        note = f"{told.rows} rows, {len(told.contacts)} contacts{gap(world)}"
        row = Row(name, times.of(name), residual=told.residual, allowed=TOLERANCE, note=note)
        if name.endswith("maximal"):
            row.beside, row.ratio = "reduced", times.ratio(name, name.replace("maximal", "reduced"))
        report.rows.append(row)
    for way in WAYS:
        logs = np.log([times.seconds[f"{n} links, {way}"] for n in SIZES])
        slope = Spread.of(np.polyfit(np.log(SIZES), logs, 1)[0])
        report.rows.append(Row(f"slope, {way}", slope, unit="1", most=1.1))
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
