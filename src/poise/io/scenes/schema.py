"""The fields of a scene file, as pydantic models: names and meanings are those of the Python interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from math import pi
from typing import Annotated, Any, ClassVar, Literal

from poise.formulations.formulation_registry import FORMULATIONS, Formulation
from poise.io.scenes.parts import OfKind, One, Part, Several
from poise.io.scenes.rules import PARAMETER, Choice, Flag, Number, Numbers, Text, Whole
from poise.io.scenes.rules_many import ByName, Names, Pairs, Raw
from poise.io.scenes.schema_bodies import JOINT, OTHER_JOINT_FIELDS, BodyPart, JointPart
from poise.io.scenes.schema_shapes import (
    OTHER_PLACES,
    Coefficient,
    Combined,
    CombinedRolling,
    Direction,
    Mass,
    Name,
    Plain,
    Position,
    Quat,
    Reference,
    Share,
    Spin,
    Time,
    Turned,
    Vector,
    Velocity,
)
from poise.io.scenes.units import ANGLE, COORDINATE, EFFORT, FORCE, LENGTH, SPEED, TIME, TORQUE, TURNING
from poise.model.joints import JOINTS, OTHER_NAMES
from poise.sim.recording import PARTS


class MotionPart(Part):
    """A motion: a file, a clip that comes with Poise, or key-frames."""

    title: ClassVar[str] = "a motion"
    others: ClassVar[Mapping[str, str]] = {"path": "file", "frames": "keys", "keyframes": "keys"}
    file: Annotated[str | None, Text("the name of a file")] = None
    clip: Annotated[str | None, Text("the name of a clip")] = None
    keys: Annotated[Any, ByName(ByName(Numbers(None, or_one=True)), ANGLE, numbers=True)] = None
    options: Annotated[dict[str, Any] | None, ByName(Raw())] = None


class TrackPart(Part):
    """What a character follows, and how strongly; see `hero.track`."""

    title: ClassVar[str] = "tracking"
    motion: Annotated[MotionPart | str, One(MotionPart, short="file")]
    strength: Annotated[Any, ByName(Number(TORQUE, negative=False, infinite=True), TORQUE, or_one=True)] = None
    root: Annotated[str, Choice(("guided", "held", "balanced", "free"), "how the root is led")] = "guided"
    help: Annotated[tuple[float, float] | None, Numbers(2, each=Number(negative=False), meaning="(N, N·m)")] = None
    by: Annotated[str, Choice(("motors", "drives", "accelerations"), "how joints follow")] = "motors"
    give: Annotated[float | None, Number(ANGLE, positive=True)] = None
    settle: Annotated[float | None, Number(TIME, positive=True)] = None
    floor: Annotated[float | None, Number(LENGTH)] = None
    start: Annotated[float | None, Number(TIME)] = None
    pass_overlaps: Annotated[bool | None, Flag()] = None
    balance: Annotated[dict[str, Any] | None, ByName(Raw())] = None
    limp: Annotated[tuple[str, ...] | None, Names()] = None


class TrackedPart(TrackPart):
    """Tracking of a character whose bodies are listed one by one."""

    character: Name


class CharacterPart(Part):
    """What all characters share."""

    title: ClassVar[str] = "a character"
    others: ClassVar[Mapping[str, str]] = OTHER_PLACES | {"weight": "mass", "tracking": "track", "motion": "track"}
    name: Reference = None
    position: Position = None
    quat_wxyz: Quat = None
    rotation: Turned = None
    parent: Reference = None
    joint: Annotated[JointPart | str | None, JOINT] = None
    fixed: Annotated[bool, Flag()] = False
    velocity: Velocity = None
    angular_velocity: Spin = None
    track: Annotated[TrackPart | None, One(TrackPart)] = None


_Sex = Annotated[str | None, Choice(("male", "female"), "male or female")]
_Size = Annotated[float | None, Number(LENGTH, positive=True)]


class HumanoidPart(CharacterPart):
    """See `poise.characters.humanoid`."""

    title: ClassVar[str] = "a humanoid"
    kind: Annotated[Literal["humanoid"], Choice(("humanoid",))]
    height: _Size = None
    mass: Mass = None
    hands: Annotated[bool | None, Flag()] = None
    sex: _Sex = None


class RagdollPart(CharacterPart):
    """See `poise.characters.ragdoll`."""

    title: ClassVar[str] = "a ragdoll"
    kind: Annotated[Literal["ragdoll"], Choice(("ragdoll",))]
    height: _Size = None
    mass: Mass = None
    damping_ratio: Annotated[float | None, Number(negative=False)] = None
    hands: Annotated[bool | None, Flag()] = None
    sex: _Sex = None


class BirdPart(CharacterPart):
    """See `poise.characters.bird`."""

    title: ClassVar[str] = "a bird"
    kind: Annotated[Literal["bird"], Choice(("bird",))]
    span: _Size = None
    mass: Mass = None


class FilePart(CharacterPart):
    """A character from a file: MJCF, URDF or YAML."""

    title: ClassVar[str] = "a character of a file"
    kind: Annotated[Literal["file"], Choice(("file",))] = "file"
    file: Annotated[str, Text("the name of a file")]
    options: Annotated[dict[str, Any] | None, ByName(Raw())] = None


AnyCharacter = HumanoidPart | RagdollPart | BirdPart | FilePart
CHARACTER = OfKind(
    (("humanoid", HumanoidPart), ("ragdoll", RagdollPart), ("bird", BirdPart), ("file", FilePart)),
    "a character",
    (("human", "humanoid"), ("person", "humanoid"), ("man", "humanoid"), ("woman", "humanoid"), ("doll", "ragdoll")),
    word=True,
    guess=(("file", "file"),),
)


class GroundPart(Part):
    """An endless floor; see `Scene.add_ground`."""

    title: ClassVar[str] = "the ground"
    others: ClassVar[Mapping[str, str]] = {"position": "height", "z": "height", "mu": "friction", "colour": "color"}
    friction: Coefficient = 0.8
    restitution: Annotated[float, Number(negative=False, most=1.0)] = 0.0
    height: Annotated[float, Number(LENGTH)] = 0.0
    name: Name = "ground"
    color: Annotated[Any, Numbers(None, each=Number(negative=False, most=1.0, hint="; colours are 0 to 1"))] = None


class MotorPart(Part):
    """A drive of a joint; see `Scene.motor`."""

    title: ClassVar[str] = "a motor"
    others: ClassVar[Mapping[str, str]] = {"kp": "stiffness", "kd": "damping", "kv": "damping", "max_torque": "limit"}
    joint: Name
    name: Reference = None
    stiffness: Annotated[float, Number(negative=False, infinite=True)] = 0.0
    damping: Annotated[float, Number(negative=False, infinite=True)] = 0.0
    limit: Annotated[Any, Numbers(2, EFFORT, each=Number(infinite=True), or_one=True)] = None
    target: Annotated[Any, Numbers(None, COORDINATE, or_one=True)] = None
    speed: Annotated[float, Number((*COORDINATE, "speed", "turning"))] = 0.0
    torque: Annotated[float, Number(EFFORT)] = 0.0
    gear: Plain = 1.0


class LoopPart(Part):
    """A joint that closes a loop; see `Scene.loop`."""

    title: ClassVar[str] = "a loop"
    others: ClassVar[Mapping[str, str]] = OTHER_JOINT_FIELDS | {
        "anchor": "position",
        "body1": "first",
        "body2": "second",
    }
    kind: Annotated[str, Choice(tuple(k for k in JOINTS if k != "free"), "a kind of joint", tuple(OTHER_NAMES.items()))]
    first: Reference = None
    second: Reference = None
    name: Reference = None
    position: Position = None
    axis: Direction = None
    axis2: Direction = None
    anchor_first: Position = None
    anchor_second: Position = None
    quat_first: Quat = None
    quat_second: Quat = None
    pitch: Annotated[float, Number(LENGTH)] = 0.0
    limits: Annotated[Any, Pairs(COORDINATE, several=True)] = None
    cone: Annotated[Any, Numbers(2, ANGLE, each=Number(positive=True, infinite=True), or_one=True)] = None
    twist: Annotated[tuple[float, float] | None, Pairs(ANGLE)] = None
    limit_centre: Quat = None
    friction: Share = 0.0
    break_force: Annotated[float, Number(FORCE, positive=True, infinite=True)] = float("inf")
    break_torque: Annotated[float, Number(TORQUE, positive=True, infinite=True)] = float("inf")
    active: Annotated[bool, Flag()] = True


class CouplingPart(Part):
    """Two joints bound as by gears; see `Scene.couple`."""

    title: ClassVar[str] = "a coupling"
    others: ClassVar[Mapping[str, str]] = {"ratio": "coefficients", "polycoef": "coefficients"}
    first: Name
    second: Reference = None
    coefficients: Annotated[tuple[float, ...], Numbers()] = (0.0, 1.0)
    name: Reference = None
    active: Annotated[bool, Flag()] = True


class ActuatorPart(Part):
    """An actuator as another format has it; see `poise.model.scene.Actuator`."""

    title: ClassVar[str] = "an actuator"
    name: Name
    kind: Annotated[str, Text()]
    target: Annotated[str, Raw()] = ""
    gear: Annotated[tuple[float, ...], Numbers()] = (1.0,)
    control_range: Annotated[tuple[float, float] | None, Pairs()] = None
    force_range: Annotated[tuple[float, float] | None, Pairs()] = None
    options: Annotated[dict[str, Any] | None, ByName(Raw())] = None


class EqualityPart(Part):
    """An equality as another format has it; see `poise.model.scene.Equality`."""

    title: ClassVar[str] = "an equality"
    name: Name
    kind: Annotated[str, Text()]
    first: Name
    second: Reference = None
    active: Annotated[bool, Flag()] = True
    options: Annotated[dict[str, Any] | None, ByName(Raw())] = None


class ContactPairPart(Part):
    """Two shapes that touch whatever else says otherwise; see `poise.model.contact_pairs.ContactPair`."""

    title: ClassVar[str] = "a contact pair"
    others: ClassVar[Mapping[str, str]] = {"geom1": "first", "geom2": "second", "mu": "friction"}
    first: Annotated[Any, Raw()]
    second: Annotated[Any, Raw()]
    friction: Coefficient = 0.8
    torsional_friction: Coefficient = 0.0
    rolling_friction: Coefficient = 0.0


_Coordinates = Annotated[Any, ByName(Numbers(None, or_one=True), ANGLE, or_one=False)]


class KeyframePart(Part):
    """A named state: coordinates in order, or by the names of joints; what is not named is at rest."""

    title: ClassVar[str] = "a keyframe"
    others: ClassVar[Mapping[str, str]] = {"qpos": "q", "qvel": "v", "ctrl": "control"}
    name: Name
    time: Time = 0.0
    q: Annotated[tuple[float, ...] | None, Numbers()] = None
    v: Annotated[tuple[float, ...] | None, Numbers()] = None
    joints: _Coordinates = None
    velocities: _Coordinates = None
    control: Annotated[tuple[float, ...] | None, Numbers()] = None


class ThrowPart(Part):
    """A body that waits where it is, and flies from a time on; see `poise.control.Throw`."""

    title: ClassVar[str] = "a throw"
    others: ClassVar[Mapping[str, str]] = {"target": "at", "object": "body", "when": "time"}
    body: Name
    time: Time = 0.0
    velocity: Velocity = None
    angular_velocity: Spin = None
    at: Reference = None
    speed: Annotated[float | None, Number(SPEED, positive=True)] = None


class PushPart(Part):
    """A force on a body for a while; see `poise.control.Push`."""

    title: ClassVar[str] = "a push"
    body: Name
    time: Time = 0.0
    duration: Annotated[float, Number(TIME, positive=True)] = 0.1
    force: Annotated[Vector, Numbers(3, FORCE, meaning="(x, y, z)")] = (0.0, 0.0, 0.0)
    torque: Annotated[Vector, Numbers(3, TORQUE, meaning="(x, y, z)")] = (0.0, 0.0, 0.0)


class CameraPart(Part):
    """Where pictures are taken from; see `poise.view.Camera`."""

    title: ClassVar[str] = "a camera"
    others: ClassVar[Mapping[str, str]] = {
        "fov": "field_of_view",
        "eye": "position",
        "lookat": "target",
        "pos": "position",
    }
    position: Position = None
    target: Position = None
    up: Direction = None
    field_of_view: Annotated[
        float | None, Number(ANGLE, positive=True, most=pi, hint=", did you mean field_of_view_deg?")
    ] = None
    follow: Reference = None


class FormulationPart(Part):
    """How worlds are stepped; see `poise.Reduced` and `poise.Maximal`."""

    title: ClassVar[str] = "a formulation"
    others: ClassVar[Mapping[str, str]] = {"iterations": "sweeps"}
    kind: Annotated[str, Choice(tuple(FORMULATIONS), "a formulation")] = "reduced"
    level: Annotated[str, Choice(("velocity", "acceleration"), "a level")] = "velocity"
    integrator: Annotated[str | None, Choice(("euler", "midpoint", "rk4"), "an integrator")] = None
    substeps: Annotated[int, Whole(1)] = 1
    tolerance: Annotated[float, Number(negative=False, most=1.0)] = 1e-4
    sweeps: Annotated[int, Whole(1)] = 500
    budget: Annotated[float, Number(positive=True)] = 5e9
    newton: Annotated[bool, Flag()] = True
    stabilization: Annotated[str, Choice(("displacement", "speed"), "a method of stabilization")] = "displacement"
    erp: Annotated[float, Number(negative=False, most=1.0)] = 0.2
    creep: Share = 1e-3
    slop: Share = 1e-4
    correction_speed: Annotated[float, Number(SPEED, positive=True)] = 3.0
    correction_turn: Annotated[float, Number(TURNING, positive=True)] = 10.0
    bounce_speed: Annotated[float, Number(SPEED, negative=False)] = 0.01
    sleeping: Annotated[bool, Flag()] = False
    sleep_speed: Annotated[float, Number(SPEED, negative=False)] = 0.02
    sleep_after: Time = 0.5
    solver: Annotated[str, Choice(("direct", "pgs", "dantzig"), "a solver")] = "direct"
    turning: Annotated[str, Choice(("implicit", "explicit", "momentum"), "a way to turn")] = "implicit"
    alpha: Annotated[float | None, Number(negative=False)] = None
    beta: Annotated[float | None, Number(negative=False)] = None

    def made(self) -> Formulation:
        """The formulation itself."""
        kind = FORMULATIONS[self.kind]
        known = [field.name for field in fields(kind)]
        for name in type(self).model_fields:
            if self.has(name) and name not in (*known, "kind"):
                raise ValueError(f"{name} is none of the options of the formulation {self.kind}")
        return kind(**{name: getattr(self, name) for name in known})


_STEP_HINT = "; steps are in seconds: write 1/{0:g} for {0:g} steps a second"


class SceneFile(Part):
    """A scene file."""

    title: ClassVar[str] = "a scene"
    others: ClassVar[Mapping[str, str]] = {
        "timestep": "dt",
        "time_step": "dt",
        "step": "dt",
        "floor": "ground",
        "plane": "ground",
        "objects": "bodies",
        "body": "bodies",
        "character": "characters",
        "joints": "bodies",
        "gears": "couplings",
        "seconds": "duration",
        "solver": "formulation",
        "include_files": "include",
    }
    poise: Annotated[int, Whole(1)] = 1
    name: Reference = None
    description: Annotated[str | None, Text()] = None
    parameters: Annotated[dict[str, Any] | None, ByName(Raw())] = None
    include: Annotated[Any, Raw()] = None
    gravity: Annotated[Vector, Numbers(3, LENGTH, meaning="(x, y, z)")] = (0.0, 0.0, -9.81)
    dt: Annotated[float | None, Number(TIME, positive=True, most=1.0, hint=_STEP_HINT)] = None
    friction_combine: Combined = "geometric"
    rolling_combine: CombinedRolling = "maximum"
    restitution_combine: Combined = "maximum"
    formulation: Annotated[FormulationPart | str | None, One(FormulationPart, short="kind")] = None
    ground: Annotated[GroundPart | bool | None, One(GroundPart, flag=True)] = None
    bodies: Annotated[list[BodyPart] | None, Several(One(BodyPart), "body", "bodies")] = None
    characters: Annotated[list[AnyCharacter] | None, Several(CHARACTER, "character", "characters")] = None
    motors: Annotated[list[MotorPart] | None, Several(One(MotorPart), "motor", "motors", by="joint")] = None
    loops: Annotated[list[LoopPart] | None, Several(One(LoopPart), "loop", "loops")] = None
    couplings: Annotated[list[CouplingPart] | None, Several(One(CouplingPart), "coupling", "couplings")] = None
    actuators: Annotated[list[ActuatorPart] | None, Several(One(ActuatorPart), "actuator", "actuators")] = None
    equalities: Annotated[list[EqualityPart] | None, Several(One(EqualityPart), "equality", "equalities")] = None
    excluded_pairs: Annotated[list[tuple[str, str]] | None, Several(Names(count=2), "pair", "pairs of names")] = None
    contact_pairs: Annotated[
        list[ContactPairPart] | None, Several(One(ContactPairPart), "contact pair", "contact pairs", by="first")
    ] = None
    keyframes: Annotated[list[KeyframePart] | None, Several(One(KeyframePart), "keyframe", "keyframes")] = None
    tracking: Annotated[
        list[TrackedPart] | None, Several(One(TrackedPart), "tracking of", "trackings", by="character")
    ] = None
    throws: Annotated[list[ThrowPart] | None, Several(One(ThrowPart), "throw of", "throws", by="body")] = None
    pushes: Annotated[list[PushPart] | None, Several(One(PushPart), "push of", "pushes", by="body")] = None
    start: Reference = None
    duration: Annotated[float | None, Number(TIME, positive=True)] = None
    record: Annotated[tuple[str, ...] | None, Names(PARTS)] = None
    every: Annotated[int | None, Whole(1)] = None
    camera: Annotated[CameraPart | None, One(CameraPart)] = None


def json_schema() -> str:
    """The JSON Schema of scene files, as docs/scene.schema.json has it."""
    schema = SceneFile.model_json_schema()
    for name, part in schema["$defs"].items():
        _point(part, f"#/$defs/{name}")
    _point(schema, "#")
    whole: dict[str, Any] = _shared(schema)
    whole["$defs"]["Parameter"] = PARAMETER
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    whole["title"] = "Poise scene"
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _point(part: dict[str, Any], where: str) -> None:
    """Names with units hold what the names hold: point there instead of repeating it."""
    for pattern in part.get("patternProperties", {}):
        name = pattern[1:].rpartition("_(")[0]
        part["patternProperties"][pattern] = {"$ref": f"{where}/properties/{name}"}


def _shared(part: Any) -> Any:
    """Parameters are listed once."""
    if part == PARAMETER:
        return {"$ref": "#/$defs/Parameter"}
    if isinstance(part, dict):
        return {name: _shared(value) for name, value in part.items()}
    return [_shared(value) for value in part] if isinstance(part, list) else part


if __name__ == "__main__":
    import sys
    from pathlib import Path

    Path(sys.argv[1]).write_text(json_schema(), encoding="utf-8")
