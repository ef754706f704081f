"""Which files compiled code depends on."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import poise
from poise.kernel.sources import Sources, imports

ROOT = Path(poise.__file__).resolve().parent


def _dumped(nodes: list[ast.AST]) -> set[str]:
    return {ast.dump(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_quick_way_finds_what_the_parser_finds(path: Path) -> None:
    text = path.read_bytes()
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not _is_for_types(node)]
    assert _dumped(imports(text)) == _dumped(list(ast.walk(tree)))


def _is_for_types(node: ast.stmt) -> bool:
    """Whether it stands under `if TYPE_CHECKING:`, which never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_what_stands_beside_types_counts() -> None:
    text = b"if TYPE_CHECKING:\n    import a\n\n    from b import c\nelse:\n    import d\nimport e\n"
    assert [node.names[0].name for node in imports(text)] == ["d", "e"]
    indented = b"def f():\n    if TYPE_CHECKING:\n        import a\n"
    assert [node.names[0].name for node in imports(indented)] == ["a"]


def test_what_compiled_code_depends_on_is_no_more_than_the_layers_below() -> None:
    """An edit of a demo, a reader or a viewer compiles no world again."""
    sources = Sources(ROOT)
    for home in (
        "formulations/step_loop.py",
        "formulations/stages/velocity_step.py",
        "dynamics/aba.py",
        "collision/detector.py",
    ):
        folders = {file.partition("/")[0] for file in sources.closure([ROOT / home]) if "/" in file}
        assert not folders & {"cli", "view", "io", "characters", "control", "sim"}, home


@pytest.mark.parametrize(
    "text",
    [
        "import a; import b",
        "x = 1; import a",
        "if x: import a",
        "try: from a import b\nexcept ImportError: import c",
        "from a \\\n  import b",
        "from a import b, \\\n  c",
        "from a import (b,  # of (1)\n  c,\n)",
        "from a import (  # see )\n  b,\n)\nfrom c import (d)",
        "import a  # (see\nimport b\nx = f(1)",
        "from.a import b",
        "from\ta import b\r\nimport\tc\r\n",
        "def f():\n\tclass C:\n\t\tfrom . import a as b, c",
        "async def f():\n  with x:\n    import a.b as c",
        "\x0cimport a",
        "... ; import a",
        "lambda: 0; import a",
        "# -*- coding: latin-1 -*-\nimport é",
        "match x:\n  case 1: import a",
    ],
)
def test_no_import_is_overlooked(text: str) -> None:
    raw = text.encode("latin-1")
    assert _dumped(imports(raw)) == _dumped(list(ast.walk(ast.parse(raw))))


def test_imports_in_strings_do_no_harm() -> None:
    found = imports(b'"""\nfrom time to time we import things\n"""\nimport a\n')
    assert [node.names[0].name for node in found] == ["a"]
    assert len(imports(b'"""\nimport quoted\n"""\nimport a\n')) == 2


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "poise"
    for name in ("", "kernel", "a", "a/deep", "b"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "__init__.py").touch()
    (root / "kernel/jit.py").touch()
    return root


ALWAYS = {"__init__.py", "kernel/__init__.py", "kernel/jit.py"}


def _found(root: Path, **texts: str) -> set[str]:
    """What a/home.py depends on besides itself and what everything does; files are named with _ for /."""
    for name, text in {"a_home": "", **texts}.items():
        (root / f"{name.replace('_', '/')}.py".replace("//init//", "/__init__")).write_text(text)
    return Sources(root).closure([root / "a/home.py"]) - ALWAYS - {"a/home.py", "a/__init__.py"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("import numpy.a, os.path as poise\nfrom numpy import a", set()),
        ("from poise.b.one import X", {"b/one.py", "b/__init__.py"}),
        ("from poise.b import one", {"b/one.py", "b/__init__.py"}),
        ("import poise.b.one as one", {"b/one.py", "b/__init__.py"}),
        ("def f():\n    from poise.b.one import X", {"b/one.py", "b/__init__.py"}),
        ("from .two import X", {"a/two.py"}),
        ("from . import two", {"a/two.py"}),
        ("from ..b import one", {"b/one.py", "b/__init__.py"}),
        ("from ..b.one import *", {"b/one.py", "b/__init__.py"}),
        ("from .deep.three import X", {"a/deep/three.py", "a/deep/__init__.py"}),
        ("from . import deep", {"a/deep/three.py", "a/deep/__init__.py"}),
        ("from poise.a.deep import *", {"a/deep/three.py", "a/deep/__init__.py"}),
        ("from poise.b import missing", {"b/__init__.py"}),
        ("from poise.missing import x", set()),
    ],
)
def test_every_form_of_import(package: Path, text: str, expected: set[str]) -> None:
    found = _found(package, b_one="X = 1", a_two="X = 2", a_deep_three="X = 3", a_home=text)
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "import poise",
        "import poise.b.one",
        "from poise import *",
        "from importlib import import_module",
        "x = __import__(name)",
        "import sys\nx = sys.modules[name]",
    ],
)
def test_where_anything_may_be_meant_everything_counts(package: Path, text: str) -> None:
    assert _found(package, b_one="", a_two="", a_home=text) == {
        "a/deep/__init__.py", "a/two.py", "b/__init__.py", "b/one.py"
    }  # fmt: skip


