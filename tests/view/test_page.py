"""Pages that play recordings: what is in them is what was recorded, and nothing that names say can break them."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import poise
from collision.ray_reference import round_mesh
from poise.characters import clips, humanoid
from poise.motion import keyframes, retarget
from poise.motion.rotations import quat_to_matrix
from poise.sim import Recording
from poise.view.page import SCRIPTS, page_text, read_page, save_page, still
from poise.view.page.packing import pack, unpack

HOSTILE = "</script><script>alert(1)</script><!-- {{data}} &amp; \"' \\ \u2028 ${x} `"


@pytest.fixture(scope="module")
def walk() -> Recording:
    """Ten seconds of walking, far from the origin."""
    scene = poise.Scene(name="walk")
    scene.add_ground()
    hero = humanoid(height=1.75, mass=70.0)
    scene.add(hero, name="hero")
    model = scene.compile()
    times, q = retarget(clips.walk(hero, speed=1.3).slice(0.0, 10.0), model)
    q[:, :2] += (5000.0, -3000.0)
    return Recording(times, q, np.zeros((len(times), model.nv)), model)


@pytest.fixture(scope="module")
def fall() -> Recording:
    """A stick that falls over on the ground, with a ball."""
    scene = poise.Scene(name="fall")
    scene.add_ground()
    scene.add(poise.box(0.1, 0.1, 1.0, mass=2.0), name="stick", position=(0, 0, 0.51), quat_wxyz=(0.995, 0.1, 0, 0))
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(1, 0, 0.3))
    return scene.build(dt=1 / 240).run(0.6, signals={"height": lambda world: world.q[2]})


def content(recording: Recording, tmp_path: Path, **options):
    return read_page(save_page(recording, tmp_path / "page.html", still=False, **options))


def pose_streams(page):
    origin = np.array(page["origin"])
    streams = page["poses"]
    return unpack(streams["time"]), unpack(streams["position"]) + origin, unpack(streams["turn"])


@given(
    arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 4)), elements=st.floats(-1e6, 1e6)),
    st.floats(1e-6, 10.0),
)
def test_packed_numbers_come_back_to_half_a_step(values, step):
    stream = pack(values, step)
    back = unpack(stream)
    assert back.shape == values.shape
    # the step grows where a number would need more than 30 bits
    assert stream["step"] == max(step, np.abs(values).max(initial=0.0) / 2.0**30)
    assert np.abs(back - values).max(initial=0.0) <= 0.5 * stream["step"] * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_not_packed(bad):
    with pytest.raises(ValueError, match="finite"):
        pack([0.0, bad], 1.0)


def test_poses_are_those_of_the_recording(walk, tmp_path):
    """Positions to half of 0.1 mm an axis, turns to an angle of 2 · 2⁻¹⁶, though it is kilometres away."""
    page = content(walk, tmp_path)
    time, position, turn = pose_streams(page)
    frames = np.array([walk.at(t) for t in time])
    assert np.abs(time - walk.time[frames]).max() <= 0.5e-6 + 1e-12
    assert (frames[0], frames[-1]) == (0, len(walk) - 1)
    assert len(frames) == pytest.approx(60 * 10, abs=2)
    place = poise.dynamics.bodies(walk.model, walk.q[frames])
    there = place.position[:, walk.model.link_body]
    assert np.abs(position - there).max() <= 0.5e-4 + 1e-9
    unit = turn / np.linalg.norm(turn, axis=2, keepdims=True)
    off = np.einsum("fnij,fnik->fnjk", quat_to_matrix(unit), place.rotation[:, walk.model.link_body])
    angle = np.arccos(np.clip(0.5 * (np.trace(off, axis1=2, axis2=3) - 1.0), -1.0, 1.0))
    assert angle.max() <= 2.0 / 65536 + 1e-7
    assert (np.sum(turn[1:] * turn[:-1], axis=2) > 0.0).all(), "signs never jump"


def test_a_walk_of_ten_seconds_is_small(walk, tmp_path):
    path = tmp_path / "walk.html"
    walk.save(path, ghost=walk, trails=["foot_l", "foot_r"])
    assert path.stat().st_size < 1_500_000
    assert [read_page(path)["links"][k] for k in read_page(path)["view"]["trails"]] == ["hero/foot_l", "hero/foot_r"]


def test_contacts_are_forces_on_what_moves(fall, tmp_path):
    page = content(fall, tmp_path)
    frames = np.array([fall.at(t) for t in unpack(page["poses"]["time"])])
    count = unpack(page["contacts"]["count"]).astype(int)
    force = unpack(page["contacts"]["force"])
    point = unpack(page["contacts"]["point"]) + page["origin"]
    assert count.tolist() == [len(fall.frame(int(k)).contacts) for k in frames]
    first = int(np.flatnonzero(count)[0])
    contact = fall.frame(int(frames[first])).contacts[0]
    sign = 1.0 if contact.body_b != "ground" else -1.0
    assert np.abs(point[0] - contact.point).max() <= 0.5e-4 + 1e-9
    assert np.abs(force[0] - sign * contact.force).max() <= page["contacts"]["force"]["step"]
    assert (force[:, 2] > -1e-6).all(), "the ground pushes up"


def test_curves_are_those_of_the_recording(fall, tmp_path):
    page = content(fall, tmp_path)
    frames = np.array([fall.at(t) for t in unpack(page["poses"]["time"])])
    charts = {chart["name"]: chart for chart in page["charts"]}
    energy = charts["Energy"]
    values = unpack(energy["values"]) + energy["low"]
    for k, name in enumerate(energy["curves"]):
        wanted = fall.curves("energy")[name][frames]
        assert np.abs(values[:, k] - wanted).max() <= energy["values"]["step"]
    height = charts["height"]
    assert np.abs(unpack(height["values"])[:, 0] + height["low"] - fall.q[frames, 2]).max() <= height["values"]["step"]
    pushes = unpack(charts["Contact force"]["values"])[-1, 0]
    assert pushes == pytest.approx(sum(np.linalg.norm(c.force) for c in fall.frame(-1).contacts), rel=1e-3)


def test_torques_are_told_by_joints_with_their_units(tmp_path):
    scene = poise.Scene()
    arm = scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=1.0), axis="y", name="arm")
    scene.slider(arm, poise.box(0.1, 0.1, 0.1, mass=1.0), axis="z", name="drawer")
    scene.motor("arm", stiffness=100.0, damping=5.0)
    world = scene.build(dt=0.01)
    world.tau = np.array((0.0, 3.0))
    world.q[0] = 0.5
    page = content(world.run(0.1), tmp_path)
    charts = {(chart["group"], chart["name"]): chart for chart in page["charts"]}
    assert charts["Torques given", "drawer"]["unit"] == "N"
    assert ("Torques given", "arm") not in charts, "what is 0 all the time is left out"
    assert next(chart for (group, _), chart in charts.items() if group == "Motors")["unit"] == "N·m"


def test_signals_with_gaps(fall, tmp_path):
    values = np.arange(len(fall), dtype=float)
    values[3] = np.nan
    values[5] = np.inf
    page = content(replace(fall, signals={"gappy": values, "none": np.full(len(fall), np.nan)}), tmp_path, fps=240)
    gappy, none = (next(c for c in page["charts"] if c["name"] == name) for name in ("gappy", "none"))
    assert gappy["gaps"] == [[3, 0], [5, 0]]
    assert len(none["gaps"]) == len(fall)


def test_ghosts_of_every_sort_stand_at_the_same_places(walk, tmp_path):
    """A clip that is retargeted, times and coordinates, and a recording are the same motion: no distance between."""
    hero = humanoid(height=1.75, mass=70.0)
    clip = clips.walk(hero, speed=1.3).slice(0.0, 10.0).shifted((5000.0, -3000.0, 0.0))
    for ghost in (clip, (walk.time, walk.q), walk, poise.control.Reference((walk.time, walk.q), walk.model)):
        page = content(walk, tmp_path, ghost=ghost)
        assert len(page["ghost"]["links"]) == walk.model.n_links
        error = page["charts"][0]
        assert error["name"] == "Distance from the ghost"
        # frames of both are between each other at most by a fourth of a frame: a hand at 3 m/s moves 1/60 s · 3 / 4
        assert (unpack(error["values"]) + error["low"]).max() < 0.0125


def test_ghosts_are_of_those_who_move_in_them(fall, tmp_path):
    moved = np.repeat(fall.q[:1], 3, axis=0)
    moved[:, 2] += (0.0, 0.1, 0.2)
    links = content(fall, tmp_path, ghost=([0.0, 0.3, 0.6], moved))["ghost"]["links"]
    assert [fall.model.body_names[fall.model.link_body[k]] for k in links] == ["stick"]
    still_one = content(fall, tmp_path, ghost=([0.0], fall.q[:1]))
    assert len(still_one["ghost"]["links"]) == 2
    assert np.ptp(unpack(still_one["ghost"]["position"]), axis=0).max() == 0.0


def test_key_frames_are_ghosts(tmp_path):
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", name="arm")
    recording = scene.build(dt=0.01).run(1.0)
    page = content(recording, tmp_path, ghost=keyframes({0.0: {"arm": 0.0}, 1.0: {"arm": 2.0}}, moves="linear"))
    turn = unpack(page["ghost"]["turn"])[-1, 0]
    assert 2.0 * np.arccos(abs(turn[0])) == pytest.approx(2.0, abs=1e-4)


@pytest.mark.parametrize(
    ("ghost", "words"),
    [
        (3, "ghost: a motion is a recording, a clip, key-frames, or .*, found int"),
        ("walk.bvh", "ghost: a motion is a recording, a clip"),
        (([0.0, 1.0], np.zeros((2, 3))), r"2 frames of it are \(2, 14\) numbers, found \(2, 3\)"),
        (([], np.zeros((0, 14))), "times: must be a list of at least one time"),
        (([0.0, np.nan], np.ones((2, 14))), "must be finite"),
        (([0.0, 0.0], np.ones((2, 14))), "times: must increase"),
    ],
)
def test_ghosts_that_cannot_be(fall, tmp_path, ghost, words):
    with pytest.raises(poise.SceneError, match=words):
        fall.save(tmp_path / "x.html", ghost=ghost)
    assert list(tmp_path.iterdir()) == []


class Reader(HTMLParser):
    """Tags of a page and the text in them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags:
            self.texts.setdefault(self.tags[-1][0], []).append(data)


