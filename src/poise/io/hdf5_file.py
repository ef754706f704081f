"""Files that HDF5 reads and writes through Python, so that writes of the library never fail.

HDF5 keeps unwritten parts after a failed write, tries them again when the process exits, and crashes there. A `Sink`
takes every write: after the first error the file on disk stays as it is, as if the process had been killed at that
moment, and the error is raised once the library is done. A `Source` opens files whose writer still writes or was killed
without the library's mode for that (SWMR), in which it reads damaged parts again and again for minutes.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_SUPERBLOCK = 48
"""Bytes at the beginning of a file of version 3 that say where everything is."""
_END = slice(28, 36)
"""Bytes of it that hold the end of the file."""
_SUM = 44
"""Where its own sum is."""
_LEAD = 1 << 26
"""Bytes that a file may grow by while it is read."""
_WORD = 0xFFFFFFFF
_STATUS = 11
"""Byte of it that is not 0 while a writer has the file, or if it was killed."""


class Sink:
    """A file to write; `error` is the first one that the system gave."""

    def __init__(self, path: Path) -> None:
        self.error: OSError | None = None
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        self._at = self._size = 0
        self._lost: list[tuple[int, bytes]] = []

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Bytes from here on as they would be had nothing failed; zeros where nothing was written."""
        target, start = memoryview(buffer).cast("B"), self._at
        found = b""
        with suppress(OSError):
            os.lseek(self._file, start, os.SEEK_SET)
            found = os.read(self._file, len(target))
        target[:] = found.ljust(len(target), b"\0")
        for place, data in self._lost:
            first, last = max(start, place), min(start + len(target), place + len(data))
            if first < last:
                target[first - start : last - start] = data[first - place : last - place]
        self._at += len(target)
        return len(target)

    def read(self, count: int = -1) -> bytes:
        """The same as bytes."""
        data = bytearray(max(0, self._size - self._at) if count < 0 else count)
        self.readinto(data)
        return bytes(data)

    def write(self, data: Any) -> int:
        """Write here. It always reports success to the caller."""
        content, start = memoryview(data).cast("B"), self._at
        self._try(lambda: self._write(content, start))
        if self.error is not None:
            self._lost.append((start, bytes(content)))
        self._at += len(content)
        self._size = max(self._size, self._at)
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Make the file as long as this."""
        length = self._at if size is None else size
        self._try(lambda: os.ftruncate(self._file, length))
        self._size = length
        return length

    def flush(self) -> None:
        """Does nothing: there is no buffer."""

    def sync(self) -> None:
        """Flush to the disk; some disks report only now that they are full."""
        self._try(lambda: os.fsync(self._file))

    def close(self) -> None:
        """End it."""
        if self._file >= 0:
            file, self._file = self._file, -1
            self._try(lambda: os.close(file))

    def _write(self, content: memoryview, start: int) -> None:
        if start == 0 and len(content) >= _SUPERBLOCK:
            # a file must never be shorter than it says, whenever the process is killed
            end = int.from_bytes(content[_END], "little")
            if os.fstat(self._file).st_size < end:
                os.ftruncate(self._file, end)
        os.lseek(self._file, start, os.SEEK_SET)
        while content:
            done = os.write(self._file, content)
            if not done:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            content = content[done:]

    def _try(self, action: Any) -> None:
        if self.error is None:
            try:
                action()
            except OSError as error:
                self.error = error


class Source:
    """A file to read; there are zeros behind its end.

    The superblock contains the end of the file only after its writer has closed it. Until then the reader replaces it
    by an end beyond the present data.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        start = self._file.read(_SUPERBLOCK) or b""
        self._start = _extended(start, self.size + _LEAD) if _unclosed(start) else b""
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        end = self.size + (_LEAD if self._start else 0)
        self._at = offset + (0, self._at, end)[whence]
        return self._at

    def tell(self) -> int:
        """The position. HDF5 uses it to determine the end of the file."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Bytes from here on."""
        target = memoryview(buffer).cast("B")
        self._file.seek(self._at)
        done = 0
        while done < len(target) and (n := self._file.readinto(target[done:])):
            done += n
        target[done:] = bytes(len(target) - done)
        if self._at < len(self._start):
            known = self._start[self._at : self._at + len(target)]
            target[: len(known)] = known
        self._at += len(target)
        return len(target)

    def read(self, count: int = -1) -> bytes:
        """The same as bytes."""
        data = bytearray(max(0, self.size - self._at) if count < 0 else count)
        self.readinto(data)
        return bytes(data)

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """End it."""
        self._file.close()


def being_written(path: Path) -> bool:
    """Whether a writer has a file, or was killed."""
    try:
        with path.open("rb") as stream:
            return _unclosed(stream.read(_SUPERBLOCK))
    except OSError:
        return False


def _unclosed(superblock: bytes) -> bool:
    return len(superblock) == _SUPERBLOCK and superblock[8] == 3 and superblock[_STATUS] != 0


def _extended(superblock: bytes, end: int) -> bytes:
    """A superblock with another end of the file; one with a wrong checksum stays as it is."""
    if checksum(superblock[:_SUM]) != int.from_bytes(superblock[_SUM:], "little"):
        return superblock
    told = superblock[: _END.start] + end.to_bytes(8, "little") + superblock[_END.stop : _SUM]
    return told + checksum(told).to_bytes(4, "little")


def checksum(data: bytes) -> int:
    """The sum that HDF5 keeps of its metadata: Jenkins' lookup3 (2006), whose little-endian words are a, b, c.

    >>> hex(checksum(b""))
    '0xdeadbeef'
    """
    a = b = c = (0xDEADBEEF + len(data)) & _WORD
    if not data:
        return c
    padded = data + bytes(-len(data) % 12)
    words = [int.from_bytes(padded[k : k + 4], "little") for k in range(0, len(padded), 4)]
    for k in range(0, len(words), 3):
        a, b, c = (a + words[k]) & _WORD, (b + words[k + 1]) & _WORD, (c + words[k + 2]) & _WORD
        if k + 3 < len(words):
            a, b, c = _mixed(a, b, c)
    for turn in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _turned(b, turn)) & _WORD
        a, b, c = b, c, a
    return b


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for turn in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _WORD) ^ _turned(c, turn)
        c = (c + b) & _WORD
        a, b, c = b, c, a
    return a, b, c


def _turned(word: int, turn: int) -> int:
    return (word << turn | word >> (32 - turn)) & _WORD


@contextmanager
def opened(h5py: Any, path: Path) -> Iterator[Any]:
    """A file of HDF5 to read; also one whose writer still writes, or was killed."""
    source = Source(path)
    try:
        with uninterrupted(), h5py.File(source, "r") as file:
            yield file
    finally:
        source.close()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C back until the library is done: an exception within its reads and writes would harm it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])
