"""Ctrl-C and threads: steps that are done stay done, none is half done, and a world goes on with the same bits."""

from __future__ import annotations

import copy
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise
from poise.dynamics import interrupts
from poise.sim import Targets


def pile(formulation: Any = None) -> poise.World:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        scene.add(poise.box(0.2, 0.2, 0.2, mass=1.0), name=f"box {k}", position=(0.02 * k, 0, 0.11 + 0.22 * k))
    return scene.build(formulation, dt=1 / 200)


def controlled() -> poise.World:
    world = pile()

    def spin(state: Any) -> Targets:
        state.slots["n"] = state.slots.get("n", np.zeros(1)) + 1.0
        return Targets(tau=0.01 * state.slots["n"][0] * np.ones(world.model.nv))

    world.add_controller(spin)
    return world


def listened_to() -> poise.World:
    world = pile()
    world.on("contact_begin", lambda world, event: None)
    return world


def with_rows() -> poise.World:
    world = pile()

    def shelf(world: poise.World, rows: Any) -> None:
        rows.add(id=1, b="box 2", Jb=(0, 0, 0, 0, 0, 1), phi=float(world.q[16]) - 0.5, lo=0.0, erp=0.2)

    world.rows_hooks.append(shelf)
    return world


def with_law() -> poise.World:
    world = pile()
    world.add_force(lambda stage: stage.push("box 1", (0.3, 0.0, 0.0)), name="wind")
    return world


def timed() -> poise.World:
    world = pile()
    world.timing = True
    return world


WORLDS: dict[str, Callable[[], poise.World]] = {
    "plain": pile,
    "controller": controlled,
    "listener": listened_to,
    "rows": with_rows,
    "law": with_law,
    "timing": timed,
    "substeps": lambda: pile(poise.Reduced(substeps=2)),
    "maximal": lambda: pile(poise.Maximal()),
    "acceleration": lambda: pile(poise.Reduced(level="acceleration")),
}


def bits(world: poise.World) -> list[bytes]:
    state = world.state
    return [state.q.tobytes(), state.v.tobytes(), np.float64(state.time).tobytes()] + [
        name.encode() + np.asarray(slot).tobytes() for name, slot in sorted(state.slots.items())
    ]


def interrupt_at(world: poise.World, call: int, n: int) -> bool:
    """Step, and send SIGINT at a call of a function; whether it was heard."""
    seen = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")
        if seen == call:
            seen += 1
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    try:
        sys.setprofile(note)
        try:
            world.step(n)
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python drops those in destructors
@pytest.mark.parametrize("name", WORLDS)
def test_an_interrupt_anywhere_in_a_step_keeps_whole_steps(name: str) -> None:
    """A twin takes the same number of steps: the same bits then, and after a few more."""
    start = WORLDS[name]()
    start.step(25)
    heard = 0
    for call in range(2, 3000, 271) if name == "acceleration" else range(2, 300, 7):
        world, twin = copy.deepcopy(start), copy.deepcopy(start)
        heard += interrupt_at(world, call, 3)
        done = round((world.time - start.time) / start.dt)
        twin.step(done)
        assert bits(world) == bits(twin), (call, done)
        world.step(2)
        twin.step(2)
        assert bits(world) == bits(twin), (call, done)
    assert heard > 5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_steps_that_compiled_code_has_done_are_kept() -> None:
    world, twin = pile(), pile()
    world.step(60)  # there is room for all that comes
    world._pace.most = 40
    march = world._stepper.march
    call, asked = march._call, []

    def interrupted(dt: float, n: int) -> int:
        asked.append(n)
        done: int = call(dt, n)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGINT)
        return done

    march._call = interrupted
    with pytest.raises(KeyboardInterrupt):
        world.step(10**4)
    assert len(asked) == 3
    done = round(world.time / world.dt) - 60
    assert done == sum(asked)
    twin.step(60 + done)
    assert bits(world) == bits(twin)
    march._call = call
    for each in (world, twin):
        each.step(30)
    assert bits(world) == bits(twin)


