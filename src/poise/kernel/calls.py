"""Calls from compiled code to an entry, by its address: large kernels are compiled once, and only when needed.

Numba compiles every kernel that a kernel calls into the same module. So a kernel that many entries call is compiled
with each of them, at each width. An entry that is called by its address is compiled on its own; it checks the views
that it receives, as it does when Python calls it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin

from poise.kernel.bridge import ViewType

HANDLE = types.int64[::1]
"""Type of an entry's argument for a view."""


def call_entry(address: int, *args: Any) -> None:
    """Call the entry at an address (`Entry.address`) with its views, then its numbers; it returns None.

    Only kernels can call it: the address is one of machine code.
    """
    raise TypeError(f"only a compiled kernel can call the entry at address {address}")


def ask_bound(front: int, table: int, *numbers: Any) -> int:
    """Call a bound entry (`Bound.front` and `Bound.table`) with its numbers; it returns an integer.

    Only kernels can call it.
    """
    raise TypeError(f"only a compiled kernel can call the entry at address {front}, with the table at {table}")


def _native(t: types.Type) -> types.Type:
    """Type of an entry's argument for a type of a kernel's argument."""
    return HANDLE if isinstance(t, ViewType) else t


@infer_global(call_entry)
class _CallEntry(AbstractTemplate):
    key = call_entry

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if kws or not args or not isinstance(args[0], types.Integer):
            raise TypingError("call_entry takes an address, then the entry's views and numbers")
        rest = [types.unliteral(t) for t in args[1:]]
        for t in rest:
            if not isinstance(t, ViewType | types.Integer | types.Float):
                raise TypingError(f"an entry takes views and plain numbers, not {t}")
        whole = [types.int64 if isinstance(t, types.Integer) else t for t in rest]
        return signature(types.none, types.int64, *whole)


@lower_builtin(call_entry, types.VarArg(types.Any))
def _lower_call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kinds = [_native(t) for t in sig.args[1:]]
    values = [
        handle_at(context, builder, value, _words(t)) if isinstance(t, ViewType) else value
        for t, value in zip(sig.args[1:], args[1:], strict=True)
    ]
    function = context.call_conv.get_function_type(types.none, kinds)
    callee = builder.inttoptr(args[0], function.as_pointer())
    status, _ = context.call_conv.call_function(builder, callee, types.none, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return context.get_dummy_value()


@infer_global(ask_bound)
class _AskBound(AbstractTemplate):
    key = ask_bound

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        rest = [types.unliteral(t) for t in args]
        if kws or len(rest) < 2 or not all(isinstance(t, types.Integer | types.Float) for t in rest):
            raise TypingError("ask_bound takes the addresses of a front and of a table, then plain numbers")
        whole = [types.float64 if isinstance(t, types.Float) else types.int64 for t in rest]
        return signature(types.int64, *whole)


@lower_builtin(ask_bound, types.VarArg(types.Any))
def _lower_ask(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kinds = [HANDLE, *sig.args[2:]]
    table = builder.inttoptr(args[1], ir.IntType(64).as_pointer())
    values = [handle_at(context, builder, table, ir.Constant(ir.IntType(64), 0)), *args[2:]]  # its size is not used
    function = context.call_conv.get_function_type(types.int64, kinds)
    callee = builder.inttoptr(args[0], function.as_pointer())
    status, out = context.call_conv.call_function(builder, callee, types.int64, kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return out


def _words(t: ViewType) -> Any:
    return ir.Constant(ir.IntType(64), t.view.words)


def handle_at(context: Any, builder: Any, pointer: Any, words: Any) -> Any:
    """The array of a handle, from the address and number of its words."""
    step = ir.Constant(ir.IntType(64), 8)
    array = context.make_array(HANDLE)(context, builder)
    array.data, array.nitems, array.itemsize = pointer, words, step
    array.shape = cgutils.pack_array(builder, [words])
    array.strides = cgutils.pack_array(builder, [step])
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()
