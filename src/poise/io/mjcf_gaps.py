"""Parts of a compiled MuJoCo model that a Scene cannot represent: one sentence each, physics first."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.io.mjcf_gap_text import named, sentence
from poise.io.mjcf_gaps_contacts import contact_gaps, equality_gaps, shape_gaps
from poise.io.mjcf_gaps_drives import drive_gaps, joint_gaps, tendon_gaps
from poise.io.mjcf_source import MjcfSource, enum_name

#: switched-off parts that the importer honours, or names elsewhere
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
    "CLAMPCTRL",
    "ACTUATION",
    "FILTERPARENT",
}
#: options that the importer honours, or names elsewhere
_OTHER_OPTIONS = ("timestep", "gravity", "disableflags", "enableflags", "disableactuator")
_FLUID = ("density", "viscosity", "wind")
_OVERRIDES = ("o_margin", "o_solref", "o_solimp", "o_friction")


def list_unsupported(source: MjcfSource) -> list[str]:
    """Every part of the model that Poise ignores or changes: what moves bodies otherwise, then all else."""
    return [
        *shape_gaps(source),
        *drive_gaps(source),
        *tendon_gaps(source),
        *contact_gaps(source),
        *equality_gaps(source),
        *joint_gaps(source),
        *_body_gaps(source),
        *_elastic_gaps(source),
        *_fluid_gaps(source),
        *_option_gaps(source),
        *_element_gaps(source),
        *_skin_gaps(source),
        *_look_gaps(source),
    ]


def _body_gaps(source: MjcfSource) -> list[str]:
    model, names = source.model, source.body_names
    carried = [i for i in source.body_order if _under_mocap(source, i) and model.body_jntnum[i]]
    if not carried:
        return []
    who = named(len(carried), "body", [names[i] for i in carried], "bodies")
    return [f"{who} jointed to mocap bodies: their coordinates come last, after all others."]


def _under_mocap(source: MjcfSource, body: int) -> bool:
    while body > 0:
        if source.model.body_mocapid[body] >= 0:
            return True
        body = int(source.model.body_parentid[body])
    return False


def _elastic_gaps(source: MjcfSource) -> list[str]:
    """Soft bodies and plugins."""
    model, gaps = source.model, []
    count = getattr(model, "nflex", 0)
    if count:
        who = named(count, "flex", source.given_names("FLEX", count), "flexes")
        gaps.append(f"{who} not supported: its bodies are kept, its elasticity and its contacts are not.")
    if model.nplugin:
        who = named(model.nplugin, "plugin", source.given_names("PLUGIN", model.nplugin))
        gaps.append(f"{who} not supported: without effect.")
    return gaps


def _element_gaps(source: MjcfSource) -> list[str]:
    model = source.model
    used = "not kept, except where an actuator or equality uses it"
    fates = (
        ("SITE", model.nsite, "site", used),
        ("TENDON", model.ntendon, "tendon", used),
        ("SENSOR", model.nsensor, "sensor", "not kept"),
        ("NUMERIC", model.nnumeric, "custom numeric", "not kept"),
        ("TEXT", model.ntext, "custom text", "not kept"),
        ("TUPLE", model.ntuple, "custom tuple", "not kept"),
    )
    gaps = [
        f"{named(count, noun, source.given_names(kind, count))} {fate}." for kind, count, noun, fate in fates if count
    ]
    users = [
        name
        for name in ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
        if getattr(model, f"nuser_{name}") > 0
    ]
    if users:
        gaps.append(f"user data (of {', '.join(users)}) not kept.")
    return gaps


def _fluid_gaps(source: MjcfSource) -> list[str]:
    option = source.model.opt
    fluid = [f"{name} {_plain(getattr(option, name))}" for name in _FLUID if np.any(getattr(option, name))]
    return [f"fluid ({', '.join(fluid)}) not supported: bodies move without drag or lift."] if fluid else []


def _skin_gaps(source: MjcfSource) -> list[str]:
    names = source.names("SKIN", source.model.nskin)
    return sentence(source.model.skin_inflate, names, "skin", "with inflate: shown as thick as it is without")


def _option_gaps(source: MjcfSource) -> list[str]:
    option, usual = source.model.opt, source.mj.MjOption()
    gaps = []
    changed = []
    for name in option._all_fields if hasattr(option, "_all_fields") else ("integrator", "solver", "cone", "impratio"):
        value = getattr(option, name)
        skipped = name in (*_FLUID, *_OVERRIDES, *_OTHER_OPTIONS)
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
