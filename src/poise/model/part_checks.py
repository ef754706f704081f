"""Checks of a single joint, shape or inertia."""

from __future__ import annotations

import math

import numpy as np

from poise.model.checks import Checker, as_sequence, shown
from poise.model.errors import SceneError, did_you_mean
from poise.model.hull import checked_faces, checked_vertices, dent
from poise.model.joints import JOINTS, OTHER_NAMES, JointKind
from poise.model.massprops import inertia_matrix, unphysical
from poise.model.mesh_topology import open_edges, torn_edges
from poise.model.scene import Inertia, Joint
from poise.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Material,
    Plane,
    Shape,
    Sphere,
    TriangleMesh,
)
from poise.model.surface_rules import CONDIMS, ROLLING_RULES, RULES
from poise.motion.rotations import cross, unit

#: sine of the least angle between the two axes of a joint
_PARALLEL = 1e-6
COMBINE_OPTIONS = ("friction_combine", "rolling_combine", "restitution_combine")


def check_joint(check: Checker, joint: Joint) -> None:
    """Collect the problems of a joint."""
    if not isinstance(joint.kind, str) or joint.kind not in JOINTS:
        check.fail("kind", f"{joint.kind!r} is not a kind of joint{did_you_mean(joint.kind, JOINTS, OTHER_NAMES)}")
        return
    kind = JOINTS[joint.kind]
    check.numbers("anchor", joint.anchor, 3)
    _check_axes(check, joint)
    pitch = check.number("pitch", joint.pitch)
    if pitch and kind.name != "screw":
        check.fail("pitch", f"only a screw has a pitch, this is a {kind.name}")
    _check_limits(check, joint, kind)
    _check_cone(check, joint, kind)
    _check_coordinates(check, joint, kind)
    check.number("stiffness", joint.stiffness, negative=False)
    check.number("friction", joint.friction, negative=False)
    _check_actuation(check, joint, kind)
    for field, value in (("damping", joint.damping), ("armature", joint.armature)):
        if as_sequence(value) is None:
            check.number(field, value, negative=False)
        else:
            check.numbers(field, value, kind.nv, negative=False)


def _check_actuation(check: Checker, joint: Joint, kind: JointKind) -> None:
    """The range of the total motor force, and whether gravity compensation counts."""
    if joint.actuator_force_range is not None:
        check.bounds("actuator_force_range", joint.actuator_force_range)
        if kind.nv != 1:
            what = f"only a joint of one degree of freedom has one, this is a {kind.name}; limit its motors"
            check.fail("actuator_force_range", what)
    counted: object = joint.actuator_gravity_compensation
    if not isinstance(counted, bool):
        check.fail("actuator_gravity_compensation", f"must be True or False, found {shown(counted)}")


def _check_axes(check: Checker, joint: Joint) -> None:
    axis = None if joint.axis is None else check.direction("axis", joint.axis)
    axis2 = None if joint.axis2 is None else check.direction("axis2", joint.axis2)
    first = (0.0, 0.0, 1.0) if joint.axis is None else axis
    if first is None or axis2 is None:
        return
    if np.linalg.norm(cross(unit(first), unit(axis2))) < _PARALLEL:
        check.fail("axis2", f"must not be parallel to axis, found {shown(joint.axis2)} beside {shown(tuple(first))}")


def _check_limits(check: Checker, joint: Joint, kind: JointKind) -> None:
    if joint.limits is None:
        return
    if kind.name == "ball":
        check.fail(
            "limits", "a ball joint has no limits of its coordinates; use cone for its swing, twist for its twist"
        )
        return
    if kind.has_quaternion:
        check.fail("limits", f"a {kind.name} joint has no limits")
        return
    items = as_sequence(joint.limits)
    if items is None:
        check.fail("limits", f"must be (lower, upper), found {shown(joint.limits)}")
        return
    nested = any(item is None or as_sequence(item) is not None for item in items)
    if kind.nv == 1 and not nested:
        check.bounds("limits", items)
        return
    if not nested or len(items) != kind.nv:
        names = ", ".join(kind.v_names) if kind.nv > 1 else "its coordinate"
        check.fail(
            "limits",
            f"a {kind.name} joint needs {kind.nv} pairs (lower, upper) or None, for {names}, "
            f"found {shown(joint.limits)}",
        )
        return
    for k, pair in enumerate(items):
        if pair is not None:
            check.bounds(f"limits[{k}]", pair)


