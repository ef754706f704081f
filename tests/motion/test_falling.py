"""Roots that fall faster than anybody can, and feet that land: what is possible stays, and each change is told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from poise.characters import clips
from poise.motion import Clip, Skeleton, Spline, falling, mend
from poise.motion.falling import without_falls
from poise.motion.rotations import quat_exp

G = 9.81
FALL = 12.3
RATE = 60.0


def rooted(heights, rate: float = RATE, **options) -> Clip:
    """A root that goes ahead at 1 m/s."""
    heights = np.asarray(heights, float)
    times = np.arange(len(heights)) / rate
    path = np.stack((times, np.zeros_like(times), heights), 1)
    turns = np.tile((1, 0, 0, 0), (len(times), 1, 1))
    return Clip(Skeleton(["hips"], [-1], [(0, 0, 0)]), times, turns, path, **options)


def dropped(rate: float = RATE, g: float = 40.0, seconds: float = 3.0):
    """Heights of who hangs for a second, falls by 0.6 m at g, and is stopped in the same way."""
    t = np.arange(round(seconds * rate)) / rate - 1.0
    half = np.sqrt(0.6 / g)
    down = np.where(t < half, 0.5 * g * t**2, 0.6 - 0.5 * g * np.maximum(2 * half - t, 0.0) ** 2)
    return 1.5 - np.where(t > 0.0, down, 0.0)


def accelerations(clip: Clip):
    now = np.linspace(clip.times[0], clip.times[-1], 40 * clip.n_frames)
    return clip.sample(now).accelerations[:, 0, 2]


@pytest.mark.parametrize(
    "heights",
    [
        np.ones(90),
        np.linspace(0.0, 5.0, 90),
        # 1.2 times gravity, as roots of people who jump do
        20.0 - 0.5 * 1.2 * G * (np.arange(90) / RATE) ** 2,
        # contacts push: 30 g upward is a blow from below and none of this
        0.5 * 30 * G * (np.arange(90) / RATE) ** 2,
        np.abs(np.arange(90) / RATE - 0.7),
        1.0 + 0.03 * np.sin(20.0 * np.arange(90) / RATE),
        # noise of 2 mm has 20 times gravity at this rate
        1.0 + np.random.default_rng(0).uniform(-2e-3, 2e-3, 90),
    ],
    ids=["flat", "climb", "free fall", "pushed", "landing", "bounce", "noise"],
)
def test_paths_that_can_be_stay(heights):
    clip = rooted(heights)
    assert mend(clip, shift=10.0).clip is clip


@pytest.mark.parametrize("name", ["walk", "run", "squat", "jump", "wave", "punch", "stand"])
def test_nobody_falls_too_fast_in_clips_of_our_own(name):
    assert mend(getattr(clips, name)()).mends == ()


@pytest.mark.parametrize("rate", [30.0, 60.0, 120.0])
def test_an_impossible_fall_is_mended_and_told(rate):
    given = rooted(dropped(rate), rate, notes=["read from paper"])
    clip, mends = mend(given)
    (one,) = mends
    assert (one.joint, one.what, one.kind) == ("hips", "shift", "fall")
    # half of the way down takes √(0.6/40) s; the curve through keys has corners to round
    assert 1.0 < one.time < 1.0 + 2 * np.sqrt(0.6 / 40)
    assert one.size > 0.8 * 40
    assert accelerations(given).min() < -0.8 * 40
    # piecewise linear between keys, so that it holds everywhere
    assert accelerations(clip).min() > -FALL * (1 + 1e-4)
    away = np.abs(clip.root_positions - given.root_positions)
    assert one.changed == pytest.approx(away[:, 2].max())
    assert away[:, :2].max() == 0.0
    assert set(np.flatnonzero(away[:, 2] > 0.0)) <= set(one.frames)
    assert clip.notes == ("read from paper", f"{one}.")
    first, last = one.frames[0], one.frames[-1]
    told = f"frames {first} to {last} shifted by up to {1000 * one.changed:.1f} mm"
    assert str(one) == f"hips: a fall of {one.size:.1f} m/s² at {one.time:.3f} s; {told}"
    # whoever was mended once needs nothing more
    assert clip.mended() is clip


def test_no_other_path_is_nearer_and_as_smooth():
    """The least ∫ (y − z)² + τ⁴ ÿ² dt as a least distance by SciPy's nnls (Lawson and Hanson 1974, ch. 23)."""
    times, heights, tau = np.arange(36) / 30, dropped(30.0)[16:52], 0.05
    found, falls = without_falls(times, heights, False, FALL, 5 * tau)
    assert len(falls) == 1
    own = list(falls[0].keys)
    assert 0 < own[0] < own[-1] < 35
    bend = Spline(times, np.eye(36), ends="free")(times).acceleration
    rows, now, weight = bend[:, own], bend @ heights, np.gradient(times)
    bound = np.minimum(-FALL, now)
    bound[own] = -FALL
    cost = np.diag(weight[own]) + tau**4 * rows.T @ (weight[:, None] * rows)
    free = -np.linalg.solve(cost, tau**4 * rows.T @ (weight * now))
    # with c = free + L⁻ᵀ x the cost is |x|² and more that is constant; G x ≥ h is scaled by gravity
    lower = np.linalg.cholesky(cost)
    matrix, least = np.linalg.solve(lower, rows.T).T / G, (bound - now - rows @ free) / G
    wall = np.vstack((matrix.T, least))
    rest = wall @ nnls(wall, np.append(np.zeros(len(own)), 1.0), maxiter=10_000)[0]
    rest[-1] -= 1.0
    other = free + np.linalg.solve(lower.T, -rest[:-1] / rest[-1])
    assert (bound - now - rows @ other).max() < 1e-4
    np.testing.assert_allclose(found[own] - heights[own], other, rtol=0, atol=1e-6)


