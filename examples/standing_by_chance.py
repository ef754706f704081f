"""MPPI balance: a person under pushes from all sides stays on both feet by joint torques alone.

Ten pushes at the chest in half a minute each move the capture point four fifths of the way to the edge of the support:
beyond the edge, only a step would help. 24 times a second, 96 random plans of 0.6 s are rolled out in a batch of
worlds, and their weighted mean is the next plan. The controller has no information about future pushes.

python examples/standing_by_chance.py [seconds] [pushes] [film.gif]
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.batch.mppi import SamplingControl
from poise.batch.rollouts import Rollouts
from poise.control.support_polygon import edge_distance, hull, sole_points
from poise.dynamics import Drive

Array = NDArray[Any]
DT, STEP = 1 / 240, 1 / 60
"""Steps of the world, and of the rollouts; s."""
PLANS = {"horizon": 0.6, "knots": 5, "rate": 24.0, "every": 4}
SAMPLES = 96
PUSHED, SHARE = 0.1, 0.8
"""Duration of a push (s), and its displacement of the capture point over the distance to the edge of the support."""
STIFFNESS = {"ankle": 500, "knee": 600, "hip": 600, "spine": 600, "neck": 60, "shoulder": 60, "elbow": 30, "wrist": 5}
"""Of joints; N·m/rad."""
DAMPING = 0.12
"""Of the stiffness; s."""
CHANNELS: dict[str, tuple[float, dict[str, tuple[float, ...]]]] = {
    "left ankle bends": (0.15, {"ankle_l": (1, 0)}),
    "right ankle bends": (0.15, {"ankle_r": (1, 0)}),
    "ankles roll": (0.12, {"ankle_l": (0, -1), "ankle_r": (0, 1)}),
    "knees bend": (0.1, {"knee_l": (1,), "knee_r": (1,)}),
    "hips bend": (0.15, {"hip_l": (0, 1, 0), "hip_r": (0, 1, 0)}),
    "left hip rolls": (0.1, {"hip_l": (1, 0, 0)}),
    "right hip rolls": (0.1, {"hip_r": (1, 0, 0)}),
    "spine bends": (0.1, {"spine": (0, 1, 0)}),
    "spine rolls": (0.1, {"spine": (1, 0, 0)}),
    "arms swing": (0.3, {"shoulder_l": (0, 1, 0), "shoulder_r": (0, 1, 0)}),
    "arms roll": (0.3, {"shoulder_l": (1, 0, 0), "shoulder_r": (1, 0, 0)}),
    "arms spread": (0.3, {"shoulder_l": (1, 0, 0), "shoulder_r": (-1, 0, 0)}),
}
"""The control channels: size of the noise of joint targets (rad), and their joints."""


def person() -> poise.Scene:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.humanoid(height=1.75, mass=70.0), name="hero")
    return scene


def tone(model: poise.Model) -> Drive:
    """Springs and dampers of the joints around the pose of rest; none of the root."""
    gain = np.zeros(model.nv)
    for joint in model.joint_names[1:]:
        gain[model.v_slice(joint)] = STIFFNESS[joint.removeprefix("hero/").split("_")[0]]
    return Drive(gain, DAMPING * gain, model.q_rest)


def channels(model: poise.Model) -> tuple[Array, Array]:
    """(k, nv) joint targets of each control, and (k,) size of its noise."""
    table = np.zeros((len(CHANNELS), model.nv))
    for row, (_, joints) in zip(table, CHANNELS.values(), strict=True):
        for joint, change in joints.items():
            row[model.v_slice(f"hero/{joint}")] = change
    return table, np.array([spread for spread, _ in CHANNELS.values()])


class Standing:
    """The cost of leaving the stance: capture point over the middle, trunk upright, feet flat and in place."""

    def __init__(self, model: poise.Model) -> None:
        self.feet = [model.body_index(f"hero/foot_{side}") for side in "lr"]
        self.trunk = [model.body_index(f"hero/{name}") for name in ("pelvis", "torso")]
        self.places = poise.dynamics.bodies(model, model.q_rest).position[self.feet]
        self.middle = self.support(model, model.q_rest).mean(axis=0)
        self.height = float(poise.dynamics.momentum(model, model.q_rest, np.zeros(model.nv)).com[2])

    def support(self, model: poise.Model, q: Array) -> Array:
        """(k, 2) corners of the support polygon of the soles: points within 2 cm of the lowest carry; m."""
        place = poise.dynamics.bodies(model, q)
        soles = [place.position[foot] + sole_points(model, foot) @ place.rotation[foot].T for foot in self.feet]
        points = np.concatenate(soles)
        return hull(points[points[:, 2] <= points[:, 2].min() + 0.02, :2])

    def __call__(self, seen: Rollouts) -> Array:
        """(moments, n) of each moment."""
        turned, place = seen.bodies.rotation, seen.bodies.position
        moved = place[..., self.feet, :] - self.places
        joints = seen.q[..., 7:] - seen.model.q_rest[7:]
        reach = np.array((0.12, 0.15))  # from the middle to the edges of the support, about
        cost = (
            10.0 * (((seen.capture_point - self.middle) / reach) ** 2).sum(-1)
            + 3.0 * (((seen.com[..., :2] - self.middle) / reach) ** 2).sum(-1)
            + 100.0 * (seen.com[..., 2] - self.height) ** 2
            + 20.0 * (1.0 - turned[..., self.trunk, 2, 2]).sum(-1)
            + 10.0 * (1.0 - turned[..., self.trunk, 0, 0]).sum(-1)
            + 300.0 * (1.0 - turned[..., self.feet, 2, 2]).sum(-1)
            + 1500.0 * (moved**2).sum((-1, -2))
            + 0.3 * (joints**2).sum(-1)
            + 0.01 * (seen.v[..., 6:] ** 2).sum(-1)
        )
        cost[-1] *= 5.0  # the last state decides what follows
        return np.asarray(cost)


class Pushes:
    """Pushes at the chest, at random times and from random sides, of a share of what the present stance can absorb."""

    def __init__(self, world: poise.World, standing: Standing, times: Array, angles: Array) -> None:
        self.times, self.angles, self.standing = times, angles, standing
        self.forces: dict[int, Array] = {}
        world.before_step(self.push)

    def push(self, world: poise.World) -> None:
        """Before a step: push at the planned times."""
        for k in np.flatnonzero(np.abs(world.time - self.times - 0.5 * PUSHED) < 0.5 * PUSHED).tolist():
            if k not in self.forces:
                self.forces[k] = self.force(world, self.angles[k])
            world.apply_force("hero/torso", self.forces[k])

    def force(self, world: poise.World, angle: float) -> Array:
        """(3,) the force that moves the capture point by the given share; N."""
        way = np.array((np.cos(angle), np.sin(angle), 0.0))
        whole = poise.dynamics.momentum(world.model, world.q, world.v)
        omega = np.sqrt(9.81 / whole.com[2])
        ahead = (whole.com + whole.linear / whole.mass / omega)[:2]
        distance = edge_distance(ahead, self.standing.support(world.model, world.q), (way[0], way[1]))
        return np.asarray(SHARE * distance * omega * whole.mass / PUSHED * way)


def torque(world: poise.World) -> float:
    """The largest torque of all joints; N·m."""
    drive = world.drive
    if drive is None:
        return 0.0
    error = poise.dynamics.difference(world.model, world.q, drive.goal_q)
    return float(np.abs(np.asarray(drive.gain_p) * error - np.asarray(drive.gain_d) * world.v).max())


def main(
    seconds: float = 30.0, pushes: int = 10, film: str | Path | None = None, *, seed: int = 0, samples: int = SAMPLES
) -> dict[str, float]:
    scene = person()
    world, batch = scene.build(dt=DT), scene.build_batch(samples, dt=STEP)
    standing = Standing(world.model)
    table, spread = channels(world.model)
    control = SamplingControl(batch, standing, table, spread=spread, drive=tone(world.model), seed=seed, **PLANS)
    world.add_controller(control, name="chance")
    rng = np.random.default_rng(seed)
    gap = (seconds - 2.0) / max(pushes, 1)
    times = 1.0 + gap * (np.arange(pushes) + 0.2 * rng.uniform(size=pushes))
    shoves = Pushes(world, standing, times, rng.uniform(0.0, 2.0 * np.pi, pushes))
    signals = {
        "head": lambda world: world.body("hero/head").position[2],
        "feet": lambda world: [world.body(f"hero/foot_{side}").position for side in "lr"],
        "torque": torque,
    }
    control.plan(world.state)  # compile, once for this machine
    wall, processor = time.perf_counter(), time.process_time()
    seen = world.run(seconds, every=8, record=(), signals=signals)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor

    told = {
        "pushes": float(len(shoves.forces)),
        "least push (N)": min((float(np.linalg.norm(force)) for force in shoves.forces.values()), default=0.0),
        "hardest push (N)": max((float(np.linalg.norm(force)) for force in shoves.forces.values()), default=0.0),
        "lowest head (m)": float(seen.signals["head"].min()),
        "feet moved by (m)": float(np.linalg.norm(seen.signals["feet"] - standing.places, axis=-1).max()),
        "greatest torque (N·m)": float(seen.signals["torque"].max()),
        "wall time over time": wall / seconds,
        "processor time over time": processor / seconds,
    }
    for what, number in told.items():
        print(f"{what:26s} {number:8.3f}")
    if film is not None:
        seen.save(film)
    return told


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((float, int, str), sys.argv[1:], strict=False)))  # type: ignore[operator]
