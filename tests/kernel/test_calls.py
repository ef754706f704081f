"""Calls from compiled code to entries, by address."""

from __future__ import annotations

import re

import pytest
from numba.core.errors import TypingError

from kernel.runner import WIDTHS
from poise.kernel.calls import call_entry
from poise.kernel.jit import entry, kernel, stand_alone
from poise.kernel.memory import F32, F64, F64X4, Count, Real, View, Width, load, store

IO = View("CalledIO", far=Count, x=Real)
OTHER = View("OtherIO", x=Real)


@kernel
def double(io, i, more):
    store(io.x, i, 2.0 * load(io.x, i) + more)


@kernel
def double_all(io, n):
    for i in range(n):
        call_entry(io.far, io, i, 0.5)


@kernel
def hand_over_another(io, other):
    call_entry(io.far, other, 0, 0.5)


@kernel
def hand_over_a_value(io):
    call_entry(io.far, load(io.x, 0) < 1.0)


_double = entry(double, IO, extra=("int64", "float64"))
_double_all = entry(double_all, IO, extra=("int64",))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_kernel_calls_an_entry_by_its_address(width: Width) -> None:
    block = IO.block(width, far=_double.address(width), x=3)
    block.x[...] = 1.0
    _double_all[width](block.handle, 2)
    assert block.x.reshape(3, -1).T.tolist() == [[2.5, 2.5, 1.0]] * width.lanes


def test_the_address_is_that_of_one_piece_of_code() -> None:
    assert _double.address(F64) == _double.address(F64) != _double.address(F32)


def test_what_the_entry_raises_comes_through() -> None:
    """A view of another width, whose numbers the entry would misread."""
    block = IO.block(F64, far=_double.address(F64X4), x=3)
    with pytest.raises(TypeError, match="handle 0 is not of view CalledIO at f64x4"):
        _double_all[F64](block.handle, 1)


def test_views_of_another_layout_are_refused() -> None:
    call = entry(hand_over_another, IO, OTHER)[F64]
    block, other = IO.block(F64, far=_double.address(F64), x=1), OTHER.block(F64, x=1)
    with pytest.raises(TypeError, match="not of view CalledIO"):
        call(block.handle, other.handle)


def test_what_no_entry_takes_is_refused() -> None:
    with pytest.raises(TypingError, match="an entry takes views and plain numbers"):
        entry(hand_over_a_value, IO)[F64X4]


def test_plain_python_cannot_call_machine_code() -> None:
    with pytest.raises(TypeError, match="only a compiled kernel"):
        call_entry(1, 2)


@kernel
def copied(io, i):
    store(io.x, i, load(io.x, i) * 3.0 + 1.0)


@kernel
def called(io, i):
    stand_alone()
    store(io.x, i, load(io.x, i) * 3.0 + 1.0)


@kernel
def use_first(io):
    copied(io, 0)
    copied(io, 1)


@kernel
def use_second(io):
    called(io, 0)
    called(io, 1)


def calls_of(name: str, function: object) -> int:
    """Calls of a kernel that are left in an entry's machine code."""
    (assembly,) = function.inspect_asm().values()  # type: ignore[attr-defined]
    return len(re.findall(rf"\bcall\w*\s[^\n]*{name}", assembly)) + len(re.findall(rf"movabsq\s[^\n]*{name}", assembly))


def test_a_kernel_that_stands_alone_is_called_and_not_copied() -> None:
    block = IO.block(F64, far=0, x=2)
    one, other = entry(use_first, IO)[F64], entry(use_second, IO)[F64]
    one(block.handle)
    other(block.handle)
    assert block.x.tolist() == [4.0, 4.0]
    assert calls_of("copied", one) == 0
    assert calls_of("called", other) > 0
