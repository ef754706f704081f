"""Sessions without any window: history, replay, dragging, changing, files."""

from itertools import pairwise

import numpy as np
import pytest

import poise
from poise.cli.demos.dragged import walker as walking
from poise.view.live import Session, Settings
from poise.view.live.history import History, Moment


def boxes():
    scene = poise.Scene(name="boxes")
    scene.add_ground(friction=0.8)
    for k in range(3):
        scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name=f"box{k}", position=(0.03 * k, 0, 0.1 + 0.22 * k))
    return scene


def arm():
    """A forearm that hangs, and holds its pose by a motor."""
    scene = poise.Scene(name="arm")
    scene.hinge(None, poise.capsule(0.04, 0.4, mass=2.0), axis="y", anchor=(0, 0, 0.2), name="upper")
    scene.motor("upper", stiffness=60.0, damping=6.0, limit=20.0)
    return scene


@pytest.fixture(scope="module")
def hero():
    """A person who walks."""
    return walking(6.0)


def same(a, b):
    return a.state.same_bits(b.state)


def test_a_scene_is_stepped_as_it_asks():
    scene = boxes()
    assert Session(scene).world.formulation.level == "velocity"
    scene.settings.formulation = poise.Reduced(level="acceleration")
    assert Session(scene).world.formulation.level == "acceleration"
    assert Session(scene, settings=Settings()).world.formulation.level == "velocity"


# ---- history ---------------------------------------------------------------------------------------------------------


def test_steps_back_and_on_again_bit_for_bit():
    session = Session(boxes())
    seen = [session.now]
    for _ in range(40):
        session.step()
        seen.append(session.now)
    for k in reversed(range(40)):
        session.back()
        assert same(session.now, seen[k])
    for k in range(1, 41):
        session.step()
        assert same(session.now, seen[k])


def test_what_is_simulated_anew_from_the_past_comes_out_the_same():
    session = Session(boxes())
    session.step(60)
    seen = session.history.all()
    session.back(35)
    session.branch()
    assert session.history.at_end
    session.step(35)
    assert len(session.history) == 61
    assert all(same(a, b) for a, b in zip(session.history.all(), seen, strict=True))


def test_walking_anew_from_the_past_comes_out_the_same(hero):
    session = Session(hero)
    session.step(50)
    last = session.now
    session.back(30)
    session.branch()
    session.step(30)
    assert same(session.now, last)


def test_plays_by_the_clock_and_keeps_sixty_moments_a_second():
    session = Session(boxes())
    session.play()
    for _ in range(40):
        session.advance(0.025, budget=10.0)
    session.pause()
    assert session.time == pytest.approx(1.0, abs=1e-9)
    assert len(session.history) == 61
    assert np.allclose(np.diff([moment.time for moment in session.history.all()]), 4 / 240)


def test_slow_motion_and_odd_times_by_the_clock_lose_nothing():
    session = Session(boxes())
    session.speed = 0.3
    session.play()
    for k in range(100):
        session.advance(0.011 + 0.002 * (k % 3), budget=10.0)
    session.pause()
    wanted = 0.3 * sum(0.011 + 0.002 * (k % 3) for k in range(100))
    assert abs(session.time - wanted) <= session.world.dt


def test_pause_shows_the_last_step_that_was_made():
    session = Session(boxes())
    session.play()
    session.advance(2.5 / 240, budget=10.0)
    assert session.time == 0.0
    session.pause()
    assert session.time == pytest.approx(2 / 240)
    session.step()
    assert session.time == pytest.approx(3 / 240)


def test_replays_the_past_and_then_goes_on():
    session = Session(boxes())
    session.play()
    for _ in range(20):
        session.advance(0.05, budget=10.0)
    session.back(60)
    assert session.time == pytest.approx(0.0)
    end = session.world.time
    session.play()
    for _ in range(10):
        session.advance(0.05, budget=10.0)
    assert session.time == pytest.approx(0.5, abs=0.02)
    assert session.world.time == end
    for _ in range(20):
        session.advance(0.05, budget=10.0)
    assert session.time > end
    times = [moment.time for moment in session.history.all()]
    assert all(a < b for a, b in pairwise(times))


