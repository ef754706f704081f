"""Compilation: kernels, the entries through which Python calls them, and a cache that never returns stale code.

Compiled entries are cached on disk, in a folder whose name is a hash of the versions of Numba, llvmlite, NumPy and
Python and of the CPU. The name of each entry ends in a hash of its inputs: every source file that it can depend on
(`sources` defines which files), the closure of its kernel, and the layout of its views. When any of these changes, so
does the name. An entry whose sources have changed since this process read them (edited files, reloaded modules) is
neither read from the cache nor written to it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba import njit, types
from numba.core import caching
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from poise.kernel import bridge, calls, clock, quat, scalars, spatial, vec  # noqa: F401  (these register with Numba)
from poise.kernel.cachefile import SealedFile, fingerprint, forget_oldest, prune
from poise.kernel.emit import align_stack
from poise.kernel.fuse import fused_multiply_adds, has_fma
from poise.kernel.garbage import without_garbage_collection
from poise.kernel.memory import At, View, Width
from poise.kernel.sources import Sources
from poise.kernel.trace import FLAGS

OPTIONS: dict[str, Any] = {"fastmath": set(FLAGS), "error_model": "numpy", "nogil": True}
SOURCES = Sources(Path(__file__).resolve().parents[1])
"""The sources of Poise when this process imports them: this module is imported before any kernel."""


def kernel(function: Callable[..., Any]) -> Any:
    """Declare a function that loops over memory. Its plain Python form is `.py_func`."""
    if numba.config.DISABLE_JIT:
        raise RuntimeError("kernels need Numba's compiler, and NUMBA_DISABLE_JIT switches it off: unset it")
    return _of_plain_types(njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS))


def _of_plain_types(dispatcher: Any) -> Any:
    """Compile a kernel once for all numbers of a type: Numba would give each literal its own type."""
    usual = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = {name: types.unliteral(t) for name, t in kws.items()}
        return usual(tuple(types.unliteral(t) for t in args), plain)

    dispatcher.get_call_template = get_call_template
    return dispatcher


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


def cache_key() -> str:
    """Name of the cache folder: a hash of all that compiled code depends on except sources."""
    machine = cpu()
    packages = (numba.__version__, llvmlite.__version__, np.__version__)
    versions = (*packages, platform.python_version(), sys.implementation.cache_tag)
    parts = (*versions, machine["name"], machine["features"], str(numba.config.OPT))
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:24]


def cache_root() -> Path:
    """Parent of all cache folders: $POISE_CACHE_DIR, else the user's cache directory."""
    if place := os.environ.get("POISE_CACHE_DIR"):
        return Path(place).expanduser()
    try:
        return _user_cache() / "poise" / "kernels"
    except RuntimeError as error:
        raise OSError(str(error)) from error  # no home directory


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache_dir() -> Path:
    """The folder that compiled kernels are read from and written to."""
    return cache_root() / cache_key()


