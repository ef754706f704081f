"""Reroot a character: the same skeleton with another body as its root, and inverted joints in between.

Between the old root and the new one, parent and child are swapped: C = P·X·J of a parent P and child C becomes
P = C·X⁻¹·(X·J⁻¹·X⁻¹). The inverse of a joint's motion is the same motion about the opposite axis, so scalar coordinates
keep their meaning; the quaternion of a ball joint becomes that of the inverse rotation, in the axes of its new child.
With C at the centre of its limits, R C⁻¹ is inverted too: the axis in the old child, C⁻¹ e, is the axis in the new
parent, and C⁻¹ at the new centre. An elliptic cone rotates with the twist when the joint is inverted: ranges of such
ball joints are exact only at zero twist.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poise.model.checks import as_sequence
from poise.model.compile import joint_frame
from poise.model.errors import SceneError, did_you_mean
from poise.model.scene import Body, Character, Joint
from poise.model.shapes import Quaternion, Vector
from poise.motion.rotations import quat_conjugate, quat_multiply, quat_normalize, rotate

Floats = NDArray[np.float64]


def rerooted(character: Character, root: str, joint: Joint | None = None) -> Character:
    """The character with the root `root`, attached by `joint` (free when missing), in the same rest pose.

    >>> from poise.model.shapes import capsule
    >>> arm = Body("arm", joints=[Joint("free")], shapes=[capsule(0.05, 0.3)])
    >>> hand = Body("hand", "arm", (0, 0, -0.3), joints=[Joint("hinge", axis=(0, 1, 0))], shapes=[capsule(0.03, 0.1)])
    >>> held = rerooted(Character("half", [arm, hand]), "hand")
    >>> [(body.name, body.parent) for body in held.bodies]
    [('hand', None), ('arm', 'hand')]
    """
    bodies = {body.name: deepcopy(body) for body in character.bodies}
    if root not in bodies:
        raise SceneError(f'character "{character.name}" has no body "{root}"{did_you_mean(root, bodies)}')
    way = _way_up(bodies, root)
    _check_top(bodies[way[-1]])
    for name in way:
        if bodies[name].motion != "dynamic":
            raise SceneError(f'body "{name}" is {bodies[name].motion}; only what is dynamic can be held elsewhere')
    new_root = _held(bodies, way, joint or Joint("free", name=root))
    turned = {parent: _turned_over(bodies[parent], bodies[child]) for child, parent in pairwise(way)}
    bodies |= turned | {root: new_root}
    return replace(character, bodies=_parents_first(bodies, root))


def _way_up(bodies: dict[str, Body], name: str) -> list[str]:
    """Names from a body to the root of its tree."""
    way = [name]
    while (parent := bodies[way[-1]].parent) is not None:
        if parent not in bodies or parent in way:
            raise SceneError(f'body "{way[-1]}": its parent "{parent}" is not above it in the character')
        way.append(parent)
    return way


def _check_top(top: Body) -> None:
    """Check that the old root is free: another joint to the world would be lost."""
    kinds = [joint.kind for joint in top.joints]
    if kinds != ["free"]:
        held = f"held by a {', '.join(kinds)} joint" if kinds else "welded to the world"
        raise SceneError(f'body "{top.name}" is {held}; only a free character can be held elsewhere')


def _held(bodies: dict[str, Body], way: list[str], joint: Joint) -> Body:
    """The new root, at its rest pose in the world."""
    position, quat = np.zeros(3), np.array((1.0, 0.0, 0.0, 0.0))
    for name in reversed(way):
        body = bodies[name]
        position = position + rotate(quat, body.position)
        quat = quat_multiply(quat, quat_normalize(body.quat_wxyz))
    return replace(bodies[way[0]], parent=None, position=_vector(position), quat_wxyz=_quaternion(quat), joints=[joint])


def _turned_over(parent: Body, child: Body) -> Body:
    """The old parent as a child of its old child."""
    quat = quat_normalize(child.quat_wxyz)
    back = quat_conjugate(quat)
    joints = [_undone(joint, child, quat) for joint in reversed(child.joints)]
    position = -rotate(back, child.position)
    return replace(parent, parent=child.name, position=_vector(position), quat_wxyz=_quaternion(back), joints=joints)


def _undone(joint: Joint, child: Body, quat: Floats) -> Joint:
    """The inverted joint: opposite axes, in the old parent's frame."""
    if joint.kind in ("planar", "free"):
        raise SceneError(f'joint of body "{child.name}": a {joint.kind} joint has no opposite of its own kind')
    anchor = rotate(quat, joint.anchor) + np.asarray(child.position, np.float64)
    turn = quat
    if joint.kind == "ball" and joint.limit_centre is not None:
        turn = quat_multiply(quat, quat_conjugate(quat_normalize(joint.limit_centre)))
    axis = -rotate(turn, joint.axis if joint.axis is not None else (0.0, 0.0, 1.0))
    axis2 = None if joint.axis2 is None else rotate(turn, joint.axis2)
    if joint.kind == "ball" and axis2 is None and as_sequence(joint.cone) is not None:
        axis2 = rotate(turn, joint_frame(joint)[:, 1])  # turned axes would be given another second one
    name = joint.name if joint.name is not None else child.name
    turned = replace(joint, name=name, anchor=_vector(anchor), axis=_vector(axis))
    if joint.kind == "ball":
        turned = _undone_ball(turned, child, quat)
    if joint.kind != "universal":
        return replace(turned, axis2=None if axis2 is None else _vector(axis2))
    if axis2 is None:
        raise SceneError(f'joint of body "{child.name}": give axis2 of the universal joint to hang the body from it')
    swapped = {
        field: tuple(reversed(items))
        for field in ("limits", "rest", "spring", "damping", "armature")
        if (items := as_sequence(getattr(joint, field))) is not None
    }
    return replace(turned, axis=_vector(-axis2), axis2=_vector(axis), **swapped)  # type: ignore[arg-type]


def _undone_ball(joint: Joint, child: Body, quat: Floats) -> Joint:
    """The forces of an inverted ball joint: its velocities are −R ω, with R the rest orientation."""
    for field in ("damping", "armature"):
        items = as_sequence(getattr(joint, field))
        if items is not None and len(set(items)) > 1:
            raise SceneError(
                f'joint of body "{child.name}": {field} that differs between the axes of a ball goes with the axes of '
                f'"{child.name}"; give one number to hang the body from it'
            )
    fields = {name: given for name in ("spring", "limit_centre") if (given := getattr(joint, name)) is not None}
    for name, given in fields.items():
        undone = quat_conjugate(quat_normalize(np.asarray(given, np.float64)))
        fields[name] = _quaternion(quat_multiply(quat_multiply(quat, undone), quat_conjugate(quat)))
    return replace(joint, **fields)


def _parents_first(bodies: dict[str, Body], root: str) -> list[Body]:
    """All bodies, from the root outwards; those of other trees after them."""
    children: dict[str | None, list[str]] = {}
    for body in bodies.values():
        children.setdefault(body.parent, []).append(body.name)
    ordered: list[Body] = []
    pending = [name for name in reversed(children.get(None, [])) if name != root] + [root]
    while pending:
        name = pending.pop()
        ordered.append(bodies[name])
        pending.extend(reversed(children.get(name, [])))
    return ordered


def _vector(values: Floats) -> Vector:
    x, y, z = values
    return float(x), float(y), float(z)


def _quaternion(values: Floats) -> Quaternion:
    w, x, y, z = values
    return float(w), float(x), float(y), float(z)
