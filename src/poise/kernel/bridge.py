"""The bridge to Numba: lanes, masks, values, buffers and views as Numba types; formulas and operators as its functions.

A Numba value becomes the Python object that a formula works with (`_open`), the formula runs, and its result becomes a
Numba value again (`_close`). Without an emitter the same sequence infers the type of the result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.core.errors import TypingError
from numba.core.imputils import lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr_generic

from poise.kernel import trace, values
from poise.kernel.emit import Emitter, llvm_type
from poise.kernel.memory import At, Buffer, BufferType, Count, View, Width
from poise.kernel.trace import ScalarType, Traced
from poise.kernel.values import Value


class KernelType(types.Type):
    """Base of the types of arguments and results of formulas, besides plain numbers."""


class LaneType(KernelType):
    """Lanes of numbers, or a mask; or one float32, since literals next to Numba's own float32 would be float64."""

    def __init__(self, scalar: ScalarType) -> None:
        self.scalar = scalar
        super().__init__(name=str(scalar))

    def can_convert_from(self, context: Any, other: types.Type) -> Any:
        """A variable may start as a plain number and continue as lanes."""
        if isinstance(other, types.Float | types.Integer) and not self.scalar.is_mask:
            return Conversion.safe
        return None

    def unify(self, context: Any, other: types.Type) -> Any:
        """Lanes take precedence over plain numbers."""
        return self if self.can_convert_from(context, other) else None


class ValueType(KernelType):
    """A value type over a scalar."""

    def __init__(self, cls: type[Value], scalar: ScalarType) -> None:
        self.cls, self.scalar = cls, scalar
        super().__init__(name=f"{cls.__name__}[{scalar}]")


class PointerType(KernelType):
    """A buffer."""

    def __init__(self, buffer: BufferType) -> None:
        self.buffer = buffer
        kind = buffer.value.__name__ if buffer.value else ""
        super().__init__(name=f"buffer({kind}[{buffer.scalar}]{'c' if buffer.constant else ''})")


class ViewType(KernelType):
    """A view at a width."""

    def __init__(self, view: View, width: Width) -> None:
        self.view, self.width = view, width
        # Numba compares types by name; the seal distinguishes widths of nested views
        super().__init__(name=f"view({view.name}[{width}], {view.layout}, {view.seal(width):x})")


@register_default(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager: Any, t: LaneType) -> None:
        super().__init__(manager, t, llvm_type(t.scalar))


@register_default(ValueType)
class _ValueModel(models.PrimitiveModel):
    def __init__(self, manager: Any, t: ValueType) -> None:
        super().__init__(manager, t, ir.LiteralStructType([llvm_type(t.scalar)] * t.cls.size))


@register_default(PointerType)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, t: PointerType) -> None:
        super().__init__(manager, t, llvm_type(t.buffer.scalar).as_pointer())


@register_default(ViewType)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, manager: Any, t: ViewType) -> None:
        super().__init__(manager, t, ir.IntType(64).as_pointer())


def scalar_of(t: types.Type) -> ScalarType | None:
    """The scalar type of a Numba number or lane type."""
    if isinstance(t, LaneType):
        return t.scalar
    if isinstance(t, types.Boolean):
        return ScalarType("b1")
    if isinstance(t, types.Integer) and t.bitwidth in (32, 64):
        return ScalarType(f"i{t.bitwidth}")
    if isinstance(t, types.Float):
        return ScalarType(f"f{t.bitwidth}")
    return None


_PLAIN = {"f64": types.float64, "i64": types.int64, "i32": types.int32, "b1": types.boolean}


def numba_type(t: ScalarType) -> types.Type:
    """Numba's type of a scalar."""
    return _PLAIN[t.elem] if t.width == 1 and t.elem in _PLAIN else LaneType(t)


def _open(t: types.Type, value: Any, emit: Emitter | None) -> Any:
    """The Python object of a Numba value for formulas."""
    if (scalar := scalar_of(t)) is not None:
        return Traced(scalar, value, emit)
    if isinstance(t, ValueType):
        parts = [emit.b.extract_value(value, k) if emit else None for k in range(t.cls.size)]
        return t.cls.of(*(Traced(t.scalar, part, emit) for part in parts))
    if isinstance(t, PointerType):
        return Buffer(t.buffer, value, emit)
    raise TypeError(f"a formula cannot take {t}")


def _close(result: Any, emit: Emitter | None) -> tuple[types.Type, Any]:
    """The result of a formula as a Numba type and value."""
    if result is None:
        return types.none, emit and ir.Constant(ir.IntType(8).as_pointer(), None)
    if isinstance(result, Value):
        leaves = list(result.leaves())
        scalar = _common(leaves)
        leaves = [_settle(x, scalar, emit) for x in leaves]
        t = ValueType(type(result), scalar)
        if emit is None:
            return t, None
        struct = ir.Constant(ir.LiteralStructType([llvm_type(scalar)] * len(leaves)), ir.Undefined)
        for k, x in enumerate(leaves):
            struct = emit.b.insert_value(struct, x.value, k)
        return t, struct
    scalar = _common([result])
    return numba_type(scalar), _settle(result, scalar, emit).value


def _common(leaves: list[Any]) -> ScalarType:
    """Type that all scalars of a result share."""
    found = None
    for x in leaves:
        if isinstance(x, Traced):
            found = x.type if found is None else trace.join(found, x.type)
    return found or ScalarType("f64")


def _settle(x: Any, scalar: ScalarType, emit: Emitter | None) -> Traced:
    return x.cast(scalar) if isinstance(x, Traced) else Traced(scalar, None, emit).like(x)


