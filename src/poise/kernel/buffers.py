"""Buffers: typed memory inside a kernel, and the only ways to read and write it.

A buffer holds elements of one kind, each a scalar or a value of several scalars; the lanes of a scalar are contiguous.
A buffer of plain numbers can be read in groups of neighbours, as lanes; in a buffer of lanes a group is one element. So
a loop over groups is one source for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.kernel.trace import ScalarType, Traced, formula
from poise.kernel.values import Value

GROUP = 8
"""Plain numbers of a group. Arrays have this much padding beyond their ends."""


@dataclass(frozen=True)
class BufferType:
    """Type of a buffer: the type of its elements, and whether it is constant while a kernel runs."""

    scalar: ScalarType
    value: type[Value] | None = None
    constant: bool = False

    @property
    def leaves(self) -> int:
        """Scalars per element."""
        return self.value.size if self.value else 1


class Buffer:
    """A buffer inside a formula: a pointer whose value is known at run time."""

    __slots__ = ("emit", "pointer", "type")

    def __init__(self, type: BufferType, pointer: Any = None, emit: Any = None) -> None:
        self.type, self.pointer, self.emit = type, pointer, emit

    def _place(self, i: Any, leaf: int) -> Any:
        i = i if isinstance(i, Traced) else Traced(ScalarType("i64"), None, self.emit).like(i)
        if i.type.is_float or i.type.is_mask or i.type.width > 1:
            raise TypeError(f"an index is a plain integer, not {i.type} (lanes of indices: gather and scatter)")
        return i.cast(ScalarType("i64")) * self.type.leaves + leaf

    def _build(self, leaf: Any) -> Any:
        parts = [leaf(k) for k in range(self.type.leaves)]
        return self.type.value.of(*parts) if self.type.value else parts[0]

    def _scalars(self, value: Any) -> list[Any]:
        t = self.type
        if t.value and type(value) is not t.value:
            raise TypeError(f"a buffer of {t.value.__name__} cannot hold {value!r}")
        if not t.value and isinstance(value, Value):
            raise TypeError(f"a buffer of {t.scalar} cannot hold {value!r}")
        if t.constant:
            raise TypeError("a kernel cannot write to a constant")
        like = Traced(t.scalar, None, self.emit)
        parts = value.leaves() if t.value else [value]
        return [x.cast(t.scalar) if isinstance(x, Traced) else like.like(x) for x in parts]

    def _mask(self, mask: Any, scalar: ScalarType) -> Any:
        """A mask that has a truth value for each lane of a scalar."""
        if mask is None:
            return None
        if not isinstance(mask, Traced) or not mask.type.is_mask:
            raise TypeError(f"a mask is made of truth values, not {mask!r}")
        return mask.cast(scalar.of("b1"))

    def load(self, i: Any, mask: Any = None) -> Any:
        """Element i; with a mask, for plain buffers: zero where it is not set."""
        t, e = self.type, self.emit
        mask = self._mask(mask, t.scalar)

        def leaf(k: int) -> Traced:
            where = self._place(i, k)
            if e is None:
                return Traced(t.scalar)
            pointer = e.address(self.pointer, where.value)
            if mask is None:
                return Traced(t.scalar, e.load(pointer, t.scalar, t.constant), e)
            return Traced(t.scalar, e.load_masked(pointer, t.scalar, t.constant, mask.value), e)

        return self._build(leaf)

    def store(self, i: Any, value: Any, mask: Any = None) -> None:
        """Element i, in the lanes of the mask."""
        scalars, mask = self._scalars(value), self._mask(mask, self.type.scalar)
        places = [self._place(i, k) for k in range(self.type.leaves)]
        if self.emit is None:
            return
        pointers = [self.emit.address(self.pointer, place.value) for place in places]
        for pointer, x in zip(pointers, scalars, strict=True):
            if mask is None:
                self.emit.store(x.value, pointer, self.type.scalar)
            else:
                self.emit.store_masked(x.value, pointer, self.type.scalar, mask.value)

    @property
    def group(self) -> ScalarType:
        """Type of a group."""
        if self.type.value is not None:
            raise TypeError(f"a buffer of {self.type.value.__name__} has no groups")
        return self.type.scalar if self.type.scalar.width > 1 else ScalarType(self.type.scalar.elem, GROUP)

    def group_size(self) -> Any:
        """Elements of a group."""
        return Traced(ScalarType("i64"), None, self.emit).like(self.group.width // self.type.scalar.width)

    def load_group(self, i: Any) -> Any:
        """The group that starts at element i."""
        t, e, where = self.group, self.emit, self._place(i, 0)
        if e is None:
            return Traced(t)
        pointer = e.flat(e.address(self.pointer, where.value), t)
        return Traced(t, e.load(pointer, t, self.type.constant, self._group_align), e)

    def store_group(self, i: Any, value: Any) -> None:
        """Write the group that starts at element i."""
        t, e, where = self.group, self.emit, self._place(i, 0)
        if self.type.constant:
            raise TypeError("a kernel cannot write to a constant")
        value = value.cast(t) if isinstance(value, Traced) else Traced(t, None, e).like(value)
        if e is not None:
            e.store(value.value, e.flat(e.address(self.pointer, where.value), t), t, self._group_align)

    @property
    def _group_align(self) -> int:
        return self.type.scalar.bits // 8 * self.type.scalar.width

    def sum_group(self, value: Any) -> Any:
        """The sum of a group's plain numbers; for a buffer of lanes, the lanes unchanged."""
        if self.group == self.type.scalar:
            return value
        t = self.type.scalar
        return Traced(t, self.emit.sum_lanes(value.value, value.type), self.emit) if self.emit else Traced(t)

    def load_lane(self, i: Any, lane: Any) -> Any:
        """The plain numbers of element i in one lane."""
        t, e = self.type, self.emit
        plain = ScalarType(t.scalar.elem)
        places = [self._lane_place(i, k, lane) for k in range(t.leaves)]
        if e is None:
            return self._build(lambda k: Traced(plain))
        flat = e.flat(self.pointer, plain)
        return self._build(lambda k: Traced(plain, e.load(e.address(flat, places[k].value), plain, t.constant), e))

    def store_lane(self, i: Any, lane: Any, value: Any) -> None:
        """Write plain numbers to one lane of element i."""
        plain, e = ScalarType(self.type.scalar.elem), self.emit
        scalars = Buffer(BufferType(plain, self.type.value, self.type.constant), None, e)._scalars(value)
        places = [self._lane_place(i, k, lane) for k in range(self.type.leaves)]
        if e is None:
            return
        flat = e.flat(self.pointer, plain)
        for place, x in zip(places, scalars, strict=True):
            e.store(x.value, e.address(flat, place.value), plain)

    def _lane_place(self, i: Any, leaf: int, lane: Any) -> Any:
        """Offset of a lane's number, counted in plain numbers."""
        like = Traced(ScalarType("i64"), None, self.emit)
        lane = lane if isinstance(lane, Traced) else like.like(lane)
        if lane.type.is_float or lane.type.is_mask or lane.type.width > 1:
            raise TypeError(f"the number of a lane is a plain integer, not {lane.type}")
        return self._place(i, leaf) * self.type.scalar.width + lane.cast(ScalarType("i64"))

    def gather(self, indices: Traced, mask: Any = None) -> Any:
        """Element indices[k] in lane k (of a plain buffer: element indices[k])."""
        lanes = self._lanes(indices)
        if lanes == 1 and (mask is None or self.type.scalar.width == 1):
            return self.load(indices, mask)
        scalar = ScalarType(self.type.scalar.elem, max(lanes, self.type.scalar.width))
        mask = self._mask(mask, scalar)
        return self._build(lambda k: self._gather_leaf(indices, mask, k, scalar))

    def _lanes(self, indices: Any) -> int:
        """Lanes of an index, which must match the lanes of the buffer."""
        if not isinstance(indices, Traced):
            return 1
        if indices.type.is_float or indices.type.is_mask:
            raise TypeError(f"an index is an integer, not {indices.type}")
        if 1 not in (indices.type.width, self.type.scalar.width) and indices.type.width != self.type.scalar.width:
            raise TypeError(f"indices {indices.type} into a buffer of {self.type.scalar}")
        return indices.type.width

    def _gather_leaf(self, indices: Traced, mask: Any, k: int, scalar: ScalarType) -> Traced:
        e = self.emit
        if e is None:
            return Traced(scalar)
        if mask is None:
            mask = Traced(scalar.of("b1"), None, e).like(1)
        return Traced(scalar, e.gather(self._pointers(indices, k, scalar), scalar, mask.value), e)

    def _pointers(self, indices: Traced, k: int, scalar: ScalarType) -> Any:
        places = indices.cast(scalar.of("i64")) * self.type.leaves + k
        return self.emit.lane_pointers(self.pointer, scalar, places.value, self.type.scalar.width > 1)

    def scatter(self, indices: Traced, value: Any, mask: Any = None) -> None:
        """Write lane k to its element indices[k], in the lanes of the mask."""
        if self._lanes(indices) == 1:
            self.store(indices, value, mask)
            return
        if self.type.scalar.width == 1:
            raise TypeError("lanes would race for the elements of a plain buffer")
        scalars, mask = self._scalars(value), self._mask(mask, self.type.scalar)
        if (e := self.emit) is None:
            return
        if mask is None:
            mask = Traced(self.type.scalar.of("b1"), None, e).like(1)
        for k, x in enumerate(scalars):
            e.scatter(x.value, self._pointers(indices, k, x.type), x.type, mask.value)


