"""One run of a sweep, in any process."""

from __future__ import annotations

import pickle
import platform
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import nan
from threading import Lock
from time import perf_counter
from typing import Any

from poise.batch.metrics import Metric
from poise.model.scene import Scene

SECONDS = 5.0
"""Simulated time of scenes that set none; s."""
OK, DIVERGED, FAILED, LOST = "ok", "diverged", "failed", "lost"
#: one world at a time: workers of clusters may have several threads
_ONE = Lock()


@dataclass(frozen=True)
class How:
    """Settings that all runs of a sweep share."""

    metrics: tuple[Metric, ...]
    seconds: float | None = None
    dt: float | None = None
    every: int = 1
    coordinates: str | None = None


@dataclass(frozen=True)
class Task:
    """A run to do."""

    run: int
    values: dict[str, Any]
    how: How
    file: str
    scene: bytes | None = None
    """The scene itself, for machines without the file."""

    def load(self) -> Scene:
        """The scene with the values of this run."""
        if self.scene is not None:
            scene: Scene = pickle.loads(self.scene)
            return scene
        from poise.io.load import load

        return load(self.file, set=self.values)

    def packed(self) -> Task:
        """The same with its scene, to send it to a worker."""
        return replace(self, scene=pickle.dumps(self.load()))


@dataclass(frozen=True)
class Result:
    """Result of a run."""

    run: int
    status: str
    """"ok", "diverged" at `time`, or "failed"; "lost" where its process ended, and it may be tried again."""
    time: float
    """Simulated; s."""
    metrics: dict[str, float]
    note: str = ""
    wall: float = 0.0
    """s."""
    versions: dict[str, str] = field(default_factory=dict)


@cache
def versions() -> dict[str, str]:
    """Versions that results may depend on."""
    import poise

    found = {"poise": poise.__version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def build(scene: Scene, how: How) -> Any:
    """The world of a run."""
    from poise.formulations.formulation_registry import of_kind

    chosen = None if how.coordinates is None else of_kind(how.coordinates, scene.settings.formulation)
    return scene.build(chosen, dt=how.dt)


def length_of(scene: Scene, how: How) -> float:
    """Simulated time of a run; s."""
    return how.seconds or scene.settings.duration or SECONDS


def note_of(error: BaseException) -> str:
    """An error as text that is valid in any file."""
    text = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode("utf-8")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def run_task(task: Task) -> Result:
    """Do one run. Its result reports any error."""
    with _ONE:
        return _run(task)


def _run(task: Task) -> Result:
    from poise.dynamics.simulation import Diverged

    start, how, world = perf_counter(), task.how, None
    measured = {metric.name: nan for metric in how.metrics}
    record = tuple(dict.fromkeys(part for metric in how.metrics for part in metric.record))
    status, note = OK, ""
    try:
        scene = task.load()
        world = build(scene, how)
        recording = world.run(length_of(scene, how), every=how.every, record=record, progress=False)
        measured = {metric.name: metric.measure(world, recording) for metric in how.metrics}
    except Diverged as problem:
        status, note = DIVERGED, str(problem)
    except (Exception, SystemExit) as error:
        # one failed run must not end the others
        status, note = FAILED, note_of(error)
    time = 0.0 if world is None else float(world.time)
    return Result(task.run, status, time, measured, note, perf_counter() - start, versions())