def test_falls_behind_rather_than_hang():
    session = Session(boxes())
    session.play()
    for _ in range(5):
        session.advance(10.0, budget=0.0)
    assert session.time < 0.2
    assert session.pace < 1.0


def test_history_forgets_the_oldest():
    session = Session(boxes(), room=50)
    session.step(120)
    assert len(session.history) <= 50
    assert session.history.dropped >= 70
    assert session.time == pytest.approx(0.5)
    session.back(1000)
    assert session.time == pytest.approx(session.history.dropped / 240)


def test_history_by_itself():
    states = [poise.State(np.zeros(0), np.zeros(0), 0.5 * k) for k in range(9)]
    history = History(20, map(Moment, states))
    assert [history.find(t) for t in (-1.0, 0.0, 0.49, 0.5, 3.9, 99.0)] == [0, 0, 0, 1, 7, 8]
    history.go(4)
    assert [moment.time for moment in history.span(1.0, 10)] == [1.0, 1.5, 2.0]
    history.add(Moment(poise.State(np.zeros(0), np.zeros(0), 7.0)))
    assert [moment.time for moment in history.all()] == [0.0, 0.5, 1.0, 1.5, 2.0, 7.0]
    with pytest.raises(ValueError, match="2 moments or more"):
        History(1)


def test_reset_starts_over(hero):
    session = Session(hero)
    first = session.now
    session.step(10)
    session.reset()
    assert same(session.now, first)
    assert len(session.history) == 1


# ---- dragging --------------------------------------------------------------------------------------------------------


def offset(session, body):
    """How far a body is from where its reference has it; m."""
    number = session.model.body_names.index(body)
    now, wanted = (
        poise.dynamics.bodies(session.model, q).position[number]
        for q in (session.q, session.ghosts[0].at(session.time))
    )
    return float(np.linalg.norm(now - wanted))


def error(session):
    """Of the joints; degrees."""
    return float(session.ghosts[0].error(np.array([session.time]), session.q[None])[0])


def test_hand_follows_arm_gives_way_and_recovers(hero):
    session = Session(hero)
    session.step(120)
    hand = session.world.body("hero/hand_r").position
    target = hand + np.array((0.5, -0.3, 0.25))
    session.drag("hero/hand_r", hand, target)
    session.step(72)
    # 1373 N/m, two weights a metre: the arm's 40 N·m over some 0.6 m of lever hold it back by 5 cm and its weight by 3
    assert np.linalg.norm(session.world.body("hero/hand_r").position - target) < 0.15
    assert offset(session, "hero/hand_r") > 0.25
    assert error(session) > 5.0
    session.release()
    session.step(240)
    assert offset(session, "hero/hand_r") < 0.05
    assert error(session) < 1.0


def test_whole_body_gives_way_to_a_hard_pull_and_recovers(hero):
    session = Session(hero)
    session.step(120)
    hand = session.world.body("hero/hand_r").position
    session.drag("hero/hand_r", hand, hand + np.array((0.2, -1.5, 0.1)))
    session.step(60)
    assert offset(session, "hero/pelvis") > 0.05
    session.release()
    session.step(840)  # thrown aside by more than half a metre, it has to find back by steps that are not for that
    assert session.message == ""
    assert offset(session, "hero/pelvis") < 0.05
    assert error(session) < 1.0


def test_drag_is_bounded_and_told():
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    session = Session(scene)
    session.drag("ball", target=(50.0, 0, 0))
    session.step(24)
    assert session.world.v[0] == pytest.approx(2.0 * 9.81 * 0.1, rel=1e-3)  # twice its weight
    grip, goal = session.now.pull
    assert goal.tolist() == [50.0, 0.0, 0.0]
    assert grip == pytest.approx(session.q[:3], abs=1e-9)
    session.release()
    assert session.pull is None
    session.step()
    assert session.now.pull is None


def test_dragging_in_the_past_makes_another_future():
    session = Session(boxes())
    session.step(60)
    session.back(30)
    session.drag("box2", target=(0.5, 0, 1.0))
    assert session.history.at_end
    session.step(30)
    assert len(session.history) == 61
    assert session.q[14] > 0.1


