"""How the time of a step grows with the number of bodies: separate boxes that rest on the ground.

Each box is an island of its own, of 12 rows. Beside MuJoCo's step of the same boxes with its own time step, constraints
and solver; and with sleeping, where a step has nothing to do. The slope is that of the line through log time over log
number: 1 is linear time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
from _common import Case, Report, Row, Spread, arguments, effort, measure

import poise
from poise.sim.world import World

QUESTION = "time of a step over the number of boxes that rest on the ground"
SIZES = (10, 30, 100, 300, 1000)
SIDE, APART, SETTLED, TOLERANCE, DT = 0.2, 0.3, 200, 1e-3, 0.005


def places(n: int) -> list[tuple[float, float, float]]:
    """Of n boxes in a square."""
    across = ceil(sqrt(n))
    return [(APART * (k % across), APART * (k // across), 0.5 * SIDE) for k in range(n)]


def boxes(n: int, sleeping: bool) -> World:
    """Ours, after a second."""
    scene = poise.Scene()
    scene.add_ground()
    for k, place in enumerate(places(n)):
        scene.add(poise.box(SIDE, SIDE, SIDE, mass=1.0), name=f"box {k}", position=place)
    world = scene.build(poise.Reduced(tolerance=TOLERANCE, sleeping=sleeping), dt=DT)
    world.step(SETTLED)
    return world


def mujoco_case(n: int) -> Case:
    """MuJoCo's, after a second."""
    import mujoco

    body = '<body pos="{} {} {}"><freejoint/><geom type="box" size="{h} {h} {h}" mass="1"/></body>'
    bodies = "".join(body.format(*place, h=0.5 * SIDE) for place in places(n))
    ground = '<geom type="plane" size="50 50 1"/>'
    text = f'<mujoco><option timestep="{DT}"/><worldbody>{ground}{bodies}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=SETTLED)
    return Case(f"{n} boxes, MuJoCo", lambda steps: mujoco.mj_step(model, data, nstep=steps))


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options)
    worlds = {f"{n} boxes": boxes(n, sleeping=False) for n in SIZES}
    asleep = {f"{n} boxes, asleep": boxes(n, sleeping=True) for n in SIZES}
    ours = [Case(name, world.step) for name, world in (worlds | asleep).items()]
    times = measure(ours + [mujoco_case(n) for n in SIZES], much)
    rows = []
    for n in SIZES:
        name, beside = f"{n} boxes", f"{n} boxes, MuJoCo"
        told = worlds[name].report()
        row = Row(name, times.of(name), beside="MuJoCo", ratio=times.ratio(name, beside), most=1.0)
        row.note, row.residual, row.allowed = f"{told.rows} rows, {told.sweeps} sweeps", told.residual, TOLERANCE
        rows += [row, Row(beside, times.of(beside))]
        sleeper = f"{name}, asleep"
        rows.append(Row(sleeper, times.of(sleeper), beside="awake", ratio=times.ratio(sleeper, name), most=0.1))
    logs = np.log([times.seconds[f"{n} boxes"] for n in SIZES])
    rows.append(Row("slope", Spread.of(np.polyfit(np.log(SIZES), logs, 1)[0]), unit="1", most=1.1))
    results = [world.q.copy() for world in worlds.values()]
    settings = {"sizes": list(SIZES), "dt": DT, "rounds": much.rounds}
    return Report("boxes", QUESTION, settings, rows, results).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
