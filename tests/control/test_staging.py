"""Starts, throws and pushes: what they give is what was asked, whenever a world goes back in time."""

import numpy as np
import pytest

import poise
from poise.control import Push, Start, Throw
from poise.model.errors import SceneError


def ball_scene(**options):
    scene = poise.Scene(**options)
    scene.add(poise.box(0.2, 0.3, 0.1, mass=2.0, position=(0.1, 0.0, 0.05)), name="brick", position=(0, 0, 3))
    return scene


# at acceleration level the force, 740 N at the centre of mass for a step, has an arm about it as the brick begins to
# turn: by ω dt / 6 in the mean, so that the spin is off by m Δv r ω dt / 6 over 0.0083 kg·m², 0.19 rad/s at most
@pytest.mark.parametrize(("level", "off"), [("velocity", 2e-2), ("acceleration", 0.19)])
def test_it_waits_and_flies(level, off):
    scene = ball_scene()
    Throw("brick", time=0.1, velocity=(3.0, 1.0, 2.0), angular_velocity=(0.0, 0.5, 1.0)).add_to(scene)
    world = scene.build(poise.Reduced(level=level), dt=0.01)
    start = world.q.copy()
    world.step(10)
    np.testing.assert_allclose(world.q, start, atol=1e-12)
    world.step()
    model, place = world.model, poise.dynamics.bodies(world.model, world.q, world.v)
    spin = place.twist[0, :3]
    centre = place.twist[0, 3:] + np.cross(spin, place.rotation[0] @ model.body_com[0])
    np.testing.assert_allclose(centre, [3.0, 1.0, 2.0], atol=max(2e-3, 0.1 * off))
    np.testing.assert_allclose(spin, [0.0, 0.5, 1.0], atol=off)
    before = world.v[:3].copy()
    world.step(10)
    assert world.v[2] < before[2] - 0.9, "it has its weight again"


def test_it_meets_what_it_is_thrown_at():
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    scene.add(poise.sphere(0.1), name="mark", position=(4, 2, 2), fixed=True)
    Throw("ball", time=0.05, at="mark", speed=8.0).add_to(scene)
    world = scene.build(dt=0.001)
    gaps = []
    for _ in range(800):
        world.step()
        gaps.append(float(np.linalg.norm(world.body("ball").position - np.array((4.0, 2.0, 2.0)))))
    # a contact of two balls of 0.1 m; semi-implicit steps fall short of the parabola by g T dt / 2 = 3 mm
    assert min(gaps) < 0.205


def test_whole_characters_are_thrown():
    scene = poise.Scene()
    scene.add(poise.characters.ragdoll(), name="doll", position=(0, 0, 2))
    Throw("doll/pelvis", time=0.02, velocity=(2.0, 0.0, 4.0)).add_to(scene)
    world = scene.build(dt=0.01)
    world.step(2)
    assert np.abs(world.v).max() < 1e-9, "it hangs without weight"
    world.step()
    twist = poise.dynamics.bodies(world.model, world.q, world.v).twist
    np.testing.assert_allclose(twist[:, 3:], np.tile((2.0, 0.0, 4.0), (world.model.n_bodies, 1)), atol=1e-6)


def test_going_back_in_time_throws_again():
    scene = ball_scene()
    Throw("brick", time=0.05, velocity=(1.0, 0.0, 0.0)).add_to(scene)
    world = scene.build(dt=0.01)
    world.step(3)
    saved = world.state
    world.step(10)
    first = world.q.tobytes()
    world.state = saved
    world.step(10)
    assert world.q.tobytes() == first


def test_impulse_of_a_push_is_whole_at_any_step():
    for dt in (0.1, 0.03, 0.007):
        scene = ball_scene(gravity=(0, 0, 0))
        Push("brick", time=0.111, duration=0.0503, force=(0.0, 10.0, 0.0)).add_to(scene)
        world = scene.build(dt=dt)
        world.step(round(0.4 / dt))
        momentum = poise.dynamics.momentum(world.model, world.q, world.v)
        assert momentum.linear[1] == pytest.approx(10.0 * 0.0503, rel=1e-9)


def test_start_of_all_and_of_one():
    scene = ball_scene()
    q, v = (0.0, 0.0, 5.0, 0.0, 1.0, 0.0, 0.0), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    Start(q=q, v=v, time=2.0, velocities={"brick": ((7.0, 8.0, 9.0), (0.0, 0.0, 1.0))}).add_to(scene)
    world = scene.build()
    assert world.time == 2.0
    assert world.q.tolist() == list(q)
    # half a turn about x: spin about z of the world is spin about −z of the body
    np.testing.assert_allclose(world.v, [7, 8, 9, 0, 0, -1], atol=1e-15)
    world.step(3)
    world.reset()
    assert world.time == 2.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs a velocity, or a body to be thrown at, and not both"),
        ({"velocity": (1, 0, 0), "at": "b", "speed": 1.0}, "and not both"),
        ({"at": "b"}, '"at" and "speed" belong together'),
        ({"at": "b", "speed": -1.0}, "speed: must be more than 0, found -1"),
        ({"at": "b", "speed": float("nan")}, "speed: must be more than 0, found nan"),
    ],
)
def test_throws_that_cannot_be(options, said):
    with pytest.raises(SceneError, match=said):
        Throw("a", **options)


def test_what_is_held_cannot_be_thrown():
    scene = poise.Scene()
    scene.hinge(None, poise.sphere(0.1), name="arm")
    Throw("arm", velocity=(1, 0, 0)).add_to(scene)
    with pytest.raises(SceneError, match=r'body "arm": only a body with a free joint can have a velocity or be thrown'):
        scene.build()
