"""Memory: views of many buffers behind one handle, and the widths that a kernel can run at.

A `View` lists the fields that a kernel reads and writes. `View.block` allocates (or adopts) the arrays of one view for
one width; its `handle` is a table of addresses and counts, the one argument that reaches compiled code.

    array of a scalar field       (n,) plain      (n, lanes)
    array of a value of k parts   (n, k) plain    (n, k, lanes)

A field of a view can be another view: its word in the table is the address of another table.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.kernel.buffers import (
    GROUP,
    Buffer,
    BufferType,
    PlainBuffer,
    gather,
    gather_where,
    group_size,
    load,
    load_group,
    load_lane,
    scatter,
    scatter_where,
    store,
    store_group,
    store_lane,
    store_where,
    sum_group,
)
from poise.kernel.trace import ScalarType

__all__ = [
    "F32",
    "F32X8",
    "F32X16",
    "F64",
    "F64X4",
    "F64X8",
    "At",
    "Block",
    "Buffer",
    "BufferType",
    "Count",
    "Index",
    "Int",
    "PlainBuffer",
    "Real",
    "Shared",
    "View",
    "Width",
    "aligned",
    "gather",
    "gather_where",
    "group_size",
    "lane_array",
    "load",
    "load_group",
    "load_lane",
    "scatter",
    "scatter_where",
    "single",
    "store",
    "store_group",
    "store_lane",
    "store_where",
    "sum_group",
]

_DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}
ALIGNMENT = 64


@dataclass(frozen=True)
class Width:
    """The type of a real scalar in a kernel: element and number of lanes."""

    elem: str
    lanes: int = 1
    varied: bool = False
    """Whether constants that may vary (`View.varied`) have a number for each lane."""

    def __post_init__(self) -> None:
        if self.elem not in ("f64", "f32"):
            raise ValueError(f"a width of {self.elem!r}; kernels compute in f64 or f32")
        largest = ALIGNMENT * 8 // int(self.elem[1:])
        if self.lanes not in (1, 2, 4, 8, 16) or self.lanes > largest:
            raise ValueError(
                f"{self.lanes} lanes of {self.elem}; there may be 1, 2, 4 … {largest}: memory is aligned so"
            )

    @property
    def real(self) -> ScalarType:
        """The scalar of state values."""
        return ScalarType(self.elem, self.lanes)

    @property
    def plain(self) -> ScalarType:
        """The number of model values, the same for all lanes."""
        return ScalarType(self.elem)

    @property
    def integer(self) -> ScalarType:
        """An integer for each lane, of the size of the real scalar."""
        return ScalarType("i" + self.elem[1:], self.lanes)

    @property
    def dtype(self) -> Any:
        """NumPy's type of one number."""
        return _DTYPES[self.elem]

    @property
    def fixed(self) -> Width:
        """The same width with constants that all lanes share."""
        return Width(self.elem, self.lanes) if self.varied else self

    def __str__(self) -> str:
        return f"{self.real}v" if self.varied else str(self.real)


F64 = Width("f64")
F32 = Width("f32")
F64X4 = Width("f64", 4)
F64X8 = Width("f64", 8)
F32X8 = Width("f32", 8)
F32X16 = Width("f32", 16)


def single(width: Width) -> Width:
    """The width of a single world, for a width with lanes of worlds."""
    return Width(width.elem)


