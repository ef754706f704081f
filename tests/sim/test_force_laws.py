"""Forces as functions of time and state: motion at the order of the integrator, against closed forms and SciPy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import poise
from poise.dynamics import forward_dynamics
from poise.sim import PointSpring, Stage, Targets
from poise.sim.force_laws import evaluate

ORDERS = {"euler": 1, "midpoint": 2, "rk4": 4}
KINDS = {"reduced": poise.Reduced, "maximal": poise.Maximal}
pytestmark = pytest.mark.filterwarnings("ignore:.*holds joints by forces:poise.FormulationWarning")


@dataclass
class System:
    """A scene with laws, how it starts, and where it is after a second."""

    scene: poise.Scene
    laws: list[Any]
    v: Any
    exact: Callable[[float], Any] | None = None
    """Coordinates at a time; from SciPy where there is none."""
    q: Any = None

    def world(self, formulation: Any, dt: float) -> poise.World:
        world = self.scene.build(formulation, dt=dt)
        for law in self.laws:
            world.add_force(law)
        world.q[...], world.v[...] = world.q if self.q is None else self.q, self.v
        return world

    def end(self, time: float) -> np.ndarray:
        """The reference."""
        if self.exact is not None:
            return np.asarray(self.exact(time))
        model = self.scene.compile()
        laws = {str(k): law for k, law in enumerate(self.laws)}

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            q, v = np.split(y, 2)  # hinges and slides alone: q̇ = v
            wanted = evaluate(laws, model, t, q, v)
            return np.concatenate((v, forward_dynamics(model, q, v, tau=wanted.tau, forces=wanted.forces)))

        start = np.concatenate((model.q_rest if self.q is None else self.q, self.v))
        return solve_ivp(rate, (0.0, time), start, "DOP853", rtol=1e-12, atol=1e-13).y[: model.nq, -1]


def ball(mass: float = 2.0, name: str = "ball", position: Any = (1, 0, 0), gravity: Any = (0, 0, 0)) -> poise.Scene:
    scene = poise.Scene(gravity=gravity)
    scene.add(poise.sphere(0.1, mass=mass), name=name, position=position)
    return scene


def arms(kind: str = "hinge") -> poise.Scene:
    """Two rods in a row, the second one turned out of the plane of the first."""
    scene = poise.Scene()
    scene.hinge(
        None, poise.box(0.1, 0.12, 0.6, mass=2.0), axis="y", anchor=(0, 0, 0.3), name="upper", position=(0, 0, 2)
    )
    rod, options = poise.box(0.1, 0.1, 0.5, mass=1.0), {"axis": (1, 0.4, 0), "name": "lower", "position": (0, 0, -0.55)}
    getattr(scene, kind)("upper", rod, anchor=(0, 0, 0.25), **options)
    return scene


def spring_to_the_world() -> System:
    """cos(ω t), ω² = k/m."""
    return System(ball(), [PointSpring(None, "ball", stiffness=8.0)], np.zeros(6), lambda t: [np.cos(2 * t), 0, 0])


def damped_spring_to_the_world() -> System:
    """An underdamped oscillator about its rest length."""
    m, k, c, rest = 2.0, 30.0, 3.0, 0.7
    decay, rate = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    laws = [PointSpring(None, "ball", stiffness=k, damping=c, rest_length=rest)]
    out = 1.0 - rest
    return System(
        ball(m),
        laws,
        np.zeros(6),
        lambda t: [rest + out * np.exp(-decay * t) * (np.cos(rate * t) + decay / rate * np.sin(rate * t)), 0, 0],
    )


def spring_between_bodies() -> System:
    """The distance swings by the reduced mass, the centre stays."""
    scene = ball(2.0, "one", (0, 0, 0))
    scene.add(poise.sphere(0.1, mass=3.0), name="two", position=(1.0, 0, 0))
    rate = np.sqrt(20.0 * (1 / 2.0 + 1 / 3.0))

    def exact(t: float) -> list[float]:
        length = 0.8 + 0.2 * np.cos(rate * t)
        return [0.6 - 0.6 * length, 0, 0, 1, 0, 0, 0, 0.6 + 0.4 * length, 0, 0]

    return System(scene, [PointSpring("one", "two", stiffness=20.0, rest_length=0.8)], np.zeros(12), exact)


def drag() -> System:
    """v = v₀ exp(−c t/m)."""

    def law(stage: Stage) -> None:
        stage.push("ball", -3.0 * stage.point("ball").velocity)

    v = np.array([1.0, 0.5, -0.2, 0, 0, 0])
    return System(ball(), [law], v, lambda t: np.array([1, 0, 0]) + v[:3] * (1 - np.exp(-1.5 * t)) / 1.5)


def drag_of_air() -> System:
    """−c |v| v: x = m/c log(1 + c v₀ t/m)."""

    def law(stage: Stage) -> None:
        velocity = stage.point("ball").velocity
        stage.push("ball", -1.5 * np.linalg.norm(velocity) * velocity)

    return System(ball(), [law], [4.0, 0, 0, 0, 0, 0], lambda t: [1 + np.log(1 + 3.0 * t) / 0.75, 0, 0])


def magnet() -> System:
    """v × B: a circle, traversed at B/m."""

    def law(stage: Stage) -> None:
        stage.push("ball", np.cross(stage.point("ball").velocity, (0, 0, 5.0)))

    return System(
        ball(),
        [law],
        [1.0, 0, 0, 0, 0, 0],
        lambda t: [1 + np.sin(2.5 * t) / 2.5, (np.cos(2.5 * t) - 1) / 2.5, 0],
    )


def shaken_cart() -> System:
    """F sin(ω t) on a slide."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=2.0), axis="x", name="cart")

    def law(stage: Stage) -> None:
        stage.tau[0] += 6.0 * np.sin(4.0 * stage.time)

    return System(scene, [law], [0.0], lambda t: [6.0 / 2.0 / 16.0 * (4.0 * t - np.sin(4.0 * t))])


