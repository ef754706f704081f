"""Events, controllers and functions around steps: when, in which order, after going back, and when they fail."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import poise
from poise.dynamics import Diverged, Drive, interrupts
from poise.sim import Event, Targets
from python_calls import count_calls


def bouncing_ball(restitution: float = 0.6, dt: float = 1 / 240, **options) -> poise.World:
    scene = poise.Scene()
    scene.add_ground(restitution=restitution)
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1.1))
    return scene.build(poise.Reduced(**options), dt=dt)


def heap(n: int = 6) -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(n):
        shape = poise.box(0.2, 0.15, 0.1) if k % 2 else poise.sphere(0.1)
        scene.add(shape, name=f"part {k}", position=(0.03 * k, 0.01 * k, 0.2 + 0.25 * k))
    return scene.build()


def listened(world: poise.World, steps: int) -> list[Event]:
    heard = []
    for _ in range(steps):
        world.step()
        heard += world.events
    return heard


# ---- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("substeps", [1, 3])
def test_a_ball_bounces_at_the_times_of_the_closed_form(substeps: int) -> None:
    """Falls of √(2h/g), then flights of 2 eᵏ times that; each bounce begins and ends a contact, within two steps."""
    world = bouncing_ball(substeps=substeps)
    assert world.events == []
    heard = listened(world, 350)
    begins = [event for event in heard if event.kind == "contact_begin"]
    ends = [event for event in heard if event.kind == "contact_end"]
    fall = np.sqrt(2.0 / 9.81)
    times = fall + np.cumsum([0.0, *(2.0 * fall * 0.6**k for k in range(1, 3))])
    assert [event.time for event in begins[:3]] == pytest.approx(times, abs=3 * world.dt)
    assert [event.names for event in begins] == [("ground", "ball")] * len(begins)
    assert begins[0].shapes == ("ground[0]", "ball[0]")
    assert all(0.0 < end.time - begin.time <= 2.5 * world.dt for begin, end in zip(begins[:3], ends, strict=False))


def test_a_fast_ball_is_heard_though_it_is_gone_at_the_end_of_the_step() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    elastic = poise.Material(restitution=1.0)
    scene.add(poise.box(0.02, 2, 2, material=elastic), name="wall", position=(1, 0, 0), fixed=True)
    scene.add(poise.sphere(0.02, material=elastic), name="bullet")
    world = scene.build(dt=1 / 60)
    world.v[0] = 300.0
    _ = world.events
    heard = listened(world, 3)
    assert world.v[0] == pytest.approx(-300.0)
    assert [(event.kind, set(event.names)) for event in heard] == [
        ("contact_begin", {"wall", "bullet"}),
        ("contact_end", {"wall", "bullet"}),
    ]


def test_limits_are_reached_and_left() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    rod = poise.capsule(0.02, 0.4, mass=1.0)
    scene.hinge(None, rod, axis="y", name="door", limits=(-0.5, 0.3))
    scene.ball(None, rod, axis="x", name="arm", position=(3, 0, 0), cone=0.4, twist=(-0.2, 0.2))
    world = scene.build(dt=0.01)
    world.v[:] = (2.0, 0.0, 1.0, 0.0)
    _ = world.events
    heard = listened(world, 100)
    told = {(event.kind, event.names[0], event.what) for event in heard}
    assert told >= {("limit_reached", "door", "upper"), ("limit_reached", "arm", "cone")}
    at = next(event.time for event in heard if event.names == ("door",))
    assert at == pytest.approx(0.15, abs=0.021)
    world.tau[0] = 1.0
    world.step(20)
    world.tau[0] = -1.0
    world.step()
    assert Event("limit_left", world.time, ("door",), what="upper") in world.events


def test_events_come_in_the_same_order_everywhere() -> None:
    one, other = heap(), heap()
    _ = one.events, other.events
    first = listened(one, 200)
    assert len(first) > 8
    assert first == listened(other, 200)
    for step in {event.time for event in first}:
        now = [event for event in first if event.time == step]
        kinds = [poise.sim.events.KINDS.index(event.kind) for event in now]
        assert kinds == sorted(kinds)


def test_no_false_events_after_going_back() -> None:
    world = heap()
    _ = world.events
    world.step(120)
    saved = world.state
    first = listened(world, 80)
    world.step(30)
    world.state = saved
    assert world.events == []
    again = listened(world, 80)
    assert again == first


def test_copies_and_files_remember_what_touches(tmp_path) -> None:
    world = heap()
    _ = world.events
    world.step(120)
    world.state.save(tmp_path / "state.npz", world.model)
    twin, other = copy.deepcopy(world), heap()
    other.state = poise.State.load(tmp_path / "state.npz", other.model)
    first = listened(world, 60)
    assert listened(twin, 60) == first
    assert listened(other, 60) == first


def test_a_world_that_is_watched_late_does_not_hear_what_was_there() -> None:
    world = heap()
    world.step(600)
    _ = world.events
    world.step()
    assert world.events == []
    unwatched, watched = heap(), heap()
    unwatched.step(600)
    _ = watched.events
    watched.state = unwatched.state
    watched.step()
    assert watched.events == []


@pytest.fixture
def steady_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still: how many steps compiled code takes in a call does not depend on the machine."""
    monkeypatch.setattr(interrupts, "perf_counter", lambda: 0.0)


