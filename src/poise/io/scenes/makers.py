"""From parts of a scene file to the dataclasses of a scene: shapes, joints, bodies, paths."""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from poise.io.meshes import read_mesh
from poise.io.scenes.parts import Part
from poise.io.scenes.schema_bodies import BodyPart, InertiaPart, JointPart, PathPart
from poise.io.scenes.schema_shapes import ShapePart
from poise.io.scenes.units import UNITS, split
from poise.model.errors import Problem, SceneError
from poise.model.part_checks import STILL, must_stay
from poise.model.scene import Body, Inertia, Joint
from poise.model.shapes import (
    IDENTITY,
    ORIGIN,
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Material,
    Plane,
    Quaternion,
    Shape,
    Sphere,
    TriangleMesh,
)
from poise.motion.path import ConstantPath, KeyedPath, OrbitPath
from poise.motion.rotations import unit

#: what the coordinates of a kind of joint are, where all are of one sort
_MEASURES = {"hinge": "angle", "universal": "angle", "screw": "angle", "slider": "length"}
#: angles beyond this are degrees, unless the name says otherwise; rad
_MANY_TURNS = 4.0 * pi
_SIZES: dict[str, tuple[type[Shape], tuple[str, ...]]] = {
    "sphere": (Sphere, ("radius",)),
    "capsule": (Capsule, ("radius", "length")),
    "cylinder": (Cylinder, ("radius", "length")),
    "box": (Box, ("size",)),
    "ellipsoid": (Ellipsoid, ("size",)),
    "plane": (Plane, ("extent",)),
    "height_field": (HeightField, ("heights", "extent")),
}


