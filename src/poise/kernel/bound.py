"""Entries bound to their blocks: a call from Python then passes one table and some numbers.

Python takes about 0.1 µs for each handle that it passes to compiled code, which is more than many kernels take. A bound
entry keeps the addresses of all its handles in one array. A small wrapper, shared by all entries with the same number
of views and types of numbers, rebuilds the handles from it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from poise.kernel import jit
from poise.kernel.calls import HANDLE, handle_at
from poise.kernel.jit import Entry
from poise.kernel.memory import Width

_I64 = ir.IntType(64)


class _Table:
    """The addresses and sizes of a bound entry's handles; it keeps references to the handles."""

    def __init__(self, numbers: list[int], handles: tuple[np.ndarray, ...]) -> None:
        self.numbers, self.handles = np.array(numbers, np.int64), handles
        self.__array_interface__ = self.numbers.__array_interface__


class Bound:
    """An entry at a width with its handles: call it with its numbers. It keeps the memory of the handles alive."""

    def __init__(self, entry: Entry, width: Width, *handles: np.ndarray) -> None:
        if len(handles) != len(entry.views):
            raise TypeError(f"{entry.name} has {len(entry.views)} views, not {len(handles)}")
        (compiled,) = entry[width].overloads.values()
        words = [entry.address(width)]
        for handle in handles:
            if not isinstance(handle, np.ndarray) or handle.dtype != np.int64 or handle.ndim != 1:
                raise TypeError(f"{entry.name} takes handles of blocks, not {type(handle).__name__}")
            words += [handle.ctypes.data, handle.size]
        self._table = np.asarray(_Table(words, handles))
        self._returns = str(compiled.signature.return_type)
        self._call = _front(len(handles), entry.extra, self._returns)

    @property
    def table(self) -> int:
        """Address of the table, for `calls.ask_bound`."""
        return int(self._table.ctypes.data)

    @property
    def front(self) -> int:
        """Address of the function that takes the table, for `calls.ask_bound`."""
        if self._returns != "int64":
            raise TypeError(f"an entry that compiled code calls returns int64, not {self._returns}")
        (compiled,) = self._call.overloads.values()
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    @property
    def caller(self) -> Callable[..., Any]:
        """A function that calls the entry with its numbers and keeps the same references, without a Python frame."""
        return functools.partial(self._call, self._table)

    def __call__(self, *numbers: float) -> Any:
        """Call the entry and return its result."""
        return self._call(self._table, *numbers)


@functools.cache
def _front(n_views: int, extra: tuple[str, ...], returns: str) -> Any:
    """The wrapper of all entries with this number of views, these types of numbers, and this type of result."""
    name = "_".join(["call", str(n_views), *extra, returns])
    return front_function(name, extra, returns, _passing(n_views, extra, returns), Path(__file__))


def front_function(name: str, numbers: tuple[str, ...], returns: str, code: Callable[..., Any], source: Path) -> Any:
    """A compiled function that takes a table and some numbers; `code`, from `source`, emits its instructions."""
    names = [f"n{k}" for k in range(len(numbers))]
    arguments = ", ".join(["table", *names])
    scope: dict[str, Any] = {"code": code, "result": getattr(types, returns), "__name__": __name__}
    exec(f"def pass_on(context, {arguments}):\n    return result({arguments}), code\n", scope)
    scope["pass_on"] = intrinsic(scope["pass_on"])
    exec(f"def {name}({arguments}):\n    return pass_on({arguments})\n", scope)
    function = njit(scope[name], **jit.OPTIONS)
    sources = jit.SOURCES.digest({source.resolve()})
    if sources is not None:
        jit.keep(function, scope[name], hashlib.sha256(f"{sources} {name}".encode()).hexdigest())
    return jit.compile_now(function, name, (HANDLE, *(getattr(types, kind) for kind in numbers)))


def _passing(n_views: int, extra: tuple[str, ...], returns: str) -> Callable[..., Any]:
    """Code generator of the call of the entry in a table."""
    result = getattr(types, returns)
    kinds = [HANDLE] * n_views + [getattr(types, kind) for kind in extra]

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table = context.make_array(HANDLE)(context, builder, args[0]).data
        words = [builder.load(builder.gep(table, [ir.Constant(_I64, k)])) for k in range(1 + 2 * n_views)]
        views = [
            handle_at(context, builder, builder.inttoptr(words[k], _I64.as_pointer()), words[k + 1])
            for k in range(1, 1 + 2 * n_views, 2)
        ]
        function = context.call_conv.get_function_type(result, kinds)
        callee = builder.inttoptr(words[0], function.as_pointer())
        status, out = context.call_conv.call_function(builder, callee, result, kinds, [*views, *args[1:]])
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return out

    return code
