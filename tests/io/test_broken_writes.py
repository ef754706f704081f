"""Saves and streams that are killed, or whose disk is full: what was finished is there, and nothing crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import broken_writes
import poise
from poise.io.hdf5_file import Sink, uninterrupted
from poise.io.hdf5_stream import Stream, outline
from poise.sim import Recording

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and limits of files")


@pytest.fixture(scope="module")
def whole() -> Recording:
    return broken_writes.made(0.5)


def trials(folder: Path, first: int, count: int, seconds: float) -> dict[str, int]:
    command = [sys.executable, broken_writes.__file__, str(folder), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    print(told)
    assert told["wrong"] == []
    assert told["slowest"] < 10.0
    return told["answers"]


def test_some_killed_and_full(tmp_path):
    answers = trials(tmp_path, 0, 20, 300)
    assert any("full" in name for name in answers)
    assert any("killed" in name for name in answers)


@pytest.mark.slow
def test_two_hundred_of_each(tmp_path):
    trials(tmp_path, 1000, 400, 3600)


def limited(script: str, folder: Path, limit: int) -> subprocess.CompletedProcess[str]:
    """A program whose files can have so many bytes."""
    head = f"""
        import resource, sys
        sys.path.insert(0, {str(Path(broken_writes.__file__).parent)!r})
        import poise, broken_writes
        from poise.sim import Recording
        world = broken_writes.made(0.1)
        limit = lambda n: resource.setrlimit(resource.RLIMIT_FSIZE, (n, resource.RLIM_INFINITY))
    """
    code = textwrap.dedent(head) + textwrap.dedent(script).format(limit=limit)
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_a_recording_survives_a_full_disk(tmp_path):
    script = """
        recording = broken_writes.made(1.0)
        recording.save("x.h5")
        limit({limit})
        try:
            broken_writes.made(2.0).save("x.h5")
        except poise.SceneError as problem:
            print(problem)
        limit(-1)
        recording.save("y.h5")
        print(len(Recording.load("x.h5")), len(Recording.load("y.h5")))
    """
    done = limited(script, tmp_path, 100_000)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("x.h5: cannot be written: File too large; nothing in memory is lost")
    assert second == "241 241"
    assert done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.h5", "y.h5"]


def test_a_stream_to_a_full_disk(tmp_path):
    script = """
        scene = poise.Scene()
        scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 100))
        world = scene.build(dt=1 / 1000)
        limit({limit})
        try:
            world.stream(3.0, "x.h5")
        except poise.SceneError as problem:
            print(problem)
        limit(-1)
        rest = world.recording
        there = Recording.load("x.h5")
        print(len(there), len(rest), there.time[-1] < rest.time[-1], rest.time[0] <= there.time[-1] + 0.0011)
        rest.save("rest.h5")
        whole = scene.build(dt=1 / 1000).run(3.0)
        print(there.q.tobytes() == whole.q[:len(there)].tobytes(), world.step())
    """
    done = limited(script, tmp_path, 400_000)
    assert done.returncode == 0, done.stderr
    told, counts, same = done.stdout.splitlines()
    assert "x.h5: cannot be written: File too large" in told
    there, rest, later, adjoining = counts.split()
    assert int(there) >= 480
    assert f"{there} frames are in the file" in told
    assert int(rest) >= 240
    assert (later, adjoining) == ("True", "True")
    assert same == "True None"
    assert done.stderr == ""


class Diary(Sink):
    """A file that remembers what was written to it, in which order."""

    pages: ClassVar[list[tuple[int, bytes]]] = []

    def _write(self, content: memoryview, start: int) -> None:
        size = os.fstat(self._file).st_size
        super()._write(content, start)
        grown = os.fstat(self._file).st_size
        if start == 0 and grown > size:
            Diary.pages.append((grown, b""))  # it was made longer first
        Diary.pages.append((start, bytes(content)))


def test_a_stream_can_be_read_after_every_single_write(whole, tmp_path, monkeypatch):
    """As if it were killed there; of parts that were added nothing is missing."""
    monkeypatch.setattr("poise.io.hdf5_stream.Sink", Diary)
    monkeypatch.setattr(Diary, "pages", [])
    stream, finished = Stream(tmp_path / "x.h5", 20), []
    for first in range(0, len(whole), 20):
        stream.add(broken_writes.cut(whole, first, min(len(whole), first + 20)))
        finished.append((len(Diary.pages), stream.written))
    stream.close()
    broken_writes.check("stream", whole, whole, tmp_path / "x.h5", len(whole))
    content, path = bytearray(), tmp_path / "killed.h5"
    for k, (start, data) in enumerate(Diary.pages, 1):
        content.extend(bytes(max(0, start + len(data) - len(content))))
        content[start : start + len(data)] = data
        if k >= finished[0][0] and (k % 7 == 0 or k in dict(finished)):
            path.write_bytes(content)
            done = max(frames for writes, frames in finished if writes <= k)
            broken_writes.check("stream", whole, whole, path, done)
    assert len(Diary.pages) > 300


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_hdf5_never_sees_a_write_that_fails(whole):
    import h5py

    sink = Sink(Path("/dev/full"))
    with h5py.File(sink, "w", libver="latest") as file:
        file["x"] = np.arange(100_000.0)
        assert file["x"][77] == 77.0  # what the disk did not take is still known
    sink.close()
    assert "No space left" in str(sink.error)
    stream = Stream(Path("/dev/full"), 20)
    stream._temporary = Path("/dev/full")
    with pytest.raises(
        poise.SceneError, match=r"No space left on device; nothing in memory is lost.*nothing was written"
    ):
        stream.add(whole)
    stream._temporary = Path("/dev/null/none")  # nothing of it is to be removed
    stream.close()


def test_ctrl_c_waits_until_the_library_is_done():
    seen = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        seen.append("done")
    assert seen == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    thread = threading.Thread(target=lambda: uninterrupted().__enter__())
    thread.start()
    thread.join()


def test_a_stream_leaves_the_file_that_was_there_until_its_first_frames(whole, tmp_path):
    whole.save(tmp_path / "x.h5")
    before = (tmp_path / "x.h5").read_bytes()
    stream = Stream(tmp_path / "x.h5", 20)
    stream.close()
    assert (tmp_path / "x.h5").read_bytes() == before
    stream = Stream(tmp_path / "x.h5", 20)
    stream.add(broken_writes.cut(whole, 0, 20))
    assert len(Recording.load(tmp_path / "x.h5")) == 20  # while it is open
    assert outline(tmp_path / "x.h5")["frames"] == 20
    stream.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.h5"]


def test_a_stream_that_nobody_closes_ends_without_a_crash(tmp_path):
    script = """
        from pathlib import Path
        from poise.io.hdf5_stream import Stream
        stream = Stream(Path("x.h5"), 20)
        stream.add(world)
    """
    done = limited(script, tmp_path, 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Recording.load(tmp_path / "x.h5")) == 25
