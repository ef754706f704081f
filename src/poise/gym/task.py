"""A task for n figures: one batch of worlds, with observation, reward and termination of each world."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.worlds import Batch
from poise.dynamics.state_queries import displaced
from poise.gym.figure import Figure, Seen
from poise.gym.joints import ROOT

Array = NDArray[Any]
BOUND = 100.0
"""Observations are clamped to ± this number."""
SPEED = 0.1
"""Scale of joint speeds in observations, so that they have the magnitude of the others; s."""


@dataclass
class Outcome:
    """Result of a step of n worlds."""

    reward: Array
    """(n,)"""
    ended: Array
    """(n,) bool: the episode has terminated."""
    cut: Array
    """(n,) bool: the episode was cut short (truncated)."""
    terms: dict[str, Array] = field(default_factory=dict)
    """Terms of the reward, (n,) each."""


class Task(ABC):
    """n worlds with one figure each. Subclasses define initial states, reward and termination.

    `step` applies actions (see `Joints`) for `frame_skip` steps of `dt` seconds; `observe` returns observations.
    `noise` bounds the random offsets of joints at the start, in rad and in rad/s.

    Each world draws random numbers from its own generator, and only at a reset. Its result therefore does not depend
    on the number of worlds, to the bit.
    """

    def __init__(
        self,
        n: int = 1,
        *,
        height: float = 1.75,
        mass: float = 70.0,
        dt: float = 1 / 120,
        frame_skip: int = 4,
        noise: float = 0.02,
        threads: int | None = None,
    ) -> None:
        self.figure = Figure(height, mass)
        self.noise = at_least("noise", noise, 0.0)
        self.frame_skip = whole("frame_skip", frame_skip)
        self.batch: Batch = self.figure.scene.build_batch(whole("num_envs", n), dt=dt, threads=threads)
        self.batch.drive = self.figure.joints.drive()
        self.rngs: list[np.random.Generator] = [np.random.default_rng() for _ in range(self.n)]
        """A generator for each world; assignable."""
        self.age = np.zeros(self.n, np.int64)
        """(n,) steps since the last reset."""
        self.asked = np.zeros((self.n, self.n_actions))
        """(n, nv − 6) actions of the last step, within ±1."""
        self.goals = np.tile(self.figure.model.q_rest, (self.n, 1))
        """(n, nq) goals of the springs in the last step."""
        self.seen: Seen = self._look()

    @property
    def n(self) -> int:
        """Worlds."""
        return self.batch.n

    @property
    def period(self) -> float:
        """Time from one action to the next; s."""
        return self.frame_skip * self.batch.dt

    @property
    def n_actions(self) -> int:
        """Size of an action."""
        return len(self.figure.joints)

    # ---- defined by subclasses ---------------------------------------------------------------------------------------

    @abstractmethod
    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """(k, nq) and (k, nv) initial states of some worlds; `draws` are their generators."""

    @abstractmethod
    def outcome(self, seen: Seen) -> Outcome:
        """Reward of a step, and whether the episode ends with it."""

    def prepare(self, actions: Array) -> None:
        """Prepare the next step with these actions: set other forces that act in it."""
        self.asked = actions

    def view(self, seen: Seen) -> list[Array]:
        """(n, …) observations besides those of the figure itself."""
        return []

    # ---- stepping ----------------------------------------------------------------------------------------------------

    def reset(self, which: ArrayLike | None = None) -> None:
        """Reset all worlds, or those of a mask."""
        worlds = np.arange(self.n) if which is None else np.flatnonzero(which)
        if not len(worlds):
            return
        q, v = self.start(worlds, [self.rngs[i] for i in worlds])
        self.batch.reset(worlds, q=q, v=v)
        self.age[worlds] = 0
        self.seen = self._look()

    def step(self, actions: Any) -> Outcome:
        """Apply actions (n, nv − 6). They are clamped to ±1; actions that are not finite raise ValueError."""
        wanted = self._checked(actions)
        self.prepare(wanted)
        batch = self.batch
        self.goals = self.figure.joints.goals(batch.q, wanted)
        drive = batch.drive
        if drive is None:
            raise RuntimeError("the drive of the batch was removed: the task needs its springs")
        np.asarray(drive.goal_q)[...] = self.goals
        batch.step(self.frame_skip)
        self.age += 1
        self.seen = self._look()
        return self._without_lost(self.outcome(self.seen))

    def observe(self) -> Array:
        """(n, k) float32 observations, always finite."""
        parts = [*self._body(self.seen), *self.view(self.seen)]
        rows = np.concatenate([part.reshape(self.n, -1) for part in parts], axis=1).astype(np.float32)
        return np.clip(np.nan_to_num(rows, nan=0.0, posinf=BOUND, neginf=-BOUND), -BOUND, BOUND)

    def _body(self, seen: Seen) -> list[Array]:
        """Observations of the figure's own body, in the axes of its heading."""
        figure, pelvis = seen.figure, seen.figure.pelvis
        root = seen.bodies.position[:, pelvis]
        return [
            root[:, 2:],
            seen.bodies.rotation[:, pelvis, 2],
            seen.ahead(seen.bodies.twist[:, pelvis, 3:]),
            seen.ahead(seen.bodies.twist[:, pelvis, :3]),
            figure.joints.values(seen.q),
            SPEED * seen.v[:, ROOT:],
            seen.ahead(seen.ends - root[:, None]),
            seen.ahead(seen.com - seen.feet),
            seen.ahead(seen.com_velocity),
        ]

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _look(self) -> Seen:
        with np.errstate(all="ignore"):  # the state of a diverged world may be anything
            return self.figure.look(self.batch.q.copy(), self.batch.v.copy())

    def _without_lost(self, outcome: Outcome) -> Outcome:
        """Episodes of diverged worlds terminate, with a reward of 0."""
        lost = self.batch.diverged | ~np.isfinite(outcome.reward)
        outcome.reward = np.where(lost, 0.0, outcome.reward)
        outcome.ended = outcome.ended | lost
        return outcome

    def _checked(self, actions: Any) -> Array:
        given = as_actions(actions)
        if given.shape != (self.n, self.n_actions):
            raise ValueError(f"actions have the shape {given.shape}; it must be ({self.n}, {self.n_actions})")
        if not np.isfinite(given).all():
            world, k = np.argwhere(~np.isfinite(given))[0].tolist()
            raise ValueError(f"actions[{world}, {k}] is {given[world, k]}; every action must be finite")
        return np.clip(given, -1.0, 1.0)

    def near_rest(self, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """(k, nq), (k, nv) the rest pose with small random offsets of joints and their speeds."""
        model, joint = self.figure.model, np.arange(self.figure.model.nv) >= ROOT
        chance = np.array([rng.uniform(-1.0, 1.0, (2, model.nv)) for rng in draws]) * (self.noise * joint)
        return displaced(model, np.tile(model.q_rest, (len(draws), 1)), chance[:, 0]), chance[:, 1]


def as_actions(actions: Any) -> Array:
    """Actions as float64, of any shape."""
    try:
        given = np.asarray(actions)
    except ValueError:
        raise ValueError(f"actions must be numbers, found {type(actions).__name__} of rows that differ") from None
    if given.dtype.kind not in "biuf":
        raise ValueError(f"actions must be numbers, found {type(actions).__name__} of {given.dtype}")
    return np.asarray(given, np.float64)


def whole(name: str, value: Any) -> int:
    """A whole number, 1 or more."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or found < 1:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, 1 or more")
    return found


def at_least(name: str, value: Any, least: float) -> float:
    """A finite number that is not less than the least."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number) or number < least:
        raise ValueError(f"{name} is {value!r}; it must be a finite number, {least:g} or more")
    return number
