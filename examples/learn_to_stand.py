"""A person learns to stand: an evolution strategy of a few lines, over one batch of worlds.

python examples/learn_to_stand.py

Springs in the ankles are too weak to hold a body upright, and random pushes act on it. A linear policy of some hundred
numbers maps the observed balance to joint targets. In each generation every world evaluates one perturbation of these
numbers, in antithetic pairs; the policy then moves towards the better ones (Salimans et al. 2017, "Evolution strategies
as a scalable alternative to reinforcement learning", with ranks as weights).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from poise.gym import StandVectorEnv
from poise.view import line_chart

FELT = np.r_[1:10, 82:88]
"""Of the observation: the pelvis' up, velocity and spin; the centre of mass above the feet, and its velocity."""
BALANCED = np.array([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0.92, 0, 0, 0])
"""These observations of a standing person."""
SIZES = np.repeat((0.1, 0.3, 0.5, 0.1, 0.3), 3)
"""Their size in a sway."""
SPREAD, RATE, MOMENTUM = 0.02, 0.01, 0.8
"""Size of the perturbations; step size; momentum of the step."""


def returns(env: StandVectorEnv, policies: np.ndarray, seed: Any, steps: int) -> np.ndarray:
    """(worlds,) return of an episode in each world, by a policy for each (worlds, actions, felt)."""
    seen, _ = env.reset(seed=seed)
    total, alive = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    for _ in range(steps):
        actions = np.tanh(np.einsum("naf,nf->na", policies, (seen[:, FELT] - BALANCED) / SIZES))
        seen, reward, ended, cut, _ = env.step(actions)
        total += reward * alive
        alive &= ~(ended | cut)
        if not alive.any():
            break
    return total


def learned(env: StandVectorEnv, generations: int, steps: int, seed: int, told: Any = print) -> tuple[Any, list[float]]:
    """A policy, and the mean return of all worlds in each generation."""
    rng = np.random.default_rng(seed)
    policy = np.zeros((env.single_action_space.shape[0], len(FELT)))
    step, curve, half = np.zeros_like(policy), [], env.num_envs // 2
    for generation in range(generations):
        change = rng.normal(size=(half, *policy.shape))
        tried = policy + SPREAD * np.concatenate((change, -change))
        # all worlds of a generation are pushed differently, both of a pair alike
        earned = returns(env, tried, [1000 * generation + i % half for i in range(env.num_envs)], steps)
        ranks = np.argsort(np.argsort(earned)) / (env.num_envs - 1) - 0.5
        slope = np.einsum("n,naf->af", ranks[:half] - ranks[half:], change) / half
        step = MOMENTUM * step + RATE * slope / np.sqrt(np.mean(slope**2))
        policy = policy + (1.0 - MOMENTUM) * step
        curve.append(float(earned.mean()))
        told(f"generation {generation + 1:3d}: mean return {curve[-1]:6.1f}, best {earned.max():6.1f}")
    return policy, curve


def main(
    generations: int = 30, worlds: int = 64, steps: int = 300, seed: int = 0, path: str | Path = "learn_to_stand.svg"
) -> dict[str, Any]:
    env = StandVectorEnv(worlds, max_episode_steps=steps)
    policy, curve = learned(env, generations, steps, seed)
    chart = line_chart(range(1, len(curve) + 1), {"mean return": curve}, x_label="generation", y_label="return")
    chart.save(path)
    both = {}
    for name, chosen in (("without a policy", np.zeros_like(policy)), ("with the policy", policy)):
        both[name] = float(returns(env, np.tile(chosen, (worlds, 1, 1)), 10**6, steps).mean())
        print(f"{name}: {both[name]:.1f} of {steps} on pushes never seen before")
    return {"curve": curve, "policy": policy} | both


if __name__ == "__main__":
    main()
