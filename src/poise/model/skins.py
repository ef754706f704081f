"""Skins: skinned meshes for rendering, without collision and mass.

Every vertex follows some bodies (bones), each with a weight: linear blend skinning (Magnenat-Thalmann, Laperrière,
Thalmann 1988), x = Σ wᵢ Tᵢ Bᵢ⁻¹ v, with Bᵢ the bind pose of bone i and Tᵢ its present pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.checks import Checker, shown
from poise.model.errors import did_you_mean
from poise.model.shapes import IDENTITY, ORIGIN, Quaternion, Vector
from poise.motion.rotations import quat_normalize, quat_to_matrix

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

_SUM = 1e-4
"""Tolerance of the sum of a vertex's weights, which is 1: files round them."""


@dataclass
class Bone:
    """A bone of a skin: a body, its bind pose, and the weights of vertices.

    >>> Bone("shin", position=(0, 0, 0.5), vertices=[0, 1], weights=[1.0, 0.5]).body
    'shin'
    """

    body: str | None
    """Name of a body; None is the world."""
    position: Vector = ORIGIN
    """Position of the body's frame in the frame of the skin's vertices, at bind; m."""
    quat_wxyz: Quaternion = IDENTITY
    """Orientation, likewise."""
    vertices: Any = ()
    """(k,) indices of the skin's vertices."""
    weights: Any = ()
    """(k,) weights of those vertices; the weights of a vertex over all bones sum to 1."""


@dataclass
class Skin:
    """A triangle mesh that deforms with bodies, for rendering only.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    >>> bone = Bone("ball", vertices=[0, 1, 2], weights=[1, 1, 1])
    >>> scene.skins.append(Skin("flag", [(0, 0, 0), (1, 0, 0), (0, 0, 1)], [(0, 1, 2)], [bone]))
    >>> model = scene.compile()
    >>> model.skins.deformed(0, np.array([(0, 0, 5.0)]), np.eye(3)[None]).tolist()
    [[0.0, 0.0, 5.0], [1.0, 0.0, 5.0], [0.0, 0.0, 6.0]]
    """

    name: str
    vertices: Any
    """(n, 3) points at bind; m."""
    faces: Any
    """(m, 3) triangles, indices of vertices, counter-clockwise from outside."""
    bones: list[Bone] = field(default_factory=list)
    color: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    """Red, green, blue, opacity, each 0 to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Skins:
    """The skins of a model as read-only arrays."""

    names: tuple[str, ...]
    color: Floats
    """(n, 4)"""
    vertex_start: Indices
    """(n + 1,) into `vertices`."""
    vertices: Floats
    """(…, 3) at bind; m."""
    face_start: Indices
    """(n + 1,) into `faces`."""
    faces: Indices
    """(…, 3) indices of the skin's own vertices."""
    bone_start: Indices
    """(n + 1,) into the arrays of bones."""
    bone_body: Indices
    """(…,) index of the body, −1 is the world."""
    bone_position: Floats
    """(…, 3) at bind; m."""
    bone_quat_wxyz: Floats
    """(…, 4) at bind."""
    weight_start: Indices
    """(number of bones + 1,) into the arrays of weights."""
    weight_vertex: Indices
    """(…,) index of the skin's own vertex."""
    weight: Floats
    """(…,) those of each vertex sum to 1."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Skins: {list(self.names)}>"

    def points(self, skin: int) -> Floats:
        """(n, 3) vertices of a skin by its index, at bind; m."""
        return self.vertices[int(self.vertex_start[skin]) : int(self.vertex_start[skin + 1])]

    def triangles(self, skin: int) -> NDArray[np.int64]:
        """(m, 3) faces of a skin by its index."""
        return self.faces[int(self.face_start[skin]) : int(self.face_start[skin + 1])].astype(np.int64)

    def bones(self, skin: int) -> range:
        """Indices of the bones of a skin."""
        return range(int(self.bone_start[skin]), int(self.bone_start[skin + 1]))

    def weights(self, bone: int) -> tuple[NDArray[np.int64], Floats]:
        """(k,) vertices of a bone by its index, and their weights."""
        mine = slice(int(self.weight_start[bone]), int(self.weight_start[bone + 1]))
        return self.weight_vertex[mine].astype(np.int64), self.weight[mine]

    def table(self, skin: int) -> Floats:
        """(n, bones) weights of a skin's vertices."""
        bones = self.bones(skin)
        table = np.zeros((len(self.points(skin)), len(bones)))
        for k, bone in enumerate(bones):
            vertex, weight = self.weights(bone)
            np.add.at(table[:, k], vertex, weight)
        return table

    def deformed(self, skin: int, position: Floats, rotation: Floats) -> Floats:
        """(n, 3) vertices of a skin, with bodies at `position` (bodies, 3; m) and `rotation` (bodies, 3, 3)."""
        rest = self.points(skin)
        found = np.zeros_like(rest)
        for bone in self.bones(skin):
            body = int(self.bone_body[bone])
            here, turn = (position[body], rotation[body]) if body >= 0 else (np.zeros(3), np.eye(3))
            turn = turn @ quat_to_matrix(self.bone_quat_wxyz[bone]).T
            vertex, weight = self.weights(bone)
            moved = (rest[vertex] - self.bone_position[bone]) @ turn.T + here
            np.add.at(found, vertex, weight[:, None] * moved)
        return found


def no_skins() -> Skins:
    """No skins."""
    return gather_skins([], {})


