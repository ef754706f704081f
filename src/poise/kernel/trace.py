"""Traced scalars: the values of a formula while it is compiled to machine code.

A formula is an ordinary Python function. Called with floats it computes; called with `Traced` scalars it emits the LLVM
instructions of the computation. The same call without an emitter (`emit` is None) infers the type of the result: so
typing rules are defined only here, in the arithmetic.

Floating point: products that are added are fused by the rule of `fuse`, the same at every width, and the sign of zero
is not kept. Otherwise the compiler fuses and reassociates nothing, and respects NaN and infinity. Reciprocals are not
allowed either: with them 1/√x in float32 becomes an estimate that differs between CPUs, and is NaN for 0 and ∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

FLAGS = ("nsz",)
"""All fast-math flags of the compiler, in every kernel."""


@dataclass(frozen=True)
class ScalarType:
    """Element (f64, f32, i64, i32, b1) and number of lanes; one lane is a plain number."""

    elem: str
    width: int = 1

    @property
    def is_float(self) -> bool:
        """f64 or f32."""
        return self.elem[0] == "f"

    @property
    def is_mask(self) -> bool:
        """Truth values."""
        return self.elem == "b1"

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return int(self.elem[1:])

    def of(self, elem: str) -> ScalarType:
        """The type with the same number of lanes and another element."""
        return ScalarType(elem, self.width)

    def __str__(self) -> str:
        return self.elem if self.width == 1 else f"{self.elem}x{self.width}"


def join(a: ScalarType, b: ScalarType) -> ScalarType:
    """Type of `a + b`. Lanes take precedence over plain numbers, reals over integers, wide integers over short ones.

    Of two plain real numbers the single-precision one takes precedence: in a float32 kernel a float64 is a literal or
    an argument from Python.
    """
    if a == b:
        return a
    if a.width > 1 and b.width > 1:
        raise TypeError(f"lanes of different kinds do not mix: {a} and {b}")
    if a.is_mask or b.is_mask:
        raise TypeError(f"a truth value is not a number: {a} and {b}")
    if a.width == b.width:
        if a.is_float != b.is_float:
            return a if a.is_float else b
        wide, short = (a, b) if a.bits > b.bits else (b, a)
        return short if a.is_float else wide
    lanes, plain = (a, b) if a.width > 1 else (b, a)
    if plain.is_float and not lanes.is_float:
        raise TypeError(f"a real number does not fit into integer lanes: {a} and {b}")
    return lanes


class Traced:
    """A scalar whose value is known at run time."""

    __slots__ = ("emit", "type", "value")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: ScalarType, value: Any = None, emit: Any = None) -> None:
        self.type, self.value, self.emit = type, value, emit

    def __repr__(self) -> str:
        return f"<{self.type}>"

    def __bool__(self) -> bool:
        raise TypeError("a formula cannot branch on a state value: use select(mask, a, b)")

    def cast(self, to: ScalarType) -> Traced:
        """The same number as another type: spread over lanes, widened, narrowed, or integer to real."""
        if self.type == to:
            return self
        if self.type.width not in (1, to.width):
            raise TypeError(f"cannot turn {self.type} into {to}")
        if self.type.is_float and not to.is_float:
            raise TypeError(f"{self.type} to {to}: use to_int")
        return Traced(to, self.emit.cast(self.value, self.type, to), self.emit) if self.emit else Traced(to)

    def like(self, constant: Any) -> Traced:
        """A constant of this scalar's type."""
        if isinstance(constant, float | np.floating) and not self.type.is_float:
            raise TypeError(f"a real number ({constant}) among {self.type}")
        return Traced(self.type, self.emit.constant(constant, self.type), self.emit) if self.emit else Traced(self.type)

    def _meet(self, other: Any) -> tuple[Traced, Traced]:
        if not isinstance(other, Traced):
            if not isinstance(other, int | float | np.number):
                return NotImplemented
            return self, self.like(other)
        if self.emit is None or other.emit is None:  # a constant of a kernel may come without an emitter
            to = join(self.type, other.type)
            return Traced(to), Traced(to)
        to = join(self.type, other.type)
        return self.cast(to), other.cast(to)

    def _binary(self, name: str, other: Any, swap: bool = False) -> Traced:
        pair = self._meet(other)
        if pair is NotImplemented:
            return NotImplemented
        a, b = pair[::-1] if swap else pair
        _check_operator(name, a.type)
        return Traced(a.type, a.emit.binary(name, a.value, b.value, a.type), a.emit) if a.emit else Traced(a.type)

    def _compare(self, sign: str, other: Any) -> Traced:
        pair = self._meet(other)
        if pair is NotImplemented:
            return NotImplemented
        a, b = pair
        if a.type.is_mask and sign not in ("==", "!="):
            raise TypeError(f"truth values have no order: '{sign}' of {a.type}")
        mask = a.type.of("b1")
        return Traced(mask, a.emit.compare(sign, a.value, b.value, a.type), a.emit) if a.emit else Traced(mask)

    def unary(self, name: str) -> Traced:
        """An LLVM intrinsic of one argument, such as sqrt, or neg and not."""
        if name == "neg":
            _check_operator(name, self.type)
        elif self.type.is_float == (name == "not"):
            raise TypeError(f"'{name}' of {self.type}")
        return Traced(self.type, self.emit.unary(name, self.value, self.type), self.emit) if self.emit else self

    def __add__(self, other: Any) -> Traced:
        return self._binary("add", other)

    def __sub__(self, other: Any) -> Traced:
        return self._binary("sub", other)

    def __mul__(self, other: Any) -> Traced:
        return self._binary("mul", other)

    def __truediv__(self, other: Any) -> Traced:
        return self._binary("div", other)

    def __and__(self, other: Any) -> Traced:
        return self._binary("and", other)

    def __or__(self, other: Any) -> Traced:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> Traced:
        return self._binary("xor", other)

    def __lshift__(self, other: Any) -> Traced:
        return self._binary("shl", other)

    def __rshift__(self, other: Any) -> Traced:
        return self._binary("shr", other)

    def __radd__(self, other: Any) -> Traced:
        return self._binary("add", other, swap=True)

    def __rsub__(self, other: Any) -> Traced:
        return self._binary("sub", other, swap=True)

    def __rmul__(self, other: Any) -> Traced:
        return self._binary("mul", other, swap=True)

    def __rtruediv__(self, other: Any) -> Traced:
        return self._binary("div", other, swap=True)

    def __lt__(self, other: Any) -> Traced:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Traced:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Traced:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Traced:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> Traced:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Traced:  # type: ignore[override]
        return self._compare("!=", other)

    def __neg__(self) -> Traced:
        return self.unary("neg")

    def __invert__(self) -> Traced:
        return self.unary("not")


