"""Buffers, views and blocks: what reaches memory, what does not, and what is refused before it could."""

from __future__ import annotations

import copy
import gc
import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest

from kernel.runner import LANES, WIDTHS
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import (
    F32X8,
    F64,
    F64X8,
    At,
    Block,
    Count,
    Index,
    Int,
    Real,
    Shared,
    View,
    Width,
    aligned,
    gather,
    gather_where,
    lane_array,
    load,
    scatter,
    scatter_where,
    store,
    store_where,
)
from poise.kernel.scalars import all_lanes, any_lane, get_lane, select, set_lane, to_int
from poise.kernel.spatial import Inertia, Motion
from poise.kernel.vec import Vec3

IO = View("IO", n=Count, x=Real, y=Real, v=Vec3, w=Vec3, k=Int, pick=Index)
MODEL = View("Model", constant=True, count=Count, mass=Real, axis=Vec3, body=Inertia, parent=Index)
ROWS = 6
WILD = 2**40  # an address there belongs to nobody


@kernel
def copy_all(io, model):
    for i in range(io.n):
        j = load(io.pick, i)
        store(io.y, i, load(io.x, j) * load(model.mass, i))
        store(io.w, i, load(io.v, j) + load(model.axis, load(model.parent, i)))
        store(io.k, i, load(io.k, i) + j)
        store(io.pick, i, j + model.count)


@kernel
def masked(io):
    for i in range(io.n):
        x = load(io.x, i)
        on = x > 0.0
        store_where(io.y, i, x * 2.0, on)
        store_where(io.w, i, load(io.v, i), on)
        store_where(io.pick, i, 7, i > 3)


@kernel
def masked_by_topology(io):
    for i in range(io.n):
        store_where(io.y, i, load(io.x, i), i == 1)


@kernel
def gathered(io, model):
    for i in range(io.n):
        k, x = load(io.k, i), load(io.x, i)
        on = x > 0.0
        store(io.y, i, gather_where(io.x, k, on) + gather_where(model.mass, k, on))
        store(io.w, i, gather_where(io.v, k, on))


@kernel
def gathered_all(io, model):
    for i in range(io.n):
        k = load(io.k, i)
        store(io.y, i, gather(io.x, k) * gather(model.mass, k))
        store(io.w, i, gather(io.v, k) - gather(model.axis, k))


@kernel
def scattered(io):
    for i in range(io.n):
        k, x = load(io.k, i), load(io.x, i)
        scatter_where(io.y, k, x, x > 0.0)
        scatter_where(io.w, k, load(io.v, i), x > 0.0)


@kernel
def scattered_all(io):
    for i in range(io.n):
        scatter(io.y, load(io.k, i), load(io.x, i))
        scatter(io.w, load(io.k, i), load(io.v, i))


@kernel
def lane_by_lane(io, lane):
    for i in range(io.n):
        x = load(io.x, i)
        store(io.y, i, set_lane(x, lane, get_lane(x, lane) + 1.0))
        v = load(io.v, i)
        store(io.w, i, set_lane(v, lane, get_lane(v, lane) * 2.0))
        store(io.k, i, set_lane(load(io.k, i), lane, 5))


@kernel
def counting(io):
    total = 0.0
    steps = 0
    x = load(io.x, 0)
    while any_lane(x < 10.0):
        x = select(x < 10.0, x + 1.0, x)
        steps += 1
    if all_lanes(x >= 10.0):
        total = total + x
    store(io.y, 0, total)
    store(io.pick, 0, steps)
    store(io.k, 0, to_int(total))


COPY = entry(copy_all, IO, MODEL)
MASKED = entry(masked, IO)
TOPOLOGY = entry(masked_by_topology, IO)
GATHERED = entry(gathered, IO, MODEL)
GATHERED_ALL = entry(gathered_all, IO, MODEL)
SCATTERED = entry(scattered, IO)
SCATTERED_ALL = entry(scattered_all, IO)
LANE = entry(lane_by_lane, IO, extra=("int64",))
COUNTING = entry(counting, IO)


def _lanes(array: np.ndarray, width: Width) -> np.ndarray:
    """With a last axis for lanes, even if there is one only."""
    return array if width.lanes > 1 else array[..., None]