def gather_skins(skins: Sequence[Skin], number: dict[str, int]) -> Skins:
    """Checked skins as arrays; `number` is the index of each body by its name."""
    bones = [bone for skin in skins for bone in skin.bones]
    sums = [_sums(skin) for skin in skins]
    weights = [
        np.asarray(bone.weights, np.float64) / total[np.asarray(bone.vertices, np.int64)]
        for skin, total in zip(skins, sums, strict=True)
        for bone in skin.bones
    ]
    return Skins(
        names=tuple(skin.name for skin in skins),
        color=np.array([skin.color for skin in skins], np.float64).reshape(-1, 4),
        vertex_start=_starts([skin.vertices for skin in skins]),
        vertices=_joined([skin.vertices for skin in skins], np.float64, 3),
        face_start=_starts([skin.faces for skin in skins]),
        faces=_joined([skin.faces for skin in skins], np.int32, 3),
        bone_start=_starts([skin.bones for skin in skins]),
        bone_body=np.array([-1 if bone.body is None else number[bone.body] for bone in bones], np.int32),
        bone_position=np.array([bone.position for bone in bones], np.float64).reshape(-1, 3),
        bone_quat_wxyz=np.array([quat_normalize(bone.quat_wxyz) for bone in bones], np.float64).reshape(-1, 4),
        weight_start=_starts([bone.vertices for bone in bones]),
        weight_vertex=_joined([bone.vertices for bone in bones], np.int32),
        weight=_joined(weights, np.float64),
    )


def _sums(skin: Skin) -> Floats:
    """(n,) sum of the weights of each vertex."""
    total = np.zeros(len(skin.vertices))
    for bone in skin.bones:
        np.add.at(total, np.asarray(bone.vertices, np.int64), np.asarray(bone.weights, np.float64))
    return total


def _starts(parts: Sequence[Any]) -> Indices:
    return np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int32)


def _joined(parts: Sequence[Any], dtype: Any, width: int | None = None) -> NDArray[Any]:
    shape = (-1,) if width is None else (-1, width)
    return np.concatenate(
        [*(np.asarray(part, dtype).reshape(shape) for part in parts), np.zeros(0, dtype).reshape(shape)]
    )


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_skin(check: Checker, skin: Skin, names: list[str]) -> None:
    """Collect the problems of a skin; `names` are those of the bodies."""
    check.numbers("color", skin.color, 4, negative=False)
    points = _table(check, "vertices", skin.vertices, "points (x, y, z)")
    if points is None:
        return
    if _check_numbers(check, "faces", skin.faces, len(points), 2):
        a, b, c = (points[np.asarray(skin.faces)[:, k]] for k in range(3))
        if not np.cross(b - a, c - a).any():
            check.fail("faces", "must have an area, found none with one")
    bones: object = skin.bones
    if not isinstance(bones, (list, tuple)) or not bones or not all(isinstance(bone, Bone) for bone in bones):
        check.fail("bones", f"must be a list of at least one Bone, found {shown(bones)}")
        return
    before = len(check.problems)
    for k, bone in enumerate(bones):
        _check_bone(check.at(f"bones[{k}]"), bone, names, len(points))
    if len(check.problems) == before:
        _check_sums(check, skin)


def _check_bone(check: Checker, bone: Bone, names: list[str], count: int) -> None:
    body: object = bone.body
    if body is not None and body not in names:
        check.fail("body", f'there is no body "{body}"{did_you_mean(body, names)}')
    check.numbers("position", bone.position, 3)
    check.quaternion("quat_wxyz", bone.quat_wxyz)
    if not _check_numbers(check, "vertices", bone.vertices, count, 1):
        return
    try:
        weights = np.asarray(bone.weights, np.float64)
    except (TypeError, ValueError, OverflowError):
        weights = np.full(1, np.nan)
    if weights.shape != np.shape(bone.vertices):
        found = f"{len(np.ravel(bone.vertices))} vertices and weights of shape {weights.shape}"
        check.fail("weights", f"must be one number for each vertex, found {found}")
    elif not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        bad = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))[0])
        check.fail("weights", f"must be finite and 0 or more, found {weights[bad]} at index {bad}")


def _check_sums(check: Checker, skin: Skin) -> None:
    total = _sums(skin)
    wrong = np.flatnonzero(np.abs(total - 1.0) > _SUM)
    if len(wrong):
        first = int(wrong[0])
        found = "no bone" if total[first] == 0.0 else f"a sum of {total[first]:.6g}"
        where = f"at vertex {first} ({len(wrong)} such in all)"
        check.fail("bones", f"weights of a vertex must sum to 1, found {found} {where}")


def _table(check: Checker, name: str, value: Any, what: str) -> Floats | None:
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[1] != 3 or not len(array):
        check.fail(name, f"must be {what}, found {shown(value)}")
        return None
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        check.fail(name, f"must be finite, found {tuple(array[row].tolist())} at index {row}")
        return None
    return array


def _check_numbers(check: Checker, name: str, value: Any, count: int, width: int) -> bool:
    """Indices of vertices: (m, 3) of faces (`width` 2), (k,) of bones (`width` 1)."""
    what = "triples of whole numbers" if width == 2 else "whole numbers"
    try:
        array = np.asarray(value)
        array = array.astype(np.int64) if not array.size and width == 1 else array
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    right = array.ndim == width and np.issubdtype(array.dtype, np.integer)
    if not right or (width == 2 and (not len(array) or array.shape[1] != 3)):
        check.fail(name, f"must be {what}, found {shown(value)}")
        return False
    if array.size and (array.min() < 0 or array.max() >= count):
        check.fail(name, f"must name vertices 0 to {count - 1}, found {int(array.min())} to {int(array.max())}")
        return False
    return True
