"""Files of the kernel cache: they say whether they are whole, and a folder that fails is only a slower start."""

from __future__ import annotations

import hashlib
import pickle
import re
import shutil
import types
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import caching

_SEAL = 32
_FOLDER = re.compile(r"[0-9a-f]{24}")
_OLD_FOLDERS_KEPT = 4


class SealedFile(caching.IndexDataCacheFile):
    """Numba's pair of index and data file, each behind a checksum. What is damaged counts as missing.

    Compiled code with a wrong byte would not fail, it would crash or lie; so nothing is unpickled unchecked.
    """

    def _seal(self, content: bytes) -> bytes:
        return hashlib.sha256(f"{self._version}\n{self._source_stamp}\n".encode() + content).digest()

    def _read(self, path: str) -> Any:
        """Content of a file, None if it is missing, damaged or another's."""
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
            raise FileNotFoundError(name)  # Numba takes it for a file that was removed, and compiles
        return data

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)


def prune(root: Path, keep: Path) -> None:
    """Forget the cache folders longest unused, but for a few. Touches nothing that does not look like one."""
    found = []
    for path in root.iterdir():
        try:
            if path != keep and _FOLDER.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                found.append((path.stat().st_mtime, path))
        except OSError:  # another process is pruning too
            continue
    for _, path in sorted(found)[:-_OLD_FOLDERS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def fingerprint(thing: Any) -> str | None:
    """What a kernel is, besides the text of its file: its name, and what it closes over. None if it cannot be told."""
    function = getattr(thing, "py_func", thing)
    if isinstance(function, types.FunctionType):
        closed = [fingerprint(cell.cell_contents) for cell in function.__closure__ or ()]
        if None in closed:
            return None
        return repr((function.__module__, function.__qualname__, function.__code__.co_firstlineno, closed))
    if thing is None or isinstance(thing, bool | int | float | str | np.generic):
        return f"{type(thing).__name__} {thing!r}"
    if isinstance(thing, tuple):
        parts = [fingerprint(part) for part in thing]
        return None if None in parts else repr(parts)
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    return None
