"""Threads of BLAS: dense NumPy algebra inside Poise uses one thread, or as many as `POISE_BLAS_THREADS` sets.

BLAS splits matrices of a hundred rows among all cores. On a busy machine the threads wait for each other, twenty times
longer than one thread would take; and the last bits of sums depend on the split. Functions marked `@few_blas_threads`
limit the number of threads while they run, and restore it afterwards.

The limit holds for the whole process, so also for BLAS calls of other threads meanwhile. It works for NumPy with
OpenBLAS, MKL or BLIS; Apple's Accelerate chooses its threads by itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "POISE_BLAS_THREADS"
_OPENBLAS = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_NAMES = (
    *((name.format("get_num_threads"), name.format("set_num_threads")) for name in _OPENBLAS),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


@dataclass(frozen=True)
class Blas:
    """Getter and setter of a BLAS for its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]


def _libraries() -> Iterator[ctypes.CDLL]:
    """NumPy's own module, which resolves the symbols of its libraries; on Windows, those libraries."""
    import numpy as np
    from numpy.linalg import _umath_linalg

    files = [_umath_linalg.__file__]
    if sys.platform == "win32":
        files = sorted(map(str, Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*.dll")))
    for file in files:
        try:
            yield ctypes.CDLL(file)
        except OSError:
            continue


@functools.cache
def numpys_blas() -> Blas | None:
    """The BLAS that NumPy calls; None where its threads cannot be set."""
    for library in _libraries():
        for get, set_ in _NAMES:
            if hasattr(library, get) and hasattr(library, set_):
                ask, change = getattr(library, get), getattr(library, set_)
                ask.restype, ask.argtypes = ctypes.c_int, []
                change.restype, change.argtypes = None, [ctypes.c_int]
                return Blas(ask, change)
    return None


@functools.cache
def asked_for() -> int:
    """Threads that Poise's own algebra may use."""
    text = os.environ.get(VARIABLE, "") or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{VARIABLE} is {text!r}: a number of threads, 1 or more")
    return int(text)


@dataclass
class _Limit:
    """A limit that the first thread to enter sets and the last one to leave removes."""

    inside: int = 0
    before: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> None:
        """Limit the threads from here on."""
        blas, wanted = numpys_blas(), asked_for()
        if blas is None:
            return
        with self.lock:
            if self.inside == 0:
                self.before = blas.get()
                if self.before != wanted:
                    blas.set(wanted)
            self.inside += 1

    def leave(self) -> None:
        """Restore the process's number of threads when no caller needs the limit."""
        blas = numpys_blas()
        if blas is None:
            return
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.before != asked_for():
                blas.set(self.before)

    def forget(self) -> None:
        """Reset after a fork: the child has no callers inside."""
        inside, self.inside, self.lock = self.inside, 0, threading.Lock()
        blas = numpys_blas() if inside else None
        if blas is not None:
            blas.set(self.before)


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.forget)


def few_blas_threads(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function whose dense algebra uses no more than the set number of threads."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        _limit.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _limit.leave()

    return limited
