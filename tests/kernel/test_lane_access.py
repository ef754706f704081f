"""One lane at a time: masks as bits, the first lane of a mask, plain numbers read from and written to one lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from kernel.runner import WIDTHS
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import (
    F32X16,
    F64,
    F64X8,
    At,
    Count,
    Index,
    Int,
    Real,
    View,
    Width,
    load,
    load_lane,
    store,
    store_lane,
    store_where,
)
from poise.kernel.scalars import bits_mask, mask_bits, trailing_zeros
from poise.kernel.vec import Vec3

IO = View("LaneIO", n=Count, x=Real, y=Real, v=Vec3, k=Int, bits=Index, first=Index)
FIXED = View("LaneFixed", constant=True, mass=Real)
ROWS = 40


@kernel
def to_bits(io):
    for i in range(io.n):
        bits = mask_bits(load(io.x, i) > 0.0)
        store(io.bits, i, bits)
        store(io.first, i, trailing_zeros(bits))
        store_where(io.y, i, load(io.x, i), bits_mask(bits, load(io.x, i)))


@kernel
def move_lane(io, source, target):
    for i in range(io.n):
        store_lane(io.y, i, target, load_lane(io.x, i, source))
        store_lane(io.v, i, target, load_lane(io.v, i, source) * 2.0)
        store_lane(io.k, i, target, load_lane(io.k, i, source) + 1)


TO_BITS = entry(to_bits, IO)
MOVE = entry(move_lane, IO, extra=("int64", "int64"))


def block_of(width: Width) -> Any:
    rng = np.random.default_rng(3)
    block = IO.block(width, n=ROWS, x=ROWS, y=ROWS, v=ROWS, k=ROWS, bits=ROWS, first=ROWS)
    for name in "xyv":
        block.arrays[name][...] = rng.normal(size=block.arrays[name].shape)
    block.x[0], block.x[1], block.x[2] = -1.0, 1.0, np.nan
    block.k[...] = rng.integers(0, 100, block.k.shape)
    return block


def in_lanes(array: np.ndarray, width: Width) -> np.ndarray:
    return array.reshape(*array.shape[: array.ndim - (width.lanes > 1)], width.lanes)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_masks_become_bits_and_masks_again(width: Width) -> None:
    block = block_of(width)
    x, y = (in_lanes(a.copy(), width) for a in (block.x, block.y))
    TO_BITS[width](block.handle)
    bits = ((x > 0.0) << np.arange(width.lanes)).sum(axis=1)
    assert block.bits.tolist() == bits.tolist()
    assert block.first.tolist() == [64 if b == 0 else int(b & -b).bit_length() - 1 for b in bits]
    assert np.array_equal(in_lanes(block.y, width), np.where(x > 0.0, x, y))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_one_lane_is_read_and_written_where_it_lies(width: Width) -> None:
    for source, target in {(0, width.lanes - 1), (width.lanes // 2, 0), (width.lanes - 1, width.lanes - 1)}:
        block = block_of(width)
        before = {name: in_lanes(block.arrays[name].copy(), width) for name in "xyvk"}
        MOVE[width](block.handle, source, target)
        for name, change in (("y", before["x"]), ("v", 2.0 * before["v"]), ("k", before["k"] + 1)):
            right = before[name].copy()
            right[..., target] = change[..., source]
            assert np.array_equal(in_lanes(block.arrays[name], width), right, equal_nan=True)


def test_plain_python_has_one_lane() -> None:
    block = block_of(F64)
    x = block.x.copy()
    move_lane.py_func(block.plain(), 0, 0)
    assert np.array_equal(block.y, x, equal_nan=True)
    assert mask_bits(True) == 1
    assert mask_bits(np.array([False, True, True])) == 6
    assert trailing_zeros(0) == 64
    assert trailing_zeros(40) == 3
    assert bits_mask(6, np.zeros(4)).tolist() == [False, True, True, False]
    assert bits_mask(2, 0.0) is False


def test_mistakes_are_named() -> None:
    @kernel
    def bits_of_numbers(io):
        store(io.bits, 0, mask_bits(load(io.x, 0)))

    @kernel
    def lane_of_lanes(io):
        store_lane(io.y, 0, load(io.k, 0), 1.0)

    @kernel
    def change_constant(fixed):
        store_lane(fixed.mass, 0, 0, 1.0)

    with pytest.raises(TypingError, match="a mask is made of truth values, not f64x8"):
        entry(bits_of_numbers, IO)[F64X8]
    with pytest.raises(TypingError, match="the number of a lane is a plain integer, not i64x8"):
        entry(lane_of_lanes, IO)[F64X8]
    with pytest.raises(TypingError, match="a kernel cannot write to a constant"):
        entry(change_constant, FIXED)[F64]


@kernel
def add_up(io, all_of_them):
    for i in range(io.n):
        store(io.bits, i, mask_bits(load(all_of_them.x, i) > 0.0))


def test_an_entry_knows_the_widths_of_its_views() -> None:
    """Worlds may be one while something else is in lanes."""
    run = entry(add_up, IO, At(IO, F32X16), lanes=False)
    plain, wide = block_of(F64), block_of(F32X16)
    run[F64](plain.handle, wide.handle)
    assert np.array_equal(plain.bits, ((wide.x > 0.0) << np.arange(16)).sum(axis=1))
    with pytest.raises(TypeError, match="handle 1 is not of view LaneIO at f32x16"):
        run[F64](plain.handle, plain.handle)
    with pytest.raises(TypeError, match="runs one world at a time, not f64x8"):
        run[F64X8]
