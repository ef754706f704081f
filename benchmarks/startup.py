"""How long Poise takes to start: imports, the command line, compiling every kernel from nothing, loading it again.

Each in a process of its own. Cold means an empty cache (POISE_CACHE_DIR in a folder that is thrown away) and every
entry that the packages of kernels declare, at every width that it is used at; warm means the same once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _common import Case, Report, Row, Spread, Timings, arguments, effort, measure

QUESTION = "how long Poise takes to start"

COMPILE_ALL = Path(__file__).resolve().parent / "_compile_all.py"


def run(command: list[str], **environment: str) -> str:
    """Output of a command."""
    quiet = os.environ | {"POISE_QUIET": "1"} | environment
    done = subprocess.run(command, env=quiet, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:3])} … ended with status {done.returncode}")
    return done.stdout


def command_case(name: str, *command: str) -> Case:
    """A command that is run again and again."""

    def many(n: int) -> None:
        for _ in range(n):
            run([sys.executable, *command])

    return Case(name, many)


def compile_all(folder: str, quick: bool) -> dict[str, Any]:
    """Every entry with a cache in this folder, by as many processes as there are cores."""
    jobs = os.cpu_count() or 1
    begin = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        shares = list(pool.map(lambda k: compile_share(folder, quick, f"{k}/{jobs}"), range(jobs)))
    kernels = {name: seconds for share in shares for name, seconds in share["kernels"].items()}
    compiled = sum(share["compiled"] for share in shares)
    return {"kernels": kernels, "compiled": compiled, "total": time.perf_counter() - begin, "jobs": jobs}


def compile_share(folder: str, quick: bool, share: str) -> dict[str, Any]:
    """What one process compiles."""
    flags = ["--quick"] if quick else []
    command = [sys.executable, str(COMPILE_ALL), *flags, f"--share={share}"]
    findings: dict[str, Any] = json.loads(run(command, POISE_CACHE_DIR=folder))
    return findings


def once(seconds: float) -> Spread:
    """Something that was measured once."""
    return Spread(seconds, seconds, seconds)


def kernel_rows(cold: dict[str, Any], warm: dict[str, Any]) -> list[Row]:
    """Cold compilation, in all and entry by entry, and the warm start."""
    count = f"{cold['compiled']} of {len(cold['kernels'])} entries compiled, once, {cold['jobs']} at a time"
    alone = [seconds for name, seconds in cold["kernels"].items() if name.endswith(" f64")]
    rows = [
        Row("cold: imports and all kernels", once(cold["total"]), unit="s", most=60.0, note=count),
        Row(
            "cold: kernels of one world, one by one",
            once(sum(alone)),
            unit="s",
            most=60.0,
            note=f"{len(alone)} entries",
        ),
        Row("warm: imports and all kernels", once(warm["total"]), unit="s", note=f"{warm['compiled']} compiled"),
        Row("warm: kernels alone", once(sum(warm["kernels"].values())), unit="s"),
    ]
    slowest = sorted(cold["kernels"].items(), key=lambda item: -item[1])
    return rows + [Row(f"cold: {name}", once(seconds), unit="s") for name, seconds in slowest]


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv)
    much = effort(options, rounds=15, batch=0.0)
    if options.quick and options.rounds is None:
        much = type(much)(3, 0.0)
    times: Timings = measure(
        [
            command_case("python", "-c", "pass"),
            command_case("import", "-c", "import poise"),
            command_case("help", "-m", "poise", "--help"),
            command_case("dynamics", "-c", "import poise.dynamics"),
        ],
        much,
    )
    with tempfile.TemporaryDirectory(prefix="poise-cold-") as folder:
        cold, warm = (compile_all(folder, options.quick) for _ in range(2))
    rows = [
        Row("python alone", times.of("python"), unit="s", note="process included"),
        Row("import poise, less python alone", times.excess("import", "python"), unit="s", most=0.5),
        Row("poise --help", times.of("help"), unit="s", most=0.4, note="process included"),
        Row("import poise.dynamics", times.of("dynamics"), unit="s", note="process included; brings the compiler"),
        *kernel_rows(cold, warm),
    ]
    settings = {"rounds": much.rounds, "widths": "f64" if options.quick else "f64, f64x8, f32x16"}
    return Report("startup", QUESTION, settings, rows).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