class _Locator:
    """Gives Numba's cache the location of an entry."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ensure_cache_path(self) -> None:
        path = cache_dir()
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
            prune(path.parent, path)

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

    def __init__(self, py_func: Any, stamp: str) -> None:
        super().__init__(py_func)
        self._cache_file = SealedFile(self._cache_path, self._impl.filename_base, f"{cache_key()} {stamp}")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is not None:
            _mark_used(self._cache_file._index_path)
            _mark_used(self._cache_path)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
            forget_oldest(Path(self._cache_path))
        except OSError as error:
            _tell_not_kept(error)


def _mark_used(path: str) -> None:
    """Record the time of use, for pruning."""
    with contextlib.suppress(OSError):
        os.utime(path)


@functools.cache
def _tell_once(text: str) -> None:
    if sys.stderr is not None and not _quiet():
        print(text, file=sys.stderr, flush=True)


def _tell_not_kept(error: OSError) -> None:
    place = os.environ.get("POISE_CACHE_DIR") or "the user's cache directory"
    _tell_once(f"poise: compiled kernels cannot be kept in {place} ({error.strerror or error}); set POISE_CACHE_DIR")


# ---- entries ---------------------------------------------------------------------------------------------------------

_compiled: list[tuple[str, float]] = []


def compile_log() -> list[tuple[str, float]]:
    """(entry, seconds) of every entry that this process compiled instead of reading it from the cache."""
    return list(_compiled)


def _quiet() -> bool:
    return os.environ.get("POISE_QUIET", "") not in ("", "0")


class _Progress:
    """A progress line on the terminal with the entry that is being compiled and, at the end, the elapsed time."""

    def __init__(self) -> None:
        self.told = False

    def tell(self, name: str) -> None:
        if _quiet() or sys.stderr is None:
            return
        if sys.stderr.isatty():
            line = f"\r\x1b[Kpoise: compiling kernels that are not cached yet: {name} …"
            print(line, end="", file=sys.stderr, flush=True)
        elif not self.told:
            print("poise: compiling kernels that are not cached yet …", file=sys.stderr, flush=True)
        self.told = True

    def clear(self) -> None:
        if self.told and sys.stderr is not None and sys.stderr.isatty() and not _quiet():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


_progress = _Progress()


def _view_opener(view: View, width: Width) -> Any:
    """Turns a handle (an array of int64) into a view inside compiled code."""
    result = bridge.ViewType(view, width)

    @intrinsic
    def open_view(context: Any, handle: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            align_stack(builder)
            return context.make_array(signature.args[0])(context, builder, args[0]).data

        return result(handle), code

    return open_view


def _seal_check(handle: str, view: View, width: Width) -> str:
    """Source code that raises for a handle of another view or width, which compiled code would misread."""
    sealed = f"{handle}.size != {view.words} or {handle}[{view.words - 1}] != {view.seal(width)}"
    return f"    if {sealed}:\n        raise TypeError('handle {handle[1:]} is not of view {view.name} at {width}')\n"


@intrinsic
def stand_alone(context: Any) -> Any:
    """Called in a kernel, prevents it from being inlined: for large kernels with several callers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), code


class Entry:
    """A kernel that Python can call: handles of its views first, then plain numbers."""

    def __init__(
        self,
        function: Any,
        views: tuple[View | At, ...],
        extra: tuple[str, ...] = (),
        lanes: bool = True,
    ) -> None:
        self.function, self.extra, self.lanes = function, extra, lanes
        self._places = tuple(view if isinstance(view, At) else At(view) for view in views)
        self.views = tuple(place.view for place in self._places)
        self.name = function.py_func.__name__
        self._by_width: dict[Any, Any] = {}

    def __getitem__(self, width: Width | tuple[Width, ...]) -> Any:
        """The compiled function for a width, or for one width a view."""
        if isinstance(width, Width) and not any(view.varies for view in self.views):
            width = width.fixed
        found = self._by_width.get(width)
        if found is None:
            with global_compiler_lock:  # one thread compiles, others wait
                found = self._by_width.get(width)
                if found is None:
                    several = isinstance(width, tuple)
                    if not self.lanes and any(one.lanes > 1 for one in (width if several else (width,))):
                        raise TypeError(
                            f"{self.name} branches on its numbers: it runs one world at a time, not {width}"
                        )
                    widths = width if several else tuple(place.at(width) for place in self._places)
                    found = self._by_width[width] = self._compile(widths)
        return found

    def address(self, width: Width) -> int:
        """Address of the machine code for a width, for `calls.call_entry`."""
        (compiled,) = self[width].overloads.values()
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    def _compile(self, widths: tuple[Width, ...]) -> Any:
        widths = tuple(view.at(width) for view, width in zip(self.views, widths, strict=True))
        kinds = "_".join(map(str, widths if len(set(widths)) > 1 else widths[:1]))
        module = str(self.function.py_func.__module__).rpartition(".")[2]
        name = re.sub(r"\W", "_", f"{module}_{self.name}_{kinds}")
        names = [f"h{k}" for k in range(len(self.views))]
        numbers = [f"n{k}" for k in range(len(self.extra))]
        call = ", ".join([f"open_{n}({n})" for n in names] + numbers)
        scope: dict[str, Any] = {
            f"open_{n}": _view_opener(v, w) for n, v, w in zip(names, self.views, widths, strict=True)
        }
        scope |= {"kernel": self.function, "__name__": __name__}
        checks = "".join(_seal_check(n, v, w) for n, v, w in zip(names, self.views, widths, strict=True))
        exec(f"def {name}({', '.join(names + numbers)}):\n{checks}    return kernel({call})\n", scope)
        function = njit(scope[name], **OPTIONS)
        self._use_cache(function, scope[name], widths)
        signature = (*(types.int64[::1] for _ in names), *(getattr(types, kind) for kind in self.extra))
        return compile_now(function, name, signature)

    def _use_cache(self, function: Any, wrapper: Any, widths: tuple[Width, ...]) -> None:
        """Cache an entry on disk, under a name that is unique to its sources, kernel, closure and views."""
        homes: set[Path] = set()
        values = tuple(kind for view in self.views for kind in view.values)
        identity = fingerprint((self.function, values), homes)
        sources = SOURCES.digest(homes) if identity else None
        if sources is None:  # kernels from outside Poise, too, are compiled in each process
            return
        seals = [view.seal(width) for view, width in zip(self.views, widths, strict=True)]
        stamp = hashlib.sha256(repr((sources, identity, seals)).encode()).hexdigest()
        keep(function, wrapper, stamp)


