"""Sensors beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise.motion.rotations import quat_exp
from poise.sim import ContactSensor, ForcePlate, Imu, JointSensor

G = 9.81


def box_on_ground(**options) -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.4, 0.2, 0.2, mass=3.0), name="box", position=(1, 2, 0.1), **options)
    return scene.build(poise.Reduced(tolerance=1e-9))


def pendulum(length: float = 0.7, mass: float = 1.3, dt: float = 1e-4, **options) -> poise.World:
    """A point mass under a hinge about y, at an angle and a speed."""
    scene = poise.Scene()
    bob = poise.Inertia(mass, com=(0, 0, -length))
    body = poise.Body(
        "rod", joints=[poise.Joint("hinge", axis=(0, 1, 0), **options)], inertia=bob, position=(0.2, 0, 3)
    )
    scene.bodies.append(body)
    world = scene.build(dt=dt)
    world.q[0], world.v[0] = 0.6, 1.9
    return world


def test_a_plate_weighs_a_box_and_finds_its_centre() -> None:
    world = box_on_ground()
    world.step(60)
    reading = ForcePlate("ground").read(world)
    assert reading.force == pytest.approx([0, 0, 3.0 * G], abs=1e-6)  # residuals of 1e-9, times the matrix' condition
    assert reading.centre == pytest.approx([1, 2, 0], abs=1e-6)
    assert reading.moment == pytest.approx(np.cross(reading.centre, reading.force), abs=1e-9)


def test_a_plate_feels_a_push_at_its_side() -> None:
    """A push F at the height h moves the centre of pressure by F h / weight; friction holds it."""
    world = box_on_ground()
    push, height = 4.0, 0.05
    world.forces[1] = [0, push * (height - 0.1), 0, push, 0, 0]
    world.step(60)
    reading = ForcePlate("ground", origin=(0, 0, 0)).read(world)
    assert reading.force == pytest.approx([-push, 0, 3.0 * G], abs=1e-6)
    assert reading.centre[0] - 1.0 == pytest.approx(push * height / (3.0 * G), rel=1e-6)


def test_the_point_about_which_a_plate_feels_no_moment() -> None:
    """Whatever the forces, those at the centre of pressure have no moment in the plane; the free one is left."""
    scene = poise.Scene()
    scene.add_ground(friction=1.0)
    for k in range(3):
        scene.add(poise.box(0.3, 0.2, 0.1), name=f"box {k}", position=(0.05 * k, 0.02 * k, 0.06 + 0.1 * k))
    world = scene.build()
    world.v[:] = np.random.default_rng(2).normal(size=world.model.nv) * 0.3
    plate = ForcePlate("ground", origin=(0.3, -0.2, 0.0))
    for _ in range(20):
        world.step()
        reading = plate.read(world)
        if reading.force[2] > 1.0:
            left = reading.moment - np.cross(reading.centre - (0.3, -0.2, 0), reading.force)
            assert left == pytest.approx([0, 0, reading.free_moment], abs=1e-9)


def test_plates_tell_bodies_apart() -> None:
    scene = poise.Scene()
    scene.add_ground()
    for name, x in (("left", 0.0), ("right", 1.0)):
        scene.add(poise.sphere(0.1, mass=2.0 + x), name=name, position=(x, 0, 0.1))
    world = scene.build()
    world.step(10)
    assert ForcePlate("ground", of="left").read(world).force[2] == pytest.approx(2.0 * G, rel=1e-3)
    assert ForcePlate("ground", of=["right"]).read(world).centre[0] == pytest.approx(1.0)
    assert ForcePlate("ground").read(world).force[2] == pytest.approx(5.0 * G, rel=1e-3)


def test_an_empty_plate() -> None:
    world = box_on_ground()
    reading = ForcePlate("ground").read(world)
    assert not reading.force.any()
    assert np.isnan(reading.centre).all()


def test_touch() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 0.5))
    world = scene.build()
    sensor = ContactSensor("ball")
    world.step()
    assert sensor.read(world) == (False, pytest.approx([0, 0, 0]), 0.0, 0)
    world.step(240)
    reading = sensor.read(world)
    assert reading.touching
    assert reading.force == pytest.approx([0, 0, 2.0 * G], abs=0.02)
    assert ContactSensor("ground").read(world).force == pytest.approx([0, 0, -2.0 * G], abs=0.02)
    assert not ContactSensor("ball", of="ball").read(world).touching
    assert sensor(world) == pytest.approx([0, 0, 2.0 * G, 2.0 * G, 1.0], abs=0.02)


@pytest.mark.parametrize("turn", [(0, 0, 0), (0.3, -0.2, 1.0)])
def test_an_imu_at_rest_feels_what_holds_it_up(turn) -> None:
    scene = poise.Scene()
    scene.add(poise.box(0.2, 0.2, 0.2), name="shelf", position=(0, 0, 1), quat_wxyz=quat_exp(turn), fixed=True)
    world = scene.build()
    world.step()
    up = world.body("shelf").rotation.T @ (0, 0, G)
    assert Imu("shelf").read(world).specific_force == pytest.approx(up, abs=1e-12)


def test_an_imu_in_free_fall_feels_nothing_but_the_spin() -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 5))
    world = scene.build(dt=1e-3)
    world.v[3:] = (0.0, 0.0, 5.0)
    world.step(100)
    assert Imu("ball").read(world).specific_force == pytest.approx([0, 0, 0], abs=1e-9)
    assert Imu("ball").read(world).angular_rate == pytest.approx([0, 0, 5], abs=1e-12)
    arm = Imu("ball", position=(0.05, 0, 0)).read(world).specific_force
    assert arm == pytest.approx([-25.0 * 0.05, 0, 0], abs=1e-9)


def test_an_imu_on_a_pendulum() -> None:
    """At the bob: only the rod's pull, −(g cos θ + L ω²) along the rod, and no force across."""
    world = pendulum()
    world.step()
    theta, speed = 0.6, 1.9
    reading = Imu("rod", position=(0, 0, -0.7)).read(world)
    assert reading.specific_force == pytest.approx([0, 0, G * np.cos(theta) + 0.7 * speed**2], abs=1e-9)
    turned = Imu("rod", position=(0, 0, -0.7), quat_wxyz=quat_exp((0, 0, np.pi / 2))).read(world)
    assert turned.angular_rate == pytest.approx([world.v[0], 0, 0], abs=1e-12)


