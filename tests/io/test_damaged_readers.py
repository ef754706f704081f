"""Damaged files of every reader: an error of Poise that names the file and the line, soon and within bounds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import damaged_readers

SECONDS, MEGABYTES = 5.0, 500.0
"""Processor time of a file, and memory of the process that reads them."""
SLICES, SLICE = 4, 5000


def answers(folder, kind: str, first: int, count: int, seconds: float) -> None:
    """What a process of its own finds in so many damaged files."""
    command = [sys.executable, damaged_readers.__file__, str(folder), kind, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    now = folder / "now"
    assert done.returncode == 0, f"{now.read_text() if now.exists() else ''}: {done.returncode}\n{done.stderr[-3000:]}"
    found = json.loads(done.stdout)
    print({name: value for name, value in found.items() if name != "wrong"})
    assert found["wrong"] == []
    assert found["slowest"] < SECONDS, found["worst"]
    assert found["peak"] < MEGABYTES
    assert 0 < found["refused"] < count


@pytest.mark.parametrize("kind", damaged_readers.READERS)
def test_some_damaged_files(kind, tmp_path):
    answers(tmp_path, kind, 0, 40, 300)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("kind", damaged_readers.READERS)
def test_twenty_thousand_damaged_files(kind, part, tmp_path):
    answers(tmp_path, kind, 1000 + SLICE * part, SLICE, 7200)
