"""`poise doctor`: versions and settings of this installation, and its problems."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from poise._version import __version__
from poise.cli.report import print_facts, to_json

REQUIRED = ("numpy", "numba", "llvmlite", "pydantic", "pyyaml", "typer", "rich")

#: package, the extra that installs it, purpose
OPTIONAL = (
    ("mujoco", "mjcf", "reading MJCF files, benchmarks"),
    ("h5py", "hdf5", "recordings as HDF5"),
    ("usd-core", "usd", "recordings as USD"),
    ("imageio-ffmpeg", "video", "films as mp4, where there is no ffmpeg"),
    ("viser", "view", "the live viewer"),
    ("pyarrow", "parquet", "tables of sweeps as Parquet"),
    ("distributed", "dask", "sweeps on a cluster of Dask"),
    ("ray", "ray", "sweeps on a cluster of Ray"),
    ("gymnasium", "gym", "environments for reinforcement learning"),
    ("dm-control", "bench", "benchmarks; not for Python 3.13"),
    ("pin", "bench", "benchmarks; not for Windows"),
    ("pybvh", "bench", "benchmarks"),
    ("pybullet", "bullet", "benchmarks; up to Python 3.11"),
)


@dataclass
class Diagnosis:
    """The findings of the doctor."""

    versions: dict[str, str | None]
    machine: dict[str, Any]
    cache: dict[str, Any]
    optional: dict[str, dict[str, str | None]]
    compilation: dict[str, Any] | None = None
    """Times of a cold start by part, with `--compile`; s."""
    problems: list[str] = field(default_factory=list)
    """One sentence for each problem that prevents Poise from working."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    cold: Annotated[
        bool, typer.Option("--compile", help="Compile the standard kernels from nothing and print the times.")
    ] = False,
) -> None:
    """Check the installation, the processor and the cache."""
    found = diagnose()
    if cold and not found.problems:
        _compile(found)
    if as_json:
        typer.echo(to_json(vars(found)))
    else:
        _print(found)
    if found.problems:
        raise typer.Exit(1)


def diagnose() -> Diagnosis:
    """Run all checks; problems are collected, not raised."""
    versions = {name: _version(name) for name in REQUIRED}
    problems = [f"{name} is missing: pip install {name}" for name, version in versions.items() if version is None]
    cpu, cache = _kernel_facts(problems)
    return Diagnosis(
        versions={"poise": __version__, "python": platform.python_version(), **versions},
        machine={"platform": platform.platform(), "interpreter": sys.executable, "cpu": cpu},
        cache=cache,
        optional={
            name: {"version": _version(name), "extra": extra, "purpose": purpose} for name, extra, purpose in OPTIONAL
        },
        problems=problems,
    )


def _compile(found: Diagnosis) -> None:
    """Try a cold start in a temporary cache."""
    from poise.cli import cold_compile

    try:
        found.compilation = cold_compile.measure()
    except RuntimeError as error:
        found.problems.append(f"kernels cannot be compiled here: {error}")


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _kernel_facts(problems: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The processor's features according to the compiler, and the cache of compiled kernels."""
    try:
        from poise.kernel import jit

        folder = jit.cache_dir()
        cpu, cache = dict(jit.cpu()), {"path": str(folder), "key": jit.cache_key(), **_contents(folder)}
    except Exception as error:  # a broken compiler can raise any exception, which the doctor must report
        problems.append(f"kernels cannot be compiled here: {type(error).__name__}: {error}")
        return {"name": platform.processor() or platform.machine()}, {}
    if not _writable(folder):
        problems.append(f"the kernel cache {folder} cannot be written: kernels will be compiled again in every run")
    return cpu, cache


def _contents(folder: Path) -> dict[str, int]:
    """Number of kernels in a cache folder that may not exist, and its size in bytes."""
    kernels, size = 0, 0
    for path in folder.glob("*") if folder.is_dir() else ():
        try:
            size += path.stat().st_size
        except OSError:  # another process may have removed it
            continue
        kernels += path.suffix == ".nbi"
    return {"entries": kernels, "bytes": size}


def _writable(folder: Path) -> bool:
    """Whether files can be created in a folder, or in the nearest existing parent."""
    import os

    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _print(found: Diagnosis) -> None:
    """Print the diagnosis as text."""
    cpu = found.machine["cpu"]
    print_facts("Versions", {name: version or "missing" for name, version in found.versions.items()})
    machine = {"platform": found.machine["platform"], "interpreter": found.machine["interpreter"]}
    machine["processor"] = str(cpu.get("name") or "unknown")
    if "simd_bits" in cpu:
        machine["SIMD"] = f"{cpu['simd_bits']} bits: {int(cpu['simd_bits']) // 64} float64 in one instruction"
    print_facts("Machine", machine)
    if found.cache:
        megabytes = found.cache["bytes"] / 1e6
        size = f"{found.cache['entries']} kernels, {megabytes:.1f} MB"
        print_facts("Kernel cache", {"path": found.cache["path"], "key": found.cache["key"], "size": size})
    print_facts("Optional packages", {name: _optional(name, entry) for name, entry in found.optional.items()})
    if found.compilation:
        _print_compilation(found.compilation)
    for problem in found.problems:
        typer.echo(f"Problem: {problem}", err=True)
    if not found.problems:
        typer.echo("All is well.")


def _print_compilation(times: dict[str, Any]) -> None:
    """Kernels, the slowest first, and the rest of the time by part."""
    kernels = sorted(times["kernels"].items(), key=lambda item: -item[1])
    rows = {name: f"{seconds:6.2f} s" for name, seconds in kernels}
    rows["imports"] = f"{times['imports']:6.2f} s"
    rows["all"] = f"{times['total']:6.2f} s"
    print_facts("Cold start", rows)


def _optional(name: str, entry: dict[str, str | None]) -> str:
    if entry["version"]:
        return entry["version"]
    return f"missing ({entry['purpose']}): pip install {name}, or the extra {entry['extra']}"