def test_pull_can_be_made_weaker():
    session = Session(boxes())
    session.change(pull=0.25)
    session.drag("box2", target=(0, 0, 50.0))
    session.step(60)
    assert session.q[16] == pytest.approx(0.5, abs=0.01)  # half of its weight does not lift it


def test_bodies_that_never_move_are_refused_and_wrong_names_answered():
    session = Session(boxes())
    with pytest.raises(ValueError, match='"ground" does not move'):
        session.drag("ground")
    with pytest.raises((ValueError, poise.SceneError), match="did you mean"):
        session.drag("box9")
    with pytest.raises(ValueError, match="target"):
        session.drag("box0", target=(0, np.nan, 0))
    session.move((1, 2, 3))  # nothing is held: nothing happens
    session.step(3)
    assert session.message == ""


# ---- changing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    [
        {"level": "acceleration"},
        {"level": "acceleration", "integrator": "midpoint"},
        {"newton": False},
        {"substeps": 3},
        {"gravity": 0.5},
        {"friction": 0.1},
        {"dt": 1 / 500},
    ],
)
def test_changes_keep_the_state_and_count(what):
    session = Session(boxes())
    session.step(30)
    q, v, time = session.world.q.copy(), session.world.v.copy(), session.world.time
    session.change(**what)
    assert np.array_equal(session.world.q, q)
    assert np.array_equal(session.world.v, v)
    assert session.world.time == time
    session.step(30)
    assert session.message == ""
    assert session.time == pytest.approx(time + 30 * session.world.dt)
    formulation = session.world.formulation
    for name in ("level", "integrator", "newton", "substeps"):
        if name in what:
            assert getattr(formulation, name) == what[name]


def test_there_and_back_through_the_levels():
    session = Session(boxes())
    session.change(level="acceleration", integrator="euler")
    session.step(10)
    session.change(level="velocity")
    session.step(10)
    assert session.world.formulation.level == "velocity"
    assert session.message == ""


def test_gravity_and_friction_act():
    session = Session(boxes())
    session.change(gravity=0.0)
    session.step(60)
    assert abs(session.world.v).max() < 0.2
    slide = poise.Scene(gravity=(3.0, 0, -9.81))
    slide.add_ground(friction=0.8)
    slide.add(poise.box(0.2, 0.2, 0.1), name="box", position=(0, 0, 0.05))
    session = Session(slide)
    session.step(60)
    assert abs(session.world.v[0]) < 1e-3
    session.change(friction=0.0)
    session.step(60)
    assert session.world.v[0] == pytest.approx(3.0 * 0.25, rel=0.02)


def test_strength_acts_at_once_and_after_going_back():
    session = Session(arm())
    session.world.motor("upper").target = 0.8
    session.step(240)
    held = abs(session.q[0])
    session.change(strength=0.0)
    session.step(480)
    assert abs(session.q[0]) < 0.5 * held or abs(session.world.motor("upper").limit[1]) == 0.0
    session.back(10)
    session.branch()
    assert session.world.motor("upper").limit == (0.0, 0.0)


def test_dragging_goes_on_through_a_change():
    session = Session(boxes())
    session.drag("box2", target=(0, 0, 1.0))
    session.step(20)
    session.change(gravity=0.5)
    session.step(120)
    assert session.dragged == session.model.body_names.index("box2")
    assert session.q[16] > 0.9


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ({"gravty": 1.0}, "did you mean"),
        ({"gravity": -1.0}, "gravity is -1"),
        ({"friction": np.nan}, "friction is nan"),
        ({"level": "position"}, "level is 'position'"),
        ({"integrator": "rk4"}, "the velocity level has euler only"),
    ],
)
def test_wrong_settings_are_told_and_change_nothing(what, told):
    session = Session(boxes())
    session.step(5)
    with pytest.raises(ValueError, match=told):
        session.change(**what)
    assert session.settings == Settings()
    session.step(5)
    assert session.message == ""


# ---- trouble ---------------------------------------------------------------------------------------------------------


def test_what_diverges_pauses_with_a_message_and_the_last_good_state():
    session = Session(boxes())
    session.play()
    session.advance(0.1, budget=10.0)
    session.world.forces[1, 3] = np.nan
    session.advance(0.1, budget=10.0)
    assert not session.playing
    assert "diverged" in session.message
    assert np.isfinite(session.q).all()
    assert session.time == session.world.time
    session.world.forces[1, 3] = 0.0
    session.play()
    session.advance(0.1, budget=10.0)
    assert session.message == ""


