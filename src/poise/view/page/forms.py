"""Shapes of a model for the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.tessellation import triangles
from poise.model.model import Model
from poise.model.shape_arrays import Solid
from poise.motion.rotations import quat_conjugate, quat_multiply, rotate
from poise.view.page.packing import pack

Floats = NDArray[np.float64]
PLACES = 1e-4
"""Step of lengths; m."""
_FINEST = 1.0 / 8192
"""Step of a mesh's points, over its size."""
_WEIGHT = 1.0 / 65536
"""Step of weights."""


def shape_list(model: Model, origin: Floats) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Visible shapes, and the meshes of some of them. Static shapes are relative to `origin`."""
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


def skin_list(model: Model, origin: Floats) -> list[dict[str, Any]]:
    """Visible skins. Bones refer to their links: a vertex v maps to pose · (turn · v + position)."""
    skins = model.skins
    found = []
    for k, name in enumerate(skins.names):
        if skins.color[k, 3] <= 0.0:
            continue
        points, bones = skins.points(k), skins.bones(k)
        step = min(PLACES, _FINEST * float(np.abs(points).max()) or PLACES)
        listed = [skins.weights(bone) for bone in bones]
        found.append(
            {
                "name": name,
                "color": np.clip(skins.color[k], 0.0, 1.0).round(4).tolist(),
                "vertices": pack(points, step),
                "faces": pack(skins.triangles(k), 1.0),
                "bones": [_bone(model, bone, origin) for bone in bones],
                "count": [len(vertex) for vertex, _ in listed],
                "vertex": pack(np.concatenate([vertex for vertex, _ in listed]), 1.0),
                "weight": pack(np.concatenate([weight for _, weight in listed]), _WEIGHT),
            }
        )
    return found


def _bone(model: Model, bone: int, origin: Floats) -> dict[str, Any]:
    """Transform from the frame of a skin's vertices to that of the bone's link, or to the page's for static bones."""
    skins, body = model.skins, int(model.skins.bone_body[bone])
    turn = quat_conjugate(skins.bone_quat_wxyz[bone])
    position = -rotate(turn, skins.bone_position[bone])
    link = -1
    if body >= 0:
        link = int(model.body_link[body])
        position = model.body_position[body] + rotate(model.body_quat_wxyz[body], position)
        turn = quat_multiply(model.body_quat_wxyz[body], turn)
    if link < 0:
        position = position - origin
    return {"link": link, "position": position.tolist(), "turn": np.asarray(turn).tolist()}
