"""What the benchmarks share: interleaved timing, the table, and JSON with the facts of the machine.

Every round times each case once, in the one order and then in the other (A B, B A, A B, …), so that drift of the clock
and of other processes affects all of them alike. Ratios are formed within a round; medians and quartiles are reported.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("numpy", "numba", "llvmlite", "mujoco", "dm-control", "pin", "pybullet")


@dataclass(frozen=True)
class Case:
    """Something to time."""

    name: str
    run: Callable[[int], object]
    """Does the work so many times."""
    worlds: int = 1
    """Worlds (or forces) that one unit of the work serves; times are per world."""
    prepare: Callable[[], object] | None = None
    """Called before every batch, not timed."""


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(samples: Iterable[float]) -> Spread:
        """Of some samples."""
        low, median, high = np.percentile(np.fromiter(samples, float), (25, 50, 75))
        return Spread(float(median), float(low), float(high))


class Timings:
    """Seconds of each case (for one world) in each round."""

    def __init__(self, seconds: Mapping[str, Sequence[float]]) -> None:
        self.seconds = {name: np.asarray(samples, float) for name, samples in seconds.items()}

    def of(self, name: str) -> Spread:
        """Time of a case; s."""
        return Spread.of(self.seconds[name])

    def ratio(self, name: str, beside: str) -> Spread:
        """Time of a case as a fraction of another's, round by round."""
        return Spread.of(self.seconds[name] / self.seconds[beside])

    @staticmethod
    def mean(many: Sequence[Timings]) -> Timings:
        """The mean of several kinds of the same cases, round by round."""
        names = many[0].seconds
        return Timings({name: np.mean([times.seconds[name] for times in many], axis=0) for name in names})

    def excess(self, name: str, beside: str) -> Spread:
        """Time of a case less another's, round by round; s."""
        return Spread.of(self.seconds[name] - self.seconds[beside])


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    batch: float
    """Least time of one batch; s."""
    clock: str = "perf_counter"
    """Of the module `time`: `process_time` leaves out what other processes take."""


def measure(cases: Sequence[Case], effort: Effort) -> Timings:
    """Time the cases in turns."""
    clock = getattr(time, effort.clock)
    counts = {case.name: _batch_size(case, effort.batch, clock) for case in cases}
    seconds: dict[str, list[float]] = {case.name: [] for case in cases}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(effort.rounds):
            for case in cases if k % 2 == 0 else reversed(cases):
                count = counts[case.name]
                seconds[case.name].append(_time(case, count, clock) / (count * case.worlds))
    finally:
        if collecting:
            gc.enable()
    return Timings(seconds)


def _time(case: Case, count: int, clock: Callable[[], float]) -> float:
    if case.prepare is not None:
        case.prepare()
    start = clock()
    case.run(count)
    return clock() - start


def _batch_size(case: Case, least: float, clock: Callable[[], float]) -> int:
    """Repetitions that take at least this many seconds; warms up meanwhile."""
    count = 1
    _time(case, count, clock)
    while (taken := _time(case, count, clock)) < least:
        count = max(2 * count, math.ceil(count * least / max(taken, 1e-7)))
    return count


