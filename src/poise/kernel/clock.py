"""The clock of the operating system, for compiled code."""

from __future__ import annotations

import ctypes
import sys
import time
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

_I32, _I64, _F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()


@cache
def clock_address() -> int:
    """Address of the system's function that reads a clock, for `read_clock`."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").QueryPerformanceCounter
    else:
        function = ctypes.CDLL(None).clock_gettime
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


@cache
def seconds_per_tick() -> float:
    """Unit of `read_clock`; s."""
    if sys.platform != "win32":
        return 1e-9
    frequency = ctypes.c_int64()
    ctypes.WinDLL("kernel32").QueryPerformanceFrequency(ctypes.byref(frequency))
    return 1.0 / frequency.value


def read_clock(address: int) -> float:
    """Ticks of a monotonic clock (see `seconds_per_tick`) whose function is at an address (`clock_address`).

    Only kernels can call it.
    """
    raise TypeError(f"only a compiled kernel can call the clock at address {address}")


@infer_global(read_clock)
class _ReadClock(AbstractTemplate):
    key = read_clock

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if kws or len(args) != 1 or not isinstance(args[0], types.Integer):
            raise TypingError("read_clock takes an address")
        return signature(types.float64, types.int64)


@lower_builtin(read_clock, types.Integer)
def _lower_read(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    place = builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(_I64, 2)), _I64.as_pointer())
    if sys.platform == "win32":
        kind = ir.FunctionType(_I32, [_I64.as_pointer()])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [place])
        return builder.sitofp(builder.load(place), _F64)
    kind = ir.FunctionType(_I32, [_I32, _I64.as_pointer()])
    which = ir.Constant(_I32, time.CLOCK_MONOTONIC)
    builder.call(builder.inttoptr(args[0], kind.as_pointer()), [which, place])
    nanoseconds = builder.load(builder.gep(place, [ir.Constant(_I64, 1)]))
    whole = builder.mul(builder.load(place), ir.Constant(_I64, 1_000_000_000))
    return builder.sitofp(builder.add(whole, nanoseconds), _F64)
