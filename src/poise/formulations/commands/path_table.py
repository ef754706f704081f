"""Kinematic paths in the compiled loop: Python samples them for the next steps, a command writes them step by step.

A path is a function of time alone, so that it can be sampled ahead of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poise.dynamics.dynamics_layout import MODEL
from poise.dynamics.integrate import STAGES
from poise.kernel.bound import Bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Block, Count, Index, Real, Shared, View, load, store
from poise.motion.path import Path

POSE, TWIST = 7, 6
SAMPLE = POSE + 2 * TWIST
"""Numbers of a sample: position and quaternion, velocities, accelerations."""
STAGES_OF_STEP = 3
ROOM = 64
"""Maximum number of steps that are sampled at a time."""

PATHS = View(
    "Paths",
    n_paths=Count,
    q_start=Index,  # (n_paths)
    v_start=Index,
    next=Index,  # (1) next step to write
    sample=Real,  # (ROOM · n_paths · STAGES_OF_STEP · SAMPLE)
)


@kernel
def lay_sample(m, y, q, v, stage, p, at):
    """Write the pose, velocity and acceleration of a path at a stage of the step."""
    for e in range(POSE):
        store(y.path_q, stage * y.n_q + q + e, load(p.sample, at + e))
    for e in range(TWIST):
        store(y.path_v, stage * m.nv + v + e, load(p.sample, at + POSE + e))
        store(y.path_a, stage * m.nv + v + e, load(p.sample, at + POSE + TWIST + e))


@kernel
def lay_step(m, y, p, time, dt):
    """Write the samples of the next step. Bodies move by h v⁺, which to second order is the velocity of the middle of
    the step; kinematic bodies have that velocity too, at the end of the free motion.
    """
    step = load(p.next, 0)
    for k in range(p.n_paths):
        q, v = load(p.q_start, k), load(p.v_start, k)
        for stage in range(STAGES_OF_STEP):
            lay_sample(m, y, q, v, stage, p, ((step * p.n_paths + k) * STAGES_OF_STEP + stage) * SAMPLE)
        for d in range(v, v + TWIST):
            store(y.path_v, d, load(y.path_v, m.nv + d) - dt * load(y.path_a, d))
    store(p.next, 0, step + 1)
    return p.n_paths


_LAY_STEP = entry(lay_step, MODEL, STAGES, PATHS, extra=("float64", "float64"), lanes=False)


def sample_path(path: Path, time: float) -> tuple[float, ...]:
    """A path at a time, as numbers."""
    point = path(time)
    parts = (point.position, point.quat_wxyz, point.velocity, point.angular_velocity)
    return tuple(x for part in (*parts, point.acceleration, point.angular_acceleration) for x in part)


class PathTable:
    """Samples of a world's paths for some steps; each path has a first coordinate and a first velocity."""

    def __init__(self, model: Block, stages: Block, paths: Sequence[tuple[int, int, Path]]) -> None:
        self._paths = [path for _, _, path in paths]
        self._samples = np.zeros((ROOM, len(paths), STAGES_OF_STEP, SAMPLE))
        self._block = PATHS.block(
            F64,
            n_paths=len(paths),
            q_start=np.array([q for q, _, _ in paths], np.int32),
            v_start=np.array([v for _, v, _ in paths], np.int32),
            next=1,
            sample=Shared(self._samples.reshape(-1)),
        )
        self.command = Bound(_LAY_STEP, F64, model.handle, stages.handle, self._block.handle)
        """Writes the samples of the next step: (time, length)."""

    def sample(self, time: float, dt: float, n: int) -> int:
        """Sample at most n steps from a time on, limited by the room and by the first path that raises; returns their
        number.
        """
        self._block.next[0] = 0
        done, n = 0, min(n, ROOM)
        begin = [sample_path(path, time) for path in self._paths]
        while done < n:
            try:
                middle = [sample_path(path, time + 0.5 * dt) for path in self._paths]
                end = [sample_path(path, time + dt) for path in self._paths]
            except Exception:
                if done == 0:
                    raise
                break  # it is raised again when its step is the first one
            self._samples[done] = np.array((begin, middle, end)).swapaxes(0, 1)
            begin, time, done = end, time + dt, done + 1
        return done
