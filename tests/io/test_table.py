"""Curves as tables with commas."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.sim import Recording


@pytest.fixture(scope="module")
def recording() -> Recording:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero")
    scene.motor("knee_r", stiffness=100.0, damping=5.0, limit=80.0)
    world = scene.build(dt=1 / 240)
    world.tau[world.model.dof_index("knee_l")] = 3.0
    return world.run(0.2, every=4, signals={"height, m": lambda w: w.q[2], "two": lambda w: w.q[:2]})


def read(file: Path) -> tuple[list[str], np.ndarray]:
    with file.open(newline="", encoding="utf-8") as stream:
        head, *rows = csv.reader(stream)
    return head, np.array(rows, float)


def test_numbers_come_back_bit_for_bit(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "x.csv", what=["q", "v", "energy", "height, m", "two"])
    head, table = read(tmp_path / "x.csv")
    model = recording.model
    assert head[0] == "time"
    assert head[1 : model.nq + 1] == list(model.q_names)
    assert head[-3:] == ["height, m", "two[0]", "two[1]"]
    assert len(set(head)) == len(head)
    wanted = (recording.time[:, None], recording.q, recording.v, *(part[:, None] for part in recording.energy))
    assert np.array_equal(table[:, : 1 + model.nq + model.nv + 3], np.concatenate(wanted, axis=1))


def test_one_joint(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "x.csv", what="torque", joint="knee_l")
    head, table = read(tmp_path / "x.csv")
    assert head == ["time", "hero/knee_l"]
    assert (table[1:, 1] == 3.0).all()


def test_torques_are_those_of_motors_too(recording: Recording) -> None:
    torque, motor = recording.curves("torque", "knee_r"), recording.curves("motors", "knee_r")
    (one,), (two,) = torque.values(), motor.values()
    assert np.abs(two[1:]).min() > 0.0
    assert np.array_equal(one, two)
    assert recording.plot("torque", joint="knee_r").width == 900.0


def test_a_body(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "x.csv", body="hand_r", fps=30)
    head, table = read(tmp_path / "x.csv")
    assert head[1:] == [f"hero/hand_r.{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")]
    k = recording.at(table[3, 0])
    place = poise.dynamics.bodies(recording.model, recording.q[k])
    assert table[3, 1:4] == pytest.approx(place.position[recording.model.body_index("hand_r")], abs=1e-12)
    assert np.diff(table[:, 0]) == pytest.approx(1 / 30, abs=1 / 120)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"what": "torqe"}, "'torqe' was not recorded, did you mean \"torque\""),
        ({"what": "torque", "joint": "kne_l"}, 'there is no joint "kne_l", did you mean "hero/knee_l"'),
        ({"body": "handr"}, 'did you mean "hero/hand_r"'),
        ({"what": []}, "nothing to write"),
        ({"fps": -1}, "fps: must be frames a second"),
        ({"fps": True}, "fps: must be frames a second"),
        ({"fps": float("nan")}, "fps: must be frames a second"),
    ],
)
def test_refusals(recording: Recording, tmp_path: Path, options: dict, words: str) -> None:
    with pytest.raises(poise.SceneError) as caught:
        recording.save(tmp_path / "x.csv", **options)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []
