"""Hashes of coordinates and velocities after some numbers of steps, by scene and by formulation.

A hash belongs to a target: the code that kernels are compiled to, and the code of BLAS that models are built with. The
targets `avx2` and `generic` are the same on every x86-64 processor that can run them; `native` is that of this one.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import poise
from poise.kernel.fuse import has_fma
from poise.kernel.jit import cpu

from .scenes import SCENES

HASHES = Path(__file__).parent / "hashes"
DT = 1 / 240
AFTER = (1, 10, 50, 200)
"""Numbers of steps after which results are hashed: which hash differs first tells whether rounding grew or a result is
different at once.
"""
AFTER_AT_ACCELERATION_LEVEL = (1, 10, 50)
WORLDS = 5
"""Of a batch: one group of lanes that is not full."""
Hashes = dict[str, list[str]]
"""By `scene, column`: a hash for each number of steps, or why there are no more."""


def world_of(formulation: Any) -> Callable[[str], list[str]]:
    """Run a scene in one world; bodies may sleep where the formulation and the scene want it."""

    def run(name: str) -> list[str]:
        scene, set_going = SCENES[name]()
        asleep = name == "sleepers" and formulation == poise.Reduced()
        world = scene.build(poise.Reduced(sleeping=True) if asleep else formulation, dt=DT)
        set_going(world)
        slow = formulation.level == "acceleration"
        return hashes_of(world, AFTER_AT_ACCELERATION_LEVEL if slow else AFTER)

    return run


def batch_of(precision: Any) -> Callable[[str], list[str]]:
    """Run a scene in the lanes of a batch; worlds begin alike, and differ by what pushes them."""

    def run(name: str) -> list[str]:
        scene, set_going = SCENES[name]()
        batch = scene.build_batch(WORLDS, dt=DT, precision=precision, threads=1)
        set_going(batch)
        batch.tau[...] = 0.05 * np.arange(WORLDS)[:, None]
        return hashes_of(batch, AFTER)

    return run


COLUMNS: dict[str, Callable[[str], list[str]]] = {
    "reduced": world_of(poise.Reduced()),
    "maximal": world_of(poise.Maximal()),
    "acceleration": world_of(poise.Reduced(level="acceleration")),
    "batch f32": batch_of("f32"),
    "batch f64": batch_of("f64"),
}


def hashes_of(stepped: Any, after: Iterable[int]) -> list[str]:
    """A hash of q and v after each number of steps; a step that fails ends them with the name of its error."""
    found, done = [], 0
    for steps in after:
        try:
            stepped.step(steps - done)
        except poise.Diverged as error:
            return [*found, type(error).__name__]
        done = steps
        found.append(hashlib.sha256(stepped.q.tobytes() + stepped.v.tobytes()).hexdigest()[:16])
    return found


def run(scene: str, column: str) -> list[str]:
    """Hashes of a scene; or that the formulation refuses it, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", poise.FormulationWarning)
        try:
            return COLUMNS[column](scene)
        except (poise.SceneError, ValueError, NotImplementedError) as error:
            return [f"refused: {str(error).splitlines()[0]}"]


def cells() -> list[tuple[str, str]]:
    """Every scene with every column."""
    return [(scene, column) for scene in SCENES for column in COLUMNS]


def key(scene: str, column: str) -> str:
    """Of a cell, in files."""
    return f"{scene}, {column}"


# ---- what was recorded -----------------------------------------------------------------------------------------------


def target() -> str:
    """What the bits of a result depend on, beside the sources: code generation and the code of BLAS."""
    machine = cpu()
    fused = "fma" if has_fma(machine["name"], machine["features"]) else "plain"
    return f"{machine['name']}-{machine['simd_bits']}-{fused}-blas-{blas_core()}".lower()


def blas_core() -> str:
    """The processor that NumPy's OpenBLAS has chosen code for; `unknown` for another library."""
    from numpy.linalg import _umath_linalg

    library = ctypes.CDLL(_umath_linalg.__file__)
    for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
        if hasattr(library, name):
            ask = getattr(library, name)
            ask.restype, ask.argtypes = ctypes.c_char_p, []
            return str(ask().decode())
    return "unknown"


def versions() -> dict[str, str]:
    """What else the bits of a result depend on."""
    import llvmlite
    import numba
    import scipy

    found = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    return found | {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "libc": "-".join(platform.libc_ver())}


def path_of(name: str) -> Path:
    """Where the hashes of a target are."""
    return HASHES / f"{name}.json"


def recorded(name: str) -> Hashes | None:
    """The hashes of a target, None where none were recorded."""
    path = path_of(name)
    return dict(json.loads(path.read_text(encoding="utf-8"))["hashes"]) if path.exists() else None


def record(name: str, hashes: Hashes) -> None:
    """Write the hashes of a target, with the versions that they belong to."""
    HASHES.mkdir(exist_ok=True)
    content = {"versions": versions(), "after": AFTER, "hashes": hashes}
    path_of(name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def other_versions(name: str) -> list[str]:
    """Which versions are not those of the recorded hashes."""
    before = json.loads(path_of(name).read_text(encoding="utf-8"))["versions"]
    now = versions()
    return [
        f"{package} {before.get(package)} -> {now[package]}" for package in now if before.get(package) != now[package]
    ]


def differences(before: Hashes, now: Hashes) -> list[str]:
    """One line for each cell whose hashes are not those of before: from which step on."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new' if old is None else 'gone'}")
        elif old != new:
            same = next((k for k, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            lines.append(f"{name}: differs {since(same)}{reasons(old, new)}")
    return lines


def since(same: int) -> str:
    """In words: how many hashes are equal."""
    if same == 0:
        return "from the first step on"
    return f"after {AFTER[same - 1]} steps"


def reasons(old: list[str], new: list[str]) -> str:
    """What hashes do not tell: a refusal or a divergence on one side."""
    words = [f"{when} {last!r}" for when, (*_, last) in (("was", old), ("is", new)) if not is_hash(last)]
    return f" ({', '.join(words)})" if words else ""


def is_hash(text: str) -> bool:
    """Whether an entry is a hash and no word."""
    return len(text) == 16 and not set(text) - set("0123456789abcdef")
