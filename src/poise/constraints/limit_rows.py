"""Rows of joints: limits of coordinates (KOK §8.2) and dry friction.

A limit has a row when the coordinate is near it, or would come near within two steps, also with the speed that an
impact may give it: joints that stop let their limbs go on. Until it is reached the row is speculative: it takes only
the speed that would go beyond.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poise.constraints.row_kernels import open_block, put_bounds, put_dof_row
from poise.constraints.store import CONTACT, SINGLE
from poise.kernel.jit import kernel
from poise.kernel.memory import Block, Count, Index, Real, View, Width, load, scatter_where
from poise.kernel.scalars import any_lane, fabs, select, spread, zero
from poise.kernel.spatial import motion_at
from poise.kernel.vec import Mat3, norm
from poise.model.joints import Primitive
from poise.model.model import Model

LOWER, UPPER, FRICTION = range(3)
CODES = 8
"""Ids of rows on coordinate d are 8 d and up to 7 more, those on ball joint i 8 (nv + i) and up to 7 more."""

NARROWEST, WIDEST = 1e-4, 100.0
"""Half-axes of cones are taken to be within; rad. No swing is more than π."""

SHORTEST = 1e-3
"""Levers of links are taken to be at least this; m."""

LIMITS = View(
    "Limits",
    constant=True,
    n_limits=Count,
    n_frictions=Count,
    limit_dof=Index,
    limit_q=Index,
    low=Real,
    high=Real,
    limit_link=Index,
    limit_lever=Real,  # what a speed of the link may become: one over a length, 1 where the coordinate is one
    friction_dof=Index,
    friction=Real,  # largest force; N or N·m
    # limited ball joints
    n_balls=Count,
    ball_dof=Index,  # the first of three
    ball_q=Index,
    ball_id=Index,  # of the first row
    ball_frame=Mat3,  # axis, axis2, axis × axis2 in the columns
    ball_has_cone=Index,
    ball_has_lower=Index,
    ball_has_upper=Index,
    ball_cone_y=Real,  # greatest swing about the frame's second axis; rad
    ball_cone_z=Real,  # and about its third
    ball_lower=Real,  # least twist; rad
    ball_upper=Real,
    ball_middle=Real,  # twists are those nearest to it
    ball_link=Index,
    ball_lever=Real,
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
        limit_link=model.dof_link[limited],
        limit_lever=_levers(model, limited),
        friction_dof=rubbing.astype(np.int32),
        friction=model.joint_friction[model.dof_joint[rubbing]],
        **_balls(model),
    )


def _levers(model: Model, dofs: Any) -> Any:
    """(n) one over the radius of gyration of the link about the joint, for the first dof of a primitive each; 1/m."""
    primitive = {int(d): k for k, d in enumerate(model.primitive_v_start)}
    levers = np.ones(len(dofs))
    for i, d in enumerate(dofs):
        k, link = primitive[int(d)], int(model.dof_link[d])
        if model.primitive_kind[k] != Primitive.SLIDE and model.link_mass[link] > 0.0:
            away = model.link_com[link] - model.primitive_anchor[k]
            square = 0.5 * model.link_inertia[link, :3].sum() / model.link_mass[link] + away @ away
            levers[i] = 1.0 / max(float(np.sqrt(square)), SHORTEST)
    return levers


def _balls(model: Model) -> dict[str, Any]:
    """What bounds the ball joints of a model, but for those that are moved along a path."""
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
        "ball_has_cone": np.isfinite(cone).any(axis=1).astype(np.int32),
        "ball_has_lower": np.isfinite(twist[:, 0]).astype(np.int32),
        "ball_has_upper": np.isfinite(twist[:, 1]).astype(np.int32),
        "ball_cone_y": half_axes[:, 0],
        "ball_cone_z": half_axes[:, 1],
        "ball_lower": twist[:, 0],
        "ball_upper": twist[:, 1],
        "ball_link": model.dof_link[model.joint_v_start[balls]],
        "ball_lever": _levers(model, model.joint_v_start[balls]),
        "ball_middle": np.clip(twist, -np.pi, np.pi).mean(axis=1),
    }


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
def surge(w, r, link, lever):
    """Speed that an impact may give the coordinates of a link, in worlds with rows of contacts; rad/s or m/s."""
    velocity = load(w.velocity, link)
    speed = norm(motion_at(velocity, load(w.r, link))) * lever + norm(velocity.w)
    return select(load(r.count, CONTACT) > 0, speed, zero(speed))


@kernel
def emit_limits(s, w, l, r, dt, erp, close):
    """Rows of coordinates that are near an end of their range, after those of contacts."""
    for k in range(l.n_limits):
        d = load(l.limit_dof, k)
        q, v = load(s.q, load(l.limit_q, k)), load(s.v, d)
        reach = (fabs(v) + surge(w, r, load(l.limit_link, k), load(l.limit_lever, k))) * (2.0 * dt) + close
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
