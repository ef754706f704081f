"""A person walks with an umbrella, which two motors hold upright independently of the hand (VON §5.5)."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.cli.demos.scenery import SEEN
from poise.constraints.softness import spring
from poise.control import Push, Reference, correction
from poise.dynamics import bodies
from poise.motion import Clip, retarget
from poise.motion.rotations import quat_exp, quat_from_matrix, quat_multiply
from poise.sim import Recording, StateToAct, Targets, World

SECONDS, SPEED = 5.0, 1.2
STRENGTH = {"legs": 300.0, "trunk": 100.0, "arms": 30.0}
"""Greatest torques; N·m."""
GUST, BLOWS, LASTS = (-18.0, 8.0, 0.0), 2.5, 0.5
"""Force of the wind (N), when it comes and how long it lasts (s)."""
STIFFNESS, DAMPING, LIMIT = 60.0, 4.0, 12.0
"""Of each of the two motors; N·m/rad, N·m·s/rad, N·m."""
GRIP = (0.0, -0.013, -0.09)
"""Where the hand holds it; m."""
RIM, RIBS = 0.48, 8
FOLLOW, DISTANCE, ABOVE = "hero", 4.2, 0.25
MOMENTS = (0.5, 1.5, 2.45, 2.75, 3.0, 4.5)


def scene() -> poise.Scene:
    """The walker, the umbrella, the wind."""
    stage = carried()
    stage.controllers.append(("upright", lambda: Upright("umbrella")))
    return stage


def carried() -> poise.Scene:
    """All of it but the two motors."""
    stage = poise.Scene(name="umbrella")
    stage.add_ground(friction=0.9)
    hero = stage.add(humanoid(), name="hero")
    model = stage.compile()
    reference = holding(walk(), model)
    hero.track(reference, strength=STRENGTH, give=0.1)
    begin = bodies(model, reference.coordinates(model, 0.0).q).rotation[model.body_index("hero/hand_r")]
    stage.ball("hand_r", umbrella(), name="umbrella", position=GRIP, quat_wxyz=quat_from_matrix(begin.T))
    Push("umbrella", time=BLOWS, duration=LASTS, force=GUST).add_to(stage)
    return stage


def walk() -> Clip:
    """The reference motion; the output is written with its skeleton."""
    return clips.walk(speed=SPEED).slice(0.0, SECONDS)


CORRECTED = walk


def holding(clip: Clip, model: poise.Model) -> Reference:
    """A walk with the right hand before the face."""
    times, q = retarget(clip, model)
    q[:, model.q_slice("shoulder_r")] = quat_multiply(quat_exp((0.0, 0.0, 0.55)), quat_exp((0.0, -0.4, 0.0)))
    q[:, model.q_slice("elbow_r")] = 2.1
    return Reference((times, q), model)


def umbrella() -> list[Any]:
    """A shaft through the hand, and a roof of gores in two colours that is only looked at."""
    wood = (0.36, 0.24, 0.16, 1.0)
    shapes: list[Any] = [
        poise.capsule(0.01, 0.80, position=(0.0, 0.0, 0.32), mass=0.25, color=wood, **SEEN),
        poise.capsule(0.014, 0.10, position=(0.0, 0.0, -0.03), mass=0.05, color=wood, **SEEN),
    ]
    for k in range(RIBS):
        color = (0.75, 0.18, 0.22, 1.0) if k % 2 else (0.93, 0.90, 0.84, 1.0)
        corners = [(0.0, 0.0, 0.70), (0.0, 0.0, 0.54)]
        for angle in (2.0 * pi * k / RIBS, 2.0 * pi * (k + 1) / RIBS):
            corners += [(r * cos(angle), r * sin(angle), z) for r, z in ((0.55 * RIM, 0.655), (RIM, 0.54))]
        shapes.append(poise.convex(corners, mass=0.04, color=color, **SEEN))
    return shapes


class Upright:
    """Two angular motors between a body and the world, about the axes x and y: VON's "pitch" and "bank"."""

    def __init__(self, body: str) -> None:
        self.body = body

    def bind(self, model: poise.Model, /) -> None:
        """Find the body."""
        self.model, self.number = model, model.body_index(self.body)

    def first(self, state: poise.State) -> None:
        """Leave the initial state of the world unchanged."""

    def update(self, state: StateToAct, /) -> Targets:
        """Two soft, bounded rows, implicit in the step."""
        soft = spring(STIFFNESS, DAMPING, state.dt)
        up = bodies(self.model, state.q).rotation[self.number, :, 2]
        tilt = np.cross((0.0, 0.0, 1.0), up)  # about x and y; sin of the angle

        def add(world: Any, rows: Any) -> None:
            for k in range(2):
                back = soft.velocity_target(tilt[k], state.dt)
                rows.add(id=900 + k, b=self.number, Jb=np.eye(6)[k], target=back, cfm=soft.cfm, lo=-LIMIT, hi=LIMIT)

        return Targets(rows=add)


def tilts(recording: Recording, body: str) -> Any:
    """(frames,) angle of a body from where it was at first, turns about the vertical aside; degrees."""
    number = recording.model.body_index(body)
    R = bodies(recording.model, recording.q).rotation[:, number]
    up = R[:, 2] @ R[0].T[:, 2]  # vertical component of the initially vertical axis
    return np.degrees(np.arccos(np.clip(up, -1.0, 1.0)))


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Tilts of the hand and of the umbrella, with the motors and without."""
    told = correction(recording, world.controllers["hero tracking"])
    hand, roof, time = tilts(recording, "hero/hand_r"), tilts(recording, "umbrella"), recording.time
    calm = time < BLOWS
    arm = [k for k, name in enumerate(told.joints) if name.endswith(("shoulder_r", "elbow_r", "wrist_r"))]
    late = time[roof > 2.0 * roof[calm].max()]
    return {
        "walk": f"the hand tilts by up to {hand[calm].max():.1f}°, the umbrella by {roof[calm].max():.1f}°",
        "gust": f"{np.linalg.norm(GUST):.0f} N for {LASTS:g} s: umbrella {roof.max():.0f}°, "
        f"arm off by {told.error_deg[:, arm].max():.0f}°",
        "recovery": f"as before {late[-1] - BLOWS - LASTS:.2f} s after the gust" if len(late) else "not needed",
        "without motors": f"{alone():.0f}° after 1 s",
    }


def alone() -> float:
    """How far an umbrella tilts in a second that only hangs in the hand; degrees."""
    return float(tilts(carried().build().run(1.0, record=()), "umbrella")[-1])
