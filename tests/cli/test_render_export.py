"""`poise render` and `poise export`: files that they make, and what they answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import poise
from poise.characters import clips, humanoid
from poise.cli.main import app
from poise.io import load_bvh, save_bvh
from poise.motion import retarget
from poise.sim import Recording

run = CliRunner().invoke
URDF = "<robot name='arm'><link name='base'><visual><geometry><box size='1 1 1'/></geometry></visual></link></robot>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A recording of a walk, the clip that it follows, and a scene."""
    place = tmp_path_factory.mktemp("files")
    scene = poise.Scene()
    scene.add_ground()
    scene.add(humanoid(), name="hero")
    model = scene.compile()
    clip = clips.walk(humanoid()).slice(0.0, 0.5)
    times, q = retarget(clip, model)
    tau = {"tau": np.ones((len(q), model.nv)), "passive": np.zeros((len(q), model.nv))}
    Recording(times, q, np.zeros((len(q), model.nv)), model, torques=tau).save(place / "walk.npz")
    save_bvh(clip.resampled(60.0), place / "walk.bvh")
    (place / "arm.urdf").write_text(URDF)
    return place


def done(*arguments: object) -> str:
    found = run(app, [str(argument) for argument in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def refused(*arguments: object) -> str:
    found = run(app, [str(argument) for argument in arguments])
    assert found.exit_code == 1, found.output
    assert "Traceback" not in found.output
    return found.output


def test_a_picture(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.png"
    assert str(out) in done("render", folder / "walk.npz", "-o", out, "--size", "80x60", "--time", "0.2", "--bones")
    assert Image.open(out).size == (80, 60)


def test_a_film_with_all_there_is(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.gif"
    options = [
        "--fps",
        "10",
        "--follow",
        "hero",
        "--ghost",
        folder / "walk.npz",
        "--trail",
        "hand_r",
        "--trail",
        "head",
    ]
    done("render", folder / "walk.npz", "-o", out, "--size", "80x60", *options, "--contacts")
    assert Image.open(out).n_frames == 6


@pytest.mark.filterwarnings("ignore::poise.io.MotionWarning")
def test_a_ghost_from_a_motion(folder: Path, tmp_path: Path) -> None:
    done("render", folder / "walk.npz", "-o", tmp_path / "x.png", "--size", "80x60", "--ghost", folder / "walk.bvh")


@pytest.mark.parametrize("name", ["x.png", "x.gif"])
def test_a_scene(folder: Path, tmp_path: Path, name: str) -> None:
    done("render", folder / "arm.urdf", "-o", tmp_path / name, "--size", "80x60", "--seconds", "0.1")
    assert Image.open(tmp_path / name).size == (80, 60)


def test_answers_of_render(folder: Path, tmp_path: Path) -> None:
    walk = folder / "walk.npz"
    assert ".png, .gif or .mp4" in refused("render", walk, "-o", tmp_path / "x.glb")
    assert "width and a height like 640x480" in refused("render", walk, "-o", tmp_path / "x.png", "--size", "big")
    assert 'did you mean "hero"' in refused("render", walk, "-o", tmp_path / "x.png", "--follow", "heroo")
    assert "there is no such file" in refused("render", folder / "none.npz", "-o", tmp_path / "x.png")
    assert "no such folder" in refused("render", walk, "-o", tmp_path / "no" / "x.png")
    for seconds, said in (("nan", "is nan"), ("-1", "0 or more"), ("0", "nothing to do"), ("1e300", "steps at most")):
        film = ("render", folder / "arm.urdf", "-o", tmp_path / "x.gif", f"--seconds={seconds}")
        assert said in refused(*film)
    assert run(app, ["render", str(walk)]).exit_code == 2


def test_exports(folder: Path, tmp_path: Path) -> None:
    walk = folder / "walk.npz"
    for name in ("x.glb", "x.usda", "x.h5", "x.bvh"):
        done("export", walk, "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert len(Recording.load(tmp_path / "x.h5")) == len(Recording.load(walk))
    done("export", walk, "-o", tmp_path / "x.csv", "--what", "torque", "--joint", "knee_r", "--fps", "30")
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines[0] == "time,hero/knee_r"
    assert len(lines) == 17


@pytest.mark.filterwarnings("ignore::poise.io.MotionWarning")
def test_an_export_in_the_skeleton_of_a_clip(folder: Path, tmp_path: Path) -> None:
    done("export", folder / "walk.npz", "-o", tmp_path / "x.bvh", "--like", folder / "walk.bvh")
    found = load_bvh(tmp_path / "x.bvh", units="cm", up="y", drop_tpose=False)
    source = load_bvh(folder / "walk.bvh", units="cm", up="y", drop_tpose=False)
    assert found.skeleton.names == source.skeleton.names
    assert found.rate == pytest.approx(source.rate, rel=1e-4)


def test_answers_of_export(folder: Path, tmp_path: Path) -> None:
    walk = folder / "walk.npz"
    assert 'did you mean ".glb"' in refused("export", walk, "-o", tmp_path / "x.fbx")
    assert "--joint says nothing to .glb files" in refused(
        "export", walk, "-o", tmp_path / "x.glb", "--joint", "knee_r"
    )
    said = refused("export", walk, "-o", tmp_path / "x.csv", "--what", "torque", "--joint", "kne_r")
    assert 'did you mean "hero/knee_r"' in said
    assert "not a recording" in refused("export", folder / "arm.urdf", "-o", tmp_path / "x.glb")
    assert "there is no such file" in refused("export", tmp_path / "none.npz", "-o", tmp_path / "x.glb")
