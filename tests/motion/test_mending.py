"""Jerks in clips: what is smooth stays as it is, spikes and steps go, and each change is told."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.characters import clips
from poise.motion import Clip, Skeleton, mend
from poise.motion.rotations import quat_conjugate, quat_exp, quat_log, quat_multiply

RATE = 60.0
AXIS = np.array((0.6, 0.0, 0.8))
#: the last digit of quaternions that are brought to length 1 once more
LAST = 1e-15


def body(joints: int = 1) -> Skeleton:
    names = [f"j{k}" for k in range(joints)]
    return Skeleton(names, range(-1, joints - 1), [(0, 0, 1)] + [(0, 0, 0.2)] * (joints - 1))


def turning(angles, axis=AXIS, **options) -> Clip:
    """One joint that turns about an axis; angles (frames,) or (frames, joints) in rad."""
    angles = np.asarray(angles, dtype=float).reshape(len(angles), -1)
    times = np.arange(len(angles)) / RATE
    return Clip(body(angles.shape[1]), times, quat_exp(angles[..., None] * np.asarray(axis)), **options)


def angles_of(clip: Clip, axis=AXIS, joint: int = 0):
    return quat_log(clip.quats_wxyz[:, joint]) @ axis


def waving(frames: int = 90, joints: int = 1):
    """Angles (frames, joints) of 0.6 rad at 1 Hz."""
    t = np.arange(frames)[:, None] / RATE
    return 0.6 * np.sin(2 * np.pi * t + np.arange(joints))


def eased(x):
    """The way of least jerk from 0 to 1: Flash and Hogan 1985."""
    x = np.clip(x, 0.0, 1.0)
    return 10 * x**3 - 15 * x**4 + 6 * x**5


def turned(first, second):
    return np.linalg.norm(quat_log(quat_multiply(quat_conjugate(first), second)), axis=-1)


FRAMES = np.arange(90)


@pytest.mark.parametrize(
    "angles",
    [
        np.zeros(90),
        0.9 * np.ones(90),
        0.2 * FRAMES,
        0.6 * np.sin(2 * np.pi * FRAMES / RATE),
        # 4 Hz: at 0.6 rad it has 15 keys a round, and is beyond both of its neighbours by ω² dt² / 2 of 0.25 rad
        0.6 * np.sin(8 * np.pi * FRAMES / RATE),
        # a blow: 12 rad/s from one frame to the next
        0.2 * np.maximum(FRAMES - 40, 0),
        np.abs(0.1 * (FRAMES - 45.0)),
    ],
    ids=["rest", "held", "uniform turn", "1 Hz", "4 Hz", "blow", "bounce"],
)
def test_smooth_motion_is_left_alone(angles):
    clip = turning(angles)
    found = mend(clip)
    assert found.clip is clip
    assert found.mends == ()
    assert clip.mended() is clip


@pytest.mark.parametrize("name", ["walk", "run", "squat", "jump", "wave", "punch", "stand"])
def test_clips_of_our_own_have_no_jerks(name):
    assert mend(getattr(clips, name)()).mends == ()


@pytest.mark.parametrize("wrong", [1, 2, 3])
@pytest.mark.parametrize("size", [0.3, -2.0])
def test_frames_that_jump_away_and_back_are_put_between_the_others(wrong, size):
    true = waving()[:, 0]
    bad = true.copy()
    bad[30 : 30 + wrong] += size
    clip, mends = mend(turning(bad))
    # a cubic spline misses by 5/384 h⁴ max|f⁗| where keys are h apart (Hall and Meyer 1976)
    gap = (wrong + 1) / RATE
    assert np.abs(angles_of(clip) - true).max() < 5 / 384 * gap**4 * 0.6 * (2 * np.pi) ** 4
    kept = [k for k in range(90) if not 30 <= k < 30 + wrong]
    np.testing.assert_allclose(clip.quats_wxyz[kept], turning(bad).quats_wxyz[kept], rtol=0, atol=LAST)
    (one,) = mends
    assert (one.joint, one.what, one.kind, one.frames) == ("j0", "turn", "spike", tuple(range(30, 30 + wrong)))
    assert one.changed == pytest.approx(abs(size), abs=1e-3)


@pytest.mark.parametrize("speed", [0.0, 0.5, -3.0])
def test_a_step_takes_its_time_along_the_way_of_least_jerk(speed):
    t = np.arange(90) / RATE
    jump, seam, over = 0.4, (40 + 0.5) / RATE, 0.25
    clip, mends = mend(turning(speed * t + jump * (t > seam)), over=over)
    wanted = speed * t + jump * eased(0.5 + (t - seam) / over)
    assert turned(clip.quats_wxyz, turning(wanted).quats_wxyz).max() < 1e-12
    (one,) = mends
    assert one.kind == "step"
    assert one.time == pytest.approx(seam)
    assert one.size == pytest.approx(jump)
    # the nearest frames are half a frame from the middle
    assert one.changed == pytest.approx(jump * eased(0.5 - 0.5 / RATE / over))
    # 10/√3 is the largest second derivative of the way of least jerk; curves through keys differ by O(dt²)
    rate = clip.sample(np.linspace(0, t[-1], 2000)).angular_accelerations
    assert np.abs(rate).max() < 1.1 * 10 / np.sqrt(3) * jump / over**2


def test_a_step_about_another_axis_keeps_what_frames_do_beside_it():
    rng = np.random.default_rng(5)
    t = np.arange(120)[:, None] / RATE
    smooth = quat_exp(0.5 * np.sin(t * rng.uniform(2, 6, 3) + rng.uniform(0, 6, 3)))
    jump = np.array((0.3, -0.2, 0.5))
    bad = smooth.copy()
    bad[70:] = quat_multiply(smooth[70:], quat_exp(jump))
    given = Clip(body(), t[:, 0], bad[:, None])
    clip, mends = mend(given)
    (one,) = mends
    # the step is judged by its neighbours, which turn by less than 3 rad/s² / 60² each
    assert one.size == pytest.approx(np.linalg.norm(jump), abs=0.02)
    assert set(one.frames) <= set(range(62, 78))
    outside = [k for k in range(120) if k not in one.frames]
    np.testing.assert_allclose(clip.quats_wxyz[outside], given.quats_wxyz[outside], rtol=0, atol=LAST)
    # from frame to frame: what the smooth motion does, and a share of the jump that is 1.875 dt / T at most
    steps = turned(clip.quats_wxyz[:-1, 0], clip.quats_wxyz[1:, 0])
    usual = turned(smooth[:-1], smooth[1:])
    assert (steps - usual).max() < 1.05 * 1.875 / RATE / 0.25 * np.linalg.norm(jump)


def test_paths_are_mended_too():
    t = np.arange(60) / RATE
    path = np.stack((1.2 * t, 0.1 * (t > 0.5), np.ones(60)), 1)
    path[20, 2] += 0.3
    clip, mends = mend(Clip(body(), t, np.tile((1, 0, 0, 0), (60, 1, 1)), path))
    assert [(one.what, one.kind) for one in mends] == [("shift", "spike"), ("shift", "step")]
    wanted = np.stack((1.2 * t, 0.1 * eased(0.5 + (t - 30.5 / RATE) / 0.25), np.ones(60)), 1)
    # the curve at the spike feels the step ten frames later, by a factor of √3 - 2 a frame: 0.1 m · 0.27¹⁰ = 2e-7 m
    np.testing.assert_allclose(clip.root_positions, wanted, atol=4e-7)
    np.testing.assert_array_equal(clip.quats_wxyz, np.tile((1, 0, 0, 0), (60, 1, 1)))


def looping(start: int) -> Clip:
    """A loop of 60 frames that walks, with a step where its pieces meet, from any of its frames on."""
    k = np.arange(start, start + 61) % 60
    angles = 0.3 * np.sin(2 * np.pi * k / 60) + 0.01 * k
    path = np.stack((0.02 * np.arange(61), 0.002 * k, np.ones(61)), 1)
    return turning(angles, translations=path, loop=True, stride=(1.2, 0, 0))


@pytest.mark.parametrize("start", [0, 1, 30, 59])
def test_loops_are_mended_across_their_ends(start):
    clip, mends = mend(looping(start), joints=["j0"])
    turns, shifts = ([one for one in mends if one.what == what] for what in ("turn", "shift"))
    assert len(turns) == len(shifts) == 1
    assert turns[0].size == pytest.approx(0.6, abs=0.01)
    assert clip.loop
    np.testing.assert_allclose(clip.stride, (1.2, 0, 0))
    # the same, wherever the loop begins
    first = mend(looping(0)).clip
    k = np.arange(start, start + 60) % 60
    np.testing.assert_allclose(clip.quats_wxyz[:-1], first.quats_wxyz[k], atol=1e-12)
    np.testing.assert_allclose(clip.root_positions[:-1, 1:], first.root_positions[k, 1:], atol=1e-12)
    np.testing.assert_allclose(clip.root_positions[:, 0], 0.02 * np.arange(61), atol=1e-12)
    # 0.6 rad in a quarter of a second
    rates = turned(clip.quats_wxyz[:-1, 0], clip.quats_wxyz[1:, 0]) * RATE
    assert rates.max() < 1.875 * 0.6 / 0.25 + 0.3 * 2 * np.pi + 0.6


def test_a_spike_where_a_loop_begins():
    angles = 0.5 * np.cos(2 * np.pi * np.arange(61) / 60)
    bad = angles.copy()
    bad[0] = bad[-1] = 0.9
    clip, mends = mend(turning(bad, loop=True))
    assert [(one.kind, one.frames) for one in mends] == [("spike", (0,))]
    assert np.abs(angles_of(clip) - angles).max() < 5 / 384 * (2 / RATE) ** 4 * 0.5 * (2 * np.pi) ** 4


def test_signs_of_quaternions_do_not_matter():
    angles = waving()[:, 0]
    angles[30] += 0.5
    angles[60:] += 0.4
    plain = turning(angles)
    signs = np.random.default_rng(2).choice((-1.0, 1.0), (90, 1, 1))
    flipped = plain.keyed(plain.times, signs * plain.quats_wxyz, plain.translations)
    one, two = mend(plain), mend(flipped)
    np.testing.assert_allclose(two.clip.quats_wxyz, signs * one.clip.quats_wxyz, atol=1e-12)
    assert [(m.kind, m.frames) for m in one.mends] == [(m.kind, m.frames) for m in two.mends]
    assert [m.kind for m in one.mends] == ["spike", "step"]


def test_all_joints_are_mended_where_a_quarter_of_them_steps():
    angles = waving(joints=8)
    angles[45:] += (0.3, 0.3, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05)
    clip, mends = mend(turning(angles))
    assert {one.joint for one in mends} == {f"j{k}" for k in range(8)}
    assert {one.time for one in mends} == {44.5 / RATE}
    # one of them alone is no seam
    angles[45:, 1] -= 0.3
    assert [one.joint for one in mend(turning(angles)).mends] == ["j0"]
    steps = turned(clip.quats_wxyz[:-1], clip.quats_wxyz[1:])
    np.testing.assert_array_less(steps.max(axis=0)[2:], 0.6 * 2 * np.pi / RATE + 1.875 * 0.05 / RATE / 0.25)


def test_each_change_is_told():
    angles = waving(joints=2)
    angles[30, 0] += 0.5
    angles[60:, 1] += 0.4
    given = turning(angles, notes=["read from paper"])
    clip, mends = mend(given)
    assert clip.notes == ("read from paper", *(f"{one}." for one in mends))
    assert str(mends[0]) == "j0: a spike of 28.6 degrees at 0.500 s; frame 30 turned by up to 28.6 degrees"
    assert str(mends[1]).startswith("j1: a step of 22.9 degrees at 0.992 s; frames 53 to 66 turned by up to ")
    assert clip.mended() is clip
    changed = turned(given.quats_wxyz, clip.quats_wxyz) > 1e-9
    assert {(int(f), int(j)) for f, j in np.argwhere(changed)} == {
        (frame, int(one.joint[1:])) for one in mends for frame in one.frames
    }


def test_only_joints_that_are_named_are_looked_at():
    angles = waving(joints=3)
    angles[30] += 0.5
    given = turning(angles)
    clip, mends = mend(given, joints=["j1", 2])
    assert {one.joint for one in mends} == {"j1", "j2"}
    np.testing.assert_allclose(clip.quats_wxyz[:, 0], given.quats_wxyz[:, 0], rtol=0, atol=LAST)
    assert mend(given, joints=[]).clip is given


def test_bounds_decide_what_is_a_jerk():
    angles = waving()[:, 0]
    angles[30] += 0.3
    assert mend(turning(angles), turn=0.4).mends == ()
    assert len(mend(turning(angles), turn=0.2).mends) == 1
    noisy = angles + np.random.default_rng(0).normal(0.0, 0.05, 90)
    # in a clip that jumps all the time a jump is nothing unusual
    assert mend(turning(noisy), usual=100.0).mends == ()


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_short_clips(frames):
    angles = np.zeros(frames)
    angles[frames // 2 :] = 1.0
    found = mend(turning(angles))
    assert np.isfinite(found.clip.quats_wxyz).all()
    # of so few steps a jump is the usual one
    assert found.mends == ()


def test_noise_comes_out_finite():
    rng = np.random.default_rng(3)
    clip = Clip(body(5), np.arange(200) / 30, rng.normal(size=(200, 5, 4)), rng.normal(size=(200, 3)))
    for usual in (0.1, 6.0):
        found = mend(clip, usual=usual)
        assert np.isfinite(found.clip.quats_wxyz).all()
        np.testing.assert_allclose(np.linalg.norm(found.clip.quats_wxyz, axis=-1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turn": 0.0}, "turn: must be more than 0 rad, found 0"),
        ({"turn": "much"}, "turn: must be numbers"),
        ({"shift": -1.0}, "shift: must be more than 0 m"),
        ({"usual": np.nan}, "usual: must be finite"),
        ({"over": 0.0}, "over: must be more than 0 s"),
        ({"over": 1.5}, "over: must be at most the loop's 1 s, found 1.5"),
        ({"joints": "j0"}, "joints: must be a list of names or numbers, found 'j0'"),
        ({"joints": ["neck"]}, 'there is no joint "neck"'),
        ({"joints": [7]}, "there is no joint 7"),
    ],
)
def test_what_cannot_be_is_answered(options, message):
    with pytest.raises(ValueError, match=message):
        mend(looping(0), **options)


def test_only_clips_can_be_mended():
    with pytest.raises(ValueError, match="clip: must be a clip, found 'walk'"):
        mend("walk")


def files() -> list[Path]:
    """Motions that lie beside the checkout, where there are any: two steps each, of which one is the other's image."""
    folder = Path(__file__).parents[3] / "shared" / "data" / "deepmimic"
    return [file for name in ("walk", "run") for file in folder.glob(f"humanoid3d_{name}.txt")]


