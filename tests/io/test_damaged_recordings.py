"""Damaged files of recordings and states: a clear answer, soon, within bounds, and nothing half loaded."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import damaged_files
import poise
from poise.io.hdf5_file import checksum
from poise.sim import Recording

SECONDS, MEGABYTES = 5.0, 500.0
"""Within which every answer comes."""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    damaged_files.corpus(folder)
    return folder


def answers(folder: Path, first: int, count: int, seconds: float) -> dict:
    """What a process of its own tells of so many damaged files."""
    command = [sys.executable, damaged_files.__file__, str(folder), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{(folder / 'now').read_text()}: {done.returncode}\n{done.stderr[-2000:]}"
    told = json.loads(done.stdout)
    print(told["slowest"], told["worst"], told["peak"], told["answers"])
    assert told["wrong"] == []
    assert told["slowest"] < SECONDS, told["worst"]
    assert told["peak"] < MEGABYTES
    return told


def test_some_hundred_damaged_files(tmp_path):
    told = answers(tmp_path, 0, 400, 300)
    assert all(refused > taken for kind, (refused, taken) in told["answers"].items() if "state" not in kind)


def test_files_that_unpack_to_more_than_they_hold(tmp_path):
    answers(tmp_path, 0, 0, 300)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_twenty_thousand_damaged_files(part, tmp_path):
    answers(tmp_path, 1000 + 5000 * part, 5000, 3600)


@pytest.mark.parametrize("name", ["whole.h5", "packed.h5", "stream.h5", "unclosed.h5"])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_answers_at_once(files, name, part, tmp_path):
    whole = (files / name).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: int(len(whole) * part)])
    start = time.perf_counter()
    if name == "unclosed.h5" and part > 0.9:
        # its last bytes may be of parts that were not finished
        with contextlib.suppress(poise.SceneError):
            Recording.load(tmp_path / "cut.h5")
    else:
        with pytest.raises(poise.SceneError, match="damaged or cut short"):
            Recording.load(tmp_path / "cut.h5")
    assert time.perf_counter() - start < SECONDS


def contents(files: Path) -> dict[str, np.ndarray]:
    with np.load(files / "whole.npz") as archive:
        return {name: archive[name] for name in archive.files}


def write(path: Path, content: dict[str, np.ndarray]) -> Path:
    import h5py

    if path.suffix == ".npz":
        np.savez(path, **content)
    else:
        with h5py.File(path, "w") as file:
            for name, array in content.items():
                file[name] = array
    return path


def nan(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    changed.reshape(-1)[len(changed) // 2] = np.nan
    return changed


def last(array: np.ndarray, value: int) -> np.ndarray:
    changed = array.copy()
    changed[-1] = value
    return changed


FIELDS = {
    "wrong shape": [("q", lambda a: a[:, 1:]), ("v", np.ravel), ("contacts/point", lambda a: a[:, :2])],
    "wrong dtype": [
        ("time", lambda a: a.astype("f4")),
        ("q", lambda a: a.astype("i8")),
        ("contacts/start", lambda a: a.astype("f8")),
        ("contacts/shapes", lambda a: a.astype("f8")),
        ("energy/kinetic", lambda a: a.astype("f4")),
    ],
    "NaN": [(name, nan) for name in ("time", "q", "v", "energy/kinetic", "torques/tau", "contacts/force")],
    "missing": [(name, None) for name in ("time", "q", "v", "contacts/depth", "contacts/start", "energy/kinetic")],
    "lengths that disagree": [
        (name, lambda a: a[:-1])
        for name in ("time", "energy/kinetic", "solver/rows", "torques/tau", "signals/height", "contacts/normal")
    ],
    "counts that lie": [
        ("contacts/start", lambda a: last(a, 10**6)),
        ("contacts/start", lambda a: last(a, -1)),
        ("contacts/start", lambda a: a + 1),
        ("contacts/shapes", lambda a: last(a, 99)),
        ("contacts/shapes", lambda a: last(a, -1)),
    ],
    "model": [("model/link_mass", lambda a: a[:1]), ("solids/color", lambda a: a[:1])],
}


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
@pytest.mark.parametrize("sort", FIELDS)
def test_the_field_that_is_damaged_is_named(files, sort, suffix, tmp_path):
    whole = contents(files)
    assert len(Recording.load(write(tmp_path / f"whole{suffix}", whole))) == 73
    for name, change in FIELDS[sort]:
        damaged = dict(whole)
        if change is None:
            del damaged[name]
        else:
            damaged[name] = change(whole.get(name, whole["q"]))
        with pytest.raises(poise.SceneError) as told:
            Recording.load(write(tmp_path / f"damaged{suffix}", damaged))
        # if time is short, the others are too long
        wanted = "q" if sort == "lengths that disagree" and name == "time" else name.removeprefix("model/")
        assert wanted in str(told.value).removeprefix(str(tmp_path)), name
        assert "damaged" in str(told.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"options": 3}, "options"),
        ({"options": {"record": 3}}, "options"),
        ({"events": 3}, "events"),
        ({"events": [{"kind": "contact_begin"}]}, r"events\[0\]"),
        ({"events": [{"kind": "no", "time": 1.0, "names": [], "shapes": []}]}, r"events\[0\]"),
        ({"digest": "0", "digests": {}}, "other values of"),
        ({"model": []}, "damaged"),
    ],
)
def test_headers_with_other_values(files, change, told, tmp_path):
    whole = contents(files)
    header = json.loads(whole["header"].tobytes()) | change
    damaged = whole | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    with pytest.raises(poise.SceneError, match=told):
        Recording.load(write(tmp_path / "damaged.npz", damaged))


def test_a_part_that_was_recorded_must_be_there(files, tmp_path):
    without = {name: array for name, array in contents(files).items() if not name.startswith("contacts/")}
    with pytest.raises(poise.SceneError, match="contacts: it is missing"):
        Recording.load(write(tmp_path / "damaged.npz", without))


def test_links_out_of_the_file_are_refused(files, tmp_path):
    import h5py

    path = write(tmp_path / "links.h5", contents(files))
    for link in (h5py.ExternalLink(str(files / "whole.h5"), "q"), h5py.SoftLink("/v")):
        with h5py.File(path, "r+") as file:
            del file["q"]
            file["q"] = link
        with pytest.raises(poise.SceneError, match="links to other places"):
            Recording.load(path)
    with h5py.File(path, "r+") as file:
        del file["q"]
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource(str(files / "whole.h5"), "time", (3,))
        file.create_virtual_dataset("q", layout)
    with pytest.raises(poise.SceneError, match="in another file"):
        Recording.load(path)


def test_states_have_no_other_fields(files, tmp_path):
    world = damaged_files.scene().build(dt=1 / 240)
    with np.load(files / "state.npz") as archive:
        content = {name: archive[name] for name in archive.files}
    np.savez(tmp_path / "other.npz", **content, more=np.zeros(3))
    with pytest.raises(poise.SceneError, match="more: the file is damaged"):
        poise.State.load(tmp_path / "other.npz", world.model)


def test_the_sum_is_that_of_hdf5(files):
    content = (files / "whole.h5").read_bytes()
    assert checksum(content[:44]) == int.from_bytes(content[44:48], "little")


def test_what_is_packed_very_well_can_be_read_again(tmp_path):
    """160 MB of zeros."""
    world = poise.Scene().build(dt=0.01)
    zeros = np.zeros(200_000)
    world.run(1.0, signals={"zeros": lambda w: zeros}, record=()).save(tmp_path / "x.h5", compression="gzip")
    assert (tmp_path / "x.h5").stat().st_size < 3e6
    assert Recording.load(tmp_path / "x.h5").signals["zeros"].shape == (101, 200_000)
