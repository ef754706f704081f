"""Atomic operations on numbers that several threads read and write, sequentially consistent."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir

from poise.kernel.buffers import Buffer, PlainBuffer
from poise.kernel.trace import Traced, formula

_PAUSES = {"x86": ("llvm.x86.sse2.pause", []), "ARM": ("llvm.aarch64.hint", [1])}
"""The instruction that marks a spin-wait loop for a processor."""
_FAMILIES = {"x86_64": "x86", "AMD64": "x86", "aarch64": "ARM", "arm64": "ARM"}


def _pointer(buffer: Buffer, i: Any) -> Any:
    t = buffer.type
    if t.leaves > 1 or t.scalar.width > 1 or t.scalar.is_float or t.constant:
        raise TypeError(f"threads share plain whole numbers that change, not {t}")
    place = buffer._place(i, 0)
    return None if buffer.emit is None else buffer.emit.address(buffer.pointer, place.value)


def _change(buffer: Buffer, how: str, i: Any, number: Any) -> Traced:
    pointer, (value,) = _pointer(buffer, i), buffer._scalars(number)
    if buffer.emit is None:
        return Traced(buffer.type.scalar)
    old = buffer.emit.b.atomic_rmw(how, pointer, value.value, "seq_cst")
    return Traced(buffer.type.scalar, old, buffer.emit)


@formula
def load_shared(buffer: Any, i: Any) -> Any:
    """Element i; all writes of a thread before it changed the element are visible after this load."""
    if isinstance(buffer, PlainBuffer):
        return buffer.load(i)
    pointer, t = _pointer(buffer, i), buffer.type.scalar
    if buffer.emit is None:
        return Traced(t)
    return Traced(t, buffer.emit.b.load_atomic(pointer, "seq_cst", t.bits // 8), buffer.emit)


@formula
def add_shared(buffer: Any, i: Any, number: Any) -> Any:
    """Add to element i; returns its previous value."""
    if isinstance(buffer, PlainBuffer):
        old = buffer.load(i)
        buffer.store(i, old + number)
        return old
    return _change(buffer, "add", i, number)


@formula
def swap_shared(buffer: Any, i: Any, number: Any) -> Any:
    """Write element i; returns its previous value."""
    if isinstance(buffer, PlainBuffer):
        old = buffer.load(i)
        buffer.store(i, number)
        return old
    return _change(buffer, "xchg", i, number)


@formula
def pause(buffer: Any) -> None:
    """Pause in a spin-wait loop on a buffer."""
    if isinstance(buffer, Buffer) and buffer.emit is not None and (family := _FAMILIES.get(platform.machine())):
        name, numbers = _PAUSES[family]
        signature = ir.FunctionType(ir.VoidType(), [ir.IntType(32) for _ in numbers])
        arguments = [ir.Constant(ir.IntType(32), number) for number in numbers]
        buffer.emit.b.call(buffer.emit._function(name, signature), arguments)
