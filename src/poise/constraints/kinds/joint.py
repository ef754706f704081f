"""Joints as rows: constraints between the links of a tree in maximal coordinates (VON §4).

A joint of k degrees of freedom has 6 − k rows, the same for every kind of joint in the table. At the joint's point c
(see `joint_projection`), with S (6 × k) its axes at the coordinates that fit best, computed from the parent's actual
frame, relative motions of the child are split in two:

    V_child − V_parent, both at c  =  S u + Tᵀ φ̇,     T S = 0,  T Tᵀ = 1,  u = Ψᵀ(V_child − V_parent),  Ψ = S (SᵀS)⁻¹

u are the velocities of the joint, φ = T e its errors. Both sides of a row act as wrenches about c, so that together
they exert no force and no couple. A row on a degree of freedom (limit, motor, spring, armature) has a column of Ψ in
place of a row of T. Linear rows come first, then angular ones (one row of a screw is both). They are fixed in the frame
before the joint's last motion: in the parent, except for universal joints and several joints on one body.

    φ̈ = J a + γ,   γ = T ((0, β) − Ṡ u − Ω Tᵀ φ̇)                                                      (1)
    u̇ = D a + γ,   γ = Ψᵀ((0, β) − Ṡ u) + (SᵀS)⁻¹ Ṡᵀ Tᵀ φ̇                                             (2)

with a the bodies' (ω̇, v̇), β their relative velocity-product acceleration at c, Ω the angular velocity of the frame in
which rows are fixed. φ̇ and γ are exact where e = 0; else the error is of the order of |e|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.kinds.joint_projection import (
    Expected,
    Fit,
    Floats,
    JointTable,
    decompose,
    expect,
    fit,
    joint_table,
    link_frames,
    per_dof,
    per_link,
)
from poise.dynamics.state_queries import bodies
from poise.model.model import Model
from poise.motion.rotations import cross, quat_conjugate, quat_from_matrix, quat_normalize, rotate

Indices = NDArray[np.intp]


class Links(NamedTuple):
    """States of a model's links as rigid bodies."""

    quat_wxyz: Floats
    """(n_links, 4) orientations of the links' frames."""
    x: Floats
    """(n_links, 3) centres of mass in the world; m."""
    twist: Floats
    """(n_links, 6) (ω, velocity of the centre of mass) in world axes; rad/s, m/s."""


def place_links(model: Model, q: ArrayLike, v: ArrayLike | None = None) -> Links:
    """States of the links at given coordinates.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(1, 2, 3))
    >>> model = scene.compile()
    >>> place_links(model, model.q_rest).x.tolist()
    [[1.0, 2.0, 3.0]]
    """
    seen = bodies(model, q, np.zeros(model.nv) if v is None else v)
    p, R, twist = (part[model.link_body] for part in seen)
    arm = np.einsum("nij,nj->ni", R, model.link_com)
    at_centre = np.concatenate((twist[:, :3], twist[:, 3:] + cross(twist[:, :3], arm)), axis=1)
    quat = np.array([quat_from_matrix(one) for one in R]).reshape(-1, 4)
    return Links(quat, p + arm, at_centre)


@dataclass(frozen=True)
class JointRows:
    """Joints of all links at one state. Rows are ordered by link; a, b are links, −1 the world.

    Jacobians pair with twists (ω, v) in world axes at centres of mass: six numbers on the twist of each body.
    """

    q: Floats
    """(nq,) coordinates that fit best."""
    v: Floats
    """(nv,) velocities u that fit best."""
    error: Floats
    """(n_links, 6) e = (rotation, offset) from the pose that the joints prescribe; rad, m."""
    point: Floats
    """(n_links, 3) c, where each joint is measured; m."""
    start: Indices
    """(n_links + 1,) first row of each link."""
    link: Indices
    """(m,) link of each row: its body b."""
    parent: Indices
    """(m,) body a of each row."""
    T: Floats
    """(m, 6) on motions at c, angular part first."""
    phi: Floats
    """(m,) errors; m or rad, for rows that are not mixed."""
    rate: Floats
    """(m,) φ̇."""
    gamma: Floats
    """(m,) φ̈ without the bodies' accelerations (eq. 1)."""
    Ja: Floats
    """(m, 6)"""
    Jb: Floats
    """(m, 6)"""
    axes: Floats
    """(nv, 6) columns of S: motion at c per unit of each velocity."""
    duals: Floats
    """(nv, 6) columns of Ψ: wrench about c per unit of each joint force; the opposite acts on the parent."""
    Da: Floats
    """(nv, 6) Jacobian of a joint's velocity on its parent."""
    Db: Floats
    """(nv, 6) the same on the link itself."""
    dof_gamma: Floats
    """(nv,) u̇ without the bodies' accelerations (eq. 2)."""
    dof_bodies: tuple[Indices, Indices]
    """Bodies a and b of each degree of freedom."""

    def wrenches(self, n_links: int, lam: Floats | None = None, tau: Floats | None = None) -> Floats:
        """(n_links, 6) wrenches of row multipliers, and of joint forces, at centres of mass."""
        out = np.zeros((n_links + 1, 6))  # the last one is the world
        if lam is not None:
            np.add.at(out, self.parent, self.Ja * lam[:, None])
            np.add.at(out, self.link, self.Jb * lam[:, None])
        if tau is not None:
            a, b = self.dof_bodies
            np.add.at(out, a, self.Da * tau[:, None])
            np.add.at(out, b, self.Db * tau[:, None])
        return out[:n_links]


