"""A path that no body could follow, smoothed as far as the base distance tells (LAM §4.2).

python examples/smoothing_a_path.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, TranslationActuator
from poise.motion import KeyedPath
from poise.view import Curve, chart

CORNERS = [(0, 0, 0), (1, 0, 0), (1, 0, 1), (2, 0, 1), (2, 0, 0), (3, 0, 0)]


def rough_path() -> KeyedPath:
    """Straight lines with corners: keys so near to each corner that the spline has no room to round it."""
    keys = []
    for k, corner in enumerate(np.array(CORNERS, float)):
        for other in (k - 1, k + 1):
            if 0 <= other < len(CORNERS):
                for share in (0.02, 0.3):
                    keys.append((k + share * (other - k), corner + share * (np.array(CORNERS[other]) - corner)))
        keys.append((float(k), corner))
    keys.sort(key=lambda key: key[0])
    return KeyedPath([time for time, _ in keys], [place for _, place in keys])


def follow(path: KeyedPath, base: float, elasticity: float, alpha: float = 0.1) -> np.ndarray:
    """(n, 3) where the body has been."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.05, mass=1.0), name="ball")
    world = scene.build(dt=1 / 240)
    pull = TranslationActuator("ball", path, base, alpha=alpha, elasticity=elasticity, relaxation=0.05)
    world.add_controller(Actuators([pull]))
    way = [world.q[:3].copy()]
    for _ in range(int(240 * 3 / pull.natural_speed * 4)):
        world.step()
        way.append(world.q[:3].copy())
        if np.linalg.norm(way[-1] - CORNERS[-1]) < 1e-3:
            break
    return np.array(way)


def farthest(path: KeyedPath, way: np.ndarray) -> float:
    """How far a point of the path is from all of the way, at most."""
    points = np.array([path(t).position for t in np.linspace(path.times[0], path.times[-1], 400)])
    return float(max(np.linalg.norm(way - point, axis=1).min() for point in points))


def main(path: str | Path = "smoothing_a_path.svg") -> dict[str, float]:
    rough = rough_path()
    line = np.array([rough(t).position for t in np.linspace(rough.times[0], rough.times[-1], 300)])
    curves, told = [Curve("path", line[:, 0], line[:, 2], color="#999999", dashed=True)], {}
    for name, base, elasticity in (
        ("base 0.1 m, B = 1", 0.1, 1.0),
        ("base 0.4 m, B = 1", 0.4, 1.0),
        ("base 0.4 m, B = 0.5", 0.4, 0.5),
        ("base 0.4 m, B = 2", 0.4, 2.0),
    ):
        way = follow(rough, base, elasticity)
        curves.append(Curve(name, way[::4, 0], way[::4, 2]))
        told[name] = farthest(rough, way)
        print(f"{name:22s} the path is within {told[name]:.3f} m of the motion")
    slow, fast = follow(rough, 0.4, 1.0, alpha=0.05), follow(rough, 0.4, 1.0, alpha=0.2)
    told["α: ways apart"] = max(float(np.linalg.norm(slow - place, axis=1).min()) for place in fast[::4])
    told["α: times"] = len(slow) / len(fast)
    print(f"with four times α it is {told['α: times']:.3f} times as fast, {told['α: ways apart']:.4f} m beside")
    chart(curves, title="One path, several motions", x_label="x (m)", y_label="z (m)", height=440).save(path)
    return told


if __name__ == "__main__":
    main()