def _block(width: Width) -> object:
    block = IO.block(width, n=ROWS, x=ROWS, y=ROWS, v=ROWS, w=ROWS, k=ROWS, pick=np.arange(ROWS)[::-1])
    rng = np.random.default_rng(11)
    for name in ("x", "y", "v", "w"):
        block.arrays[name][...] = rng.normal(size=block.arrays[name].shape)
    block.k[...] = np.stack([rng.permutation(ROWS) for _ in range(width.lanes)], axis=1).reshape(block.k.shape)
    return block


def _model(width: Width) -> object:
    rng = np.random.default_rng(12)
    return MODEL.block(
        width, count=40, mass=rng.normal(size=ROWS), axis=rng.normal(size=(ROWS, 3)), body=2, parent=[0, 0, 1, 2, 1, 5]
    )


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_plain_loads_and_stores(width: Width) -> None:
    block, model = _block(width), _model(width)
    k, pick = block.k.copy(), block.pick.copy()
    COPY[width](block.handle, model.handle)
    x, v = _lanes(block.x, width)[pick], _lanes(block.v, width)[pick]
    assert np.array_equal(_lanes(block.y, width), x * model.mass[:, None])
    assert np.array_equal(_lanes(block.w, width), v + model.axis[model.parent][:, :, None])
    assert np.array_equal(_lanes(block.k, width), _lanes(k, width) + pick[:, None])
    assert np.array_equal(block.pick, pick + 40)
    assert model.mass.shape == (ROWS,)  # constants are plain at every width
    assert model.mass.dtype == width.dtype
    assert block.k.dtype.itemsize == block.x.dtype.itemsize


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_masked_stores_write_where_the_mask_is_set(width: Width) -> None:
    block = _block(width)
    before = {name: _lanes(block.arrays[name].copy(), width) for name in "xyvw"}
    pick = block.pick.copy()
    MASKED[width](block.handle)
    on = before["x"] > 0
    assert on.any()
    assert not on.all()
    assert np.array_equal(_lanes(block.y, width), np.where(on, before["x"] * 2, before["y"]))
    assert np.array_equal(_lanes(block.w, width), np.where(on[:, None], before["v"], before["w"]))
    assert np.array_equal(block.pick, np.where(np.arange(ROWS) > 3, 7, pick))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_plain_mask_holds_for_every_lane(width: Width) -> None:
    block = _block(width)
    y = block.y.copy()
    TOPOLOGY[width](block.handle)
    y[1] = block.x[1]
    assert np.array_equal(block.y, y)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_gather_reads_each_lane_from_its_own_element(width: Width) -> None:
    block, model = _block(width), _model(width)
    GATHERED_ALL[width](block.handle, model.handle)
    k, lane = _lanes(block.k, width), np.arange(width.lanes)
    x, v = _lanes(block.x, width), _lanes(block.v, width)
    assert np.array_equal(_lanes(block.y, width), x[k, lane] * model.mass[k])
    right = np.moveaxis(v[k, :, lane], -1, 1) - np.moveaxis(model.axis[k], -1, 1)
    assert np.array_equal(_lanes(block.w, width), right)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_masked_gather_touches_no_memory_where_the_mask_is_not_set(width: Width) -> None:
    block, model = _block(width), _model(width)
    off = ~(_lanes(block.x, width) > 0)
    k = _lanes(block.k, width)
    safe = np.where(off, 0, k)
    k[off] = np.iinfo(k.dtype).max // 64 if width.elem == "f32" else WILD
    GATHERED[width](block.handle, model.handle)
    lane = np.arange(width.lanes)
    x, v = _lanes(block.x, width), _lanes(block.v, width)
    assert np.array_equal(_lanes(block.y, width), np.where(off, 0, x[safe, lane] + model.mass[safe]))
    right = np.where(off[:, None], 0, np.moveaxis(v[safe, :, lane], -1, 1))
    assert np.array_equal(_lanes(block.w, width), right)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_scatter_writes_each_lane_to_its_own_element(width: Width) -> None:
    block = _block(width)
    SCATTERED_ALL[width](block.handle)
    k, lane = _lanes(block.k, width), np.arange(width.lanes)
    assert np.array_equal(_lanes(block.y, width)[k, lane], _lanes(block.x, width))
    assert np.array_equal(np.moveaxis(_lanes(block.w, width)[k, :, lane], -1, 1), _lanes(block.v, width))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_masked_scatter_touches_no_memory_where_the_mask_is_not_set(width: Width) -> None:
    block = _block(width)
    y, w = _lanes(block.y.copy(), width), _lanes(block.w.copy(), width)
    x, v, k = _lanes(block.x, width), _lanes(block.v, width), _lanes(block.k, width)
    for i in range(ROWS):
        for lane in range(width.lanes):
            if x[i, lane] > 0:
                y[k[i, lane], lane], w[k[i, lane], :, lane] = x[i, lane], v[i, :, lane]
    off = ~(x > 0)
    k[off] = np.iinfo(k.dtype).max // 64 if width.elem == "f32" else WILD
    SCATTERED[width](block.handle)
    assert np.array_equal(_lanes(block.y, width), y)
    assert np.array_equal(_lanes(block.w, width), w)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_lane_chosen_at_run_time(width: Width) -> None:
    for lane in range(width.lanes):
        block = _block(width)
        x, v, k = (_lanes(block.arrays[name].copy(), width) for name in ("x", "v", "k"))
        LANE[width](block.handle, lane)
        x[:, lane] += width.dtype(1)
        v[:, :, lane] *= 2
        k[:, lane] = 5
        assert np.array_equal(_lanes(block.y, width), x)
        assert np.array_equal(_lanes(block.w, width), v)
        assert np.array_equal(_lanes(block.k, width), k)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_loops_end_when_every_lane_is_done_and_finished_lanes_stand_still(width: Width) -> None:
    block = _block(width)
    _lanes(block.x, width)[0] = np.arange(width.lanes) + 0.5
    COUNTING[width](block.handle)
    assert np.array_equal(_lanes(block.y, width)[0], np.maximum(10.5, np.arange(width.lanes) + 0.5))
    assert block.pick[0] == 10
    assert np.array_equal(_lanes(block.k, width)[0], np.maximum(10, np.arange(width.lanes)))


