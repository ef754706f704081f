"""Dragging: how far, how strongly, and what cannot be dragged."""

import numpy as np
import pytest

import poise
from poise.control import Drag

LEVELS = ("velocity", "acceleration")


def ball_in_space(mass=2.0):
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=mass), name="ball")
    return scene


@pytest.mark.parametrize("level", LEVELS)
def test_comes_to_its_target_without_swinging_beyond(level):
    world = ball_in_space().build(poise.Reduced(level=level))
    world.add_controller(Drag("ball", target=(0.05, 0, 0), level=level))
    path = []
    for _ in range(240):
        world.step()
        path.append(world.q[0])
    # critically damped at 20/s: x = 1 - (1 + ωt) exp(-ωt) of the way; an implicit step lags by half of itself
    time = np.arange(1, 241) / 240
    wanted = 0.05 * (1.0 - (1.0 + 20.0 * time) * np.exp(-20.0 * time))
    assert np.abs(np.array(path) - wanted).max() < 0.05 * 20.0 / 240
    assert max(path) < 0.05 * (1.0 + 1e-3)  # in finite steps it is critical but for a small part
    assert path[-1] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_never_pulls_harder_than_its_strength(level):
    world = ball_in_space().build(poise.Reduced(level=level))
    world.add_controller(Drag("ball", target=(100.0, 0, 0), strength=5.0, level=level))
    for _ in range(60):
        before = world.v[:3].copy()
        world.step()
        force = 2.0 * (world.v[:3] - before) * 240
        assert np.linalg.norm(force) == pytest.approx(5.0, rel=1e-3)  # of a step's residual


def test_strength_is_twice_the_weight_of_the_whole_character():
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(mass=70.0), name="hero")
    drag = Drag("hero/hand_l")
    scene.build().add_controller(drag)
    assert drag.strength == pytest.approx(2.0 * 70.0 * 9.81, rel=1e-9)


def test_point_off_the_centre_turns_the_body():
    world = ball_in_space().build()
    world.add_controller(Drag("ball", point=(0.1, 0, 0), target=(0.1, 0.05, 0)))
    world.step(10)
    assert world.v[5] > 0.0


def test_sags_by_gravity_over_the_square_of_the_quickness():
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, mass=3.0), name="ball", position=(0, 0, 1))
    world = scene.build()
    world.add_controller(Drag("ball", target=(0, 0, 1)))
    world.step(480)
    assert world.q[2] == pytest.approx(1.0 - 9.81 / 400.0, abs=1e-5)


def test_without_a_target_nothing_is_pulled():
    world = ball_in_space().build()
    drag = Drag("ball", target=(1, 0, 0))
    world.add_controller(drag)
    world.step(5)
    speed = world.v.copy()
    drag.target = None
    world.step(5)
    assert np.array_equal(world.v, speed)
    assert speed[0] > 0.0


def test_heavy_steps_stay_stable_at_acceleration_level():
    """A point that is light for a stiff spring: the force is that of the step's end."""
    world = ball_in_space(mass=0.01).build(poise.Reduced(level="acceleration"), dt=1 / 60)
    drag = Drag("ball", target=(0.1, 0, 0), stiffness=1e4, damping=10.0, strength=1e3, level="acceleration")
    world.add_controller(drag)
    world.step(120)
    assert world.q[0] == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"point": (0, 0)}, "point"),
        ({"target": (0, np.nan, 0)}, "target"),
        ({"strength": -1.0}, "strength is -1"),
        ({"stiffness": np.inf}, "stiffness is inf"),
        ({"level": "position"}, "level is 'position'; there are velocity, acceleration"),
    ],
)
def test_refuses_what_makes_no_sense(options, what):
    with pytest.raises(ValueError, match=what):
        Drag("ball", **options)


def test_refuses_what_does_not_move():
    scene = ball_in_space()
    scene.add(poise.box(1, 1, 1), name="wall", fixed=True)
    with pytest.raises(ValueError, match='body "wall" does not move'):
        scene.build().add_controller(Drag("wall"))
    with pytest.raises((ValueError, poise.SceneError), match="did you mean"):
        scene.build().add_controller(Drag("bal"))
