"""Scenarios: initial states, thrown bodies and pushes at given times.

Each is a factory of controllers for `Scene.controllers`, with one controller for each world. The controllers depend
only on state and time, so that restoring a state needs no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.state_queries import bodies
from poise.model.errors import SceneError
from poise.model.model import Model
from poise.model.scene import Scene
from poise.model.state import State
from poise.motion.rotations import quat_to_matrix
from poise.sim.controllers import StateToAct, Targets

Floats = NDArray[np.float64]
Vector = tuple[float, float, float]
_STILL: Vector = (0.0, 0.0, 0.0)
#: tolerance of times, as a share of a step
_ROUND = 1e-6


@dataclass(frozen=True)
class Start:
    """Initial state of worlds: coordinates and velocities of the model, then those of single free bodies.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> Start(velocities={"ball": ((1.0, 0.0, 0.0), (0.0, 0.0, 2.0))}).add_to(scene)
    >>> scene.build().v.tolist()
    [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]
    """

    q: tuple[float, ...] | None = None
    """(nq,) and v (nv,), as in `Keyframe`."""
    v: tuple[float, ...] | None = None
    time: float = 0.0
    """s."""
    velocities: Mapping[str, tuple[Vector, Vector]] = field(default_factory=dict)
    """Velocity of the origin and angular velocity of bodies, both in world axes; m/s, rad/s."""

    def add_to(self, scene: Scene) -> None:
        """Add this initial state to a scene."""
        scene.controllers.append(("start", self))

    def __call__(self) -> _Starting:
        """A controller for one world."""
        return _Starting(self)


class _Starting:
    """Controller that sets the initial state."""

    acts_at_start_only = True

    def __init__(self, start: Start) -> None:
        self.start = start

    def bind(self, model: Model, /) -> None:
        """Find the bodies."""
        self.model = model
        self.free = {name: free_joint(model, name) for name in self.start.velocities}

    def first(self, state: State) -> None:
        """Write the initial state."""
        start, model = self.start, self.model
        if start.q is not None:
            state.q[...] = start.q
        if start.v is not None:
            state.v[...] = start.v
        if start.time:
            state.time = start.time
        for name, (velocity, spin) in start.velocities.items():
            q, v = int(model.joint_q_start[self.free[name]]), int(model.joint_v_start[self.free[name]])
            state.v[v : v + 3] = velocity
            state.v[v + 3 : v + 6] = quat_to_matrix(state.q[q + 3 : q + 7]).T @ np.asarray(spin)

    def update(self, state: StateToAct, /) -> None:
        """Does nothing."""


@dataclass(frozen=True)
class Throw:
    """Throws a free body and its subtree at a given time; until then the body stays in place.

    Gravity is compensated before the throw. Then the body gets `velocity` (m/s), or is thrown `at` another body's
    current position with `speed` (m/s), and gets `angular_velocity` (rad/s), both in world axes. Forces produce these
    velocities within one step: exactly at velocity level; at acceleration level, with an error that grows with the
    rotation in that step.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 2))
    >>> Throw("ball", time=0.5, velocity=(3.0, 0.0, 0.0)).add_to(scene)
    >>> world = scene.build(dt=0.01)
    >>> world.step(50)
    >>> world.body("ball").position.round(6).tolist()
    [0.0, 0.0, 2.0]
    >>> world.step()
    >>> world.v[:3].round(6).tolist()
    [3.0, 0.0, 0.0]
    """

    body: str
    time: float = 0.0
    velocity: Vector | None = None
    angular_velocity: Vector = _STILL
    at: str | None = None
    speed: float | None = None

    def __post_init__(self) -> None:
        place = f'throw of "{self.body}"'
        if (self.velocity is None) == (self.at is None):
            raise SceneError("needs a velocity, or a body to be thrown at, and not both", field=place)
        if (self.at is None) != (self.speed is None):
            raise SceneError('"at" and "speed" belong together', field=place)
        if self.speed is not None and not (isfinite(self.speed) and self.speed > 0.0):
            raise SceneError(f"must be more than 0, found {self.speed}", field=f"{place}: speed")

    def add_to(self, scene: Scene) -> None:
        """Add this throw to a scene."""
        scene.controllers.append((_free_name(scene, f"throw {self.body}"), self))

    def __call__(self) -> _Throwing:
        """A controller for one world."""
        return _Throwing(self)


class _Throwing:
    """Controller that compensates a tree's weight, and throws it within one step."""

    def __init__(self, throw: Throw) -> None:
        self.throw = throw

    def bind(self, model: Model, /) -> None:
        """Look up the thrown bodies and their target."""
        joint = free_joint(model, self.throw.body)
        self.model = model
        root = int(model.body_link[model.joint_body[joint]])
        carried = [int(link) >= 0 and int(model.link_root[link]) == root for link in model.body_link]
        self.thrown = np.flatnonzero(carried)
        self.target = None if self.throw.at is None else model.body_index(self.throw.at)

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """Compensation of weight before the throw; the forces of the throw in its step."""
        late = (state.time - self.throw.time) / state.dt
        if late >= 1.0 - _ROUND:
            return None
        model, chosen = self.model, self.thrown
        place = bodies(model, state.q, state.v)
        arms = np.einsum("nij,nj->ni", place.rotation, model.body_com)
        wanted = np.zeros((model.n_bodies, 3))
        torque = np.zeros((model.n_bodies, 3))
        if late > -_ROUND:
            wanted[chosen], torque[chosen] = self._flight(place, arms, state.dt)
        forces = np.zeros((model.n_bodies, 6))
        push = model.body_mass[chosen, None] * (wanted[chosen] - model.gravity)
        forces[chosen, 3:] = push
        forces[chosen, :3] = torque[chosen] + np.cross(arms[chosen], push)
        return Targets(forces=forces)

    def _flight(self, place: Any, arms: Floats, dt: float) -> tuple[Floats, Floats]:
        """(n, 3) accelerations of the centres of mass, and moments about them, that yield the speeds in a step."""
        model, chosen = self.model, self.thrown
        centres = place.position + arms
        masses = model.body_mass[chosen]
        middle = masses @ centres[chosen] / masses.sum()
        velocity, spin = np.asarray(self.throw.velocity or _STILL), np.asarray(self.throw.angular_velocity)
        if self.target is not None and self.throw.speed is not None:
            away = centres[self.target] - middle
            duration = max(float(np.linalg.norm(away)) / self.throw.speed, dt)
            velocity = away / duration - 0.5 * model.gravity * duration
        turning = place.twist[chosen, :3]
        now = place.twist[chosen, 3:] + np.cross(turning, arms[chosen])
        gain = velocity + np.cross(spin, centres[chosen] - middle) - now
        inertia = np.array([_matrix(model.body_inertia[b]) for b in chosen])
        R = place.rotation[chosen]
        moments = np.einsum("nij,njk,nlk,nl->ni", R, inertia, R, spin - turning)
        return gain / dt, moments / dt


