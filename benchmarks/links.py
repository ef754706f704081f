"""How the time of a whole step grows with the number of links: a chain on the ground that touches it in ten places.

Chains of 10 to 1,000 links with hinges across; ten balls among them rest on the ground, the others touch nothing. The
slope of the line through log time over log links is told: 1 is linear time, less where the contacts take most of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from _common import Case, Report, Row, Spread, arguments, effort, measure

import poise
from poise.model.model import Model
from poise.sim.world import World

QUESTION = "time of a step over the number of links, with ten contacts"
SIZES = (10, 30, 100, 300, 1000)
TOUCHING, SETTLED, TOLERANCE = 10, 20, 1e-3
LONG = 0.1


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


def settled(n: int) -> World:
    """A chain after some steps."""
    world = World(chain(n), dt=1 / 240)
    world.step(SETTLED)
    return world


def case(name: str, world: World) -> Case:
    """Steps from one state."""
    q, v = world.q.copy(), world.v.copy()

    def back() -> None:
        world.q[...], world.v[...] = q, v

    return Case(name, world.step, prepare=back)


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options)
    worlds = {f"{n} links": settled(n) for n in SIZES}
    times = measure([case(name, world) for name, world in worlds.items()], much)
    report = Report("links", QUESTION, {"rounds": much.rounds, "sizes": list(SIZES)})
    for name, world in worlds.items():
        world.step()
        told = world.report()
        report.results.append(world.q.copy())
        note = f"{told.rows} rows, {len(told.contacts)} contacts"
        report.rows.append(Row(name, times.of(name), residual=told.residual, allowed=TOLERANCE, note=note))
    logs = np.log([times.seconds[name] for name in worlds])
    slope = Spread.of(np.polyfit(np.log(SIZES), logs, 1)[0])
    report.rows.append(Row("slope", slope, unit="1", most=1.1))
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
