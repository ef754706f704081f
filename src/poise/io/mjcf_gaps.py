"""What a compiled MuJoCo model holds and a Scene cannot: one sentence each, with counts and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poise.io.mjcf_bodies import MOST_GROUPS, moving_planes
from poise.io.mjcf_drives import read_actuators
from poise.io.mjcf_source import MjcfSource, enum_name

#: names that a sentence lists before it only counts
_MOST_NAMES = 12
#: switched-off parts that the importer honours by leaving them out of the scene
_HONOURED_FLAGS = {
    "GRAVITY",
    "SPRING",
    "DAMPER",
    "PASSIVE",
    "FRICTIONLOSS",
    "LIMIT",
    "CONTACT",
    "EQUALITY",
    "CONSTRAINT",
}
_FLUID = ("density", "viscosity", "wind")
_OVERRIDES = ("o_margin", "o_solref", "o_solimp", "o_friction")
#: kinds of actuators whose force is a linear function of control, position and velocity
_PLAIN_DRIVES = ("motor", "position", "velocity", "damper", "general", "intvelocity")


def list_unsupported(source: MjcfSource) -> list[str]:
    """Every part of the model that Poise ignores or changes."""
    return [
        *_shape_gaps(source),
        *_joint_gaps(source),
        *_body_gaps(source),
        *_contact_gaps(source),
        *_drive_gaps(source),
        *_element_gaps(source),
        *_option_gaps(source),
        *_skin_gaps(source),
        *_look_gaps(source),
    ]


def named(count: int, what: str, names: Sequence[str] = (), whats: str | None = None) -> str:
    """A count with its noun and names.

    >>> named(2, "site", ["tip", "toe"])
    '2 sites (tip, toe)'
    """
    listed = [name for name in names if name]
    shown = ", ".join(listed[:_MOST_NAMES])
    if len(listed) > _MOST_NAMES:
        shown += f" and {len(listed) - _MOST_NAMES} more"
    noun = what if count == 1 else whats or what + "s"
    return f"{count} {noun} ({shown})" if shown else f"{count} {noun}"


def _sentence(chosen: Any, names: Sequence[str], what: str, fate: str, whats: str | None = None) -> list[str]:
    """One sentence about the elements that `chosen` (a mask) selects, none if it selects nothing."""
    found = [int(i) for i in np.flatnonzero(chosen)]
    if not found:
        return []
    return [f"{named(len(found), what, [names[i] for i in found], whats)} {fate}."]


def _rows_differ(array: Any, usual: Any) -> Any:
    """Mask of the rows that are not the usual one."""
    rows = np.asarray(array)
    return np.any(~np.isclose(rows, usual).reshape(len(rows), -1), axis=1) if len(rows) else np.zeros(0, dtype=bool)


def _nonzero(model: Any, field: str) -> Any:
    """Mask of the rows of a field with anything but zero; nothing where this version of MuJoCo has no such field."""
    rows = np.asarray(getattr(model, field, np.zeros((0, 1))))
    return np.any(rows.reshape(len(rows), -1), axis=1) if len(rows) else np.zeros(0, dtype=bool)


def _shape_gaps(source: MjcfSource) -> list[str]:
    model, types = source.model, source.mj.mjtGeom
    names = source.names("GEOM", model.ngeom)
    kinds = np.asarray(model.geom_type)
    fluid = np.array([row[0] != 0 for row in np.asarray(model.geom_fluid)], dtype=bool)
    return [
        *_sentence(kinds == int(types.mjGEOM_HFIELD), names, "height field geom", "left out: not supported"),
        *_sentence(moving_planes(source), names, "plane", "on mocap bodies left out: planes do not move"),
        *_sentence(kinds == int(types.mjGEOM_SDF), names, "signed distance (SDF) geom", "left out: not supported"),
        *_sentence(fluid, names, "geom", "with fluid forces (fluidshape): the forces are ignored"),
        *_sentence(_nonzero(model, "geom_adhesion"), names, "geom", "with adhesion: it is ignored"),
        *_sentence(_nonzero(model, "geom_surfacevel"), names, "geom", "with a surface velocity: it is ignored"),
    ]


def _joint_gaps(source: MjcfSource) -> list[str]:
    model, names = source.model, source.joint_names
    ball = np.asarray(model.jnt_type) == int(source.mj.mjtJoint.mjJNT_BALL)
    limited = np.asarray(model.jnt_limited).astype(bool)
    of_dof = np.asarray(model.dof_jntid)
    curved = np.zeros(model.njnt, dtype=bool)
    curved[of_dof[np.flatnonzero(_nonzero(model, "dof_dampingpoly"))]] = True
    soft_limit = limited & (_rows_differ(model.jnt_solref, (0.02, 1)) | _rows_differ(model.jnt_solimp, _SOLIMP))
    soft_friction = np.zeros(model.njnt, dtype=bool)
    rough = np.asarray(model.dof_frictionloss) > 0
    soft_dofs = rough & (_rows_differ(model.dof_solref, (0.02, 1)) | _rows_differ(model.dof_solimp, _SOLIMP))
    soft_friction[of_dof[np.flatnonzero(soft_dofs)]] = True
    return [
        *_sentence(
            ball & limited,
            names,
            "ball joint",
            "limited in total angle: kept as a swing cone and a twist of that angle each, which allows a little more",
        ),
        *_sentence(_nonzero(model, "jnt_stiffnesspoly"), names, "joint", "with a nonlinear spring: kept as linear"),
        *_sentence(curved, names, "joint", "with nonlinear damping: kept as linear"),
        *_sentence(_nonzero(model, "jnt_springyield"), names, "joint", "with a yielding spring: kept without yield"),
        *_sentence(model.jnt_actfrclimited, names, "joint", "with actuatorfrcrange: the range is ignored"),
        *_sentence(_nonzero(model, "jnt_margin"), names, "joint", "with a limit margin: it is ignored"),
        *_sentence(soft_limit, names, "joint", "with solreflimit or solimplimit: Poise's own softness is used"),
        *_sentence(soft_friction, names, "joint", "with solreffriction or solimpfriction: Poise's own is used"),
    ]


_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)


def _body_gaps(source: MjcfSource) -> list[str]:
    model, names = source.model, source.body_names
    gaps = _sentence(_nonzero(model, "body_gravcomp"), names, "body", "with gravcomp: full gravity acts", "bodies")
    carried = [i for i in source.body_order if _under_mocap(source, i) and model.body_jntnum[i]]
    if carried:
        who = named(len(carried), "body", [names[i] for i in carried], "bodies")
        gaps.append(f"{who} jointed to mocap bodies: their coordinates come last, after all others.")
    return gaps


def _under_mocap(source: MjcfSource, body: int) -> bool:
    while body > 0:
        if source.model.body_mocapid[body] >= 0:
            return True
        body = int(source.model.body_parentid[body])
    return False


def _contact_gaps(source: MjcfSource) -> list[str]:
    model = source.model
    names = source.names("GEOM", model.ngeom)
    meets = (np.asarray(model.geom_contype) | np.asarray(model.geom_conaffinity)) != 0
    soft = _rows_differ(model.geom_solref, (0.02, 1)) | _rows_differ(model.geom_solimp, _SOLIMP)
    soft |= _rows_differ(model.geom_solmix, 1.0)
    pairs = source.given_names("PAIR", model.npair)
    pairs = [
        pair or f"{names[int(first)]} and {names[int(second)]}"
        for pair, first, second in zip(pairs, model.pair_geom1, model.pair_geom2, strict=True)
    ]
    filters = {(int(a), int(b)) for a, b in zip(model.geom_contype, model.geom_conaffinity, strict=True)}
    gaps = [
        *_sentence([True] * model.npair, pairs, "contact pair", "with parameters of its own: ignored"),
        *_sentence(meets & soft, names, "geom", "with solref, solimp or solmix: Poise's own contact softness is used"),
        *_sentence(meets & _nonzero(model, "geom_gap"), names, "geom", "with a contact gap: it is ignored"),
    ]
    if len(filters) > MOST_GROUPS:
        gaps.append(f"{len(filters)} combinations of contype and conaffinity: more than can be kept apart exactly.")
    return gaps


def _drive_gaps(source: MjcfSource) -> list[str]:
    model = source.model
    actuators = read_actuators(source)
    gaps = []
    for kind in sorted({actuator.kind for actuator in actuators}.difference(_PLAIN_DRIVES)):
        chosen = [actuator.name for actuator in actuators if actuator.kind == kind]
        gaps.append(f"{named(len(chosen), f'{kind} actuator', chosen)} kept as read: Poise has no such drive.")
    dynamic = [a.name for a in actuators if a.options["activation"] != "none" and a.kind in _PLAIN_DRIVES]
    if dynamic:
        gaps.append(
            f"{named(len(dynamic), 'actuator', dynamic)} with activation dynamics: kept as read, not integrated."
        )
    joined = ("joint", "jointinparent", "tendon")
    elsewhere = [
        a.name
        for a in actuators
        if a.kind in _PLAIN_DRIVES
        and (
            a.options["transmission"] not in joined
            or (a.options["transmission"] == "tendon" and "joints" not in a.options)
        )
    ]
    if elsewhere:
        gaps.append(f"{named(len(elsewhere), 'actuator', elsewhere)} on sites or tendons in space: kept as read.")
    names = [actuator.name for actuator in actuators]
    gaps += _sentence(_nonzero(model, "actuator_delay"), names, "actuator", "with a delay: it is ignored")
    if model.nkey and model.na and np.any(model.key_act):
        gaps.append(f"{named(model.nkey, 'keyframe')} with activations (act): these are not kept.")
    return gaps


def _element_gaps(source: MjcfSource) -> list[str]:
    model = source.model
    fates = (
        ("SITE", model.nsite, "site", "not kept, except where an actuator or equality uses it"),
        ("TENDON", model.ntendon, "tendon", "not supported: springs, limits and paths are ignored"),
        ("SENSOR", model.nsensor, "sensor", "not kept"),
        ("FLEX", getattr(model, "nflex", 0), "flex", "not supported: its bodies are kept, its elasticity is not"),
        ("PLUGIN", model.nplugin, "plugin", "not supported"),
        ("NUMERIC", model.nnumeric, "custom numeric", "not kept"),
        ("TEXT", model.ntext, "custom text", "not kept"),
        ("TUPLE", model.ntuple, "custom tuple", "not kept"),
    )
    gaps = []
    for kind, count, noun, fate in fates:
        if count:
            whats = "flexes" if kind == "FLEX" else None
            gaps.append(f"{named(count, noun, source.given_names(kind, count), whats)} {fate}.")
    users = [
        name
        for name in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
        if getattr(model, f"nuser_{name}") > 0
    ]
    if users:
        gaps.append(f"user data (of {', '.join(users)}) not kept.")
    return gaps


def _skin_gaps(source: MjcfSource) -> list[str]:
    names = source.names("SKIN", source.model.nskin)
    return _sentence(source.model.skin_inflate, names, "skin", "with inflate: shown as thick as it is without")


def _option_gaps(source: MjcfSource) -> list[str]:
    option, usual = source.model.opt, source.mj.MjOption()
    gaps = []
    fluid = [f"{name} {_plain(getattr(option, name))}" for name in _FLUID if np.any(getattr(option, name))]
    if fluid:
        gaps.append(f"fluid ({', '.join(fluid)}) not supported: bodies move without drag or lift.")
    changed = []
    for name in option._all_fields if hasattr(option, "_all_fields") else ("integrator", "solver", "cone", "impratio"):
        value = getattr(option, name)
        skipped = name in (*_FLUID, *_OVERRIDES, "timestep", "gravity", "disableflags", "enableflags")
        if not skipped and not np.array_equal(value, getattr(usual, name)):
            changed.append(f"{name} {_option_text(source, name, value)}")
    if changed:
        gaps.append(f"solver options ({', '.join(changed)}) ignored: Poise's formulation has its own.")
    disabled = _flags(source.mj.mjtDisableBit, "mjDSBL_", int(option.disableflags))
    ignored = [flag.lower() for flag in disabled if flag not in _HONOURED_FLAGS]
    if ignored:
        gaps.append(f"disabled option flags ({', '.join(ignored)}) ignored.")
    enabled = _flags(source.mj.mjtEnableBit, "mjENBL_", int(option.enableflags))
    if enabled:
        gaps.append(f"enabled option flags ({', '.join(flag.lower() for flag in enabled)}) ignored.")
    return gaps


def _flags(bits: Any, prefix: str, value: int) -> list[str]:
    return [
        name.removeprefix(prefix)
        for name, bit in bits.__members__.items()
        if name.startswith(prefix) and value & int(bit)
    ]


def _option_text(source: MjcfSource, name: str, value: Any) -> str:
    """An option's value in MJCF's words."""
    enums = {"integrator": "mjINT_", "solver": "mjSOL_", "cone": "mjCONE_", "jacobian": "mjJAC_"}
    types = {"integrator": "mjtIntegrator", "solver": "mjtSolver", "cone": "mjtCone", "jacobian": "mjtJacobian"}
    if name in enums:
        return enum_name(getattr(source.mj, types[name])(int(value)), enums[name])
    return _plain(value)


def _plain(value: Any) -> str:
    return " ".join(f"{number:g}" for number in np.ravel(value))


def _look_gaps(source: MjcfSource) -> list[str]:
    """Cameras, lights and everything else that only changes pictures."""
    model = source.model
    gaps = []
    for kind, count, noun in (
        ("CAMERA", model.ncam, "camera"),
        ("LIGHT", model.nlight, "light"),
        ("TEXTURE", model.ntex, "texture"),
    ):
        if count:
            gaps.append(f"{named(count, noun, source.given_names(kind, count))} not kept.")
    if model.nmat:
        materials = source.given_names("MATERIAL", model.nmat)
        gaps.append(f"{named(model.nmat, 'material', materials)} kept as plain colours.")
    if _differs(source.spec.visual, source.mj.MjSpec().visual):
        gaps.append("settings of the viewer (visual) not kept.")
    return gaps


def _differs(first: Any, second: Any) -> bool:
    """Whether two of MuJoCo's structures hold different numbers anywhere."""
    for name in dir(first):
        if name.startswith("_") or name.endswith("_"):
            continue
        ours, theirs = getattr(first, name), getattr(second, name)
        if callable(ours):
            continue
        if isinstance(ours, (int, float, str, np.ndarray)):
            if not np.array_equal(ours, theirs):
                return True
        elif _differs(ours, theirs):
            return True
    return False