@pytest.mark.parametrize(
    ("function", "compiled"),
    [
        (copy_all, COPY),
        (masked, MASKED),
        (gathered, GATHERED),
        (gathered_all, GATHERED_ALL),
        (scattered, SCATTERED),
        (scattered_all, SCATTERED_ALL),
        (masked_by_topology, TOPOLOGY),
        (counting, COUNTING),
    ],
    ids=lambda x: getattr(getattr(x, "py_func", None), "__name__", ""),
)
def test_a_kernel_as_plain_python_does_what_the_compiled_one_does(function: object, compiled: object) -> None:
    first, second, model = _block(F64), _block(F64), _model(F64)
    more = [model] if len(compiled.views) > 1 else []
    compiled[F64](first.handle, *(m.handle for m in more))
    function.py_func(second.plain(), *(m.plain() for m in more))
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name


def test_arrays_are_aligned_and_laid_out_as_promised() -> None:
    for width in WIDTHS:
        array = lane_array(5, width, 3)
        assert array.ctypes.data % 64 == 0
        assert array.shape == ((5, 3) if width.lanes == 1 else (5, 3, width.lanes))
        assert lane_array(5, width).shape == ((5,) if width.lanes == 1 else (5, width.lanes))
        assert not array.any()
    assert aligned((0, 3), np.float32).shape == (0, 3)
    with pytest.raises(ValueError, match="lengths are 0 or more"):
        aligned((-1,), np.float64)


EDGE = View("Edge", n=Count, x=Vec3, y=Vec3)


@kernel
def look_first(io):
    first = load(io.x, 0)
    for i in range(io.n):
        store(io.y, i, first)
    store(io.y, 0, first)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_element_0_of_an_empty_field_is_nought_and_nobody_elses(width: Width) -> None:
    """A kernel may look at (and touch) element 0 before it counts: that reaches the block's own memory."""
    run, parts = entry(look_first, EDGE)[width], 3
    for given in (0, np.zeros((0, 3)), Shared(lane_array(0, width, parts))):
        block = EDGE.block(width, n=0, x=given, y=1)
        block.y[...] = 1.0
        run(block.handle)
        assert not block.y.any()
        assert len(block.x) == 0
        address, base = int(block.handle[1]), block.x
        while base.base is not None:
            base = base.base
        start = base.ctypes.data
        assert address % 64 == 0
        assert start <= address
        assert address + parts * width.lanes * np.dtype(width.dtype).itemsize <= start + base.nbytes


