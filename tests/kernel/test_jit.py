"""Compilation: what the compiler may do to floating point, where its work is kept, and interrupts that reach it."""

from __future__ import annotations

import contextlib
import gc
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.errors import TypingError

from kernel.runner import WIDTHS
from poise.kernel.jit import _no_interrupt_lost, cache_key, cache_root, cpu, entry, kernel
from poise.kernel.memory import F32, F64, Count, Real, View, Width, load, store
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
    assert flags <= {"nsz"}
    assert not re.search(r"\b(fast|nnan|ninf|reassoc|afn|arcp|contract)\b(?=[ a-z]* (?:<|double|float))", code)
    assembly = "".join(BUSY[width].inspect_asm().values())
    assert not re.search(r"\bv?r(sqrt|cp)\d*[ps][sd]\b", assembly)


@kernel
def add(io, i, number):
    store(io.x, i, load(io.x, i) + number)


@kernel
def add_some(io):
    add(io, 0, 1)
    add(io, 1, 2)
    k = 2
    for _ in range(3):
        add(io, k, 10)
        k += 1


@kernel
def add_more(io):
    add_some(io)
    add(io, 0, 100)


def test_kernels_are_compiled_once_for_all_numbers_of_a_type() -> None:
    block = IO.block(F64, n=5, x=5, v=0)
    entry(add_some, IO)[F64](block.handle)
    assert block.x.tolist() == [1.0, 2.0, 10.0, 10.0, 10.0]
    assert len(add.signatures) == 1


def test_only_entries_become_machine_code() -> None:
    """Kernels are taken in as LLVM code by each entry that calls them, and Numba is left as it was."""
    usual = JITCodeLibrary.finalize, JITCPUCodegen.set_env
    block = IO.block(F32, n=5, x=5, v=0)
    entry(add_more, IO)[F32](block.handle)
    entry(add_some, IO)[F32](block.handle)
    assert block.x.tolist() == [102.0, 4.0, 20.0, 20.0, 20.0]
    assert (JITCodeLibrary.finalize, JITCPUCodegen.set_env) == usual
    (compiled,) = [one for one in add.overloads.values() if "f32" in str(one.signature)]
    assert not compiled.library.codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name)


@pytest.mark.parametrize("collecting", [True, False])
def test_a_compiler_that_fails_leaves_numba_and_python_as_they_were(collecting: bool) -> None:
    @kernel
    def wrong(io):
        store(io.x, 0, io.nothing)

    usual = JITCodeLibrary.finalize, JITCPUCodegen.set_env
    if not collecting:
        gc.disable()
    try:
        with pytest.raises(TypingError):
            entry(wrong, IO)[F64]
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
    assert (JITCodeLibrary.finalize, JITCPUCodegen.set_env) == usual


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


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As it is when a terminal starts Python: what runs in the background is started with interrupts ignored."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_the_compiler() -> None:
    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_was_dropped_comes_back() -> None:
    def drop() -> None:
        """What ctypes does with an exception in a function that C calls, without the printing."""
        with contextlib.suppress(KeyboardInterrupt):
            interrupt()

    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        drop()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
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
