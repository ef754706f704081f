"""Reading regular files: pipes and devices, which may block or never end, raise OSError before they are read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST = 1 << 30
"""Maximum size of a file; bytes."""
_PART = 1 << 20


def open_regular(path: Path) -> BinaryIO:
    """Open a file on a disk. Raises OSError for anything else, and does not block on a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _check(os.fstat(handle), path)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def read_regular(path: Path) -> bytes:
    """All bytes of a file on a disk of at most `LARGEST` bytes. Raises OSError for anything else.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ball.obj"
    >>> _ = file.write_bytes(b"v 0 0 0")
    >>> read_regular(file)
    b'v 0 0 0'
    >>> read_regular(Path(os.devnull))
    Traceback (most recent call last):
    OSError: [Errno 22] it is a device, not a file ...
    """
    parts, size = [], 0
    with open_regular(path) as stream:
        # in parts, since a buffer for the largest file is too much memory for a small one
        while part := stream.read(_PART):
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                what = f"it is larger than {LARGEST >> 20} MiB, which is the most that is read"
                raise OSError(errno.EFBIG, what, str(path))
    return b"".join(parts)


def check_regular(path: Path) -> None:
    """Raise OSError if a path exists and is not a regular file."""
    _check(path.stat(), path)


def _check(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        kind = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(found.st_mode), "a device")
        raise OSError(errno.EINVAL, f"it is {kind}, not a file on a disk", str(path))
