"""Control by chance: near the optimum where that is known, the same plans from the same seed, and clear refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import poise
from poise.batch.mppi import LEAST, SamplingControl
from poise.batch.rollouts import Rollouts
from poise.dynamics import Drive

H = 0.05
"""Step of the toys; s."""
WEIGHTS = np.diag((1.0, 0.2))
EFFORT = 0.05


def sled() -> poise.Scene:
    """A mass of 2 kg that slides along x, without gravity."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.2, 0.2, 0.2, mass=2.0), axis="x", name="sled")
    return scene


def quadratic(seen: Rollouts) -> np.ndarray:
    x = np.stack((seen.q[..., 0], seen.v[..., 0]), axis=-1)
    return np.einsum("...i,ij,...j", x, WEIGHTS, x) + EFFORT * seen.u[..., 0] ** 2


def pushed(n: int = 128, threads: int = 1, precision: Any = "f64", **options: Any) -> SamplingControl:
    batch = sled().build_batch(n, dt=H, threads=threads, precision=precision)
    return SamplingControl(batch, quadratic, [[1.0]], **{"spread": 3.0, "horizon": 2.0, "rate": 20.0} | options)


def away(q: float = 1.0, v: float = 0.5) -> poise.State:
    return poise.State(np.array((q,)), np.array((v,)))


# ---- where the optimum is known --------------------------------------------------------------------------------------


def riccati() -> tuple[np.ndarray, np.ndarray]:
    """Cost to go and gain of the linear regulator for v⁺ = v + h u/m, x⁺ = x + h v⁺; states after steps are paid."""
    A, B = np.array(((1.0, H), (0.0, 1.0))), np.array(((0.5 * H * H,), (0.5 * H,)))
    # x⁺ᵀ Q x⁺ + r u² over A x + B u: cross terms of the same problem
    Q, R, S = A.T @ WEIGHTS @ A, B.T @ WEIGHTS @ B + EFFORT, A.T @ WEIGHTS @ B
    P = solve_discrete_are(A, B, Q, R, s=S)
    return P, np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A + S.T)


def paid(control: Any, seconds: float = 8.0) -> float:
    """What a way from 1 m, at 0.5 m/s, costs in all."""
    world = sled().build(dt=H)
    world.q[0], world.v[0] = 1.0, 0.5
    total, forces = 0.0, []

    def noted(state: Any) -> Any:
        wanted = control.update(state)
        forces.append(float(np.asarray(wanted.tau)[0]))
        return wanted

    if hasattr(control, "bind"):
        control.bind(world.model)
    world.add_controller(noted)
    for _ in range(round(seconds / H)):
        world.step()
        x = np.array((world.q[0], world.v[0]))
        total += float(x @ WEIGHTS @ x) + EFFORT * forces[-1] ** 2
    return total


class Regulator:
    """The best there is."""

    def update(self, state: Any) -> Any:
        gain = riccati()[1]
        return poise.sim.Targets(tau=-gain @ (state.q[0], state.v[0]))


def test_a_linear_plant_costs_little_more_than_the_best_regulator() -> None:
    """Within a tenth of the least cost there is, that of the linear-quadratic regulator; never below it."""
    start = np.array((1.0, 0.5))
    least = float(start @ riccati()[0] @ start)
    assert paid(Regulator()) == pytest.approx(least, rel=1e-6)  # the reference is right
    assert least < paid(pushed()) < 1.1 * least


def test_first_controls_are_near_the_best_ones() -> None:
    """After some rounds from the same state; weights spread over samples, so a fifth is what is asked for."""
    best = float(-(riccati()[1] @ (1.0, 0.5))[0])
    found = pushed(256, rounds=12, temperature=0.05).plan(away()).knots[0, 0]
    assert found == pytest.approx(best, rel=0.2)


def test_a_pendulum_swings_up_that_is_too_weak_to_be_lifted() -> None:
    """It has 60 % of the torque that would hold it level: it has to gain energy first, which no linear law tells.

    It is up where this torque τ can still stop it: an angle θ from upright and moving on at v, before sin θ = 0.6,
    beyond which weight is stronger: ½ I v² < ∫ (τ − m g l sin θ) dθ from there on. That holds throughout the last 5 s.
    """
    scene = poise.Scene()
    scene.hinge(None, poise.sphere(0.05, mass=1.0), axis="y", anchor=(0, 0, 0.5), name="bob")
    limit = 0.6 * 9.81 * 0.5

    def upright(seen: Rollouts) -> np.ndarray:
        return (1.0 + np.cos(seen.q[..., 0])) + 0.02 * seen.v[..., 0] ** 2 * (1.0 - np.cos(seen.q[..., 0])) / 2.0

    batch = scene.build_batch(128, dt=0.04, threads=1)
    options = {"spread": limit, "bound": limit, "horizon": 1.6, "knots": 9, "rate": 12.5}
    world = scene.build(dt=0.02)
    world.add_controller(SamplingControl(batch, upright, [[1.0]], **options))
    world.step(150)
    inertia, weight, edge = 1.0 * (0.5**2 + 0.4 * 0.05**2), 9.81 * 0.5, np.arcsin(0.6)
    for _ in range(250):
        world.step()
        away = (world.q[0] % (2.0 * np.pi) - np.pi) * np.sign(world.v[0])
        assert abs(away) < edge
        work = limit * (edge - away) - weight * (np.cos(away) - np.cos(edge))
        assert 0.5 * inertia * world.v[0] ** 2 < work


