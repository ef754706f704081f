"""What the acceleration level cannot step is refused or warned of, by a criterion that simulations bear out."""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import poise
from poise.characters import clips
from poise.dynamics import Drive
from poise.formulations.acceleration_level.stiffness_guard import (
    Laws,
    StiffnessGuard,
    find_unstable,
    motor_laws,
    passive_laws,
)

LIMITS = {"rk4": 2.785, "midpoint": 2.0}
"""h c/m up to which explicit methods are stable."""


def acceleration(integrator: str = "rk4", kind: Any = poise.Reduced) -> Any:
    return kind(level="acceleration", integrator=integrator)


def cart(integrator: str, dt: float, mass: float = 2.0, **options: Any) -> poise.World:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=mass), axis="x", name="cart", **options)
    return scene.build(acceleration(integrator), dt=dt)


@pytest.mark.parametrize("mass", [0.01, 2.0, 300.0])
@pytest.mark.parametrize("integrator", ["midpoint", "rk4"])
def test_a_damper_is_refused_from_the_bound_of_the_integrator_on(integrator: str, mass: float) -> None:
    """|R(−h c/m)| = 1 at 2 for midpoint, 2.785 for RK4; 1.05 is reached 3 % further on."""
    h, bound = 0.01, LIMITS[integrator]
    world = cart(integrator, h, mass, damping=0.99 * bound * mass / h)
    world.v[0] = 1.0
    world.step(300)
    assert abs(world.v[0]) < 1.0
    with pytest.raises(ValueError, match=f'at "cart" are too stiff for integrator="{integrator}"'):
        cart(integrator, h, mass, damping=1.04 * bound * mass / h)


@pytest.mark.parametrize("mass", [0.01, 2.0, 300.0])
def test_a_spring_is_refused_from_the_bound_of_the_integrator_on(mass: float) -> None:
    """RK4: h ω = √8."""
    h, bound = 0.01, 8.0
    world = cart("rk4", h, mass, stiffness=0.99 * bound * mass / h**2)
    world.q[0] = 0.1
    world.step(300)
    assert abs(world.q[0]) < 0.1
    with pytest.raises(ValueError, match=r"Take dt of 0\.0098 s or less"):
        cart("rk4", h, mass, stiffness=1.05 * bound * mass / h**2)
    cart("euler", h, mass, stiffness=100.0 * mass / h**2, damping=100.0 * mass / h).step(3)  # implicit there


@pytest.mark.parametrize("gain", [0.9, 1.2])
def test_euler_is_explicit_in_motors(gain: float) -> None:
    """Semi-implicit Euler: h² k/m < 4."""
    h = 0.01
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=2.0), axis="x", name="cart")
    scene.motor("cart", stiffness=gain * 4.0 * 2.0 / h**2)
    if gain > 1.0:
        with pytest.raises(ValueError, match='integrator="euler"'):
            scene.build(acceleration("euler"), dt=h).step()
        return
    world = scene.build(acceleration("euler"), dt=h)
    world.q[0] = 0.1
    world.step(300)
    assert abs(world.q[0]) < 0.5


