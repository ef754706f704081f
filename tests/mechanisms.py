"""Mechanisms with loops whose rows are redundant, anywhere in space: their coordinates do not know how they are turned.

`turned` turns a whole scene and its gravity. In the plane or the axes that a mechanism is written in, redundant rows
are exact zeros; turned, they are of the size of rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.model import Body, Inertia
from poise.motion.rotations import quat_exp, quat_multiply, quat_to_matrix

Array = NDArray[np.float64]
G = 9.81


def bar(name: str, along: str = "z", length: float = 1.0, mass: float = 1.0) -> Body:
    """A thin uniform bar from its origin."""
    axis = np.eye(3)["xyz".index(along[-1])] * (-1.0 if along[0] == "-" else 1.0)
    about = mass * length**2 / 12
    moments = np.where(axis != 0.0, 1e-3 * about, about)
    return Body(name, inertia=Inertia(mass, com=tuple(0.5 * length * axis), moments=tuple(moments)))


def turned(scene: poise.Scene, quat: Any) -> poise.Scene:
    """The scene in another attitude, gravity and all."""
    R = quat_to_matrix(quat)
    scene.gravity = tuple(R @ scene.gravity)
    for body in scene.bodies:
        if body.parent is None:
            body.position = tuple(R @ body.position)
            body.quat_wxyz = tuple(quat_multiply(quat, body.quat_wxyz))
    for loop in scene.loops:
        for name in ("position", "axis", "axis2"):
            if getattr(loop, name) is not None:
                setattr(loop, name, tuple(R @ getattr(loop, name)))
    return scene


def attitude(seed: int) -> Array:
    """A rotation that no axis survives."""
    return quat_exp(np.random.default_rng(seed).normal(size=3) * 1.5)


def redundantly(scene: poise.Scene, kind: str, first: str, second: str, **where: Any) -> None:
    """Close a loop by a hinge, by a ball, or by both at once."""
    for n, one in enumerate({"hinge": ("hinge",), "ball": ("ball",), "twice": ("hinge", "ball")}[kind]):
        scene.loop(one, first, second, ("close", "again")[n], **where)


# ---- mechanisms ------------------------------------------------------------------------------------------------------


def four_bar(kind: str = "hinge", parent: str | None = None, scene: poise.Scene | None = None) -> poise.Scene:
    """Two cranks of 1 m and 0.6 m, 1.2 m apart, and a coupler: a planar loop."""
    scene = poise.Scene(gravity=(6, 0, -6)) if scene is None else scene
    scene.hinge(parent, bar("left"), axis="y")
    scene.hinge(parent, bar("right", length=0.6), axis="y", position=(1.2, 0, 0))
    slope = float(np.arctan2(0.4, 1.2))
    quat = (np.cos(0.5 * slope), 0.0, np.sin(0.5 * slope), 0.0)
    top = bar("top", "x", float(np.hypot(1.2, 0.4)))
    scene.hinge("left", top, axis="y", position=(0, 0, 1), quat_wxyz=quat)
    redundantly(scene, kind, "top", "right", axis="y", axis2="x", position=(1.2, 0, 0.6))
    return scene


def turntable(kind: str = "hinge") -> poise.Scene:
    """The same, off the middle of a table that turns about z."""
    scene = poise.Scene()
    disc = Body("table", inertia=Inertia(5.0, moments=(1.0, 1.0, 2.0)))
    scene.hinge(None, disc, axis="z")
    return four_bar(kind, "table", scene)


def governor(kind: str = "hinge") -> poise.Scene:
    """A flyball governor: a spindle, two arms with balls, two links, and a sleeve that slides along the spindle."""
    scene = poise.Scene()
    scene.hinge(None, Body("spindle", inertia=Inertia(2.0, moments=(0.05, 0.05, 0.05))), axis="z")
    sleeve = Body("sleeve", inertia=Inertia(0.5, moments=(0.002, 0.002, 0.002)))
    scene.slider("spindle", sleeve, axis="z", position=(0, 0, -2 * 0.5 * np.cos(0.5)))
    for n, side in enumerate((1.0, -1.0)):
        out, down = np.sin(0.5 * side * 0.5), np.cos(0.5 * side * 0.5)
        arm = Body(f"arm{n}", inertia=Inertia(1.0, com=(0, 0, -0.5), moments=(0.004, 0.004, 0.004)))
        scene.hinge("spindle", arm, axis="-y", quat_wxyz=(down, 0, -out, 0))
        link = bar(f"link{n}", "-z", 0.5, 0.2)
        # turns back by twice the angle of the arm
        quat = (np.cos(0.5 * side), 0, np.sin(0.5 * side), 0)
        scene.hinge(f"arm{n}", link, axis="-y", position=(0, 0, -0.5), quat_wxyz=quat)
        scene.loop("hinge" if kind != "ball" else "ball", f"link{n}", "sleeve", f"close{n}", axis="y", axis2="x")
        if kind == "twice":
            scene.loop("ball", f"link{n}", "sleeve", f"again{n}", axis="y", axis2="x")
    return scene


def bricard(kind: str = "hinge") -> poise.Scene:
    """Five bars of 1 m along the edges of a cube, and the ground for a sixth: six hinges, each at a right angle to the
    next, of which any five determine the sixth. One degree of freedom.
    """
    scene = poise.Scene(gravity=(0, G, 0))
    ways, axes = ("x", "y", "z", "-x", "-y"), ("y", "z", "x", "y", "z", "x")
    parent, at = None, (0.0, 0.0, 0.0)
    for n, way in enumerate(ways):
        scene.hinge(parent, bar(f"bar{n}", way), axis=axes[n], position=at)
        parent = f"bar{n}"
        at = tuple(np.eye(3)["xyz".index(way[-1])] * (-1.0 if way[0] == "-" else 1.0))
    scene.loop("hinge", "bar4", None, "close", axis="x", axis2="y", position=(0, 0, 1))
    if kind == "twice":
        scene.loop("ball", "bar4", None, "again", axis="x", axis2="y", position=(0, 0, 1))
    return scene


def slider_crank(kind: str = "hinge") -> poise.Scene:
    """A crank of 0.3 m, a rod of 1 m, and a slider of 2 kg; no gravity."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, bar("crank", "x", 0.3), axis="-y")
    scene.hinge("crank", bar("rod", "x", 1.0), axis="-y", position=(0.3, 0, 0))
    scene.slider(None, Body("slider", inertia=Inertia(2.0, moments=(0.01, 0.01, 0.01))), axis="x", position=(1.3, 0, 0))
    redundantly(scene, kind, "rod", "slider", axis="y", axis2="x", position=(1.3, 0, 0))
    return scene