def _check_cone(check: Checker, joint: Joint, kind: JointKind) -> None:
    for field, value in (("cone", joint.cone), ("twist", joint.twist), ("limit_centre", joint.limit_centre)):
        if value is not None and kind.name != "ball":
            check.fail(field, f"only a ball joint has a {field}, this is a {kind.name}; use limits")
    if kind.name != "ball":
        return
    if joint.cone is not None:
        given = as_sequence(joint.cone)
        angles = [("cone", joint.cone)] if given is None else [(f"cone[{k}]", a) for k, a in enumerate(given)]
        if given is not None and len(given) != 2:
            check.fail("cone", f"must be one angle or two, found {len(given)}: {shown(joint.cone)}")
            angles = []
        for field, angle in angles:
            value = check.number(field, angle, positive=True, infinite=True)
            if value is not None and math.pi < value < math.inf:
                check.fail(field, f"must be at most π (radians), found {value:g}{_degrees_hint(value)}")
    if joint.twist is not None:
        check.bounds("twist", joint.twist)
    if joint.limit_centre is not None:
        check.quaternion("limit_centre", joint.limit_centre)


def _degrees_hint(value: float) -> str:
    return f", did you mean {math.radians(value):.4g} ({value:g} degrees)?" if value <= 360.0 else ""


def _check_coordinates(check: Checker, joint: Joint, kind: JointKind) -> None:
    for field, value in (("rest", joint.rest), ("spring", joint.spring)):
        if value is None:
            continue
        items = as_sequence(value)
        if field == "rest" and kind.has_quaternion:
            meaning = "rests at the identity" if kind.name == "ball" else "rests at the pose of its body"
            check.fail("rest", f"a {kind.name} joint {meaning}, leave rest out")
        elif items is not None:
            found = check.numbers(field, items, kind.nq)
            if found and field == "spring" and kind.has_quaternion and not any(found[-4:]):
                check.fail("spring", "must end in a rotation (w, x, y, z), found (0, 0, 0, 0)")
        elif kind.has_quaternion:
            check.fail(field, f"a {kind.name} joint needs {kind.nq} coordinates, found {shown(value)}")
        else:
            check.number(field, value)


_SIZES: dict[type[Shape], tuple[str, ...]] = {
    Sphere: ("radius",),
    Capsule: ("radius", "length"),
    Cylinder: ("radius", "length"),
    Box: ("size",),
    Ellipsoid: ("size",),
    Plane: (),
    ConvexMesh: (),
    HeightField: (),
    TriangleMesh: (),
}
STILL = (Plane, HeightField, TriangleMesh)
"""Shapes without mass."""


def must_stay(shape: Shape) -> bool:
    """Whether a shape must be on a static body; a visual mesh can be on any body."""
    return isinstance(shape, STILL) and not (isinstance(shape, TriangleMesh) and only_looked_at(shape))


def only_looked_at(shape: Shape) -> bool:
    """Whether a shape is visual only; it can then have any form."""
    return all(isinstance(bits, (int, np.integer)) and bits == 0 for bits in (shape.group, shape.mask))


