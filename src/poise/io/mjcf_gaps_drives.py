"""Actuators, tendons and joints of a compiled MuJoCo model that a Scene cannot represent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poise.io.mjcf_drives import actuator_count, read_actuators
from poise.io.mjcf_gap_text import named, nonzero, sentence, soft
from poise.io.mjcf_source import MjcfSource
from poise.model.motors import PLAIN
from poise.model.scene import Actuator

#: physics of tendons, by MuJoCo's fields
_TENDON_FORCES = {
    "springs": ("stiffness", "stiffnesspoly", "springyield"),
    "dampers": ("damping", "dampingpoly"),
    "limits": ("limited",),
    "dry friction": ("frictionloss",),
    "armature": ("armature",),
    "ranges of actuator forces": ("actfrclimited",),
}


def drive_gaps(source: MjcfSource) -> list[str]:
    """Actuators that do nothing here, or not all that they do in MuJoCo."""
    model = source.model
    actuators = [actuator for actuator in read_actuators(source) if not actuator.options.get("disabled")]
    gaps = []
    for kind in sorted({actuator.kind for actuator in actuators}.difference(PLAIN, ("intvelocity",))):
        chosen = [actuator.name for actuator in actuators if actuator.kind == kind]
        gaps.append(f"{named(len(chosen), f'{kind} actuator', chosen)} without effect: Poise has no such drive.")
    plain = [actuator for actuator in actuators if actuator.kind in (*PLAIN, "intvelocity")]
    for fault, fate in (
        (_is_dynamic, "with activation dynamics: without effect, as activations are not integrated"),
        (
            _is_elsewhere,
            "on sites, cranks or tendons in space: without effect, only joints and fixed tendons are driven",
        ),
    ):
        chosen = [actuator.name for actuator in plain if fault(actuator)]
        if chosen:
            gaps.append(f"{named(len(chosen), 'actuator', chosen)} {fate}.")
    turned = [actuator.name for actuator in plain if _is_turned(source, actuator)]
    if turned:
        where = "in the axes of the parent (jointinparent) of a ball or free joint"
        gaps.append(f"{named(len(turned), 'actuator', turned)} {where}: without effect.")
    names = source.names("ACTUATOR", actuator_count(model))
    for field, fate in (
        ("actuator_armature", "with armature: it is ignored"),
        ("actuator_delay", "with a delay: it is ignored"),
        ("actuator_nsample", "with a delay: it is ignored"),
    ):
        gaps += sentence(nonzero(model, field), names, "actuator", fate)
    damped = _any_nonzero(model, ("actuator_damping", "actuator_dampingpoly"), len(names))
    gaps += sentence(damped, names, "actuator", "with damping of their own: it is ignored")
    gaps += _shared_ranges(source, actuators)
    if model.nkey and model.na and np.any(model.key_act):
        gaps.append(f"{named(model.nkey, 'keyframe')} with activations (act): these are not kept.")
    return gaps


def _is_dynamic(actuator: Actuator) -> bool:
    return bool(actuator.options["activation"] != "none")


def _is_elsewhere(actuator: Actuator) -> bool:
    transmission = actuator.options["transmission"]
    if transmission == "tendon":
        return "joints" not in actuator.options
    return transmission not in ("joint", "jointinparent")


def _is_turned(source: MjcfSource, actuator: Actuator) -> bool:
    """Whether its gear is in the axes of a parent that a joint with a rotation turns against."""
    types = source.mj.mjtJoint
    if actuator.options["transmission"] != "jointinparent":
        return False
    kind = int(source.model.jnt_type[source.joint_names.index(actuator.target)])
    return kind in (int(types.mjJNT_BALL), int(types.mjJNT_FREE))


def _shared_ranges(source: MjcfSource, actuators: list[Actuator]) -> list[str]:
    """Joints whose range bounds several springs or dampers together: here each has what all forces leave of it."""
    counts: dict[str, int] = {}
    for actuator in actuators:
        springy = any(actuator.options["gain_parameters"][1:3]) or actuator.options["bias"] == "affine"
        joints = actuator.options.get("joints", {actuator.target: 1.0})
        if actuator.kind in PLAIN and springy:
            for joint in joints:
                counts[joint] = counts.get(joint, 0) + (1 if len(joints) == 1 else 2)
    names, limited = source.joint_names, np.asarray(source.model.jnt_actfrclimited).astype(bool)
    several = np.array([counts.get(name, 0) > 1 for name in names], bool)
    fate = "with actuatorfrcrange and several servos, or one by a tendon: the range bounds each, not their sum"
    return sentence(limited & several, names, "joint", fate)


def tendon_gaps(source: MjcfSource) -> list[str]:
    """Forces of tendons."""
    model, names = source.model, source.tendon_names
    gaps = []
    for what, fields in _TENDON_FORCES.items():
        chosen = _any_nonzero(model, [f"tendon_{field}" for field in fields], model.ntendon)
        gaps += sentence(chosen, names, "tendon", f"with {what}: ignored")
    return gaps


def _any_nonzero(model: Any, fields: Sequence[str], count: int) -> Any:
    """Mask of the rows with anything but zero in one of several fields."""
    masks = [nonzero(model, field) for field in fields]
    return np.any([mask for mask in masks if len(mask)] or [np.zeros(count, bool)], axis=0)


def joint_gaps(source: MjcfSource) -> list[str]:
    """Joints whose limits, springs or friction differ."""
    model, names = source.model, source.joint_names
    ball = np.asarray(model.jnt_type) == int(source.mj.mjtJoint.mjJNT_BALL)
    limited = np.asarray(model.jnt_limited).astype(bool)
    curved = _by_joint(model, nonzero(model, "dof_dampingpoly"))
    rough = np.asarray(model.dof_frictionloss) > 0
    soft_friction = _by_joint(model, rough & soft(model.dof_solref, model.dof_solimp))
    return [
        *sentence(
            ball & limited,
            names,
            "ball joint",
            "limited in total angle: kept as a swing cone and a twist of that angle each, which allows a little more",
        ),
        *sentence(nonzero(model, "jnt_stiffnesspoly"), names, "joint", "with a nonlinear spring: kept as linear"),
        *sentence(curved, names, "joint", "with nonlinear damping: kept as linear"),
        *sentence(nonzero(model, "jnt_springyield"), names, "joint", "with a yielding spring: kept without yield"),
        *sentence(limited & nonzero(model, "jnt_margin"), names, "joint", "with a limit margin: it is ignored"),
        *sentence(
            limited & soft(model.jnt_solref, model.jnt_solimp),
            names,
            "joint",
            "with solreflimit or solimplimit: Poise's own softness is used",
        ),
        *sentence(soft_friction, names, "joint", "with solreffriction or solimpfriction: Poise's own softness is used"),
    ]


def _by_joint(model: Any, dofs: Any) -> Any:
    """Mask of the joints with a degree of freedom in a mask."""
    chosen = np.zeros(model.njnt, dtype=bool)
    chosen[np.asarray(model.dof_jntid)[np.flatnonzero(dofs)]] = True
    return chosen
