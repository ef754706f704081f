"""Compilation: what the compiler may do to floating point, and a cache that is never stale and never in the way."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import pytest

import poise
from kernel.runner import WIDTHS
from poise.kernel.cachefile import SealedFile, fingerprint, prune
from poise.kernel.jit import _no_interrupt_lost, cache_key, cache_root, cpu, entry, kernel
from poise.kernel.memory import Count, Real, View, Width, load, store
from poise.kernel.quat import exp_rotation, log_rotation, normalize
from poise.kernel.scalars import select, sincos, sqrt
from poise.kernel.vec import Vec3, norm

IO = View("IO", n=Count, x=Real, v=Vec3)


@kernel
def busy(io):
    for i in range(io.n):
        x = load(io.x, i)
        s, c = sincos(x)
        v = log_rotation(normalize(exp_rotation(load(io.v, i) * s))) * (c / sqrt(x))
        store(io.v, i, select(x > 0.0, v, v * (1.0 / norm(v))))


BUSY = entry(busy, IO)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_the_compiler_takes_no_liberties_but_those_agreed(width: Width) -> None:
    code = "".join(BUSY[width].inspect_llvm().values())
    operations = re.findall(r"= (?:tail call |call )?f(?:add|sub|mul|div|neg|cmp)\b([a-z ]*)", code)
    assert operations
    flags = {flag for found in operations for flag in found.split()} & {
        "fast", "nnan", "ninf", "reassoc", "afn", "arcp", "nsz", "contract"
    }  # fmt: skip
    assert flags <= {"contract", "nsz"}
    assert not re.search(r"\b(fast|nnan|ninf|reassoc|afn|arcp)\b(?=[ a-z]* (?:<|double|float))", code)
    assembly = "".join(BUSY[width].inspect_asm().values())
    assert not re.search(r"\bv?r(sqrt|cp)\d*[ps][sd]\b", assembly)


# ---- the cache, with a copy of the package that holds one small kernel -----------------------------------------------

_KERNEL = """
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Count, Real, View, load, store
from poise.dynamics.constants import SCALE

IO = View("IO", n=Count, x=Real)

@kernel
def scale(io):
    for i in range(io.n):
        store(io.x, i, load(io.x, i) * SCALE)

SCALED = entry(scale, IO)

def run():
    block = IO.block(F64, n=2, x=[1.0, 2.0])
    SCALED[F64](block.handle)
    return block.x.tolist()
"""

_RUN = """
from poise.dynamics import tiny
from poise.kernel.jit import cache_key, compile_log
print("result", tiny.run(), [name for name, _ in compile_log()], cache_key())
"""


def _make_tree(root: Path) -> None:
    """A tree of sources with the kernel language and one kernel."""
    source = Path(poise.__file__).parent
    package = root / "src" / "poise"
    shutil.copytree(source / "kernel", package / "kernel", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("dynamics", "model"):
        (package / folder).mkdir()
        (package / folder / "__init__.py").touch()
    (package / "__init__.py").touch()
    shutil.copy(source / "model" / "joints.py", package / "model")
    (package / "dynamics" / "constants.py").write_text("SCALE = 3.0\n")
    (package / "dynamics" / "tiny.py").write_text(_KERNEL)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A tree whose kernel has been compiled once, and what that run said."""
    root = tmp_path_factory.mktemp("first")
    _make_tree(root)
    return root, _run(root)


