"""Rows of joints: limits of coordinates (KOK §8.2) and dry friction.

A limit has a row if the predicted coordinate at the end of the step is near it: first without impulses, then, if the
impulses take a coordinate beyond a limit without a row, with them. Before the coordinate reaches the limit the row is
speculative: it removes only the velocity that would exceed the limit.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poise.constraints.emit_rows import (
    busiest,
    fewest,
    name_block,
    open_block,
    pick,
    picked,
    put_bounds,
    put_dof_row,
)
from poise.constraints.row_store import SINGLE
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, gather_where, load, scatter_where, store
from poise.kernel.quat import Quat
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, zero
from poise.kernel.vec import Mat3
from poise.model.model import Model

LOWER, UPPER, FRICTION = range(3)
CODES = 8
"""Ids of rows on coordinate d are 8 d and up to 7 more, those on ball joint i 8 (nv + i) and up to 7 more."""

NARROWEST, WIDEST = 1e-4, 100.0
"""Range to which half-axes of cones are clamped; rad. No swing is more than π."""

OVERLOOKED = 1e-4
"""Distance beyond a limit by impulses above which a limit without a row gets one; rad or m."""
TINY = 1e-30
"""Changes of coordinates below this count as zero."""

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
    # limited ball joints
    n_balls=Count,
    ball_dof=Index,  # the first of three
    ball_q=Index,
    ball_id=Index,  # of the first row
    ball_frame=Mat3,  # axis, axis2, axis × axis2 in the columns
    ball_centre=Quat,  # the joint's rotation where swing and twist are 0
    ball_has_cone=Index,
    ball_has_lower=Index,
    ball_has_upper=Index,
    ball_cone_y=Real,  # greatest swing about the frame's second axis; rad
    ball_cone_z=Real,  # and about its third
    ball_lower=Real,  # least twist; rad
    ball_upper=Real,
    ball_middle=Real,  # twists are those nearest to it
)


def limits_block(model: Model, width: Width) -> Block:
    """The joint limits and dry friction of a model."""
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
        **_balls(model),
    )


def _balls(model: Model) -> dict[str, Any]:
    """The limits of a model's ball joints, except those on a path."""
    cone, twist = model.joint_cone, model.joint_twist
    limited = np.isfinite(cone).any(axis=1) | np.isfinite(twist).any(axis=1)
    balls = np.array([i for i in np.flatnonzero(limited) if not model.dof_prescribed[model.joint_v_start[i]]], np.int32)
    cone, twist = cone[balls], twist[balls]
    half_axes = np.clip(cone, NARROWEST, WIDEST)
    return {
        "n_balls": len(balls),
        "ball_dof": model.joint_v_start[balls].astype(np.int32),
        "ball_q": model.joint_q_start[balls].astype(np.int32),
        "ball_id": (CODES * (model.nv + balls)).astype(np.int32),
        "ball_frame": model.joint_frame[balls],
        "ball_centre": model.joint_limit_centre[balls],
        "ball_has_cone": np.isfinite(cone).any(axis=1).astype(np.int32),
        "ball_has_lower": np.isfinite(twist[:, 0]).astype(np.int32),
        "ball_has_upper": np.isfinite(twist[:, 1]).astype(np.int32),
        "ball_cone_y": half_axes[:, 0],
        "ball_cone_z": half_axes[:, 1],
        "ball_lower": twist[:, 0],
        "ball_upper": twist[:, 1],
        "ball_middle": np.clip(twist, -np.pi, np.pi).mean(axis=1),
    }


@kernel
def wanted(held, i, near, again):
    """Lanes in which end i of a limit has a row: if it is near, or if `again` and it had one; stored in `held`."""
    had = load(held, i)
    if again != 0:
        near = near | (had != 0)
    store(held, i, select(near, zero(had) + 1, zero(had)))
    return near


@kernel
def room_ahead(s, w, x, l, k, dt):
    """Distances of a coordinate from both ends of its range, now and predicted at the end of the step."""
    d = load(l.limit_dof, k)
    q = load(s.q, load(l.limit_q, k))
    then = q + (load(s.v, d) + load(w.a, d) * dt + load(x.a, d)) * dt
    low, high = load(l.low, k), load(l.high, k)
    return q - low, high - q, then - low, high - then


