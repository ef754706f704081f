"""Demos that are stories: what they promise happens, and what they write opens."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import poise
from poise.cli.demos import (
    DEMOS,
    basket,
    bird,
    dragged,
    exact,
    feet,
    path,
    punch,
    stairs,
    steps,
    stiff,
    story,
    torso,
    umbrella,
)
from poise.control import Push, correction
from poise.formulations.formulation_registry import FORMULATIONS, of_kind

STORIES = [name for name in DEMOS if not hasattr(import_module(f"poise.cli.demos.{name}"), "run")]


def played(module, coordinates: str = "reduced") -> tuple[poise.World, poise.sim.Recording, dict[str, str]]:
    scene = module.scene()
    world = scene.build(of_kind(coordinates, scene.settings.formulation))
    recording = story.play(module, world)
    told = module.tell(world, recording)
    print(f"\n{module.__name__.rpartition('.')[2]}, {coordinates} coordinates: {told}")  # seen with -s
    return world, recording, told


def test_there_are_stories():
    assert {
        "basket",
        "umbrella",
        "dragged",
        "punch",
        "stairs",
        "exact",
        "stiff",
        "torso",
        "path",
        "steps",
        "bird",
    } <= set(STORIES)


@pytest.mark.parametrize("coordinates", FORMULATIONS)
def test_a_walker_is_hit_gives_way_and_walks_on(tmp_path: Path, coordinates: str):
    world, recording, told = played(basket, coordinates)
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


@pytest.mark.parametrize("coordinates", FORMULATIONS)
def test_an_umbrella_stays_upright_whatever_the_hand_does(coordinates: str):
    world, recording, told = played(umbrella, coordinates)
    roof, hand = umbrella.tilts(recording, "umbrella"), umbrella.tilts(recording, "hero/hand_r")
    calm, after = recording.time < umbrella.BLOWS, recording.time > umbrella.BLOWS + umbrella.LASTS + 0.5
    assert hand[calm].max() > 5.0
    assert roof[calm].max() < 2.0
    # at rest in the wind: moment of the gust about the hand, over the stiffness; it overshoots by less than as much
    lean = np.degrees(np.linalg.norm(umbrella.GUST) * 0.45 / umbrella.STIFFNESS)
    assert 0.7 * lean < roof.max() < 2.0 * lean
    assert roof[after].max() < 2.0
    assert float(told["without motors"].partition("°")[0]) > 60.0
    assert world.body("hero/head").position[2] > 1.4
    assert world.body("hero/pelvis").position[0] == pytest.approx(umbrella.SPEED * umbrella.SECONDS, abs=0.3)


def test_motors_of_the_umbrella_lean_as_their_springs_say():
    stage = poise.Scene()
    stage.ball(None, umbrella.umbrella(), name="umbrella", position=(0, 0, 1))
    stage.controllers.append(("upright", lambda: umbrella.Upright("umbrella")))
    force = 10.0
    Push("umbrella", duration=10.0, force=(force, 0.0, 0.0)).add_to(stage)
    world = stage.build()
    recording = world.run(3.0)
    number = world.model.body_index("umbrella")
    mass, arm = world.model.body_mass[number], world.model.body_com[number, 2]
    # k sin φ = F l cos φ + m g l sin φ
    lean = np.degrees(np.arctan(force * arm / (umbrella.STIFFNESS - 9.81 * mass * arm)))
    assert umbrella.tilts(recording, "umbrella")[-1] == pytest.approx(lean, rel=1e-3)


@pytest.mark.parametrize("coordinates", FORMULATIONS)
def test_a_walker_who_is_dragged_finds_the_way_again(coordinates: str):
    world, recording, _ = played(dragged, coordinates)
    error = correction(recording, world.controllers["hero tracking"]).error_deg.max(axis=1)
    time = recording.time
    held = (time > dragged.PULLED + 0.2) & (time < dragged.LET_GO)
    assert error[(time > 0.5) & (time < dragged.PULLED)].max() < 3.0
    assert error[held].max() > 45.0
    assert error[time > dragged.LET_GO + 1.5].max() < 3.0
    assert world.body("hero/pelvis").position[0] == pytest.approx(dragged.SPEED * dragged.SECONDS, abs=0.3)


def test_who_is_punched_straightens_up_again():
    world, recording, told = played(punch)
    error = correction(recording, world.controllers["other tracking"]).error_deg.max(axis=1)
    assert error.max() > 20.0
    assert error[-1] < 5.0
    assert "meets the torso" in told["punch"]
    assert world.body("other/head").position[2] > 1.4


@pytest.mark.parametrize("coordinates", FORMULATIONS)
def test_a_ragdoll_comes_to_rest_at_the_foot_of_the_stairs(coordinates: str):
    world, _, told = played(stairs, coordinates)
    assert poise.dynamics.energy(world.model, world.q, world.v).kinetic < 0.1
    assert world.body("hero/pelvis").position[2] < stairs.RISE * stairs.STEPS
    assert "slower than 0.1 J" in told["rest"]


def test_joints_follow_exactly_whatever_pushes_where_plain_ones_do_not():
    _, recording, told = played(exact)
    # accelerations are those of the middle of each step at best: jerk times half a step, over kp, is what is left
    kp, _ = exact.gains(2.0 * exact.SETTLE)
    jerk = 0.5 * (2.0 * np.pi * exact.RATE) ** 3
    assert exact.errors(recording, "exact").max() < np.degrees(0.5 * exact.DT * jerk / kp)
    plain = exact.errors(recording, "plain")
    assert plain[recording.time < exact.THROWN].max() > 10.0
    assert plain[recording.time > exact.PUSHED].max() > 45.0
    assert "after 0.9" in told["ball"]


def test_springs_met_at_the_end_of_the_step_hold_where_plain_ones_blow_up():
    _, recording, told = played(stiff)
    # the weight of six bars of 1.5 kg at 1.1 m takes 60 N·m at most: 0.11° of these springs
    assert np.degrees(np.abs(recording.q[-1] - stiff.GOAL).max()) < 0.12
    assert "growing" in told["plain"] or "blown up" in told["plain"]


def test_two_feet_share_the_weight_and_few_sweeps_do_not_do(tmp_path: Path):
    world, recording, _ = played(feet)
    assert feet.redundancy(world) == (8, 24, 12)  # four corners of each foot, which have six freedoms each
    left, right = (feet.press(recording, name) for name in feet.FEET)
    at_rest = (recording.time > feet.REST[0]) & (recording.time < feet.REST[1])
    weight = 9.81 * float(world.model.link_mass.sum())
    # steps are solved to 1e-4 of their speeds
    np.testing.assert_allclose((left + right)[at_rest], weight, rtol=1e-3)
    # a push to the side is borne by the feet: moments about x, before it and towards its end
    moments = sum(recording.signals[name][:, 7] * feet.press(recording, name) for name in feet.FEET)
    calm, late = (int(np.searchsorted(recording.time, time)) for time in (0.7, 1.38))
    height = world.body("hero/torso").position[2] + world.model.body_com[world.model.body_index("hero/torso"), 2]
    assert moments[late] - moments[calm] == pytest.approx(feet.PUSH * height, rel=0.1)
    assert feet.noise(recording) < 0.05
    assert feet.noise(feet.swept(10)) > 5.0
    assert feet.charts(world, recording).save(tmp_path / "feet.svg").read_text(encoding="utf-8").startswith("<svg")
    assert len(feet.marks(recording, calm)) == 2 * len(feet.arrow((0, 0, 0), (0, 0, 1), 0.01, (1, 0, 0)))


def test_a_torso_is_kept_upright_by_little(tmp_path: Path):
    world, recording, _ = played(torso)
    kept, free = torso.lean(recording, "kept"), torso.lean(recording, "free")
    assert free.max() > 8.0
    assert kept.max() < torso.WITHIN + torso.ONSET
    assert max(kept[-1], free[-1]) < torso.WITHIN
    hip = recording.signals["hip"]
    assert 0.5 < hip.max() < 10.0
    # nothing is done while the torso is in the zone, and stays there for the horizon of 20 ms at its speed
    ahead = kept + 0.02 * np.abs(np.gradient(kept, recording.time))
    assert (hip[1:][ahead[:-1] < torso.WITHIN - 0.2] == 0.0).all()
    assert torso.charts(world, recording).save(tmp_path / "torso.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_base_distance_tells_how_much_a_path_is_smoothed():
    _, recording, _ = played(path)
    off = {name: path.rounding(recording, name) for name in path.BALLS}
    assert all(off[name] < base for name, (base, _, _) in path.BALLS.items())
    assert off["far"] > 2.0 * off["near"]
    # α is a matter of time alone: frequencies go with its root
    assert path.arrival(recording, "far") / path.arrival(recording, "quick") == pytest.approx(2.0, rel=0.02)
    assert path.farthest(path.way(recording, "quick")[::4], path.way(recording, "far")) < 0.01
    assert all(np.linalg.norm(path.way(recording, name)[-1] - path.CORNERS[-1]) < 1e-3 for name in path.BALLS)
    marks = story.ways(recording, 100, path.TRAILS)
    assert {mark.color for mark in marks} == set(path.COLORS)


def test_damping_is_that_of_an_oscillator_and_random_steps_change_nothing(tmp_path: Path):
    world, recording, _ = played(steps)
    told = steps.distances(recording)
    omega_h = np.sqrt(2.0 * steps.ALPHA) / steps.RELAXATION * steps.DT
    for k, b in enumerate(steps.ELASTICITIES):
        assert np.abs(told[:, k] - steps.exact(b, recording.time)).max() < omega_h  # first order
        beyond = np.exp(-np.pi * b / np.sqrt(1 - b * b)) if b < 1.0 else 0.0
        assert max(0.0, -told[:, k].min()) == pytest.approx(beyond, abs=omega_h)
    times, others = steps.by_chance()
    for k in range(len(steps.ELASTICITIES)):
        assert np.abs(np.interp(times, recording.time, told[:, k]) - others[:, k]).max() < 0.01
    assert steps.charts(world, recording).save(tmp_path / "steps.svg").read_text(encoding="utf-8").startswith("<svg")


def test_birds_are_deflected_as_in_the_figure(tmp_path: Path):
    world, recording, _ = played(bird)
    told = bird.measure(recording)
    shift = {name: values["alone"] for name, values in told.items()}
    assert told["alone"]["path"] < 0.02
    assert 0.0 < 10.0 * shift["light"] < min(shift["heavy"], shift["falling"])
    assert told["light"]["ball"] > 1.0  # it flies off
    assert told["heavy"]["ball"] < 0.01  # it stays
    assert told["falling"]["ball"] > 0.3  # both are deviated
    assert all(values["end"] < 0.02 for values in told.values())
    assert bird.charts(world, recording).save(tmp_path / "bird.svg").read_text(encoding="utf-8").startswith("<svg")
    assert story.strip(bird, recording).shape == (320, 3 * 440, 3)


@pytest.mark.parametrize("name", STORIES)
def test_stories_can_be_looked_at(name: str):
    assert isinstance(DEMOS[name].scene(), poise.Scene)
    assert callable(DEMOS[name].load())
