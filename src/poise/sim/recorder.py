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
"""Between two looks at how far a run is."""
_FRAMES = 128
"""That compiled code can record before they are read."""


class Running(Acting):
    """What worlds have for going on for a while."""

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
        """Go on for `duration` seconds and record the first state, every `every`-th one after it, and the last.

        `record` names what is kept beside time and state (see `poise.sim.PARTS`); `signals` are functions of the world,
        sensors among them, whose numbers are kept too. `before_step`, if given, is called with the world before each
        step of this run. Where it takes long, a line on the terminal tells how far it is (`progress`: always or never).

        If the world diverges, or something else stops it, what was recorded until then is in `world.recording`; and
        `Diverged` carries it.

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
        """Go on as `run` does, and write the recording as HDF5 (.h5) while it grows: it takes no more memory then.

        Frames are written some hundred at a time. Where the run is stopped, or the process killed, the file holds all
        frames but the last few; it can be opened (`Recording.load`) while the run goes on, too. Signals are kept as
        floating-point numbers. Gives the path. Needs h5py, which the extra `hdf5` brings.

        A file of that name stays until the first frames are written. If the disk is full, this raises a `SceneError`;
        the frames that were written stay readable, and the others are in `world.recording`.

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
        # what writes HDF5 is in a package above this one
        sink = resolve_name("poise.io.hdf5_stream:Stream")(target)
        recorder = StreamingRecorder(self, _checked_parts(record), _checked_signals(signals), sink)
        try:
            self._record(recorder, steps, every, before_step, progress)
        finally:
            self._close_stream(recorder)
        return target

    def _close_stream(self, recorder: StreamingRecorder) -> None:
        """End the file; frames that it could not take are the recording of this run."""
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
        """Make steps, and let a recorder take what is to be kept."""
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
        """That of the last run, also where it was stopped; None before.

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
        """Signals of the world as it is now, and the frames up to it."""
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
        """Read what steps have recorded since the last time."""
        part = self.frames.read()
        if len(part["time"]):
            self.parts.append(part)
            self.n_frames += len(part["time"])

    def finished(self) -> Recording:
        """All frames up to now; whole ones, with all their signals."""
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
    """Gives frames away, some at a time, and forgets them."""

    def __init__(self, world: Running, record: tuple[str, ...], signals: dict[str, Signal], sink: Any) -> None:
        super().__init__(world, record, signals)
        self.sink = sink

    def take(self, world: Running) -> None:
        """One frame; and give away those that there are, if they are enough."""
        super().take(world)
        if self.n_frames >= self.sink.frames:
            self.give()

    def give(self) -> None:
        """Give away all that there is."""
        self.sink.add(self.finished())
        self.columns = {name: [] for name in self.columns}
        self.parts, self.n_frames = [], 0
        self.events.clear()

    def close(self) -> None:
        """Give away what is left, and end the file."""
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
    """Of what computes; looked up once, as that takes as long as hundreds of steps."""
    import poise

    found = {"python": platform.python_version(), "machine": platform.machine(), "poise": poise.__version__}
    for package in ("numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # built without metadata
            found[package] = "unknown"
    return found


def options_of(world: Running) -> dict[str, Any]:
    """How a world is stepped, and by what; plain words and numbers."""
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
    """What a signal gives, as numbers."""
    array = np.array(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"signal {name!r} gave {value!r}; it must be numbers")
    return array
