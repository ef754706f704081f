"""`poise run`: what it prints, writes and leaves with."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import poise
from poise.cli.main import app

run = CliRunner().invoke

SCENE = """
parameters: {friction: 0.5, high: 1}
ground: {friction: $friction}
bodies:
  - {name: ball, position: [0, 0, $high], shape: {kind: sphere, radius: 0.1, mass: 2}}
duration: 0.5
"""


@pytest.fixture
def scene(tmp_path):
    file = tmp_path / "ball.yaml"
    file.write_text(SCENE)
    return file


def test_it_says_what_happened(scene):
    done = run(app, ["run", str(scene)], env={"POISE_QUIET": "1"})  # else it tells of kernels that it compiles
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    for part in ("ball (", "0.5 s in 120 steps", "recorded   31 states", "contacts", "ball       at (0, 0, 0.1) m"):
        assert part in done.stdout, done.stdout


def test_json_and_options(scene, tmp_path):
    save = tmp_path / "fall.npz"
    arguments = ["--json", "--seconds", "0.1", "--dt", "0.01", "--set", "high=2", "--every", "1", "--save", str(save)]
    done = run(app, ["run", str(scene), *arguments])
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["steps"], facts["frames"], facts["dt"], facts["problem"]) == (10, 11, 0.01, None)
    assert facts["saved"] == str(save)
    assert facts["energy"][0] == pytest.approx(2 * 9.81 * 2, rel=1e-12)
    assert facts["bodies"]["ball"][2] < 2.0
    recording = poise.sim.Recording.load(save)
    assert len(recording) == 11
    assert recording.q[0, 2] == 2.0


def test_a_pipe_is_told_the_facts_only(scene):
    command = [sys.executable, "-m", "poise", "run", str(scene), "--seconds", "2"]
    environment = {name: value for name, value in os.environ.items() if name != "POISE_QUIET"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "fricton=1"], 'the scene has no parameter "fricton", did you mean "friction"?'),
        (["--set", "friction"], 'set: must be name=value, such as friction=0.3, found "friction"'),
        (["--set", "friction=high"], "set: friction: must be a number, found 'high'"),
        (["--seconds", "-1"], "--seconds: must be more than 0, found -1"),
        (["--seconds", "nan"], "--seconds: must be more than 0, found nan"),
        (["--seconds", "1e18"], "one call takes 1e+12 steps at most"),
        (["--dt", "0"], "--dt: must be more than 0, found 0"),
        (["--every", "-3"], "nothing to do"),
        (["--save", "fall.mov"], 'there is no format ".mov", did you mean ".mp4"?'),
        (["--save", "nowhere/fall.npz"], "nowhere/fall.npz: there is no such folder to save to"),
    ],
)
def test_bad_input_leaves_with_1(scene, arguments, said):
    done = run(app, ["run", str(scene), *arguments])
    assert done.exit_code == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_scene_is_told_line_by_line(scene):
    scene.write_text(SCENE.replace("radius", "radus").replace("duration", "duraton"))
    done = run(app, ["run", str(scene)])
    assert done.exit_code == 1
    assert f"{scene}:6: a scene has no field" in done.stderr
    assert 'did you mean "radius"?' in done.stderr


def test_a_misspelt_file_is_answered_with_the_nearest(scene):
    done = run(app, ["run", str(scene.with_name("bal.yaml"))])
    assert done.exit_code == 1
    assert 'there is no such file, did you mean "ball.yaml"?' in done.stderr


def test_a_world_that_diverges_leaves_with_3_and_what_was_recorded(tmp_path):
    file = tmp_path / "wild.yaml"
    file.write_text(  # 1e308 N on 1e-9 kg: the speed is beyond the largest number, however it is rounded
        "bodies:\n  - {name: ball, shape: {kind: sphere, radius: 0.1, mass: 1e-9}}\n"
        "pushes: [{body: ball, time: 0.5, duration: 1, force: [1e308, 0, 0]}]\nduration: 1\n"
    )
    save = tmp_path / "wild.npz"
    done = run(app, ["run", str(file), "--save", str(save), "--json"])
    assert done.exit_code == 3, done.stdout
    assert "it diverged" in done.stderr
    facts = json.loads(done.stdout)
    assert "diverged" in facts["problem"]
    assert facts["time"] <= 0.6
    assert len(poise.sim.Recording.load(save)) == facts["frames"]


def test_ctrl_c_keeps_what_was_recorded(scene, tmp_path, monkeypatch):
    steps = poise.World.step

    def impatient(world, *arguments):
        if world.time > 0.2:
            raise KeyboardInterrupt
        return steps(world, *arguments)

    monkeypatch.setattr(poise.World, "step", impatient)
    save = tmp_path / "part.npz"
    done = run(app, ["run", str(scene), "--save", str(save)])
    assert done.exit_code == 130
    assert "stopped at 0.2" in done.stderr
    assert 0 < len(poise.sim.Recording.load(save)) < 31


def test_hdf5_is_written_as_it_goes_and_told_as_the_same(scene, tmp_path, monkeypatch):
    told = []
    for name in ("x.npz", "x.h5"):
        done = run(app, ["run", str(scene), "--save", str(tmp_path / name), "--json"])
        assert done.exit_code == 0, done.stderr
        told.append(json.loads(done.stdout))
    a, b = ({name: value for name, value in facts.items() if name not in ("wall", "speed")} for facts in told)
    assert a.pop("saved").endswith("x.npz")
    assert b.pop("saved").endswith("x.h5")
    assert a == b
    assert a["contacts"]["strongest"] > 0.0
    assert a["energy"][0] != a["energy"][1]
    mine, theirs = (poise.sim.Recording.load(tmp_path / name) for name in ("x.npz", "x.h5"))
    assert mine.q.tobytes() == theirs.q.tobytes()
    steps = poise.World.step

    def impatient(world, *arguments):
        if world.time > 0.2:
            raise KeyboardInterrupt
        return steps(world, *arguments)

    monkeypatch.setattr(poise.World, "step", impatient)
    done = run(app, ["run", str(scene), "--save", str(tmp_path / "part.h5")])
    assert done.exit_code == 130
    assert 0 < len(poise.sim.Recording.load(tmp_path / "part.h5")) < 31


def test_info_of_yaml(scene):
    done = run(app, ["info", str(scene), "--json", "--set", "high=3"])
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["name"], facts["nq"], facts["mass"]) == ("ball", 7, 2.0)


def test_other_formats_run_too(tmp_path):
    file = tmp_path / "r.urdf"
    file.write_text("<robot name='r'><link name='base'/></robot>")
    done = run(app, ["run", str(file), "--seconds", "0.1"])
    assert done.exit_code == 0, done.stderr
    done = run(app, ["run", str(file), "--set", "a=1"])
    assert done.exit_code == 1
    assert 'URDF files take no option "set"' in done.stderr
