"""Environments of Gymnasium over a batch of worlds: `import poise.gym` registers `poise/Stand-v0`, `poise/Walk-v0` and
`poise/Imitate-v0`, for `gymnasium.make` and, all worlds in one batch, for `gymnasium.make_vec`.

>>> import gymnasium
>>> import poise.gym
>>> env = gymnasium.make("poise/Stand-v0")
>>> env.action_space.shape, env.spec.max_episode_steps
((30,), 300)
"""

from __future__ import annotations

try:
    import gymnasium
except ImportError:
    raise ImportError("poise.gym needs Gymnasium: pip install gymnasium, or the extra poise[gym]") from None

from poise.gym.envs import (
    ImitateEnv,
    ImitateVectorEnv,
    StandEnv,
    StandVectorEnv,
    TaskEnv,
    TaskVectorEnv,
    WalkEnv,
    WalkVectorEnv,
)
from poise.gym.imitate import Imitate
from poise.gym.stand import Stand
from poise.gym.task import Task
from poise.gym.walk import Walk

__all__ = [
    "Imitate",
    "ImitateEnv",
    "ImitateVectorEnv",
    "Stand",
    "StandEnv",
    "StandVectorEnv",
    "Task",
    "TaskEnv",
    "TaskVectorEnv",
    "Walk",
    "WalkEnv",
    "WalkVectorEnv",
]

LENGTHS = {"Stand": 300, "Walk": 600, "Imitate": 600}
"""Steps after which an episode is cut, 30 to a second."""

for _name, _steps in LENGTHS.items():
    gymnasium.register(
        f"poise/{_name}-v0",
        entry_point=f"poise.gym.envs:{_name}Env",
        vector_entry_point=f"poise.gym.envs:{_name}VectorEnv",
        max_episode_steps=_steps,
    )
