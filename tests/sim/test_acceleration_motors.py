"""Motors at acceleration level: forces of the state, in every stage of the integrator, and accelerations to have."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.model import Body, Inertia
from poise.motion.rotations import quat_exp

ORDERS = (("euler", 1), ("midpoint", 2), ("rk4", 4))
MASS, STIFFNESS, DAMPING, TARGET = 2.0, 50.0, 1.5, 0.3


def acceleration(integrator: str = "rk4", **options) -> poise.Reduced:
    return poise.Reduced(level="acceleration", integrator=integrator, **options)


def cart(way: str = "tree", dt: float = 0.01, integrator: str = "rk4", **motor) -> poise.World:
    """A mass on a rail, which is a joint of the tree or a loop, with a motor; where it is tells `place`."""
    scene = poise.Scene(gravity=(0, 0, 0))
    body = Body("cart", inertia=Inertia(MASS, moments=(0.1, 0.1, 0.1)))
    if way == "tree":
        scene.slider(None, body, axis="x")
    else:
        scene.add(body, joint="free")
        scene.loop("slider", None, "cart", "cart", axis="x")
    scene.motor("cart", **motor)
    return scene.build(acceleration(integrator), dt=dt)


def place(world: poise.World) -> float:
    return float(world.body("cart").position[0])


def swing(time: float, k: float = STIFFNESS, d: float = DAMPING, m: float = MASS) -> float:
    """Where a mass on a spring and damper is, that has started from rest at a distance of 1."""
    s = d / (2 * m)
    w = np.sqrt(k / m - s * s)
    return float(np.exp(-s * time) * (np.cos(w * time) + s / w * np.sin(w * time)))


# ---- springs ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*holds loops by forces:poise.FormulationWarning")
@pytest.mark.parametrize("way", ["tree", "loop"])
@pytest.mark.parametrize(("integrator", "order"), ORDERS)
def test_a_mass_on_a_motor_swings_as_its_closed_form(integrator: str, order: int, way: str) -> None:
    """Errors are C hᵖ (1 + O(h)), and ω h is 0.125 or less: a quarter of an order is left for the next term."""
    errors = []
    for steps in (40, 80):
        world = cart(way, 1 / steps, integrator, stiffness=STIFFNESS, damping=DAMPING, target=TARGET)
        world.step(steps)
        errors.append(abs(place(world) - TARGET * (1 - swing(1.0))))
        assert world.report().level == "acceleration"
    assert np.log2(errors[0] / errors[1]) > order - 0.25
    assert errors[1] < TARGET * (5.0 / 80) ** order  # (ω h)ᵖ of the amplitude


@pytest.mark.parametrize("way", ["tree", "loop"])
def test_the_force_of_a_motor_is_that_of_the_state(way: str) -> None:
    world = cart(way, 0.02, stiffness=STIFFNESS, damping=DAMPING, target=TARGET, speed=0.4, torque=0.7)
    world.step(13)
    speed = float(world.body("cart").velocity[0])
    expected = 0.7 + STIFFNESS * (TARGET - place(world)) + DAMPING * (0.4 - speed)
    assert world.motor("cart").force == pytest.approx(expected, rel=1e-12)
    assert world.report().motors["cart"] == world.motor("cart").force
    if way == "tree":
        assert world.report().passive == pytest.approx(np.zeros(1), abs=1e-12)


def test_a_gear_counts_in_place_and_in_force() -> None:
    """x = 2 q: the same swing as with four times the stiffness and damping, and half the target."""
    geared = cart(stiffness=STIFFNESS, damping=DAMPING, target=TARGET, gear=2.0)
    plain = cart(stiffness=4 * STIFFNESS, damping=4 * DAMPING, target=TARGET / 2)
    for world in (geared, plain):
        world.step(50)
    assert geared.q == pytest.approx(plain.q, rel=1e-12)
    assert 2 * geared.motor("cart").force == pytest.approx(plain.motor("cart").force, rel=1e-12)


def test_a_motor_turns_a_ball_joint_to_a_rotation() -> None:
    """Of equal moments of inertia: it swings about one axis, as a mass on a spring does."""
    inertia, axis, way = 0.5, np.array((0.48, 0.6, 0.64)), 0.9
    errors = []
    for steps in (40, 80):
        scene = poise.Scene(gravity=(0, 0, 0))
        scene.ball(None, Body("eye", inertia=Inertia(1.0, moments=(inertia,) * 3)))
        scene.motor("eye", stiffness=20.0, damping=1.0, target=tuple(quat_exp(way * axis)))
        world = scene.build(acceleration(), dt=1 / steps)
        world.step(steps)
        here = quat_exp(way * axis * (1 - swing(1.0, 20.0, 1.0, inertia)))
        errors.append(float(np.abs(world.q - here).max()))
    assert np.log2(errors[0] / errors[1]) > 3.75
    assert errors[1] < way * (np.sqrt(40.0) / 80) ** 4


# ---- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["tree", "loop"])
@pytest.mark.parametrize("integrator", ["midpoint", "rk4"])
def test_a_motor_saturates_exactly(integrator: str, way: str) -> None:
    """Far from its target it is a constant force: a parabola, which both integrators have to rounding."""
    world = cart(way, 0.01, integrator, stiffness=1e4, target=50.0, limit=(-3.0, 8.0))  # stable for midpoint too
    world.step(100)
    assert world.motor("cart").force == 8.0
    assert place(world) == pytest.approx(0.5 * 8.0 / MASS, rel=1e-12)
    world.motor("cart").target = -50.0
    world.step(100)
    assert world.motor("cart").force == -3.0
    assert place(world) == pytest.approx(2.0 + 4.0 - 0.5 * 3.0 / MASS, rel=1e-12)


# ---- accelerations to have -------------------------------------------------------------------------------------------


def arm(dt: float = 0.01, **motor) -> poise.World:
    """A rod of 1 m and 3 kg, hung by its end."""
    scene = poise.Scene()
    rod = Body("arm", inertia=Inertia(3.0, com=(0, 0, -0.5), moments=(0.25, 0.25, 0.01)))
    scene.hinge(None, rod, axis="y")
    scene.motor("arm", **motor)
    return scene.build(acceleration(), dt=dt)


def test_an_acceleration_is_had_whatever_pulls() -> None:
    world = arm()
    world.motor("arm").acceleration = 0.8
    for _ in range(100):
        world.tau[0] = 5.0 * np.sin(9.0 * world.time)
        world.step()
    assert world.report().level == "acceleration"
    assert world.v[0] == pytest.approx(0.8, rel=1e-9)
    assert world.q[0] == pytest.approx(0.4, rel=1e-9)
    needed = 0.8 * (0.25 + 3.0 * 0.25) + 3.0 * 9.81 * 0.5 * np.sin(world.q[0]) - world.tau[0]
    assert world.motor("arm").force == pytest.approx(needed, abs=1e-6)
    world.motor("arm").acceleration = None
    world.step()
    assert world.motor("arm").force == 0.0


def test_an_acceleration_that_is_too_much_gets_all_there_is() -> None:
    world = arm(limit=2.0)
    world.motor("arm").acceleration = 100.0
    world.step()
    assert world.motor("arm").force == 2.0
    other = arm(torque=2.0)
    other.step()
    assert world.q == pytest.approx(other.q, rel=1e-9)
    assert world.v == pytest.approx(other.v, rel=1e-9)


@pytest.mark.parametrize(("limit", "kept"), [(None, True), (50.0, False)])
def test_only_motors_without_bounds_go_on_through_a_blow(limit: float | None, kept: bool) -> None:
    """A ball of 1 kg hits an arm: with finite forces a blow changes its speed."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.hinge(None, poise.box(0.1, 0.1, 1.0, mass=3.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(-0.155, 0, -0.3))
    scene.motor("arm", limit=limit)
    world = scene.build(acceleration(), dt=0.01)
    world.motor("arm").acceleration = 0.0
    world.body("ball").place(velocity=(2.0, 0, 0))
    world.step()
    assert world.report().backtracks > 0
    assert bool(abs(world.v[0]) < 1e-9) is kept


