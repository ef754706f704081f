"""Four birds on one key-framed flight: alone, against a light ball, a heavy one, a falling one (LAM §4.4, figure 9)."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.cli.demos.scenery import thread
from poise.control import Actuators, RotationActuator, Throw, TranslationActuator
from poise.dynamics import bodies
from poise.motion import KeyedPath
from poise.motion.rotations import quat_exp
from poise.sim import Recording, World
from poise.view import Curve, Drawing, below, chart

SECONDS = 4.0
KEYS = np.array([(0, 0, 2), (1, 0, 2.2), (2, 0, 2), (3, 0, 2.2), (4, 0, 2)], np.float64)
"""Of the flight; m."""
UP, DOWN, BEAT = 0.6, -0.45, 0.7
"""Angles of the wings (rad), and how long a beat takes (s)."""
APART, RADIUS = 1.2, 0.12
"""Of the flights, and of the balls; m."""
BALLS = {"light": 0.02, "heavy": 5000.0, "falling": 0.4}
"""kg."""
BIRDS = ("alone", *BALLS)
DROP, HEIGHT = 0.78, 4.0
"""When the ball is let go (s), and from where (m)."""
MOMENTS, PICTURE = (1.2, 1.5, 2.1), (440, 320)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """Four birds side by side, three of them with a ball in the way."""
    stage = poise.Scene(name="bird")
    stage.settings.camera = {"position": (5.9, -3.1, 4.3), "target": (2.0, 1.6, 1.95)}
    stage.add_ground()
    for k, name in enumerate(BIRDS):
        keys = KEYS + np.array((0.0, APART * k, 0.0))
        stage.add(poise.characters.bird(span=1.0, mass=0.6), name=name, position=tuple(keys[0]))
        for side in ("l", "r"):
            stage.motor(f"{name}/wing_tip_{side}", stiffness=1.0, damping=0.02)
        path = KeyedPath(range(len(keys)), keys)
        stage.controllers.append((f"{name} flight", partial(guide, name, path)))
        line = [path(t).position for t in np.linspace(0.0, len(keys) - 1.0, 33)]
        stage.add(thread(line), name=f"{name} path", fixed=True)
        if name in BALLS:
            hang_ball(stage, name, APART * k)
    return stage


def hang_ball(stage: poise.Scene, name: str, y: float) -> None:
    """It hangs in the air, and is dropped onto the last bird."""
    falls = name == "falling"
    ball = poise.sphere(RADIUS, mass=BALLS[name], color=(0.87, 0.35, 0.2, 1.0))
    stage.add(ball, name=f"{name} ball", position=(2.0, y, HEIGHT if falls else 1.88))
    Throw(f"{name} ball", time=DROP if falls else inf, velocity=(0.0, 0.0, 0.0)).add_to(stage)


def guide(name: str, path: KeyedPath) -> Actuators:
    """Two actuators for the body, one for each wing."""
    steady: dict[str, Any] = {"relaxation": 0.03, "gamma": 6.0}
    pulls: list[Any] = [
        TranslationActuator(f"{name}/trunk", path, base_distance=0.2, limit=60.0, **steady),
        RotationActuator(f"{name}/trunk", path, base_distance=0.2, limit=2.0, **steady),
    ]
    for side, sign in (("l", 1.0), ("r", -1.0)):
        turns = [quat_exp((sign * angle, 0.0, 0.0)) for angle in (UP, DOWN, UP)]
        beat = KeyedPath([0.0, 0.5 * BEAT, BEAT], [(0, 0, 0)] * 3, turns, loop=True)
        pulls.append(RotationActuator(f"{name}/wing_{side}", beat, base_distance=0.4, limit=2.0, **steady))
    return Actuators(pulls)


def way(recording: Recording, body: str, lane: int) -> Floats:
    """(frames, 3) of a body, as if it were on the first flight."""
    place = bodies(recording.model, recording.q).position[:, recording.model.body_index(body)]
    return np.asarray(place - np.array((0.0, APART * lane, 0.0)))


def measure(recording: Recording) -> dict[str, dict[str, float]]:
    """Greatest distances of each bird from the path and from the undisturbed flight, and of balls from theirs; m."""
    flight = KeyedPath(range(len(KEYS)), KEYS)
    line = np.array([flight(t).position for t in np.linspace(0, len(KEYS) - 1, 400)])
    late = recording.time >= 1.0  # the disturbance observer has converged to the weight by then
    alone = way(recording, "alone/trunk", 0)
    told = {}
    for k, name in enumerate(BIRDS):
        bird = way(recording, f"{name}/trunk", k)
        told[name] = {"path": farthest(bird[late], line), "alone": farthest(bird[late], alone)}
        told[name]["end"] = float(np.linalg.norm(bird[-1] - KEYS[-1]))
        if name in BALLS:
            ball = way(recording, f"{name} ball", k)
            moved = np.abs(ball - ball[0])[:, :2] if name == "falling" else np.abs(ball - ball[0])
            told[name]["ball"] = float(np.linalg.norm(moved, axis=1).max())
    return told


def farthest(way: Floats, line: Floats) -> float:
    """Greatest distance of a path from a line; m."""
    return max(float(np.linalg.norm(line - place, axis=1).min()) for place in way)


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Deflections of the birds and balls."""
    told = measure(recording)
    lines = {"alone": f"within {1e3 * told['alone']['path']:.0f} mm of the path"}
    for name, mass in BALLS.items():
        one = told[name]
        lines[f"{name} ball"] = (
            f"{mass:g} kg: the bird is {1e3 * one['alone']:.0f} mm off, the ball {1e3 * one['ball']:.0f} mm; "
            f"{1e3 * one['end']:.0f} mm from its goal at the end"
        )
    return lines


def charts(world: World, recording: Recording) -> Drawing:
    """LAM's figure."""
    flight = KeyedPath(range(len(KEYS)), KEYS)
    line = np.array([flight(t).position for t in np.linspace(0, len(KEYS) - 1, 200)])
    drawn = []
    for k, name in enumerate(BIRDS):
        bird = way(recording, f"{name}/trunk", k)[::24]
        curves = [Curve("path", line[:, 0], line[:, 2], color="#999999", dashed=True)]
        curves.append(Curve("bird", bird[:, 0], bird[:, 2], mark="square"))
        if name in BALLS:
            ball = way(recording, f"{name} ball", k)[::24]
            ball = ball[(ball[:, 2] > 1.0) & (ball[:, 0] < 4.5)]
            curves.append(Curve("ball", ball[:, 0], ball[:, 2], mark="circle"))
        title = name if name == "alone" else f"a {name} ball"
        drawn.append(chart(curves, title=title, x_label="x (m)", y_label="z (m)", height=260))
    return below(*drawn)
