"""Progress line on the terminal, with the estimated time left."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import TextIO

PATIENCE = 0.5
"""Delay of the first line; s."""
PAUSE = 0.1
"""Time between two updates; s."""
WIDTH = 24


class Progress:
    """Shows progress in simulated time, or another `unit`, on a terminal. It prints nothing without a terminal, or if
    POISE_QUIET is set. The estimate excludes the part `first` that was done before.

    >>> import io
    >>> stream = io.StringIO()
    >>> bar = Progress(10.0, shown=True, stream=stream, patience=0.0)
    >>> bar.tell(5.0); bar.close()
    >>> "5.00 of 10 s" in stream.getvalue()
    True
    """

    def __init__(
        self,
        total: float,
        shown: bool | None = None,
        stream: TextIO | None = None,
        patience: float = PATIENCE,
        unit: str = "s",
        first: float = 0.0,
    ) -> None:
        self.total, self.unit, self.first = total, unit, first
        self.stream = sys.stderr if stream is None else stream
        quiet = os.environ.get("POISE_QUIET", "") not in ("", "0")
        self.shown = (self._on_terminal() and not quiet) if shown is None else shown
        self._start = monotonic()
        self._next, self._said = self._start + patience, False

    def _on_terminal(self) -> bool:
        try:
            return self.stream is not None and self.stream.isatty()
        except ValueError:  # the stream is closed
            return False

    def tell(self, done: float) -> None:
        """Show that `done` of the total is done, in the unit."""
        if not self.shown or (now := monotonic()) < self._next:
            return
        self._next, self._said = now + PAUSE, True
        share = min(done / self.total, 1.0)
        filled = round(WIDTH * share)
        gone = done - self.first
        left = (now - self._start) * max(self.total - done, 0.0) / gone if gone > 0.0 else 0.0
        bar = "#" * filled + "." * (WIDTH - filled)
        so_far = f"{done:.2f}" if self.unit == "s" else f"{done:g}"
        line = f"[{bar}] {so_far} of {self.total:g} {self.unit}, {_clock(left)} left"
        self._write(f"\r\x1b[K{line}")

    def close(self) -> None:
        """Clear the line."""
        if self._said:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # a closed terminal must not stop the simulation
            self.shown = self._said = False


def _clock(seconds: float) -> str:
    """A duration as text.

    >>> _clock(7.2), _clock(75.0), _clock(7300.0)
    ('7 s', '1:15 min', '2:01 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
