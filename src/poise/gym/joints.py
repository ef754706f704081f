"""Actions as targets of joint springs, which are implicit and bounded by joint torque limits."""

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
"""Degrees of freedom of the root, which come first and have no springs."""
PUSH = 0.25
"""Targets reach at least this far to both sides: a straight knee can be pressed against its stop; rad."""
SETTLE = 0.1
"""Damping over stiffness of springs; s."""

# for 70 kg and 1.75 m, after DeepMimic; both ankles together have 0.8 of the stiffness m g h, so that springs alone do
# not balance the body, as in people (Loram and Lakie 2002)
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
"""Largest spring torque at the time when its target is set; N·m."""


class Joints:
    """Maps actions of (n, nv − 6) numbers within ±1, in the order of the model's velocities, to targets of joints.

    0 is the rest pose, ±1 the end of the range on that side. The three numbers of a ball joint are the components of a
    rotation vector about its own axes: its twist, then its two swings.
    """

    def __init__(self, model: Model, scale: float = 1.0) -> None:
        """`scale` multiplies stiffness and torque limits."""
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
        """Size of an action."""
        return self.model.nv - ROOT

    def drive(self) -> Drive:
        """Springs and dampers, with the rest pose as their goal."""
        gain = np.concatenate((np.zeros(ROOT), self.gain))
        return Drive(gain, SETTLE * gain, self.model.q_rest)

    def values(self, q: Any) -> Floats:
        """(n, nv − 6) joints relative to the rest pose: coordinate differences, rotation vectors of balls; rad."""
        return self.between(np.broadcast_to(self.model.q_rest, np.shape(q)), q)

    def between(self, start: Any, end: Any) -> Floats:
        """(n, nv − 6) difference of joints from the pose `start` to `end`, in the axes of `start`; rad."""
        start, end = np.asarray(start, np.float64), np.asarray(end, np.float64)
        out = np.zeros((*start.shape[:-1], len(self)))
        out[..., self._speeds] = end[..., self._numbers] - start[..., self._numbers]
        turn = quat_multiply(quat_conjugate(start[..., self._quats]), end[..., self._quats])
        out[..., self._spins] = quat_log(turn)
        return out

    def targets(self, actions: Floats) -> Floats:
        """(n, nq) target coordinates of actions, with the root at rest."""
        turns = np.where(actions < 0.0, -actions * self.low, actions * self.high)
        return self._moved(np.tile(self.model.q_rest, (len(actions), 1)), self._in_axes(turns))

    def actions(self, q: Any) -> Floats:
        """(n, nv − 6) actions whose targets are the joints at poses (n, nq): the inverse of `targets`.

        Poses beyond the ranges of targets have numbers beyond ±1, which tasks clamp.
        """
        turns = self.values(q)
        parts = turns[:, self._spins]
        turns[:, self._spins] = np.sum(self._frames * parts[:, :, :, None], axis=2)
        return np.where(turns < 0.0, -turns / self.low, turns / self.high)

    def goals(self, q: Any, actions: Floats) -> Floats:
        """(n, nq) goals of springs: the targets, clamped to where the spring torque reaches its limit."""
        q = np.asarray(q, np.float64)
        far = self.strength / self.gain
        return self._moved(q, np.clip(self.between(q, self.targets(actions)), -far, far))

    def torques(self, q: Any, v: Any, goals: Any) -> Floats:
        """(n, nv − 6) torques of springs and dampers; N·m."""
        speeds = np.asarray(v, np.float64)[:, ROOT:]
        return self.gain * (self.between(q, goals) - SETTLE * speeds)

    def _in_axes(self, turns: Floats) -> Floats:
        """Actions as changes of coordinates: those of ball joints in the axes of their bodies."""
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
    """(nv − 6,) the number of each joint, repeated for each of its degrees of freedom."""
    names = [name for name, kind in zip(model.joint_names, model.joint_kinds, strict=True) if kind != "free"]
    found = by_joint("gain", numbers, names, 100.0)
    return np.array([found[model.joint_names[j]] for j in model.dof_joint[ROOT:]])


def _ranges(model: Model) -> tuple[Floats, Floats]:
    """(nv − 6,) angles of actions of −1 and of 1; rad."""
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