def test_frames_farther_away_stay_to_the_bit():
    given = rooted(dropped())
    clip, (one,) = mend(given)
    others = np.setdiff1d(np.arange(given.n_frames), one.frames)
    assert given.times[one.frames[0]] > 1.0 - 2 * 0.25
    np.testing.assert_array_equal(clip.root_positions[others], given.root_positions[others])
    assert mend(given, over=0.1).mends[0].frames[0] > one.frames[0]


def test_falls_that_nobody_has_time_for_are_mended_farther_around():
    """3 m at 200 m/s²: 0.17 s, where 12.3 m/s² take half a second and as much speed as nothing can stop."""
    t = np.arange(240) / RATE - 2.0
    clip, mends = mend(rooted(5.0 - np.clip(100 * np.maximum(t, 0.0) ** 2, 0.0, 3.0)), shift=10.0)
    assert [one.kind for one in mends] == ["fall"]
    assert accelerations(clip).min() > -FALL * (1 + 1e-4)


def looping(start: int, rise: float = 0.0, period: int = 48) -> Clip:
    """A loop that falls by 0.1 m within two frames and comes up again, from any of its frames on."""
    k = np.arange(start, start + period + 1)
    heights = 1.0 + 0.1 * np.interp(k % period, (0, 20, 22, period), (0, 1, 0, 0)) + rise * (k - start) / period
    return rooted(heights, 30.0, loop=True, stride=(period / 30, 0, rise))


@pytest.mark.parametrize("period", [30, 48, 200])
@pytest.mark.parametrize("start", [0, 7, 21, 29])
def test_loops_are_mended_wherever_they_begin(start, period):
    options = {"shift": 10.0}
    clip, mends = mend(looping(start, period=period), **options)
    assert [one.kind for one in mends] == ["fall"]
    assert accelerations(clip).min() > -FALL * (1 + 1e-4)
    first = mend(looping(0, period=period), **options).clip
    k = np.arange(start, start + period) % period
    np.testing.assert_allclose(clip.root_positions[:-1, 2], first.root_positions[k, 2], atol=1e-7)
    assert clip.root_positions[-1, 2] == pytest.approx(clip.root_positions[0, 2], abs=1e-12)


