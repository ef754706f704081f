"""What is measured of runs, against closed forms."""

from math import inf, pi, sqrt

import pytest

import poise
from poise.batch.metrics import KNOWN, Metric, read_metric

DT, G = 1e-3, 9.81


def measured(world, seconds, *names):
    metrics = [read_metric(name) for name in names]
    record = {part for metric in metrics for part in metric.record}
    recording = world.run(seconds, record=record, progress=False)
    return [metric.measure(world, recording) for metric in metrics]


def falling(height, ground=None):
    scene = poise.Scene()
    if ground is not None:
        scene.add_ground(height=ground)
    scene.add(poise.sphere(0.05, mass=2.0), name="ball", position=(0, 0, height))
    return scene.build(dt=DT)


def test_a_ball_falls_to_half_its_height_when_galilei_says():
    # semi-implicit steps fall ½ g t (t + dt): earlier than ½ g t² by half a step
    (time,) = measured(falling(1.0), 0.5, "fall_time")
    assert time == pytest.approx(sqrt(1.0 / G), abs=DT)


def test_heights_count_from_the_floor():
    time, height = measured(falling(3.0, ground=2.0), 0.4, "fall_time", "final_height")
    assert time == pytest.approx(sqrt(1.0 / G), abs=DT)
    assert height == pytest.approx(1.0 - 0.5 * G * 0.4**2, abs=G * 0.4 * DT)


def test_what_does_not_fall_falls_never_and_what_lies_cannot():
    assert measured(falling(1.0), 0.1, "fall_time") == [inf]
    (time,) = measured(falling(-1.0), 0.01, "fall_time")
    assert time != time


def test_the_head_is_watched_and_characters_are_told_apart():
    scene = poise.Scene()
    for name, height in (("one", 1.0), ("two", 4.0)):
        scene.add(poise.characters.humanoid(), name=name, position=(0, 0, height))
    world = scene.build(dt=DT)
    first = {name: float(world.body(f"{name}/head").position[2]) for name in ("one", "two")}
    found = measured(world, 0.01, "final_height", "one.final_height", "two.final_height")
    assert found[0] == found[1] == pytest.approx(first["one"], abs=1e-3)
    assert found[2] == pytest.approx(first["two"], abs=1e-3)


def test_torques_of_motors_but_not_of_roots():
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=3.0), axis="y", name="arm")
    scene.motor("arm", torque=2.5)
    scene.add(poise.sphere(0.1), name="ball", position=(5, 0, 0))
    world = scene.build(dt=DT)
    world.tau[1:] = 100.0
    assert measured(world, 0.02, "peak_torque", "mean_torque") == pytest.approx([2.5, 2.5], rel=1e-9)
    assert measured(world, 0.02, "ball.peak_torque", "ball.mean_torque") == [0.0, 0.0]


def test_energy_that_a_blow_takes():
    """A ball that does not bounce loses all that it fell with."""
    world = falling(0.55, ground=0.0)
    (lost,) = measured(world, 0.6, "energy_lost")
    assert lost == pytest.approx(2.0 * G * 0.5, rel=0.02)


def test_a_ball_at_rest_is_held_by_its_weight():
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.1))
    scene.add(poise.sphere(0.1, mass=1.0), name="other", position=(1, 0, 0.1))
    found = measured(scene.build(dt=0.01), 0.5, "max_contact_force", "other.max_contact_force")
    assert found == pytest.approx([2.0 * G, G], rel=1e-3)


def test_error_of_what_tracks():
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    swing = poise.motion.keyframes({0.0: {"arm": 0.0}, 0.5: {"arm": 0.8}, 1.0: {"arm": 0.0}})
    world = scene.build(dt=DT)
    world.add_controller(poise.control.Tracking(swing, by="drives"), "arm tracking")
    error, again = measured(world, 0.2, "tracking_error", "arm.tracking_error")
    assert 0.0 < error == again < pi / 180


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fall_tme", 'there is no metric "fall_tme", did you mean "fall_time"?'),
        ("hero.speed", 'there is no metric "speed"'),
        ("mine.py", "a function of your own is mine.py:FUNCTION"),
        ("nowhere.py:mine", "nowhere.py: there is no such file"),
        ("", 'there is no metric ""'),
        (3, "must be a name, FILE.py:FUNCTION or a function, found 3"),
    ],
)
def test_unknown_metrics_are_told(name, said):
    with pytest.raises(poise.SceneError) as error:
        read_metric(name)
    assert said in str(error.value)


def test_unknown_subjects_are_told():
    world = falling(1.0)
    recording = world.run(0.01)
    with pytest.raises(poise.SceneError, match='no character or body "bal", did you mean "ball"'):
        read_metric("bal.fall_time").measure(world, recording)
    with pytest.raises(poise.SceneError, match="nothing in this scene that tracks a motion"):
        read_metric("tracking_error").measure(world, recording)
    with pytest.raises(poise.SceneError, match="that of the whole scene"):
        read_metric("ball.energy_lost").measure(world, recording)
    empty = poise.Scene().build()
    with pytest.raises(poise.SceneError, match="nothing moves"):
        read_metric("fall_time").measure(empty, empty.run(0.01))


def test_functions_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\ndef top(world, recording):\n    return np.max(recording.q[:, 2])\nword = 3\n")
    metric = read_metric(f"{file}:top")
    assert measured(falling(1.0), 0.1, metric) == [1.0]
    assert metric.record == poise.sim.PARTS
    assert measured(falling(1.0), 0.1, lambda world, recording: True) == [1.0]
    with pytest.raises(TypeError, match=r"metric <lambda> gave 'no'; it must be a number"):
        measured(falling(1.0), 0.1, lambda world, recording: "no")
    for function in ("tip", "word"):
        with pytest.raises(poise.SceneError, match=f'it has no function "{function}"'):
            read_metric(f"{file}:{function}")
    for text, said in (("def top(:", "it is no Python"), ("1 / 0", "it cannot be run: ZeroDivisionError")):
        file.write_text(text)
        with pytest.raises(poise.SceneError, match=said):
            read_metric(f"{file}:top")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(poise.SceneError, match="no text in UTF-8"):
        read_metric(f"{file}:top")


def test_another_text_is_another_metric():
    one, two = (Metric("m", source=text, file="m.py") for text in ("a", "b"))
    assert one.identity() != two.identity()
    assert one.identity() == Metric("m", source="a", file="elsewhere/m.py").identity()


def test_the_command_line_names_all():
    from poise.cli.sweep import METRICS

    assert METRICS.split(", ") == list(KNOWN)
