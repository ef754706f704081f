"""Forward kinematics straight from a scene's description: a second opinion, in plain numpy."""

from __future__ import annotations

import numpy as np

from poise.model.joints import JOINTS
from poise.model.scene import Scene


def rotation(quat_wxyz) -> np.ndarray:
    """Matrix of a quaternion."""
    w, x, y, z = np.asarray(quat_wxyz, dtype=float) / np.linalg.norm(quat_wxyz)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def turn(axis, angle: float) -> np.ndarray:
    """Matrix of a rotation about an axis."""
    unit = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return rotation([np.cos(angle / 2), *(np.sin(angle / 2) * unit)])


def joints_of(body) -> list:
    """Kinds and joints of a body; a kinematic body without joints has a free one."""
    if body.motion == "kinematic" and not body.joints:
        return [("free", None)]
    return [(joint.kind, joint) for joint in body.joints] if body.motion != "fixed" else []


def widths(scene: Scene) -> tuple[int, int]:
    """(nq, nv) of a scene."""
    kinds = [JOINTS[kind] for body in scene.bodies for kind, _ in joints_of(body)]
    return sum(kind.nq for kind in kinds), sum(kind.nv for kind in kinds)


def rest_q(scene: Scene) -> np.ndarray:
    """Coordinates of the rest pose."""
    parts: list[float] = []
    for body in scene.bodies:
        for kind, joint in joints_of(body):
            if kind == "free":
                parts += [*body.position, *body.quat_wxyz]
            elif kind == "ball":
                parts += [1.0, 0.0, 0.0, 0.0]
            else:
                rest = 0.0 if joint.rest is None else joint.rest
                parts += list(np.broadcast_to(rest, JOINTS[kind].nq))
    return np.array(parts)


def world_poses(scene: Scene, q) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rotation matrix and position of every body, by name, at coordinates q."""
    poses = {None: (np.eye(3), np.zeros(3))}
    at = 0
    for body in scene.bodies:
        R_WP, p_WP = poses[body.parent]
        R, p = rotation(body.quat_wxyz), np.array(body.position, dtype=float)
        for kind, joint in joints_of(body):
            values = np.asarray(q[at : at + JOINTS[kind].nq], dtype=float)
            at += len(values)
            if kind == "free":
                R, p = rotation(values[3:]), values[:3]
                continue
            anchor = np.asarray(joint.anchor, dtype=float)
            axis = np.asarray(joint.axis if joint.axis is not None else (0, 0, 1), dtype=float)
            rest = np.broadcast_to(0.0 if joint.rest is None else joint.rest, len(values))
            if kind == "slider":
                step, about = axis / np.linalg.norm(axis) * (values - rest)[0], np.eye(3)
            elif kind == "hinge":
                step, about = np.zeros(3), turn(axis, (values - rest)[0])
            elif kind == "ball":
                step, about = np.zeros(3), rotation(values)
            elif kind == "universal":
                step = np.zeros(3)
                about = turn(axis, values[0]) @ turn(joint.axis2, values[1])
            elif kind == "planar":
                z = axis / np.linalg.norm(axis)
                # without a second axis, x goes with z
                assert joint.axis2 is not None or z[2] == 1.0
                x = np.asarray(joint.axis2 if joint.axis2 is not None else (1, 0, 0), dtype=float)
                x = x - z * (x @ z)
                x = x / np.linalg.norm(x)
                step, about = x * values[0] + np.cross(z, x) * values[1], turn(z, values[2])
            else:
                raise AssertionError(kind)
            p = p + R @ (step + anchor - about @ anchor)
            R = R @ about
        poses[body.name] = (R_WP @ R, p_WP + R_WP @ p)
    assert at == len(q)
    return poses
