"""What actions ask of joints: targets of springs that are met implicitly, as far as strength goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.control.reference import layout
from poise.control.torque_limits import by_joint
from poise.dynamics.functions import Drive
from poise.model.model import Model
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply

Floats = NDArray[np.float64]
ROOT = 6
"""Degrees of freedom of the root, which comes first and has no springs."""
PUSH = 0.25
"""Targets reach at least so far to both sides: a straight knee can be pressed against its stop; rad."""
SETTLE = 0.1
"""Damping over stiffness of springs; s."""

# of a person of 70 kg and 1.75 m, after DeepMimic's; both ankles together are 0.8 of m g h, so that nobody stands by
# springs alone, as people do not (Loram and Lakie 2002)
GAINS = {
    "spine": 800.0,
    "neck": 60.0,
    "shoulder_*": 120.0,
    "elbow_*": 80.0,
    "wrist_*": 10.0,
    "hip_*": 600.0,
    "knee_*": 600.0,
    "ankle_*": 260.0,
}
"""Stiffness; N·m/rad."""
STRENGTHS = {
    "spine": 250.0,
    "neck": 40.0,
    "shoulder_*": 90.0,
    "elbow_*": 70.0,
    "wrist_*": 12.0,
    "hip_*": 250.0,
    "knee_*": 250.0,
    "ankle_*": 150.0,
}
"""Most that a spring pulls with when its target is set; N·m."""


class Joints:
    """Actions of (n, nv − 6) numbers within ±1, in the order of the model's velocities, as targets of joints.

    0 is the pose at rest, ±1 the end of the range to that side. Of a ball the three numbers are turns about its own
    axes: its twist, then its two swings. They make one rotation vector.
    """

    def __init__(self, model: Model, scale: float = 1.0) -> None:
        """`scale` multiplies stiffness and strength."""
        self.model = model
        self.low, self.high = _ranges(model)
        lay = layout(model)
        joint = lay.speeds >= ROOT
        self._numbers, self._speeds = lay.numbers[joint], lay.speeds[joint] - ROOT
        ball = lay.spins[:, 0] >= ROOT
        self._quats, self._spins = lay.quats[ball], lay.spins[ball] - ROOT
        at = model.dof_joint[lay.spins[ball][:, 0]]
        self._frames = model.joint_frame[at].reshape(-1, 3, 3)
        self.gain = scale * _of_dofs(model, GAINS)
        self.strength = scale * _of_dofs(model, STRENGTHS)

    def __len__(self) -> int:
        """Numbers of an action."""
        return self.model.nv - ROOT

    def drive(self) -> Drive:
        """Springs and dampers, with the pose at rest as their goal."""
        gain = np.concatenate((np.zeros(ROOT), self.gain))
        return Drive(gain, SETTLE * gain, self.model.q_rest)

    def values(self, q: Any) -> Floats:
        """(n, nv − 6) joints beside the pose at rest: differences of numbers, rotation vectors of balls; rad."""
        return self.between(np.broadcast_to(self.model.q_rest, np.shape(q)), q)

    def between(self, start: Any, end: Any) -> Floats:
        """(n, nv − 6) from joints at one pose to those at another, in the axes of the first; rad."""
        start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
        out = np.zeros((*start.shape[:-1], len(self)))
        out[..., self._speeds] = end[..., self._numbers] - start[..., self._numbers]
        turn = quat_multiply(quat_conjugate(start[..., self._quats]), end[..., self._quats])
        out[..., self._spins] = quat_log(turn)
        return out

    def targets(self, actions: Floats) -> Floats:
        """(n, nq) coordinates that actions ask for, the root at rest."""
        turns = np.where(actions < 0.0, -actions * self.low, actions * self.high)
        return self._moved(np.tile(self.model.q_rest, (len(actions), 1)), self._in_axes(turns))

    def actions(self, q: Any) -> Floats:
        """(n, nv − 6) actions whose targets are the joints at poses (n, nq): the inverse of `targets`.

        What is out of reach has numbers beyond ±1, and is not asked for by a task.
        """
        turns = self.values(q)
        parts = turns[:, self._spins]
        turns[:, self._spins] = np.sum(self._frames * parts[:, :, :, None], axis=2)
        return np.where(turns < 0.0, -turns / self.low, turns / self.high)

    def goals(self, q: Any, actions: Floats) -> Floats:
        """(n, nq) goals of springs: towards the targets, as far from where joints are as strength goes."""
        q = np.asarray(q, np.float64)
        far = self.strength / self.gain
        return self._moved(q, np.clip(self.between(q, self.targets(actions)), -far, far))

    def torques(self, q: Any, v: Any, goals: Any) -> Floats:
        """(n, nv − 6) of springs and dampers; N·m."""
        speeds = np.asarray(v, np.float64)[:, ROOT:]
        return self.gain * (self.between(q, goals) - SETTLE * speeds)

    def _in_axes(self, turns: Floats) -> Floats:
        """Numbers of actions as changes of coordinates: those of balls in the axes of their bodies."""
        out = turns.copy()
        parts = turns[:, self._spins]
        out[:, self._spins] = sum(self._frames[:, :, k] * parts[:, :, k, None] for k in range(3))
        return out

    def _moved(self, q: Floats, change: Floats) -> Floats:
        out = q.copy()
        out[:, self._numbers] += change[:, self._speeds]
        out[:, self._quats] = quat_multiply(q[:, self._quats], quat_exp(change[:, self._spins]))
        return out


def _of_dofs(model: Model, numbers: Mapping[str, float]) -> Floats:
    """(nv − 6,) a number of each joint for each of its degrees of freedom."""
    names = [name for name, kind in zip(model.joint_names, model.joint_kinds, strict=True) if kind != "free"]
    found = by_joint("gain", numbers, names, 100.0)
    return np.array([found[model.joint_names[j]] for j in model.dof_joint[ROOT:]])


def _ranges(model: Model) -> tuple[Floats, Floats]:
    """(nv − 6,) how far actions of −1 and of 1 turn; rad."""
    low, high = (model.dof_limits[ROOT:, side].copy() for side in (0, 1))
    for joint, kind in enumerate(model.joint_kinds):
        if kind == "ball":
            frame = model.joint_frame[joint].reshape(3, 3)
            centre = frame.T @ quat_log(model.joint_limit_centre[joint])
            twist, cone = model.joint_twist[joint], model.joint_cone[joint]
            start = int(model.joint_v_start[joint]) - ROOT
            low[start : start + 3] = centre + np.array((twist[0], -cone[0], -cone[1]))
            high[start : start + 3] = centre + np.array((twist[1], cone[0], cone[1]))
    return np.clip(low, -np.pi, -PUSH), np.clip(high, PUSH, np.pi)
