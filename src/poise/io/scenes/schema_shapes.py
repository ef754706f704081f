"""Fields of shapes in a scene file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from poise.io.scenes.parts import OfKind, One, Part
from poise.io.scenes.rules import Axis, Choice, Flag, Number, Numbers, Rotation, Text, Whole
from poise.io.scenes.rules_many import Rows
from poise.io.scenes.units import ANGLE, COORDINATE, LENGTH, MASS, SPEED, TIME, TURNING
from poise.model.surface_rules import ROLLING_RULES, RULES

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

Name = Annotated[str, Text("a name")]
Reference = Annotated[str | None, Text("a name")]
Position = Annotated[Vector | None, Numbers(3, LENGTH, meaning="(x, y, z)")]
Quat = Annotated[Quaternion | None, Rotation()]
Velocity = Annotated[Vector | None, Numbers(3, SPEED, meaning="(x, y, z)")]
Spin = Annotated[Vector | None, Numbers(3, TURNING, meaning="(x, y, z)")]
Direction = Annotated[Vector | None, Axis()]
Length = Annotated[float, Number(LENGTH, positive=True)]
Mass = Annotated[float | None, Number(MASS, negative=False)]
Share = Annotated[float, Number(negative=False)]
Coefficient = Annotated[float, Number(negative=False, infinite=True)]
Plain = Annotated[float, Number()]
Time = Annotated[float, Number(TIME, negative=False)]
Coordinates = Annotated[Any, Numbers(None, COORDINATE, or_one=True)]
_RULE = "how two surfaces combine"
Combined = Annotated[str, Choice(RULES, _RULE)]
CombinedRolling = Annotated[str, Choice(ROLLING_RULES, _RULE)]

OTHER_PLACES = {
    "pos": "position",
    "quat": "quat_wxyz",
    "orientation": "rotation",
    "euler": "rotation",
    "rot": "rotation",
}


class Turn(Part):
    """A rotation by an angle about an axis."""

    title: ClassVar[str] = "a rotation"
    others: ClassVar[Mapping[str, str]] = {"about": "axis", "degrees": "angle_deg"}
    axis: Annotated[Vector, Axis()] = (0.0, 0.0, 1.0)
    angle: Annotated[float, Number(ANGLE)]


Turned = Annotated[Turn | None, One(Turn)]


class MaterialPart(Part):
    """Surface properties of a shape; see `poise.Material`."""

    title: ClassVar[str] = "a material"
    others: ClassVar[Mapping[str, str]] = {"mu": "friction", "bounce": "restitution", "combine": "friction_combine"}
    friction: Coefficient = 0.8
    restitution: Annotated[float, Number(negative=False, most=1.0)] = 0.0
    torsional_friction: Coefficient = 0.0
    rolling_friction: Coefficient = 0.0
    compliance: Share = 0.0
    friction_combine: Annotated[str | None, Choice(RULES, _RULE)] = None
    rolling_combine: Annotated[str | None, Choice(ROLLING_RULES, _RULE)] = None
    restitution_combine: Annotated[str | None, Choice(RULES, _RULE)] = None
    priority: Annotated[int, Whole()] = 0
    condim: Annotated[int | None, Whole(1)] = None


class ShapePart(Part):
    """What all shapes share; see `poise.model.shapes.Shape`."""

    title: ClassVar[str] = "a shape"
    others: ClassVar[Mapping[str, str]] = OTHER_PLACES | {
        "rgba": "color",
        "colour": "color",
        "friction": "material",
        "restitution": "material",
        "contype": "group",
        "conaffinity": "mask",
        "dimensions": "size",
        "half_size": "size",
        "diameter": "radius",
        "r": "radius",
        "height": "length",
    }
    name: Reference = None
    position: Position = None
    quat_wxyz: Quat = None
    rotation: Turned = None
    density: Annotated[float, Number(negative=False)] = 1000.0
    mass: Mass = None
    material: Annotated[MaterialPart | None, One(MaterialPart)] = None
    color: Annotated[Any, Numbers(None, each=Number(negative=False, most=1.0, hint="; colours are 0 to 1"))] = None
    group: Annotated[int, Whole()] = 1
    mask: Annotated[int, Whole()] = 1
    margin: Annotated[float, Number(LENGTH, negative=False)] = 0.0


class SpherePart(ShapePart):
    """A ball."""

    title: ClassVar[str] = "a sphere"
    kind: Annotated[Literal["sphere"], Choice(("sphere",))]
    radius: Length


class CapsulePart(ShapePart):
    """A cylinder along z with half spheres at its ends; `length` is that of the cylinder alone."""

    title: ClassVar[str] = "a capsule"
    kind: Annotated[Literal["capsule"], Choice(("capsule",))]
    radius: Length
    length: Length


class CylinderPart(ShapePart):
    """A cylinder along z."""

    title: ClassVar[str] = "a cylinder"
    kind: Annotated[Literal["cylinder"], Choice(("cylinder",))]
    radius: Length
    length: Length


_SIZE = Annotated[Vector, Numbers(3, LENGTH, each=Number(positive=True), meaning="(x, y, z), full lengths")]


class BoxPart(ShapePart):
    """A box with full edge lengths."""

    title: ClassVar[str] = "a box"
    kind: Annotated[Literal["box"], Choice(("box",))]
    size: _SIZE


class EllipsoidPart(ShapePart):
    """An ellipsoid with full axis lengths."""

    title: ClassVar[str] = "an ellipsoid"
    kind: Annotated[Literal["ellipsoid"], Choice(("ellipsoid",))]
    size: _SIZE


class PlanePart(ShapePart):
    """The half space z ≤ 0 of its frame."""

    title: ClassVar[str] = "a plane"
    kind: Annotated[Literal["plane"], Choice(("plane",))]
    extent: Annotated[tuple[float, float] | None, Numbers(2, LENGTH, each=Number(positive=True))] = None


class ConvexPart(ShapePart):
    """The convex hull of points, given here or read from a mesh (.stl, .obj)."""

    title: ClassVar[str] = "a convex mesh"
    kind: Annotated[Literal["convex"], Choice(("convex",))]
    vertices: Annotated[Any, Rows(3, LENGTH)] = None
    faces: Annotated[Any, Rows(3, whole=True)] = None
    file: Annotated[str | None, Text("the name of a file")] = None
    scale: Annotated[float, Number(positive=True)] = 1.0


class MeshPart(ConvexPart):
    """A surface of triangles that stays where it is."""

    title: ClassVar[str] = "a triangle mesh"
    kind: Annotated[Literal["triangle_mesh"], Choice(("triangle_mesh",))]  # type: ignore[assignment]
    open: Annotated[bool, Flag()] = False


class FieldPart(ShapePart):
    """A landscape of heights over a grid; rows run along y, columns along x."""

    title: ClassVar[str] = "a height field"
    kind: Annotated[Literal["height_field"], Choice(("height_field",))]
    heights: Annotated[Any, Rows(None, LENGTH)]
    extent: Annotated[tuple[float, float], Numbers(2, LENGTH, each=Number(positive=True), meaning="(x, y)")]


_SHAPES: tuple[tuple[str, type[Part]], ...] = (
    ("box", BoxPart),
    ("sphere", SpherePart),
    ("capsule", CapsulePart),
    ("cylinder", CylinderPart),
    ("ellipsoid", EllipsoidPart),
    ("plane", PlanePart),
    ("convex", ConvexPart),
    ("height_field", FieldPart),
    ("triangle_mesh", MeshPart),
)
_OTHER_SHAPES = (
    ("ball", "sphere"),
    ("cube", "box"),
    ("cuboid", "box"),
    ("pill", "capsule"),
    ("tube", "cylinder"),
    ("mesh", "convex"),
    ("hull", "convex"),
    ("terrain", "height_field"),
    ("heightfield", "height_field"),
    ("hfield", "height_field"),
    ("ground", "plane"),
    ("floor", "plane"),
)
AnyShape = (
    BoxPart | SpherePart | CapsulePart | CylinderPart | EllipsoidPart | PlanePart | ConvexPart | FieldPart | MeshPart
)
SHAPE = OfKind(_SHAPES, "a shape", _OTHER_SHAPES)
