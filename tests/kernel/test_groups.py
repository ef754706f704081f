"""Groups of neighbours: of plain numbers eight at once, of lanes an element."""

from __future__ import annotations

import numpy as np
import pytest

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import (
    F32,
    F32X16,
    F64,
    F64X8,
    Count,
    Real,
    View,
    Width,
    group_size,
    load,
    load_group,
    store,
    store_group,
    sum_group,
)
from poise.kernel.vec import Vec3

NUMBERS = View("GroupNumbers", n=Count, x=Real, y=Real, sum=Real)
VECTORS = View("GroupVectors", x=Vec3)


@kernel
def add_twice(v, factor):
    """Y += factor x, and the sum of x y."""
    total = load_group(v.x, 0) * 0.0
    for i in range(0, v.n, group_size(v.x)):
        store_group(v.y, i, load_group(v.y, i) + load_group(v.x, i) * factor)
        total = total + load_group(v.x, i) * load_group(v.y, i)
    store(v.sum, 0, sum_group(v.x, total))


@kernel
def ask_size(v):
    store(v.sum, 0, load(v.sum, 0) * 0.0 + group_size(v.x))


ADD = entry(add_twice, NUMBERS, extra=("float64",))
SIZE = entry(ask_size, NUMBERS)


@pytest.mark.parametrize("width", [F64, F32, F64X8, F32X16], ids=str)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 31])
def test_loops_over_groups_do_what_loops_over_elements_do(width: Width, n: int) -> None:
    rng = np.random.default_rng(n)
    shape = (n,) if width.lanes == 1 else (n, width.lanes)
    x, y = rng.integers(-9, 9, shape).astype(float), rng.integers(-9, 9, shape).astype(float)
    block = NUMBERS.block(width, n=n, x=x, y=y, sum=1)
    ADD[width](block.handle, 2.0)
    assert np.array_equal(block.y, y + 2.0 * x)
    assert np.array_equal(block.sum[0], (x * (y + 2.0 * x)).sum(axis=0))  # beyond the end there is nothing but noughts


@pytest.mark.parametrize(("width", "size"), [(F64, 8), (F32, 8), (F64X8, 1), (F32X16, 1)], ids=str)
def test_sizes(width: Width, size: int) -> None:
    block = NUMBERS.block(width, n=1, x=1, y=1, sum=1)
    SIZE[width](block.handle)
    assert (block.sum == size).all()


def test_the_last_group_may_go_beyond_the_end_and_nowhere_else() -> None:
    """Room beyond an array is its own: its neighbours in memory do not change."""
    blocks = [NUMBERS.block(F64, n=3, x=np.ones(3), y=np.full(3, 5.0), sum=np.array([7.0])) for _ in range(50)]
    for block in blocks[::2]:
        ADD[F64](block.handle, 1.0)
    for block in blocks[1::2]:
        assert block.x.tolist() == [1.0] * 3
        assert block.y.tolist() == [5.0] * 3
        assert block.sum.tolist() == [7.0]


def test_plain_python_takes_one_by_one() -> None:
    block = NUMBERS.block(F64, n=5, x=np.arange(5.0), y=np.ones(5), sum=1)
    add_twice.py_func(block.plain(), 3.0)
    assert block.y.tolist() == [1.0, 4.0, 7.0, 10.0, 13.0]
    assert block.sum.tolist() == [0 * 1 + 1 * 4 + 2 * 7 + 3 * 10 + 4 * 13]


@kernel
def group_of_values(v):
    store_group(v.x, 0, load_group(v.x, 0))


def test_values_have_no_groups() -> None:
    block = VECTORS.block(F64, x=4)
    with pytest.raises(Exception, match="a buffer of Vec3 has no groups"):
        entry(group_of_values, VECTORS)[F64](block.handle)