@dataclass
class Row:
    """One line of the table: a time (or another number) and, where there is something beside it, their ratio."""

    what: str
    value: Spread
    unit: str = "µs"
    """µs: `value` is in seconds and shown in µs; s: in seconds; 1: a plain number."""
    beside: str = ""
    ratio: Spread | None = None
    least: float | None = None
    """Target for the ratio, where there is one, else for the value."""
    most: float | None = None
    residual: float | None = None
    allowed: float = 1e-9
    """Largest residual of an answer that counts as right."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.least is None and self.most is None:
            return None
        number = (self.ratio or self.value).median
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)


@dataclass
class Report:
    """What a benchmark found."""

    name: str
    question: str
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    results: list[np.ndarray] = field(default_factory=list)
    """What Poise computed; its hash tells whether two runs did the same."""
    more: dict[str, Any] = field(default_factory=dict)
    """What else belongs into the JSON, by name."""

    def wrong(self) -> list[Row]:
        """Rows whose answers are not right, NaN among them."""
        return [row for row in self.rows if row.residual is not None and not row.residual <= row.allowed]

    def digest(self) -> str | None:
        """Hash of the results; None without any."""
        if not self.results:
            return None
        hasher = hashlib.sha256()
        for result in self.results:
            hasher.update(np.ascontiguousarray(result).tobytes())
        return hasher.hexdigest()[:16]

    def finish(self, json_file: str | None, tables: Callable[[Report], None] | None = None) -> int:
        """Print the table, or tables of one's own, and write the JSON.

        0 unless an answer is wrong; a target that is missed is told, no more.
        """
        (tables or show)(self)
        if json_file is not None:
            Path(json_file).write_text(json.dumps(_finite(self.data()), indent=2, allow_nan=False) + "\n", "utf-8")
        for row in self.wrong():
            print(f"wrong: residual of {row.what} is {row.residual}, at most {row.allowed} is right")
        return 1 if self.wrong() else 0

    def data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "benchmark": self.name,
            "question": self.question,
            "machine": machine(),
            "settings": self.settings,
            "rows": [asdict(row) | {"met": row.met} for row in self.rows],
            "digest": self.digest(),
            **self.more,
        }


def _finite(data: Any) -> Any:
    """Numbers that JSON cannot hold become null."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def machine() -> dict[str, Any]:
    """Processor, system and versions."""
    from poise import __version__
    from poise.kernel.jit import cpu

    target = cpu()
    versions = {"python": platform.python_version(), "poise": __version__}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "compiled_for": target["name"],
        "simd_bits": target["simd_bits"],
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "platform": platform.platform(),
        "versions": versions,
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def arguments(
    question: str,
    argv: Sequence[str],
    *,
    model: bool = False,
    extend: Callable[[argparse.ArgumentParser], None] | None = None,
    **flags: str,
) -> argparse.Namespace:
    """Read the arguments that all benchmarks take, some flags of one's own (name: help), and what `extend` adds."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--json", metavar="FILE", help="write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a look, not a result")
    parser.add_argument("--rounds", type=_positive, help="how often each case is timed")
    if model:
        parser.add_argument("--model", metavar="FILE", help="an MJCF file in place of MuJoCo's humanoid")
    for name, text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    if extend is not None:
        extend(parser)
    return parser.parse_args(list(argv))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} rounds; at least 1 is needed")
    return number


def effort(options: argparse.Namespace, rounds: int = 200, batch: float = 1e-3) -> Effort:
    """What the arguments ask for."""
    if options.quick:
        rounds, batch = 9, 2e-4
    return Effort(options.rounds or rounds, batch)


# ---- table -----------------------------------------------------------------------------------------------------------

_SCALE = {"µs": (1e6, ".3f"), "s": (1.0, ".3f"), "1": (1.0, ".3f")}


def show(report: Report) -> None:
    """The table for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    table = Table(title=f"{report.name}: {report.question}", title_justify="left")
    table.add_column("what", no_wrap=True)
    for column in ("median", "quartiles", "ratio", "quartiles"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("beside", "target", "met", "residual", "note"):
        table.add_column(column, no_wrap=column in ("target", "met", "residual"))
    for row in report.rows:
        table.add_row(*_cells(row))
    console.print(table)
    for line in circumstances(report):
        console.print(line)


def circumstances(report: Report) -> list[str]:
    """The machine, the settings, and the digest of the results, in two lines."""
    facts = machine()
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    return [
        f"{facts['cpu']}, code for {facts['compiled_for']} ({facts['simd_bits']} bits), load {facts['load']}",
        settings + (f"; digest of results {report.digest()}" if report.results else ""),
    ]


def _cells(row: Row) -> list[str]:
    scale, form = _SCALE[row.unit]
    unit = "" if row.unit == "1" else f" {row.unit}"
    cells = [row.what, f"{row.value.median * scale:{form}}{unit}", _quartiles(row.value, scale)]
    cells += [f"{row.ratio.median:.3f}", _quartiles(row.ratio, 1.0)] if row.ratio else ["", ""]
    met = {None: "", True: "yes", False: "NO"}[row.met]
    residual = "" if row.residual is None else f"{row.residual:.1e}"
    return [*cells, row.beside, _target(row), met, residual, row.note]


def _quartiles(spread: Spread, scale: float) -> str:
    return f"{spread.low * scale:.3f}–{spread.high * scale:.3f}"


def _target(row: Row) -> str:
    scale = 1.0 if row.ratio else _SCALE[row.unit][0]
    if row.least is not None and row.most is not None:
        return f"{row.least * scale:g} to {row.most * scale:g}"
    if row.most is not None:
        return f"≤ {row.most * scale:.3g}"
    return "" if row.least is None else f"≥ {row.least * scale:.3g}"
