"""Skins for the ray caster: additional meshes of a model, deformed for every picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.collision.mesh_bvh import node_arrays, triangle_tree
from poise.dynamics.state_queries import bodies
from poise.kernel.memory import Block
from poise.model.model import Model
from poise.model.shape_arrays import Solid, Solids
from poise.model.skins import Skins

Floats = NDArray[np.float64]


def skin_points(model: Model, q: ArrayLike) -> list[Floats]:
    """(n, 3) vertices of each skin of a model at a pose, in the world; m."""
    if not len(model.skins):
        return []
    place = bodies(model, q)
    return [model.skins.deformed(k, place.position, place.rotation) for k in range(len(model.skins))]


class SkinMeshes:
    """The shapes of a model followed by its skins, as meshes that are updated at each pose."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._faces = [_with_area(model.skins, k) for k in range(len(model.skins))]
        self.solids = self._solids(skin_points(model, model.q_rest)) if len(model.skins) else model.solids

    def bend(self, q: ArrayLike, shapes: Block, surfaces: Block) -> tuple[Floats, Floats]:
        """Deform the skins to a pose, in the kernels' blocks too; returns centres (n, 3) and rotations (n, 3, 3)."""
        found = skin_points(self.model, q)
        first = len(self.model.solids)
        size, reach = self.solids.size.copy(), self.solids.reach.copy()
        centres = np.zeros((len(found), 3))
        for k, points in enumerate(found):
            i, faces = first + k, self._faces[k]
            centres[k], size[i], reach[i] = _box(points)
            shapes.reach[i], shapes.size[i] = reach[i], size[i]
            if len(faces):
                _fill(surfaces, i, points - centres[k], faces, float(reach[i]))
        if found:
            self.solids = replace(self.solids, size=size, reach=reach)
        return centres, np.tile(np.eye(3), (len(found), 1, 1))

    def _solids(self, found: list[Floats]) -> Solids:
        """Shapes and skins."""
        old, skins, n = self.model.solids, self.model.skins, len(found)
        boxes = [_box(points) for points in found]
        points = [p - centre for p, (centre, _, _) in zip(found, boxes, strict=True)]
        more = sum(len(p) for p in points)
        nothing = np.zeros(n)
        columns: dict[str, Any] = {
            "kind": np.full(n, Solid.MESH, np.int32),
            "body": np.full(n, -1, np.int32),
            "link": np.full(n, -1, np.int32),
            "position": np.array([centre for centre, _, _ in boxes]),
            "quat_wxyz": np.tile((1.0, 0.0, 0.0, 0.0), (n, 1)),
            "size": np.array([half for _, half, _ in boxes]),
            "reach": np.array([reach for _, _, reach in boxes]),
            "group": np.zeros(n, np.int64),
            "mask": np.zeros(n, np.int64),
            "color": skins.color,
            "vertex_start": old.vertex_start[-1] + np.cumsum([len(p) for p in points]),
            "vertices": np.concatenate(points),
            "face_start": old.face_start[-1] + np.cumsum([len(faces) for faces in self._faces]),
            "faces": np.concatenate(self._faces),
            "neighbor_start": np.full(more, old.neighbor_start[-1]),
            "around_start": np.full(more, old.around_start[-1]),
            "beyond": np.full((sum(len(faces) for faces in self._faces), 3), -1),
            "grid": np.zeros((n, 2), np.int32),
            "height_start": np.full(n, old.height_start[-1]),
        }
        surface = ("margin", "friction", "restitution", "torsional_friction", "rolling_friction", "compliance")
        columns |= dict.fromkeys((*surface, "surface_kind"), nothing)
        joined = {}
        for name, column in columns.items():
            before = getattr(old, name)
            joined[name] = np.concatenate((before, np.asarray(column).astype(before.dtype)))
        return replace(old, names=(*old.names, *skins.names), **joined)


def _with_area(skins: Skins, k: int) -> NDArray[np.int64]:
    """Triangles of a skin, without those that have no area at bind."""
    points, faces = skins.points(k), skins.triangles(k)
    return np.asarray(faces[np.linalg.norm(_crosses(points[faces]), axis=1) > 0.0])


def _crosses(corners: Floats) -> Floats:
    return np.asarray(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))


def _box(points: Floats) -> tuple[Floats, Floats, float]:
    """Centre and half of the box about points, and the radius of a ball about that centre; m."""
    low, high = points.min(axis=0), points.max(axis=0)
    centre = 0.5 * (low + high)
    return centre, 0.5 * (high - low), float(np.linalg.norm(points - centre, axis=1).max())


def _fill(surfaces: Block, i: int, points: Floats, faces: NDArray[np.int64], reach: float) -> None:
    """Overwrite the tree of a mesh; its number of nodes depends only on the number of triangles."""
    tree = triangle_tree(points, faces)
    nodes = node_arrays(tree, reach)
    start, end = (int(surfaces.node_start[k]) for k in (i, i + 1))
    surfaces.node_low[start:end], surfaces.node_high[start:end] = nodes["node_low"], nodes["node_high"]
    corners = points[faces[tree.order]]
    first = int(surfaces.node_first[start])
    surfaces.corner[3 * first : 3 * (first + len(faces))] = corners.reshape(-1, 3)
    across = _crosses(corners)
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    surfaces.face_normal[first : first + len(faces)] = across
