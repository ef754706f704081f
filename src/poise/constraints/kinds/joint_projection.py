"""Poses of links by their joints and the actual poses of their parents, and the coordinates that fit actual poses.

Each link is a separate rigid body here (maximal coordinates). A joint starts from the *actual* frame of its parent, so
that all joints are computed side by side, without a pass over the tree. A joint is measured at one point, fixed to the
child: the anchor of its last rotation. With R̂(q), ĉ(q) the orientation and the point of the child by its joint, and
R, c the actual ones, the error is

    e = (log(R R̂ᵀ), c − ĉ)    rad, m; world axes

and the coordinates that fit are those of the least |e|², a metre counted as a radian. There Sᵀe = 0, with S the axes
of the joint: no motion of the joint reduces the remaining e.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poise.model.joints import WIDTHS, Primitive
from poise.model.model import Model
from poise.motion.rotations import (
    cross,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
    rotate,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

STEPS = 50
"""Most Newton steps. Two or three are enough for small errors."""
REACH = 1.0
"""Largest change of a coordinate in a step; rad, m."""
FLAT = 1e-9
"""Singular values of S below this share of the largest count as zero: axes of several joints in one plane."""


@dataclass(frozen=True)
class JointTable:
    """Index tables of the joints of a model; links with the same number of primitives are processed together."""

    model: Model
    slots: tuple[tuple[tuple[Primitive, Indices, Indices], ...], ...]
    """For the first, second, … primitive: (kind, links that have it, primitives)."""
    last: Indices
    """(n_links,) the link's last primitive."""
    point: Floats
    """(n_links, 3) point at which the joint is measured, in the link's frame; m."""
    dofs: Indices
    """(n_links, K) degrees of freedom of each link, nv where it has fewer than K."""
    counts: Indices
    """(n_links,) number of degrees of freedom of each link."""
    slides: NDArray[np.bool_]
    """(nv,)"""

    @property
    def n_rows(self) -> int:
        """Rows of all joints."""
        return int(np.maximum(6 - self.counts, 0).sum())


@lru_cache(maxsize=8)
def joint_table(model: Model) -> JointTable:
    """The table of a model, made once."""
    starts = np.asarray(model.link_primitive_start, np.intp)
    lengths = np.diff(starts)
    kinds = np.asarray(model.primitive_kind)
    slots = []
    for slot in range(int(lengths.max(initial=0))):
        links = np.flatnonzero(lengths > slot)
        primitives = starts[links] + slot
        groups = [(kind, kinds[primitives] == kind) for kind in Primitive]
        slots.append(tuple((kind, links[which], primitives[which]) for kind, which in groups if which.any()))
    measured = []
    for begin, end in pairwise(starts):
        turns = np.flatnonzero(kinds[begin:end] != Primitive.SLIDE)
        measured.append(int(begin + turns[-1] if len(turns) else end - 1))
    first = np.asarray(model.link_dof_start, np.intp)
    counts = np.diff(first)
    room = np.arange(max(6, int(counts.max(initial=0))))
    slides = np.zeros(model.nv, bool)
    slides[model.primitive_v_start[kinds == Primitive.SLIDE]] = True
    return JointTable(
        model,
        tuple(slots),
        starts[1:] - 1,
        model.primitive_anchor[measured],
        np.where(room < counts[:, None], first[:-1, None] + room, model.nv),
        counts,
        slides,
    )


@dataclass
class Expected:
    """Poses of links by their joints, from the parents' actual poses. World axes."""

    quat_wxyz: Floats
    """(n_links, 4) R̂."""
    point: Floats
    """(n_links, 3) ĉ; m."""
    axes: Floats
    """(nv, 6) motion of the child, at ĉ, per unit of each velocity."""
    rates: Floats
    """(nv, 6) time derivatives of the axes, for the velocities given; ĉ moves along."""
    middle: Floats
    """(n_links, 4) orientation of the frame before a link's last primitive, in which its last axis is fixed."""
    middle_spin: Floats
    """(n_links, 3) its angular velocity; rad/s."""


@dataclass
class _Frames:
    """Frames of all links, updated primitive by primitive."""

    quat: Floats
    r: Floats
    w: Floats
    """(n_links, 3) angular velocity."""
    v: Floats
    """(n_links, 3) velocity of r."""