@pytest.fixture
def tree(first: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of the tree and its cache."""
    return shutil.copytree(first[0], tmp_path / "tree")


@pytest.fixture
def cold_tree(tree: Path) -> Path:
    """A copy of the tree without its cache."""
    shutil.rmtree(tree / "cache")
    return tree


def _start(tree: Path, code: str = _RUN, **environment: str) -> subprocess.Popen[str]:
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("POISE", "NUMBA", "XDG_CACHE"))}
    settings |= {
        "PYTHONPATH": str(tree / "src"),
        "POISE_CACHE_DIR": str(tree / "cache"),
    }
    settings |= environment
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=settings, stdout=pipe, stderr=pipe, text=True, cwd=tree)


def _finish(process: subprocess.Popen[str]) -> tuple[list[float], list[str], str, str]:
    """Result, what was compiled, key, what was said."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    found = re.fullmatch(r"result \[(.*?)\] \[(.*?)\] (\w+)", out.strip())
    assert found, out
    compiled = [name.strip("' ") for name in found[2].split(",") if name]
    return [float(x) for x in found[1].split(",")], compiled, found[3], err


def _run(tree: Path, code: str = _RUN, **environment: str) -> tuple[list[float], list[str], str, str]:
    return _finish(_start(tree, code, **environment))


def _files(tree: Path, pattern: str) -> list[Path]:
    return sorted((tree / "cache").rglob(pattern))


def test_the_first_process_compiles_and_says_one_line(first: tuple[Path, Any]) -> None:
    result, compiled, _, said = first[1]
    assert result == [3.0, 6.0]
    assert compiled == ["tiny_scale_f64"]
    assert len(said.splitlines()) == 1
    assert "compiling kernels" in said


def test_the_second_process_compiles_nothing_and_says_nothing(first: tuple[Path, Any], tree: Path) -> None:
    assert _run(tree) == ([3.0, 6.0], [], first[1][2], "")


def test_a_constant_changed_in_another_module_changes_the_result(first: tuple[Path, Any], tree: Path) -> None:
    (tree / "src/poise/dynamics/constants.py").write_text("SCALE = 5.0\n")
    result, compiled, key, said = _run(tree, POISE_QUIET="1")
    assert result == [5.0, 10.0]
    assert compiled == ["tiny_scale_f64"]
    assert key != first[1][2]
    assert said == ""


def test_damaged_files_are_made_anew(tree: Path) -> None:
    for path in _files(tree, "*.nb?"):
        path.write_bytes(path.read_bytes()[:-20])
    assert _run(tree)[:2] == ([3.0, 6.0], ["tiny_scale_f64"])
    assert _run(tree)[1::2] == ([], "")


def _damages(whole: bytes) -> list[bytes]:
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x40
    return [b"", whole[:10], whole[:-1], bytes(flipped), b"garbage" * 50, whole + b"x"]


def test_no_kind_of_damage_is_read(tmp_path: Path) -> None:
    file = SealedFile(str(tmp_path), "kernel", "key")
    assert file.load("sign") is None
    file.save("sign", {"code": b"x" * 100})
    assert file.load("sign") == {"code": b"x" * 100}
    assert file.load("other") is None
    for path in list(tmp_path.iterdir()):
        for damage in _damages(path.read_bytes()):
            path.write_bytes(damage)
            assert file.load("sign") is None
            file.save("sign", {"code": b"y"})
            assert file.load("sign") == {"code": b"y"}
        path.unlink()
        path.mkdir()  # not even a file
        assert file.load("sign") is None
        path.rmdir()
        file.save("sign", {"code": b"x" * 100})
    assert SealedFile(str(tmp_path), "kernel", "another key").load("sign") is None


def test_a_folder_that_cannot_be_written_costs_time_only(tree: Path) -> None:
    (tree / "file").touch()
    result, compiled, _, said = _run(tree, POISE_CACHE_DIR=str(tree / "file" / "below"))
    assert result == [3.0, 6.0]
    assert compiled == ["tiny_scale_f64"]
    assert "cannot be kept" in said
    assert len(said.splitlines()) == 2


def test_a_read_only_folder_is_still_read(tree: Path) -> None:
    folder = _files(tree, "*.nbi")[0].parent
    folder.chmod(0o555)
    try:
        assert _run(tree)[1::2] == ([], "")
    finally:
        folder.chmod(0o755)


def test_another_cpu_has_another_key(first: tuple[Path, Any], tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, compiled, generic, _ = _run(tree, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert (result, compiled) == ([3.0, 6.0], ["tiny_scale_f64"])
    assert generic != first[1][2]
    keys = {cache_key()}
    for features in ("", "+one", "+one,+two"):
        monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
        keys.add(cache_key())
    monkeypatch.setattr(numba.config, "CPU_NAME", "another")
    assert len({*keys, cache_key()}) == 5


def test_two_processes_may_compile_at_once(cold_tree: Path) -> None:
    tree = cold_tree
    both = [_start(tree), _start(tree)]
    assert [_finish(process)[0] for process in both] == [[3.0, 6.0]] * 2
    assert _run(tree)[1] == []
    assert not _files(tree, "*.tmp*")


_EDITED = """
import importlib, pathlib
from poise.dynamics import constants, tiny
from poise.kernel.jit import cache_key, compile_log
{before}
constants_file = pathlib.Path(constants.__file__)
constants_file.write_text("SCALE = 50.0\\n")
{after}
print("result", tiny.run(), [name for name, _ in compile_log()], cache_key())
constants_file.write_text("SCALE = {last}\\n")
"""


def test_code_that_was_edited_after_it_was_read_is_not_kept_under_its_new_name(cold_tree: Path) -> None:
    """Old code, new text: the next process must not find the one under the hash of the other."""
    tree = cold_tree
    result, compiled, _, _ = _run(tree, _EDITED.format(before="", after="", last="50.0"))
    assert (result, compiled) == ([3.0, 6.0], ["tiny_scale_f64"])
    assert not _files(tree, "*.nb?")
    assert _run(tree)[0] == [50.0, 100.0]


def test_reloaded_modules_run_as_they_now_read(tree: Path) -> None:
    """The cache has the code of the old text, and this process once had its key."""
    reload = "importlib.reload(constants); importlib.reload(tiny)"
    result, compiled, _, _ = _run(tree, _EDITED.format(before="tiny.run()", after=reload, last="3.0"))
    assert (result, compiled) == ([50.0, 100.0], ["tiny_scale_f64"])
    assert _run(tree)[0] == [3.0, 6.0]


_THREADS = """
import threading
from poise.dynamics import tiny
from poise.kernel.jit import cache_key, compile_log
gate, found = threading.Barrier(4), []
def work():
    gate.wait()
    found.append(tiny.run())
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == found[:1] * 4, found
print("result", found[0], [name for name, _ in compile_log()], cache_key())
"""


def test_threads_that_ask_at_once_compile_once(cold_tree: Path) -> None:
    result, compiled, _, said = _run(cold_tree, _THREADS)
    assert (result, compiled) == ([3.0, 6.0], ["tiny_scale_f64"])
    assert len(said.splitlines()) == 1


def test_a_compiler_that_is_switched_off_is_named(tree: Path) -> None:
    process = _start(tree, NUMBA_DISABLE_JIT="1")
    _, said = process.communicate(timeout=100)
    assert process.returncode != 0
    assert "NUMBA_DISABLE_JIT switches it off: unset it" in said


_TWINS = """
from poise.kernel.jit import entry, kernel, cache_key, compile_log
from poise.kernel.memory import F64, Count, Real, View, load, store
from poise.dynamics import twins
print("result", twins.run(), [name for name, _ in compile_log()], cache_key())
"""

_TWINS_MODULE = """
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, Real, View, load, store

A = View("V", x=Real, y=Real)
B = View("V", y=Real, x=Real)

def make(factor):
    @kernel
    def scale(io):
        store(io.x, 0, load(io.x, 0) * factor)
    return scale

def run():
    out = []
    for view in (A, B):
        for factor in (2.0, 3.0):
            block = view.block(F64, x=[1.0], y=[10.0])
            entry(make(factor), view)[F64](block.handle)
            out += [block.x[0].item(), block.y[0].item()]
    return out
"""


def test_kernels_of_one_name_do_not_lend_each_other_their_code(tree: Path) -> None:
    (tree / "src/poise/dynamics/twins.py").write_text(_TWINS_MODULE)
    right = [2.0, 10.0, 3.0, 10.0] * 2
    result, compiled, _, _ = _run(tree, _TWINS)
    assert (result, len(compiled)) == (right, 4)
    assert _run(tree, _TWINS)[:2] == (right, [])


def test_kernels_from_elsewhere_are_not_kept(cold_tree: Path) -> None:
    tree = cold_tree
    (tree / "mine.py").write_text(_KERNEL)
    code = _RUN.replace("from poise.dynamics import tiny", "import sys; sys.path.insert(0, '.'); import mine as tiny")
    result, compiled, _, said = _run(tree, code)
    assert (result, compiled) == ([3.0, 6.0], ["mine_scale_f64"])
    assert "compiling kernels" in said
    assert not _files(tree, "*.nb?")


def test_old_folders_are_forgotten_but_nothing_else(tmp_path: Path) -> None:
    for k in range(8):
        folder = tmp_path / f"{k:024x}"
        folder.mkdir()
        (folder / "kernel.nbi").touch()
        os.utime(folder, (1000 + k, 1000 + k))
    (tmp_path / "holiday photos").mkdir()
    (tmp_path / f"{9:024x}").touch()
    current = tmp_path / f"{0:024x}"  # the oldest, and yet the one in use
    prune(tmp_path, current)
    kept = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert kept == {current.name, "holiday photos", *(f"{k:024x}" for k in (4, 5, 6, 7))}
    assert (tmp_path / f"{9:024x}").exists()
    assert (current / "kernel.nbi").exists()


def test_a_process_prunes_when_it_makes_its_folder(cold_tree: Path) -> None:
    tree = cold_tree
    for k in range(6):
        folder = tree / "cache" / f"{k:024x}"
        folder.mkdir(parents=True)
        os.utime(folder, (1000 + k, 1000 + k))
    _, _, key, _ = _run(tree)
    assert {p.name for p in (tree / "cache").iterdir()} == {key, *(f"{k:024x}" for k in (2, 3, 4, 5))}


# ---- names -----------------------------------------------------------------------------------------------------------


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POISE_CACHE_DIR", "~/kernels")
    assert cache_root() == Path.home() / "kernels"
    monkeypatch.setenv("POISE_CACHE_DIR", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("POISE_CACHE_DIR")
    assert cache_root().parts[-2:] == ("poise", "kernels")
    assert re.fullmatch("[0-9a-f]{24}", cache_key())
    assert cpu()["simd_bits"] in (128, 256, 512)


def test_fingerprints_tell_closures_apart() -> None:
    def make(constant: Any) -> Any:
        def inner() -> Any:
            return constant

        return inner

    same = fingerprint(make(1.0))
    assert same == fingerprint(make(1.0))
    different = [fingerprint(make(x)) for x in (1, 2.0, True, "1.0", (1.0,), None, make(2.0), Vec3)]
    assert len({same, *different}) == 9
    assert fingerprint(make(object())) is None  # who knows what that is
    assert fingerprint(make([1.0])) is None


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_the_compiler() -> None:
    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_was_dropped_comes_back() -> None:
    def drop() -> None:
        """What ctypes does with an exception in a function that C calls, without the printing."""
        with contextlib.suppress(KeyboardInterrupt):
            interrupt()

    with pytest.raises(KeyboardInterrupt), _no_interrupt_lost():
        drop()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_failures_of_the_compiler_pass() -> None:
    with pytest.raises(ZeroDivisionError), _no_interrupt_lost():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_others_and_other_threads_are_left_alone() -> None:
    seen: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with _no_interrupt_lost():
            interrupt()
            assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, usual)

    def enter() -> None:
        with _no_interrupt_lost():
            seen.append(0)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIGINT, 0]
