"""Links of a URDF file: mass and shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from poise.io.meshes import MESH_FORMATS, Mesh, is_closed, is_convex, is_flat, read_mesh
from poise.io.urdf_inertia import InertiaChoice, as_chosen
from poise.io.urdf_reader import UrdfReader
from poise.io.xml_lines import Element
from poise.model.errors import SceneError
from poise.model.scene import Inertia
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Shape, Sphere, TriangleMesh

Color = tuple[float, float, float, float]

_SHAPES = ("box", "cylinder", "sphere", "capsule", "mesh")
#: attributes of which none may be 0
_SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("scale",),
}


@dataclass
class UrdfLink:
    """A link: what it weighs and looks like."""

    element: Element
    inertia: Inertia | None
    shapes: list[Shape] = field(default_factory=list)


def read_links(robot: Element, reader: UrdfReader, density: float | None, choice: InertiaChoice) -> dict[str, UrdfLink]:
    """All links by name, in the order of the file."""
    colors = _read_colors(robot, reader)
    meshes: dict[Path, Mesh] = {}
    links: dict[str, UrdfLink] = {}
    for element in robot.all("link"):
        name = reader.text(element, "name", "link")
        if name is None:
            continue
        if name in links:
            reader.problem(element, f'link "{name}" is there twice, first on line {links[name].element.line}')
            continue
        inertia = _read_inertia(element, name, choice, reader)
        by_shapes = inertia is None and density is not None and bool(element.all("collision"))
        link = UrdfLink(element, inertia if inertia or by_shapes else Inertia(0.0))
        weight = density if by_shapes and density is not None else 0.0
        maker = _ShapeMaker(name, reader, colors, meshes, has_mass=inertia is not None)
        visuals = [maker.visual(visual) for visual in element.all("visual")]
        collisions = [maker.collision(collision, weight) for collision in element.all("collision")]
        link.shapes = [shape for shape in collisions + visuals if shape is not None]
        if any(visuals):
            _hide(collisions)
        if inertia is None and element.all("collision") and not by_shapes:
            reader.ignore("links with shapes but without <inertial>, weightless unless a density is given", name)
        links[name] = link
    return links


def _hide(shapes: list[Shape | None]) -> None:
    """Make shapes see-through."""
    for shape in shapes:
        if shape is not None:
            shape.color = (*shape.color[:3], 0.0)


def _read_colors(robot: Element, reader: UrdfReader) -> dict[str, Color]:
    """Colours by the names of their materials, from all elements that define one."""
    colors: dict[str, Color] = {}
    for material in (element for element in robot.walk() if element.name == "material"):
        if material.all("texture"):
            reader.ignore("textures of materials not kept", material.attributes.get("name", ""))
        color = _color(material, reader)
        if color is not None and material.attributes.get("name"):
            colors.setdefault(material.attributes["name"], color)
    return colors


def _color(material: Element, reader: UrdfReader) -> Color | None:
    color = material.first("color")
    if color is None:
        return None
    what = f'material "{material.attributes.get("name", "")}"'
    red, green, blue, opacity = reader.numbers(color, "rgba", 4, None, what)
    if not all(0.0 <= part <= 1.0 for part in (red, green, blue, opacity)):
        reader.ignore("colours taken as 0 or 1 where they are outside", f'"{color.attributes["rgba"]}" of {what}')
    return (min(max(red, 0.0), 1.0), min(max(green, 0.0), 1.0), min(max(blue, 0.0), 1.0), min(max(opacity, 0.0), 1.0))


def _read_inertia(link: Element, name: str, choice: InertiaChoice, reader: UrdfReader) -> Inertia | None:
    inertial = link.first("inertial")
    if inertial is None:
        return None
    what = f'link "{name}"'
    before = len(reader.problems)
    mass, tensor = inertial.first("mass"), inertial.first("inertia")
    for part, found in (("mass", mass), ("inertia", tensor)):
        if found is None:
            reader.problem(inertial, f"{what}: <inertial> needs <{part}>")
    if mass is None or tensor is None:
        return Inertia(0.0)
    value = reader.number(mass, "value", None, what)
    if value < 0.0:
        reader.problem(mass, f"{what}: mass must not be negative, found {value:g}")
    xx, yy, zz = (reader.number(tensor, key, None, what) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (reader.number(tensor, key, 0.0, what) for key in ("ixy", "ixz", "iyz"))
    com, quat = reader.pose(inertial, what)
    given = Inertia(value, com=com, moments=(xx, yy, zz), quat_wxyz=quat, products=(xy, xz, yz))
    return given if len(reader.problems) > before else as_chosen(given, name, tensor, choice, reader)


class _ShapeMaker:
    """Makes the shapes of one link."""

    def __init__(
        self, link: str, reader: UrdfReader, colors: dict[str, Color], meshes: dict[Path, Mesh], *, has_mass: bool
    ) -> None:
        self.link = link
        self.what = f'link "{link}"'
        self.reader = reader
        self.colors = colors
        self.meshes = meshes
        self.has_mass = has_mass

    def collision(self, element: Element, density: float) -> Shape | None:
        """A shape that collides."""
        return self._shape(element, density=density, group=1, mask=1)

    def visual(self, element: Element) -> Shape | None:
        """A shape that is only looked at."""
        material = element.first("material")
        options: dict[str, Any] = {}
        if material is not None:
            color = _color(material, self.reader) or self.colors.get(material.attributes.get("name", ""))
            if color is not None:
                options["color"] = color
            elif not material.all("texture"):
                name = material.attributes.get("name", "")
                self.reader.ignore("materials that are not defined, grey is shown", f'"{name}" in {self.what}')
        return self._shape(element, density=0.0, group=0, mask=0, **options)

    def _shape(self, element: Element, **options: Any) -> Shape | None:
        geometry = element.first("geometry")
        if geometry is None or not geometry.children:
            self.reader.problem(element, f"{self.what}: <{element.tag}> needs a <geometry> with a shape in it")
            return None
        solid = geometry.children[0]
        collides = element.name == "collision"
        if not collides and self._has_no_size(solid):
            self.reader.ignore("visuals of zero size left out", f"<{solid.tag}> in {self.what}")
            return None
        maker = self._maker(solid, collides)
        if maker is None:
            return None
        position, quat = self.reader.pose(element, self.what)
        name = element.attributes.get("name") or None
        shape: Shape = maker(name=name, position=position, quat_wxyz=quat, line=element.line, **options)
        return shape

    def _maker(self, solid: Element, collides: bool) -> Any:
        """A maker of the shape with its sizes filled in, None for one that cannot be kept."""
        kind = solid.name
        if kind == "box":
            x, y, z = self._sizes(solid, "size", 3)
            return partial(Box, size=(x, y, z))
        if kind == "sphere":
            return partial(Sphere, radius=self._size(solid, "radius"))
        if kind in ("cylinder", "capsule"):
            make = Cylinder if kind == "cylinder" else Capsule
            return partial(make, radius=self._size(solid, "radius"), length=self._size(solid, "length"))
        if kind == "mesh":
            return self._mesh(solid, collides)
        known = ", ".join(_SHAPES)
        self.reader.ignore(f"shapes left out, as Poise reads {known}", f"<{solid.tag}> in {self.what}")
        return None

    def _has_no_size(self, solid: Element) -> bool:
        """Whether a size is 0 and none is negative; what is no number is complained of elsewhere."""
        given = [solid.attributes[name].split() for name in _SIZES.get(solid.name, ()) if name in solid.attributes]
        try:
            sizes = [float(word) for words in given for word in words]
        except ValueError:
            return False
        return 0.0 in sizes and (solid.name == "mesh" or min(sizes) >= 0.0)

    def _size(self, solid: Element, attribute: str) -> float:
        return self._sizes(solid, attribute, 1)[0]

    def _sizes(self, solid: Element, attribute: str, count: int) -> tuple[float, ...]:
        before = len(self.reader.problems)
        values = self.reader.numbers(solid, attribute, count, None, self.what)
        if len(self.reader.problems) == before and not all(0.0 < value < float("inf") for value in values):
            found = solid.attributes[attribute]
            message = f'{self.what}: {attribute} of <{solid.tag}> must be positive, found "{found}"'
            self.reader.problem(solid, message)
        return values

    def _mesh(self, solid: Element, collides: bool) -> Any:
        uri = self.reader.text(solid, "filename", self.what)
        scale = np.array(self.reader.vector(solid, "scale", (1.0, 1.0, 1.0), self.what))
        if uri is None:
            return None
        if not np.all(scale):
            self.reader.problem(
                solid, f'{self.what}: scale of a mesh must not be 0, found "{solid.attributes["scale"]}"'
            )
            return None
        role = "collision" if collides else "visual"
        mesh = self._read(solid, uri, role)
        if mesh is None:
            return None
        vertices = mesh.vertices * scale
        if not collides:
            return self._seen_mesh(mesh, vertices, mirrored=bool(np.prod(scale) < 0), what=f'"{uri}" in {self.what}')
        if is_flat(vertices):
            self.reader.problem(solid, f'{self.what}: mesh "{uri}" is flat and bounds no volume')
            return None
        if not is_convex(vertices, mesh.faces):
            self.reader.ignore("collision meshes that collide as their convex hulls", f'"{uri}" in {self.what}')
        return partial(ConvexMesh, vertices=vertices)

    def _seen_mesh(self, mesh: Mesh, vertices: Any, *, mirrored: bool, what: str) -> Any:
        """A visual mesh: its triangles, except those without an area."""
        a, b, c = (vertices[mesh.faces[:, k]] for k in range(3))
        faces = mesh.faces[np.any(np.cross(b - a, c - a) != 0.0, axis=1)]
        if not len(faces):
            self.reader.ignore("visual meshes without any area left out", what)
            return None
        faces = faces[:, ::-1] if mirrored else faces
        return partial(TriangleMesh, vertices=vertices, faces=faces, open=not is_closed(faces))

    def _read(self, solid: Element, uri: str, role: str) -> Mesh | None:
        """The mesh, None where it is missing or of a format that Poise does not read; broken files are problems."""
        ending = Path(uri).suffix.lower()
        path = self.reader.find(uri)
        reason = "not found (relative to the file, or in package folders above it)"
        if path is not None and ending not in MESH_FORMATS:
            reason = f"of a format that Poise does not read (it reads {' and '.join(MESH_FORMATS)})"
        elif path is not None:
            try:
                return self.meshes.setdefault(path, self.meshes.get(path) or read_mesh(path))
            except SceneError as error:
                self.reader.problem(solid, f'{self.what}: mesh "{uri}": {error.problems[0].message}')
                return None
        if role == "collision" and not self.has_mass:
            self.reader.problem(solid, f'{self.what} has no <inertial>, and its mesh "{uri}" is {reason}')
        else:
            self.reader.ignore(f"{role} meshes left out, {reason}", f'"{uri}" in {self.what}')
        return None
