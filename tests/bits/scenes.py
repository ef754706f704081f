"""Scenes whose results are hashed: between them they use every constraint kind, joint kind and way to step.

A scene is small, takes no random numbers, and needs no file. `make` returns it and how its world is set going.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import poise
from poise.model import Body, Inertia
from poise.motion.path import PathPoint

SetGoing = Callable[[Any], None]
"""Takes a world, or the arrays of a batch: anything with `q` and `v` whose last axis is that of coordinates."""
Made = tuple[poise.Scene, SetGoing]
ROD = (0.1, 0.1, 0.6)


def rest(_: Any) -> None:
    """Leave the world as the scene has it."""


def spin(*values: float, first: int = 0) -> SetGoing:
    """Set velocities from a degree of freedom on."""

    def set_going(world: Any) -> None:
        world.v[..., first : first + len(values)] = values

    return set_going


def swing(speed: float) -> SetGoing:
    """Set velocities of all degrees of freedom to different values of about the same size."""

    def set_going(world: Any) -> None:
        n = world.v.shape[-1]
        world.v[...] = speed * np.cos(0.7 + 2.3 * np.arange(n))

    return set_going


# ---- trees -----------------------------------------------------------------------------------------------------------


def humanoid_in_flight() -> Made:
    """Joint limits, no contacts."""
    scene = poise.Scene()
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 50))
    return scene, spin(0.5, 0.0, 2.0, 3.0, -2.0, 1.0)


def humanoid_falls() -> Made:
    """Contacts, friction, joint limits, impacts."""
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.characters.humanoid(), name="hero", position=(0, 0, 0.3))
    return scene, spin(0.8, 0.3, 0.0, 0.0, 1.0, 0.5)


def humanoid_stands() -> Made:
    """Motors hold every joint."""
    scene, _ = humanoid_falls()
    for body in scene.bodies:
        for name, joint in body.moving_joints():
            if joint.kind in ("hinge", "ball"):
                scene.motor(name, f"hold {name}", stiffness=300.0, damping=30.0, limit=150.0)
    return scene, rest


def chain(kind: str, n: int = 3, **options: Any) -> poise.Scene:
    """Rods that hang from each other."""
    scene, parent = poise.Scene(), None
    for k in range(n):
        place = {"position": (0, 0, 1.5) if parent is None else (0, 0, -0.6), "anchor": (0, 0, 0.3)}
        axes = {"universal": {"axis": "x", "axis2": "y"}, "hinge": {"axis": "xyx"[k % 3]}}.get(kind, {})
        getattr(scene, kind)(parent, poise.box(*ROD, mass=1.0 + k), name=f"rod {k}", **axes, **place, **options)
        parent = f"rod {k}"
    return scene


def ball_joints_with_cones() -> Made:
    """Cone and twist limits."""
    return chain("ball", cone=0.6, twist=(-0.4, 0.5)), swing(4.0)


def universal_joints_whirl() -> Made:
    """A link that turns so fast that stages of fourth order move it."""
    return chain("universal", 2), swing(12.0)


def springs_and_armature() -> Made:
    """Laws that are implicit over the step."""
    return chain("hinge", stiffness=40.0, damping=1.5, armature=0.05), swing(3.0)


def motors_at_their_limits() -> Made:
    """Bounded motors that cannot hold their targets."""
    scene = chain("hinge")
    for k in range(3):
        scene.motor(f"rod {k}", f"motor {k}", stiffness=200.0, damping=5.0, target=0.8 - 0.5 * k, limit=6.0 - 2.0 * k)
    return scene, swing(1.0)


def coupled_joints() -> Made:
    """A gear between two hinges, and sliders with limits."""
    scene = chain("hinge", 2)
    scene.couple("rod 1", "rod 0", (0.0, -2.0))
    scene.slider(None, poise.box(0.2, 0.2, 0.2), axis="x", name="slide", position=(1, 0, 1), limits=(-0.2, 0.1))
    return scene, swing(2.0)


# ---- loops -----------------------------------------------------------------------------------------------------------


def four_bar() -> Made:
    """A planar closed chain with redundant rows, out of the coordinate planes."""
    tilt = np.array((0.9, 0.2, -0.3, 0.25)) / np.linalg.norm((0.9, 0.2, -0.3, 0.25))
    scene = poise.Scene(gravity=(3.0, -4.0, -7.0))
    bars = [
        Body(name, inertia=Inertia(1.0, com=(0, 0, 0.25), moments=(0.02, 0.02, 1e-3))) for name in ("left", "right")
    ]
    frame = Body("frame", inertia=Inertia(4.0, moments=(0.1, 0.1, 0.1)))
    scene.add(frame, fixed=True, quat_wxyz=tuple(tilt))
    scene.hinge("frame", bars[0], axis="y")
    scene.hinge("frame", bars[1], axis="y", position=(1.0, 0, 0))
    top = Body("top", inertia=Inertia(1.0, com=(0.5, 0, 0), moments=(1e-3, 0.08, 0.08)))
    scene.hinge("left", top, axis="y", position=(0, 0, 0.5))
    scene.loop("hinge", "top", "right", "close", axis="y", axis2="x", anchor_first=(1, 0, 0), anchor_second=(0, 0, 0.5))
    return scene, spin(2.0, 2.0, -2.0)


def loop_that_breaks() -> Made:
    """A weight on a loop that bears it for a while."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=2.0), name="weight", position=(0, 0, 1.0))
    scene.loop("ball", None, "weight", "thread", position=(0.4, 0, 1.3), break_force=30.0)
    return scene, spin(0.0, 1.0, 0.0)


