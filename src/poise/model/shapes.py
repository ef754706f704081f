"""Shapes as plain data: the geometry of a body for collision, rendering and mass properties.

Sizes are full lengths in metres. Axes of symmetry run along local z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from poise.model.errors import SceneError, did_you_mean

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
CombineRule = Literal["average", "geometric", "minimum", "multiply", "maximum"]
"""Rules that combine the coefficients of two surfaces in a contact; see `poise.model.surface_rules`."""

#: names of options of a shape in other programs, and of fields of its material
_OTHER_OPTIONS = {
    "pos": "position",
    "quat": "quat_wxyz",
    "rgba": "color",
    "colour": "color",
    "contype": "group",
    "conaffinity": "mask",
    "friction": "material",
    "restitution": "material",
    "torsional_friction": "material",
    "rolling_friction": "material",
    "priority": "material",
    "condim": "material",
}

IDENTITY: Quaternion = (1.0, 0.0, 0.0, 0.0)
ORIGIN: Vector = (0.0, 0.0, 0.0)


@dataclass
class Material:
    """Surface properties of a shape.

    >>> box(0.2, 0.2, 0.2, material=Material(friction=0.1, restitution=0.5)).material.friction
    0.1
    """

    friction: float = 0.8
    """Coulomb coefficient of sliding friction; inf: never slips, unless the combine rule with the other surface gives
    less (the geometric mean with 0 is 0); 1."""
    restitution: float = 0.0
    """Coefficient of restitution: the fraction of the approach speed with which a contact bounces; 1."""
    torsional_friction: float = 0.0
    """Torsional friction: moment about the normal per normal force; inf: never spins on a contact; m."""
    rolling_friction: float = 0.0
    """Rolling friction: moment in the tangent plane per normal force; inf: never rolls on a contact; m."""
    compliance: float = 0.0
    """Compliance: displacement of the surface per normal force; 0 is hard; m/N."""
    friction_combine: CombineRule | None = None
    """Rule that combines sliding friction with that of another surface; None: the scene's rule. Of two different rules
    the later one of average, geometric, minimum, multiply, maximum applies."""
    rolling_combine: CombineRule | None = None
    """The same for torsional and rolling friction; "multiply" is invalid for lengths."""
    restitution_combine: CombineRule | None = None
    """The same for restitution."""
    priority: int = 0
    """The surface with the higher priority alone determines friction, condim and restitution."""
    condim: int | None = None
    """Friction of a contact: 1 none, 3 sliding, 4 and torsional, 6 and rolling; the larger one of two surfaces.
    None: as the coefficients above 0 require, at least 3."""


@dataclass(kw_only=True)
class Shape:
    """Fields of all shapes. `mass` overrides `density`; a density of 0 makes a massless shape."""

    name: str | None = None
    position: Vector = ORIGIN
    """Centre of the shape in the body's frame; m."""
    quat_wxyz: Quaternion = IDENTITY
    """Orientation of the shape in the body's frame."""
    density: float = 1000.0
    """kg/m³."""
    mass: float | None = None
    """kg."""
    material: Material = field(default_factory=Material)
    color: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    """Red, green, blue, opacity, each 0 to 1."""
    group: int = 1
    """Bits of the groups that the shape belongs to."""
    mask: int = 1
    """Bits of the groups that the shape collides with; 0 for a visual shape."""
    margin: float = 0.0
    """Distance below which contacts are reported; m."""
    line: int | None = None
    """Line in the file that the shape was read from."""


@dataclass
class Sphere(Shape):
    """A ball."""

    radius: float


@dataclass
class Capsule(Shape):
    """A cylinder along z with half spheres at its ends; `length` is that of the cylinder alone."""

    radius: float
    length: float


@dataclass
class Box(Shape):
    """A box with full edge lengths `size`."""

    size: Vector


@dataclass
class Cylinder(Shape):
    """A cylinder along z."""

    radius: float
    length: float


@dataclass
class Ellipsoid(Shape):
    """An ellipsoid with full axis lengths `size`."""

    size: Vector


@dataclass
class Plane(Shape):
    """The half space z ≤ 0 of the shape's frame: no mass, only on bodies that do not move."""

    extent: tuple[float, float] | None = None
    """Full lengths to draw; None for an infinite floor. For collision it is always infinite; m."""


@dataclass
class ConvexMesh(Shape):
    """The convex hull of `vertices`; `faces` (triangles, counter-clockwise from outside) are computed when missing."""

    vertices: Any
    """(n, 3) array of points in the shape's frame; m."""
    faces: Any = None
    """(m, 3) array of vertex indices."""


