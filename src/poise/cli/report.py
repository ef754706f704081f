"""Common output of the commands: error messages, tables of facts, JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer


def fail(message: str) -> NoReturn:
    """Say what went wrong on stderr and leave with status 1."""
    typer.echo(f"poise: {message}", err=True)
    raise typer.Exit(1)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what a user can cause (bad scene, missing file, missing extra) into one message and status 1."""
    try:
        yield
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except ImportError as error:
        if "pip install" not in str(error):  # a bug, not a missing extra
            raise
        fail(str(error))
    except Exception as error:
        from poise.model.errors import SceneError  # only now: it takes a while

        if not isinstance(error, SceneError):
            raise
        fail(str(error))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, or nothing.

    >>> nearest("swnig", ["swing", "walk"])
    '; did you mean swing?'
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """A titled block of aligned names and values."""
    typer.echo(title)
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        typer.echo(f"  {name:<{width}}  {value}".rstrip())


def to_json(data: Any) -> str:
    """JSON text that any reader takes: numbers that are not finite become null."""
    return json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if abs(data) < float("inf") else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return str(data) if isinstance(data, Path) else data
