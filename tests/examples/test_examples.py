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


def test_every_example_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.stem}"' in source for path in FOLDER.glob("*.py"))
