"""Thread pool that steps many worlds: each thread has its own engine, and takes groups of worlds from a shared list.

The result of a world does not depend on the thread that steps it or on the other worlds of its group: an engine keeps
no state between groups except the size of its memory.
"""

from __future__ import annotations

import os
import time
import weakref
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from poise.batch.thread_pool_kernels import APART, NOBODY, ROUND, begin, end, lead, serve_rounds, wait
from poise.dynamics.interrupts import HeldInterrupt, Pace
from poise.formulations.lanes.batch_engine import Engine, Layout, Records
from poise.kernel.memory import F64, Block, Width
from poise.model.model import Model

Shared = tuple[list[tuple[int, int]], dict[int, int]]
"""Spans of groups that are not done, and for each engine those at which it needs more memory."""
FEW = 16
"""Groups per engine up to which engines have no share of their own: a static split would leave threads waiting."""
LOOKS = 8192
"""Polls of a worker for work before it sleeps: some 0.2 ms, in which the next round often starts."""
PATIENCE = 5
"""Multiples of these polls that the calling thread makes for the end of a round before it sleeps in between."""
PAUSE = 0.02
"""Latency of Ctrl-C: the time of groups that threads share before they wait for each other; s."""
FIRST = 256
"""Groups times steps that are shared at first, before their time is measured."""
MOST_STOPS = 100
"""Interrupts of one wait after which it is aborted: the wait itself is faulty."""


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _spans(first: int, last: int) -> list[tuple[int, int]]:
    """The span of groups, if it is not empty."""
    return [(first, last)] if first < last else []


