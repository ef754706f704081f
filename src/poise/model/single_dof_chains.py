"""Joints with several degrees of freedom as chains of joints with one each (KOK §3).

A joint with k degrees of freedom becomes a chain of k single joints; the children of the first k − 1 are bodies of zero
length and mass. A ball joint rotates about x, then y, then z of the body's rest frame; a free joint first slides along
x, y, z of its parent. Chain angles count from the rest orientation. Gimbal lock is where the middle angle is ±π/2.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.checks import as_sequence
from poise.model.compile import joint_frame
from poise.model.errors import Problem, SceneError
from poise.model.joints import JOINTS, Primitive
from poise.model.model import Model
from poise.model.scene import Body, Bounds, Joint, Keyframe, Scene
from poise.model.shapes import IDENTITY, ORIGIN, Vector
from poise.model.validate import validate
from poise.motion.rotations import quat_conjugate, quat_exp, quat_multiply, quat_to_matrix

Floats = NDArray[np.float64]

TURN_NAMES = ("rx", "ry", "rz")
SLIDE_NAMES = ("x", "y", "z")

#: cosine of the middle angle below which rates of the angles lose more than six digits
_LOCKED = 1e-6


class GimbalLock(ValueError):
    """Gimbal lock: the middle one of the three angles of a ball joint is at ±π/2.

    >>> from poise.model.shapes import box
    >>> scene = Scene(bodies=[Body("b", joints=[Joint("ball")], shapes=[box(1, 2, 3)])])
    >>> to_chain(scene.compile(), single_dof_chain(scene).compile(), quat_exp((0.0, np.pi / 2, 0.0)), np.zeros(3))
    Traceback (most recent call last):
        ...
    poise.model.single_dof_chains.GimbalLock: joint "b": the middle angle is 1.5708 rad, within 1e-06 of ±π/2
    """


@dataclass(frozen=True)
class _Single:
    """A joint with one degree of freedom and the rest pose of its child body, relative to the one before."""

    joint: Joint
    position: Vector = ORIGIN
    """Used only by the sliders of a free joint."""


def single_dof_chain(scene: Scene, *, drop_ball_forces: bool = False) -> Scene:
    """The same mechanism with only hinges, sliders and screws (kinematic bodies are left as they are).

    Joints with one degree of freedom keep their names; those of others are named `joint.suffix`, with the suffixes
    rx, ry, rz for a ball, x, y, z, rx, ry, rz for a free joint, and those of the joint table otherwise. Damping,
    armature, springs, dry friction and limits of a ball joint have no equivalent on its three angles: they are an
    error, or dropped with `drop_ball_forces`. Keyframes are converted.

    >>> from poise.model.shapes import box
    >>> scene = Scene(bodies=[Body("arm", joints=[Joint("ball")], shapes=[box(1, 2, 3)])])
    >>> single_dof_chain(scene).compile().joint_names
    ('arm.rx', 'arm.ry', 'arm.rz')
    """
    validate(scene)
    if not drop_ball_forces:
        _check_ball_forces(scene)
    taken = {body.name for body in scene.bodies}
    bodies: list[Body] = []
    for body in scene.bodies:
        bodies += _split_body(body, taken)
    chain = replace(
        scene,
        bodies=bodies,
        keyframes=[],
        actuators=[],
        equalities=[],
        loops=[],
        name=f"{scene.name} (single-DOF chain)",
    )
    if scene.keyframes:
        model, chain_model = scene.compile(), chain.compile()
        chain.keyframes = [_convert_keyframe(model, chain_model, frame) for frame in scene.keyframes]
    return chain


def to_chain(model: Model, chain_model: Model, q: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    """Coordinates and velocities of the chain from those of the model; `GimbalLock` where angles have no rates.

    >>> from poise.model.shapes import box
    >>> scene = Scene(bodies=[Body("arm", joints=[Joint("ball")], shapes=[box(1, 2, 3)])])
    >>> q, v = to_chain(scene.compile(), single_dof_chain(scene).compile(), quat_exp((0.5, 0.0, 0.0)), (1, 0, 0))
    >>> abs(q).round(12).tolist(), abs(v).round(12).tolist()
    ([0.5, 0.0, 0.0], [1.0, 0.0, 0.0])
    """
    q, v = _sized("q", q, model.nq), _sized("v", v, model.nv)
    q_chain, v_chain = np.zeros(chain_model.nq), np.zeros(chain_model.nv)
    for part in _parts(model, chain_model):
        if part.is_same:
            q_chain[part.q_chain], v_chain[part.v_chain] = q[part.q], v[part.v]
            continue
        n = len(part.q) - 4
        q_chain[part.q_chain[:n]], v_chain[part.v_chain[:n]] = q[part.q[:n]], v[part.v[:n]]
        angles = angles_from_quat(quat_multiply(quat_conjugate(part.rest_quat), q[part.q[n:]]))
        if abs(np.cos(angles[1])) < _LOCKED:
            raise GimbalLock(f'joint "{part.name}": the middle angle is {angles[1]:g} rad, within {_LOCKED:g} of ±π/2')
        q_chain[part.q_chain[n:]] = angles
        v_chain[part.v_chain[n:]] = np.linalg.solve(spin_map(angles), v[part.v[n:]])
    return q_chain, v_chain


def from_chain(model: Model, chain_model: Model, q_chain: ArrayLike, v_chain: ArrayLike) -> tuple[Floats, Floats]:
    """Coordinates and velocities of the model from those of the chain; quaternions with w ≥ 0.

    >>> from poise.model.shapes import box
    >>> scene = Scene(bodies=[Body("arm", joints=[Joint("ball")], shapes=[box(1, 2, 3)])])
    >>> q, v = from_chain(scene.compile(), single_dof_chain(scene).compile(), (np.pi, 0, 0), (1, 0, 0))
    >>> abs(q).round(12).tolist(), abs(v).round(12).tolist()
    ([0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    """
    q_chain, v_chain = _sized("q", q_chain, chain_model.nq), _sized("v", v_chain, chain_model.nv)
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    for part in _parts(model, chain_model):
        if part.is_same:
            q[part.q], v[part.v] = q_chain[part.q_chain], v_chain[part.v_chain]
            continue
        n = len(part.q) - 4
        q[part.q[:n]], v[part.v[:n]] = q_chain[part.q_chain[:n]], v_chain[part.v_chain[:n]]
        angles = q_chain[part.q_chain[n:]]
        quat = quat_multiply(part.rest_quat, quat_from_angles(angles))
        q[part.q[n:]] = -quat if quat[0] < 0.0 else quat
        v[part.v[n:]] = spin_map(angles) @ v_chain[part.v_chain[n:]]
    return q, v


def velocity_map(model: Model, chain_model: Model, q_chain: ArrayLike) -> Floats:
    """T with v = T v_chain, (nv, nv). Forces transform by the transpose: tau_chain = Tᵀ tau."""
    q_chain = _sized("q", q_chain, chain_model.nq)
    matrix = np.zeros((model.nv, chain_model.nv))
    for part in _parts(model, chain_model):
        matrix[part.v, part.v_chain] = 1.0
        if not part.is_same:
            turns = slice(-3, None)
            matrix[np.ix_(part.v[turns], part.v_chain[turns])] = spin_map(q_chain[part.q_chain[turns]])
    return matrix


def velocity_map_rate(model: Model, chain_model: Model, q_chain: ArrayLike, v_chain: ArrayLike) -> Floats:
    """Ṫ of `velocity_map`, (nv, nv), so that v̇ = T v̇_chain + Ṫ v_chain."""
    q_chain, v_chain = _sized("q", q_chain, chain_model.nq), _sized("v", v_chain, chain_model.nv)
    matrix = np.zeros((model.nv, chain_model.nv))
    for part in _parts(model, chain_model):
        if not part.is_same:
            turns = slice(-3, None)
            rate = spin_map_rate(q_chain[part.q_chain[turns]], v_chain[part.v_chain[turns]])
            matrix[np.ix_(part.v[turns], part.v_chain[turns])] = rate
    return matrix


def quat_from_angles(angles: Floats) -> Floats:
    """Quaternion of rotations about x, then about the new y, then about the new z (rad)."""
    x, y, z = (quat_exp(angle * axis) for angle, axis in zip(angles, np.eye(3), strict=True))
    return quat_multiply(quat_multiply(x, y), z)


def angles_from_quat(quat_wxyz: Floats) -> Floats:
    """The angles of `quat_from_angles`, the middle one within ±π/2 (rad)."""
    m = quat_to_matrix(quat_wxyz)
    middle = np.arctan2(m[0, 2], np.hypot(m[0, 0], m[0, 1]))
    return np.array((np.arctan2(-m[1, 2], m[2, 2]), middle, np.arctan2(-m[0, 1], m[0, 0])))


def spin_map(angles: Floats) -> Floats:
    """E with ω = E · (rates of the angles), ω in the body's axes; (3, 3). Its determinant is cos(middle angle)."""
    (sy, sz), (cy, cz) = np.sin(angles[1:]), np.cos(angles[1:])
    return np.array(((cy * cz, sz, 0.0), (-cy * sz, cz, 0.0), (sy, 0.0, 1.0)))


def spin_map_rate(angles: Floats, rates: Floats) -> Floats:
    """Time derivative of `spin_map`; (3, 3)."""
    (sy, sz), (cy, cz) = np.sin(angles[1:]), np.cos(angles[1:])
    _, dy, dz = rates
    return np.array(
        (
            (-sy * cz * dy - cy * sz * dz, cz * dz, 0.0),
            (sy * sz * dy - cy * cz * dz, -sz * dz, 0.0),
            (cy * dy, 0.0, 0.0),
        )
    )


@dataclass(frozen=True)
class _Part:
    """Indices of a joint of the model in both state vectors."""

    name: str
    is_same: bool
    rest_quat: Floats
    q: NDArray[np.int64]
    v: NDArray[np.int64]
    q_chain: NDArray[np.int64]
    v_chain: NDArray[np.int64]


def _parts(model: Model, chain_model: Model) -> list[_Part]:
    parts = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_kinds, strict=True)):
        q = np.arange(model.joint_q_start[j], model.joint_q_start[j + 1])
        v = np.arange(model.joint_v_start[j], model.joint_v_start[j + 1])
        same = not JOINTS[kind].has_quaternion or bool(model.dof_prescribed[v[0]])
        singles = [name] if bool(model.dof_prescribed[v[0]]) else [_single_name(name, s) for s in _suffixes(kind)]
        missing = [single for single in singles if single not in chain_model.joint_names]
        if missing:
            raise SceneError(f'not the chain of this model: it has no joint "{missing[0]}"', field="chain_model")
        q_chain = np.concatenate([np.r_[chain_model.q_slice(single)] for single in singles])
        v_chain = np.concatenate([np.r_[chain_model.v_slice(single)] for single in singles])
        parts.append(_Part(name, same, model.q_rest[q[-4:]], q, v, q_chain, v_chain))
    return parts