def joint_rows(
    model: Model, q: ArrayLike, quat_wxyz: ArrayLike, x: ArrayLike, twist: ArrayLike | None = None
) -> JointRows:
    """Rows of all joints of a model, for any poses of its links.

    Args:
        model: Of the scene.
        q: (nq,) coordinates to start from, such as those of the last step: the fit is the nearest one, so that
            angles continue beyond ±π.
        quat_wxyz: (n_links, 4) orientations of the links' frames.
        x: (n_links, 3) centres of mass in the world; m.
        twist: (n_links, 6) (ω, velocity of the centre of mass) in world axes; at rest where missing; rad/s, m/s.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.characters.humanoid(), name="hero")
    >>> model = scene.compile()
    >>> rows = joint_rows(model, model.q_rest, *place_links(model, model.q_rest))
    >>> len(rows.phi) + model.nv == 6 * model.n_links, bool(abs(rows.phi).max() < 1e-14)
    (True, True)
    """
    q, quat, x, twist = _checked(model, q, quat_wxyz, x, twist)
    table = joint_table(model)
    origin, frame_twist = link_frames(model, quat, x, twist)
    fitted = fit(table, q, quat, origin, frame_twist)
    apart = _apart(model, x, twist, origin + rotate(quat, table.point))
    v = per_dof(table, np.einsum("nik,ni->nk", fitted.duals, apart.motion))
    moving = expect(table, fitted.q, quat, origin, frame_twist, v)
    start, link, T = _complements(table, fitted, moving)
    rate = np.einsum("ri,ri->r", T, apart.motion[link])
    bias, dof_gamma = _biases(table, moving, fitted, apart.beta, v, _spread(T, rate, link, len(x)))
    spin = moving.middle_spin[link]
    turning = np.concatenate((cross(spin, T[:, :3]), cross(spin, T[:, 3:])), axis=1)
    carried = _spread(turning, rate, link, len(x))
    parent, dof = np.asarray(model.link_parent, np.intp), np.asarray(model.dof_link, np.intp)
    duals = per_dof(table, np.swapaxes(fitted.duals, 1, 2))
    Ja, Jb = _at_centres(T, apart, link, parent)
    Da, Db = _at_centres(duals, apart, dof, parent)
    return JointRows(
        q=fitted.q,
        v=v,
        error=fitted.error,
        point=apart.point,
        start=start,
        link=link,
        parent=parent[link],
        T=T,
        phi=np.einsum("ri,ri->r", T, fitted.error[link]),
        rate=rate,
        gamma=np.einsum("ri,ri->r", T, (bias - carried)[link]),
        Ja=Ja,
        Jb=Jb,
        axes=fitted.expected.axes,
        duals=duals,
        Da=Da,
        Db=Db,
        dof_gamma=dof_gamma,
        dof_bodies=(parent[dof], dof),
    )


class _Apart(NamedTuple):
    """Motion of links relative to their parents, (n_links, …)."""

    point: Floats
    """c"""
    arm_a: Floats
    """From the parent's centre of mass to c."""
    arm_b: Floats
    """From the link's own."""
    motion: Floats
    """V_child − V_parent at c."""
    beta: Floats
    """Its rate without the bodies' accelerations: linear part."""


def _apart(model: Model, x: Floats, twist: Floats, point: Floats) -> _Apart:
    parent = np.asarray(model.link_parent, np.intp)
    on_world = (parent < 0)[:, None]
    arm_b, arm_a = point - x, point - np.where(on_world, 0.0, x[parent])
    twist_a = np.where(on_world, 0.0, twist[parent])
    w_a, w_b = twist_a[:, :3], twist[:, :3]
    speed_b = twist[:, 3:] + cross(w_b, arm_b)
    speed_a = twist_a[:, 3:] + cross(w_a, arm_a)
    motion = np.concatenate((w_b - w_a, speed_b - speed_a), axis=1)
    # c is fixed to the child, for the motions of both bodies
    return _Apart(point, arm_a, arm_b, motion, cross(w_b, cross(w_b, arm_b)) - cross(w_a, speed_b - twist_a[:, 3:]))


def _spread(rows: Floats, by_row: Floats, link: Indices, n_links: int) -> Floats:
    """(n_links, 6) sum of the rows of each link, each times its number."""
    out = np.zeros((n_links, 6))
    np.add.at(out, link, rows * by_row[:, None])
    return out


