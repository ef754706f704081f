"""How long a step of an environment of Gymnasium takes, beside the steps of the batch under it.

People stand or follow a walk while small random actions move them, for ten steps of one vector environment. Beside it
the same batch takes the same steps with the same recorded spring targets: the difference is the cost of targets,
checks, rewards and observations. Both must end in the same coordinates to the bit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _common import Case, Report, Row, arguments, effort, measure

from poise.gym import ImitateVectorEnv, StandVectorEnv, TaskVectorEnv, WalkVectorEnv

QUESTION = "a step of one world of a vector environment, beside the steps of the batch under it"
STEPS, SEED = 10, 0
SIZES = (64, 1024)
TASKS: dict[str, Callable[..., TaskVectorEnv]] = {
    "Stand": lambda n, threads: StandVectorEnv(n, threads=threads, push=0.0),
    "Walk": lambda n, threads: WalkVectorEnv(n, threads=threads),
    "Imitate": lambda n, threads: ImitateVectorEnv(n, threads=threads, early_end=False),
}


class Run:
    """The same steps, by the environment and by its batch alone."""

    def __init__(self, env: TaskVectorEnv) -> None:
        self.env, self.batch = env, env.task.batch
        rng = np.random.default_rng(1)
        self.actions = rng.uniform(-0.2, 0.2, (STEPS, env.num_envs, 30)).astype(np.float32)
        env.reset(seed=SEED)
        self.q, self.v = self.batch.q.copy(), self.batch.v.copy()
        self.goals = []
        for actions in self.actions:
            env.step(actions)
            self.goals.append(env.task.goals.copy())
        self.end = self.batch.q.copy()

    def whole(self, times: int) -> None:
        """By the environment."""
        for _ in range(times):
            self.env.reset(seed=SEED)
            for actions in self.actions:
                self.env.step(actions)

    def bare(self, times: int) -> None:
        """By the batch."""
        goal: Any = self.batch.drive.goal_q
        for _ in range(times):
            self.batch.reset(q=self.q, v=self.v)
            for goals in self.goals:
                goal[...] = goals
                self.batch.step(self.env.task.frame_skip)

    def off(self, go: Callable[[int], None]) -> float:
        """How far the end of a run is from that of the first."""
        go(1)
        return float(np.abs(self.batch.q - self.end).max())


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=9, batch=1e-3)
    cores = os.cpu_count() or 1
    report = Report("environments", QUESTION, {"rounds": much.rounds, "steps": STEPS})
    for name in ("Stand",) if options.quick else TASKS:
        for n in SIZES[:1] if options.quick else SIZES:
            for threads in (1,) if options.quick else sorted({1, cores}):
                run = Run(TASKS[name](n, threads))
                cases = [Case("environment", run.whole, worlds=n * STEPS), Case("batch", run.bare, worlds=n * STEPS)]
                times = measure(cases, much)
                what = f"{name}, {n} worlds, {threads} thread{'s' if threads > 1 else ''}"
                for case in cases:
                    beside = {"beside": "batch", "ratio": times.ratio("environment", "batch")}
                    spread = times.of(case.name)
                    row = Row(f"{what}: {case.name}", spread, **(beside if case.name == "environment" else {}))
                    row.note, row.residual, row.allowed = f"{1.0 / spread.median:,.0f} a second", run.off(case.run), 0.0
                    report.rows.append(row)
                report.results.append(run.end)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