def test_goals_of_a_drive_are_moved() -> None:
    """A spring of 20 N/m holds against a load of 4 N where its goal is 0.2 m beyond."""

    def at_place(seen: Rollouts) -> np.ndarray:
        return np.asarray((seen.q[..., 0] - 0.3) ** 2 + 0.02 * seen.v[..., 0] ** 2)

    scene = sled()
    world, batch = scene.build(dt=0.01), scene.build_batch(64, dt=H, threads=1)
    drive = Drive(20.0, 10.0, [0.0])
    control = SamplingControl(batch, at_place, [[1.0]], spread=0.3, drive=drive, horizon=1.0)
    world.add_controller(control)
    batch.forces[:, -1, 3] = world_load = -4.0
    for _ in range(500):
        world.apply_force("sled", (world_load, 0.0, 0.0))
        world.step()
    assert world.q[0] == pytest.approx(0.3, abs=0.03)
    assert world.drive is not None
    assert np.asarray(world.drive.goal_q)[0] == pytest.approx(0.5, abs=0.1)


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_weights_are_those_of_williams() -> None:
    control = pushed(32, temperature=0.3)
    plan = control.plan(away())
    excess = plan.costs - plan.costs.min()
    shares = np.exp(-excess / (0.3 * excess.mean()))
    assert plan.weights == pytest.approx(shares / shares.sum(), rel=1e-12)
    assert 1.0 < plan.effective < 32.0


def test_samples_are_the_old_plan_the_idle_one_and_chance_around() -> None:
    control = pushed(4000, spread=2.0)
    before = np.linspace(1.0, 2.0, 5)[:, None]
    samples = control._samples(before, np.random.default_rng(0))
    assert samples[0].tolist() == before.tolist()
    assert not samples[1].any()
    scales = np.geomspace(1.0, LEAST, 2000)
    # standard deviation of a mixture; 5 · 4000 draws tell it to some 1 %
    assert (samples[2:] - before).std() == pytest.approx(2.0 * np.sqrt((scales**2).mean()), rel=0.03)
    assert (samples[2:2000] + samples[2002:] - 2.0 * before) == pytest.approx(0.0, abs=1e-12)


def test_controls_stay_within_bounds() -> None:
    control = pushed(64, bound=0.5)
    samples = control._samples(control.idle(), np.random.default_rng(1))
    assert np.abs(samples).max() == 0.5
    assert np.abs(control.plan(away(5.0)).knots).max() <= 0.5


def test_a_plan_moves_on() -> None:
    control = pushed(8, horizon=2.0, knots=5)
    plan = np.arange(5.0)[:, None]
    assert control.moved_on(plan, 0.75)[:, 0] == pytest.approx((1.5, 2.5, 3.5, 4.0, 4.0))


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_the_same_seed_makes_the_same_plans(precision: str) -> None:
    first = pushed(50, precision=precision, seed=3).plan(away(), number=7)
    again = pushed(50, threads=2, precision=precision, seed=3).plan(away(), number=7)
    other = pushed(50, precision=precision, seed=4).plan(away(), number=7)
    later = pushed(50, precision=precision, seed=3).plan(away(), number=8)
    assert np.array_equal(first.knots, again.knots)
    assert np.array_equal(first.costs, again.costs)
    assert not np.array_equal(first.knots, other.knots)
    assert not np.array_equal(first.knots, later.knots)


def test_worlds_go_back_bit_for_bit() -> None:
    world = sled().build(dt=0.01)
    world.q[0] = 1.0
    world.add_controller(pushed(32))
    world.step(7)
    state = world.state
    world.step(30)
    end = world.q.copy(), world.v.copy()
    world.state = state
    world.step(30)
    assert np.array_equal(world.q, end[0])
    assert np.array_equal(world.v, end[1])


def times_of_plans(world: poise.World, control: SamplingControl, steps: int) -> list[float]:
    """When plans are made, while a world is stepped."""
    times: list[float] = []
    usual = control.plan

    def noted(state: Any, *rest: Any) -> Any:
        times.append(state.time)
        return usual(state, *rest)

    control.plan = noted  # type: ignore[method-assign]
    world.add_controller(control)
    world.step(steps)
    return times


def test_plans_are_made_at_their_rate() -> None:
    world, control = sled().build(dt=0.01), pushed(4, rate=20.0)
    times = times_of_plans(world, control, 21)
    assert times == pytest.approx((0.0, 0.05, 0.1, 0.15, 0.2))