def settled() -> poise.World:
    """Things at rest, with room for all their contacts, in compiled steps."""
    world = heap()
    world.step(600)
    world._pace.most = 10**6
    return world


def test_steps_after_a_run_cost_what_they_cost_before_it(steady_pace: None) -> None:
    world = settled()
    before = count_calls(lambda: world.step(400))
    world.run(10 * world.dt)
    assert world._marches()
    world.step()
    assert count_calls(lambda: world.step(400)) == before
    with pytest.raises(KeyboardInterrupt):
        world.run(1.0, signals={"stop": stop})
    world.step()
    assert count_calls(lambda: world.step(400)) == before


def stop(world: poise.World) -> float:
    raise KeyboardInterrupt


def test_steps_after_a_listener_is_removed_cost_what_they_cost_before_it(steady_pace: None) -> None:
    world = settled()
    before = count_calls(lambda: world.step(400))
    hear = world.on("contact_begin", lambda world, event: None)
    world.step()
    assert world._marches()
    world.remove(hear)
    world.step()
    assert count_calls(lambda: world.step(400)) == before


def test_events_are_found_in_compiled_steps(steady_pace: None) -> None:
    """A look at events, and listeners that hear of none, take no step out of the compiled loop."""
    world, marched = settled(), 0
    _ = world.events
    world.on("contact_begin", lambda world, event: None)
    world.step(2)
    march = world._stepper.march
    usual = march.run

    def run(dt: float, n: int, time: float) -> int:
        nonlocal marched
        done: int = usual(dt, n, time)
        marched += done
        return done

    march.run = run
    world.step(400)
    assert marched == 400
    march.run = usual
    assert count_calls(lambda: world.step(400)) == count_calls(lambda: world.step(800))


@pytest.mark.parametrize("watched", ["events", "listener", "recording"])
def test_events_and_recordings_leave_every_bit_as_it_is(watched: str) -> None:
    plain, other = heap(), heap()
    if watched == "events":
        _ = other.events
    elif watched == "listener":
        other.on("contact_begin", lambda world, event: None)
    plain.step(200)
    if watched == "recording":
        other.run(200 * other.dt)
    else:
        other.step(200)
    assert np.array_equal(plain.q, other.q)
    assert np.array_equal(plain.v, other.v)
    assert plain.time == other.time


def test_a_listener_hears_of_an_event_when_the_world_is_at_it() -> None:
    world, single, times = heap(), heap(), []
    world.on("contact_begin", lambda world, event: times.append((event.time, world.time, world.q.copy())))
    heard = listened(single, 300)
    world.step(300)
    begun = [event for event in heard if event.kind == "contact_begin"]
    assert [time for time, _, _ in times] == [event.time for event in begun]
    assert all(time == now for time, now, _ in times)
    again = heap()
    for time, _, q in times:
        while again.time < time:
            again.step()
        assert np.array_equal(again.q, q)