def parsed(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def test_hostile_names_stay_names(tmp_path):
    scene = poise.Scene(name=HOSTILE)
    scene.add(poise.sphere(0.1, name=HOSTILE), name="ball " + HOSTILE.replace("/", "|"))
    recording = scene.build(dt=0.1).run(0.3, signals={HOSTILE: lambda world: 1.0})
    path = save_page(recording, tmp_path / "x.html", about=HOSTILE, still=False)
    plain = save_page(poise.Scene().build(dt=0.1).run(0.3), tmp_path / "plain.html", still=False)
    hostile, tame = (parsed(file.read_text(encoding="utf-8")) for file in (path, plain))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in tame.tags]
    assert "".join(hostile.texts["title"]).strip() == HOSTILE
    page = read_page(path)
    assert (page["title"], page["about"], page["shapes"][0]["name"]) == (HOSTILE, HOSTILE, HOSTILE)


def test_halves_of_characters_in_names(tmp_path):
    recording = poise.Scene().build(dt=0.1).run(0.1)
    path = save_page(recording, tmp_path / "x.html", title="half \ud800 of one", still=False)
    assert "<title>half ? of one</title>" in path.read_text(encoding="utf-8")


def test_one_file_that_asks_for_nothing(fall, tmp_path):
    """No address in it is asked for; a policy in the page forbids it too."""
    text = page_text(fall, still=True)
    reader = parsed(text)
    for tag, attributes in reader.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    policy = next(a["content"] for t, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"https?://|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", text)
    assert text.count("<script") == text.count("</script>") == 2


