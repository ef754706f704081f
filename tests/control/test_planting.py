"""Planted feet: still and flat while they stand, never below the floor, and all else as it was."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.control import plant_feet
from poise.control.contact_phases import (
    Foot,
    bearing,
    centre_of_mass,
    find_feet,
    find_stances,
    follow,
    going,
    height_of_rest,
)
from poise.control.reference import falling_freely
from poise.motion.rotations import quat_exp

SCENE = poise.Scene()
SCENE.add_ground()
SCENE.add(poise.characters.humanoid(), name="hero")
MODEL = SCENE.compile()
FEET, LEG, ROOT = find_feet(MODEL)
ABOVE = [
    k for k, name in enumerate(MODEL.q_names) if any(part in name for part in ("spine", "neck", "shoulder", "elbow"))
]
DATA = Path(__file__).parents[3] / "shared" / "data"
CLIPS = ("bvh/cmu/02_01.bvh", "bvh/cmu/09_01.bvh", "deepmimic/humanoid3d_walk.txt", "deepmimic/humanoid3d_run.txt")


def steps(frames: int = 91, rate: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """A walk in place of one leg after the other, its ground sloping, its feet sliding and sinking by centimetres."""
    t = np.arange(frames) / rate
    q = np.tile(MODEL.q_rest, (frames, 1))
    q[:, ROOT] += 0.04 * t
    q[:, ROOT + 2] += 0.02 * t - 0.025
    for side, shift in (("l", 0.0), ("r", 0.5)):
        lift = np.clip(np.sin(2 * np.pi * (t / 1.0 + shift)), 0.0, 1.0) ** 2
        hip = MODEL.q_slice(f"hip_{side}")
        q[:, hip] = quat_exp(np.outer(-0.6 * lift, (0.0, 1.0, 0.0)))
        q[:, MODEL.q_slice(f"knee_{side}")] = 0.05 + 1.2 * lift[:, None]
        q[:, MODEL.q_slice(f"ankle_{side}")][:, 0] = 0.05
    return t, q


def slide(foot: Foot, times: np.ndarray, q: np.ndarray, stances: list[tuple[float, float]]) -> float:
    """Farthest way of a sole within a stance; m."""
    track, farthest = follow(MODEL, q, foot), 0.0
    for start, end in stances:
        here = track.place[(times >= start - 1e-9) & (times <= end + 1e-9)]
        farthest = max(farthest, float(np.linalg.norm(here[:, None] - here[None], axis=2).max()))
    return farthest


def lowest(q: np.ndarray) -> float:
    tracks = [(foot, follow(MODEL, q, foot)) for foot in FEET.values()]
    return min(float(foot.lowest(track.place, track.quat).min()) for foot, track in tracks)


def test_soles_of_the_humanoid() -> None:
    assert sorted(FEET) == ["l", "r"]
    for foot in FEET.values():
        assert len(foot.points) == 4
        track = follow(MODEL, MODEL.q_rest[None], foot)
        np.testing.assert_allclose(foot.heights(track.place, track.quat), 0.0, atol=1e-12)
        assert np.linalg.norm(foot.tips[0] - foot.tips[1]) > 0.25


def test_feet_that_slide_and_sink_stay_and_stand() -> None:
    times, q = steps()
    given = q.copy()
    done = plant_feet(MODEL, times, q)
    np.testing.assert_array_equal(q, given)
    for side, foot in FEET.items():
        assert done.stances[side]
        assert slide(foot, times, q, done.stances[side]) > 8e-3
        assert slide(foot, times, done.q, done.stances[side]) < 5e-4
        track = follow(MODEL, done.q, foot)
        for start, end in done.stances[side]:
            here = (times >= start - 1e-9) & (times <= end + 1e-9)
            assert np.abs(foot.heights(track.place, track.quat)[here]).max() < 1e-3
    assert lowest(q) < -0.01
    assert lowest(done.q) > -1e-3
    assert done.missed.max() < 3e-4
    np.testing.assert_array_equal(done.q[:, ABOVE], q[:, ABOVE])


def test_a_motion_that_stands_already_is_left_alone() -> None:
    times = np.linspace(0.0, 1.0, 21)
    q = np.tile(MODEL.q_rest, (21, 1))
    done = plant_feet(MODEL, times, q)
    assert done.stances == {"l": [(0.0, 1.0)], "r": [(0.0, 1.0)]}
    np.testing.assert_allclose(done.q, q, atol=1e-9)


def test_feet_in_the_air_do_not_stand() -> None:
    """Thrown up and down again, 0.8 s in flight: slow at the top, but not low."""
    times = np.linspace(0.0, 0.8, 49)
    q = np.tile(MODEL.q_rest, (49, 1))
    q[:, ROOT + 2] += 9.81 / 2 * times * (0.8 - times)
    track = follow(MODEL, q, FEET["l"])
    gait = going(times, centre_of_mass(MODEL, q, FEET["l"]), [track], LEG)
    assert not gait.held[3:-3].any()
    assert find_stances(times, track, FEET["l"], LEG, gait) == []
    np.testing.assert_allclose(plant_feet(MODEL, times, q).q, q, atol=1e-12)


def test_who_lies_there_does_not_sink_with_feet_that_stand_later() -> None:
    """Lying for a second, then standing 5 cm above the floor: only who stands comes down to it."""
    times = np.linspace(0.0, 3.0, 91)
    share = np.clip(times - 1.0, 0.0, 1.0)
    share *= share * (3.0 - 2.0 * share)
    q = np.tile(MODEL.q_rest, (len(times), 1))
    q[:, ROOT + 3 : ROOT + 7] = quat_exp(np.outer(0.5 * np.pi * (1.0 - share), (0.0, 1.0, 0.0)))
    q[:, ROOT + 2] += 0.05 - height_of_rest(MODEL, q, list(FEET.values()))[0] * (1.0 - share)
    q[:, ROOT + 2] -= 0.05 * (1.0 - share)
    lies, stands = times < 0.5, times > 2.5
    assert height_of_rest(MODEL, q, list(FEET.values()))[lies] == pytest.approx(0.0, abs=1e-12)
    assert lowest(q[stands]) == pytest.approx(0.05, abs=1e-12)
    done = plant_feet(MODEL, times, q)
    assert all(start > 1.0 for spans in done.stances.values() for start, _ in spans)
    assert height_of_rest(MODEL, done.q, list(FEET.values()))[lies] == pytest.approx(0.0, abs=1e-3)
    assert lowest(done.q[stands]) == pytest.approx(0.0, abs=1e-3)


def test_stances_that_are_told() -> None:
    times, q = steps()
    done = plant_feet(MODEL, times, q, stances={"r": [(0.2, 0.4)]})
    assert [len(done.stances[side]) for side in "lr"] == [0, 1]
    assert slide(FEET["r"], times, done.q, [(0.2, 0.4)]) < 5e-4


def test_another_floor_lifts_everything() -> None:
    times, q = steps(46)
    low, high = (plant_feet(MODEL, times, q, floor=level) for level in (0.0, 0.5))
    moved = high.q.copy()
    moved[:, ROOT + 2] -= 0.5
    np.testing.assert_allclose(moved, low.q, atol=2e-3)


def test_corrections_fade_without_jumps() -> None:
    """Twice as fine in time, twice as small from frame to frame: the change is continuous."""
    largest = []
    for rate in (60.0, 120.0):
        times, q = steps(round(1.5 * rate) + 1, rate)
        change = poise.dynamics.difference(MODEL, q, plant_feet(MODEL, times, q).q)
        largest.append(np.abs(np.diff(change, axis=0)).max())
    assert largest[1] < 0.7 * largest[0]


def runner(lift: float = 0.0, rate: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """Three rounds of a run, whose feet roll over and are never flat for long; all of it too high by `lift` (m)."""
    clip = poise.characters.clips.run()
    times = np.arange(round(3 * clip.duration * rate) + 1) / rate
    q = poise.control.Reference(clip, MODEL).coordinates(MODEL, times).q
    q[:, ROOT + 2] += lift
    return times, q


@pytest.mark.parametrize("rate", [60.0, 120.0])
def test_steps_of_a_runner_are_brought_to_the_ground(rate: float) -> None:
    """Five steps with a flight before and after; what is cut off at both ends is left as it is."""
    (times, right), (_, high) = runner(rate=rate), runner(0.015, rate)
    done = plant_feet(MODEL, times, high)
    assert {side: len(spans) for side, spans in done.stances.items()} == {"l": 2, "r": 3}
    np.testing.assert_allclose(done.q[:, ROOT : ROOT + 7], right[:, ROOT : ROOT + 7], atol=1e-6)
    inside = (times > 0.35) & (times < 1.35)
    assert np.degrees(np.abs(poise.dynamics.difference(MODEL, right, done.q))[inside, 6:].max()) < 2.0
    assert done.missed.max() < 3e-4
    assert lowest(done.q) > -1e-3


def test_who_pushes_off_in_the_air_is_on_the_ground() -> None:
    """Toes bent up by 0.1 rad are in the air while the body is pushed up: they are brought down, and the root stays."""
    times, q = runner()
    for side in "lr":
        q[:, MODEL.q_slice(f"ankle_{side}").start] += 0.1
    done = plant_feet(MODEL, times, q)
    tracks = {side: follow(MODEL, q, foot) for side, foot in FEET.items()}
    gait = going(times, centre_of_mass(MODEL, q, FEET["l"]), list(tracks.values()), LEG)
    high = {"before": 0.0, "after": 0.0}
    for side, foot in FEET.items():
        bears = bearing(times, tracks[side], foot, LEG, gait).any(axis=0)
        tracked = {"before": tracks[side], "after": follow(MODEL, done.q, foot)}
        for moment, _ in done.stances[side]:
            first = last = int(np.searchsorted(times, moment - 1e-9)) + 1
            while last + 1 < len(times) and bears[last + 1]:
                last += 1
            for when, track in tracked.items():
                high[when] = max(high[when], float(foot.lowest(track.place, track.quat)[first : last + 1].max()))
    assert high["before"] > 0.015
    assert high["after"] < 1e-3
    moved = poise.dynamics.difference(MODEL, q, done.q)[:, :6]
    np.testing.assert_allclose(moved[:, [0, 1, 3, 4, 5]], 0.0, atol=1e-9)
    # it goes up and down as smoothly as heights of stances are smoothed: by less than a tenth of g
    assert np.abs(np.diff(moved[:, 2], 2)).max() * 60.0**2 < 1.0


def test_a_drop_on_both_feet_is_no_flight() -> None:
    """Who crouches at 0.8 g for a tenth of a second stands all the while: nothing lies between two flights."""
    t = np.linspace(0.0, 1.0, 61)
    q = np.tile(MODEL.q_rest, (61, 1))
    bend = 0.9 * np.clip(t - 0.3, 0.0, 0.25) / 0.25
    for side in "lr":
        q[:, MODEL.q_slice(f"hip_{side}")] = quat_exp(np.outer(-bend, (0.0, 1.0, 0.0)))
        q[:, MODEL.q_slice(f"knee_{side}")] = 2.0 * bend[:, None]
    thigh = 0.5 * LEG
    q[:, ROOT + 2] -= 2.0 * thigh * (1.0 - np.cos(bend))
    tracks = [follow(MODEL, q, foot) for foot in FEET.values()]
    gait = going(t, centre_of_mass(MODEL, q, FEET["l"]), tracks, LEG)
    assert not gait.held.all()
    done = plant_feet(MODEL, t, q)
    assert all(end > start for spans in done.stances.values() for start, end in spans)


def skim(rate: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """The left foot stands, goes on by 30 cm along the ground within half a second, and stands; the pelvis with it."""
    t = np.arange(round(1.5 * rate) + 1) / rate
    q = np.tile(MODEL.q_rest, (len(t), 1))
    s = np.clip((t - 0.5) / 0.5, 0.0, 1.0)
    q[:, ROOT] += 0.3 * s**2 * (3.0 - 2.0 * s)
    return t, q


def test_feet_swing_clear_of_the_ground() -> None:
    times, q = skim()
    low = []
    for clearance in (0.0, 0.015, 0.03):
        done = plant_feet(MODEL, times, q, clearance=clearance, stances={"l": [(0.0, 0.5), (1.0, 1.5)]})
        track = follow(MODEL, done.q, FEET["l"])
        height = FEET["l"].lowest(track.place, track.quat)
        low.append(height[(times > 0.69) & (times < 0.81)].min())
        assert height[(times <= 0.5) | (times >= 1.0)].max() < 1e-3
        # it is slower than a stance's 0.6 of its length, 0.5 m/s, up to 0.585 s and from 0.915 s on: the swing is what
        # is between. (1 − u⁴)² is at most 2.5 steep: nothing is thrown up
        assert np.abs(np.diff(height) * 60.0).max() < 2.5 * clearance / 0.165 + 0.05
    # there u is 0.36 at most: 0.966 of the clearance
    assert low[0] < 2e-3
    assert low[1] > 0.0144
    assert low[2] > 0.0288


def test_real_clips() -> None:
    """Walks and runs, where they are at hand: under 5 mm of sliding in stances, soles above −1 mm, small changes."""
    found = [DATA / name for name in CLIPS if (DATA / name).exists()]
    for path in found:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a BVH file does not say
            clip = poise.load_motion(path)
        times, q = poise.motion.retarget(clip, MODEL)
        done = plant_feet(MODEL, times, q)
        for side, foot in FEET.items():
            # the right foot of this run stands in its first frames alone: no flight comes before
            assert done.stances[side] or (path.stem, side) == ("humanoid3d_run", "r"), path
            assert slide(foot, times, done.q, done.stances[side]) < 5e-3, path
        assert lowest(done.q) > -1e-3, path
        np.testing.assert_allclose(done.q[:, ABOVE], q[:, ABOVE], atol=1e-14)  # quaternions are made of unit length
        change = np.abs(poise.dynamics.difference(MODEL, q, done.q))[:, 6:]
        assert np.degrees(change.mean()) < 2.0, path


def test_falls_of_real_clips_are_mended_and_told() -> None:
    """DeepMimic's run, where it is at hand, falls by 4 g for a frame; nobody of CMU falls faster than can be."""
    for path in (DATA / name for name in CLIPS if (DATA / name).exists()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clip = poise.load_motion(path)
        clip = clip.looped(1e-3) if path.stem == "humanoid3d_run" else clip
        times, q = poise.motion.retarget(clip, MODEL)
        fresh, falls = falling_freely(MODEL, times, q, loop=clip.loop)
        if path.stem != "humanoid3d_run":
            assert falls == []
            continue
        (fall,) = falls
        assert 0.015 < fall.changed < 0.03
        moved = fresh - q
        assert np.abs(moved[:, ROOT + 2]).max() == pytest.approx(fall.changed)
        moved[:, ROOT + 2] = 0.0
        assert not moved.any()
        height = centre_of_mass(MODEL, fresh, FEET["l"])[:, 2]
        height[-1] = height[0]
        assert poise.motion.Spline(times, height, loop=True)(times).acceleration.min() > -9.81 * (1 + 1e-4)
        assert len(poise.control.Reference(clip, MODEL, floor=0.0).falls) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"times": [0.0, 1.0]}, "q: must have the shape"),
        ({"times": [0.0, 2.0, 1.0]}, "times: must increase"),
        ({"q": np.full((3, MODEL.nq), np.nan)}, "must be finite"),
        ({"q": np.zeros((3, 2))}, "q has shape"),
        ({"blend": 0.0}, "blend: must be"),
        ({"floor": np.inf}, "floor: must be finite"),
        ({"clearance": -0.01}, "clearance: must be 0 m or more"),
        ({"stances": [(0.0, 1.0)]}, "stances: must have pairs"),
        ({"stances": {"left": [(0.0, 1.0)]}}, "no foot is called 'left'"),
        ({"stances": {"l": [(1.0, 0.0)]}}, "pairs of times that increase"),
        ({"stances": {"l": [(0.0, 1.0), (0.5, 2.0)]}}, "pairs of times that increase"),
        ({"stances": {"l": [(0.0, 1.0, 2.0)]}}, "must have the shape"),
    ],
)
def test_what_cannot_be_planted(options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"times": [0.0, 1.0, 2.0], "q": np.tile(MODEL.q_rest, (3, 1))} | options
    with pytest.raises(ValueError, match=says):
        plant_feet(MODEL, given.pop("times"), given.pop("q"), **given)


def test_a_character_without_feet() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball")
    model = scene.compile()
    with pytest.raises(ValueError, match="no foot_l or foot_r"):
        plant_feet(model, [0.0], model.q_rest[None])
