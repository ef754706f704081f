"""Steps that fail and states that are refused leave nothing behind: worlds go on as untouched copies do, bit by bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise
from poise.dynamics import Drive

FORMULATIONS: dict[str, Any] = {
    "reduced": poise.Reduced(),
    "sleeping": poise.Reduced(sleeping=True),
    "maximal": poise.Maximal(),
    "pgs": poise.Maximal(solver="pgs", stabilization="speed"),
    "reduced acceleration": poise.Reduced(level="acceleration"),
    "maximal acceleration": poise.Maximal(level="acceleration"),
}


def led(state: poise.sim.StateToAct) -> poise.sim.Targets:
    """A controller with a slot, and a drive."""
    state.slots["calls"] = state.slots.get("calls", np.zeros(1)) + 1.0
    n = len(state.v)
    gain = np.zeros(n)
    gain[-1] = 5.0
    return poise.sim.Targets(drive=Drive(gain_p=gain, gain_d=0.1 * gain, goal_q=np.array(state.q)))


def world_with_everything(formulation: Any) -> poise.World:
    """Contacts, a motor, a loop of the scene, one that was attached, events, a controller, a push that is to come."""
    scene = poise.Scene()
    scene.add_ground(friction=0.8)
    scene.add(poise.box(0.2, 0.2, 0.2, mass=2.0), name="box", position=(0, 0, 0.11))
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(0.6, 0.3, 0.5))
    rod = poise.box(0.1, 0.1, 0.5)
    scene.hinge(None, rod, name="arm", axis="y", anchor=(0, 0, 0.25), position=(1, 0, 1), limits=(-0.3, 0.3))
    scene.hinge("arm", poise.box(0.1, 0.1, 0.5), name="fore", axis="y", anchor=(0, 0, 0.25), position=(0, 0, -0.5))
    scene.motor("arm", stiffness=10.0, damping=1.0, limit=20.0)
    scene.loop("ball", None, "ball", "hook", position=(0.6, 0.3, 0.5))
    world = scene.build(formulation, dt=1 / 240)
    _ = world.events
    world.add_controller(led)
    world.attach("arm", "box", kind="ball", name="rope", position=tuple(world.body("arm").position))
    world.v[-1] = 2.0
    world.step(12)
    world.apply_force("box", (5.0, 0.0, 0.0))
    return world


def bits(world: poise.World, steps: int = 20) -> list[bytes]:
    """What the next steps come to: motion, loop forces, events, who sleeps, the whole state at the end."""
    found = []
    for _ in range(steps):
        world.step()
        loops = [world.loop(name).force.tobytes() for name in world.loops]
        found += [world.q.tobytes(), world.v.tobytes(), *loops, repr(world.events).encode(), world.asleep.tobytes()]
    state = world.state
    return [*found, *(state.slots[name].tobytes() for name in sorted(state.slots))]


@pytest.fixture(scope="module", params=FORMULATIONS)
def untouched(request: pytest.FixtureRequest) -> tuple[poise.World, list[bytes]]:
    world = world_with_everything(FORMULATIONS[request.param])
    return world, bits(copy.deepcopy(world))


# ---- states that are refused -----------------------------------------------------------------------------------------


def one_short(array: np.ndarray) -> np.ndarray | None:
    return array.reshape(-1)[:-1] if array.size else None


def one_more(array: np.ndarray) -> np.ndarray:
    return np.append(array.reshape(-1), np.zeros(1, array.dtype))


def other_type(array: np.ndarray) -> np.ndarray:
    return array.astype({"f": np.float32, "i": np.float64, "u": np.int64}[array.dtype.kind])


def with_nan(array: np.ndarray) -> np.ndarray | None:
    if array.dtype.kind != "f" or not array.size:
        return None
    bad = array.copy()
    bad.reshape(-1)[-1] = np.nan
    return bad


DAMAGES: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "one short": one_short,
    "one more": one_more,
    "another type": other_type,
    "NaN": with_nan,
}
FREE = ("bodies/joints", "held/keys", "events/touching", "events/reached")
"""Slots of any length: warm starts, and lists."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_with_a_damaged_slot_is_refused_by_name_and_changes_nothing(
    damage: str, untouched: tuple[poise.World, list[bytes]]
) -> None:
    world, after = untouched
    other = copy.deepcopy(world)
    other.step(7)
    good, tried = other.state, 0
    for name, array in good.slots.items():
        damaged = DAMAGES[damage](array)
        lists = name in FREE and damage in ("one short", "one more")
        if damaged is None or lists or name.startswith("control/"):  # what controllers keep is their own
            continue
        bad = good.copy()
        bad.slots[name] = damaged
        with pytest.raises(poise.SceneError, match=f'slot "{name}"|slot "warm_start/|slot "held/'):
            world.state = bad
        tried += 1
    assert tried > 10
    assert world.state.same_bits(copy.deepcopy(world).state)
    assert bits(copy.deepcopy(world)) == after


@pytest.mark.parametrize("missing", ["warm_start/", "sleep/", "drive/", "own_drive/", "held/"])
def test_a_state_with_a_missing_slot_is_refused_and_changes_nothing(
    missing: str, untouched: tuple[poise.World, list[bytes]]
) -> None:
    world, after = untouched
    good = world.state
    for name in [name for name in good.slots if name.startswith(missing)]:
        bad = good.copy()
        del bad.slots[name]
        if name in ("sleep/asleep", "drive/on"):  # without these there is no memory of the kind
            continue
        with pytest.raises(poise.SceneError, match="is missing"):
            world.state = bad
    assert bits(copy.deepcopy(world)) == after


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("warm_start/count", 100000),
        ("warm_start/count", -1),
        ("warm_start/count", 2**30),
        ("sleep/asleep", 99),
        ("events/touching", 10**9),
        ("pushes", 77),
        ("drive/on", 2),
    ],
)
def test_numbers_that_name_nothing_are_refused(
    name: str, value: int, untouched: tuple[poise.World, list[bytes]]
) -> None:
    world, after = untouched
    bad = world.state
    if name not in bad.slots or not bad.slots[name].size:
        pytest.skip("no such slot here")
    bad.slots[name].reshape(-1)[0] = value
    with pytest.raises(poise.SceneError, match="slot"):
        world.state = bad
    assert bits(copy.deepcopy(world)) == after


