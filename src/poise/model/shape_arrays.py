"""Shapes as arrays, for collision, rays and pictures.

| kind | size |
|---|---|
| plane | unused: the half space z ≤ 0 of its frame |
| sphere | radius |
| capsule | radius, half the length of its axis |
| box | half of the edges |
| cylinder | radius, half the length |
| ellipsoid | half of the axes |
| hull | half of the extents about the centre of its vertices' box |
| field | half of the extents in x and y, least height |
| mesh | half of the extents about the centre of its vertices' box |

Vertices of hulls and meshes are relative to the centre of their box, which `position` includes. Points of a convex mesh
that are not corners of its hull are dropped. A visual convex mesh with faces is a mesh: it is drawn unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.model.massprops import mesh_arrays
from poise.model.mesh_topology import neighbors, third_corners
from poise.model.polytopes import polytope
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
from poise.model.surface_rules import SceneRules, surface_kinds
from poise.motion.rotations import quat_multiply, quat_normalize, quat_to_matrix

if TYPE_CHECKING:
    from poise.model.scene import Body

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]


class Solid(IntEnum):
    """Kinds of shapes. Their order defines the roles in a pair: the lesser kind is A."""

    PLANE = 0
    SPHERE = 1
    CAPSULE = 2
    BOX = 3
    CYLINDER = 4
    ELLIPSOID = 5
    HULL = 6
    FIELD = 7
    MESH = 8


KINDS: dict[type[Shape], Solid] = {
    Plane: Solid.PLANE,
    Sphere: Solid.SPHERE,
    Capsule: Solid.CAPSULE,
    Box: Solid.BOX,
    Cylinder: Solid.CYLINDER,
    Ellipsoid: Solid.ELLIPSOID,
    ConvexMesh: Solid.HULL,
    HeightField: Solid.FIELD,
    TriangleMesh: Solid.MESH,
}


@dataclass(frozen=True, eq=False, repr=False)
class Solids:
    """The shapes of a model, in the order of its bodies, as read-only arrays."""

    names: tuple[str, ...]
    """Name of the shape, else that of its body with the number of the shape on it."""
    kind: Indices
    """(n,) a `Solid`."""
    body: Indices
    """(n,)"""
    link: Indices
    """(n,) link of the shape, −1 for a static shape."""
    position: Floats
    """(n, 3) centre in the link's frame, or in the world's for a static shape; m."""
    quat_wxyz: Floats
    """(n, 4) orientation, likewise."""
    size: Floats
    """(n, 3) see the table above; m."""
    reach: Floats
    """(n,) radius of the bounding sphere about the centre; inf for a plane; m. A field has ground below it, as deep as
    the larger of its half extents."""
    margin: Floats
    """(n,) distance below which contacts are reported; m."""
    group: NDArray[np.int64]
    """(n,) bits."""
    mask: NDArray[np.int64]
    """(n,) bits."""
    friction: Floats
    """(n,) sliding."""
    restitution: Floats
    """(n,)"""
    torsional_friction: Floats
    """(n,) m."""
    rolling_friction: Floats
    """(n,) m."""
    compliance: Floats
    """(n,) m/N."""
    surface_kind: Indices
    """(n,) kind of the surface, a row and a column of `surface_rules`."""
    surface_rules: Indices
    """(kinds, kinds, 4) a `Combine` for friction, torsional and rolling friction and restitution of a contact."""
    color: Floats
    """(n, 4)"""
    vertex_start: Indices
    """(n + 1,) into `vertices`."""
    vertices: Floats
    """(…, 3) of hulls and meshes, in the shape's frame, from its centre; m."""
    face_start: Indices
    """(n + 1,) into `faces`."""
    faces: Indices
    """(…, 3) triangles of hulls and meshes, counter-clockwise from outside, indices of the shape's own vertices. Visual
    hulls without given faces have none."""
    neighbor_start: Indices
    """(number of vertices + 1,) into `neighbors`."""
    neighbors: Indices
    """Other ends of the edges at each vertex of a colliding hull or mesh, indices in `vertices`."""
    beyond: Indices
    """(…, 3) for each edge of each of `faces` of a mesh (corner 0 to 1, 1 to 2, 2 to 0) the third corner of the
    neighbour, an index of the shape's own vertices; −1 at a border, for hulls, and for visual shapes."""
    side_start: Indices
    """(number of sides + 1,) into `side_corners`."""
    side_corners: Indices
    """Corners of each face of a hull, counter-clockwise from outside, indices in `vertices`."""
    side_normal: Floats
    """(…, 3) of each face, outward, unit."""
    around_start: Indices
    """(number of vertices + 1,) into `around`."""
    around: Indices
    """Faces around each vertex of a hull, indices in `side_normal`."""
    grid: Indices
    """(n, 2) rows (along y) and columns (along x) of a height field; 0 for others."""
    height_start: Indices
    """(n + 1,) into `heights`."""
    heights: Floats
    """(…,) of height fields, row by row; m."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        counts = {Solid(k).name.lower(): int(n) for k, n in enumerate(np.bincount(self.kind, minlength=9)) if n}
        return f"<Solids: {counts}>"


def no_solids() -> Solids:
    """No shapes."""
    return gather_solids([], np.zeros(0, np.int32), np.zeros((0, 3)), np.zeros((0, 4)))


def gather_solids(
    bodies: Sequence[Body], link: Indices, position: Floats, quat_wxyz: Floats, rules: SceneRules | None = None
) -> Solids:
    """Shapes of all bodies with given links and poses on them; `rules` are for surfaces without their own."""
    rows = [_row(body, k, shape) for body in bodies for k, shape in enumerate(body.shapes)]
    owner = [b for b, body in enumerate(bodies) for _ in body.shapes]
    places = [_placed(row, position[b], quat_wxyz[b]) for row, b in zip(rows, owner, strict=True)]
    materials = [row["shape"].material for row in rows]
    kinds, table = surface_kinds(materials, rules or SceneRules())
    pools = {name: [row[name] for row in rows] for name in ("vertices", "faces", "heights")}
    return Solids(
        names=tuple(row["name"] for row in rows),
        kind=np.array([row["kind"] for row in rows], np.int32),
        body=np.array(owner, np.int32),
        link=np.array([link[b] for b in owner], np.int32),
        position=np.array([place for place, _ in places]).reshape(-1, 3),
        quat_wxyz=np.array([quat for _, quat in places]).reshape(-1, 4),
        size=np.array([row["size"] for row in rows]).reshape(-1, 3),
        reach=np.array([row["reach"] for row in rows]).reshape(-1),
        margin=_column(rows, "margin"),
        group=np.array([row["shape"].group for row in rows], np.int64).reshape(-1),
        mask=np.array([row["shape"].mask for row in rows], np.int64).reshape(-1),
        **_surface(materials),
        surface_kind=kinds,
        surface_rules=table,
        color=np.array([row["shape"].color for row in rows], np.float64).reshape(-1, 4),
        vertex_start=_starts(pools["vertices"]),
        vertices=_pool(pools["vertices"], 3),
        face_start=_starts(pools["faces"]),
        faces=_pool(pools["faces"], 3).astype(np.int32),
        **_topology(rows),
        grid=np.array([row["grid"] for row in rows], np.int32).reshape(-1, 2),
        height_start=_starts(pools["heights"]),
        heights=_pool(pools["heights"], 1).reshape(-1),
    )


def _row(body: Body, number: int, shape: Shape) -> dict[str, Any]:
    """Geometry of a shape in its own frame."""
    kind = next(KINDS[known] for known in type(shape).__mro__ if known in KINDS)
    name = shape.name or f"{body.name}[{number}]"
    row = {"shape": shape, "name": name, "kind": int(kind), "centre": np.zeros(3), "grid": (0, 0)}
    row |= {"vertices": np.zeros((0, 3)), "faces": np.zeros((0, 3)), "heights": np.zeros(0), "hull": None}
    row["touches"] = shape.group != 0 or shape.mask != 0
    return row | _form(shape)


def _form(shape: Shape) -> dict[str, Any]:
    """Size and reach, and the points of shapes that have them."""
    if isinstance(shape, Plane):
        return {"size": (0.0, 0.0, 0.0), "reach": inf}
    if isinstance(shape, Sphere):
        return {"size": (shape.radius, 0.0, 0.0), "reach": shape.radius}
    if isinstance(shape, Capsule):
        half = 0.5 * shape.length
        return {"size": (shape.radius, half, 0.0), "reach": shape.radius + half}
    if isinstance(shape, Cylinder):
        half = 0.5 * shape.length
        return {"size": (shape.radius, half, 0.0), "reach": float(np.hypot(shape.radius, half))}
    if isinstance(shape, (Box, Ellipsoid)):
        halves = 0.5 * np.array(shape.size, np.float64)
        return {"size": halves, "reach": float(np.linalg.norm(halves) if isinstance(shape, Box) else halves.max())}
    if isinstance(shape, HeightField):
        return _field_form(shape)
    assert isinstance(shape, (ConvexMesh, TriangleMesh))
    unseen = shape.group == 0 and shape.mask == 0  # a hull is expensive, and this shape does not collide
    hull = polytope(shape.vertices) if isinstance(shape, ConvexMesh) and not unseen else None
    if hull is not None:
        vertices, faces = hull.vertices, hull.faces
    elif shape.faces is None:
        vertices, faces = np.asarray(shape.vertices, np.float64), np.zeros((0, 3), np.int64)
    else:
        vertices, faces = mesh_arrays(shape)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    centre = 0.5 * (low + high)
    apart = vertices - centre
    reach = float(np.linalg.norm(apart, axis=1).max())
    size = 0.5 * (high - low)
    kind = Solid.HULL if hull is not None or not len(faces) else Solid.MESH
    form = {"centre": centre, "size": size, "reach": reach, "vertices": apart, "faces": faces, "hull": hull}
    return form | {"kind": int(kind)}


def _field_form(shape: HeightField) -> dict[str, Any]:
    heights = np.asarray(shape.heights, np.float64)
    x, y = (0.5 * float(side) for side in shape.extent)
    reach = float(np.linalg.norm((x, y, np.abs(heights).max() + max(x, y))))  # with the ground below it
    return {
        "size": (x, y, float(heights.min())),
        "reach": reach,
        "grid": heights.shape,
        "heights": heights.reshape(-1),
    }


def _surface(materials: list[Material]) -> dict[str, Any]:
    """Contact properties of each shape."""
    names = ("friction", "restitution", "torsional_friction", "rolling_friction", "compliance")
    return {name: np.array([getattr(one, name) for one in materials], np.float64).reshape(-1) for name in names}


def _topology(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Edges of all hulls and meshes, and faces of hulls. The vertices of other shapes have none."""
    n_vertices = n_sides = 0
    lists: dict[str, list[NDArray[Any]]] = {name: [] for name in ("neighbors", "corners", "around", "normals")}
    counts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("neighbors", "corners", "around")}
    for row in rows:
        hull, none = row["hull"], np.zeros(len(row["vertices"]), np.int64)
        starts_here, ends = _links(row)
        counts["neighbors"].append(np.diff(starts_here))
        lists["neighbors"].append(ends + n_vertices)
        counts["around"].append(none if hull is None else np.diff(hull.around_start))
        if hull is not None:
            counts["corners"].append(np.diff(hull.side_start))
            lists["corners"].append(hull.side_corners + n_vertices)
            lists["around"].append(hull.around + n_sides)
            lists["normals"].append(hull.side_normal)
            n_sides += len(hull.side_normal)
        n_vertices += len(row["vertices"])
    starts = {name: np.concatenate(([0], *counts[name])).cumsum().astype(np.int32) for name in counts}
    flat = {name: np.concatenate((*lists[name], [])).astype(np.int32) for name in counts}
    return {
        "neighbor_start": starts["neighbors"],
        "neighbors": flat["neighbors"],
        "beyond": _pool([_beyond(row) for row in rows], 3).astype(np.int32),
        "side_start": starts["corners"],
        "side_corners": flat["corners"],
        "side_normal": _pool(lists["normals"], 3),
        "around_start": starts["around"],
        "around": flat["around"],
    }