def arms_on_springs() -> System:
    """A tree with a spring to the world and one from link to link, in gravity."""
    laws = [
        PointSpring(None, "lower", 60.0, 2.0, 0.3, point_first=(0.5, 0.2, 1.5), point_second=(0, 0, -0.25)),
        PointSpring("upper", "lower", 90.0, 0.5, 0.2, point_first=(0.05, 0, 0.1), point_second=(0.05, 0.02, -0.1)),
    ]
    return System(arms(), laws, [0.5, -0.4], q=[0.4, 0.3])


def arms_in_air() -> System:
    """A tree with drag at its end, damped joints, and a torque that comes and goes."""

    def law(stage: Stage) -> None:
        tip = stage.point("lower", (0, 0, -0.25))
        stage.push("lower", -2.0 * np.linalg.norm(tip.velocity) * tip.velocity, point=tip.position)
        stage.tau[...] += -0.4 * np.tanh(stage.v) + [2.0 * np.cos(5.0 * stage.time), 0.0]

    return System(arms(), [law], [2.0, -1.0], q=[0.4, 0.3])


def sliding_arm() -> System:
    """A slide on a hinge with a cubic spring on the slide."""

    def law(stage: Stage) -> None:
        stage.tau[1] -= 200.0 * stage.q[1] ** 3 + 5.0 * stage.q[1]

    return System(arms("slider"), [law], [1.5, 0.3], q=[0.5, 0.05])


SYSTEMS: dict[str, Callable[[], System]] = {
    made.__name__: made
    for made in (
        spring_to_the_world,
        damped_spring_to_the_world,
        spring_between_bodies,
        drag,
        drag_of_air,
        magnet,
        shaken_cart,
        arms_on_springs,
        arms_in_air,
        sliding_arm,
    )
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integrator", ORDERS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_force_laws_keep_the_order_of_the_integrator(name: str, integrator: str, kind: str) -> None:
    system, order = SYSTEMS[name](), ORDERS[integrator]
    exact, span, errors = system.end(0.5), 0.5, []
    for n in (10, 20, 40):
        world = system.world(KINDS[kind](level="acceleration", integrator=integrator), span / n)
        world.step(n)
        errors.append(float(np.abs(world.q[: len(exact)] - exact).max()))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    print(f"\n{name}, {kind}, {integrator}: {', '.join(f'{e:.1e}' for e in errors)}, orders {orders.round(2)}")
    assert errors[-1] < 1e-8 or orders[-1] > order - 0.35


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["spring_to_the_world", "drag", "arms_on_springs"])
def test_at_velocity_level_force_laws_are_of_the_first_order(name: str, kind: str) -> None:
    system = SYSTEMS[name]()
    exact, errors = system.end(0.5), []
    for n in (50, 100, 200):
        world = system.world(KINDS[kind](), 0.5 / n)
        world.step(n)
        errors.append(float(np.abs(world.q[: len(exact)] - exact).max()))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert orders[-1] == pytest.approx(1.0, abs=0.3)


# ---- how often -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("integrator", "stages"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_laws_are_called_in_every_stage_and_controllers_once_a_step(integrator: str, stages: int) -> None:
    """Laws once more where a step begins and where it ends, for the rows there."""
    world = ball(gravity=(0, 0, -9.81)).build(poise.Reduced(level="acceleration", integrator=integrator), dt=0.01)
    times: list[float] = []
    calls: list[float] = []

    def count(state: poise.sim.StateToAct) -> Targets:
        calls.append(state.time)
        state.slots["calls"] = state.slots.get("calls", np.zeros(1)) + 1
        return Targets()

    world.add_controller(count)
    world.add_force(lambda stage: times.append(stage.time))
    world.step(5)
    assert calls == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert world.state.slots["control/count/calls"][0] == 5.0
    assert len(times) == 5 * (stages + 2)
    assert {round(t / 0.005) for t in times} == (set(range(11)) if stages > 1 else set(range(0, 11, 2)))


