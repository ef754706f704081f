"""Joints of a URDF file."""

from __future__ import annotations

import math
from dataclasses import dataclass

from poise.io.urdf_reader import UrdfReader
from poise.io.xml_lines import Element
from poise.model.errors import did_you_mean
from poise.model.scene import Joint
from poise.model.shapes import IDENTITY, ORIGIN, Quaternion, Vector

#: joint types of URDF and the kinds of Poise
_KINDS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "planar": "planar",
    "floating": "free",
    "fixed": "fixed",
}
_LIMITED = ("revolute", "prismatic")
_WITH_AXIS = ("revolute", "continuous", "prismatic", "planar")
_X: Vector = (1.0, 0.0, 0.0)


@dataclass
class UrdfJoint:
    """A joint between two links, and what the scene keeps elsewhere."""

    element: Element
    name: str
    parent: str | None = None
    child: str | None = None
    position: Vector = ORIGIN
    """Of the child in the parent's frame; m."""
    quat_wxyz: Quaternion = IDENTITY
    joint: Joint | None = None
    """None for a fixed joint."""
    effort: float = 0.0
    """Greatest force of its drive, 0 where none is given; N or N·m."""
    speed: float = 0.0
    """Greatest speed of its drive, 0 where none is given; m/s or rad/s."""
    mimics: str | None = None
    """Joint that it follows: multiplier · position + offset."""
    multiplier: float = 1.0
    offset: float = 0.0


def read_joints(robot: Element, reader: UrdfReader) -> list[UrdfJoint]:
    """All joints in the order of the file."""
    joints: list[UrdfJoint] = []
    lines: dict[str, int] = {}
    for element in robot.all("joint"):
        name = reader.text(element, "name", "joint")
        if name is None:
            continue
        if name in lines:
            reader.problem(element, f'joint "{name}" is there twice, first on line {lines[name]}')
            continue
        lines[name] = element.line
        joints.append(_read_joint(element, name, reader))
    _check_mimics(joints, reader)
    return joints


def _read_joint(element: Element, name: str, reader: UrdfReader) -> UrdfJoint:
    what = f'joint "{name}"'
    joint = UrdfJoint(element, name, _end(element, "parent", what, reader), _end(element, "child", what, reader))
    joint.position, joint.quat_wxyz = reader.pose(element, what)
    kind = reader.text(element, "type", what)
    if kind == "fixed" and element.first("mimic") is not None:
        reader.ignore("<mimic> of fixed joints ignored", name)
    if kind is None or kind == "fixed":
        return joint
    if kind not in _KINDS:
        reader.problem(element, f'{what}: unknown type "{kind}"{did_you_mean(kind, _KINDS)}')
        return joint
    joint.joint = Joint(_KINDS[kind], name=name, line=element.line)
    if kind in _WITH_AXIS:
        joint.joint.axis = _axis(element, what, reader)
    _read_limit(element, kind, joint, what, reader)
    dynamics = element.first("dynamics")
    joint.joint.damping = _not_negative(dynamics, "damping", what, reader)
    joint.joint.friction = _not_negative(dynamics, "friction", what, reader)
    mimic = element.first("mimic")
    if mimic is not None:
        joint.mimics = reader.text(mimic, "joint", what)
        joint.multiplier = reader.number(mimic, "multiplier", 1.0, what)
        joint.offset = reader.number(mimic, "offset", 0.0, what)
    return joint


def _end(element: Element, role: str, what: str, reader: UrdfReader) -> str | None:
    """Name of the parent or child link."""
    end = element.first(role)
    if end is None:
        reader.problem(element, f'{what} needs <{role} link="…"/>')
        return None
    return reader.text(end, "link", what)


def _axis(element: Element, what: str, reader: UrdfReader) -> Vector:
    axis = element.first("axis")
    x, y, z = reader.vector(axis, "xyz", _X, what)
    length = math.hypot(x, y, z)
    if length < 1e-9:
        if axis is not None and len(axis.attributes.get("xyz", "").split()) == 3 and not _has_problem(reader, axis):
            found = axis.attributes["xyz"]
            reader.problem(axis, f'{what}: the axis has no direction, found "{found}"; leave it out for x')
        return _X
    return (x / length, y / length, z / length)


def _has_problem(reader: UrdfReader, element: Element) -> bool:
    return any(problem.line == element.line for problem in reader.problems)


def _read_limit(element: Element, kind: str, joint: UrdfJoint, what: str, reader: UrdfReader) -> None:
    """Range of the coordinate, and of the force and speed of the drive."""
    assert joint.joint is not None
    limit = element.first("limit")
    if limit is None:
        if kind in _LIMITED:
            other = "; a hinge without limits is of type continuous" if kind == "revolute" else ""
            reader.problem(element, f'{what} is {kind} and needs <limit lower="…" upper="…"/>{other}')
        return
    joint.effort = _strength(limit, "effort", what, reader)
    joint.speed = _strength(limit, "velocity", what, reader)
    if joint.speed > 0.0:
        reader.ignore("velocities in <limit> not enforced, as motors have a limit of force alone", joint.name)
    if kind not in _LIMITED:
        if "lower" in limit.attributes or "upper" in limit.attributes:
            fate = "ranges in <limit> ignored, as URDF has none for continuous, planar and floating joints"
            reader.ignore(fate, joint.name)
        return
    (lower,) = reader.numbers(limit, "lower", 1, (0.0,), what)
    (upper,) = reader.numbers(limit, "upper", 1, (0.0,), what)
    if lower > upper:
        reader.problem(limit, f"{what}: lower limit {lower:g} is above upper limit {upper:g}")
    if "lower" not in limit.attributes and "upper" not in limit.attributes:
        reader.ignore("joints that cannot move, as <limit> gives no range and URDF takes that as 0 to 0", joint.name)
    if math.isfinite(lower) or math.isfinite(upper):
        joint.joint.limits = (lower, upper)


def _strength(limit: Element, attribute: str, what: str, reader: UrdfReader) -> float:
    """A limit of force or speed; 0 stands for none, as files use 0 for unknown."""
    (value,) = reader.numbers(limit, attribute, 1, (0.0,), what)
    if value < 0.0:
        reader.problem(limit, f"{what}: {attribute} must not be negative, found {value:g}")
    if value == math.inf and attribute == "effort":
        reader.ignore("joints without a motor, as the effort in <limit> is infinite", what)
    return value if math.isfinite(value) and value > 0.0 else 0.0


def _not_negative(element: Element | None, attribute: str, what: str, reader: UrdfReader) -> float:
    value = reader.number(element, attribute, 0.0, what)
    if value < 0.0 and element is not None:
        reader.problem(element, f"{what}: {attribute} must not be negative, found {value:g}")
        return 0.0
    return value


def _check_mimics(joints: list[UrdfJoint], reader: UrdfReader) -> None:
    names = [joint.name for joint in joints]
    for joint in joints:
        if joint.mimics == joint.name:
            reader.problem(joint.element, f'joint "{joint.name}" mimics itself')
        elif joint.mimics is not None and joint.mimics not in names:
            hint = did_you_mean(joint.mimics, names)
            reader.problem(joint.element, f'joint "{joint.name}" mimics "{joint.mimics}", which does not exist{hint}')