def _links(row: dict[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbours of each vertex of a shape: starts, and the list."""
    n = len(row["vertices"])
    if row["hull"] is not None:
        return row["hull"].neighbor_start, row["hull"].neighbors
    if row["kind"] == Solid.MESH and row["touches"]:
        return neighbors(row["faces"], n)
    return np.zeros(n + 1, np.int64), np.zeros(0, np.int64)


def _beyond(row: dict[str, Any]) -> NDArray[np.int32]:
    faces = row["faces"]
    joined = row["kind"] == Solid.MESH and row["touches"]
    return third_corners(faces) if joined else np.full((len(faces), 3), -1, np.int32)


def _placed(row: dict[str, Any], position: Floats, quat_wxyz: Floats) -> tuple[Floats, Floats]:
    """Pose of a shape on its link, from that on its body."""
    shape = row["shape"]
    own = quat_normalize(shape.quat_wxyz)
    centre = np.array(shape.position, np.float64) + quat_to_matrix(own) @ row["centre"]
    return position + quat_to_matrix(quat_wxyz) @ centre, quat_normalize(quat_multiply(quat_wxyz, own))


def _column(rows: list[dict[str, Any]], name: str) -> Floats:
    return np.array([getattr(row["shape"], name) for row in rows], np.float64).reshape(-1)


def _starts(pool: list[NDArray[Any]]) -> Indices:
    return np.concatenate(([0], np.cumsum([len(part) for part in pool]))).astype(np.int32)


def _pool(pool: list[NDArray[Any]], width: int) -> Floats:
    return np.concatenate([*pool, np.zeros((0, width)).reshape((-1, width) if width > 1 else -1)]).astype(np.float64)
