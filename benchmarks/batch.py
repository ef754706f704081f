"""How long a step of one of many worlds takes, in lanes and by threads, beside MuJoCo's rollout of as many.

Worlds of MuJoCo's humanoid begin in its squat and move for 100 steps under random controls, new ones after 20, so that
they differ; most are in the air then, or touch the ground in a place or two. From these states both engines take the
same few steps under the same controls, self-collision on: MuJoCo's contacts are soft, ours are hard. The residual told
is the largest of all worlds in the last step. Contacts near are those within reach of a step; few of them push.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.batch.worlds import Batch
from poise.formulations.reduced import Reduced
from poise.model.model import Model

QUESTION = "a step of one of many humanoids on the ground, beside MuJoCo's rollout"
TOLERANCE = 1e-3
BEFORE, HOLD = 100, 20
"""Steps that worlds take to come to differ, and how long controls stay."""
WORK = 2**16
"""Steps of worlds in a batch of the measurement, about."""
SIZES = (64, 256, 1024, 4096, 16384)


@dataclass
class Start:
    """States that worlds are timed from, and what acts there."""

    q: np.ndarray
    v: np.ndarray
    ctrl: np.ndarray


class Mujoco:
    """MuJoCo's humanoids, by threads."""

    def __init__(self, path: Path) -> None:
        import mujoco
        import mujoco.rollout

        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_path(str(path))
        self.first = mujoco.MjData(self.model)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.first, 0)
        self._kind = mujoco.mjtState.mjSTATE_FULLPHYSICS

    def states(self, start: Start) -> np.ndarray:
        """(n, size) as rollouts want them."""
        data, out = self.mujoco.MjData(self.model), []
        for q, v in zip(start.q, start.v, strict=True):
            data.qpos[:], data.qvel[:] = q, v
            state = np.zeros(self.mujoco.mj_stateSize(self.model, self._kind))
            self.mujoco.mj_getState(self.model, data, state, self._kind)
            out.append(state)
        return np.array(out)

    def goes(self, start: Start, steps: int, threads: int) -> Callable[[int], None]:
        """Steps from the start, so many times."""
        rollout, states = self.mujoco.rollout.Rollout(nthread=threads), self.states(start)
        data = [self.mujoco.MjData(self.model) for _ in range(threads)]
        control = np.repeat(start.ctrl[:, None], steps, axis=1)
        out = np.zeros((len(states), steps, states.shape[1]))

        def go(times: int) -> None:
            for _ in range(times):
                rollout.rollout(self.model, data, states, control, state=out, skip_checks=False)

        return go

    def look(self, start: Start, most: int = 64) -> str:
        """Contacts and rows of some of the states."""
        data, found = self.mujoco.MjData(self.model), []
        for q, v in zip(start.q[:most], start.v[:most], strict=True):
            data.qpos[:], data.qvel[:] = q, v
            self.mujoco.mj_forward(self.model, data)
            found.append((data.ncon, data.nefc))
        contacts, rows = np.mean(found, axis=0)
        return f"{contacts:.1f} contacts, {rows:.0f} rows"


def make(model: Model, peer: Mujoco, n: int, precision: Any, threads: int) -> Batch:
    """As many worlds in the squat."""
    batch = Batch(
        model, n, Reduced(tolerance=TOLERANCE), dt=peer.model.opt.timestep, precision=precision, threads=threads
    )
    batch.q, batch.v = peer.first.qpos.copy(), peer.first.qvel.copy()
    return batch


def moved(model: Model, peer: Mujoco, n: int) -> Start:
    """States that differ, and new controls."""
    batch, rng = make(model, peer, n, "f64", 1), np.random.default_rng(0)
    for _ in range(BEFORE // HOLD):
        batch.ctrl = rng.uniform(-1.0, 1.0, batch.ctrl.shape)
        batch.step(HOLD)
    if batch.diverged.any():
        raise RuntimeError(f"{int(batch.diverged.sum())} of {n} worlds have diverged")
    return Start(batch.q.copy(), batch.v.copy(), rng.uniform(-1.0, 1.0, batch.ctrl.shape))


def goes(batch: Batch, start: Start, steps: int) -> Callable[[int], None]:
    """Steps from the start, so many times; the reset is timed too, as that of a rollout is."""

    def go(times: int) -> None:
        for _ in range(times):
            batch.reset(q=start.q, v=start.v)
            batch.ctrl[...] = start.ctrl
            batch.step(steps)

    return go


def look(batch: Batch) -> tuple[float, str]:
    """The largest residual of the last step, and what it took."""
    if batch.diverged.any():
        raise RuntimeError(f"{int(batch.diverged.sum())} worlds have diverged")
    means = (batch.contacts.mean(), batch.rows.mean(), batch.sweeps.mean(), batch.newton_steps.mean())
    note = "{:.1f} contacts near, {:.0f} rows, {:.1f} sweeps, {:.1f} Newton steps".format(*means)
    return float(batch.residual.max()), note


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    much = effort(options, rounds=5, batch=1e-3)
    path = find_humanoid(options.model)
    peer, model = Mujoco(path), load_model(path)
    cores = os.cpu_count() or 1
    settings = {"model": path.name, "dt": float(peer.model.opt.timestep), "rounds": much.rounds, "tolerance": TOLERANCE}
    report = Report("batch", QUESTION, settings)
    for n in SIZES[:1] if options.quick else SIZES:
        start, steps = moved(model, peer, n), min(HOLD, max(WORK // n, 2))
        for threads in sorted({1, cores}):
            batches = {precision: make(model, peer, n, precision, threads) for precision in ("f32", "f64")}
            cases = [Case(name, goes(batch, start, steps), worlds=n * steps) for name, batch in batches.items()]
            cases.append(Case("rollout", peer.goes(start, steps, threads), worlds=n * steps))
            times = measure(cases, much)
            what = f"{n} worlds, {threads} thread{'s' if threads > 1 else ''}, {steps} steps"
            for name, batch in batches.items():
                ratio = times.ratio(name, "rollout")
                row = Row(f"{what}: {name}", times.of(name), beside="rollout", ratio=ratio)
                row.residual, row.note = look(batch)
                row.allowed = TOLERANCE
                report.rows.append(row)
                report.results.append(batch.q.copy())
            report.rows.append(Row(f"{what}: rollout", times.of("rollout"), note=peer.look(start)))
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
