"""Ten minutes of a person: saved and opened again, every bit is the same; damage is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.dynamics.state_queries import Energy
from poise.sim import Recording
from poise.sim.events import Event
from poise.sim.recording import Contacts
from poise.sim.recording_file import arrays_of

FRAMES = 36_001
"""Ten minutes at 60 frames a second."""


@pytest.fixture(scope="module")
def long() -> Recording:
    """Numbers of all sorts, −0 and the smallest ones among them, in the shapes that a run gives."""
    scene = poise.Scene(name="ten minutes")
    scene.add_ground()
    scene.add(poise.characters.humanoid(), name="hero")
    short = scene.build(dt=1 / 240).run(0.1)
    model, rng = short.model, np.random.default_rng(0)
    counts = rng.integers(0, 9, FRAMES)
    n = int(counts.sum())
    q, v = rng.normal(size=(FRAMES, model.nq)), rng.normal(size=(FRAMES, model.nv))
    q[5, :4] = (-0.0, 5e-324, 1e308, 0.1)
    return Recording(
        np.arange(FRAMES) / 60.0,
        q,
        v,
        model,
        Contacts(
            np.concatenate(([0], np.cumsum(counts))),
            rng.integers(0, len(model.solids), (n, 2)).astype(np.int32),
            rng.normal(size=(n, 3)),
            rng.normal(size=(n, 3)),
            rng.normal(size=n),
            rng.normal(size=(n, 3)),
        ),
        Energy(*rng.normal(size=(3, FRAMES))),
        {"rows": rng.integers(0, 90, FRAMES), "residual": rng.random(FRAMES)},
        {"tau": rng.normal(size=(FRAMES, model.nv)), "passive": rng.normal(size=(FRAMES, model.nv))},
        {"a/b": rng.normal(size=(FRAMES, 2, 3)), "..": rng.random(FRAMES) > 0.5, "é %2F": rng.random(FRAMES)},
        (Event("contact_begin", 0.5, ("hero/foot_l", "ground"), (3, 0)),),
        short.options,
    )


@pytest.mark.parametrize(("suffix", "options"), [(".npz", {}), (".h5", {}), (".h5", {"compression": "gzip"})])
def test_ten_minutes_come_back_bit_for_bit(long: Recording, suffix: str, options: dict, tmp_path: Path) -> None:
    file = tmp_path / f"long{suffix}"
    long.save(file, **options)
    again = Recording.load(file)
    mine, theirs = arrays_of(long), arrays_of(again)
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        assert array.dtype == theirs[name].dtype, name
        assert array.shape == theirs[name].shape, name
        assert array.tobytes() == theirs[name].tobytes(), name
    assert again.model.digest() == long.model.digest()
    assert again.options == long.options
    assert again.events == long.events
    assert {"poise", "python", "numpy"} <= again.options["versions"].keys()
    # what is around the numbers takes next to nothing
    assert file.stat().st_size < 1.02 * sum(array.nbytes for array in mine.values()) + 100_000


def test_damage_is_found(tmp_path: Path) -> None:
    scene = poise.Scene()
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    file = tmp_path / "x.h5"
    scene.build(dt=0.001).run(0.5).save(file)
    whole = file.read_bytes()
    at = whole.index(Recording.load(file).q[200:203].tobytes())
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(poise.SceneError, match="damaged"):
        Recording.load(file)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(poise.SceneError, match=r"not a recording that Poise saved, or one that was damaged"):
        Recording.load(file)


def test_hdf5_of_others(tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(3)
    with pytest.raises(poise.SceneError, match="not a recording that Poise saved: its header is missing"):
        Recording.load(tmp_path / "other.h5")


def test_signals_with_names_of_any_sort(tmp_path: Path) -> None:
    names = ["", ".", "..", "a", "a/b", "/a", "%", "%25", "x\ty", "ünïcödé", "a.npy", " "]
    world = poise.Scene().build(dt=0.1)
    recording = world.run(0.3, signals={name: lambda w, k=k: k for k, name in enumerate(names)})
    recording.save(tmp_path / "x.h5")
    again = Recording.load(tmp_path / "x.h5")
    assert {name: values.tolist() for name, values in again.signals.items()} == {
        name: [k] * 4 for k, name in enumerate(names)
    }
