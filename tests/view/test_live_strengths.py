"""Strengths of tracked characters, changed while they are looked at."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

import poise
from poise.control import Reference, Tracking
from poise.motion import keyframes
from poise.view.live import Session, Viewer
from poise.view.live.settings import parts_of

KINDS = ("own motors", "strength of its own", "drives", "accelerations")


def hanging(kind):
    """Somebody whose trunk is held in the air, with knees and elbows bent."""
    scene = poise.Scene(name="hanging")
    hero = scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 1))
    model = scene.compile()
    q = model.q_rest.copy()
    for name in ("elbow_l", "elbow_r", "knee_l", "knee_r"):
        q[model.q_slice(name)] = 0.6
    pose = Reference((np.array((0.0, 1.0)), np.array((q, q))), model)
    options = {"root": "guided", "help": (5000.0, 5000.0)}
    if kind == "own motors":
        hero.track(pose, strength=60.0, **options)
    elif kind == "accelerations":
        hero.track(pose, strength=60.0, by="accelerations", **options)
    elif kind == "drives":
        hero.track(pose, strength=60.0, by="drives", **options)
    else:
        hero.track(pose, strength=1000.0, **options)
        scene.controllers[:] = [("hero tracking", lambda: Tracking(pose, strength=60.0))]
    return scene


def bent(session):
    """Of the two knees and the two elbows, on the mean; rad."""
    model = session.model
    return tuple(
        float(np.mean([session.q[model.q_slice(f"{part}_{side}")][0] for side in "lr"])) for part in ("knee", "elbow")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_tracked_characters_go_limp_and_come_back(kind):
    session = Session(hanging(kind))
    session.step(120)
    knee, elbow = bent(session)
    assert knee == pytest.approx(0.6, abs=0.06)
    assert elbow == pytest.approx(0.6, abs=0.06)
    session.change(strength=0.0)
    session.step(120)
    limp = bent(session)
    assert max(abs(limp[0] - 0.6), abs(limp[1] - 0.6)) > 0.2  # they swing
    session.change(strength=1.0)
    session.step(240)
    assert bent(session) == pytest.approx((knee, elbow), abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_weakened_by_themselves(kind):
    session = Session(hanging(kind))
    assert parts_of(session.world) == ["legs", "arms", "trunk"]
    session.step(120)
    session.change(legs=0.0)
    furthest = 0.0
    for _ in range(24):
        session.step(10)
        knee, elbow = bent(session)
        furthest = max(furthest, abs(knee - 0.6))
        assert elbow == pytest.approx(0.6, abs=0.06)
    assert furthest > 0.2


def test_less_stiffness_gives_way_more_within_the_same_limits():
    sag = []
    for stiffness in (1.0, 0.2):
        session = Session(hanging("own motors"))
        session.change(stiffness=stiffness)
        session.step(360)
        sag.append(abs(bent(session)[0] - 0.6))
        assert session.world.motor("hero/knee_l").limit == (-60.0, 60.0)
    assert sag[1] == pytest.approx(5.0 * sag[0], rel=0.15)  # a spring of a fifth gives way five times as far


def test_strengths_outlive_other_changes_and_the_past():
    session = Session(hanging("drives"))
    session.change(arms=0.0)
    session.step(5)
    session.change(gravity=0.5)
    tracking = session.world.controllers["hero tracking"]
    elbow = session.model.v_slice("elbow_l")
    assert (tracking._gains[elbow] == 0.0).all()
    session.step(20)
    session.back(5)
    session.branch()
    assert (tracking._gains[elbow] == 0.0).all()


def test_those_who_balance_are_weakened_too():
    scene = poise.Scene()
    scene.add_ground()
    person = poise.characters.humanoid()
    hero = scene.add(person, name="hero")
    hero.track(poise.characters.clips.stand(person), root="balanced", strength=300.0)
    session = Session(scene)
    session.step(120)
    high = session.q[2]
    session.change(strength=0.02)
    session.step(240)
    assert session.q[2] < high - 0.2


def test_what_is_no_factor_is_refused():
    session = Session(hanging("drives"))
    with pytest.raises(ValueError, match="legs is -1"):
        session.change(legs=-1.0)
    tracking = session.world.controllers["hero tracking"]
    with pytest.raises(ValueError, match="stiffness is -1; it must be a factor"):
        tracking.scale(stiffness=-1.0)
    with pytest.raises(ValueError, match="there is no part or joint 'leg'"):
        tracking.scale({"leg": 1.0})
    with pytest.raises(ValueError, match="tracks nothing yet"):
        Tracking(keyframes({0.0: {"elbow_l": 0.6}})).scale(1.0)


def test_the_panel_loads_recordings_of_both_kinds_states_and_scenes(tmp_path):
    scene = poise.Scene(name="ball")
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    world = scene.build()
    recording = world.run(0.1)
    recording.save(tmp_path / "fall.npz")
    recording.save(tmp_path / "fall.h5")
    world.state.save(tmp_path / "state.npz", world.model)
    scene.save(tmp_path / "ball.yaml")
    scene.save(tmp_path / "ball.xml")
    (tmp_path / "bad.yaml").write_text("bodis: []\n")

    def given(name):
        return SimpleNamespace(name=name, content=(tmp_path / name).read_bytes())

    with Viewer(scene, port=0, paused=True) as viewer:
        viewer.panel._load(given("state.npz"))
        assert viewer.session.time == pytest.approx(0.1)
        for name, live in (("fall.npz", False), ("ball.yaml", True), ("fall.h5", False), ("ball.xml", True)):
            viewer.panel._load(given(name))
            assert (viewer.session.live, viewer.session.name) == (live, name)
            viewer.tick()
        with pytest.raises(ValueError, match=r'^bad\.yaml:1: .*did you mean "bodies"'):
            viewer.panel._load(given("bad.yaml"))
        assert viewer.session.live  # what was there stays


@pytest.mark.browser
def test_sliders_of_a_tracked_character(the_browser):
    import threading

    viewer = Viewer(hanging("drives"), port=8500, paused=True)
    thread = threading.Thread(target=viewer.run, daemon=True)
    thread.start()
    page = the_browser.new_page(viewport={"width": 700, "height": 700})
    try:
        page.goto(viewer.address)
        page.get_by_role("tab", name="Physics").click()
        for label in ("Strength ×", "… of legs ×", "… of arms ×", "Stiffness ×", "Help ×"):
            page.get_by_text(label, exact=True).wait_for()
        box = page.get_by_text("… of legs ×", exact=True).locator("xpath=following::input[not(@type='hidden')][1]")
        box.fill("0.5")
        box.press("Enter")
        end = time.perf_counter() + 30
        while viewer.session.settings.legs != 0.5 and time.perf_counter() < end:
            time.sleep(0.05)
        assert viewer.session.settings.legs == 0.5
    finally:
        page.close()
        viewer.end()
        thread.join(10)
        viewer.close()
