"""Recordings that are written while the run goes on: the same numbers, no more memory, and nothing lost when killed."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.sim import Recording
from poise.sim.recording_file import arrays_of


def bouncing():
    """Boxes that fall on each other: contacts that come and go, and events."""
    scene = poise.Scene(name="boxes")
    scene.add_ground()
    for k in range(3):
        scene.add(poise.box(0.2, 0.2, 0.2), name=f"box{k}", position=(0.03 * k, 0, 0.3 + 0.4 * k))
    return scene.build(dt=1 / 240)


def same(a, b):
    mine, theirs = arrays_of(a), arrays_of(b)
    assert mine.keys() == theirs.keys()
    for name in mine.keys() - {"header"}:
        assert mine[name].dtype == theirs[name].dtype, name
        assert mine[name].shape == theirs[name].shape, name
        assert mine[name].tobytes() == theirs[name].tobytes(), name
    assert a.events == b.events
    assert a.options == b.options


@pytest.mark.parametrize("seconds", [0.5, 1.0 - 1 / 240, 1.0, 3.0])  # 121, 240, 241 and 721 frames
def test_what_is_streamed_is_what_is_recorded(seconds, tmp_path):
    signals = {"height": lambda world: world.q[2:3], "a/b": lambda world: world.time}
    whole = bouncing().run(seconds, signals=signals)
    path = bouncing().stream(seconds, tmp_path / "x.h5", signals=signals)
    assert path == tmp_path / "x.h5"
    same(Recording.load(path), whole)
    assert len(whole.events) > 0
    assert len(whole.contacts.depth) > 0


@pytest.mark.parametrize("record", [(), ("energy",), ("contacts", "torques")])
def test_parts_and_every_other_frame(record, tmp_path):
    whole = bouncing().run(1.5, every=7, record=record)
    same(Recording.load(bouncing().stream(1.5, tmp_path / "x.h5", every=7, record=record)), whole)


def test_a_world_in_which_nothing_moves(tmp_path):
    again = Recording.load(poise.Scene().build(dt=0.25).stream(100.0, tmp_path / "x.hdf5"))
    assert len(again) == 401
    assert again.q.shape == (401, 0)


def test_signals_of_changing_kinds(tmp_path):
    world = poise.Scene().build(dt=0.25)
    again = Recording.load(
        world.stream(100.0, tmp_path / "x.h5", signals={"late": lambda w: 0 if w.time < 80 else 0.5})
    )
    assert again.signals["late"].tolist() == [0.0] * 320 + [0.5] * 81


def test_memory_stays_flat(tmp_path):
    """4 000 frames of 8 kB: 32 MB that are not held. What is held is two parts of 240 frames, 4 MB, and some."""
    import tracemalloc

    numbers, held = np.arange(1000.0), []
    world = poise.Scene().build(dt=0.01)

    def look(world):
        if len(held) * 2.0 <= world.time:
            held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        path = world.stream(40.0, tmp_path / "x.h5", signals={"much": lambda w: numbers + w.time}, before_step=look)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(f"held {min(held[1:]) / 1e6:.1f} to {max(held[1:]) / 1e6:.1f} MB, {peak / 1e6:.1f} at most")
    assert path.stat().st_size > 31e6
    assert peak < 12e6
    assert max(held[len(held) // 2 :]) < max(held[: len(held) // 2]) + 1e6  # the second half takes no more
    assert Recording.load(path).signals["much"][2000, 3] == pytest.approx(23.0)


KILLED = """
    import sys
    sys.path.insert(0, {folder!r})
    from test_streams import bouncing

    def tell(world):
        print(world.time, flush=True)

    bouncing().stream(1e4, {path!r}, before_step=tell)
"""


def test_a_killed_run_leaves_what_it_wrote(tmp_path):
    path = tmp_path / "x.h5"
    script = textwrap.dedent(KILLED).format(folder=str(Path(__file__).parent), path=str(path))
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if float(line) > 2.5:
                break
        while_running = Recording.load(path)
        for line in process.stdout:
            if float(line) > 4.6:
                break
        time.sleep(0.05)  # somewhere in the midst of something
        process.kill()
    again = Recording.load(path)
    assert 480 <= len(while_running) <= len(again)  # two parts of 240 frames, and more
    assert len(again) >= 4.6 * 240 - 240
    assert again.contacts is not None
    whole = bouncing().run(float(again.time[-1]))
    for name in ("time", "q", "v"):
        assert getattr(again, name).tobytes() == getattr(whole, name).tobytes()
        assert getattr(while_running, name).tobytes() == getattr(whole, name)[: len(while_running)].tobytes()
    assert again.contacts.start.tobytes() == whole.contacts.start.tobytes()
    assert again.contacts.force.tobytes() == whole.contacts.force.tobytes()
    assert again.events[: len(whole.events)] == whole.events


def test_a_run_that_is_stopped_ends_its_file(tmp_path):
    def stop(world):
        if world.time > 1.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bouncing().stream(5.0, tmp_path / "x.h5", before_step=stop)
    again = Recording.load(tmp_path / "x.h5")
    assert again.time[-1] == pytest.approx(1.5 + 1 / 240)
    assert len(again) == 362


def test_damage_is_found_in_streams_too(tmp_path):
    path = bouncing().stream(2.0, tmp_path / "x.h5")
    whole = path.read_bytes()
    at = whole.index(Recording.load(path).q[200:203].tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(poise.SceneError, match="damaged"):
        Recording.load(path)


@pytest.mark.parametrize(
    ("name", "told"),
    [("x.npz", 'written as HDF5: ".h5", found ".npz"'), ("no/x.h5", "there is no such folder"), ("", "it is a folder")],
)
def test_where_nothing_can_be_streamed_to(name, told, tmp_path):
    with pytest.raises(poise.SceneError, match=told):
        bouncing().stream(1.0, tmp_path / name)


def test_without_h5py_it_is_told_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"poise\[hdf5\]"):
        bouncing().stream(1e9, tmp_path / "x.h5")