class Field:
    """Kind of a field of a view. Value types are kinds too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


Real = Field("Real")
"""A real number in the width's own scalar, or plain in a view of constants."""
Int = Field("Int")
"""An integer for each lane."""
Index = Field("Index")
"""A plain 32-bit integer: topology."""
Count = Field("Count")
"""One plain integer, held in the handle itself."""


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros that start at a multiple of 64 bytes.

    An empty array has room for one element: kernels may read element 0 for its type before they count. Beyond the end
    there is padding for a group, since the last group may be partial.
    """
    if min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape}; lengths are 0 or more")
    roomy = (max(shape[0], 1), *shape[1:]) if shape else ()
    size = math.prod(roomy) * np.dtype(dtype).itemsize
    raw = np.zeros(size + ALIGNMENT + GROUP * np.dtype(dtype).itemsize, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    array = raw[start : start + size].view(dtype).reshape(roomy)
    return array[: shape[0]] if shape else array


def lane_array(n: int, width: Width, parts: int = 1) -> np.ndarray:
    """Zeroed array for n elements of `parts` scalars at a width, with the layout and alignment of kernels."""
    shape = (n,) if parts == 1 else (n, parts)
    return aligned(shape if width.lanes == 1 else (*shape, width.lanes), width.dtype)


class View:
    """A named list of fields. `constant` views hold plain numbers that no kernel changes; their `varied` fields have a
    number for each lane at widths with `varied`.

    A field that is a view has the width of this view; with `At` it has another.
    """

    def __init__(self, name: str, constant: bool = False, varied: tuple[str, ...] = (), **fields: Any) -> None:
        self.name, self.constant, self.varied = name, constant, varied
        self.fields = {field: At(kind) if isinstance(kind, View) else kind for field, kind in fields.items()}
        self.places = {field: k for k, field in enumerate(fields)}
        self.nested: dict[str, At] = {k: kind for k, kind in self.fields.items() if isinstance(kind, At)}
        self.varies = bool(varied) or any(kind.view.varies for kind in self.nested.values())
        """Whether any field may differ between lanes."""
        self._layout = ""
        self._seals: dict[Width, int] = {}

    @property
    def layout(self) -> str:
        """Short description of the fields and their order; it distinguishes two views of one name."""
        if not self._layout:
            kinds = [
                kind.view.layout
                if isinstance(kind, At)
                else kind.name
                if isinstance(kind, Field)
                else kind.__qualname__
                for kind in self.fields.values()
            ]
            text = repr((self.name, self.constant, list(self.fields), kinds))
            self._layout = hashlib.sha256(text.encode()).hexdigest()[:8]
        return self._layout

    @property
    def values(self) -> Iterator[type]:
        """Value types of its fields, and of those of nested views."""
        for kind in self.fields.values():
            if isinstance(kind, At):
                yield from kind.view.values
            elif isinstance(kind, type):
                yield kind

    @property
    def words(self) -> int:
        """Length of a handle: one word per field, and the seal."""
        return len(self.fields) + 1

    def at(self, width: Width) -> Width:
        """The effective width of the view: the fixed one if none of its fields varies."""
        return width if self.varies else width.fixed

    def seal(self, width: Width) -> int:
        """The last word of a handle: a hash of the view, its nested views and their widths."""
        width = self.at(width)
        if width not in self._seals:
            text = self.layout + (width.elem if self.constant and not width.varied else str(width))
            text += "".join(f" {kind.view.seal(kind.at(width))}" for kind in self.nested.values())
            self._seals[width] = int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)
        return self._seals[width]

    def buffer_type(self, field: str, width: Width) -> BufferType:
        """Type of a field's buffer at a width."""
        kind = self.fields[field]
        if kind is Index:
            return BufferType(ScalarType("i32"), None, self.constant)
        if kind is Int:
            return BufferType(width.integer)
        plain = self.constant and not (self.at(width).varied and field in self.varied)
        return BufferType(width.plain if plain else width.real, None if kind is Real else kind, plain)

    def block(self, width: Width, **given: Any) -> Block:
        """Arrays for one width: a field from its length (an int) or from an array to copy, a count from its number."""
        return Block(self, width, given)


@dataclass(frozen=True)
class At:
    """A view at a width: that of the enclosing view or entry, a fixed one, or a function of the enclosing one."""

    view: View
    width: Width | Callable[[Width], Width] | None = None

    def at(self, width: Width) -> Width:
        """Its width inside a view or entry of a width."""
        if self.width is None:
            return self.view.at(width)
        return self.view.at(self.width(width) if callable(self.width) else self.width)


class _Table:
    """Words of a handle; it keeps references to the arrays and handles that they point to."""

    def __init__(self, size: int) -> None:
        self.words = np.zeros(size, np.int64)
        self.arrays: dict[str, np.ndarray] = {}
        self.handles: list[np.ndarray] = []
        self.__array_interface__ = self.words.__array_interface__


_OWN = ("view", "width", "handle", "arrays", "blocks")
"""Attributes of a block besides its arrays."""


