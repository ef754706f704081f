"""Paths that fall faster than anybody can, and feet that land: what is possible stays, and each change is told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from poise.motion import Clip, Skeleton, Spline, ballistic_correction, mend
from poise.motion.ballistic_correction import NOISE, without_falls
from poise.motion.rotations import quat_exp

G = 9.81
RATE = 60.0
Answer = tuple[np.ndarray, list[ballistic_correction.Fall]]


def mended(heights, rate: float = RATE, loop: bool = False) -> Answer:
    heights = np.asarray(heights, float)
    return without_falls(np.arange(len(heights)) / rate, heights, loop, G)


def dropped(rate: float = RATE, g: float = 40.0, seconds: float = 3.0):
    """Heights of who hangs for a second, falls by 0.6 m at g, and is stopped in the same way."""
    t = np.arange(round(seconds * rate)) / rate - 1.0
    half = np.sqrt(0.6 / g)
    down = np.where(t < half, 0.5 * g * t**2, 0.6 - 0.5 * g * np.maximum(2 * half - t, 0.0) ** 2)
    return 1.5 - np.where(t > 0.0, down, 0.0)


def accelerations(heights, rate: float = RATE, loop: bool = False):
    """Of the smooth curve; between keys it is linear."""
    times = np.arange(len(heights)) / rate
    slope = (heights[-1] - heights[0]) / times[-1] if loop else 0.0
    level = heights - slope * times
    if loop:
        level[-1] = level[0]
    return Spline(times, level, loop=loop, ends="free")(times).acceleration


@pytest.mark.parametrize(
    "heights",
    [
        np.ones(90),
        np.linspace(0.0, 5.0, 90),
        20.0 - 0.5 * G * (np.arange(90) / RATE) ** 2,
        # contacts push: 30 g upward is a blow from below and none of this
        0.5 * 30 * G * (np.arange(90) / RATE) ** 2,
        np.abs(np.arange(90) / RATE - 0.7),
        1.0 + 0.02 * np.sin(20.0 * np.arange(90) / RATE),
        # noise of 2 mm has 20 times gravity at this rate
        1.0 + np.random.default_rng(0).uniform(-2e-3, 2e-3, 90),
    ],
    ids=["flat", "climb", "free fall", "pushed", "landing", "bounce", "noise"],
)
def test_paths_that_can_be_stay(heights):
    fresh, falls = mended(heights)
    assert fresh is heights
    assert falls == []


@pytest.mark.parametrize("rate", [30.0, 60.0, 120.0])
def test_an_impossible_fall_is_mended_and_told(rate):
    given = dropped(rate)
    fresh, (one,) = mended(given, rate)
    # half of the way down takes √(0.6/40) s; the curve through keys has corners to round
    assert 1.0 < one.time < 1.0 + 2 * np.sqrt(0.6 / 40)
    assert one.rate > 0.8 * 40
    assert accelerations(fresh, rate).min() > -G * (1 + 1e-4)
    # it had 40 m/s² up, and has no more now
    assert accelerations(fresh, rate).max() < accelerations(given, rate).max() * (1 + 1e-4)
    away = np.abs(fresh - given)
    assert one.changed == pytest.approx(away.max())
    assert NOISE < one.changed < 0.6
    assert set(np.flatnonzero(away > 0.0)) <= set(one.keys)
    # whoever was mended once needs nothing more
    assert mended(fresh, rate)[1] == []


def test_no_other_path_is_nearer():
    """The least ∫ (y − z)² dt within both bounds, by SciPy's nnls (Lawson and Hanson 1974, ch. 23)."""
    times, heights = np.arange(36) / 30, dropped(30.0)[16:52]
    found, (one,) = without_falls(times, heights, False, G)
    own = list(one.keys)
    assert 0 < own[0] < own[-1] < 35
    bend = Spline(times, np.eye(36), ends="free")(times).acceleration
    rows, now, weight = bend[:, own], bend @ heights, np.gradient(times)
    low, high = np.minimum(-G, now), np.maximum(now, now.max())
    low[own] = -G
    # with c = W^-1/2 x the cost is |x|²; G x ≥ h is scaled by gravity
    scale = np.sqrt(weight[own])
    matrix = np.vstack((rows, -rows)) / scale / G
    least = np.concatenate((low - now, now - high)) / G
    wall = np.vstack((matrix.T, least))
    rest = wall @ nnls(wall, np.append(np.zeros(len(own)), 1.0), maxiter=10_000)[0]
    rest[-1] -= 1.0
    other = -rest[:-1] / rest[-1] / scale
    assert (low - now - rows @ other).max() < 1e-4
    assert (now + rows @ other - high).max() < 1e-4
    np.testing.assert_allclose(found[own] - heights[own], other, rtol=0, atol=1e-6)


def test_keys_farther_away_stay_to_the_bit():
    given = dropped()
    fresh, (one,) = mended(given)
    others = np.setdiff1d(np.arange(len(given)), one.keys)
    # keys within 0.25 s of what is wrong, or twice that
    assert one.keys[0] / RATE > 1.0 - 2 * 0.25
    np.testing.assert_array_equal(fresh[others], given[others])


def test_falls_that_nobody_has_time_for_are_mended_farther_around():
    """3 m at 200 m/s²: 0.17 s, where gravity takes 0.8 s and as much speed as nothing can stop."""
    t = np.arange(240) / RATE - 2.0
    fresh, falls = mended(5.0 - np.clip(100 * np.maximum(t, 0.0) ** 2, 0.0, 3.0))
    assert len(falls) == 1
    assert accelerations(fresh).min() > -G * (1 + 1e-4)