def test_an_acceleration_into_a_limit_falls_back_and_comes_back() -> None:
    """No force gives it: the velocity level has the rest of the step, springs are forces again in the next one."""
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, Body("cart", inertia=Inertia(MASS, moments=(0.1, 0.1, 0.1))), axis="x", limits=(-1.0, 0.1))
    scene.motor("cart", stiffness=STIFFNESS, target=0.05)
    world = scene.build(acceleration(), dt=0.01)
    world.q[0] = 0.1
    world.motor("cart").acceleration = 1.0
    world.step()
    assert world.report().level == "velocity"
    assert world.q[0] <= 0.1 + 1.0 * 0.01**2  # what the acceleration would do in the step
    world.motor("cart").acceleration = None
    world.q[0], world.v[0] = 0.0, 0.0
    world.step(20)
    assert world.report().level == "acceleration"
    assert world.q[0] == pytest.approx(0.05 * (1 - np.cos(5.0 * 0.2)), rel=1e-5)


def test_a_step_that_falls_back_in_parts_tells_the_mean_force_of_a_loop() -> None:
    """A bullet splits the rest of the step: a weld still bears its weight, once."""
    scene = poise.Scene()
    scene.slider(None, Body("cart", inertia=Inertia(MASS, moments=(0.1, 0.1, 0.1))), axis="x", limits=(-1.0, 0.1))
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="block", position=(0, 0, 3))
    scene.loop("fixed", None, "block", "weld", break_force=1.5 * 2.0 * 9.81)
    scene.add(poise.sphere(0.01, mass=0.1), name="bullet", position=(0, 0, 5))
    scene.motor("cart")
    world = scene.build(acceleration(), dt=0.01)
    world.body("bullet").place(velocity=(5.0, 0, 0))
    world.q[0], world.motor("cart").acceleration = 0.1, 1.0
    for _ in range(3):
        world.step()
        assert world.report().level == "velocity"
        assert world.report().parts > 2
        assert world.loop("weld").force == pytest.approx((0, 0, 2.0 * 9.81), abs=0.01)
    assert world.loop("weld").active