@pytest.mark.parametrize(
    ("elem", "lanes", "message"),
    [("f64", 16, "16 lanes of f64"), ("f32", 3, "3 lanes of f32"), ("f64", 0, "0 lanes"), ("i32", 4, "f64 or f32")],
)
def test_widths_that_memory_is_not_aligned_for_are_refused(elem: str, lanes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Width(elem, lanes)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_blocks_are_not_copied_with_the_addresses_of_others(duplicate: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"a block \(IO\) is memory of one process"):
        duplicate(_block(F64))


@pytest.mark.parametrize("width", LANES, ids=str)
def test_numbers_shared_by_lanes_are_repeated(width: Width) -> None:
    block = View("V", m=Motion, x=Real).block(width, m=np.arange(12).reshape(2, 6), x=[1.0, 2.0])
    assert np.array_equal(block.m, np.repeat(np.arange(12.0).reshape(2, 6, 1), width.lanes, axis=2))
    assert np.array_equal(block.x, np.repeat([[1.0], [2.0]], width.lanes, axis=1))


def test_shared_arrays_are_used_in_place() -> None:
    array = lane_array(4, F64X8, 3)
    block = View("V", v=Vec3).block(F64X8, v=Shared(array))
    assert block.v is array
    assert block.handle[0] == array.ctypes.data


def _off_by_one() -> np.ndarray:
    return aligned((33,), np.float64)[1:].reshape(4, 8)


def _read_only() -> np.ndarray:
    array = aligned((4, 8), np.float64)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (aligned((4, 8), np.float32), "of another type"),
        (aligned((4, 4), np.float64), "of another shape"),
        (aligned((4,), np.float64), "of another shape"),
        (aligned((), np.float64), "of another shape"),
        (aligned((8, 8), np.float64)[::2], "not contiguous"),
        (_off_by_one(), "not aligned to 64 bytes"),
        (_read_only(), "read-only"),
    ],
    ids=["dtype", "lanes", "plain", "0-d", "strided", "unaligned", "read-only"],
)
def test_arrays_that_kernels_would_misread_are_refused(array: np.ndarray, fault: str) -> None:
    with pytest.raises(TypeError, match=rf"V\.x: .* is {fault}; it should be float64\(n, 8\)"):
        View("V", x=Real).block(F64X8, x=Shared(array))


def test_constants_may_be_read_only() -> None:
    array = aligned((4,), np.float64)
    array.flags.writeable = False
    assert View("C", constant=True, x=Real).block(F64X8, x=Shared(array)).x is array


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 1, "v": 2}, "fields ['i'] are missing or unknown"),
        ({"n": 1, "v": 2, "i": 2, "u": 2}, "fields ['u'] are missing or unknown"),
        ({"n": 1.5, "v": 2, "i": 2}, "'float' object cannot be interpreted as an integer"),
        ({"n": 1, "v": np.zeros((2, 4)), "i": 2}, "V.v: float64(2, 4) does not fit float64(n, 3)"),
        ({"n": 1, "v": np.zeros((2, 3)), "i": [0.5, 1.5]}, "V.i: float64(2,) does not fit int32(n)"),
        ({"n": 1, "v": 1.0, "i": 2}, "V.v: float64() does not fit float64(n, 3)"),
        ({"n": 1, "v": ["a", "b"], "i": 2}, "does not fit float64(n, 3)"),
    ],
    ids=["missing", "unknown", "count", "shape", "kind", "scalar", "text"],
)
def test_what_does_not_fit_a_view_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        View("V", n=Count, v=Vec3, i=Index).block(F64, **given)


def test_lengths_may_be_numpy_integers_and_unknown_fields_are_named() -> None:
    block = View("V", x=Real).block(F32X8, x=np.int64(3))
    assert block.x.shape == (3, 8)
    with pytest.raises(AttributeError, match="speed"):
        block.speed  # noqa: B018


