"""A path with corners, which actuators smooth within the base distance (LAM §4.2)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

import poise
from poise.cli.demos.scenery import SEEN, thread
from poise.control import Actuators, TranslationActuator
from poise.dynamics import bodies
from poise.motion import KeyedPath
from poise.sim import Recording, World
from poise.view import Curve, Drawing, chart

SECONDS = 12.0
CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, 0, 1), (2, 0, 1), (2, 0, 0), (3, 0, 0)], np.float64)
ABOVE, APART = 0.3, 0.5
"""Of the ground, and of each other; m."""
BALLS = {"near": (0.1, 1.0, 0.1), "far": (0.4, 1.0, 0.1), "springy": (0.4, 0.5, 0.1), "slow": (0.4, 2.0, 0.1)}
BALLS["quick"] = (0.4, 1.0, 0.4)
"""Base distance (m), B and α of each."""
COLORS = ((0.00, 0.45, 0.70), (0.84, 0.37, 0.00), (0.00, 0.62, 0.45), (0.80, 0.47, 0.65), (0.90, 0.62, 0.00))
"""As those of the curves."""
TRAILS = dict(zip(BALLS, COLORS, strict=True))
MOMENTS, PICTURE = (0.8, 2.0, 12.0), (440, 320)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """A ball on each of five equal paths."""
    stage = poise.Scene(name="path", gravity=(0.0, 0.0, 0.0))
    stage.settings.camera = {"position": (3.6, -3.1, 2.5), "target": (1.45, 0.9, 0.55)}
    stage.add_ground()
    for lane, (name, color) in enumerate(TRAILS.items()):
        path = rough_path(lane)
        ball = poise.sphere(0.05, mass=1.0, color=(*color, 1.0), **SEEN)
        stage.add(ball, name=name, position=tuple(path(0.0).position))
        line = thread(CORNERS + shift(lane), color=(0.55, 0.57, 0.60, 1.0))
        stage.add(line, name=f"{name} path", fixed=True)
        stage.controllers.append((f"{name} pull", partial(guide, name, path)))
    return stage


def shift(lane: int) -> Floats:
    """Position of a path; m."""
    return np.array((0.0, APART * lane, ABOVE))


def rough_path(lane: int = 0) -> KeyedPath:
    """Straight lines with corners: keys so near to each corner that the spline has no room to round it."""
    keys = []
    for k, corner in enumerate(CORNERS):
        for other in (k - 1, k + 1):
            if 0 <= other < len(CORNERS):
                for share in (0.02, 0.3):
                    keys.append((k + share * (other - k), corner + share * (CORNERS[other] - corner)))
        keys.append((float(k), corner))
    keys.sort(key=lambda key: key[0])
    return KeyedPath([time for time, _ in keys], [place + shift(lane) for _, place in keys])


def guide(name: str, path: KeyedPath) -> Actuators:
    """The only actuator of a ball."""
    base, elasticity, alpha = BALLS[name]
    return Actuators([TranslationActuator(name, path, base, alpha=alpha, elasticity=elasticity, relaxation=0.05)])


def way(recording: Recording, name: str) -> Floats:
    """(frames, 3) of a ball, as if it were on the first path; m."""
    place = bodies(recording.model, recording.q).position[:, recording.model.body_index(name)]
    return np.asarray(place - shift(list(BALLS).index(name)))


def farthest(points: Floats, line: Floats) -> float:
    """Greatest distance of a point of a line from another line; m."""
    return float(max(np.linalg.norm(line - point, axis=1).min() for point in points))


def rounding(recording: Recording, name: str) -> float:
    """Greatest distance of the path from the ball's motion; m."""
    path = rough_path()
    points = np.array([path(t).position for t in np.linspace(path.times[0], path.times[-1], 400)]) - shift(0)
    return farthest(points, way(recording, name))


def arrival(recording: Recording, name: str) -> float:
    """Time at which a ball is within a millimetre of its goal; s."""
    return float(recording.time[int(np.argmax(np.linalg.norm(way(recording, name) - CORNERS[-1], axis=1) < 1e-3))])


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Rounding of corners, and times of arrival."""
    lines = {}
    for name, (base, elasticity, alpha) in BALLS.items():
        lines[name] = (
            f"base {base:g} m, B = {elasticity:g}, α = {alpha:g}: "
            f"all of the path within {rounding(recording, name):.3f} m, there after {arrival(recording, name):.2f} s"
        )
    beside = farthest(way(recording, "quick")[::4], way(recording, "far"))
    faster = arrival(recording, "far") / arrival(recording, "quick")
    lines["four times α"] = f"{faster:.2f} times as fast, {1e3 * beside:.1f} mm beside"
    return lines


def charts(world: World, recording: Recording) -> Drawing:
    """LAM's curves."""
    curves = [Curve("path", CORNERS[:, 0], CORNERS[:, 2], color="#999999", dashed=True)]
    for name, (base, elasticity, alpha) in BALLS.items():
        if alpha == 0.1:
            told = way(recording, name)[::4]
            curves.append(Curve(f"base {base:g} m, B = {elasticity:g}", told[:, 0], told[:, 2]))
    return chart(curves, title="One path, several motions", x_label="x (m)", y_label="z (m)", height=440)
