"""Streaming of growing recordings to HDF5.

The file is one for a single writer and many readers (HDF5's SWMR): whatever happens to the writer, what was flushed can
be read. It is written through a `Sink`: on a full disk it stays as it is, and `add` raises the error. All datasets are
made at the beginning; afterwards they only grow, whole chunks at a time, and `time` last: it has a number for
each frame. Events, whose number is unknown in advance, are lines of JSON in a dataset of bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from poise.io.hdf5 import UNITS, h5py_module, key_of
from poise.io.hdf5_file import Sink, opened, uninterrupted
from poise.model.array_file import not_written
from poise.model.errors import SceneError
from poise.sim.recording_file import arrays_of

if TYPE_CHECKING:
    from poise.sim.recording import Recording

Array = NDArray[Any]

_FRAMES = 240
"""Frames that are written at a time: a chunk of each dataset."""
_ROWS = 4096
"""Of a chunk of what has any number of rows a frame."""
_LOOK = 1 << 16
"""Rows that are looked at at a time."""
_FIXED = ("header", "model", "solids", "skins")
_EVENTS = "events"


class Stream:
    """A file that parts of a recording are added to, one after another.

    >>> import poise, tempfile
    >>> world = poise.Scene().build(dt=0.25)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stream = Stream(Path(folder) / "still.h5")
    ...     stream.add(world.run(1.0))
    ...     stream.close()
    ...     len(poise.sim.Recording.load(stream.path))
    5
    """

    def __init__(self, path: Path, frames: int = _FRAMES) -> None:
        self.path, self.frames = path, frames
        """Where it is, and how many frames should be added at a time."""
        self.written = 0
        """Frames that are in the file."""
        self._h5py = h5py_module()
        self._file: Any = None
        self._sink: Sink | None = None
        self._temporary = path.with_name(f".{path.stem[:100]}.{os.getpid()}.part{path.suffix}")
        self._growing: dict[str, Any] = {}
        self._contacts = 0

    def add(self, part: Recording) -> None:
        """Write some frames more, so that they are there whatever happens; an error where the disk is full."""
        try:
            if self._sink is None:
                self._sink = Sink(self._temporary)
            if self._sink.error is None:
                with uninterrupted():
                    self._add(part)
            if self._sink.error is not None:
                raise self._sink.error
            if self._temporary.exists():
                # a file that was there stays until the first frames are
                self._temporary.replace(self.path)
        except OSError as error:
            problem = not_written(error, self.path)
            there = f"{self.written} frames are in the file" if self.written else "nothing was written"
            raise SceneError(f"{problem.problems[0].message}; {there}", file=str(self.path)) from error
        self.written += len(part)

    def _add(self, part: Recording) -> None:
        lines = "".join(f"{json.dumps(asdict(event))}\n" for event in part.events)
        content = {name: _of_one_kind(name, array) for name, array in arrays_of(replace(part, events=())).items()}
        if self._file is None:
            self._begin(content)
        self._grow(_EVENTS, np.frombuffer(lines.encode(), np.uint8))
        if len(part):
            if "contacts/start" in content:
                content["contacts/start"] = content["contacts/start"][1:] + self._contacts
                self._contacts = int(content["contacts/start"][-1])
            # time is last: the data of its frames is complete
            for name in sorted(self._growing.keys() - {_EVENTS}, key=lambda name: name == "time"):
                self._grow(name, content[name])

    def _begin(self, content: dict[str, Array]) -> None:
        header = json.loads(content["header"].tobytes()) | {"streamed": True}
        content = content | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
        file = self._file = self._h5py.File(self._sink, "w", libver="latest")
        self._end = finalize(self, file.close)  # while Python still runs: the library would call it later
        file.attrs["format"] = "poise-recording"
        for name, array in content.items():
            if name.partition("/")[0] in _FIXED:
                file.create_dataset(key_of(name), data=array, fletcher32=array.size > 0 and array.ndim > 0)
                continue
            ragged = name.startswith("contacts/") and name != "contacts/start"
            self._growing[name] = self._make(name, array.dtype, array.shape[1:], _ROWS if ragged else self.frames)
            if name in UNITS:
                self._growing[name].attrs["unit"] = UNITS[name]
        self._growing[_EVENTS] = self._make(_EVENTS, np.dtype(np.uint8), (), _ROWS)
        if "contacts/start" in content:
            self._growing["contacts/start"].resize(1, axis=0)  # where the first frame begins: at 0
        file.swmr_mode = True

    def _make(self, name: str, kind: Any, shape: tuple[int, ...], rows: int) -> Any:
        # chunks that are written again and again have no sum: one that was being written would be taken for damaged
        whole = rows == self.frames and name != "contacts/start" and 0 not in shape
        return self._file.create_dataset(
            key_of(name),
            (0, *shape),
            kind,
            maxshape=(None, *(n or None for n in shape)),  # a chunk has no side of 0
            chunks=(rows, *(max(1, n) for n in shape)),
            fletcher32=whole,
        )

    def _grow(self, name: str, array: Array) -> None:
        data, n = self._growing[name], len(array)
        if n and self._sink is not None and self._sink.error is None:
            data.resize(len(data) + n, axis=0)
            data[len(data) - n :] = array
            data.flush()

    def close(self) -> None:
        """End the file."""
        try:
            if self._file is not None:
                with uninterrupted():
                    self._file.close()
                self._end.detach()
                self._file = None
        finally:
            if self._sink is not None:
                self._sink.close()
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)


def _of_one_kind(name: str, array: Array) -> Array:
    """Signals may be whole numbers now and others later; what is written is of one kind."""
    return array.astype(np.float64) if name.startswith("signals/") else array


def outline(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Summary of a recording file, read in chunks: it may be larger than memory.

    "frames"; "time" from the first to the last (s); "events", how many; "energy", first and last (J); "contacts": the
    "most" in a frame, the "deepest" (m), the "strongest" (N). The last two only where they were recorded.

    >>> import poise, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outline(poise.Scene().build(dt=0.25).stream(1.0, f"{folder}/still.h5", record=()))
    {'frames': 5, 'time': 1.0, 'events': 0}
    """
    with opened(h5py_module(), Path(path)) as file:
        time, n = file["time"], len(file["time"])
        lines = sum(int((part == ord("\n")).sum()) for part in _parts(file[_EVENTS]))
        told: dict[str, Any] = {"frames": n, "time": float(time[-1] - time[0]) if n else 0.0, "events": lines}
        if "energy" in file and n:
            told["energy"] = [float(sum(part[k] for part in file["energy"].values())) for k in (0, -1)]
        if "contacts" in file and n:
            found = file["contacts"]
            counts = [int(np.diff(found["start"][k : k + _LOOK + 1]).max()) for k in range(0, n, _LOOK)]
            told["contacts"] = {
                "most": max(counts),
                "deepest": max((float(part.max()) for part in _parts(found["depth"])), default=0.0),
                "strongest": max((float((part**2).sum(axis=1).max()) for part in _parts(found["force"])), default=0.0)
                ** 0.5,
            }
        return told


def _parts(data: Any) -> Iterator[Array]:
    """A dataset, some rows at a time."""
    for k in range(0, len(data), _LOOK):
        yield data[k : k + _LOOK]
