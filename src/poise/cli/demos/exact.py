"""Joints follow exactly, however the body is pushed; those of a twin with plain PD control do not (KOK §8.3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import poise
from poise.characters import humanoid
from poise.control import Push, Reference, Throw, correction, gains
from poise.dynamics import difference, response
from poise.motion.rotations import quat_exp
from poise.sim import Recording, StateToAct, Targets, World
from poise.view import Curve, Drawing, chart

SECONDS, DT, SETTLE, LIFT, RATE = 3.0, 1 / 120, 0.2, 0.3, 0.8
BALL, SPEED, THROWN = 4.0, 6.0, 0.8
"""Mass (kg) and speed (m/s) of what is thrown at each chest, and when (s)."""
PUSH, PUSHED, LASTS = (60.0, -60.0, 40.0), 1.8, 0.3
"""Force on each right hand (N), when it comes and how long it lasts (s)."""
PLACES = {"exact": 0.0, "plain": 1.2}
"""Names and positions of the characters; m."""
MOMENTS = (0.4, 0.9, 1.05, 1.4, 2.05, 2.4)
Floats = NDArray[np.float64]


def scene() -> poise.Scene:
    """Two characters walk in place, held by the pelvis above the ground; the same ball and push act on both."""
    stage = poise.Scene(name="exact", dt=DT)
    stage.settings.camera = {"position": (4.3, -1.6, 2.1), "target": (0.2, 0.6, 1.25)}
    stage.add_ground()
    stage.settings.formulation = poise.Reduced(level="acceleration", integrator="midpoint")
    for name, y in PLACES.items():
        hero = stage.add(humanoid(), name=name, position=(0.0, y, LIFT), fixed=True)
        if name == "exact":
            hero.track(marching(name), by="accelerations", settle=SETTLE)
        else:
            stage.controllers.append((f"{name} control", partial(Plain, name)))
        ball = poise.sphere(0.11, mass=BALL, color=(0.87, 0.35, 0.2, 1.0))
        stage.add(ball, name=f"{name} ball", position=(1.2, y - 0.1, LIFT + 1.3))
        Throw(f"{name} ball", time=THROWN, at=f"{name}/torso", speed=SPEED).add_to(stage)
        Push(f"{name}/hand_r", time=PUSHED, duration=LASTS, force=PUSH).add_to(stage)
    # both have the same excluded pairs
    for first, second in list(stage.excluded_pairs):
        stage.excluded_pairs.append((first.replace("exact/", "plain/"), second.replace("exact/", "plain/")))
    return stage


def marching(name: str) -> Reference:
    """Periodic joint angles of walking in place."""
    solo = poise.Scene()
    solo.add(humanoid(), name=name, fixed=True)
    model = solo.compile()
    times = np.arange(0.0, SECONDS + 2.0 * DT, 0.5 * DT)
    q = np.tile(model.q_rest, (len(times), 1))
    for side, sign in (("l", 1.0), ("r", -1.0)):
        swing = sign * np.sin(2.0 * np.pi * RATE * times)
        for joint, turn in (("hip", -0.35 - 0.35 * swing), ("shoulder", 0.5 * swing)):
            q[:, model.q_slice(f"{joint}_{side}")] = [quat_exp((0.0, angle, 0.0)) for angle in turn]
        q[:, model.q_slice(f"knee_{side}")] = (0.7 + 0.5 * swing)[:, None]
        q[:, model.q_slice(f"elbow_{side}")] = (0.9 - 0.4 * swing)[:, None]
    return Reference((times, q), model)


class Plain:
    """Explicit PD torques with the gains of KOK eq. 22, times the effective inertia of each joint at rest."""

    def __init__(self, name: str) -> None:
        self.name, self.reference = name, marching(name)
        self.kp, self.kv = gains(2.0 * SETTLE)

    def bind(self, model: poise.Model, /) -> None:
        """Look up the character, and compute the effective inertia of its joints."""
        solo = self.reference.model
        self.model, (self.q, self.v) = model, slices(model, solo)
        self.felt = 1.0 / np.diag(response(solo, solo.q_rest, np.eye(solo.nv)))

    def first(self, state: poise.State) -> None:
        """Begin where the reference does."""
        begin = self.reference.coordinates(self.reference.model, state.time)
        state.q[self.q], state.v[self.v] = begin.q, begin.v

    def update(self, state: StateToAct, /) -> Targets:
        """Torques of the next step."""
        wanted = self.reference.coordinates(self.reference.model, state.time)
        off = difference(self.reference.model, state.q[self.q], wanted.q)
        tau = np.zeros(self.model.nv)
        tau[self.v] = self.felt * (self.kp * off + self.kv * (wanted.v - state.v[self.v]))
        return Targets(tau=tau)


def slices(model: poise.Model, solo: poise.Model) -> tuple[slice, slice]:
    """Indices of the coordinates and velocities of a character."""
    first = solo.joint_names[0]
    q, v = model.q_slice(first).start, model.v_slice(first).start
    return slice(q, q + solo.nq), slice(v, v + solo.nv)


def errors(recording: Recording, name: str) -> Floats:
    """(frames,) the largest error of all joints of a character; degrees."""
    reference = marching(name)
    solo = reference.model
    q = recording.q[:, slices(recording.model, solo)[0]]
    wanted = np.array([reference.coordinates(solo, time).q for time in recording.time])
    return np.asarray(np.degrees(np.abs(difference(solo, q, wanted)).max(axis=1)))


def tell(world: World, recording: Recording) -> dict[str, str]:
    """Errors of both: on their own, hit, pushed."""
    time, lines = recording.time, {}
    for name in PLACES:
        off = errors(recording, name)
        hit = next((e.time for e in recording.events if set(e.names) == {f"{name} ball", f"{name}/torso"}), PUSHED)
        parts = {"alone": time < hit, "hit": (time >= hit) & (time < PUSHED), "pushed": time >= PUSHED}
        lines[f"{name}, off by"] = ", ".join(f"{off[when].max():.2g}° {part}" for part, when in parts.items())
    torque = correction(recording, world.controllers["exact tracking"]).torque.max()
    return lines | {
        "ball": f"{BALL:g} kg at {SPEED:g} m/s, after {hit:.2f} s",
        "push": f"{np.linalg.norm(PUSH):.0f} N on a hand for {LASTS:g} s",
        "it took": f"{torque:.0f} N·m at most: nothing bounds the torques of who is exact",
    }


def charts(world: World, recording: Recording) -> Drawing:
    """Errors of both over time."""
    curves: list[Any] = [Curve(name, recording.time, errors(recording, name)) for name in PLACES]
    return chart(curves, title="Largest error of all joints", x_label="time (s)", y_label="error (degrees)")
