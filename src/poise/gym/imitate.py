"""Motion imitation, after DeepMimic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.gym.clip_table import ClipTable, Moment, chosen_clip
from poise.gym.figure import Seen
from poise.gym.joints import ROOT
from poise.gym.task import Outcome, Task, at_least
from poise.motion.rotations import quat_conjugate, quat_log, quat_multiply

Array = NDArray[Any]
WEIGHTS = {"pose": 0.65, "velocity": 0.1, "ends": 0.15, "root": 0.1}
"""Weights of the terms of the reward (Peng et al. 2018, sec. 5)."""
SHARPNESS = {"pose": 2.0, "velocity": 0.1, "ends": 40.0, "root": 10.0}
"""Scales k of the squared errors in the exponentials."""


class Imitate(Task):
    """Follow a `clip` (any `poise.motion.Clip`, or the name of a built-in one) with reward and early termination as in
    DeepMimic: Peng, Abbeel, Levine and van de Panne 2018, "DeepMimic: example-guided deep reinforcement learning of
    physics-based character skills", ACM Transactions on Graphics 37(4).

    The reward of a step is 0.65 pose + 0.1 velocity + 0.15 ends + 0.1 root, each exp(−k × sum of squared errors): of
    rotations of the root and of joints (rad), of joint speeds (rad/s), of wrists and ankles (m), of the centre of mass
    (m). Episodes start at a random time of the motion (`random_start`). They terminate early (`early_end`) when a shape
    touches the ground that does not do so in the clip (feet excepted), or when the root is farther than `stray` (m)
    from its reference. They are truncated at the end of a clip that is not cyclic. `parts` maps joints of the clip to
    joints of the figure whose names differ (`poise.motion.retarget`).
    """

    def __init__(
        self,
        n: int = 1,
        *,
        clip: Any = "walk",
        parts: Mapping[str, str] | None = None,
        early_end: bool = True,
        random_start: bool = True,
        stray: float = 0.6,
        height: float = 1.75,
        mass: float = 70.0,
        **options: Any,
    ) -> None:
        super().__init__(n, height=height, mass=mass, **options)
        self.clip = chosen_clip(clip, height, mass)
        self.table = ClipTable(self.clip, self.figure, parts)
        self.early_end, self.random_start = bool(early_end), bool(random_start)
        self.stray = at_least("stray", stray, 0.0)
        self._began = np.zeros(self.n)
        self._read = self._began.copy(), self.table.at(self._began)

    @property
    def times(self) -> Array:
        """(n,) times since the start of the motion; s."""
        return self._began + self.age * self.period

    def now(self) -> Moment:
        """The motion at the present time of each world; cached."""
        times = self.times
        if not np.array_equal(times, self._read[0]):
            self._read = times, self.table.at(times)
        return self._read[1]

    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """A random time of the motion, with its velocity."""
        self._began[which] = [rng.uniform(0.0, self.table.duration) if self.random_start else 0.0 for rng in draws]
        begin = self.table.at(self._began[which])
        return begin.q, begin.v

    def view(self, seen: Seen) -> list[Array]:
        """The phase of the motion, and the displacement to its root and its heading, relative to the figure."""
        now = self.now()
        root = seen.bodies.position[:, seen.figure.pelvis]
        w, x, y, z = now.q[:, 3:7].T
        c, s = seen.heading.T
        ahead, left = w * w + x * x - y * y - z * z, 2.0 * (x * y + w * z)
        return [
            self.table.phase(self.times),
            seen.ahead(now.q[:, :3] - root),
            np.stack((c * ahead + s * left, c * left - s * ahead), axis=1),
        ]

    def outcome(self, seen: Seen) -> Outcome:
        """The reward for following the motion, and early termination."""
        now = self.now()
        off = self._off(seen, now)
        terms = {name: np.exp(-SHARPNESS[name] * off[name]) for name in WEIGHTS}
        reward = np.sum([WEIGHTS[name] * terms[name] for name in WEIGHTS], axis=0)
        over = np.zeros(self.n, np.bool_) if self.table.loop else self.times >= self.table.duration - 1e-9
        return Outcome(reward, self._failed(seen, now), over, terms)

    def _off(self, seen: Seen, now: Moment) -> dict[str, Array]:
        """(n,) sums of squared errors of each term."""
        joints = self.figure.joints.between(seen.q, now.q)
        root = quat_log(quat_multiply(quat_conjugate(seen.q[:, 3:7]), now.q[:, 3:7]))
        return {
            "pose": _squares(joints) + _squares(root),
            "velocity": _squares(seen.v[:, ROOT:] - now.v[:, ROOT:]),
            "ends": _squares((seen.ends - now.ends).reshape(self.n, -1)),
            "root": _squares(seen.com - now.com),
        }

    def _failed(self, seen: Seen, now: Moment) -> Array:
        if not self.early_end:
            return np.zeros(self.n, np.bool_)
        far = _squares(seen.bodies.position[:, seen.figure.pelvis] - now.q[:, :3]) > self.stray**2
        return np.asarray(far | seen.touching(self.table.touches))


def _squares(rows: Array) -> Array:
    return np.asarray(np.sum(np.square(np.asarray(rows, np.float64)), axis=1))