def test_times_and_motions_that_are_not_finite_are_refused(untouched: tuple[poise.World, list[bytes]]) -> None:
    world, after = untouched
    for field in ("q", "v", "time"):
        bad = world.state
        setattr(bad, field, np.full_like(getattr(bad, field), np.nan) if field != "time" else np.nan)
        with pytest.raises(ValueError, match=field):
            world.state = bad
    assert bits(copy.deepcopy(world)) == after


def test_a_state_is_taken_up_by_a_world_that_never_stepped(untouched: tuple[poise.World, list[bytes]]) -> None:
    """A check that refuses what is good would do harm too: every state of a world fits it, from the first on."""
    world, after = untouched
    twin = copy.deepcopy(world)
    twin.reset()
    twin.state = world.state
    assert bits(twin) == after


# ---- steps that fail -------------------------------------------------------------------------------------------------


class Wrong(Exception):
    """Raised on purpose."""


def fails_before(world: poise.World) -> None:
    """After it has changed all that it can."""
    world.release("rope")
    world.release("hook")
    world.attach("box", "ball", name="another", kind="ball", position=(0, 0, 1))
    world.motor("arm").target = 0.7
    world.motor("arm").stiffness = 99.0
    world.ctrl[...] = 0.2
    world.apply_force("ball", (1.0, 2.0, 3.0))
    world.v[...] += 1.0
    world.wake()
    raise Wrong


def fails_in_a_controller(state: poise.sim.StateToAct) -> None:
    state.slots["calls"] = np.ones(3)
    raise Wrong


def fails_in_a_row(world: poise.World, rows: Any) -> None:
    raise Wrong


@pytest.mark.parametrize("where", ["before", "controller", "rows", "diverged"])
def test_a_step_that_fails_leaves_nothing_behind(where: str, untouched: tuple[poise.World, list[bytes]]) -> None:
    world, after = copy.deepcopy(untouched[0]), untouched[1]
    if where == "rows" and world.formulation.level == "acceleration":
        pytest.skip("rows of users take the velocity level")
    if where == "before":
        world.before_step(fails_before)
    elif where == "controller":
        world.add_controller(fails_in_a_controller, name="wrong")
    elif where == "rows":
        world.rows_hooks.append(fails_in_a_row)
    else:
        world.tau[0] = np.nan
    with pytest.raises(poise.Diverged if where == "diverged" else Wrong):
        world.step()
    if where == "before":
        world.remove(fails_before)
    elif where == "controller":
        world.remove_controller("wrong")
    elif where == "rows":
        world.rows_hooks.clear()
    world.tau[...] = 0.0
    assert bits(world) == after


def test_a_loop_that_a_failed_step_released_reports_its_force_and_breaks() -> None:
    """Its force is the weight that it bears, 2 kg · g, and 5 N are too little for that."""

    def ball(strength: float) -> poise.World:
        scene = poise.Scene()
        scene.add(poise.sphere(0.1, mass=2.0), name="ball", position=(0, 0, 2))
        world = scene.build(dt=1 / 240)
        world.attach(None, "ball", name="grip", break_force=strength)
        return world

    def release(world: poise.World) -> None:
        world.release("grip")
        raise Wrong

    for strength, holds in ((np.inf, True), (5.0, False)):
        world = ball(strength)
        world.before_step(release)
        with pytest.raises(Wrong):
            world.step()
        world.remove(release)
        world.step(3)
        assert world.loop("grip").active == holds
        if holds:
            assert world.loop("grip").force == pytest.approx([0.0, 0.0, 2.0 * 9.81], abs=1e-6)


def test_sleepers_stay_asleep_where_a_step_fails() -> None:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.2, 0.2, 0.2), name="box", position=(0, 0, 0.1))
    world = scene.build(poise.Reduced(sleeping=True))
    world.step(240)
    assert world.body("box").asleep

    @world.before_step
    def fail(world: poise.World) -> None:
        world.attach(None, "box", name="grip")
        raise Wrong

    with pytest.raises(Wrong):
        world.step()
    world.remove(fail)
    assert world.body("box").asleep
    world.step()
    assert world.body("box").asleep


@pytest.mark.parametrize("pushed", ["push", "forces"])
def test_pushes_act_after_a_step_that_failed_with_the_first_one(pushed: str) -> None:
    """A function pushes for the first time, and raises: later pushes act all the same."""
    scene, kept = poise.Scene(), []
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    world = scene.build(dt=1 / 240)

    def push(world: poise.World) -> None:
        kept.append(world.forces)
        world.apply_force("ball", (9.0, 0.0, 0.0))
        raise Wrong

    world.before_step(push)
    with pytest.raises(Wrong):
        world.step()
    world.remove(push)
    if pushed == "push":
        world.apply_force("ball", (6.0, 0.0, 0.0))
    else:
        kept[0][-1, 3] = 6.0
    world.step()
    assert world.v[0] == pytest.approx(3.0 / 240, rel=1e-12)
