"""Rows that nothing can move, and corrections that are bounded: overlaps along directions that joints do not have.

A hinge, a slider or an arm has no part in what is pushed along its axis: the exact displacement and the exact force of
such a contact on its coordinates are 0. What is left is rounding, by orientation, mass and the digits of a mesh.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from poise import Batch, Joint, Maximal, Reduced, Scene, box, convex
from poise.motion.rotations import rotate

FORMULATIONS = {
    "reduced": Reduced(),
    "maximal": Maximal(),
    "speed": Reduced(stabilization="speed"),
    "maximal speed": Maximal(stabilization="speed"),
    "acceleration": Reduced(level="acceleration"),
    "maximal acceleration": Maximal(level="acceleration"),
    "pgs": Maximal(solver="pgs", stabilization="speed"),
}
DEPTH = 0.012
"""Of overlaps; m."""
MOVED = 1e-4
"""Displacement and speed that rounding may leave; rad or m, rad/s or m/s."""


def random_quat(seed: int) -> np.ndarray:
    quat = np.random.default_rng(seed).normal(size=4)
    return quat / np.linalg.norm(quat)


def hull(mass: float, seed: int, depth: float) -> object:
    """A convex body about a box of 0.1 m whose face along z is flat, its other points random."""
    rng = np.random.default_rng(seed)
    corners = np.array([(x, y, -0.05) for x in (-0.05, 0.05) for y in (-0.05, 0.05)])
    top = np.column_stack((rng.uniform(-0.04, 0.04, (6, 2)), rng.uniform(0.02, 0.05 + depth, 6)))
    return convex(np.vstack((corners, top)), mass=mass)


def hinge(seed: int, mass: float) -> Scene:
    """A link that turns about z of a random frame, and a fixed box that it overlaps along z."""
    quat = random_quat(seed)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    joint = Joint("hinge", axis=(0.0, 0.0, 1.0), anchor=(-0.2, 0.0, 0.0))
    scene.add(hull(mass, seed, 0.0), name="link", quat_wxyz=quat, joint=joint)
    place = rotate(quat, np.array((0.0, 0.0, -0.1 + DEPTH)))
    scene.add(box(0.3, 0.3, 0.1), name="block", position=place, quat_wxyz=quat, fixed=True)
    return scene


def slider(seed: int, mass: float) -> Scene:
    """A link that slides along x of a random frame, and a fixed box that it overlaps along z."""
    quat = random_quat(seed)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(hull(mass, seed, 0.0), name="link", quat_wxyz=quat, joint=Joint("slider", axis=(1.0, 0.0, 0.0)))
    place = rotate(quat, np.array((0.0, 0.0, -0.1 + DEPTH)))
    scene.add(box(0.3, 0.3, 0.1), name="block", position=place, quat_wxyz=quat, fixed=True)
    return scene


def planar_arm(seed: int, mass: float) -> Scene:
    """Three links that turn about parallel axes, the last of which overlaps a fixed box along them."""
    quat = random_quat(seed)
    rng = np.random.default_rng(seed)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    joint = Joint("hinge", axis=(0.0, 0.0, 1.0), anchor=(-0.1, 0.0, 0.0))
    scene.add(box(0.2, 0.02, 0.02, mass=mass), name="upper", quat_wxyz=quat, joint=joint)
    scene.add(box(0.2, 0.02, 0.02, mass=mass), name="lower", parent="upper", position=(0.25, 0.0, 0.0), joint=joint)
    scene.add(hull(mass, seed, 0.0), name="hand", parent="lower", position=(0.3, 0.0, 0.0), joint=joint)
    place = rotate(quat, np.array((0.55 + rng.uniform(-0.02, 0.02), 0.0, -0.1 + DEPTH)))
    scene.add(box(0.3, 0.3, 0.1), name="block", position=place, quat_wxyz=quat, fixed=True)
    return scene


SCENES: dict[str, Callable[[int, float], Scene]] = {"hinge": hinge, "slider": slider, "planar arm": planar_arm}


@pytest.mark.parametrize("formulation", [name for name in FORMULATIONS if name != "pgs"])
@pytest.mark.parametrize("scene", SCENES)
def test_an_overlap_along_what_joints_cannot_move_moves_nothing(scene: str, formulation: str) -> None:
    """The exact displacement is 0 at any orientation and mass; the contact reports no force out of nowhere."""
    for seed, mass in enumerate((1.0, 1e-3, 1e3, 0.1, 30.0)):
        world = SCENES[scene](seed, mass).build(FORMULATIONS[formulation])
        start = world.q.copy()
        for _ in range(10):
            world.step()
            assert np.abs(world.v).max() < MOVED
        assert np.abs(world.q - start).max() < MOVED
        assert all(np.linalg.norm(contact.force) < 1e-6 * mass for contact in world.report().contacts)


def test_digits_of_a_file_do_not_make_a_row_movable() -> None:
    """An axis that is off by the last of six digits is no lever: 12 mm along it would take 12,000 rad."""
    for seed in range(5):
        scene = Scene(gravity=(0.0, 0.0, 0.0))
        off = 1e-7 * np.random.default_rng(seed).normal(size=3) + np.array((0.0, 0.0, 1.0))
        scene.add(hull(1.0, seed, 0.0), name="link", joint=Joint("hinge", axis=tuple(off), anchor=(-0.2, 0.0, 0.0)))
        scene.add(box(0.3, 0.3, 0.1), name="block", position=(0.0, 0.0, -0.1 + DEPTH), fixed=True)
        world = scene.build()
        world.step()
        assert abs(world.q[0]) < MOVED


@pytest.mark.parametrize("angle", [1e-5, 1e-4, 1e-3, 1e-2])
def test_a_nearly_straight_arm_is_moved_no_faster_than_the_bound(angle: float) -> None:
    """An overlap along an arm that is straight but for an angle would take its joints depth / angle / length."""
    for formulation in (Reduced(), Maximal()):
        scene = Scene(gravity=(0.0, 0.0, 0.0))
        joint = Joint("hinge", axis=(0.0, 1.0, 0.0), anchor=(-0.15, 0.0, 0.0))
        scene.add(box(0.3, 0.02, 0.02, mass=1.0), name="upper", joint=joint)
        scene.add(box(0.3, 0.02, 0.02, mass=1.0), name="lower", parent="upper", position=(0.3, 0.0, 0.0), joint=joint)
        scene.add(box(0.1, 0.3, 0.3), name="wall", position=(0.5 - DEPTH, 0.0, 0.0), fixed=True)
        world = scene.build(formulation)
        world.q[:] = angle, -2.0 * angle
        start = world.q.copy()
        world.step()
        assert np.abs(world.q - start).max() <= 1.01 * formulation.correction_turn * world.dt
        assert np.abs(world.v).max() < 0.5


@pytest.mark.parametrize("formulation", [name for name in FORMULATIONS if "acceleration" not in name])
@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
def test_deep_overlaps_of_free_bodies_come_apart_at_a_bounded_speed(formulation: str, mass: float) -> None:
    """Displacements leave no speed, and take a body by at most correction_speed · dt along each of three axes. Speeds
    that take contacts apart add up over a chain of all bodies at most.
    """
    rng = np.random.default_rng(int(mass * 1e3) % 97)
    scene, options = Scene(gravity=(0.0, 0.0, 0.0)), FORMULATIONS[formulation]
    for k in range(4):
        place, quat = rng.uniform(-0.05, 0.05, 3), random_quat(k)
        scene.add(box(0.3, 0.3, 0.3, mass=mass), name=f"box{k}", position=place, quat_wxyz=quat)
    world = scene.build(options)
    for _ in range(30):
        before = world.q.reshape(-1, 7)[:, :3].copy()
        world.step()
        step = np.linalg.norm(world.q.reshape(-1, 7)[:, :3] - before, axis=1).max()
        times = np.sqrt(3.0) if options.stabilization == "displacement" else 3.0
        assert step <= 1.01 * times * options.correction_speed * world.dt
        if options.stabilization == "displacement":
            assert np.abs(world.v).max() < 0.05


def test_a_batch_in_float32_leaves_immovable_rows_alone() -> None:
    """Rounding is 1e-7 there: the same bound on what moves."""
    for name, make in SCENES.items():
        batch = Batch(make(3, 1.0).compile(), 5)
        start = batch.q.copy()
        batch.step(10)
        assert np.abs(batch.q - start).max() < 10.0 * MOVED, name
