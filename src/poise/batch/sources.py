"""Files that a sweep reads: the scene, and the files that it includes or refers to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from poise.io.scenes.includes import Gatherer
from poise.io.scenes.nodes import Fields, Items, Leaf, Node
from poise.model.regular_file import read_regular

Mark = tuple[int, int, int]


class Sources:
    """Snapshot of a scene file and all files that it includes or refers to, also in values of the sweep."""

    def __init__(self, file: Path, swept: Iterable[object]) -> None:
        folder, gatherer = file.resolve().parent, Gatherer()
        root = gatherer.read(file)
        paths = set(gatherer.done)
        for word in [*_words(root), *(value for value in swept if isinstance(value, str))]:
            path = folder / word
            if len(word) < 250 and "\0" not in word and path.is_file():
                paths.add(path.resolve())
        named = {os.path.relpath(path, folder).replace(os.sep, "/"): path for path in paths}
        self._paths = dict(sorted(named.items()))
        # marks first: a change in between is detected
        self._marks = {name: _mark(path) for name, path in self._paths.items()}
        self.digests = {name: _digest(path) for name, path in self._paths.items()}
        """Hashes by names, relative to the scene's folder."""

    def changed(self) -> list[str]:
        """Names of files that have changed."""
        found = []
        for name, path in self._paths.items():
            mark = _mark(path)
            if mark == self._marks[name]:
                continue
            if mark is None or _digest(path) != self.digests[name]:
                found.append(name)
            else:
                self._marks[name] = mark
        return found


def _mark(path: Path) -> Mark | None:
    """A mark that changes when a file is written, without reading it; None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(path: Path) -> str | None:
    try:
        return sha256(read_regular(path)).hexdigest()[:16]
    except OSError:
        return None


def _words(node: Node) -> Iterator[str]:
    """All strings of a tree."""
    if isinstance(node, Fields):
        for part in node.fields.values():
            yield from _words(part)
    elif isinstance(node, Items):
        for part in node.items:
            yield from _words(part)
    elif isinstance(node, Leaf) and isinstance(node.value, str):
        yield node.value