def check_shape(check: Checker, shape: Shape) -> None:
    """Collect the problems of a shape."""
    kind = next((known for known in type(shape).__mro__ if known in _SIZES), None)
    if kind is None:
        names = ", ".join(known.__name__ for known in _SIZES)
        check.fail("", f"{type(shape).__name__} is not a shape that has a form; use one of {names}")
        return
    if shape.name is not None:
        check.text("name", shape.name)
    for field in _SIZES[kind]:
        value = getattr(shape, field)
        if field == "size":
            check.numbers(field, value, 3, positive=True)
        else:
            check.number(field, value, positive=True)
    if isinstance(shape, Plane) and shape.extent is not None:
        check.numbers("extent", shape.extent, 2, positive=True)
    if isinstance(shape, ConvexMesh):
        _check_mesh(check, shape)
    if isinstance(shape, HeightField):
        _check_field(check, shape)
    if isinstance(shape, TriangleMesh):
        _check_surface(check, shape)
    check.numbers("position", shape.position, 3)
    check.quaternion("quat_wxyz", shape.quat_wxyz)
    check.number("density", shape.density, negative=False)
    if shape.mass is not None:
        mass = check.number("mass", shape.mass, negative=False)
        if mass and isinstance(shape, STILL):
            check.fail("mass", f"a {spoken(shape)} has no mass, found {mass:g}")
    check.number("margin", shape.margin, negative=False)
    check.numbers("color", shape.color, 4, negative=False)
    for field in ("group", "mask"):
        bits = getattr(shape, field)
        if not isinstance(bits, (int, np.integer)) or isinstance(bits, bool):
            check.fail(field, f"must be a whole number whose bits are groups, found {bits!r}")
        elif not -(1 << 31) <= bits < 1 << 31:
            check.fail(field, f"must have at most 32 bits, found {shown(bits)}")
    _check_material(check, shape.material)


def _check_material(check: Checker, material: object) -> None:
    if not isinstance(material, Material):
        check.fail("material", f"must be a Material, found {shown(material)}")
        return
    for field in ("friction", "restitution", "torsional_friction", "rolling_friction", "compliance"):
        endless = field.endswith("friction")
        value = check.number(f"material.{field}", getattr(material, field), negative=False, infinite=endless)
        if field == "restitution" and value is not None and value > 1.0:
            check.fail("material.restitution", f"must be between 0 and 1, found {value:g}")
    for field in COMBINE_OPTIONS:
        if getattr(material, field) is not None:
            check_rule(check, f"material.{field}", getattr(material, field))
    if not _whole(material.priority):
        check.fail("material.priority", f"must be a whole number, found {shown(material.priority)}")
    if material.condim is not None and not (_whole(material.condim) and material.condim in CONDIMS):
        check.fail("material.condim", f"must be 1, 3, 4, 6 or None, found {shown(material.condim)}")


def check_rule(check: Checker, field: str, value: object) -> None:
    """A rule that combines the coefficients of two surfaces."""
    words = ROLLING_RULES if field.endswith("rolling_combine") else RULES
    if not isinstance(value, str) or value not in words:
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        if isinstance(value, str) and value == "multiply":
            hint = "; these coefficients are lengths, and a product of lengths is none"
        check.fail(field, f"must be one of {', '.join(words)}, found {shown(value)}{hint}")


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_mesh(check: Checker, shape: ConvexMesh) -> None:
    try:
        vertices = checked_vertices(shape.vertices)
        if shape.faces is not None:
            faces = checked_faces(shape.faces, vertices)
            if not only_looked_at(shape):
                _check_convex(check, vertices, faces)
    except SceneError as error:
        for problem in error.problems:
            check.fail(problem.field or "vertices", problem.message)


def _check_convex(check: Checker, vertices: np.ndarray, faces: np.ndarray) -> None:
    found = dent(vertices, faces)
    if found is not None:
        face, vertex, height = found
        check.fail(
            "faces",
            f"must make a convex solid, found vertex {vertex} {height:.3g} m in front of face {face}; "
            "leave faces out for the convex hull, or use a triangle mesh",
        )


def spoken(shape: Shape) -> str:
    """Name of a kind of shape in a sentence."""
    return {HeightField: "height field", TriangleMesh: "triangle mesh"}.get(type(shape), type(shape).__name__.lower())


