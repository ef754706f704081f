"""A world through random sequences of what users do to it: its state is all that its next steps depend on.

Hypothesis attaches and releases bodies, lets loops break, drives motors, pushes, fails in callbacks, saves, restores,
copies, pickles and steps, in any order. After each of these the world has to go on, bit by bit, as the reference says:
a deep copy that was made before.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import poise

FORMULATIONS: dict[str, Any] = {
    "reduced": poise.Reduced(),
    "sleeping": poise.Reduced(sleeping=True),
    "maximal": poise.Maximal(),
    "acceleration": poise.Reduced(level="acceleration", integrator="euler"),
}
BODIES = ("box", "ball", "arm", "fore")
FORWARD = 4
"""Steps that two worlds take to be compared."""


class Wrong(Exception):
    """Raised on purpose."""


def make_world(formulation: Any) -> poise.World:
    """Contacts, joint limits, motors, a loop of the scene."""
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(0, 0, 0.11))
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(0.6, 0.3, 0.4))
    rod = poise.box(0.1, 0.1, 0.5)
    scene.hinge(None, rod, name="arm", axis="y", anchor=(0, 0, 0.25), position=(1, 0, 1.2), limits=(-0.3, 0.3))
    scene.hinge("arm", poise.box(0.1, 0.1, 0.5), name="fore", axis="y", anchor=(0, 0, 0.25), position=(0, 0, -0.5))
    scene.motor("arm", stiffness=10.0, damping=1.0, limit=20.0)
    scene.motor("fore", torque=0.5)
    scene.loop("ball", None, "ball", "hook", position=(0.6, 0.3, 0.6))
    world = scene.build(formulation, dt=1 / 240)
    _ = world.events
    return world


def bits(world: poise.World) -> list[Any]:
    """What a world shows of itself."""
    loops = {name: (world.loop(name).active, world.loop(name).force.tobytes()) for name in world.loops}
    motors = [(motor.target, motor.stiffness, motor.limit) for motor in (world.motor(0), world.motor(1))]
    shown = [world.q.tobytes(), world.v.tobytes(), world.time, world.ctrl.tobytes(), world.asleep.tobytes()]
    return [*shown, loops, repr(motors), repr(world.events)]


def future(world: poise.World) -> list[Any]:
    """What the next steps of a copy come to."""
    twin, found = copy.deepcopy(world), []
    for _ in range(FORWARD):
        twin.step()
        found.append(bits(twin))
    return found


class Worlds(RuleBasedStateMachine):
    """A world, and states of it that were saved with the future that followed them."""

    saved = Bundle("saved")
    formulation: Any = poise.Reduced()

    @initialize()
    def build(self) -> None:
        """Things have fallen on the ground, and one has been attached."""
        self.world = make_world(self.formulation)
        self.world.step(60)
        self.world.attach("arm", "box", kind="ball", name="rope", position=tuple(self.world.body("arm").position))
        self.world.step(5)
        self.attached = ["rope"]
        self.count = 0

    # ---- what changes a world ----------------------------------------------------------------------------------------

    @rule(n=st.integers(1, 12))
    def step(self, n: int) -> None:
        """Many steps in one call are as many calls of one step."""
        twin = copy.deepcopy(self.world)
        self.world.step(n)
        for _ in range(n):
            twin.step()
        assert bits(self.world) == bits(twin)

    @precondition(lambda self: len(self.attached) < 3)
    @rule(
        first=st.sampled_from((None, *BODIES)),
        second=st.sampled_from(BODIES),
        kind=st.sampled_from(("ball", "fixed")),
        strength=st.sampled_from((1.0, 50.0, np.inf)),
    )
    def attach(self, first: str | None, second: str, kind: str, strength: float) -> None:
        """Bodies stay where they are; what is too weak breaks in a later step."""
        if first == second:
            return
        self.count += 1
        name = f"grip {self.count}"
        place = tuple(self.world.body(second).position)
        self.world.attach(first, second, kind=kind, name=name, position=place, break_force=strength)
        self.attached.append(name)

    @precondition(lambda self: self.attached)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.attached))
        self.attached.remove(name)
        if name in self.world.loops:
            self.world.release(name)

    @rule(goal=st.floats(-1, 1), stiffness=st.sampled_from((0.0, 10.0, 80.0)), limit=st.sampled_from((1.0, 20.0)))
    def drive(self, goal: float, stiffness: float, limit: float) -> None:
        motor = self.world.motor(0)
        motor.target, motor.stiffness, motor.limit = goal, stiffness, limit

    @rule(value=st.floats(-2, 2))
    def control(self, value: float) -> None:
        self.world.ctrl[...] = value

    @rule(body=st.sampled_from(BODIES), x=st.floats(-20, 20))
    def push(self, body: str, x: float) -> None:
        self.world.apply_force(body, (x, 0.0, 5.0))

    @rule(body=st.sampled_from(BODIES), z=st.floats(0, 1))
    def strike(self, body: str, z: float) -> None:
        self.world.apply_impulse(body, (0.1, 0.0, z))

    @rule()
    def wake(self) -> None:
        self.world.wake()

    @rule()
    def reset(self) -> None:
        self.world.reset()
        self.attached = [name for name in self.attached if name in self.world.loops]

    # ---- what must not change it -------------------------------------------------------------------------------------

    @rule(where=st.sampled_from(("before", "controller", "diverged")))
    def fail(self, where: str) -> None:
        """A step that raises leaves the world as it was."""
        ahead = future(self.world)
        with pytest.raises(poise.Diverged if where == "diverged" else Wrong):
            FAILURES[where](self.world)
        assert future(self.world) == ahead

    @rule(kind=st.sampled_from(("copy", "deepcopy", "pickle")))
    def replace(self, kind: str) -> None:
        """A copy goes on as the world."""
        ahead = future(self.world)
        self.world = COPIES[kind](self.world)
        assert future(self.world) == ahead

    @rule(target=saved)
    def save_now(self) -> tuple[poise.State, list[Any], list[str]]:
        return self.save()

    @rule(target=saved, body=st.sampled_from(BODIES), n=st.integers(1, 5))
    def save_with_a_push_to_come(self, body: str, n: int) -> tuple[poise.State, list[Any], list[str]]:
        self.world.step(n)
        self.world.apply_force(body, (30.0, 0.0, 5.0))
        return self.save()

    def save(self) -> tuple[poise.State, list[Any], list[str]]:
        return self.world.state, future(self.world), [*self.attached]

    @rule(one=saved)
    def restore(self, one: tuple[poise.State, list[Any], list[str]]) -> None:
        """The world goes on as it did from there."""
        state, ahead, attached = one
        self.world.state = state
        self.attached = [*attached]
        assert future(self.world) == ahead

    @rule()
    def restore_at_once(self) -> None:
        """To go back to the present changes nothing."""
        ahead = future(self.world)
        self.world.state = self.world.state
        assert future(self.world) == ahead


def fail_before(world: poise.World) -> None:
    """A function before the step changes all that it can, and raises."""

    def change(world: poise.World) -> None:
        for name in list(world.loops):
            world.release(name)
        world.attach("box", "fore", name="another", kind="ball", position=(0, 0, 1))
        world.motor(0).target, world.motor(0).stiffness = 0.7, 99.0
        world.ctrl[...] = 0.2
        world.apply_force("ball", (1.0, 2.0, 3.0))
        world.v[...] += 1.0
        world.wake()
        raise Wrong

    world.before_step(change)
    try:
        world.step()
    finally:
        world.remove(change)


def fail_in_a_controller(world: poise.World) -> None:
    """A controller keeps something in the state, and raises."""

    def control(state: poise.sim.StateToAct) -> None:
        state.slots["calls"] = np.ones(3)
        raise Wrong

    world.add_controller(control, name="wrong")
    try:
        world.step()
    finally:
        world.remove_controller("wrong")


def diverge(world: poise.World) -> None:
    """A torque that no number stands for."""
    kept = world.tau.copy()
    world.tau[-1] = np.nan
    try:
        world.step()
    finally:
        world.tau[...] = kept


FAILURES = {"before": fail_before, "controller": fail_in_a_controller, "diverged": diverge}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda world: pickle.loads(pickle.dumps(world)),
}


def machine(name: str) -> type[Worlds]:
    """For a formulation."""
    return type(f"Worlds_{name}", (Worlds,), {"formulation": FORMULATIONS[name]})


@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_state_is_all_that_the_next_steps_depend_on(name: str) -> None:
    runs = 3 if name == "acceleration" else 12
    run_state_machine_as_test(machine(name), settings=settings(max_examples=runs, stateful_step_count=25))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::poise.FormulationWarning")
@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_state_is_all_that_the_next_steps_depend_on_in_many_runs(name: str) -> None:
    run_state_machine_as_test(machine(name), settings=settings(max_examples=250, stateful_step_count=30))
