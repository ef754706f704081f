"""Fused multiply-adds, by one rule at every width: a product that is added or subtracted is fused, and nothing else is.

The compiler may not fuse by itself (`trace.FLAGS`): its choice would depend on the target, on the width and on the
surrounding code, so that one world and the same world among lanes would round differently. Here the rule depends only
on the source of a kernel:

    c + a·b, a·b + c       fma(a, b, c)
    c − a·b                fma(−a, b, c)
    a·b − c                fma(a, b, −c)

Of two products the second one is fused. A product is recognised through the parts of a value (`Vec3` and the like) and
when it is spread over lanes, but not through a variable that other blocks of the kernel read, nor through a call. On a
target without such an instruction nothing is fused, at any width.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

_NAMES = {"double": "f64", "float": "f32"}
_PROBE = """
declare double @llvm.fma.f64(double, double, double)
define double @probe(double %a, double %b, double %c) {
    %r = call double @llvm.fma.f64(double %a, double %b, double %c)
    ret double %r
}
"""


@functools.cache
def has_fma(cpu: str, features: str) -> bool:
    """Whether a target has an FMA instruction; otherwise LLVM calls a library function, a hundred times slower."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features)
    return re.search(r"\b_?fma\b", machine.emit_assembly(llvm.parse_assembly(_PROBE))) is None


@contextlib.contextmanager
def fused_multiply_adds() -> Iterator[None]:
    """Fuse products in LLVM code that is emitted meanwhile; the caller holds the lock of the compiler."""
    add, subtract = ir.IRBuilder.fadd, ir.IRBuilder.fsub

    def fadd(builder: Any, a: Any, b: Any, name: str = "", flags: Any = ()) -> Any:
        if not (_is_minus_zero(a) or _is_minus_zero(b)):
            for product, rest in ((b, a), (a, b)):
                if pair := _factors(builder, product):
                    return _fma(builder, *pair, rest, flags)
        return add(builder, a, b, name, flags)

    def fsub(builder: Any, a: Any, b: Any, name: str = "", flags: Any = ()) -> Any:
        if not _is_minus_zero(a):  # Numba's form of −b
            if pair := _factors(builder, b):
                return _fma(builder, builder.fneg(pair[0]), pair[1], a, flags)
            if pair := _factors(builder, a):
                return _fma(builder, *pair, builder.fneg(b), flags)
        return subtract(builder, a, b, name, flags)

    ir.IRBuilder.fadd, ir.IRBuilder.fsub = fadd, fsub
    try:
        yield
    finally:
        ir.IRBuilder.fadd, ir.IRBuilder.fsub = add, subtract


def whole(builder: Any, value: Any) -> Any:
    """A number that is not fused further: a product is rounded before it is added. LLVM drops the addition of −0."""
    return builder.fadd(value, ir.Constant(value.type, -0.0))


def _fma(builder: Any, a: Any, b: Any, c: Any, flags: Any) -> Any:
    lanes = f"v{a.type.count}" if isinstance(a.type, ir.VectorType) else ""
    name = f"llvm.fma.{lanes}{_NAMES[str(_element(a.type))]}"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(function, [a, b, c], fastmath=flags)


def _factors(builder: Any, value: Any) -> tuple[Any, Any] | None:
    """Factors of a product; None for any other value."""
    value = _part(value)
    if not isinstance(value, ir.Instruction):
        return None
    if value.opname == "fmul":
        return value.operands[0], value.operands[1]
    number = _spread_number(value)
    if number is not None and (pair := _factors(builder, number)):
        return _spread(builder, pair[0], value.type), _spread(builder, pair[1], value.type)
    return None


def _part(value: Any) -> Any:
    """The inserted value of an element that is extracted from a struct."""
    while isinstance(value, ir.instructions.ExtractValue):
        (place,) = value.indices
        struct = value.operands[0]
        while isinstance(struct, ir.instructions.InsertValue) and list(struct.indices) != [place]:
            struct = struct.operands[0]
        if not isinstance(struct, ir.instructions.InsertValue):
            return value
        value = struct.operands[1]
    return value


def _spread_number(value: Any) -> Any:
    """The number in every lane, if `Emitter.spread` made the lanes."""
    if isinstance(value, ir.instructions.ShuffleVector):
        first, _, lanes = value.operands
        if isinstance(first, ir.instructions.InsertElement) and not any(one.constant for one in lanes.constant):
            return first.operands[1]
    return None


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    first, lanes = ir.Constant(ir.IntType(32), 0), ir.VectorType(ir.IntType(32), kind.count)
    return builder.shuffle_vector(
        builder.insert_element(undefined, number, first), undefined, ir.Constant(lanes, [0] * kind.count)
    )


def _element(kind: Any) -> Any:
    return kind.element if isinstance(kind, ir.VectorType) else kind


def _is_minus_zero(value: Any) -> bool:
    return isinstance(value, ir.Constant) and value.constant == 0.0 and str(value.constant).startswith("-")