def test_a_handle_keeps_its_arrays_alive() -> None:
    block = _block(F64)
    handle, x = block.handle, block.x.copy()
    y = block.arrays["y"]
    del block
    gc.collect()
    junk = [np.full(64, np.nan) for _ in range(2000)]
    TOPOLOGY[F64](handle)
    assert y[1] == x[1]
    assert type(handle) is np.ndarray
    del junk


def test_views_of_one_name_are_told_apart() -> None:
    first = View("Twin", a=Real, b=Real)
    second = View("Twin", b=Real, a=Real)

    @kernel
    def write(io):
        store(io.a, 0, 1.0)
        store(io.b, 0, 2.0)

    for view in (first, second):
        block = view.block(F64, a=1, b=1)
        entry(write, view)[F64](block.handle)
        assert (block.a[0], block.b[0]) == (1.0, 2.0)


OTHER = View("Other", n=Count, x=Real)


@kernel
def count_up(t):
    for i in range(t.n):
        store(t.x, i, load(t.x, i) + 1.0)


def test_a_handle_of_another_view_or_width_is_refused() -> None:
    run = entry(count_up, OTHER)[F64]
    right = OTHER.block(F64, n=2, x=2)
    run(right.handle)
    assert right.x.tolist() == [1.0, 1.0]
    for wrong in (OTHER.block(F64X8, n=2, x=2), View("Other", n=Count, y=Real).block(F64, n=2, y=2)):
        with pytest.raises(TypeError, match="handle 0 is not of view Other at f64"):
            run(wrong.handle)
    with pytest.raises(TypeError, match="handle 0"):
        run(right.handle[:-1].copy())


def test_a_kernel_that_branches_says_that_it_runs_one_world_at_a_time() -> None:
    run = entry(count_up, OTHER, lanes=False)
    block = OTHER.block(F64, n=1, x=1)
    run[F64](block.handle)
    assert block.x.tolist() == [1.0]
    with pytest.raises(TypeError, match="count_up branches on its numbers: it runs one world at a time, not f64x8"):
        run[F64X8]


def test_arrays_are_attributes_of_blocks_unless_something_else_has_their_name() -> None:
    view = View("Named", x=Real, plain=Real, view=Real, handle=Real)
    block = view.block(F64, x=2, plain=3, view=4, handle=5)
    assert block.x is block.arrays["x"]
    assert callable(block.plain)
    assert block.view is view
    assert block.handle.dtype == np.int64
    assert [len(block.arrays[name]) for name in ("x", "plain", "view", "handle")] == [2, 3, 4, 5]
    with pytest.raises(AttributeError, match="y"):
        _ = block.y


# ---- views in views --------------------------------------------------------------------------------------------------

PART = View("Part", n=Count, x=Real, v=Vec3)
TIMES = View("Times", time=Real)
FRICTION = View("Friction", constant=True, varied=("mu",), mu=Real)
WHOLE = View("Whole", part=PART, twin=PART, times=At(TIMES, F64), total=Real)
DEEP = View("Deep", whole=WHOLE)


@kernel
def add_parts(data):
    for i in range(data.part.n):
        store(data.twin.x, i, load(data.part.x, i) + load(data.twin.x, i))
        store(data.twin.v, i, load(data.part.v, i) * load(data.total, 0))
    store(data.times.time, 0, load(data.times.time, 0) + 0.25)


@kernel
def add_deep(deep):
    add_parts(deep.whole)
    whole = deep.whole
    part = whole.part
    store(whole.total, 0, load(part.x, 0))


ADD_PARTS, ADD_DEEP = entry(add_parts, WHOLE), entry(add_deep, DEEP)


def _whole(width: Width) -> Block:
    part = PART.block(width, n=2, x=2, v=2)
    twin = PART.block(width, n=2, x=2, v=2)
    whole = WHOLE.block(width, part=part, twin=twin, times=TIMES.block(F64, time=1), total=1)
    part.x[...], twin.x[...], part.v[...], whole.total[...] = 1.0, 2.0, 3.0, 4.0
    return whole


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_kernels_reach_views_in_views(width: Width) -> None:
    whole = _whole(width)
    ADD_PARTS[width](whole.handle)
    assert (whole.twin.x == 3.0).all()
    assert (whole.twin.v == 12.0).all()
    assert whole.times.time.tolist() == [0.25]
    ADD_DEEP[width](DEEP.block(width, whole=whole).handle)
    assert (whole.twin.x == 4.0).all()
    assert (whole.total == 1.0).all()
    assert whole.times.time.tolist() == [0.5]


