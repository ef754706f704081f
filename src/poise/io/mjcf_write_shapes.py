"""Shapes as geoms of MJCF."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import isclose
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from poise.constraints.combining import combine
from poise.io.mjcf_source import fresh
from poise.model.contact_pairs import FRICTIONS, ContactPair
from poise.model.scene import Body
from poise.model.shapes import (
    IDENTITY,
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
from poise.model.surface_rules import COEFFICIENTS, Combine, condim_of, surface_kinds
from poise.motion.rotations import quat_normalize, quat_to_matrix
from poise.solve.cones import NEVER_SLIPS

if TYPE_CHECKING:
    from poise.io.mjcf_write import MjcfWriter

#: how thick MuJoCo makes the ground below a height field, and the least height of one; m
_BASE, _LEAST = 1.0, 1e-6


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))


def write_shape(writer: MjcfWriter, body: Body, k: int, shape: Shape, element: ET.Element) -> None:
    """One geom; MuJoCo's sizes are half lengths."""
    geom = ET.SubElement(element, "geom")
    writer.geoms[body.name, k] = geom
    taken = {geom.get("name") for geom in writer.root.iter("geom")}
    if shape.name is not None:
        if shape.name in taken:
            writer.lose(f'A second shape "{shape.name}" has no name: in MJCF names are unique.')
        else:
            geom.set("name", shape.name)
    position = np.asarray(shape.position, np.float64)
    if isinstance(shape, Sphere):
        _set(geom, "sphere", (shape.radius,))
    elif isinstance(shape, Capsule):
        _set(geom, "capsule", (shape.radius, shape.length / 2))
    elif isinstance(shape, Cylinder):
        _set(geom, "cylinder", (shape.radius, shape.length / 2))
    elif isinstance(shape, Box | Ellipsoid):
        _set(geom, "box" if isinstance(shape, Box) else "ellipsoid", np.asarray(shape.size) / 2)
    elif isinstance(shape, Plane):
        x, y = (0.0, 0.0) if shape.extent is None else shape.extent
        _set(geom, "plane", (x / 2, y / 2, 1.0))
    elif isinstance(shape, HeightField):
        position = position + quat_to_matrix(quat_normalize(shape.quat_wxyz)) @ _field(writer, shape, geom)
    elif isinstance(shape, ConvexMesh | TriangleMesh):
        _mesh(writer, body, shape, geom)
    if position.any():
        geom.set("pos", _numbers(position))
    if tuple(shape.quat_wxyz) != IDENTITY:
        geom.set("quat", _numbers(shape.quat_wxyz))
    geom.set("rgba", _numbers(shape.color))
    if (shape.group, shape.mask) != (1, 1):
        geom.set("contype", str(int(shape.group)))
        geom.set("conaffinity", str(int(shape.mask)))
    if shape.margin:
        geom.set("margin", repr(float(shape.margin)))
    _material(writer, body, shape.material, geom)


def _set(geom: ET.Element, kind: str, size: Any) -> None:
    geom.set("type", kind)
    geom.set("size", _numbers(size))


def _material(writer: MjcfWriter, body: Body, material: Material, geom: ET.Element) -> None:
    friction = (material.friction, material.torsional_friction, material.rolling_friction)
    geom.set("friction", _numbers([min(number, NEVER_SLIPS) for number in friction]))
    if max(friction) > NEVER_SLIPS:
        writer.lose(f'Friction above {NEVER_SLIPS:g} of shapes of body "{body.name}" is written as that.')
    if condim_of(material) != 3:
        geom.set("condim", str(condim_of(material)))
    if material.priority:
        geom.set("priority", str(int(material.priority)))
    for name in ("restitution", "compliance"):
        if getattr(material, name) > 0.0:
            writer.lose(f'The {name} of shapes of body "{body.name}" is not kept: contacts of MJCF have other laws.')


def tell_rules(writer: MjcfWriter) -> None:
    """Say where two surfaces combine otherwise than in MuJoCo: by the maximum, unless their priorities differ."""
    shapes = [shape for body in writer.scene.bodies for shape in body.shapes if shape.group or shape.mask]
    kinds, table = surface_kinds([shape.material for shape in shapes], writer.scene.rules)
    for column, name in enumerate(COEFFICIENTS[:3]):
        seen = {
            (kind, float(getattr(shape.material, name))) for kind, shape in zip(kinds.tolist(), shapes, strict=True)
        }
        rules = {
            int(table[one, other, column])
            for (one, a), (other, b) in combinations_with_replacement(sorted(seen), 2)
            if _is_other(int(table[one, other, column]), a, b)
        }
        for rule in sorted(rules):
            writer.lose(
                f'Contacts whose {name} combines by "{Combine(rule).name.lower()}" have the larger one of their two '
                "shapes: MJCF has no other rule."
            )


def _is_other(rule: int, a: float, b: float) -> bool:
    """Whether a rule gives something else than the larger coefficient."""
    return rule not in (Combine.NONE, Combine.FIRST, Combine.SECOND) and not isclose(combine(rule, a, b), max(a, b))


def write_contact_pair(writer: MjcfWriter, pair: ContactPair, section: ET.Element) -> None:
    """A contact pair; its geoms get names where they have none."""
    made = ET.SubElement(section, "pair")
    for attribute, (body, number) in (("geom1", pair.first), ("geom2", pair.second)):
        geom = writer.geoms[body, int(number)]
        if geom.get("name") is None:
            taken = {other.get("name") for other in writer.geoms.values()}
            geom.set("name", fresh(f"{body}[{int(number)}]", [name for name in taken if name is not None]))
        made.set(attribute, str(geom.get("name")))
    sliding, torsional, rolling = (min(float(getattr(pair, name)), NEVER_SLIPS) for name in FRICTIONS)
    condim = 6 if rolling > 0.0 else 4 if torsional > 0.0 else 3 if sliding > 0.0 else 1
    made.set("condim", str(condim))
    made.set("friction", _numbers((sliding, sliding, torsional, rolling, rolling)))


def _mesh(writer: MjcfWriter, body: Body, shape: ConvexMesh | TriangleMesh, geom: ET.Element) -> None:
    name = f"mesh_{len(writer.assets)}"
    asset = ET.SubElement(writer.assets, "mesh", name=name, vertex=_numbers(shape.vertices))
    if shape.faces is not None:
        asset.set("face", " ".join(str(int(index)) for index in np.ravel(shape.faces)))
    if isinstance(shape, TriangleMesh):
        asset.set("inertia", "shell")
        if shape.group or shape.mask:
            writer.lose(
                f'A triangle mesh of body "{body.name}" touches with its convex hull: MJCF has no other meshes.'
            )
    geom.set("type", "mesh")
    geom.set("mesh", name)


def _field(writer: MjcfWriter, shape: HeightField, geom: ET.Element) -> Any:
    """A height field; MuJoCo's heights begin at 0, so that it has to be moved."""
    heights = np.asarray(shape.heights, np.float64)
    low, high = float(heights.min()), float(heights.max())
    name = f"field_{len(writer.assets)}"
    asset = ET.SubElement(writer.assets, "hfield", name=name)
    asset.set("nrow", str(heights.shape[0]))
    asset.set("ncol", str(heights.shape[1]))
    asset.set("size", _numbers((shape.extent[0] / 2, shape.extent[1] / 2, max(high - low, _LEAST), _BASE)))
    asset.set("elevation", _numbers((heights - low)[::-1]))  # MuJoCo's first row is the last along y
    geom.set("type", "hfield")
    geom.set("hfield", name)
    return np.array((0.0, 0.0, low))
