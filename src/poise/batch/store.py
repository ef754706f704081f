"""Storage of results: a folder with a file `runs.jsonl`, which gets one line per run, flushed to the disk."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any

from poise.batch.task import Result
from poise.model.errors import SceneError

NAME = "runs.jsonl"
FORMAT = 1
_FIRST = "poise sweep"


class Store:
    """Results of one sweep, identified by `header`. In a `with` statement it locks the folder for other writers.

    A file with results of another sweep raises SceneError with the differences. An incomplete last line is cut off, and
    its run is done again.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        self.folder, self.path = folder, folder / NAME
        self.header: dict[str, Any] = json.loads(json.dumps({_FIRST: FORMAT, **header}))
        self.results: dict[int, Result] = {}
        self._file = -1

    def __enter__(self) -> Store:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            _lock(self._file, self.folder)
            self._read()
        except OSError as error:
            self._close()
            raise SceneError(f"cannot be written: {error.strerror or error}", file=str(self.folder)) from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)  # this releases the lock
        self._file = -1

    def add(self, result: Result, values: Mapping[str, Any]) -> None:
        """Write a result; it is on the disk when this returns."""
        line = {
            "run": result.run,
            "set": dict(values),
            "status": result.status,
            "time": _written(result.time),
            "metrics": {name: _written(value) for name, value in result.metrics.items()},
            "note": result.note,
            "wall": round(result.wall, 6),
        }
        try:
            self._append(line)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}; what is there is kept, and the same sweep goes on"
            raise SceneError(what, file=str(self.path)) from None
        self.results[result.run] = result

    def _append(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        before = os.fstat(self._file).st_size
        try:
            while text:
                text = text[os.write(self._file, text) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, before)  # half of a line would spoil the next one
            raise

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        content = self._content()
        whole, newline, torn = content.rpartition(b"\n")
        if torn:
            if not newline and not json.dumps({_FIRST: FORMAT}).encode().startswith(torn[: len(_FIRST) + 6]):
                raise SceneError("it is not the file of a sweep", file=str(self.path))
            os.ftruncate(self._file, len(whole) + len(newline))
        if not newline:
            self._append(self.header)
            _sync_folder(self.folder)
            return
        lines = whole.split(b"\n")
        told = self._differences(self._line(lines[0], 1))
        if told and len(lines) == 1:
            # it has no results: it was stopped before its first run was done
            os.ftruncate(self._file, 0)
            self._append(self.header)
        elif told:
            what = "\n".join(f"  {line}" for line in told[:8])
            message = f"it holds another sweep; take another folder, or remove it. What differs:\n{what}"
            raise SceneError(message, file=str(self.path))
        for number, line in enumerate(lines[1:], 2):
            result = self._result(self._line(line, number), number)
            self.results.setdefault(result.run, result)

    def _content(self) -> bytes:
        os.lseek(self._file, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._file, 1 << 20):
            parts.append(part)
        return b"".join(parts)

    def _line(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SceneError("it is damaged; take another folder, or remove it", file=str(self.path), line=number)
        return found

    def _result(self, line: Mapping[str, Any], number: int) -> Result:
        try:
            metrics = {name: float(value) for name, value in line["metrics"].items()}
            run, status = int(line["run"]), str(line["status"])
            if not 0 <= run < self.header["runs"]:
                raise ValueError
            return Result(run, status, float(line["time"]), metrics, str(line["note"]), float(line["wall"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise SceneError("it is no result of this sweep", file=str(self.path), line=number) from None

    def _differences(self, found: Mapping[str, Any]) -> list[str]:
        """Differences of the first line from this sweep."""
        if found.get(_FIRST) != FORMAT:
            raise SceneError("it is not the file of a sweep", file=str(self.path), line=1)
        return differences(found, self.header)


def differences(there: Mapping[str, Any], here: Mapping[str, Any], above: str = "") -> list[str]:
    """Differences of two headers, one line each.

    >>> differences({"dt": 0.1, "files": {"a": "1"}}, {"dt": 0.2, "files": {"a": "2"}})
    ['dt: 0.1 there, 0.2 here', 'file a has changed']
    """
    told = []
    for name in dict.fromkeys([*there, *here]):
        mine, yours = here.get(name), there.get(name)
        if mine == yours:
            continue
        if isinstance(mine, dict) and isinstance(yours, dict):
            told += differences(yours, mine, name)
        elif above == "files" and mine is not None and yours is not None:
            told.append(f"file {name} has changed")
        else:
            label = f"{above}: {name}" if above else name
            told.append(f"{label}: {_short(yours)} there, {_short(mine)} here")
    return told


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _written(number: float) -> float | str:
    """JSON has no infinity and no NaN."""
    return number if isfinite(number) else str(number)


def _lock(file: int, folder: Path) -> None:
    """Lock the file for other processes until it is closed, or this process ends in any way."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(file, 1 << 40, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            raise  # some network disks have no locks
        raise SceneError(
            "another sweep is writing there; wait for it, or take another folder", file=str(folder)
        ) from None


def _sync_folder(folder: Path) -> None:
    """Flush the name of a new file to the disk too, if the system supports it."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
