"""Shapes as arrays: what collision, rays and pictures read.

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

Vertices of hulls and meshes are relative to the centre of their box, which `position` has in it. Points of a convex
mesh that are no corners of its hull are left out. A convex mesh that is only looked at and has faces is a mesh: it is
shown as it is.
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
    """Kinds of shapes, in the order in which a pair of two kinds is handled: the lesser is A."""

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
    """The shapes of a model, in the order of its bodies. Nobody can change the arrays."""

    names: tuple[str, ...]
    """Of the shape, else its body's and the number of the shape on it."""
    kind: Indices
    """(n,) a `Solid`."""
    body: Indices
    """(n,)"""
    link: Indices
    """(n,) link that carries the shape, −1 where it never moves."""
    position: Floats
    """(n, 3) centre in the link's frame, in the world's where there is none; m."""
    quat_wxyz: Floats
    """(n, 4) likewise."""
    size: Floats
    """(n, 3) see the table above; m."""
    reach: Floats
    """(n,) radius of a sphere about the centre that holds the shape; inf of a plane; m. A field has ground under it,
    as deep as the greater half of its extents."""
    margin: Floats
    """(n,) distance at which contacts begin to be reported; m."""
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
    """(…, 3) triangles of hulls and meshes, counter-clockwise from outside, numbers of the shape's own vertices. Hulls
    that touch nothing and were given none have none."""
    neighbor_start: Indices
    """(number of vertices + 1,) into `neighbors`."""
    neighbors: Indices
    """Other ends of the edges at each vertex of a hull or mesh that things touch, numbers in `vertices`."""
    beyond: Indices
    """(…, 3) for each edge of each of `faces` of a mesh (corner 0 to 1, 1 to 2, 2 to 0) the third corner of the
    triangle beyond it, a number of the shape's own vertices; −1 at a border, of hulls, and of what is only seen."""
    side_start: Indices
    """(number of sides + 1,) into `side_corners`."""
    side_corners: Indices
    """Corners of each flat side of a hull, counter-clockwise from outside, numbers in `vertices`."""
    side_normal: Floats
    """(…, 3) of each flat side, outward, unit."""
    around_start: Indices
    """(number of vertices + 1,) into `around`."""
    around: Indices
    """Flat sides about each vertex of a hull, numbers in `side_normal`."""
    grid: Indices
    """(n, 2) rows (along y) and columns (along x) of a height field; 0 of others."""
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
    """Nothing to collide with."""
    return gather_solids([], np.zeros(0, np.int32), np.zeros((0, 3)), np.zeros((0, 4)))


def gather_solids(
    bodies: Sequence[Body], link: Indices, position: Floats, quat_wxyz: Floats, rules: SceneRules | None = None
) -> Solids:
    """Shapes of all bodies, which have their links and their poses on them; `rules` combine surfaces that name none."""
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
    """What is known of a shape in its own frame."""
    kind = next(KINDS[known] for known in type(shape).__mro__ if known in KINDS)
    name = shape.name or f"{body.name}[{number}]"
    row = {"shape": shape, "name": name, "kind": int(kind), "centre": np.zeros(3), "grid": (0, 0)}
    row |= {"vertices": np.zeros((0, 3)), "faces": np.zeros((0, 3)), "heights": np.zeros(0), "hull": None}
    row["touches"] = shape.group != 0 or shape.mask != 0
    return row | _form(shape)


def _form(shape: Shape) -> dict[str, Any]:
    """Size and reach, and where a shape has them its points."""
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
    unseen = shape.group == 0 and shape.mask == 0  # a hull takes long, and nothing touches this one
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
    reach = float(np.linalg.norm((x, y, np.abs(heights).max() + max(x, y))))  # with the ground under it
    return {
        "size": (x, y, float(heights.min())),
        "reach": reach,
        "grid": heights.shape,
        "heights": heights.reshape(-1),
    }


def _surface(materials: list[Material]) -> dict[str, Any]:
    """What touches are like, of each shape."""
    names = ("friction", "restitution", "torsional_friction", "rolling_friction", "compliance")
    return {name: np.array([getattr(one, name) for one in materials], np.float64).reshape(-1) for name in names}


def _topology(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Edges of all hulls and meshes, and sides of hulls. The vertices of other shapes have none."""
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