def _suffixes(kind: str) -> tuple[str, ...]:
    """Suffix of each single joint of a kind."""
    if not JOINTS[kind].has_quaternion:
        return JOINTS[kind].v_names
    names: list[str] = []
    for primitive, column in JOINTS[kind].primitives:
        names += TURN_NAMES if primitive is Primitive.BALL else (SLIDE_NAMES[column],)
    return tuple(names)


def _single_name(joint: str, suffix: str) -> str:
    return f"{joint}.{suffix}" if suffix else joint


def _split_body(body: Body, taken: set[str]) -> list[Body]:
    """The body at the end of its chain of massless bodies; their list starts at the parent."""
    joints = body.moving_joints()
    if body.motion == "kinematic" or not joints:
        return [deepcopy(body)]
    singles = [single for name, joint in joints for single in _split_joint(name, joint, body)]
    free = joints[0][1].kind == "free"
    row: list[Body] = []
    parent = body.parent
    for k, single in enumerate(singles):
        last = k == len(singles) - 1
        link = deepcopy(body) if last else Body(_massless_name(body.name, k + 1, taken), line=body.line)
        link.parent, link.joints = parent, [single.joint]
        link.position, link.quat_wxyz = (single.position, IDENTITY) if free or k else (body.position, body.quat_wxyz)
        if free and k == 3:
            link.quat_wxyz = body.quat_wxyz
        row.append(link)
        parent = link.name
    return row


