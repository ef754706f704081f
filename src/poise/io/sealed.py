"""Reading of untrusted scenes: they may not name files on this computer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path

from poise.io.xml_lines import parse_xml
from poise.model.errors import Problem, SceneError

_ONLY: ContextVar[Path | None] = ContextVar("only", default=None)
_WHY = "names a file, which an uploaded scene may not do; save it beside its files, and run: poise view FILE"


@contextmanager
def sealed(path: str | PathLike[str]) -> Iterator[None]:
    """Context in which readers of scenes read this file only, and do not check whether others exist.

    >>> with sealed("scene.yaml"):
    ...     check_unsealed("mesh.obj")
    Traceback (most recent call last):
    poise.model.errors.SceneError: names a file, which an uploaded scene may not do; save it beside its files, ...
    """
    token = _ONLY.set(Path(path))
    try:
        yield
    finally:
        _ONLY.reset(token)


def is_sealed() -> bool:
    """Whether scenes may not name files now."""
    return _ONLY.get() is not None


def check_unsealed(path: str | PathLike[str]) -> None:
    """Raise SceneError if a file may not be read; must be called before any access to it."""
    only = _ONLY.get()
    if only is not None and Path(path) != only:
        raise SceneError(_WHY)


def check_sealed_xml(content: bytes, file: str) -> None:
    """Raise SceneError where XML names files and may not: other programs read them, not Poise.

    Document types are refused, as parsers differ in where they end; so is what is not UTF-8.
    """
    if not is_sealed():
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SceneError("an uploaded scene must be UTF-8: save it so, or run: poise view FILE", file=file) from None
    if "\x00" in text or re.search(r"<!DOCTYPE|<!ENTITY|<!ELEMENT|<!ATTLIST", text, re.IGNORECASE):
        message = "an uploaded scene may not have a document type; leave it out, or run: poise view FILE"
        raise SceneError(message, file=file)
    problems = [
        Problem(f"<{element.tag}> {_WHY}", file, element.line)
        for element in parse_xml(text.lstrip(), file).walk()
        if element.name == "include" or any(name.lower().startswith("file") for name in element.attributes)
    ]
    if problems:
        raise SceneError.of(problems[:3])
