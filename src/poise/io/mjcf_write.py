"""A scene as MJCF. Losses are listed, one sentence each.

Masses and inertias are written as they are compiled, so that nothing depends on how MuJoCo weighs shapes. Joints of
several coordinates become as many hinges and slides.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from poise.io.mjcf_skins import write_skins
from poise.io.mjcf_write_drives import controls, write_actuators, write_equalities
from poise.io.mjcf_write_shapes import tell_rules, write_contact_pair, write_shape
from poise.io.recording_frames import quats_of
from poise.model.compile import depth_first, joint_frame
from poise.model.errors import SceneError
from poise.model.joints import JOINTS, Primitive
from poise.model.massprops import body_mass_properties, nearest_physical_inertia, pack_inertia
from poise.model.model import Model
from poise.model.scene import Body, Joint, Scene

Floats = NDArray[np.float64]
#: part of the largest moment by which others are above what is still physical, at least
_BORDER = 1e-9
#: moments of inertia of moving bodies must be above 1e-15 kg·m² in MuJoCo
_LEAST = 1e-14
#: largest bound that stands for an infinite one
_MOST = 1e10
_KINDS = {Primitive.SLIDE: "slide", Primitive.TURN: "hinge", Primitive.SCREW: "hinge"}


def scene_to_mjcf(scene: Scene, file: Path) -> tuple[str, list[str]]:
    """The text of an MJCF file, and the losses."""
    writer = MjcfWriter(scene)
    root = writer.whole()
    ET.indent(root, "  ")
    return ET.tostring(root, encoding="unicode") + "\n", writer.lost


def numbers(values: Any) -> str:
    """Numbers as MJCF has them, each exactly.

    >>> numbers((0.1, 1, -0.0))
    '0.1 1.0 0.0'
    """
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))


class MjcfWriter:
    """Writes a scene, element by element."""

    def __init__(self, scene: Scene) -> None:
        self.scene: Scene = scene
        self.model: Model = scene.compile()
        self.lost: list[str] = []
        self.root = ET.Element("mujoco", model=scene.name)
        self.assets = ET.Element("asset")
        self.option = ET.Element("option")
        self.actuators: list[int] = []
        """Numbers of those that are written, in their order."""
        self.elements: dict[str, ET.Element] = {}
        """Of bodies, by name."""
        self.geoms: dict[tuple[str, int], ET.Element] = {}
        """Of shapes, by body and number."""

    def lose(self, sentence: str) -> None:
        """Say what is lost, once."""
        if sentence not in self.lost:
            self.lost.append(sentence)

    def whole(self) -> ET.Element:
        """All of it."""
        root, scene = self.root, self.scene
        ET.SubElement(root, "compiler", angle="radian", autolimits="true")
        self.option.attrib.update(timestep=repr(float(scene.dt)), gravity=numbers(scene.gravity))
        root.append(self.option)
        world = ET.SubElement(root, "worldbody")
        bodies, parents = depth_first(scene.bodies)
        for body, parent in zip(bodies, parents, strict=True):
            above = world if parent < 0 else self.elements[bodies[parent].name]
            self._body(body, above, parent < 0)
        if len(self.assets):
            root.insert(2, self.assets)
        self._contacts()
        tell_rules(self)
        write_equalities(self, world)
        write_actuators(self)
        write_skins(self)
        self._keyframes()
        for name, _ in scene.controllers:
            self.lose(f'The controller "{name}" is not kept: MJCF has none.')
        return root

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def _body(self, body: Body, above: ET.Element, top: bool) -> None:
        if body.name == "world":
            raise SceneError('MJCF has a body "world" of its own; give this one another name', field='body "world"')
        start: Any = body.path(0.0) if body.path is not None else body
        element = ET.SubElement(above, "body", name=body.name)
        element.set("pos", numbers(start.position))
        if tuple(start.quat_wxyz) != (1.0, 0.0, 0.0, 0.0):
            element.set("quat", numbers(start.quat_wxyz))
        if body.gravity_compensation:
            element.set("gravcomp", repr(float(body.gravity_compensation)))
        self.elements[body.name] = element
        if body.motion == "kinematic":
            self._kinematic(body, element, top)
        matter = body_mass_properties(body)
        if matter.mass > 0.0:
            inertial = ET.SubElement(element, "inertial", pos=numbers(matter.com), mass=repr(float(matter.mass)))
            self._moments(body, inertial, matter.inertia)
        if body.motion != "kinematic":
            for name, joint in body.moving_joints():
                self._joint(body, name, joint, element, top)
        for k, shape in enumerate(body.shapes):
            write_shape(self, body, k, shape, element)

    def _moments(self, body: Body, inertial: ET.Element, inertia: Floats) -> None:
        """Moments of inertia. MuJoCo takes physical ones alone, and those on the border only in principal axes."""
        small, middle, large = np.linalg.eigvalsh(inertia)
        if small > _BORDER * large and small + middle > (1.0 + _BORDER) * large:
            inertial.set("fullinertia", numbers(pack_inertia(inertia)))
            return
        nearest = nearest_physical_inertia(inertia)
        change, size = float(np.linalg.norm(nearest - inertia)), float(np.linalg.norm(inertia))
        if change > _BORDER * size:
            by = f"by {change:.3g} kg·m² ({100.0 * change / size:.3g} %)"
            self.lose(
                f'The inertia of "{body.name}" is changed {by} to the nearest physical one: MuJoCo takes no other.'
            )
        (small, middle, large), axes = np.linalg.eigh(nearest)
        axes[:, 0] *= np.linalg.det(axes)
        least = _LEAST if body.motion == "dynamic" and body.moving_joints() else 0.0
        if small < least:
            self.lose(f'Moments of "{body.name}" are raised to {_LEAST:g} kg·m²: MuJoCo takes no lower ones.')
        small, middle, large = (max(moment, least) for moment in (small, middle, large))
        inertial.set("quat", numbers(quats_of(axes)))
        inertial.set("diaginertia", numbers((small, middle, min(large, small + middle))))

    def _kinematic(self, body: Body, element: ET.Element, top: bool) -> None:
        if top:
            element.set("mocap", "true")
            if body.path is not None and type(body.path).__name__ != "ConstantPath":
                self.lose(f'The path of body "{body.name}" is not kept: a mocap body of MJCF stays where it begins.')
        else:
            self.lose(f'Body "{body.name}" stays where it begins: only bodies on the world can be kinematic in MJCF.')

    # ---- joints ------------------------------------------------------------------------------------------------------

    def _joint(self, body: Body, name: str, joint: Joint, element: ET.Element, top: bool) -> None:
        kind = JOINTS[joint.kind]
        if joint.kind == "free":
            if not top:
                what = (
                    f'body "{body.name}" is free, but hangs from "{body.parent}": in MJCF only those on the world are'
                )
                raise SceneError(f"{what}; leave parent out", field=f'joint "{name}"')
            made = ET.SubElement(element, "joint", name=name, type="free")
            self._dynamics(made, joint, name, slice(0, 6))
            return
        if joint.kind == "screw":
            self.lose(f'Joint "{name}" turns without advancing: MJCF has no screws.')
        if joint.kind == "ball":
            made = ET.SubElement(element, "joint", name=name, type="ball", pos=numbers(joint.anchor))
            self._ball_limits(made, joint, name)
            self._dynamics(made, joint, name, slice(0, 3))
            return
        frame = joint_frame(joint)
        for k, (primitive, column) in enumerate(kind.primitives):
            label = name if kind.nv == 1 else f"{name}.{kind.v_names[k]}"
            made = ET.SubElement(element, "joint", name=label, type=_KINDS[primitive], pos=numbers(joint.anchor))
            made.set("axis", numbers(frame[:, column]))
            self._coordinate(made, joint, k, kind.nv)
            self._dynamics(made, joint, name, slice(k, k + 1))

    def _coordinate(self, made: ET.Element, joint: Joint, k: int, count: int) -> None:
        """Limits, rest and spring of one coordinate."""
        limits: Any = joint.limits
        if limits is not None:
            pair = limits if count == 1 and np.ndim(limits[0]) == 0 and limits[0] is not None else limits[k]
            if pair is not None and any(map(isfinite, pair)):
                low, high = (max(min(bound, _MOST), -_MOST) for bound in pair)
                made.set("range", numbers((low, high)))
        rest = _kth(joint.rest, k) or 0.0
        spring = _kth(joint.spring, k)
        if rest:
            made.set("ref", repr(float(rest)))
        made.set("springref", repr(float(rest if spring is None else spring)))

    def _ball_limits(self, made: ET.Element, joint: Joint, name: str) -> None:
        """MJCF bounds the whole angle of a ball."""
        if joint.cone is None and joint.twist is None:
            return
        cone = joint.cone if np.ndim(joint.cone) else (joint.cone, joint.cone)  # type: ignore[arg-type]
        angles = [angle for angle in (*cone, *(joint.twist or (-inf, inf))) if angle is not None]  # type: ignore[misc]
        one = {abs(angle) for angle in angles}
        if len(one) == 1 and joint.limit_centre is None and joint.twist is not None and joint.cone is not None:
            made.set("range", numbers((0.0, one.pop())))
        else:
            self.lose(f'Cone and twist of joint "{name}" are not kept: MJCF bounds only the whole angle of a ball.')

    def _dynamics(self, made: ET.Element, joint: Joint, name: str, dofs: slice) -> None:
        """Springs, dampers, friction and armature."""
        if joint.stiffness:
            made.set("stiffness", repr(float(joint.stiffness)))
            if joint.kind in ("ball", "free") and joint.spring is not None:
                self.lose(f'The spring of joint "{name}" is relaxed at rest: MJCF has no other place for it.')
        for field, attribute in (("damping", "damping"), ("armature", "armature")):
            values = np.ravel(getattr(joint, field))
            chosen = values if len(values) == 1 else values[dofs]
            if len(set(chosen.tolist())) > 1:
                self.lose(f'The {field} of joint "{name}" is the mean of its coordinates: MJCF has one number.')
            if chosen.any():
                made.set(attribute, repr(float(chosen.mean())))
        if joint.actuator_gravity_compensation:
            made.set("actuatorgravcomp", "true")
        if joint.actuator_force_range is not None:
            low, high = (max(min(bound, _MOST), -_MOST) for bound in joint.actuator_force_range)
            made.set("actuatorfrcrange", numbers((low, high)))
        if joint.friction:
            made.set("frictionloss", repr(float(joint.friction)))

    def _contacts(self) -> None:
        """Excluded pairs and contact pairs."""
        section = ET.Element("contact")
        excluded = [pair for pair in self.scene.excluded_pairs if pair[0] != pair[1]]
        for first, second in dict.fromkeys(excluded):
            ET.SubElement(section, "exclude", body1=first, body2=second)
        for pair in self.scene.contact_pairs:
            write_contact_pair(self, pair, section)
        if len(section):
            self.root.append(section)

    def _keyframes(self) -> None:
        frames = self.scene.keyframes
        if not frames:
            return
        section = ET.SubElement(self.root, "keyframe")
        for frame in frames:
            q = self.model.q_rest if frame.q is None else frame.q
            given, mocap = split_kinematic(self.model, q, self.model.joint_q_start)
            key = ET.SubElement(section, "key", name=frame.name, time=repr(float(frame.time)), qpos=numbers(given))
            if len(mocap):
                key.set("mpos", numbers(mocap[:, :3]))
                key.set("mquat", numbers(mocap[:, 3:]))
            if frame.control is not None and self.actuators:
                key.set("ctrl", numbers(controls(self, frame.control)))
            if frame.v is not None:
                given, speeds = split_kinematic(self.model, frame.v, self.model.joint_v_start)
                key.set("qvel", numbers(given))
                if speeds.any():
                    self.lose(f'Velocities of kinematic bodies in keyframe "{frame.name}" are not kept: MJCF has none.')


def split_kinematic(model: Model, row: Any, starts: Any) -> tuple[Floats, Floats]:
    """A row of coordinates or velocities without those of kinematic bodies; those of kinematic bodies on the world."""
    row, kinematic = np.asarray(row, np.float64), model.dof_prescribed[model.joint_v_start[:-1]] != 0
    parts = [row[start:end] for start, end in pairwise(starts.tolist())]
    on_world = kinematic & (model.body_parent[model.joint_body] < 0)
    given = [part for part, chosen in zip(parts, kinematic, strict=True) if not chosen]
    mocap = [part for part, chosen in zip(parts, on_world, strict=True) if chosen]
    return np.concatenate([*given, []]), np.array(mocap) if mocap else np.zeros((0, 1))


def _kth(value: Any, k: int) -> Any:
    """One number for all, or the k-th."""
    return value if value is None or np.ndim(value) == 0 else value[k]
