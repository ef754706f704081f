"""Shapes of a model, as the page draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.surfaces import triangles
from poise.model.model import Model
from poise.model.solids import Solid
from poise.view.page.packing import pack

Floats = NDArray[np.float64]
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
            vertices, faces = triangles(solids, i)
            shape["mesh"] = len(meshes)
            step = min(PLACES, _FINEST * float(np.abs(vertices).max()) or PLACES)
            meshes.append({"vertices": pack(vertices, step), "faces": pack(faces, 1.0)})
        shapes.append(shape)
    return shapes, meshes
