"""Running a world for some time, and recording it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics.argument_checks import steps_of_duration
from poise.dynamics.simulation import Diverged
from poise.dynamics.state_queries import Energy
from poise.formulations.observers.recorded_frames import SOLVER
from poise.model.errors import SceneError, did_you_mean
from poise.sim.controllers import Acting
from poise.sim.events import Event
from poise.sim.export_formats import checked_path
from poise.sim.observer import StepObserver
from poise.sim.progress import Progress
from poise.sim.recording import PARTS, Contacts, Recording
from poise.sim.step_result import LastStep

Array = NDArray[Any]
Signal = Callable[[Any], ArrayLike]
_STEPS = 64
"""Steps between two updates of the progress line."""
_FRAMES = 128
"""Capacity: frames that compiled code records between two reads."""


class Running(Acting):
    """The part of a world that runs for a duration and records."""

    formulation: Any
    camera: dict[str, Any]
    _recording: Recording | None
    _last: LastStep
    _observer: StepObserver

    def run(
        self,
        duration: float,
        *,
        every: int = 1,
        record: Iterable[str] = PARTS,
        signals: Mapping[str, Signal] | None = None,
        before_step: Callable[[Any], Any] | None = None,
        progress: bool | None = None,
    ) -> Recording:
        """Run for `duration` seconds and record the first state, every `every`-th one after it, and the last.

        `record` names what frames contain besides time and state (see `poise.sim.PARTS`). `signals` are functions of
        the world, for example sensors, whose values are recorded too. `before_step` is called with the world before
        each step of this run. Long runs show a progress line on the terminal (`progress`: always or never).

        If the world diverges or the run is interrupted, `world.recording` contains the frames so far; the exception
        `Diverged` also carries them.

        >>> import poise
        >>> scene = poise.Scene()
        >>> _ = scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 10))
        >>> fall = scene.build(dt=0.001).run(1.0, every=100, signals={"height": lambda world: world.q[2]})
        >>> len(fall), float(fall.signals["height"][-1].round(1))
        (11, 5.1)
        """
        steps = self._steps_of(duration, every)
        recorder = Recorder(self, _checked_parts(record), _checked_signals(signals))
        try:
            self._record(recorder, steps, every, before_step, progress)
        except Diverged as problem:
            problem.recording = recorder.finished()
            raise
        finally:
            self._recording = recorder.finished()
        return self._recording

    def stream(
        self,
        duration: float,
        path: str | os.PathLike[str],
        *,
        every: int = 1,
        record: Iterable[str] = PARTS,
        signals: Mapping[str, Signal] | None = None,
        before_step: Callable[[Any], Any] | None = None,
        progress: bool | None = None,
    ) -> Path:
        """Run as `run` does, and write the recording to HDF5 (.h5) as it grows, so that memory use stays constant.

        Frames are written some hundred at a time. If the run is stopped or the process is killed, the file lacks at
        most the last frames. `Recording.load` can open it during the run. Signals are stored as floating-point numbers.
        Returns the path. Requires h5py, which the extra `hdf5` installs.

        An existing file of that name stays until the first frames are written. If the disk is full, `stream` raises a
        `SceneError`; the written frames stay readable, and the others are in `world.recording`.

        >>> import poise, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = poise.Scene().build(dt=0.25).stream(1.0, f"{folder}/still.h5")
        ...     len(poise.sim.Recording.load(file))
        5
        """
        steps = self._steps_of(duration, every)
        target = checked_path(path)
        if target.suffix.lower() not in (".h5", ".hdf5"):
            raise SceneError(f'what grows is written as HDF5: ".h5", found "{target.suffix}"', file=str(target))
        # imported here: poise.io imports this package
        sink = resolve_name("poise.io.hdf5_stream:Stream")(target)
        recorder = StreamingRecorder(self, _checked_parts(record), _checked_signals(signals), sink)
        try:
            self._record(recorder, steps, every, before_step, progress)
        finally:
            self._close_stream(recorder)
        return target

    def _close_stream(self, recorder: StreamingRecorder) -> None:
        """Close the file; frames that could not be written become the recording of this run."""
        try:
            recorder.close()
        except SceneError:
            self._recording = recorder.finished()
            raise

    def _steps_of(self, duration: Any, every: Any) -> int:
        steps = steps_of_duration(duration, self.dt)
        if steps < 1 or isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"{duration} s in steps of {self.dt} s, one in {every} kept: nothing to do")
        return steps

    def _record(self, recorder: Recorder, steps: int, every: int, before_step: Any, progress: bool | None) -> None:
        """Step the world, and record its frames."""
        bar, start, hooks = Progress(steps * self.dt, progress), self.time, self._hooks
        functions = [] if before_step is None else [before_step]
        if "events" in recorder.record:
            self._watch()
        observer, others, kept = self._observer, self._observer.frames, hooks.kept
        try:
            hooks.before = [*hooks.before, *functions]
            observer.frames, hooks.kept = recorder.frames, recorder.events if "events" in recorder.record else None
            observer.take_frame(self.time)
            recorder.take(self)
            recorder.frames.begin(every)
            most = every if recorder.signals else max(every, _STEPS)
            for k in range(0, steps, most):
                self.step(min(most, steps - k))
                if steps - k <= most and steps % every:
                    observer.take_frame(self.time)
                recorder.take(self)
                bar.tell(self.time - start)
        except Diverged:
            recorder.events += hooks.events if "events" in recorder.record else []
            raise
        finally:
            recorder.frames.begin(0)
            observer.frames, hooks.kept = others, kept
            recorder.collect()
            self._rest()
            hooks.before = [known for known in hooks.before if known not in functions]
            bar.close()

    @property
    def recording(self) -> Recording | None:
        """The recording of the last run, also of an interrupted one; None before the first run.

        >>> import poise
        >>> world = poise.Scene().build(dt=0.25)
        >>> world.run(1.0) is world.recording
        True
        """
        return self._recording


class Recorder:
    """Collects frames of a world: those that steps have recorded, with signals and events."""

    def __init__(self, world: Running, record: tuple[str, ...], signals: dict[str, Signal]) -> None:
        self.model, self.record, self.signals = world.model, record, signals
        self.options = options_of(world) | {"record": list(record)}
        self.frames = world._observer.buffer(_FRAMES, record)
        self.parts: list[dict[str, Array]] = []
        self.n_frames = 0
        self.columns: dict[str, list[Array]] = {}
        self.events: list[Event] = []

    def take(self, world: Running) -> None:
        """Record the signals of the current world, and read the frames up to it."""
        numbers = {name: _reading(name, signal(world)) for name, signal in self.signals.items()}
        for name, value in numbers.items():
            column = self.columns.setdefault(name, [])
            if column and column[0].shape != value.shape:
                first = column[0].shape
                raise ValueError(
                    f"signals/{name} had the shape {first} and now has {value.shape}; it must stay the same"
                )
        for name, value in numbers.items():
            self.columns[name].append(value)
        self.collect()

    def collect(self) -> None:
        """Read the frames that steps recorded since the last call."""
        part = self.frames.read()
        if len(part["time"]):
            self.parts.append(part)
            self.n_frames += len(part["time"])

    def finished(self) -> Recording:
        """The recording of all complete frames so far, those with all their signals."""
        n = min([self.n_frames, *(len(self.columns.get(name, ())) for name in self.signals)])
        parts = self.parts or [self.frames.read()]
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns = {name: array[:n] for name, array in whole.items()}
        energies, solver = columns.get("energy"), columns.get("solver")
        counted = ("rows", "sweeps", "newton_steps", "parts")
        forces = ("tau", "passive", *(("motors",) if self.model.motors else ()))
        return Recording(
            columns["time"],
            columns["q"],
            columns["v"],
            self.model,
            _contacts(whole, n) if "contacts" in self.record else None,
            None if energies is None else Energy(*energies.T),
            {}
            if solver is None
            else {
                name: solver[:, k].astype(np.int64 if name in counted else np.float64) for k, name in enumerate(SOLVER)
            },
            {name: columns[name] for name in forces} if "tau" in columns else {},
            {name: np.array(values[:n]) for name, values in self.columns.items()},
            tuple(self.events),
            self.options,
        )


class StreamingRecorder(Recorder):
    """Writes frames to a sink, some at a time, and frees them."""

    def __init__(self, world: Running, record: tuple[str, ...], signals: dict[str, Signal], sink: Any) -> None:
        super().__init__(world, record, signals)
        self.sink = sink

    def take(self, world: Running) -> None:
        """Record one frame; write the collected frames if there are enough."""
        super().take(world)
        if self.n_frames >= self.sink.frames:
            self.give()

    def give(self) -> None:
        """Write all collected frames."""
        self.sink.add(self.finished())
        self.columns = {name: [] for name in self.columns}
        self.parts, self.n_frames = [], 0
        self.events.clear()

    def close(self) -> None:
        """Write the remaining frames, and close the file."""
        try:
            if self.n_frames or self.events:
                self.give()
        finally:
            self.sink.close()


def _contacts(columns: dict[str, Array], frames: int) -> Contacts:
    start = np.concatenate(([0], np.cumsum(columns["contacts"][:frames]))).astype(np.int64)
    n = int(start[-1])
    return Contacts(start, *(columns[name][:n] for name in ("shapes", "point", "normal", "depth", "force")))


@cache
def versions() -> dict[str, str]:
    """Versions of Poise and its dependencies; cached, because the lookup takes as long as hundreds of steps."""
    import poise

    found = {"python": platform.python_version(), "machine": platform.machine(), "poise": poise.__version__}
    for package in ("numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # built without metadata
            found[package] = "unknown"
    return found


def options_of(world: Running) -> dict[str, Any]:
    """Formulation options, step and versions of a world, as values that JSON can hold."""
    formulation = {"name": type(world.formulation).__name__} | asdict(world.formulation)
    camera = {name: list(value) if isinstance(value, tuple) else value for name, value in world.camera.items()}
    return {"dt": world.dt, "formulation": formulation, "versions": dict(versions())} | (
        {"camera": camera} if camera else {}
    )


def _checked_parts(record: Any) -> tuple[str, ...]:
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise TypeError(f"record is {record!r}; it must be a list of names, of {', '.join(PARTS)}")
    names = tuple(dict.fromkeys(record))
    for name in names:
        if name not in PARTS:
            raise ValueError(f"{name!r} cannot be recorded{did_you_mean(name, PARTS)}; there are {', '.join(PARTS)}")
    return names


def _checked_signals(signals: Any) -> dict[str, Signal]:
    if signals is None:
        return {}
    if not isinstance(signals, Mapping):
        raise TypeError(f"signals is a {type(signals).__name__}; it must be functions of the world by their names")
    for name, signal in signals.items():
        if not isinstance(name, str) or not callable(signal):
            raise TypeError(f"signal {name!r} is a {type(signal).__name__}; it must be a function of the world")
    return dict(signals)


def _reading(name: str, value: Any) -> Array:
    """The value of a signal as an array."""
    array = np.array(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"signal {name!r} gave {value!r}; it must be numbers")
    return array
