"""Actuators, equality constraints and keyframes of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.io.mjcf_source import MjcfSource, enum_name, floats, quaternion, vector
from poise.model.scene import Actuator, Equality, Keyframe


def read_keyframes(source: MjcfSource) -> list[Keyframe]:
    """Keyframes, in the order of coordinates of the scene: mocap poses follow what moves by forces."""
    model = source.model
    names = source.names("KEY", model.nkey)
    controls = [_control(model, i) for i in range(actuator_count(model))]
    return [
        Keyframe(
            name=names[k],
            time=float(model.key_time[k]),
            q=_scene_q(source, model.key_qpos[k], model.key_mpos[k].reshape(-1, 3), model.key_mquat[k].reshape(-1, 4)),
            v=_scene_v(source, model.key_qvel[k]),
            control=tuple(float(model.key_ctrl[k][c]) if c >= 0 else 0.0 for c in controls) if model.nu else None,
        )
        for k in range(model.nkey)
    ]


def actuator_count(model: Any) -> int:
    """How many actuators there are; since version 4 of MuJoCo one may have several controls."""
    return int(getattr(model, "nactuator", model.nu))


def _control(model: Any, i: int) -> int:
    """Number of the first control of an actuator, −1 where it has none."""
    control = int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i
    return control if 0 <= control < model.nu else -1


def _scene_q(source: MjcfSource, qpos: Any, mocap_positions: Any, mocap_quats: Any) -> tuple[float, ...]:
    model = source.model
    starts = [*(int(i) for i in model.jnt_qposadr), model.nq]
    parts: list[float] = []
    for body in source.body_order:
        mocap = int(model.body_mocapid[body])
        if mocap >= 0:
            parts += [*floats(mocap_positions[mocap]), *floats(mocap_quats[mocap])]
        for joint in source.joints_of(body):
            parts += floats(qpos[starts[joint] : starts[joint + 1]])
    return tuple(parts)


def _scene_v(source: MjcfSource, qvel: Any) -> tuple[float, ...]:
    model = source.model
    starts = [*(int(i) for i in model.jnt_dofadr), model.nv]
    parts: list[float] = []
    for body in source.body_order:
        if model.body_mocapid[body] >= 0:
            parts += [0.0] * 6
        for joint in source.joints_of(body):
            parts += floats(qvel[starts[joint] : starts[joint + 1]])
    return tuple(parts)


def read_actuators(source: MjcfSource) -> list[Actuator]:
    """Actuators of every kind, with MuJoCo's parameters of gain, bias and activation in the options."""
    model = source.model
    count = actuator_count(model)
    names = source.names("ACTUATOR", count)
    return [_read_actuator(source, i, names[i]) for i in range(count)]


def _read_actuator(source: MjcfSource, i: int, name: str) -> Actuator:
    model = source.model
    control = _control(model, i)
    output = int(model.actuator_outadr[i]) if hasattr(model, "actuator_outadr") else i
    target, options = _transmission(source, i)
    options |= {
        "gain": enum_name(source.mj.mjtGain(model.actuator_gaintype[i]), "mjGAIN_"),
        "gain_parameters": floats(model.actuator_gainprm[i]),
        "bias": enum_name(source.mj.mjtBias(model.actuator_biastype[i]), "mjBIAS_"),
        "bias_parameters": floats(model.actuator_biasprm[i]),
        "activation": enum_name(source.mj.mjtDyn(model.actuator_dyntype[i]), "mjDYN_"),
        "activation_parameters": floats(model.actuator_dynprm[i]),
        "group": int(model.actuator_group[i]),
    }
    if model.actuator_actlimited[i]:
        options["activation_range"] = floats(model.actuator_actrange[i])
    if source.is_switched_off(i):
        options["disabled"] = True
    if model.actuator_plugin[i] >= 0:
        options["plugin"] = source.plugin_names[int(model.actuator_plugin[i])]
    if np.any(model.actuator_lengthrange[output]):
        options["length_range"] = floats(model.actuator_lengthrange[output])
    for field in ("armature", "damping"):
        value = getattr(model, f"actuator_{field}", None)
        if value is not None and np.any(value[i]):
            options[field] = floats(value[i])
    kind = actuator_kind(options)
    options |= _servo_gains(kind, options)
    return Actuator(
        name,
        kind,
        target,
        gear=floats(model.actuator_gear[output]),
        control_range=_bounds(model.actuator_ctrlrange[control])
        if control >= 0 and model.actuator_ctrllimited[control] and not source.disabled("CLAMPCTRL")
        else None,
        force_range=_bounds(model.actuator_forcerange[i]) if model.actuator_forcelimited[i] else None,
        options=options,
    )


def _bounds(values: Any) -> tuple[float, float]:
    lower, upper = floats(values)
    return (lower, upper)