def _biases(
    table: JointTable, moving: Expected, fitted: Fit, beta: Floats, v: Floats, off: Floats
) -> tuple[Floats, Floats]:
    """(n_links, 6) (0, β) − Ṡu, and γ of degrees of freedom (eq. 2); `off` is Tᵀφ̇."""
    rates = per_link(table, moving.rates)
    padded = np.append(v, 0.0)[table.dofs]
    bias = -np.einsum("nik,nk->ni", rates, padded)
    bias[:, 3:] += beta
    own = np.einsum("nik,ni->nk", fitted.duals, bias)
    # (SᵀS)⁻¹ = ΨᵀΨ
    squares = np.einsum("nik,nil->nkl", fitted.duals, fitted.duals)
    own += np.einsum("nkl,nil,ni->nk", squares, rates, off)
    return bias, per_dof(table, own)


def _at_centres(rows: Floats, apart: _Apart, link: Indices, parent: Indices) -> tuple[Floats, Floats]:
    """Rows on motions of links at c, as Jacobians at the centres of mass of the bodies a and b."""
    turn, push = rows[:, :3], rows[:, 3:]
    a = -np.concatenate((turn + cross(apart.arm_a[link], push), push), axis=1)
    b = np.concatenate((turn + cross(apart.arm_b[link], push), push), axis=1)
    return np.where((parent[link] < 0)[:, None], 0.0, a), b


# ---- rows that stay the same from step to step -----------------------------------------------------------------------


@lru_cache(maxsize=8)
def _favourites(model: Model) -> tuple[Floats, ...]:
    """(6, 6 − k) preferred rows of each link, in the frame before its last primitive: linear, then angular.

    They span the motions that the joint locks at rest.
    """
    table = joint_table(model)
    links = place_links(model, model.q_rest)
    still = np.zeros((model.n_links, 6))
    origin, _ = link_frames(model, links.quat_wxyz, links.x, still)
    seen = expect(table, np.array(model.q_rest), links.quat_wxyz, origin, still, np.zeros(model.nv))
    left, _ = decompose(_turned(per_link(table, seen.axes), quat_conjugate(seen.middle)))
    out = []
    for basis, k in zip(left, table.counts, strict=True):
        out.append(_aligned(basis[:, k:]))
    return tuple(out)


def _aligned(basis: Floats) -> Floats:
    """An orthonormal basis of the same space, along the axes where possible, linear ones first."""
    found = np.zeros((6, 0))
    for axis in np.roll(np.eye(6), 3, axis=1):
        left = basis @ (basis.T @ axis)
        for _ in range(2):  # the second pass removes rounding errors
            left = left - found @ (found.T @ left)
        size = float(np.linalg.norm(left))
        if size > 0.3 and found.shape[1] < basis.shape[1]:
            found = np.concatenate((found, left[:, None] / size), axis=1)
    if found.shape[1] < basis.shape[1]:
        rest = np.linalg.svd(basis - found @ (found.T @ basis))[0]
        found = np.concatenate((found, rest[:, : basis.shape[1] - found.shape[1]]), axis=1)
    return found


def _turned(columns: Floats, quat: Floats) -> Floats:
    """(n, 6, c) angular and linear parts, rotated by (n, 4)."""
    rows = np.swapaxes(columns, 1, 2)
    turn = np.broadcast_to(quat[:, None], (*rows.shape[:2], 4))
    both = np.concatenate((rotate(turn, rows[..., :3]), rotate(turn, rows[..., 3:])), axis=2)
    return np.swapaxes(both, 1, 2)


def _complements(table: JointTable, fitted: Fit, moving: Expected) -> tuple[Indices, Indices, Floats]:
    """First row of each link, link of each row, T: the orthonormal bases nearest to the preferred ones."""
    sizes = np.maximum(6 - table.counts, 0)
    start = np.concatenate(([0], np.cumsum(sizes)))
    T = np.zeros((int(start[-1]), 6))
    favourites = _favourites(table.model)
    for size in np.unique(sizes[sizes > 0]):
        links = np.flatnonzero(sizes == size)
        wanted = _turned(np.stack([favourites[i] for i in links]), moving.middle[links])
        free = fitted.left[links][:, :, 6 - size :]
        u, _, vt = np.linalg.svd(np.swapaxes(free, 1, 2) @ wanted)
        basis = free @ (u @ vt)
        T[start[links][:, None] + np.arange(size)] = np.swapaxes(basis, 1, 2)
    return start, np.repeat(np.arange(len(sizes)), sizes), T


def _checked(
    model: Model, q: ArrayLike, quat: ArrayLike, x: ArrayLike, twist: ArrayLike | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Arrays of the right shape, finite, quaternions of length 1."""
    n = model.n_links
    twist = np.zeros((n, 6)) if twist is None else twist
    wanted = {"q": (model.nq,), "quat_wxyz": (n, 4), "x": (n, 3), "twist": (n, 6)}
    arrays = []
    for (name, shape), given in zip(wanted.items(), (q, quat, x, twist), strict=True):
        array = np.array(given, np.float64)
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}; a model of {n} links needs {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has NaN or infinity in it; all numbers must be finite")
        arrays.append(array)
    lengths = np.abs(arrays[1]).max(axis=1, initial=0.0)
    if not (lengths > 0.0).all():
        raise ValueError(f"quat_wxyz of link {int(np.argmin(lengths))} is zero; it must be a rotation")
    return arrays[0], quat_normalize(arrays[1]), arrays[2], arrays[3]
