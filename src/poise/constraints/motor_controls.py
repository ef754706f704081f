"""Controls of motors, as MuJoCo's ctrl: a field of each motor is gain · control + offset, with the control in range.

The controls of motors that have `slopes` set their stiffness and damping too.
"""

from __future__ import annotations

from poise.constraints.kinds.motor import MOTORS
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Count, Index, Real, View, load, store

KINDS = ("torque", "target", "speed", "damping", "gains")
"""The field that a control sets, by number: "gains" are torque, stiffness and damping."""
TORQUE, TARGET, SPEED, DAMPING, GAINS = range(len(KINDS))
SET_ALL = -1
"""Result of `set_controls`: all motors were set."""

CONTROLS = View(
    "Controls",
    n=Count,
    # (n) motors
    row=Index,  # their first rows
    kind=Index,
    ball=Index,  # 1 if the motor is on a ball joint, which has no control
    low=Real,
    high=Real,
    gain=Real,
    offset=Real,
    stiffness=Real,  # without control
    damping=Real,
    stiffness_slope=Real,  # change of stiffness per unit of control; and of damping
    damping_slope=Real,
    given=Real,  # controls as given
    applied=Real,  # controls as last applied
    product=Real,  # gain · control
)


@kernel
def within_range(u, k):
    """A control clamped to its range; NaN stays NaN."""
    value, low, high = load(u.given, k), load(u.low, k), load(u.high, k)
    value = low if low > value else value
    return high if high < value else value


@kernel
def set_motor(u, b, k, value, goal):
    """Set the fields of a motor from its control."""
    row, kind = load(u.row, k), load(u.kind, k)
    if kind == TARGET:
        store(b.target, row, goal)
    elif kind == SPEED:
        store(b.speed, row, goal)
    elif kind == DAMPING:
        store(b.damping, row, goal)
    else:
        store(b.torque, row, goal)
    if kind == GAINS:
        store(b.stiffness, row, load(u.stiffness, k) + load(u.stiffness_slope, k) * value)
        store(b.damping, row, load(u.damping, k) + load(u.damping_slope, k) * value)


@kernel
def set_controls(u, b, every):
    """Set the motors whose controls have changed, or all; returns SET_ALL, or the first motor that cannot be set."""
    for k in range(u.n):
        given, is_ball = load(u.given, k), load(u.ball, k) != 0
        if (every != 0 and not is_ball) or (every == 0 and given != load(u.applied, k)):
            value = within_range(u, k)
            store(u.product, k, load(u.gain, k) * value)  # rounded, as plain numbers are
            goal = load(u.product, k) + load(u.offset, k)
            if is_ball or given - given != 0.0 or goal - goal != 0.0:
                return k
            set_motor(u, b, k, value, goal)
            store(u.applied, k, given)
    return SET_ALL


SET_CONTROLS = entry(set_controls, CONTROLS, MOTORS, extra=("int64",), lanes=False)
