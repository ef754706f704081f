"""Old module paths still work, and warn."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings

import pytest

from poise._renamed import _RENAMED, new_path

OLD = [f"poise.{package}.{name}" for package, names in _RENAMED.items() for name in names]


@pytest.mark.parametrize("old", OLD)
def test_an_old_path_gives_the_module_of_now(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=re.escape(f"{old} is {new_path(old)} now")):
        found = importlib.import_module(old)
    assert found is importlib.import_module(new_path(old))
    assert found.__name__ == found.__spec__.name == new_path(old)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module(old)  # it warns once


def test_what_never_was_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"poise\.collision\.pipelines"):
        importlib.import_module("poise.collision.pipelines")
    assert new_path("poise.collision") is new_path("other.collision.pipeline") is None


def test_the_warning_names_the_line_that_imports() -> None:
    code = "import poise\nfrom poise.collision.pipeline import contacts\n"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:2: DeprecationWarning: poise.collision.pipeline is poise.collision.detector now" in done.stderr


def test_poise_itself_uses_no_old_path() -> None:
    code = "import warnings; warnings.simplefilter('error', DeprecationWarning); import poise; poise.World; poise.Batch"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_old_path_hides_a_public_name() -> None:
    """Importing `poise.control.correction` as a module would replace the function of that name."""
    for package, names in _RENAMED.items():
        public = vars(importlib.import_module(f"poise.{package}"))
        taken = [name for name in names if name in public and getattr(public[name], "__module__", None)]
        assert not taken, package
