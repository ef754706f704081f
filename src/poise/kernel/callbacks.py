"""Python functions that compiled code calls in place of a bound entry: a stage of a compiled loop without a kernel."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir

from poise.kernel.bound import front_function
from poise.kernel.calls import HANDLE

_I64 = ir.IntType(64)
_TYPES = {"float64": (ctypes.c_double, ir.DoubleType()), "int64": (ctypes.c_int64, _I64)}


class Callback:
    """A Python function that takes numbers and returns an integer, called by `calls.ask_bound` like a `Bound`.

    Exceptions do not pass through compiled code: the call adds them to `problems`, and returns `failed`.
    """

    def __init__(
        self, function: Callable[..., int], numbers: tuple[str, ...], failed: int, problems: list[BaseException]
    ) -> None:
        self._function, self._failed, self._problems = function, failed, problems
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *(_TYPES[name][0] for name in numbers))
        self._called = kind(self._call)  # compiled code has its address: it lives as long as this
        self._table = np.array([ctypes.cast(self._called, ctypes.c_void_p).value], np.int64)
        self._caller = _caller(numbers)

    @property
    def table(self) -> int:
        """Address of the table, for `calls.ask_bound`."""
        return int(self._table.ctypes.data)

    @property
    def front(self) -> int:
        """Address of the function that takes the table, for `calls.ask_bound`."""
        (compiled,) = self._caller.overloads.values()
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    def _call(self, *numbers: float) -> int:
        try:
            return int(self._function(*numbers))
        except BaseException as problem:
            self._problems.append(problem)
            return self._failed


@functools.cache
def _caller(numbers: tuple[str, ...]) -> Any:
    """Code generator of a call, by the C calling convention, of the function whose address is first in a table."""
    kinds = [_TYPES[name][1] for name in numbers]

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(HANDLE)(context, builder, args[0]).data
        function = ir.FunctionType(_I64, kinds).as_pointer()
        return builder.call(builder.inttoptr(builder.load(table), function), args[1:])

    return front_function("_".join(["call_python", *numbers]), numbers, "int64", code, Path(__file__))
