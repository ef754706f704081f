"""Mistakes in kernels are answered with a message that says what is wrong, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from numba.core.errors import NumbaError

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F32X8, F64, F64X8, Count, Int, Real, View, gather, load, scatter, store, store_where
from poise.kernel.scalars import get_lane, minimum, select, sin
from poise.kernel.trace import ScalarType, Traced, join
from poise.kernel.vec import Vec3

IO = View("IO", n=Count, x=Real, y=Real, v=Vec3, k=Int)
CONST = View("Const", constant=True, c=Real)


def branch(io: Any, c: Any) -> None:
    if load(io.x, 0) > 0.0:
        store(io.y, 0, 1.0)


def loop(io: Any, c: Any) -> None:
    while load(io.x, 0) > 0.0:
        store(io.y, 0, 1.0)


def vector_to_scalar(io: Any, c: Any) -> None:
    store(io.y, 0, load(io.v, 0))


def scalar_to_vector(io: Any, c: Any) -> None:
    store(io.v, 0, load(io.x, 0))


def real_to_integer(io: Any, c: Any) -> None:
    store(io.k, 0, load(io.x, 0))


def write_constant(io: Any, c: Any) -> None:
    store(c.c, 0, 1.0)


def compare_vectors(io: Any, c: Any) -> None:
    store(io.y, 0, select(load(io.v, 0) == load(io.v, 1), 1.0, load(io.x, 0)))


def unknown_part(io: Any, c: Any) -> None:
    store(io.y, 0, load(io.v, 0).q)


def unknown_field(io: Any, c: Any) -> None:
    store(io.speed, 0, 1.0)


def invert_real(io: Any, c: Any) -> None:
    store(io.y, 0, ~load(io.x, 0))


def add_masks(io: Any, c: Any) -> None:
    on = load(io.x, 0) > 0.0
    store(io.y, 0, select(on + on, load(io.x, 0), 1.0))


def shift_real(io: Any, c: Any) -> None:
    store(io.y, 0, load(io.x, 0) << 2)


def divide_integers(io: Any, c: Any) -> None:
    store(io.k, 0, load(io.k, 0) / 2)


def index_by_lanes(io: Any, c: Any) -> None:
    store(io.y, 0, load(io.x, load(io.k, 0)))


def index_by_real(io: Any, c: Any) -> None:
    store(io.y, 0, gather(io.x, load(io.x, 0)))


def race(io: Any, c: Any) -> None:
    scatter(c.c, load(io.k, 0), load(io.x, 0))


def mask_of_numbers(io: Any, c: Any) -> None:
    store_where(io.y, 0, 1.0, load(io.x, 0))


def divide_vector(io: Any, c: Any) -> None:
    store(io.v, 0, load(io.v, 0) / 2.0)


def two_types(io: Any, c: Any) -> None:
    total = Vec3(0.0, 0.0, 0.0)
    for i in range(io.n):
        total = total + load(io.v, i)
    store(io.v, 0, total)


def too_few(io: Any, c: Any) -> None:
    store(io.y, 0, minimum(load(io.x, 0)))


def lane_by_lane(io: Any, c: Any) -> None:
    store(io.y, 0, get_lane(load(io.x, 0), load(io.k, 0)))


def sine_of_integer(io: Any, c: Any) -> None:
    store(io.y, 0, sin(load(io.k, 0)))


def real_in_integers(io: Any, c: Any) -> None:
    store(io.k, 0, load(io.k, 0) + 0.5)


def select_two_types(io: Any, c: Any) -> None:
    store(io.v, 0, select(load(io.x, 0) > 0.0, load(io.v, 0), load(io.x, 0)))


MISTAKES = [
    (branch, "a kernel cannot branch on b1x8: use select, or any_lane"),
    (loop, "a kernel cannot branch on b1x8"),
    (vector_to_scalar, "a buffer of f64x8 cannot hold Vec3"),
    (scalar_to_vector, "a buffer of Vec3 cannot hold <f64x8>"),
    (real_to_integer, "f64x8 to i64x8: use to_int"),
    (write_constant, "a kernel cannot write to a constant"),
    (compare_vectors, "compare their parts"),
    (unknown_part, "Unknown attribute 'q' of type Vec3"),
    (unknown_field, "Unknown attribute 'speed' of type view"),
    (invert_real, "'not' of f64x8"),
    (add_masks, "a truth value is not a number: 'add' of b1x8"),
    (shift_real, "'shl' of real numbers"),
    (divide_integers, "division of i64x8: turn it into a real number first"),
    (index_by_lanes, "an index is a plain integer, not i64x8 .*gather"),
    (index_by_real, "an index is an integer, not f64x8"),
    (race, "lanes would race for the elements of a plain buffer"),
    (mask_of_numbers, "a mask is made of truth values, not <f64x8>"),
    (divide_vector, "unsupported operand type.* 'Vec3'"),
    (two_types, r"Cannot unify Vec3\[f64\] and Vec3\[f64x8\]"),
    (too_few, "missing 1 required positional argument"),
    (lane_by_lane, "the number of a lane is a plain integer, not i64x8"),
    (sine_of_integer, "a real number .* among i64x8"),
    (real_in_integers, "a real number does not fit into integer lanes"),
    (select_two_types, "select between Vec3.* and <f64x8>"),
]


@pytest.mark.parametrize(("function", "message"), MISTAKES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_mistake_in_a_kernel_is_named_with_its_place(function: Callable[..., Any], message: str) -> None:
    with pytest.raises((NumbaError, TypeError), match=message) as caught:
        entry(kernel(function), IO, CONST)[F64X8]
    assert "test_errors.py" in str(caught.value)


def test_lanes_of_two_precisions_do_not_mix() -> None:
    def mixed(a: Any, b: Any) -> None:
        store(a.y, 0, load(a.x, 0) + load(b.x, 0))

    with pytest.raises(NumbaError, match="lanes of different kinds do not mix: f64x8 and f32x8"):
        entry(kernel(mixed), IO, IO)[F64X8, F32X8]


def test_branching_on_plain_numbers_is_allowed() -> None:
    compiled = entry(kernel(branch), IO, CONST)[F64]
    block, constants = IO.block(F64, n=1, x=[2.0], y=1, v=1, k=1), CONST.block(F64, c=1)
    compiled(block.handle, constants.handle)
    assert block.y[0] == 1.0


def test_a_formula_cannot_branch_on_a_traced_scalar() -> None:
    with pytest.raises(TypeError, match="use select"):
        bool(Traced(ScalarType("b1", 8)))


def test_an_entry_takes_handles_only() -> None:
    compiled = entry(kernel(branch), IO, CONST)[F64]
    with pytest.raises(TypeError, match="No matching definition"):
        compiled(1.0, 2.0)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("f64", 1), ("f32", 1), ("f32", 1)),
        (("f64", 1), ("f32", 8), ("f32", 8)),
        (("i32", 1), ("i64", 1), ("i64", 1)),
        (("i64", 1), ("f32", 1), ("f32", 1)),
        (("i64", 1), ("f64", 4), ("f64", 4)),
        (("i64", 1), ("i32", 16), ("i32", 16)),
        (("b1", 8), ("b1", 8), ("b1", 8)),
    ],
)
def test_lanes_decide_over_plain_numbers(a: Any, b: Any, expected: Any) -> None:
    assert join(ScalarType(*a), ScalarType(*b)) == ScalarType(*expected)
    assert join(ScalarType(*b), ScalarType(*a)) == ScalarType(*expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [(("f64", 4), ("f64", 8)), (("f64", 8), ("i64", 8)), (("b1", 1), ("f64", 1)), (("f64", 1), ("i64", 8))],
)
def test_types_that_do_not_mix(a: Any, b: Any) -> None:
    with pytest.raises(TypeError):
        join(ScalarType(*a), ScalarType(*b))