class Crew:
    """Engines, and worker threads for all but the first, which the calling thread uses."""

    def __init__(self, model: Model, width: Width, layout: Layout, threads: int, rules: dict[str, Any]) -> None:
        self.width, self._parts, self._rules = width, (model, width, layout), rules
        self.engines = self._engines(threads)
        self._torn = False
        """Whether a run was interrupted, possibly while memory was reallocated."""
        self._hands: Hands | None = None
        self._turn, self._process = Lock(), os.getpid()
        self._used: Block | None = None
        self._pace = Pace(PAUSE, FIRST)

    def _engines(self, n: int) -> list[Engine]:
        return [Engine(*self._parts, **self._rules) for _ in range(n)]

    def turn(self) -> Lock:
        """Lock for stepping worlds: engines serve one caller at a time."""
        if self._process != os.getpid():  # a thread that held it before a fork does not exist in the child
            self._turn, self._process = Lock(), os.getpid()
        return self._turn

    def run(self, records: Records, groups: int, dt: float, n: int) -> None:
        """N steps of the first groups of the records' order."""
        spans = _spans(0, groups)
        while spans:
            with HeldInterrupt():
                if self._torn:
                    self.engines, self._used = self._engines(len(self.engines)), None
                self._torn = True
                self._run(records, spans, dt, n)
                self._torn = False

    def steps_at_once(self, groups: int, most: int) -> int:
        """Steps of this many groups within the latency of Ctrl-C."""
        return max(1, min(self._pace.most // max(groups, 1), most))

    def _run(self, records: Records, spans: list[tuple[int, int]], dt: float, n: int) -> None:
        """N steps of the last groups of `spans`, of as many as the latency of Ctrl-C permits."""
        if self._used is not records.block:
            for engine in self.engines:
                engine.use(records)
            self._used = records.block
        first, last = spans.pop()
        end = min(last, first + max(self._pace.most // n, len(self.engines)))
        spans += _spans(end, last)
        self._pace.begin()
        left, stuck = self._share(first, end, dt, n)
        if not stuck:
            self._pace.end(n * (end - first))
        spans += left + [(group, group + 1) for group in stuck.values()]
        helped = [self.engines[k].make_way() for k in stuck]
        if not all(helped):
            records.remember_more(self._remembered())

    def _remembered(self) -> tuple[int, ...]:
        rooms = [engine.remembered for engine in self.engines]
        return tuple(max(kinds) for kinds in zip(*rooms, strict=True))

    def _share(self, first: int, last: int, dt: float, n: int) -> Shared:
        """Distribute groups to the free threads."""
        if len(self.engines) == 1 or last - first == 1:
            reached = int(self.engines[0].call(dt, n, first, last))
            return _spans(reached + 1, last), {} if reached == last else {0: reached}
        if self._hands is None or self._hands.process != os.getpid():  # a forked process has no threads
            self._hands = Hands(len(self.engines))
        return self._hands.share(self.engines, first, last, dt, n)


class Hands:
    """Worker threads that wait for rounds of work."""

    def __init__(self, engines: int) -> None:
        self.process, self._n = os.getpid(), engines
        each = dict.fromkeys(("last", "front", "table", "taken", "stuck", "seen", "asleep", "woken"), engines)
        each |= dict.fromkeys(("number", "busy", "steps", "dt"), 1)
        self._round = ROUND.block(F64, engines=engines, turn=APART * engines, **each)
        self._round.asleep[...] = 1
        self._calls: list[Any] = [None] * engines
        self._beds, self._faults = [Lock() for _ in range(engines)], list[BaseException]()
        ended = list[bool]()
        for k, bed in enumerate(self._beds):
            bed.acquire()
            if k:
                parts = (self._round, k, bed, self._faults, ended)
                Thread(target=_be_hand, args=parts, name=f"poise-batch-{k}", daemon=True).start()
        weakref.finalize(self, _send_home, self._beds, ended)

    def share(self, engines: list[Engine], first: int, last: int, dt: float, n: int) -> Shared:
        """Step groups on all threads."""
        j, turns = self._round, self._round.turn[::APART]
        if j.busy[0]:  # an interrupt left a round unfinished
            self._finish(False)
        for k, engine in enumerate(engines):
            if self._calls[k] is not (call := engine.call):
                self._calls[k], j.front[k], j.table[k] = call, call.front, call.table
        parts = self._n if last - first >= FEW * self._n else 1
        ends = [first + (last - first) * min(k + 1, parts) // parts for k in range(self._n)]
        turns[...], j.last[...] = [first, *ends[:-1]], ends
        j.steps[0], j.dt[0] = n, dt
        done = False
        try:
            if begin[F64](j.handle):
                self._wake()
            done = lead[F64](j.handle, LOOKS)
        finally:  # also on an interrupt: no worker continues afterwards
            self._finish(done)
        if self._faults:
            raise self._faults.pop()
        stuck = {k: group for k, group in enumerate(j.stuck.tolist()) if group != NOBODY}
        if not stuck:
            return [], stuck
        return [span for turn, end in zip(turns.tolist(), ends, strict=True) for span in _spans(turn, end)], stuck

    def _finish(self, done: bool) -> None:
        """Wait for the workers, also on an interrupt."""
        waits, stops = 0, list[BaseException]()
        while len(stops) < MOST_STOPS:
            try:
                while not done:
                    self._wake()
                    time.sleep(0.0 if waits < PATIENCE else 1e-4)  # a worker may need this core
                    done, waits = wait[F64](self._round.handle, LOOKS), waits + 1
                break
            except BaseException as stop:
                stops.append(stop)
        if stops:
            raise stops[-1]

    def _wake(self) -> None:
        """Wake each sleeping worker for this round, once."""
        for k in range(1, self._n):
            if self._round.woken[k]:
                with suppress(RuntimeError):  # an interrupt came between the next two lines
                    self._beds[k].release()
                self._round.woken[k] = 0


def _be_hand(j: Block, k: int, bed: Any, faults: list[BaseException], ended: list[bool]) -> None:
    """The loop of a worker: sleep, serve rounds, and sleep again."""
    while True:
        bed.acquire()
        if ended:
            return
        try:
            serve_rounds[F64](j.handle, k, LOOKS)
        except BaseException as fault:  # the calling thread raises it
            faults.append(fault)
            j.asleep[k] = 1
            end[F64](j.handle, k)


def _send_home(beds: list[Any], ended: list[bool]) -> None:
    ended.append(True)
    for bed in beds:
        with suppress(RuntimeError):  # it is awake already
            bed.release()
