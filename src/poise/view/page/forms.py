"""Shapes of a model, as the page draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.model import Model
from poise.model.polytopes import polytope
from poise.model.solids import Solid, Solids
from poise.view.page.packing import pack

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
PLACES = 1e-4
"""Step of lengths; m."""
_FINEST = 1.0 / 8192
"""Step of a mesh's points, over its size."""


def shape_list(model: Model, origin: Floats) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shapes that can be seen, and the meshes that some of them have. What never moves is seen from `origin`."""
    solids = model.solids
    shapes: list[dict[str, Any]] = []
    meshes: list[dict[str, Any]] = []
    for i, kind in enumerate(solids.kind):
        if solids.color[i, 3] <= 0.0:
            continue
        link = int(solids.link[i])
        position = solids.position[i] - (origin if link < 0 else 0.0)
        shape = {
            "kind": Solid(kind).name.lower(),
            "name": solids.names[i],
            "link": link,
            "position": position.tolist(),
            "turn": solids.quat_wxyz[i].tolist(),
            "size": solids.size[i].tolist(),
            "color": np.clip(solids.color[i], 0.0, 1.0).round(4).tolist(),
        }
        if kind in (Solid.HULL, Solid.FIELD, Solid.MESH):
            vertices, faces = _field(solids, i) if kind == Solid.FIELD else _mesh(solids, i)
            shape["mesh"] = len(meshes)
            step = min(PLACES, _FINEST * float(np.abs(vertices).max()) or PLACES)
            meshes.append({"vertices": pack(vertices, step), "faces": pack(faces, 1.0)})
        shapes.append(shape)
    return shapes, meshes


def _mesh(solids: Solids, i: int) -> tuple[Floats, Indices]:
    """Vertices and triangles of a hull or mesh."""
    vertices = solids.vertices[solids.vertex_start[i] : solids.vertex_start[i + 1]]
    faces = solids.faces[solids.face_start[i] : solids.face_start[i + 1]]
    if not len(faces):  # a hull that touches nothing and was given none
        hull = polytope(vertices)
        return np.asarray(hull.vertices), np.asarray(hull.faces, np.int64)
    return vertices, faces.astype(np.int64)


def _field(solids: Solids, i: int) -> tuple[Floats, Indices]:
    """Vertices and triangles of a height field; cells are split along the diagonal from their least x and y."""
    rows, columns = (int(n) for n in solids.grid[i])
    half_x, half_y, _ = solids.size[i]
    y, x = np.meshgrid(np.linspace(-half_y, half_y, rows), np.linspace(-half_x, half_x, columns), indexing="ij")
    heights = solids.heights[solids.height_start[i] : solids.height_start[i + 1]]
    vertices = np.stack((x.reshape(-1), y.reshape(-1), heights), axis=1)
    least = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    east, north = least + 1, least + columns
    both = north + 1
    faces = np.stack((least, east, both, least, both, north), axis=1).reshape(-1, 3)
    return vertices, faces
