"""A scene as YAML: every number as Python prints it, so that reading it gives the same model, bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from poise.control.scenario import Push, Start, Throw
from poise.formulations.formulation_registry import name_of
from poise.io.scenes.makers import _MANY_TURNS, _MEASURES, _SIZES
from poise.io.scenes.nodes import plain_value
from poise.io.scenes.tracked import Tracked
from poise.model.contact_pairs import ContactPair
from poise.model.errors import SceneError
from poise.model.scene import Actuator, Body, Equality, Inertia, Joint, Keyframe, Loop, Scene
from poise.model.shapes import ConvexMesh, Material, Shape, TriangleMesh
from poise.model.surface_rules import SceneRules, differing

_SKIPPED = ("line",)


def scene_to_yaml(scene: Scene, file: Path) -> tuple[str, list[str]]:
    """The text of a scene file, and what it cannot say."""
    writer = _Writer(scene, file)
    data = writer.whole()
    text = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True, indent=2
    )
    return text, writer.lost


class _Dumper(yaml.SafeDumper):
    """Lists below their names, and text in quotes where it would be read as something else."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> Any:
    safe = value.replace("$", "$$")
    quoted = safe != value or not isinstance(plain_value(value), str) or value == "<<"
    return dumper.represent_scalar("tag:yaml.org,2002:str", safe, style='"' if quoted else None)


_Dumper.add_representer(str, _text)


class _Writer:
    """Turns a scene into plain lists and dicts."""

    def __init__(self, scene: Scene, file: Path) -> None:
        self.scene, self.file = scene, file
        self.lost: list[str] = []
        starts = [make for _, make in scene.controllers if isinstance(make, Start)]
        self.velocities = {name: both for start in starts for name, both in start.velocities.items()}
        self.tracked = [make for _, make in scene.controllers if isinstance(make, Tracked)]

    def whole(self) -> dict[str, Any]:
        """All of it."""
        scene = self.scene
        data: dict[str, Any] = {"poise": 1, "name": scene.name}
        if scene.settings.description is not None:
            data["description"] = scene.settings.description
        data |= {"gravity": _plain(scene.gravity), "dt": _plain(scene.dt)}
        data |= {option: rule for option, _, rule in differing(SceneRules(), scene.rules)}
        data |= self.settings()
        data["bodies"] = [self.body(body) for body in scene.bodies]
        own = {name for one in self.tracked for name in one.motors}
        data |= self.actuators([actuator for actuator in scene.actuators if actuator.name not in own])
        data |= {"loops": [_fields(loop, Loop) for loop in scene.loops]}
        data |= self.equalities()
        added = {pair for one in self.tracked for pair in one.pairs}
        data["excluded_pairs"] = [list(pair) for pair in scene.excluded_pairs if tuple(pair) not in added]
        data["contact_pairs"] = [_fields(pair, ContactPair) for pair in scene.contact_pairs]
        data["keyframes"] = [_fields(frame, Keyframe) for frame in scene.keyframes]
        data |= self.controllers()
        self.lost += [f'The skin "{skin.name}" is not kept: scene files hold none.' for skin in scene.skins]
        return {name: value for name, value in data.items() if value not in ([], {}, None)}

    def settings(self) -> dict[str, Any]:
        """Settings of runs."""
        settings = self.scene.settings
        data: dict[str, Any] = {}
        if settings.formulation is not None:
            given = settings.formulation
            data["formulation"] = {"kind": name_of(given)} | _fields(given, type(given))
        for name in ("duration", "record", "every", "camera"):
            if getattr(settings, name):
                data[name] = _plain(getattr(settings, name))
        return data

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def body(self, body: Body) -> dict[str, Any]:
        """A body: joints are always explicit, so that the reader uses no default."""
        motion, path = body.motion, body.path
        for one in self.tracked:
            if one.root is not None and one.root[0] == body.name:
                motion, path = one.root[1], one.root[2]  # type: ignore[assignment]
        data = _fields(body, Body, but=("joints", "shapes", "inertia", "motion", "path"))
        data["joints"] = [_joint(joint) for joint in body.joints]
        if body.shapes:
            data["shapes"] = [_shape(shape) for shape in body.shapes]
        if body.inertia is not None:
            data["inertia"] = _fields(body.inertia, Inertia)
        for name, (velocity, spin) in self.velocities.items():
            if name == body.name:
                data |= {"velocity": _plain(velocity), "angular_velocity": _plain(spin)}
        if motion != "dynamic":
            data["motion"] = motion
        if path is not None:
            described = getattr(path, "described", None)
            if described is None:
                what = f"a path of the kind {type(path).__name__} cannot be written; use KeyedPath"
                raise SceneError(what, file=str(self.file), field=f'body "{body.name}": path')
            data["path"] = _plain(described)
        return data

    # ---- what joins and drives ---------------------------------------------------------------------------------------

    def actuators(self, actuators: list[Actuator]) -> dict[str, Any]:
        """Motors where all are such, so that their order stays."""
        if all(actuator.kind == "servo" and len(actuator.gear) == 1 for actuator in actuators):
            return {"motors": [_motor(actuator) for actuator in actuators]}
        return {"actuators": [_fields(actuator, Actuator) for actuator in actuators]}

    def equalities(self) -> dict[str, Any]:
        """Couplings where all are such."""
        listed = self.scene.equalities
        if all(one.kind == "joint" and list(one.options) == ["coefficients"] for one in listed):
            couplings = []
            for one in listed:
                data = _fields(one, Equality, but=("kind", "options"))
                couplings.append(data | {"coefficients": _plain(one.options["coefficients"])})
            return {"couplings": couplings}
        return {"equalities": [_fields(one, Equality) for one in listed]}

    def controllers(self) -> dict[str, Any]:
        """Throws, pushes, starts and tracking; others are functions, and lost."""
        data: dict[str, Any] = {"tracking": [], "throws": [], "pushes": []}
        bodies = {body.name for body in self.scene.bodies}
        for name, make in self.scene.controllers:
            if isinstance(make, Tracked):
                data["tracking"].append({"character": make.character} | _plain(self.tracking(make)))
            elif isinstance(make, Throw):
                data["throws"].append(_fields(make, Throw))
            elif isinstance(make, Push):
                data["pushes"].append(_fields(make, Push))
            elif isinstance(make, Start) and make.velocities.keys() <= bodies:
                self.start(make, data)
            else:
                self.lost.append(f'The controller "{name}" is a function, which a file cannot hold.')
        return data

    def tracking(self, tracked: Tracked) -> dict[str, Any]:
        """What a file said, with files named from where the new one is."""
        said = dict(tracked.said)
        motion = dict(said["motion"])
        if "file" in motion:
            motion["file"] = _seen_from(Path(motion["file"]), self.file.parent)
        return said | {"motion": motion}

    def start(self, start: Start, data: dict[str, Any]) -> None:
        """A start is a keyframe; velocities of bodies are written with it."""
        if start.q is not None or start.v is not None:
            taken = {frame.name for frame in self.scene.keyframes}
            name = next(word for k in range(len(taken) + 1) if (word := "start" + "_" * k) not in taken)
            same = [f.name for f in self.scene.keyframes if (f.q, f.v, f.time) == (start.q, start.v, start.time)]
            data["start"] = same[0] if same else name
            if not same:
                frame = Keyframe(name, start.time, start.q, start.v)
                data["keyframes"] = [_fields(one, Keyframe) for one in (*self.scene.keyframes, frame)]


