"""The cache of compiled kernels: never stale, never in the way, and no larger than it should be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import poise
from poise.kernel.jit import cache_key

# ---- a copy of the package that holds one small kernel ---------------------------------------------------------------

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
        "PYTHONDONTWRITEBYTECODE": "1",  # Python overlooks an edit within a second that keeps the length
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


def test_a_constant_changed_in_another_module_changes_the_result(tree: Path) -> None:
    (tree / "src/poise/dynamics/constants.py").write_text("SCALE = 5.0\n")
    result, compiled, _, said = _run(tree, POISE_QUIET="1")
    assert (result, compiled, said) == ([5.0, 10.0], ["tiny_scale_f64"], "")
    (tree / "src/poise/dynamics/constants.py").write_text("SCALE = 3.0\n")
    assert _run(tree)[:2] == ([3.0, 6.0], [])  # both are kept


@pytest.mark.parametrize("edited", ["__init__.py", "dynamics/__init__.py", "dynamics/tiny.py", "kernel/vec.py"])
def test_a_word_added_on_the_way_to_a_kernel_compiles_it_anew(tree: Path, edited: str) -> None:
    with (tree / "src/poise" / edited).open("a") as file:
        file.write("# a word\n")
    assert _run(tree)[:2] == ([3.0, 6.0], ["tiny_scale_f64"])


def test_what_a_kernel_does_not_import_does_not_matter_to_it(tree: Path) -> None:
    package = tree / "src/poise"
    (package / "dynamics/other.py").write_text("from poise.dynamics.tiny import SCALED\n")
    (package / "solve").mkdir()
    (package / "solve/__init__.py").write_text("WORD = 1\n")
    (package / "model/joints.py").write_text("no Python at all (\n")
    assert _run(tree)[:2] == ([3.0, 6.0], [])


def test_imports_that_are_added_count(tree: Path) -> None:
    package = tree / "src/poise"
    (package / "solve").mkdir()
    (package / "solve/more.py").write_text("SCALE = 7.0\n")
    (package / "dynamics/constants.py").write_text("from poise.solve.more import SCALE\n")
    assert _run(tree)[:2] == ([7.0, 14.0], ["tiny_scale_f64"])
    (package / "solve/more.py").write_text("SCALE = 8.0\n")
    assert _run(tree)[:2] == ([8.0, 16.0], ["tiny_scale_f64"])
    (package / "solve/__init__.py").write_text("")
    assert _run(tree)[:2] == ([8.0, 16.0], ["tiny_scale_f64"])


def test_damaged_files_are_made_anew(tree: Path) -> None:
    for path in _files(tree, "*.nb?"):
        path.write_bytes(path.read_bytes()[:-20])
    assert _run(tree)[:2] == ([3.0, 6.0], ["tiny_scale_f64"])
    assert _run(tree)[1::2] == ([], "")


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
    for name, features in (("one", ""), ("one", "+a"), ("one", "+a,+b"), ("another", "+a,+b")):  # no processor's names
        monkeypatch.setattr(numba.config, "CPU_NAME", name)
        monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
        keys.add(cache_key())
    assert len(keys) == 5


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


def test_an_edit_elsewhere_keeps_no_kernel_out_of_the_cache(cold_tree: Path) -> None:
    code = _EDITED.format(
        before="constants.__file__ = constants.__file__.replace('constants', 'other')", after="", last=""
    )
    assert _run(cold_tree, code)[:2] == ([3.0, 6.0], ["tiny_scale_f64"])
    assert (cold_tree / "src/poise/dynamics/other.py").exists()
    assert _run(cold_tree)[:2] == ([3.0, 6.0], [])


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


_LENT = """
from poise.kernel.jit import cache_key, compile_log, entry
from poise.kernel.memory import F64
from poise.{maker} import make
from poise.solve.{lent} import VIEW, gain
block = VIEW.block(F64, x=[1.0])
entry(make(gain), VIEW)[F64](block.handle)
print("result", block.x.tolist(), [name for name, _ in compile_log()], cache_key())
"""

_MAKER = """
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store

def make(gain):
    @kernel
    def scale(io):
        store(io.x, 0, load(io.x, 0) * gain(0))
    return scale
"""

_GAIN = """
from poise.kernel.jit import kernel
from poise.kernel.memory import View
from poise.{value} import One

VIEW = View("V", x=One)

@kernel
def gain(i):
    return {gain}
"""

_VALUE = """
from poise.kernel.values import Value

class One(Value):
    fields = (("x", None),)
    __slots__ = ("x",)

    def __mul__(self, other):
        return One(self.x * other * {factor})
"""


def test_functions_and_values_that_a_kernel_is_given_count_with_their_files(tree: Path) -> None:
    """The module of the kernel imports neither the function that it closes over nor the class of what it loads."""
    package = tree / "src/poise"
    (package / "solve").mkdir()
    (package / "dynamics/maker.py").write_text(_MAKER)
    code = _LENT.format(maker="dynamics.maker", lent="gains")
    for gain, factor, compiled in ((2.0, 1.0, True), (2.0, 1.0, False), (3.0, 1.0, True), (3.0, 5.0, True)):
        (package / "solve/gains.py").write_text(_GAIN.format(gain=gain, value="solve.values"))
        (package / "solve/values.py").write_text(_VALUE.format(factor=factor))
        found = _run(tree, code)
        assert found[0] == [gain * factor]
        assert bool(found[1]) is compiled


def test_kernels_that_close_over_functions_from_elsewhere_are_not_kept(cold_tree: Path) -> None:
    (cold_tree / "src/poise/dynamics/maker.py").write_text(_MAKER)
    (cold_tree / "src/poise/dynamics/values.py").write_text(_VALUE.format(factor=1.0))
    code = _LENT.format(maker="dynamics.maker", lent="gains").replace("poise.solve.gains", "gains")
    for gain in (2.0, 3.0):
        (cold_tree / "gains.py").write_text(_GAIN.format(gain=gain, value="dynamics.values"))
        assert _run(cold_tree, code)[:2] == ([gain], ["maker_scale_f64"])
    assert not _files(cold_tree, "*.nb?")


def test_kernels_from_elsewhere_are_not_kept(cold_tree: Path) -> None:
    tree = cold_tree
    (tree / "mine.py").write_text(_KERNEL)
    code = _RUN.replace("from poise.dynamics import tiny", "import sys; sys.path.insert(0, '.'); import mine as tiny")
    result, compiled, _, said = _run(tree, code)
    assert (result, compiled) == ([3.0, 6.0], ["mine_scale_f64"])
    assert "compiling kernels" in said
    assert not _files(tree, "*.nb?")


def test_a_process_prunes_when_it_makes_its_folder(cold_tree: Path) -> None:
    tree = cold_tree
    for k in range(6):
        folder = tree / "cache" / f"{k:024x}"
        folder.mkdir(parents=True)
        os.utime(folder, (1000 + k, 1000 + k))
    _, _, key, _ = _run(tree)
    assert {p.name for p in (tree / "cache").iterdir()} == {key, *(f"{k:024x}" for k in (2, 3, 4, 5))}