def _check_field(check: Checker, shape: HeightField) -> None:
    check.numbers("extent", shape.extent, 2, positive=True)
    try:
        heights = np.asarray(shape.heights, np.float64)
    except (TypeError, ValueError, OverflowError):
        check.fail("heights", "must be rows of numbers of one length, found something else")
        return
    if heights.ndim != 2 or min(heights.shape) < 2:
        check.fail("heights", f"must be at least 2 rows of 2 numbers, found an array of shape {heights.shape}")
    elif not np.isfinite(heights).all():
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(heights)))
        check.fail("heights", f"must be finite, found {heights[row, column]} in row {row}, column {column}")


def _check_surface(check: Checker, shape: TriangleMesh) -> None:
    wanted: object = shape.open
    if not isinstance(wanted, bool):
        check.fail("open", f"must be True or False, found {shown(wanted)}")
    try:
        vertices, faces = np.asarray(shape.vertices, np.float64), np.asarray(shape.faces)
    except (TypeError, ValueError, OverflowError):
        check.fail("vertices", "must be a list of points (x, y, z), found something else")
        return
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not len(vertices):
        check.fail("vertices", f"must be points (x, y, z), found an array of shape {vertices.shape}")
    elif not np.isfinite(vertices).all():
        row = int(np.flatnonzero(~np.isfinite(vertices).all(axis=1))[0])
        check.fail("vertices", f"must be finite, found {tuple(vertices[row].tolist())} at index {row}")
    elif faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or not np.issubdtype(faces.dtype, np.integer):
        check.fail("faces", f"must be triples of whole numbers, found an array of {faces.dtype} {faces.shape}")
    elif faces.min() < 0 or faces.max() >= len(vertices):
        check.fail(
            "faces", f"must name vertices 0 to {len(vertices) - 1}, found {int(faces.min())} to {int(faces.max())}"
        )
    else:
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        flat = np.flatnonzero(np.linalg.norm(np.cross(b - a, c - a), axis=1) == 0.0)
        seen = only_looked_at(shape)
        if len(flat) and not (seen and len(flat) < len(faces)):
            check.fail("faces", f"must have an area, found none at index {int(flat[0])} ({len(flat)} in all)")
        elif not seen:
            _check_edges(check, shape, vertices, faces.astype(np.int64))


def _check_edges(check: Checker, shape: TriangleMesh, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Check that each edge of a colliding mesh has two triangles of consistent orientation; or one, if it is open."""
    torn, rest = torn_edges(faces), open_edges(faces)
    if len(torn):
        a, b = torn[0].tolist()
        meeting = int((np.isin(faces, (a, b)).sum(axis=1) == 2).sum())
        found = f"{meeting} meet" if meeting > 2 else "both run the same way, so that one is turned over,"
        check.fail(
            "faces",
            f"two triangles at most share an edge, and run along it in opposite ways; found that {found} "
            f"at the edge from vertex {a} to {b} ({len(torn)} such edges in all)",
        )
    elif len(rest) and not shape.open:
        a, b = rest[0].tolist()
        twice = len(vertices) - len(np.unique(vertices, axis=0))
        hint = f"; {twice} vertices are at the place of another one: join them" if twice else ""
        check.fail(
            "faces",
            f"must close a solid, found {len(rest)} open edges, one from vertex {a} to {b}{hint}; "
            "say open=True if a surface with a border is meant",
        )


def check_inertia(check: Checker, inertia: Inertia) -> None:
    """Collect the problems of given mass properties."""
    mass = check.number("mass", inertia.mass, negative=False)
    check.numbers("com", inertia.com, 3)
    check.quaternion("quat_wxyz", inertia.quat_wxyz)
    allowed: object = inertia.allow_unphysical
    if not isinstance(allowed, bool):
        check.fail("allow_unphysical", f"must be True or False, found {shown(allowed)}")
        return
    moments = check.numbers("moments", inertia.moments, 3, negative=allowed)
    products = check.numbers("products", inertia.products, 3)
    if mass is None or moments is None or products is None or allowed:
        return
    if (wrong := unphysical(mass, inertia_matrix(inertia))) is not None:
        check.fail(*wrong)
