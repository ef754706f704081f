"""Steps that are taken in one call: the same bits as one by one, whatever ends a march."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import inf

import numpy as np
import pytest

import poise
from poise.collision.broadphase.search import FEW
from poise.formulations.ccd_stepping.ccd_substeps import EVEN
from poise.formulations.driver import Stepper
from poise.formulations.step_loop import AGAIN
from poise.sim.world import World


def falling_humanoid() -> World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(height=1.75, mass=70.0), name="hero", position=(0, 0, 1.2))
    return scene.build(dt=1 / 240)


def rain() -> World:
    """More contacts than there is room for at first, and some that are fast."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(30):
        place = (0.3 * (k % 6), 0.3 * (k // 6), 0.3 + 0.02 * k)
        scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name=f"box {k}", position=place)
    world = scene.build(dt=1 / 100)
    world.body("box 3").place((0.9, 0, 3.0), velocity=(0, 0, -40.0))
    return world


def driven_arm() -> World:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 0.5, mass=1.0), axis="y", anchor=(0, 0, 0.25), name="arm")
    scene.motor("arm", stiffness=50.0, damping=1.0, target=0.7, name="motor")
    return scene.build(dt=1 / 100)


def geared() -> World:
    scene = poise.Scene()
    for name, place in (("one", 0.0), ("other", 1.0)):
        bar = poise.box(0.4, 0.05, 0.05, mass=1.0)
        scene.hinge(None, bar, axis="y", anchor=(-0.2, 0, 0), position=(place, 0, 0), name=name)
    scene.couple("one", "other", (0.0, -2.0))
    return scene.build(dt=1 / 100)


