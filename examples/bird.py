"""A bird on a key-framed flight: alone, against a light ball, a heavy one, a falling one (LAM figure 9).

python examples/bird.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, RotationActuator, TranslationActuator
from poise.motion import KeyedPath
from poise.motion.rotations import quat_exp
from poise.view import Curve, below, chart

DT, SECONDS = 1 / 240, 4.0
KEYS = [(0, 0, 2), (1, 0, 2.2), (2, 0, 2), (3, 0, 2.2), (4, 0, 2)]
UP, DOWN = 0.7, -0.5


def add_bird(scene: poise.Scene) -> None:
    """A body, and two wings on hinges with limits."""
    scene.add(poise.capsule(0.06, 0.3, mass=0.5, quat_wxyz=(0.7071, 0, 0.7071, 0)), name="bird", position=KEYS[0])
    for name, side in (("wing_l", 1.0), ("wing_r", -1.0)):
        wing = poise.box(0.16, 0.4, 0.01, mass=0.08)
        scene.hinge(
            "bird",
            wing,
            name=name,
            axis="x",
            anchor=(0, -0.2 * side, 0),
            position=(0, 0.25 * side, 0.03),
            limits=(-1.0, 1.0),
        )


def flapping(side: float) -> KeyedPath:
    """Up and down, for ever."""
    turns = [quat_exp((side * angle, 0.0, 0.0)) for angle in (UP, DOWN, UP)]
    return KeyedPath([0.0, 0.5, 1.0], [(0, 0, 0)] * 3, turns, loop=True)


def guide() -> Actuators:
    """Two actuators for the body, one for each wing."""
    flight = KeyedPath(range(len(KEYS)), KEYS)
    steady = {"relaxation": 0.03, "gamma": 6.0}
    return Actuators(
        [
            TranslationActuator("bird", flight, base_distance=0.2, limit=60.0, **steady),
            RotationActuator("bird", flight, base_distance=0.2, limit=2.0, **steady),
            RotationActuator("wing_l", flapping(1.0), base_distance=0.4, limit=2.0, **steady),
            RotationActuator("wing_r", flapping(-1.0), base_distance=0.4, limit=2.0, **steady),
        ]
    )


def fly(mass: float | None = None, drop: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Ways (n, 3) of the bird and of a ball, which hangs in the air or is dropped at a time (s)."""
    scene = poise.Scene()
    add_bird(scene)
    start = (2.0, 0.0, 1.9) if drop is None else (2.0, 0.0, 4.0)
    ball = poise.sphere(0.12, mass=mass or 1.0, mask=1 if mass else 0, group=1 if mass else 0)
    scene.add(ball, name="ball", position=start)
    world = scene.build(dt=DT)
    world.add_controller(guide())
    where, hold = world.model.body_index("ball"), 9.81 * float(world.model.body_mass[world.model.body_index("ball")])
    bird, other = [], []
    for _ in range(round(SECONDS / DT)):
        world.forces[where, 5] = hold if drop is None or world.time < drop else 0.0
        world.step()
        bird.append(world.body("bird").position)
        other.append(world.body("ball").position)
    return np.array(bird), np.array(other)


def main(path: str | Path = "bird.svg") -> dict[str, dict[str, float]]:
    flight = KeyedPath(range(len(KEYS)), KEYS)
    line = np.array([flight(t).position for t in np.linspace(0, len(KEYS) - 1, 400)])
    told, charts = {}, []
    alone, still = fly()
    there = DT * int(np.argmax(alone[:, 0] > 1.95))
    falls = np.sqrt(2.0 * (4.0 - 2.18) / 9.81)
    for name, mass, drop in (
        ("alone", None, None),
        ("a light ball", 0.02, None),
        ("a heavy ball", 5000.0, None),
        ("a falling ball", 0.4, there - falls),
    ):
        bird, ball = (alone, still) if mass is None else fly(mass, drop)
        learnt = bird[round(1.0 / DT) :]  # its weight
        far = max(float(np.linalg.norm(line - place, axis=1).min()) for place in learnt)
        shift = max(float(np.linalg.norm(alone - place, axis=1).min()) for place in learnt)
        if drop is None:
            moved = float(np.linalg.norm(ball - ball[0], axis=1).max())
        else:  # to the side: it would have fallen straight down
            moved = float(np.abs(ball[:, :2] - ball[0, :2]).max())
        end = float(np.linalg.norm(bird[-1] - KEYS[-1]))
        told[name] = {"from the path": far, "from the flight alone": shift, "ball": moved, "from the end": end}
        print(f"{name:15s}", {key: round(value, 4) for key, value in told[name].items()})
        curves = [Curve("path", line[:, 0], line[:, 2], color="#999999", dashed=True)]
        curves.append(Curve("bird", bird[::24, 0], bird[::24, 2], mark="square"))
        if mass:
            dots = ball[::24][ball[::24, 2] > 1.0]
            curves.append(Curve("ball", dots[:, 0], dots[:, 2], mark="circle"))
        charts.append(chart(curves, title=name, x_label="x (m)", y_label="z (m)", height=260))
    below(*charts).save(path)
    return told


if __name__ == "__main__":
    main()
