"""Saves and streams that are killed, or whose disk is full, at random moments; run as a script it tells the outcome.

Every trial is a process of its own, forked from one that has all that is needed. A limit of the size of files
(RLIMIT_FSIZE) stands for the full disk: writes come back short, and then with an error.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np

import poise
from poise.dynamics.state_queries import Energy
from poise.io.hdf5_stream import Stream
from poise.sim import Recording
from poise.sim.recording import Contacts

FRAMES = 20
"""Of a part of a stream."""
SECONDS = 20.0
"""After which a trial hangs."""


def made(seconds: float) -> Recording:
    """Boxes that fall on each other."""
    scene = poise.Scene(name="broken")
    scene.add_ground()
    for k in range(2):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box{k}", position=(0.03 * k, 0, 0.15 + 0.3 * k))
    return scene.build(dt=1 / 240).run(seconds, signals={"height": lambda world: world.q[2:3]})


def cut(whole: Recording, first: int, last: int) -> Recording:
    """Some frames of a recording, with the events of their time."""
    frames, start = slice(first, last), whole.contacts.start
    rows = slice(int(start[first]), int(start[last]))
    found = whole.contacts
    times = whole.time[first - 1] if first else -1.0, whole.time[last - 1]
    return replace(
        whole,
        time=whole.time[frames],
        q=whole.q[frames],
        v=whole.v[frames],
        contacts=Contacts(
            start[first : last + 1] - start[first],
            *(getattr(found, name)[rows] for name in ("shapes", "point", "normal", "depth", "force")),
        ),
        energy=Energy(*(part[frames] for part in whole.energy)),
        **{
            name: {key: array[frames] for key, array in getattr(whole, name).items()}
            for name in ("solver", "torques", "signals")
        },
        events=tuple(event for event in whole.events if times[0] < event.time <= times[1]),
    )


def streamed(whole: Recording, path: Path, tell: int) -> None:
    """Write a recording part by part, and tell a pipe how many frames are there."""
    stream = Stream(path, FRAMES)
    try:
        for first in range(0, len(whole), FRAMES):
            stream.add(cut(whole, first, min(len(whole), first + FRAMES)))
            os.write(tell, stream.written.to_bytes(4, "little"))
    finally:
        stream.close()


def work(kind: str, whole: Recording, path: Path, tell: int) -> None:
    """What is broken off."""
    if kind == "stream":
        streamed(whole, path, tell)
    elif kind == "state":
        model = whole.model
        poise.State(whole.q[-1], whole.v[-1], 9.0, {"many": np.zeros(10_000)}).save(path, model)
        os.write(tell, (1).to_bytes(4, "little"))
    else:
        whole.save(path)
        os.write(tell, (1).to_bytes(4, "little"))


def child(kind: str, whole: Recording, path: Path, tell: int, limit: int | None) -> None:
    """A trial; leaves by the exit of C, at which HDF5 closes what it has open. 0: done, 3: a clear error."""
    status = 1
    try:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        work(kind, whole, path, tell)
        status = 0
    except poise.SceneError as problem:
        whole.frame(len(whole) - 1)
        status = 3 if limit is not None and "cannot be written: File too large" in str(problem) else 4
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(status)


def trial(kind: str, whole: Recording, path: Path, limit: int | None, wait: float | None) -> tuple[int, int, float]:
    """Status of the process (negative: the signal), what it told last, and the seconds that it took."""
    ears, mouth = os.pipe()
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.close(ears)
        child(kind, whole, path, mouth, limit)
    os.close(mouth)
    if wait is not None:
        time.sleep(wait)
        os.kill(pid, signal.SIGKILL)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.perf_counter() - start > SECONDS:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError("it hangs")
        time.sleep(0.002)
    seconds = time.perf_counter() - start
    told = b""
    while part := os.read(ears, 1 << 16):
        told += part
    os.close(ears)
    return os.waitstatus_to_exitcode(status), int.from_bytes(told[-4:], "little") if told else 0, seconds


def check(kind: str, old: Recording, whole: Recording, path: Path, told: int) -> str:
    """What is on the disk must be what was finished; gives which it is."""
    if kind == "state":
        found = poise.State.load(path, whole.model).time
        assert found == (9.0 if told else found)
        return "new" if found == 9.0 else "old"
    found = Recording.load(path)
    if len(found) == len(old) and not told and found.options.get("old"):
        assert found.q.tobytes() == old.q.tobytes()
        return "old"
    if kind != "stream":
        assert len(found) == len(whole), "half of a file"
    assert len(found) >= told, f"{told} frames were finished, {len(found)} are there"
    n = len(found)
    for name in ("time", "q", "v"):
        assert getattr(found, name).tobytes() == getattr(whole, name)[:n].tobytes(), name
    assert found.contacts.start.tobytes() == whole.contacts.start[: n + 1].tobytes()
    assert found.contacts.force.tobytes() == whole.contacts.force[: whole.contacts.start[n]].tobytes()
    assert found.signals["height"].tobytes() == whole.signals["height"][:n].tobytes()
    finished = [event for event in whole.events if n and event.time <= whole.time[n - 1]]
    assert list(found.events[: len(finished)]) == finished
    return "new"


def main(folder: Path, first: int, count: int) -> dict[str, object]:
    """So many trials, killed and full in turn, of each sort of file."""
    whole = made(1.0)
    old = replace(cut(whole, 0, 5), options=whole.options | {"old": True})
    sorts = [("npz", "x.npz"), ("h5", "x.h5"), ("stream", "x.h5"), ("stream", "x.h5"), ("state", "s.npz")]
    lasts, sizes = {}, {}
    for kind, name in sorts:
        path = folder / name
        nobody = os.open(os.devnull, os.O_WRONLY)
        start = time.perf_counter()
        work(kind, whole, path, nobody)
        lasts[kind] = time.perf_counter() - start
        os.close(nobody)
        sizes[kind] = path.stat().st_size
    wrong, answers, slowest = [], {}, 0.0
    for k in range(first, first + count):
        rng = np.random.default_rng(k)
        kind, name = sorts[k // 2 % len(sorts)]
        path = folder / name
        if kind == "state":
            poise.State(whole.q[0], whole.v[0], 1.0).save(path, whole.model)
        else:
            old.save(path)
        limit = int(rng.integers(0, 1.02 * sizes[kind])) if k % 2 else None
        wait = None if k % 2 else float(rng.uniform(0.0, 1.2 * lasts[kind] + 0.005))
        label = f"trial {k}: {kind}, {'killed' if limit is None else f'{limit} bytes of {sizes[kind]}'}"
        try:
            status, told, seconds = trial(kind, whole, path, limit, wait)
            slowest = max(slowest, seconds)
            assert status in ((0, 3) if limit is not None else (0, -9)), f"it ended with {status}"
            start = time.perf_counter()
            which = check(kind, old, whole, path, told)
            slowest = max(slowest, time.perf_counter() - start)
            ended = {0: "done", 3: "full", -9: "killed"}[status]
            answers[f"{kind} {ended}, {which}"] = answers.get(f"{kind} {ended}, {which}", 0) + 1
            if status != -9:
                assert not list(folder.glob(".*part*")), "a part is left"
        except Exception as problem:
            wrong.append(f"{label}: {type(problem).__name__} {problem}")
        for part in folder.glob(".*part*"):
            part.unlink()
    return {"wrong": wrong, "answers": answers, "slowest": slowest}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
