"""MPPI: sampling-based predictive control with a user-defined cost.

Model-predictive path integral control (Williams, Aldrich, Theodorou 2017; Williams et al. 2017). A plan is a spline of
controls over a horizon, linear between its knots. At a fixed rate

1. the previous plan is shifted by the elapsed time;
2. each world of a batch starts from the present state and follows the plan with noise added at its knots;
3. a cost of its motion, S, gives it a weight exp(−(S − S_best)/λ);
4. the weighted mean of all sampled plans is the new plan.

λ is a dimensionless temperature times the spread of the costs, mean(S) − S_best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.batch.mppi_options import checked_channels, checked_row, number_in, seed_of, steps_within, whole_number
from poise.batch.rollouts import Rollouts
from poise.batch.worlds import Batch
from poise.dynamics.argument_checks import checked
from poise.dynamics.functions import Drive
from poise.dynamics.state_queries import displaced
from poise.model.model import Model
from poise.model.state import State
from poise.sim.controllers import StateToAct, Targets

Array = NDArray[Any]
Floats = NDArray[np.float64]
GREAT, LESS = 1e280, 2.0**-200
"""Bound of costs above which sums may overflow, and the power of two that scales them down without rounding."""
LEAST = 0.2
"""Scale of the noise of the sample with the least: large noise finds new plans, small noise refines a good one."""
Cost = Callable[[Rollouts], ArrayLike]


@dataclass(frozen=True, eq=False)
class Plan:
    """Result of a round of samples."""

    knots: Floats
    """(knots, channels) controls of the new plan, from now on."""
    costs: Floats
    """(n,) costs of the samples; infinite for a diverged world. The first sample is the previous plan."""
    weights: Floats
    """(n,) weights of the samples; their sum is 1, or 0 if every world has diverged and the plan is unchanged."""

    @property
    def effective(self) -> float:
        """Effective number of samples: 1/Σw², from 1 to n."""
        total = float(np.sum(self.weights**2))
        return 1.0 / total if total > 0.0 else 0.0


class SamplingControl:
    """An MPPI controller that samples plans in a batch of worlds: for `world.add_controller`, or by `plan`.

    `cost(rollouts)` returns, for `Rollouts` of n worlds at some moments, a cost of each moment and world (moments, n),
    which is averaged over the horizon, or a cost of each world (n,). `channels` (k, nv) map the k controls to degrees
    of freedom: with a `drive` they offset its goals, in rad or m; without one they are torques and forces. Columns of a
    free root should be zero unless an external force may act on it.

    >>> import poise
    >>> scene = poise.Scene(gravity=(0, 0, 0))
    >>> _ = scene.add(poise.sphere(0.1, mass=1.0), name="ball")
    >>> batch = scene.build_batch(64, dt=0.05, threads=1)
    >>> def near(rollouts):
    ...     return (rollouts.q[..., 0] - 1.0) ** 2 + 0.1 * rollouts.v[..., 0] ** 2
    >>> push = SamplingControl(batch, near, [[1, 0, 0, 0, 0, 0]], spread=2.0, horizon=1.0)
    >>> world = scene.build(dt=0.01)
    >>> _ = world.add_controller(push)
    >>> world.step(400)
    >>> bool(abs(world.q[0] - 1.0) < 0.1)
    True
    """

    def __init__(
        self,
        batch: Batch,
        cost: Cost,
        channels: ArrayLike,
        *,
        spread: ArrayLike,
        bound: ArrayLike = np.inf,
        drive: Drive | None = None,
        horizon: float = 0.5,
        knots: int = 5,
        rate: float = 25.0,
        every: int = 1,
        rounds: int = 1,
        temperature: float = 0.1,
        seed: int = 0,
    ) -> None:
        """The controller owns the batch from now on: its worlds are the samples, its time step is that of rollouts.

        `spread`: standard deviation of the noise at knots, and `bound`: largest magnitude of controls, each one number
        or (k,); `horizon` (s); `rate`: plans per second, each made at the first step at which it is due; `every`: steps
        of the batch from one evaluated moment to the next; `rounds` of samples per plan; `temperature`: relative to the
        spread of costs, a small one follows only the best sample; `seed`: the same seed gives the same plans.
        """
        if not isinstance(batch, Batch):
            raise TypeError(f"batch is a {type(batch).__name__}; it must be a poise.Batch")
        if not callable(cost):
            raise TypeError(f"cost is a {type(cost).__name__}; it must be a function of Rollouts")
        if drive is not None and not isinstance(drive, Drive):
            raise TypeError(f"drive must be a Drive or None, not {type(drive).__name__}")
        self._batch, self._cost, self._drive = batch, cost, drive
        self._channels = checked_channels(channels, batch.model.nv)
        k = len(self._channels)
        self._spread, self._bound = checked_row("spread", spread, k), checked_row("bound", bound, k, unbounded=True)
        self._knots, self._rounds = whole_number("knots", knots, 2), whole_number("rounds", rounds, 1)
        self._horizon = number_in("horizon", horizon, batch.dt, np.inf)
        self._period = 1.0 / number_in("rate", rate, 1e-6, 1e6)
        self._temperature = number_in("temperature", temperature, 1e-9, 1e9)
        self._seed, self._every = seed_of(seed), steps_within(self._horizon, every, batch.dt)
        self._steps = self._every * max(1, round(self._horizon / (batch.dt * self._every)))
        self._middles = self._mixed((np.arange(self._steps) + 0.5) * batch.dt)
        self._pose = batch.model.q_rest if drive is None else checked(batch.model, "goal_q", drive.goal_q)
        batch.drive = drive
        self.last: Plan | None = None
        """The last plan that was made."""

    # ---- as a controller ---------------------------------------------------------------------------------------------

    def bind(self, model: Model, /) -> None:
        """Check that the world and the batch have the same joints."""
        own = self._batch.model
        if (model.nq, model.nv, model.joint_names) != (own.nq, own.nv, own.joint_names):
            raise ValueError("the world and the batch of the control have different joints: make both of one scene")

    def update(self, state: StateToAct) -> Targets:
        """Controls of the plan at the present time; makes a new plan when one is due."""
        slots = state.slots
        if "plan" not in slots:
            slots["plan"], slots["clock"] = self.idle(), np.array((state.time, 0.0, state.time))
        begun, count, due = slots["clock"].tolist()
        if state.time >= due - 1e-9:
            before = self.moved_on(slots["plan"], state.time - begun) if count else slots["plan"]
            slots["plan"] = self.plan(state, before, int(count)).knots
            begun = state.time
            # counted from when it was due, which keeps the rate when steps do not divide it
            slots["clock"] = np.array((begun, count + 1.0, max(due + self._period, begun)))
        u = self._mixed(np.array((state.time - begun + 0.5 * state.dt,))) @ slots["plan"]
        return self.targets(u[0])

    def targets(self, u: ArrayLike) -> Targets:
        """Controls (k,) as targets of a world: a drive with offset goals, or torques."""
        change = np.asarray(u, np.float64) @ self._channels
        if self._drive is None:
            return Targets(tau=change)
        return Targets(drive=self._drive._replace(goal_q=displaced(self._batch.model, self._pose, change)))

    # ---- plans -------------------------------------------------------------------------------------------------------

    def idle(self) -> Floats:
        """(knots, channels) the plan with zero controls."""
        return np.zeros((self._knots, len(self._channels)))

    def moved_on(self, plan: ArrayLike, time: float) -> Floats:
        """A plan shifted to a later time; beyond its end it holds its last controls."""
        times = np.linspace(0.0, self._horizon, self._knots)
        return np.asarray(self._mixed(times + time) @ np.asarray(plan, np.float64))

    def plan(self, state: State, before: ArrayLike | None = None, number: int = 0) -> Plan:
        """A new plan from a state, based on the previous plan; the seed and the plan's number determine the noise."""
        knots = self.idle() if before is None else np.array(before, np.float64)
        if knots.shape != self.idle().shape or not np.isfinite(knots).all():
            raise ValueError(f"before must be {self.idle().shape} finite numbers, as `idle()` is")
        rng = np.random.default_rng((self._seed, number))
        for _ in range(self._rounds):
            samples = self._samples(knots, rng)
            costs = self._costs(self._rolled(state, samples))
            weights = self._weights(costs)
            if weights.any():
                knots = np.einsum("i,ijk->jk", weights, samples)
        self.last = Plan(knots, costs, weights)
        return self.last

    def _mixed(self, times: Array) -> Floats:
        """(times, knots) interpolation weights of knots in the controls at some times."""
        place = np.clip(times / self._horizon, 0.0, 1.0) * (self._knots - 1)
        return np.asarray(np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(self._knots))))

    def _samples(self, knots: Floats, rng: np.random.Generator) -> Floats:
        """(n, knots, channels) sampled plans: the previous plan, zero controls, and antithetic noise around the first.

        The scale of the noise decreases from the whole spread over the samples.
        """
        n = self._batch.n
        chance = rng.standard_normal(((n + 1) // 2, *knots.shape))
        chance *= np.geomspace(1.0, LEAST, len(chance))[:, None, None]
        samples = knots + self._spread * np.concatenate((chance, -chance))[:n]
        samples[0] = knots
        if n > 2:
            samples[1] = 0.0
        return np.asarray(np.clip(samples, -self._bound, self._bound))

    def _rolled(self, state: State, samples: Floats) -> Rollouts:
        """Rollouts of worlds that follow these plans."""
        batch, model = self._batch, self._batch.model
        u = np.einsum("sj,njk->snk", self._middles, samples)
        change = u @ self._channels
        if self._drive is not None:
            flat = change.reshape(-1, model.nv)
            pose = np.broadcast_to(self._pose, (len(flat), model.nq))
            acts = displaced(model, pose, flat, dtype=batch.q.dtype).reshape(*u.shape[:2], model.nq)
            given = np.asarray(batch.drive.goal_q) if batch.drive is not None else batch.tau
        else:
            acts, given = change, batch.tau
        batch.reset(q=state.q, v=state.v)
        moments = self._steps // self._every
        q, v = (np.empty((moments, *rows.shape), rows.dtype) for rows in (batch.q, batch.v))
        for step in range(self._steps):
            with np.errstate(over="ignore"):  # overflow of float32 is infinite, and such a world diverges
                given[...] = acts[step]
            batch.step()
            if (step + 1) % self._every == 0:
                q[step // self._every], v[step // self._every] = batch.q, batch.v
        times = self._every * batch.dt * (1.0 + np.arange(moments))
        return Rollouts(model, times, q, v, u[self._every - 1 :: self._every])

    def _costs(self, rollouts: Rollouts) -> Floats:
        """(n,) costs of whole motions."""
        costs = np.asarray(self._cost(rollouts), np.float64)
        moments, n = rollouts.shape
        if costs.shape not in ((moments, n), (n,)):
            raise ValueError(f"cost gave an array of shape {costs.shape}; it must be {(moments, n)} or {(n,)}")
        with np.errstate(over="ignore", invalid="ignore"):  # a NaN cost does not count
            whole = costs.mean(axis=0) if costs.ndim == 2 else costs
        return np.where(self._batch.diverged | ~np.isfinite(whole), np.inf, whole)

    def _weights(self, costs: Floats) -> Floats:
        """(n,) exp(−(S − S_best)/λ), normalized to a sum of 1."""
        good = np.isfinite(costs)
        if not good.any():
            return np.zeros(len(costs))
        if np.abs(costs[good]).max() > GREAT:
            costs = costs * LESS
        excess = np.where(good, costs - costs[good].min(), np.inf)
        scale = self._temperature * float(excess[good].mean())
        shares = np.exp(-excess / scale) if scale > 0.0 else good.astype(np.float64)
        return np.asarray(shares / shares.sum())
