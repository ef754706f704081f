"""Recordings as glTF binary (.glb): bodies as nodes in their tree, shapes as meshes, the motion as an animation.

glTF 2.0 of the Khronos Group. Every body is a node with its shapes; a skin deforms with the nodes of its bodies. glTF
is y up, so a root node rotates the world; everything below it has Poise's axes, in metres.
"""

from __future__ import annotations

import json
import math
import os
import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise._version import __version__
from poise.io.gltf_skins import MOST, bound_surface, influence, inverse_binds
from poise.io.losses import LossWarning
from poise.io.recording_frames import floor_half, frames_of, local_poses, seen_shapes, shape_pose
from poise.io.tessellation import Surface, has_back, surface, tiles
from poise.model.errors import SceneError
from poise.model.shape_arrays import Solid

if TYPE_CHECKING:
    from poise.model.model import Model
    from poise.sim.recording import Recording

Floats = NDArray[np.float64]

_FLOAT, _UINT16, _UINT32 = 5126, 5123, 5125
_VERTICES, _INDICES = 34962, 34963
_STILL = 1e-9
"""Nodes that move or rotate by less than this have no animation; m or 1."""
_TURN_UP = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
"""From z up to y up (x, y, z, w)."""
_FLOOR = ((0.86, 0.86, 0.85), (0.78, 0.79, 0.80))
_MOST = 0xFFFFFFFF
"""Maximum size of a file; bytes."""


def save_gltf(
    recording: Recording, path: str | os.PathLike[str], *, fps: float | None = None, collision: bool = False
) -> None:
    """Write a recording as glTF binary: bodies, their shapes with colours, and their motion.

    `fps` is the number of frames per second, by default all. With `collision`, invisible shapes are written too.

    >>> import pathlib, poise, tempfile
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_gltf(scene.build(dt=0.01).run(0.2), f"{folder}/fall.glb")
    ...     pathlib.Path(f"{folder}/fall.glb").read_bytes()[:4]
    b'glTF'
    """
    chosen = frames_of(recording, fps)
    # times that are equal in float32 must be dropped: keys must increase
    time, first = np.unique((recording.time[chosen] - recording.time[chosen[0]]).astype(np.float32), return_index=True)
    writer = _Writer(recording.model)
    writer.add_tree(recording.q[chosen[first]], collision)
    lost = writer.add_skins()
    writer.add_motion(time)
    Path(path).write_bytes(writer.packed(_about(recording)))
    if lost:
        warnings.warn(f"{os.fspath(path)}: {' '.join(lost)}", LossWarning, stacklevel=3)


def _about(recording: Recording) -> dict[str, Any]:
    """The file's metadata about its origin."""
    options = {"poise": __version__, "start": float(recording.time[0]), "units": "m, s"}
    return options | {"versions": recording.options.get("versions", {}), "dt": recording.options.get("dt")}