class Block:
    """The arrays and nested blocks of a view at a width, each under its field's name, and the handle that kernels
    take.
    """

    handle: np.ndarray

    def __init__(self, view: View, width: Width, given: dict[str, Any]) -> None:
        if view.fields.keys() != given.keys():
            raise TypeError(
                f"view {view.name}: fields {sorted(view.fields.keys() ^ given.keys())} are missing or unknown"
            )
        self.view, self.width = view, view.at(width)
        table = _Table(view.words)
        self.handle, self.arrays = np.asarray(table), table.arrays
        self.blocks: dict[str, Block] = {}
        self.handle[-1] = view.seal(width)
        for field, what in given.items():
            if view.fields[field] is Count:
                self.handle[view.places[field]] = operator.index(what)
            elif field in view.nested:
                self._nest(field, what)
                table.handles.append(what.handle)
            else:
                self._adopt(field, what)

    def _nest(self, field: str, block: Block) -> None:
        """Nest another block. Its seal is checked here, not by the kernels that read it."""
        view, width = self.view.nested[field].view, self.view.nested[field].at(self.width)
        if not isinstance(block, Block):
            raise TypeError(f"{self.view.name}.{field}: {type(block).__name__} is not a block of view {view.name}")
        if block.handle.size != view.words or block.handle[-1] != view.seal(width):
            found = f"a block of view {block.view.name} at {block.width}"
            raise TypeError(f"{self.view.name}.{field}: {found} is not one of view {view.name} at {width}")
        self.blocks[field] = block
        if not hasattr(type(self), field) and field not in _OWN:
            self.__dict__[field] = block
        self.handle[self.view.places[field]] = block.handle.ctypes.data

    def _adopt(self, field: str, what: Any) -> None:
        t = self.view.buffer_type(field, self.width)
        shape: tuple[int, ...] = () if t.leaves == 1 else (t.leaves,)
        shape += () if t.scalar.width == 1 else (t.scalar.width,)
        dtype = _DTYPES[t.scalar.elem]
        if isinstance(what, int | np.integer):
            array = aligned((int(what), *shape), dtype)
        elif isinstance(what, Shared):
            array = what.array
            self._check_shared(field, array, shape, t)
            array = array if len(array) else aligned(array.shape, dtype)  # kernels may read element 0
        else:
            array = self._copy(field, np.asarray(what), shape, dtype)
        self.arrays[field] = array
        if not hasattr(type(self), field) and field not in _OWN:
            self.__dict__[field] = array  # a direct lookup; `__getattr__` is called last
        self.handle[self.view.places[field]] = array.ctypes.data

    def _check_shared(self, field: str, array: np.ndarray, shape: tuple[int, ...], t: BufferType) -> None:
        """Raise for an array that compiled code would misread: it trusts the address of a shared array."""
        step = t.scalar.bits // 8 * t.scalar.width
        faults = [
            fault
            for wrong, fault in (
                (array.dtype != _DTYPES[t.scalar.elem], "of another type"),
                (array.ndim == 0 or array.shape[1:] != shape, "of another shape"),
                (not array.flags.c_contiguous, "not contiguous"),
                (array.ctypes.data % step != 0, f"not aligned to {step} bytes"),
                (not array.flags.writeable and not t.constant, "read-only"),
            )
            if wrong
        ]
        if faults:
            found, right = f"{array.dtype}{array.shape}", self._wanted(shape, _DTYPES[t.scalar.elem])
            raise TypeError(f"{self.view.name}.{field}: {found} is {' and '.join(faults)}; it should be {right}")

    def _copy(self, field: str, what: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An aligned copy; numbers that lanes share are repeated in each lane."""
        if what.ndim == 0 or not np.can_cast(what.dtype, dtype, "same_kind"):
            raise self._unfit(field, what, shape, dtype)
        array = aligned((len(what), *shape), dtype)
        try:
            array[...] = np.reshape(what, array.shape) if what.size == array.size else what[..., None]
        except ValueError:
            raise self._unfit(field, what, shape, dtype) from None
        return array

    def _unfit(self, field: str, what: np.ndarray, shape: tuple[int, ...], dtype: Any) -> TypeError:
        found, right = f"{what.dtype}{what.shape}", self._wanted(shape, dtype)
        return TypeError(f"{self.view.name}.{field}: {found} does not fit {right}")

    @staticmethod
    def _wanted(shape: tuple[int, ...], dtype: Any) -> str:
        return f"{np.dtype(dtype)}({', '.join(map(str, ('n', *shape)))})"

    def counts(self) -> dict[str, int]:
        """Every count by its name."""
        return {name: int(self.handle[k]) for name, k in self.view.places.items() if self.view.fields[name] is Count}

    def set_count(self, field: str, number: int) -> None:
        """Change a count."""
        if self.view.fields[field] is not Count:
            raise TypeError(f"{self.view.name}.{field} is not a count")
        self.handle[self.view.places[field]] = number

    def __reduce_ex__(self, protocol: Any) -> Any:
        # its handle holds addresses: a copy would write to this block's memory, or to arbitrary memory elsewhere
        raise TypeError(f"a block ({self.view.name}) is memory of one process: make another with view.block")

    def __getattr__(self, field: str) -> np.ndarray:
        try:
            return self.__dict__["arrays"][field]
        except KeyError:
            raise AttributeError(field) from None

    def plain(self) -> Any:
        """The view for kernels that run as plain Python."""
        return PlainView(self)


@dataclass(frozen=True)
class Shared:
    """An array that a block uses as it is, without a copy."""

    array: np.ndarray


class PlainView:
    """A view for kernels that run as plain Python."""

    def __init__(self, block: Block) -> None:
        for field, number in block.counts().items():
            setattr(self, field, number)
        for field, array in block.arrays.items():
            setattr(self, field, PlainBuffer(array, block.view.buffer_type(field, block.width).value))
        for field, nested in block.blocks.items():
            setattr(self, field, PlainView(nested))