_BITS = ("and", "or", "xor", "shl", "shr")


def _check_operator(name: str, t: ScalarType) -> None:
    """Raise TypeError for an operator that a type does not support; the compiler would be less clear, or silent."""
    if t.is_float and name in _BITS:
        raise TypeError(f"'{name}' of real numbers, {t}")
    if t.is_mask and name not in ("and", "or", "xor"):
        raise TypeError(f"a truth value is not a number: '{name}' of {t}; use select")
    if name == "div" and not t.is_float:
        raise TypeError(f"division of {t}: turn it into a real number first")


FORMULAS: list[Callable[..., Any]] = []
"""All declared formulas; `bridge` registers them with Numba."""
_on_formula: list[Callable[[Callable[..., Any]], None]] = []


def formula(function: F) -> F:
    """Declare a function of values that kernels may call. It remains a plain Python function."""
    FORMULAS.append(function)
    for tell in _on_formula:
        tell(function)
    return function


def constant(value: float, *like: Any) -> Any:
    """`value` in the type of the traced scalar among `like`, or unchanged if there is none."""
    for x in like:
        if isinstance(x, Traced):
            return x.like(value)
    return value


def precision(x: Any) -> int:
    """Bits of the significand of the scalar x: 24 or 53."""
    if isinstance(x, Traced):
        return 24 if x.type.elem == "f32" else 53
    return 24 if isinstance(x, np.floating | np.ndarray) and x.dtype == np.float32 else 53


def same_type(a: Any, b: Any) -> tuple[Any, Any]:
    """Both scalars in the type of their sum."""
    if isinstance(a, Traced):
        return a._meet(b)
    if isinstance(b, Traced):
        return b._meet(a)[::-1]
    return a, b