def _typed(function: Callable[..., Any], args: tuple[types.Type, ...]) -> Any:
    """Signature of a formula for these arguments."""
    try:
        result = function(*(_open(t, None, None) for t in args))
    except TypeError as error:
        raise TypingError(str(error)) from error  # with this type Numba adds where in the kernel it happened
    if isinstance(result, tuple):
        return signature(types.Tuple([_close(r, None)[0] for r in result]), *args)
    return signature(_close(result, None)[0], *args)


def _lowered(function: Callable[..., Any], context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Code of a formula for these arguments."""
    emit = Emitter(builder)
    result = function(*(_open(t, a, emit) for t, a in zip(sig.args, args, strict=True)))
    if isinstance(result, tuple):
        return context.make_tuple(builder, sig.return_type, [_close(r, emit)[1] for r in result])
    if result is None:
        return context.get_dummy_value()
    return _close(result, emit)[1]


def _teach(function: Callable[..., Any]) -> None:
    """Register a formula (or the constructor of a value type) with Numba, so that kernels can call it."""

    def generic(self: Any, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return None if kws else _typed(function, args)

    template = type(f"Formula_{function.__name__}", (AbstractTemplate,), {"key": function, "generic": generic})
    infer_global(function, types.Function(template))

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _lowered(function, context, builder, sig, args)

    lower_builtin(function, types.VarArg(types.Any))(lower)


def _teach_operator(op: Callable[..., Any], meaning: Callable[..., Any], count: int) -> None:
    """Register an operator for kernel values; Numba keeps its own for plain numbers."""

    class Template(AbstractTemplate):
        key = op

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if len(args) != count or not any(isinstance(a, KernelType) for a in args):
                return None
            if any(isinstance(a, PointerType | ViewType) or _alien(a) for a in args):
                return None
            return _typed(meaning, args)

    infer_global(op)(Template)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _lowered(meaning, context, builder, sig, args)

    if count == 1:
        lower_builtin(op, KernelType)(lower)
        return
    for left in (KernelType, types.Number, types.Boolean):
        for right in (KernelType, types.Number, types.Boolean):
            if KernelType in (left, right):
                lower_builtin(op, left, right)(lower)


def _alien(t: types.Type) -> bool:
    return not isinstance(t, KernelType) and scalar_of(t) is None


_BINARY = ("add", "sub", "mul", "truediv", "matmul", "and_", "or_", "xor", "lshift", "rshift")
for _name in _BINARY:
    _meaning = getattr(operator, _name)
    _teach_operator(_meaning, _meaning, 2)
    _teach_operator(getattr(operator, f"i{_name.rstrip('_')}"), _meaning, 2)


def _comparison(name: str) -> Callable[..., Any]:
    sign = getattr(operator, name)

    def compare(a: Any, b: Any) -> Any:
        if isinstance(a, Value) or isinstance(b, Value):
            raise TypeError(f"'{name}' of {a!r} and {b!r}: compare their parts")
        return sign(a, b)

    return compare


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _teach_operator(getattr(operator, _name), _comparison(_name), 2)
for _name in ("neg", "invert"):
    _teach_operator(getattr(operator, _name), getattr(operator, _name), 1)


@infer_global(bool)
class _Truth(AbstractTemplate):
    """Reports `if mask:` with a replacement: lanes have no single truth value."""

    key = bool

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        if len(args) == 1 and isinstance(args[0], KernelType):
            raise TypingError(f"a kernel cannot branch on {args[0]}: use select, or any_lane(mask) and all_lanes(mask)")


@lower_cast(types.Float, LaneType)
@lower_cast(types.Integer, LaneType)
def _spread_plain(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return Emitter(builder).cast(value, scalar_of(source), target.scalar)


@infer_getattr
class _ValueAttributes(AttributeTemplate):
    key = ValueType

    def generic_resolve(self, t: ValueType, attr: str) -> Any:
        kinds = dict(t.cls.fields)
        if attr not in kinds:
            return None
        return ValueType(kinds[attr], t.scalar) if kinds[attr] else numba_type(t.scalar)


@lower_getattr_generic(ValueType)
def _value_attribute(context: Any, builder: Any, t: ValueType, value: Any, attr: str) -> Any:
    emit = Emitter(builder)
    return _close(getattr(_open(t, value, emit), attr), emit)[1]


@infer_getattr
class _ViewAttributes(AttributeTemplate):
    key = ViewType

    def generic_resolve(self, t: ViewType, attr: str) -> Any:
        kind = t.view.fields.get(attr)
        if kind is None:
            return None
        if isinstance(kind, At):
            return ViewType(kind.view, kind.at(t.width))
        return types.int64 if kind is Count else PointerType(t.view.buffer_type(attr, t.width))


@lower_getattr_generic(ViewType)
def _view_attribute(context: Any, builder: Any, t: ViewType, value: Any, attr: str) -> Any:
    place = builder.gep(value, [ir.Constant(ir.IntType(64), t.view.places[attr])])
    if attr in t.view.nested:
        place = builder.bitcast(place, ir.IntType(64).as_pointer().as_pointer())
    elif t.view.fields[attr] is not Count:
        pointer = llvm_type(t.view.buffer_type(attr, t.width).scalar).as_pointer()
        place = builder.bitcast(place, pointer.as_pointer())
    entry = builder.load(place, align=8)
    entry.set_metadata("invariant.load", builder.module.add_metadata([]))
    return entry


for _function in trace.FORMULAS:
    _teach(_function)
trace._on_formula.append(_teach)
for _cls in values.VALUE_TYPES:
    _teach(_cls)
values._on_value_type.append(_teach)