def test_a_listener_may_change_the_world_in_the_middle_of_a_call() -> None:
    """What it adds counts from the next step on."""
    world, calls = heap(), []

    def hear(world: poise.World, event: poise.sim.Event) -> None:
        world.remove(hear)
        world.before_step(lambda world: calls.append(world.time))

    world.on("contact_begin", hear)
    world.step(300)
    first = listened(heap(), 300)[0].time
    assert len(calls) == round((world.time - first) / world.dt)


def test_events_of_the_last_step_of_a_call_are_those_of_single_steps() -> None:
    many, one, found = heap(), heap(), 0
    _ = many.events, one.events
    for n in (1, 7, 30, 2, 5, 1, 1, 12) * 5:
        many.step(n)
        for _ in range(n):
            one.step()
        assert many.events == one.events
        assert np.array_equal(many.q, one.q)
        found += len(one.events)
    assert found > 3


def test_runs_one_after_another_tell_the_events_of_one_run() -> None:
    """Also with steps between them that nobody watches, but for their own."""
    whole = heap().run(1.0).events
    world = heap()
    parts = [event for _ in range(12) for event in world.run(20 * world.dt).events]
    assert parts == list(whole)[: len(parts)]
    assert len(parts) == len(whole)
    between, heard = heap(), []
    for _ in range(12):
        between.step(10)
        heard += between.run(10 * between.dt).events
    times = [round(event.time / between.dt) for event in heard]
    assert heard == [event for event in whole if (round(event.time / between.dt) - 1) % 20 >= 10]
    assert all((time - 1) % 20 >= 10 for time in times)


def test_events_after_a_run_are_those_of_its_last_step() -> None:
    world = bouncing_ball()
    recording = world.run(0.5)
    last = [event for event in recording.events if event.time == world.time]
    assert world.events == last
    other = bouncing_ball()
    other.run(next(event.time for event in recording.events))
    assert [event.kind for event in other.events] == ["contact_begin"]
    third = bouncing_ball()
    third.run(next(event.time for event in recording.events))
    third.step()
    assert third.events == []  # asked too late


def test_listeners() -> None:
    world, heard = bouncing_ball(), []

    def hear(world: poise.World, event: Event) -> None:
        heard.append((event.kind, event.time == world.time))

    world.on("contact_begin", hear)
    world.on("contact_end", hear)
    world.step(130)
    assert heard == [("contact_begin", True), ("contact_end", True)]
    world.remove(hear)
    world.step(200)
    assert len(heard) == 2


def test_what_diverges_is_an_event() -> None:
    world, heard = bouncing_ball(), []
    world.on("diverged", lambda world, event: heard.append(event))
    world.step(5)
    world.tau[2] = np.nan
    with pytest.raises(Diverged):
        world.step()
    assert heard == [Event("diverged", world.time, ("ball",), what="tau")]
    assert world.events == heard
    world.tau[2] = 0.0
    world.step()
    assert world.events == []


# ---- controllers and functions ---------------------------------------------------------------------------------------


class Integral:
    """Holds a height by a force with an integral part, whose memory is in its slots."""

    def __init__(self, goal: float) -> None:
        self.goal, self.bound = goal, None

    def bind(self, model: poise.Model) -> None:
        self.bound = model

    def update(self, state: poise.State) -> Targets:
        error = self.goal - state.q[2]
        total = state.slots.get("total", np.zeros(1)) + error / 240
        state.slots["total"] = total
        tau = np.zeros(self.bound.nv)
        tau[2] = 80.0 * error + 40.0 * total[0] - 20.0 * state.v[2]
        return Targets(tau=tau)


def hovering() -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.sphere(0.1, mass=1.0), name="ball", position=(0, 0, 0.5))
    world = scene.build()
    world.add_controller(Integral(1.0), name="height")
    return world


def test_a_controller_with_a_memory_reaches_its_goal_and_goes_back_with_the_world() -> None:
    world = hovering()
    world.step(400)
    saved = world.state
    assert saved.slots["control/height/total"].shape == (1,)
    world.step(200)
    first = world.state
    world.state = saved
    world.step(200)
    assert world.state.same_bits(first)
    world.step(3000)
    assert world.q[2] == pytest.approx(1.0, abs=1e-4)
    assert not world.tau.any()  # what controllers give is theirs
    assert world.report().tau[2] == pytest.approx(9.81, abs=1e-2)


