"""Balls that are pulled to targets at rest: damping, and steps of any length (LAM figure 2 and §4.2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.cli.demos.scenery import SEEN, thread
from poise.control import Actuators, TranslationActuator
from poise.motion import ConstantPath
from poise.sim import Recording, World
from poise.view import Curve, Drawing, below, chart

SECONDS, DT = 1.5, 0.002
ALPHA, RELAXATION = 0.1, 0.1
ELASTICITIES = (0.3, 0.5, 0.7, 1.0, 1.2, 2.0)
"""B of each ball: the damping ratio."""
COLORS = ((0.00, 0.45, 0.70), (0.84, 0.37, 0.00), (0.00, 0.62, 0.45), (0.80, 0.47, 0.65), (0.90, 0.62, 0.00))
MOMENTS, PICTURE = (0.0, 0.3, 0.6, 1.5), (330, 320)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """Balls a metre from their targets."""
    stage = poise.Scene(name="steps", gravity=(0.0, 0.0, 0.0), dt=DT)
    stage.settings.camera = {"position": (1.7, -1.6, 1.6), "target": (0.65, 0.6, 0.12)}
    stage.add_ground()
    for lane, elasticity in enumerate(ELASTICITIES):
        y, name = 0.25 * lane, f"B {elasticity:g}"
        color = (*COLORS[lane % len(COLORS)], 1.0)
        stage.add(poise.sphere(0.06, mass=2.0, color=color, **SEEN), name=name, position=(0.0, y, 0.2))
        goal = (1.0, y, 0.2)
        stage.add(thread(((0.0, y, 0.2), (1.4, y, 0.2)), radius=0.004), name=f"{name} line", fixed=True)
        stage.add(
            poise.box(0.02, 0.1, 0.1, color=(0.3, 0.3, 0.3, 1.0), **SEEN),
            name=f"{name} goal",
            position=goal,
            fixed=True,
        )
        stage.controllers.append((f"{name} pull", partial(guide, name, goal, elasticity)))
    return stage


def guide(name: str, goal: tuple[float, float, float], elasticity: float) -> Actuators:
    """The only actuator of a ball; its target is the end of the path, because the base distance is longer."""
    path = ConstantPath(goal)
    options: dict[str, Any] = {"alpha": ALPHA, "elasticity": elasticity, "relaxation": RELAXATION}
    return Actuators([TranslationActuator(name, path, base_distance=2.0, **options)])


def distances(recording: Recording) -> Floats:
    """(frames, balls) to their targets; m."""
    model = recording.model
    return np.stack([1.0 - recording.q[:, model.q_slice(f"B {b:g}").start] for b in ELASTICITIES], axis=1)


def exact(elasticity: float, times: Floats) -> Floats:
    """The damped oscillator of LAM eq. 2: ω² = 2α / Δt², damping ratio B; m."""
    omega = np.sqrt(2.0 * ALPHA) / RELAXATION
    root = np.sqrt(complex(elasticity**2 - 1.0 + 1e-12))
    fast, slow = omega * (-elasticity - root), omega * (-elasticity + root)
    return np.real((fast * np.exp(slow * times) - slow * np.exp(fast * times)) / (fast - slow))


def by_chance(seed: int = 1995) -> tuple[Floats, Floats]:
    """Times, and distances as in `distances`, with random steps of 0 to twice the length."""
    world = scene().build()
    places = [world.model.q_slice(f"B {b:g}").start for b in ELASTICITIES]
    times, told = [0.0], [1.0 - world.q[places]]
    for dt in np.random.default_rng(seed).uniform(0.0, 2.0 * DT, round(SECONDS / DT)):
        world.dt = float(dt)
        world.step()
        times.append(world.time)
        told.append(1.0 - world.q[places])
    return np.array(times), np.array(told)


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Approach of each ball to its target, and the difference with random steps."""
    time, told = recording.time, distances(recording)
    lines = {}
    for k, b in enumerate(ELASTICITIES):
        beyond = max(0.0, -float(told[:, k].min()))
        off = np.abs(told[:, k] - exact(b, time)).max()
        lines[f"B = {b:g}"] = f"{1e3 * beyond:.0f} mm beyond its target at most, {1e3 * off:.1f} mm off the oscillator"
    times, others = by_chance()
    apart = max(
        float(np.abs(np.interp(times, time, told[:, k]) - others[:, k]).max()) for k in range(len(ELASTICITIES))
    )
    lines["random steps"] = f"0 to {2e3 * DT:g} ms: {1e3 * apart:.1f} mm from even ones at most"
    return lines


def charts(world: World, recording: Recording) -> Drawing:
    """LAM's figures: damping, and constant against random steps."""
    told, (times, others) = distances(recording), by_chance()
    damped = [Curve(f"B = {b:g}", recording.time[::5], told[::5, ELASTICITIES.index(b)]) for b in (0.3, 0.7, 1.0, 2.0)]
    dotted = []
    for b in (0.5, 1.2):
        k = ELASTICITIES.index(b)
        dotted.append(Curve(f"B = {b:g}, even steps", recording.time[::5], told[::5, k]))
        dotted.append(Curve("random steps", times[::30], others[::30, k], mark="circle"))
    labels: dict[str, Any] = {"x_label": "time (s)", "y_label": "distance (m)"}
    return below(
        chart(damped, title="Over-, under- and critically damped", **labels),
        chart(dotted, title="Random steps of 0 to 4 ms", **labels),
    )