def test_what_holds_a_pendulum() -> None:
    """The hinge bears m (g cos θ + L θ̇²) along the rod, and nothing across it: the moment is none."""
    world = pendulum()
    for _ in range(200):
        theta, speed = float(world.q[0]), float(world.v[0])
        world.step()
        reading = JointSensor("rod").read(world)
        along = np.array([np.sin(theta), 0, np.cos(theta)])  # from the bob to the hinge
        assert reading.force == pytest.approx(1.3 * (G * np.cos(theta) + 0.7 * speed**2) * along, abs=1e-8)
        assert reading.moment == pytest.approx([0, 0, 0], abs=1e-8)
        assert reading.torque == pytest.approx([0], abs=1e-12)
        assert reading.anchor == pytest.approx([0.2, 0, 3])


def test_torques_of_a_joint_are_its_moment_about_the_axis() -> None:
    """Given torques, springs, dampers, dry friction, limits and a drive: what acts along the coordinate is what the
    reaction has about it.
    """
    world = pendulum(dt=1e-3, stiffness=5.0, damping=0.4, friction=0.3, limits=(-0.5, 0.8))
    world.drive = poise.dynamics.Drive([40.0], [2.0], [0.9])
    world.tau[0] = 1.5
    felt = []
    for _ in range(400):
        world.step()
        reading = JointSensor("rod").read(world)
        assert reading.torque[0] == pytest.approx(reading.moment[1], abs=1e-8)
        felt.append(world.report().limits)
    assert any(limit.what == "upper" and limit.force < -1.0 for limits in felt for limit in limits)


def test_reactions_inside_a_standing_chain_carry_what_is_above() -> None:
    """A column of three boxes with stiff hinges stands on the ground: each joint bears the weight above it."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.3, 0.3, 0.1, mass=4.0), name="foot", position=(0, 0, 0.05))
    for k, parent in enumerate(("foot", "part 0")):
        box = poise.box(0.1, 0.1, 0.4, mass=2.0, position=(0, 0, 0.2))
        at = (0, 0, 0.05) if k == 0 else (0, 0, 0.4)
        scene.hinge(parent, box, axis="y", name=f"part {k}", position=at, stiffness=500.0, damping=20.0)
    world = scene.build()
    world.step(480)
    for joint, above in (("part 0", 4.0), ("part 1", 2.0), ("foot", 0.0)):
        reading = JointSensor(joint).read(world)
        assert reading.force == pytest.approx([0, 0, above * G], abs=0.01 * G)
    world.apply_force("part 1", (0, 3, 0))
    world.step()
    assert JointSensor("foot").read(world).force == pytest.approx([0, 0, 0], abs=1e-9)  # nothing holds a free joint


def test_sensors_are_signals() -> None:
    world = box_on_ground()
    sensors = {
        "plate": ForcePlate("ground"),
        "imu": Imu("box"),
        "touch": ContactSensor("box"),
        "root": JointSensor("box"),
    }
    recording = world.run(0.05, signals={name: sensor for name, sensor in sensors.items() if name != "plate"})
    assert {name: values.shape[1:] for name, values in recording.signals.items()} == {
        "imu": (6,),
        "touch": (5,),
        "root": (12,),
    }
    assert recording.signals["imu"][-1] == pytest.approx([0, 0, G, 0, 0, 0], abs=0.02)
    assert sensors["plate"](world).shape == (9,)


def test_bad_names_and_places_are_refused() -> None:
    world = box_on_ground()
    with pytest.raises(ValueError, match='there is no body "boxx"'):
        ContactSensor("boxx").read(world)
    with pytest.raises(ValueError, match='there is no joint "hinge"'):
        JointSensor("hinge").read(world)
    with pytest.raises(ValueError, match='there is no shape "lid"'):
        ForcePlate("box", shapes="lid").read(world)
    with pytest.raises(ValueError, match="it must point somewhere"):
        ForcePlate("ground", normal=(0, 0, 0)).read(world)
    with pytest.raises(ValueError, match="origin must be three finite numbers"):
        ForcePlate("ground", origin=(0, 0, np.nan)).read(world)
    with pytest.raises(ValueError, match="position must be three finite numbers"):
        Imu("box", position=(1, 2)).read(world)
    with pytest.raises(ValueError, match="it must be a rotation"):
        Imu("box", quat_wxyz=(0, 0, 0, 0)).read(world)
