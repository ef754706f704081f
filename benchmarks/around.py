"""What recording, tracking, timing, states, reports, controls and forces around a step cost, in steps.

A humanoid stands on both feet, held by drives, on the eight contacts of its soles. Work in compiled code is compared
with `step(n)`; work that sets something before each step is compared with a Python loop over `step()`. The humanoid
that tracks a clip stands and waves; one that walks is listed too. In a batch each of 512 humanoids has its own phase of
a walk: the cost is measured by setting all targets three times in each step. New controls in every step are a tenth of
their range, drawn before; they are compared with MuJoCo's `mj_step`, with the same new controls, on the same models.
The cost of setting them alone, without their effect on the motion, is measured with new values that differ by a
billionth of the range. Times are processor times. The residual is that of the last step.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import Case, Effort, Report, Row, Spread, arguments, effort, measure
from _trees import find_humanoid

import poise
from poise.dynamics import Drive
from poise.model.scene import Scene

QUESTION = "what users do around a step, in steps"
DT = 1 / 240
STEPS = 100
"""In a call of `step(n)` or `run`."""
CONTACTS = 8
PHASES = 512
"""Worlds of a batch."""
DRAWN = 4096
"""Sets of new controls."""
BARKOUR = "menagerie/google_barkour_vb/scene.xml"


def standing(**options: Any) -> poise.World:
    """The humanoid on the ground, at rest, held by drives."""
    scene = Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.characters.humanoid(), name="hero")
    world = scene.build(dt=DT, **options)
    gains = np.full(world.model.nv, 300.0)
    gains[:6] = 0.0
    world.drive = Drive(gain_p=gains, gain_d=0.1 * gains, goal_q=world.q.copy())
    world.step(480)
    found = len(world.report().contacts)
    if found != CONTACTS:
        raise SystemExit(f"the humanoid stands on {found} contacts, not on {CONTACTS}")
    return world


def following(clip: str) -> Scene:
    """The humanoid follows a clip, its root guided."""
    scene = Scene()
    scene.add_ground(friction=0.8)
    figure = poise.characters.humanoid()
    hero = scene.add(figure, name="hero")
    motion = getattr(poise.characters.clips, clip)(figure)
    hero.track(motion, strength={"legs": 300.0, "trunk": 300.0, "arms": 60.0})
    return scene


def tracking(clip: str) -> poise.World:
    """A world that tracks, after some steps."""
    world = following(clip).build(dt=DT)
    world.step(120)
    return world


def walkers(times: int) -> poise.Batch:
    """Worlds that follow a walk, each at a phase of its own; their goals are set so many times in each step."""
    batch = following("walk").build_batch(PHASES, dt=DT, threads=1)
    walk = batch.tracking()
    walk.start[:] = -np.linspace(0.0, walk.motions[0].duration, PHASES, endpoint=False)
    walk.begin()
    commands = batch._records.commands
    commands[:] = commands * times
    batch.step(60)
    return batch


def standers() -> poise.Batch:
    """Worlds in which the humanoid stands, held by drives."""
    world = standing()
    scene = Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.characters.humanoid(), name="hero")
    batch = scene.build_batch(PHASES, dt=DT, threads=1)
    batch.reset(state=world.state)
    batch.drive = world.drive
    batch.step(60)
    return batch


def loop_over(call: Callable[[], object]) -> Callable[[int], None]:
    """So many times, in Python."""

    def many(n: int) -> None:
        for _ in range(n):
            call()

    return many


class Kept:
    """A world, and the state from which every batch begins."""

    def __init__(self, world: poise.World) -> None:
        self.world, self.state = world, world.state

    def restore(self) -> None:
        """Go back."""
        self.world.state = self.state

    def case(self, name: str, run: Callable[[poise.World], object], steps: int = 1) -> Case:
        """Something to do with the world, for so many steps or once."""
        return Case(name, loop_over(lambda: run(self.world)), worlds=steps, prepare=self.restore)


def compiled_cases() -> tuple[list[Case], list[poise.World]]:
    """What has to keep up with `step(n)`."""
    plain, timed, recorded = (Kept(standing()) for _ in range(3))
    tracked, walked = Kept(tracking("wave")), Kept(tracking("walk"))
    timed.world.timing = True
    return [
        plain.case("step(n)", lambda world: world.step(STEPS), STEPS),
        recorded.case("run()", lambda world: world.run(STEPS * DT, progress=False), STEPS),
        tracked.case("tracking", lambda world: world.step(STEPS), STEPS),
        walked.case("walking", lambda world: world.step(STEPS), STEPS),
        timed.case("timing", lambda world: world.step(STEPS), STEPS),
        plain.case("read state", lambda world: world.state),
        plain.case("assign state", lambda world: setattr(world, "state", plain.state)),
        plain.case("report()", lambda world: world.report()),
    ], [one.world for one in (plain, recorded, tracked, walked, timed)]


def push_and_step(world: poise.World) -> None:
    """A force on the torso, and a step."""
    world.apply_force("hero/torso", (1.0, 0.0, 0.0))
    world.step()


def add_batch(report: Report, much: Effort) -> None:
    """Rows of a batch that tracks."""
    batches = {"once": walkers(1), "thrice": walkers(3), "stand": standers()}
    cases = [
        Case(name, loop_over(lambda batch=batch: batch.step(10)), worlds=10 * PHASES) for name, batch in batches.items()
    ]
    times = measure(cases, much)
    once, thrice = times.seconds["once"], times.seconds["thrice"]
    speed = Spread.of(1.0 - 0.5 * (thrice - once) / once)
    what, same = f"one of {PHASES} worlds at phases of a walk", "speed without setting goals"
    residual = float(batches["once"].residual.max())
    report.rows += [
        Row(what, times.of("once"), beside=same, ratio=speed, least=0.7, residual=residual, allowed=1e-2),
        Row("one that stands, under drives", times.of("stand"), beside=what, ratio=times.ratio("stand", "once")),
    ]
    report.results += [batch.q[:4].copy() for batch in batches.values()]


class Controlled:
    """A robot with new controls before each step, in Poise and in MuJoCo."""

    def __init__(self, path: Path) -> None:
        import mujoco

        self.mujoco, self.peer = mujoco, mujoco.MjModel.from_xml_path(str(path))
        self.data = mujoco.MjData(self.peer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", poise.io.LossWarning)
            scene = poise.load(str(path))
        self.world = scene.build(dt=float(self.peer.opt.timestep))
        if self.peer.nkey:
            mujoco.mj_resetDataKeyframe(self.peer, self.data, 0)
            self.world.reset(0)
        self.middle = np.array(self.data.ctrl)
        self.state = self.world.state
        self._kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self._kept = np.zeros(mujoco.mj_stateSize(self.peer, self._kind))
        mujoco.mj_getState(self.peer, self.data, self._kept, self._kind)
        low, high = self.peer.actuator_ctrlrange.T
        reach = np.where(self.peer.actuator_ctrllimited != 0, 0.5 * (high - low), 1.0)
        drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (DRAWN, self.peer.nu)) * reach
        self._new, self._nearly = self.middle + 0.1 * drawn, self.middle + 1e-9 * drawn
        self._count = 0

    def control(self) -> np.ndarray:
        """New ones, near those of the key-frame."""
        self._count += 1
        return np.asarray(self._new[self._count % DRAWN])

    def restore(self) -> None:
        """Go back, in both, to the same controls."""
        self._count = 0
        self.world.state = self.state
        self.mujoco.mj_setState(self.peer, self.data, self._kept, self._kind)

    def step(self) -> None:
        """In Poise."""
        self.world.ctrl = self.control()
        self.world.step()

    def same_step(self) -> None:
        """In Poise, with new controls that change nothing."""
        self._count += 1
        self.world.ctrl = self._nearly[self._count % DRAWN]
        self.world.step()

    def plain_step(self) -> None:
        """In Poise, with controls that stay."""
        self.world.step()

    def peer_step(self) -> None:
        """In MuJoCo."""
        self.data.ctrl[:] = self.control()
        self.mujoco.mj_step(self.peer, self.data)

    def cases(self) -> list[Case]:
        """One step after another, called from Python."""
        calls = {"new": self.step, "nearly": self.same_step, "none": self.plain_step, "mj_step": self.peer_step}
        return [Case(name, loop_over(call), prepare=self.restore) for name, call in calls.items()]


def residual_of(world: poise.World) -> float:
    """Of the last step."""
    world.step()
    return float(world.report().residual)


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    whole = effort(options, rounds=15, batch=0.02)
    much = Effort(whole.rounds, whole.batch, "process_time")
    report = Report("around", QUESTION, {"dt": DT, "contacts": CONTACTS, "rounds": much.rounds})
    add_compiled(report, much)
    add_looped(report, much)
    add_batch(report, much)
    paths = {"humanoid": find_humanoid(options.model)}
    robot = Path(__file__).resolve().parents[2] / "shared" / "data" / BARKOUR
    if robot.is_file():
        paths["google_barkour_vb"] = robot
    for (name, path), most in zip(paths.items(), (0.8, 1.0), strict=False):
        add_controlled(report, much, name, path, most)
    return report.finish(options.json)


def add_compiled(report: Report, much: Effort) -> None:
    """Rows beside `step(n)`."""
    cases, worlds = compiled_cases()
    times = measure(cases, much)
    report.rows.append(Row("step(n)", times.of("step(n)"), residual=residual_of(worlds[0]), allowed=1e-3))
    wanted = {"run()": 2.0, "tracking": 3.0, "walking": None, "timing": 1.05}
    wanted |= {"read state": 3.0, "assign state": 3.0, "report()": 4.0}
    words = {
        "run()": "a step of run(), default recording",
        "tracking": "a step that tracks a clip, root guided",
    }
    words |= {"walking": "a step that tracks a walk"}
    words |= {"timing": "a step with timing", "read state": "world.state", "assign state": "world.state = state"}
    for name, most in wanted.items():
        ratio = times.ratio(name, "step(n)")
        report.rows.append(Row(words.get(name, name), times.of(name), beside="step(n)", ratio=ratio, most=most))
    report.results += [world.q.copy() for world in worlds]


def add_looped(report: Report, much: Effort) -> None:
    """Rows beside a Python loop over `step()`."""
    plain, pushed = Kept(standing()), Kept(standing())
    cases = [plain.case("step()", lambda world: world.step()), pushed.case("push", push_and_step)]
    times = measure(cases, much)
    ratio = times.ratio("push", "step()")
    report.rows += [
        Row("step() from Python", times.of("step()")),
        Row("apply_force, step()", times.of("push"), beside="step()", ratio=ratio, most=1.3),
    ]
    report.results += [plain.world.q.copy(), pushed.world.q.copy()]


def add_controlled(report: Report, much: Effort, name: str, path: Path, most: float) -> None:
    """Rows of new controls in every step."""
    robot = Controlled(path)
    times = measure(robot.cases(), much)
    rows = [
        ("nearly", "none", "new ctrl, the same motion", "step() without new ctrl", 1.3),
        ("new", "none", "new ctrl, step()", "step() without new ctrl", None),
        ("new", "mj_step", "new ctrl, step()", "mj_step, new ctrl", most),
    ]
    for case, other, what, words, bound in rows:
        ratio = times.ratio(case, other)
        report.rows.append(Row(f"{name}: {what}", times.of(case), beside=words, ratio=ratio, most=bound))
    report.rows[-1].residual, report.rows[-1].allowed = residual_of(robot.world), 1e-3
    report.results.append(robot.world.q.copy())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
