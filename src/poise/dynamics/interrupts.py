"""Ctrl-C between steps: SIGINT is delivered after the current step, within a bounded time.

Python handles a signal when compiled code returns, which may be in the middle of the bookkeeping of a step. So SIGINT
is held during a step, and delivered to its usual handler after it. A call of compiled code takes as many steps as fit
into a millisecond, estimated from the last call: steps that become a hundred times as expensive are still interrupted
within a tenth of a second.
"""

from __future__ import annotations

from _signal import SIGINT, getsignal, signal  # the module `signal` makes enums, which takes long
from collections.abc import Callable
from time import perf_counter
from types import FrameType
from typing import Any

PAUSE = 1e-3
"""Target time of one call of compiled code; s."""
GROWTH = 8
"""Most by which the number of steps grows from call to call."""


class HeldInterrupt:
    """Holds SIGINT from `hold` to `release`, in the main thread, which alone receives it; `deliver` then raises it.

    As a context it does all three. A second Ctrl-C is not held: something may hang.

    >>> import signal
    >>> try:
    ...     with HeldInterrupt():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("this is done")
    ... except KeyboardInterrupt:
    ...     print("then it is heard")
    this is done
    then it is heard
    """

    __slots__ = ("_came", "_usual")

    def __init__(self) -> None:
        self._usual: Callable[[int, FrameType | None], Any] | None = None
        self._came: tuple[int, FrameType | None] | None = None

    def hold(self) -> None:
        """Begin to hold SIGINT."""
        usual = getsignal(SIGINT)
        if callable(usual):  # else it is ignored, or ends the process
            self._usual = usual
            try:
                signal(SIGINT, self._note)
            except ValueError:  # this is another thread
                self._usual = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._came is not None:
            self.release()
            self.deliver()
        self._came = number, frame

    def release(self) -> None:
        """Restore the usual handler."""
        if self._usual is not None:
            signal(SIGINT, self._usual)

    def deliver(self) -> None:
        """Call the usual handler with the signal that was held."""
        if self._came is not None and self._usual is not None:
            came, self._came = self._came, None
            self._usual(*came)

    def __enter__(self) -> None:
        self.hold()

    def __exit__(self, *problem: object) -> None:
        if self._usual is not None:
            signal(SIGINT, self._usual)
        if self._came is not None:
            self.deliver()


class Pace:
    """How many steps one call of compiled code may take.

    >>> pace = Pace(PAUSE)
    >>> pace.most
    1
    """

    __slots__ = ("_pause", "_start", "most")

    def __init__(self, pause: float = PAUSE, first: int = 1) -> None:
        self._pause, self._start = pause, 0.0
        self.most = first
        """Steps of the next call."""

    def begin(self) -> None:
        """Note the start of a call."""
        self._start = perf_counter()

    def end(self, steps: int) -> None:
        """Note the end of a call, after `steps` steps."""
        if steps > 0:
            spent = max(perf_counter() - self._start, 1e-9)
            self.most = max(1, min(int(steps * self._pause / spent), GROWTH * self.most))