def expect(
    table: JointTable, q: Floats, quat_wxyz: Floats, position: Floats, twist: Floats, speeds: Floats
) -> Expected:
    """Poses of links by their joints.

    Args:
        table: Of the model.
        q: (nq,) coordinates.
        quat_wxyz: (n_links, 4) actual orientations of the links.
        position: (n_links, 3) origins of the links' frames; m.
        twist: (n_links, 6) (ω, velocity of the origin); rad/s, m/s.
        speeds: (nv,) velocities of the joints.
    """
    model = table.model
    at = _start(model, quat_wxyz, position, twist)
    axis, pivot = np.zeros((model.nv, 3)), np.zeros((model.nv, 3))
    axis_rate, pivot_rate = np.zeros((model.nv, 3)), np.zeros((model.nv, 3))
    middle, middle_spin = np.empty_like(at.quat), np.empty_like(at.w)
    for groups in table.slots:
        for kind, links, primitives in groups:
            ends = table.last[links] == primitives
            middle[links[ends]], middle_spin[links[ends]] = at.quat[links[ends]], at.w[links[ends]]
            width = WIDTHS[kind][1]
            d = (model.primitive_v_start[primitives][:, None] + np.arange(width)).ravel()
            move = {Primitive.SLIDE: _slide, Primitive.BALL: _ball}.get(kind, _turn)
            found = move(model, at, links, primitives, q, speeds)
            axis[d], axis_rate[d], pivot[d], pivot_rate[d] = (x.reshape(-1, 3) for x in found)
    arm = rotate(at.quat, table.point)
    point, point_rate = at.r + arm, at.v + cross(at.w, arm)
    link = np.asarray(model.dof_link)
    away, away_rate = point[link] - pivot, point_rate[link] - pivot_rate
    pitch = np.zeros((model.nv, 1))
    pitch[model.primitive_v_start, 0] = model.primitive_pitch
    swing = cross(axis, away) + pitch * axis
    swing_rate = cross(axis_rate, away) + cross(axis, away_rate) + pitch * axis_rate
    slides = table.slides[:, None]
    axes = np.concatenate((np.where(slides, 0.0, axis), np.where(slides, axis, swing)), axis=1)
    rates = np.concatenate((np.where(slides, 0.0, axis_rate), np.where(slides, axis_rate, swing_rate)), axis=1)
    return Expected(at.quat, point, axes, rates, middle, middle_spin)


def _start(model: Model, quat: Floats, position: Floats, twist: Floats) -> _Frames:
    """Start frames of the joints: fixed to their parents, or to the world."""
    parent = np.asarray(model.link_parent)
    on_world = (parent < 0)[:, None]
    turn = np.where(on_world, np.array([1.0, 0.0, 0.0, 0.0]), quat[parent])
    w = np.where(on_world, 0.0, twist[parent, :3])
    arm = rotate(turn, model.link_position)
    r = np.where(on_world, 0.0, position[parent]) + arm
    v = np.where(on_world, 0.0, twist[parent, 3:]) + cross(w, arm)
    return _Frames(quat_multiply(turn, quat_normalize(model.link_quat_wxyz)), r, w, v)


_Moved = tuple[Floats, Floats, Floats, Floats]
"""Axis and its rate, pivot and its velocity."""


def _slide(model: Model, at: _Frames, i: Indices, k: Indices, q: Floats, speeds: Floats) -> _Moved:
    j, d = model.primitive_q_start[k], model.primitive_v_start[k]
    axis = rotate(at.quat[i], model.primitive_axis[k])
    rate = cross(at.w[i], axis)
    way = (q[j] - model.q_zero[j])[:, None]
    at.r[i] += axis * way
    at.v[i] += rate * way + axis * speeds[d, None]
    return axis, rate, at.r[i], at.v[i]


def _turn(model: Model, at: _Frames, i: Indices, k: Indices, q: Floats, speeds: Floats) -> _Moved:
    j, d = model.primitive_q_start[k], model.primitive_v_start[k]
    axis = rotate(at.quat[i], model.primitive_axis[k])
    rate = cross(at.w[i], axis)
    pivot, pivot_rate = _pivot(model, at, i, k)
    angle, pitch = (q[j] - model.q_zero[j])[:, None], model.primitive_pitch[k][:, None]
    at.quat[i] = quat_multiply(at.quat[i], quat_exp(model.primitive_axis[k] * angle))
    at.w[i] += axis * speeds[d, None]
    ahead = pitch * (rate * angle + axis * speeds[d, None])
    _hang(model, at, i, k, pivot + pitch * angle * axis, pivot_rate + ahead)
    return axis, rate, pivot, pivot_rate


