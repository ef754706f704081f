"""Scene files whose characters come from other scene files: no file within itself, and not too many of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from poise.model.errors import SceneError

DEEPEST, MOST = 20, 1000
"""Files within files, and how many of them are read that other files' characters name."""


@dataclass
class _Reading:
    """The files that are being read, each named by the one before it."""

    chain: list[Path] = field(default_factory=list)
    nested: int = 0


_READING: ContextVar[_Reading | None] = ContextVar("reading", default=None)


@contextmanager
def nested(owner: Path, path: Path) -> Iterator[None]:
    """While a character of `owner` is read from `path`. Raises SceneError where that would not come to an end.

    >>> with nested(Path("a.yaml"), Path("b.yaml")), nested(Path("b.yaml"), Path("a.yaml")):
    ...     pass
    Traceback (most recent call last):
    poise.model.errors.SceneError: files read each other in a circle: a.yaml → b.yaml → a.yaml; leave one out
    """
    reading = _READING.get()
    token = None
    if reading is None:
        reading = _Reading([owner.resolve()])
        token = _READING.set(reading)
    here = path.resolve()
    try:
        _check(reading, here)
        reading.chain.append(here)
        try:
            yield
        finally:
            reading.chain.pop()
    finally:
        if token is not None:
            _READING.reset(token)


def _check(reading: _Reading, here: Path) -> None:
    if here in reading.chain:
        circle = [file.name for file in (*reading.chain[reading.chain.index(here) :], here)]
        raise SceneError(f"files read each other in a circle: {' → '.join(circle)}; leave one out")
    reading.nested += len(reading.chain) > 1
    if len(reading.chain) > DEEPEST or reading.nested > MOST:
        raise SceneError(f"characters of files of characters: more than {DEEPEST} in a chain, or {MOST} of them")