@pytest.mark.parametrize("substeps", [1, 3])
def test_at_velocity_level_laws_are_called_once_a_substep(substeps: int) -> None:
    world = ball().build(poise.Reduced(substeps=substeps), dt=0.03)
    times: list[float] = []
    world.add_force(lambda stage: times.append(stage.time))
    world.step(2)
    assert times == pytest.approx([0.03 * k / substeps for k in range(2 * substeps)])


# ---- with all the rest -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_the_ground_bears_what_a_law_presses_on_it(kind: str, level: str) -> None:
    """m g + F, beside what is written to forces, what is pushed, and what a controller gives."""
    scene = ball(position=(0, 0, 0.1), gravity=(0, 0, -9.81))
    scene.add_ground()
    world = scene.build(KINDS[kind](level=level), dt=0.01)
    world.add_force(lambda stage: stage.push("ball", (0, 0, -7.0)))
    world.add_controller(lambda state: Targets(tau=[0, 0, -5.0, 0, 0, 0]))
    world.forces[0, 5] = -3.0
    world.step(20)
    world.apply_force("ball", (0, 0, -2.0))
    world.step()
    weight = 2.0 * 9.81 + 7.0 + 5.0 + 3.0
    assert world.report().contacts[0].normal_force == pytest.approx(weight + 2.0, rel=1e-3)
    assert world.forces[0].tolist() == [0, 0, 0, 0, 0, -3.0]
    assert not world.tau.any()
    world.step(2)
    assert world.report().contacts[0].normal_force == pytest.approx(weight, rel=1e-3)


def test_a_law_acts_through_an_impact_at_the_order_of_the_integrator() -> None:
    """A ball on a spring without gravity meets a wall without bounce, stays, and is taken off by nothing: it rests."""
    scene = ball(position=(0, 0, 1.0))
    scene.add_ground(friction=0.0)
    world = scene.build(poise.Reduced(level="acceleration"), dt=0.02)
    world.add_force(PointSpring(None, "ball", stiffness=8.0, point_first=(0, 0, -1.0)))
    world.step(200)
    assert world.q[2] == pytest.approx(0.1, abs=1e-5)
    assert world.report().contacts[0].normal_force == pytest.approx(8.0 * 1.1, rel=1e-4)


def test_laws_go_with_copies_and_not_with_states() -> None:
    world = SYSTEMS["arms_on_springs"]().world(poise.Reduced(level="acceleration"), 0.01)
    world.step(5)
    state, twin = world.state, copy.deepcopy(world)
    assert list(twin.force_laws) == ["PointSpring", "PointSpring 2"]
    world.step(10)
    twin.step(10)
    assert world.state.same_bits(twin.state)
    end = world.state
    world.state = state
    world.step(10)
    assert world.state.same_bits(end)


@pytest.mark.parametrize("level", ["velocity", "acceleration"])
def test_a_law_that_fails_leaves_the_world_as_it_was(level: str) -> None:
    world = ball().build(poise.Reduced(level=level), dt=0.01)
    world.tau[0] = 0.5
    world.step(3)
    before = world.state

    def wrong(stage: Stage) -> None:
        stage.tau[0] += 3.0
        if level == "velocity" or stage.time > before.time + 0.004:
            raise RuntimeError("on purpose")

    world.add_force(wrong)
    with pytest.raises(RuntimeError, match="on purpose"):
        world.step()
    assert world.state.same_bits(before)
    assert world.tau[0] == 0.5
    world.remove_force("wrong")
    world.step()


def test_what_is_wrong_with_a_law_is_told_by_its_name() -> None:
    world = ball().build(poise.Reduced(level="acceleration"), dt=0.01)
    with pytest.raises(TypeError, match="a function is wanted, found a int"):
        world.add_force(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no force 'winde'"):
        world.remove_force("winde")
    world.add_force(lambda stage: stage.tau, name="given")
    with pytest.raises(ValueError, match='there is a force "given" already'):
        world.add_force(lambda stage: None, name="given")
    with pytest.raises(TypeError, match='force law "given" gave a ndarray'):
        world.step()
    world.remove_force("given")

    def infinite(stage: Stage) -> None:
        stage.tau[0] = np.inf

    world.add_force(infinite)
    with pytest.raises(ValueError, match='tau of force law "infinite" must be'):
        world.step()
