"""A compiled MuJoCo model with names for everything: what the parts of the MJCF importer read from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from poise.model.shapes import Quaternion, Vector

WORLD_BODY = "world_geoms"


def vector(values: Any) -> Vector:
    """Three numbers as plain floats."""
    x, y, z = (float(value) for value in values)
    return (x, y, z)


def quaternion(values: Any) -> Quaternion:
    """Four numbers (w, x, y, z) as plain floats."""
    w, x, y, z = (float(value) for value in values)
    return (w, x, y, z)


def floats(values: Any) -> tuple[float, ...]:
    """Any array as plain floats."""
    return tuple(float(value) for value in np.ravel(values))


def enum_name(value: Any, prefix: str) -> str:
    """The plain name of one of MuJoCo's constants: mjGAIN_FIXED is "fixed"."""
    return str(value.name).removeprefix(prefix).lower()


def fresh(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, with underscores appended until it is unique."""
    others = taken if isinstance(taken, set) else set(taken)
    while wanted in others:
        wanted += "_"
    return wanted


class MjcfSource:
    """MuJoCo's spec and compiled model. Elements without a name get one from their kind and MuJoCo's index."""

    def __init__(self, mj: ModuleType, spec: Any, model: Any, *, one_file: bool = True) -> None:
        self.mj = mj
        self.spec = spec
        self.model = model
        self.one_file = one_file

    def given_names(self, kind: str, count: int) -> list[str]:
        """Names in the file of the elements of a kind (such as "BODY"), empty where there is none."""
        code = getattr(self.mj.mjtObj, f"mjOBJ_{kind}")
        return [self.mj.mj_id2name(self.model, code, i) or "" for i in range(count)]

    def names(self, kind: str, count: int) -> list[str]:
        """Names of the elements of a kind, made up as `kind_index` where the file gives none."""
        given = self.given_names(kind, count)
        taken = set(given)
        return [name or fresh(f"{kind.lower()}_{i}", taken) for i, name in enumerate(given)]

    @cached_property
    def body_names(self) -> list[str]:
        """By MuJoCo's index; the world's is the name of the body that carries the world's shapes."""
        names = self.names("BODY", self.model.nbody)
        names[0] = fresh(WORLD_BODY, names[1:])
        return names

    @cached_property
    def joint_names(self) -> list[str]:
        """By MuJoCo's index. The only joint of a named body takes that body's name when it has none."""
        given = self.given_names("JOINT", self.model.njnt)
        bodies = self.given_names("BODY", self.model.nbody)
        names, taken, known = [], {*given, *bodies}, set(given)
        for i, name in enumerate(given):
            body = int(self.model.jnt_bodyid[i])
            inherited = bodies[body] if self.model.body_jntnum[body] == 1 and bodies[body] not in known else ""
            names.append(name or inherited or fresh(f"joint_{i}", taken))
        return names

    @cached_property
    def site_names(self) -> list[str]:
        """By MuJoCo's index."""
        return self.names("SITE", self.model.nsite)

    @cached_property
    def tendon_names(self) -> list[str]:
        """By MuJoCo's index."""
        return self.names("TENDON", self.model.ntendon)

    @cached_property
    def plugin_names(self) -> list[str]:
        """By MuJoCo's index."""
        return self.names("PLUGIN", self.model.nplugin)

    @cached_property
    def body_order(self) -> list[int]:
        """Bodies but the world in the order of the scene: mocap bodies and what they carry come last."""
        parents = self.model.body_parentid
        carried = np.zeros(self.model.nbody, dtype=bool)
        for i in range(1, self.model.nbody):
            carried[i] = self.model.body_mocapid[i] >= 0 or carried[parents[i]]
        return [i for i in range(1, len(carried)) if not carried[i]] + [int(i) for i in np.flatnonzero(carried)]

    def joints_of(self, body: int) -> range:
        """Indices of the joints of a body, in the order in which they act."""
        start = max(int(self.model.body_jntadr[body]), 0)
        return range(start, start + int(self.model.body_jntnum[body]))

    def moves(self, body: int) -> bool:
        """Whether a body can move: it, or a body that carries it, has joints or is a mocap body."""
        while body > 0:
            if self.model.body_jntnum[body] or self.model.body_mocapid[body] >= 0:
                return True
            body = int(self.model.body_parentid[body])
        return False

    def disabled(self, *flags: str) -> bool:
        """Whether one of the option flags (such as "GRAVITY"), or all constraints, are switched off."""
        bits = [getattr(self.mj.mjtDisableBit, f"mjDSBL_{flag}", 0) for flag in flags]
        return any(int(self.model.opt.disableflags) & int(bit) for bit in bits)

    def is_switched_off(self, actuator: int) -> bool:
        """Whether an actuator does nothing because all are, or its group is, switched off."""
        groups = int(getattr(self.model.opt, "disableactuator", 0))
        group = int(self.model.actuator_group[actuator])
        return self.disabled("ACTUATION") or (0 <= group < 31 and bool(groups & (1 << group)))

    @cached_property
    def compensates_gravity(self) -> bool:
        """Whether gravcomp acts: MuJoCo needs a positive one, and springs or dampers that are not switched off."""
        off = self.disabled("PASSIVE") or (self.disabled("SPRING") and self.disabled("DAMPER"))
        return not off and bool(np.any(np.asarray(self.model.body_gravcomp) > 0.0))

    def gravity(self) -> Vector:
        """m/s²; zero where the file switches gravity off."""
        return (0.0, 0.0, 0.0) if self.disabled("GRAVITY") else vector(self.model.opt.gravity)

    def lines(self, elements: Iterable[Any]) -> dict[int, int]:
        """Lines of the file by MuJoCo's index, for elements of the spec that know theirs.

        Empty for models of several files, as MuJoCo does not report the file of a line, and with versions of MuJoCo
        that do not report the index of an element.
        """
        found: dict[int, int] = {}
        if not self.one_file:
            return found
        for element in elements:
            match = re.search(r"line (\d+)", element.info or "")
            index = getattr(element, "id", None)
            if match and index is not None and int(match.group(1)) > 0:
                found[int(index)] = int(match.group(1))
        return found
