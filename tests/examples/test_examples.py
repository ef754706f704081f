"""Examples run, and what they claim is so."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, **options):
    return runpy.run_path(str(FOLDER / f"{name}.py"))["main"](**options)


def test_the_pendulum_has_the_period_of_the_elliptic_integral() -> None:
    # crossings are found by straight lines between samples: an error of some h² ω² relative
    assert run("pendulum") == pytest.approx(2.36784195, abs=1e-5)


def test_the_shoulder_holds_the_weight_of_the_arm() -> None:
    held = run("holding_a_pose")
    assert held["hero/shoulder_r"] == pytest.approx(held["expected"], rel=1e-9)
    assert held["hero/root"] == pytest.approx(70.0 * 9.81, rel=0.05)  # weight, and a moment of some N·m


def test_lanes_agree_with_a_single_world() -> None:
    assert run("many_worlds", worlds=40) < 1e-4  # float32


def test_the_film_of_a_swing_is_as_long_as_the_swing(tmp_path) -> None:
    path = run("film_of_a_swing", path=tmp_path / "swing.gif", seconds=0.5, size=(80, 60))
    with Image.open(path) as film:
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(film)]
    assert [time for _, time in frames] == [50] * 10
    pixels = [np.asarray(image).astype(int) for image, _ in frames]
    shirt = [np.argwhere(image[..., 2] - image[..., 0] > 40) for image in pixels]
    assert all(len(places) > 20 for places in shirt)
    assert np.abs(shirt[-1].mean(axis=0) - shirt[0].mean(axis=0)).max() > 2.0  # it swings


def test_a_ball_learns_its_weight_and_a_hit_still_shows(tmp_path) -> None:
    told = run("learning_gravity", path=tmp_path / "plot.svg")
    assert told["sag without learning"] == pytest.approx(told["sag by LAM eq. 2"], rel=1e-4)
    assert told["sag after 2 s of learning"] < 0.01 * told["sag by LAM eq. 2"]
    assert told["rise after the hit"] > 0.05
    assert told["left of it at the end"] < 0.001


def test_the_arm_shakes_without_a_filter_and_not_with_it(tmp_path) -> None:
    told = run("arm_and_filter", path=tmp_path / "plot.svg")
    assert told["(a) without a filter"] > 0.05
    assert told["(b) γ = 1 / s"] < 0.005


def test_a_heavier_ball_is_thrown_back_farther_by_an_obstacle(tmp_path) -> None:
    light, heavy, soft = run("through_an_obstacle", path=tmp_path / "plot.svg").values()
    assert heavy["thrown back"] > 5.0 * light["thrown back"] > 0.01
    assert light["height"] < heavy["height"]
    for ball, stiffness in ((light, 2e4), (heavy, 2e4), (soft, 500.0)):  # at the limit of 60 N and by its momentum
        assert ball["depth"] > 60.0 / stiffness
    assert all(way["end"] < 0.001 for way in (light, heavy, soft))


def test_speeds_at_keys_and_hooks_that_wait_for_each_other(tmp_path) -> None:
    told = run("in_step", path=tmp_path / "plot.svg")
    assert told["speed at 1 m"] == pytest.approx(0.3, rel=0.01)
    assert told["speed at 2 m"] == pytest.approx(told["natural"], rel=0.01)
    assert told["speed at 3 m"] == pytest.approx(2.0, rel=0.01)
    assert told["each for itself: right"] - told["each for itself: left"] > 1.0
    for name in ("together", "held back"):
        assert abs(told[f"{name}: right"] - told[f"{name}: left"]) < 0.05
    assert told["held back: left"] > told["together: left"] + 0.2
    assert told["held back: down"] > told["held back: right"] + 0.25


def check_standing(told: dict[str, float], pushes: int) -> None:
    """On both feet through pushes of 80 % of what a stance can take.

    tests/batch/test_standing_by_chance.py looks at half a minute of it more closely.
    """
    assert told["pushes"] == pushes
    assert told["least push (N)"] > 100.0
    assert told["lowest head (m)"] > 1.4
    assert told["feet moved by (m)"] < 0.1  # one that bears nothing for a moment may creep; steps are longer
    assert told["greatest torque (N·m)"] < 300.0


@pytest.mark.slow
def test_a_person_stands_by_chance_through_some_pushes(capsys: pytest.CaptureFixture[str]) -> None:
    check_standing(run("standing_by_chance", seconds=7.0, pushes=3, seed=5), 3)
    assert "wall time over time" in capsys.readouterr().out


@pytest.mark.slow
def test_without_plans_the_same_springs_do_not_stand_through_a_push() -> None:
    """Or the tests above would not tell anything: one sample is the plan of before, which is to do nothing."""
    assert run("standing_by_chance", seconds=5.0, pushes=1, samples=1)["lowest head (m)"] < 1.0


def test_a_person_learns_to_stand(tmp_path) -> None:
    """A few generations: returns rise by a fifth of the 200 that can be earned."""
    told = run("learn_to_stand", generations=6, worlds=32, steps=200, path=tmp_path / "curve.svg")
    assert np.mean(told["curve"][-2:]) > told["curve"][0] + 40.0


@pytest.mark.slow
def test_a_person_who_has_learned_stands_through_pushes(tmp_path) -> None:
    told = run("learn_to_stand", path=tmp_path / "curve.svg")
    assert np.mean(told["curve"][-5:]) > np.mean(told["curve"][:2]) + 100.0
    assert told["with the policy"] > told["without a policy"] + 100.0
    assert "mean return" in (tmp_path / "curve.svg").read_text(encoding="utf-8")


def test_every_example_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.stem}"' in source for path in FOLDER.glob("*.py"))