class Maker:
    """Makes things of parts, and notes what is wrong with them."""

    def __init__(self, folder: Path, problems: list[Problem]) -> None:
        self.folder = folder
        self.problems = problems
        self.places: dict[str, Part] = {}

    def fail(self, part: Part, field: str, message: str, label: str = "") -> None:
        """Note a problem of a field of a part."""
        written = part.written(field)
        file, line = part.node.place(written)
        where = ": ".join(word for word in (label, written if field else "") if word)
        self.problems.append(Problem(message, file, line, where or None))

    def quat(self, part: Any, label: str) -> Quaternion | None:
        """The rotation of a part, however it is given."""
        if part.rotation is None:
            found: Quaternion | None = part.quat_wxyz
            return found
        if part.quat_wxyz is not None:
            self.fail(part, "rotation", 'leave out "rotation" or "quat_wxyz"', label)
        turn = part.rotation
        if not turn.sound:
            return None
        x, y, z = (unit(turn.axis) * sin(turn.angle / 2.0)).tolist()
        return (cos(turn.angle / 2.0), x, y, z)

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def shape(self, part: ShapePart, label: str) -> Shape | None:
        """A shape; None where it was wrong."""
        shared: dict[str, Any] = {
            "name": part.name,
            "position": part.position or ORIGIN,
            "quat_wxyz": self.quat(part, label) or IDENTITY,
            "density": part.density,
            "mass": part.mass,
            "group": part.group,
            "mask": part.mask,
            "margin": part.margin,
            "line": part.node.line,
        }
        if part.material is not None:
            names = Material.__dataclass_fields__
            shared["material"] = Material(**{name: getattr(part.material, name) for name in names})
        if part.color is not None:
            if len(part.color) not in (3, 4):
                self.fail(part, "color", f"must be 3 or 4 numbers, found {len(part.color)}", label)
            else:
                shared["color"] = (*part.color, 1.0)[:4]
        if not part.sound:
            return None
        kind: str = part.kind  # type: ignore[attr-defined]
        if kind in ("convex", "triangle_mesh"):
            return self._mesh(part, kind, shared, label)
        maker, sizes = _SIZES[kind]
        return maker(**{name: getattr(part, name) for name in sizes}, **shared)

    def _mesh(self, part: Any, kind: str, shared: dict[str, Any], label: str) -> Shape | None:
        vertices, faces = part.vertices, part.faces
        if (vertices is None) == (part.file is None):
            self.fail(part, "", 'needs "vertices", or a "file" to read them from, and not both', label)
            return None
        if part.file is not None:
            try:
                mesh = read_mesh(self.folder / part.file)
            except SceneError as error:
                self.fail(part, "file", f'"{part.file}": {error.problems[0].message}', label)
                return None
            vertices, faces = mesh.vertices * part.scale, mesh.faces if kind == "triangle_mesh" else None
        elif part.scale != 1.0:
            vertices = np.asarray(vertices, np.float64) * part.scale
        points = np.array(vertices, np.float64).reshape(-1, 3)
        triangles = None if faces is None else np.array(faces, np.int64).reshape(-1, 3)
        if kind == "convex":
            return ConvexMesh(vertices=points, faces=triangles, **shared)
        if triangles is None:
            self.fail(part, "", 'a triangle mesh needs "faces"', label)
            return None
        return TriangleMesh(vertices=points, faces=triangles, open=part.open, **shared)

    # ---- joints ------------------------------------------------------------------------------------------------------

    def joint(self, part: JointPart, label: str) -> Joint:
        """A joint."""
        self.check_measures(part, part.kind, ("limits", "rest", "spring"), label)
        values = {name: getattr(part, name) for name in JointPart.model_fields if getattr(part, name) is not None}
        return Joint(**values, line=part.node.line)

    def check_measures(self, part: Any, kind: str, names: tuple[str, ...], label: str) -> None:
        """Coordinates are in units of what they are, and angles are no degrees by mistake."""
        measure = _MEASURES.get(kind)
        for name in names:
            value = getattr(part, name)
            if value is None:
                continue
            suffix = split(part.written(name)) if part.written(name) != name else None
            of = UNITS[suffix[1]].of if suffix else None
            if of is not None and of != measure:
                article = "an" if kind[0] in "aeiou" else "a"
                what = f"{name} of {article} {kind} joint are {measure}s, not in {UNITS[suffix[1]].name}"  # type: ignore[index]
                mixed = "are lengths and angles" if kind in ("cylindrical", "planar") else "have no unit"
                self.fail(
                    part, name, what if measure else f"coordinates of a {kind} joint {mixed}: leave it out", label
                )
            numbers = [float(x) for x in np.ravel(np.array(value, dtype=object)) if isinstance(x, int | float)]
            large = [x for x in numbers if _MANY_TURNS < abs(x) < float("inf")]
            if measure == "angle" and of is None and large and kind != "screw":
                what = f"found {large[0]:g} radians, more than two turns"
                self.fail(part, name, f"{what}; write {name}_deg for degrees, or {name}_rad if that is meant", label)

    # ---- bodies ------------------------------------------------------------------------------------------------------

    def body(self, part: BodyPart) -> Body:
        """A body; wrong parts are reported and left out."""
        name = part.name or "?"
        label = f'body "{name}"'
        self.places[label] = part
        body = Body(name, part.parent, part.position or ORIGIN, self.quat(part, label) or IDENTITY, line=part.node.line)
        shapes = [*([part.shape] if part.shape is not None else []), *(part.shapes or [])]
        for k, one in enumerate(shapes):
            made = self.shape(one, f"{label}: shape")
            if made is not None:
                named = f'shape "{one.name}"' if one.name else f"shapes[{k}] ({type(made).__name__.lower()})"
                self.places[f"{label}: {named}"] = one
                body.shapes.append(made)
        if part.inertia is not None and part.inertia.sound:
            self.places[f"{label}: inertia"] = part.inertia
            body.inertia = _inertia(part.inertia)
        body.gravity_compensation = part.gravity_compensation
        self._hold(part, body, label)
        return body

    def _hold(self, part: BodyPart, body: Body, label: str) -> None:
        """Joints and motion of a body."""
        if part.fixed and part.motion not in (None, "fixed"):
            self.fail(part, "fixed", f'is true, but motion is "{part.motion}"; leave one out', label)
        if part.path is not None and (part.fixed or part.motion not in (None, "kinematic")):
            self.fail(part, "path", "only a kinematic body follows a path; leave out fixed, or the path", label)
        if part.path is not None:
            body.path = self.path(part.path, label)
            self.places[f"{label}: path"] = part.path
        kinematic = part.path is not None or part.motion == "kinematic"
        body.motion = "kinematic" if kinematic else "fixed" if part.fixed else part.motion or "dynamic"  # type: ignore[assignment]
        parts = [*([part.joint] if isinstance(part.joint, JointPart) else []), *(part.joints or [])]
        if part.has("joint") or part.has("joints"):
            body.joints = [self.joint(one, f"{label}: joint") for one in parts]
        elif not (body.motion != "dynamic" or part.parent is not None or _stays(body)):
            body.joints = [Joint("free")]
        for one, name in zip(parts, body.joint_names(), strict=False):
            self.places[f'{label}: joint "{name}"'] = one

    def path(self, part: PathPart, label: str) -> Any:
        """What a kinematic body follows."""
        allowed = {
            "keyed": ("times", "positions", "quats_wxyz", "loop"),
            "orbit": ("start", "speed", "center", "axis", "quat_wxyz"),
            "constant": ("position", "quat_wxyz"),
        }[part.kind]
        given = {name: getattr(part, name) for name in PathPart.model_fields if name != "kind" and part.has(name)}
        for name in given:
            if name not in allowed:
                self.fail(part, name, f"a path of kind {part.kind} has {', '.join(allowed)}", f"{label}: path")
        needed = {"keyed": ("times", "positions"), "orbit": ("start", "speed"), "constant": ()}[part.kind]
        missing = [name for name in needed if name not in given]
        if missing or not part.sound:
            if missing:
                self.fail(part, "", f'a path of kind {part.kind} needs "{missing[0]}"', f"{label}: path")
            return ConstantPath()
        try:
            maker: Any = {"keyed": KeyedPath, "orbit": OrbitPath, "constant": ConstantPath}[part.kind]
            return maker(**{name: value for name, value in given.items() if name in allowed})
        except ValueError as error:
            field, _, rest = str(error).partition(": ")
            known = field if field in given else ""
            self.fail(part, known, rest if known else str(error), f"{label}: path")
            return ConstantPath()


def _stays(body: Body) -> bool:
    """Whether a body that nothing else is said of stays where it is: for a shape that must, or as it weighs nothing."""
    weightless = body.inertia is None and bool(body.shapes) and all(isinstance(shape, STILL) for shape in body.shapes)
    return weightless or any(must_stay(shape) for shape in body.shapes)


def _inertia(part: InertiaPart) -> Inertia:
    found = Inertia(part.mass)
    for name in ("com", "moments", "quat_wxyz", "products", "allow_unphysical"):
        if getattr(part, name) is not None:
            setattr(found, name, getattr(part, name))
    return found
