"""Sleep: what is still stays as it is, at no cost, and wakes when it should."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

import poise
from poise.motion import PathPoint
from poise.sim.world import World

BOX = 0.2
SLEEPING = poise.Reduced(sleeping=True)


def stacks(formulation: poise.Reduced = SLEEPING, friction: float = 0.8) -> World:
    """Two stacks of three boxes, a metre apart, and a ball beside them."""
    scene, own = poise.Scene(), poise.Material(friction=friction)
    scene.add_ground()
    for n, x in enumerate((0.0, 1.0)):
        for k in range(3):
            box = poise.box(BOX, BOX, BOX, mass=1.0, material=own)
            scene.add(box, name=f"box {n}{k}", position=(x, 0, BOX * (k + 0.5)))
    scene.add(poise.sphere(0.1, mass=1.0, material=own), name="ball", position=(3.0, 0, 0.1))
    return scene.build(formulation, dt=1 / 200)


@pytest.fixture(scope="module")
def asleep() -> World:
    world = stacks()
    world.step(200)
    assert world.asleep[1:].all() if world.model.body_names[0] == "ground" else world.asleep.all()
    return world


def sleeping(world: World) -> set[str]:
    return {name for name, is_asleep in zip(world.model.body_names, world.asleep, strict=True) if is_asleep}


def test_nobody_sleeps_unless_asked_to() -> None:
    world = stacks(poise.Reduced())
    world.step(300)
    assert not world.asleep.any()
    assert not any(name.startswith("sleep/") for name in world.state.slots)


def test_what_sleeps_does_not_move_to_the_last_bit(asleep: World) -> None:
    world = copy.deepcopy(asleep)
    before, time = world.q.copy(), world.time
    assert not world.v.any()
    world.step(5000)
    assert np.array_equal(world.q, before)
    assert not world.v.any()
    assert not world.a.any()
    assert world.time == pytest.approx(time + 25.0)


def test_nobody_sleeps_before_its_time() -> None:
    world = stacks()
    world.step(95)
    assert not sleeping(world)
    world.step(15)
    assert sleeping(world)


def test_contacts_and_their_forces_are_told_as_before(asleep: World) -> None:
    world = copy.deepcopy(asleep)
    world.step(10)
    weights = sum(contact.normal_force for contact in world.report().contacts if "ground" in contact.body_a)
    assert weights == pytest.approx(7 * 9.81, rel=1e-3)
    assert len(world.report().contacts) >= 3


def test_in_a_sleeping_step_nothing_collides_and_nothing_is_solved(asleep: World) -> None:
    """The stages that cost most are not entered: the time that is told of them is exactly 0."""
    quiet, loud = copy.deepcopy(asleep), stacks(poise.Reduced())
    quiet.step()  # a copy finds the contacts that it reports once
    loud.step(200)
    for world in (quiet, loud):
        world.timing = True
        world.step()
    stages = ("collide", "solve")
    assert [quiet.report().timing[name] for name in stages] == [0.0, 0.0]
    assert all(loud.report().timing[name] > 0.0 for name in stages)


def hit(world: World) -> None:
    """In the middle of the 21st step: whether something touches where a step ends is up to rounding."""
    world.body("ball").place((0.5 * BOX + 0.1 + 20.5 * 3.0 / 200, 0, 0.3), velocity=(-3.0, 0, 0))


WAKING: dict[str, tuple[Callable[[World], None], str]] = {
    "a velocity": (lambda world: world.v.__setitem__(0, 0.1), "box 0"),
    "a place": (lambda world: world.q.__setitem__(2, world.q[2] + 0.01), "box 0"),
    "a force": (lambda world: world.forces.__setitem__((world.model.body_names.index("box 01"), 3), 1.0), "box 0"),
    "a push": (lambda world: world.apply_force("box 02", (0, 0, 1.0)), "box 0"),
    "an impulse": (lambda world: world.apply_impulse("box 02", (0, 0, 0.1)), "box 0"),
    "a generalized force": (lambda world: world.tau.__setitem__(20, 0.1), "box 1"),
    "a call": (lambda world: world.wake("box 10"), "box 1"),
}


@pytest.mark.parametrize("name", WAKING)
def test_what_is_touched_wakes_with_its_stack_and_no_other(asleep: World, name: str) -> None:
    world = copy.deepcopy(asleep)
    touch, who = WAKING[name]
    touch(world)
    world.step()
    woken = set(world.model.body_names) - sleeping(world) - {"ground"}
    assert woken == {f"{who}{k}" for k in range(3)}


def test_what_is_hit_wakes_and_moves_as_if_it_had_never_slept() -> None:
    """Without friction: a step is then a convex problem, solved by one velocity alone; with friction others may, too.

    A residual r beside impulses p leaves M δv² ≤ p r: r is the tolerance times 3 m/s, p is 1.5 N s, and nothing in M is
    less than the inertia of a box. In these steps every box stays on another: what comes off falls by other rules, so
    that the moment would count.
    """
    tolerance, steps, inertia = 1e-10, 30, BOX**2 / 6
    world = stacks(poise.Reduced(sleeping=True, tolerance=tolerance), friction=0.0)
    awake = stacks(poise.Reduced(tolerance=tolerance), friction=0.0)
    world.step(200)
    before = awake.q[...] = world.q.copy()
    assert world.asleep[world.model.body_mass > 0.0].all()
    for one in (world, awake):
        hit(one)
        one.step(steps)
    assert sleeping(world) == {"box 10", "box 11", "box 12"}
    assert np.abs(world.q - awake.q)[:21].max() < np.sqrt(1.5 * 3.0 * tolerance / inertia) * steps / 200
    assert np.abs(world.q - before)[:21].max() > 0.05


def test_a_lift_that_starts_wakes_what_stands_on_it() -> None:
    scene = poise.Scene()

    def lift(time: float) -> PathPoint:
        """Stands for two seconds, then gains speed."""
        t, still = max(time - 2.0, 0.0), np.zeros(3)
        place, speed, gain = (np.array((0.0, 0.0, z)) for z in (0.5 * t * t, t, float(t > 0.0)))
        return PathPoint(place, np.array((1.0, 0, 0, 0)), speed, still, gain, still)

    scene.add(poise.box(4, 4, 0.1), name="lift", kinematic=lift)
    scene.add(poise.box(BOX, BOX, BOX, mass=1.0), name="box", position=(0, 0, 0.05 + 0.5 * BOX))
    world = scene.build(SLEEPING, dt=1 / 200)
    world.step(300)
    assert world.body("box").asleep
    world.step(400)
    assert world.body("box").position[2] == pytest.approx(0.5 * 1.5**2 + 0.05 + 0.5 * BOX, abs=2e-3)


def motor_arm(**motor: float) -> World:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=1.0), axis="y", anchor=(0, 0, 0.25), name="arm")
    scene.motor("arm", name="motor", **motor)
    return scene.build(SLEEPING, dt=1 / 200)


def test_a_motor_that_is_set_wakes_its_joint() -> None:
    world = motor_arm(stiffness=400.0, damping=40.0)
    world.step(400)
    assert world.body("arm").asleep
    world.motor("motor").target = 0.5
    world.step(400)
    assert world.q[0] == pytest.approx(0.5, abs=0.01)


def test_a_motor_that_turns_slowly_goes_on_turning() -> None:
    world = motor_arm(damping=1e4, speed=0.01)
    world.step(1000)
    assert not world.asleep.any()
    assert world.q[0] == pytest.approx(0.05, rel=0.02)


def test_what_is_attached_or_let_go_wakes(asleep: World) -> None:
    world = copy.deepcopy(asleep)
    grip = world.attach(None, "ball")
    world.step()
    assert not world.asleep.any()
    world.step(300)
    assert world.body("ball").asleep
    world.release(grip)
    world.step()
    assert not world.body("ball").asleep


def test_rows_of_users_keep_the_world_awake(asleep: World) -> None:
    world = copy.deepcopy(asleep)
    world.rows_hooks.append(lambda world, rows: None)
    world.step(300)
    assert not world.asleep.any()
    world.rows_hooks.clear()
    world.step(300)
    assert world.asleep.any()


def test_a_state_knows_who_sleeps(asleep: World) -> None:
    world = copy.deepcopy(asleep)
    hit(world)
    world.step(20)
    state, who = world.state, sleeping(world)
    world.step(200)
    end = world.q.copy()
    world.state = state
    assert sleeping(world) == who
    world.step(200)
    assert np.array_equal(world.q, end)


def test_events_do_not_tell_of_contacts_that_end_by_falling_asleep() -> None:
    world = stacks()
    told: list[str] = []
    world.on("contact_end", lambda event: told.append(event.kind))
    world.step(400)
    assert world.asleep.any()
    assert told == []


def test_many_steps_are_as_one_by_one() -> None:
    many, one = stacks(), stacks()
    for world in (many, one):
        world.body("ball").place((0.5, 0, 0.3), velocity=(-3.0, 0, 0))
    many.step(500)
    for _ in range(500):
        one.step()
    assert np.array_equal(many.q, one.q)
    assert sleeping(many) == sleeping(one)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="sleeping takes the velocity level"):
        poise.Reduced(level="acceleration", sleeping=True)
    with pytest.raises(ValueError, match="sleep_speed is -1"):
        poise.Reduced(sleeping=True, sleep_speed=-1.0)
    with pytest.raises(ValueError, match='"bxo"'):
        stacks().wake("bxo")
