"""A body that is pulled to a target at rest: damping, and steps of any length (LAM figure 2 and §4.2).

python examples/reaching_a_target.py
"""

import math
from pathlib import Path

import numpy as np

import poise
from poise.control import Actuators, TranslationActuator
from poise.motion import ConstantPath
from poise.view import Curve, chart

ALPHA, RELAXATION = 0.1, 0.1


def reach(elasticity: float, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and distances to the target of a body that starts 1 m away from it, in steps of the given lengths."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    world = scene.build()
    pull = TranslationActuator(
        "ball", ConstantPath((1, 0, 0)), base_distance=2.0, alpha=ALPHA, elasticity=elasticity, relaxation=RELAXATION
    )
    world.add_controller(Actuators([pull]))
    times, distances = [0.0], [1.0]
    for dt in steps:
        world.dt = float(dt)
        world.step()
        times.append(world.time)
        distances.append(1.0 - float(world.q[0]))
    return np.array(times), np.array(distances)


def exact(elasticity: float, times: np.ndarray) -> np.ndarray:
    """The damped oscillator of LAM eq. 2: ω² = 2α / Δt², damping ratio B."""
    omega = math.sqrt(2.0 * ALPHA) / RELAXATION
    root = np.sqrt(complex(elasticity**2 - 1.0 + 1e-12))
    fast, slow = omega * (-elasticity - root), omega * (-elasticity + root)
    return np.real((fast * np.exp(slow * times) - slow * np.exp(fast * times)) / (fast - slow))


def main(path: str | Path = "reaching_a_target.svg") -> dict[str, float]:
    even = np.full(750, 0.002)
    curves, told = [], {}
    for elasticity in (0.3, 0.7, 1.0, 2.0):
        times, distances = reach(elasticity, even)
        curves.append(Curve(f"B = {elasticity:g}", times[::5], distances[::5]))
        told[f"error {elasticity:g}"] = float(np.abs(distances - exact(elasticity, times)).max())
        told[f"overshoot {elasticity:g}"] = float(-distances.min())
    damped = chart(curves, title="Over-, under- and critically damped", x_label="time (s)", y_label="distance (m)")

    curves, random = [], np.random.default_rng(1995).uniform(0.0, 0.004, 750)
    for elasticity in (0.5, 1.2):
        times, distances = reach(elasticity, np.full(750, 0.002))
        others, dots = reach(elasticity, random)
        curves.append(Curve(f"B = {elasticity:g}, even steps", times[::5], distances[::5]))
        curves.append(Curve("random steps", others[::30], dots[::30], mark="circle"))
        told[f"random {elasticity:g}"] = float(np.abs(np.interp(others, times, distances) - dots).max())
    dotted = chart(curves, title="Steps of 0 to 4 ms by chance", x_label="time (s)", y_label="distance (m)")
    poise.view.below(damped, dotted).save(path)
    for name, value in told.items():
        print(f"{name:16s} {value:9.5f} m")
    return told


if __name__ == "__main__":
    main()
