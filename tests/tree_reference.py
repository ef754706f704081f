"""Kinematics and mass matrix of a scene by the plainest road: 4 × 4 matrices and differences. Slow, and independent."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from poise.model.joints import JOINTS, Primitive
from poise.model.massprops import body_mass_properties
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene

Pose = np.ndarray


def pose(position: object, R: Rotation) -> Pose:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = R.as_matrix(), position
    return out


def turn(quat_wxyz: object) -> Rotation:
    w, x, y, z = np.asarray(quat_wxyz, dtype=float)
    return Rotation.from_quat([x, y, z, w])


def frame(joint: Joint) -> np.ndarray:
    """Columns axis, axis2, axis × axis2."""
    axis = np.array(joint.axis if joint.axis is not None else (0.0, 0.0, 1.0))
    axis = axis / np.linalg.norm(axis)
    other = np.roll(np.eye(3), 0)[(np.abs(axis).argmax() + 1) % 3] if joint.axis2 is None else np.array(joint.axis2)
    other = other - axis * (axis @ other)
    other = other / np.linalg.norm(other)
    return np.stack([axis, other, np.cross(axis, other)], axis=1)


def rest_of(joint: Joint) -> np.ndarray:
    return np.broadcast_to(0.0 if joint.rest is None else joint.rest, JOINTS[joint.kind].nq)


def joint_motion(joint: Joint, q: np.ndarray) -> Pose:
    """What a joint (not a free one) adds to the rest pose of its body, in the body's frame."""
    columns, out, at = frame(joint), np.eye(4), 0
    to_anchor, back = pose(joint.anchor, Rotation.identity()), pose(np.negative(joint.anchor), Rotation.identity())
    for primitive, column in JOINTS[joint.kind].primitives:
        axis = columns[:, column]
        if primitive is Primitive.BALL:
            out = out @ to_anchor @ pose((0, 0, 0), turn(q[at : at + 4])) @ back
            at += 4
            continue
        amount = q[at] - rest_of(joint)[at]
        at += 1
        if primitive is Primitive.SLIDE:
            out = out @ pose(axis * amount, Rotation.identity())
        else:
            advance = joint.pitch * amount if primitive is Primitive.SCREW else 0.0
            out = out @ to_anchor @ pose(axis * advance, Rotation.from_rotvec(axis * amount)) @ back
    return out


def body_motion(body: Body, joints: list[tuple[str, Joint]], parts: list[np.ndarray]) -> Pose:
    """Pose of a body in its parent's frame."""
    if joints and joints[0][1].kind == "free":
        return pose(parts[0][:3], turn(parts[0][3:]))
    out = pose(body.position, turn(body.quat_wxyz))
    for (_, joint), q in zip(joints, parts, strict=True):
        out = out @ joint_motion(joint, q)
    return out


def scene_poses(scene: Scene, model: Model, q: np.ndarray) -> np.ndarray:
    """(n_bodies, 4, 4) poses in the order of the model."""
    bodies = {body.name: body for body in scene.bodies}
    found: dict[str | None, Pose] = {None: np.eye(4)}
    for name in model.body_names:
        body = bodies[name]
        joints = body.moving_joints()
        parts = [np.asarray(q)[model.q_slice(joint)] for joint, _ in joints]
        found[name] = found[body.parent] @ body_motion(body, joints, parts)
    return np.array([found[name] for name in model.body_names])


def moved(model: Model, q: np.ndarray, dof: int, by: float) -> np.ndarray:
    """Coordinates after a small motion of one degree of freedom; quaternions turn about the child's axes."""
    out = np.array(q, dtype=float)
    starts = zip(model.primitive_kind, model.primitive_q_start, model.primitive_v_start, strict=True)
    for kind, j, d in starts:
        if kind != Primitive.BALL and d == dof:
            out[j] += by
        elif kind == Primitive.BALL and d <= dof < d + 3:
            x, y, z, w = (turn(q[j : j + 4]) * Rotation.from_rotvec(np.eye(3)[dof - d] * by)).as_quat()
            out[j : j + 4] = w, x, y, z
    return out


def twist_between(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(n, 6) rotation vector in world axes and displacement of the origin from poses to poses."""
    rotations = Rotation.from_matrix(after[:, :3, :3]) * Rotation.from_matrix(before[:, :3, :3]).inv()
    return np.concatenate([rotations.as_rotvec(), after[:, :3, 3] - before[:, :3, 3]], axis=1)


def jacobians(scene: Scene, model: Model, q: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """(n_bodies, 6, nv) by differences of fourth order: an error of about step⁴ (1e-12) and 1e-16/step (1e-13)."""
    out = np.zeros((model.n_bodies, 6, model.nv))
    for d in range(model.nv):
        near, far = ([scene_poses(scene, model, moved(model, q, d, s * k)) for s in (-1, 1)] for k in (step, 2 * step))
        out[:, :, d] = (8 * twist_between(*near) - twist_between(*far)) / (12 * step)
    return out


def mass_matrix(scene: Scene, model: Model, q: np.ndarray) -> np.ndarray:
    """Σ Jᵀ I J over the bodies, and the armatures."""
    at, J = scene_poses(scene, model, q), jacobians(scene, model, q)
    bodies = {body.name: body for body in scene.bodies}
    M = np.diag(model.dof_armature).astype(float)
    for k, name in enumerate(model.body_names):
        matter, R = body_mass_properties(bodies[name]), at[k, :3, :3]
        inertia, arm = R @ matter.inertia @ R.T, R @ matter.com
        w, v = J[k, :3], J[k, 3:] + np.cross(J[k, :3], arm, axis=0)
        M += w.T @ inertia @ w + matter.mass * v.T @ v
    return M
