"""Entries bound to their blocks."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from numba.core.errors import TypingError

from kernel.runner import WIDTHS
from poise.kernel import bound, jit
from poise.kernel.bound import Bound
from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F32, F64, F64X4, Count, Real, View, Width, load, store

FROM = View("BoundFrom", n=Count, x=Real)
TO = View("BoundTo", y=Real)


@kernel
def scale(a, b, factor, first):
    for i in range(first, a.n):
        store(b.y, i, load(a.x, i) * factor)
    return a.n - first


@kernel
def clear(b):
    for i in range(2):
        store(b.y, i, load(b.y, i) * 0.0)


_scale = entry(scale, FROM, TO, extra=("float64", "int64"))
_clear = entry(clear, TO)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_bound_entry_is_called_with_its_numbers(width: Width) -> None:
    a, b = FROM.block(width, n=3, x=3), TO.block(width, y=3)
    a.x[...] = 2.0
    call = Bound(_scale, width, a.handle, b.handle)
    assert call(1.5, 1) == 2
    assert b.y.reshape(3, -1).T.tolist() == [[0.0, 3.0, 3.0]] * width.lanes
    assert call.caller(0.5, 2) == 1
    assert b.y.reshape(3, -1).T.tolist() == [[0.0, 3.0, 1.0]] * width.lanes
    b.y.reshape(3, -1)[2] = 3.0
    assert Bound(_clear, width, b.handle)() is None
    assert b.y.reshape(3, -1).T.tolist() == [[0.0, 0.0, 3.0]] * width.lanes


def test_it_holds_what_it_works_on() -> None:
    call = Bound(_scale, F64, FROM.block(F64, n=1, x=np.array([3.0])).handle, TO.block(F64, y=1).handle)
    gc.collect()
    _ = [np.full(1, np.nan) for _ in range(1000)]
    assert call(2.0, 0) == 1
    assert call(2.0, 1) == 0


def test_counts_may_change() -> None:
    a, b = FROM.block(F64, n=1, x=3), TO.block(F64, y=3)
    call = Bound(_scale, F64, a.handle, b.handle)
    a.set_count("n", 3)
    assert call(1.0, 0) == 3


def test_handles_of_other_views_are_refused() -> None:
    a, b = FROM.block(F64, n=1, x=1), TO.block(F64, y=1)
    with pytest.raises(TypeError, match="handle 0 is not of view BoundFrom at f64"):
        Bound(_scale, F64, b.handle, b.handle)(1.0, 0)
    with pytest.raises(TypeError, match="handle 1 is not of view BoundTo at f64"):
        Bound(_scale, F64, a.handle, TO.block(F32, y=1).handle)(1.0, 0)
    with pytest.raises(TypeError, match="at f64x4"):
        Bound(_scale, F64X4, a.handle, b.handle)(1.0, 0)


def test_what_is_no_handle_is_refused() -> None:
    a, b = FROM.block(F64, n=1, x=1), TO.block(F64, y=1)
    with pytest.raises(TypeError, match="scale has 2 views, not 1"):
        Bound(_scale, F64, a.handle)
    with pytest.raises(TypeError, match="takes handles of blocks, not Block"):
        Bound(_scale, F64, a, b)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes handles of blocks"):
        Bound(_scale, F64, a.x, b.handle)


ASKS = View("Asks", front=Count, table=Count)


@kernel
def ask(k, factor, first):
    return ask_bound(k.front, k.table, factor, first) + 10


@kernel
def ask_with_a_view(k):
    return ask_bound(k.front, k.table, k)


_ask = entry(ask, ASKS, extra=("float64", "int64"), lanes=False)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_kernel_asks_a_bound_entry(width: Width) -> None:
    a, b = FROM.block(width, n=3, x=3), TO.block(width, y=3)
    a.x[...] = 2.0
    call = Bound(_scale, width, a.handle, b.handle)
    asks = ASKS.block(F64, front=call.front, table=call.table)
    assert _ask[F64](asks.handle, 1.5, 1) == 12
    assert b.y.reshape(3, -1).T.tolist() == [[0.0, 3.0, 3.0]] * width.lanes


def test_what_returns_no_whole_number_has_no_front() -> None:
    with pytest.raises(TypeError, match="returns int64, not none"):
        _ = Bound(_clear, F64, TO.block(F64, y=3).handle).front


def test_only_kernels_ask_and_only_with_numbers() -> None:
    with pytest.raises(TypeError, match="only a compiled kernel"):
        ask_bound(1, 2)
    with pytest.raises(TypingError, match="then plain numbers"):
        entry(ask_with_a_view, ASKS)[F64]


def test_threads_that_ask_for_fronts_at_once_compile_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both change how Numba compiles: whoever came second kept the change of the first, and nothing compiled again."""
    usual, inside, most = jit._machine_code_only_of, [0], [0]

    @contextlib.contextmanager
    def watched(name: str) -> Iterator[None]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        with usual(name):
            yield
        inside[0] -= 1

    monkeypatch.setattr(jit, "_machine_code_only_of", watched)
    compile_anew = bound._front.__wrapped__
    threads = [threading.Thread(target=compile_anew, args=(1, ("int64",) * n, "int64")) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
