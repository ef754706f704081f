"""Table of a sweep: one row per run, in plain columns; CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.io.scenes.nodes import plain_value
from poise.model.errors import SceneError, did_you_mean
from poise.model.regular_file import check_regular, read_regular
from poise.sim.export_formats import checked_path, whole_file

Array = NDArray[Any]
BEFORE, AFTER = ("run",), ("status", "time", "note")
"""Columns besides settings and metrics: number of the run; status, simulated time (s), and error."""
_MARK = "poise sweep"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a sweep in the order of its runs.

    >>> table = Table({"run": np.array([0, 1]), "mass": np.array([1.0, 2.0]), "height": np.array([3.0, 4.0])}, ["mass"])
    >>> table["height"].tolist(), len(table), table.row(1)["mass"]
    ([3.0, 4.0], 2, 2.0)
    """

    columns: dict[str, Array]
    """Each (rows,): numbers, or text."""
    settings: Sequence[str] = ()
    """Names of the columns with settings."""
    metrics: Sequence[str] = ()
    """Names of the columns with metrics."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names with units."""

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}{did_you_mean(name, self.columns)}")
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows of {', '.join(self.columns)}>"

    def row(self, k: int) -> dict[str, Any]:
        """One row as plain values."""
        return {name: values[k].item() for name, values in self.columns.items()}

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows."""
        return map(self.row, range(len(self)))

    def plot(self, metric: str | None = None, x: str | None = None) -> Any:
        """Plot of a metric over a setting, with colours for other settings; save it with `save("name.svg")`."""
        from poise.batch.charts import drawing

        return drawing(self, metric or self.metrics[0], x)

    def csv(self) -> str:
        """As CSV; numbers are read back with the same bits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for k in range(len(self)):
            writer.writerow([_cell(values[k].item()) for values in self.columns.values()])
        return text.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as .csv, or as .parquet with pyarrow (extra `parquet`), atomically.

        >>> import tempfile
        >>> table = Table({"run": np.array([0]), "height": np.array([float("inf")])})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.save(f"{folder}/t.csv")
        ...     Table.load(f"{folder}/t.csv")["height"].tolist()
        [inf]
        """
        target = checked_path(path)
        suffix = _suffix(target)
        with whole_file(target) as temporary:
            if suffix == ".csv":
                temporary.write_text(self.csv(), encoding="utf-8", newline="")
            else:
                self._save_parquet(temporary)

    def _save_parquet(self, path: Path) -> None:
        arrow, parquet = check_parquet()
        known = json.dumps(
            {"settings": list(self.settings), "metrics": list(self.metrics), "labels": dict(self.labels)}
        )
        arrays = {name: arrow.array(values.tolist()) for name, values in self.columns.items()}
        parquet.write_table(arrow.table(arrays).replace_schema_metadata({_MARK: known}), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Table:
        """Read a file of `save`. CSV does not distinguish settings and metrics."""
        target = Path(path)
        try:
            return _load_csv(target) if _suffix(target) == ".csv" else _load_parquet(target)
        except OSError as error:
            raise SceneError(f"cannot be read: {error.strerror or error}", file=str(target)) from None


def check_parquet() -> tuple[Any, Any]:
    """The packages that write Parquet, or ImportError with the command that installs them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install pyarrow, or the extra poise[parquet]") from None
    return pyarrow, pyarrow.parquet


def column(values: Sequence[Any]) -> Array:
    """A column of plain values: whole numbers, numbers, truths, or text.

    >>> column([1, 2.5]).tolist(), column(["walk", 3]).tolist(), column([[0, 1]]).tolist()
    ([1.0, 2.5], ['walk', '3'], ['[0, 1]'])
    """
    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return np.array(values, bool)
    if kinds <= {int} and all(abs(value) < 1 << 62 for value in values):
        return np.array(values, np.int64)
    if kinds <= {int, float}:
        return np.array(values, np.float64)
    return np.array([value if isinstance(value, str) else json.dumps(value) for value in values], np.str_)


def _cell(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise SceneError(f'tables are saved as .csv or .parquet, found "{path.suffix}"', file=str(path))
    return suffix


def _load_csv(path: Path) -> Table:
    lines = _csv_lines(path)
    if not lines:
        raise SceneError("it is no table: it is empty", file=str(path))
    bad = next((k for k, (_, words) in enumerate(lines) if len(words) != len(lines[0][1])), None)
    if bad is not None:
        what = f"it is no table: its first line has {len(lines[0][1])} columns, this one {len(lines[bad][1])}"
        raise SceneError(what, file=str(path), line=lines[bad][0])
    names = lines[0][1]
    if len(set(names)) < len(names):
        raise SceneError("it is no table: two columns have the same name", file=str(path), line=1)
    return Table({name: _parsed([words[k] for _, words in lines[1:]]) for k, name in enumerate(names)})


def _csv_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Lines of a CSV file with their numbers."""
    content = read_regular(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise SceneError(what, file=str(path), line=line) from None
    reader, lines = csv.reader(io.StringIO(text, newline=""), strict=True), []
    try:
        for words in reader:
            lines.append((reader.line_num, words))
    except csv.Error as error:
        raise SceneError(f"it is no table: {error}", file=str(path), line=reader.line_num) from None
    return lines


def _parsed(words: list[str]) -> Array:
    values = [plain_value(word) for word in words]
    return column(values if not any(value is None or isinstance(value, str) for value in values) else words)


def _load_parquet(path: Path) -> Table:
    _, parquet = check_parquet()
    try:
        check_regular(path)
        table = parquet.read_table(path)
        known = json.loads((table.schema.metadata or {}).get(_MARK.encode(), b"{}"))
        columns = {name: column(table.column(name).to_pylist()) for name in table.column_names}
        return Table(columns, **known)
    except OSError:
        raise
    except Exception as error:  # a damaged file may raise anything in pyarrow
        text = " ".join(str(error).split()) or type(error).__name__
        raise SceneError(f"it is no Parquet of a sweep: {text:.200}", file=str(path)) from None