@kernel
def pick_limits(s, w, x, l, r, held, dt, close, at_end, again):
    """List the ends of ranges that get rows: lower ends by their numbers, upper ends by their numbers plus the number
    of limits.
    """
    for k in range(l.n_limits):
        below, above, below_then, above_then = room_ahead(s, w, x, l, k, dt)
        near = wanted(held, 2 * k, (below_then < close) | (below < at_end), again)
        if any_lane(near):
            pick(r, SINGLE, near, k)
        near = wanted(held, 2 * k + 1, (above_then < close) | (above < at_end), again)
        if any_lane(near):
            pick(r, SINGLE, near, k + l.n_limits)


@kernel
def make_limit(s, l, r, slot, there, erp):
    """The row of the end that was listed for a slot, in the lanes of a mask."""
    number = load(r.pick, slot)
    upper = number >= zero(number) + l.n_limits
    k = select(upper, number - l.n_limits, number)
    q = gather_where(s.q, spread(gather_where(l.limit_q, k, there), k), there)
    none = zero(q)
    gap = select(upper, gather_where(l.high, k, there) - q, q - gather_where(l.low, k, there))
    d = spread(gather_where(l.limit_dof, k, there), k)
    name_block(r, slot, there, d * CODES + select(upper, zero(k) + UPPER, zero(k) + LOWER))
    put_dof_row(r, slot, there, d, select(upper, none - 1.0, none + 1.0))
    put_bounds(r, slot, there, none, spread(inf, none))
    scatter_where(r.phi, slot, gap, there)
    scatter_where(r.erp, slot, none + erp, there)


@kernel
def emit_limits(s, w, x, l, r, held, dt, erp, close, at_end, again, lanes):
    """Rows of coordinates that are within `at_end` of an end of their range, or will be within `close` at the end of
    the step: impulses alone may hold a coordinate at its end.

    `w` has the motion without rows, `x` the velocity change by impulses that is known so far. If `again` is not 0,
    limits that are `held` keep their rows.
    """
    start = load(r.count, SINGLE)
    pick_limits(s, w, x, l, r, held, dt, close, at_end, again)
    for block in range(fewest(start, lanes), minimum(busiest(r, SINGLE, lanes), load(r.room, SINGLE))):
        there = picked(r, SINGLE, start, block)
        if any_lane(there):
            make_limit(s, l, r, load(r.first, SINGLE) + block, there, erp)


@kernel
def overlooked_limits(s, w, x, l, held, dt):
    """Worlds in which impulses take a coordinate beyond an end of its range that has no row."""
    wrong = load(s.q, 0) != load(s.q, 0)
    for k in range(l.n_limits):
        _, _, below, above = room_ahead(s, w, x, l, k, dt)
        wrong = wrong | ((below < -OVERLOOKED) & (load(held, 2 * k) == 0))
        wrong = wrong | ((above < -OVERLOOKED) & (load(held, 2 * k + 1) == 0))
    return wrong


@kernel
def share_within(s, w, x, l, held, dt):
    """Share of a further velocity change x that keeps coordinates within the limits without rows."""
    one = zero(load(s.q, 0)) + 1.0
    share = one
    for k in range(l.n_limits):
        change = load(x.a, load(l.limit_dof, k)) * dt
        _, _, below, above = room_ahead(s, w, x, l, k, dt)
        size = maximum(fabs(change), zero(one) + TINY)
        down = maximum(below + change * -1.0 + OVERLOOKED, zero(one)) / size
        up = maximum(above + change + OVERLOOKED, zero(one)) / size
        share = select((below < -OVERLOOKED) & (load(held, 2 * k) == 0), minimum(share, down), share)
        share = select((above < -OVERLOOKED) & (load(held, 2 * k + 1) == 0), minimum(share, up), share)
    return minimum(share, one)


@kernel
def emit_frictions(l, r):
    """Dry friction: rows that hold coordinates still, with a bounded force."""
    for k in range(l.n_frictions):
        d, most = load(l.friction_dof, k), load(l.friction, k)
        none = zero(load(r.phi, 0))
        slot, there = open_block(r, SINGLE, none == 0.0, zero(load(r.count, 0)) + (d * CODES + FRICTION))
        put_dof_row(r, slot, there, zero(slot) + d, none + 1.0)
        put_bounds(r, slot, there, none - most, none + most)
