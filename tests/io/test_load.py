"""Files of all kinds, handed to load: what is a scene is read, what is not is named."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

import poise
from poise.io.load import load
from poise.model.errors import SceneError

MJCF = "<mujoco model='m'><worldbody><body name='a'><freejoint/><geom size='1'/></body></worldbody></mujoco>"
URDF = "<robot name='r'><link name='base'/></robot>"


@pytest.mark.parametrize("name", ["scene.xml", "scene.urdf", "scene", "scene.txt"])
def test_content_decides(tmp_path, name: str) -> None:
    file = tmp_path / name
    file.write_text(MJCF)
    assert load(file).name == "m"
    file.write_text(URDF)
    assert load(str(file)).name == "r"


def test_comments_declarations_and_marks_come_first(tmp_path) -> None:
    file = tmp_path / "r.urdf"
    file.write_text("<?xml version='1.0'?>\n<!-- a <mujoco> once -->\n<!DOCTYPE robot>\n" + URDF)
    assert load(file).name == "r"
    file.write_bytes(b"\xef\xbb\xbf" + URDF.encode())
    assert load(file).name == "r"
    file.write_text("<?xml version='1.0' encoding='utf-16'?>" + URDF, encoding="utf-16")
    assert load(file).name == "r"


def test_parts_beside_a_file_of_any_name(tmp_path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "t.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    part = "<mujocoinclude><asset><mesh name='t' file='parts/t.obj'/></asset></mujocoinclude>"
    (tmp_path / "asset.xml").write_text(part)
    file = tmp_path / "model.mjcf"
    file.write_text("<mujoco><include file='asset.xml'/><worldbody><geom type='mesh' mesh='t'/></worldbody></mujoco>")
    assert len(load(file).bodies[0].shapes[0].vertices) == 4


def test_public_name() -> None:
    assert poise.load is load
    assert poise.io.load is load, "and not the module of that name"


def test_options_reach_the_reader(tmp_path) -> None:
    file = tmp_path / "r.urdf"
    file.write_text(URDF)
    assert load(file, root="free").bodies[0].joints[0].kind == "free"
    with pytest.raises(SceneError, match='URDF files take no option "rot", did you mean "root"'):
        load(file, rot="free")
    file.write_text(MJCF)
    with pytest.raises(SceneError, match='MJCF files take no option "root"'):
        load(file, root="free")


def zipped() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("a.xml", MJCF)
    return memory.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"  \n\t ", "empty"),
        (gzip.compress(MJCF.encode(), mtime=0), "gunzip"),
        (zipped(), "unzip"),
        (b"HIERARCHY\nROOT hips\n", "a motion, not a scene"),
        (b"PathFileType\t4\n", "a motion, not a scene"),
        (b"\x02\x50" + bytes(600), "C3D"),
        (b"\x00\x01\x02\x03" * 100, "binary file of an unknown kind"),
        (b"people:\n  - name: a\n", 'begins with "people:"'),
        (b"<sdf version='1.9'/>", "SDF"),
        (b"<OpenSimDocument/>", "OpenSim"),
        (b"<mujocoinclude/>", "include"),
        (b"<mujocco/>", 'did you mean "mujoco"'),
        (b"<zebra/>", "root element is <zebra>"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\xff\xd8\xff\xe0 not text at all", "unknown kind"),
    ],
    # archives hold the time at which they were made: names of tests must not
    ids=lambda value: "file" if isinstance(value, bytes) else value,
)
def test_what_is_no_scene_is_named(tmp_path, content: bytes, said: str) -> None:
    file = tmp_path / "thing.xml"
    file.write_bytes(content)
    with pytest.raises(SceneError) as caught:
        load(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "MJCF" in str(caught.value)


def test_missing_file_and_the_one_beside_it(tmp_path) -> None:
    (tmp_path / "humanoid.xml").write_text(MJCF)
    with pytest.raises(SceneError, match=r'no such file, did you mean "humanoid\.xml"'):
        load(tmp_path / "humanoyd.xml")
    with pytest.raises(SceneError, match=r"folder .* does not exist"):
        load(tmp_path / "gone" / "humanoid.xml")


def test_directory(tmp_path) -> None:
    with pytest.raises(SceneError, match="directory"):
        load(tmp_path)


def test_text_and_other_things_in_place_of_a_path() -> None:
    with pytest.raises(SceneError, match="load_mjcf"):
        load(MJCF)
    with pytest.raises(SceneError, match="path of a file"):
        load(3)  # type: ignore[arg-type]
    with pytest.raises(SceneError, match="null"):
        load("a\0b")


def test_broken_before_its_root(tmp_path) -> None:
    file = tmp_path / "broken.xml"
    file.write_text("<?xml version='1.0'?>\n\n<mujoco <\n")
    with pytest.raises(SceneError, match="malformed XML") as caught:
        load(file)
    assert caught.value.line == 3
