"""Numbers that threads share: nothing that one of them adds is lost."""

from __future__ import annotations

from threading import Thread

import pytest

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Int, Real, View, store
from poise.kernel.shared import add_shared, load_shared, pause, swap_shared

TALLY = View("Tally", sum=Int, flag=Int, seen=Int, real=Real)
N = 200_000


@kernel
def tally(t, n):
    """Add n times, and leave the flag raised."""
    for _ in range(n):
        add_shared(t.sum, 0, 1)
    return swap_shared(t.flag, 0, 1)


@kernel
def answer(t, k, n):
    """Wait for the flag to be k, n times, and raise it: whoever is at k + 1 waits for this."""
    for turn in range(n):
        while load_shared(t.flag, 0) != 2 * turn + k:
            pause(t.flag)
        store(t.seen, 0, turn)
        add_shared(t.flag, 0, 1)
    return load_shared(t.seen, 0)


@kernel
def add_real(t):
    """Which is refused."""
    return add_shared(t.real, 0, 1.0)


run_tally = entry(tally, TALLY, extra=("int64",), lanes=False)
run_answer = entry(answer, TALLY, extra=("int64", "int64"), lanes=False)


def block():
    return TALLY.block(F64, sum=1, flag=1, seen=1, real=1)


def together(*calls) -> None:
    threads = [Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_what_threads_add_is_the_sum_of_it() -> None:
    t = block()
    run_tally[F64](t.handle, 0)  # compiled before the threads meet
    together(*[lambda: run_tally[F64](t.handle, N)] * 3)
    assert t.sum[0] == 3 * N
    assert t.flag[0] == 1


def test_threads_answer_each_other() -> None:
    t = block()
    run_answer[F64](t.handle, 0, 0)
    together(lambda: run_answer[F64](t.handle, 0, 100), lambda: run_answer[F64](t.handle, 1, 100))
    assert t.flag[0] == 200
    assert t.seen[0] == 99


def test_they_run_as_plain_python() -> None:
    t = block()
    assert tally.py_func(t.plain(), 5) == 0
    assert tally.py_func(t.plain(), 5) == 1
    assert (t.sum[0], t.flag[0]) == (10, 1)


def test_real_numbers_are_not_shared() -> None:
    with pytest.raises(Exception, match="plain whole numbers"):
        entry(add_real, TALLY, lanes=False)[F64](block().handle)