def _seen_from(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return path.resolve().as_posix()


def _joint(joint: Joint) -> dict[str, Any]:
    data = _fields(joint, Joint)
    data = {"kind": joint.kind} | data
    for name in ("limits", "rest", "spring"):
        numbers = [x for x in np.ravel(np.array(data.get(name), dtype=object)) if isinstance(x, float)]
        if _MEASURES.get(joint.kind) == "angle" and any(abs(x) > _MANY_TURNS for x in numbers):
            data = {f"{key}_rad" if key == name else key: value for key, value in data.items()}
    return data


def _shape(shape: Shape) -> dict[str, Any]:
    kinds = {maker: kind for kind, (maker, _) in _SIZES.items()} | {ConvexMesh: "convex", TriangleMesh: "triangle_mesh"}
    data = {"kind": kinds[type(shape)]} | _fields(shape, type(shape), but=("material",))
    material = _fields(shape.material, Material)
    return data | ({"material": material} if material else {})


def _motor(actuator: Actuator) -> dict[str, Any]:
    data: dict[str, Any] = {"joint": actuator.target}
    if actuator.name != actuator.target:
        data["name"] = actuator.name
    defaults = {"stiffness": 0.0, "damping": 0.0, "target": None, "speed": 0.0, "torque": 0.0}
    data |= {name: _plain(v) for name, v in actuator.options.items() if v is not None and v != defaults.get(name)}
    if actuator.force_range is not None:
        data["limit"] = _plain(actuator.force_range)
    return data | ({"gear": _plain(actuator.gear[0])} if actuator.gear[0] != 1.0 else {})


def _fields(thing: Any, kind: type, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Fields of a dataclass that differ from their defaults."""
    data = {}
    for field in fields(kind):
        if field.name in _SKIPPED or field.name in but:
            continue
        value = getattr(thing, field.name)
        factory: Callable[[], Any] | Any = field.default_factory
        default = field.default if factory is MISSING else factory()
        if value is None or (default is not MISSING and _same(value, default)):
            continue
        data[field.name] = _plain(value)
    return data


def _same(value: Any, default: Any) -> bool:
    """Equal, down to the sign of zeros."""
    return bool(repr(_plain(value)) == repr(_plain(default)))


def _plain(value: Any) -> Any:
    """Plain lists, dicts and numbers."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key if isinstance(key, int | float) else str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value