class _Writer:
    """Collects the JSON and the bytes of one file."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.meshes: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self.skins: list[dict[str, Any]] = []
        self.roots = [0]
        self.animations: list[dict[str, Any]] = []
        self._known: dict[Any, int] = {}
        self._poses: tuple[Floats, Floats] = (np.zeros((0, 0, 3)), np.zeros((0, 0, 4)))

    def add_tree(self, q: Floats, collision: bool) -> None:
        """Nodes of all bodies at the first frame, with their shapes below them."""
        model = self.model
        position, turn = self._poses = local_poses(model, q)
        self.nodes.append({"name": _text(model.name or "scene"), "rotation": _TURN_UP})
        for body, name in enumerate(model.body_names):
            self.nodes.append({"name": _text(name), **_place(position[0, body], turn[0, body])})
            self._hang(int(model.body_parent[body]) + 1, body + 1)
        half = floor_half(model, position)
        for shape in seen_shapes(model, collision):
            mesh = self._mesh(shape, half)
            node = {"name": _text(model.solids.names[shape]), "mesh": mesh, **_place(*shape_pose(model, shape))}
            node["extras"] = {"collides": bool(model.solids.mask[shape])}
            self.nodes.append(node)
            self._hang(int(model.solids.body[shape]) + 1, len(self.nodes) - 1)

    def add_skins(self) -> list[str]:
        """Meshes that deform with the nodes of bodies; returns the losses, one sentence each."""
        skins, lost = self.model.skins, []
        for k, name in enumerate(skins.names):
            if skins.color[k, 3] <= 0.0:
                continue
            strongest = influence(skins, k)
            primitive = self._primitive(bound_surface(skins, k), tuple(skins.color[k]), True)
            primitive["attributes"] |= {
                "JOINTS_0": self._array(strongest.joints, "VEC4", _VERTICES),
                "WEIGHTS_0": self._array(strongest.weights, "VEC4", _VERTICES),
            }
            self.meshes.append({"name": _text(name), "primitives": [primitive]})
            binds = self._array(inverse_binds(skins, k), "MAT4")
            self.skins.append({"name": _text(name), "inverseBindMatrices": binds, "joints": self._joints(k)})
            # joints determine the position of a skinned mesh; its own node is ignored, and has no parent
            self.nodes.append({"name": _text(name), "mesh": len(self.meshes) - 1, "skin": len(self.skins) - 1})
            self.roots.append(len(self.nodes) - 1)
            if strongest.reduced:
                count = f"{strongest.reduced} of {len(strongest.weights)} vertices"
                lost.append(f'{count} of skin "{name}" have more than {MOST} bones: the strongest are kept.')
        return lost

    def _joints(self, skin: int) -> list[int]:
        """Nodes of the bones of a skin, each another one: a body that is there twice has a node of its own for that."""
        found: list[int] = []
        for bone in self.model.skins.bones(skin):
            node = int(self.model.skins.bone_body[bone]) + 1
            if node in found:
                self.nodes.append({"name": _text(f"bone {bone}")})
                self._hang(node, len(self.nodes) - 1)
                node = len(self.nodes) - 1
            found.append(node)
        return found

    def _hang(self, above: int, node: int) -> None:
        self.nodes[above].setdefault("children", []).append(node)

    def add_motion(self, time: NDArray[np.float32]) -> None:
        """One animation: places and turns of the bodies that move in their parents' frames."""
        if len(time) < 2:
            return
        position, turn = self._poses
        samplers: list[dict[str, Any]] = []
        channels: list[dict[str, Any]] = []
        when = None
        for body in range(self.model.n_bodies):
            for path, values in (("translation", position[:, body]), ("rotation", turn[:, body][:, [1, 2, 3, 0]])):
                if np.ptp(values, axis=0).max() <= _STILL:
                    continue
                when = self._array(time, "SCALAR", bounds=True) if when is None else when
                numbers = values.astype(np.float32)
                output = self._array(numbers, "VEC4" if path == "rotation" else "VEC3")
                samplers.append({"input": when, "output": output, "interpolation": "LINEAR"})
                channels.append({"sampler": len(samplers) - 1, "target": {"node": body + 1, "path": path}})
        if channels:
            self.animations.append({"name": "motion", "samplers": samplers, "channels": channels})

    def _mesh(self, shape: int, half: float) -> int:
        """Number of the mesh of a shape; equal shapes share one."""
        solids = self.model.solids
        kind, color = Solid(int(solids.kind[shape])), solids.color[shape]
        key: tuple[Any, ...] = (kind, solids.size[shape].tobytes(), color.tobytes())
        for start, pool in (("vertex", solids.vertices), ("face", solids.faces), ("height", solids.heights)):
            ends = getattr(solids, f"{start}_start")
            key += (pool[int(ends[shape]) : int(ends[shape + 1])].tobytes(),)
        if key not in self._known:
            if kind == Solid.PLANE:
                tint = color[:3] / max(float(color[:3].max()), 1e-3)
                parts = list(zip(tiles(half, 1.0), [(*(tint * tone), 1.0) for tone in _FLOOR], strict=True))
            else:
                parts = [(surface(solids, shape), tuple(color))]
            back = has_back(solids, shape)
            primitives = [self._primitive(part, tone, back) for part, tone in parts]
            self.meshes.append({"name": kind.name.lower(), "primitives": primitives})
            self._known[key] = len(self.meshes) - 1
        return self._known[key]

    def _primitive(self, part: Surface, color: tuple[float, ...], back: bool) -> dict[str, Any]:
        wide = len(part.vertices) > 0xFFFF
        faces = part.faces.reshape(-1).astype(np.uint32 if wide else np.uint16)
        normals = part.normals / np.linalg.norm(part.normals, axis=1, keepdims=True)
        return {
            "attributes": {
                "POSITION": self._array(part.vertices.astype(np.float32), "VEC3", _VERTICES, bounds=True),
                "NORMAL": self._array(normals.astype(np.float32), "VEC3", _VERTICES),
            },
            "indices": self._array(faces, "SCALAR", _INDICES),
            "material": self._material(color, back),
        }

    def _material(self, color: tuple[float, ...], back: bool) -> int:
        opacity = float(np.clip(color[3], 0.0, 1.0)) or 0.25  # an invisible shape, with `collision`
        base = [*(round(float(part), 6) for part in _linear(color[:3])), opacity]
        material: dict[str, Any] = {
            "pbrMetallicRoughness": {"baseColorFactor": base, "metallicFactor": 0.0, "roughnessFactor": 0.7}
        }
        if opacity < 1.0:
            material["alphaMode"] = "BLEND"
        if back:
            material["doubleSided"] = True
        if material not in self.materials:
            self.materials.append(material)
        return self.materials.index(material)

    def _array(self, array: NDArray[Any], kind: str, target: int | None = None, bounds: bool = False) -> int:
        """Number of the accessor of an array that was added to the bytes."""
        codes = {np.dtype(np.float32): _FLOAT, np.dtype(np.uint16): _UINT16, np.dtype(np.uint32): _UINT32}
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": array.nbytes}
        if target is not None:
            view["target"] = target
        self.data += np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        self.data += bytes(-len(self.data) % 4)
        if len(self.data) > _MOST // 2:
            raise SceneError("more than 2 GB: give fewer frames with fps", field="recording")
        self.views.append(view)
        accessor = {
            "bufferView": len(self.views) - 1,
            "componentType": codes[array.dtype],
            "count": len(array),
            "type": kind,
        }
        if bounds:
            table = array.reshape(len(array), -1)
            accessor |= {"min": table.min(axis=0).tolist(), "max": table.max(axis=0).tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1

    def packed(self, about: dict[str, Any]) -> bytes:
        """The whole file."""
        document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": f"Poise {__version__}", "extras": about},
            "scene": 0,
            "scenes": [{"name": _text(self.model.name or "scene"), "nodes": self.roots}],
        }
        lists = ("nodes", "meshes", "materials", "skins", "animations", "accessors")
        document |= {name: getattr(self, name) for name in lists if getattr(self, name)}
        if self.data:
            document |= {"bufferViews": self.views, "buffers": [{"byteLength": len(self.data)}]}
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        chunks = [(b"JSON", text + b" " * (-len(text) % 4))]
        if self.data:
            chunks.append((b"BIN\0", bytes(self.data)))
        body = b"".join(struct.pack("<I", len(data)) + kind + data for kind, data in chunks)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def _place(position: Floats, turn: Floats) -> dict[str, Any]:
    """A node's place and turn, left out where they are nothing."""
    found: dict[str, Any] = {}
    if np.any(position):
        found["translation"] = [float(part) for part in position]
    if abs(turn[0]) < 1.0:
        w, x, y, z = (float(part) for part in turn / np.linalg.norm(turn))
        found["rotation"] = [x, y, z, w]
    return found


def _text(name: str) -> str:
    """A name that is good Unicode."""
    return name.encode("utf-8", "replace").decode()


def _linear(color: Any) -> Floats:
    """SRGB colours as linear light."""
    c = np.clip(np.asarray(color, np.float64), 0.0, 1.0)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