def test_stairs_in_a_loop_go_on():
    flat, stairs = mend(looping(5), shift=10.0).clip, mend(looping(5, rise=0.4), shift=10.0).clip
    np.testing.assert_allclose(stairs.stride, (1.6, 0, 0.4))
    climbed = stairs.root_positions[:, 2] - flat.root_positions[:, 2]
    np.testing.assert_allclose(climbed, 0.4 * np.arange(49) / 48, atol=1e-9)


def test_noise_moves_no_farther_than_noise_does():
    rng = np.random.default_rng(1)
    for rate in (30.0, 60.0, 120.0):
        heights = 1.0 + rng.normal(0.0, 0.01, round(3 * rate))
        clip = rooted(heights, rate).mended(shift=10.0)
        # a path that falls at 12.3 m/s² may be above a noise of 3 sigma for a while, not by the height of a body
        assert np.abs(clip.root_positions[:, 2] - heights).max() < 0.1


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("heights", [np.zeros(6), np.array((1.0, 0.0, 1.0, 0.0, 1.0, 0.0)), 1e6 * np.arange(6) % 7])
def test_short_paths(frames, heights):
    clip = rooted(heights[:frames]).mended(shift=1e9)
    assert np.isfinite(clip.root_positions).all()
    if frames < 3 or not heights.any():
        np.testing.assert_array_equal(clip.root_positions[:, 2], heights[:frames])


@pytest.mark.parametrize(("size", "rate"), [(1e150, 60.0), (1e12, 60.0), (1.0, 1e6), (1e-3, 1e9), (1e3, 1e-3)])
def test_sizes_and_rates_of_nobody(size, rate):
    heights = size * np.random.default_rng(4).normal(size=40)
    clip, mends = mend(rooted(heights, rate), shift=1e200, usual=1e9)
    assert np.isfinite(clip.root_positions).all()
    assert all(np.isfinite((one.size, one.changed)).all() for one in mends)


def test_roots_that_never_move():
    turns = np.tile((1, 0, 0, 0), (40, 2, 1))
    clip = Clip(Skeleton(["hips", "neck"], [-1, 0], [(0, 0, 1), (0, 0, 0.5)]), np.arange(40) / 30, turns)
    assert clip.mended() is clip


def test_only_roots_that_are_looked_at_are_mended():
    clip = rooted(dropped())
    assert clip.mended(fall=None) is clip
    assert clip.mended(joints=[]) is clip
    assert clip.mended(fall=1e4) is clip
    assert len(mend(clip, joints=["hips"]).mends) == 1


def test_what_is_too_long_is_told_and_left(monkeypatch):
    monkeypatch.setattr(falling, "_MOST", 10)
    given = rooted(dropped())
    clip, (one,) = mend(given)
    np.testing.assert_array_equal(clip.root_positions, given.root_positions)
    assert str(one).endswith("it could not be mended")
    assert clip.notes == (f"{one}.",)


@pytest.mark.parametrize(
    ("fall", "message"),
    [
        (0.0, "fall: must be more than 0 m/s²"),
        (-9.81, "fall: must be more than 0 m/s²"),
        (np.nan, "fall: must be finite"),
        (np.inf, "fall: must be finite"),
        ("fast", "fall: must be numbers"),
    ],
)
def test_falls_that_cannot_be_asked_for(fall, message):
    with pytest.raises(ValueError, match=message):
        rooted(dropped()).mended(fall=fall)


def test_paths_with_holes_are_no_clips():
    heights = dropped()
    heights[50] = np.nan
    with pytest.raises(ValueError, match="translations: must be finite"):
        rooted(heights)


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
    return [one.kind for one in mend(clip, shift=10.0, fall=None).mends if one.joint == joint]


def test_a_foot_that_lands_is_no_jerk():
    clip = lander()
    assert kinds(clip) == []
    assert clip.mended(shift=10.0, fall=None) is clip


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
    assert {one.joint for one in mend(seamed, shift=10.0, fall=None).mends if one.what == "turn"} == set(
        clip.skeleton.names
    )