def _massless_name(body: str, number: int, taken: set[str]) -> str:
    name = f"{body}.{number}"
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _split_joint(name: str, joint: Joint, body: Body) -> list[_Single]:
    if joint.kind == "free":
        slides = []
        for axis, suffix, at in zip(np.eye(3), SLIDE_NAMES, body.position, strict=True):
            slide = Joint("slider", _single_name(name, suffix), axis=_tuple(axis), rest=float(at), line=joint.line)
            slides.append(_Single(slide, _tuple(float(at) * axis)))
        return slides + _three_turns(name, joint, ORIGIN)
    if joint.kind == "ball":
        return _three_turns(name, joint, joint.anchor)
    return _split_scalars(name, joint)


def _three_turns(name: str, joint: Joint, anchor: Vector) -> list[_Single]:
    return [
        _Single(Joint("hinge", _single_name(name, suffix), axis=_tuple(axis), anchor=anchor, line=joint.line))
        for axis, suffix in zip(np.eye(3), TURN_NAMES, strict=True)
    ]


def _split_scalars(name: str, joint: Joint) -> list[_Single]:
    kind, frame = JOINTS[joint.kind], joint_frame(joint)
    kinds = {Primitive.SLIDE: "slider", Primitive.TURN: "hinge", Primitive.SCREW: "screw"}
    singles = []
    for k, ((primitive, column), suffix) in enumerate(zip(kind.primitives, kind.v_names, strict=True)):
        single = replace(joint, kind=kinds[primitive], name=_single_name(name, suffix), axis2=None)
        single.axis = _tuple(frame[:, column])
        if kind.nv > 1:
            single.limits = None if joint.limits is None else (_pair(joint.limits[k]),)
            for field in ("rest", "spring", "damping", "armature"):
                items = as_sequence(getattr(joint, field))
                if items is not None:
                    setattr(single, field, items[k])
        singles.append(_Single(single))
    return singles


