"""Tasks as environments of Gymnasium: one world, or all worlds of a batch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from poise.gym.imitate import Imitate
from poise.gym.stand import Stand
from poise.gym.task import BOUND, Task, as_actions, whole
from poise.gym.walk import Walk
from poise.view.render import Painter
from poise.view.render_camera import Camera

Array = NDArray[Any]
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}
EYE = (1.9, -2.9, 0.5)
"""Distance from the target point to the camera, over the height of the target."""
MIDDLE = 1.15
"""Height of the target point, over that of the hips: raised hands and feet are both in the picture."""


def _spaces(task: Task) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Observation and action space of one world."""
    seen = gymnasium.spaces.Box(-BOUND, BOUND, (task.observe().shape[1],), np.float32)
    return seen, gymnasium.spaces.Box(-1.0, 1.0, (task.n_actions,), np.float32)


def _checked_mode(mode: Any) -> str | None:
    if mode not in (None, *METADATA["render_modes"]):
        raise ValueError(f'render_mode is {mode!r}; it must be "rgb_array" or None')
    return None if mode is None else str(mode)


def _checked_seed(seed: Any) -> int:
    try:
        found = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        found = -1
    if found < 0:
        raise ValueError(f"seed is {seed!r}; it must be a whole number, 0 or more")
    return found


class _Pictures:
    """Renders the figures of a task, with a camera that follows them."""

    def __init__(self, task: Task, size: tuple[int, int]) -> None:
        self._painter = Painter(task.figure.model, size)
        self._hips, self._middle = task.figure.hips, MIDDLE * task.figure.hips

    def of(self, q: Array) -> Array:
        """(height, width, 3) picture of one figure."""
        leap = max(float(q[2]) - self._hips, 0.0)  # a fall stays in the picture, a jump would leave it
        target = np.array((q[0], q[1], self._middle + leap), np.float64)
        eye = target + self._middle * np.array(EYE)
        return np.asarray(self._painter.draw(np.asarray(q, np.float64), Camera(tuple(eye), tuple(target))))


class TaskEnv(gymnasium.Env):  # type: ignore[misc]
    """A task with one world. Options are those of the task; pictures have `size` (width, height) pixels."""

    metadata: dict[str, Any] = METADATA
    kind: ClassVar[type[Task]]

    def __init__(self, render_mode: str | None = None, size: tuple[int, int] = (480, 360), **options: Any) -> None:
        self.render_mode = _checked_mode(render_mode)
        self.task = self.kind(1, **({"threads": 1} | options))
        self.metadata = METADATA | {"render_fps": 1.0 / self.task.period}
        self.observation_space, self.action_space = _spaces(self.task)
        self._pictures = None if render_mode is None else _Pictures(self.task, size)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start a new episode; the same seed gives the same episodes."""
        super().reset(seed=seed)
        self.task.rngs[0] = self.np_random
        self.task.reset()
        return self.task.observe()[0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Apply an action for `frame_skip` steps."""
        given = as_actions(action)
        if given.shape != self.action_space.shape:
            raise ValueError(f"action has the shape {given.shape}; it must be {self.action_space.shape}")
        out = self.task.step(given[None])
        told = {name: float(value[0]) for name, value in out.terms.items()}
        return self.task.observe()[0], float(out.reward[0]), bool(out.ended[0]), bool(out.cut[0]), told

    def render(self) -> Any:
        """(height, width, 3) picture from the side."""
        return None if self._pictures is None else self._pictures.of(self.task.batch.q[0])


class TaskVectorEnv(VectorEnv):  # type: ignore[misc]
    """A task with `num_envs` worlds in one batch. A world whose episode has ended is reset in the next step.

    World i gives the same results, to the bit, as the single environment with the seed plus i.
    """

    metadata: dict[str, Any] = METADATA | {"autoreset_mode": AutoresetMode.NEXT_STEP}
    kind: ClassVar[type[Task]]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        size: tuple[int, int] = (480, 360),
        **options: Any,
    ) -> None:
        self.render_mode = _checked_mode(render_mode)
        self.task = self.kind(num_envs, **options)
        self.num_envs = self.task.n
        self.metadata = type(self).metadata | {"render_fps": 1.0 / self.task.period}
        self.single_observation_space, self.single_action_space = _spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._most = None if max_episode_steps is None else whole("max_episode_steps", max_episode_steps)
        self._pictures = None if render_mode is None else _Pictures(self.task, size)
        self._over = np.zeros(self.num_envs, np.bool_)
        self._seeds = [-1] * self.num_envs

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:
        """The generator of each world."""
        return tuple(self.task.rngs)

    @property
    def np_random_seed(self) -> tuple[int, ...]:
        """The seed of each world's generator; -1 where none was given."""
        return tuple(self._seeds)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """Reset all worlds, or those of a mask `options["reset_mask"]`; `seed` is that of the first world."""
        which = self._mask(options)
        if seed is not None:
            self._seed(seed, which)
        self.task.reset(which)
        self._over[which] = False
        return self.task.observe(), {}

    def _seed(self, seed: Any, which: Array) -> None:
        if isinstance(seed, Sequence) or (isinstance(seed, np.ndarray) and seed.ndim):
            seeds = [None if one is None else _checked_seed(one) for one in seed]
        else:
            seeds = [_checked_seed(seed) + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} worlds: give one number, or one for each")
        for i in np.flatnonzero(which).tolist():
            if (one := seeds[i]) is not None:
                self.task.rngs[i], self._seeds[i] = seeding.np_random(one)

    def _mask(self, options: dict[str, Any] | None) -> Array:
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"reset_mask must be ({self.num_envs},) of bool, found {mask.shape} of {mask.dtype}")
        return mask

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Apply actions for `frame_skip` steps; worlds whose episodes have ended are reset instead."""
        out, anew = self.task.step(actions), self._over
        ended, cut = out.ended & ~anew, out.cut & ~anew
        if self._most is not None:
            cut |= (self.task.age >= self._most) & ~anew
        told: dict[str, Any] = {}
        for name, value in out.terms.items():
            told |= {name: value, f"_{name}": ~anew}
        self.task.reset(anew)
        self._over = ended | cut
        return self.task.observe(), np.where(anew, 0.0, out.reward), ended, cut, told

    def render(self) -> Any:
        """A picture of each world."""
        if self._pictures is None:
            return None
        return tuple(self._pictures.of(q) for q in self.task.batch.q)


class StandEnv(TaskEnv):
    """`poise/Stand-v0`, see `Stand`."""

    kind = Stand


class WalkEnv(TaskEnv):
    """`poise/Walk-v0`, see `Walk`."""

    kind = Walk


class ImitateEnv(TaskEnv):
    """`poise/Imitate-v0`, see `Imitate`."""

    kind = Imitate


class StandVectorEnv(TaskVectorEnv):
    """`poise/Stand-v0` with many worlds, see `Stand`."""

    kind = Stand


class WalkVectorEnv(TaskVectorEnv):
    """`poise/Walk-v0` with many worlds, see `Walk`."""

    kind = Walk


class ImitateVectorEnv(TaskVectorEnv):
    """`poise/Imitate-v0` with many worlds, see `Imitate`."""

    kind = Imitate
