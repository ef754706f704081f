"""Rows of rolling and torsional friction: torques of a contact's patch, beside sliding friction.

At a contact with the normal force λ_n the torque about the normal is at most μ_t λ_n, that along the tangents μ_r λ_n
together (coefficients in m: those of a contact pair, or combined ones, see `combining`). Each is a ball of rows on the
relative angular velocity, times a lever ρ, so that its multipliers are forces and its velocities those of points:
|λ| ≤ (μ/ρ) λ_n. The solver's radii follow the normal multipliers as it finds them.
"""

from __future__ import annotations

from poise.constraints.emit_rows import open_block, put_bound, put_row
from poise.constraints.row_store import BALL
from poise.kernel.jit import kernel
from poise.kernel.memory import scatter_where
from poise.kernel.scalars import any_lane, maximum, minimum, select, zero
from poise.kernel.spatial import Force, no_force
from poise.kernel.vec import norm, zero3

SHORTEST, LONGEST = 1e-3, 1.0
"""Range to which levers are clamped; m."""


@kernel
def put_spin(r, slot, there, body_a, body_b, axis):
    """A row on the relative angular velocity along an axis."""
    f = Force(axis, zero3(axis.x))
    put_row(r, slot, there, body_a, body_b, -f, f)


@kernel
def emit_spins(r, contact, there, id, body_a, body_b, x, y, mu, lever):
    """Rows on spins about x and y of a contact; only one where y is zero."""
    slot, there = open_block(r, BALL, there, id)
    minus = zero(slot) - 1
    put_spin(r, slot, there, body_a, body_b, x * lever)
    put_spin(r, slot + 1, there, body_a, body_b, y * lever)
    put_row(r, slot + 2, there, minus, minus, no_force(lever), no_force(lever))
    put_bound(r, slot, there, mu / lever)
    scatter_where(r.scaler, slot, zero(slot) + (contact + 1), there)


@kernel
def emit_rolling(r, contact, there, id, twist, roll, body_a, body_b, link_a, link_b, arm_a, arm_b, n, t1, t2):
    """Rows of the torsional and rolling friction of the contact at a slot."""
    none = zero(n.x)
    far = none + LONGEST
    reach_a, reach_b = select(link_a >= 0, norm(arm_a), far), select(link_b >= 0, norm(arm_b), far)
    lever = maximum(minimum(minimum(reach_a, reach_b), far), none + SHORTEST)
    twists, rolls = there & (twist > 0.0), there & (roll > 0.0)
    if any_lane(twists):
        emit_spins(r, contact, twists, zero(id) - 2 - id, body_a, body_b, n, zero3(none), twist, lever)
    if any_lane(rolls):
        emit_spins(r, contact, rolls, id, body_a, body_b, t1, t2, roll, lever)
