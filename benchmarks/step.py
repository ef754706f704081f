"""How long a whole step takes beside MuJoCo's: a humanoid on the ground, from its squat and once it lies.

Both engines step MuJoCo's humanoid with its own time step, each along its own way, from a state of its own:
"settling" from the squat, "settled" after 1,500 steps. Controls are random numbers that stay for a batch of steps, the
same torques for both. The residual told is the largest of 200 steps, the natural map of the rows over the largest speed
that they have to take away; MuJoCo's contacts are soft, ours are hard. It is one set of controls a stage, with few
contacts: without controls, or under stronger ones, the ratio is larger.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.formulations.reduced import Reduced
from poise.model.model import Model
from poise.model.state import State
from poise.sim.world import World

QUESTION = "a whole step of a humanoid on the ground, beside MuJoCo's"
SETTLED, CHECKED, STRENGTH = 1500, 200, 0.3
TOLERANCE = 1e-3
MOST = {"settling": 0.7, "settled": 1.0}


class Mujoco:
    """MuJoCo's humanoid."""

    def __init__(self, path: Path) -> None:
        import mujoco

        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.model)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        mujoco.mj_forward(self.model, self.data)
        self._kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self.keep()

    def keep(self) -> None:
        """Remember the state."""
        self._state = np.zeros(self.mujoco.mj_stateSize(self.model, self._kind))
        self.mujoco.mj_getState(self.model, self.data, self._state, self._kind)

    def restore(self, control: np.ndarray) -> None:
        """Go back, with controls."""
        self.mujoco.mj_setState(self.model, self.data, self._state, self._kind)
        self.data.ctrl[:] = control

    def torques(self, control: np.ndarray) -> np.ndarray:
        """(nv,) what controls do at the state."""
        self.restore(control)
        self.mujoco.mj_forward(self.model, self.data)
        return np.array(self.data.qfrc_actuator)

    def run(self, n: int) -> None:
        """N steps."""
        self.mujoco.mj_step(self.model, self.data, nstep=n)


class Ours:
    """The same in Poise."""

    def __init__(self, model: Model, peer: Mujoco) -> None:
        self.world = World(model, Reduced(tolerance=TOLERANCE), dt=float(peer.model.opt.timestep))
        self.world.state = State(np.array(peer.data.qpos), np.array(peer.data.qvel))
        self.keep()

    def keep(self) -> None:
        """Remember the state."""
        self._state = self.world.state

    def restore(self, torques: np.ndarray) -> None:
        """Go back, with torques; memory stays as large as it is."""
        self.world.q[...], self.world.v[...] = self._state.q, self._state.v
        self.world.tau[...] = torques

    def look(self) -> tuple[float, str]:
        """The largest residual of some steps, and what they took."""
        residuals, rows, sweeps, newton = [], [], [], []
        for _ in range(CHECKED):
            self.world.step()
            told = self.world.report()
            residuals.append(told.residual)
            rows.append(told.rows)
            sweeps.append(told.sweeps)
            newton.append(told.newton_steps > 0)
        note = f"{np.mean(rows):.0f} rows, {np.mean(sweeps):.1f} sweeps, Newton's method in {np.mean(newton):.1%}"
        return float(max(residuals)), note


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    much = effort(options, rounds=40, batch=3e-3)
    path = find_humanoid(options.model)
    peer = Mujoco(path)
    ours = Ours(load_model(path), peer)
    rng = np.random.default_rng(0)
    rows, results = [], []
    for stage in ("settling", "settled"):
        if stage == "settled":
            for engine, run in ((peer, peer.run), (ours, ours.world.step)):
                engine.restore(0.0)
                run(SETTLED)
                engine.keep()
        control = STRENGTH * rng.uniform(-1.0, 1.0, peer.model.nu)
        torques = peer.torques(control)
        cases = [
            Case("Poise", ours.world.step, prepare=lambda torques=torques: ours.restore(torques)),
            Case("mj_step", peer.run, prepare=lambda control=control: peer.restore(control)),
        ]
        times = measure(cases, much)
        ours.restore(torques)
        residual, note = ours.look()
        results.append(ours.world.q.copy())
        peer.restore(control)
        peer.run(CHECKED)
        ratio = times.ratio("Poise", "mj_step")
        row = Row(f"{stage}: one world", times.of("Poise"), beside="mj_step", ratio=ratio, most=MOST[stage], note=note)
        row.residual, row.allowed = residual, TOLERANCE
        told = f"{peer.data.ncon} contacts, {peer.data.nefc} rows"
        rows += [row, Row(f"{stage}: mj_step", times.of("mj_step"), note=told)]
    settings = {"model": path.name, "dt": float(peer.model.opt.timestep), "rounds": much.rounds}
    return Report("step", QUESTION, settings, rows, results).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
