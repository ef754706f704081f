"""MJCF files that would keep MuJoCo busy or waiting, or fill its stack: refused before it reads them, with the line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import poise
from poise.io.load import load
from poise.io.mjcf import load_mjcf
from poise.io.mjcf_guard import check_mjcf, without_comments

BALL = "<body name='ball'><freejoint/><geom size='0.1'/></body>"


def model(body: str = BALL, before: str = "", after: str = "") -> str:
    return f"<mujoco>\n{before}\n<worldbody>\n{body}\n</worldbody>\n{after}</mujoco>\n"


def copies(*counts: int) -> str:
    inner = "<geom size='0.1'/>"
    return "".join(f"<replicate count='{n}' euler='0 0 1'>" for n in counts) + inner + "</replicate>" * len(counts)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (model(copies(10**9)), "<replicate> asks for 1e.09 copies of elements; at most 10000", 4),
        (model(copies(300, 300, 300)), "copies of elements", 4),
        (model("\n".join(copies(6000) for _ in range(3))), "copies of elements", 5),
        (model(before="<size nkey='1000000000'/>"), "<size> asks for 1e.09 keyframes", 2),
        (model(before=f"<size nkey='{'9' * 5000}'/>"), "<size> asks for 1e.18 keyframes", 2),
        (model(before="<size nuser_body='1000000000'/>"), "numbers of user data", 2),
        (model(before="<asset><hfield name='h' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>"), "cells", 2),
        (model(before="<asset><texture name='t' builtin='flat' width='9999' height='9999'/></asset>"), "pixels", 2),
        (model("<flexcomp name='f' type='grid' count='1000 1000 1000' spacing='1 1 1' dim='3'/>"), "points", 4),
        (model(after="<sensor>\n<user dim='1000000000'/></sensor>"), "<user> asks for 1e.09 numbers of sensors", 7),
        (model(before="<compiler><lengthrange inttotal='1e9' timestep='1e-3'/></compiler>"), "steps that measure", 2),
        (model("<site/>\n" * 26_000), "<site> asks for 2.5e.04 elements; at most 25000", 25_002),
        (model("<body>\n<geom size='1'/></body>" * 10_001), "<body> asks for 1e.04 bodies and frames", 10_004),
        (model().replace("ball", "b\x00ll"), "zero byte", 4),
        (model() + "<!--" * 200_000, "malformed XML", 7),
        (model() + "</mujoco><mujoco>" + copies(10**9), "malformed XML", 7),
        ("<!DOCTYPE x [\n<!ENTITY a 'b'>]>" + model(), "XML entities are not read", 2),
    ],
)
def test_what_would_not_end(tmp_path, text, message, line):
    file = tmp_path / "m.xml"
    file.write_text(text)
    for read, place in ((load, file), (load_mjcf, file), (load_mjcf, text)):
        with pytest.raises(poise.SceneError, match=message) as caught:
            read(place)
        assert caught.value.line == line
        assert place is text or caught.value.file == str(file)


def test_models_of_some_size_are_read():
    assert len(load_mjcf(model(copies(20, 10))).bodies[0].shapes) == 200
    assert len(load_mjcf(model(before="<size nkey='10'/>")).bodies) == 1


@pytest.mark.parametrize("declaration", ["", "<?xml version='1.0' encoding='ISO-8859-1'?>\n"])
def test_names_that_are_not_utf_8(tmp_path, declaration):
    content = (declaration + model(BALL.replace("ball", "bäll"))).encode("latin-1")
    line = 4 + declaration.count("\n")
    for name in ("m.xml", "model"):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(poise.SceneError, match=rf"{name}:{line}: byte 0xe4 is not UTF-8"):
            load_mjcf(file)
    (tmp_path / "outer.xml").write_text("<mujoco><include file='m.xml'/></mujoco>")
    with pytest.raises(poise.SceneError, match=rf"m\.xml:{line}: byte 0xe4 is not UTF-8"):
        load_mjcf(tmp_path / "outer.xml")


def test_text_of_two_bytes_a_letter(tmp_path):
    (tmp_path / "m.xml").write_bytes(model().encode("utf-16"))
    with pytest.raises(poise.SceneError, match=r"m\.xml:1: it is UTF-16, which MuJoCo does not read"):
        load(tmp_path / "m.xml")


def chain(folder: Path, count: int) -> Path:
    for k in range(count):
        inner = f"<mujoco>\n<include file='i{k + 1}.xml'/></mujoco>" if k < count - 1 else model()
        (folder / f"i{k}.xml").write_text(inner)
    return folder / "i0.xml"


def test_a_chain_of_includes(tmp_path):
    with pytest.raises(poise.SceneError, match=r"i50\.xml:2: <include>: more than 50 files include") as caught:
        load(chain(tmp_path, 3000))
    assert caught.value.line == 2
    assert len(load(chain(tmp_path, 20)).bodies) == 1


def test_counts_in_included_files(tmp_path):
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>\n\n{copies(3000)}</mujocoinclude>")
    (tmp_path / "m.xml").write_text(model("<replicate count='4' euler='0 0 1'><include file='part.xml'/></replicate>"))
    with pytest.raises(poise.SceneError, match=r"part\.xml:3: <replicate> asks for"):
        load(tmp_path / "m.xml")
    assets = {"part.xml": f"<mujocoinclude>\n{copies(10**9)}</mujocoinclude>".encode()}
    with pytest.raises(poise.SceneError, match=r"part\.xml:2: <replicate> asks for"):
        load_mjcf("<mujoco><worldbody><include file='part.xml'/></worldbody></mujoco>", assets=assets)


def attaching(name: str, times: int = 1, body: str = BALL) -> str:
    """A model that attaches another one so many times."""
    uses = "".join(f"<attach model='m' body='ball' prefix='{k}-'/>" for k in range(times))
    return model(body + uses, before=f"<asset>\n<model name='m' file='{name}'/></asset>")


def test_models_that_attach_one_another(tmp_path):
    """MuJoCo would fill its stack."""
    for count in (1, 3):
        for k in range(count):
            (tmp_path / f"m{k}.xml").write_text(attaching(f"m{(k + 1) % count}.xml"))
        with pytest.raises(poise.SceneError, match=rf"m{count - 1}\.xml:3: <model>: .*circle: m0\.xml → ") as caught:
            load(tmp_path / "m0.xml")
        assert caught.value.line == 3
    inner = {"a.xml": attaching("b.xml").encode(), "b.xml": attaching("a.xml").encode()}
    with pytest.raises(poise.SceneError, match=r"b\.xml:3: <model>: .*circle: a\.xml → b\.xml → a\.xml"):
        load_mjcf(attaching("a.xml"), assets=inner)


def test_models_that_are_attached_many_times(tmp_path):
    """Nine files that attach the next one ten times each: 10⁹ bodies."""
    (tmp_path / "m9.xml").write_text(model(BALL.replace("<freejoint/>", "<joint/>")))
    for k in range(9):
        text = attaching(f"m{k + 1}.xml", 10, "<body name='ball'>")
        (tmp_path / f"m{k}.xml").write_text(text.replace("\n</worldbody>", "</body></worldbody>"))
    with pytest.raises(poise.SceneError, match=r"asks for 3e.04 elements of attached models; at most 30000"):
        load(tmp_path / "m0.xml")
    assert len(load(tmp_path / "m7.xml").bodies) == 111
    twice = "<asset><model name='a' file='m9.xml'/><model name='b' file='m9.xml'/></asset>"
    uses = "<attach model='a' body='ball' prefix='a'/><attach model='b' body='ball' prefix='b'/>"
    assert len(load_mjcf(model(uses, before=twice), assets={"m9.xml": model().encode()}).bodies) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    "before",
    [
        "<include file='{}'/>",
        "<asset><mesh name='a' file='{}'/></asset>",
        "<compiler meshdir='sub'/><asset><mesh name='a' file='{}'/></asset>",
        "<compiler assetdir='sub' strippath='true'/><asset><texture name='a' type='2d' file='x/{}'/></asset>",
        "<asset><hfield name='a' file='{}' size='1 1 1 1'/></asset>",
        "<asset><texture name='a' type='cube' fileback='{}'/></asset>",
        "<asset><model name='a' file='{}'/></asset>",
    ],
)
def test_pipes_and_devices_are_not_read(tmp_path, before):
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        os.mkfifo(folder / "pipe.png")
    for name in ("pipe.png", *(() if "strippath" in before else ("/dev/zero",))):
        (tmp_path / "m.xml").write_text(model(before=before.format(name)))
        with pytest.raises(poise.SceneError, match=r"m\.xml:2: <\w+> .*not a file on a disk"):
            load(tmp_path / "m.xml")


def test_comments_are_taken_out_in_one_pass():
    assert without_comments("a<!--b-->c<!-- <!-- -->d<!--") == "acd"
    assert without_comments("<!--" * 300_000) == ""


def test_what_is_checked_may_not_be_there(tmp_path):
    """Missing files are left to MuJoCo, which says so."""
    check_mjcf(model(before="<include file='no.xml'/>"), None, None)
    (tmp_path / "m.xml").write_text(model(before="<include file='no.xml'/>"))
    with pytest.raises(poise.SceneError, match=r"no\.xml"):
        load(tmp_path / "m.xml")


READ_ONE_AFTER_ANOTHER = """
import faulthandler, sys, poise
faulthandler.dump_traceback_later(60, exit=True)
for file in sys.argv[1:]:
    try:
        poise.load(file)
    except poise.SceneError as error:
        print(error)
"""


def test_warnings_end_after_an_error_that_mujoco_does_not_know(tmp_path):
    """In a process of its own: MuJoCo's warning handler would call itself without end."""
    files = [tmp_path / "unknown.xml", tmp_path / "warned.xml"]
    files[0].write_text(model(after="<equality><connect body1='ball' anchor=' '/></equality>"))
    files[1].write_text(model("<body><freejoint/><geom size='nan'/></body>"))
    command = [sys.executable, "-c", READ_ONE_AFTER_ANOTHER, *map(str, files), str(files[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "unknown.xml" in done.stdout
    assert "warned.xml:4" in done.stdout
