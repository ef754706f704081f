"""What browsers are told of something that failed: what is wrong, but nothing of this computer."""

from __future__ import annotations

import logging

_LONGEST = 600
_LOG = logging.getLogger("poise.view")


def told(problem: Exception) -> str:
    """Words for an error. Those that are raised on purpose speak for themselves; others are logged on this side.

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
