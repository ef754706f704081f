"""How long a whole step takes beside MuJoCo's: a humanoid that settles from its squat, under random controls.

Both engines step MuJoCo's humanoid with its own time step, each along its own trajectory, for two seconds from the
squat. A line is a kind of controls: their strength, as a share of their range, and the steps until new ones are drawn;
a round takes a few draws, the same torques for both. Then both settle without controls, and controls begin there. The
pose and the contacts of the settled humanoid differ between versions and machines: the table has them. The residual is
the largest of all steps, the natural map of the rows over the largest speed that they have to remove. MuJoCo's contacts
are soft, ours are hard. Times are processor times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import Case, Effort, Report, Row, Timings, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.formulations.reduced import Reduced
from poise.model.model import Model
from poise.model.state import State
from poise.sim.world import World

QUESTION = "a whole step of a humanoid on the ground, beside MuJoCo's"
STEPS, DRAWS = 400, 4
SETTLED, SOON = 1500, 100
"""Steps without controls in which both come to rest, and steps with controls from there on."""
TOLERANCE, MOST = 1e-3, 0.7


@dataclass(frozen=True)
class Controls:
    """Random controls: uniform between ± `strength` of their range, drawn again after `hold` steps."""

    strength: float
    hold: int = STEPS

    @property
    def name(self) -> str:
        """For the table."""
        if self.strength == 0.0:
            return "no controls"
        return f"controls ±{self.strength:g}, " + ("held" if self.hold == STEPS else f"new after {self.hold}")

    def draw(self, seed: int, size: int) -> np.ndarray:
        """(n, size) one line for each time that they are drawn."""
        return self.strength * np.random.default_rng(seed).uniform(-1.0, 1.0, (STEPS // self.hold, size))


SORTS = (
    *(Controls(strength) for strength in (0.1, 0.3, 1.0)),
    *(Controls(strength, 20) for strength in (0.3, 1.0)),
    Controls(1.0, 1),
)
SETTLED_SORTS = tuple(Controls(strength) for strength in (0.1, 0.3, 1.0))


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

    def restore(self) -> None:
        """Go back."""
        self.mujoco.mj_setState(self.model, self.data, self._state, self._kind)

    def act(self, control: np.ndarray) -> None:
        """Let controls act."""
        self.data.ctrl[:] = control

    def torques(self, control: np.ndarray) -> np.ndarray:
        """(nv,) what controls do."""
        self.restore()
        self.act(control)
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
        self.run = self.world.step
        self.keep()

    def keep(self) -> None:
        """Remember the state."""
        self._state = self.world.state

    def restore(self) -> None:
        """Go back; rows start from the multipliers that there are, which only counts in the first step."""
        self.world.q[...], self.world.v[...] = self._state.q, self._state.v

    def act(self, torques: np.ndarray) -> None:
        """Let torques act."""
        self.world.tau[...] = torques


def goes(engine: Mujoco | Ours, draws: Sequence[np.ndarray], steps: int) -> Callable[[int], None]:
    """All draws, one after another, each from the state that is kept: so many times."""

    def go(times: int) -> None:
        for _ in range(times):
            for draw in draws:
                engine.restore()
                hold = steps // len(draw)
                for line in draw:
                    engine.act(line)
                    engine.run(hold)

    return go


@dataclass
class Look:
    """Statistics of the steps of a kind of controls, one by one."""

    residual: float
    note: str
    beside: str


def look(ours: Ours, peer: Mujoco, torques: Sequence[np.ndarray], controls: Sequence[np.ndarray], steps: int) -> Look:
    """At the same steps that were timed."""
    told, contacts, rows = [], [], []
    for mine, theirs in zip(torques, controls, strict=True):
        ours.restore()
        peer.restore()
        for k in range(steps):
            ours.act(mine[k * len(mine) // steps])
            peer.act(theirs[k * len(theirs) // steps])
            ours.run(1)
            peer.run(1)
            report = ours.world.report()
            touching = sum(contact.depth > -1e-3 for contact in report.contacts)
            newton = report.newton_steps
            told.append((report.residual, touching, report.rows, report.sweeps, newton, report.parts > 1))
            contacts.append(peer.data.ncon)
            rows.append(peer.data.nefc)
    found = np.array(told, float)
    mean = found.mean(axis=0)
    note = f"{mean[1]:.1f} contacts, {mean[2]:.0f} rows, {mean[3]:.1f} sweeps, {mean[4]:.1f} Newton steps"
    note += f", {mean[5]:.1%} split" if mean[5] else ""
    return Look(float(found[:, 0].max()), note, f"{np.mean(contacts):.1f} contacts, {np.mean(rows):.0f} rows")


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    whole = effort(options, rounds=9, batch=1e-3)
    much = Effort(whole.rounds, whole.batch, "process_time")
    path = find_humanoid(options.model)
    peer = Mujoco(path)
    ours = Ours(load_model(path), peer)
    report = Report("step", QUESTION, {"model": path.name, "dt": float(peer.model.opt.timestep), "rounds": much.rounds})
    all_times = []

    def time(name: str, sort: Controls, draws: int, most: float | None, n: int = STEPS) -> Timings:
        """Time a kind of controls from the kept states, and collect statistics of its steps."""
        controls = [sort.draw(seed, peer.model.nu) for seed in range(draws)]
        torques = [np.array([peer.torques(line) for line in draw]) for draw in controls]
        cases = [
            Case("Poise", goes(ours, torques, n), worlds=n * draws),
            Case("mj_step", goes(peer, controls, n), worlds=n * draws),
        ]
        times = measure(cases, much)
        seen = look(ours, peer, torques, controls, n)
        ratio = times.ratio("Poise", "mj_step")
        row = Row(name, times.of("Poise"), beside="mj_step", ratio=ratio, most=most, note=seen.note)
        row.residual, row.allowed = seen.residual, TOLERANCE
        report.rows += [row, Row(f"{name}: mj_step", times.of("mj_step"), note=seen.beside)]
        report.results.append(ours.world.q.copy())
        return times

    for sort in SORTS:
        all_times.append(time(sort.name, sort, DRAWS, MOST))
    times = Timings.mean(all_times)
    ratio = times.ratio("Poise", "mj_step")
    report.rows.append(
        Row(
            "all random controls", times.of("Poise"), beside="mj_step", ratio=ratio, most=MOST, note="mean of the above"
        )
    )
    time(Controls(0.0).name, Controls(0.0), 1, None)
    for engine in (peer, ours):
        engine.restore()
        engine.act(0.0)  # type: ignore[arg-type]
        engine.run(SETTLED)
        engine.keep()
    time("settled, no controls", Controls(0.0), 1, None)
    for sort in SETTLED_SORTS:
        time(f"settled, then {sort.name} for {SOON} steps", sort, DRAWS, MOST, SOON)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
