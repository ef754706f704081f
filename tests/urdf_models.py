"""Small URDF robots and meshes in a few words, for tests."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from poise.io.urdf import load_urdf
from poise.model.errors import SceneError

INERTIAL = "<inertial><mass value='2'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"


def urdf_files() -> list[Path]:
    """Robots of others, where a folder of them lies beside the checkout."""
    return sorted((Path(__file__).parents[2] / "shared" / "data" / "urdf").glob("*.urdf"))


def robot(*parts: str) -> str:
    return "<robot name='r'>\n" + "\n".join(parts) + "\n</robot>"


def link(name: str, content: str = INERTIAL) -> str:
    return f"<link name='{name}'>{content}</link>"


def joint(name: str, parent: str, child: str, kind: str = "continuous", content: str = "") -> str:
    return f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>{content}</joint>"


def two(kind: str = "continuous", content: str = "", **options):
    """The second of two links and its joint."""
    return load_urdf(robot(link("a"), link("b"), joint("j", "a", "b", kind, content)), **options)


def problems(xml: str, **options) -> list[tuple[int | None, str]]:
    with pytest.raises(SceneError) as caught:
        load_urdf(xml, **options)
    return [(problem.line, problem.message) for problem in caught.value.problems]


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def binary_stl() -> bytes:
    triangles = b"".join(struct.pack("<12fH", 0, 0, 0, *TETRAHEDRON[face].ravel().tolist(), 0) for face in FACES)
    return b"solid of a liar".ljust(80) + struct.pack("<I", len(FACES)) + triangles


def text_stl() -> bytes:
    lines = ["solid tetrahedron"]
    for face in FACES:
        corners = [f"vertex {x} {y:e} {z}" for x, y, z in TETRAHEDRON[face]]
        lines += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    return "\n".join([*lines, "endsolid"]).encode()


def obj() -> bytes:
    vertices = [f"v {x} {y} {z}" for x, y, z in TETRAHEDRON]
    faces = [f"f {a + 1}/1/1 {b + 1}//2 {c - 4}" for a, b, c in FACES]
    return "\n".join(["# a comment", "o thing", *vertices, "vn 0 0 1", *faces]).encode()


def mesh_link(filename: str, role: str = "collision", inertial: str = INERTIAL, scale: str = "1 1 1") -> str:
    mesh = f"<mesh filename='{filename}' scale='{scale}'/>"
    return link("a", f"{inertial}<{role}><geometry>{mesh}</geometry></{role}>")