def test_a_controller_that_fails_pauses_with_its_words():
    session = Session(boxes())

    def fails(state):
        if state.time > 0.1:
            raise ValueError("out of ideas")

    session.world.add_controller(fails)
    session.play()
    session.advance(1.0, budget=10.0)
    assert not session.playing
    assert session.message == "out of ideas"


@pytest.mark.parametrize("speed", [0.0, -1.0, np.nan, np.inf])
def test_odd_speeds_are_refused(speed):
    with pytest.raises(ValueError, match="must be above 0"):
        Session(boxes()).speed = speed


def test_odd_sources_are_refused():
    with pytest.raises(TypeError, match=r"must be a poise\.Scene or a recording"):
        Session("scene.yaml")


def test_an_empty_scene_is_no_trouble():
    session = Session(poise.Scene())
    session.step(3)
    assert session.time == pytest.approx(3 / 240)


# ---- recordings and files --------------------------------------------------------------------------------------------


def test_recordings_are_replayed_to_their_end_and_again():
    recording = boxes().build().run(0.5, every=4)
    session = Session(recording)
    session.play()
    for _ in range(30):
        session.advance(0.02)
    assert session.time == pytest.approx(0.5)
    assert not session.playing
    assert np.array_equal(session.q, recording.q[-1])
    assert len(session.now.contacts.depth) == len(recording.frame(-1).contacts)
    session.play()
    session.advance(0.02)
    assert session.time < 0.1


def test_recordings_cannot_be_dragged_or_changed():
    session = Session(boxes().build().run(0.1))
    with pytest.raises(ValueError, match="a recording cannot be dragged"):
        session.drag("box0")
    with pytest.raises(ValueError, match="a recording cannot be changed"):
        session.change(gravity=0.0)
    session.step(1000)
    assert session.time == pytest.approx(0.1)
    session.reset()
    assert session.time == 0.0


def test_history_is_saved_as_a_recording(tmp_path):
    session = Session(boxes())
    session.step(30)
    session.save(tmp_path / "seen.npz")
    again = poise.sim.Recording.load(tmp_path / "seen.npz")
    seen = session.history.all()
    assert len(again) == 31
    assert np.array_equal(again.q, [moment.state.q for moment in seen])
    assert np.array_equal(again.v, [moment.state.v for moment in seen])
    assert len(again.frame(30).contacts) == len(seen[30].contacts.depth)
    assert Session(again).model.n_bodies == session.model.n_bodies


def test_states_are_saved_and_loaded_bit_for_bit(tmp_path):
    session = Session(boxes())
    session.step(30)
    session.save_state(tmp_path / "now.npz")
    session.step(20)
    last = session.now
    other = Session(boxes())
    other.load_state(tmp_path / "now.npz")
    assert other.time == pytest.approx(30 / 240)
    other.step(20)
    assert same(other.now, last)
    with pytest.raises(poise.SceneError):
        Session(arm()).load_state(tmp_path / "now.npz")


# ---- signals ---------------------------------------------------------------------------------------------------------


def test_torques_of_motors_are_told(hero):
    session = Session(hero)
    session.step(60)
    name = "hero/knee_l"
    where = session.model.v_slice(name)
    assert session.now.torque[where][0] == pytest.approx(session.world.motor(name).force, rel=1e-9)
    assert session.world.motor(name).force != 0.0


def test_signals_over_time(hero):
    from poise.view.live.signals import energies, errors, torques

    session = Session(hero)
    session.step(40)
    moments = session.history.span(1.0, 15)
    assert len(moments) == 15
    parts = energies(session, moments)
    last = poise.dynamics.energy(session.model, session.q, session.now.state.v)
    assert parts["total"][-1] == pytest.approx(float(last.total))
    assert parts["kinetic"] + parts["potential"] == pytest.approx(parts["total"])
    assert list(torques(session, moments, "hero/knee_l")) == ["hero/knee_l"]
    off = errors(session, moments)["hero tracking"]
    assert off[0] == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < off[-1] < 2.0
