"""A person who is pushed keeps the torso within 5° of upright: hips first, knees as soon as those can do no more (LIU).

python examples/upright_torso.py
"""

from pathlib import Path

import numpy as np

import poise
from poise.control import Balance, DeadZone, SecondaryTarget
from poise.view import Curve, chart

PUSH, PUSHED, SECONDS = (160.0, 0.0, 0.0), 0.2, 0.9
HIPS = 3.0
"""Greatest torque that hips add for the torso; N·m."""


def stand(zone: DeadZone | None) -> dict[str, np.ndarray]:
    """Lean of the torso (degrees) over time, and what a dead zone did about it, of a person who balances."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    world = scene.build(dt=1 / 240)
    world.add_controller(Balance())
    if zone is not None:
        world.add_controller(zone)
    model, told = world.model, []
    torso, hip, knee = model.body_index("torso"), model.v_slice("hip_l"), model.v_slice("knee_l")
    while world.time < SECONDS:
        if world.time < PUSHED:
            world.apply_force("hero/torso", PUSH)
        world.step()
        up = poise.dynamics.bodies(model, world.q).rotation[torso, 2, 2]
        torques = np.zeros(model.nv) if zone is None or zone.reading is None else zone.reading.torque
        lean = np.degrees(np.arccos(min(1.0, up)))
        told.append((world.time, lean, np.abs(torques[hip]).max(), np.abs(torques[knee]).max()))
    return dict(zip(("time", "lean", "hip", "knee"), np.array(told).T, strict=True)) | {"q": world.q.copy()}


def main(path: str | Path = "upright_torso.svg") -> dict[str, float]:
    hips, knees = SecondaryTarget(("hip_l", "hip_r"), torque=HIPS), SecondaryTarget(("knee_l", "knee_r"))
    kept = stand(DeadZone("torso", hips, fallbacks=knees, within_deg=5.0))
    free = stand(None)
    edge = np.full(2, 5.0), np.array((0.0, SECONDS))
    leans = chart(
        [
            Curve("balance alone", free["time"], free["lean"]),
            Curve("with a dead zone", kept["time"], kept["lean"]),
            Curve("its edge", edge[1], edge[0]),
        ],
        title="The torso of a person pushed with 160 N for 0.2 s",
        x_label="time (s)",
        y_label="lean (degrees)",
    )
    torques = chart(
        [Curve("left hip", kept["time"], kept["hip"]), Curve("left knee", kept["time"], kept["knee"])],
        title="Knees help as soon as hips are at their limit of 3 N·m",
        x_label="time (s)",
        y_label="torque (N·m)",
    )
    poise.view.below(leans, torques).save(path)
    first = int(np.argmax(kept["knee"] > 0.0))
    told = {
        "lean with": float(kept["lean"].max()),
        "lean without": float(free["lean"].max()),
        "hip": float(kept["hip"].max()),
        "knee": float(kept["knee"].max()),
        "hip when knees come in": float(kept["hip"][first]),
    }
    for name, value in told.items():
        print(f"{name:24s} {value:7.2f}")
    return told


if __name__ == "__main__":
    main()