class PlainBuffer:
    """A buffer for kernels that run as plain Python on float64."""

    def __init__(self, array: np.ndarray, value: type[Value] | None) -> None:
        self.array, self.value = array, value

    def load(self, i: int, mask: Any = True) -> Any:
        """Element i; zero if the mask is not set."""
        element = self.array[i] if mask else np.zeros(self.array.shape[1:], self.array.dtype)[()]
        return self.value.of(*element) if self.value else element

    def store(self, i: int, value: Any, mask: Any = True) -> None:
        """Write element i, if the mask is set."""
        if mask:
            self.array[i] = tuple(value.leaves()) if self.value else value

    gather, scatter = load, store
    load_group, store_group = load, store

    def group_size(self) -> int:
        """1: plain Python has groups of one element."""
        return 1

    def sum_group(self, value: Any) -> Any:
        """The value itself: a group has one element."""
        return value

    def load_lane(self, i: int, lane: int) -> Any:
        """There is one lane."""
        return self.load(i)

    def store_lane(self, i: int, lane: int, value: Any) -> None:
        """There is one lane."""
        self.store(i, value)


@formula
def load(buffer: Any, i: Any) -> Any:
    """Element i of a buffer."""
    return buffer.load(i)


@formula
def store(buffer: Any, i: Any, value: Any) -> None:
    """Write element i of a buffer."""
    buffer.store(i, value)


