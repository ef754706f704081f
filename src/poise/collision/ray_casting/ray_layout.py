"""Memory layout of the ray kernels: surfaces prepared for rays, rays, hits."""

from __future__ import annotations

import numpy as np

from poise.collision.mesh_bvh import node_arrays, triangle_tree
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.vec import Vec3
from poise.model.hull import convex_hull
from poise.model.shape_arrays import Solid, Solids

SURFACES = View(
    "Surfaces",
    constant=True,
    plane_start=Index,  # into planes, of hulls
    plane_normal=Vec3,  # unit, outward
    plane_offset=Real,  # m
    field_high=Real,  # greatest height of a field, of every shape; m
    node_start=Index,  # into nodes, of meshes
    node_low=Vec3,
    node_high=Vec3,
    node_child=Index,  # index within the mesh; −1 of a leaf
    node_first=Index,  # index of a triangle, of all
    node_count=Index,
    corner=Vec3,  # three of each triangle, in the order of the tree
    face_normal=Vec3,  # unit
)
"""Besides `collision_layout.SHAPES`: planes of hulls and trees over the triangles of meshes."""

RAYS = View(
    "Rays",
    n_groups=Count,
    origin=Vec3,
    direction=Vec3,  # unit
    distance=Real,  # in: the range; out: of the hit; m
    shape=Int,  # −1 for no hit
    normal=Vec3,
    seen=Index,  # of every shape: 0 if rays pass through it
    stack=Index,  # nodes of a tree that are still to be visited
)
"""Groups of as many rays as there are lanes."""

STACK = 128
"""Size of the stack of nodes: a balanced tree over 2³² triangles needs a quarter of it."""


def surfaces_block(solids: Solids, width: Width) -> Block:
    """Data of the hulls, fields and meshes among shapes for rays."""
    planes = [_planes(solids, i) for i in range(len(solids))]
    meshes = [_triangles(solids, i) for i in range(len(solids))]
    first = np.cumsum([0, *(len(mesh["face_normal"]) for mesh in meshes)])
    for mesh, start in zip(meshes, first, strict=False):
        mesh["node_first"] = mesh["node_first"] + np.int32(start)
    pools = {name: [mesh[name] for mesh in meshes] for name in _NOTHING}
    return SURFACES.block(
        Width(width.elem),
        plane_start=_starts([offset for _, offset in planes]),
        plane_normal=np.concatenate([*(normal for normal, _ in planes), np.zeros((0, 3))]),
        plane_offset=np.concatenate([*(offset for _, offset in planes), np.zeros(0)]),
        field_high=np.array([_highest(solids, i) for i in range(len(solids))], np.float64),
        node_start=_starts(pools["node_child"]),
        **{name: np.concatenate([*pools[name], empty]) for name, empty in _NOTHING.items()},
    )


_NOTHING: dict[str, np.ndarray] = {
    "node_low": np.zeros((0, 3)),
    "node_high": np.zeros((0, 3)),
    "node_child": np.zeros(0, np.int32),
    "node_first": np.zeros(0, np.int32),
    "node_count": np.zeros(0, np.int32),
    "corner": np.zeros((0, 3)),
    "face_normal": np.zeros((0, 3)),
}


def _highest(solids: Solids, i: int) -> float:
    heights = solids.heights[solids.height_start[i] : solids.height_start[i + 1]]
    return float(heights.max()) if len(heights) else 0.0


def _corners(solids: Solids, i: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) vertices and (m, 3) faces of a shape, without faces of zero area."""
    vertices = solids.vertices[solids.vertex_start[i] : solids.vertex_start[i + 1]]
    faces: np.ndarray = solids.faces[solids.face_start[i] : solids.face_start[i + 1]]
    if not len(faces):  # the shape does not collide, so its hull was not computed
        faces = convex_hull(vertices)
    return vertices, faces[np.linalg.norm(_crosses(vertices[faces]), axis=1) > 0.0]


def _crosses(corners: np.ndarray) -> np.ndarray:
    """(m, 3) normals of triangles (m, 3, 3), with twice their areas as lengths; m²."""
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _normals(corners: np.ndarray) -> np.ndarray:
    across = _crosses(corners)
    return across / np.linalg.norm(across, axis=1, keepdims=True)


def _planes(solids: Solids, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Half spaces n · x ≤ offset whose intersection is a hull.

    Each touches the outermost vertex, so that the inaccurate normal of a sliver cuts nothing off the shape.
    """
    if solids.kind[i] != Solid.HULL:
        return np.zeros((0, 3)), np.zeros(0)
    vertices, faces = _corners(solids, i)
    normals = _normals(vertices[faces])
    _, first = np.unique(np.round(normals, 12), axis=0, return_index=True)  # triangles of one flat face
    normals = normals[np.sort(first)]
    return normals, (normals @ vertices.T).max(axis=1)


def _triangles(solids: Solids, i: int) -> dict[str, np.ndarray]:
    """Tree, corners and normals of a mesh."""
    if solids.kind[i] != Solid.MESH:
        return dict(_NOTHING)
    vertices, faces = _corners(solids, i)
    tree = triangle_tree(vertices, faces)
    ordered = faces[tree.order]
    return node_arrays(tree, float(solids.reach[i])) | {
        "corner": vertices[ordered].reshape(-1, 3),
        "face_normal": _normals(vertices[ordered]),
    }


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int32)