def _ball(model: Model, at: _Frames, i: Indices, k: Indices, q: Floats, speeds: Floats) -> _Moved:
    j, d = model.primitive_q_start[k], model.primitive_v_start[k]
    pivot, pivot_rate = _pivot(model, at, i, k)
    at.quat[i] = quat_multiply(at.quat[i], quat_normalize(q[j[:, None] + np.arange(4)]))
    at.w[i] += rotate(at.quat[i], speeds[d[:, None] + np.arange(3)])
    axes = np.swapaxes(quat_to_matrix(at.quat[i]), 1, 2)
    rates = cross(np.broadcast_to(at.w[i][:, None], axes.shape), axes)
    _hang(model, at, i, k, pivot, pivot_rate)
    return axes, rates, np.repeat(pivot, 3, axis=0), np.repeat(pivot_rate, 3, axis=0)


def _pivot(model: Model, at: _Frames, i: Indices, k: Indices) -> tuple[Floats, Floats]:
    """Anchor of a rotation, and its velocity."""
    arm = rotate(at.quat[i], model.primitive_anchor[k])
    return at.r[i] + arm, at.v[i] + cross(at.w[i], arm)


def _hang(model: Model, at: _Frames, i: Indices, k: Indices, pivot: Floats, rate: Floats) -> None:
    """Set the origins of rotated links from their anchors."""
    arm = rotate(at.quat[i], model.primitive_anchor[k])
    at.r[i], at.v[i] = pivot - arm, rate - cross(at.w[i], arm)


@dataclass
class Fit:
    """Coordinates that fit the actual poses of links."""

    q: Floats
    """(nq,)"""
    error: Floats
    """(n_links, 6) e."""
    expected: Expected
    """At these coordinates; rates are those of joints at rest."""
    left: Floats
    """(n_links, 6, 6) left singular vectors of the axes, those of the joint first, then the rest of space."""
    duals: Floats
    """(n_links, 6, K) Ψ = S (SᵀS)⁻¹ by columns: Ψᵀ times a motion at the point are the velocities that fit it."""


def fit(table: JointTable, q: Floats, quat_wxyz: Floats, position: Floats, twist: Floats) -> Fit:
    """Coordinates of the least |e|², near q: angles may exceed 2π, quaternions keep their sign."""
    model, still = table.model, np.zeros(table.model.nv)
    point = position + rotate(quat_wxyz, table.point)
    q = q.copy()
    for step in range(STEPS + 1):
        seen = expect(table, q, quat_wxyz, position, twist, still)
        turn = quat_log(quat_multiply(quat_wxyz, quat_conjugate(seen.quat_wxyz)))
        error = np.concatenate((turn, point - seen.point), axis=1)
        left, duals = decompose(per_link(table, seen.axes))
        change = np.einsum("nik,ni->nk", duals, error)
        change *= np.minimum(1.0, REACH / np.maximum(np.abs(change).max(axis=1, initial=0.0), 1e-300))[:, None]
        if step == STEPS or np.abs(change).max(initial=0.0) <= 1e-15 * (1.0 + np.abs(q).max(initial=0.0)):
            break
        _displace(model, q, per_dof(table, change))
    return Fit(q, error, seen, left, duals)


def per_link(table: JointTable, by_dof: Floats) -> Floats:
    """(n_links, 6, K) columns of each link from (nv, 6), padded with zeros."""
    padded = np.concatenate((by_dof, np.zeros((1, by_dof.shape[1]))))
    return np.swapaxes(padded[table.dofs], 1, 2)


def per_dof(table: JointTable, by_link: Floats) -> Floats:
    """(nv, …) of (n_links, K, …)."""
    return by_link[table.dofs < table.model.nv]


def decompose(axes: Floats) -> tuple[Floats, Floats]:
    """Left singular vectors, and the transposed pseudo-inverse, of axes (n, 6, K)."""
    left, size, right = np.linalg.svd(axes)
    counts = size > FLAT * size[:, :1]
    inverse = np.where(counts, 1.0 / np.where(counts, size, 1.0), 0.0)
    count = size.shape[1]
    return left, np.einsum("nis,ns,nsk->nik", left[:, :, :count], inverse, right[:, :count])


def _displace(model: Model, q: Floats, change: Floats) -> None:
    """Q ⊕ change, in place."""
    ball = model.primitive_kind == Primitive.BALL
    d, j = model.primitive_v_start, model.primitive_q_start
    q[j[~ball]] += change[d[~ball]]
    four = j[ball][:, None] + np.arange(4)
    turned = quat_multiply(q[four], quat_exp(change[d[ball][:, None] + np.arange(3)]))
    q[four] = quat_normalize(turned) if len(four) else turned


def link_frames(model: Model, quat_wxyz: Floats, x: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Origins of links' frames (n_links, 3), and their twists there (n_links, 6), from those at centres of mass."""
    arm = rotate(quat_wxyz, -model.link_com)
    moved = np.concatenate((twist[:, :3], twist[:, 3:] + cross(twist[:, :3], arm)), axis=1)
    return x + arm, moved
