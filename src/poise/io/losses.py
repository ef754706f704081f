"""The warning of losses and changes between a scene and a file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence


class LossWarning(UserWarning):
    """A scene differs from the file that it is read from or written to."""


def warn_of_changes(file: str, sentences: Sequence[str]) -> None:
    """One warning for everything that a reader did not import exactly, at the line that called Poise."""
    if sentences:
        listed = "".join(f"\n  {sentence}" for sentence in sentences)
        message = f"{file} is not taken over as it is ({len(sentences)}; see Scene.unsupported):{listed}"
        warnings.warn(message, LossWarning, stacklevel=_level())


def _level() -> int:
    """Stack level, seen from the caller of this function, of the first frame outside Poise."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "poise":
        frame, level = frame.f_back, level + 1
    return level
