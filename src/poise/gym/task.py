"""What is to be done, for n people at once: one batch of worlds, with what is seen, paid and ended in each of them."""

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
"""No number of an observation is greater."""
SPEED = 0.1
"""That joints' speeds are multiplied by in observations, to be of the size of the others; s."""


@dataclass
class Outcome:
    """How a step of n worlds went."""

    reward: Array
    """(n,)"""
    ended: Array
    """(n,) bool: the episode is over, and nothing can be earned any more."""
    cut: Array
    """(n,) bool: it is over, but might have gone on."""
    terms: dict[str, Array] = field(default_factory=dict)
    """What the reward is made of, (n,) each."""


class Task(ABC):
    """n worlds with a person each. Subclasses tell where they begin, what they pay, and when they are over.

    `step` takes actions (see `Joints`) for `frame_skip` steps of `dt` seconds; `observe` tells what is seen. `noise`
    is the most by which joints at the start are off, in rad and in rad/s.

    Chance comes from a generator for each world and only when it begins anew, so that a world does the same, to the
    bit, however many are beside it.
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
        """A generator for each world, to assign."""
        self.age = np.zeros(self.n, np.int64)
        """(n,) steps since the worlds began."""
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
        """From one action to the next; s."""
        return self.frame_skip * self.batch.dt

    @property
    def n_actions(self) -> int:
        """Numbers of an action."""
        return len(self.figure.joints)

    # ---- what a task is ----------------------------------------------------------------------------------------------

    @abstractmethod
    def start(self, which: Array, draws: Sequence[np.random.Generator]) -> tuple[Array, Array]:
        """(k, nq) and (k, nv) where some worlds begin; `draws` are their generators."""

    @abstractmethod
    def outcome(self, seen: Seen) -> Outcome:
        """What a step earned, and whether it was the last."""

    def prepare(self, actions: Array) -> None:
        """Take note of what is asked for in the step that comes, and set what else acts in it."""
        self.asked = actions

    def view(self, seen: Seen) -> list[Array]:
        """(n, …) what is seen beside the person's own body."""
        return []

    # ---- going on ----------------------------------------------------------------------------------------------------

    def reset(self, which: ArrayLike | None = None) -> None:
        """Let all worlds, or those of a mask, begin anew."""
        worlds = np.arange(self.n) if which is None else np.flatnonzero(which)
        if not len(worlds):
            return
        q, v = self.start(worlds, [self.rngs[i] for i in worlds])
        self.batch.reset(worlds, q=q, v=v)
        self.age[worlds] = 0
        self.seen = self._look()

    def step(self, actions: Any) -> Outcome:
        """Let actions (n, nv − 6) act. What is beyond ±1 counts as ±1; what is not finite is refused."""
        wanted = self._checked(actions)
        self.prepare(wanted)
        batch = self.batch
        self.goals = self.figure.joints.goals(batch.q, wanted)
        drive = batch.drive
        if drive is None:
            raise RuntimeError("the drive of the batch was taken away: the task needs its springs")
        np.asarray(drive.goal_q)[...] = self.goals
        batch.step(self.frame_skip)
        self.age += 1
        self.seen = self._look()
        return self._without_lost(self.outcome(self.seen))

    def observe(self) -> Array:
        """(n, k) float32: what is seen now, finite in any case."""
        parts = [*self._body(self.seen), *self.view(self.seen)]
        rows = np.concatenate([part.reshape(self.n, -1) for part in parts], axis=1).astype(np.float32)
        return np.clip(np.nan_to_num(rows, nan=0.0, posinf=BOUND, neginf=-BOUND), -BOUND, BOUND)

    def _body(self, seen: Seen) -> list[Array]:
        """What a person feels of the own body, from where it faces."""
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
        with np.errstate(all="ignore"):  # of a world that is lost, anything may come
            return self.figure.look(self.batch.q.copy(), self.batch.v.copy())

    def _without_lost(self, outcome: Outcome) -> Outcome:
        """Worlds that have diverged are over and earn nothing."""
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
        """(k, nq), (k, nv) standing people whose joints are a little off, by chance."""
        model, joint = self.figure.model, np.arange(self.figure.model.nv) >= ROOT
        chance = np.array([rng.uniform(-1.0, 1.0, (2, model.nv)) for rng in draws]) * (self.noise * joint)
        return displaced(model, np.tile(model.q_rest, (len(draws), 1)), chance[:, 0]), chance[:, 1]


def as_actions(actions: Any) -> Array:
    """Actions as float64, of whatever shape."""
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
