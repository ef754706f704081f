"""Damaged files: whatever is in them, the answer is a scene or a SceneError, never another exception."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.io.load import load
from poise.io.meshes import read_mesh
from poise.io.urdf import load_urdf
from poise.model.errors import SceneError

URDF = """<?xml version="1.0"?>
<robot name="r">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="a"><inertial><origin xyz="0 0 1" rpy="0 0 0"/><mass value="2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><geometry><mesh filename="package://x/y.stl" scale="1 1 1"/></geometry></collision></link>
  <link name="b"/><link name="c"/>
  <joint name="j" type="revolute"><origin xyz="0 0 1"/><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="3" velocity="2"/><dynamics damping="0.1"/></joint>
  <joint name="k" type="prismatic"><parent link="b"/><child link="c"/><limit lower="0" upper="1"/>
    <mimic joint="j"/></joint>
</robot>
"""
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1/2 2//4 4/1/1\nf -4 -1 -2\nf 2 3 4\n"
STL = (
    b"solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"
)
BINARY_STL = b"x" * 80 + b"\x02\x00\x00\x00" + bytes(100)

hostile_words = st.sampled_from(
    ["", " ", "nan", "-inf", "1e999", "0x1", "a", "b", "<", '"', "0 0", "é", "\x00", "-" * 40]
)
few = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def damaged(draw, content: bytes) -> bytes:
    """A file with some bytes cut out, doubled or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 30)))
        content = content[:start] + draw(st.binary(max_size=8)) + content[end - draw(st.integers(0, 3)) :]
    return content


@st.composite
def rewritten(draw) -> str:
    """The model with one attribute's value replaced."""
    parts = URDF.split('"')
    place = 2 * draw(st.integers(1, len(parts) // 2 - 1)) + 1
    parts[place] = draw(hostile_words).replace('"', "&quot;").replace("<", "&lt;")
    return '"'.join(parts)


def test_undamaged(tmp_path) -> None:
    assert len(load_urdf(URDF).bodies) == 3
    for name, content in (("m.obj", OBJ), ("m.stl", STL)):
        (tmp_path / name).write_bytes(content)
        assert len(read_mesh(tmp_path / name).faces) > 0


@few
@given(damaged(URDF.encode()))
def test_damaged_urdf(tmp_path, content: bytes) -> None:
    file = tmp_path / "r.urdf"
    file.write_bytes(content)
    with contextlib.suppress(SceneError):
        load_urdf(file)


@few
@given(rewritten())
def test_rewritten_attributes(xml: str) -> None:
    with contextlib.suppress(SceneError):
        load_urdf(xml)


@few
@given(st.binary(max_size=700))
def test_any_bytes(tmp_path, content: bytes) -> None:
    file = tmp_path / "thing"
    file.write_bytes(content)
    with pytest.raises(SceneError):
        load(file)


@few
@given(
    st.sampled_from([("m.obj", OBJ), ("m.stl", STL), ("b.stl", b"x" * 80 + b"\x02\x00\x00\x00" + bytes(100))]),
    st.data(),
)
def test_damaged_meshes(tmp_path, named: tuple[str, bytes], data) -> None:
    file = tmp_path / named[0]
    file.write_bytes(data.draw(damaged(named[1])))
    with contextlib.suppress(SceneError):
        read_mesh(file)
