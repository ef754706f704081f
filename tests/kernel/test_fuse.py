"""Fused multiply-adds: one rule at every width and on every target. Exact results are fractions, rounded once."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from llvmlite import ir

from kernel.runner import WIDTHS, pack, unpack
from poise.kernel.fuse import fused_multiply_adds, has_fma
from poise.kernel.jit import cpu, entry, kernel
from poise.kernel.memory import F32, F64, Count, Real, View, Width, load, store
from poise.kernel.quat import exp_rotation, log_rotation, normalize
from poise.kernel.scalars import atan2, get_lane, set_lane, sincos
from poise.kernel.trace import formula
from poise.kernel.vec import Mat3, Vec3, cross, dot

FUSING = has_fma(cpu()["name"], cpu()["features"])
SHARED = View("FuseShared", constant=True, k=Real)
IO = View("FuseIO", n=Count, a=Real, b=Real, c=Real, d=Real, out=Real, v=Vec3, w=Vec3)
X86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors always have one")
TESTS = Path(__file__).resolve().parents[1]


@kernel
def added(io, shared):
    for i in range(io.n):
        store(io.out, i, load(io.c, i) + load(io.a, i) * load(io.b, i))


@kernel
def added_to(io, shared):
    for i in range(io.n):
        store(io.out, i, load(io.a, i) * load(io.b, i) + load(io.c, i))


@kernel
def subtracted(io, shared):
    for i in range(io.n):
        store(io.out, i, load(io.c, i) - load(io.a, i) * load(io.b, i))


@kernel
def subtracted_from(io, shared):
    for i in range(io.n):
        store(io.out, i, load(io.a, i) * load(io.b, i) - load(io.c, i))


@kernel
def two_products(io, shared):
    for i in range(io.n):
        store(io.out, i, load(io.a, i) * load(io.b, i) + load(io.c, i) * load(io.d, i))


@kernel
def accumulated(io, shared):
    """A sum in a variable that lives on, of products that are used twice."""
    for i in range(io.n):
        total = load(io.c, i)
        for _ in range(3):
            product = load(io.a, i) * load(io.b, i)
            total += product
            store(io.d, i, product)
        store(io.out, i, total)


@formula
def _affine(v: Any, s: Any, w: Any) -> Any:
    return v * s + w


@kernel
def of_values(io, shared):
    for i in range(io.n):
        v = load(io.v, i) * load(io.a, i) + load(io.w, i)
        store(io.v, i, _affine(v, load(io.b, i), load(io.w, i)))
        store(io.out, i, v.x)


@kernel
def of_plain_numbers(io, shared):
    """The product of two numbers that all lanes share, added to lanes."""
    for i in range(io.n):
        store(io.out, i, load(io.c, i) + load(shared.k, 0) * load(shared.k, 1))


@kernel
def of_a_lane(io, shared):
    """Lanes are taken apart between product and sum."""
    for i in range(io.n):
        product = load(io.a, i) * load(io.b, i)
        changed = set_lane(product, 0, get_lane(product, 0) + get_lane(load(io.c, i), 0))
        store(io.out, i, changed + load(io.d, i))


@kernel
def many(io, shared):
    for i in range(io.n):
        a, b = load(io.a, i), load(io.b, i)
        v, w = load(io.v, i), load(io.w, i)
        s, c = sincos(a)
        turn = exp_rotation(cross(v, w) * b - w)
        M = Mat3(s, c, a, b, -s, -c, a * b, s * c, b - a * c) @ Mat3(a, v.x, v.y, w.x, b, w.z, s, c, a)
        v = M @ log_rotation(normalize(turn)) + v * dot(v, w) - cross(M @ v, w)
        store(io.v, i, v)
        store(io.out, i, atan2(dot(v, v), 1.0 - a * b) * (1.0 / (2.0 + v.x * v.x)))


KERNELS = {
    one.py_func.__name__: entry(one, IO, SHARED)
    for one in (added, added_to, subtracted, subtracted_from, two_products, accumulated, of_values, of_plain_numbers)
}
MORE = {one.py_func.__name__: entry(one, IO, SHARED) for one in (of_a_lane, many)}
N = 48


def numbers(seed: int, dtype: Any) -> dict[str, np.ndarray]:
    """Numbers whose sums cancel down to the rounding of their products."""
    rng = np.random.default_rng(seed)
    given = {name: rng.normal(size=N).astype(dtype) for name in "abcd"}
    half = N // 2
    given["c"][:half] = -(given["a"] * given["b"])[:half]
    given |= {name: rng.normal(size=(N, 3)).astype(dtype) for name in "vw"}
    return given | {"k": rng.normal(size=2).astype(dtype)}


def results(run: Any, width: Width, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    packed = {name: pack(given[name], width) for name in "abcdvw"}
    rows = len(packed["a"])
    block, shared = IO.block(width, n=rows, out=rows, **packed), SHARED.block(width, k=given["k"])
    run[width](block.handle, shared.handle)
    return {name: unpack(block.arrays[name], width, N) for name in ("out", "d", "v")}


def exact(name: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """What the rule says, each operation rounded once."""
    dtype = given["a"].dtype.type

    def fma(x: Any, y: Any, z: Any) -> Any:
        if not FUSING:
            return x * y + z
        return round_to(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), dtype)

    a, b, c, d, k = (given[n] for n in "abcdk")
    of = {
        "added": lambda i: fma(a[i], b[i], c[i]),
        "added_to": lambda i: fma(a[i], b[i], c[i]),
        "subtracted": lambda i: fma(-a[i], b[i], c[i]),
        "subtracted_from": lambda i: fma(a[i], b[i], -c[i]),
        "two_products": lambda i: fma(c[i], d[i], a[i] * b[i]),
        "accumulated": lambda i: fma(a[i], b[i], fma(a[i], b[i], fma(a[i], b[i], c[i]))),
        "of_values": lambda i: fma(given["v"][i, 0], a[i], given["w"][i, 0]),
        "of_plain_numbers": lambda i: fma(k[0], k[1], c[i]),
    }
    return np.array([of[name](i) for i in range(N)], dtype)


def round_to(x: Fraction, dtype: Any) -> Any:
    """The nearest number of a type: a fraction over a power of two may be rounded by float(), to 53 bits, at once."""
    if dtype is np.float64 or x == 0:
        return dtype(float(x))
    near = dtype(float(x))  # twice rounded: the neighbours may be nearer
    around = (np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf)))
    return min(around, key=lambda one: (abs(Fraction(float(one)) - x), int(one.view(np.uint32)) & 1))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_products_that_are_added_are_rounded_once_at_every_width(name: str, width: Width) -> None:
    given = numbers(3, width.dtype)
    np.testing.assert_array_equal(results(KERNELS[name], width, given)["out"], exact(name, given))


@pytest.mark.parametrize("width", WIDTHS[2:], ids=str)
def test_lanes_have_the_bits_of_one_number_whatever_is_computed(width: Width) -> None:
    given = numbers(5, width.dtype)
    one = results(MORE["many"], F32 if width.dtype == np.float32 else F64, given)
    for name, value in results(MORE["many"], width, given).items():
        np.testing.assert_array_equal(value, one[name], err_msg=name)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_lanes_that_are_taken_apart_are_rounded_before(width: Width) -> None:
    given = numbers(7, width.dtype)
    a, b, c, d = (given[name] for name in "abcd")
    changed = a * b
    changed[:: width.lanes] += c[:: width.lanes]
    np.testing.assert_array_equal(results(MORE["of_a_lane"], width, given)["out"][:: width.lanes],
                                  (changed + d)[:: width.lanes])  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_the_compiler_may_not_fuse(width: Width) -> None:
    """What is fused is asked for; and no library is called for it."""
    code = "".join(MORE["many"][width].inspect_llvm().values())
    assert "contract" not in code
    assert ("llvm.fma" in code) == FUSING
    assert not re.search(r"\b_?fmaf?\b", "".join(MORE["many"][width].inspect_asm().values()))


def test_the_builder_of_llvm_is_left_as_it_was() -> None:
    usual = ir.IRBuilder.fadd, ir.IRBuilder.fsub
    with contextlib.suppress(ZeroDivisionError), fused_multiply_adds():
        assert (ir.IRBuilder.fadd, ir.IRBuilder.fsub) != usual
        raise ZeroDivisionError
    assert (ir.IRBuilder.fadd, ir.IRBuilder.fsub) == usual


@X86
def test_targets_are_known_by_what_they_have() -> None:
    assert has_fma("haswell", "")
    assert has_fma("x86-64", "+fma")
    assert not has_fma("x86-64", "")
    assert not has_fma("haswell", "-fma")


@X86
@pytest.mark.parametrize("target", ["haswell", "x86-64"])
def test_other_targets_keep_the_rule_too(target: str) -> None:
    """AVX2, with which lanes of 512 bits are two halves, and plain x86-64, which cannot fuse."""
    if target == "haswell" and not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    names = "accumulated or (whatever_is_computed and (f64x8 or f32x16))"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, str(Path(__file__))]
    given = os.environ | {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=given, cwd=TESTS.parent, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