def test_controllers_add_up_and_forces_and_drives_are_taken() -> None:
    scene = poise.Scene(gravity=(0, 0, 0))
    scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    world = scene.build(dt=0.01)
    world.tau[0] = 1.0
    world.add_controller(lambda state: Targets(tau=[1, 0, 0, 0, 0, 0]))
    world.add_controller(lambda state: Targets(forces=[[0, 0, 0, 2, 4, 0]]))
    names = [world.add_controller(lambda state: None) for _ in range(2)]
    assert len(set(names)) == 2
    world.step(10)
    assert world.v[:3] == pytest.approx([4 / 2 * 0.1, 4 / 2 * 0.1, 0])
    assert world.tau.tolist() == [1, 0, 0, 0, 0, 0]
    assert not world.forces.any()
    goal = Drive(np.array([0, 0, 50.0, 0, 0, 0]), 0.0, [0, 0, 1, 1, 0, 0, 0])
    world.add_controller(lambda state: Targets(drive=goal), name="drive")
    world.step()
    assert world.drive.gain_p[2] == 50.0
    world.remove_controller("drive")
    with pytest.raises(ValueError, match="there is no controller 'drive'"):
        world.remove_controller("drive")


def test_what_is_called_when() -> None:
    world, calls = bouncing_ball(dt=0.01), []
    world.before_step(lambda world: calls.append(("before", world.time)))
    world.after_step(lambda world: calls.append(("after", world.time)))
    world.add_controller(lambda state: calls.append(("control", state.time)))
    world.step(2)
    order = ("before", "control", "after")
    assert calls == [
        (what, pytest.approx(time)) for time, what in zip((0, 0, 0.01, 0.01, 0.01, 0.02), order * 2, strict=True)
    ]


def test_an_error_before_a_step_leaves_the_world_as_it_was() -> None:
    world = hovering()
    world.step(50)
    before = world.state

    def careless(world: poise.World) -> None:
        world.q[2] = 7.0
        world.tau[:] = 3.0
        world.time = 9.0
        raise KeyError("mine")

    world.before_step(careless)
    with pytest.raises(KeyError, match="mine") as caught:
        world.step()
    assert caught.traceback[-1].name == "careless"
    assert world.state.same_bits(before)
    assert not world.tau.any()
    world.remove(careless)
    world.step(10)
    other = hovering()
    other.step(60)
    assert np.array_equal(world.q, other.q)


def test_a_controller_that_fails_leaves_no_trace() -> None:
    world = hovering()
    world.step(50)
    before = world.state
    world.add_controller(lambda state: 1 / 0, name="broken")
    with pytest.raises(ZeroDivisionError):
        world.step()
    world.remove_controller("broken")
    assert world.state.same_bits(before)
    world.add_controller(lambda state: Targets(tau=[np.nan] * 6), name="nan")
    with pytest.raises(ValueError, match=r"tau\[0\] is nan"):
        world.step()
    world.remove_controller("nan")
    assert world.state.same_bits(before)


def test_an_error_after_a_step_leaves_the_step_done() -> None:
    world, other = hovering(), hovering()

    def fails(world: poise.World) -> None:
        raise RuntimeError("after")

    world.after_step(fails)
    with pytest.raises(RuntimeError, match="after"):
        world.step(5)
    other.step()
    assert world.state.same_bits(other.state)


def test_a_step_that_diverges_under_a_controller_is_taken_back() -> None:
    world = hovering()
    world.step(20)
    unpushed = world.state
    world.apply_force("ball", (0, 0, 1e308))
    before = world.state
    world.forces[1, 5] = 1e308
    with pytest.raises(Diverged):
        world.step()
    assert world.forces[1, 5] == 1e308
    world.forces[1, 5] = 0.0
    assert world.state.same_bits(before)
    world.state = unpushed
    world.step(5)


