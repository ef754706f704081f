"""Shapes and floors in a viser scene."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.gltf_skins import influence
from poise.model.massprops import mesh_arrays
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.model.shapes import ConvexMesh
from poise.motion.rotations import quat_conjugate, quat_multiply, quat_to_matrix
from poise.view.live.stage import add_squares

Floats = NDArray[np.float64]
Color = tuple[int, int, int]

_AROUND = 20
"""Number of sides of round shapes."""


def color_of(rgba: Any) -> Color:
    """Red, green and blue, 0 to 255."""
    r, g, b = (round(255.0 * min(max(float(part), 0.0), 1.0)) for part in rgba[:3])
    return r, g, b


def quats_of(rotation: Floats) -> Floats:
    """(n, 4) quaternions (w, x, y, z) of (n, 3, 3) rotations, accurate enough for display.

    >>> quats_of(np.array([np.diag((1.0, -1.0, -1.0))])).tolist()
    [[0.0, 1.0, 0.0, 0.0]]
    """
    x, y, z = rotation[:, 0, 0], rotation[:, 1, 1], rotation[:, 2, 2]
    squares = np.stack((1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z), axis=1)
    size = 0.5 * np.sqrt(np.maximum(squares, 0.0))
    R = rotation
    signs = np.stack((R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]), axis=1)
    half_turn = size[:, 0] < 1e-6  # the sense is arbitrary then, but the signs must be consistent
    k = size[:, 1:].argmax(axis=1)
    row = np.take_along_axis(R, k[:, None, None], axis=1)[:, 0]
    signs[half_turn] = row[half_turn]
    signs[half_turn, k[half_turn]] = 1.0
    size[:, 1:] = np.copysign(size[:, 1:], signs)
    return np.asarray(size / np.linalg.norm(size, axis=1, keepdims=True))


def capsule(radius: float, half: float) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices and triangles of a capsule along z.

    >>> vertices, faces = capsule(0.1, 0.2)
    >>> float(vertices[:, 2].max().round(9)), int(faces.max()) + 1 == len(vertices)
    (0.3, True)
    """
    rise = np.linspace(-0.5 * math.pi, 0.5 * math.pi, _AROUND // 2 + 2)[1:-1]
    rise = np.concatenate((rise[rise < 0.0], (0.0, 0.0), rise[rise > 0.0]))
    lift = np.where(np.arange(len(rise)) < len(rise) // 2, -half, half)
    turn = 2.0 * math.pi * np.arange(_AROUND) / _AROUND
    rings = np.stack(
        np.broadcast_arrays(
            radius * np.cos(rise)[:, None] * np.cos(turn),
            radius * np.cos(rise)[:, None] * np.sin(turn),
            (radius * np.sin(rise) + lift)[:, None],
        ),
        axis=-1,
    )
    ends = np.array([(0.0, 0.0, -half - radius), (0.0, 0.0, half + radius)])
    vertices = np.concatenate((rings.reshape(-1, 3), ends))
    n = rings.shape[0] * _AROUND
    number = np.arange(n).reshape(-1, _AROUND)
    beside = np.roll(number, -1, axis=1)
    a, b, c, d = number[:-1], beside[:-1], beside[1:], number[1:]
    sides = np.concatenate((np.stack((a, b, c), -1).reshape(-1, 3), np.stack((a, c, d), -1).reshape(-1, 3)))
    low = np.stack((np.full(_AROUND, n), beside[0], number[0]), -1)
    high = np.stack((np.full(_AROUND, n + 1), number[-1], beside[-1]), -1)
    return vertices, np.concatenate((sides, low, high))


def field(model: Model, shape: int) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices and triangles of a height field."""
    solids = model.solids
    rows, columns = (int(n) for n in solids.grid[shape])
    heights = solids.heights[int(solids.height_start[shape]) : int(solids.height_start[shape + 1])]
    half_x, half_y = solids.size[shape, :2]
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    faces = np.concatenate((np.stack((a, b, c), -1).reshape(-1, 3), np.stack((a, c, d), -1).reshape(-1, 3)))
    return np.stack((x.reshape(-1), y.reshape(-1), heights), axis=1), faces


def mesh(model: Model, shape: int) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices and triangles of a hull or a mesh."""
    solids = model.solids
    vertices = solids.vertices[int(solids.vertex_start[shape]) : int(solids.vertex_start[shape + 1])]
    faces = solids.faces[int(solids.face_start[shape]) : int(solids.face_start[shape + 1])]
    if not len(faces):  # nothing touches it, so its hull was not sought
        return mesh_arrays(ConvexMesh(vertices=vertices))
    return vertices, faces.astype(np.int64)


def on_body(model: Model, shape: int) -> tuple[Floats, Floats]:
    """Position and orientation of a shape in the frame of its body; models have them in that of the link."""
    solids, body = model.solids, int(model.solids.body[shape])
    at, turn = np.asarray(model.body_position[body]), np.asarray(model.body_quat_wxyz[body])
    inverse = quat_conjugate(turn)
    position = quat_to_matrix(inverse) @ (solids.position[shape] - at)
    return position, np.asarray(quat_multiply(inverse, solids.quat_wxyz[shape]))


def add_shape(scene: Any, name: str, model: Model, shape: int, color: Color, opacity: float | None) -> Any:
    """The node of a finite shape, on the node of its body."""
    solids = model.solids
    kind, (a, b, c) = Solid(int(solids.kind[shape])), solids.size[shape].tolist()
    position, quat = on_body(model, shape)
    look = {"color": color, "opacity": opacity, "position": position, "wxyz": quat}
    if kind == Solid.BOX:
        return scene.add_box(name, dimensions=(2 * a, 2 * b, 2 * c), **look)
    if kind == Solid.SPHERE:
        return scene.add_icosphere(name, radius=a, **look)
    if kind == Solid.ELLIPSOID:
        return scene.add_icosphere(name, radius=1.0, scale=(a, b, c), **look)
    if kind == Solid.CYLINDER:
        return scene.add_cylinder(name, radius=a, height=2 * b, **look)
    if kind == Solid.CAPSULE:
        return scene.add_mesh_simple(name, *capsule(a, b), **look)
    vertices, faces = field(model, shape) if kind == Solid.FIELD else mesh(model, shape)
    return scene.add_mesh_simple(name, vertices, faces, flat_shading=True, side="double", **look)


def add_skin(scene: Any, name: str, model: Model, skin: int, color: Color, opacity: float | None) -> Any:
    """The node of a skin, whose bones follow the bodies; each vertex uses its four strongest bones."""
    skins = model.skins
    bones = skins.bones(skin)
    strongest = influence(skins, skin)
    table = np.zeros((len(strongest.joints), len(bones)))
    np.add.at(table, (np.arange(len(table))[:, None], strongest.joints), strongest.weights)
    return scene.add_mesh_skinned(
        name,
        skins.points(skin),
        skins.triangles(skin),
        bone_wxyzs=skins.bone_quat_wxyz[bones.start : bones.stop],
        bone_positions=skins.bone_position[bones.start : bones.stop],
        skin_weights=table,
        color=color,
        opacity=opacity,
        side="double",
    )


def add_floor(scene: Any, name: str, model: Model, shape: int) -> Any:
    """The node of a plane: an infinite grid."""
    return add_squares(scene, name, model.solids.position[shape], model.solids.quat_wxyz[shape])
