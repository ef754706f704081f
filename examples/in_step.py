"""Preferred speeds at keys, and two arms of a crane that wait for each other (what LAM §5 leaves as work in progress).

python examples/in_step.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, Stage, TranslationActuator, Way
from poise.motion import KeyedPath
from poise.view import Curve, below, chart

DT, WANTED = 1 / 120, {1.0: 0.3, 3.0: 2.0}


def speeds_at_keys() -> tuple[np.ndarray, float]:
    """(n, 2) position and speed of a trolley on a straight path with keys at intervals of 1 m; its natural speed."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.1, 0.1, 0.1, mass=3.0), name="trolley")
    world = scene.build(dt=DT)
    path = KeyedPath(range(5), [(x, 0, 0) for x in range(5)])
    pull = TranslationActuator("trolley", path, base_distance=0.2, relaxation=0.05, speeds=WANTED)
    world.add_controller(Actuators([pull]))
    told = []
    for _ in range(8 * 120):
        world.step()
        told.append((world.q[0], world.v[0]))
    return np.array(told), pull.natural_speed


def two_hooks(together: bool, hold: float = 0.0) -> tuple[np.ndarray, list[str]]:
    """(n, 3) time and heights of two hooks, and the stages; from 1 s on, one is held back by a force (N).

    Both go up, one three times as far as the other. When both are there they wait a quarter of a second, and go down.
    """
    scene = poise.Scene(gravity=(0, 0, 0))
    for name, y in (("left", 0.0), ("right", 1.0)):
        scene.add(poise.box(0.1, 0.1, 0.1, mass=2.0), name=name, position=(0, y, 0))
    world = scene.build(dt=DT)
    pulls = [
        TranslationActuator(name, KeyedPath([0, 1, 2], [(0, y, 0), (0, y, z), (0, y, 0)]), 0.15, relaxation=0.05)
        for name, y, z in (("left", 0.0, 0.5), ("right", 1.0, 1.5))
    ]
    both = ("left move", "right move")
    stages = [
        Stage("up", gates=dict.fromkeys(both, 1.0), ways=[Way("wait")], together=together),
        Stage("wait", gates=dict.fromkeys(both, None), ways=[Way("down", after=0.25)]),
        Stage("down", together=together, gates=dict.fromkeys(both, 2.0)),
    ]
    guide = Actuators(pulls, stages)
    world.add_controller(guide)
    heights, names = [], []
    for _ in range(6 * 120):
        world.forces[world.model.body_index("right"), 5] = -hold if 1.0 <= world.time < 2.0 else 0.0
        world.step()
        heights.append((world.time, *(float(world.body(name).position[2]) for name in ("left", "right"))))
        names.append(str(guide.read(world.state)["left move"].stage))
    return np.array(heights), names


def arrivals(heights: np.ndarray) -> tuple[float, float]:
    """When each hook is first within a tenth of the base distance of its top."""
    left, right = (heights[int(np.argmax(heights[:, k] > top - 0.015)), 0] for k, top in ((1, 0.5), (2, 1.5)))
    return float(left), float(right)


def main(path: str | Path = "in_step.svg") -> dict[str, float]:
    run, natural = speeds_at_keys()
    marks = Curve("preferred", list(WANTED), list(WANTED.values()), mark="diamond")
    lines = [Curve("speed", run[::4, 0], run[::4, 1]), marks, Curve("natural", [0, 4], [natural] * 2, dashed=True)]
    charts = [chart(lines, title="Speeds at keys", x_label="x (m)", y_label="speed (m/s)")]
    told = {f"speed at {x:g} m": float(np.interp(x, run[:, 0], run[:, 1])) for x in (1.0, 2.0, 3.0)} | {
        "natural": natural
    }
    for name, together, hold in (("each for itself", False, 0.0), ("together", True, 0.0), ("held back", True, 8.0)):
        heights, stages = two_hooks(together, hold)
        left, right = arrivals(heights)
        told |= {f"{name}: left": left, f"{name}: right": right}
        down = heights[stages.index("down"), 0]
        told[f"{name}: down"] = float(down)
        lines = [Curve(hook, heights[::6, 0], heights[::6, k]) for k, hook in ((1, "left"), (2, "right"))]
        lines.append(Curve("way down", [down, down], [0.0, 1.5], color="#999999", dashed=True))
        charts.append(chart(lines, title=f"Two hooks, {name}", x_label="time (s)", y_label="height (m)", height=260))
    below(*charts).save(path)
    for name, value in told.items():
        print(f"{name:24s} {value:8.4f}")
    return told


if __name__ == "__main__":
    main()
