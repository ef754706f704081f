"""Loops, couplings and motors as equalities and actuators of MJCF."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from poise.model.loops import Coupling, LoopJoint
from poise.model.motors import Motor
from poise.model.scene import Actuator
from poise.motion.rotations import quat_from_matrix

if TYPE_CHECKING:
    from poise.io.mjcf_write import MjcfWriter

_OFF = "1"
"""Group of the actuators that are switched off; all others are in group 0."""


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))


def write_equalities(writer: MjcfWriter, world: ET.Element) -> None:
    """Balls and welds that close loops, and couplings; all else is lost."""
    section = ET.Element("equality")
    for loop in writer.model.loops:
        _loop(writer, loop, world, section)
    for coupling in writer.model.couplings:
        _coupling(writer, coupling, section)
    kept = {loop.name for loop in writer.model.loops} | {one.name for one in writer.model.couplings}
    for one in writer.scene.equalities:
        if one.name not in kept:
            writer.lose(f'Equality "{one.name}" of the kind {one.kind} is not kept.')
    if len(section):
        writer.root.append(section)


def _loop(writer: MjcfWriter, loop: LoopJoint, world: ET.Element, section: ET.Element) -> None:
    kinds = {"ball": "connect", "fixed": "weld"}
    if loop.kind not in kinds:
        writer.lose(f'Loop "{loop.name}" is not kept: MJCF closes loops with balls and welds, not with a {loop.kind}.')
        return
    bounded = loop.kind == "ball" and any(map(isfinite, (*loop.limits[0], *loop.cone)))
    if bounded or loop.friction or isfinite(loop.break_force) or isfinite(loop.break_torque):
        writer.lose(f'Limits, friction and breaking of loop "{loop.name}" are not kept.')
    sites = []
    for end, body, point, frame in (
        ("a", loop.body_a, loop.point_a, loop.frame_a),
        ("b", loop.body_b, loop.point_b, loop.frame_b),
    ):
        holder = world if body < 0 else writer.elements[writer.model.body_names[body]]
        quat = quat_from_matrix(np.array(frame).reshape(3, 3))
        sites.append(f"{loop.name}.{end}")
        ET.SubElement(holder, "site", name=sites[-1], pos=_numbers(point), quat=_numbers(quat), size="0.005")
    made = ET.SubElement(section, kinds[loop.kind], name=loop.name, site1=sites[0], site2=sites[1])
    if not loop.active:
        made.set("active", "false")


def _coupling(writer: MjcfWriter, one: Coupling, section: ET.Element) -> None:
    model = writer.model
    ends = [(one.first, one.first_q, one.first_zero), (one.second, one.second_q, one.second_zero)]
    if any(dof >= 0 and model.q_rest[q] != zero for dof, q, zero in ends):
        writer.lose(f'Coupling "{one.name}" is not kept: in MJCF joints count from where they rest.')
        return
    made = ET.SubElement(section, "joint", name=one.name, joint1=_dof_joint(model, one.first))
    if one.second >= 0:
        made.set("joint2", _dof_joint(model, one.second))
    made.set("polycoef", _numbers(one.coefficients))
    if not one.active:
        made.set("active", "false")


def _dof_joint(model: Any, dof: int) -> str:
    return str(model.dof_names[dof])


def write_actuators(writer: MjcfWriter) -> None:
    """Motors that drive one joint of one coordinate; all else is lost."""
    section = ET.Element("actuator")
    for k, (actuator, motor) in enumerate(zip(writer.scene.actuators, writer.model.motors, strict=True)):
        made = _own(writer, actuator) if actuator.kind != "servo" else _servo(writer, motor)
        if made is None:
            continue
        writer.actuators.append(k)
        for name, bounds in (("ctrlrange", actuator.control_range), ("forcerange", actuator.force_range)):
            if bounds is not None and all(map(isfinite, bounds)):
                made.set(name, _numbers(bounds))
        section.append(made)
    if len(section):
        writer.root.append(section)


def _own(writer: MjcfWriter, actuator: Actuator) -> ET.Element | None:
    """An actuator that came from MJCF."""
    options = actuator.options
    plain = "gain_parameters" in options and options.get("transmission", "joint") == "joint"
    if (
        not plain
        or options["activation"] != "none"
        or not {options["gain"], options["bias"]} <= {"fixed", "affine", "none"}
    ):
        writer.lose(f'Actuator "{actuator.name}" of the kind {actuator.kind} is not kept.')
        return None
    made = ET.Element("general", name=actuator.name, joint=actuator.target, gear=_numbers(actuator.gear))
    made.set("gaintype", options["gain"])
    made.set("gainprm", _numbers(options["gain_parameters"][:3]))
    made.set("biastype", options["bias"])
    made.set("biasprm", _numbers(options["bias_parameters"][:3]))
    if options.get("disabled", False):
        made.set("group", _OFF)
        writer.option.set("actuatorgroupdisable", _OFF)
    return made


def controls(writer: MjcfWriter, values: Any) -> list[float]:
    """Controls of the actuators that are written. One of a servo becomes the force that it adds."""
    given = []
    for k in writer.actuators:
        motor, value = writer.model.motors[k], float(values[k])
        if writer.scene.actuators[k].kind == "servo":
            gain = {"target": motor.stiffness, "speed": motor.damping}.get(motor.control, 1.0)
            value = gain * (motor.gain * value + motor.offset - _controlled(motor))
        given.append(value)
    return given


def _controlled(motor: Motor) -> float:
    """What its control sets, as it is at first."""
    number = motor.target[0] if motor.control == "target" else getattr(motor, motor.control)
    return float(number)


def _servo(writer: MjcfWriter, motor: Motor) -> ET.Element | None:
    """f = torque + k (target − x) + c (speed − ẋ): a bias, to which the control is added as a force."""
    model = writer.model
    if motor.ball or len(motor.dofs) != 1 or not (isfinite(motor.stiffness) and isfinite(motor.damping)):
        reason = "it turns a ball" if motor.ball else "its gains are infinite" if motor.dofs else "it drives a loop"
        writer.lose(f'Motor "{motor.name}" is not kept: {reason}.')
        return None
    dof = motor.dofs[0]
    joint = int(np.searchsorted(model.joint_v_start, dof, side="right")) - 1
    if model.joint_kinds[joint] in ("ball", "free"):
        made = ET.Element("general", name=motor.name, joint=str(model.joint_names[joint]))
        if motor.stiffness:
            writer.lose(f'Motor "{motor.name}" is not kept: MJCF has no target for one coordinate of such a joint.')
            return None
        gear = np.zeros(6)
        gear[dof - int(model.joint_v_start[joint])] = motor.gear[0]
        made.set("gear", _numbers(gear))
    else:
        made = ET.Element("general", name=motor.name, joint=_dof_joint(model, dof), gear=repr(float(motor.gear[0])))
    force = motor.torque + motor.stiffness * motor.target[0] + motor.damping * motor.speed
    made.set("gainprm", "1")
    made.set("biastype", "affine")
    made.set("biasprm", _numbers((force, -motor.stiffness, -motor.damping)))
    return made
