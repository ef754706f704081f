"""Fields of bodies, joints and paths in a scene file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from poise.io.scenes.parts import One, Part, Several
from poise.io.scenes.rules import Choice, Flag, Number, Numbers
from poise.io.scenes.rules_many import Pairs, Rows
from poise.io.scenes.schema_shapes import (
    OTHER_PLACES,
    SHAPE,
    AnyShape,
    Coordinates,
    Direction,
    Name,
    Plain,
    Position,
    Quat,
    Reference,
    Share,
    Spin,
    Turned,
    Vector,
    Velocity,
)
from poise.io.scenes.units import ANGLE, COORDINATE, EFFORT, LENGTH, MASS, TIME, TURNING
from poise.model.joints import JOINTS, OTHER_NAMES
from poise.model.validate import MOTIONS


class InertiaPart(Part):
    """Mass properties of a body; see `poise.Inertia`."""

    title: ClassVar[str] = "an inertia"
    others: ClassVar[Mapping[str, str]] = {
        "center": "com",
        "centre": "com",
        "inertia": "moments",
        "diaginertia": "moments",
    }
    mass: Annotated[float, Number(MASS, negative=False)]
    com: Position = None
    moments: Annotated[Vector | None, Numbers(3)] = None
    quat_wxyz: Quat = None
    products: Annotated[Vector | None, Numbers(3)] = None
    allow_unphysical: Annotated[bool | None, Flag()] = None


OTHER_JOINT_FIELDS = {
    "range": "limits",
    "lower": "limits",
    "upper": "limits",
    "ref": "rest",
    "springref": "spring",
    "frictionloss": "friction",
    "type": "kind",
    "pos": "anchor",
    "position": "anchor",
    "actuatorfrcrange": "actuator_force_range",
    "actuatorgravcomp": "actuator_gravity_compensation",
}


class JointPart(Part):
    """How a body moves relative to its parent; see `poise.Joint`."""

    title: ClassVar[str] = "a joint"
    others: ClassVar[Mapping[str, str]] = OTHER_JOINT_FIELDS
    kind: Annotated[str, Choice(tuple(JOINTS), "a kind of joint", tuple(OTHER_NAMES.items()))] = "hinge"
    name: Reference = None
    anchor: Position = None
    axis: Direction = None
    axis2: Direction = None
    pitch: Annotated[float, Number(LENGTH)] = 0.0
    limits: Annotated[Any, Pairs(COORDINATE, several=True)] = None
    cone: Annotated[Any, Numbers(2, ANGLE, each=Number(positive=True, infinite=True), or_one=True)] = None
    twist: Annotated[tuple[float, float] | None, Pairs(ANGLE)] = None
    limit_centre: Quat = None
    rest: Coordinates = None
    stiffness: Share = 0.0
    spring: Coordinates = None
    damping: Annotated[Any, Numbers(None, each=Number(negative=False), or_one=True)] = 0.0
    armature: Annotated[Any, Numbers(None, each=Number(negative=False), or_one=True)] = 0.0
    friction: Share = 0.0
    actuator_force_range: Annotated[tuple[float, float] | None, Pairs(EFFORT)] = None
    actuator_gravity_compensation: Annotated[bool, Flag()] = False


JOINT = One(JointPart, short="kind")


class PathPart(Part):
    """What a kinematic body follows: keys, an orbit, or one pose; see `poise.motion`."""

    title: ClassVar[str] = "a path"
    kind: Annotated[str, Choice(("keyed", "orbit", "constant"), "a kind of path")] = "keyed"
    times: Annotated[Any, Numbers(None, TIME)] = None
    positions: Annotated[Any, Rows(3, LENGTH)] = None
    quats_wxyz: Annotated[Any, Rows(4)] = None
    loop: Annotated[bool, Flag()] = False
    start: Position = None
    speed: Annotated[float | None, Number(TURNING)] = None
    center: Position = None
    axis: Direction = None
    position: Position = None
    quat_wxyz: Quat = None


class BodyPart(Part):
    """A rigid body; see `poise.Body` and `Scene.add`."""

    title: ClassVar[str] = "a body"
    others: ClassVar[Mapping[str, str]] = OTHER_PLACES | {
        "geom": "shape",
        "geometry": "shape",
        "collision": "shape",
        "static": "fixed",
        "kinematic": "path",
        "mass": "inertia",
        "type": "motion",
        "gravcomp": "gravity_compensation",
    }
    name: Name
    parent: Reference = None
    position: Position = None
    quat_wxyz: Quat = None
    rotation: Turned = None
    shape: Annotated[AnyShape | None, SHAPE] = None
    shapes: Annotated[list[AnyShape] | None, Several(SHAPE, "shape", "shapes")] = None
    joint: Annotated[JointPart | str | None, JOINT] = None
    joints: Annotated[list[JointPart] | None, Several(JOINT, "joint", "joints")] = None
    inertia: Annotated[InertiaPart | None, One(InertiaPart)] = None
    motion: Annotated[str | None, Choice(MOTIONS, "a kind of motion")] = None
    fixed: Annotated[bool, Flag()] = False
    path: Annotated[PathPart | None, One(PathPart)] = None
    gravity_compensation: Plain = 0.0
    velocity: Velocity = None
    angular_velocity: Spin = None
