"""Named arrays in .npz files, written atomically and read with bounded memory.

A file may declare any size. The unpacked size is bounded by the size of the file itself, and memory is allocated for an
array only after checking that the file can hold it.
"""

from __future__ import annotations

import errno
import io
import math
import os
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import SceneError
from poise.model.regular_file import open_regular

Array = NDArray[Any]

_FREE, _FACTOR = 64 << 20, 64
_HEADER = 10_000
"""Bytes of the longest header of an array."""
_PART = 1 << 20
"""Bytes that are read at a time."""
_KINDS = "biufcSU"
"""Kinds of numbers and text that an array may hold."""
_NO_SPACE = "; nothing in memory is lost: free some space, or save elsewhere"


def allowance(size: int) -> int:
    """Bytes that a file of this size may unpack to: 64 times as many, and 64 MiB.

    >>> allowance(1 << 20) >> 20
    128
    """
    return _FREE + _FACTOR * size


def least_size(unpacked: int) -> int:
    """The size of the smallest file that may unpack to so many bytes.

    >>> allowance(least_size(10**9)) >= 10**9
    True
    """
    return max(0, -(-(unpacked - _FREE) // _FACTOR))


def not_written(error: OSError, path: str | os.PathLike[str]) -> SceneError:
    """The error of a file that cannot be written, with a remedy."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
    return SceneError(f"cannot be written: {error.strerror or error}{_NO_SPACE if full else ''}", file=os.fspath(path))


def sync_file(path: Path) -> None:
    """Flush a file to the disk; some disks report only now that they are full."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_arrays(path: str | os.PathLike[str], content: dict[str, Array]) -> None:
    """Write named arrays to a file atomically."""
    target = Path(path)
    if not target.parent.is_dir():
        raise SceneError("there is no such folder to save to", file=os.fspath(target))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        pack_arrays(temporary, content)
        sync_file(temporary)
        temporary.replace(target)
    except OSError as error:
        raise not_written(error, target) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def pack_arrays(path: str | os.PathLike[str], content: dict[str, Array]) -> None:
    """Write named arrays to a file, not atomically."""
    with Path(path).open("wb") as stream:
        np.savez(stream, **content)  # type: ignore[arg-type]


def read_arrays(path: Path, foreign: str) -> dict[str, Array]:
    """Named arrays of a file; `foreign` is the message for a file that cannot be read."""
    file = os.fspath(path)
    try:
        with open_regular(path) as stream:
            return _read(stream, file)
    except FileNotFoundError:
        raise SceneError("there is no such file", file=file) from None
    except IsADirectoryError:
        raise SceneError("must be a file, found a folder", file=file) from None
    except zipfile.BadZipFile:
        raise SceneError(f"{foreign}, or one that was cut short or damaged; save it again", file=file) from None
    except SceneError:
        raise
    except Exception as problem:  # a damaged file may raise anything in the readers of zip and NumPy
        text = " ".join(f"{problem}".split()) or type(problem).__name__
        raise SceneError(f"{foreign} ({text:.120})", file=file) from None


def _read(stream: Any, file: str) -> dict[str, Array]:
    size = stream.seek(0, os.SEEK_END)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if len({one.filename for one in members}) < len(members):
            raise SceneError("the file is damaged: two arrays have the same name; save it again", file=file)
        unpacked = sum(one.file_size for one in members)
        if unpacked > allowance(size) or any(one.file_size > size and not one.compress_type for one in members):
            what = f"the file is damaged: its {size} bytes cannot hold the {unpacked} that it declares; save it again"
            raise SceneError(what, file=file)
        return {one.filename.removesuffix(".npy"): _array(archive, one, file) for one in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: str) -> Array:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        shape, turned, kind, start = _declared(stream, member, name, file)
        count = math.prod(shape)
        if min(shape, default=0) < 0 or start + count * kind.itemsize != member.file_size:
            what = f"the file is damaged: it holds {member.file_size - start} bytes, not {kind}{shape}; save it again"
            raise SceneError(what, file=file, field=name)
        data = np.empty(count * kind.itemsize, np.uint8)
        done = 0
        while done < len(data):
            part = stream.read(_PART)
            if not part:
                raise zipfile.BadZipFile
            data[done : done + len(part)] = np.frombuffer(part, np.uint8)
            done += len(part)
        stream.read()  # the empty rest: this checks the checksum
    return data.view(kind).reshape(shape, order="F" if turned else "C")


def _declared(
    stream: Any, member: zipfile.ZipInfo, name: str, file: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether the order is column-major, dtype, and offset of the numbers."""
    head = io.BytesIO(stream.read(12))
    version = np.lib.format.read_magic(head)
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(head.getvalue()[8 : 8 + width], "little")
    start = 8 + width + length
    if version not in ((1, 0), (2, 0)) or length > _HEADER or start > member.file_size or length < 4:
        raise SceneError("the file is damaged: this array has no header; save it again", file=file, field=name)
    text = head.getvalue() + stream.read(start - 12)
    whole = io.BytesIO(text)
    whole.seek(8)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, turned, kind = read(whole)
    if kind.hasobject or kind.kind not in _KINDS or not kind.itemsize:
        raise ValueError(f"{name}: must be numbers, found {kind}")
    return shape, turned, kind, start
