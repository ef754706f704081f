"""Bodies that follow a path push and carry others through contacts, with their own velocity, at both ends of a step."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.motion.path import KeyedPath, OrbitPath, PathPoint
from poise.sim import ForcePlate

G = 9.81
STILL = np.zeros(3)


class Swinging:
    """To and fro along an axis: x = x₀ − A cos ωt."""

    def __init__(self, axis, amplitude: float, rate: float, middle=(0, 0, 0.5)) -> None:
        self.axis, self.amplitude, self.rate = np.array(axis, float), amplitude, rate
        self.middle = np.array(middle, float)

    def __call__(self, t: float) -> PathPoint:
        a, w, e = self.amplitude, self.rate, self.axis
        place, speed, gain = -a * np.cos(w * t), a * w * np.sin(w * t), a * w * w * np.cos(w * t)
        return PathPoint(self.middle + e * place, np.array((1.0, 0, 0, 0)), e * speed, STILL, e * gain, STILL)


class Belt:
    """A surface that runs at a constant velocity and stays where it is, or goes along."""

    def __init__(self, velocity: float, goes: bool) -> None:
        self.velocity, self.goes = np.array((velocity, 0.0, 0.0)), goes

    def __call__(self, t: float) -> PathPoint:
        return PathPoint(self.velocity * t * self.goes, np.array((1.0, 0, 0, 0)), self.velocity, STILL, STILL, STILL)


def on_a_platform(
    path: object, friction: float = 0.5, dt: float = 1 / 240, size=(2.0, 2.0, 0.2), **options
) -> poise.World:
    """A box of 2 kg that rests on a plate that is led."""
    scene = poise.Scene()
    matter = poise.Material(friction=friction)
    scene.add(poise.box(*size, material=matter), name="plate", kinematic=path)
    top = float(path(0.0).position[2]) + 0.5 * size[2]
    scene.add(poise.box(0.2, 0.2, 0.1, mass=2.0, material=matter), name="load", position=(0, 0, top + 0.05))
    return scene.build(poise.Reduced(tolerance=1e-11, **options), dt=dt)


@pytest.mark.parametrize("substeps", [1, 2])
def test_a_lift_bears_its_load(substeps: int) -> None:
    """It gains and loses speed, up and down: the load stays on it, by the third order of the step, and weighs m (g + a)
    by the second.
    """
    path, gaps = Swinging((0, 0, 1), 0.3, 3.0), []
    for dt in (1 / 120, 1 / 240):
        world = on_a_platform(path, dt=dt, substeps=substeps)
        gap, force = 0.0, 0.0
        for k in range(round(2.5 / dt)):
            world.step()
            if k > 5:
                last = world.time - dt / substeps  # forces are those of the last substep
                gap = max(gap, abs(world.body("load").position[2] - world.body("plate").position[2] - 0.15))
                force = max(
                    force, abs(ForcePlate("plate").read(world).force[2] - 2.0 * (G + path(last).acceleration[2]))
                )
        gaps.append(gap)
        assert force < 2.0 * 0.3 * 3.0**4 * (dt / substeps) ** 2  # m times the second derivative of a
    assert gaps[1] < 2e-7
    assert 7.0 < gaps[0] / gaps[1] < 9.0


def test_a_lift_that_falls_away_leaves_its_load_to_gravity() -> None:
    path = Swinging((0, 0, 1), 0.3, 8.0)  # 19 m/s² at its ends
    world, aloft = on_a_platform(path), []
    for _ in range(240):
        start = world.v[8]
        world.step()
        if not world.report().contacts:
            aloft.append((world.v[8] - start) / world.dt)
    assert len(aloft) > 50
    assert aloft == pytest.approx([-G] * len(aloft))


@pytest.mark.parametrize("goes", [False, True])
def test_a_belt_takes_its_load_along(goes: bool) -> None:
    """Friction gives it μ g until it has the belt's speed, and then nothing more."""
    world = on_a_platform(Belt(1.0, goes), friction=0.4, size=(20.0, 2.0, 0.2))
    for _ in range(240):
        world.step()
        assert world.v[6] == pytest.approx(min(0.4 * G * world.time, 1.0), abs=1e-6)
    assert world.body("plate").position[0] == pytest.approx(float(goes))


