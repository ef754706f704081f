"""The tip of an arm follows a vertical line: without a filter, the sensed force makes it oscillate (LAM figure 5).

python examples/arm_and_filter.py
"""

from math import inf
from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, TranslationActuator
from poise.motion import KeyedPath
from poise.view import Curve, chart

LENGTH, DT = 0.5, 1 / 60


def arm_world() -> poise.World:
    """Three links with a light hand, in a plane."""
    scene = poise.Scene(gravity=(0, 0, 0))
    parent = None
    for name, mass in (("upper", 2.0), ("lower", 1.0), ("hand", 0.1)):
        link = poise.capsule(0.03, LENGTH, mass=mass)
        height = LENGTH if parent else 0.5 * LENGTH
        scene.hinge(
            parent, link, name=name, axis="y", anchor=(0, 0, -0.5 * LENGTH), position=(0, 0, height), damping=0.2
        )
        parent = name
    world = scene.build(dt=DT)
    world.q[...] = (0.5, 0.9, 0.9)
    return world


def tip(world: poise.World) -> np.ndarray:
    place, hand = poise.dynamics.bodies(world.model, world.q), world.model.body_index("hand")
    return place.position[hand] + place.rotation[hand] @ np.array((0, 0, 0.5 * LENGTH))


def move(gamma: float) -> np.ndarray:
    """(n, 3) displacement of the tip from its start."""
    world = arm_world()
    start = tip(world)
    pull = TranslationActuator(
        "hand",
        KeyedPath([0, 1], [start, start - np.array((0, 0, 1.0))]),
        base_distance=0.1,
        relaxation=DT,
        limit=20.0,
        gamma=gamma,
        point=(0, 0, 0.5 * LENGTH),
    )
    world.add_controller(Actuators([pull]))
    way = [np.zeros(3)]
    for _ in range(240):
        world.step()
        way.append(tip(world) - start)
    return np.array(way)


def main(path: str | Path = "arm_and_filter.svg") -> dict[str, float]:
    times = DT * np.arange(241)
    ways = {"(a) without a filter": move(inf), "(b) γ = 1 / s": move(1.0)}
    curves = [Curve(name, times, 100.0 * way[:, 0]) for name, way in ways.items()]
    chart(curves, title="How far the tip is from its line", x_label="time (s)", y_label="x (cm)").save(path)
    told = {name: float(np.ptp(way[120:, 0])) for name, way in ways.items()}
    for name, value in told.items():
        print(
            f"{name:22s} swings by {100 * value:6.3f} cm in the last two seconds; ends at z = {ways[name][-1, 2]:.4f} m"
        )
    return told


if __name__ == "__main__":
    main()