def _matrix(packed: Floats) -> Floats:
    """(3, 3) from (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = packed
    return np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))


@dataclass(frozen=True)
class Push:
    """A force (N) at the centre of mass of a body and a torque (N·m), in world axes, for a duration.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> Push("ball", time=0.1, duration=0.25, force=(8.0, 0.0, 0.0)).add_to(scene)
    >>> world = scene.build(dt=0.1)
    >>> world.step(5)
    >>> float(world.v[0].round(9))
    1.0
    """

    body: str
    time: float = 0.0
    """Start; s."""
    duration: float = 0.1
    """s."""
    force: Vector = _STILL
    torque: Vector = _STILL

    def add_to(self, scene: Scene) -> None:
        """Add this push to a scene."""
        scene.controllers.append((_free_name(scene, f"push {self.body}"), self))

    def __call__(self) -> _Pushing:
        """A controller for one world."""
        return _Pushing(self)


class _Pushing:
    """Controller of a push; each step applies the share that overlaps the push, so that the impulse is exact."""

    def __init__(self, push: Push) -> None:
        self.push = push

    def bind(self, model: Model, /) -> None:
        """Find the body."""
        self.model, self.body = model, model.body_index(self.push.body)

    def first(self, state: State) -> None:
        """Leave the initial state of a world unchanged."""

    def update(self, state: StateToAct, /) -> Targets | None:
        """Force and torque of the coming step."""
        push = self.push
        share = (min(push.time + push.duration, state.time + state.dt) - max(push.time, state.time)) / state.dt
        if share <= 0.0:
            return None
        place = bodies(self.model, state.q)
        force, arm = np.asarray(push.force) * share, place.rotation[self.body] @ self.model.body_com[self.body]
        forces = np.zeros((self.model.n_bodies, 6))
        forces[self.body] = np.concatenate((np.asarray(push.torque) * share + np.cross(arm, force), force))
        return Targets(forces=forces)


def free_joint(model: Model, body: str) -> int:
    """Index of a body's free joint; raises if it has none."""
    b = model.body_index(body)
    found = [j for j in range(model.n_joints) if int(model.joint_body[j]) == b and model.joint_kinds[j] == "free"]
    if not found:
        raise SceneError("only a body with a free joint can have a velocity or be thrown", field=f'body "{body}"')
    return found[0]


def _free_name(scene: Scene, words: str) -> str:
    stem = words.replace("/", " ")  # names of controllers have no slash
    taken = {name for name, _ in scene.controllers}
    number, name = 1, stem
    while name in taken:
        number += 1
        name = f"{stem} {number}"
    return name