def _pair(bounds: object) -> Bounds | None:
    items = as_sequence(bounds)
    return None if items is None else (float(items[0]), float(items[1]))


def _tuple(vector: Floats) -> Vector:
    x, y, z = (float(number) for number in vector)
    return (x, y, z)


def _check_ball_forces(scene: Scene) -> None:
    problems = []
    for body in scene.bodies:
        if body.motion == "kinematic":
            continue
        for name, joint in body.moving_joints():
            if not JOINTS[joint.kind].has_quaternion:
                continue
            given = [f for f in ("damping", "armature", "stiffness", "friction") if np.any(getattr(joint, f))]
            given += [f for f in ("cone", "twist") if getattr(joint, f) is not None]
            if given:
                message = (
                    f"has no equal on three angles for its {', '.join(given)}; drop_ball_forces=True leaves them out"
                )
                problems.append(Problem(message, scene.source, joint.line, f'body "{body.name}": joint "{name}"'))
    if problems:
        raise SceneError.of(problems)


def _convert_keyframe(model: Model, chain_model: Model, frame: Keyframe) -> Keyframe:
    if frame.q is None and frame.v is None:
        return replace(frame)
    q = model.q_rest if frame.q is None else np.array(frame.q, dtype=np.float64)
    v = np.zeros(model.nv) if frame.v is None else np.array(frame.v, dtype=np.float64)
    q_chain, v_chain = to_chain(model, chain_model, q, v)
    return replace(frame, q=tuple(q_chain.tolist()), v=tuple(v_chain.tolist()))


def _sized(field: str, value: ArrayLike, count: int) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (count,):
        raise SceneError(f"must be {count} numbers, found an array of shape {array.shape}", field=field)
    return array