def windows(kind: str = "hinge", n: int = 3) -> poise.Scene:
    """N square windows of bars of 1 m: all positions have as many redundant rows as there are windows, and those in
    which all bars are in line have more.
    """
    scene = poise.Scene()
    for k in range(n + 1):
        scene.hinge(None, bar(f"up{k}"), axis="y", position=(k, 0, 0))
    for k in range(n):
        scene.hinge(f"up{k}", bar(f"across{k}", "x"), axis="y", position=(0, 0, 1))
        ends, where = (f"across{k}", f"up{k + 1}"), {"axis": "y", "axis2": "x", "position": (k + 1, 0, 1)}
        scene.loop("ball" if kind == "ball" else "hinge", *ends, f"close{k}", **where)
        if kind == "twice":
            scene.loop("ball", *ends, f"again{k}", **where)
    return scene


def parallelogram(kind: str = "hinge") -> poise.Scene:
    """One such window."""
    return windows(kind, 1)


class Parallelogram:
    """Two equal cranks and a coupler of any length and mass, in any attitude, as a seed has it.

    Cranks have one acceleration, so that what the coupler pushes them by is the same along the way of its ends; and it
    does not turn, so that it is the same across itself. Its two ends share its load: each has half of m (a − g).
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.length, self.width = rng.uniform(0.3, 1.2), rng.uniform(0.5, 1.5)
        self.crank, self.coupler = rng.uniform(0.5, 3.0, 2)
        self.angle, self.speed = rng.uniform(-0.6, 0.6), rng.uniform(3.0, 9.0) * rng.choice((-1.0, 1.0))
        self.kind, self.quat = str(rng.choice(("hinge", "ball"))), attitude(seed + 100)

    def build(self, formulation: Any, dt: float) -> poise.World:
        """On its way."""
        scene = poise.Scene(gravity=(0, 0, -G))
        turn = (np.cos(0.5 * self.angle), 0.0, np.sin(0.5 * self.angle), 0.0)
        back = (turn[0], 0.0, -turn[2], 0.0)
        for n in range(2):
            crank = bar(f"up{n}", "z", self.length, self.crank)
            scene.hinge(None, crank, axis="y", position=(n * self.width, 0, 0), quat_wxyz=turn)
        beam = bar("across", "x", self.width, self.coupler)
        scene.hinge("up0", beam, axis="y", position=(0, 0, self.length), quat_wxyz=back)
        end = self.length * np.array((np.sin(self.angle), 0.0, np.cos(self.angle))) + (self.width, 0.0, 0.0)
        scene.loop(self.kind, "across", "up1", axis="y", axis2="x", position=tuple(end))
        world = turned(scene, self.quat).build(formulation, dt=dt)
        for d, label in enumerate(world.model.dof_names):
            world.v[d] = -self.speed if label.startswith("across") else self.speed
        return world

    def rates(self, _: float, y: Any) -> tuple[float, float]:
        """θ and its rate, θ from the top."""
        inertia = (2.0 / 3.0 * self.crank + self.coupler) * self.length
        return y[1], (self.crank + self.coupler) * G * np.sin(y[0]) / inertia

    def force(self, angle: Any, speed: Any) -> Array:
        """Of the loop, without its sign: (n, 2), along x and z of the plane."""
        along, across = (np.stack(xz, -1) for xz in ((np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle))))
        turn = np.asarray(self.rates(0.0, (angle, speed))[1])
        a = self.length * (turn[..., None] * along - np.asarray(speed)[..., None] ** 2 * across)
        return np.asarray(0.5 * self.coupler * (a + np.array((0.0, G))))


MECHANISMS: dict[str, tuple[Callable[..., poise.Scene], dict[str, float]]] = {
    "four-bar": (four_bar, {}),
    "turntable": (turntable, {"table": 5.0}),
    "governor": (governor, {"spindle": 8.0}),
    "bricard": (bricard, {}),
    "slider-crank": (slider_crank, {"crank": 6.0, "rod": -6.0 * 1.3, "slider": 0.0}),
    "windows": (windows, {"up": 1.0, "across": -1.0}),
    "parallelogram": (parallelogram, {"up": 1.0, "across": -1.0}),
}
"""Makers, and the speeds of joints, by the beginnings of their names, with which they start."""


def build(name: str, formulation: Any, dt: float, quat: Any = None, kind: str = "hinge") -> poise.World:
    """A world with a mechanism on its way."""
    make, speeds = MECHANISMS[name]
    scene = make(kind)
    if quat is not None:
        turned(scene, quat)
    world = scene.build(formulation, dt=dt)
    for d, label in enumerate(world.model.dof_names):
        for start, speed in speeds.items():
            if label.startswith(start):
                world.v[d] = speed
    return world