def stack() -> World:
    """One sweep leaves its steps unsolved."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(10):
        scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name=f"box {k}", position=(0.003 * (k % 3), 0, 0.1 + 0.2 * k))
    return scene.build(poise.Reduced(sweeps=1, newton=False), dt=1 / 100)


def flail() -> World:
    """Limbs so fast that most steps have several parts, in the air and on the ground."""
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.characters.ragdoll(height=1.75, mass=70.0), name="hero", position=(0, 0, 1.5))
    world = scene.build(dt=1 / 60)
    world.v[...] = np.random.default_rng(3).normal(scale=2.0, size=world.model.nv)
    return world


def whirl() -> World:
    """A driven arm whose end moves by several of its own widths in a step."""
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.05, 0.05, 1.0, mass=1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.motor("arm", damping=5.0, speed=20.0, limit=30.0, name="motor")
    return scene.build(dt=1 / 100)


def four_bar() -> World:
    """A closed chain of links."""
    scene = poise.Scene()
    bar, crank = poise.box(0.6, 0.04, 0.04, mass=1.0), poise.box(0.04, 0.04, 0.3, mass=0.5)
    scene.hinge(None, crank, axis="y", anchor=(0, 0, -0.15), position=(0, 0, 1), name="left")
    scene.hinge("left", bar, axis="y", anchor=(-0.3, 0, 0), position=(0, 0, 0.15), name="middle")
    scene.hinge(None, crank, axis="y", anchor=(0, 0, -0.15), position=(0.6, 0, 1), name="right")
    scene.loop("hinge", "right", "middle", "pin", position=(0.6, 0, 1.15), axis="y")
    world = scene.build(dt=1 / 100)
    world.v[0] = 3.0
    return world


def breaking() -> World:
    """A bullet that hangs by a loop joint, which breaks where it lands on the end of its swing; another one holds."""
    scene = poise.Scene()
    scene.add_ground()
    for name, place in (("weak", 0.0), ("strong", 1.0)):
        scene.add(poise.sphere(0.1, mass=1.0), name=name, position=(place + 0.4, 0, 1.0))
        strength = 15.0 if name == "weak" else inf
        scene.loop("ball", None, name, f"rope of {name}", position=(place, 0, 1.0), break_force=strength)
    return scene.build(dt=1 / 100)


def flung_chain() -> World:
    """A closed chain so fast that its steps have several parts."""
    world = four_bar()
    world.v[0] = 40.0
    return world


def heap() -> World:
    """More shapes than are compared each with each: Python looks for near pairs, within the loop."""
    scene = poise.Scene()
    scene.add_ground()
    for k in range(FEW + 20):
        place = (0.11 * (k % 8), 0.11 * (k // 8 % 6), 0.1 + 0.11 * (k // 48))
        scene.add(poise.sphere(0.05, mass=0.5), name=f"ball {k}", position=place)
    return scene.build(poise.Reduced(sweeps=20), dt=1 / 100)


SCENES: dict[str, tuple[Callable[[], World], int]] = {
    "humanoid": (falling_humanoid, 200),
    "rain": (rain, 60),
    "motor": (driven_arm, 50),
    "gears": (geared, 50),
    "stack": (stack, 30),
    "flail": (flail, 90),
    "whirl": (whirl, 60),
    "four-bar": (four_bar, 90),
    "breaking": (breaking, 60),
    "flung chain": (flung_chain, 60),
    "heap": (heap, 12),
}


@pytest.mark.parametrize("name", SCENES)
def test_many_steps_are_as_one_by_one(name: str) -> None:
    make, n = SCENES[name]
    many, one, timed, called = (make() for _ in range(4))
    timed.timing = True
    called.after_step(lambda world: None)  # which takes the way through Python
    assert timed._marches()
    assert not called._marches()
    many.step(n)
    timed.step(n)
    for _ in range(n):
        one.step()
        called.step()
    for other in (one, timed, called):
        assert np.array_equal(many.q, other.q)
        assert np.array_equal(many.v, other.v)
        assert np.array_equal(many.a, other.a)
        assert many.time == other.time
        assert str(many.report().contacts) == str(other.report().contacts)
        assert many.report().residual == other.report().residual


def test_the_scenes_end_marches_in_every_way() -> None:
    """Or the tests above would not tell anything of it."""
    ends = set()
    for make, n in SCENES.values():
        world = make()
        march = world._stepper.march  # type: ignore[union-attr]
        usual = march.run

        def run(dt: float, n: int, time: float, usual: Callable[..., int] = usual, march: object = march) -> int:
            done = usual(dt, n, time)
            if done < n:
                ends.add(march.end)  # type: ignore[attr-defined]
            return done

        march.run = run
        world.step(n)
    assert AGAIN in ends


def test_stages_are_timed_in_the_loop() -> None:
    """Those of the last step: its stages and the rest make up the whole, whoever drove it."""
    world = falling_humanoid()
    world.timing = True
    calls: list[int] = []
    run = world._stepper.march.run  # type: ignore[union-attr]
    world._stepper.march.run = lambda dt, n, time: calls.append(n) or run(dt, n, time)  # type: ignore
    world.step(150)
    assert sum(calls) >= 150
    for _ in range(2):
        timing = world.report().timing
        assert timing is not None
        assert min(timing[stage] for stage in ("free motion", "collide", "solve", "rest")) > 0.0
        assert sum(timing.values()) == pytest.approx(2.0 * timing["whole"])
        world.after_step(lambda world: None)
        world.step()
    world.timing = False
    assert world.report().timing is None
    assert "free_motion" not in vars(world._stepper)


def test_steps_that_sweeps_leave_unsolved_stay_in_the_loop() -> None:
    world = stack()
    world.step(10)  # there is room for all contacts
    assert world._stepper.march.run(world.dt, 20) == 20  # type: ignore[union-attr]
    assert world.report().status == "capped"


def test_steps_with_loop_joints_stay_in_the_loop_until_one_breaks() -> None:
    whole = four_bar()
    assert whole._stepper.march.run(whole.dt, 50) == 50  # type: ignore[union-attr]
    world = breaking()
    done = world._stepper.march.run(world.dt, 60)  # type: ignore[union-attr]
    assert 1 < done < 60
    assert [world.loop(name).active for name in world.loops] == [False, True]
    assert world._stepper.march.run(world.dt, 10) == 10  # type: ignore[union-attr]


def test_the_step_that_breaks_a_loop_joint_is_the_same_in_one_call() -> None:
    many, one = breaking(), breaking()
    many.step(60)
    for _ in range(60):
        one.step()
    for name in one.loops:
        assert many.loop(name).active == one.loop(name).active
        assert np.array_equal(many.loop(name).force, one.loop(name).force)
    assert not many.loop("rope of weak").active


@pytest.mark.parametrize("make", [flail, whirl])
def test_steps_in_parts_are_marched_through(make: Callable[[], World], monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps in up to EVEN parts are; one is left to Python only if it has more, or finds no room."""
    world, parts = make(), []
    stepper = world._stepper
    assert isinstance(stepper, Stepper)
    march, taken = stepper.march, []
    monkeypatch.setattr(stepper, "_in_parts", lambda dt: taken.append(dt) or Stepper._in_parts(stepper, dt))
    world.step(10)  # room is made for what there is
    for _ in range(50):
        if march.run(world.dt, 1):
            parts.append(stepper.parts)
            continue
        taken.clear()
        store = stepper.rows.now.room.tolist(), stepper.collider.room
        world._step_once(march.end)
        grown = store != (stepper.rows.now.room.tolist(), stepper.collider.room)
        assert grown or (taken and stepper.parts > EVEN)
    assert 2 < max(parts) <= EVEN


