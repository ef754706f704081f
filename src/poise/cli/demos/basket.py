"""A person walks with a basket, is hit by a ball, and walks on (VON §5.5: motors of limited strength)."""

from __future__ import annotations

import numpy as np

import poise
from poise.characters import clips, humanoid
from poise.control import Reference, Throw, correction
from poise.motion import Clip, retarget
from poise.motion.rotations import quat_exp, quat_multiply
from poise.sim import Recording, World

SECONDS, SPEED = 6.0, 1.3
STRENGTH = {"legs": 300.0, "trunk": 60.0, "arms": 16.0}
"""Greatest torques; N·m."""
GIVE = 0.1
"""Compliance of tracking: error at which joints reach their torque limits; large for a relaxed walker; rad."""
ELBOW = 1.25
"""How far it is bent to carry; rad."""
BALL, TEE = 5.0, (5.6, 0.9, 1.2)
"""Mass of the ball (kg), and from where it is thrown (m)."""
THROWN, FLIGHT = 2.25, 0.2
"""When it is thrown, and how long it flies; s."""
FOLLOW = "hero"
MOMENTS = (1.0, 2.35, 2.5, 2.62, 2.9, 4.0)


def scene() -> poise.Scene:
    """The walker, the basket, the ball."""
    stage = poise.Scene(name="basket")
    stage.add_ground(friction=0.9)
    hero = stage.add(humanoid(), name="hero")
    reference = carrying(clips.walk(speed=SPEED), stage.compile())
    hero.track(reference, strength=STRENGTH, give=GIVE)
    hang_basket(stage)
    throw_ball(stage, reference)
    return stage


def walk() -> Clip:
    """The reference motion; the output is written with its skeleton."""
    return clips.walk(speed=SPEED).slice(0.0, SECONDS)


CORRECTED = walk


def carrying(clip: Clip, model: poise.Model) -> Reference:
    """A walk, round after round, with the right forearm held out for a basket."""
    times, q = retarget(clip, model)
    q[:, model.q_slice("shoulder_r")] = quat_multiply(quat_exp((-0.35, 0.0, 0.0)), quat_exp((0.0, -0.15, 0.0)))
    q[:, model.q_slice("elbow_r")] = ELBOW
    return Reference((times, q), model, loop=True)


def hang_basket(stage: poise.Scene) -> None:
    """A basket with a handle, hinged in the right hand with some friction."""
    straw = {"color": (0.80, 0.62, 0.36, 1.0), "density": 300.0}
    across = (0.7071067811865476, 0.0, 0.7071067811865476, 0.0)
    handle = [poise.capsule(0.008, 0.2, position=(x, 0.0, -0.1), **straw) for x in (-0.13, 0.13)]
    handle.append(poise.capsule(0.01, 0.26, quat_wxyz=across, **straw))
    shell = poise.box(0.3, 0.2, 0.15, mass=1.5, position=(0.0, 0.0, -0.27), color=straw["color"])
    grip, level = (0.0, -0.013, -0.09), tuple(quat_exp((0.0, ELBOW + 0.15, 0.0)).tolist())
    stage.hinge("hand_r", [*handle, shell], axis="y", name="basket", position=grip, quat_wxyz=level, friction=0.05)
    stage.excluded_pairs.append(("hero/forearm_r", "basket"))  # it hangs below the wrist


def throw_ball(stage: poise.Scene, reference: Reference) -> None:
    """Throw the ball from beside the path, such that it hits the chest of the walker."""
    x, y, z = TEE
    stage.add(poise.cylinder(0.06, z, color=(0.5, 0.52, 0.55, 1.0)), position=(x, y, z / 2), fixed=True, name="tee")
    start = np.array((x, y, z + 0.11))
    stage.add(poise.sphere(0.11, mass=BALL, color=(0.87, 0.35, 0.2, 1.0)), position=tuple(start), name="ball")
    model = reference.model
    then = poise.dynamics.bodies(model, reference.coordinates(model, THROWN + FLIGHT).q)
    chest = then.position[model.body_index("hero/torso")] + (0.12, 0.04, 0.25)
    velocity = (chest - start) / FLIGHT + (0.0, 0.0, 0.5 * 9.81 * FLIGHT)
    Throw("ball", time=THROWN, velocity=tuple(velocity.tolist())).add_to(stage)


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Lines of the result: the walk, the impact, the recovery."""
    told = correction(recording, world.controllers["hero tracking"])
    hit = next((e.time for e in recording.events if set(e.names) == {"ball", "hero/torso"}), None)
    if hit is None:
        return {"hit": "the ball has missed"}
    time, worst = recording.time, told.error_deg.max(axis=1)
    before = (time > hit - 1.0) & (time < hit - 0.02)
    usual = float(worst[before].max())
    thrown = int(told.error_deg.max(axis=0).argmax())
    late = time[(time >= hit) & (worst > usual + 2.0)]
    force = np.linalg.norm(told.help_force, axis=1)
    return {
        "walk": f"joints off by {told.error_deg[before].mean():.1f}° on the mean, {usual:.1f}° at most",
        "hit": f"{BALL:g} kg at {_speed(recording, 'ball', hit):.0f} m/s, after {hit:.2f} s",
        "gives way": f"{told.joints[thrown].rpartition('/')[2]} by {worst[time >= hit].max():.0f}°",
        "recovery": f"as before after {late[-1] - hit:.2f} s" if len(late) else "at once",
        "external help": f"{force.mean():.0f} N on the mean, {100 * force.mean() / told.weight:.0f} % of the weight",
    }


def _speed(recording: Recording, body: str, time: float) -> float:
    """Just before a time; m/s."""
    k = int(np.searchsorted(recording.time, time - 1e-9)) - 1
    seen = poise.dynamics.bodies(recording.model, recording.q[k], recording.v[k])
    return float(np.linalg.norm(seen.twist[recording.model.body_index(body), 3:]))
