"""Sweeps over bodies: row velocities from the velocities of a few bodies, and impulses on them.

A row has a part of six numbers on each of its bodies, J_e on the twist of body e. A sweep stores only v = M⁻¹Jᵀλ, six
numbers a body; the cost of a row does not depend on the number of rows.
"""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import zero


@kernel
def speed_of_bodies(p, s, r):
    """J v of row r: the sum over its parts."""
    turn = zero(load(s.lam, r))
    push = turn
    for k in range(load(p.column_start, r), load(p.column_start, r + 1)):
        at, body = 6 * k, 6 * load(p.column_row, k)
        for j in range(3):
            turn = turn + load(p.J, at + j) * load(s.v, body + j)
            push = push + load(p.J, at + 3 + j) * load(s.v, body + 3 + j)
    return turn + push


@kernel
def push_bodies(p, s, r, change):
    """Update v after a change of row r's multiplier, for each of its bodies."""
    for k in range(load(p.column_start, r), load(p.column_start, r + 1)):
        at, body = 6 * k, 6 * load(p.column_row, k)
        for j in range(6):
            store(s.v, body + j, load(s.v, body + j) + load(p.response, at + j) * change)
