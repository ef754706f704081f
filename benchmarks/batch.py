"""How long a step of one of many worlds takes, in lanes and by threads, beside MuJoCo's rollout of as many.

Both engines take MuJoCo's humanoid from its squat through half a second, self-collision on, under random controls of
each world: uniform in a share of their range, drawn again after some steps. Ours are stepped as long as controls stay;
a rollout gets all controls beforehand. MuJoCo's contacts are soft, ours are hard. The residual is the largest of all
worlds in all steps; near contacts are those within the detection margin of a step.

The time of a world per core should not depend on the number of worlds and threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _common import Case, Report, Row, Spread, Timings, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.batch.worlds import Batch
from poise.formulations.reduced import Reduced
from poise.model.model import Model

QUESTION = "a step of one of many humanoids on the ground, beside MuJoCo's rollout"
TOLERANCE = 1e-3
STEPS = 100
WORLDS, SIZES = 1024, (64, 256, 4096, 16384)
MOST = {"f32": 1.0 / 6.0, "f64": 1.0 / 3.0}
"""Of the time that a rollout takes."""
LEAST_SCALING, FLAT = 1.9, 1.2
"""How much faster two threads are, and how much longer a step may take in a batch of another size."""


@dataclass(frozen=True)
class Sort:
    """Random controls: uniform between ± `strength` of their range, drawn again after `hold` steps."""

    strength: float
    hold: int

    @property
    def name(self) -> str:
        """For the table."""
        held = "held" if self.hold == STEPS else "each step" if self.hold == 1 else f"new after {self.hold}"
        return f"±{self.strength:g} {held}"

    def draw(self, n: int, size: int) -> np.ndarray:
        """(n, STEPS / hold, size)"""
        return self.strength * np.random.default_rng(0).uniform(-1.0, 1.0, (n, STEPS // self.hold, size))


SORTS = (Sort(0.1, STEPS), Sort(0.3, 20), Sort(1.0, 20), Sort(1.0, 1))
USUAL = SORTS[1]
"""For cases with one kind of controls only."""


class Mujoco:
    """MuJoCo's humanoids, by threads."""

    def __init__(self, path: Path) -> None:
        import mujoco
        import mujoco.rollout

        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_path(str(path))
        self.first = mujoco.MjData(self.model)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.first, 0)
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self.state = np.zeros(mujoco.mj_stateSize(self.model, kind))
        mujoco.mj_getState(self.model, self.first, self.state, kind)

    def goes(self, controls: np.ndarray, threads: int) -> Callable[[int], None]:
        """Rollouts from the squat, so many times."""
        rollout = self.mujoco.rollout.Rollout(nthread=threads)
        data = [self.mujoco.MjData(self.model) for _ in range(threads)]
        control = np.ascontiguousarray(np.repeat(controls, STEPS // controls.shape[1], axis=1))
        states = np.tile(self.state, (len(control), 1))
        out = np.zeros((*control.shape[:2], len(self.state)))

        def go(times: int) -> None:
            for _ in range(times):
                rollout.rollout(self.model, data, states, control, state=out)

        return go

    def look(self, controls: np.ndarray, most: int = 16) -> str:
        """Contacts and rows of some worlds during their motion."""
        found = []
        for lines in controls[:most]:
            data = self.mujoco.MjData(self.model)
            data.qpos[:], data.qvel[:] = self.first.qpos, self.first.qvel
            for line in lines:
                data.ctrl[:] = line
                for _ in range(STEPS // len(lines)):
                    self.mujoco.mj_step(self.model, data)
                    found.append((data.ncon, data.nefc))
        contacts, rows = np.mean(found, axis=0)
        return f"{contacts:.1f} contacts, {rows:.0f} rows"


class Ours:
    """The same in Poise."""

    def __init__(self, model: Model, peer: Mujoco, n: int, precision: Any, threads: int) -> None:
        dt = float(peer.model.opt.timestep)
        self.batch = Batch(model, n, Reduced(tolerance=TOLERANCE), dt=dt, precision=precision, threads=threads)
        self._q, self._v = peer.first.qpos.copy(), peer.first.qvel.copy()

    def begin(self) -> None:
        """All worlds in the squat."""
        self.batch.reset(q=self._q, v=self._v)

    def goes(self, controls: np.ndarray) -> Callable[[int], None]:
        """Steps from the squat, so many times; the reset is timed too, as that of a rollout is."""
        batch, hold = self.batch, STEPS // controls.shape[1]
        lines = np.moveaxis(controls, 1, 0).astype(batch.ctrl.dtype)

        def go(times: int) -> None:
            for _ in range(times):
                self.begin()
                for line in lines:
                    batch.ctrl[...] = line
                    batch.step(hold)

        return go

    def look(self, controls: np.ndarray) -> tuple[float, str]:
        """The largest residual of all steps, and what they took."""
        batch, hold, worst, found = self.batch, STEPS // controls.shape[1], 0.0, []
        self.begin()
        for k in range(STEPS):
            batch.ctrl[...] = controls[:, k // hold]
            batch.step()
            worst = max(worst, float(batch.residual.max()))
            found.append([told.mean() for told in (batch.contacts, batch.rows, batch.sweeps, batch.newton_steps)])
        if batch.diverged.any():
            raise RuntimeError(f"{int(batch.diverged.sum())} worlds have diverged")
        note = "{:.1f} contacts near, {:.0f} rows, {:.1f} sweeps, {:.1f} Newton steps"
        return worst, note.format(*np.mean(found, axis=0))


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    much = effort(options, rounds=5, batch=1e-3)
    path = find_humanoid(options.model)
    peer, model, cores = Mujoco(path), load_model(path), os.cpu_count() or 1
    n = 64 if options.quick else WORLDS
    settings = {"model": path.name, "dt": float(peer.model.opt.timestep), "rounds": much.rounds, "steps": STEPS}
    report = Report("batch", QUESTION, settings | {"tolerance": TOLERANCE, "threads": cores})

    def beside_rollout() -> None:
        """Each kind of controls, in both precisions, on all cores."""
        crowds = {precision: Ours(model, peer, n, precision, cores) for precision in MOST}
        all_times = []
        for sort in SORTS:
            controls = sort.draw(n, peer.model.nu)
            cases = [Case(name, ours.goes(controls), worlds=n * STEPS) for name, ours in crowds.items()]
            cases.append(Case("rollout", peer.goes(controls, cores), worlds=n * STEPS))
            times = measure(cases, much)
            all_times.append(times)
            for name, ours in crowds.items():
                ratio = times.ratio(name, "rollout")
                row = Row(f"{n} worlds, {sort.name}: {name}", times.of(name), beside="rollout", ratio=ratio)
                row.most, row.allowed = MOST[name], TOLERANCE
                row.residual, row.note = ours.look(controls)
                report.rows.append(row)
                report.results.append(ours.batch.q.copy())
            note = peer.look(controls)
            report.rows.append(Row(f"{n} worlds, {sort.name}: rollout", times.of("rollout"), note=note))
        mean = Timings.mean(all_times)
        for name in crowds:
            row = Row(f"{n} worlds, all random controls: {name}", mean.of(name), beside="rollout")
            row.ratio, row.most, row.note = mean.ratio(name, "rollout"), MOST[name], "mean of the above"
            report.rows.append(row)

    def by_threads() -> None:
        """One thread beside all."""
        controls = USUAL.draw(n, peer.model.nu)
        crowds = {threads: Ours(model, peer, n, "f32", threads) for threads in sorted({1, cores})}
        cases = [Case(str(threads), ours.goes(controls), worlds=n * STEPS) for threads, ours in crowds.items()]
        times = measure(cases, much)
        row = Row(f"{n} worlds, f32, 1 thread", times.of("1"), beside=f"{cores} threads")
        if cores > 1:
            row.ratio, row.least = times.ratio("1", str(cores)), LEAST_SCALING * cores / 2
        report.rows.append(row)

    def by_number() -> None:
        """Fewer worlds, and more."""
        usual = Ours(model, peer, n, "f32", cores)
        for size in SIZES[:1] if options.quick else SIZES:
            other = Ours(model, peer, size, "f32", cores)
            cases = [
                Case(name, ours.goes(USUAL.draw(count, peer.model.nu)), worlds=count * STEPS)
                for name, ours, count in (("usual", usual, n), ("other", other, size))
            ]
            times = measure(cases, much)
            ratio: Spread = times.ratio("other", "usual")
            row = Row(f"{size} worlds, f32", times.of("other"), beside=f"{n} worlds", ratio=ratio)
            row.least, row.most = 1.0 / FLAT, FLAT
            report.rows.append(row)

    beside_rollout()
    by_threads()
    by_number()
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
