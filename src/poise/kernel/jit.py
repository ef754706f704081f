"""Compilation: kernels, the entries through which Python calls them, and the cache that never lends stale code.

Compiled entries are kept on disk, in a folder whose name is a hash of the versions of Numba, llvmlite, NumPy and Python
and of the CPU. The name of each entry ends in a hash of what it was made of: every source file that it can depend on
(`sources` tells which these are, and why there are no others), what its kernel closes over, and the layout of its
views. When any of that changes, the name is another. An entry whose sources have changed since this process read them
(an editor is at work, modules are reloaded) is neither read nor kept.
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

from poise.kernel import bridge, calls, clock, quat, scalars, spatial, vec  # noqa: F401  (these teach Numba the others)
from poise.kernel.cachefile import SealedFile, fingerprint, forget_oldest, prune
from poise.kernel.emit import align_stack
from poise.kernel.fuse import fused_multiply_adds, has_fma
from poise.kernel.garbage import without_garbage_collection
from poise.kernel.memory import At, View, Width
from poise.kernel.sources import Sources
from poise.kernel.trace import FLAGS

OPTIONS: dict[str, Any] = {"fastmath": set(FLAGS), "error_model": "numpy", "nogil": True}
SOURCES = Sources(Path(__file__).resolve().parents[1])
"""Poise at about the time when this process reads it: this module is imported before any kernel."""


def kernel(function: Callable[..., Any]) -> Any:
    """Declare a function that loops over memory. Its plain Python form stays at `.py_func`."""
    if numba.config.DISABLE_JIT:
        raise RuntimeError("kernels need Numba's compiler, and NUMBA_DISABLE_JIT switches it off: unset it")
    return _of_plain_types(njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS))


def _of_plain_types(dispatcher: Any) -> Any:
    """Let a kernel be compiled once for all numbers of a type: Numba would take each literal for a type of its own."""
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
    """Name of the cache folder: everything but sources that compiled code depends on."""
    machine = cpu()
    packages = (numba.__version__, llvmlite.__version__, np.__version__)
    versions = (*packages, platform.python_version(), sys.implementation.cache_tag)
    parts = (*versions, machine["name"], machine["features"], str(numba.config.OPT))
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:24]


def cache_root() -> Path:
    """Where all cache folders lie: $POISE_CACHE_DIR, else the user's cache directory."""
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
    """Tells Numba's cache where to keep an entry."""

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
    """Let pruning see what is used."""
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
    """(entry, seconds) of everything that this process compiled rather than found in the cache."""
    return list(_compiled)


def _quiet() -> bool:
    return os.environ.get("POISE_QUIET", "") not in ("", "0")


class _Progress:
    """One line on the terminal that says what is being compiled and, at the end, how long it took."""

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
    """Source that refuses a handle of another view or width, which compiled code would misread."""
    sealed = f"{handle}.size != {view.words} or {handle}[{view.words - 1}] != {view.seal(width)}"
    return f"    if {sealed}:\n        raise TypeError('handle {handle[1:]} is not of view {view.name} at {width}')\n"


@intrinsic
def stand_alone(context: Any) -> Any:
    """Called in a kernel, keeps it from being copied to where it is called: for large ones with several callers."""

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
            with global_compiler_lock:  # of threads that ask at once, one compiles and the others wait
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
        """Where the machine code for a width is, for `calls.call_entry`."""
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
        """Keep an entry on disk, under a name that no other source, kernel, closure or view shares with it."""
        homes: set[Path] = set()
        values = tuple(kind for view in self.views for kind in view.values)
        identity = fingerprint((self.function, values), homes)
        sources = SOURCES.digest(homes) if identity else None
        if sources is None:  # kernels from elsewhere, too, are compiled anew in each process
            return
        seals = [view.seal(width) for view, width in zip(self.views, widths, strict=True)]
        stamp = hashlib.sha256(repr((sources, identity, seals)).encode()).hexdigest()
        keep(function, wrapper, stamp)


def keep(function: Any, wrapper: Any, stamp: str) -> None:
    """Keep a function on disk, under its name and a stamp that tells all that it was made of."""
    wrapper.__name__ = f"{wrapper.__name__}_{stamp[:12]}"
    try:
        function._cache = _Cache(wrapper, stamp)
    except OSError as error:
        _tell_not_kept(error)


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt again where it has got lost: raised in a call from LLVM it is printed and dropped."""
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
    """Optimize and translate an entry as a whole, and not each of its kernels on its own before.

    Nobody calls a kernel but other kernels and entries, which take it in as LLVM code. Numba would optimize it, and all
    that it takes in, and make machine code of it: once more at each level of calls, for nothing.
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
    """A function compiled for one signature, or found in the cache."""
    start = time.perf_counter()
    if not _in_cache(function):
        _progress.tell(name)
    # one thread at a time: of two that change how Numba compiles, the later one would keep the change of the other
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
    """Whether the cache seems to have a function; a damaged file still counts."""
    return isinstance(function._cache, _Cache) and Path(function._cache._cache_file._index_path).exists()


def entry(
    function: Any,
    *views: View | At,
    extra: tuple[str, ...] = (),
    lanes: bool = True,
) -> Entry:
    """Make a kernel callable from Python: `entry(k, A, B, extra=("float64",))[width](a.handle, b.handle, 0.1)`.

    `lanes=False` says that the kernel branches on state values and runs one world at a time. Views that are not at the
    width of the worlds, but plain, or in lanes of something else, say so with `At`.
    """
    return Entry(function, views, extra, lanes)
