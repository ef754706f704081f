"""The camera that a scene file asks for: in pictures and films, in the viewer, in pages, from the command line."""

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import poise
from poise.cli.main import app
from poise.cli.view import find_source
from poise.sim import Recording
from poise.view import Camera, Film, picture
from poise.view.camera_paths import cameras
from poise.view.live import Session, Viewer
from poise.view.live.front import first_camera, followed_body
from poise.view.page import read_page
from poise.view.png import save_png

SCENE = """
name: ball
parameters: {speed: 1.0, height: 1.0}
bodies:
  - {name: ball, position: [0, 0, $height], velocity: [$speed, 0, 0], shapes: [{kind: sphere, radius: 0.1}]}
gravity: [0, 0, 0]
"""
EYE = "camera: {position: [0, -4, 2], target: [0.5, 0, 1], field_of_view_deg: 30}\n"


@pytest.fixture
def file(tmp_path):
    def write(camera=EYE):
        path = tmp_path / "ball.yaml"
        path.write_text(SCENE + camera)
        return path

    return write


def test_recordings_take_it_along(file, tmp_path):
    recording = poise.load(file()).build().run(0.1)
    asked = recording.options["camera"]
    assert asked == {"position": [0, -4, 2], "target": [0.5, 0, 1], "field_of_view": math.radians(30)}
    for name in ("x.npz", "x.h5"):
        recording.save(tmp_path / name)
        assert Recording.load(tmp_path / name).options["camera"] == asked
    assert "camera" not in poise.load(file("")).build().run(0.1).options


def test_pictures_are_taken_from_there(file, tmp_path):
    recording = poise.load(file()).build().run(0.1)
    camera = Camera((0, -4, 2), (0.5, 0, 1), field_of_view=math.radians(30))
    wanted = picture(recording.model, recording.q[-1], camera, size=(64, 48))
    (image,) = Film(size=(64, 48)).pictures(recording, recording.time[-1:])
    assert (image == wanted).all()
    for other in ({"side": (0, 0, 1)}, {"camera": Camera((5, 0, 1), (0, 0, 1))}):  # what is told counts more
        (image,) = Film(size=(64, 48), **other).pictures(recording, recording.time[-1:])
        assert (image != wanted).any()


def test_the_command_line_takes_pictures_from_there(file, tmp_path):
    out = tmp_path / "x.png"
    result = CliRunner().invoke(app, ["render", str(file()), "-o", str(out), "--size", "64x48", "--set", "height=1.5"])
    assert result.exit_code == 0, result.output
    camera = Camera((0, -4, 2), (0.5, 0, 1), field_of_view=math.radians(30))
    world = poise.load(file(), set={"height": 1.5}).build()
    save_png(tmp_path / "y.png", picture(world.model, world.q, camera, size=(64, 48)))
    assert out.read_bytes() == (tmp_path / "y.png").read_bytes()


def test_it_goes_along_with_whom_it_is_asked_to_follow(file):
    recording = poise.load(file(EYE.replace("}", ", follow: ball}"))).build().run(1.0)
    late = recording.time > 0.5
    views = cameras(
        recording.model,
        recording.time[late],
        recording.q[late],
        None,
        1.0,
        (1.0, 0.0, 0.0),
        recording.options["camera"],
        recording.q[0],
    )
    # the ball goes 1 m/s along x, and the eye as it was put before it started
    assert views[-1].position == pytest.approx((1.0, -4.0, 2.0), abs=1e-6)
    assert views[-1].target == pytest.approx((1.5, 0.0, 1.0), abs=1e-6)