def _transmission(source: MjcfSource, i: int) -> tuple[str, dict[str, Any]]:
    """Name of what an actuator acts on, and what else is to know about how it does."""
    model = source.model
    first, second = (int(index) for index in model.actuator_trnid[i])
    kind = enum_name(source.mj.mjtTrn(model.actuator_trntype[i]), "mjTRN_")
    options: dict[str, Any] = {"transmission": kind}
    if kind == "tendon":
        return source.tendon_names[first], options | _tendon(source, first)
    if kind == "body":
        return source.body_names[first], options
    if kind in ("site", "slidercrank"):
        options |= site_options(source, first)
        if second >= 0:
            options["reference"] = site_options(source, second)
        if kind == "slidercrank":
            options["crank_length"] = float(model.actuator_cranklength[i])
        return source.body_names[int(model.site_bodyid[first])], options
    if 0 <= first < model.njnt:
        return source.joint_names[first], options
    return "", options


def site_options(source: MjcfSource, site: int) -> dict[str, Any]:
    """A site as a frame on its body."""
    model = source.model
    return {
        "site": source.site_names[site],
        "body": source.body_names[int(model.site_bodyid[site])],
        "position": vector(model.site_pos[site]),
        "quat_wxyz": quaternion(model.site_quat[site]),
    }


def _tendon(source: MjcfSource, tendon: int) -> dict[str, Any]:
    """Joints and coefficients of a tendon that is a linear combination of joints; nothing for one in space."""
    model = source.model
    start = int(model.tendon_adr[tendon])
    wraps = range(start, start + int(model.tendon_num[tendon]))
    joint = int(source.mj.mjtWrap.mjWRAP_JOINT)
    if any(int(model.wrap_type[w]) != joint for w in wraps):
        return {}
    return {"joints": {source.joint_names[int(model.wrap_objid[w])]: float(model.wrap_prm[w]) for w in wraps}}


def actuator_kind(options: dict[str, Any]) -> str:
    """The element of MJCF that an actuator was probably written as, from its gain, bias and activation."""
    gain, bias, activation = options["gain"], options["bias"], options["activation"]
    k = options["gain_parameters"]
    b = options["bias_parameters"]
    if "plugin" in options:
        return "plugin"
    if options["transmission"] == "body":
        return "adhesion"
    for kind in ("muscle", "dcmotor", "pid", "so3", "user"):
        if kind in (gain, bias, activation):
            return kind
    if (gain, bias) == ("fixed", "none"):
        return "motor" if activation == "none" else "general"
    if (gain, bias, activation) == ("affine", "none", "none") and k[:2] == (0.0, 0.0):
        return "damper"
    if (gain, bias) == ("fixed", "affine") and b[0] == 0.0:
        if b[1] == -k[0] != 0.0:
            return {"none": "position", "filterexact": "position", "integrator": "intvelocity"}.get(
                activation, "general"
            )
        if b[1] == 0.0 and b[2] == -k[0] != 0.0 and activation == "none":
            return "velocity"
    return "general"


def _servo_gains(kind: str, options: dict[str, Any]) -> dict[str, float]:
    """Gains of servos in plain words: kp in N·m/rad or N/m, kv in N·m·s/rad or N·s/m."""
    bias = options["bias_parameters"]
    if kind in ("position", "intvelocity"):
        return {"kp": -bias[1], "kv": -bias[2]}
    return {"kv": -bias[2]} if kind == "velocity" else {}


def read_equalities(source: MjcfSource) -> list[Equality]:
    """Equality constraints of every kind, with MuJoCo's parameters in the options."""
    names = source.names("EQUALITY", source.model.neq)
    return [_read_equality(source, i, names[i]) for i in range(source.model.neq)]


def _read_equality(source: MjcfSource, i: int, name: str) -> Equality:
    model = source.model
    kind = enum_name(source.mj.mjtEq(model.eq_type[i]), "mjEQ_")
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    data = floats(model.eq_data[i])
    options: dict[str, Any] = {
        "data": data,
        "solref": floats(model.eq_solref[i]),
        "solimp": floats(model.eq_solimp[i]),
    }
    by_site = int(model.eq_objtype[i]) == int(source.mj.mjtObj.mjOBJ_SITE)
    if kind in ("connect", "weld") and by_site:
        options |= {"first_site": site_options(source, first), "second_site": site_options(source, second)}
        first, second = int(model.site_bodyid[first]), int(model.site_bodyid[second])
    elif kind == "connect":
        options |= {"first_anchor": data[0:3], "second_anchor": data[3:6]}
    elif kind == "weld":
        options |= {"second_anchor": data[0:3], "position": data[3:6], "quat_wxyz": data[6:10]}
    elif kind in ("joint", "tendon"):
        options["coefficients"] = data[0:5]
    if kind == "weld":
        options["torque_scale"] = data[10]
    ends = _end_names(source, kind)
    return Equality(
        name,
        kind,
        ends(first) or "world",
        ends(second),
        active=bool(model.eq_active0[i]) and not source.disabled("EQUALITY", "CONSTRAINT"),
        options=options,
    )


def _end_names(source: MjcfSource, kind: str) -> Any:
    """A function from MuJoCo's index to the name of what an equality of this kind binds, None for the world."""
    if kind in ("connect", "weld"):
        return lambda i: source.body_names[i] if i > 0 else None
    names = {
        "joint": source.joint_names,
        "tendon": source.tendon_names,
        "distance": source.names("GEOM", source.model.ngeom),
    }.get(kind, source.names("FLEX", source.model.nflex))
    return lambda i: names[i] if i >= 0 else None