# ---- separate bodies -------------------------------------------------------------------------------------------------


def stack_of_boxes() -> Made:
    """Face contacts at rest."""
    scene = poise.Scene()
    scene.add_ground(friction=0.6)
    for k in range(5):
        scene.add(poise.box(0.3, 0.25, 0.2, mass=1.0 + k), name=f"box {k}", position=(0.01 * k, 0, 0.1 + 0.2 * k))
    return scene, rest


def heap_of_shapes() -> Made:
    """Every pair of convex shapes in the narrow phase."""
    scene = poise.Scene()
    scene.add_ground(friction=0.5)
    corners = 0.12 * np.array([(1, 0, -1), (-1, 1, -1), (-1, -1, -1), (0, 0, 1), (0.5, 0.8, 0.3)])
    shapes = (
        poise.sphere(0.1),
        poise.capsule(0.08, 0.2),
        poise.box(0.2, 0.15, 0.1),
        poise.cylinder(0.1, 0.2),
        poise.ellipsoid(0.15, 0.1, 0.08),
        poise.convex(corners),
    )
    for k, shape in enumerate((*shapes, *shapes)):
        place = (0.12 * np.cos(2.0 * k), 0.12 * np.sin(2.0 * k), 0.15 + 0.17 * k)
        scene.add(shape, name=f"thing {k}", position=place)
    return scene, rest


def rolling_and_bouncing() -> Made:
    """Restitution, rolling and torsional friction."""
    surface = poise.Material(friction=0.5, restitution=0.7, rolling_friction=0.01, torsional_friction=0.02)
    scene = poise.Scene()
    scene.add(poise.model.Plane(material=surface), name="floor", fixed=True)
    for k in range(3):
        scene.add(poise.sphere(0.1, mass=1.0, material=surface), name=f"ball {k}", position=(0.5 * k, 0, 0.1 + 0.3 * k))
    return scene, spin(1.0, 0.5, 0.0, 0.0, 5.0, 8.0)


def rough_terrain() -> Made:
    """A height field and a mesh."""
    scene = poise.Scene()
    x, y = np.meshgrid(np.linspace(0, 3, 12), np.linspace(0, 3, 12))
    scene.add(poise.height_field(0.1 * np.sin(3 * x) * np.cos(2 * y), 3.0, 3.0), name="hills", fixed=True)
    for k in range(4):
        thing = (poise.sphere(0.1), poise.box(0.2, 0.2, 0.1), poise.capsule(0.05, 0.2), poise.cylinder(0.1, 0.1))[k]
        scene.add(thing, name=f"thing {k}", position=(0.4 * k - 0.6, 0.2 * k - 0.3, 0.4))
    return scene, rest


def bullet() -> Made:
    """Continuous collision: a small body that would pass through a wall in one step."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.02, 1.0, 1.0), name="wall", position=(1.0, 0, 0), fixed=True)
    scene.add(poise.sphere(0.02, mass=0.05), name="bullet", position=(-0.9, 0.05, 0.02))
    return scene, spin(200.0, 3.0, 0.0)


def tumbling_plate() -> Made:
    """Gyroscopic terms alone."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.3, 0.2, 0.02, mass=1.0), name="plate", position=(0, 0, 1))
    return scene, spin(0.1, 0.0, 0.0, 0.5, 12.0, 0.3)


def sleepers() -> Made:
    """Boxes that come to rest, one that falls on them later."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box {k}", position=(0.5 * k, 0, 0.1))
    scene.add(poise.sphere(0.1), name="late", position=(0.5, 0.02, 2.0))
    return scene, rest


def tracked_squat() -> Made:
    """A character that follows a clip: a controller sets the targets of its motors, and guides the root."""
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    figure = poise.characters.humanoid()
    hero = scene.add(figure, name="hero")
    hero.track(poise.characters.clips.squat(figure, 0.5, 1.0), strength={"legs": 300.0, "arms": 40.0})
    return scene, rest


# ---- what follows a path ---------------------------------------------------------------------------------------------


class Elevator:
    """A platform that goes up and down."""

    def __call__(self, t: float) -> PathPoint:
        zero, turn = np.zeros(3), np.array((1.0, 0, 0, 0))
        height, speed, gain = 0.2 * (1 - np.cos(2 * t)), 0.4 * np.sin(2 * t), 0.8 * np.cos(2 * t)
        up = np.array((0.0, 0.0, 1.0))
        return PathPoint(height * up, turn, speed * up, zero, gain * up, zero)


def elevator() -> Made:
    """A kinematic body with a box on it."""
    scene = poise.Scene()
    scene.add(poise.box(1, 1, 0.2), name="platform", kinematic=Elevator())
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0.1, 0.05, 0.2))
    return scene, rest


SCENES: dict[str, Callable[[], Made]] = {
    make.__name__: make
    for make in (
        humanoid_in_flight,
        humanoid_falls,
        humanoid_stands,
        tracked_squat,
        ball_joints_with_cones,
        universal_joints_whirl,
        springs_and_armature,
        motors_at_their_limits,
        coupled_joints,
        four_bar,
        loop_that_breaks,
        stack_of_boxes,
        heap_of_shapes,
        rolling_and_bouncing,
        rough_terrain,
        bullet,
        tumbling_plate,
        sleepers,
        elevator,
    )
}
