"""`poise doctor`: facts, problems, statuses."""

import json
import platform
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import poise
from poise.cli import cold_compile, doctor
from poise.cli.main import app
from poise.kernel import jit

run = CliRunner().invoke
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty place for the kernel cache."""
    monkeypatch.setenv("POISE_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def name_of(requirement):
    return re.match(r"[\w-]+", requirement).group()


def test_json_is_what_it_says(cache):
    done = run(app, ["doctor", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["versions"]["poise"] == poise.__version__
    assert found["versions"]["python"] == platform.python_version()
    for name in ("numpy", "numba", "llvmlite"):
        assert found["versions"][name] == metadata.version(name)
    assert found["machine"]["cpu"] == jit.cpu()
    assert found["cache"] == {"path": str(jit.cache_dir()), "key": jit.cache_key(), "entries": 0, "bytes": 0}
    assert found["problems"] == []


def test_text_names_the_same_facts(cache):
    done = run(app, ["doctor"])
    assert done.exit_code == 0
    for fact in (metadata.version("numba"), jit.cpu()["name"], f"{jit.cpu()['simd_bits']} bits", str(jit.cache_dir())):
        assert fact in done.stdout
    assert done.stdout.endswith("All is well.\n")


def test_cache_is_counted(cache):
    folder = jit.cache_dir()
    folder.mkdir(parents=True)
    (folder / "a.nbi").write_bytes(b"x" * 10)
    (folder / "a.1.nbc").write_bytes(b"x" * 90)
    found = doctor.diagnose().cache
    assert (found["entries"], found["bytes"]) == (1, 100)


def test_cache_that_cannot_be_written_is_a_problem(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("POISE_CACHE_DIR", str(blocked))
    done = run(app, ["doctor"])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr
    assert "All is well" not in done.stdout


def test_broken_compiler_is_a_problem(monkeypatch):
    def broken():
        raise OSError("libllvmlite.so: cannot open shared object file")

    monkeypatch.setattr(jit, "cpu", broken)
    done = run(app, ["doctor", "--json"])
    assert done.exit_code == 1
    assert "libllvmlite.so" in json.loads(done.stdout)["problems"][0]


def test_missing_packages_are_named_with_what_brings_them(monkeypatch, cache):
    found = metadata.version

    def version(name):
        if name in ("mujoco", "pyyaml"):
            raise metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(metadata, "version", version)
    done = run(app, ["doctor"])
    assert done.exit_code == 1
    assert "pip install mujoco, or the extra mjcf" in done.stdout
    assert "pyyaml is missing" in done.stderr


def test_tables_agree_with_the_requirements():
    assert {name_of(line) for line in PROJECT["dependencies"]} <= set(doctor.REQUIRED)
    extras = {extra: {name_of(line) for line in lines} for extra, lines in PROJECT["optional-dependencies"].items()}
    for name, extra, _ in doctor.OPTIONAL:
        assert name in extras[extra]
    wanted = set().union(*(names for extra, names in extras.items() if extra not in ("test", "all")))
    assert wanted == {name for name, _, _ in doctor.OPTIONAL}


@pytest.mark.slow
def test_cold_start_is_measured_and_leaves_the_cache_alone(cache):
    done = run(app, ["doctor", "--json", "--compile"])
    assert done.exit_code == 0, done.stderr
    times = json.loads(done.stdout)["compilation"]
    assert times["kernels"]
    assert all(seconds > 0 for seconds in times["kernels"].values())
    assert sum(times["kernels"].values()) + times["imports"] <= times["total"]
    assert not cache.exists()


def test_cold_start_is_printed_slowest_first(cache, monkeypatch):
    times = {"imports": 0.5, "kernels": {"quick": 1.0, "slow": 2.0}, "total": 3.75}
    monkeypatch.setattr(cold_compile, "measure", lambda: times)
    done = run(app, ["doctor", "--compile"])
    assert done.exit_code == 0
    words = done.stdout.partition("Cold start")[2].split()
    assert words[:12] == ["slow", "2.00", "s", "quick", "1.00", "s", "imports", "0.50", "s", "all", "3.75", "s"]


def test_compiling_that_fails_is_a_problem(cache, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    done = run(app, ["doctor", "--compile"])
    assert done.exit_code == 1
    assert "the compiling process ended with status 1" in done.stderr
