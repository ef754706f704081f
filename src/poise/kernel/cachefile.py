"""Files of the kernel cache, with checksums; a cache folder that cannot be used only slows the start down."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import pickle
import re
import shutil
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import caching

_SEAL = 32
_FOLDER = re.compile(r"[0-9a-f]{24}")
_OLD_FOLDERS_KEPT = 4
_ENTRY = re.compile(r"\w+_[0-9a-f]{12}")
_AT_WORK = 3600.0
"""Time since its last use during which an entry is not deleted; s."""
_VERSIONED = ("builtins", "numpy")
"""Packages whose versions are part of the cache key."""


class SealedFile(caching.IndexDataCacheFile):
    """Numba's pair of index and data file, each behind a checksum. A damaged file counts as missing.

    Compiled code with a wrong byte would crash or compute wrong results; so nothing is unpickled unchecked.
    """

    def _seal(self, content: bytes) -> bytes:
        return hashlib.sha256(f"{self._version}\n{self._source_stamp}\n".encode() + content).digest()

    def _read(self, path: str) -> Any:
        """Content of a file; None if it is missing, damaged or of another key."""
        try:
            raw = Path(path).read_bytes()
        except OSError:
            return None
        seal, content = raw[:_SEAL], raw[_SEAL:]
        return pickle.loads(content) if seal == self._seal(content) else None

    def _write(self, path: str, what: Any) -> None:
        content = self._dump(what)
        with self._open_for_write(path) as file:
            file.write(self._seal(content) + content)

    def _load_index(self) -> dict[Any, str]:
        return self._read(self._index_path) or {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        data = self._read(self._data_path(name))
        if data is None:
            raise FileNotFoundError(name)  # Numba treats it as a removed file, and compiles
        return data

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)


def prune(root: Path, keep: Path) -> None:
    """Delete the least recently used cache folders except a few. Other folders are not touched."""
    found = []
    for path in root.iterdir():
        with contextlib.suppress(OSError):  # another process is pruning too
            if path != keep and _FOLDER.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                found.append((path.stat().st_mtime, path))
    for used, path in sorted(found)[:-_OLD_FOLDERS_KEPT]:
        if not _in_use(used):
            shutil.rmtree(path, ignore_errors=True)


def forget_oldest(folder: Path, most: int = 2**28) -> None:
    """Delete the least recently used entries until the others fill no more than `most` bytes.

    Entries that another process may be using are kept. A process that still misses a file compiles it again.
    """
    entries: dict[str, list[Path]] = {}
    used: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for path in folder.iterdir():
        name = path.name.partition(".")[0]
        with contextlib.suppress(OSError):
            if _ENTRY.fullmatch(name) and path.is_file():
                found = path.stat()
                entries.setdefault(name, []).append(path)
                used[name] = max(used.get(name, 0.0), found.st_mtime)
                sizes[name] = sizes.get(name, 0) + found.st_size
    excess = sum(sizes.values()) - most
    for name in sorted(entries, key=used.__getitem__):
        if excess <= 0 or _in_use(used[name]):
            break
        for path in entries[name]:
            with contextlib.suppress(OSError):
                path.unlink()
        excess -= sizes[name]


def _in_use(when: float) -> bool:
    """Whether something was used so recently (or, by another clock, will be) that a process may still be using it."""
    return abs(time.time() - when) < _AT_WORK


def fingerprint(thing: Any, homes: set[Path] | None = None) -> str | None:
    """Identity of a kernel besides the text of its file: its name, closure and default arguments.

    None if it cannot be determined. The source files of the kernel and of the functions and classes among these are
    added to `homes`.
    """
    function = getattr(thing, "py_func", thing)
    if isinstance(function, types.FunctionType):
        _add(homes, function.__code__.co_filename)
        closed = [cell.cell_contents for cell in function.__closure__ or ()]
        bound = [*closed, function.__defaults__, *(function.__kwdefaults__ or {}).values()]
        parts = [fingerprint(part, homes) for part in bound]
        if None in parts:
            return None
        return repr((function.__module__, function.__qualname__, function.__code__.co_firstlineno, parts))
    if thing is None or isinstance(thing, bool | int | float | str | np.generic):
        return f"{type(thing).__name__} {thing!r}"
    if isinstance(thing, tuple):
        parts = [fingerprint(part, homes) for part in thing]
        return None if None in parts else repr(parts)
    if isinstance(thing, type) and "<locals>" not in thing.__qualname__:
        if thing.__module__.partition(".")[0] not in _VERSIONED:
            try:
                _add(homes, inspect.getfile(thing))
            except (TypeError, OSError):
                return None
        return f"{thing.__module__}.{thing.__qualname__}"
    return None


def _add(homes: set[Path] | None, file: str) -> None:
    if homes is not None:
        homes.add(Path(file).resolve())
