"""The paper map is true: every function and every test that it names exists."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINES = [line for line in (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8").splitlines() if "`" in line]
FUNCTIONS = sorted({name for line in LINES for name in re.findall(r"`(poise\.[\w.]+)`", line)})
TESTS = sorted({name for line in LINES for name in re.findall(r"`(tests/[\w/.]+::\w+)`", line)})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_exists(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert hasattr(import_module(module), function)


@pytest.mark.parametrize("name", TESTS)
def test_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_line_of_a_table_names_a_function_and_a_test() -> None:
    rows = [line for line in LINES if line.startswith("|")]
    assert len(rows) > 25
    assert all("`poise." in row and "`tests/" in row for row in rows)


def test_code_cites_what_the_map_lists() -> None:
    """Functions that carry a listing of KOK say so themselves."""
    for module in ("aba", "impulse_response"):
        source = (ROOT / "src" / "poise" / "dynamics" / f"{module}.py").read_text(encoding="utf-8")
        assert "KOK §" in source
