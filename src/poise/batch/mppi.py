"""Control by chance: many futures are tried in a batch of worlds, and the good ones are followed.

Model-predictive path integral control (Williams, Aldrich, Theodorou 2017; Williams et al. 2017). Its abbreviation is
MPPI. A plan is a row of knots, controls over a horizon joined by straight lines. Some times a second

1. the plan of before is moved on by the time that has passed;
2. each world of a batch starts from the state as it is, and follows the plan with chance added at its knots;
3. a cost of its motion, S, gives it a weight exp(−(S − S_best)/λ);
4. the weighted mean of all these plans is the new plan.

λ, the temperature, is a share of the costs' own spread, mean(S) − S_best, so that it has no unit.
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
"""Costs from which on sums may be no numbers, and what makes them less, to the bit."""
LEAST = 0.2
"""Of the spread, for the sample with the least of it: far ones find new ways, near ones better the one that is good."""
Cost = Callable[[Rollouts], ArrayLike]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a round of samples came to."""

    knots: Floats
    """(knots, channels) of the new plan, from now on."""
    costs: Floats
    """(n,) of the samples; infinite where a world has diverged. The first sample is the plan of before."""
    weights: Floats
    """(n,) of the samples; they add up to 1, or are all 0 where every world has diverged and the plan stays."""

    @property
    def effective(self) -> float:
        """Samples that count: 1/Σw², from 1 to n."""
        total = float(np.sum(self.weights**2))
        return 1.0 / total if total > 0.0 else 0.0


class SamplingControl:
    """Finds controls by trying many futures in a batch of worlds: for `world.add_controller`, or by `plan`.

    `cost(rollouts)` judges motions: it gives, for `Rollouts` of n worlds at some moments, a cost of each moment and
    world (moments, n), which are averaged over the horizon, or of each world (n,). `channels` (k, nv) tell what the k
    controls do: with a `drive`, they move its goals, by radians or metres of each degree of freedom; without, they are
    torques and forces. Rows of a free root should be nought, unless somebody is to hold it.

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
        """The batch, whose worlds are the samples, belongs to the control from now on; its steps are those of plans.

        `spread`: standard deviation of the chance at knots, and `bound`: greatest size of controls, each of all
        channels or (k,); `horizon` (s); `rate`: plans a second, each at the first step that is due; `every`: steps of
        the batch from one judged moment to the next; `rounds` of samples for a plan; `temperature`: of the costs'
        spread, small ones follow the best alone; `seed`: the same one makes the same plans.
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
        """See that the world is of the batch's kind."""
        own = self._batch.model
        if (model.nq, model.nv, model.joint_names) != (own.nq, own.nv, own.joint_names):
            raise ValueError("the world and the batch of the control have different joints: make both of one scene")

    def update(self, state: StateToAct) -> Targets:
        """What the plan says now; at the rate of plans, after a new one was made."""
        slots = state.slots
        if "plan" not in slots:
            slots["plan"], slots["clock"] = self.idle(), np.array((state.time, 0.0, state.time))
        begun, count, due = slots["clock"].tolist()
        if state.time >= due - 1e-9:
            before = self.moved_on(slots["plan"], state.time - begun) if count else slots["plan"]
            slots["plan"] = self.plan(state, before, int(count)).knots
            begun = state.time
            # from when it was due, so that the rate is kept where steps do not divide it
            slots["clock"] = np.array((begun, count + 1.0, max(due + self._period, begun)))
        u = self._mixed(np.array((state.time - begun + 0.5 * state.dt,))) @ slots["plan"]
        return self.targets(u[0])

    def targets(self, u: ArrayLike) -> Targets:
        """What controls (k,) amount to for a world: a drive with other goals, or torques."""
        change = np.asarray(u, np.float64) @ self._channels
        if self._drive is None:
            return Targets(tau=change)
        return Targets(drive=self._drive._replace(goal_q=displaced(self._batch.model, self._pose, change)))

    # ---- plans -------------------------------------------------------------------------------------------------------

    def idle(self) -> Floats:
        """(knots, channels) of the plan to do nothing."""
        return np.zeros((self._knots, len(self._channels)))

    def moved_on(self, plan: ArrayLike, time: float) -> Floats:
        """A plan seen from a later time; beyond its end it stays as it ended."""
        times = np.linspace(0.0, self._horizon, self._knots)
        return np.asarray(self._mixed(times + time) @ np.asarray(plan, np.float64))

    def plan(self, state: State, before: ArrayLike | None = None, number: int = 0) -> Plan:
        """A plan from a state on, after that of before; chance is that of the seed and the number of the plan."""
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
        """(times, knots) shares that knots have in the controls at some times."""
        place = np.clip(times / self._horizon, 0.0, 1.0) * (self._knots - 1)
        return np.asarray(np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(self._knots))))

    def _samples(self, knots: Floats, rng: np.random.Generator) -> Floats:
        """(n, knots, channels) plans to try: that of before, the idle one, then chance to both sides of the first.

        Chance is the whole spread for some of them and less and less for others.
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
        """What worlds do that follow these plans."""
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
            with np.errstate(over="ignore"):  # too much for float32 is infinite, and such a world diverges
                given[...] = acts[step]
            batch.step()
            if (step + 1) % self._every == 0:
                q[step // self._every], v[step // self._every] = batch.q, batch.v
        times = self._every * batch.dt * (1.0 + np.arange(moments))
        return Rollouts(model, times, q, v, u[self._every - 1 :: self._every])

    def _costs(self, rollouts: Rollouts) -> Floats:
        """(n,) of whole motions."""
        costs = np.asarray(self._cost(rollouts), np.float64)
        moments, n = rollouts.shape
        if costs.shape not in ((moments, n), (n,)):
            raise ValueError(f"cost gave an array of shape {costs.shape}; it must be {(moments, n)} or {(n,)}")
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number does not count
            whole = costs.mean(axis=0) if costs.ndim == 2 else costs
        return np.where(self._batch.diverged | ~np.isfinite(whole), np.inf, whole)

    def _weights(self, costs: Floats) -> Floats:
        """(n,) exp(−(S − S_best)/λ), to add up to 1."""
        good = np.isfinite(costs)
        if not good.any():
            return np.zeros(len(costs))
        if np.abs(costs[good]).max() > GREAT:
            costs = costs * LESS
        excess = np.where(good, costs - costs[good].min(), np.inf)
        scale = self._temperature * float(excess[good].mean())
        shares = np.exp(-excess / scale) if scale > 0.0 else good.astype(np.float64)
        return np.asarray(shares / shares.sum())