def slides(clip: Clip, foot: str) -> float:
    """How far an ankle goes along the ground while it is within 3 cm of its lowest; m."""
    now = np.linspace(clip.times[0], clip.times[-1], 20 * clip.n_frames)
    place = clip.sample(now).world().positions[:, clip.skeleton.index(foot)]
    low = place[:, 2] < place[:, 2].min() + 0.03
    return float(np.linalg.norm(np.diff(place[:, :2], axis=0), axis=1)[low[1:] & low[:-1]].sum())


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_seams_of_deepmimic_clips_go_and_feet_slide_no_farther(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = poise.load_motion(file).looped(1e-3)
    clip, mends = mend(given)
    half = 0.5 * given.duration
    seams = {round(one.time, 3) for one in mends if one.joint == "left_shoulder"}
    # in the middle, and where the loop begins
    assert any(abs(time - half) < 1 / 30 for time in seams)
    assert any(time < 1 / 30 for time in seams)

    def hardest(clip):
        rates = clip.sample(np.linspace(0, clip.duration, 1000)).angular_accelerations
        return max(
            np.linalg.norm(rates[:, clip.skeleton.index(f"{side}_shoulder")], axis=1).max()
            for side in ("left", "right")
        )

    assert hardest(clip) < 0.6 * hardest(given)
    for foot in ("left_ankle", "right_ankle"):
        assert slides(clip, foot) < slides(given, foot) + 0.01