def keep(function: Any, wrapper: Any, stamp: str) -> None:
    """Cache a function on disk, under its name and a stamp of all its inputs."""
    wrapper.__name__ = f"{wrapper.__name__}_{stamp[:12]}"
    try:
        function._cache = _Cache(wrapper, stamp)
    except OSError as error:
        _tell_not_kept(error)


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Raise a lost KeyboardInterrupt again: one that is raised in a callback from LLVM is printed and dropped."""
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    came: list[int] = []

    def note(number: int, frame: Any) -> None:
        came.append(number)
        usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _machine_code_only_of(name: str) -> Iterator[None]:
    """Optimize and translate an entry as a whole, without doing so for each of its kernels before.

    Only other kernels and entries call a kernel, and they link it as LLVM code. Numba would optimize it with all that
    it links, and generate machine code, at each level of calls, for nothing.
    """
    usual = JITCodeLibrary.finalize

    def finalize(library: Any) -> None:
        if library.name == name:
            usual(library)
            return
        for other in dict.fromkeys(library._linking_libraries):
            library._reload_init.update(other._reload_init)
            library._final_module.link_in(other._get_module_for_linking(), preserve=True)
        library._finalized = True

    usual_env = JITCPUCodegen.set_env

    def set_env(codegen: Any, env_name: str, env: Any) -> None:
        if codegen._engine.is_symbol_defined(env_name):
            usual_env(codegen, env_name, env)

    JITCodeLibrary.finalize, JITCPUCodegen.set_env = finalize, set_env
    try:
        yield
    finally:
        JITCodeLibrary.finalize, JITCPUCodegen.set_env = usual, usual_env


def compile_now(function: Any, name: str, signature: tuple[Any, ...]) -> Any:
    """A function compiled for one signature, or read from the cache."""
    start = time.perf_counter()
    if not _in_cache(function):
        _progress.tell(name)
    # one thread at a time: of two that patch Numba, the later one would keep the patch of the other
    qualified = function.py_func.__qualname__
    machine = cpu()
    fusing = fused_multiply_adds if has_fma(machine["name"], machine["features"]) else contextlib.nullcontext
    with (
        global_compiler_lock,
        _no_interrupt_lost(),
        _machine_code_only_of(qualified),
        fusing(),
        without_garbage_collection(),
    ):
        function.compile(signature)
    if not function._cache_hits:
        _compiled.append((name, time.perf_counter() - start))
        _progress.clear()
    function.disable_compile()
    return function


def _in_cache(function: Any) -> bool:
    """Whether the cache has a file of a function; a damaged file still counts."""
    return isinstance(function._cache, _Cache) and Path(function._cache._cache_file._index_path).exists()


def entry(
    function: Any,
    *views: View | At,
    extra: tuple[str, ...] = (),
    lanes: bool = True,
) -> Entry:
    """Make a kernel callable from Python: `entry(k, A, B, extra=("float64",))[width](a.handle, b.handle, 0.1)`.

    `lanes=False` declares that the kernel branches on state values and runs one world at a time. `At` declares views
    that are not at the width of the worlds: plain ones, or those with other lanes.
    """
    return Entry(function, views, extra, lanes)
