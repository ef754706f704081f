"""`poise view`: what it shows, where it listens, how it ends."""

import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from importlib import import_module

import pytest
from typer.testing import CliRunner

import poise
from poise.cli.demos import DEMOS, VIEWED
from poise.cli.main import app
from poise.cli.view import find_source

run = CliRunner().invoke
MJCF = """<mujoco model="ball"><worldbody><body name="ball" pos="0 0 1"><freejoint/>
<geom type="sphere" size="0.1" mass="1"/></body><geom type="plane" size="1 1 1"/></worldbody></mujoco>"""


@pytest.fixture
def ball(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(MJCF)
    return path


def test_shows_a_scene_for_some_time_and_ends(ball):
    result = run(app, ["view", str(ball), "--no-browser", "--port", "0", "--seconds", "0.3"])
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{22,}/  \(Ctrl-C ends\)\n", result.stdout)


def test_shows_a_recording(tmp_path):
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    scene.build().run(0.2).save(tmp_path / "fall.npz")
    result = run(app, ["view", str(tmp_path / "fall.npz"), "--no-browser", "--port", "0", "--seconds", "0.2"])
    assert result.exit_code == 0, result.output


def test_a_port_in_use_is_told_and_the_next_one_taken(ball):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(app, ["view", str(ball), "--no-browser", "--port", str(port), "--seconds", "0.1"])
    assert result.exit_code == 0, result.output
    assert f"port {port} is in use" in result.output
    assert f"127.0.0.1:{port}" not in result.output
    assert "http://127.0.0.1:" in result.output


def interrupted(source, after=0.0):
    """Let it run until it has told its address, and a while, then interrupt it: how it ended, and what it told."""
    command = [sys.executable, "-m", "poise", "view", source, "--no-browser", "--port", "0"]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests that run in the background may not
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=heed, **pipes) as process:
        try:
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            told = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, told


def test_an_interrupt_ends_it_cleanly(ball):
    assert interrupted(str(ball)) == (0, ("", ""))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bakset"], "there is neither a file nor a demo 'bakset'; did you mean basket?"),
        (["nowhere.xml"], "nowhere.xml"),
        (["nothing.npz"], "nothing.npz"),
        (["demo", "--seconds", "-1"], "--seconds is -1; it must be above 0"),
        (["swing"], "cannot be looked at while it runs (these can: basket, umbrella, dragged, "),
    ],
)
def test_what_cannot_be_shown_is_told(arguments, told):
    result = run(app, ["view", *arguments, "--no-browser"])
    assert result.exit_code == 1
    assert told in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "99999"], "port is 99999; it must be a whole number from 0 to 65535"),
        (["--allow", "http://robot.lab"], "allow has 'http://robot.lab'; it must be the name of a host"),
        (["--host", "no.such.host.invalid"], "host is 'no.such.host.invalid', which cannot be found"),
    ],
)
def test_where_nobody_can_listen_is_told(ball, arguments, told):
    result = run(app, ["view", str(ball), *arguments, "--no-browser", "--seconds", "0.1"])
    assert result.exit_code == 1
    assert told in result.output


def test_damaged_recordings_are_told(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no")
    result = run(app, ["view", str(tmp_path / "bad.npz"), "--no-browser"])
    assert result.exit_code == 1
    assert "bad.npz" in result.output


def test_without_viser_the_extra_is_named(ball, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    result = run(app, ["view", str(ball), "--no-browser"])
    assert result.exit_code == 1
    assert 'pip install "poise[view]"' in result.output


def test_demo_stands_for_one_that_can_be_looked_at():
    assert VIEWED in DEMOS
    assert find_source("demo")().name == VIEWED


@pytest.mark.parametrize("name", DEMOS)
def test_demos_are_live_that_have_a_scene(name):
    assert DEMOS[name].live == hasattr(import_module(f"poise.cli.demos.{name}"), "scene")


def test_an_interrupt_while_the_world_is_built_ends_it_cleanly():
    code, told = interrupted("demo", after=0.2)
    # CPython ends as if interrupted where that came within exec of a text, as of dataclasses, though it was caught
    assert code in (0, -signal.SIGINT)
    assert told == ("", "")
