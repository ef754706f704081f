"""Threads that step many worlds: each has an engine of its own, and takes groups of worlds as they come.

Which thread steps a world, and beside which others, has no influence on it: nothing of an engine outlives a group but
memory that has grown.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from threading import Event
from typing import Any

from poise.formulations.crowd import Engine, Layout, Records, VariedEngine
from poise.kernel.memory import Width
from poise.model.model import Model

CHUNKS = 8
"""That each thread has to take, about: some groups take longer than others."""


def processors() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Crew:
    """Engines and their threads."""

    def __init__(self, model: Model, width: Width, layout: Layout, threads: int, rules: dict[str, Any]) -> None:
        self.width = width
        kind = VariedEngine if width.varied else Engine
        self.engines = [kind(model, width, layout, **rules) for _ in range(threads)]
        self._pool: ThreadPoolExecutor | None = None

    def run(self, records: Records, groups: int, dt: float, n: int) -> None:
        """N steps of the first groups of the records' order."""
        parts = [(k, k + 1) for k in range(groups)]
        size = max(1, groups // (CHUNKS * len(self.engines)))
        chunks = [(k, min(k + size, groups)) for k in range(0, groups, size)]
        while chunks:
            for engine in self.engines:
                engine.use(records)
            left = self._share(chunks, dt, n)
            if left:
                records.remember_more(self._remembered())
            chunks = [parts[group] for group in left]

    def _remembered(self) -> tuple[int, ...]:
        rooms = [engine.remembered for engine in self.engines]
        return tuple(max(kinds) for kinds in zip(*rooms, strict=True))

    def _share(self, chunks: list[tuple[int, int]], dt: float, n: int) -> list[int]:
        """Chunks to whoever is free; the groups that are still to be done."""
        turn, stop = count(), Event()

        def work(engine: Engine) -> list[int]:
            left: list[int] = []
            while not stop.is_set() and (k := next(turn)) < len(chunks):
                left += engine.run(dt, n, *chunks[k])
            return left

        if len(self.engines) == 1 or len(chunks) == 1:
            return work(self.engines[0])
        self._pool = self._pool or ThreadPoolExecutor(len(self.engines) - 1, "poise-batch")
        others: list[Future[list[int]]] = [self._pool.submit(work, engine) for engine in self.engines[1:]]
        try:
            left = work(self.engines[0])
            for other in others:
                left += other.result()
        finally:
            stop.set()  # nobody works on after an interrupt
            wait(others)
        return sorted(left)