def tree(seed: int) -> poise.Scene:
    """A few links of random sizes, joints, springs and dampers; one has a motor with a gear of two joints."""
    chance = np.random.default_rng(seed)
    scene, parent = poise.Scene(gravity=(0, 0, 0)), None
    for k in range(int(chance.integers(2, 6))):
        sizes = chance.uniform(0.03, 0.4, 3)
        kind = str(chance.choice(["hinge", "slider", "ball", "universal"]))
        shape = poise.box(*sizes, mass=float(10 ** chance.uniform(-1.5, 1.0)), group=0, mask=0)
        stiffness, damping = 10 ** chance.uniform(0, 5), 10 ** chance.uniform(-1, 3)
        law = {"stiffness": float(stiffness), "damping": float(damping)} if kind != "slider" else {"damping": damping}
        make = getattr(scene, kind)
        axis, at = tuple(chance.normal(size=3)), tuple(chance.uniform(-0.3, 0.3, 3))
        parent = make(parent, shape, name=f"link {k}", axis=axis, anchor=tuple(0.5 * sizes), position=at, **law)
    return scene


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("integrator", ["euler", "midpoint", "rk4"])
def test_the_criterion_tells_what_simulations_do(integrator: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a tenth above the step that is told as stable small motions grow, at a tenth below they do not."""
    scene = tree(seed)
    model = scene.compile()
    none = Laws(np.zeros((model.nv, model.nv)), np.zeros((model.nv, model.nv)))
    laws = Laws(np.diag(model.dof_stiffness), np.diag(model.dof_damping))
    found = find_unstable(model, model.q_rest, none, laws, integrator, 1.0)
    if integrator == "euler":
        assert found is None  # springs and dampers are implicit
        return
    assert found is not None
    monkeypatch.setattr(StiffnessGuard, "look", lambda *_: None)
    for factor in (0.9, 1.2):
        world = scene.build(acceleration(integrator), dt=factor * found.step)
        world.v[...] = 1e-7 * np.random.default_rng(seed).normal(size=model.nv)
        start = np.abs(world.v).max()
        grows = False
        try:
            world.step(400)
            grows = bool(np.abs(world.v).max() > 100.0 * start)
        except poise.Diverged:
            grows = True
        assert grows == (factor > 1.0) or (integrator == "midpoint" and factor < 1.0)


# ---- characters ------------------------------------------------------------------------------------------------------


def humanoid() -> tuple[poise.Scene, Any]:
    scene = poise.Scene()
    scene.add_ground()
    return scene, scene.add(poise.characters.humanoid(), name="hero")


def test_stiff_drives_are_refused_where_they_are_explicit_and_run_where_they_are_not() -> None:
    """A person who stands by drives of 300 N m/rad and 30 N m s/rad diverged with RK4 after 0.083 s."""
    scene, _ = humanoid()
    world = scene.build(acceleration("rk4"), dt=1 / 240)
    gain = np.full(world.model.nv, 300.0)
    gain[:6] = 0.0
    drive = Drive(gain_p=gain, gain_d=0.1 * gain, goal_q=world.q.copy())
    world.drive = drive
    before = world.state
    with pytest.raises(ValueError, match=r'too stiff for integrator="rk4".*integrator="euler"'):
        world.step()
    assert world.state.same_bits(before)
    world.drive = None
    world.step()
    world = scene.build(acceleration("euler"), dt=1 / 240)
    world.drive = drive
    world.step(3)
    assert np.abs(world.v).max() < 1.0


@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
@pytest.mark.parametrize("options", [{}, {"root": "held"}, {"by": "drives"}])
def test_a_motion_is_not_tracked_by_explicit_motors(kind: Any, options: dict[str, Any]) -> None:
    scene, hero = humanoid()
    hero.track(clips.walk(speed=1.2), **options)
    with pytest.raises(ValueError, match=r'too stiff for integrator="rk4".*level="velocity"'):
        scene.build(acceleration(kind=kind), dt=1 / 240).step()


@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
def test_a_motion_is_tracked_by_accelerations(kind: Any) -> None:
    scene, hero = humanoid()
    hero.track(clips.walk(speed=1.2), by="accelerations")
    world = scene.build(acceleration(kind=kind), dt=1 / 240)
    head = float(world.body("hero/head").position[2])
    world.step(4)
    assert world.body("hero/head").position[2] == pytest.approx(head, abs=0.05)


def test_ball_limits_that_come_near_while_rows_are_differentiated_raise_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are emitted at two places along the velocity and again: how many are near may differ by then."""
    monkeypatch.setattr(StiffnessGuard, "look", lambda *_: None)
    scene, hero = humanoid()
    hero.track(clips.walk(speed=1.2))
    world = scene.build(acceleration(kind=poise.Maximal), dt=1 / 240)
    with suppress(poise.Diverged):  # the motors are too stiff
        world.step(2)


def test_motors_with_limits_are_warned_of_once() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 0.3), axis="y", name="arm")
    scene.motor("arm", stiffness=1e5, damping=1e3, limit=5.0)
    world = scene.build(acceleration(), dt=0.01)
    with pytest.warns(poise.FormulationWarning, match="within the limits of motors"):
        world.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.step(3)
        world.motor("arm").stiffness = 2e5
        world.step(3)