def test_imports_are_followed_in_circles_too(package: Path) -> None:
    texts = {"a_home": "from .two import X", "a_two": "from poise.b.one import X", "b_one": "import poise.a.home as h"}
    assert _found(package, **texts) == {"a/two.py", "b/one.py", "b/__init__.py"}


def test_the_kernel_package_is_followed_too(package: Path) -> None:
    (package / "kernel/jit.py").write_text("from poise.b import one")
    assert _found(package, b_one="") == {"b/one.py", "b/__init__.py"}


def test_a_package_is_followed_where_it_is_used_but_not_where_it_is_passed(package: Path) -> None:
    (package / "b/__init__.py").write_text('"""One and two: one."""\nfrom poise.b.other import NAME\n')
    assert _found(package, b_one="", b_other="", a_home="from poise.b import one") == {"b/one.py", "b/__init__.py"}
    used = {"b/__init__.py", "b/other.py"}
    assert _found(package, a_home="from poise.b import NAME") == used
    (package / "b/__init__.py").write_text("from poise.b.other import NAME as one\n")
    assert _found(package, a_home="from poise.b import one") == {*used, "b/one.py"}  # whichever it means
    (package / "b/__init__.py").write_text("from poise.b.other import __getattr__\n")
    assert _found(package, a_home="from poise.b import one") == {*used, "b/one.py"}


# ---- digests ---------------------------------------------------------------------------------------------------------


def test_digests_change_with_what_counts_and_only_with_that(package: Path) -> None:
    home = package / "a/home.py"
    home.write_text("from poise.b.one import X")
    (package / "b/one.py").write_text("X = 1")
    first = Sources(package).digest([home])
    assert first is not None
    (package / "b/other.py").write_text("X = 1")
    assert Sources(package).digest([home]) == first
    for file in ("b/one.py", "a/__init__.py", "b/__init__.py", "__init__.py", "kernel/jit.py", "a/home.py"):
        text = (package / file).read_text()
        (package / file).write_text(text + "\n")
        assert Sources(package).digest([home]) not in (None, first)
        (package / file).write_text(text)
        assert Sources(package).digest([home]) == first


def test_what_changed_while_it_was_in_use_has_no_digest(package: Path) -> None:
    home, one, other = (package / name for name in ("a/home.py", "b/one.py", "b/other.py"))
    home.write_text("from poise.b import one")
    other.touch()
    sources = Sources(package)
    first = sources.digest([home])
    assert first is not None
    other.write_text("changed")
    assert sources.digest([home]) == first
    one.touch()  # the name now means a file
    assert sources.digest([home]) is None
    one.unlink()
    assert sources.digest([home]) == first
    found = home.stat()
    home.write_text("from poise.b import two")
    assert sources.digest([home]) is None
    home.write_text("from poise.b import one")
    os.utime(home, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert sources.digest([home]) == first
    home.unlink()
    assert sources.digest([home]) is None


def test_what_was_changed_before_it_was_first_asked_for_has_no_digest(package: Path) -> None:
    home = package / "a/home.py"
    home.write_text("X = 1")
    sources = Sources(package)
    home.write_text("X = 10")
    assert sources.digest([home]) is None


def test_broken_and_foreign_files_have_no_digest(package: Path, tmp_path: Path) -> None:
    home, elsewhere = package / "a/home.py", tmp_path / "elsewhere.py"
    elsewhere.touch()
    assert Sources(package).digest([elsewhere]) is None
    assert Sources(package).digest([Path("<string>").resolve()]) is None
    for text in (b"x = (; import a", b"import a\0; import b", b"x; import \xff"):
        home.write_bytes(text)
        assert Sources(package).digest([home]) is None


def test_kernels_of_poise_depend_on_little() -> None:
    """Solvers know no bodies, trees no solvers, and neither the files that scenes are read from."""
    sources = Sources(ROOT)
    packages = {
        name: {file.partition("/")[0] for file in sources.closure([ROOT / name])} - {"__init__.py", "kernel"}
        for name in (
            "solve/pgs_kernels.py",
            "solve/dantzig_kernels.py",
            "dynamics/aba.py",
            "dynamics/impulse_response.py",
        )
    }
    assert packages["solve/pgs_kernels.py"] == packages["solve/dantzig_kernels.py"] == {"solve"}
    assert packages["dynamics/aba.py"] == packages["dynamics/impulse_response.py"] == {"dynamics", "model"}
