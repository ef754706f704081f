"""How well steps of 1/240 s keep energy and angular momentum for 10 s, beside MuJoCo's integrators on the same models.

The table has the largest relative deviations: of the energy, over the kinetic energy at the beginning; of the angular
momentum about the centre of mass; of the heights of bounces. Every motion runs in its named form and in random
variations of attitude, size, mass and speed, which `--seed` changes. MuJoCo gets the same masses, inertias, joints and
coordinates; its contacts, limits and loops are as stiff as its manual advises (a time constant of two steps), and
restitution is that of a spring and damper of this stiffness. The script fails where Poise exceeds a bound.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, Row, Spread, arguments, circumstances
from _energy_cases import STEP, Motion, Run, Start, motions

import poise
from poise.dynamics import energy
from poise.io.save import save_scene

QUESTION = "how well energy and angular momentum are kept"
INTEGRATORS = ("Euler", "implicitfast", "RK4")
VARIATIONS, SEED = 6, 2000
QUICK = 0.1
"""Share of the time that a quick run takes."""


def run_poise(motion: Motion, start: Start, seconds: float) -> Run | None:
    """The default world; None where it diverges."""
    world = start.scene.build(dt=STEP)
    start.set_going(world)
    q, v = [world.q.copy()], [world.v.copy()]
    for _ in range(round(seconds / STEP / motion.every)):
        try:
            world.step(motion.every)
        except poise.Diverged:
            return None
        q.append(world.q.copy())
        v.append(world.v.copy())
    return Run(start, world.model, np.array(q), np.array(v))


class MujocoMotion:
    """The same scene in MuJoCo."""

    def __init__(self, motion: Motion, start: Start) -> None:
        import mujoco

        self.mujoco, self.motion, self.start = mujoco, motion, start
        world = (start.for_mujoco or start.scene).build(dt=STEP)
        start.set_going(world)
        self.source, self.q, self.v = world.model, world.q.copy(), world.v.copy()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", poise.io.LossWarning)  # cones of ball joints, which MJCF does not have
            path = Path(folder) / "scene.xml"
            save_scene(start.for_mujoco or start.scene, path)
            self.model = mujoco.MjModel.from_xml_path(str(path))
        self._stiffen()

    def _stiffen(self) -> None:
        mujoco, m = self.mujoco, self.model
        m.opt.timestep = STEP
        if self.motion.free:
            m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        hard, limits = (2.0 * STEP, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)
        e = self.start.restitution
        if e is not None:
            ratio = -math.log(e) / math.hypot(math.pi, math.log(e))
            rate = 1.0 / (2.0 * STEP)
            m.geom_solref[:] = -(rate**2), -2.0 * ratio * rate
            m.geom_solimp[:] = limits
        for name in ("jnt_solref", "eq_solref"):
            getattr(m, name)[:] = hard
        m.eq_solimp[:] = limits

    def run(self, integrator: str, seconds: float) -> Run | None:
        """None where MuJoCo gave up and began again."""
        mujoco, m = self.mujoco, self.model
        m.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        mujoco.set_mju_user_warning(lambda text: None)  # of resets, which are in the table
        data = mujoco.MjData(m)
        data.qpos[:], data.qvel[:] = self.q, self.v
        q, v = [self.q], [self.v]
        for _ in range(round(seconds / STEP / self.motion.every)):
            mujoco.mj_step(m, data, nstep=self.motion.every)
            if any(warning.number for warning in data.warning):
                return None
            q.append(data.qpos.copy())
            v.append(data.qvel.copy())
        return Run(self.start, self.source, np.array(q), np.array(v))

    def kinetic(self) -> float:
        """At the beginning, as MuJoCo has it; J."""
        data = self.mujoco.MjData(self.model)
        data.qpos[:], data.qvel[:] = self.q, self.v
        self.mujoco.mj_forward(self.model, data)
        self.mujoco.mj_energyVel(self.model, data)
        return float(data.energy[1])


def deviations(motion: Motion, starts: Sequence[Start], seconds: float) -> dict[str, list[list[float]]]:
    """By engine: the measures of each start."""
    found: dict[str, list[list[float]]] = {"Poise": [], **{f"MuJoCo {name}": [] for name in INTEGRATORS}}
    for start in starts:
        found["Poise"].append(measured(motion, run_poise(motion, start, seconds)))
        peer = MujocoMotion(motion, start)
        kinetic = float(energy(peer.source, peer.q, peer.v).kinetic)
        if abs(peer.kinetic() - kinetic) > 1e-6 * max(kinetic, 1e-6):
            raise SystemExit(f"{motion.name}: MuJoCo begins with {peer.kinetic()} J and Poise with {kinetic} J")
        for name in INTEGRATORS:
            found[f"MuJoCo {name}"].append(measured(motion, peer.run(name, seconds)))
    return found


def measured(motion: Motion, run: Run | None) -> list[float]:
    """The measures of a motion, infinite where it was given up."""
    return [math.inf if run is None else measure.of(run) for measure in motion.measures]


def starts_of(motion: Motion, number: int, seed: int) -> list[Start]:
    """The named form, and so many variations."""
    return [motion.begin(None), *(motion.begin(np.random.default_rng([seed, k])) for k in range(number))]


# ---- table -----------------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """A short number; words for non-finite ones."""
    if math.isnan(share):
        return "none"
    if share >= 10.0:
        return "reset" if math.isinf(share) else f"×{share:.0f}"
    return f"{100.0 * share:.2g} %" if share < 0.0995 else f"{100.0 * share:.0f} %"


def pair(values: Sequence[float]) -> str:
    """The named form, and the worst of its variations."""
    worst = max((math.inf if math.isnan(value) else value for value in values[1:]), default=math.nan)
    return f"{percent(values[0])} / {percent(worst)}"


def show(report: Report) -> None:
    """Deviations of all engines."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=150)
    table = Table(title=f"{report.name}: {report.question}", title_justify="left")
    table.add_column("named / worst of variations", no_wrap=True)
    engines = list(report.more["deviations"][report.rows[0].what])
    for heading in ("bound", *engines):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in report.rows:
        found = report.more["deviations"][row.what]
        beyond = "" if row.residual is not None and row.residual <= row.allowed else "  NO"
        cells = [pair(found[name]) + (beyond if name == "Poise" else "") for name in engines]
        table.add_row(row.what, percent(row.allowed), *cells)
    console.print(table)
    for line in circumstances(report):
        console.print(line)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What only this benchmark takes."""
    parser.add_argument("--variations", type=int, metavar="N", help=f"of each motion ({VARIATIONS})")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"of the variations ({SEED})")
    parser.add_argument("--only", metavar="TEXT", default="", help="motions with this in their names")


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, extend=add_arguments)
    number = (1 if options.quick else VARIATIONS) if options.variations is None else options.variations
    rows: list[Row] = []
    table: dict[str, Any] = {}
    results: list[np.ndarray] = []
    for motion in motions():
        if options.only not in motion.name:
            continue
        brief = options.quick and motion.every > 1
        found = deviations(motion, starts_of(motion, number, options.seed), motion.seconds * (QUICK if brief else 1.0))
        for k, measure in enumerate(motion.measures):
            what = f"{motion.name}: {measure.name}"
            table[what] = {engine: [values[k] for values in runs] for engine, runs in found.items()}
            ours = np.array(table[what]["Poise"])
            worst = float(ours.max())
            rows.append(Row(what, Spread.of(ours), "1", residual=worst, allowed=measure.bound))
            results.append(ours)
    settings = {"step": STEP, "variations": number, "seed": options.seed, "rounds": options.rounds or 1}
    report = Report("energy", QUESTION, settings, rows, results, {"deviations": table})
    return report.finish(options.json, show)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
