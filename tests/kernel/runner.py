"""Runs a formula over many samples in every way that a formula can run, so that one test covers them all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F32, F32X8, F32X16, F64, F64X4, F64X8, Count, Int, Real, View, Width, load, store
from poise.kernel.scalars import select, zero
from poise.kernel.trace import formula
from poise.kernel.values import Value

WIDTHS = (F64, F32, F64X4, F64X8, F32X8, F32X16)
LANES = WIDTHS[2:]
_numbers = itertools.count()


@dataclass(frozen=True)
class Mode:
    """One way to run: as plain Python on floats or on NumPy arrays, or compiled at a width."""

    name: str
    width: Width | None
    dtype: Any

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number."""
        return float(np.finfo(self.dtype).eps)

    def round(self, x: Any) -> np.ndarray:
        """Numbers as this mode holds them, in float64 for the reference."""
        return np.asarray(np.asarray(x, self.dtype), np.float64)

    def __str__(self) -> str:
        return self.name


FLOATS = Mode("floats", None, np.float64)
ARRAYS = Mode("arrays", None, np.float64)
ARRAYS32 = Mode("arrays32", None, np.float32)
COMPILED = tuple(Mode(str(w), w, w.dtype) for w in WIDTHS)
MODES = (FLOATS, ARRAYS, ARRAYS32, *COMPILED)


@dataclass(frozen=True)
class Of:
    """Samples of a value type: (n, parts)."""

    cls: type[Value]
    array: np.ndarray


def run(mode: Mode, function: Callable[..., Any], *args: Any) -> Any:
    """Results of a formula for n samples: (n,) or (n, parts), a list of them if it returns a tuple.

    An argument is an array of real numbers, an array of integers, or `Of(cls, array)`. Masks come back as 1 and 0.
    """
    args = tuple(a if isinstance(a, Of) else np.asarray(a) for a in args)
    kinds = [_kind(a) for a in args]
    samples = [_array(a) if k is Int else np.asarray(_array(a), mode.dtype) for a, k in zip(args, kinds, strict=True)]
    with np.errstate(all="ignore"):
        if mode is FLOATS:
            return _run_floats(function, kinds, samples)
        if mode.width is None:
            return _run_arrays(function, kinds, samples)
        return _run_compiled(mode.width, function, kinds, samples)


def _kind(arg: Any) -> Any:
    if isinstance(arg, Of):
        return arg.cls
    return Int if arg.dtype.kind == "i" else Real


def _array(arg: Any) -> np.ndarray:
    return arg.array if isinstance(arg, Of) else arg


def _plain(kind: Any, sample: Any) -> Any:
    """One sample as Python holds it."""
    if kind is Int:
        return int(sample)
    return float(sample) if kind is Real else kind.of(*map(float, sample))


def _flat(result: Any) -> Any:
    """Numbers of one result."""
    return tuple(result.leaves()) if isinstance(result, Value) else result


def _run_floats(function: Callable[..., Any], kinds: list[Any], samples: list[np.ndarray]) -> Any:
    rows = []
    for row in zip(*samples, strict=True):
        result = function(*(_plain(k, s) for k, s in zip(kinds, row, strict=True)))
        rows.append([_flat(r) for r in result] if isinstance(result, tuple) else [_flat(result)])
    columns = [_number_array(list(column)) for column in zip(*rows, strict=True)]
    return columns if isinstance(result, tuple) else columns[0]


def _number_array(column: list[Any]) -> np.ndarray:
    array = np.array(column)
    return array.astype(float) if array.dtype == bool else array


def _run_arrays(function: Callable[..., Any], kinds: list[Any], samples: list[np.ndarray]) -> Any:
    n = len(samples[0])
    result = function(*(s if k in (Int, Real) else k.of(*s.T) for k, s in zip(kinds, samples, strict=True)))

    def one(r: Any) -> np.ndarray:
        if isinstance(r, Value):
            return np.stack([np.broadcast_to(x, n) for x in r.leaves()], axis=1)
        return _number_array(np.broadcast_to(r, n))

    return [one(r) for r in result] if isinstance(result, tuple) else one(result)


def pack(samples: np.ndarray, width: Width) -> np.ndarray:
    """(n,) or (n, parts) samples as the rows of a lane array; the last ones are repeated to fill the lanes."""
    lanes = width.lanes
    if lanes == 1:
        return samples
    n = len(samples)
    padded = np.concatenate([samples, np.repeat(samples[-1:], -n % lanes, axis=0)])
    return np.ascontiguousarray(np.moveaxis(padded.reshape(-1, lanes, *samples.shape[1:]), 1, -1))


def unpack(array: np.ndarray, width: Width, n: int) -> np.ndarray:
    """The inverse of `pack`."""
    if width.lanes == 1:
        return array.copy()
    return np.moveaxis(array, -1, 1).reshape(-1, *array.shape[1:-1])[:n].copy()


def _run_compiled(width: Width, function: Callable[..., Any], kinds: list[Any], samples: list[np.ndarray]) -> Any:
    n = len(samples[0])
    first = function(*(_plain(k, s[0]) for k, s in zip(kinds, samples, strict=True)))
    results = first if isinstance(first, tuple) else (first,)
    outs = [type(r) if isinstance(r, Value) else Int if type(r) is int else Real for r in results]
    fields = {f"a{k}": kind for k, kind in enumerate(kinds)} | {f"o{k}": kind for k, kind in enumerate(outs)}
    view = View("Run", n=Count, **fields)
    compiled = _compile(view, function, len(kinds), results, width)
    packed = [pack(s, width) for s in samples]
    rows = len(packed[0])
    block = view.block(
        width, n=rows, **{f"a{k}": p for k, p in enumerate(packed)}, **{f"o{k}": rows for k in range(len(outs))}
    )
    compiled(block.handle)
    unpacked = [unpack(block.arrays[f"o{k}"], width, n) for k in range(len(outs))]
    return unpacked if isinstance(first, tuple) else unpacked[0]


_compiled: dict[Any, Any] = {}


def _compile(view: View, function: Callable[..., Any], count: int, results: tuple[Any, ...], width: Width) -> Any:
    key = (function, width)
    if key in _compiled:
        return _compiled[key]
    masks = [isinstance(r, bool | np.bool_) for r in results]

    @formula
    def traced(*args: Any) -> Any:
        like = next(x for a in args for x in (a.leaves() if isinstance(a, Value) else [a]) if x.type.is_float)
        result = function(*args)
        out = result if isinstance(result, tuple) else (result,)
        return tuple(select(r, zero(like) + 1.0, zero(like)) if m else r for r, m in zip(out, masks, strict=True))

    lines = ["    for i in range(io.n):", f"        r = traced({', '.join(f'load(io.a{k}, i)' for k in range(count))})"]
    lines += [f"        store(io.o{k}, i, r[{k}])" for k in range(len(results))]
    name = f"run_{next(_numbers)}"
    scope = {"traced": traced, "load": load, "store": store, "__name__": __name__}
    exec("\n".join([f"def {name}(io):", *lines, ""]), scope)
    _compiled[key] = entry(kernel(scope[name]), view)[width]
    return _compiled[key]
