"""Arms that would be below the floor bend, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.control import Reference
from poise.control.arms import ARM, CALM, CLEAR, LEAST, arms_above
from poise.dynamics.state_queries import bodies, difference
from poise.motion.retarget_rig import Target, shape_points
from poise.motion.rotations import quat_exp

SCENE = poise.Scene()
SCENE.add(poise.characters.humanoid(), name="hero")
MODEL = SCENE.compile()
FIGURE = Target(MODEL)
ARMS = [MODEL.joint_names[FIGURE.joint[FIGURE.parts[f"{part}_{side}"]]] for part in ARM for side in "lr"]
SOME = np.concatenate([np.arange(MODEL.nv)[MODEL.v_slice(name)] for name in ARMS])
#: degrees of freedom of arms, and all others
OTHERS = np.setdiff1d(np.arange(MODEL.nv), SOME)


def lowest(q: np.ndarray) -> np.ndarray:
    """(frames, 6) heights of upper arms, forearms and hands."""
    seen, heights = bodies(MODEL, q), []
    for part in ARM:
        for side in "lr":
            link = FIGURE.parts[f"{part}_{side}"]
            body = int(MODEL.link_body[link])
            points = shape_points(MODEL, link)
            ends = [seen.position[:, body, 2] + seen.rotation[:, body, 2] @ point - radius for point, radius in points]
            heights.append(np.min(ends, axis=0))
    return np.array(heights).T


def press_up(rate: float = 60.0, depth: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    """Who leans forward, level, on arms that hang: hands get below the floor by a depth for a second; m."""
    times = np.arange(round(2.0 * rate) + 1) / rate
    q = np.tile(MODEL.q_rest, (len(times), 1))
    q[:, 3:7] = quat_exp((0.0, 0.5 * np.pi, 0.0))
    for side in "lr":
        q[:, MODEL.q_slice(f"shoulder_{side}")] = quat_exp((0.0, -0.5 * np.pi, 0.0))
        q[:, MODEL.q_slice(f"elbow_{side}")] = 0.1
    q[:, 2] -= lowest(q).min()
    share = 0.5 - 0.5 * np.cos(np.pi * np.clip(2.0 * np.minimum(times, 2.0 - times), 0.0, 1.0))
    q[:, 2] += 0.02 - (depth + 0.02) * share
    return times, q


@pytest.mark.parametrize("floor", [0.0, 0.4])
@pytest.mark.parametrize("depth", [0.005, 0.05, 0.15])
def test_hands_that_would_be_below_the_floor_lie_on_it(depth: float, floor: float) -> None:
    times, q = press_up(depth=depth)
    q[:, 2] += floor
    given = q.copy()
    done = arms_above(MODEL, times, q, floor)
    np.testing.assert_array_equal(q, given)
    assert lowest(q).min() == pytest.approx(floor - depth)
    assert lowest(done).min() > floor - 2.0 * LEAST
    # as far above as they were below; more where hands point down, as turning them has no effect at first
    deepest = (times > 0.6) & (times < 1.4)
    assert lowest(done)[deepest].min() > floor + min(depth, CLEAR) - 2.0 * LEAST
    assert lowest(done)[deepest].min(axis=1).max() < floor + 5.0 * CLEAR
    change = difference(MODEL, q, done)
    assert np.abs(change[:, OTHERS]).max() < 1e-12
    below = times[lowest(q).min(axis=1) < floor]
    assert not change[np.abs(times[:, None] - below).min(axis=1) > 4.0 * CALM + 0.01].any()


def test_hands_bend_back_and_wrists_stay_within_their_range() -> None:
    times, q = press_up()
    done = arms_above(MODEL, times, q, 0.0)
    for side in "lr":
        bend = done[len(times) // 2, MODEL.q_slice(f"wrist_{side}")][0]
        low, high = MODEL.dof_limits[MODEL.v_slice(f"wrist_{side}")][0]
        assert low - 1e-3 < bend < -0.5
        assert (done[:, MODEL.q_slice(f"wrist_{side}")][:, 0] < high).all()


def test_arms_move_without_jumps() -> None:
    """Twice as fine in time, half as far from frame to frame."""
    largest = []
    for rate in (60.0, 120.0):
        times, q = press_up(rate)
        change = difference(MODEL, q, arms_above(MODEL, times, q, 0.0))
        largest.append(np.abs(np.diff(change, axis=0)).max())
    assert largest[1] < 0.7 * largest[0]


def test_arms_above_the_floor_are_left_alone() -> None:
    times, q = press_up(depth=-0.001)
    assert arms_above(MODEL, times, q, 0.0) is q


def test_references_have_their_arms_above_the_floor() -> None:
    times, q = press_up()
    reference = Reference((times, q), MODEL, floor=0.0)
    assert lowest(reference.coordinates(MODEL, times).q).min() > -2.0 * LEAST
    loose = Reference((times, q), MODEL)
    assert lowest(loose.coordinates(MODEL, times).q).min() < -0.14


def test_loops_bend_arms_alike_in_every_round() -> None:
    times, q = press_up()
    half = len(times) // 2
    times, q = times[: half + 1], np.concatenate((q[half:], q[1 : half + 1]))[: half + 1]
    q[-1] = q[0]
    reference = Reference((times, q), MODEL, floor=0.0, loop=True)
    assert lowest(reference.coordinates(MODEL, times).q).min() > -2.0 * LEAST
    first, last = reference.coordinates(MODEL, [times[0], times[-1]]).q
    np.testing.assert_allclose(first, last, atol=1e-12)
