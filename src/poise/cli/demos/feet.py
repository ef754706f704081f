"""Both feet on the ground: redundant contacts, and the results of different solvers (LIU)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.characters import clips, humanoid
from poise.control import Push
from poise.dynamics import jacobian
from poise.sim import ForcePlate, Recording, World
from poise.view import Curve, Drawing, below, chart
from poise.view.render_marks import arrow

SECONDS = 3.0
STRENGTH = {"legs": 300.0, "trunk": 300.0, "arms": 60.0}
"""Torque limits of the standing character; N·m."""
PUSH, PUSHES, LASTS = 35.0, {0.8: 1.0, 1.8: -1.0}, 0.6
"""Force to the side (N), when it comes (s) and to which side, and how long it lasts (s)."""
REST = (0.4, 0.8)
"""Interval without pushes, at rest; s."""
SWEEPS = (10, 100, 1000)
"""Iterations of plain projected Gauss-Seidel."""
FEET = {"left": "hero/foot_l", "right": "hero/foot_r"}
MOMENTS = (0.7, 1.2, 1.6, 2.2, 2.6, 3.0)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """A person that stands with stiff motors, and is pushed gently from one foot to the other."""
    stage = poise.Scene(name="feet")
    stage.settings.camera = {"position": (3.4, -0.7, 1.3), "target": (0.0, 0.0, 0.85)}
    stage.add_ground(friction=0.8)
    person = humanoid(height=1.75, mass=70.0)
    pose = clips.stand(person).slice(0.0, 0.1)
    stage.add(person, name="hero").track(pose, root="free", strength=STRENGTH)
    for time, side in PUSHES.items():
        Push("hero/torso", time=time, duration=LASTS, force=(0.0, side * PUSH, 0.0)).add_to(stage)
    return stage


def signals(world: World) -> dict[str, Callable[[Any], Any]]:
    """Signals: the ground's force on each foot, and the residual of the step."""
    plates: dict[str, Callable[[Any], Any]] = {name: ForcePlate("ground", of=foot) for name, foot in FEET.items()}
    return plates | {"residual": lambda world: world.report().residual}


def press(recording: Recording, name: str) -> Floats:
    """(frames,) force of the ground on a foot, upwards; N."""
    return np.asarray(recording.signals[name][:, 2])


def noise(recording: Recording) -> float:
    """RMS change of the force on a foot from step to step at rest; N."""
    at_rest = (recording.time > REST[0]) & (recording.time < REST[1])
    return float(np.sqrt(np.mean(np.diff(press(recording, "left")[at_rest]) ** 2)))


@cache
def swept(sweeps: int) -> Recording:
    """The same demo with motors as rows, as in LIU, solved by a fixed number of PGS iterations only."""
    world = scene().build(poise.Reduced(newton=False, sweeps=sweeps))
    world.rows_hooks.append(lambda world, rows: None)  # with a constraint callback, motors stay rows
    return world.run(SECONDS, signals=signals(world), record=())


def redundancy(world: World) -> tuple[int, int, int]:
    """Number of contacts of the last step, number of their rows, and rank of these."""
    model, contacts = world.model, world.report().contacts
    rows = []
    for contact in contacts:
        foot = model.body_index(next(name for name in (contact.body_a, contact.body_b) if name in FEET.values()))
        body = poise.dynamics.bodies(model, world.q)
        point = body.rotation[foot].T @ (contact.point - body.position[foot])
        rows.append(jacobian(model, world.q, foot, point).J[3:])
    J = np.concatenate(rows)
    return len(contacts), len(J), int(np.linalg.matrix_rank(J, tol=1e-6 * np.linalg.norm(J)))


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Forces on the feet, and the results of each solver."""
    left, right = (press(recording, name) for name in FEET)
    calm = (recording.time > REST[0]) & (recording.time < REST[1])
    weight = 9.81 * float(world.model.link_mass.sum())
    contacts, rows, rank = redundancy(world)
    later = recording.time > REST[0]
    lines = {
        "contacts": f"{contacts}, of {rows} rows; {rank} of these are not sums of others",
        "at rest": f"{left[calm].mean():.1f} N left, {right[calm].mean():.1f} N right; "
        f"together {left[calm].mean() + right[calm].mean():.1f} of {weight:.1f} N of weight",
        "pushed": f"from {left[later].min():.0f} to {left[later].max():.0f} N on the left foot",
        "sweeps and Newton": judged(recording),
    }
    return lines | {f"{sweeps} sweeps, motors as rows": judged(swept(sweeps)) for sweeps in SWEEPS}


def judged(recording: Recording) -> str:
    """Quality of the solution."""
    residual = float(recording.signals["residual"][1:].mean())
    moved = float(np.linalg.norm(recording.q[-1, :2] - recording.q[0, :2]))
    return (
        f"force jumps by {noise(recording):.2g} N at rest; residual {residual:.0e}; {1e3 * moved:.0f} mm moved in all"
    )


def marks(recording: Recording, frame: int) -> list[Any]:
    """An arrow of the force on each foot; a metre is the weight."""
    found: list[Any] = []
    for name in FEET:
        force, centre = recording.signals[name][frame, :3], recording.signals[name][frame, 6:9]
        if np.isfinite(centre).all():
            found += arrow(centre, centre + force / 686.7, 0.012, (0.90, 0.30, 0.12))
    return found


def charts(world: World, recording: Recording) -> Drawing:
    """Forces on the feet, solved well and by few sweeps."""
    told = {"sweeps and Newton's method": recording, f"{SWEEPS[0]} sweeps, motors as rows": swept(SWEEPS[0])}
    return below(
        *(
            chart(
                [Curve(foot, one.time[2:], press(one, foot)[2:]) for foot in FEET],
                title=f"Forces on the feet: {title}",
                x_label="time (s)",
                y_label="force (N)",
            )
            for title, one in told.items()
        )
    )