def test_scripts_are_whole_and_used():
    folder = Path(still.__file__).parent / "web"
    assert {path.stem for path in folder.glob("*.js")} == set(SCRIPTS)
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert total < 80_000
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 400, path.name
        if path.suffix != ".html":
            assert "</script" not in text
            assert "</style" not in text
            assert "{{" not in text


def test_every_kind_of_shape_is_told(tmp_path):
    scene = poise.Scene()
    scene.add_ground()
    vertices, faces = round_mesh(1)
    hull = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    scene.add(poise.triangle_mesh(vertices, faces), name="mesh", fixed=True)
    scene.add(poise.height_field([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5]], 2.0, 1.0), name="hills", fixed=True)
    for shape in (poise.sphere(0.1), poise.capsule(0.1, 0.3), poise.box(1, 2, 3), poise.cylinder(0.1, 0.2)):
        scene.add(shape, name=type(shape).__name__, position=(0, 0, 5))
    scene.add(poise.ellipsoid(0.1, 0.2, 0.3), name="egg", position=(0, 0, 9))
    scene.add(poise.convex(hull), name="hull", position=(3, 0, 5))
    scene.add(poise.convex(hull, group=0, mask=0, mass=1.0), name="looked at", position=(5, 0, 5))
    scene.add(poise.sphere(1.0, color=(1, 0, 0, 0)), name="unseen", position=(9, 0, 5))
    model = scene.compile()
    page = content(Recording(np.zeros(1), model.q_rest[None], np.zeros((1, model.nv)), model), tmp_path)
    kinds = [shape["kind"] for shape in page["shapes"]]
    known = {"plane", "sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "field", "mesh"}
    assert set(kinds) == known
    assert len(kinds) == 10
    meshes = {
        shape["name"].partition("[")[0]: page["meshes"][shape["mesh"]] for shape in page["shapes"] if "mesh" in shape
    }
    hills = unpack(meshes["hills"]["vertices"])
    assert hills.shape == (6, 3)
    assert np.abs(hills[:, 2] - [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]).max() < 1e-4
    assert unpack(meshes["hills"]["faces"]).tolist()[0] == [0, 1, 4]
    assert unpack(meshes["looked at"]["faces"]).shape == (4, 3)
    assert np.abs(unpack(meshes["mesh"]["vertices"]) - vertices).max() < 1e-4


def test_empty_recordings_and_odd_ones(fall, tmp_path):
    empty = replace(fall, time=fall.time[:0], q=fall.q[:0], v=fall.v[:0])
    with pytest.raises(poise.SceneError, match="empty"):
        save_page(empty, tmp_path / "x.html")
    with pytest.raises(poise.SceneError, match="must be a Recording"):
        save_page(fall.model, tmp_path / "x.html")  # type: ignore[arg-type]
    backwards = replace(fall, time=fall.time[::-1].copy())
    with pytest.raises(poise.SceneError, match="go back"):
        save_page(backwards, tmp_path / "x.html")
    broken = replace(fall, q=np.where(np.arange(len(fall))[:, None] == 7, np.nan, fall.q))
    with pytest.raises(poise.SceneError, match="frame 7"):
        save_page(broken, tmp_path / "x.html")
    for fps in (0, -1.0, np.nan, "fast", True):
        with pytest.raises(poise.SceneError, match="fps"):
            save_page(fall, tmp_path / "x.html", fps=fps)
    assert list(tmp_path.iterdir()) == []


def test_one_frame_and_no_bodies(fall, tmp_path):
    one = Recording(fall.time[:1], fall.q[:1], fall.v[:1], fall.model)
    time, position, turn = pose_streams(content(one, tmp_path))
    assert (time.shape, position.shape, turn.shape) == ((1,), (1, 2, 3), (1, 2, 4))
    assert content(one, tmp_path)["charts"] == []
    nobody = content(poise.Scene().build(dt=0.25).run(0.5), tmp_path)
    assert (nobody["links"], nobody["view"]["follow"]) == ([], -1)


def test_who_is_followed(fall, walk, tmp_path):
    assert content(walk, tmp_path)["view"]["follow"] == 0
    assert content(fall, tmp_path, follow=False)["view"]["follow"] == -1
    assert content(fall, tmp_path, follow="ball")["view"]["follow"] == 1
    assert content(fall, tmp_path, trails="ball")["view"]["trails"] == [1]
    with pytest.raises(ValueError, match="ball"):
        content(fall, tmp_path, follow="bal")
    with pytest.raises(poise.SceneError, match="never moves"):
        content(fall, tmp_path, follow="ground")


def test_diverged_numbers_are_coarser_not_wrong(fall, tmp_path):
    q = fall.q.copy()
    q[-1, 0] = 1e9
    _, position, _ = pose_streams(content(replace(fall, q=q), tmp_path))
    assert position[-1, 0, 0] == pytest.approx(1e9, rel=1e-9)


def test_facts_tell_versions_and_step(fall, tmp_path):
    facts = dict(content(fall, tmp_path)["facts"])
    assert f"poise {poise.__version__}" in facts["Versions"]
    assert facts["Step"] == "0.00416667 s"
    assert facts["Shown"].endswith("of 145 recorded frames, 0 to 0.6 s")


def test_what_is_no_page(tmp_path):
    (tmp_path / "x.html").write_text("<!doctype html>")
    with pytest.raises(poise.SceneError, match="not a page that Poise saved"):
        read_page(tmp_path / "x.html")


def test_notebooks(fall, monkeypatch):
    """A recording is shown by its page in a frame, a long one by a picture; models and scenes by pictures."""
    shown = fall._repr_html_()
    frame = parsed(shown).tags[0]
    assert frame[0] == "iframe"
    assert frame[1]["srcdoc"].startswith("<!doctype html>")
    assert '"title":"fall"' in frame[1]["srcdoc"]
    monkeypatch.setattr(still, "LARGEST", 1000)
    large = parsed(fall._repr_html_())
    assert large.tags[1][0] == "img"
    assert "too large" in large.tags[1][1]["alt"]
    assert parsed(fall.model._repr_html_()).tags[1][1]["src"].startswith("data:image/png;base64,")
    empty = replace(fall, time=fall.time[:0], q=fall.q[:0], v=fall.v[:0])
    assert "no frames" in empty._repr_html_()
    broken = replace(fall, q=np.full_like(fall.q, np.nan))
    assert "frame 0" in broken._repr_html_()


def test_notebooks_tell_what_is_wrong_with_a_scene():
    scene = poise.Scene(name="<b>")
    scene.add(poise.box(1, 1, 1), name="crate")
    good = parsed(scene._repr_html_())
    assert good.tags[1][1]["alt"] == repr(scene)
    assert poise.Scene()._repr_html_() == "<pre>" + html.escape(repr(poise.Scene())) + "</pre>"
    wrong = poise.Scene(bodies=[poise.Body("box", parent="shelf")])._repr_html_()
    assert "there is no body &quot;shelf&quot;" in wrong