@pytest.mark.parametrize("kind", ["world", "simulation"])
def test_compiled_code_is_asked_for_a_tenth_of_a_second_at_most(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own, on which steps become a hundred times as expensive in the middle."""
    world: Any = pile() if kind == "world" else poise.dynamics.Simulation(pile().model)
    world.step(60)  # there is room for all that comes
    world._pace = interrupts.Pace()  # which knows nothing of the real time of these steps
    now, price, spent = 0.0, 1e-5, []
    monkeypatch.setattr(interrupts, "perf_counter", lambda: now)
    owner, name = (world._stepper.march, "run") if kind == "world" else (world, "_step")
    usual = getattr(owner, name)

    def priced(*given: Any) -> int:
        nonlocal now, price
        done: int = usual(*given)
        price = 1e-3 if len(spent) > 30 else 1e-5
        now += done * price
        spent.append(done * price)
        return done

    setattr(owner, name, priced)
    world.step(3000)
    assert len(spent) > 31
    assert max(spent) <= 0.1 + 1e-9
    assert max(spent[:30]) < 2.0 * interrupts.PAUSE
    assert max(spent[20:30]) > 0.9 * interrupts.PAUSE  # nor for less than is needed


def test_a_run_keeps_what_was_recorded() -> None:
    world, twin = pile(), pile()
    frames = 0

    def look(world: poise.World) -> float:
        nonlocal frames
        frames += 1
        if frames == 20:
            signal.raise_signal(signal.SIGINT)
        return world.time

    with pytest.raises(KeyboardInterrupt):
        world.run(10.0, signals={"time": look})
    recording = world.recording
    assert recording is not None
    assert 15 < len(recording) <= 20
    done = round(world.time / world.dt)
    assert len(recording) - 1 <= done <= len(recording)
    twin.step(done)
    assert np.array_equal(world.q, twin.q)
    assert np.array_equal(world.v, twin.v)


def test_a_second_interrupt_is_not_held() -> None:
    """Something may hang in the step."""
    heard = []
    try:
        with interrupts.HeldInterrupt():
            signal.raise_signal(signal.SIGINT)
            heard.append("first")
            signal.raise_signal(signal.SIGINT)
            heard.append("second")
    except KeyboardInterrupt:
        heard.append("stopped")
    assert heard == ["first", "stopped"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_other_handlers_are_called_and_stay(handler: Any) -> None:
    world = pile()
    before = signal.signal(signal.SIGINT, handler)
    try:
        interrupt_at(world, 30, 3)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert world.time == pytest.approx(3 * world.dt)


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["world", "simulation"])
def test_a_second_thread_is_refused_and_the_first_goes_on(kind: str) -> None:
    world: Any = pile() if kind == "world" else poise.dynamics.Simulation(pile().model)
    twin = copy.deepcopy(world)
    owner, name = (world._stepper.march, "run") if kind == "world" else (world, "_step")
    usual, within, go_on = getattr(owner, name), threading.Event(), threading.Event()

    def slow(*given: Any) -> int:
        within.set()
        assert go_on.wait(60)
        done: int = usual(*given)
        return done

    setattr(owner, name, slow)
    first = threading.Thread(target=world.step, args=(20,))
    first.start()
    assert within.wait(60)
    with pytest.raises(RuntimeError, match=f"another thread is stepping this {type(world).__name__} now"):
        world.step()
    go_on.set()
    first.join(60)
    setattr(owner, name, usual)
    world.step(10)
    twin.step(30)
    assert np.array_equal(world.q, twin.q)
    assert world.time == pytest.approx(twin.time)


def test_threads_at_once_never_spoil_a_world() -> None:
    """Each takes steps until it is refused or done: the world is where as many steps lead as were taken."""
    world, twin, taken, refused = pile(), pile(), [], []
    world.step()

    def go() -> None:
        for _ in range(50):
            try:
                world.step(3)
                taken.append(3)
            except RuntimeError as problem:
                refused.append(str(problem))

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=go) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(usual)
    assert all("another thread is stepping this World now" in text for text in refused)
    assert len(taken) + len(refused) == 150
    twin.step(1 + sum(taken))
    assert bits(world) == bits(twin)


def test_a_copy_that_is_made_within_a_step_can_step() -> None:
    world, copies = pile(), []
    world.before_step(lambda world: copies.append(copy.deepcopy(world)) if not copies else None)
    world.step()
    thread = threading.Thread(target=copies[0].step)
    thread.start()
    thread.join(60)
    assert copies[0].time == world.dt
