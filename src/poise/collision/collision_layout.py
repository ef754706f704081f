"""Memory layout of the collision kernels: shapes, their poses, near pairs, contacts.

A pair function takes two shapes A and B, the kind of A not above that of B (`model.shape_arrays.Solid`), and computes
contact points: a gap (negative where they overlap), a unit normal from A to B, a point half way between the two
surfaces, and a feature, a number that is constant from frame to frame while the same corners, edges and faces touch.
There are two sorts:

    light    a formula without branches on `Placed` shapes, in lanes of worlds as in one world
    heavy    a kernel on plain numbers that writes a `MANIFOLD`; in lanes it is called for each world that needs it
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from poise.collision.mesh_bvh import node_arrays, triangle_tree
from poise.dynamics.dynamics_layout import matrices
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.values import Value
from poise.kernel.vec import Mat3, Vec3
from poise.model.shape_arrays import Solid, Solids

MOST_TOUCHES = 8
"""Maximum number of contact points of one pair."""


class Placed(Value):
    """A shape in the world: centre p (m), rotation R, half its size (see `model.shape_arrays`)."""

    fields = (("p", Vec3), ("R", Mat3), ("half", Vec3))
    __slots__ = ("R", "half", "p")
    p: Any
    R: Any
    half: Any


class Touch(Value):
    """A contact point of two shapes that touch or nearly do: gap (m), normal from A to B, point half way (m)."""

    fields = (("gap", None), ("normal", Vec3), ("point", Vec3))
    __slots__ = ("gap", "normal", "point")
    gap: Any
    normal: Any
    point: Any


SHAPES = View(
    "Shapes",
    constant=True,
    n_shapes=Count,
    kind=Index,
    body=Index,
    link=Index,  # −1 for a static shape
    root=Index,  # first link of its tree
    tree=Count,  # the same if all moving links are one tree, else −1
    position=Vec3,  # on the link
    rotation=Mat3,
    size=Vec3,
    bound=Vec3,  # half extents of a box about the centre, in the shape's frame; m
    reach=Real,  # radius about the centre; infinite for planes
    margin=Real,
    vertex_start=Index,
    vertex=Vec3,
    face_start=Index,
    face=Index,  # three numbers each
    neighbor_start=Index,  # of each vertex
    neighbor=Index,  # vertices of hulls
    side_start=Index,  # of each face of a hull
    side_corner=Index,  # vertices
    side_normal=Vec3,
    around_start=Index,  # of each vertex
    around=Index,  # faces of hulls
    beyond=Index,  # of each edge of each triangle of a mesh: third corner of the neighbour; −1 at a border
    node_start=Index,  # of the tree over the triangles of a mesh
    node_low=Vec3,
    node_high=Vec3,
    node_child=Index,  # index within the mesh; −1 of a leaf
    node_first=Index,  # into node_face
    node_count=Index,
    node_face=Index,  # triangles in the order of the tree, indices within the mesh
    grid=Index,  # two numbers each: rows, columns
    height_start=Index,
    height=Real,
)

PLACES = View("Places", position=Vec3, rotation=Mat3)
"""Poses of every shape, in the world."""

BOXES = View("Boxes", low_x=Real, low_y=Real, low_z=Real, high_x=Real, high_y=Real, high_z=Real)
"""Boxes of every shape, in the order of ranks (see `pair_filter.ranks`); m."""

PAIRS = View(
    "Pairs",
    n_pairs=Count,
    a=Index,
    b=Index,
)

NEAR = View(
    "Near",
    room=Count,
    found=Index,  # (1) pairs whose boxes overlap, possibly more than the capacity
    a=Index,  # shapes; ranks during the broadphase
    b=Index,
    lanes=Index,  # bit k is set where they overlap in lane k
    # work space for sorting
    other_a=Index,
    other_b=Index,
    other_lanes=Index,
)
"""Near pairs for the narrowphase, sorted by the ranks of A and of B."""

CONTACTS = View(
    "Contacts",
    room=Count,
    lanes=Count,
    table_size=Count,  # a power of two
    count=Int,  # (1) contacts of each world, possibly more than the capacity
    id=Int,  # 31 bits, from A, B and the feature (see `contact_ids`)
    feature=Int,
    a=Int,  # shapes
    b=Int,
    gap=Real,  # m; negative where they overlap
    normal=Vec3,  # from A to B
    point=Vec3,  # half way between the surfaces; m
    bend=Vec3,  # G of `contact_acceleration`, for acceleration level, if it was requested; m/s²
    listed=Int,  # 1 if it has rows; set with the rows
    # work space
    spare=Touch,
    table=Index,
)

AHEAD = View("Ahead", ahead=Real)
"""(1) Gap up to which each world has contacts; m."""

MANIFOLD = View(
    "Manifold",
    # addresses of the pair entries for boxes, for other convex shapes, and for surfaces; see `pair_entries`
    boxes=Count,
    convex=Count,
    surfaces=Count,
    placed=Placed,  # (2) the shapes of the pair
    limit=Real,  # (1) gap up to which contact points count; m
    n=Index,  # (1) contact points found
    feature=Index,
    gap=Real,
    normal=Vec3,
    point=Vec3,
    # work space
    points=Vec3,
    numbers=Real,
    whole=Index,
)
"""Output of heavy pair functions, in plain numbers."""
WORK_ROOM = {"points": 4096, "numbers": 4096, "whole": 16384}


def shapes_block(solids: Solids, width: Width, link_root: np.ndarray) -> Block:
    """The shapes of a model in the precision of a width."""
    roots = np.where(solids.link >= 0, link_root[np.maximum(solids.link, 0)] if len(link_root) else -1, -1)
    return SHAPES.block(
        Width(width.elem),
        n_shapes=len(solids),
        kind=solids.kind,
        body=solids.body,
        link=solids.link,
        root=roots.astype(np.int32),
        tree=int(roots.max()) if len(roots) and (roots[roots >= 0] == roots.max()).all() else -1,
        position=solids.position,
        rotation=matrices(solids.quat_wxyz) if len(solids) else np.zeros((0, 9)),
        size=solids.size,
        bound=_bounds(solids),
        reach=solids.reach,
        margin=solids.margin,
        vertex_start=solids.vertex_start,
        vertex=solids.vertices,
        face_start=solids.face_start,
        face=solids.faces.reshape(-1),
        neighbor_start=solids.neighbor_start,
        neighbor=solids.neighbors,
        side_start=solids.side_start,
        side_corner=solids.side_corners,
        side_normal=solids.side_normal,
        around_start=solids.around_start,
        around=solids.around,
        beyond=solids.beyond.reshape(-1),
        **_trees(solids),
        grid=solids.grid.reshape(-1),
        height_start=solids.height_start,
        height=solids.heights,
    )


_NO_TREE: dict[str, np.ndarray] = {
    "node_low": np.zeros((0, 3)),
    "node_high": np.zeros((0, 3)),
    "node_child": np.zeros(0, np.int32),
    "node_first": np.zeros(0, np.int32),
    "node_count": np.zeros(0, np.int32),
    "node_face": np.zeros(0, np.int32),
}


def _trees(solids: Solids) -> dict[str, np.ndarray]:
    """Trees over the triangles of meshes that collide."""
    trees = [_tree(solids, i) for i in range(len(solids))]
    faces = np.cumsum([0, *(len(tree["node_face"]) for tree in trees)])
    for tree, first in zip(trees, faces, strict=False):
        tree["node_first"] = tree["node_first"] + np.int32(first)
    starts = np.cumsum([0, *(len(tree["node_child"]) for tree in trees)])
    pools = {name: np.concatenate([*(tree[name] for tree in trees), none]) for name, none in _NO_TREE.items()}
    return pools | {"node_start": starts.astype(np.int32)}


def _tree(solids: Solids, i: int) -> dict[str, np.ndarray]:
    if solids.kind[i] != Solid.MESH or (solids.group[i] == 0 and solids.mask[i] == 0):
        return dict(_NO_TREE)
    vertices = solids.vertices[solids.vertex_start[i] : solids.vertex_start[i + 1]]
    tree = triangle_tree(vertices, solids.faces[solids.face_start[i] : solids.face_start[i + 1]])
    return node_arrays(tree, float(solids.reach[i])) | {"node_face": tree.order}


def _bounds(solids: Solids) -> np.ndarray:
    """(n, 3) half extents of a box about each centre, in the shape's frame; m."""
    radius, half, _ = solids.size.T
    top = np.array([np.abs(solids.heights[i:j]).max(initial=0.0) for i, j in pairwise(solids.height_start)])
    bound = solids.size.copy()
    for kind, box in (
        (Solid.PLANE, (solids.reach,) * 3),
        (Solid.SPHERE, (radius,) * 3),
        (Solid.CAPSULE, (radius, radius, radius + half)),
        (Solid.CYLINDER, (radius, radius, half)),
        (Solid.FIELD, (radius, half, top + np.maximum(radius, half))),  # with the ground below it
    ):
        here = solids.kind == kind
        bound[here] = np.stack(box, axis=1)[here]
    return bound


def pairs_block(pairs: np.ndarray, width: Width) -> Block:
    """(n, 2) indices of shapes, the kind of the first not above that of the second."""
    n = len(pairs)
    return PAIRS.block(width, n_pairs=n, a=pairs[:, 0], b=pairs[:, 1])


def contacts_block(width: Width, room: int) -> Block:
    """Memory for contacts."""
    table = 1 << (2 * room).bit_length()
    counts = {"room": room, "lanes": width.lanes, "table_size": table}
    sizes = dict.fromkeys(CONTACTS.fields, room) | {"count": 1, "spare": 1, "table": table}
    return CONTACTS.block(width, **sizes | counts)


def near_block(width: Width, room: int, sorts: bool) -> Block:
    """Memory for pairs, and for sorting them."""
    other = dict.fromkeys(("other_a", "other_b", "other_lanes"), room if sorts else 0)
    return NEAR.block(width, room=room, found=1, a=room, b=room, lanes=room, **other)


def boxes_block(width: Width, n: int) -> Block:
    """Boxes of n shapes."""
    return BOXES.block(width, **dict.fromkeys(BOXES.fields, n))
