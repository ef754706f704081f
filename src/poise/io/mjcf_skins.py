"""Skins of a compiled MuJoCo model, and skins as MJCF."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from poise.io.mjcf_source import MjcfSource, floats, quaternion, vector
from poise.model.skins import Bone, Skin

if TYPE_CHECKING:
    from poise.io.mjcf_write import MjcfWriter

#: colour of a skin that the file does not colour: its material's shows instead
_UNPAINTED = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)


def read_skins(source: MjcfSource) -> list[Skin]:
    """All skins. MuJoCo has the vertices and the bones at bind in one frame, and weights that sum to 1."""
    names = source.names("SKIN", source.model.nskin)
    return [_read_skin(source, k, name) for k, name in enumerate(names)]


def _read_skin(source: MjcfSource, k: int, name: str) -> Skin:
    model = source.model
    points = _run(model.skin_vertadr, model.skin_vertnum, k)
    faces = _run(model.skin_faceadr, model.skin_facenum, k)
    bones = range(int(model.skin_boneadr[k]), int(model.skin_boneadr[k]) + int(model.skin_bonenum[k]))
    return Skin(
        name,
        np.array(model.skin_vert[points], np.float64),
        np.array(model.skin_face[faces], np.int64),
        [_read_bone(source, b) for b in bones],
        _color(model, k),
    )


def _read_bone(source: MjcfSource, b: int) -> Bone:
    model = source.model
    body = int(model.skin_bonebodyid[b])
    mine = _run(model.skin_bonevertadr, model.skin_bonevertnum, b)
    return Bone(
        source.body_names[body] if body else None,
        vector(model.skin_bonebindpos[b]),
        quaternion(model.skin_bonebindquat[b]),
        np.array(model.skin_bonevertid[mine], np.int64),
        np.array(model.skin_bonevertweight[mine], np.float64),
    )


def _run(starts: Any, counts: Any, k: int) -> slice:
    return slice(int(starts[k]), int(starts[k]) + int(counts[k]))


def _color(model: Any, k: int) -> tuple[float, float, float, float]:
    """A skin's own colour, or its material's where it has none of its own."""
    material, own = int(model.skin_matid[k]), np.array(model.skin_rgba[k])
    chosen = model.mat_rgba[material] if material >= 0 and np.array_equal(own, _UNPAINTED) else own
    red, green, blue, opacity = (round(value, 6) for value in floats(chosen))
    return (red, green, blue, opacity)


def write_skins(writer: MjcfWriter) -> None:
    """All skins of a scene."""
    skins = writer.scene.skins
    if not skins:
        return
    section = ET.SubElement(writer.root, "deformable")
    for skin in skins:
        element = ET.SubElement(section, "skin", name=skin.name, rgba=_numbers(skin.color))
        element.set("vertex", _numbers(skin.vertices))
        element.set("face", _whole(skin.faces))
        for bone in skin.bones:
            part = ET.SubElement(element, "bone", body=bone.body or "world")
            part.set("bindpos", _numbers(bone.position))
            part.set("bindquat", _numbers(bone.quat_wxyz))
            part.set("vertid", _whole(bone.vertices))
            part.set("vertweight", _numbers(bone.weights))


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value) + 0.0) for value in np.ravel(values))


def _whole(values: Any) -> str:
    return " ".join(str(int(value)) for value in np.ravel(values))
