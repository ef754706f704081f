"""Limits at a pose: one-sided rows of every coordinate and ball joint that is near an end of its range.

Worlds predict limits at the end of a step; here nothing moves, and a step takes one second, so that velocities are
displacements.
"""

from __future__ import annotations

from math import inf

from poise.constraints.kinds.ball_joint_limit import emit_ball_limits
from poise.constraints.kinds.joint_limit import LIMITS, emit_limits
from poise.constraints.response.delassus_kernels import FLOW
from poise.constraints.row_store import STORE
from poise.dynamics.dynamics_layout import STATE, WORK
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Int, View

HELD = View("Held", held=Int)
"""Ends that had a row; two for a coordinate, three for a ball."""


@kernel
def emit_limits_of_pose(s, w, x, l, r, h, close):
    """Rows of all limits of one world that are nearer than `close`; v, and a of the tree and of `x`, are zero."""
    emit_limits(s, w, x, l, r, h.held, 1.0, 1.0, close, -inf, 0, 1)
    emit_ball_limits(s, w, x, l, r, h.held, 1.0, 1.0, close, 0)


LIMITS_OF_POSE = entry(emit_limits_of_pose, STATE, WORK, FLOW, LIMITS, STORE, HELD, extra=("float64",), lanes=False)
