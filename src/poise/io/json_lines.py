"""JSON whose errors have lines."""

from __future__ import annotations

import json
import re
from typing import Any

from poise.model.errors import SceneError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+')
_LONGEST_WHOLE = 400
"""Digits of the longest whole number; a longer one is beyond what a double holds."""


def read_json(text: str, file: str | None) -> Any:
    r"""What a JSON text holds. Raises SceneError with the line where it is none.

    >>> read_json("[1,\n2,,]", "a.json")
    Traceback (most recent call last):
    poise.model.errors.SceneError: a.json:2: it is no JSON: Expecting value
    """
    try:
        return json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise SceneError(f"it is no JSON: {error.msg}", file=file, line=error.lineno) from None
    except RecursionError:
        raise SceneError("brackets in brackets in brackets, too many to read", file=file, line=_deepest(text)) from None


def line_of(text: str, *path: str | int) -> int | None:
    r"""Line of what is at a path in a JSON text: names in objects and numbers in lists.

    >>> line_of('{"Frames": [\n[1, 2],\n[3]]}', "Frames", 1)
    3
    """
    wanted, keys = list(path), list[str | int | None]()
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in ("]", "}"):
            keys.pop()
        elif token == ",":
            last = keys[-1]
            keys[-1] = last + 1 if isinstance(last, int) else None
        elif token != ":" and keys and keys[-1] is None:
            keys[-1] = json.loads(token)
        elif token != ":":
            if keys == wanted:
                return text.count("\n", 0, found.start()) + 1
            if token in ("[", "{"):
                keys.append(0 if token == "[" else None)
    return None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_WHOLE else float(digits)


def _deepest(text: str) -> int:
    """Line where most brackets are open."""
    depth, most, line = 0, -1, 1
    for number, row in enumerate(text.split("\n"), 1):
        depth += row.count("[") + row.count("{")
        if depth > most:
            most, line = depth, number
        depth -= row.count("]") + row.count("}")
    return line