@formula
def store_where(buffer: Any, i: Any, value: Any, mask: Any) -> None:
    """Write element i of a buffer in the lanes of the mask."""
    buffer.store(i, value, mask)


@formula
def load_lane(buffer: Any, i: Any, lane: Any) -> Any:
    """Element i of a buffer in one lane, as plain numbers; `lane` is 0 for a plain buffer."""
    return buffer.load_lane(i, lane)


@formula
def store_lane(buffer: Any, i: Any, lane: Any, value: Any) -> None:
    """Write a plain number or value to one lane of element i; `lane` is 0 for a plain buffer."""
    buffer.store_lane(i, lane, value)


@formula
def group_size(buffer: Any) -> Any:
    """Elements of a group: 8 in a buffer of plain numbers, 1 in a buffer of lanes."""
    return buffer.group_size()


@formula
def load_group(buffer: Any, i: Any) -> Any:
    """The group of a buffer that starts at element i; it may extend beyond the end, where numbers are undefined."""
    return buffer.load_group(i)


@formula
def store_group(buffer: Any, i: Any, value: Any) -> None:
    """Write the group of a buffer that starts at element i; it may extend beyond the end."""
    buffer.store_group(i, value)


@formula
def sum_group(buffer: Any, value: Any) -> Any:
    """The sum of a group of the buffer: one element."""
    return buffer.sum_group(value)


@formula
def gather(buffer: Any, indices: Any) -> Any:
    """Read element indices[k] in lane k."""
    return buffer.gather(indices)


@formula
def gather_where(buffer: Any, indices: Any, mask: Any) -> Any:
    """Read element indices[k] in lane k where the mask is set; zero elsewhere, without reading memory there."""
    return buffer.gather(indices, mask)


@formula
def scatter(buffer: Any, indices: Any, value: Any) -> None:
    """Write element indices[k] in lane k."""
    buffer.scatter(indices, value)


@formula
def scatter_where(buffer: Any, indices: Any, value: Any, mask: Any) -> None:
    """Write element indices[k] in lane k where the mask is set."""
    buffer.scatter(indices, value, mask)
