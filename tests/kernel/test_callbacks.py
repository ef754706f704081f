"""Python functions that compiled code calls."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from poise.kernel.bound import Bound
from poise.kernel.callbacks import Callback
from poise.kernel.calls import ask_bound
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Count, Real, View, load, store

TO_CALL = View("ToCall", front=Count, table=Count, told=Real)


@kernel
def tell_and_ask(to_call, number, times):
    """Call `times` times, with the number and how often it was called; the sum of the answers."""
    total = 0
    for k in range(times):
        total += ask_bound(to_call.front, to_call.table, number, k)
        store(to_call.told, 0, load(to_call.told, 0) + 1.0)
    return total


_ask = entry(tell_and_ask, TO_CALL, extra=("float64", "int64"), lanes=False)
NUMBERS = ("float64", "int64")


def asking(callback: Callback) -> tuple[Bound, np.ndarray]:
    block = TO_CALL.block(F64, front=callback.front, table=callback.table, told=1)
    block.told[...] = 0.0
    return Bound(_ask, F64, block.handle), block.told


def test_a_python_function_is_called_with_its_numbers() -> None:
    heard = []

    def hear(number: float, k: int) -> int:
        heard.append((number, k))
        return 10**12 + k

    problems: list[BaseException] = []
    callback = Callback(hear, NUMBERS, -1, problems)
    call, _ = asking(callback)
    gc.collect()
    assert call(0.5, 3) == 3 * 10**12 + 3
    assert heard == [(0.5, 0), (0.5, 1), (0.5, 2)]
    assert not problems


@pytest.mark.parametrize("problem", [ValueError("bad"), KeyboardInterrupt()])
def test_an_exception_waits_until_compiled_code_has_returned(problem: BaseException) -> None:
    def fail(number: float, k: int) -> int:
        if k == 1:
            raise problem
        return 1

    problems: list[BaseException] = []
    callback = Callback(fail, NUMBERS, -5, problems)
    call, told = asking(callback)
    assert call(0.0, 3) == 1 - 5 + 1
    assert told[0] == 3.0
    assert problems == [problem]


def test_a_callback_calls_compiled_code() -> None:
    inner_heard = []
    inner = Callback(lambda number, k: inner_heard.append(number) or 1, NUMBERS, -1, [])
    call_inner, _ = asking(inner)
    outer = Callback(lambda number, k: call_inner(number + k, 2), NUMBERS, -1, [])
    call_outer, _ = asking(outer)
    assert call_outer(1.0, 3) == 6
    assert inner_heard == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_threads_call_their_own_at_once() -> None:
    sums: dict[int, int] = {}

    def work(n: int) -> None:
        call, _ = asking(Callback(lambda number, k: n, NUMBERS, -1, []))
        sums[n] = call(0.0, 2000)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {n: 2000 * n for n in range(1, 5)}
