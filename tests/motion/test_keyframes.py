"""Key-frames by name: each track through its own keys, and coordinates of a model with matching rates."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.motion import KeyedPath, keyframes
from poise.motion.rotations import quat_exp

BALL = quat_exp((0.2, -0.4, 0.1))
KEYS = {
    0.0: {"root": (0, 0, 1, 1, 0, 0, 0), "knee_r": 0.1, "spine": (1, 0, 0, 0)},
    0.5: {"knee_r": 1.2, "ankle_r.turn1": 0.2},
    1.0: {"root": (1, 0, 1, *quat_exp((0, 0, 0.5))), "knee_r": 0.3, "spine": BALL, "ankle_r.turn1": -0.1},
}


def model() -> poise.Model:
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero")
    return scene.compile()


def test_every_name_has_its_own_keys():
    keys = keyframes(KEYS)
    assert keys.names == ("root", "knee_r", "spine", "ankle_r.turn1")
    assert keys.duration == 1.0
    at = keys.sample(0.5)
    assert at["knee_r"].value == pytest.approx(1.2)
    assert at["ankle_r.turn1"].value == pytest.approx(0.2)
    assert keys.sample([0.0, 1.0])["spine"].quat_wxyz[1] == pytest.approx(BALL)
    assert at["spine"].value is None
    assert at["knee_r"].quat_wxyz is None


def test_poses_are_those_of_a_keyed_path():
    """Position and orientation of a body, as a kinematic body would follow them."""
    keys = keyframes(KEYS)
    path = KeyedPath([0, 1], [(0, 0, 1), (1, 0, 1)], [(1, 0, 0, 0), quat_exp((0, 0, 0.5))])
    for time in (0.0, 0.3, 0.77, 1.0):
        found, wanted = keys.sample(time)["root"], path(time)
        np.testing.assert_allclose(found.value, wanted.position, atol=1e-14)
        np.testing.assert_allclose(found.quat_wxyz, wanted.quat_wxyz, atol=1e-14)
        np.testing.assert_allclose(found.angular_velocity, wanted.angular_velocity, atol=1e-13)
        np.testing.assert_allclose(found.acceleration, wanted.acceleration, atol=1e-12)


def test_coordinates_of_a_model_have_matching_velocities():
    hero, keys = model(), keyframes(KEYS)
    now, h = np.array([0.2, 0.4, 0.9]), 1e-5
    found = keys.coordinates(hero, now)
    before, after = keys.coordinates(hero, now - h), keys.coordinates(hero, now + h)
    for k in range(3):
        step = poise.dynamics.difference(hero, before.q[k], after.q[k]) / (2 * h)
        # a central difference is off by h² and by rounding over h
        np.testing.assert_allclose(found.v[k], step, atol=1e-8)
    np.testing.assert_allclose(found.a, (after.v - before.v) / (2 * h), atol=1e-6)
    rest = np.delete(np.arange(hero.nq), [*range(11), *range(*hero.q_slice("knee_r").indices(99)), hero.nq - 2])
    assert np.array_equal(found.q[0][rest], hero.q_rest[rest])


def test_kinds_of_curves():
    frames = {0.0: {"a": 0.0}, 1.0: {"a": 1.0}, 2.0: {"a": 1.0}, 3.0: {"a": 0.0}}
    now = np.linspace(1.05, 1.95, 9)
    assert keyframes(frames, moves="smooth").sample(now)["a"].value.max() > 1.01
    assert keyframes(frames, moves="monotone").sample(now)["a"].value == pytest.approx(np.ones(9))
    assert keyframes(frames, moves="linear").sample(0.25)["a"].velocity == 1.0
    assert keyframes(frames, moves="hermite", tension=1.0).sample(1.0)["a"].velocity == 0.0
    loop = keyframes(frames, loop=True)
    assert loop.sample(0.4)["a"].value == pytest.approx(loop.sample(6.4)["a"].value)


def test_pairs_in_any_order_do_as_well():
    keys = keyframes([(1.0, {"a": 1.0}), (0.0, {"a": 0.0})])
    assert keys.sample(1.0)["a"].value == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keyframes({}), "keys: at least one frame must name something, found none"),
        (lambda: keyframes(3), "keys: must be frames by time"),
        (lambda: keyframes({"soon": {"a": 1}}), "keys: must be frames by time"),
        (lambda: keyframes({0.0: 3}), "keys: the frame at 0 s must have values by name, found 3"),
        (lambda: keyframes({0.0: {3: 1}}), "keys: names at 0 s must be text, found 3"),
        (lambda: keyframes({0.0: {"a": (1, 2)}}), r'"a" at 0 s: must be a number, .* found the shape \(2,\)'),
        (lambda: keyframes({0.0: {"a": np.nan}}), '"a" at 0 s: must be finite, found nan'),
        (
            lambda: keyframes({0: {"a": 1}, 1: {"a": (0, 0, 1)}}),
            '"a": all its keys .* found an angle and a position',
        ),
        (lambda: keyframes({0.0: {"a": (0, 0, 0, 0)}}), '"a": rotation: must be rotations'),
        (lambda: keyframes([(0, {"a": 1}), (0, {"a": 2})]), '"a": times: must increase'),
        (
            lambda: keyframes({0: {"a": 1}, 1: {"a": 2}, 2: {"a": 3}}, loop=True),
            '"a": loop: the last value must be',
        ),
        (lambda: keyframes({0: {"a": 1}}, moves="cubic"), "moves: must be one of"),
        (lambda: keyframes({0: {"a": 1}}, turns="cubic"), "turns: must be one of"),
        (
            lambda: keyframes({0: {"knee": 1}}).coordinates(model(), 0.0),
            'there is no joint "knee", did you mean "hero/knee_[lr]"',
        ),
        (lambda: keyframes({0: {"spine": 1}}).coordinates(model(), 0.0), "a ball joint has 4 numbers, found keys of 1"),
        (
            lambda: keyframes({0: {"spine.qw": 1}}).coordinates(model(), 0.0),
            "is a part of a rotation; give",
        ),
    ],
)
def test_hostile_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
