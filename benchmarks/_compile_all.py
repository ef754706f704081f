"""Compiles, or loads from the cache, every entry of Poise at every width, and prints where the time went as JSON.

A program of its own: only a new process starts cold. `--quick` takes one width; `--share=1/2` every second one, for two
processes at once.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

PACKAGES = ("dynamics", "collision", "solve", "constraints", "formulations", "control")


def kernel_modules() -> Iterator[ModuleType]:
    """Every module that may declare entries; a package may not exist yet."""
    for package in PACKAGES:
        name = f"poise.{package}"
        try:
            home = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        yield home
        for info in pkgutil.iter_modules(home.__path__):
            yield importlib.import_module(f"{name}.{info.name}")


def find_entries(modules: list[ModuleType]) -> list[Any]:
    """Entries that are global in a module, alone or in a table; each once."""
    from poise.kernel.jit import Entry

    found = {}
    for module in modules:
        for thing in vars(module).values():
            for item in thing.values() if isinstance(thing, dict) else (thing,):
                if isinstance(item, Entry):
                    found[id(item)] = item
    return list(found.values())


def uses(entry: Any, quick: bool) -> Iterator[tuple[str, Any]]:
    """Widths of an entry, with a name for each. Steps of batches run at varied widths, and test forces in lanes act on
    one world in float64.
    """
    from poise.collision.narrowphase.pair_entries import FINDERS
    from poise.dynamics.impulse_response import RESPONSE
    from poise.kernel.memory import F32, F64, Width

    of_batches = entry.function.py_func.__module__.startswith(("poise.formulations", "poise.constraints"))
    many = (Width("f64", 8, varied=of_batches), Width("f32", 16, varied=of_batches))
    widths: tuple[Any, ...] = (F64, *many) if entry.lanes else (F64,)
    if entry in [finder for finder, _ in FINDERS.values()]:
        widths = (F64, F32)  # lanes call these, each for itself
    elif entry.name in ("find_worlds", "see_rows", "gram", "answer", "multiply_worlds"):
        widths = many  # one world has other entries
    for width in widths[:1] if quick else widths:
        if RESPONSE not in entry.views:
            yield f"{entry.name} {width}", width
        elif width.elem == "f64":
            yield f"{entry.name} {width}", tuple(width if view is RESPONSE else F64 for view in entry.views)


def main(argv: list[str]) -> None:
    start = time.perf_counter()
    entries = find_entries(list(kernel_modules()))
    imported = time.perf_counter()
    seconds = {}
    share, of = next((map(int, flag[8:].split("/")) for flag in argv if flag.startswith("--share=")), (0, 1))
    todo = [(entry, *use) for entry in entries for use in uses(entry, "--quick" in argv)]
    for entry, name, widths in todo[share::of]:
        begin = time.perf_counter()
        entry[widths]
        seconds[name] = time.perf_counter() - begin
    from poise.kernel.jit import compile_log

    total = time.perf_counter() - start
    found = {"imports": imported - start, "kernels": seconds, "total": total, "compiled": len(compile_log())}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
