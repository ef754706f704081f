"""A pushed character keeps its torso within 5° of upright, by its hips, and by its knees if those saturate (LIU)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.characters import clips, humanoid
from poise.control import DeadZone, Push, SecondaryTarget
from poise.dynamics import bodies
from poise.sim import Recording, World
from poise.view import Curve, Drawing, below, chart

SECONDS = 3.0
PUSH, PUSHED, LASTS = (-125.0, 0.0, 0.0), 0.3, 0.2
"""Force on each torso (N), when it comes and how long it lasts (s)."""
WITHIN, ONSET = 5.0, 1.0
"""The dead zone, and the onset of the spring beyond it; degrees."""
STRENGTH = {"legs": 250.0, "trunk": 250.0, "arms": 40.0}
"""Greatest torques of both; N·m."""
HIPS, KNEES = 80.0, 150.0
"""Greatest torques that joints add for the torso; N·m."""
PLACES = {"kept": 0.0, "free": 1.2}
"""The character with a dead zone, the one that balances without; their positions (m)."""
MOMENTS = (0.25, 0.5, 0.8, 1.25, 1.75, 3.0)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """Two characters that balance, with the same push."""
    stage = poise.Scene(name="torso", dt=1 / 120)
    stage.settings.camera = {"position": (2.6, -3.3, 1.5), "target": (0.15, 0.6, 0.9)}
    stage.add_ground()
    person = humanoid(height=1.75, mass=70.0)
    for name, y in PLACES.items():
        stage.add(person, name=name, position=(0.0, y, 0.0)).track(
            clips.stand(person), root="balanced", strength=STRENGTH
        )
        Push(f"{name}/torso", time=PUSHED, duration=LASTS, force=PUSH).add_to(stage)
    stage.controllers.append(("zone", zone))
    return stage


def zone() -> DeadZone:
    """Keeps the torso of one of them upright, by hips first, then by knees."""
    hips = SecondaryTarget(("kept/hip_l", "kept/hip_r"), torque=HIPS)
    knees = SecondaryTarget(("kept/knee_l", "kept/knee_r"), torque=KNEES)
    return DeadZone("kept/torso", hips, fallbacks=knees, within_deg=WITHIN, onset_deg=ONSET)


def signals(world: World) -> dict[str, Callable[[Any], float]]:
    """Signals: torques of the zone at a hip and a knee; N·m."""
    model = world.model

    def torque(joint: str) -> Callable[[Any], float]:
        own = model.v_slice(joint)

        def read(world: Any) -> float:
            reading = world.controllers["zone"].reading
            return 0.0 if reading is None else float(np.abs(reading.torque[own]).max())

        return read

    return {"hip": torque("kept/hip_l"), "knee": torque("kept/knee_l")}


def lean(recording: Recording, name: str) -> Floats:
    """(frames,) of a torso; degrees."""
    up = bodies(recording.model, recording.q).rotation[:, recording.model.body_index(f"{name}/torso"), 2, 2]
    return np.asarray(np.degrees(np.arccos(np.clip(up, -1.0, 1.0))))


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Leans of both, and torques of joints."""
    hip, knee = recording.signals["hip"], recording.signals["knee"]
    kept, free = lean(recording, "kept"), lean(recording, "free")
    share = float((hip > 0.0).mean())
    return {
        "push": f"{np.linalg.norm(PUSH):.0f} N on each torso for {LASTS:g} s",
        "balance alone": f"the torso leans by {free.max():.1f}°, {free[-1]:.1f}° at the end",
        "with a dead zone": f"by {kept.max():.1f}°, {kept[-1]:.1f}° at the end",
        "hips": f"add {hip.max():.1f} N·m at most, in {100.0 * share:.0f} % of the steps, nothing in the others",
        "knees": f"add {knee.max():.1f} N·m at most" if knee.any() else "are not called",
    }


def charts(world: World, recording: Recording) -> Drawing:
    """Leans of both, and torques of the zone."""
    time = recording.time
    leans = [
        Curve("balance alone", time, lean(recording, "free")),
        Curve("with a dead zone", time, lean(recording, "kept")),
        Curve("its edge", time[[0, -1]], np.full(2, WITHIN), dashed=True, color="#999999"),
    ]
    torques = [Curve("left hip", time, recording.signals["hip"]), Curve("left knee", time, recording.signals["knee"])]
    return below(
        chart(leans, title="Torsos of two who are pushed", x_label="time (s)", y_label="lean (degrees)"),
        chart(torques, title="What the zone adds", x_label="time (s)", y_label="torque (N·m)"),
    )