def test_views_in_views_run_as_plain_python() -> None:
    whole = _whole(F64)
    add_deep.py_func.__globals__["add_parts"].py_func(whole.plain())
    assert whole.twin.x.tolist() == [3.0, 3.0]
    assert whole.twin.v.tolist() == [[12.0] * 3] * 2


def test_a_handle_keeps_the_blocks_behind_it_alive() -> None:
    whole = _whole(F64)
    handle, x, time = whole.handle, whole.twin.x, whole.times.time
    del whole
    gc.collect()
    junk = [np.full(64, np.nan) for _ in range(2000)]
    ADD_PARTS[F64](handle)
    assert (x.tolist(), time.tolist()) == ([3.0, 3.0], [0.25])
    del junk


def test_a_block_that_does_not_fit_is_not_nested() -> None:
    good = {"twin": PART.block(F64, n=0, x=0, v=0), "times": TIMES.block(F64, time=1), "total": 1}
    wrong = {
        "Whole.part: a block of view Part at f64x8 is not one of view Part at f64": PART.block(F64X8, n=0, x=0, v=0),
        "Whole.part: a block of view Times at f64 is not one of view Part at f64": TIMES.block(F64, time=1),
        "Whole.part: ndarray is not a block of view Part": np.zeros(3),
    }
    for message, part in wrong.items():
        with pytest.raises(TypeError, match=re.escape(message)):
            WHOLE.block(F64, part=part, **good)
    other = View("Part", n=Count, v=Vec3, x=Real).block(F64, n=0, x=0, v=0)
    with pytest.raises(TypeError, match="is not one of view Part"):
        WHOLE.block(F64, part=other, **good)


def test_handles_of_views_whose_nested_views_differ_are_refused() -> None:
    def view(width: Width, other: View) -> View:
        return View("Outer", times=At(TIMES, width), other=other)

    @kernel
    def tick(outer):
        store(outer.times.time, 0, load(outer.times.time, 0) * 0.0 + 1.0)

    plain = View("Inner", x=Real)
    outer = view(F64, plain)
    run = entry(tick, outer)[F64]
    run(outer.block(F64, times=TIMES.block(F64, time=1), other=plain.block(F64, x=1)).handle)
    wide, twin = view(F64X8, plain), View("Inner", y=Real)
    blocks = (
        wide.block(F64, times=TIMES.block(F64X8, time=1), other=plain.block(F64, x=1)),
        view(F64, twin).block(F64, times=TIMES.block(F64, time=1), other=twin.block(F64, y=1)),
    )
    for block in blocks:
        with pytest.raises(TypeError, match="handle 0 is not of view Outer at f64"):
            run(block.handle)
    assert entry(tick, wide)[F64] is not run
    entry(tick, wide)[F64](blocks[0].handle)
    assert (blocks[0].times.time == 1.0).all()


def test_what_varies_in_a_nested_view_varies_in_the_outer_one() -> None:
    outer = View("Outer", friction=FRICTION, part=PART)
    varied = Width("f32", 8, varied=True)
    assert (outer.at(varied), PART.at(varied), WHOLE.at(varied)) == (varied, F32X8, F32X8)

    @kernel
    def grip(outer):
        store(outer.part.x, 0, load(outer.friction.mu, 0) * 2.0)

    run = entry(grip, outer)
    for width, mu in ((F32X8, np.ones(1)), (varied, np.arange(8.0).reshape(1, 8))):
        part = PART.block(width, n=1, x=1, v=0)
        run[width](outer.block(width, friction=FRICTION.block(width, mu=mu), part=part).handle)
        assert (part.x == 2.0 * mu.reshape(1, -1)).all()
    assert run[varied] is not run[F32X8]


def test_names_that_blocks_use_themselves_lie_among_their_blocks() -> None:
    view = View("Named", plain=TIMES, handle=TIMES)
    block = view.block(F64, plain=TIMES.block(F64, time=1), handle=TIMES.block(F64, time=2))
    assert callable(block.plain)
    assert [len(block.blocks[name].time) for name in ("plain", "handle")] == [1, 2]
