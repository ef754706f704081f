"""Runs in local processes, or in the present one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import IO

from poise.batch.task import LOST, Result, Task, run_task

TRIES = 2
"""Attempts of a run whose process ends."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run_here(tasks: Iterator[Task]) -> Generator[Result, None, None]:
    """One run after another, in this process."""
    for task in tasks:
        yield run_task(task)


def run_in_processes(tasks: Iterator[Task], processes: int) -> Generator[Result, None, None]:
    """Runs in several processes, yielded as they end.

    A thread here sends tasks to each process. If a process ends by itself, its run is tried once more in another one,
    and then reported as lost.
    """
    crew = _Crew(tasks)
    threads = [threading.Thread(target=crew.work, daemon=True) for _ in range(processes)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) or not crew.done.empty():
            try:
                found = crew.done.get(timeout=0.1)
            except Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        crew.end()
        for thread in threads:
            thread.join()


class _Crew:
    """Worker processes for one list of tasks."""

    def __init__(self, tasks: Iterator[Task]) -> None:
        self.tasks = tasks
        self.done: Queue[Result | BaseException] = Queue()
        self.lock = threading.Lock()
        self.ended = False
        self.workers: set[_Worker] = set()

    def work(self) -> None:
        """Send tasks to one process until all are done."""
        worker: _Worker | None = None
        try:
            while (task := self.next()) is not None:
                found: Result | None = None
                for _ in range(TRIES):
                    worker = worker or self.hired()
                    if worker is None:
                        return
                    found = worker.ask(task)
                    if found.status != LOST:
                        break
                    self.gone(worker)
                    worker = None
                if self.ended or found is None:
                    return
                self.done.put(found)
        except BaseException as error:
            self.done.put(error)
        finally:
            if worker is not None:
                self.gone(worker)

    def next(self) -> Task | None:
        """The next task, unless the pool is closing."""
        with self.lock:
            return None if self.ended else next(self.tasks, None)

    def hired(self) -> _Worker | None:
        """Start another process."""
        with self.lock:
            if self.ended:
                return None
            worker = _Worker()
            self.workers.add(worker)
            return worker

    def gone(self, worker: _Worker) -> None:
        """Remove a process."""
        with self.lock:
            self.workers.discard(worker)
        worker.close()

    def end(self) -> None:
        """End all processes at once."""
        with self.lock:
            self.ended = True
            for worker in self.workers:
                worker.process.kill()


class _Worker:
    """A worker process."""

    def __init__(self) -> None:
        # it has the same module path as this process, and computes with one thread
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        environment = os.environ | {"PYTHONPATH": paths, "POISE_QUIET": "1"} | dict.fromkeys(THREADS, "1")
        self.said = tempfile.TemporaryFile()  # noqa: SIM115, `close` does it
        self.process = subprocess.Popen(
            [sys.executable, "-m", "poise.batch.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env=environment,
        )

    def ask(self, task: Task) -> Result:
        """Do a run in the process; its status is "lost" if the process ends."""
        ours, theirs = self.process.stdin, self.process.stdout
        assert ours is not None
        assert theirs is not None
        try:
            ours.write(pickle.dumps(task))
            ours.flush()
            found: Result = pickle.load(theirs)
        except (EOFError, BrokenPipeError, ConnectionError, pickle.UnpicklingError):
            code = self.process.wait()
            return Result(task.run, LOST, 0.0, {}, f"its process ended with status {code}{_last_line(self.said)}")
        return found

    def close(self) -> None:
        """End it."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        self.process.wait()
        self.said.close()


def _last_line(said: IO[bytes]) -> str:
    """Last line of a process's output before it ended."""
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:200]}" if last else ""
