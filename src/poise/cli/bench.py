"""`poise bench`: run the benchmarks of a checkout.

A benchmark is a file `benchmarks/NAME.py` with a function `main(argv: list[str]) -> int`: it prints its table, writes
its numbers to the file that `--json FILE` names, takes few repeats with `--quick`, and returns an exit status. Names
that begin with an underscore are helpers.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from poise.cli.report import clear_errors, fail, nearest, to_json


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Which benchmarks; all when missing.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the numbers of all of them to this file.", show_default=False)
    ] = None,
    list_: Annotated[bool, typer.Option("--list", "-l", help="Print the names of the benchmarks.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few repeats: to see that they run.")] = False,
) -> None:
    """Run benchmarks beside peer engines (in a checkout of Poise)."""
    scripts = find_scripts(checkout())
    if list_:
        for name, script in scripts.items():
            typer.echo(f"{name}: {summary(script)}")
        return
    chosen = names or list(scripts)
    if not chosen:
        fail("there are no benchmarks in this checkout")
    for name in chosen:
        if name not in scripts:
            fail(f"no benchmark is called {name!r}{nearest(name, scripts)} (there are: {', '.join(scripts) or 'none'})")
    if json_file is not None:
        # found out now rather than after minutes of measuring
        with clear_errors():
            json_file.touch()
    options = ["--quick"] if quick else []
    results = {name: run_script(name, scripts[name], options, want_json=json_file is not None) for name in chosen}
    if json_file is not None:
        json_file.write_text(to_json(results) + "\n", encoding="utf-8")
    failed = [name for name, result in results.items() if result["status"] != 0]
    if failed:
        fail(f"{len(failed)} of {len(results)} benchmarks failed: {', '.join(failed)}")


def checkout() -> Path:
    """The folder `benchmarks` of the checkout that this package is imported from."""
    folder = Path(__file__).resolve().parents[3] / "benchmarks"
    if not folder.is_dir():
        fail("benchmarks are not part of the installed package: run this in a checkout of Poise (git clone, ./demo)")
    return folder


def find_scripts(folder: Path) -> dict[str, Path]:
    """Benchmarks by name."""
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}


def summary(script: Path) -> str:
    """First line of the script's docstring, read without running it."""
    import ast

    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def run_script(name: str, script: Path, options: list[str], *, want_json: bool) -> dict[str, Any]:
    """Run one benchmark; status, wall time in s, and its numbers when they are wanted."""
    typer.echo(f"== {name}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.json"
        status = _call(script, options + (["--json", str(file)] if want_json else []))
        result: dict[str, Any] = {"status": status, "seconds": round(time.perf_counter() - start, 3)}
        if want_json:
            try:
                result["data"] = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                typer.echo(f"poise: {name} wrote no usable JSON: {error}", err=True)
                result["status"] = status or 1
    typer.echo(f"== {name}: status {result['status']}, {result['seconds']:.1f} s")
    return result


def _call(script: Path, argv: list[str]) -> int:
    """Status of the script's `main(argv)`; whatever it raises is shown and counts as a failure."""
    sys.path.insert(0, str(script.parent))
    try:
        main: Callable[[list[str]], int] | None = runpy.run_path(str(script), run_name=script.stem).get("main")
        if main is None:
            typer.echo(f"poise: {script.name} has no function main(argv)", err=True)
            return 1
        return int(main(argv) or 0)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.path.remove(str(script.parent))