@pytest.mark.parametrize(("acceleration", "slips"), [(3.5, False), (4.5, True)])
def test_a_tray_that_is_pulled_away(acceleration: float, slips: bool) -> None:
    """The load goes with it while a ≤ μ g = 3.92 m/s², and slides under μ g beyond."""

    def tray(t: float) -> PathPoint:
        e = np.array((acceleration, 0.0, 0.0))
        return PathPoint(0.5 * e * t * t, np.array((1.0, 0, 0, 0)), e * t, STILL, e, STILL)

    world = on_a_platform(tray, friction=0.4, size=(10.0, 2.0, 0.2))
    world.step(240)
    gain, half = 0.4 * G if slips else acceleration, 0.5 / 240
    late = (
        2 * half - half * acceleration / gain if slips else half
    )  # the tray begins at half the speed of its first step
    assert world.v[6] == pytest.approx(gain * (1.0 - late), abs=1e-8)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_wall_pushes(dt: float) -> None:
    """The box before it has its speed, and the wall bears m a + μ m g."""
    scene = poise.Scene()
    scene.add_ground(friction=0.3)
    path = KeyedPath([0.0, 1.0, 2.0], [(-1, 0, 0.2), (-0.5, 0, 0.2), (0.5, 0, 0.2)])
    smooth = poise.Material(friction=0.0)
    scene.add(poise.box(0.2, 1, 0.4, material=smooth), name="wall", kinematic=path)
    scene.add(
        poise.box(0.2, 0.2, 0.2, mass=2.0, material=poise.Material(friction=0.3)), name="box", position=(-0.8, 0, 0.1)
    )
    world = scene.build(poise.Reduced(tolerance=1e-8), dt=dt)
    world.step(round(1.2 / dt))
    for _ in range(round(0.3 / dt)):
        middle = path(world.time + 0.5 * dt)
        world.step()
        # the way of a step is its length times the velocity of its middle, but for jerk h³ / 24
        assert world.v[6] == pytest.approx(middle.velocity[0], abs=dt**2)
        assert world.q[7] - world.q[0] == pytest.approx(0.2, abs=dt**3)
        push = ForcePlate("wall", normal=(1, 0, 0)).read(world).force[0]
        assert push == pytest.approx(2.0 * (path(world.time - dt).acceleration[0] + 0.3 * G), abs=20.0 * dt)
    world.step(round(1.5 / dt))  # the wall has stopped, the box slides on and comes to rest
    assert world.v[6] == pytest.approx(0.0, abs=1e-6)
    assert world.q[7] - world.q[0] > 0.2


@pytest.mark.parametrize(("speed", "stays"), [(2.5, True), (4.0, False)])
def test_a_turntable(speed: float, stays: bool) -> None:
    """What lies 0.5 m from the middle stays there while ω² r ≤ μ g: up to 3.13 rad/s with μ = 0.5."""
    scene = poise.Scene()
    matter = poise.Material(friction=0.5)
    path = OrbitPath(start=(0, 0, 0), speed=speed)
    scene.add(poise.cylinder(2.0, 0.2, material=matter), name="table", kinematic=path)
    scene.add(poise.box(0.1, 0.1, 0.1, mass=1.0, material=matter), name="cup", position=(0.5, 0, 0.15))
    world = scene.build(poise.Reduced(tolerance=1e-8), dt=1 / 480)
    world.body("cup").place(velocity=(0, 0.5 * speed, 0), angular_velocity=(0, 0, speed))
    world.step(480)
    radius = float(np.hypot(*world.body("cup").position[:2]))
    if stays:
        # steps go along tangents, and r² gains (ω h r)² in each
        assert radius == pytest.approx(0.5 + 0.5 * speed**2 * 0.5 / 480, abs=1e-4)
        angle = np.arctan2(world.body("cup").position[1], world.body("cup").position[0])
        assert angle == pytest.approx(speed, abs=0.01)
    else:
        assert radius > 0.6


def test_what_hangs_from_a_led_body_feels_its_acceleration() -> None:
    """A pendulum on a shaken support: worlds converge, at first order, to what RK4 finds."""
    path = Swinging((1, 0, 0), 0.2, 4.0, middle=(0, 0, 2))
    scene = poise.Scene()
    scene.add(poise.box(0.1, 0.1, 0.1), name="support", kinematic=path)
    scene.hinge("support", poise.sphere(0.05, mass=1.0, position=(0, 0, -0.7)), axis="y", name="rod")
    model = scene.compile()
    truth = poise.dynamics.Simulation(model, dt=1e-3, method="rk4")
    truth.step(1500)
    errors = []
    for count in (750, 1500, 3000):
        world = poise.World(model, dt=1.5 / count)
        world.step(count)
        errors.append(abs(world.q[7] - truth.q[7]))
    assert errors[-1] < 2e-3
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([1.0, 1.0], abs=0.2)


def test_led_bodies_end_where_their_path_is() -> None:
    path = Swinging((0, 0, 1), 0.3, 3.0)
    for substeps in (1, 3):
        world = on_a_platform(path, substeps=substeps)
        world.step(100)
        point = path(world.time)
        assert world.q[:3] == pytest.approx(point.position, abs=1e-15)
        assert world.v[:3] == pytest.approx(point.velocity, abs=1e-15)
