"""The scripts and helpers of `benchmarks/`, for tests."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def _reachable() -> None:
    """Helpers are found as a script finds them: beside it. Packages of tests come first: a script may share a name."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))


def helper(name: str) -> ModuleType:
    """A helper module, such as `_common`."""
    _reachable()
    return importlib.import_module(name)


def script(name: str) -> dict[str, Any]:
    """Names of a benchmark, loaded as `poise bench` does."""
    _reachable()
    return runpy.run_path(str(FOLDER / f"{name}.py"), run_name=name)