def test_a_step_in_parts_that_finds_no_room_begins_again() -> None:
    """Room for contacts runs out in the middle of a step: it is done as if it had been there from the start."""
    roomy, tight = flail(), flail()
    roomy.step(60)
    tight._stepper.collider._make_room(4)
    tight.step(60)
    assert tight._stepper.collider.room > 4
    assert np.array_equal(tight.q, roomy.q)
    assert np.array_equal(tight.v, roomy.v)


def test_a_motor_that_is_let_go_in_between_is_gone() -> None:
    world = driven_arm()
    world.step(10)
    world.motor("motor").stiffness = world.motor("motor").damping = 0.0
    twin = copy.deepcopy(world)
    twin.after_step(lambda world: None)
    world.step(20)
    for _ in range(20):
        twin.step()
    assert np.array_equal(world.q, twin.q)


def test_what_is_given_to_act_is_told_of_the_last_step() -> None:
    world = driven_arm()
    world.tau[0] = 0.25
    world.forces[0, 2] = 3.0
    world.step(4)
    world.tau[0] = world.forces[0, 2] = 0.0
    assert world._last.tau[0] == 0.25
    assert world._last.forces[0, 2] == 3.0
    assert world._last.done


def test_a_march_that_diverges_keeps_the_last_good_state_and_its_time() -> None:
    world = driven_arm()
    world.step(7)
    state = world.state
    world.tau[0] = np.inf
    with pytest.raises(poise.dynamics.Diverged, match="arm"):
        world.step(5)
    assert world.time == state.time
    assert np.array_equal(world.q, state.q)
    assert np.array_equal(world.v, state.v)
    world.tau[0] = 0.0
    world.step(5)


def test_a_state_in_the_middle_of_a_march_goes_on_the_same_way() -> None:
    world = falling_humanoid()
    world.step(101)
    state = world.state
    world.step(50)
    end = world.q.copy()
    world.state = state
    world.step(50)
    assert np.array_equal(world.q, end)


def test_what_spins_beyond_all_counting_diverges_and_leaves_no_nonsense() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.box(0.1, 0.3, 0.6, mass=3.0), name="brick")
    world = scene.build(dt=0.005)
    world.v[3:] = (2e8, 3e8, 5e8)
    with pytest.raises(poise.dynamics.Diverged, match="brick"):
        world.step(3000)
    assert np.linalg.norm(world.q[3:7]) == pytest.approx(1.0)
    assert np.isfinite(world.v).all()


def test_what_slides_fast_on_a_joint_goes_on() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.slider(None, poise.box(0.1, 0.1, 0.1, mass=1.0), axis="x", name="cart")
    world = scene.build(dt=0.01)
    world.v[0] = 1000.0
    world.step()
    assert world.q[0] == pytest.approx(10.0)
