"""Error messages for browsers, without information about this computer."""

from __future__ import annotations

import logging

_LONGEST = 600
_LOG = logging.getLogger("poise.view")


def told(problem: Exception) -> str:
    """Text for an error. Deliberate errors keep their message; others are logged on the server.

    >>> told(ValueError("speed is 0; it must be above 0"))
    'speed is 0; it must be above 0'
    >>> told(FileNotFoundError(2, "No such file or directory", "/home/somebody/secret"))
    'No such file or directory'
    """
    if isinstance(problem, OSError):
        text = problem.strerror or ""
    elif isinstance(problem, ValueError | TypeError | ArithmeticError | ImportError):
        text = str(problem)
    elif isinstance(problem, MemoryError):
        text = "there is not enough memory for it"
    elif isinstance(problem, RecursionError):
        text = "it is nested too deeply"
    else:
        _LOG.warning("a request of a browser failed", exc_info=problem)
        text = ""
    text = text or f"it failed ({type(problem).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
