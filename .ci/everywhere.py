"""The ordinary tests as other machines would run them: other code of kernels and NumPy, other BLAS, other seeds.

Each run is the whole suite with some variables of the environment set. Compiled kernels are kept apart by their
target, so that no run sees the code of another.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_AVX2 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3"


@dataclass(frozen=True)
class Run:
    """The suite with some variables set, or unset where they are None."""

    what: str
    variables: dict[str, str | None]
    needs: str = ""
    """A feature of x86 processors without which it cannot run."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    name: str
    passed: int
    failed: int
    seconds: float
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_good(self) -> bool:
        """Whether every test passed, or none could run here."""
        return bool(self.note) or (self.passed > 0 and self.failed == 0)


def _numpy_without(pattern: str) -> str:
    """Features of this processor that NumPy has code for and must not use."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:  # a name of NumPy's own: without it, its code stays that of this processor
        return ""
    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name) and re.match(pattern, name))


def _target(name: str, features: str, numpy_without: str) -> dict[str, str | None]:
    without = {"NPY_DISABLE_CPU_FEATURES": _numpy_without(numpy_without) or None}
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, **without}


def runs() -> dict[str, Run]:
    """Every run by its name."""
    one = dict.fromkeys(THREADS, "1")
    return {
        "native": Run("code for this processor, one BLAS thread", one),
        "avx2": Run("code for AVX2", one | _target("haswell", _AVX2, "X86_V4|AVX512"), "avx2"),
        "generic": Run("code for any x86-64: no fused multiply-adds", one | _target("x86-64", "", ""), "sse2"),
        "blas-haswell": Run("OpenBLAS's code for Haswell", one | {"OPENBLAS_CORETYPE": "Haswell"}, "avx2"),
        "blas-skylakex": Run("OpenBLAS's code for AVX-512", one | {"OPENBLAS_CORETYPE": "SkylakeX"}, "avx512f"),
        "blas-zen": Run("OpenBLAS's code for Zen", one | {"OPENBLAS_CORETYPE": "Zen"}, "avx2"),
        "blas-threads": Run("as many BLAS threads as BLAS likes", dict.fromkeys(THREADS)),
        "seeds-1": Run("every seed of a test moved", one | {"POISE_SEED_OFFSET": "1000"}),
        "seeds-2": Run("and moved once more", one | {"POISE_SEED_OFFSET": "2000"}),
    }


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Names of runs (all, if none is given), and what is left for pytest."""
    known, names = runs(), []
    rest = list(arguments)
    while rest and rest[0] in known:
        names.append(rest.pop(0))
    if rest and not rest[0].startswith("-") and not os.path.exists(rest[0].split("::")[0]):  # noqa: PTH110
        raise SystemExit(f"no run named {rest[0]!r}, and no file; runs: {', '.join(known)}")
    return names or list(known), rest


def _has(feature: str) -> bool:
    if not feature:
        return True
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get(feature))


def run_one(name: str, run: Run, command: list[str]) -> Outcome:
    """One run, its output shown as it comes."""
    if not _has(run.needs):
        return Outcome(name, 0, 0, 0.0, note=f"needs {run.needs}: left out")
    variables = os.environ | {key: value for key, value in run.variables.items() if value is not None}
    for key in (key for key, value in run.variables.items() if value is None):
        variables.pop(key, None)
    start, counts, failures = time.perf_counter(), dict[str, int](), list[str]()
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, errors="replace", env=variables
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := re.match(r"(?:FAILED|ERROR) (\S+)", line):
                failures.append(found[1])
            if re.search(r"\d+ \w+.* in [\d.]+s", line):  # the last of such lines is pytest's own summary
                counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|errors?)\b", line)}
    wrong = sum(count for word, count in counts.items() if word != "passed")
    if process.returncode and not wrong:
        wrong = 1  # it broke off
    return Outcome(name, counts.get("passed", 0), wrong, time.perf_counter() - start, tuple(failures))


def table(outcomes: list[Outcome]) -> str:
    """What came of all runs, and which tests failed in which."""
    known, lines = runs(), [f"{'run':<14} {'passed':>7} {'failed':>7} {'time':>9}"]
    for one in outcomes:
        numbers = one.note or f"{one.passed:>7} {one.failed:>7} {one.seconds:>7.0f} s  {known[one.name].what}"
        lines.append(f"{one.name:<14} {numbers}")
    for failure in sorted({failure for one in outcomes for failure in one.failures}):
        lines.append(f"{failure}: {', '.join(one.name for one in outcomes if failure in one.failures)}")
    return "\n".join(lines)


def everywhere(arguments: list[str], pytest: list[str]) -> int:
    """Run the suite in the ways that are named; 0 when all are green."""
    names, rest = split(arguments)
    outcomes = []
    for name in names:
        print(f"── {name}: {runs()[name].what}", flush=True)
        outcomes.append(run_one(name, runs()[name], [*pytest, *rest]))
    print(table(outcomes), flush=True)
    return int(not all(one.is_good for one in outcomes))