# ---- states, errors --------------------------------------------------------------------------------------------------


def test_a_state_takes_motors_along_bit_for_bit() -> None:
    world = arm(stiffness=30.0, damping=0.5, limit=9.0, target=0.6)
    world.step(11)
    saved, twin = world.state, copy.deepcopy(world)
    force = world.motor("arm").force
    world.step(9)
    twin.step(9)
    end, world.state = world.q.copy(), saved
    assert world.motor("arm").force == force
    world.step(9)
    assert (world.q == end).all()
    assert (twin.q == end).all()
    assert twin.motor("arm").force == world.motor("arm").force


@pytest.mark.parametrize("endless", ["stiffness", "damping"])
def test_motors_without_end_are_refused(endless: str) -> None:
    world = arm(**{endless: float("inf")})
    with pytest.raises(ValueError, match='motor "arm" has an infinite stiffness or damping: at acceleration'):
        world.step()
    assert world.time == 0.0
    setattr(world.motor("arm"), endless, 2.0)
    world.step()
    assert world.time == 0.01


def test_a_motor_that_is_too_stiff_for_the_step_is_refused() -> None:
    """Forces of the state are explicit: rk4 is stable up to ω h = 2.8, and beyond it diverges."""
    with pytest.raises(ValueError, match=r'at "cart" are too stiff for integrator="rk4".* in steps of 0.1 s'):
        cart(dt=0.1, stiffness=1e8, target=1.0).step()
    world = cart(dt=0.1, stiffness=1.0, target=1.0)
    world.step()
    before = world.state
    world.motor("cart").stiffness = 1e8
    with pytest.raises(ValueError, match="too stiff"):
        world.step()
    assert np.array_equal(world.q, before.q)
    world.dt = 0.9 * 2.8 * np.sqrt(MASS / 1e8)
    world.step(1000)
    assert abs(place(world)) < 3.0
