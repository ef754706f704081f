"""Threads that step a batch: they come when there is work, sleep when there is none, and go when the batch goes."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import poise
from crowd_bits import bits, same
from poise.batch import thread_pool, worlds
from poise.batch.worlds import Batch
from poise.dynamics import interrupts
from poise.formulations.lanes import batch_engine
from poise.formulations.lanes.batch_engine import Engine


def batch_of(threads: int, n: int = 50) -> Batch:
    scene = poise.Scene()
    scene.add_ground()
    for k in range(3):
        scene.add(poise.sphere(0.1), name=f"ball {k}", position=(0.05 * k, 0, 0.15 + 0.25 * k))
    batch = scene.build_batch(n, dt=1 / 240, threads=threads)
    batch.v[...] = np.random.default_rng(0).normal(size=batch.v.shape)
    return batch


def hands() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("poise-batch")}


def come_to_be(what) -> bool:
    end = time.monotonic() + 10.0
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


@pytest.mark.parametrize("threads", [2, 4])
def test_hands_wake_up_again(threads: int) -> None:
    """Between steps they sleep, or look out for work, or are about to fall asleep."""
    alone, together = batch_of(1), batch_of(threads)
    pauses = [0.0, 0.01, *np.geomspace(5e-5, 5e-3, 60)]
    for pause in pauses:
        alone.step(2)
        together.step(2)
        time.sleep(pause)
    assert same(bits(alone), bits(together))


def test_hands_sleep_when_there_is_nothing_to_do() -> None:
    batch = batch_of(3)
    batch.step(4)
    asleep = batch._crew._hands._round.asleep[1:]
    assert come_to_be(asleep.all)


def test_hands_go_with_their_batch() -> None:
    before = hands()
    batch = batch_of(3)
    assert hands() <= before  # nobody waits for a batch that is never stepped
    batch.step()
    mine = hands() - before
    assert len(mine) == 2
    del batch
    gc.collect()
    assert come_to_be(lambda: not any(thread.is_alive() for thread in mine))


def test_one_group_needs_no_hands() -> None:
    before = hands()
    batch = batch_of(2, n=5)
    batch.step()
    assert batch.threads == 1
    assert hands() <= before


def test_every_hand_takes_its_part() -> None:
    batch, took = batch_of(2, n=2000), np.zeros(2, np.int64)

    def all_have_worked() -> bool:
        batch.step(4)
        took[:] += batch._crew._hands._round.taken
        return bool(took.all())

    assert come_to_be(all_have_worked)


def _step_in_a_fork(batch: Batch, told) -> None:
    batch.step(3)
    told.put(batch.q.copy())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_has_hands_of_its_own() -> None:
    batch = batch_of(2)
    batch.step(3)
    context = get_context("fork")
    told = context.Queue()
    child = context.Process(target=_step_in_a_fork, args=(batch, told))
    child.start()
    there = told.get(timeout=60)
    child.join()
    batch.step(3)
    assert np.array_equal(batch.q, there)


def test_a_fault_of_a_hand_is_told_and_nobody_waits_for_ever() -> None:
    batch = batch_of(2, n=400)
    batch.step(4)
    seal = batch._crew.engines[1].data.handle
    right, seal[-1] = seal[-1], 0
    with pytest.raises(TypeError, match="Data"):
        batch.step(800)  # it is the hand's turn some time
    seal[-1] = right
    batch.step(4)
    assert np.isfinite(batch.q).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_step_one_batch_take_turns(threads: int) -> None:
    batch, alone, faults = batch_of(threads, n=400), batch_of(1, n=400), list[BaseException]()

    def go() -> None:
        try:
            for _ in range(10):
                batch.step(4)
        except BaseException as fault:
            faults.append(fault)

    callers = [threading.Thread(target=go, daemon=True) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not any(caller.is_alive() for caller in callers)
    assert not faults
    alone.step(120)
    assert same(bits(batch)[:2], bits(alone)[:2])
    assert batch.time == pytest.approx(alone.time)


def test_time_is_right_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, expected, rounds = batch_of(1), batch_of(1), []
    run = batch._crew.run

    def stopped(*given: Any) -> None:
        if len(rounds) == 2:
            raise KeyboardInterrupt
        rounds.append(given)
        run(*given)

    with monkeypatch.context() as patch:
        patch.setattr(batch._crew, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            batch.step(100)
    expected.step(sum(steps for *_, steps in rounds))
    assert same(bits(batch), bits(expected))
    batch.step(3)
    expected.step(3)
    assert same(bits(batch), bits(expected))


def test_an_interrupt_of_the_wait_for_hands_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leads has done the own part, sleeps until others have, and is interrupted then: more than once."""
    batch, expected, stops = batch_of(2, n=2000), batch_of(1, n=2000), []

    class Idle:
        def __getitem__(self, width: Any) -> Any:
            return lambda *_: 0  # leaves all to the hand

    def interrupted(seconds: float) -> None:
        if len(stops) < 3:
            stops.append(seconds)
            raise KeyboardInterrupt

    batch.step(4)
    hands = batch._crew._hands
    batch._crew._pace.most = 10**6  # all groups and steps are shared at once
    with monkeypatch.context() as patch:
        patch.setattr(thread_pool, "lead", Idle())
        patch.setattr(thread_pool.time, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            batch.step(4)
        assert hands._round.busy[0] == 0
    expected.step(8)
    assert len(stops) == 3
    assert same(bits(batch)[:3], bits(expected)[:3])


@pytest.mark.parametrize("asleep", [True, False])
def test_an_interrupt_waits_for_the_hands(asleep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody steps worlds on after it, and they can be stepped again."""

    class Interrupted:
        def __getitem__(self, width: Any) -> Any:
            def stop(*_: Any) -> None:
                raise KeyboardInterrupt

            return stop

    batch, expected = batch_of(2, n=400), batch_of(1, n=400)
    for each in (batch, expected):
        each.step(4)
    hands = batch._crew._hands
    batch._crew._pace.most = 10**6
    if asleep:
        assert come_to_be(lambda: bool(hands._round.asleep[1]))
    with monkeypatch.context() as patch:
        patch.setattr(thread_pool, "lead", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            batch.step(4)
    assert hands._round.busy[0] == 0
    batch.step(4)
    for _ in range(2):
        expected.step(4)
    assert same(bits(batch)[:2], bits(expected)[:2])  # the hand had done it all


def test_engines_that_an_interrupt_tore_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """While memory is laid anew: what is bound to the old memory is not used again."""
    batch, expected = batch_of(1), batch_of(1)
    with monkeypatch.context() as patch:

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(Engine, "_lay_axes", stop)
        with pytest.raises(KeyboardInterrupt):
            batch.step()
    torn = batch._crew.engines[0]
    for each in (batch, expected):
        each.step(40)
    assert batch._crew.engines[0] is not torn
    assert same(bits(batch), bits(expected))


def test_memory_that_grows_is_taken_whole_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(1)
    batch.step(100)
    records = batch._records
    before = records.room, records.lam.copy(), records.id.copy()
    with monkeypatch.context() as patch:

        def stop(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        patch.setattr(batch_engine.np, "cumsum", stop)
        with pytest.raises(KeyboardInterrupt):
            records.remember_more((64, 8, 64, 8))
    assert records.room == before[0]
    assert np.array_equal(records.lam, before[1])
    records.remember_more((64, 8, 64, 8))
    assert records.room == (64, 8, 64, 8)
    assert len(records.lam) == records.n * records.lam_size


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_keeps_whole_steps_of_all_worlds(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, expected, rounds = batch_of(threads, n=400), batch_of(1, n=400), 0
    share = thread_pool.Crew._share

    def interrupted(self: thread_pool.Crew, *given: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            signal.raise_signal(signal.SIGINT)
        return share(self, *given)

    batch.step(8)
    engines = batch._crew.engines
    with monkeypatch.context() as patch:
        patch.setattr(thread_pool.Crew, "_share", interrupted)
        with pytest.raises(KeyboardInterrupt):
            batch.step(10**6)
    assert batch._crew.engines is engines
    assert not batch._crew._torn
    done = np.rint(batch.time / batch.dt).astype(int)
    assert done.max() < 8 + 4 * worlds.AT_ONCE
    for n in range(done.max() + 1):
        here = done == n
        assert np.array_equal(batch.q[here], expected.q[here])
        assert np.array_equal(batch.v[here], expected.v[here])
        expected.step()


def test_threads_share_groups_for_a_tenth_of_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own, on which a step of a group takes 1 ms: no wait is for more than that of a few groups."""
    batch, now, shared = batch_of(1, n=2000), 0.0, []
    monkeypatch.setattr(interrupts, "perf_counter", lambda: now)
    share = thread_pool.Crew._share

    def priced(self: thread_pool.Crew, first: int, last: int, dt: float, n: int) -> Any:
        nonlocal now
        now += 1e-3 * n * (last - first)
        shared.append(n * (last - first))
        return share(self, first, last, dt, n)

    monkeypatch.setattr(thread_pool.Crew, "_share", priced)
    batch.step(6)
    assert max(shared[2:]) * 1e-3 <= 0.1
    assert np.array_equal(batch.time, np.full(2000, sum([batch.dt] * 6)))  # as those of a world add up
    alone = batch_of(1, n=2000)
    alone.step(6)
    assert same(bits(batch)[:2], bits(alone)[:2])
