"""A ball on a straight line under gravity: it sags, unless it learns its weight; a hit still shows (LAM figure 4).

python examples/learning_gravity.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, TranslationActuator
from poise.motion import KeyedPath
from poise.view import Curve, chart

ALPHA, BETA, RELAXATION, HIT = 0.1, 0.6, 0.05, 2.4


def fly(gamma: float, hit: float = 0.0) -> np.ndarray:
    """(n, 3) path of the ball; at 2.4 s it is hit upwards, and gains `hit` m/s."""
    scene = poise.Scene()
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    world = scene.build(dt=1 / 240)
    pull = TranslationActuator(
        "ball",
        KeyedPath([0, 1], [(0, 0, 0), (4, 0, 0)]),
        base_distance=0.3,
        alpha=ALPHA,
        elasticity=BETA / np.sqrt(2 * ALPHA),
        relaxation=RELAXATION,
        gamma=gamma,
    )
    world.add_controller(Actuators([pull]))
    way = [world.q[:3].copy()]
    for k in range(5 * 240):
        if k == round(HIT * 240):
            world.apply_impulse("ball", (0, 0, 2.0 * hit))
        world.step()
        way.append(world.q[:3].copy())
    return np.array(way)


def main(path: str | Path = "learning_gravity.svg") -> dict[str, float]:
    sag = 9.81 * RELAXATION**2 / (2.0 * ALPHA)
    sagging, learning, struck = fly(0.0), fly(4.0), fly(4.0, hit=3.0)
    curves = [
        Curve("path", [0, 4], [0, 0], color="#999999", dashed=True),
        Curve("γ = 0", sagging[::6, 0], sagging[::6, 2]),
        Curve("γ = 4 / s", learning[::6, 0], learning[::6, 2]),
        Curve("γ = 4 / s, struck", struck[::6, 0], struck[::6, 2], dashed=True),
    ]
    chart(curves, title="A ball led along a line", x_label="x (m)", y_label="z (m)").save(path)
    told = {
        "sag without learning": float(-sagging[-1, 2]),
        "sag by LAM eq. 2": sag,
        "largest sag, learning": float(-learning[:, 2].min()),
        "sag after 2 s of learning": float(-learning[480, 2]),
        "rise after the hit": float((struck - learning)[:, 2].max()),
        "left of it at the end": float(abs(struck[-1] - learning[-1]).max()),
    }
    for name, value in told.items():
        print(f"{name:26s} {value:9.6f} m")
    return told


if __name__ == "__main__":
    main()
