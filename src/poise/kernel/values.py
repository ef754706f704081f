"""Value types: small fixed groups of scalars that travel in registers. Plain Python here; `bridge` compiles them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

VALUE_TYPES: list[type[Value]] = []
"""All declared value types."""
_on_value_type: list[Callable[[type[Value]], None]] = []


class Value:
    """Base of the value types. A subclass names its fields; a field is a scalar, or another value type."""

    fields: ClassVar[tuple[tuple[str, type[Value] | None], ...]] = ()
    size: ClassVar[int] = 0
    """Number of scalars."""

    __slots__ = ()
    __array_ufunc__ = None

    def __init_subclass__(cls) -> None:
        cls.size = sum(kind.size if kind else 1 for _, kind in cls.fields)
        VALUE_TYPES.append(cls)
        for tell in _on_value_type:
            tell(cls)

    def __init__(self, *values: Any) -> None:
        if len(values) != len(self.fields):
            raise TypeError(f"{type(self).__name__} takes {len(self.fields)} values, not {len(values)}")
        for (name, _), value in zip(self.fields, values, strict=True):
            setattr(self, name, value)

    def leaves(self) -> Iterator[Any]:
        """All scalars, in memory order."""
        for name, kind in self.fields:
            if kind:
                yield from getattr(self, name).leaves()
            else:
                yield getattr(self, name)

    @classmethod
    def of(cls, *leaves: Any) -> Any:
        """The value with these scalars."""
        rest = iter(leaves)
        return cls(
            *(kind.of(*(next(rest) for _ in range(kind.size))) if kind else next(rest) for _, kind in cls.fields)
        )

    def map(self, function: Callable[..., Any], *others: Any) -> Any:
        """A function applied to each scalar and to the corresponding scalars of others."""
        columns = zip(self.leaves(), *(o.leaves() for o in others), strict=True)
        return type(self).of(*(function(*column) for column in columns))

    def __add__(self, other: Any) -> Any:
        return self.map(lambda a, b: a + b, other) if type(other) is type(self) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self.map(lambda a, b: a - b, other) if type(other) is type(self) else NotImplemented

    def __neg__(self) -> Any:
        return self.map(lambda a: -a)

    def __mul__(self, factor: Any) -> Any:
        return NotImplemented if isinstance(factor, Value) else self.map(lambda a: a * factor)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(getattr(self, name)) for name, _ in self.fields)})"