def test_who_is_never_pushed_up_is_pushed_harder():
    """From a height to another along lines: as no line is pushed up but at its corner, a fall needs more than that."""
    heights = np.concatenate((np.full(60, 1.0), 1.0 - np.arange(1, 11) * 0.1, np.linspace(0.0, -5.0, 51)[1:]))
    fresh, falls = mended(heights)
    assert len(falls) == 1
    assert accelerations(fresh).min() > -G * (1 + 1e-4)


def looping(start: int, rise: float = 0.0, period: int = 48):
    """A loop that falls by 0.1 m within two frames and comes up again, from any of its frames on."""
    k = np.arange(start, start + period + 1)
    return 1.0 + 0.1 * np.interp(k % period, (0, 20, 22, period), (0, 1, 0, 0)) + rise * (k - start) / period


@pytest.mark.parametrize("period", [30, 48, 200])
@pytest.mark.parametrize("start", [0, 7, 21, 29])
def test_loops_are_mended_wherever_they_begin(start, period):
    fresh, falls = mended(looping(start, period=period), 30.0, loop=True)
    assert len(falls) == 1
    assert accelerations(fresh, 30.0, loop=True).min() > -G * (1 + 1e-4)
    first = mended(looping(0, period=period), 30.0, loop=True)[0]
    np.testing.assert_allclose(fresh[:-1], first[np.arange(start, start + period) % period], atol=1e-7)
    assert fresh[-1] == pytest.approx(fresh[0], abs=1e-12)


def test_stairs_in_a_loop_go_on():
    flat, stairs = (mended(looping(5, rise=rise), 30.0, loop=True)[0] for rise in (0.0, 0.4))
    np.testing.assert_allclose(stairs - flat, 0.4 * np.arange(49) / 48, atol=1e-9)


def test_noise_moves_no_farther_than_noise_does():
    rng = np.random.default_rng(1)
    for rate in (30.0, 60.0, 120.0):
        heights = 1.0 + rng.normal(0.0, 0.01, round(3 * rate))
        # a path that falls at g may be above a noise of 3 sigma for a while, not by the height of a body
        assert np.abs(mended(heights, rate)[0] - heights).max() < 0.1


@pytest.mark.parametrize("keys", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("heights", [np.zeros(6), np.array((1.0, 0.0, 1.0, 0.0, 1.0, 0.0)), 1e6 * np.arange(6) % 7])
def test_short_paths(keys, heights):
    fresh, _ = mended(heights[:keys])
    assert np.isfinite(fresh).all()
    if keys < 3 or not heights.any():
        np.testing.assert_array_equal(fresh, heights[:keys])


@pytest.mark.parametrize(("size", "rate"), [(1e150, 60.0), (1e12, 60.0), (1.0, 1e6), (1e-3, 1e9), (1e3, 1e-3)])
def test_sizes_and_rates_of_nobody(size, rate):
    fresh, falls = mended(size * np.random.default_rng(4).normal(size=40), rate)
    assert np.isfinite(fresh).all()
    assert all(np.isfinite((one.rate, one.changed)).all() for one in falls)


def test_what_is_too_long_is_told_and_left(monkeypatch):
    monkeypatch.setattr(ballistic_correction, "_MOST", 10)
    given = dropped()
    fresh, (one,) = mended(given)
    np.testing.assert_array_equal(fresh, given)
    assert (one.keys, one.changed) == ((), 0.0)


def lander(speed: float = 2.0, height: float = 0.0, steps=(0.3,)) -> Clip:
    """Someone who comes down at a speed until frame 30 and stands; then a foot is turned, by each of `steps`."""
    names, parents = ["hips", "shin", "foot", "toe", "head"], [-1, 0, 1, 2, 0]
    figure = Skeleton(names, parents, [(0, 0, 0.9), (0, 0, -0.4), (0, 0, -0.4), (0.1, 0, -0.1), (0, 0, 0.8)])
    k = np.arange(60)
    angles = np.zeros((60, 5, 3))
    for n, step in enumerate(steps):
        angles[k >= 30 + n, 2, 1] += step
    way = 0.9 + height + speed * np.maximum(30 - k, 0) / RATE
    # somewhere else it was on the ground
    way = np.where(k < 3, 0.9, way) if height else way
    path = np.stack((np.zeros(60), np.zeros(60), way), 1)
    return Clip(figure, k / RATE, quat_exp(angles), path)


def kinds(clip: Clip, joint: str = "foot") -> list[str]:
    return [one.kind for one in mend(clip, shift=10.0).mends if one.joint == joint]


def test_a_foot_that_lands_is_no_jerk():
    clip = lander()
    assert kinds(clip) == []
    assert clip.mended(shift=10.0) is clip


def test_the_same_step_elsewhere_is_one():
    assert kinds(lander(speed=0.0)) == ["step"]
    # in the air
    assert kinds(lander(height=0.5)) == ["step"]
    # slower than feet come down
    assert kinds(lander(speed=0.3)) == ["step"]


def test_what_goes_there_and_back_at_a_landing_is_still_a_spike():
    assert kinds(lander(steps=(0.5, -0.5))) == ["spike"]


def test_seams_are_mended_though_feet_land_there():
    clip = lander()
    quats = np.array(clip.quats_wxyz)
    quats[30:] = quat_exp((0.0, 0.3, 0.0))
    seamed = clip.keyed(clip.times, quats, clip.translations)
    assert {one.joint for one in mend(seamed, shift=10.0).mends if one.what == "turn"} == set(clip.skeleton.names)
