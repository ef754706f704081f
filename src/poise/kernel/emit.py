"""The emitter: writes the LLVM instructions of traced scalars. It handles numbers and lanes, independently of Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from poise.kernel.fuse import whole
from poise.kernel.trace import FLAGS, ScalarType

_ELEMENTS = {
    "f64": ir.DoubleType(),
    "f32": ir.FloatType(),
    "i64": ir.IntType(64),
    "i32": ir.IntType(32),
    "b1": ir.IntType(1),
}
_I32 = ir.IntType(32)
_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INT_OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "and": "and_",
    "or": "or_",
    "xor": "xor",
    "shl": "shl",
    "shr": "ashr",
}


def llvm_type(t: ScalarType) -> ir.Type:
    """LLVM's type of a scalar: a number, or a vector of them."""
    element = _ELEMENTS[t.elem]
    return element if t.width == 1 else ir.VectorType(element, t.width)


def align_stack(builder: ir.IRBuilder) -> None:
    """Make the function align its stack: lanes that spill to unaligned addresses cost up to a third more."""
    set.add(builder.function.attributes, '"stackrealign"')  # llvmlite's own add accepts fewer attributes than LLVM


class Emitter:
    """Writes to one LLVM builder."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder
        align_stack(builder)

    def constant(self, value: Any, t: ScalarType) -> ir.Value:
        """A number in every lane."""
        number = float(value) if t.is_float else int(value)
        if t.elem == "f32":  # LLVM requires a constant that a float represents exactly
            number = float(np.float32(number))
        element = ir.Constant(_ELEMENTS[t.elem], number)
        return element if t.width == 1 else ir.Constant(llvm_type(t), [element] * t.width)

    def cast(self, value: ir.Value, t: ScalarType, to: ScalarType) -> ir.Value:
        """Convert the element, then spread it."""
        if t.elem != to.elem:
            value = self._convert(value, t, ScalarType(to.elem, t.width))
        return value if t.width == to.width else self.spread(value, to)

    def _convert(self, value: ir.Value, t: ScalarType, to: ScalarType) -> ir.Value:
        target = llvm_type(to)
        if t.is_float and to.is_float:
            return self.b.fptrunc(value, target) if t.bits > to.bits else self.b.fpext(value, target)
        if to.is_float:
            return self.b.uitofp(value, target) if t.is_mask else self.b.sitofp(value, target)
        if t.is_float:
            raise TypeError(f"{t} to {to}: use to_int")
        if t.is_mask:
            return self.b.zext(value, target)
        return self.b.trunc(value, target) if t.bits > to.bits else self.b.sext(value, target)

    def spread(self, value: ir.Value, to: ScalarType) -> ir.Value:
        """One number in every lane."""
        undefined = ir.Constant(llvm_type(to), ir.Undefined)
        one = self.b.insert_element(undefined, value, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, to.width), [0] * to.width))

    def truncate(self, value: ir.Value, t: ScalarType, to: ScalarType) -> ir.Value:
        """Real to integer, towards zero; saturates at the range of integers, NaN gives 0."""
        lanes = "" if t.width == 1 else f"v{t.width}"
        signature = ir.FunctionType(llvm_type(to), [value.type])
        return self.b.call(self._function(f"llvm.fptosi.sat.{lanes}{to.elem}.{lanes}{t.elem}", signature), [value])

    def binary(self, name: str, a: ir.Value, b: ir.Value, t: ScalarType) -> ir.Value:
        """Arithmetic and bitwise operators."""
        if t.is_float:
            if name not in _FLOAT_OPS:
                raise TypeError(f"'{name}' of real numbers")
            return getattr(self.b, _FLOAT_OPS[name])(a, b, flags=FLAGS)
        return getattr(self.b, _INT_OPS[name])(a, b)

    def compare(self, sign: str, a: ir.Value, b: ir.Value, t: ScalarType) -> ir.Value:
        """A mask. Comparisons with NaN are false, except `!=`."""
        if t.is_float:
            return self.b.fcmp_unordered(sign, a, b) if sign == "!=" else self.b.fcmp_ordered(sign, a, b)
        return self.b.icmp_signed(sign, a, b)

    def unary(self, name: str, a: ir.Value, t: ScalarType) -> ir.Value:
        """neg, not, or an LLVM intrinsic."""
        if name == "neg":
            return self.b.fneg(a) if t.is_float else self.b.neg(a)
        if name == "not":
            return self.b.not_(a)
        if not t.is_float:
            raise TypeError(f"{name} of {t}")
        lanes = "" if t.width == 1 else f"v{t.width}"
        function = self._function(f"llvm.{name}.{lanes}{t.elem}", ir.FunctionType(a.type, [a.type]))
        return self.b.call(function, [a])

    def _function(self, name: str, signature: ir.FunctionType) -> ir.Function:
        known = self.b.module.globals.get(name)
        return known if known is not None else ir.Function(self.b.module, signature, name)

    def select(self, mask: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """Lane by lane."""
        return self.b.select(mask, a, b)

    def reduce(self, name: str, mask: ir.Value, t: ScalarType) -> ir.Value:
        """Any (or) or every (and) lane of a mask."""
        if t.width == 1:
            return mask
        bits = self.b.bitcast(mask, ir.IntType(t.width))
        nothing, everything = ir.Constant(bits.type, 0), ir.Constant(bits.type, -1)
        return self.b.icmp_signed("!=", bits, nothing) if name == "or" else self.b.icmp_signed("==", bits, everything)

    def sum_lanes(self, value: ir.Value, t: ScalarType) -> ir.Value:
        """Sum of all lanes, by adding halves until one number is left."""
        while t.width > 1:
            half = t.width // 2
            parts = [ir.Constant(ir.VectorType(_I32, half), list(range(k, k + half))) for k in (0, half)]
            low, high = (self.b.shuffle_vector(value, value, part) for part in parts)
            t = ScalarType(t.elem, half)
            value = self.b.fadd(low, high, flags=FLAGS)
        return self.b.extract_element(value, ir.Constant(_I32, 0))

    def get_lane(self, value: ir.Value, t: ScalarType, lane: ir.Value) -> ir.Value:
        """The number in one lane; a plain number itself."""
        return self._itself(value, t) if t.width == 1 else self.b.extract_element(value, lane)

    def set_lane(self, value: ir.Value, t: ScalarType, lane: ir.Value, number: ir.Value) -> ir.Value:
        """The lanes with one of them changed."""
        return self._itself(number, t) if t.width == 1 else self.b.insert_element(value, number, lane)

    def _itself(self, value: ir.Value, t: ScalarType) -> ir.Value:
        """A plain number where a lane would be extracted: products of an extracted lane are not fused, nor is this."""
        return whole(self.b, value) if t.is_float else value

    def mask_to_bits(self, mask: ir.Value, t: ScalarType) -> ir.Value:
        """Lane k as bit k of an integer."""
        if t.width > 1:
            mask = self.b.bitcast(mask, ir.IntType(t.width))
        return self.b.zext(mask, _ELEMENTS["i64"])

    def bits_to_mask(self, bits: ir.Value, t: ScalarType) -> ir.Value:
        """Bit k of a 64-bit integer as lane k."""
        short = self.b.trunc(bits, ir.IntType(t.width))
        return self.b.bitcast(short, llvm_type(t)) if t.width > 1 else short

    def trailing_zeros(self, bits: ir.Value) -> ir.Value:
        """Number of trailing zero bits."""
        signature = ir.FunctionType(_ELEMENTS["i64"], [_ELEMENTS["i64"], _ELEMENTS["b1"]])
        return self.b.call(self._function("llvm.cttz.i64", signature), [bits, ir.Constant(_ELEMENTS["b1"], 0)])

    # ---- memory: a buffer holds `leaves` scalars per element, one after another, each with contiguous lanes

    def address(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        """Pointer to a scalar."""
        return self.b.gep(pointer, [index])

    def flat(self, pointer: ir.Value, plain: ScalarType) -> ir.Value:
        """The same memory as plain numbers."""
        return self.b.bitcast(pointer, llvm_type(plain).as_pointer())

    def load(self, pointer: ir.Value, t: ScalarType, constant: bool, align: int | None = None) -> ir.Value:
        """A scalar from memory; `constant` promises that memory does not change while the kernel runs."""
        value = self.b.load(pointer, align=align or t.bits // 8 * t.width)
        if constant:
            value.set_metadata("invariant.load", self.b.module.add_metadata([]))
        return value

    def load_masked(self, pointer: ir.Value, t: ScalarType, constant: bool, mask: ir.Value) -> ir.Value:
        """A plain number from memory if the mask is set; else zero, without reading memory."""
        before = self.b.block
        with self.b.if_then(mask):
            inside = self.load(pointer, t, constant)
            after = self.b.block
        value = self.b.phi(llvm_type(t))
        value.add_incoming(self.constant(0, t), before)
        value.add_incoming(inside, after)
        return value

    def store(self, value: ir.Value, pointer: ir.Value, t: ScalarType, align: int | None = None) -> None:
        """A scalar to memory."""
        self.b.store(value, pointer, align=align or t.bits // 8 * t.width)

    def store_masked(self, value: ir.Value, pointer: ir.Value, t: ScalarType, mask: ir.Value) -> None:
        """Write the lanes whose mask is set."""
        if t.width == 1:
            with self.b.if_then(mask):
                self.store(value, pointer, t)
            return
        name = f"llvm.masked.store.v{t.width}{t.elem}.p0"
        signature = ir.FunctionType(ir.VoidType(), [value.type, pointer.type, _I32, mask.type])
        align = ir.Constant(_I32, t.bits // 8 * t.width)
        self.b.call(self._function(name, signature), [value, pointer, align, mask])

    def lane_pointers(self, pointer: ir.Value, t: ScalarType, indices: ir.Value, lanes_in_memory: bool) -> ir.Value:
        """Addresses that lanes read or write: lane k accesses element indices[k]."""
        many = ir.VectorType(ir.IntType(64), t.width)
        if lanes_in_memory:
            width = ir.Constant(many, [t.width] * t.width)
            indices = self.b.add(self.b.mul(indices, width), ir.Constant(many, list(range(t.width))))
        base = self.b.ptrtoint(pointer, ir.IntType(64))
        size = ir.Constant(many, [t.bits // 8] * t.width)
        addresses = self.b.add(self.spread(base, ScalarType("i64", t.width)), self.b.mul(indices, size))
        return self.b.inttoptr(addresses, ir.VectorType(_ELEMENTS[t.elem].as_pointer(), t.width))

    def gather(self, pointers: ir.Value, t: ScalarType, mask: ir.Value) -> ir.Value:
        """One number per lane, each from its own address; zero where the mask is not set."""
        kind = llvm_type(t)
        name = f"llvm.masked.gather.v{t.width}{t.elem}.v{t.width}p0"
        signature = ir.FunctionType(kind, [pointers.type, _I32, mask.type, kind])
        align = ir.Constant(_I32, t.bits // 8)
        return self.b.call(self._function(name, signature), [pointers, align, mask, self.constant(0, t)])

    def scatter(self, value: ir.Value, pointers: ir.Value, t: ScalarType, mask: ir.Value) -> None:
        """One number per lane, each to its own address, where the mask is set."""
        name = f"llvm.masked.scatter.v{t.width}{t.elem}.v{t.width}p0"
        signature = ir.FunctionType(ir.VoidType(), [value.type, pointers.type, _I32, mask.type])
        align = ir.Constant(_I32, t.bits // 8)
        self.b.call(self._function(name, signature), [value, pointers, align, mask])
