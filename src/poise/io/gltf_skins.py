"""Skins as glTF has them: up to four bones a vertex."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.io.tessellation import Surface
from poise.model.skins import Skins
from poise.motion.rotations import quat_to_matrix

Floats = NDArray[np.float64]
MOST = 4
"""Bones of a vertex."""


class Influence(NamedTuple):
    """What vertices go along with."""

    joints: NDArray[np.uint16]
    """(n, 4) numbers of the skin's own bones; 0 where the weight is 0."""
    weights: NDArray[np.float32]
    """(n, 4) those of a vertex sum to 1."""
    reduced: int
    """How many vertices had more bones; the strongest are kept."""


def influence(skins: Skins, skin: int) -> Influence:
    """The strongest bones of each vertex, their weights made to sum to 1.

    >>> from poise.model.skins import Bone, Skin, gather_skins
    >>> bones = [Bone(None, vertices=[0], weights=[w]) for w in (0.05, 0.1, 0.25, 0.4, 0.2)]
    >>> found = influence(gather_skins([Skin("s", [(0, 0, 0)], [(0, 0, 0)], bones)], {}), 0)
    >>> found.joints.tolist(), (19 * found.weights).round(5).tolist(), found.reduced
    ([[3, 2, 4, 1]], [[8.0, 5.0, 4.0, 2.0]], 1)
    """
    table = skins.table(skin)
    reduced = int(((table > 0.0).sum(axis=1) > MOST).sum())
    if table.shape[1] < MOST:
        table = np.pad(table, ((0, 0), (0, MOST - table.shape[1])))
    joints = np.argsort(-table, axis=1, kind="stable")[:, :MOST]
    weights = np.take_along_axis(table, joints, axis=1)
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return Influence(np.where(weights > 0.0, joints, 0).astype(np.uint16), weights, reduced)


def inverse_binds(skins: Skins, skin: int) -> NDArray[np.float32]:
    """(bones, 16) from the frame of the vertices to that of each bone at bind, column by column."""
    found = []
    for bone in skins.bones(skin):
        back = np.eye(4)
        back[:3, :3] = quat_to_matrix(skins.bone_quat_wxyz[bone]).T
        back[:3, 3] = -back[:3, :3] @ skins.bone_position[bone]
        found.append(back.T.reshape(-1))
    return np.array(found, np.float32)


def bound_surface(skins: Skins, skin: int) -> Surface:
    """A skin at bind with normals that are averages of the faces about each vertex."""
    points, faces = skins.points(skin), skins.triangles(skin)
    corners = points[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, faces[:, k], across)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.where(length > 0.0, normals / np.where(length > 0.0, length, 1.0), (0.0, 0.0, 1.0))
    return Surface(points, normals, faces)
