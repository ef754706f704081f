"""One straight path through an obstacle; what happens depends on mass and stiffness (LAM §4.2, collision samples 1, 2).

The third ball has a compliant contact: a linear spring on the overlap, which grows beyond the ball's radius. It is not
LAM's sample 3, where a coating deforms and slides around the obstacle.

python examples/through_an_obstacle.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, TranslationActuator
from poise.motion import KeyedPath
from poise.view import Curve, chart

RADIUS, BALL, MIDDLE = 0.3, 0.1, (1.5, 0.0, -0.12)


def meet(mass: float, stiffness: float) -> np.ndarray:
    """(n, 4) time and path of a ball with an elastic skin."""
    scene = poise.Scene(gravity=(0, 0, 0))
    rigid = poise.Material(friction=0.1)
    skin = poise.Material(friction=0.1, compliance=1.0 / stiffness)
    scene.add(poise.sphere(RADIUS, material=rigid), name="obstacle", position=MIDDLE, fixed=True)
    scene.add(poise.sphere(BALL, mass=mass, material=skin), name="ball")
    world = scene.build(dt=1 / 480)
    path = KeyedPath([0, 1], [(0, 0, 0), (3, 0, 0)])
    pull = TranslationActuator("ball", path, base_distance=0.3, relaxation=0.03, limit=60.0)
    world.add_controller(Actuators([pull]))
    way = [(0.0, *world.q[:3])]
    for _ in range(5 * 480):
        world.step()
        way.append((world.time, *world.q[:3]))
    return np.array(way)


def main(path: str | Path = "through_an_obstacle.svg") -> dict[str, dict[str, float]]:
    angle = np.linspace(0, np.pi, 60)
    around = RADIUS + BALL
    edge = MIDDLE[0] + around * np.cos(angle), MIDDLE[2] + around * np.sin(angle)
    curves = [Curve("path", [0, 3], [0, 0], color="#999999", dashed=True)]
    curves.append(Curve("where a rigid ball touches", *edge, color="#bbbbbb"))
    told = {}
    for name, mass, stiffness in (
        ("1: 1 kg, 20 kN/m", 1.0, 2e4),
        ("2: 8 kg, 20 kN/m", 8.0, 2e4),
        ("3: 1 kg, 0.5 kN/m", 1.0, 500.0),
    ):
        way = meet(mass, stiffness)
        curves.append(Curve(name, way[::6, 1], way[::6, 3]))
        gaps = np.linalg.norm(way[:, 1:] - MIDDLE, axis=1) - around
        told[name] = {
            "thrown back": float(np.max(np.maximum.accumulate(way[:, 1]) - way[:, 1])),
            "depth": float(-gaps.min()),
            "height": float(way[:, 3].max()),
            "end": float(np.linalg.norm(way[-1, 1:] - (3, 0, 0))),
        }
        print(name, {key: round(value, 4) for key, value in told[name].items()})
    chart(curves, title="A path through an obstacle", x_label="x (m)", y_label="z (m)", height=440).save(path)
    return told


if __name__ == "__main__":
    main()
