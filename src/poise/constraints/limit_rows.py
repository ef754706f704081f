"""Rows of joints: limits of coordinates (KOK §8.2) and dry friction.

A limit has a row when the coordinate is near it, or would come near within two steps. Until it is reached the row is
speculative: it takes only the speed that would go beyond.
"""

from __future__ import annotations

from math import inf

import numpy as np

from poise.constraints.row_kernels import open_block, put_bounds, put_dof_row
from poise.constraints.store import SINGLE
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, load, scatter_where
from poise.kernel.scalars import any_lane, fabs, spread, zero
from poise.model.model import Model

LOWER, UPPER, FRICTION = range(3)
CODES = 8
"""Ids of rows on coordinate d are 8 d and up to 7 more."""

LIMITS = View(
    "Limits",
    constant=True,
    n_limits=Count,
    n_frictions=Count,
    limit_dof=Index,
    limit_q=Index,
    low=Real,
    high=Real,
    friction_dof=Index,
    friction=Real,  # largest force; N or N·m
)


def limits_block(model: Model, width: Width) -> Block:
    """What bounds the joints of a model."""
    limited = np.flatnonzero(np.isfinite(model.dof_limits).any(axis=1))
    coordinate = {int(d): int(j) for d, j in zip(model.primitive_v_start, model.primitive_q_start, strict=True)}
    rubbing = np.flatnonzero((model.joint_friction[model.dof_joint] > 0.0) & (model.dof_prescribed == 0))
    return LIMITS.block(
        Width(width.elem),
        n_limits=len(limited),
        n_frictions=len(rubbing),
        limit_dof=limited.astype(np.int32),
        limit_q=np.array([coordinate[int(d)] for d in limited], np.int32),
        low=model.dof_limits[limited, 0],
        high=model.dof_limits[limited, 1],
        friction_dof=rubbing.astype(np.int32),
        friction=model.joint_friction[model.dof_joint[rubbing]],
    )


@kernel
def emit_limit(r, d, code, gap, sign, near, erp):
    """One end of a coordinate's range, in the lanes of a mask."""
    none = zero(gap)
    slot, there = open_block(r, SINGLE, near, zero(load(r.count, 0)) + (d * CODES + code))
    put_dof_row(r, slot, there, zero(slot) + d, none + sign)
    put_bounds(r, slot, there, none, spread(inf, none))
    scatter_where(r.phi, slot, gap, there)
    scatter_where(r.erp, slot, none + erp, there)


@kernel
def emit_limits(s, l, r, dt, erp, close):
    """Rows of coordinates that are near an end of their range."""
    for k in range(l.n_limits):
        d = load(l.limit_dof, k)
        q, v = load(s.q, load(l.limit_q, k)), load(s.v, d)
        reach = fabs(v) * (2.0 * dt) + close
        below, above = q - load(l.low, k), load(l.high, k) - q
        if any_lane(below < reach):
            emit_limit(r, d, LOWER, below, 1.0, below < reach, erp)
        if any_lane(above < reach):
            emit_limit(r, d, UPPER, above, -1.0, above < reach, erp)


@kernel
def emit_frictions(l, r):
    """Rows that hold coordinates still, with a bounded force."""
    for k in range(l.n_frictions):
        d, most = load(l.friction_dof, k), load(l.friction, k)
        none = zero(load(r.phi, 0))
        slot, there = open_block(r, SINGLE, none == 0.0, zero(load(r.count, 0)) + (d * CODES + FRICTION))
        put_dof_row(r, slot, there, zero(slot) + d, none + 1.0)
        put_bounds(r, slot, there, none - most, none + most)