@pytest.mark.parametrize("options", [{}, {"substeps": 3}, {"level": "acceleration"}])
def test_a_push_waits_for_a_step_that_is_done(options) -> None:
    world, other = (bouncing_ball(**options) for _ in range(2))
    for one in (world, other):
        one.step(2)
        one.apply_force("ball", (0, 3, 0))
    world.tau[0] = np.inf
    with pytest.raises(Diverged):
        world.step()
    world.tau[0] = 0.0
    for one in (world, other):
        one.step(2)
    assert world.v[1] > 0.0
    assert world.state.same_bits(other.state)


def test_a_function_that_pushes_before_a_step_that_fails_pushes_once() -> None:
    world = bouncing_ball()
    world.apply_force("ball", (0, 3, 0))
    before = world.state
    world.before_step(lambda world: world.apply_force("ball", (5, 0, 0)))
    world.tau[0] = np.inf
    with pytest.raises(Diverged):
        world.step()
    assert world.state.same_bits(before)


def test_a_controller_that_sets_a_bad_control_does_not_move_the_world_back() -> None:
    scene = poise.Scene()
    scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    scene.motor("arm", stiffness=50.0, damping=5.0, target=1.0)
    world = scene.build()
    world.step(3)
    before = world.state
    world.ctrl[0] = np.nan
    with pytest.raises(ValueError, match="must be finite"):
        world.step()
    assert world.state.same_bits(before)


def test_a_substep_that_diverges_takes_back_the_whole_step() -> None:
    world, calls = bouncing_ball(substeps=4), []
    world.step(3)
    q, v, time = world.q.copy(), world.v.copy(), world.time

    def watch(stepper, store) -> None:
        calls.append(world.v.copy())
        if len(calls) == 2:
            world.tau[0] = np.inf

    world._stepper.watch = watch
    with pytest.raises(Diverged):
        world.step()
    assert len(calls) == 2  # the third diverged
    assert calls[1][2] < calls[0][2] < v[2]
    assert np.array_equal(world.q, q)
    assert np.array_equal(world.v, v)
    assert world.time == time


@pytest.mark.parametrize(
    ("call", "problem", "message"),
    [
        (lambda w: w.on("contact", print), ValueError, "there is no event 'contact', did you mean"),
        (lambda w: w.on(3, print), ValueError, "there is no event 3"),
        (lambda w: w.on("diverged", 7), TypeError, "a function is wanted, found a int"),
        (lambda w: w.before_step(None), TypeError, "a function is wanted"),
        (lambda w: w.remove(print), ValueError, "neither before nor after steps"),
        (lambda w: w.add_controller(3), TypeError, r"it must have update\(state\)"),
        (lambda w: w.add_controller(print, name="a/b"), ValueError, "a word without a slash"),
        (lambda w: w.add_controller(print, name="height"), ValueError, 'there is a controller "height" already'),
    ],
)
def test_bad_input_is_refused(call, problem, message: str) -> None:
    with pytest.raises(problem, match=message):
        call(hovering())


def test_a_controller_that_gives_something_else_is_refused() -> None:
    world = hovering()
    world.add_controller(lambda state: [0.0] * 6, name="list")
    with pytest.raises(TypeError, match=r"gave a list; it must give poise.sim.Targets"):
        world.step()


def test_worlds_at_acceleration_level_have_events_and_sensors() -> None:
    world = bouncing_ball(restitution=0.0, level="acceleration")
    world.add_controller(lambda state: None)
    heard = []
    world.on("contact_begin", lambda world, event: heard.append(event))
    world.step(60)
    assert heard == []
    recording = world.run(0.5, record=("contacts", "events"))
    (event,) = heard
    assert event in recording.events
    assert event.time == pytest.approx(np.sqrt(2.0 / 9.81), abs=2 * world.dt)
    mass = float(world.model.body_mass.sum())
    assert recording.frame(-1).contacts[0].normal_force == pytest.approx(9.81 * mass)
    assert poise.sim.ForcePlate("ground").read(world).force[2] == pytest.approx(9.81 * mass)
    assert poise.sim.Imu("ball").read(world).specific_force == pytest.approx([0, 0, 9.81], abs=1e-6)
