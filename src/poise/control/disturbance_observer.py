"""Disturbance observer: estimates external actions from motion, and compensates them through a filter (LAM §3.2).

    F_ext(t − dt) = m (v(t) − v(t − dt)) / dt − F_actuator(t − dt)                                          (LAM eq. 7)
    T_ext(t − dt) = J (ω(t) − ω(t − dt)) / dt + ω ∧ J ω − T_actuator(t − dt)                                (LAM eq. 8)
    F_corr(t) = − g F_ext(t − dt) + (1 − g) F_corr(t − dt)                                             (LAM eqs. 9, 10)

External is everything except the actuator's own action: gravity, joints, contacts. LAM has g = γ dt, which leaves
[0, 1] for γ > 1/dt and depends on the step in second order; here g = 1 − e^(−γ dt), the same filter for any step.
Angular velocities are compared in the body's axes, in which J is constant, and ω is that of the beginning of the step.
For a free body, eq. 8 is then the equation that the step solved, to rounding.
"""

from __future__ import annotations

from math import exp, isinf

import numpy as np
from numpy.typing import NDArray

from poise.control.actuators import Fitted
from poise.motion.rotations import cross

Floats = NDArray[np.float64]


def external_action(fitted: Fitted, before: Floats, after: Floats, push: Floats, R: Floats, dt: float) -> Floats:
    """(3,) external force or torque on a body in the last step, world axes (LAM eqs. 7, 8); N or N·m.

    Velocities and `push`, the actuator's own action, are as `noted` returns them.
    """
    gained = fitted.inertia @ ((after - before) / dt)
    if fitted.actuator.TURNS:
        return np.asarray(R @ (gained + cross(after, fitted.inertia @ after) - push))  # a step applies pushes first
    if fitted.at_com:
        return np.asarray(gained - push)
    return np.asarray(R @ (fitted.inertia @ (R.T @ ((after - before) / dt))) - push)


def noted(fitted: Fitted, vector: Floats, R: Floats) -> Floats:
    """(3,) a velocity or a push in the axes of the comparison: the body's for rotations, otherwise the world's."""
    return np.asarray(R.T @ vector if fitted.actuator.TURNS else vector)


def filtered(correction: Floats, external: Floats, gamma: float, dt: float) -> Floats:
    """(3,) correction of the actuator's action (LAM eqs. 9, 10); N or N·m."""
    share = 1.0 if isinf(gamma) else 1.0 - exp(-gamma * dt)
    return np.asarray((1.0 - share) * correction - share * external)