@pytest.mark.parametrize(("rate", "plans"), [(25.0, 25), (24.0, 24), (200.0, 200), (240.0, 240), (1e4, 240), (7.0, 7)])
def test_rates_that_steps_do_not_divide_are_kept_in_the_mean(rate: float, plans: int) -> None:
    """A plan is made by the first step that is due, no later; of several that are due, one."""
    world, control = sled().build(dt=1 / 240), pushed(2, rate=rate, horizon=0.1)
    times = times_of_plans(world, control, 480)
    assert len(times) == 2 * plans
    late = np.array(times) - np.arange(2 * plans) / min(rate, 240.0)
    assert ((late > -1e-8) & (late < 1 / 240)).all()


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_samples_without_a_cost_do_not_count() -> None:
    def broken(seen: Rollouts) -> np.ndarray:
        costs = quadratic(seen)
        costs[:, ::2] = np.nan
        return costs

    control = pushed(16)
    control._cost = broken
    plan = control.plan(away())
    assert np.isinf(plan.costs[::2]).all()
    assert not plan.weights[::2].any()
    assert plan.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(plan.knots).all()


def test_where_every_sample_fails_the_plan_stays() -> None:
    control = pushed(16)
    control._cost = lambda seen: np.full(seen.shape, np.nan)
    before = np.ones((5, 1))
    plan = control.plan(away(), before)
    assert np.array_equal(plan.knots, before)
    assert not plan.weights.any()
    assert plan.effective == 0.0


@pytest.mark.parametrize("worst", [1e280, 1e308, 1.7e308])
def test_huge_costs_weigh_as_small_ones_do(worst: float) -> None:
    """Weights do not know the unit of costs, even where the sum of all is no number any more."""
    control = pushed(16)
    costs = np.linspace(-1.0, 1.0, 16)
    costs[3] = np.inf
    assert control._weights(worst * costs) == pytest.approx(control._weights(costs), rel=1e-9)
    control._cost = lambda seen: worst * costs
    assert np.isfinite(control.plan(away()).knots).all()


def test_moments_that_cost_no_number_are_no_warnings() -> None:
    def wild(seen: Rollouts) -> np.ndarray:
        costs = quadratic(seen)
        costs[0, 0], costs[1, 0], costs[:, 1] = np.inf, -np.inf, 1.7e308
        return costs

    control = pushed(16)
    control._cost = wild
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = control.plan(away())
    assert np.isinf(plan.costs).tolist() == [True, True] + [False] * 14


def test_worlds_that_diverge_do_not_count() -> None:
    """Forces beyond float32 are infinite there."""
    control = pushed(16, precision="f32", spread=1e39)
    control._cost = lambda seen: np.zeros(seen.shape)
    plan = control.plan(away())
    lost = control._batch.diverged
    assert lost.tolist()[:2] == [False, False]  # nothing acts there
    assert lost.any()
    assert np.array_equal(np.isinf(plan.costs), lost)
    assert np.isfinite(plan.knots).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spread": 0.0}, "spread is 0.0; it must be positive"),
        ({"spread": np.nan}, "spread is nan; it must be positive"),
        ({"spread": np.inf}, "spread is inf; it must be positive"),
        ({"spread": (1.0, 2.0)}, "it must be one number, or 1 of them"),
        ({"bound": -1.0}, "bound is -1.0; it must be positive"),
        ({"horizon": 0.01}, "horizon is 0.01; it must be a number, 0.05 at least"),
        ({"horizon": np.nan}, "horizon is nan"),
        ({"horizon": np.inf}, "horizon is inf"),
        ({"knots": 1}, "knots is 1; it must be a whole number, 2 or more"),
        ({"rate": 0}, "rate is 0; it must be a number"),
        ({"rate": "fast"}, "rate is 'fast'"),
        ({"rounds": 0}, "rounds is 0"),
        ({"every": 0}, "every is 0"),
        ({"every": 41}, "every is 41: 2.05 s of steps; it must not be longer than the horizon, 2 s"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": True}, "temperature is True"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        pushed(4, **options)


def test_other_bad_settings_are_refused() -> None:
    batch = sled().build_batch(4, dt=H, threads=1)
    with pytest.raises(TypeError, match=r"it must be a poise\.Batch"):
        SamplingControl(sled().build(), quadratic, [[1.0]], spread=1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="function of Rollouts"):
        SamplingControl(batch, 3.0, [[1.0]], spread=1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Drive or None"):
        SamplingControl(batch, quadratic, [[1.0]], spread=1.0, drive=20.0)  # type: ignore[arg-type]
    for channels in ([1.0], [[1.0, 0.0]], [[np.nan]], np.zeros((0, 1))):
        with pytest.raises(ValueError, match="channels must be"):
            SamplingControl(batch, quadratic, channels, spread=1.0)
    with pytest.raises(ValueError, match="cost gave an array of shape"):
        SamplingControl(batch, lambda seen: np.zeros(3), [[1.0]], spread=1.0).plan(away())
    with pytest.raises(ValueError, match="before must be"):
        pushed(4).plan(away(), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="different joints"):
        poise.Scene().build().add_controller(pushed(4))


def test_one_sample_is_the_old_plan() -> None:
    plan = pushed(1).plan(away(), np.ones((5, 1)))
    assert plan.knots.tolist() == np.ones((5, 1)).tolist()
    assert plan.weights.tolist() == [1.0]