@pytest.mark.parametrize(
    ("camera", "position", "target"),
    [
        ("camera: {target: [1, 0, 1]}", None, (1, 0, 1)),
        ("camera: {position: [4, 0, 1]}", (4, 0, 1), (0, 0, 1)),
        ("camera: {position: [0, 0, 9], target: [0, 0, 1]}", (0, 0, 9), (0, 0, 1)),  # from above: another way is up
    ],
)
def test_what_is_not_asked_for_is_as_usual(file, camera, position, target):
    scene = poise.load(file(camera))
    world = scene.build()
    (view,) = cameras(world.model, np.zeros(1), world.q[None], None, 1.0, (1.6, -1.0, 0.5), world.camera)
    usual = Camera.looking_at(world.model, world.q, aspect=1.0)
    assert view.target == pytest.approx(target)
    assert view.position == pytest.approx(
        position or np.add(usual.position, np.subtract(target, usual.target)), abs=1e-9
    )
    assert view.field_of_view == usual.field_of_view


def test_pages_begin_there(file, tmp_path):
    recording = poise.load(file()).build().run(0.1)
    recording.save(tmp_path / "x.html")
    page = read_page(tmp_path / "x.html")
    view, origin = page["view"], np.array(page["origin"])
    eye = view["eye"]
    away = (math.cos(eye["pitch"]) * math.cos(eye["yaw"]), math.cos(eye["pitch"]) * math.sin(eye["yaw"]))
    target = origin + eye["shift"]
    assert target == pytest.approx((0.5, 0, 1))
    assert target + eye["distance"] * np.array((*away, math.sin(eye["pitch"]))) == pytest.approx((0, -4, 2))
    assert view["follow"] == -1  # it stays where it was put
    recording = poise.load(file(EYE.replace("}", ", follow: ball}"))).build().run(0.1)
    recording.save(tmp_path / "x.html")
    assert read_page(tmp_path / "x.html")["view"]["follow"] == 0
    poise.load(file("")).build().run(0.1).save(tmp_path / "x.html")
    assert "eye" not in read_page(tmp_path / "x.html")["view"]


def test_the_viewer_begins_there(file):
    scene = find_source(str(file()), ["height=1.25"])
    with Viewer(scene, port=0, paused=True) as viewer:
        assert viewer.session.q[2] == 1.25
        start = viewer.server.initial_camera
        assert start.position == pytest.approx((0, -4, 2))
        assert start.look_at == pytest.approx((0.5, 0, 1))
        assert start.fov == pytest.approx(math.radians(30))
    session = Session(scene.build().run(0.1))
    assert first_camera(session).position == (0, -4, 2)
    assert followed_body(session) is None
    assert followed_body(Session(poise.load(file("camera: {follow: ball}")))) == 0


@pytest.mark.parametrize(("what", "found"), [("demo", "is a demo"), ("x.npz", "is a recording")])
def test_parameters_are_of_scene_files(what, found, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    poise.load(file()).build().run(0.1).save("x.npz")
    result = CliRunner().invoke(app, ["view", what, "--set", "height=2", "--no-browser", "--port", "0"])
    assert result.exit_code == 1
    assert found in result.output


def test_a_parameter_that_there_is_not_is_told(file):
    result = CliRunner().invoke(app, ["view", str(file()), "--set", "heigth=2", "--no-browser", "--port", "0"])
    assert result.exit_code == 1
    assert "heigth" in result.output
    assert "height" in result.output.replace("heigth", "")


@pytest.mark.browser
def test_the_page_looks_from_there(file, tmp_path, the_browser):
    poise.load(file()).build().run(0.5).save(tmp_path / "x.html")
    page = the_browser.new_page(viewport={"width": 400, "height": 300})
    page.goto((tmp_path / "x.html").as_uri())
    page.wait_for_selector("html[data-state]")
    origin = np.array(page.evaluate("poise.data.origin"))
    for _ in range(2):
        look = page.evaluate("poise.camera.look()")
        assert origin + look["eye"] == pytest.approx((0, -4, 2), abs=1e-6)
        assert origin + look["target"] == pytest.approx((0.5, 0, 1), abs=1e-6)
        page.evaluate("poise.camera.reset()")
    page.close()
