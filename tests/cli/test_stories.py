"""Demos that are stories: what they promise happens, and what they write opens."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import poise
from poise.cli.demos import DEMOS, basket, punch, stairs, stiff, story
from poise.control import correction

STORIES = [name for name in DEMOS if not hasattr(import_module(f"poise.cli.demos.{name}"), "run")]


def played(module) -> tuple[poise.World, poise.sim.Recording, dict[str, str]]:
    world = module.scene().build()
    recording = world.run(module.SECONDS)
    return world, recording, module.tell(world, recording)


def test_there_are_stories():
    assert {"basket", "punch", "stairs", "stiff"} <= set(STORIES)


def test_a_walker_is_hit_gives_way_and_walks_on(tmp_path: Path):
    world, recording, told = played(basket)
    error = correction(recording, world.controllers["hero tracking"]).error_deg.max(axis=1)
    hit = next(e.time for e in recording.events if set(e.names) == {"ball", "hero/torso"})
    assert hit == pytest.approx(basket.THROWN + basket.FLIGHT, abs=0.05)
    assert error[recording.time > hit].max() > 15.0
    assert error[recording.time > hit + 1.5].max() < 8.0
    assert world.body("hero/head").position[2] > 1.4
    assert world.body("hero/pelvis").position[0] == pytest.approx(basket.SPEED * basket.SECONDS, abs=0.3)
    assert re.fullmatch(r"as before after [01]\.\d\d s", told["recovery"])
    # the basket hangs: its middle is below the hand that holds it
    assert world.body("basket").position[2] > world.body("basket").rotation[2, 2] * 0.2
    files = story.write("basket", basket, world, recording, tmp_path)
    assert "</html>" in files["page"].read_text()[-200:]
    assert Image.open(files["picture"]).size == (6 * story.PICTURE[0], story.PICTURE[1])
    clip = poise.load_motion(files["corrected motion"], up="z", units="m")
    assert clip.duration == pytest.approx(basket.SECONDS, abs=0.02)


def test_who_is_punched_straightens_up_again():
    world, recording, told = played(punch)
    error = correction(recording, world.controllers["other tracking"]).error_deg.max(axis=1)
    assert error.max() > 20.0
    assert error[-1] < 5.0
    assert "meets the torso" in told["punch"]
    assert world.body("other/head").position[2] > 1.4


def test_a_ragdoll_comes_to_rest_at_the_foot_of_the_stairs():
    world, _, told = played(stairs)
    assert poise.dynamics.energy(world.model, world.q, world.v).kinetic < 0.1
    assert world.body("hero/pelvis").position[2] < stairs.RISE * stairs.STEPS
    assert "slower than 0.1 J" in told["rest"]


def test_springs_met_at_the_end_of_the_step_hold_where_plain_ones_blow_up():
    _, recording, told = played(stiff)
    # the weight of six bars of 1.5 kg at 1.1 m takes 60 N·m at most: 0.11° of these springs
    assert np.degrees(np.abs(recording.q[-1] - stiff.GOAL).max()) < 0.12
    assert "growing" in told["plain"] or "blown up" in told["plain"]


@pytest.mark.parametrize("name", STORIES)
def test_stories_can_be_looked_at(name: str):
    assert isinstance(DEMOS[name].scene(), poise.Scene)
    assert callable(DEMOS[name].load())
