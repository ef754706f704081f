"""Compilation: what the compiler may do to floating point, where its work is kept, and interrupts that reach it."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from pathlib import Path

import pytest

from kernel.runner import WIDTHS
from poise.kernel.jit import _no_interrupt_lost, cache_key, cache_root, cpu, entry, kernel
from poise.kernel.memory import Count, Real, View, Width, load, store
from poise.kernel.quat import exp_rotation, log_rotation, normalize
from poise.kernel.scalars import select, sincos, sqrt
from poise.kernel.vec import Vec3, norm

IO = View("IO", n=Count, x=Real, v=Vec3)


@kernel
def busy(io):
    for i in range(io.n):
        x = load(io.x, i)
        s, c = sincos(x)
        v = log_rotation(normalize(exp_rotation(load(io.v, i) * s))) * (c / sqrt(x))
        store(io.v, i, select(x > 0.0, v, v * (1.0 / norm(v))))


BUSY = entry(busy, IO)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_the_compiler_takes_no_liberties_but_those_agreed(width: Width) -> None:
    code = "".join(BUSY[width].inspect_llvm().values())
    operations = re.findall(r"= (?:tail call |call )?f(?:add|sub|mul|div|neg|cmp)\b([a-z ]*)", code)
    assert operations
    flags = {flag for found in operations for flag in found.split()} & {
        "fast", "nnan", "ninf", "reassoc", "afn", "arcp", "nsz", "contract"
    }  # fmt: skip
    assert flags <= {"contract", "nsz"}
    assert not re.search(r"\b(fast|nnan|ninf|reassoc|afn|arcp)\b(?=[ a-z]* (?:<|double|float))", code)
    assembly = "".join(BUSY[width].inspect_asm().values())
    assert not re.search(r"\bv?r(sqrt|cp)\d*[ps][sd]\b", assembly)


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POISE_CACHE_DIR", "~/kernels")
    assert cache_root() == Path.home() / "kernels"
    monkeypatch.setenv("POISE_CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("POISE_CACHE_DIR")
    assert cache_root().parts[-2:] == ("poise", "kernels")
    assert re.fullmatch("[0-9a-f]{24}", cache_key())
    assert cpu()["simd_bits"] in (128, 256, 512)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_the_compiler() -> None:
    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_was_dropped_comes_back() -> None:
    def drop() -> None:
        """What ctypes does with an exception in a function that C calls, without the printing."""
        with contextlib.suppress(KeyboardInterrupt):
            interrupt()

    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        drop()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_failures_of_the_compiler_pass() -> None:
    with pytest.raises(ZeroDivisionError), _no_interrupt_lost():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    seen: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with _no_interrupt_lost():
            interrupt()
            assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, usual)

    def enter() -> None:
        with _no_interrupt_lost():
            seen.append(0)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIGINT, 0]
