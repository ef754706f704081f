"""Compilation: kernels, the entries through which Python calls them, and the cache that never lends stale code.

Compiled entries are kept on disk in a folder whose name is a hash of every source file of Poise that can reach a
kernel, of the versions of Numba, llvmlite and Python, and of the CPU: when any of them changes, the folder is another.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core import caching
from numba.extending import intrinsic

from poise.kernel import bridge, quat, scalars, spatial, vec  # noqa: F401  (bridge teaches Numba the others)
from poise.kernel.memory import View, Width
from poise.kernel.trace import FLAGS

_OPTIONS: dict[str, Any] = {"fastmath": set(FLAGS), "error_model": "numpy", "nogil": True}
_KERNEL_PACKAGES = ("kernel", "dynamics", "collision", "solve", "constraints", "formulations", "control", "view")


def kernel(function: Callable[..., Any]) -> Any:
    """Declare a function that loops over memory. Its plain Python form stays at `.py_func`."""
    return njit(function, no_cpython_wrapper=True, **_OPTIONS)


# ---- cache -----------------------------------------------------------------------------------------------------------


def cpu() -> dict[str, Any]:
    """The CPU that kernels are compiled for: LLVM's name, its features, bits of its widest registers."""
    name = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    if numba.config.CPU_FEATURES is not None:
        features = numba.config.CPU_FEATURES
    else:
        features = llvm.get_host_cpu_features().flatten()
    has = set(features.split(","))
    bits = 512 if "+avx512f" in has else 256 if "+avx" in has else 128
    return {"name": name, "features": features, "simd_bits": bits}


@functools.cache
def _source_digest() -> str:
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for package in _KERNEL_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    digest.update((root / "model" / "joints.py").read_bytes())
    return digest.hexdigest()


def cache_key() -> str:
    """Name of the cache folder: everything that compiled code depends on."""
    machine = cpu()
    versions = (numba.__version__, llvmlite.__version__, platform.python_version(), sys.implementation.cache_tag)
    parts = (_source_digest(), *versions, machine["name"], machine["features"], str(numba.config.OPT))
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:24]


def cache_root() -> Path:
    """Where all cache folders lie: $POISE_CACHE_DIR, else the user's cache directory."""
    if place := os.environ.get("POISE_CACHE_DIR"):
        return Path(place)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "poise" / "kernels"


def cache_dir() -> Path:
    """The folder that compiled kernels are read from and written to."""
    return cache_root() / cache_key()


_OLD_FOLDERS_KEPT = 4


def _prune(root: Path, keep: Path) -> None:
    """Forget the folders longest unused, but for a few."""
    others = sorted((p for p in root.iterdir() if p.is_dir() and p != keep), key=lambda p: p.stat().st_mtime)
    for path in others[:-_OLD_FOLDERS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


class _Locator:
    """Tells Numba's cache where to keep an entry."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ensure_cache_path(self) -> None:
        path = cache_dir()
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
            _prune(path.parent, path)

    def get_cache_path(self) -> str:
        return str(cache_dir())

    def get_source_stamp(self) -> str:
        return cache_key()

    def get_disambiguator(self) -> str:
        return self._name


class _CacheImpl(caching.CompileResultCacheImpl):
    def __init__(self, py_func: Any) -> None:
        self._lineno = 0
        self._locator = _Locator(py_func.__name__)
        self._filename_base = py_func.__name__

    @property
    def filename_base(self) -> str:
        return self._filename_base


class _Cache(caching.FunctionCache):
    _impl_class = _CacheImpl


# ---- entries ---------------------------------------------------------------------------------------------------------

_compiled: list[tuple[str, float]] = []


def compile_log() -> list[tuple[str, float]]:
    """(entry, seconds) of everything that this process compiled rather than found in the cache."""
    return list(_compiled)


def _quiet() -> bool:
    return os.environ.get("POISE_QUIET", "") not in ("", "0")


class _Progress:
    """One line on the terminal that says what is being compiled and, at the end, how long it took."""

    def __init__(self) -> None:
        self.told = False

    def tell(self, name: str) -> None:
        if _quiet():
            return
        if sys.stderr.isatty():
            print(f"\r\x1b[Kpoise: compiling kernels, once for this machine: {name} …", end="", file=sys.stderr, flush=True)
        elif not self.told:
            print("poise: compiling kernels, once for this machine …", file=sys.stderr, flush=True)
        self.told = True

    def clear(self) -> None:
        if self.told and sys.stderr.isatty() and not _quiet():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


_progress = _Progress()


def _view_opener(view: View, width: Width) -> Any:
    """Turns a handle (an array of int64) into a view inside compiled code."""
    result = bridge.ViewType(view, width)

    @intrinsic
    def open_view(context: Any, handle: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, args[0]).data

        return result(handle), code

    return open_view


class Entry:
    """A kernel that Python can call: handles of its views first, then plain numbers."""

    def __init__(self, function: Any, views: tuple[View, ...], extra: tuple[str, ...] = ()) -> None:
        self.function, self.views, self.extra = function, views, extra
        self.name = function.py_func.__name__
        self._by_width: dict[Width, Any] = {}

    def __getitem__(self, width: Width) -> Any:
        """The compiled function for a width."""
        found = self._by_width.get(width)
        if found is None:
            found = self._by_width[width] = self._compile(width)
        return found

    def _compile(self, width: Width) -> Any:
        name = f"{self.function.py_func.__module__.rpartition('.')[2]}_{self.name}_{width}"
        names = [f"h{k}" for k in range(len(self.views))]
        numbers = [f"n{k}" for k in range(len(self.extra))]
        call = ", ".join([f"open_{n}({n})" for n in names] + numbers)
        scope: dict[str, Any] = {f"open_{n}": _view_opener(v, width) for n, v in zip(names, self.views, strict=True)}
        scope["kernel"] = self.function
        exec(f"def {name}({', '.join(names + numbers)}):\n    return kernel({call})\n", scope)
        function = njit(scope[name], **_OPTIONS)
        function._cache = _Cache(scope[name])
        signature = (*(types.int64[::1] for _ in names), *(getattr(types, kind) for kind in self.extra))
        return _compile(function, name, signature)


def _compile(function: Any, name: str, signature: tuple[Any, ...]) -> Any:
    start = time.perf_counter()
    _tell_if_missing(function, name, signature)
    function.compile(signature)
    if not function._cache_hits:
        _compiled.append((name, time.perf_counter() - start))
        _progress.clear()
    function.disable_compile()
    return function


def _tell_if_missing(function: Any, name: str, signature: tuple[Any, ...]) -> None:
    index = Path(function._cache.cache_path) / f"{name}.nbi"
    if not index.exists():
        _progress.tell(name)


def entry(function: Any, *views: View, extra: tuple[str, ...] = ()) -> Entry:
    """Make a kernel callable from Python: `entry(k, A, B, extra=("float64",))[width](a.handle, b.handle, 0.1)`."""
    return Entry(function, views, extra)