@dataclass
class HeightField(Shape):
    """A landscape over a grid, centred on the shape's origin: no mass, only on bodies that do not move.

    Solid below. Each cell is split into two triangles along the diagonal from its least x and y.
    """

    heights: Any
    """(rows, columns) array, at least 2 by 2; rows run along y, columns along x; m."""
    extent: tuple[float, float]
    """Full lengths along x and y; m."""


@dataclass
class TriangleMesh(Shape):
    """A surface of triangles that need not be convex: no mass, only on bodies that do not move.

    It pushes outward. Unless `open` is set it must be closed: bodies that enter through a hole would be trapped inside.
    A visual mesh (group and mask 0) can have any form, open, flat or non-manifold, on any body.
    """

    vertices: Any
    """(n, 3) array of points in the shape's frame; m."""
    faces: Any
    """(m, 3) array of vertex indices, counter-clockwise seen from outside."""
    open: bool = False
    """Whether the surface has a border, like a terrain."""


_Kind = TypeVar("_Kind", bound=Shape)


def make_shape(kind: type[_Kind], options: dict[str, Any], also: Sequence[str] = (), **sizes: Any) -> _Kind:
    """A shape of a kind from its sizes and options of shapes; the error for other options suggests the nearest.

    `also` are further names for suggestions, which are no options here.

    >>> make_shape(Sphere, {"mass": 2.0}, radius=0.1).mass
    2.0
    """
    known = [name for name in kind.__dataclass_fields__ if name not in sizes]
    for option in options:
        if option not in known:
            hint = did_you_mean(option, [*known, *also], _OTHER_OPTIONS)
            raise SceneError(f"a {kind.__name__.lower()} has no option {option!r}{hint}", field=kind.__name__.lower())
    return kind(**sizes, **options)


def sphere(radius: float, **options: Any) -> Sphere:
    """A sphere of the given radius.

    >>> sphere(0.1, mass=2.0).radius
    0.1
    """
    return make_shape(Sphere, options, radius=radius)


def capsule(radius: float, length: float, **options: Any) -> Capsule:
    """A capsule along z; `length` is that of its cylinder, between the centres of the two caps.

    >>> capsule(0.05, 0.4).length
    0.4
    """
    return make_shape(Capsule, options, radius=radius, length=length)


def box(x: float, y: float, z: float, **options: Any) -> Box:
    """A box with full edge lengths x, y, z.

    >>> box(0.3, 0.2, 0.15, mass=1.5).size
    (0.3, 0.2, 0.15)
    """
    return make_shape(Box, options, size=(x, y, z))


def cylinder(radius: float, length: float, **options: Any) -> Cylinder:
    """A cylinder along z.

    >>> cylinder(0.05, 0.4).radius
    0.05
    """
    return make_shape(Cylinder, options, radius=radius, length=length)


def ellipsoid(x: float, y: float, z: float, **options: Any) -> Ellipsoid:
    """An ellipsoid with full axis lengths x, y, z.

    >>> ellipsoid(0.2, 0.2, 0.3).size
    (0.2, 0.2, 0.3)
    """
    return make_shape(Ellipsoid, options, size=(x, y, z))


def plane(**options: Any) -> Plane:
    """The half space below z = 0 of its frame.

    >>> plane().extent is None
    True
    """
    return make_shape(Plane, options)


def convex(vertices: Sequence[Vector], **options: Any) -> ConvexMesh:
    """The convex hull of some points.

    >>> len(convex([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]).vertices)
    4
    """
    return make_shape(ConvexMesh, options, vertices=vertices)


def height_field(heights: Any, x: float, y: float, **options: Any) -> HeightField:
    """A landscape of heights over a grid of full lengths x, y; rows run along y, columns along x.

    >>> height_field([[0.0, 0.0], [0.1, 0.1]], 2.0, 2.0).extent
    (2.0, 2.0)
    """
    return make_shape(HeightField, options, heights=heights, extent=(x, y))


def triangle_mesh(vertices: Any, faces: Any, **options: Any) -> TriangleMesh:
    """A static surface of triangles; `open=True` for one with a border, like a terrain.

    With `group=0, mask=0` it is visual: it can then have any form, and be on moving bodies.

    >>> len(triangle_mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], open=True).faces)
    1
    """
    return make_shape(TriangleMesh, options, vertices=vertices, faces=faces)