def test_gains_are_looked_at_when_they_grow_and_not_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def count(*given: Any) -> None:
        looks.append(given)

    monkeypatch.setattr("poise.formulations.acceleration_level.stiffness_guard.find_unstable", count)
    world = cart("rk4", 0.01, damping=1.0)
    world.step()
    at_first = len(looks)
    world.step(5)
    world.drive = Drive(gain_p=[5.0], gain_d=[1.0], goal_q=[0.1])
    world.step(5)
    assert len(looks) == at_first + 1
    world.drive = Drive(gain_p=[3.0], gain_d=[1.0], goal_q=[0.4])
    world.step(5)
    assert len(looks) == at_first + 1
    world.dt = 0.02
    world.step(2)
    assert len(looks) == at_first + 2


def test_gears_couple_the_joints_that_a_motor_drives() -> None:
    scene = poise.Scene()
    one = scene.hinge(None, poise.box(0.1, 0.1, 0.3), axis="y", name="one")
    scene.hinge(one, poise.box(0.1, 0.1, 0.3), axis="y", name="two", position=(0, 0, -0.3), damping=0.5, stiffness=2.0)
    scene.motor("one", stiffness=7.0, damping=3.0)
    world = scene.build()
    laws = motor_laws(2, world._stepper.extras.motors, np.ones(1, bool))
    assert laws.stiffness.tolist() == [[7.0, 0.0], [0.0, 0.0]]
    assert laws.damping.tolist() == [[3.0, 0.0], [0.0, 0.0]]
    assert np.diag(passive_laws(world.model, world._space.x).stiffness).tolist() == [0.0, 2.0]


# ---- what is told ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("integrator", "told"), [(None, 'integrator="rk4"'), ("midpoint", 'integrator="midpoint"')])
def test_divergence_names_the_integrator(integrator: Any, told: str) -> None:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 0.3), axis="y", name="arm")
    world = scene.build(poise.Reduced(level="acceleration", integrator=integrator), dt=0.01)
    world.v[0] = 1e200
    with pytest.raises(poise.Diverged, match=told) as caught:
        world.step(2)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_steps_that_fall_back_one_after_another_are_told_once() -> None:
    """Two loops that contradict each other: no forces meet both."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.8, 0.1, 0.1, mass=2.0), axis="z", name="door")
    scene.loop("ball", None, "door", "one", anchor_first=(0.4, 0.0, 0.1), anchor_second=(0.4, 0, 0))
    scene.loop("ball", None, "door", "two", anchor_first=(-0.4, 0.0, -0.1), anchor_second=(-0.4, 0, 0))
    world = scene.build(acceleration(), dt=1 / 60)
    told = []
    for _ in range(24):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            world.step()
        told += [(str(one.message), world.report().level) for one in caught if one.category is poise.FormulationWarning]
    if world.report().level == "velocity":
        assert len(told) == 1
        assert "10 steps in a row" in told[0][0]


@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("what", ["free", "hinge", "loop"])
def test_joints_that_euler_holds_by_forces_are_warned_of(kind: Any, integrator: str, what: str) -> None:
    scene = poise.Scene()
    if what == "hinge":
        scene.hinge(None, poise.box(0.1, 0.1, 0.3), axis="y", name="arm")
    else:
        scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    if what == "loop":
        scene.loop("ball", None, "ball", "hook", position=(0, 0, 1.1))
    warned = integrator == "euler" and (what == "loop" or (what == "hinge" and kind is poise.Maximal))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world = scene.build(acceleration(integrator, kind), dt=0.01)
        world.step(2)
        copy.deepcopy(world).step()
    assert [one.category for one in caught] == [poise.FormulationWarning] * warned
