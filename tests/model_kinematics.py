"""Poses of a compiled model straight from its arrays: a slow second opinion, in plain numpy."""

from __future__ import annotations

import numpy as np

from poise.model.joints import Primitive
from poise.model.model import Model


def rotation(quat_wxyz) -> np.ndarray:
    """Matrix of a quaternion, from the definition q v q⁻¹ by basis vectors."""
    w, v = quat_wxyz[0], np.asarray(quat_wxyz[1:], dtype=float)
    return np.column_stack([e + 2 * w * np.cross(v, e) + 2 * np.cross(v, np.cross(v, e)) for e in np.eye(3)])


def turn(axis, angle: float) -> np.ndarray:
    """Matrix of a rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def _move(model: Model, k: int, q) -> np.ndarray:
    """4 × 4 motion of one primitive."""
    kind, axis, anchor = model.primitive_kind[k], model.primitive_axis[k], model.primitive_anchor[k]
    j = model.primitive_q_start[k]
    pose = np.eye(4)
    if kind == Primitive.BALL:
        pose[:3, :3] = rotation(q[j : j + 4])
    else:
        amount = q[j] - model.q_zero[j]
        if kind == Primitive.SLIDE:
            pose[:3, 3] = amount * axis
            return pose
        pose[:3, :3] = turn(axis, amount)
        pose[:3, 3] = model.primitive_pitch[k] * amount * axis
    pose[:3, 3] += anchor - pose[:3, :3] @ anchor
    return pose


def pose_matrix(position, quat_wxyz) -> np.ndarray:
    """4 × 4 pose."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation(quat_wxyz), position
    return pose


def link_poses(model: Model, q) -> np.ndarray:
    """(n_links, 4, 4) poses in the world."""
    poses = np.zeros((model.n_links, 4, 4))
    for i in range(model.n_links):
        parent = model.link_parent[i]
        pose = pose_matrix(model.link_position[i], model.link_quat_wxyz[i])
        for k in range(model.link_primitive_start[i], model.link_primitive_start[i + 1]):
            pose = pose @ _move(model, k, q)
        poses[i] = pose if parent < 0 else poses[parent] @ pose
    return poses


def body_poses(model: Model, q) -> np.ndarray:
    """(n_bodies, 4, 4) poses in the world."""
    links = link_poses(model, q)
    poses = np.zeros((model.n_bodies, 4, 4))
    for b, link in enumerate(model.body_link):
        own = pose_matrix(model.body_position[b], model.body_quat_wxyz[b])
        poses[b] = own if link < 0 else links[link] @ own
    return poses


def random_q(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Coordinates anywhere, quaternions unit."""
    q = rng.normal(size=model.nq)
    for kind, start in zip(model.primitive_kind, model.primitive_q_start, strict=True):
        if kind == Primitive.BALL:
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    return q
